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


def split(b: Arithmetic[V], x: V, lowest: float = 0.75) -> tuple[V, V]:
    """x = 2^k m, lowest <= m < 2 lowest, of a normal positive x: (k as an integer, m)."""
    bits = b.bits(x)
    shift, i = b.iconst(MANTISSA[bits], x), b.bitcast_int(x)
    k = b.ashr(b.isub(i, b.iconst(float_bits(lowest, bits), x)), shift)
    return k, b.bitcast_float(b.isub(i, b.shl(k, shift)))


def split_any(b: Arithmetic[V], x: V, lowest: float = 0.75) -> tuple[V, V]:
    """The same of any positive x, denormal ones too: (k as a float, m)."""
    bits = b.bits(x)
    smallest = 2.0 ** (1 - BIAS[bits])
    up = MANTISSA[bits] + 1
    denormal = b.cmp("olt", x, b.const(smallest, x))
    k, m = split(b, b.select(denormal, b.mul(x, b.const(2.0**up, x)), x), lowest)
    return b.sub(b.sitofp(k), b.select(denormal, b.const(up, x), b.const(0, x))), m


def log_domain(b: Arithmetic[V], x: V, zero: float, result: V) -> V:
    """`result`, but inf for inf, -inf at `zero`, NaN below it and for NaN."""
    infinity = b.const(math.inf, x)
    result = b.select(b.cmp("oeq", x, infinity), infinity, result)
    limit = b.const(zero, x)
    outside = b.select(b.cmp("oeq", x, limit), b.const(-math.inf, x), b.const(math.nan, x))
    return b.select(b.cmp("ogt", x, limit), result, outside)


def log_of_parts(b: Arithmetic[V], k: V, f: V) -> V:
    """log(2^k (1 + f)) = (k ln 2 + f) + f^2 q(f), -0.25 <= f <= 0.5, the bracket in two floats."""
    bits = b.bits(f)
    ln2 = b.const(math.log(2), f)
    tail = b.fma(k, b.const(LN2_LOW[bits], f), b.mul(b.mul(f, f), horner(b, _LOG[bits], f)))
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


def log1p(b: Arithmetic[V], x: V) -> V:
    """log(1 + x) = k ln 2 + f + f^2 q(f), 1 + x = 2^k (1 + f)

    k comes from the rounded 1 + x and f = 2^-k x + (2^-k - 1) from x itself: exact until k = 24 (53), where x is all
    of 1 + x. f32 0.96 ULP, f64 0.89; 36 and 48 ops.
    """
    bits = b.bits(x)
    one, quarter = b.const(1, x), b.const(0.25, x)
    k, _ = split(b, b.add(x, one))
    power = power_of_two(b, b.isub(b.iconst(BIAS[bits] + 2, x), k), x)       # 2^(2-k): 2^-128 would be denormal
    f = b.fma(b.mul(x, quarter), power, b.fma(power, quarter, b.neg(one)))
    result = log_domain(b, x, -1, log_of_parts(b, b.sitofp(k), f))
    return b.select(b.cmp("olt", b.abs(x), b.const(2.0**-60, x)), x, result)    # -0; part of a denormal is inexact
