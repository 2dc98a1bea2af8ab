"""Expansions: sine, cosine, tangent."""

from __future__ import annotations

import math

from mlc.dialects.expansions.arithmetic import (
    BIAS,
    MANTISSA,
    Arithmetic,
    V,
    clamp,
    horner,
    quotient_error,
    round_scaled,
    table,
    two_sum,
)

# Tables of tools/fit_polynomials.py, lowest degree first. The error is relative to the function's result.
_SIN = {   # (sin(r)/r - 1) / r^2 in r^2
    32: table(  # on [0.0, 0.61685], error 2^-37.5
        "-0x1.5555554c71804p-3 0x1.1111086a6488dp-7 -0x1.a00f7f43de3c4p-13 0x1.6cd1fc7ba03f4p-19",
    ),
    64: table(  # on [0.0, 0.61685], error 2^-63.23
        "-0x1.5555555555555p-3 0x1.1111111111069p-7 -0x1.a01a019ffe51bp-13 0x1.71de3a33a40a9p-19",
        "-0x1.ae642c4eba4bap-26 0x1.6109baee7fa8bp-33 -0x1.9ffbeab738994p-41",
    ),
}
_COS = {   # (cos r - 1 + r^2/2) / r^4 in r^2
    32: table(  # on [0.0, 0.61685], error 2^-42.94
        "0x1.5555554ed99d2p-5 -0x1.6c16b82a4ca56p-10 0x1.a010def9b01a3p-16 -0x1.241ea4c597fdbp-22",
    ),
    64: table(  # on [0.0, 0.61685], error 2^-63.94
        "0x1.555555555554bp-5 -0x1.6c16c16c15016p-10 0x1.a01a019c8f51ep-16 -0x1.27e4f7f1bb85fp-22",
        "0x1.1ee9dbf0684e7p-29 -0x1.8fa6978897d9p-37",
    ),
}
# The bits of 1 / (2 pi) in pieces of 29 bits (the last one: 53), and in words of 53 bits, times 2^512.
_TURN_PIECES = table(
    "0x1.45f306dp-3 0x1.9391054p-32 0x1.4fe13abp-61 0x1.d1f534dp-90",
    "0x1.b81b6c5p-119 0x1.5993c439041fep-150",
)
_TURN_WORDS = table(
    "0x1.45f306dc9c882p+509 0x1.4a7f09d5f47d4p+456 0x1.a6ee06db14accp+403 0x1.3c439041fe516p+350",
    "0x1.d5ef5de2b0db8p+295 0x1.2371d2126e97p+243 0x1.924bba82746p+184 0x1.21cfe1deb1cb1p+138",
    "0x1.4d39f74411af8p+83 0x1.4baed1213a671p+32 0x1.8135a2fbf209cp-21 0x1.91d639835339fp-74",
    "0x1.272117e2ef7e4p-128 0x1.41d8ffc4bffeep-181 0x1.02cc07f79788cp-233 0x1.6b414da3eda6cp-287",
    "0x1.fb3c9f2c26dd2p-340 0x1.d18fd9a797fa8p-392 0x1.6ba93dd63f5f2p-445 0x1.f17b3d0739f78p-498",
    "0x1.4a525d4d7f6bfp-551 0x1.88fc6ae842bp-605 0x1.98237e3db5d5fp-657",
)
_HALF_PI_LOW = float.fromhex("0x1.1a62633145c07p-54")          # pi/2 less its nearest f64


def _quarters_of_f32(b: Arithmetic[V], x: V) -> tuple[V, V]:
    """x = (n + q) pi/2 of a non-negative f32 given as f64: (n modulo 4 in the low bits of an integer, q), |q| <= 1/2

    1 / (2 pi) is split into pieces of 29 bits. The product of x with each is exact, and so is subtracting its integer
    part; the last piece has 53 bits, its product is below 2^-18 and rounded. The sum determines n, which is then
    subtracted from the first part: if that cancels, every sum is exact, so that q has a relative error of 2^-50.
    """
    products = [b.mul(x, b.const(piece, x)) for piece in _TURN_PIECES]
    parts = [*(b.sub(product, b.roundeven(product)) for product in products[:-1]), products[-1]]
    total = parts[0]
    for part in parts[1:]:
        total = b.add(total, part)
    i, n = round_scaled(b, total, 4, 0)
    rest = b.fma(n, b.const(-0.25, x), parts[0])
    for part in parts[1:]:
        rest = b.add(rest, part)
    return i, b.mul(rest, b.const(4, x))


def _turns_in_two(b: Arithmetic[V], x: V) -> tuple[V, V]:
    """x / (2 pi) less an integer, of a non-negative f64, as a sum of two floats (Payne and Hanek)

    1 / (2 pi) is split into words of 53 bits. The first j words, with j from the exponent of x, contribute integers
    only, and the next five determine the result: they are selected by shifting the row of words by 16, 8, 4, 2, 1 for
    each bit of j. Words are scaled up and x down by 2^512. Below 2^-450 the result is 0.
    """
    exponent = b.sitofp(b.lshr(b.bitcast_int(x), b.iconst(MANTISSA[64], x)))
    step = b.fma(exponent, b.const(1 / 53, x), b.const(-(BIAS[64] + 54) / 53 - 0.49, x))
    j, _ = round_scaled(b, clamp(b, step, 0.0, None), 1, 0)
    words = [b.const(word, x) for word in _TURN_WORDS]
    for shift in (16, 8, 4, 2, 1):
        bit = b.icmp("ne", b.iand(j, b.iconst(shift, x)), b.iconst(0, x))
        count = min(len(words), shift + 4)
        far = words[shift : shift + count]
        words = [b.select(bit, w, words[k]) for k, w in enumerate(far)] + words[len(far) : count]
    x = b.mul(x, b.const(2.0**-512, x))
    high = [b.mul(x, word) for word in words]
    low = [b.fma(x, word, b.neg(product)) for word, product in zip(words, high)]
    parts = [b.sub(part, b.roundeven(part)) for part in (high[0], low[0], high[1])]
    total, errors = parts[0], []
    for part in (parts[1], parts[2], low[1], high[2]):
        total, error = two_sum(b, total, part)
        errors.append(error)
    total = b.sub(total, b.roundeven(total))
    rest, last = low[2], b.add(low[3], high[4])
    for part in (high[3], *errors):
        rest, error = two_sum(b, rest, part)
        last = b.add(last, error)
    total, error = two_sum(b, total, rest)
    return total, b.add(error, last)


