"""Storage: memory that several tensors share, so that each sees what is written through another.

A tensor without a storage has an array that is never written to, which anybody may hold. It gets a storage when a view
of it is made, when its array is handed out, or when a part of it is first written to. From then on its array is
read-only: writing goes through `Storage.write`.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.frontend.location import user_loc
from mlc.frontend.methods import SYNTAX
from mlc.ir.diag import UserError

if TYPE_CHECKING:
    from mlc.frontend.tensor import Tensor

Array = np.ndarray[Any, Any]
_OURS = 2
"""References to an array that belongs to a tensor alone, as `sys.getrefcount` counts them: the tensor's slot, and the
argument of that function."""


class Storage:
    """Memory shared by tensors.

    memory    array of all of it; writable unless it belongs to someone who forbids that; None of device memory, where
              views are copies
    token     replaced by each write, so that whoever depends on the elements can compare it
    private   whether nobody but the tensors of this storage and its `saved` ones uses the memory, or is meant to see
              what is written to it
    handed    whether the memory is also that of an array outside, which has to see what is written
    """

    __slots__ = ("__weakref__", "_saved", "_tensors", "handed", "memory", "private", "token")

    def __init__(self, memory: Array | None, private: bool, handed: bool = False) -> None:
        self.memory = memory
        self.private = private
        self.handed = handed
        self.token = object()
        self._tensors: list[weakref.ref[Tensor]] = []
        self._saved: list[weakref.ref[Tensor]] = []

    def add(self, tensor: Tensor) -> None:
        """Register a tensor that shares the memory."""
        tensor._storage, tensors = self, self._tensors
        count = len(tensors)
        if count >= 16 and count & (count - 1) == 0:
            tensors = self._tensors = [ref for ref in tensors if ref() is not None]
        tensors.append(weakref.ref(tensor))

    def tensors(self) -> list[Tensor]:
        """The tensors that share the memory."""
        return [t for ref in self._tensors if (t := ref()) is not None and t._storage is self]

    def members(self) -> list[Any]:
        """The tensors that were added, also those that share the memory or not."""
        return [t for ref in self._tensors if (t := ref()) is not None]

    def save(self, copy: Tensor) -> None:
        """Register a tensor of the same array that has to keep the elements as they are now."""
        self._saved = [ref for ref in self._saved if ref() is not None]
        self._saved.append(weakref.ref(copy))

    def hand_out(self) -> None:
        """Have the memory be shared with arrays outside from now on, whose writes leave the token as it is."""
        if not self.handed:
            self._own()
            self.touch()
            self.handed = True

    def write(self, tensor: Tensor, elements: Array) -> None:
        """Write new elements of a tensor's shape and dtype, broadcast, for all tensors that share the memory to see."""
        target = self.writable(tensor)
        np.copyto(target, elements)
        self.touch()

    def writable(self, tensor: Tensor) -> Array:
        """The array of a tensor, to write to before a call of `touch`."""
        if self.memory is None:
            raise UserError("a view on a device is a copy, and would not see what is written to the other tensor",
                            code="MLC0754", loc=user_loc(), hint="write to a clone, or do without the view")
        if tensor._array.size and overlaps(tensor._array):
            raise UserError("several elements of the tensor are the same memory, as after expand, and would be written "
                            "at once", code="MLC0752", loc=user_loc(), hint="write to a copy: x.clone()")
        if not self.private:
            self._own()                                    # which leaves the present memory to them
        else:
            for ref in self._saved:
                if (saved := ref()) is not None:
                    saved._array = saved._array.copy()
        self._saved.clear()
        target: Array = tensor._array.view()
        try:
            target.flags.writeable = True
        except ValueError:
            raise UserError("the tensor shares the memory of an array that is read-only", code="MLC0753",
                            loc=user_loc(), hint="write to a copy: x.clone()") from None
        return target

    def is_whole(self, tensor: Tensor) -> bool:
        """Whether a tensor has all of the memory, in its order, and nobody but tensors of this storage has any of it,
        so that it may be written to at once."""
        memory, array = self.memory, tensor._array
        return (self.private and memory is not None and not self._saved and memory.shape == array.shape
                and memory.dtype is array.dtype and memory.flags.carray and array.flags.c_contiguous)

    def replace(self, tensor: Tensor, elements: Array) -> bool:
        """Have the only tensor of this storage take over an array of new elements, which it needs no storage for; False
        if others share the memory."""
        if self.handed or (len(self._tensors) > 1 and len(self.tensors()) > 1):
            return False
        self._saved.clear()                                # they keep the former array
        tensor._array = elements
        if self.memory is not None:
            tensor._storage = None
        self.touch()
        return True

    def move(self, memory: Array) -> None:
        """Have the memory be another array of the same shape and dtype, which has the elements already, and which
        others outside may write to."""
        old, self.memory, self.private, self.handed = self.memory, memory, True, True
        assert old is not None
        self._saved.clear()                                # they keep the former memory
        for t in self.tensors():
            t._array = self.within(t._array, old)
        self.touch()

    def touch(self) -> None:
        """Replace the token."""
        self.token = object()

    def _own(self) -> None:
        """Move to memory of its own if somebody else may hold the present one, expecting it to stay as it is."""
        if self.private:
            return
        assert self.memory is not None
        old, self.memory, self.private = self.memory, self.memory.copy(order="C"), True
        for t in self.tensors():
            t._array = self.within(t._array, old)

    def within(self, array: Array, memory: Array) -> Array:
        """An array that lies in the memory of this storage as `array` lies in `memory`; read-only."""
        assert self.memory is not None
        offset = array.__array_interface__["data"][0] - memory.__array_interface__["data"][0] if array.size else 0
        raw = self.memory.reshape(-1).view(np.uint8)
        found: Array = np.ndarray(array.shape, array.dtype, raw, offset, array.strides)
        found.flags.writeable = False
        return found


