"""memref, layouts: strides, bounds and fresh memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.ir.core import Op, Value
from mlc.ir.diag import IRError
from mlc.ir.types import MemRefType, ScalarType, index, to_numpy

if TYPE_CHECKING:
    pass


DYNAMIC = -(1 << 63)
"""Marks an entry of a static list that is given by an operand."""

Array = np.ndarray[Any, Any]
Mixed = int | Value
"""A static number, or an index value."""


def row_major(shape: Sequence[int | None]) -> tuple[int | None, ...]:
    """The strides, in elements, of contiguous memory of a shape; None outwards of a dynamic size."""
    out: list[int | None] = []
    step: int | None = 1
    for n in reversed(shape):
        out.append(step)
        step = None if step is None or n is None else step * n
    return tuple(reversed(out))


def strides_of(type: MemRefType) -> tuple[int | None, ...]:
    """The strides of a memref, in elements; None for a dynamic stride."""
    return row_major(type.shape) if type.strides is None else type.strides


def check_indices(op: Op, memory: Value, indices: Sequence[Value]) -> MemRefType:
    """The type of `memory`; IRError unless it is a memref of the rank of `indices`."""
    type = memory.type
    if not isinstance(type, MemRefType):
        op.fail(f"{type} is no memref", code="MLC0162")
    if len(indices) != type.rank or any(i.type != index for i in indices):
        op.fail(f"{type} takes {type.rank} indices of type index, got "
                f"{', '.join(str(i.type) for i in indices) or 'none'}", code="MLC0162")
    return type


def check_bounds(op: Op, array: Array, indices: Sequence[int]) -> tuple[int, ...]:
    """The indices; IRError if one is out of bounds."""
    for axis, (i, n) in enumerate(zip(indices, array.shape)):
        if not 0 <= i < n:
            raise IRError(f"{op.name}: index {i} on axis {axis} is outside of size {n}", code="MLC0163", loc=op.loc)
    return tuple(indices)


def fresh(shape: tuple[int, ...], dtype: ScalarType, alignment: int = 64) -> Array:
    """Uninitialized memory with all bits set, aligned to `alignment` bytes."""
    size = math.prod(shape) * to_numpy(dtype).itemsize
    raw = np.full(size + alignment, 0xFF, np.uint8)
    start = -raw.ctypes.data % alignment
    return raw[start: start + size].view(to_numpy(dtype)).reshape(shape)
