"""Bounds and alignment conditions of accesses and views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.dialects import amx, arith, memref, vector
from mlc.dialects.memref import strides_of
from mlc.ir.core import Value
from mlc.ir.types import IntType, VectorType, index, like
from mlc.passes.insert_checks.numbers import (
    Condition,
    Number,
    below,
    every,
    least,
    number,
    plus,
    product,
    size,
    sizes,
    times,
    truth,
    value,
)


def of_access(op: Any, memory: Value) -> tuple[list[Condition], list[Value]]:
    """For each axis of an unmasked access: whether its index is within bounds, and the index."""
    indices: list[Value] = list(op.indices)
    inside = [below(number(i), size(memory, axis)) for axis, i in enumerate(indices)]
    if isinstance(op, vector.Load | vector.Store):
        lanes = (op.value if isinstance(op, vector.Store) else op.result).type.shape[0]
        last, n = number(indices[-1]), size(memory, len(indices) - 1)
        inside[-1] = every([least(0, last), least(last, plus(n, -lanes))])
    elif isinstance(op, amx.TileLoad | amx.TileStore):
        type = (op.value if isinstance(op, amx.TileStore) else op.result).type
        width = type.shape[1] * type.dtype.width // memory.type.dtype.width
        for axis, count in ((-2, type.shape[0]), (-1, width)):
            first, n = number(indices[axis]), size(memory, len(indices) + axis)
            inside[axis] = every([least(0, first), least(first, plus(n, -count))])
    return inside, indices


def aligned(op: Any, memory: Value) -> Condition:
    """Whether an access has the alignment that it claims, as far as strides are static."""
    claimed, type = getattr(op, "alignment", None), memory.type
    strides: list[Number | None] = list(strides_of(type))
    if type.strides is None:
        step: Number = 1
        for axis in reversed(range(type.rank)):
            strides[axis] = step
            step = times(step, size(memory, axis)) if axis else step
    if not claimed or claimed <= type.dtype.itemsize or None in strides or type.offset != 0:
        return True
    place: Number = 0
    for i, n in zip(op.indices, strides):
        assert n is not None
        place = plus(place, times(number(i), n))
    address = plus(memref.Address(memory).result, times(place, type.dtype.itemsize))
    return _equal(arith.RemUI(value(address), value(claimed)).result, 0)


def first_wrong(inside: Sequence[Condition], indices: Sequence[Value]) -> Value:
    """The index on the first axis that is out of bounds."""
    out = indices[-1] if indices else value(0)
    for held, i in reversed(list(zip(inside, indices))):
        if held is not True and out is not i:
            out = arith.Select(truth(held), out, i).result
    return out


def of_lanes(op: Any, valid: Condition) -> Value:
    """For each lane of a masked access: whether it is within bounds.

    The other axes decide about the end of the lanes, not about a second mask: LLVM 22 generates unmasked accesses for
    some lanes of `compare & splat(condition) & constants` of 64 lanes on AVX2.
    """
    *leading, last = op.indices
    lanes = op.mask.type.shape[0]
    positions: Value = vector.Step(VectorType((lanes,), index)).result
    if isinstance(op, vector.Gather):
        positions = op.lanes_at
        if isinstance(positions.type.dtype, IntType):
            positions = arith.IndexCast(positions, like(positions.type, index)).result
    positions = arith.AddI(positions, vector.splat(last, lanes)).result
    end = value(size(op.base, len(leading)))
    rows = every([valid, *(below(number(i), size(op.base, axis)) for axis, i in enumerate(leading))])
    if rows is not True:
        end = arith.Select(truth(rows), end, value(0)).result
    return arith.CmpI("ult", positions, vector.splat(end, lanes)).result


def of_view(op: Any) -> list[Condition]:
    """The conditions under which a view lies within its source."""
    if isinstance(op, memref.View):
        return _bytes(op)
    if isinstance(op, memref.Cast):
        return [_equal(n, static) for n, static in zip(sizes(op.source), op.result.type.shape) if static is not None]
    if isinstance(op, memref.SubView):
        return _window(op)
    return _elements(op)


def _bytes(op: memref.View) -> list[Condition]:
    """A memref.view lies within its buffer, at an offset aligned to the element."""
    type, shift = op.result.type, number(op.byte_shift)
    dynamic = iter(op.sizes)
    shape = [number(next(dynamic)) if n is None else n for n in type.shape]
    end = plus(shift, times(product(shape), type.dtype.itemsize))
    whole: Condition = True
    if isinstance(shift, int):
        whole = shift % type.dtype.itemsize == 0
    elif type.dtype.itemsize > 1:
        whole = _equal(arith.RemUI(shift, value(type.dtype.itemsize)).result, 0)
    return [whole, least(0, shift), *(least(0, n) for n in shape), least(end, size(op.source, 0))]


def _window(op: memref.SubView) -> list[Condition]:
    """offset + (size - 1) * stride lies within the source on each axis; a window of size 0 may lie anywhere."""
    out: list[Condition] = []
    for axis, (offset, n, step) in enumerate(zip(*(map(_number, op.mixed(name))
                                                   for name in ("offsets", "sizes", "strides")))):
        last = plus(offset, times(plus(n, -1), step))
        have = size(op.source, axis)
        out.append(_or(least(n, 0), every([below(offset, have), below(last, have)])))
    return out


def _elements(op: memref.ReinterpretCast) -> list[Condition]:
    """The first and the last element lie within the source, as far as its strides are static."""
    source: Any = op.source.type
    strides, extents = [s for s in strides_of(source) if s is not None], sizes(op.source)
    if source.strides is None:
        held = product(extents)
    elif len(strides) < len(extents):
        return []
    else:
        held = plus(_last(0, extents, strides), 1)
    offset, = map(_number, op.mixed("offsets"))
    shape, steps = ([_number(n) for n in op.mixed(name)] for name in ("sizes", "strides"))
    last = _last(offset, shape, steps)
    empty: Condition = False
    for n in shape:
        empty = _or(empty, least(n, 0))
    return [_or(empty, every([least(0, offset), least(offset, last), least(plus(last, 1), held)]))]


def _last(first: Number, shape: Sequence[Number], steps: Sequence[Number]) -> Number:
    """The linear position of the last element of a strided layout that starts at `first`."""
    for n, step in zip(shape, steps):
        first = plus(first, times(plus(n, -1), step))
    return first


def _number(n: int | Value) -> Number:
    return n if isinstance(n, int) else number(n)


def _equal(a: Number, b: Number) -> Condition:
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    return arith.CmpI("eq", value(a), value(b)).result


def _or(a: Condition, b: Condition) -> Condition:
    if a is True or b is True:
        return True
    if a is False or b is False:
        return b if a is False else a
    return arith.OrI(truth(a), truth(b)).result
