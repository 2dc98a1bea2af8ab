"""Expansions: powers and roots."""

from __future__ import annotations

import math

from mlc.dialects.expansions.arithmetic import (
    BIAS,
    LN2_LOW,
    Arithmetic,
    V,
    clamp,
    common_scale,
    horner,
    in_f64,
    power_of_two,
    round_scaled,
    table,
    two_powers,
)
from mlc.dialects.expansions.exponential import EXP2
from mlc.dialects.expansions.logarithm import log2_in_f64, log2_in_two, log_domain

# Tables of tools/fit_polynomials.py, lowest degree first. The error is relative to the function's result.
_POW_EXP2 = table(  # (2^f - 1 - float(ln 2) f) / f^2 on [-0.5, 0.5], error 2^-34.17
    "0x1.ebfbe067cf8f6p-3 0x1.c6b08c050feebp-5 0x1.3b29fed05b506p-7 0x1.5d89be4027ee2p-10",
    "0x1.44550e599d3aep-13 0x1.fe7e529eadb22p-17",
)


def rsqrt(b: Arithmetic[V], x: V) -> V:
    """1 / sqrt x = y + y r / 2, with y = 1 / sqrt x rounded twice, and r = 1 - x y^2 in two floats

    f32 and f64 0.51 ULP; 10 ops.
    """
    one = b.const(1, x)
    y = b.div(one, b.sqrt(x))
    product = b.mul(x, y)
    product_low = b.fma(x, y, b.neg(product))
    r = b.fma(b.neg(product_low), y, b.fma(b.neg(product), y, one))
    result = b.fma(b.mul(y, b.const(0.5, x)), r, y)
    return b.select(b.cmp("oeq", result, result), result, y)     # x is 0, inf, negative or NaN


def _raise_to(b: Arithmetic[V], x: V, y: V, magnitude: V) -> V:
    """x^y, given |x|^y: with the sign of x for odd y, NaN for x < 0 and non-integer y, and C's special cases of 1."""
    half, one, infinity = b.mul(y, b.const(0.5, x)), b.const(1, x), b.const(math.inf, x)
    whole = b.roundeven(y)
    odd = b.iand(b.cmp("oeq", whole, y), b.cmp("une", b.roundeven(half), half))
    result = b.select(odd, b.copysign(magnitude, x), magnitude)
    negative = b.iand(b.cmp("olt", x, b.const(0, x)), b.cmp("ogt", x, b.neg(infinity)))
    result = b.select(b.iand(negative, b.cmp("une", whole, y)), b.const(math.nan, x), result)
    unit = b.iand(b.cmp("oeq", b.abs(x), one), b.cmp("oeq", b.abs(y), infinity))
    unit = b.ior(unit, b.ior(b.cmp("oeq", x, one), b.cmp("oeq", y, b.const(0, x))))
    return b.select(unit, one, result)


def pow(b: Arithmetic[V], x: V, y: V) -> V:
    """x^y = 2^(y log2 |x|), with C's special cases

    f32 is computed in f64 and rounded once more. f64 takes the logarithm and the product in two floats each.
    f32 0.504 ULP, f64 1.46; 73 and 124 ops.
    """
    return _raise_to(b, x, y, _pow_in_f64(b, b.abs(x), y) if b.bits(x) == 32 else _pow_in_two(b, b.abs(x), y))


def _pow_in_f64(b: Arithmetic[V], x: V, y: V) -> V:
    """x^y of f32, for non-negative x."""
    wide = b.extf(x)
    exponent = b.mul(log_domain(b, wide, 0, log2_in_f64(b, wide)), b.extf(y))
    exponent = clamp(b, exponent, -160.0, 130.0)
    i, n = round_scaled(b, exponent, 1, BIAS[64])
    f = b.sub(exponent, n)
    g = b.fma(f, b.const(math.log(2), f), b.mul(b.mul(f, f), horner(b, _POW_EXP2, f)))
    power = power_of_two(b, i, f)
    return b.truncf(b.fma(g, power, power))


def _pow_in_two(b: Arithmetic[V], x: V, y: V) -> V:
    """x^y of f64, for non-negative x."""
    log, log_low = log2_in_two(b, x)
    log = log_domain(b, x, 0, log)
    exponent = b.mul(log, y)
    low = b.fma(log_low, y, b.fma(log, y, b.neg(exponent)))
    finite = b.cmp("olt", b.abs(exponent), b.const(1100, x))
    low = b.select(finite, low, b.const(0, x))
    exponent = clamp(b, exponent, -1100.0, 1100.0)
    i, n = round_scaled(b, exponent, 1, 2 * BIAS[64])
    whole = b.sub(exponent, n)
    f = b.add(whole, low)
    f_low = b.add(b.sub(whole, f), low)
    ln2 = b.const(math.log(2), x)
    tail = b.fma(f, b.const(LN2_LOW[64], x), b.mul(f_low, ln2))
    g = b.fma(f, ln2, b.fma(b.mul(f, f), horner(b, EXP2[64], f), tail))
    first, second = two_powers(b, i, x)
    return b.mul(b.fma(g, first, first), second)


def hypot(b: Arithmetic[V], x: V, y: V) -> V:
    """sqrt(x^2 + y^2) without intermediate overflow, inf if either is infinite; f32 is computed in f64

    f32 0.501 ULP, f64 1.12; 12 and 22 ops.
    """
    scaled, infinity = b.bits(x) == 64, b.const(math.inf, x)
    infinite = b.ior(b.cmp("oeq", b.abs(x), infinity), b.cmp("oeq", b.abs(y), infinity))

    def wide(b: Arithmetic[V], x: V, y: V) -> V:
        if not scaled:
            return b.sqrt(b.fma(x, x, b.mul(y, y)))
        x, y = b.abs(x), b.abs(y)
        factor = common_scale(b, x, y)
        x, y = b.mul(x, factor), b.mul(y, factor)
        return b.div(b.sqrt(b.fma(x, x, b.mul(y, y))), factor)

    return b.select(infinite, infinity, in_f64(b, wide, x, y))
