"""Functions of angles and of the hyperbola."""

from __future__ import annotations

import math

from mlc.dialects import tensor as T
from mlc.frontend.functions.elementwise.apply import binary, unary
from mlc.frontend.functions.elementwise.selection import where
from mlc.frontend.functions.elementwise.sign import abs
from mlc.frontend.operands import cast, floating, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.types import bf16, f16, f32


@operation()
def sin(input: Operand) -> Tensor:
    """The sine."""
    return unary(T.Sin, floating(input))


@operation()
def cos(input: Operand) -> Tensor:
    """The cosine."""
    return unary(T.Cos, floating(input))


@operation()
def sinc(input: Operand) -> Tensor:
    """sin(pi * x) / (pi * x), 1 at 0"""
    given = floating(input)
    narrow = given.type.dtype in (f16, bf16)               # in which pi * x overflows, and is far from a multiple of pi
    x = (cast(given, f32) if narrow else given) * math.pi
    near = abs(x) < 0.05                                   # the derivative of sin(x) / x is a difference there
    z = where(near, x, 0.0) ** 2
    series = 1 + z * (-1 / 6 + z * (1 / 120 + z * (-1 / 5040 + z / 362880)))
    return cast(tracer(where(near, series, sin(x) / where(near, 1.0, x))), given.type.dtype)


@operation()
def tan(input: Operand) -> Tensor:
    """The tangent, sin / cos."""
    return unary(T.Tan, floating(input))


@operation()
def sinh(input: Operand) -> Tensor:
    """The hyperbolic sine, (e ** x - e ** -x) / 2."""
    return unary(T.Sinh, floating(input))


@operation()
def cosh(input: Operand) -> Tensor:
    """The hyperbolic cosine, (e ** x + e ** -x) / 2."""
    return unary(T.Cosh, floating(input))


@operation()
def asinh(input: Operand) -> Tensor:
    """The inverse of sinh: log(x + sqrt(x ** 2 + 1))."""
    return unary(T.Asinh, floating(input))


@operation()
def acosh(input: Operand) -> Tensor:
    """The inverse of cosh from 0 on: log(x + sqrt(x ** 2 - 1)); NaN below 1."""
    return unary(T.Acosh, floating(input))


@operation()
def atanh(input: Operand) -> Tensor:
    """The inverse of tanh: log((1 + x) / (1 - x)) / 2; NaN where |x| > 1."""
    return unary(T.Atanh, floating(input))


@operation()
def tanh(input: Operand) -> Tensor:
    """(e ** x - e ** -x) / (e ** x + e ** -x)"""
    return unary(T.Tanh, floating(input))


@operation()
def asin(input: Operand) -> Tensor:
    """The arc sine, in [-pi/2, pi/2]; NaN where |x| > 1."""
    return unary(T.Asin, floating(input))


@operation()
def acos(input: Operand) -> Tensor:
    """The arc cosine, in [0, pi]; NaN where |x| > 1."""
    return unary(T.Acos, floating(input))


@operation()
def atan(input: Operand) -> Tensor:
    """The arc tangent."""
    return unary(T.Atan, floating(input))


@operation()
def atan2(input: Operand, other: Operand) -> Tensor:
    """The angle of the point (other, input), in [-pi, pi]; zeros count by their sign."""
    return binary(T.Atan2, input, other, floating=True)


@operation()
def hypot(input: Operand, other: Operand) -> Tensor:
    """sqrt(input ** 2 + other ** 2), without overflow on the way; inf if either is infinite."""
    return binary(T.Hypot, input, other, floating=True)


@operation()
def deg2rad(input: Operand) -> Tensor:
    """input * pi / 180"""
    return floating(input) * (math.pi / 180)


@operation()
def rad2deg(input: Operand) -> Tensor:
    """input * 180 / pi"""
    return floating(input) * (180 / math.pi)
