"""Functions of angles and of the hyperbola."""

from __future__ import annotations

import math

from mlc.dialects import tensor as T
from mlc.frontend.functions.elementwise import (
    _one,
    abs,
    copysign,
    exp,
    expm1,
    isinf,
    log,
    log1p,
    maximum,
    minimum,
    reciprocal,
    sign,
    sqrt,
    where,
)
from mlc.frontend.operands import floating, together, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor


@operation()
def sin(input: Operand) -> Tensor:
    """The sine."""
    return _one(T.Sin, floating(input))


@operation()
def cos(input: Operand) -> Tensor:
    """The cosine."""
    return _one(T.Cos, floating(input))


@operation()
def sinc(input: Operand) -> Tensor:
    """sin(pi * x) / (pi * x), 1 at 0"""
    x = floating(input) * math.pi
    zero = x == 0
    return where(zero, 1.0, sin(x) / where(zero, 1.0, x))


@operation()
def tan(input: Operand) -> Tensor:
    """sin / cos"""
    x = floating(input)
    return sin(x) / cos(x)


@operation()
def sinh(input: Operand) -> Tensor:
    """(e ** x - e ** -x) / 2, exact near 0"""
    e = expm1(floating(input))
    return (e + e / (e + 1)) * 0.5


@operation()
def cosh(input: Operand) -> Tensor:
    """(e ** x + e ** -x) / 2"""
    e = exp(floating(input))
    return (e + reciprocal(e)) * 0.5


@operation()
def asinh(input: Operand) -> Tensor:
    """log(x + sqrt(x ** 2 + 1)), exact near 0"""
    x = floating(input)
    a = abs(x)
    return sign(x) * log1p(a + a * a / (1 + sqrt(a * a + 1)))


@operation()
def acosh(input: Operand) -> Tensor:
    """log(x + sqrt(x ** 2 - 1))"""
    x = floating(input)
    return log(x + sqrt(x * x - 1))


@operation()
def atanh(input: Operand) -> Tensor:
    """log((1 + x) / (1 - x)) / 2"""
    x = floating(input)
    return (log1p(x) - log1p(-x)) * 0.5


@operation()
def tanh(input: Operand) -> Tensor:
    """(e ** x - e ** -x) / (e ** x + e ** -x)"""
    return _one(T.Tanh, floating(input))


@operation()
def asin(input: Operand) -> Tensor:
    """The arc sine: atan2(x, sqrt((1 - x) (1 + x)))"""
    x = floating(input)
    return atan2(x, sqrt((1 - x) * (1 + x)))


@operation()
def acos(input: Operand) -> Tensor:
    """The arc cosine: 2 atan2(sqrt(1 - x), sqrt(1 + x))"""
    x = floating(input)
    return 2 * atan2(sqrt(1 - x), sqrt(1 + x))


@operation()
def atan(input: Operand) -> Tensor:
    """The arc tangent."""
    return _one(T.Atan, floating(input))


@operation()
def atan2(input: Operand, other: Operand) -> Tensor:
    """The angle of the point (other, input), in [-pi, pi]; zeros count by their sign"""
    y, x = together(input, other, floating=True)
    endless = isinf(y) & isinf(x)
    y, x = (tracer(where(endless, copysign(1.0, v), v)) for v in (y, x))
    steep = abs(y) > abs(x)
    right = (x == 0) & ~steep                              # both are zero
    flat = atan(y / where(steep | right, 1.0, x))
    behind = copysign(1.0, x) < 0
    flat = where(behind, flat + copysign(math.pi, y), flat)
    return where(steep, copysign(math.pi / 2, y) - atan(x / where(steep, y, 1.0)), flat)


@operation()
def hypot(input: Operand, other: Operand) -> Tensor:
    """sqrt(input ** 2 + other ** 2), without overflow on the way"""
    a, b = together(input, other, floating=True)
    a, b = tracer(abs(a)), tracer(abs(b))
    most, least = maximum(a, b), minimum(a, b)
    plain = (most == 0) | (most == math.inf)
    ratio = where(plain, 0.0, least / where(plain, 1.0, most))
    return most * sqrt(1 + ratio * ratio)


@operation()
def deg2rad(input: Operand) -> Tensor:
    """input * pi / 180"""
    return floating(input) * (math.pi / 180)


@operation()
def rad2deg(input: Operand) -> Tensor:
    """input * 180 / pi"""
    return floating(input) * (180 / math.pi)
