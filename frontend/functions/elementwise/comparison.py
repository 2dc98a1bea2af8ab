"""Comparisons and tests of elements, which give bools."""

from __future__ import annotations

import math

from mlc.dialects import tensor as T
from mlc.frontend.functions.elementwise.apply import compare, unary
from mlc.frontend.operands import (
    floating,
    together,
    tracer,
)
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor


@operation()
def isnan(input: Operand) -> Tensor:
    """input != input: whether an element is not a number"""
    x = tracer(input)
    return unary(T.IsNan, x) if x.type.dtype.is_float else x != x


@operation()
def isinf(input: Operand) -> Tensor:
    """|input| == inf"""
    x = tracer(input)
    return abs(x) == math.inf if x.type.dtype.is_float else x != x


@operation()
def isfinite(input: Operand) -> Tensor:
    """|input| < inf: neither infinite nor NaN"""
    x = tracer(input)
    return abs(x) < math.inf if x.type.dtype.is_float else x == x


@operation()
def isposinf(input: Operand) -> Tensor:
    """input == inf"""
    return tracer(input) == math.inf


@operation()
def isneginf(input: Operand) -> Tensor:
    """input == -inf"""
    return tracer(input) == -math.inf


@operation()
def eq(input: Operand, other: Operand) -> Tensor:
    """input == other"""
    return compare("eq", input, other)


@operation()
def ne(input: Operand, other: Operand) -> Tensor:
    """input != other"""
    return compare("ne", input, other)


@operation()
def lt(input: Operand, other: Operand) -> Tensor:
    """input < other"""
    return compare("lt", input, other)


@operation()
def le(input: Operand, other: Operand) -> Tensor:
    """input <= other"""
    return compare("le", input, other)


@operation()
def gt(input: Operand, other: Operand) -> Tensor:
    """input > other"""
    return compare("gt", input, other)


@operation()
def ge(input: Operand, other: Operand) -> Tensor:
    """input >= other"""
    return compare("ge", input, other)


@operation()
def isclose(input: Operand, other: Operand, rtol: float = 1e-5, atol: float = 1e-8,
            equal_nan: bool = False) -> Tensor:
    """|input - other| <= atol + rtol * |other|, or equal"""
    a, b = together(input, other)
    x, y = floating(a), floating(b)
    near = isfinite(y) & (abs(x - y) <= atol + rtol * abs(y))
    out = (a == b) | near
    return out | (isnan(a) & isnan(b)) if equal_nan else out
