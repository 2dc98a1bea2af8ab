"""Reductions, prefixes, products of matrices, and orders."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mlc.backends.onnx.moving import filled
from mlc.backends.onnx.writer import WIDER, Writer, result, row
from mlc.ir.types import IntType, bf16, f16, f32, f64, i1, i32, i64, int_range, ui64

REDUCED = {"sum": "ReduceSum", "prod": "ReduceProd", "max": "ReduceMax", "min": "ReduceMin", "any": "ReduceMax",
           "all": "ReduceMin"}
COMBINED = {"mul": ("Mul", 1.0), "max": ("Max", -math.inf), "min": ("Min", math.inf)}


def reduced(w: Writer, op: str, x: str, axes: Any, keep: bool = False) -> str:
    """A reduction along axes."""
    type = w.types[x]
    shape = [1 if a in axes else d for a, d in enumerate(type.shape) if keep or a not in axes]
    return w.compute(op, [x, w.constant(list(axes), i64)], type.with_shape(shape), keepdims=int(keep))


@row(*(f"tensor.reduce_{n}" for n in REDUCED))
def reduce(w: Writer, op: Any) -> str:
    """A reduction; NaN if one element is, which the maximum of ONNX Runtime skips."""
    name, x = op.name.removeprefix("tensor.reduce_"), w.of(op.x)
    if not op.axes:
        return x
    dtype = w.types[x].dtype
    if name in ("max", "min") and dtype == ui64:
        return _unflipped(w, reduced(w, REDUCED[name], _flipped(w, x), op.axes))
    found = reduced(w, REDUCED[name], x, op.axes)
    if name in ("max", "min") and dtype.is_float:
        found = w.where(reduced(w, "ReduceMax", w.is_nan(x), op.axes), w.like(math.nan, x), found)
    return found


def _flipped(w: Writer, x: str) -> str:
    """Integers without a sign as those with one, in the same order."""
    return w.cast(w.binary("BitwiseXor", x, w.like(1 << 63, x)), i64)


def _unflipped(w: Writer, x: str) -> str:
    return w.binary("BitwiseXor", w.cast(x, ui64), w.constant(1 << 63, ui64))


@row("tensor.cumulative")
def cumulative(w: Writer, op: Any) -> str:
    """Sums of prefixes, or a loop that combines elements."""
    x, axis = w.of(op.x), op.axis
    if op.kind == "add":
        return w.compute("CumSum", [x, w.constant(axis, i64)], w.types[x], reverse=int(op.reverse))
    dtype = w.types[x].dtype
    if dtype in (f16, bf16):
        x = w.cast(x, f32)
    combine, start = COMBINED[op.kind]
    type = w.types[x]
    one = type.with_shape([d for a, d in enumerate(type.shape) if a != axis])
    first: Any = start
    if isinstance(type.dtype, IntType) and op.kind != "mul":
        first = int_range(type.dtype)[0 if op.kind == "max" else 1]
    with w.graph("prefix", [one, one]) as (body, (before, element)):
        found = w.binary(combine, before, element)
        w.finish([found, found], op)
    direction = {"scan_input_axes": [axis], "scan_output_axes": [axis], "scan_input_directions": [int(op.reverse)],
                 "scan_output_directions": [int(op.reverse)]}
    _, prefixes = w.node("Scan", [filled(w, first, one.shape, type.dtype), x], [one, type], body=body,
                         num_scan_inputs=1, **direction)
    return w.cast(prefixes, dtype)


# -- products ---------------------------------------------------------------------------------------------------------
@row("tensor.dot_general")
def dot_general(w: Writer, op: Any) -> str:
    """A product of matrices where it is one; of 16-bit floats in f32."""
    x, y, type = w.of(op.lhs), w.of(op.rhs), result(op)
    batch, lhs, rhs = len(op.batch), op.free(0), op.free(1)
    one = len(op.contract) == 1
    if one and not batch and lhs and len(rhs) <= 1 and w.types[y].rank <= 2:
        (i, j), = op.contract
        x = w.transpose(x, [*lhs, i])
        y = y if not rhs else w.transpose(y, [j, *rhs])
        return w.compute("MatMul", [x, y], type)
    if one and len(lhs) == len(rhs) == 1:
        (i, j), = op.contract
        x = w.transpose(x, [*(a for a, _ in op.batch), *lhs, i])
        y = w.transpose(y, [*(b for _, b in op.batch), j, *rhs])
        return w.compute("MatMul", [x, y], type)
    return w.compute("Einsum", [x, y], type, equation=_equation(op))


def _equation(op: Any) -> str:
    """The sum as a text: letters of the axes of the operands, and those of the result."""
    letters = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    named: list[dict[int, str]] = [{}, {}]
    for pair in (*op.batch, *op.contract):
        letter = next(letters)
        for side in (0, 1):
            named[side][pair[side]] = letter
    for side in (0, 1):
        named[side].update({a: next(letters) for a in op.free(side)})
    inputs = ["".join(named[side][a] for a in range(v.type.rank)) for side, v in enumerate(op.operands)]
    out = "".join(named[0][a] for a, _ in op.batch) + "".join(
        named[side][a] for side in (0, 1) for a in op.free(side))
    return f"{','.join(inputs)}->{out}"


# -- orders -----------------------------------------------------------------------------------------------------------
def _ordered(w: Writer, x: str) -> str:
    """Numbers in the order of elements, with NaN above infinity, of a type that has TopK and ArgMax."""
    dtype = w.types[x].dtype
    if dtype == ui64:
        return _flipped(w, x)
    if not dtype.is_float:
        return w.cast(x, i32 if dtype == i1 else WIDER.get(dtype, dtype))
    wide = w.cast(x, f64)
    largest = w.constant(np.finfo(np.float64).max, f64)
    return w.where(w.is_nan(wide), w.constant(math.inf, f64), w.binary("Min", wide, largest))


@row("tensor.argsort", kept=lambda op: True)
def argsort(w: Writer, op: Any) -> str:
    """TopK of all elements, which is stable; NaN is greater than infinity."""
    x = _ordered(w, w.of(op.x))
    type = w.types[x]
    _, found = w.node("TopK", [x, w.size(type.shape[op.axis])], [type, type.with_dtype(i64)], axis=op.axis,
                      largest=int(op.descending), sorted=1)
    return found


@row("tensor.argmax", kept=lambda op: op.x.type.shape[op.axis] != 0)
def argmax(w: Writer, op: Any) -> str:
    """The first of the largest elements, or of those that are NaN."""
    return w.op("ArgMax", [_ordered(w, w.of(op.x))], result(op), axis=op.axis, keepdims=0)
