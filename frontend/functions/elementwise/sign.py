"""Absolute values and signs."""

from __future__ import annotations

from mlc.dialects import tensor as T
from mlc.frontend.functions.elementwise.apply import unary
from mlc.frontend.functions.elementwise.arithmetic import reciprocal
from mlc.frontend.functions.elementwise.selection import where
from mlc.frontend.operands import (
    cast,
    signed,
    together,
    tracer,
)
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor


@operation()
def abs(input: Operand) -> Tensor:
    """|input|"""
    x = tracer(input)
    return unary(T.Abs, x) if signed(x) and not x.type.dtype.is_bool else x


@operation()
def sign(input: Operand) -> Tensor:
    """-1, 0 or 1"""
    x = tracer(input)
    return x if x.type.dtype.is_bool else unary(T.Sign, x)


@operation()
def signbit(input: Operand) -> Tensor:
    """Whether an element is negative; -0.0 is"""
    x = tracer(input)
    return (x < 0) | ((x == 0) & (reciprocal(x) < 0)) if x.type.dtype.is_float else x < 0


@operation()
def copysign(input: Operand, other: Operand) -> Tensor:
    """|input| with the sign of other; a zero counts by its sign"""
    a, b = together(input, other, floating=True)
    negative = (b < 0) | ((b == 0) & (reciprocal(b) < 0))
    return where(negative, -abs(a), abs(a))


@operation()
def heaviside(input: Operand, values: Operand) -> Tensor:
    """0 below zero, 1 above it, `values` at it"""
    a, b = together(input, values)
    return where(a == 0, b, cast(tracer(a > 0), a.type.dtype))
