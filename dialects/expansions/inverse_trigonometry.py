"""Expansions: arc tangent, also of two arguments, arc sine, arc cosine."""

from __future__ import annotations

import math

from mlc.dialects.expansions.arithmetic import (
    Arithmetic,
    V,
    clamp,
    common_scale,
    horner,
    in_f64,
    table,
)

# Tables of tools/fit_polynomials.py, lowest degree first. The error is relative to the function's result.
_ATAN = {   # (atan(z)/z - 1) / z^2 in z^2
    32: table(  # on [0.0, 0.25], error 2^-27.44
        "-0x1.555512p-2 0x1.997b06p-3 -0x1.224a18p-3 0x1.a003eap-4",
        "-0x1.a4042cp-5",
    ),
    64: table(  # on [0.0, 0.25], error 2^-57.78
        "-0x1.5555555555516p-2 0x1.999999999114p-3 -0x1.249249215dd14p-3 0x1.c71c7090e0cc2p-4",
        "-0x1.745cf4ca48a1ep-4 0x1.3b113db0bc262p-4 -0x1.10f31e6553f12p-4 0x1.dfe96d668ebc8p-5",
        "-0x1.a3983492172b2p-5 0x1.56f533b89a9dep-5 -0x1.c17de7ade89b4p-6 0x1.4b8147880a48ep-7",
    ),
}
_ASIN = {   # (asin(x)/x - 1) / x^2 in x^2
    32: table(  # on [0.0, 0.25], error 2^-35.85
        "0x1.55555605afaccp-3 0x1.3332aa14034a3p-4 0x1.6ddabd8287effp-5 0x1.ed5d4c09ccb69p-6",
        "0x1.931e6d5564d4fp-6 0x1.ec322f04bcddap-8 0x1.1bd0927265217p-5",
    ),
    64: table(  # on [0.0, 0.25], error 2^-59.86
        "0x1.5555555555577p-3 0x1.333333332e133p-4 0x1.6db6db7212466p-5 0x1.f1c71a950163cp-6",
        "0x1.6e8bdede8218ap-6 0x1.1c49f07e48c92p-6 0x1.ca1f8a25a036ap-7 0x1.7585a5a6f6468p-7",
        "0x1.613bea948a06ep-7 0x1.e5ff55e2cd7a8p-9 0x1.639965aedc6d8p-6 -0x1.57f915840a823p-6",
        "0x1.0b4556db56006p-5",
    ),
}
_HALF_PI_LOW = dict(zip((32, 64), table("-0x1.777a5cf72cecep-25 0x1.1a62633145c07p-54")))  # pi/2 less its nearest float


def _atan_of_ratio(b: Arithmetic[V], n: V, d: V) -> tuple[V, V]:
    """atan(n / d), n >= 0 and d > 0, as the unevaluated sum of two floats

    atan(n / d) = c + atan z with c = 0 up to n / d = 1/2; c = pi/4, z = (n - d) / (n + d) up to 2; then c = pi/2,
    z = -d / n. atan z = z + z^3 p(z^2), of which all but z^3 p is in two floats.
    """
    bits = b.bits(n)
    half, two = b.const(math.pi / 2, n), b.const(2, n)
    small, large = b.cmp("olt", b.add(n, n), d), b.cmp("ogt", n, b.mul(d, two))

    def choose(least: V, middle: V, most: V) -> V:
        return b.select(small, least, b.select(large, most, middle))

    zero, low = b.const(0, n), b.const(_HALF_PI_LOW[bits], n)
    total = b.add(n, d)
    lost = b.sub(n, b.sub(total, d))                      # exact enough between 1/2 and 2
    top = choose(n, b.sub(n, d), b.neg(d))
    bottom, bottom_low = choose(d, total, n), choose(zero, lost, zero)
    c = choose(zero, b.mul(half, b.const(0.5, n)), half)
    c_low = choose(zero, b.mul(low, b.const(0.5, n)), low)
    inverse = b.div(b.const(1, n), bottom)
    z = b.mul(top, inverse)
    z_low = b.mul(b.fma(b.neg(z), bottom_low, b.fma(b.neg(z), bottom, top)), inverse)
    w = b.mul(z, z)
    slope = b.fma(w, b.const(-0.8, n), b.const(1, n))     # of atan at z, nearly: 1 / (1 + z^2)
    main = b.add(c, z)
    rest = b.add(b.sub(z, b.sub(main, c)), b.fma(z_low, slope, c_low))
    tail = b.mul(horner(b, _ATAN[bits], w), w)
    return main, b.fma(tail, z, rest)


def atan(b: Arithmetic[V], x: V) -> V:
    """atan x = atan(|x| / 1) with the sign of x; f32 0.78 ULP, f64 0.7; 43 and 50 ops."""
    return b.copysign(b.add(*_atan_of_ratio(b, clamp(b, b.abs(x), None, 2.0**100), b.const(1, x))), x)


