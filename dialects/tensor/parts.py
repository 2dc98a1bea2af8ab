"""tensor, parts: complex arithmetic on real and imaginary parts, with real operations.

The functions are the rules (`on_parts`) by which decompose_complex computes operations of complex tensors. Quotients,
absolute values and square roots do not overflow or underflow where their results do not. Functions that lose digits in
some region, as inverse ones do near their branch points, compute in f64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mlc.dialects import tensor
from mlc.dialects.tensor.base import again, cast, compare, full, select
from mlc.ir.core import Op, Value
from mlc.ir.types import f64


class Parts(NamedTuple):
    """The real and the imaginary part of a complex tensor."""

    real: Value
    imag: Value


Rule = Callable[..., Any]


def elementwise(f: Callable[..., Any]) -> Rule:
    """The rule of an elementwise operation that is the function `f` of parts."""
    def rule(op: Op, *operands: Any) -> Any:
        return f(*operands)
    return rule


def wide(f: Callable[..., Parts]) -> Callable[..., Parts]:
    """The function computed in f64, and rounded to the type of its operands."""
    def widened(*operands: Parts) -> Parts:
        dtype = operands[0].real.type.dtype
        out = f(*(Parts(*(cast(v, f64) for v in x)) for x in operands))
        return Parts(*(cast(v, dtype) for v in out))
    return widened


def each_part(op: Op, *operands: Any) -> Parts:
    """The rule of an operation that is linear over the reals: it is applied to both parts alike."""
    return Parts(*(again(op, [x[i] if isinstance(x, Parts) else x for x in operands]) for i in range(2)))


def decomposed(op: Op, *operands: Any) -> Any:
    """The rule of a composite whose decomposition is valid for complex numbers, too: decompose_complex applies it."""
    raise NotImplementedError("the pass builds the decomposition itself, as it consists of several operations")


def bilinear(op: Op, x: Parts, y: Parts) -> Parts:
    """The rule of a product: (a + bi)(c + di) = ac - bd + (ad + bc)i"""
    (a, b), (c, d) = x, y
    return Parts(again(op, [a, c]) - again(op, [b, d]), again(op, [a, d]) + again(op, [b, c]))


def _made(cls: Any, *operands: Value) -> Value:
    return cls(*operands).result  # type: ignore[no-any-return]


# -- arithmetic -------------------------------------------------------------------------------------------------------
def number(value: complex, like: Value) -> Parts:
    """A constant of the element type of `like`."""
    return Parts(full(value.real, like), full(value.imag, like))


def conj(x: Parts) -> Parts:
    return Parts(x.real, -x.imag)


def neg(x: Parts) -> Parts:
    return Parts(-x.real, -x.imag)


def add(x: Parts, y: Parts) -> Parts:
    return Parts(x.real + y.real, x.imag + y.imag)


def sub(x: Parts, y: Parts) -> Parts:
    return Parts(x.real - y.real, x.imag - y.imag)


def mul(x: Parts, y: Parts) -> Parts:
    (a, b), (c, d) = x, y
    return Parts(a * c - b * d, a * d + b * c)


def scaled(x: Parts, factor: Any) -> Parts:
    """The product with a real number."""
    return Parts(x.real * factor, x.imag * factor)


def times_i(x: Parts) -> Parts:
    return Parts(-x.imag, x.real)


def over_i(x: Parts) -> Parts:
    return Parts(x.imag, -x.real)


def absolute(x: Parts) -> Value:
    return _made(tensor.Hypot, x.real, x.imag)


def reciprocal(x: Parts) -> Parts:
    """1 / x = conj(x) / |x|^2, with x scaled such that its larger part is 1 in magnitude"""
    (c, d), scale = _scaled(x)
    norm = c * c + d * d
    return Parts(c / norm / scale, -d / norm / scale)


def div(x: Parts, y: Parts) -> Parts:
    """x / y = x conj(y) / |y|^2, with y scaled such that its larger part is 1 in magnitude; by 0, each part over 0"""
    (a, b), ((c, d), scale) = x, _scaled(y)
    norm = c * c + d * d
    zero = compare("eq", norm, full(0, norm))
    return Parts(select(zero, a, a * c + b * d) / norm / scale, select(zero, b, b * c - a * d) / norm / scale)


def _scaled(x: Parts) -> tuple[Parts, Value]:
    """x over its larger part in magnitude, or over 1 if that is 0; and that, a constant to derivatives, since it
    cancels. Of infinite parts the signs stay, and finite ones beside them vanish."""
    largest = _made(tensor.Maximum, *(_made(tensor.Abs, v) for v in x))
    scale = _made(tensor.StopGradient, select(_is(largest, 0.0), full(1, largest), largest))
    infinite = _is(scale, math.inf)

    def part(v: Value) -> Value:
        limit = select(_is_infinite(v), _made(tensor.Sign, v), full(0, v))
        return select(infinite, limit, v / select(infinite, full(1, v), scale))

    return Parts(part(x.real), part(x.imag)), scale


def is_negative(x: Value) -> Value:
    """Whether the sign of x is set, also of -0."""
    zero = full(0, x)
    below_zero = compare("lt", full(1, x) / x, zero)
    return _made(tensor.Or, compare("lt", x, zero), _made(tensor.And, compare("eq", x, zero), below_zero))


# Where a part is infinite or NaN, functions have the values of C's standard (annex G), as in PyTorch and numpy.
def _both(a: Value, b: Value) -> Value:
    return _made(tensor.And, a, b)


def _either(a: Value, b: Value) -> Value:
    return _made(tensor.Or, a, b)


def _is(x: Value, number: float) -> Value:
    return compare("eq", x, full(number, x))


def _is_infinite(x: Value) -> Value:
    return _is(_made(tensor.Abs, x), math.inf)


def _is_nan(x: Value) -> Value:
    return _made(tensor.IsNan, x)


def _real_at_edge(x: Parts) -> Value:
    """Whether the imaginary part is 0, and the real one is infinite or NaN, so that a product would lose the 0. For
    finite numbers the product stays, whose derivative is that of the function."""
    return _both(_is(x.imag, 0.0), _is_nan(x.real - x.real))


# -- powers -----------------------------------------------------------------------------------------------------------
def sqrt(x: Parts) -> Parts:
    """With t = sqrt((|x| + |a|) / 2): t + b / (2t) i if a >= 0, else |b| / (2t) + t i with the sign of b"""
    a, b = x
    half, zero = full(0.5, a), full(0, a)
    right = compare("ge", a, zero)
    t = _made(tensor.Sqrt, absolute(x) * half + select(right, a, -a) * half)
    other = b * half / select(compare("eq", t, zero), full(1, t), t)
    below, endless = is_negative(b), _is_infinite(b)
    return Parts(select(endless, full(math.inf, a), select(right, t, select(below, -other, other))),
                 select(endless, b, select(right, other, select(below, -t, t))))


def rsqrt(x: Parts) -> Parts:
    return reciprocal(sqrt(x))


def power(x: Parts, y: Parts) -> Parts:
    """x^y = e^(y log x); 0^y = 0, but 0^0 = 1"""
    def zero(z: Parts) -> Value:
        return _made(tensor.And, *(compare("eq", v, full(0, v)) for v in z))
    at_zero, like = zero(x), x.real
    base = Parts(select(at_zero, full(1, like), x.real), select(at_zero, full(0, like), x.imag))
    value = exp(mul(y, log(base)))
    at = select(zero(y), full(1, like), full(0, like))
    return Parts(select(at_zero, at, value.real), select(at_zero, full(0, like), value.imag))


# -- exponentials and logarithms --------------------------------------------------------------------------------------
def exp(x: Parts) -> Parts:
    e = _made(tensor.Exp, x.real)
    return _exponential(x, e, e * _made(tensor.Cos, x.imag), e)


def _exponential(x: Parts, e: Value, real: Value, limit: Value) -> Parts:
    """`real` + e sin(b) i for e = e^a; where a is infinite and b has no cosine, the real part is `limit`."""
    a, b = x
    lost = _is_nan(b - b)                                  # b is infinite or NaN
    imag = select(_real_at_edge(x), b, e * _made(tensor.Sin, b))
    return Parts(select(_both(lost, _is_infinite(a)), limit, real), select(_both(lost, _is(a, -math.inf)), e, imag))


def exp2(x: Parts) -> Parts:
    return exp(scaled(x, math.log(2)))


def expm1(x: Parts) -> Parts:
    """e^a cos b - 1 = (e^a - 1) cos b - 2 sin(b / 2)^2"""
    a, b = x
    half, less = _made(tensor.Sin, b * 0.5), _made(tensor.Expm1, a)
    return _exponential(x, _made(tensor.Exp, a), less * _made(tensor.Cos, b) + (0.0 - half * half * 2.0), less)


def log(x: Parts) -> Parts:
    return Parts(_made(tensor.Log, absolute(x)), _made(tensor.Atan2, x.imag, x.real))


def log2(x: Parts) -> Parts:
    return scaled(log(x), 1 / math.log(2))


def log10(x: Parts) -> Parts:
    return scaled(log(x), 1 / math.log(10))


@wide
def log1p(x: Parts) -> Parts:
    """|1 + x|^2 = 1 + a (2 + a) + b^2, where that is not near 0"""
    a, b = x
    more, one = a * (a + 2.0) + b * b, full(1, a)
    near = compare("lt", more, full(-0.5, a))
    real = select(near, _made(tensor.Log, _made(tensor.Hypot, select(near, a + 1.0, one), b)),
                  _made(tensor.Log1p, select(near, one, more)) * 0.5)
    return Parts(select(_either(_is_infinite(a), _is_infinite(b)), full(math.inf, a), real),
                 _made(tensor.Atan2, b, a + 1.0))


def sigmoid(x: Parts) -> Parts:
    e = exp(neg(x))
    return reciprocal(Parts(e.real + 1.0, e.imag))


def silu(x: Parts) -> Parts:
    return mul(x, sigmoid(x))


# -- trigonometry -----------------------------------------------------------------------------------------------------
def sinh(x: Parts) -> Parts:
    a, b = x
    s = _made(tensor.Sinh, a)
    kept = _both(_is_nan(b - b), _either(_is(a, 0.0), _is_infinite(a)))
    return Parts(select(kept, s, s * _made(tensor.Cos, b)),
                 select(_real_at_edge(x), b, _made(tensor.Cosh, a) * _made(tensor.Sin, b)))


def cosh(x: Parts) -> Parts:
    a, b = x
    c, lost = _made(tensor.Cosh, a), _is_nan(b - b)
    signed = select(compare("lt", a, full(0, a)), -b, b)
    imag = select(_real_at_edge(x), signed, _made(tensor.Sinh, a) * _made(tensor.Sin, b))
    return Parts(select(_both(lost, _is_infinite(a)), c, c * _made(tensor.Cos, b)),
                 select(_both(lost, _is(a, 0.0)), a, imag))


def tanh(x: Parts) -> Parts:
    """With t = tanh a: (t + sin b cos b (1 - t^2) i) / (cos(b)^2 + t^2 sin(b)^2)"""
    a, b = x
    t, s, c = _made(tensor.Tanh, a), _made(tensor.Sin, b), _made(tensor.Cos, b)
    ts = t * s
    norm = c * c + ts * ts
    endless, lost = _is_infinite(a), _is_nan(b - b)
    imag = select(_real_at_edge(x), b, s * c * ((1.0 - t) * (1.0 + t)) / norm)
    return Parts(select(_either(endless, _both(lost, _is(a, 0.0))), t, t / norm),
                 select(_both(lost, endless), full(0, a), imag))


def sin(x: Parts) -> Parts:
    return over_i(sinh(times_i(x)))


def cos(x: Parts) -> Parts:
    return cosh(times_i(x))


def tan(x: Parts) -> Parts:
    return over_i(tanh(times_i(x)))


def first_quadrant(f: Callable[[Parts], Parts]) -> Callable[[Parts], Parts]:
    """The function whose parts have the signs of those of its argument, of which `f` is given the magnitudes: so sums
    do not cancel, and zeros keep their signs, on branch cuts, too."""
    def signed(x: Parts) -> Parts:
        below = [is_negative(v) for v in x]
        out = f(Parts(*(select(p, -v, v) for p, v in zip(below, x))))
        return Parts(*(select(p, -v, v) for p, v in zip(below, out)))
    return signed


# Inverse functions by W. Kahan, "Branch cuts for complex elementary functions": both parts have all their digits.
@wide
def asinh(x: Parts) -> Parts:
    return _asinh(x)


@first_quadrant
def _asinh(x: Parts) -> Parts:
    """With r = sqrt(1 + ix) and s = sqrt(1 - ix): asinh(Im(r s)) + atan2(b, Re(conj(r) s)) i, without differences"""
    a, b = x
    (c, d), (e, f) = sqrt(Parts(1.0 - b, a)), sqrt(Parts(1.0 + b, a))
    endless = _either(_is_infinite(a), _is_infinite(b))
    imag = _made(tensor.Atan2, b, select(endless, a, c * e + d * f))
    return Parts(select(endless, full(math.inf, a), _made(tensor.Asinh, c * f + d * e)),
                 select(_real_at_edge(x), b, imag))


@wide
def asin(x: Parts) -> Parts:
    return over_i(_asinh(times_i(x)))


@wide
def acos(x: Parts) -> Parts:
    """pi / 2 - asin(x), whose real part is 2 atan2(Re sqrt(1 - x), Re sqrt(1 + x)) for finite numbers"""
    a, b = x
    real, imag = over_i(_asinh(times_i(x)))
    lost = _either(_is_nan(a - a), _is_nan(b - b))         # infinite or NaN
    angle = _made(tensor.Atan2, sqrt(Parts(1.0 - a, b)).real, sqrt(Parts(1.0 + a, b)).real) * 2.0
    return Parts(select(lost, math.pi / 2 - real, angle), -imag)


@wide
def acosh(x: Parts) -> Parts:
    """With r = sqrt(x - 1) and s = sqrt(x + 1): asinh(Re(conj(r) s)) + 2 atan2(Im r, Re s) i"""
    a, b = x
    (c, d), (e, f) = sqrt(Parts(a - 1.0, b)), sqrt(Parts(a + 1.0, b))
    out = Parts(_made(tensor.Asinh, c * e + d * f), _made(tensor.Atan2, d, e) * 2.0)
    endless, upward = _either(_is_infinite(a), _is_infinite(b)), _both(_is(a, 0.0), _is_nan(b))
    imag = select(upward, full(math.pi / 2, a), select(endless, _made(tensor.Atan2, b, a), out.imag))
    return Parts(select(endless, full(math.inf, a), out.real), imag)


@wide
def atanh(x: Parts) -> Parts:
    return _atanh(x)


@first_quadrant
def _atanh(x: Parts) -> Parts:
    """log(1 + 4a / |1 - x|^2) / 4 + atan2(2b, 1 - |x|^2) / 2 i"""
    a, b = x
    left, square = 1.0 - a, b * b
    out = Parts(_made(tensor.Log1p, a * 4.0 / (left * left + square)) * 0.25,
                _made(tensor.Atan2, b * 2.0, left * (1.0 + a) - square) * 0.5)
    endless, quarter = _either(_is_infinite(a), _is_infinite(b)), full(math.pi / 2, a)
    real = select(_both(_is(a, 0.0), _is_nan(b)), a, select(endless, full(0.0, a), out.real))
    return Parts(real, select(endless, select(_is_nan(b), b, quarter), out.imag))


@wide
def atan(x: Parts) -> Parts:
    return over_i(_atanh(times_i(x)))


# -- comparison and conversion ----------------------------------------------------------------------------------------
def is_nan(x: Parts) -> Value:
    return _made(tensor.Or, *(_made(tensor.IsNan, v) for v in x))


def compared(op: Any, x: Parts, y: Parts) -> Value:
    """Equal if both parts are."""
    each = (compare(op.predicate, a, b) for a, b in zip(x, y))
    return _made(tensor.And if op.predicate == "eq" else tensor.Or, *each)


def converted(op: Any, x: Parts | Value) -> Parts | Value:
    """A real number has the imaginary part 0; a complex number loses it, and is true if it is not 0."""
    from mlc.ir.types import ComplexType, i1
    if not isinstance(op.dtype, ComplexType):
        assert isinstance(x, Parts)
        return _made(tensor.Or, *(cast(v, i1) for v in x)) if op.dtype == i1 else cast(x.real, op.dtype)
    part = op.dtype.part
    if isinstance(x, Parts):
        return Parts(*(cast(v, part) for v in x))
    return Parts(cast(x, part), tensor.Full(0, x.type.shape, part).result)


# -- products along an axis -------------------------------------------------------------------------------------------
def product(op: Any, x: Parts) -> Parts:
    """The products of halves, until one element is left along each axis."""
    shape = list(x.real.type.shape)
    for axis in op.axes:
        while shape[axis] > 1:
            half = shape[axis] // 2
            rest = _along(x, axis, 2 * half, shape[axis])
            x = mul(_along(x, axis, 0, half), _along(x, axis, half, 2 * half))
            if 2 * half < shape[axis]:
                x = Parts(*(tensor.Concat((v, r), axis).result for v, r in zip(x, rest)))
            shape = list(x.real.type.shape)
    to = op.result.type.shape
    if any(shape[axis] == 0 for axis in op.axes):
        part = x.real.type.dtype
        return Parts(tensor.Full(1, to, part).result, tensor.Full(0, to, part).result)
    return Parts(*(tensor.Reshape(v, tuple(to)).result for v in x))


def prefix_products(op: Any, x: Parts) -> Parts:
    """Products of 1, 2, 4 ... elements, in as many steps as the size has binary digits."""
    n, step, axis = x.real.type.shape[op.axis], 1, op.axis
    if op.reverse:
        x = Parts(*(tensor.Reverse(v, (axis,)).result for v in x))
    while step < n:
        later = mul(_along(x, axis, step, n), _along(x, axis, 0, n - step))
        x = Parts(*(tensor.Concat((first, v), axis).result for first, v in zip(_along(x, axis, 0, step), later)))
        step *= 2
    return Parts(*(tensor.Reverse(v, (axis,)).result for v in x)) if op.reverse else x


def _along(x: Parts, axis: int, start: int, stop: int) -> Parts:
    """The elements from start to stop along an axis."""
    shape: Sequence[Any] = x.real.type.shape
    starts = tuple(start if a == axis else 0 for a in range(len(shape)))
    stops = tuple(stop if a == axis else n for a, n in enumerate(shape))
    return Parts(*(tensor.Slice(v, starts, stops, (1,) * len(shape)).result for v in x))
