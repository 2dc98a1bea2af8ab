"""Gather: slices of an operand at indices that are elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlc.frontend.stablehlo.elementwise import full
from mlc.frontend.stablehlo.table import row
from mlc.frontend.tensor import OPERATIONS as O

if TYPE_CHECKING:
    from mlc.frontend.stablehlo.interpreter import Step


@row("stablehlo.gather")
def gather(step: Step, x: Any, indices: Any) -> Any:
    return gathered(step, x, indices, step.op.ints("slice_sizes"))


@row("stablehlo.dynamic_gather")
def dynamic_gather(step: Step, x: Any, indices: Any, sizes: Any) -> Any:
    return gathered(step, x, indices, step.known(2))


def numbers(step: Step, dims: Any, name: str) -> list[int]:
    """A list of dimensions in a structure of them."""
    found = dims.get(name, ())
    if not isinstance(found, list | tuple) or not all(isinstance(a, int) and a >= 0 for a in found):
        step.op.wrong(f"{name} is no list of dimensions")
    return list(found)


def columns(step: Step, indices: Any, axis: Any, count: int) -> tuple[list[Any], tuple[int, ...]]:
    """The indices of each dimension, as int64, and the shape that they have."""
    if not isinstance(axis, int) or not 0 <= axis <= len(indices.shape):
        step.op.wrong(f"there is no dimension {axis} of the indices")
    if indices.dtype.name == "uint64":
        indices = O["minimum"](indices, full(2 ** 63 - 1, indices))
    wide = O["cast"](indices, "int64")
    given = 1 if axis == len(indices.shape) else indices.shape[axis]
    if not isinstance(given, int) or given != count:
        step.op.wrong(f"there are {given} indices for {count} dimensions")
    found = [wide] if axis == len(indices.shape) else [wide[(slice(None),) * axis + (i,)] for i in range(count)]
    shape = tuple(n for a, n in enumerate(indices.shape) if a != axis)
    return found, shape


def at_axis(x: Any, axes: Sequence[int], rank: int) -> Any:
    """A tensor whose dimensions are those `axes` of `rank`, the others of size 1."""
    shape = [1] * rank
    for axis, n in zip(axes, x.shape):
        shape[axis] = n
    return O["reshape"](x, tuple(shape))


def gathered(step: Step, x: Any, indices: Any, sizes: Sequence[Any]) -> Any:
    """One element of the operand for each of the result; starts are such that the slice is within the operand."""
    op, dims = step.op, step.op.need("dimension_numbers")
    if not isinstance(dims, dict):
        op.wrong("its dimension numbers are no #stablehlo.gather")
    offset, collapsed = numbers(step, dims, "offset_dims"), numbers(step, dims, "collapsed_slice_dims")
    batching, index_batching = (numbers(step, dims, n) for n in ("operand_batching_dims",
                                                                 "start_indices_batching_dims"))
    mapped, axis = numbers(step, dims, "start_index_map"), dims.get("index_vector_dim", 0)
    rank = len(op.array.shape)
    starts, batch_shape = columns(step, indices, axis, len(mapped))
    batch_axes = [a for a in range(rank) if a not in offset]
    kept = [a for a in range(len(x.shape)) if a not in (*collapsed, *batching)]
    if len(batch_axes) != len(batch_shape) or len(kept) != len(offset) or len(sizes) != len(x.shape) \
            or any(a >= len(x.shape) for a in (*collapsed, *batching, *mapped)):
        op.wrong("its dimension numbers do not fit the operands")
    if any(isinstance(n, int) and isinstance(m, int) and not 0 <= n <= m for n, m in zip(sizes, x.shape)):
        op.wrong(f"slices of {list(map(str, sizes))} are larger than the operand")
    at: list[Any] = []
    for a, n in enumerate(x.shape):
        parts = []
        if a in mapped:
            start = starts[mapped.index(a)]
            start = O["clamp"](start, 0, n - sizes[a])
            parts.append(at_axis(start, batch_axes, rank))
        if a in batching:
            where = index_batching[batching.index(a)]
            where -= isinstance(axis, int) and axis < where
            parts.append(at_axis(O["arange"](n), [batch_axes[where]], rank))
        elif a in kept:
            parts.append(at_axis(O["arange"](sizes[a]), [offset[kept.index(a)]], rank))
        found = parts[0] if parts else at_axis(O["zeros"](1, dtype="int64"), [0] if rank else [], rank)
        for part in parts[1:]:
            found = O["add"](found, part)
        at.append(found)
    shape = tuple(n if n is not None else None for n in op.array.shape)
    if not at:
        return O["broadcast_to"](x, shape) if shape else x
    if None in shape:
        whole = at[0]
        for part in at[1:]:
            whole = O["add"](whole, part)
        shape = tuple(whole.shape)
    if any(n == 0 for n in shape):
        return O["broadcast_to"](full(0, x), shape)
    return x[tuple(O["broadcast_to"](a, shape) for a in at)]
