"""Expansions: logarithms."""

from __future__ import annotations

import math

from mlc.dialects.expansions.arithmetic import (
    BIAS,
    LN2_LOW,
    LOG2E,
    LOG2E_LOW,
    MANTISSA,
    Arithmetic,
    V,
    float_bits,
    horner,
    power_of_two,
    table,
    two_product,
)

# Tables of tools/fit_polynomials.py, lowest degree first. The error is relative to the function's result.
_LOG = {   # (log(1+f) - f) / f^2
    32: table(  # on [-0.25, 0.5], error 2^-27.5
        "-0x1.p-1 0x1.5555acp-2 -0x1.000082p-2 0x1.996708p-3",
        "-0x1.54d686p-3 0x1.28777p-3 -0x1.0e9674p-3 0x1.b20b1p-4",
        "-0x1.796c98p-5",
    ),
    64: table(  # on [-0.25, 0.5], error 2^-59.29
        "-0x1.fffffffffffffp-2 0x1.5555555555543p-2 -0x1.00000000002b9p-2 0x1.999999999d815p-3",
        "-0x1.5555555518275p-3 0x1.2492492224534p-3 -0x1.000000111f26p-3 0x1.c71c73457a781p-4",
        "-0x1.999995c3f3d76p-4 0x1.745cd7353898cp-4 -0x1.55554e960a8abp-4 0x1.3b1992e91a282p-4",
        "-0x1.249e20b0ac879p-4 0x1.10ce613cb0a86p-4 -0x1.fdd6b6e9166cap-5 0x1.e2bb9490947fep-5",
        "-0x1.d9e3a240de216p-5 0x1.d0252d67805cfp-5 -0x1.8244809dca625p-5 0x1.b13ae4ccc840ap-6",
        "-0x1.cb6ffbd564a1bp-8",
    ),
}
_LOG2 = {   # (log2(1+f) - f log2 e) / f^2
    32: table(  # on [-0.292893, 0.414214], error 2^-30.12
        "-0x1.715476p-1 0x1.ec7086p-2 -0x1.7154d6p-2 0x1.277fc6p-2",
        "-0x1.ec61c6p-3 0x1.a3ee56p-3 -0x1.6fe02ep-3 0x1.61d42cp-3",
        "-0x1.52cc52p-3 0x1.7605fep-4",
    ),
    64: table(  # on [-0.292893, 0.414214], error 2^-58.34
        "-0x1.71547652b82fep-1 0x1.ec709dc3a0452p-2 -0x1.71547652b83dap-2 0x1.2776c50ef1edp-2",
        "-0x1.ec709dc37cb2bp-3 0x1.a61762afa023bp-3 -0x1.7154766627ce8p-3 0x1.484b11e1e2786p-3",
        "-0x1.2776bfa0d6ad1p-3 0x1.0c9ac94866488p-3 -0x1.ec7255c4642cep-4 0x1.c68472e85ffd5p-4",
        "-0x1.a5eddc5a3578ep-4 0x1.8a6f0aefd011bp-4 -0x1.73b0cac300f59p-4 0x1.5939d7f42b453p-4",
        "-0x1.346462b818d02p-4 0x1.3214974f0ffebp-4 -0x1.7be18d67df353p-4 0x1.7de807515ac7p-4",
        "-0x1.5fc9a2d607d24p-5",
    ),
}

_POW_LOG = table(  # (2 atanh(s) - 2 s - 2/3 s^3) / s^5 in s^2 on [0.0, 0.04], error 2^-69.05
    "0x1.9999999999968p-2 0x1.2492492498d3dp-2 0x1.c71c71bc7812cp-3 0x1.745d1bc2d2dfbp-3",
    "0x1.3b129913d8b5dp-3 0x1.113a0514e9475p-3 0x1.dad2a59241e6fp-4 0x1.0176bc0c5793dp-3",
)
_POW_LOG2 = table(  # (log2(1+f) - f log2 e) / f^2 on [-0.25, 0.5], error 2^-38.44
    "-0x1.71547653f470bp-1 0x1.ec709dca62ae8p-2 -0x1.715473c5e66f5p-2 0x1.2776bd5de2f1cp-2",
    "-0x1.ec72080ab8066p-3 0x1.a61ccf0575042p-3 -0x1.712f61d345082p-3 0x1.47882888ae701p-3",
    "-0x1.2871efa1a616ap-3 0x1.17b29a4350189p-3 -0x1.038c727934e0bp-3 0x1.72d9389c1a191p-4",
    "-0x1.089c417fd492fp-5",
)


