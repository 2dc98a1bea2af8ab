"""Functions of one element at a time: arithmetic, comparison, logic, selection."""

from __future__ import annotations

import builtins
import math
import sys
from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.dtypes import as_ir
from mlc.frontend.operands import (
    boolean,
    cast,
    floating,
    full,
    kind,
    number,
    plain_int,
    rounded_once,
    signed,
    together,
    tracer,
)
from mlc.frontend.operation import operation
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.frontend.trace import Tracer, emit
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.types import ScalarType, bf16, f16, f32, f64, i64

LARGEST: dict[ScalarType, float] = {
    f16: 65504.0, bf16: (2 - 2.0**-7) * 2.0**127, f32: (2 - 2.0**-23) * 2.0**127, f64: sys.float_info.max,
}
"""The greatest finite number of each float type."""


def _one(cls: Any, x: Tracer) -> Tensor:
    return emit(cls, x, weak=x.weak)  # type: ignore[no-any-return]


def _two(cls: Any, a: Operand, b: Operand, floating: bool = False) -> Tensor:
    a, b = together(a, b, floating=floating)
    return emit(cls, a, b, weak=a.weak)  # type: ignore[no-any-return]


def _numeric(x: Operand, name: str) -> Tracer:
    out = tracer(x)
    if out.type.dtype.is_bool:
        raise UserTypeError(f"{name} is not defined on bool", code="MLC0359", hint="cast it first: x.to(mlc.int64)")
    return out


# -- one operand ------------------------------------------------------------------------------------------------------
@operation(name="cast")
def cast_to(input: Operand, dtype: DTypeLike) -> Tensor:
    """input in another element type; floats are cut toward zero on the way to integers."""
    return cast(tracer(input), as_ir(dtype))


@operation()
def positive(input: Operand) -> Tensor:
    """input"""
    return _numeric(input, "positive")


@operation()
def neg(input: Operand) -> Tensor:
    """-input"""
    return _one(T.Neg, _numeric(input, "neg"))


@operation()
def abs(input: Operand) -> Tensor:
    """|input|"""
    x = tracer(input)
    return _one(T.Abs, x) if signed(x) and not x.type.dtype.is_bool else x


@operation()
def sign(input: Operand) -> Tensor:
    """-1, 0 or 1"""
    x = tracer(input)
    return x if x.type.dtype.is_bool else _one(T.Sign, x)


@operation()
def exp(input: Operand) -> Tensor:
    """e ** input"""
    return _one(T.Exp, floating(input))


@operation()
def exp2(input: Operand) -> Tensor:
    """2 ** input"""
    return _one(T.Exp2, floating(input))


@operation()
def expm1(input: Operand) -> Tensor:
    """e ** input - 1, exact near 0"""
    return _one(T.Expm1, floating(input))


@operation()
def log(input: Operand) -> Tensor:
    """The natural logarithm: e ** log(x) = x; NaN below 0."""
    return _one(T.Log, floating(input))


@operation()
def log2(input: Operand) -> Tensor:
    """The logarithm to base 2: 2 ** log2(x) = x; NaN below 0."""
    return _one(T.Log2, floating(input))


@operation()
def log10(input: Operand) -> Tensor:
    """The logarithm to base 10: 10 ** log10(x) = x; NaN below 0."""
    return _one(T.Log10, floating(input))


@operation()
def log1p(input: Operand) -> Tensor:
    """log(1 + input), exact near 0"""
    return _one(T.Log1p, floating(input))


@operation()
def sqrt(input: Operand) -> Tensor:
    """input ** 0.5; NaN below 0"""
    return _one(T.Sqrt, floating(input))


@operation()
def rsqrt(input: Operand) -> Tensor:
    """1 / sqrt(input)"""
    return _one(T.Rsqrt, floating(input))


@operation()
def square(input: Operand) -> Tensor:
    """input * input; bools become int64"""
    x = tracer(input)
    x = cast(x, i64) if x.type.dtype.is_bool else x
    return mul(x, x)


@operation()
def reciprocal(input: Operand) -> Tensor:
    """1 / input"""
    return _one(T.Reciprocal, floating(input))


@operation()
def sigmoid(input: Operand) -> Tensor:
    """1 / (1 + e ** -input)"""
    return _one(T.Sigmoid, floating(input))


