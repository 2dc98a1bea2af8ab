"""NVIDIA GPUs: which there are, and what mlc does on them.

    if mlc.cuda.is_available():
        f = mlc.compile(f, target="cuda")

Where there is none, `is_available` says so and `device_count` is 0; everything else is an error that says why.
"""

from __future__ import annotations

from typing import Any

from mlc import api  # noqa: F401  (it hands the compiler over, which knows the names of devices)
from mlc.code import place_named
from mlc.frontend.devices import as_device
from mlc.ir.diag import BackendError, UserError

__all__ = ["device_count", "empty_cache", "get_device_capability", "get_device_name", "is_available",
           "max_memory_allocated", "memory_allocated", "memory_reserved", "synchronize", "why_not"]


def is_available() -> bool:
    """Whether there is a device that mlc can use."""
    return device_count() > 0


def device_count() -> int:
    """How many devices there are."""
    from mlc.backends.cuda import device
    try:
        return device.count()
    except BackendError:
        return 0


def why_not() -> str | None:
    """Why there is no device, as the error of using one says it; None if there is one."""
    from mlc.backends.cuda import device
    try:
        device.device()
    except BackendError as error:
        return str(error)
    return None


def _place(device: Any) -> Any:
    name = as_device("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)
    if name is None or name == "cpu":
        raise UserError(f"{device!r} is no GPU", code="MLC0337", hint='use "cuda" or a number')
    return place_named(name)


def get_device_name(device: Any = None) -> str:
    """What its maker calls a device."""
    return str(_place(device).device.name)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """(major, minor) version of what a device can do: (9, 0) runs code for sm_90."""
    major, minor = divmod(_place(device).device.architecture, 10)
    return major, minor


def synchronize(device: Any = None) -> None:
    """Wait until a device has done all that mlc asked of it; errors of kernels show here at the latest."""
    where = _place(device)
    where.device.activate()
    where.device.synchronize()


def memory_allocated(device: Any = None) -> int:
    """Bytes of the device's memory that tensors and calls use now."""
    return int(_place(device).allocator.in_use())


def max_memory_allocated(device: Any = None) -> int:
    """The most that has been in use so far."""
    return int(_place(device).allocator.statistics.peak)


def memory_reserved(device: Any = None) -> int:
    """Bytes that mlc has taken of the device, in use or kept for use."""
    return int(_place(device).allocator.statistics.held)


def empty_cache(device: Any = None) -> None:
    """Give to the device's driver what is kept, but not in use."""
    where = _place(device)
    where.device.activate()
    where.allocator.release()