def split(b: Arithmetic[V], x: V, lowest: float = 0.75) -> tuple[V, V]:
    """x = 2^k m, lowest <= m < 2 lowest, of a normal positive x: (k as an integer, m)."""
    bits = b.bits(x)
    shift, i = b.iconst(MANTISSA[bits], x), b.bitcast_int(x)
    k = b.ashr(b.isub(i, b.iconst(float_bits(lowest, bits), x)), shift)
    return k, b.bitcast_float(b.isub(i, b.shl(k, shift)))


def split_any(b: Arithmetic[V], x: V, lowest: float = 0.75) -> tuple[V, V]:
    """`split` for any positive x, including denormals: (k as a float, m)."""
    bits = b.bits(x)
    smallest = 2.0 ** (1 - BIAS[bits])
    up = MANTISSA[bits] + 1
    denormal = b.cmp("olt", x, b.const(smallest, x))
    k, m = split(b, b.select(denormal, b.mul(x, b.const(2.0**up, x)), x), lowest)
    return b.sub(b.sitofp(k), b.select(denormal, b.const(up, x), b.const(0, x))), m


def log_domain(b: Arithmetic[V], x: V, zero: float, result: V) -> V:
    """`result`, with the special cases inf for inf, -inf at `zero`, NaN below it and for NaN."""
    infinity = b.const(math.inf, x)
    result = b.select(b.cmp("oeq", x, infinity), infinity, result)
    limit = b.const(zero, x)
    outside = b.select(b.cmp("oeq", x, limit), b.const(-math.inf, x), b.const(math.nan, x))
    return b.select(b.cmp("ogt", x, limit), result, outside)


def log_of_parts(b: Arithmetic[V], k: V, f: V, extra: V | None = None) -> V:
    """log(2^k (1 + f)) + extra = (k ln 2 + f) + f^2 q(f) + extra, -0.25 <= f <= 0.5, the bracket in two floats."""
    bits = b.bits(f)
    ln2 = b.const(math.log(2), f)
    tail = b.fma(k, b.const(LN2_LOW[bits], f), b.mul(b.mul(f, f), horner(b, _LOG[bits], f)))
    tail = tail if extra is None else b.add(tail, extra)
    main = b.fma(k, ln2, f)
    return b.add(main, b.add(tail, b.add(b.fma(k, ln2, b.neg(main)), f)))


def log(b: Arithmetic[V], x: V) -> V:
    """log x = k ln 2 + f + f^2 q(f), x = 2^k (1 + f); f32 0.96 ULP, f64 0.9; 33 and 45 ops."""
    k, m = split_any(b, x)
    return log_domain(b, x, 0, log_of_parts(b, k, b.sub(m, b.const(1, x))))


def log2(b: Arithmetic[V], x: V) -> V:
    """log2 x = (k + f log2 e) + f^2 q(f), x = 2^k (1 + f), the bracket in two floats

    sqrt(1/2) <= 1 + f < sqrt 2, so that results of k = -1 and 1 are not below 1/2, the tail being the larger error.
    f32 0.96 ULP, f64 0.91; 36 and 47 ops.
    """
    bits = b.bits(x)
    k, m = split_any(b, x, math.sqrt(0.5))
    f = b.sub(m, b.const(1, x))
    scale = b.const(LOG2E, x)
    linear = b.mul(f, scale)
    linear_low = b.fma(f, b.const(LOG2E_LOW[bits], x), b.fma(f, scale, b.neg(linear)))
    main = b.add(k, linear)
    main_low = b.add(b.add(b.sub(k, main), linear), linear_low)
    return log_domain(b, x, 0, b.add(main, b.fma(b.mul(f, f), horner(b, _LOG2[bits], f), main_low)))


def split_one_plus(b: Arithmetic[V], x: V) -> tuple[V, V, V]:
    """1 + x = 2^k (1 + f): (k as a float, f, 2^(2-k))

    k comes from the rounded 1 + x and f = 2^-k x + (2^-k - 1) from x itself: exact until k = 24 (53), where x is all
    of 1 + x.
    """
    bits = b.bits(x)
    one, quarter = b.const(1, x), b.const(0.25, x)
    k, _ = split(b, b.add(x, one))
    power = power_of_two(b, b.isub(b.iconst(BIAS[bits] + 2, x), k), x)       # 2^-k could be denormal
    return b.sitofp(k), b.fma(b.mul(x, quarter), power, b.fma(power, quarter, b.neg(one))), power


