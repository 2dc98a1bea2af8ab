"""Expansions: powers and roots."""

from __future__ import annotations

import math

from mlc.dialects.expansions.arithmetic import (
    BIAS,
    LN2_LOW,
    LOG2E,
    LOG2E_LOW,
    Arithmetic,
    V,
    clamp,
    horner,
    power_of_two,
    round_scaled,
    table,
    two_powers,
)
from mlc.dialects.expansions.exponential import EXP2
from mlc.dialects.expansions.logarithm import log_domain, split, split_any

# Tables of tools/fit_polynomials.py, lowest degree first. The error is relative to the function's result.
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
_POW_EXP2 = table(  # (2^f - 1 - float(ln 2) f) / f^2 on [-0.5, 0.5], error 2^-34.17
    "0x1.ebfbe067cf8f6p-3 0x1.c6b08c050feebp-5 0x1.3b29fed05b506p-7 0x1.5d89be4027ee2p-10",
    "0x1.44550e599d3aep-13 0x1.fe7e529eadb22p-17",
)


def rsqrt(b: Arithmetic[V], x: V) -> V:
    """1 / sqrt x = y + y r / 2 with y = 1 / sqrt x of two roundings and r = 1 - x y^2, which two floats hold

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
    """x^y, given |x|^y: the sign of x when y is odd, NaN for x < 0 and y no integer, and what C says is 1."""
    half, one, infinity = b.mul(y, b.const(0.5, x)), b.const(1, x), b.const(math.inf, x)
    whole = b.roundeven(y)
    odd = b.iand(b.cmp("oeq", whole, y), b.cmp("une", b.roundeven(half), half))
    result = b.select(odd, b.copysign(magnitude, x), magnitude)
    negative = b.iand(b.cmp("olt", x, b.const(0, x)), b.cmp("ogt", x, b.neg(infinity)))
    result = b.select(b.iand(negative, b.cmp("une", whole, y)), b.const(math.nan, x), result)
    unit = b.iand(b.cmp("oeq", b.abs(x), one), b.cmp("oeq", b.abs(y), infinity))
    unit = b.ior(unit, b.ior(b.cmp("oeq", x, one), b.cmp("oeq", y, b.const(0, x))))
    return b.select(unit, one, result)


def _log2_in_f64(b: Arithmetic[V], x: V) -> V:
    """log2 x of a positive f32 given as f64, relative error below 2^-39."""
    k, m = split(b, x)
    f = b.sub(m, b.const(1, x))
    low = b.mul(b.mul(f, f), horner(b, _POW_LOG2, f))
    return b.add(b.sitofp(k), b.fma(f, b.const(LOG2E, x), low))


def _log2_in_two(b: Arithmetic[V], x: V) -> tuple[V, V]:
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


def pow(b: Arithmetic[V], x: V, y: V) -> V:
    """x^y = 2^(y log2 |x|), with C's special cases

    f32 is computed in f64 and rounded once more. f64 takes the logarithm and the product in two floats each.
    f32 0.504 ULP, f64 1.46; 73 and 124 ops.
    """
    return _raise_to(b, x, y, _pow_in_f64(b, b.abs(x), y) if b.bits(x) == 32 else _pow_in_two(b, b.abs(x), y))


def _pow_in_f64(b: Arithmetic[V], x: V, y: V) -> V:
    """x^y of f32, x not negative."""
    wide = b.extf(x)
    exponent = b.mul(log_domain(b, wide, 0, _log2_in_f64(b, wide)), b.extf(y))
    exponent = clamp(b, exponent, -160.0, 130.0)
    i, n = round_scaled(b, exponent, 1, BIAS[64])
    f = b.sub(exponent, n)
    g = b.fma(f, b.const(math.log(2), f), b.mul(b.mul(f, f), horner(b, _POW_EXP2, f)))
    power = power_of_two(b, i, f)
    return b.truncf(b.fma(g, power, power))


def _pow_in_two(b: Arithmetic[V], x: V, y: V) -> V:
    """x^y of f64, x not negative."""
    log, log_low = _log2_in_two(b, x)
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
