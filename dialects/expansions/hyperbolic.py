"""Expansions: hyperbolic sine, cosine and their inverses.

f32 is computed in f64: every intermediate value is in range, and all but about one in 10^8 results are correctly
rounded.
"""

from __future__ import annotations

import math

from mlc.dialects.expansions.arithmetic import (
    BIAS,
    Arithmetic,
    V,
    clamp,
    horner,
    in_f64,
    quotient_error,
    table,
    two_powers,
    two_product,
    two_sum,
)
from mlc.dialects.expansions.exponential import exp_less_one
from mlc.dialects.expansions.logarithm import log_one_plus_two

# Tables of tools/fit_polynomials.py, lowest degree first. The error is relative to the function's result.
_SINH = {   # (sinh(x)/x - 1) / x^2 in x^2
    32: table(  # on [0.0, 1.0], error 2^-34.17
        "0x1.5555551b42b13p-3 0x1.111134f96c0ebp-7 0x1.9ffe934d9ac7dp-13 0x1.7a1596038297ep-19",
    ),
    64: table(  # on [0.0, 1.0], error 2^-62.96
        "0x1.5555555555555p-3 0x1.111111111119bp-7 0x1.a01a01a007362p-13 0x1.71de3a68cf2eep-19",
        "0x1.ae6441245ead4p-26 0x1.61314bd60aa82p-33 0x1.a66685d193403p-41 0x1.d26d66cd1984cp-48",
    ),
}
_TINY = 2.0**-60
"""Odd functions of smaller arguments equal the argument; squares of larger ones do not underflow significantly."""
_HUGE = 2.0**60
"""x + 1 == x for larger x."""


def _half_exp(b: Arithmetic[V], x: V) -> V:
    """e^x / 2 of a non-negative f64, which overflows only if cosh x does."""
    i, g = exp_less_one(b, clamp(b, x, None, 712.0), 2 * BIAS[64] - 1)
    first, second = two_powers(b, i, x)
    return b.mul(b.fma(g, first, first), second)


def sinh(b: Arithmetic[V], x: V) -> V:
    """sinh x = x + x^3 p(x^2) for |x| < 1; else h - 1 / (4 h), h = e^|x| / 2, with the sign of x

    f32 0.501 ULP, f64 1.4; 37 and 39 ops.
    """
    terms = b.bits(x)

    def wide(b: Arithmetic[V], x: V) -> V:
        a = b.abs(x)
        half = _half_exp(b, a)
        large = b.sub(half, b.div(b.const(0.25, a), half))
        z = b.mul(a, a)
        small = b.fma(b.mul(horner(b, _SINH[terms], z), z), a, a)
        return b.copysign(b.select(b.cmp("olt", a, b.const(1, a)), small, large), x)

    return in_f64(b, wide, x)


def cosh(b: Arithmetic[V], x: V) -> V:
    """cosh x = h + 1 / (4 h), h = e^|x| / 2; f32 0.5 ULP, f64 1.3; 28 and 26 ops."""
    def wide(b: Arithmetic[V], x: V) -> V:
        half = _half_exp(b, b.abs(x))
        return b.add(half, b.div(b.const(0.25, x), half))

    return in_f64(b, wide, x)


def _asinh(b: Arithmetic[V], x: V) -> V:
    a, one, zero = b.abs(x), b.const(1, x), b.const(0, x)
    huge = b.cmp("ogt", a, b.const(_HUGE, x))
    moderate = b.select(huge, one, a)
    square = b.mul(moderate, moderate)
    root = b.add(b.sqrt(b.add(square, one)), one)
    more, low = two_sum(b, moderate, b.div(square, root))
    result = log_one_plus_two(b, b.select(huge, a, more), b.select(huge, zero, low), huge)
    result = b.select(b.cmp("olt", a, b.const(_TINY, x)), a, result)
    return b.copysign(b.select(b.cmp("olt", a, b.const(math.inf, x)), result, a), x)


def asinh(b: Arithmetic[V], x: V) -> V:
    """asinh |x| = log(1 + t), t = |x| + x^2 / (1 + sqrt(1 + x^2)), or log(2 |x|) of large x, with the sign of x

    f32 0.5 ULP, f64 0.9; 70 and 68 ops.
    """
    return in_f64(b, _asinh, x)


def _acosh(b: Arithmetic[V], x: V) -> V:
    one, zero, infinity = b.const(1, x), b.const(0, x), b.const(math.inf, x)
    huge = b.cmp("ogt", x, b.const(_HUGE, x))
    t = b.select(huge, one, b.sub(x, one))
    double, double_low = two_sum(b, t, b.const(2, x))
    square, square_low = two_product(b, t, double)
    square_low = b.fma(t, double_low, square_low)
    root = b.sqrt(square)
    left = b.add(b.fma(b.neg(root), root, square), square_low)
    at_one = b.cmp("oeq", root, zero)
    root_low = b.div(left, b.select(at_one, one, b.add(root, root)))
    more, low = two_sum(b, root, t)
    low = b.add(low, root_low)
    result = log_one_plus_two(b, b.select(huge, x, more), b.select(huge, zero, low), huge)
    result = b.select(b.cmp("ogt", x, one), result, b.select(b.cmp("oeq", x, one), zero, b.const(math.nan, x)))
    return b.select(b.cmp("oeq", x, infinity), infinity, result)


def acosh(b: Arithmetic[V], x: V) -> V:
    """acosh x = log(1 + t + sqrt(t (t + 2))), t = x - 1, the argument in two floats, or log(2 x) of large x

    f32 0.5 ULP, f64 0.8; 83 and 81 ops.
    """
    return in_f64(b, _acosh, x)


def _atanh(b: Arithmetic[V], x: V) -> V:
    a, one, zero = b.abs(x), b.const(1, x), b.const(0, x)
    inside = b.cmp("olt", a, one)
    moderate = b.select(inside, a, zero)
    double, rest = b.add(moderate, moderate), b.sub(one, moderate)
    t = b.div(double, rest)
    low = quotient_error(b, t, double, rest, zero, b.sub(b.sub(one, rest), moderate))
    result = b.mul(log_one_plus_two(b, t, low, b.cmp("une", zero, zero)), b.const(0.5, x))
    result = b.select(b.cmp("olt", a, b.const(_TINY, x)), a, result)
    outside = b.select(b.cmp("oeq", a, one), b.const(math.inf, x), b.const(math.nan, x))
    return b.copysign(b.select(inside, result, outside), x)


def atanh(b: Arithmetic[V], x: V) -> V:
    """atanh |x| = log(1 + 2 |x| / (1 - |x|)) / 2, the argument in two floats, with the sign of x

    f32 0.5 ULP, f64 0.9; 69 and 67 ops.
    """
    return in_f64(b, _atanh, x)