def log1p(b: Arithmetic[V], x: V) -> V:
    """log(1 + x) = k ln 2 + f + f^2 q(f), 1 + x = 2^k (1 + f); f32 0.96 ULP, f64 0.89; 36 and 48 ops."""
    k, f, _ = split_one_plus(b, x)
    result = log_domain(b, x, -1, log_of_parts(b, k, f))
    return b.select(b.cmp("olt", b.abs(x), b.const(2.0**-60, x)), x, result)    # -0; part of a denormal is inexact


def log_one_plus_two(b: Arithmetic[V], x: V, low: V, twice: V) -> V:
    """log(1 + x + low), and ln 2 more where `twice`; x is not below 2^-60 and finite, low a part of its last place."""
    k, f, power = split_one_plus(b, x)
    one = b.const(1, x)
    slope = b.fma(f, b.sub(f, one), one)                # nearly 1 / (1 + f)
    extra = b.mul(b.mul(b.mul(low, b.const(0.25, x)), power), slope)
    return log_of_parts(b, b.select(twice, b.add(k, one), k), f, extra)


def log2_in_f64(b: Arithmetic[V], x: V) -> V:
    """log2 x of a positive f32 given as f64, relative error below 2^-39."""
    k, m = split(b, x)
    f = b.sub(m, b.const(1, x))
    low = b.mul(b.mul(f, f), horner(b, _POW_LOG2, f))
    return b.add(b.sitofp(k), b.fma(f, b.const(LOG2E, x), low))


def log2_in_two(b: Arithmetic[V], x: V) -> tuple[V, V]:
    """log2 x of a positive f64 as a sum of two floats, relative error about 2^-64

    x = 2^k m and s = (m - 1) / (m + 1): log m = 2 s + s^3 (2/3 + s^2 p(s^2)), all but p in two floats.
    """
    k, m = split_any(b, x)
    one = b.const(1, x)
    f, d = b.sub(m, one), b.add(m, one)
    inverse = b.div(one, d)
    s = b.mul(f, inverse)
    minus = b.neg(s)
    s_low = b.mul(b.fma(minus, b.sub(m, b.sub(d, one)), b.fma(minus, d, f)), inverse)
    z = b.mul(s, s)
    z_low = b.fma(b.add(s, s), s_low, b.fma(s, s, b.neg(z)))
    third, third_low = b.const(2 / 3, x), b.const(float.fromhex("0x1.5555555555555p-55"), x)
    tail = horner(b, _POW_LOG, z)
    c = b.fma(tail, z, third)
    c_low = b.add(b.fma(tail, z, b.sub(third, c)), third_low)
    cube = b.mul(s, z)                                  # s^3
    cube_low = b.add(b.fma(s, z, b.neg(cube)), b.fma(s, z_low, b.mul(s_low, z)))
    term = b.mul(cube, c)
    term_low = b.add(b.fma(cube, c, b.neg(term)), b.fma(cube, c_low, b.mul(cube_low, c)))
    double = b.add(s, s)
    log = b.add(double, term)
    log_low = b.add(b.add(b.sub(double, log), term), b.fma(b.const(2, x), s_low, term_low))
    scale = b.const(LOG2E, x)
    fraction = b.mul(log, scale)
    fraction_low = b.fma(log, b.const(LOG2E_LOW[64], x), b.fma(log_low, scale, b.fma(log, scale, b.neg(fraction))))
    whole = b.add(k, fraction)
    return whole, b.add(b.add(b.sub(k, whole), fraction), fraction_low)


_LOG10_2_LOW = float.fromhex("-0x1.9dc1da994fd21p-59")             # log10 2 less its nearest f64


def log10(b: Arithmetic[V], x: V) -> V:
    """log10 x = log2 x log10 2, f32 in f64, f64 in two floats; f32 0.501 ULP, f64 0.501; 31 and 69 ops."""
    if b.bits(x) == 32:
        wide = b.extf(x)
        return b.truncf(log_domain(b, wide, 0, b.mul(log2_in_f64(b, wide), b.const(math.log10(2), wide))))
    log, log_low = log2_in_two(b, x)
    scale = b.const(math.log10(2), x)
    main, lost = two_product(b, log, scale)
    low = b.fma(log, b.const(_LOG10_2_LOW, x), b.fma(log_low, scale, lost))
    return log_domain(b, x, 0, b.add(main, low))
