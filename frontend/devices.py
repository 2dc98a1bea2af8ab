"""Devices of tensors: arrays in host memory are numpy's, those in device memory belong to the backend of the device."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

import numpy as np

from mlc.frontend.compiler import compiler, vendors
from mlc.frontend.device import CPU as CPU
from mlc.frontend.device import ELSEWHERE
from mlc.frontend.device import device as Device
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError

Array = np.ndarray[Any, Any]

class DeviceArray(Protocol):
    """An array in device memory."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def device(self) -> str: ...
    def numpy(self) -> Array: ...
    def first(self, shape: tuple[int, ...]) -> DeviceArray: ...
    def copy(self) -> DeviceArray: ...
    def placed_like(self, other: Any) -> DeviceArray:
        """The array where another one of its shape and device lies: itself, if that has but one place."""
    def __dlpack__(self, **keywords: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


BackingArray = np.ndarray[Any, Any] | DeviceArray
"""Storage of a tensor's elements: a numpy array, or an array of a device."""


class Devices:
    """Transfers to devices, implemented by the compiler."""

    @staticmethod
    def check(device: str) -> None:
        """Raise an error at the user's line if there is no device of this name."""
        compiler().check_device(device)

    @staticmethod
    def put(array: Array, device: str) -> DeviceArray:
        """Copy a host array to a device."""
        return compiler().put(array, device)

    @staticmethod
    def dlpack_types() -> Collection[int]:
        """DLPack device types that `import_dlpack` takes."""
        return compiler().dlpack_devices()

    @staticmethod
    def import_dlpack(x: Any) -> DeviceArray:
        """Import a device tensor of another library by DLPack, without a copy."""
        return compiler().import_dlpack(x)


def is_device(x: Any) -> bool:
    """Whether `x` is a device in the sense of PyTorch: an `mlc.device`, a `torch.device` or a name such as "cuda:0"."""
    return type(x).__name__ == "device" or (isinstance(x, str) and (
        (name := x.split(":")[0]) in ELSEWHERE or name in vendors()))


def as_device(device: Any) -> str | None:
    """Normalize a device to "cpu", "cuda:0" and so on; None stays None. UserError for an unknown one."""
    if device is None:
        return None
    text, known = str(device), vendors()
    name, colon, ordinal = text.partition(":")
    if name == CPU:
        return CPU
    if name in known and (ordinal.isdecimal() or not colon):
        return f"{name}:{int(ordinal or 0)}"
    offered = " or ".join(f'"{vendor}"' for vendor in known)
    raise UserError(f"there is no device {text!r} here", code="MLC0337", loc=user_loc(),
                    hint=f"use {offered}, or leave the device out")


def device_of(array: BackingArray) -> Device:
    return CPU if isinstance(array, np.ndarray) else str.__new__(Device, array.device)


def device_of_call(arrays: Sequence[BackingArray]) -> str:
    """Device of a call with these arguments: that of the first device array, to which host arrays are copied."""
    return next((a.device for a in arrays if not isinstance(a, np.ndarray)), CPU)


def common_device(arrays: list[Any], given: list[Any], function: str) -> str:
    """Device of an eager operation: that of its tensors.

    Numbers, tensors of one element and numpy arrays are copied to it; other tensors are never copied implicitly.
    """
    found = {a.device: i for i, a in reversed(list(enumerate(arrays))) if not isinstance(a, np.ndarray)}
    if not found:
        return CPU
    device: str = min(found, key=lambda d: found[d])
    other = next((i for d, i in found.items() if d != device), None)
    if other is None:
        other = next((i for i, (a, x) in enumerate(zip(arrays, given))
                      if isinstance(a, np.ndarray) and a.ndim and hasattr(x, "backing_array")), None)
    if other is not None:
        raise UserError(f"{function}: operand {found[device]} is on {device}, operand {other} on "
                        f"{device_of(arrays[other])}", code="MLC0339", loc=user_loc(),
                        hint=f'move one of them: x.to("{device}")')
    return device
