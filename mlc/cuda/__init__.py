"""NVIDIA GPUs: which there are, and what mlc does on them.

    if mlc.cuda.is_available():
        f = mlc.compile(f, target="cuda")

Where there is none, `is_available` says so and `device_count` is 0; everything else is an error that says why.

Example:
    >>> mlc.cuda.is_available() == (mlc.cuda.device_count() > 0)
    True
"""

from __future__ import annotations

from typing import Any

from mlc import api  # noqa: F401  (it hands the compiler over, which knows the names of devices)
from mlc.code import device_memory
from mlc.cuda import amp
from mlc.frontend import generator
from mlc.frontend.arguments import OutOfMemoryError as OutOfMemoryError
from mlc.frontend.devices import as_device
from mlc.ir.diag import BackendError, UserError

__all__ = ["OutOfMemoryError", "amp", "device_count", "empty_cache", "get_device_capability", "get_device_name",
           "is_available", "manual_seed", "manual_seed_all", "max_memory_allocated", "memory_allocated",
           "memory_reserved", "synchronize", "why_not"]


def is_available() -> bool:
    """Whether there is a device that mlc can use.

    Returns:
        A bool; no error where there is no driver.

    Example:
        >>> mlc.cuda.is_available() == (mlc.cuda.why_not() is None)
        True
    """
    return device_count() > 0


def device_count() -> int:
    """Number of devices; 0 where there is no driver.

    Returns:
        An integer.

    Example:
        >>> mlc.cuda.device_count() > 0 or not mlc.cuda.is_available()
        True
    """
    from mlc.backends.cuda import devices
    try:
        return devices.count()
    except BackendError:
        return 0


def manual_seed(seed: int) -> None:
    """Seed the generator that random numbers come from, whatever device they are for.

    Args:
        seed: Integer from -2^63 to 2^64 - 1; 2^64 is added to a negative one.

    Raises:
        UserError: `seed` is out of range (MLC0360).
        UserTypeError: `seed` is no integer (MLC0355).

    Example:
        >>> mlc.cuda.manual_seed(0)
    """
    generator.manual_seed(seed)


manual_seed_all = manual_seed


def why_not() -> str | None:
    """Reason why there is no device.

    Returns:
        The message of the error that using one raises, or None if there is one.

    Example:
        >>> mlc.cuda.is_available() or mlc.cuda.why_not() != ""
        True
    """
    from mlc.backends.cuda import devices
    try:
        devices.device()
    except BackendError as error:
        return str(error)
    return None


def _memory(device: Any) -> Any:
    name = as_device("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)
    if name is None or name == "cpu":
        raise UserError(f"{device!r} is no GPU", code="MLC0337", hint='use "cuda" or a number')
    return device_memory(name)


def get_device_name(device: Any = None) -> str:
    """Name of a device, as its maker gives it.

    Args:
        device: Number or name ("cuda", "cuda:1") of the device; None for the first.

    Returns:
        A string, such as "NVIDIA H200".

    Raises:
        UserError: The name is not that of a GPU (MLC0337).
        BackendError: There is no such device (MLC0582), no driver (MLC0581), or no cuda-python (MLC0580).

    Example:
        >>> if mlc.cuda.is_available():
        ...     assert mlc.cuda.get_device_name()
    """
    return str(_memory(device).device.name)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Compute capability of a device.

    Args:
        device: Number or name ("cuda", "cuda:1") of the device; None for the first.

    Returns:
        Pair (major, minor) of integers: (9, 0) runs code for sm_90.

    Raises:
        UserError: The name is not that of a GPU (MLC0337).
        BackendError: There is no such device (MLC0582), no driver (MLC0581), or no cuda-python (MLC0580).

    Example:
        >>> if mlc.cuda.is_available():
        ...     assert mlc.cuda.get_device_capability() >= (5, 0)
    """
    major, minor = divmod(_memory(device).device.architecture, 10)
    return major, minor


def synchronize(device: Any = None) -> None:
    """Wait until a device has finished all work that this process gave it, also collectives and other libraries' work;
    errors of kernels show here at the latest.

    Args:
        device: Number or name ("cuda", "cuda:1") of the device; None for the first.

    Raises:
        UserError: The name is not that of a GPU (MLC0337); or the error of a call that has returned before, such as an
            index out of range (MLC0340).
        BackendError: There is no such device (MLC0582), no driver (MLC0581), or no cuda-python (MLC0580).

    Example:
        >>> if mlc.cuda.is_available():
        ...     mlc.cuda.synchronize()
    """
    memory = _memory(device)
    memory.device.activate()
    memory.device.synchronize(everything=True)
    memory.failures.check()


def memory_allocated(device: Any = None) -> int:
    """Bytes of a device's memory that tensors and calls use now.

    Args:
        device: Number or name ("cuda", "cuda:1") of the device; None for the first.

    Returns:
        An integer.

    Raises:
        UserError: The name is not that of a GPU (MLC0337).
        BackendError: There is no such device (MLC0582), no driver (MLC0581), or no cuda-python (MLC0580).

    Example:
        >>> if mlc.cuda.is_available():
        ...     assert mlc.cuda.memory_allocated() <= mlc.cuda.memory_reserved()
    """
    return int(_memory(device).allocator.in_use())


def max_memory_allocated(device: Any = None) -> int:
    """Peak of `memory_allocated` since the start of the process.

    Args:
        device: Number or name ("cuda", "cuda:1") of the device; None for the first.

    Returns:
        An integer.

    Raises:
        UserError: The name is not that of a GPU (MLC0337).
        BackendError: There is no such device (MLC0582), no driver (MLC0581), or no cuda-python (MLC0580).

    Example:
        >>> if mlc.cuda.is_available():
        ...     assert mlc.cuda.max_memory_allocated() >= mlc.cuda.memory_allocated()
    """
    return int(_memory(device).allocator.statistics.peak)


def memory_reserved(device: Any = None) -> int:
    """Bytes that mlc has taken of a device's memory, in use or kept for use.

    Args:
        device: Number or name ("cuda", "cuda:1") of the device; None for the first.

    Returns:
        An integer.

    Raises:
        UserError: The name is not that of a GPU (MLC0337).
        BackendError: There is no such device (MLC0582), no driver (MLC0581), or no cuda-python (MLC0580).

    Example:
        >>> if mlc.cuda.is_available():
        ...     assert mlc.cuda.memory_reserved() >= 0
    """
    return int(_memory(device).allocator.statistics.held)


def empty_cache(device: Any = None) -> None:
    """Give the memory that is kept, but not in use, back to the driver.

    Args:
        device: Number or name ("cuda", "cuda:1") of the device; None for the first.

    Raises:
        UserError: The name is not that of a GPU (MLC0337).
        BackendError: There is no such device (MLC0582), no driver (MLC0581), or no cuda-python (MLC0580).

    Example:
        >>> if mlc.cuda.is_available():
        ...     mlc.cuda.empty_cache()
    """
    memory = _memory(device)
    memory.device.activate()
    memory.allocator.release()