@operation()
def logit(input: Operand, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), where x is the input, with eps between eps and 1 - eps"""
    x = floating(input if eps is None else clamp(floating(input), eps, 1 - eps))
    return rounded_once(lambda x: log(x) - log1p(-x), x)


@operation()
def erf(input: Operand) -> Tensor:
    """The error function: 2 / sqrt(pi) * the integral of e ** -t**2 for t from 0 to input"""
    return _one(T.Erf, floating(input))


@operation()
def erfc(input: Operand) -> Tensor:
    """1 - erf(input), with its digits also where that is small"""
    return _one(T.Erfc, floating(input))


def _rounding(cls: Any, input: Operand) -> Tensor:
    x = tracer(input)
    return _one(cls, x) if x.type.dtype.is_float else x


@operation()
def floor(input: Operand) -> Tensor:
    """The greatest integer that is not above."""
    return _rounding(T.Floor, input)


@operation()
def ceil(input: Operand) -> Tensor:
    """The smallest integer that is not below."""
    return _rounding(T.Ceil, input)


@operation()
def round(input: Operand, *, decimals: int = 0) -> Tensor:
    """The nearest integer, or number with so many decimals; halves go to the even one."""
    places = plain_int(decimals, "decimals")
    if not places:
        return _rounding(T.Round, input)
    x = tracer(input)
    if not x.type.dtype.is_float:
        raise UserTypeError(f"decimals = {places} need floats, found {x.dtype}", code="MLC0359")
    scale = 10.0 ** builtins.abs(places)
    return round(x * scale) / scale if places > 0 else round(x / scale) * scale


@operation()
def trunc(input: Operand) -> Tensor:
    """The integer toward zero."""
    x = tracer(input)
    return where(x < 0, ceil(x), floor(x)) if x.type.dtype.is_float else x


@operation()
def frac(input: Operand) -> Tensor:
    """input - trunc(input)"""
    x = floating(input)
    return x - trunc(x)


@operation()
def isnan(input: Operand) -> Tensor:
    """input != input: whether an element is not a number"""
    x = tracer(input)
    return _one(T.IsNan, x) if x.type.dtype.is_float else x != x


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
def signbit(input: Operand) -> Tensor:
    """Whether an element is negative; -0.0 is"""
    x = tracer(input)
    return (x < 0) | ((x == 0) & (reciprocal(x) < 0)) if x.type.dtype.is_float else x < 0


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
def detach(input: Operand) -> Tensor:
    """input, through which no derivative passes"""
    return _one(T.StopGradient, tracer(input))


# -- two operands -----------------------------------------------------------------------------------------------------
def _weighted(input: Operand, other: Operand, alpha: Operand) -> list[Tracer]:
    """input and alpha * other; the product is of the type of both, in which it may fit where it does not in other's."""
    a, b = together(input, other)
    if isinstance(alpha, int):
        return [a, b if alpha == 1 else cast(tracer(mul(b, alpha)), a.type.dtype)]
    return together(a, mul(b, alpha))


