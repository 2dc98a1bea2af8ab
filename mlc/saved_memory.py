"""Memory that several tensors of a file share, which is written once, so that they share it again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from mlc.frontend.tensor import Tensor


class Memory(NamedTuple):
    """Memory from the first element that one of the tensors has to the last.

    address  where it begins
    raw      its bytes
    """

    address: int
    raw: np.ndarray[Any, Any]

    def place(self, x: Tensor) -> tuple[int, tuple[int, ...]]:
        """Where the first element of a tensor lies, and its strides, in elements."""
        array = x.array
        return ((_address(array) - self.address) // array.itemsize,
                tuple(s // array.itemsize for s in array.strides))


def shared_memory(tensors: Iterable[Tensor]) -> dict[int, Memory]:
    """The memory of the tensors that share it with others among these of the same dtype, by their identity."""
    groups = dict[tuple[int, str], list[Tensor]]()
    for x in {id(x): x for x in tensors}.values():
        if not x.composite and x._storage is not None and x._storage.memory is not None and _is_regular(x.array):
            groups.setdefault((id(x._storage), x.dtype.name), []).append(x)
    return {id(x): memory for group in groups.values() if len(group) > 1
            for memory in [_memory(group)] if memory is not None for x in group}


def _memory(group: list[Tensor]) -> Memory | None:
    """The memory of tensors of one storage and dtype; None if they are not a number of elements apart."""
    arrays = [x.array for x in group]
    start, stop = min(map(_address, arrays)), max(map(_end, arrays))
    if any((_address(a) - start) % a.itemsize for a in arrays):
        return None
    whole: Any = group[0]._storage.memory                  # type: ignore[union-attr]
    return Memory(start, whole.reshape(-1).view(np.uint8)[start - _address(whole):stop - _address(whole)])


def _is_regular(array: np.ndarray[Any, Any]) -> bool:
    """Whether an array has elements, whose strides are numbers of elements, and none of them negative."""
    return bool(array.size) and all(s >= 0 and s % array.itemsize == 0 for s in array.strides)


def _address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def _end(array: np.ndarray[Any, Any]) -> int:
    """The address after the last element."""
    last: int = sum((n - 1) * s for n, s in zip(array.shape, array.strides))
    return _address(array) + last + array.itemsize
