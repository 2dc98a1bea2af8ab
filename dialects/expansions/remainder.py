"""Expansions: exact remainders and floor division."""

from __future__ import annotations

from mlc.dialects.expansions.arithmetic import Arithmetic, V

_STEP = 2.0**50
"""A quotient below this rounds to an integer without error, and the remaining dividend is exact."""


def _fmod(b: Arithmetic[V], x: V, y: V, steps: int) -> V:
    """C's fmod(x, y) in f64, exactly: subtracts multiples of |y| 2^(50 k) from |x|, the largest k first."""
    rest, scale, zero = b.abs(x), b.const(_STEP, x), b.const(0, x)
    units = [b.abs(y)]
    for _ in range(steps - 1):
        units.append(b.mul(units[-1], scale))
    for unit in reversed(units):
        left = b.fma(b.neg(b.roundeven(b.div(rest, unit))), unit, rest)
        left = b.select(b.cmp("olt", left, zero), b.add(left, unit), left)
        rest = b.select(b.cmp("ogt", unit, rest), rest, left)       # also for a unit that overflowed
    return b.copysign(rest, x)


def fmod(b: Arithmetic[V], x: V, y: V) -> V:
    """x - y trunc(x / y), exactly, with the sign of x; f32 is computed in f64

    6 and 43 steps of 2^50 span the exponents of f32 and f64; 40 and 300 ops.
    """
    if b.bits(x) == 32:
        return b.truncf(_fmod(b, b.extf(x), b.extf(y), 6))
    return _fmod(b, x, y, 43)


def rem(b: Arithmetic[V], x: V, y: V) -> V:
    """x - y floor(x / y), with the sign of y: the exact fmod, plus y where the signs differ"""
    rest, zero = fmod(b, x, y), b.const(0, x)
    opposite = b.ixor(b.cmp("olt", rest, zero), b.cmp("olt", y, zero))
    moved = b.select(opposite, b.add(rest, y), rest)
    return b.select(b.cmp("oeq", rest, zero), b.copysign(zero, y), moved)


def floordiv(b: Arithmetic[V], x: V, y: V) -> V:
    """floor(x / y) from the exact remainder, as Python's //; x / y if y is 0"""
    rest, zero, one = fmod(b, x, y), b.const(0, x), b.const(1, x)
    quotient = b.div(b.sub(x, rest), y)
    opposite = b.iand(b.ixor(b.cmp("olt", rest, zero), b.cmp("olt", y, zero)), b.cmp("une", rest, zero))
    quotient = b.select(opposite, b.sub(quotient, one), quotient)
    near = b.roundeven(quotient)
    floor = b.select(b.cmp("ogt", near, quotient), b.sub(near, one), near)
    floor = b.select(b.cmp("ogt", b.sub(quotient, floor), b.const(0.5, x)), b.add(floor, one), floor)
    simple = b.div(x, y)
    floor = b.select(b.cmp("oeq", quotient, zero), b.copysign(zero, simple), floor)
    return b.select(b.cmp("oeq", y, zero), simple, floor)
