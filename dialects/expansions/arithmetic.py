"""The arithmetic interface of expansions, and their common building blocks."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Protocol, TypeVar

V = TypeVar("V")


class Arithmetic(Protocol[V]):
    """Operations available to an expansion. A value V is a float, an integer or a truth value, scalar or shaped.

    Floats have 32 or 64 bits; integers are signless and as wide as the floats; shift amounts are below the width.
    Comparisons of floats are ordered (`oeq olt ole ogt oge`: false for NaN) or `une`; those of integers are
    `eq ne slt sle sgt sge`. Both operands of an operation have the same type.
    """

    def bits(self, x: V, /) -> int:
        """32 or 64: the width of a float or an integer."""

    def const(self, value: float, like: V, /) -> V:
        """The float of the width and shape of `like` (a float) that is nearest to `value`."""

    def iconst(self, value: int, like: V, /) -> V:
        """The integer, modulo 2^bits, of the width and shape of `like` (a float or an integer)."""

    def add(self, a: V, b: V, /) -> V: ...
    def sub(self, a: V, b: V, /) -> V: ...
    def mul(self, a: V, b: V, /) -> V: ...
    def div(self, a: V, b: V, /) -> V: ...

    def fma(self, a: V, b: V, c: V, /) -> V:
        """a * b + c, rounded once."""

    def neg(self, a: V, /) -> V:
        """The sign bit flipped, also of zeros and NaN."""

    def abs(self, a: V, /) -> V: ...

    def copysign(self, magnitude: V, sign: V, /) -> V: ...
    def sqrt(self, a: V, /) -> V: ...

    def roundeven(self, a: V, /) -> V:
        """The nearest integer, ties to even, with the sign of a."""

    def sitofp(self, a: V, /) -> V:
        """Integer to float of the same width, nearest even."""

    def bitcast_int(self, a: V, /) -> V: ...
    def bitcast_float(self, a: V, /) -> V: ...

    def extf(self, a: V, /) -> V:
        """f32 to f64."""

    def truncf(self, a: V, /) -> V:
        """f64 to f32, nearest even."""

    def iadd(self, a: V, b: V, /) -> V: ...
    def isub(self, a: V, b: V, /) -> V: ...
    def shl(self, a: V, b: V, /) -> V: ...
    def lshr(self, a: V, b: V, /) -> V: ...
    def ashr(self, a: V, b: V, /) -> V: ...

    def iand(self, a: V, b: V, /) -> V:
        """Bitwise on integers, or logical on truth values; likewise `ior` and `ixor`."""

    def ior(self, a: V, b: V, /) -> V: ...
    def ixor(self, a: V, b: V, /) -> V: ...
    def cmp(self, predicate: str, a: V, b: V, /) -> V: ...
    def icmp(self, predicate: str, a: V, b: V, /) -> V: ...
    def select(self, condition: V, a: V, b: V, /) -> V: ...


def table(*rows: str) -> tuple[float, ...]:
    return tuple(float.fromhex(word) for row in rows for word in row.split())


MANTISSA = {32: 23, 64: 52}                    # stored bits of the significand
BIAS = {32: 127, 64: 1023}                     # of the exponent
ROUNDER = {32: 1.5 * 2**23, 64: 1.5 * 2**52}   # adding this moves the units of x to the lowest bits
LN2_LOW = dict(zip((32, 64), table("-0x1.05c610ca86c39p-29 0x1.abc9e3b39803fp-56")))     # ln 2 less its nearest float
LOG2E = 1 / math.log(2)
LOG2E_LOW = dict(zip((32, 64), table("0x1.4ae0bf85ddf44p-26 0x1.777d0ffda0d24p-56")))    # log2 e less its nearest


def horner(b: Arithmetic[V], coefficients: tuple[float, ...], x: V) -> V:
    """sum coefficients[k] x^k, one fma per term."""
    result = b.const(coefficients[-1], x)
    for c in reversed(coefficients[:-1]):
        result = b.fma(result, x, b.const(c, x))
    return result


def clamp(b: Arithmetic[V], x: V, low: float | None, high: float | None) -> V:
    """min(max(x, low), high), propagating NaN; `select` in this order is one instruction each on x86."""
    if high is not None:
        limit = b.const(high, x)
        x = b.select(b.cmp("olt", limit, x), limit, x)
    if low is not None:
        limit = b.const(low, x)
        x = b.select(b.cmp("ogt", limit, x), limit, x)
    return x


def float_bits(value: float, bits: int) -> int:
    """The integer with the bits of a float."""
    return int(struct.unpack("<I" if bits == 32 else "<Q", struct.pack("<f" if bits == 32 else "<d", value))[0])


def round_scaled(b: Arithmetic[V], x: V, scale: float, bias: int) -> tuple[V, V]:
    """n = x scale rounded to an integer, |n| < 2^20: (n + bias in the low bits of an integer, n as a float)."""
    magic = b.const(ROUNDER[b.bits(x)] + bias, x)
    t = b.add(x, magic) if scale == 1 else b.fma(x, b.const(scale, x), magic)
    return b.bitcast_int(t), b.sub(t, magic)


def power_of_two(b: Arithmetic[V], i: V, like: V) -> V:
    """2^(low bits of i - the bias of exponents)"""
    return b.bitcast_float(b.shl(i, b.iconst(MANTISSA[b.bits(like)], like)))


def two_powers(b: Arithmetic[V], i: V, like: V) -> tuple[V, V]:
    """Two factors of 2^(low bits of i - twice the bias), both far from overflow and underflow."""
    half = b.lshr(i, b.iconst(1, like))
    return power_of_two(b, half, like), power_of_two(b, b.isub(i, half), like)


def two_sum(b: Arithmetic[V], x: V, y: V) -> tuple[V, V]:
    """x + y as the unevaluated sum of its rounded value and its error (Knuth)."""
    total = b.add(x, y)
    part = b.sub(total, x)
    return total, b.add(b.sub(x, b.sub(total, part)), b.sub(y, part))


def two_product(b: Arithmetic[V], x: V, y: V) -> tuple[V, V]:
    """x y as the unevaluated sum of its rounded value and its error."""
    product = b.mul(x, y)
    return product, b.fma(x, y, b.neg(product))


def quotient_error(b: Arithmetic[V], quotient: V, n: V, d: V, n_low: V, d_low: V) -> V:
    """Difference between (n + n_low) / (d + d_low) and the rounded quotient n / d."""
    minus = b.neg(quotient)
    return b.div(b.add(b.fma(minus, d_low, n_low), b.fma(minus, d, n)), d)


def in_f64(b: Arithmetic[V], function: Callable[..., V], *xs: V) -> V:
    """function(*xs), where f32 is computed in f64 and rounded once more; `function` gets f64 only."""
    if b.bits(xs[0]) == 32:
        return b.truncf(function(b, *(b.extf(x) for x in xs)))
    return function(b, *xs)


def common_scale(b: Arithmetic[V], x: V, y: V) -> V:
    """A power of two by which to scale finite, non-negative f64 x and y: their squares, sums and quotients do not
    overflow then, and the square of the larger one does not underflow."""
    def either(predicate: str, limit: float) -> tuple[V, V]:
        return b.cmp(predicate, x, b.const(limit, x)), b.cmp(predicate, y, b.const(limit, x))

    one = b.const(1, x)
    factor = b.select(b.iand(*either("olt", 2.0**-400)), b.const(2.0**600, x), one)
    return b.select(b.ior(*either("ogt", 2.0**400)), b.const(2.0**-600, x), factor)
