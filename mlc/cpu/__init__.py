"""The CPU, with the names of `torch.cpu`.

It is one device, "cpu", whatever its cores: code for it distributes large kernels over threads by itself, and a call
has finished when it returns. `mlc.cpu.amp` has automatic mixed precision under older names.

Example:
    >>> mlc.cpu.is_available(), mlc.cpu.device_count()
    (True, 1)
"""

from __future__ import annotations

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
from mlc.cpu import amp

__all__ = ["amp", "device_count", "is_available", "synchronize"]


def is_available() -> bool:
    """Whether there is a CPU.

    Returns:
        True.

    Example:
        >>> mlc.cpu.is_available()
        True
    """
    return True


def device_count() -> int:
    """Number of CPU devices.

    Returns:
        Always 1: the CPU is one device, whatever its cores.

    Example:
        >>> mlc.cpu.device_count()
        1
    """
    return 1


def synchronize(device: object = None) -> None:
    """Wait for the CPU, which has always finished when a call returns.

    Args:
        device: The device; there is one.

    Example:
        >>> mlc.cpu.synchronize()
    """
