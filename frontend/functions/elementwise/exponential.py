"""Exponentials, logarithms, powers and the error function."""

from __future__ import annotations

import math

from mlc.dialects import tensor as T
from mlc.frontend.functions.elementwise.apply import binary, numeric, unary
from mlc.frontend.functions.elementwise.arithmetic import mul, reciprocal, square
from mlc.frontend.functions.elementwise.selection import clamp, maximum, where
from mlc.frontend.functions.elementwise.sign import abs
from mlc.frontend.operands import (
    cast,
    floating,
    rounded_once,
    together,
    tracer,
)
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import Tracer
from mlc.ir.diag import UserTypeError
from mlc.ir.types import f32, f64, i64


@operation()
def exp(input: Operand) -> Tensor:
    """e ** input"""
    return unary(T.Exp, floating(input))


@operation()
def exp2(input: Operand) -> Tensor:
    """2 ** input"""
    return unary(T.Exp2, floating(input))


@operation()
def expm1(input: Operand) -> Tensor:
    """e ** input - 1, exact near 0"""
    return unary(T.Expm1, floating(input))


@operation()
def log(input: Operand) -> Tensor:
    """The natural logarithm: e ** log(x) = x; NaN below 0."""
    return unary(T.Log, floating(input))


@operation()
def log2(input: Operand) -> Tensor:
    """The logarithm to base 2: 2 ** log2(x) = x; NaN below 0."""
    return unary(T.Log2, floating(input))


@operation()
def log10(input: Operand) -> Tensor:
    """The logarithm to base 10: 10 ** log10(x) = x; NaN below 0."""
    return unary(T.Log10, floating(input))


@operation()
def log1p(input: Operand) -> Tensor:
    """log(1 + input), exact near 0"""
    return unary(T.Log1p, floating(input))


@operation()
def sqrt(input: Operand) -> Tensor:
    """input ** 0.5; NaN below 0"""
    return unary(T.Sqrt, floating(input))


@operation()
def rsqrt(input: Operand) -> Tensor:
    """1 / sqrt(input)"""
    return unary(T.Rsqrt, floating(input))


@operation()
def sigmoid(input: Operand) -> Tensor:
    """1 / (1 + e ** -input)"""
    return unary(T.Sigmoid, floating(input))


@operation()
def logit(input: Operand, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), where x is the input, with eps between eps and 1 - eps"""
    x = floating(input if eps is None else clamp(floating(input), eps, 1 - eps))
    return rounded_once(lambda x: log(x) - log1p(-x), x)


@operation()
def erf(input: Operand) -> Tensor:
    """The error function: 2 / sqrt(pi) * the integral of e ** -t**2 for t from 0 to input"""
    return unary(T.Erf, floating(input))


@operation()
def erfc(input: Operand) -> Tensor:
    """1 - erf(input), with its digits also where that is small"""
    return unary(T.Erfc, floating(input))


@operation(literal=("exponent", "input"))
def pow(input: Operand, exponent: Operand) -> Tensor:
    """input ** exponent; products where the exponent is a small whole number"""
    small = {0.5: sqrt, 1: None, 2: square, -1: reciprocal}
    if isinstance(exponent, int | float) and not isinstance(exponent, bool) and not isinstance(input, int | float):
        base = tracer(input)
        input = cast(base, i64) if base.type.dtype.is_bool and isinstance(exponent, int) else base
    if isinstance(exponent, int | float) and not isinstance(exponent, bool) and exponent in small:
        x = tracer(input)
        if not x.type.dtype.is_float and isinstance(exponent, float):
            x = floating(x)
        if x.type.dtype.is_float or exponent in (1, 2):
            f = small[exponent]
            return x if f is None else f(x)
    if isinstance(exponent, int) and not isinstance(exponent, bool) and exponent == 3:
        x = tracer(input)
        return x * x * x
    a, b = together(input, exponent)
    numeric(a, "pow")
    if isinstance(exponent, int) and exponent < 0 and not a.type.dtype.is_float:
        raise UserTypeError(f"an integer to the power {exponent} is no integer", code="MLC0361",
                            hint="use a float: x ** float(n)")
    return binary(T.Pow, a, b)


@operation()
def logaddexp(input: Operand, other: Operand) -> Tensor:
    """log(e ** input + e ** other)"""
    return rounded_once(lambda a, b: maximum(a, b) + log1p(exp(_minus_distance(a, b))),
                        *together(input, other, floating=True))


@operation()
def logaddexp2(input: Operand, other: Operand) -> Tensor:
    """log2(2 ** input + 2 ** other)"""
    return rounded_once(lambda a, b: maximum(a, b) + log1p(exp2(_minus_distance(a, b))) / math.log(2),
                        *together(input, other, floating=True))


def _minus_distance(a: Tracer, b: Tracer) -> Tensor:
    """-|a - b|, 0 also where both are the same infinity"""
    return where(a == b, 0.0, -abs(a - b))


@operation()
def float_power(input: Operand, exponent: Operand) -> Tensor:
    """input ** exponent in float64"""
    return pow(cast(tracer(input), f64), cast(tracer(exponent), f64))


@operation()
def xlogy(input: Operand, other: Operand) -> Tensor:
    """input * log(other), 0 where input is 0"""
    a, b = together(input, other, floating=True)
    zero = (a == 0) & ((b <= 0) | (b == math.inf))
    return where(zero, 0.0, a * log(where(zero, 1.0, b)))


@operation()
def ldexp(input: Operand, other: Operand) -> Tensor:
    """input * 2 ** other, for an integer `other` also where 2 ** other alone is 0 or infinite"""
    e = tracer(other)
    if e.type.dtype.is_float:
        return rounded_once(lambda x, e: mul(x, exp2(e)), *together(input, e))
    x = floating(input)
    power = cast(e, f64 if x.type.dtype == f64 else f32)   # narrower types do not hold every exponent
    return rounded_once(lambda x: _in_steps(x, power), x)


def _in_steps(x: Tracer, e: Tracer) -> Tensor:
    """x * 2 ** e, by three factors that are no infinities. The last one is the farthest from 1: it alone rounds."""
    down, up = (-969, 1023) if e.type.dtype == f64 else (-102, 127)
    e = tracer(clamp(e, 3 * down, 3 * up))                 # beyond, the product is 0 or infinite anyway
    for n in (2, 1):
        rest = tracer(clamp(e, n * down, n * up))
        x, e = tracer(mul(x, exp2(e - rest))), rest
    return mul(x, exp2(e))
