"""Expansions: exp, and functions based on it."""

from __future__ import annotations

import math

from mlc.dialects.expansions.arithmetic import (
    BIAS,
    LN2_LOW,
    LOG2E,
    Arithmetic,
    V,
    clamp,
    horner,
    power_of_two,
    round_scaled,
    table,
    two_powers,
    two_product,
)

# Tables of tools/fit_polynomials.py, lowest degree first. The error is relative to the function's result.
EXP = {   # (exp r - 1 - r) / r^2
    32: table(  # on [-0.346574, 0.346574], error 2^-31.25
        "0x1.p-1 0x1.55553cp-3 0x1.5554f2p-5 0x1.11371ep-7",
        "0x1.6d40e6p-10 0x1.6b951ep-13",
    ),
    64: table(  # on [-0.346574, 0.346574], error 2^-57.9
        "0x1.000000000000ap-1 0x1.5555555555503p-3 0x1.5555555550601p-5 0x1.1111111124d19p-7",
        "0x1.6c16c184b6c2dp-10 0x1.a01a013d68f11p-13 0x1.a01998890d32fp-16 0x1.71def3bc44675p-19",
        "0x1.28aede197635dp-22 0x1.add8a80443aa7p-26",
    ),
}
EXP2 = {   # (2^f - 1 - float(ln 2) f) / f^2
    32: table(  # on [-0.5, 0.5], error 2^-28.25
        "0x1.ebfbdcp-3 0x1.c6af76p-5 0x1.3b2db2p-7 0x1.5f0c74p-10",
        "0x1.41adf8p-13",
    ),
    64: table(  # on [-0.5, 0.5], error 2^-59.7
        "0x1.ebfbdff82c58ep-3 0x1.c6b08d704a1c4p-5 0x1.3b2ab6fba5262p-7 0x1.5d87fe7879a49p-10",
        "0x1.430912f6dc401p-13 0x1.ffcbfd26bb1a4p-17 0x1.62c02a1d7a5bep-20 0x1.b523883437d14p-24",
        "0x1.e4ad42333510cp-28 0x1.ebdf568f1363ep-32 0x1.f8aeff167ccb9p-36",
    ),
}
_TANH = {   # (tanh(x)/x - 1) / x^2 in x^2
    32: table(  # on [0.0, 1.0], error 2^-27.68
        "-0x1.55553cp-2 0x1.110be6p-3 -0x1.b96284p-5 0x1.600baap-6",
        "-0x1.0466ap-7 0x1.2db53cp-9 -0x1.7800c8p-12",
    ),
    64: table(  # on [0.0, 1.0], error 2^-59.77
        "-0x1.555555555554fp-2 0x1.1111111110b21p-3 -0x1.ba1ba1b9dd83ep-5 0x1.664f48787370fp-6",
        "-0x1.226e3458bafb8p-7 0x1.d6d3aed2495ccp-9 -0x1.7da1da2490aa6p-10 0x1.354b48d024a73p-11",
        "-0x1.f4de8c0be8a7ep-13 0x1.939b3d8ae82a3p-14 -0x1.3f4b1778e6d6bp-15 0x1.df1bb4ba8e194p-17",
        "-0x1.3f3d4eff82e8ap-18 0x1.5526d4b4603e2p-20 -0x1.f4278d8ccbb25p-23 0x1.6dcf0ad742216p-26",
    ),
}

_NO_EXP = {32: -120.0, 64: -760.0}
"""e^x and even x e^x are 0 below this."""


def reduce_exp(b: Arithmetic[V], x: V, bias: int) -> tuple[V, V, V, V]:
    """x = n ln 2 + r, |r| <= ln(2)/2 (Cody and Waite): (n + bias in the low bits, -n, r without its low part, r)."""
    i, n = round_scaled(b, x, LOG2E, bias)
    minus = b.neg(n)
    main = b.fma(minus, b.const(math.log(2), x), x)     # exact
    return i, minus, main, b.fma(minus, b.const(LN2_LOW[b.bits(x)], x), main)


def exp_less_one(b: Arithmetic[V], x: V, bias: int) -> tuple[V, V]:
    """exp x = 2^n (1 + g) with |g| < 0.42: (n + bias in the low bits, g)."""
    i, _, _, r = reduce_exp(b, x, bias)
    return i, b.fma(horner(b, EXP[b.bits(x)], r), b.mul(r, r), r)


def exp(b: Arithmetic[V], x: V) -> V:
    """e^x = 2^n (1 + r + r^2 q(r)), x = n ln 2 + r

    The power is multiplied as two factors, so a denormal result is rounded a second time, to its own precision.
    f32 0.98 ULP, f64 1; 21 and 25 ops.
    """
    low, high = {32: (-104.0, 89.0), 64: (-746.0, 710.0)}[b.bits(x)]
    i, g = exp_less_one(b, clamp(b, x, low, high), 2 * BIAS[b.bits(x)])
    first, second = two_powers(b, i, x)
    return b.mul(b.fma(g, first, first), second)


