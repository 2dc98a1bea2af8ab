"""Selection of elements: by a condition, by size, between limits."""

from __future__ import annotations

import math
import sys

from mlc.dialects import tensor as T
from mlc.frontend.functions.elementwise.apply import binary, compare
from mlc.frontend.functions.elementwise.bits import logical_or
from mlc.frontend.functions.elementwise.comparison import isnan
from mlc.frontend.operands import (
    cast,
    full,
    kind,
    together,
    tracer,
)
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import Tracer, emit
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.types import ScalarType, bf16, f16, f32, f64

LARGEST: dict[ScalarType, float] = {
    f16: 65504.0, bf16: (2 - 2.0**-7) * 2.0**127, f32: (2 - 2.0**-23) * 2.0**127, f64: sys.float_info.max,
}
"""The greatest finite number of each float type."""


@operation()
def nan_to_num(input: Operand, nan: Operand = 0.0, posinf: Operand = None, neginf: Operand = None) -> Tensor:
    """input with NaN and the infinities replaced; these by the greatest and smallest finite numbers by default."""
    x = tracer(input)
    if not x.type.dtype.is_float:
        return x
    largest = LARGEST[x.type.dtype]
    out = where(isnan(x), nan, x)
    out = where(x == math.inf, largest if posinf is None else posinf, out)
    return where(x == -math.inf, -largest if neginf is None else neginf, out)


@operation()
def maximum(input: Operand, other: Operand) -> Tensor:
    """The greater of two, max(input, other); NaN if either is."""
    return binary(T.Maximum, input, other)


@operation()
def minimum(input: Operand, other: Operand) -> Tensor:
    """The smaller of two, min(input, other); NaN if either is."""
    return binary(T.Minimum, input, other)


@operation()
def fmax(input: Operand, other: Operand) -> Tensor:
    """The greater of two; NaN only if both are."""
    return _greater(input, other, "ge")


@operation()
def fmin(input: Operand, other: Operand) -> Tensor:
    """The smaller of two; NaN only if both are."""
    return _greater(input, other, "le")


def _greater(input: Operand, other: Operand, wins: str) -> Tensor:
    """`input` where `input wins other` or `other` is NaN, else `other`; the derivative is that of what is taken."""
    a, b = together(input, other)
    taken = compare(wins, a, b)
    return where(logical_or(taken, isnan(b)) if b.type.dtype.is_float else taken, a, b)


@operation()
def where(condition: Operand, input: Operand, other: Operand) -> Tensor:
    """input where the condition holds, other elsewhere"""
    a, b = together(input, other)
    c = tracer(condition)
    if not c.type.dtype.is_bool:
        raise UserTypeError(f"the condition is of {c.dtype}, expected mlc.bool", code="MLC0362",
                            hint="compare it: condition != 0")
    return emit(T.Select, c, a, b, weak=a.weak)  # type: ignore[no-any-return]


@operation(stored={"value": "input"})
def masked_fill(input: Operand, mask: Operand, value: Operand) -> Tensor:
    """value where the mask holds, input elsewhere; in the element type of input"""
    x, v = tracer(input), tracer(value)
    if kind(v.type.dtype) > kind(x.type.dtype):
        raise UserTypeError(f"a tensor of {x.dtype} cannot be filled with {v.dtype}", code="MLC0352")
    return where(mask, cast(v, x.type.dtype), x)


@operation(stored={"min": "input", "max": "input"})
def clamp(input: Operand, min: Operand = None, max: Operand = None) -> Tensor:
    """min(max(input, min), max); NaN stays"""
    if min is None and max is None:
        raise UserError("needs min, max or both", code="MLC0353")
    out = together(input, *(limit for limit in (min, max) if limit is not None))[0]
    if min is not None:
        out = _limited(out, min, "lt")
    return out if max is None else _limited(out, max, "gt")


def _limited(x: Tracer, limit: Operand, loses: str) -> Tracer:
    """`limit` where `x loses limit` or it is NaN, else x, which has the whole derivative also where they are equal."""
    a, b = together(x, limit)
    outside = compare(loses, a, b)
    if isinstance(limit, Tensor) and b.type.dtype.is_float:
        outside = logical_or(outside, isnan(b))
    return tracer(where(outside, b, a))


@operation(stored={"min": "input"})
def clamp_min(input: Operand, min: Operand) -> Tensor:
    """max(input, min); NaN stays"""
    return clamp(input, min)


@operation(stored={"max": "input"})
def clamp_max(input: Operand, max: Operand) -> Tensor:
    """min(input, max); NaN stays"""
    return clamp(input, None, max)


def ones_where(condition: Tensor, like: Tracer) -> Tensor:
    """1 where the condition holds and 0 elsewhere, in the element type of `like`"""
    return where(condition, full(1, like), full(0, like))