def _reduce_f64(b: Arithmetic[V], x: V) -> tuple[V, V, V]:
    """x = n pi/2 + r + low of a non-negative f64: (n modulo 4 in the low bits of an integer, r, low), |r| <= pi/4"""
    turns, turns_low = _turns_in_two(b, x)
    i, n = round_scaled(b, turns, 4, 0)
    four, right = b.const(4, x), b.const(math.pi / 2, x)
    quarters = b.fma(turns, four, b.neg(n))
    r = b.mul(quarters, right)
    low = b.fma(quarters, b.const(_HALF_PI_LOW, x), b.fma(quarters, right, b.neg(r)))
    low = b.fma(b.mul(turns_low, four), right, low)
    small = b.cmp("olt", x, b.const(0.5, x))
    return i, b.select(small, x, r), b.select(small, b.const(0, x), low)


def _sine_and_cosine(b: Arithmetic[V], x: V) -> tuple[V, tuple[V, V], tuple[V, V]]:
    """For |x| = n pi/2 + r: n modulo 4 in the low bits of an integer, and the sine and cosine of r

    Sine and cosine are unevaluated sums of two f64; x is f32 or f64.
    """
    bits = b.bits(x)
    wide = b.extf(b.abs(x)) if bits == 32 else b.abs(x)
    one, low = b.const(1, wide), None
    if bits == 32:
        i, quarters = _quarters_of_f32(b, wide)
        r = b.mul(quarters, b.const(math.pi / 2, wide))
    else:
        i, r, low = _reduce_f64(b, wide)
    z = b.mul(r, r)
    tail = b.mul(b.mul(horner(b, _SIN[bits], z), z), r)
    v = b.fma(horner(b, _COS[bits], z), z, b.const(-0.5, wide))
    if low is None:
        return i, (r, tail), (one, b.mul(v, z))
    # sin(r + low) = sin r + low cos r, and likewise the cosine
    loss = b.fma(low, b.add(r, tail), b.mul(b.fma(r, r, b.neg(z)), b.const(0.5, wide)))
    return i, (r, b.fma(low, b.fma(v, z, one), tail)), (one, b.fma(v, z, b.neg(loss)))


def _is_even(b: Arithmetic[V], i: V) -> V:
    return b.icmp("eq", b.iand(i, b.iconst(1, i)), b.iconst(0, i))


def _with_sign(b: Arithmetic[V], result: V, x: V) -> V:
    """`result` of |x|, rounded to the width of x, with its sign flipped if x is negative."""
    result = b.truncf(result) if b.bits(x) == 32 else result
    minus = b.iand(b.bitcast_int(x), b.iconst(1 << (b.bits(x) - 1), x))
    return b.bitcast_float(b.ixor(b.bitcast_int(result), minus))


def _sin_or_cos(b: Arithmetic[V], x: V, quarter: int) -> V:
    """sin(|x| + quarter pi/2) in f64"""
    i, sine, cosine = _sine_and_cosine(b, x)
    i = b.iadd(i, b.iconst(quarter, i))
    result = b.select(_is_even(b, i), b.add(*sine), b.add(*cosine))
    sign = b.shl(b.lshr(i, b.iconst(1, i)), b.iconst(63, i))
    return b.bitcast_float(b.ixor(b.bitcast_int(result), sign))


def sin(b: Arithmetic[V], x: V) -> V:
    """sin x from the sine or cosine of x less the nearest multiple of pi/2; f32 is computed in f64

    f32 0.501 ULP, f64 0.93; 56 and 186 ops.
    """
    return _with_sign(b, _sin_or_cos(b, x, 0), x)


def cos(b: Arithmetic[V], x: V) -> V:
    """cos x = sin(x + pi/2), the quarter turn added after the reduction

    f32 0.501 ULP, f64 0.93; 54 and 184 ops.
    """
    result = _sin_or_cos(b, x, 1)
    return b.truncf(result) if b.bits(x) == 32 else result


def tan(b: Arithmetic[V], x: V) -> V:
    """tan x = sin r / cos r or -cos r / sin r, r = x less the nearest multiple of pi/2; f64 in two floats

    f32 0.501 ULP, f64 1; 54 and 195 ops.
    """
    i, (r, tail), (one, less) = _sine_and_cosine(b, x)
    even = _is_even(b, i)
    sine, cosine = b.add(r, tail), b.add(one, less)
    n, d = b.select(even, sine, b.neg(cosine)), b.select(even, cosine, sine)
    quotient = b.div(n, d)
    if b.bits(x) == 64:
        sine_low, cosine_low = b.add(b.sub(r, sine), tail), b.add(b.sub(one, cosine), less)
        n_low, d_low = b.select(even, sine_low, b.neg(cosine_low)), b.select(even, cosine_low, sine_low)
        quotient = b.add(quotient, quotient_error(b, quotient, n, d, n_low, d_low))
    return _with_sign(b, quotient, x)
