"""Correctly rounded operations that numpy lacks, with which the interpreter matches native code bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
TINY = np.finfo(np.float32).tiny
"""The least normal number of f32."""


def fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once; float32 or float64, element by element with broadcasting."""
    a, b, c = np.asarray(a), np.asarray(b), np.asarray(c)
    if not a.dtype == b.dtype == c.dtype:
        raise TypeError(f"fma: element types differ: {a.dtype}, {b.dtype}, {c.dtype}")
    with np.errstate(all="ignore"):
        if a.dtype == np.float32:
            return _fma32(a, b, c)
        if a.dtype == np.float64:
            return _fma64(a, b, c)
    raise TypeError(f"fma: {a.dtype} is not supported")


def flushed(x: Array) -> Array:
    """The numbers of f32, subnormal ones as zeros with their signs."""
    small = np.abs(x) < TINY
    return np.where(small, np.copysign(np.float32(0), x), x) if small.any() else x


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """a + b as the unevaluated sum of its rounded value and its error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """a * b as the unevaluated sum of its rounded value and its error (Veltkamp, Dekker), barring over- and underflow.
    """
    product = a * b
    a_high, b_high = a * 134217729.0, b * 134217729.0   # 2^27 + 1: the high halves have 26 bits
    a_high, b_high = a_high - (a_high - a), b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def sum_to_odd(a: Array, b: Array) -> Array:
    """a + b rounded to odd: if inexact, the neighbour whose last bit is 1.

    Rounding this to nearest, in a format with at least two bits less, equals rounding a + b directly (Boldo and
    Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
    """
    total, error = _two_sum(np.asarray(a), np.asarray(b))
    total = np.asarray(total)
    if not np.any(error):                                # no sum is rounded
        return total
    bits = total.view(np.int64)
    inexact = (error != 0) & (bits & 1 == 0) & np.isfinite(total)
    towards = np.where((error > 0) == (total > 0), 1, -1)
    return np.asarray(np.where(inexact, bits + towards, bits)).view(np.float64)


def _fma32(a: Array, b: Array, c: Array) -> Array:
    """The product is exact in float64; its sum with c is rounded to odd there, then to float32."""
    return np.asarray(sum_to_odd(a.astype(np.float64) * b, c.astype(np.float64)).astype(np.float32))


def _fma64(a: Array, b: Array, c: Array) -> Array:
    """The product as two floats, added to c with rounding to odd; rational arithmetic if it may over- or underflow."""
    shape = np.broadcast_shapes(a.shape, b.shape, c.shape)
    a, b, c = (np.broadcast_to(v, shape).ravel() for v in (a, b, c))
    product, error = _two_product(a, b)
    upper, upper_error = _two_sum(c, error)
    total, total_error = _two_sum(product, upper)
    result = np.asarray(total + sum_to_odd(total_error, upper_error))

    size = np.abs(product)
    safe = (np.maximum(np.abs(a), np.abs(b)) < 2.0**990) & (size > 2.0**-960) & (size < 2.0**1020)
    safe &= np.abs(c) < 2.0**1020
    if safe.all():
        return result.reshape(shape)
    tiny = (size <= 2.0**-960) & (np.abs(c) > 2.0**-800)        # far below half an ulp of c
    plain = (a == 0) | (b == 0) | ~(np.isfinite(a) & np.isfinite(b))
    settled = [plain, ~np.isfinite(c), safe, tiny]
    result = np.select(settled, [product + c, np.where(plain, product + c, c), result, c], result)
    for index in np.flatnonzero(~np.logical_or.reduce(settled)):
        result[index] = _fma_in_integers(float(a[index]), float(b[index]), float(c[index]))
    return np.asarray(result).reshape(shape)


def _fma_in_integers(a: float, b: float, c: float) -> float:
    """a * b + c of finite values, a * b not zero: Python rounds the quotient of two integers correctly."""
    from fractions import Fraction  # rarely needed: one value in millions gets here

    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")