def exp2(b: Arithmetic[V], x: V) -> V:
    """2^x = 2^n (1 + f ln 2 + f^2 q(f)), x = n + f

    f is exact and float(ln 2) is accurate to 28 bits, so no low parts are needed. f32 0.87 ULP, f64 0.83;
    20 and 26 ops.
    """
    bits = b.bits(x)
    low, high = {32: (-151.0, 128.0), 64: (-1076.0, 1024.0)}[bits]
    x = clamp(b, x, low, high)
    i, n = round_scaled(b, x, 1, 2 * BIAS[bits])
    f = b.sub(x, n)
    g = b.fma(f, b.const(math.log(2), x), b.mul(b.mul(f, f), horner(b, EXP2[bits], f)))
    first, second = two_powers(b, i, x)
    return b.mul(b.fma(g, first, first), second)


def expm1(b: Arithmetic[V], x: V) -> V:
    """e^x - 1 = (2^n - 1 + 2^n r) + 2^n r^2 q(r), x = n ln 2 + r

    The bracket and r are sums of two floats; all terms are halved until the end, as 2^n may be 2^128.
    f32 0.91 ULP, f64 1.13; 31 and 35 ops.
    """
    bits = b.bits(x)
    low, high = {32: (-18.0, 89.0), 64: (-38.0, 710.0)}[bits]
    i, minus, r_main, r = reduce_exp(b, clamp(b, x, low, high), BIAS[bits] - 1)
    r_low = b.fma(minus, b.const(LN2_LOW[bits], x), b.sub(r_main, r))
    power, half = power_of_two(b, i, x), b.const(0.5, x)
    tail = b.fma(horner(b, EXP[bits], r), b.mul(r, r), r_low)
    base = b.sub(power, half)
    lost = b.sub(b.sub(power, base), half)              # of 2^n - 1, when n > 24
    main = b.fma(r, power, base)
    rest = b.fma(tail, power, b.add(b.fma(r, power, b.sub(base, main)), lost))
    result = b.mul(b.add(main, rest), b.const(2, x))
    return b.select(b.cmp("olt", b.abs(x), b.const(2.0**-60, x)), x, result)    # -0; part of a denormal is inexact


def sigmoid(b: Arithmetic[V], x: V) -> V:
    """1 / (1 + e^-x) = N / D with z = e^-|x|, D = 1 + z, N = 1 or, for x < 0, z

    N and D are sums of two floats; the quotient of the first ones gets one correction. f32 0.98 ULP,
    f64 1; 36 and 40 ops.
    """
    quotient, left, inverse, scale = _sigmoid_in_parts(b, x)
    return b.mul(b.fma(left, inverse, quotient), scale)


def silu(b: Arithmetic[V], x: V) -> V:
    """x / (1 + e^-x), as for sigmoid, with the product in two floats; only the final result may be denormal

    f32 1.02 ULP, f64 0.8; 45 and 49 ops.
    """
    x = clamp(b, x, _NO_EXP[b.bits(x)], None)
    quotient, left, inverse, scale = _sigmoid_in_parts(b, x)
    product, lost = two_product(b, quotient, x)
    result = b.mul(b.add(product, b.fma(b.mul(left, inverse), x, lost)), scale)
    return b.copysign(b.select(b.cmp("ogt", x, b.const(2.0**100, x)), x, result), x)


def _sigmoid_in_parts(b: Arithmetic[V], x: V) -> tuple[V, V, V, V]:
    """1 / (1 + e^-x) = (quotient + left inverse) scale, where scale is a power of two and nothing else denormal."""
    bits = b.bits(x)
    one, zero = b.const(1, x), b.const(0, x)
    i, g = exp_less_one(b, clamp(b, b.neg(b.abs(x)), _NO_EXP[bits], None), 2 * BIAS[bits])
    first, second = two_powers(b, i, x)
    z = b.fma(g, first, first)                          # e^-|x| / second
    z_low = b.fma(g, first, b.sub(first, z))
    d = b.fma(z, second, one)
    d_low = b.fma(z_low, second, b.fma(z, second, b.sub(one, d)))
    negative = b.cmp("olt", x, zero)
    n = b.select(negative, z, one)
    inverse = b.div(one, d)
    quotient = b.mul(n, inverse)
    left = b.fma(b.neg(quotient), d_low, b.add(b.fma(b.neg(quotient), d, n), b.select(negative, z_low, zero)))
    return quotient, left, inverse, b.select(negative, second, one)


def tanh(b: Arithmetic[V], x: V) -> V:
    """tanh x = x + x z p(z), z = x^2, for |x| < 1; else 1 - 2 / (1 + e^2x), with the sign of x

    Below 1 the error of the quotient would dominate, above it is scaled by at most 1/4. f32 0.93 ULP, f64 0.86;
    32 and 45 ops.
    """
    bits = b.bits(x)
    a, one = b.abs(x), b.const(1, x)
    i, g = exp_less_one(b, clamp(b, b.add(a, a), None, {32: 20.0, 64: 40.0}[bits]), BIAS[bits])
    power = power_of_two(b, i, x)
    large = b.sub(one, b.div(b.const(2, x), b.fma(g, power, b.add(power, one))))
    z = b.mul(a, a)
    small = b.fma(b.mul(horner(b, _TANH[bits], z), z), a, a)
    return b.copysign(b.select(b.cmp("olt", a, one), small, large), x)
