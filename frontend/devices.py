"""Where tensors are: in the CPU's memory, as numpy arrays, or in that of a device, as arrays the compiler put there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

import numpy as np

from mlc.frontend.compiler import compiler, vendors
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError

Array = np.ndarray[Any, Any]
CPU = "cpu"
ELSEWHERE = frozenset({"gpu", "mps", "xpu", "xla", "meta"})
"""Names of devices in other libraries, by which an argument is known to be one."""


class DeviceArray(Protocol):
    """An array that is not in the CPU's memory."""

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
    def __dlpack__(self, **keywords: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


Held = np.ndarray[Any, Any] | DeviceArray
"""Storage of a tensor's elements: a numpy array, or an array of a device."""


class Devices:
    """How arrays come to devices: the compiler knows."""

    @staticmethod
    def check(where: str) -> None:
        """Raise an error at the user's line if there is no device of this name."""
        compiler().check_device(where)

    @staticmethod
    def put(array: Array, where: str) -> DeviceArray:
        """A copy of an array of the CPU's memory, on the device of this name."""
        return compiler().put(array, where)

    @staticmethod
    def adopted() -> Collection[int]:
        """DLPack device types of the arrays that `adopt` takes."""
        return compiler().dlpack_devices()

    @staticmethod
    def adopt(x: Any) -> DeviceArray:
        """The array of another library's tensor that is on a device, sharing its memory."""
        return compiler().adopt(x)


def is_device(x: Any) -> bool:
    """Whether this names a device, as PyTorch does."""
    return type(x).__name__ == "device" or (isinstance(x, str) and (
        (name := x.split(":")[0]) in ELSEWHERE or name in vendors()))


def as_device(device: Any) -> str | None:
    """"cpu", or "cuda:0" and so on, of how users name it; None of None. UserError for what there cannot be."""
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


def device_of(array: Held) -> str:
    return CPU if isinstance(array, np.ndarray) else array.device


def place_of(arrays: Sequence[Held]) -> str:
    """Where a compiled function runs that is called with these: where the first is that is on a device. What is in the
    CPU's memory is brought there."""
    return next((a.device for a in arrays if not isinstance(a, np.ndarray)), CPU)


def common_device(arrays: list[Any], given: list[Any], function: str) -> str:
    """Where a function runs that is called with these: where its tensors are.

    Numbers, tensors of one element and numpy arrays are brought there; other tensors stay where they are put.
    """
    found = {a.device: i for i, a in reversed(list(enumerate(arrays))) if not isinstance(a, np.ndarray)}
    if not found:
        return CPU
    where: str = min(found, key=lambda d: found[d])
    other = next((i for d, i in found.items() if d != where), None)
    if other is None:
        other = next((i for i, (a, x) in enumerate(zip(arrays, given))
                      if isinstance(a, np.ndarray) and a.ndim and hasattr(x, "held")), None)
    if other is not None:
        raise UserError(f"{function}: operand {found[where]} is on {where}, operand {other} on "
                        f"{device_of(arrays[other])}", code="MLC0339", loc=user_loc(),
                        hint=f'move one of them: x.to("{where}")')
    return where