def atan2(b: Arithmetic[V], y: V, x: V) -> V:
    """atan |y / x|, or pi less that for x < 0, with the sign of y; zeros count by their sign, infinities as equal

    f32 is computed in f64. f32 0.501 ULP, f64 0.63; 74 and 85 ops.
    """
    scaled = b.bits(x) == 64

    def wide(b: Arithmetic[V], y: V, x: V) -> V:
        one, zero, infinity = b.const(1, x), b.const(0, x), b.const(math.inf, x)
        n, d = b.abs(y), b.abs(x)
        n_infinite, d_infinite = b.cmp("oeq", n, infinity), b.cmp("oeq", d, infinity)
        infinite = b.ior(n_infinite, d_infinite)                  # then each is 1, or 0 if it is finite
        n = b.select(infinite, b.select(n_infinite, one, b.mul(n, zero)), n)
        d = b.select(infinite, b.select(d_infinite, one, b.mul(d, zero)), d)
        d = b.select(b.iand(b.cmp("oeq", n, zero), b.cmp("oeq", d, zero)), one, d)
        if scaled:
            factor, ratio = common_scale(b, n, d), b.div(n, d)
            main, rest = _atan_of_ratio(b, b.mul(n, factor), b.mul(d, factor))
            flat = b.cmp("olt", ratio, b.const(2.0**-60, x))      # then scaling could have lost n
            main, rest = b.select(flat, ratio, main), b.select(flat, zero, rest)
        else:
            main, rest = _atan_of_ratio(b, n, d)
        pi, pi_low = b.const(math.pi, x), b.const(2 * _HALF_PI_LOW[64], x)
        behind = b.sub(pi, main)
        behind_low = b.add(b.sub(b.sub(pi, behind), main), b.sub(pi_low, rest))
        negative = b.cmp("olt", b.copysign(one, x), zero)
        return b.copysign(b.select(negative, b.add(behind, behind_low), b.add(main, rest)), y)

    return in_f64(b, wide, y, x)


def _asin_of_small(b: Arithmetic[V], z: V, x: V, terms: int) -> V:
    """asin x - x = x z p(z), z = x^2 <= 1/4"""
    return b.mul(b.mul(horner(b, _ASIN[terms], z), z), x)


def _half_angle(b: Arithmetic[V], a: V) -> tuple[V, V, V]:
    """(z, s, s_low) with s + s_low = sqrt z, z = (1 - a) / 2, for 1/2 <= a <= 1: asin a = pi/2 - 2 asin sqrt z."""
    z = b.mul(b.sub(b.const(1, a), a), b.const(0.5, a))
    s = b.sqrt(z)
    divisor = b.select(b.cmp("oeq", s, b.const(0, a)), b.const(1, a), b.add(s, s))
    return z, s, b.div(b.fma(b.neg(s), s, z), divisor)


def asin(b: Arithmetic[V], x: V) -> V:
    """asin x = x + x^3 p(x^2) for |x| < 1/2; else pi/2 - 2 asin sqrt((1 - |x|) / 2), with the sign of x

    f32 is computed in f64. f32 0.501 ULP, f64 0.6; 33 and 37 ops.
    """
    terms = b.bits(x)

    def wide(b: Arithmetic[V], x: V) -> V:
        a, half = b.abs(x), b.const(math.pi / 2, x)
        near = b.cmp("olt", a, b.const(0.5, x))
        z, s, s_low = _half_angle(b, a)
        z, s = b.select(near, b.mul(a, a), z), b.select(near, a, s)
        tail = _asin_of_small(b, z, s, terms)
        minus = b.const(-2, x)
        main = b.fma(minus, s, half)
        low = b.fma(minus, b.add(s_low, tail), b.add(b.fma(minus, s, b.sub(half, main)), b.const(_HALF_PI_LOW[64], x)))
        return b.copysign(b.select(near, b.add(a, tail), b.add(main, low)), x)

    return in_f64(b, wide, x)


def acos(b: Arithmetic[V], x: V) -> V:
    """acos x = pi/2 - asin x for |x| < 1/2; else 2 asin sqrt((1 - |x|) / 2), or for x < 0 pi less that

    f32 is computed in f64. f32 0.501 ULP, f64 0.6; 39 and 43 ops.
    """
    terms = b.bits(x)

    def wide(b: Arithmetic[V], x: V) -> V:
        a, zero, two = b.abs(x), b.const(0, x), b.const(2, x)
        near, negative = b.cmp("olt", a, b.const(0.5, x)), b.cmp("olt", x, zero)
        z, s, s_low = _half_angle(b, a)
        z, s = b.select(near, b.mul(a, a), z), b.select(near, x, s)
        tail = _asin_of_small(b, z, s, terms)
        s_low = b.select(near, zero, s_low)
        flipped = b.ior(near, negative)                       # c - factor (s + low), c = pi/2 or pi
        c = b.select(near, b.const(math.pi / 2, x), b.const(math.pi, x))
        c_low = b.select(near, b.const(_HALF_PI_LOW[64], x), b.const(2 * _HALF_PI_LOW[64], x))
        factor = b.select(near, b.const(-1, x), b.neg(two))
        low = b.add(s_low, tail)
        main = b.fma(factor, s, c)
        rest = b.fma(factor, low, b.add(b.fma(factor, s, b.sub(c, main)), c_low))
        return b.select(flipped, b.add(main, rest), b.mul(two, b.add(s, low)))

    return in_f64(b, wide, x)