@operation(literal=("alpha",))
def add(input: Operand, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """input + alpha * other"""
    a, b = _weighted(input, other, alpha)
    return logical_or(a, b) if a.type.dtype.is_bool else _two(T.Add, a, b)


@operation(literal=("alpha",))
def sub(input: Operand, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """input - alpha * other"""
    a, b = _weighted(input, other, alpha)
    _numeric(a, "sub")
    return _two(T.Sub, a, b)


@operation()
def mul(input: Operand, other: Operand) -> Tensor:
    """input * other"""
    a, b = together(input, other)
    return logical_and(a, b) if a.type.dtype.is_bool else _two(T.Mul, a, b)


@operation()
def div(input: Operand, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """input / other; rounding_mode "floor" or "trunc" makes it an integer"""
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode is None:
        return _two(T.Div, input, other, floating=True)
    if rounding_mode != "trunc":
        raise UserError(f"rounding_mode = {rounding_mode!r}", code="MLC0360", hint='use None, "floor" or "trunc"')
    a, b = together(input, other)
    if a.type.dtype.is_float:
        return trunc(_two(T.Div, a, b))
    quotient = floor_divide(a, b)
    inexact = logical_and(quotient < 0, quotient * b != a) if signed(a) else None
    return quotient if inexact is None else quotient + cast(tracer(inexact), a.type.dtype)


@operation()
def floor_divide(input: Operand, other: Operand) -> Tensor:
    """floor(input / other)"""
    a, b = together(input, other)
    _numeric(a, "floor_divide")
    return _two(T.FloorDiv, a, b)


@operation()
def remainder(input: Operand, other: Operand) -> Tensor:
    """input - other * floor(input / other), with the sign of other"""
    a, b = together(input, other)
    _numeric(a, "remainder")
    return _two(T.Rem, a, b)


@operation()
def fmod(input: Operand, other: Operand) -> Tensor:
    """input - other * trunc(input / other), with the sign of input"""
    a, b = together(input, other)
    _numeric(a, "fmod")
    return _two(T.Fmod, a, b)


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
    _numeric(a, "pow")
    if isinstance(exponent, int) and exponent < 0 and not a.type.dtype.is_float:
        raise UserTypeError(f"an integer to the power {exponent} is no integer", code="MLC0361",
                            hint="use a float: x ** float(n)")
    return _two(T.Pow, a, b)


@operation()
def maximum(input: Operand, other: Operand) -> Tensor:
    """The greater of two, max(input, other); NaN if either is."""
    return _two(T.Maximum, input, other)


@operation()
def minimum(input: Operand, other: Operand) -> Tensor:
    """The smaller of two, min(input, other); NaN if either is."""
    return _two(T.Minimum, input, other)


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
    taken = _compare(wins, a, b)
    return where(logical_or(taken, isnan(b)) if b.type.dtype.is_float else taken, a, b)


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


# -- bits and truth ---------------------------------------------------------------------------------------------------
def _bits(cls: Any, a: Operand, b: Operand, name: str) -> Tensor:
    a, b = together(a, b)
    if a.type.dtype.is_float:
        raise UserTypeError(f"{name} is not defined on {a.dtype}", code="MLC0359")
    return _two(cls, a, b)


@operation()
def bitwise_and(input: Operand, other: Operand) -> Tensor:
    """input & other"""
    return _bits(T.And, input, other, "bitwise_and")


@operation()
def bitwise_or(input: Operand, other: Operand) -> Tensor:
    """input | other"""
    return _bits(T.Or, input, other, "bitwise_or")


@operation()
def bitwise_xor(input: Operand, other: Operand) -> Tensor:
    """input ^ other"""
    return _bits(T.Xor, input, other, "bitwise_xor")


@operation()
def bitwise_not(input: Operand) -> Tensor:
    """~input"""
    x = tracer(input)
    if x.type.dtype.is_bool:
        return _one(T.LogicalNot, x)
    return _bits(T.Xor, x, number(-1, x.type.dtype), "bitwise_not")


@operation()
def bitwise_left_shift(input: Operand, other: Operand) -> Tensor:
    """input << other"""
    return _bits(T.Shl, input, other, "bitwise_left_shift")


@operation()
def bitwise_right_shift(input: Operand, other: Operand) -> Tensor:
    """input >> other, keeping the sign"""
    return _bits(T.Shr, input, other, "bitwise_right_shift")


@operation()
def logical_not(input: Operand) -> Tensor:
    """input == 0"""
    return _one(T.LogicalNot, boolean(input))


@operation()
def logical_and(input: Operand, other: Operand) -> Tensor:
    """input != 0 and other != 0"""
    return _two(T.And, boolean(input), boolean(other))


@operation()
def logical_or(input: Operand, other: Operand) -> Tensor:
    """input != 0 or other != 0"""
    return _two(T.Or, boolean(input), boolean(other))


@operation()
def logical_xor(input: Operand, other: Operand) -> Tensor:
    """(input != 0) != (other != 0)"""
    return _two(T.Xor, boolean(input), boolean(other))


def _compare(predicate: str, a: Operand, b: Operand) -> Tensor:
    a, b = together(a, b)
    return emit(T.Compare, predicate, a, b)  # type: ignore[no-any-return]


@operation()
def eq(input: Operand, other: Operand) -> Tensor:
    """input == other"""
    return _compare("eq", input, other)


@operation()
def ne(input: Operand, other: Operand) -> Tensor:
    """input != other"""
    return _compare("ne", input, other)


@operation()
def lt(input: Operand, other: Operand) -> Tensor:
    """input < other"""
    return _compare("lt", input, other)


@operation()
def le(input: Operand, other: Operand) -> Tensor:
    """input <= other"""
    return _compare("le", input, other)


@operation()
def gt(input: Operand, other: Operand) -> Tensor:
    """input > other"""
    return _compare("gt", input, other)


@operation()
def ge(input: Operand, other: Operand) -> Tensor:
    """input >= other"""
    return _compare("ge", input, other)


@operation()
def isclose(input: Operand, other: Operand, rtol: float = 1e-5, atol: float = 1e-8,
            equal_nan: bool = False) -> Tensor:
    """|input - other| <= atol + rtol * |other|, or equal"""
    a, b = together(input, other)
    x, y = floating(a), floating(b)
    near = isfinite(y) & (abs(x - y) <= atol + rtol * abs(y))
    out = (a == b) | near
    return out | (isnan(a) & isnan(b)) if equal_nan else out


# -- selection and mixtures -------------------------------------------------------------------------------------------
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
    outside = _compare(loses, a, b)
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


@operation()
def lerp(input: Operand, end: Operand, weight: Operand) -> Tensor:
    """input + weight * (end - input)"""
    return rounded_once(
        lambda a, b, t: where(abs(t) < 0.5, a + t * (b - a), b - (1 - t) * (b - a)),    # exact at both ends
        *together(input, end, weight, floating=True))


@operation()
def addcmul(input: Operand, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
    """input + value * tensor1 * tensor2"""
    return rounded_once(lambda x, a, b: add(x, mul(mul(a, b), value)), *together(input, tensor1, tensor2))


@operation()
def addcdiv(input: Operand, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
    """input + value * tensor1 / tensor2"""
    return rounded_once(lambda x, a, b: add(x, mul(div(a, b), value)),
                        *together(input, tensor1, tensor2, floating=True))


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


def ones_where(condition: Tensor, like: Tracer) -> Tensor:
    """1 where the condition holds and 0 elsewhere, in the element type of `like`"""
    return where(condition, full(1, like), full(0, like))


def count(n: Any, like: Tracer) -> Tracer:
    """A number of elements, in the element type of `like`."""
    if isinstance(n, int):
        return number(n, like.type.dtype)
    return cast(emit(T.Size, n, i64), like.type.dtype)
