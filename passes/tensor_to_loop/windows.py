"""Lowering of windows and dynamic slices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from mlc.dialects import arith
from mlc.dialects import tensor as tn
from mlc.ir import affine, sizes
from mlc.ir.core import Value
from mlc.ir.sizes import Dim
from mlc.ir.types import FloatType, IntType, ScalarType, index, ui64
from mlc.passes.tensor_to_loop.scalar import cast_scalar

if TYPE_CHECKING:
    from mlc.passes.tensor_to_loop.evaluate import Index, KernelBuilder


def place(build: KernelBuilder, op: tn.Place, at: Index, mask: Value | None) -> Value:
    """Element j of the window that starts at p - j * dilation, or 0 if no window starts there."""
    p, j = at[op.axis: op.axis + 2]
    start = p - j * op.dilation
    window = sizes.divide(start, op.stride)
    inside = build.conjunction(build.compare("sge", start, 0), build.compare("slt", window, op.x.type.shape[op.axis]))
    if op.stride != 1:
        inside = build.conjunction(inside, build.compare("eq", sizes.modulo(start, op.stride), 0))
    both = build.both(mask, inside)
    x = build.value(op.x, (*at[: op.axis], window, *at[op.axis + 1:]), both)
    return build.map([inside, x], _or_zero)


def _or_zero(condition: Value, x: Value) -> Value:
    zero = 0.0 if isinstance(x.type, FloatType) else 0
    return arith.Select(condition, x, arith.constant(zero, x.type)).result


def starts(build: KernelBuilder, values: Sequence[Value], largest: Sequence[Dim]) -> list[Dim]:
    """Clamped start indices of a slice as expressions: at least 0, and at most `largest` along each axis."""
    out: list[Dim] = []
    for v, most in zip(values, largest):
        if most == 0:
            out.append(0)
            continue
        if isinstance(v.op, tn.Full) and isinstance(most, int):
            out.append(max(0, min(int(v.op.value), most)))  # type: ignore[arg-type]
            continue
        tile = build.map([build.value(v, (), None), build.index(most)], partial(_clamped, v.type.dtype))
        build.tiles.append(tile)
        out.append(affine.tile(len(build.tiles) - 1))
    return out


def _clamped(dtype: ScalarType, x: Value, most: Value) -> Value:
    """max(0, min(x, most)) as an index."""
    wide = arith.IndexCast(cast_scalar(x, dtype, IntType(64)), index).result
    if dtype == ui64:                                      # as a signed number, one of 2**63 or more is below all
        return arith.MinUI(wide, most).result
    return arith.MaxSI(arith.MinSI(wide, most).result, arith.constant(0, index)).result


def dynamic_slice(build: KernelBuilder, op: tn.DynamicSlice, at: Index, mask: Value | None) -> Value:
    largest = [n - d for n, d in zip(op.x.type.shape, op.shape)]
    return build.value(op.x, tuple(a + i for a, i in zip(starts(build, op.starts, largest), at)), mask)


def dynamic_update_slice(build: KernelBuilder, op: tn.DynamicUpdateSlice, at: Index, mask: Value | None) -> Value:
    piece = op.update.type.shape
    largest = [n - d for n, d in zip(op.x.type.shape, piece)]
    inside: Value | None = None
    source: list[Dim] = []
    for start, i, n, d in zip(starts(build, op.starts, largest), at, op.x.type.shape, piece):
        source.append(i - start)
        if d != n:
            inside = build.both(inside, build.compare("sge", i, start))
            inside = build.both(inside, build.compare("slt", i, start + d))
    if inside is None:
        return build.value(op.update, tuple(source), mask)
    new = build.value(op.update, tuple(source), build.both(mask, inside))
    old = build.value(op.x, at, mask)                               # at its own element, also where it is replaced
    return build.map([inside, new, old], lambda c, a, b: arith.Select(c, a, b).result)