def copied(tensor: Tensor, memo: dict[int, Any]) -> Any:
    """The array of a deep copy of a tensor: in one memory with those of the tensors that share its memory, which `memo`
    has by the ids of what was copied."""
    old, array = tensor._storage, tensor.backing_array
    if old is None or old.memory is None or not isinstance(array, np.ndarray) or len(old.tensors()) < 2:
        return array.copy()
    if id(old) not in memo:
        memo[id(old)] = Storage(old.memory.copy(), True)
    new: Storage = memo[id(old)]
    assert new.memory is not None
    offset = array.__array_interface__["data"][0] - old.memory.__array_interface__["data"][0]
    new.add(memo[id(tensor)])
    return _read_only(np.ndarray(array.shape, array.dtype, new.memory.reshape(-1).view(np.uint8), offset,
                                 array.strides))


SYNTAX["copied_array"] = copied


def storage_of(tensor: Tensor) -> Storage:
    """The storage of a tensor, made if it has none."""
    if tensor._storage is None:
        array = tensor.backing_array
        if not isinstance(array, np.ndarray):
            storage = Storage(None, True)
            storage.add(tensor)
            return storage
        if not array.flags.c_contiguous:
            array = tensor._array = np.array(array, order="C")
        storage = Storage(array, _held_once(array))
        tensor._array = _read_only(array)
        storage.add(tensor)
    return tensor._storage  # type: ignore[return-value]


def _held_once(array: Array) -> bool:
    """Whether nobody has an array, or its memory, but a tensor and the caller."""
    base: Any = array.base
    return sys.getrefcount(array) <= _OURS + 2 and (base is None or (
        isinstance(base, np.ndarray) and base.base is None and sys.getrefcount(base) <= _OURS + 1))


def donated(tensor: Tensor, given: Sequence[Any]) -> Any:
    """The array of a tensor to be overwritten: its own, or a copy where the memory is also that of tensors that are
    not `given` to the call, of an array outside, or of what is recorded for backward."""
    storage = tensor._storage
    if storage is None:
        array = tensor.backing_array
        given_twice = sum(getattr(x, "_array", x) is array for x in given) > 1     # which the call refuses
        return array if given_twice or type(array) is not np.ndarray or _held_once(array) else array.copy()
    among = sum(getattr(x, "_storage", None) is storage for x in given)
    if among > 1:                                          # as above
        array = tensor._array.view()
        array.flags.writeable = True
        return array
    return tensor._array.copy() if storage.handed or len(storage.tensors()) > 1 else storage.writable(tensor)


def share(tensor: Tensor, array: Array) -> Tensor:
    """The tensor with the memory of an array that it was made of and that belongs to the program."""
    tensor._array = _read_only(array)
    Storage(array, True, True).add(tensor)
    return tensor


def handed_out(tensor: Tensor) -> Array:
    """The array of a tensor for the program to read and write, with the tensor's memory."""
    storage = storage_of(tensor)
    storage.hand_out()
    out: Array = tensor._array.view()
    if storage.memory is not None and storage.memory.flags.writeable:
        out.flags.writeable = True
    return out


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view


def overlaps(array: Array) -> bool:
    """Whether several elements may be the same memory."""
    extent = array.itemsize
    for stride, n in sorted((abs(s), n) for s, n in zip(array.strides, array.shape) if n > 1):
        if stride < extent:
            return True
        extent += stride * (n - 1)
    return False
