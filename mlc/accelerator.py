"""The accelerator of this machine, if it has one: an NVIDIA GPU, as `mlc.cuda` finds it.

Programs that run on whatever device there is ask here, and need not name CUDA: each function answers for the first
accelerator, and none of them fails where there is no driver.

Example:
    >>> device = mlc.accelerator.current_accelerator(check_available=True) or mlc.device("cpu")
    >>> mlc.ones(2, device=device).sum().item()
    2.0
"""

from __future__ import annotations

from mlc import cuda
from mlc.frontend.device import device

__all__ = ["current_accelerator", "device_count", "is_available"]


def is_available() -> bool:
    """Whether there is an accelerator that mlc can use.

    Returns:
        A bool; no error where there is no driver.

    Example:
        >>> mlc.accelerator.is_available() == mlc.cuda.is_available()
        True
    """
    return cuda.is_available()


def device_count() -> int:
    """Number of accelerators; 0 where there is no driver.

    Returns:
        An integer.

    Example:
        >>> mlc.accelerator.device_count() == mlc.cuda.device_count()
        True
    """
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> device | None:
    """The kind of accelerator that mlc generates code for.

    Args:
        check_available: Whether the result is None where there is no such device.

    Returns:
        The device "cuda", or None.

    Example:
        >>> mlc.accelerator.current_accelerator()
        'cuda'
    """
    return None if check_available and not is_available() else device("cuda")
