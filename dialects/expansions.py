"""Elementary functions as IEEE arithmetic: exp, log, tanh, erf, sin, pow ... without calls, branches or gathers.

Each function is written once, over `Arithmetic`: with numpy behind it, it computes; with a builder behind it, it emits
ops on scalars, vectors or tensors. Every primitive is either exact or correctly rounded, so both give the same bits
(a NaN is a NaN: its payload is not part of the promise).

The errors stated are the largest |result - true value| in units of the last place of the true value: for f32 over all
2^32 inputs (pow: 2 * 10^7 pairs), for f64 over 10^7 samples. `tests/test_expansions.py` repeats both on fewer points
and has the exhaustive one as a slow test. Denormals are neither flushed nor lost. Counts of ops, f32 and f64, leave
out constants, bit casts and negations. The polynomials come from `tools/fit_polynomials.py`, which says what each is
fitted to and how.
"""

from __future__ import annotations

import math
import struct
from typing import Protocol, TypeVar

V = TypeVar("V")


class Arithmetic(Protocol[V]):
    """What an expansion may use. A value V is a float, an integer or a truth value, alone or as many of a shape.

    Floats have 32 or 64 bits, integers the width of the floats they go with and no sign of their own; shifts are by
    less than the width. Comparisons of floats are ordered (`oeq olt ole ogt oge`: false for NaN) or `une`;
    of integers `eq ne slt sle sgt sge`. Both operands of anything have the same type.
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
        """The nearest integer, of two the even one, with the sign of a."""

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
        """Of integers bit by bit, or of truth values; so are `ior` and `ixor`."""

    def ior(self, a: V, b: V, /) -> V: ...
    def ixor(self, a: V, b: V, /) -> V: ...
    def cmp(self, predicate: str, a: V, b: V, /) -> V: ...
    def icmp(self, predicate: str, a: V, b: V, /) -> V: ...
    def select(self, condition: V, a: V, b: V, /) -> V: ...


def _table(*rows: str) -> tuple[float, ...]:
    return tuple(float.fromhex(word) for row in rows for word in row.split())


# Tables of tools/fit_polynomials.py, lowest degree first. The error is relative to the function's result.

_EXP = {   # (exp r - 1 - r) / r^2
    32: _table(  # on [-0.346574, 0.346574], error 2^-31.25
        "0x1.p-1 0x1.55553cp-3 0x1.5554f2p-5 0x1.11371ep-7",
        "0x1.6d40e6p-10 0x1.6b951ep-13",
    ),
    64: _table(  # on [-0.346574, 0.346574], error 2^-57.9
        "0x1.000000000000ap-1 0x1.5555555555503p-3 0x1.5555555550601p-5 0x1.1111111124d19p-7",
        "0x1.6c16c184b6c2dp-10 0x1.a01a013d68f11p-13 0x1.a01998890d32fp-16 0x1.71def3bc44675p-19",
        "0x1.28aede197635dp-22 0x1.add8a80443aa7p-26",
    ),
}
_EXP2 = {   # (2^f - 1 - float(ln 2) f) / f^2
    32: _table(  # on [-0.5, 0.5], error 2^-28.25
        "0x1.ebfbdcp-3 0x1.c6af76p-5 0x1.3b2db2p-7 0x1.5f0c74p-10",
        "0x1.41adf8p-13",
    ),
    64: _table(  # on [-0.5, 0.5], error 2^-59.7
        "0x1.ebfbdff82c58ep-3 0x1.c6b08d704a1c4p-5 0x1.3b2ab6fba5262p-7 0x1.5d87fe7879a49p-10",
        "0x1.430912f6dc401p-13 0x1.ffcbfd26bb1a4p-17 0x1.62c02a1d7a5bep-20 0x1.b523883437d14p-24",
        "0x1.e4ad42333510cp-28 0x1.ebdf568f1363ep-32 0x1.f8aeff167ccb9p-36",
    ),
}
_LOG = {   # (log(1+f) - f) / f^2
    32: _table(  # on [-0.25, 0.5], error 2^-27.5
        "-0x1.p-1 0x1.5555acp-2 -0x1.000082p-2 0x1.996708p-3",
        "-0x1.54d686p-3 0x1.28777p-3 -0x1.0e9674p-3 0x1.b20b1p-4",
        "-0x1.796c98p-5",
    ),
    64: _table(  # on [-0.25, 0.5], error 2^-59.29
        "-0x1.fffffffffffffp-2 0x1.5555555555543p-2 -0x1.00000000002b9p-2 0x1.999999999d815p-3",
        "-0x1.5555555518275p-3 0x1.2492492224534p-3 -0x1.000000111f26p-3 0x1.c71c73457a781p-4",
        "-0x1.999995c3f3d76p-4 0x1.745cd7353898cp-4 -0x1.55554e960a8abp-4 0x1.3b1992e91a282p-4",
        "-0x1.249e20b0ac879p-4 0x1.10ce613cb0a86p-4 -0x1.fdd6b6e9166cap-5 0x1.e2bb9490947fep-5",
        "-0x1.d9e3a240de216p-5 0x1.d0252d67805cfp-5 -0x1.8244809dca625p-5 0x1.b13ae4ccc840ap-6",
        "-0x1.cb6ffbd564a1bp-8",
    ),
}
_LOG2 = {   # (log2(1+f) - f log2 e) / f^2
    32: _table(  # on [-0.292893, 0.414214], error 2^-30.12
        "-0x1.715476p-1 0x1.ec7086p-2 -0x1.7154d6p-2 0x1.277fc6p-2",
        "-0x1.ec61c6p-3 0x1.a3ee56p-3 -0x1.6fe02ep-3 0x1.61d42cp-3",
        "-0x1.52cc52p-3 0x1.7605fep-4",
    ),
    64: _table(  # on [-0.292893, 0.414214], error 2^-58.34
        "-0x1.71547652b82fep-1 0x1.ec709dc3a0452p-2 -0x1.71547652b83dap-2 0x1.2776c50ef1edp-2",
        "-0x1.ec709dc37cb2bp-3 0x1.a61762afa023bp-3 -0x1.7154766627ce8p-3 0x1.484b11e1e2786p-3",
        "-0x1.2776bfa0d6ad1p-3 0x1.0c9ac94866488p-3 -0x1.ec7255c4642cep-4 0x1.c68472e85ffd5p-4",
        "-0x1.a5eddc5a3578ep-4 0x1.8a6f0aefd011bp-4 -0x1.73b0cac300f59p-4 0x1.5939d7f42b453p-4",
        "-0x1.346462b818d02p-4 0x1.3214974f0ffebp-4 -0x1.7be18d67df353p-4 0x1.7de807515ac7p-4",
        "-0x1.5fc9a2d607d24p-5",
    ),
}
_TANH = {   # (tanh(x)/x - 1) / x^2 in x^2
    32: _table(  # on [0.0, 1.0], error 2^-27.68
        "-0x1.55553cp-2 0x1.110be6p-3 -0x1.b96284p-5 0x1.600baap-6",
        "-0x1.0466ap-7 0x1.2db53cp-9 -0x1.7800c8p-12",
    ),
    64: _table(  # on [0.0, 1.0], error 2^-59.77
        "-0x1.555555555554fp-2 0x1.1111111110b21p-3 -0x1.ba1ba1b9dd83ep-5 0x1.664f48787370fp-6",
        "-0x1.226e3458bafb8p-7 0x1.d6d3aed2495ccp-9 -0x1.7da1da2490aa6p-10 0x1.354b48d024a73p-11",
        "-0x1.f4de8c0be8a7ep-13 0x1.939b3d8ae82a3p-14 -0x1.3f4b1778e6d6bp-15 0x1.df1bb4ba8e194p-17",
        "-0x1.3f3d4eff82e8ap-18 0x1.5526d4b4603e2p-20 -0x1.f4278d8ccbb25p-23 0x1.6dcf0ad742216p-26",
    ),
}
_ERF = {   # erf(x)/x - 1 in x^2
    32: _table(  # on [0.0, 1.0], error 2^-29.39
        "0x1.06eba8p-3 -0x1.81273ep-2 0x1.ce2ce6p-4 -0x1.b7f71ap-6",
        "0x1.53f224p-8 -0x1.a3515ep-11 0x1.4771fcp-14",
    ),
    64: _table(  # on [0.0, 1.0], error 2^-56.34
        "0x1.06eba8214db69p-3 -0x1.812746b037a25p-2 0x1.ce2f21a0458e2p-4 -0x1.b82ce313552f9p-6",
        "0x1.565bcd2c79acdp-8 -0x1.c02db938b48bap-11 0x1.f9a3ba2590804p-14 -0x1.f4dd04d0d2deep-17",
        "0x1.ba6a3e87e52e9p-20 -0x1.639c3d8f9b958p-23 0x1.1366dc30cd507p-26 -0x1.c69f76aa62ac6p-30",
        "0x1.3e74dff95e37p-33",
    ),
}
_ERFC = {   # -log erfc t
    32: _table(  # on [1.0, 4.0], error 2^-29.79
        "0x1.667f24p-12 0x1.2088d2p+0 0x1.46bb3ep-1 0x1.a651p-4",
        "-0x1.65c70ep-6 0x1.8251f6p-9 -0x1.86ce92p-13",
    ),
    64: _table(  # on [1.0, 6.0], error 2^-62.32
        "0x1.de158dba2b5bap-26 0x1.20dd70cb62372p+0 0x1.45f3272d5137fp-1 0x1.a4f301ca4eb62p-4",
        "-0x1.3964cd8055b0cp-6 -0x1.a849b270b2dafp-13 0x1.b715e623d67b7p-10 -0x1.219a20418814ep-11",
        "-0x1.711c3dc6dd2bdp-16 0x1.d0a50ed323b67p-14 -0x1.0f9f131306854p-14 0x1.97589cf6ab5f3p-16",
        "-0x1.c74407d29cc3p-18 0x1.8a829f1a4b394p-20 -0x1.0a6da34b7385ap-22 0x1.1489e8fc485fep-25",
        "-0x1.ab2977daa2c01p-29 0x1.ceebcebebe586p-33 -0x1.3a210c07d9662p-37 0x1.91a7839a4a50ap-43",
    ),
}
_SIN = {   # (sin(r)/r - 1) / r^2 in r^2
    32: _table(  # on [0.0, 0.61685], error 2^-37.5
        "-0x1.5555554c71804p-3 0x1.1111086a6488dp-7 -0x1.a00f7f43de3c4p-13 0x1.6cd1fc7ba03f4p-19",
    ),
    64: _table(  # on [0.0, 0.61685], error 2^-63.23
        "-0x1.5555555555555p-3 0x1.1111111111069p-7 -0x1.a01a019ffe51bp-13 0x1.71de3a33a40a9p-19",
        "-0x1.ae642c4eba4bap-26 0x1.6109baee7fa8bp-33 -0x1.9ffbeab738994p-41",
    ),
}
_COS = {   # (cos r - 1 + r^2/2) / r^4 in r^2
    32: _table(  # on [0.0, 0.61685], error 2^-42.94
        "0x1.5555554ed99d2p-5 -0x1.6c16b82a4ca56p-10 0x1.a010def9b01a3p-16 -0x1.241ea4c597fdbp-22",
    ),
    64: _table(  # on [0.0, 0.61685], error 2^-63.94
        "0x1.555555555554bp-5 -0x1.6c16c16c15016p-10 0x1.a01a019c8f51ep-16 -0x1.27e4f7f1bb85fp-22",
        "0x1.1ee9dbf0684e7p-29 -0x1.8fa6978897d9p-37",
    ),
}
_POW_LOG = _table(  # (2 atanh(s) - 2 s - 2/3 s^3) / s^5 in s^2 on [0.0, 0.04], error 2^-69.05
    "0x1.9999999999968p-2 0x1.2492492498d3dp-2 0x1.c71c71bc7812cp-3 0x1.745d1bc2d2dfbp-3",
    "0x1.3b129913d8b5dp-3 0x1.113a0514e9475p-3 0x1.dad2a59241e6fp-4 0x1.0176bc0c5793dp-3",
)
_POW_LOG2 = _table(  # (log2(1+f) - f log2 e) / f^2 on [-0.25, 0.5], error 2^-38.44
    "-0x1.71547653f470bp-1 0x1.ec709dca62ae8p-2 -0x1.715473c5e66f5p-2 0x1.2776bd5de2f1cp-2",
    "-0x1.ec72080ab8066p-3 0x1.a61ccf0575042p-3 -0x1.712f61d345082p-3 0x1.47882888ae701p-3",
    "-0x1.2871efa1a616ap-3 0x1.17b29a4350189p-3 -0x1.038c727934e0bp-3 0x1.72d9389c1a191p-4",
    "-0x1.089c417fd492fp-5",
)
_POW_EXP2 = _table(  # (2^f - 1 - float(ln 2) f) / f^2 on [-0.5, 0.5], error 2^-34.17
    "0x1.ebfbe067cf8f6p-3 0x1.c6b08c050feebp-5 0x1.3b29fed05b506p-7 0x1.5d89be4027ee2p-10",
    "0x1.44550e599d3aep-13 0x1.fe7e529eadb22p-17",
)
# The bits of 1 / (2 pi) in pieces of 29 bits (the last one: 53), and in words of 53 bits, times 2^512.
_TURN_PIECES = _table(
    "0x1.45f306dp-3 0x1.9391054p-32 0x1.4fe13abp-61 0x1.d1f534dp-90",
    "0x1.b81b6c5p-119 0x1.5993c439041fep-150",
)
_TURN_WORDS = _table(
    "0x1.45f306dc9c882p+509 0x1.4a7f09d5f47d4p+456 0x1.a6ee06db14accp+403 0x1.3c439041fe516p+350",
    "0x1.d5ef5de2b0db8p+295 0x1.2371d2126e97p+243 0x1.924bba82746p+184 0x1.21cfe1deb1cb1p+138",
    "0x1.4d39f74411af8p+83 0x1.4baed1213a671p+32 0x1.8135a2fbf209cp-21 0x1.91d639835339fp-74",
    "0x1.272117e2ef7e4p-128 0x1.41d8ffc4bffeep-181 0x1.02cc07f79788cp-233 0x1.6b414da3eda6cp-287",
    "0x1.fb3c9f2c26dd2p-340 0x1.d18fd9a797fa8p-392 0x1.6ba93dd63f5f2p-445 0x1.f17b3d0739f78p-498",
    "0x1.4a525d4d7f6bfp-551 0x1.88fc6ae842bp-605 0x1.98237e3db5d5fp-657",
)
_HALF_PI_LOW = float.fromhex("0x1.1a62633145c07p-54")    # pi/2 less its nearest float

_MANTISSA = {32: 23, 64: 52}                    # stored bits of the significand
_BIAS = {32: 127, 64: 1023}                     # of the exponent
_ROUNDER = {32: 1.5 * 2**23, 64: 1.5 * 2**52}   # x + this has its units in the lowest bits
_LN2_LOW = dict(zip((32, 64), _table("-0x1.05c610ca86c39p-29 0x1.abc9e3b39803fp-56")))     # ln 2 less its nearest float
_LOG2E = 1 / math.log(2)
_LOG2E_LOW = dict(zip((32, 64), _table("0x1.4ae0bf85ddf44p-26 0x1.777d0ffda0d24p-56")))    # log2 e less its nearest


# Pieces


def _horner(b: Arithmetic[V], coefficients: tuple[float, ...], x: V) -> V:
    """sum coefficients[k] x^k, one fma per term."""
    result = b.const(coefficients[-1], x)
    for c in reversed(coefficients[:-1]):
        result = b.fma(result, x, b.const(c, x))
    return result


def _clamp(b: Arithmetic[V], x: V, low: float | None, high: float | None) -> V:
    """min(max(x, low), high), NaN kept; one instruction each on x86, which `select` in this order is."""
    if high is not None:
        limit = b.const(high, x)
        x = b.select(b.cmp("olt", limit, x), limit, x)
    if low is not None:
        limit = b.const(low, x)
        x = b.select(b.cmp("ogt", limit, x), limit, x)
    return x


def _float_bits(value: float, bits: int) -> int:
    """The integer with the bits of a float."""
    return int(struct.unpack("<I" if bits == 32 else "<Q", struct.pack("<f" if bits == 32 else "<d", value))[0])


def _round(b: Arithmetic[V], x: V, scale: float, bias: int) -> tuple[V, V]:
    """n = x scale rounded to an integer, |n| < 2^20: (n + bias in the low bits of an integer, n as a float)."""
    magic = b.const(_ROUNDER[b.bits(x)] + bias, x)
    t = b.add(x, magic) if scale == 1 else b.fma(x, b.const(scale, x), magic)
    return b.bitcast_int(t), b.sub(t, magic)


def _power_of_two(b: Arithmetic[V], i: V, like: V) -> V:
    """2^(low bits of i - the bias of exponents)"""
    return b.bitcast_float(b.shl(i, b.iconst(_MANTISSA[b.bits(like)], like)))


def _two_powers(b: Arithmetic[V], i: V, like: V) -> tuple[V, V]:
    """Two factors of 2^(low bits of i - twice the bias), both far from overflow and underflow."""
    half = b.lshr(i, b.iconst(1, like))
    return _power_of_two(b, half, like), _power_of_two(b, b.isub(i, half), like)


def _reduce_exp(b: Arithmetic[V], x: V, bias: int) -> tuple[V, V, V, V]:
    """x = n ln 2 + r, |r| <= ln(2)/2 (Cody and Waite): (n + bias in the low bits, -n, r but for its low part, r)."""
    i, n = _round(b, x, _LOG2E, bias)
    minus = b.neg(n)
    main = b.fma(minus, b.const(math.log(2), x), x)     # exact
    return i, minus, main, b.fma(minus, b.const(_LN2_LOW[b.bits(x)], x), main)


def _exp_less_one(b: Arithmetic[V], x: V, bias: int) -> tuple[V, V]:
    """exp x = 2^n (1 + g) with |g| < 0.42: (n + bias in the low bits, g)."""
    i, _, _, r = _reduce_exp(b, x, bias)
    return i, b.fma(_horner(b, _EXP[b.bits(x)], r), b.mul(r, r), r)


# Exponentials


def exp(b: Arithmetic[V], x: V) -> V:
    """e^x = 2^n (1 + r + r^2 q(r)), x = n ln 2 + r

    The power is multiplied in as two factors, so a denormal result is rounded once more, at its own last place.
    f32 0.98 ULP, f64 1; 21 and 25 ops.
    """
    low, high = {32: (-104.0, 89.0), 64: (-746.0, 710.0)}[b.bits(x)]
    i, g = _exp_less_one(b, _clamp(b, x, low, high), 2 * _BIAS[b.bits(x)])
    first, second = _two_powers(b, i, x)
    return b.mul(b.fma(g, first, first), second)


def exp2(b: Arithmetic[V], x: V) -> V:
    """2^x = 2^n (1 + f ln 2 + f^2 q(f)), x = n + f

    f is exact and float(ln 2) is ln 2 to 28 bits, so no further parts are needed. f32 0.87 ULP, f64 0.83;
    20 and 26 ops.
    """
    bits = b.bits(x)
    low, high = {32: (-151.0, 128.0), 64: (-1076.0, 1024.0)}[bits]
    x = _clamp(b, x, low, high)
    i, n = _round(b, x, 1, 2 * _BIAS[bits])
    f = b.sub(x, n)
    g = b.fma(f, b.const(math.log(2), x), b.mul(b.mul(f, f), _horner(b, _EXP2[bits], f)))
    first, second = _two_powers(b, i, x)
    return b.mul(b.fma(g, first, first), second)


def expm1(b: Arithmetic[V], x: V) -> V:
    """e^x - 1 = (2^n - 1 + 2^n r) + 2^n r^2 q(r), x = n ln 2 + r

    The bracket is kept in two floats, and so is r; all is halved until the end, as 2^n may be 2^128.
    f32 0.91 ULP, f64 1.13; 31 and 35 ops.
    """
    bits = b.bits(x)
    low, high = {32: (-18.0, 89.0), 64: (-38.0, 710.0)}[bits]
    i, minus, r_main, r = _reduce_exp(b, _clamp(b, x, low, high), _BIAS[bits] - 1)
    r_low = b.fma(minus, b.const(_LN2_LOW[bits], x), b.sub(r_main, r))
    power, half = _power_of_two(b, i, x), b.const(0.5, x)
    tail = b.fma(_horner(b, _EXP[bits], r), b.mul(r, r), r_low)
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
    bits = b.bits(x)
    one, zero = b.const(1, x), b.const(0, x)
    i, g = _exp_less_one(b, _clamp(b, b.neg(b.abs(x)), {32: -104.0, 64: -746.0}[bits], None), 2 * _BIAS[bits])
    first, second = _two_powers(b, i, x)
    z = b.fma(g, first, first)                          # e^-|x| / second
    z_low = b.fma(g, first, b.sub(first, z))
    d = b.fma(z, second, one)
    d_low = b.fma(z_low, second, b.fma(z, second, b.sub(one, d)))
    negative = b.cmp("olt", x, zero)
    n = b.select(negative, z, one)
    inverse = b.div(one, d)
    quotient = b.mul(n, inverse)
    left = b.fma(b.neg(quotient), d_low, b.add(b.fma(b.neg(quotient), d, n), b.select(negative, z_low, zero)))
    return b.mul(b.fma(left, inverse, quotient), b.select(negative, second, one))


def tanh(b: Arithmetic[V], x: V) -> V:
    """tanh x = x + x z p(z), z = x^2, for |x| < 1; else 1 - 2 / (1 + e^2x), with the sign of x

    Below 1 the quotient's error would show, above it is worth at most a quarter. f32 0.93 ULP, f64 0.86;
    32 and 45 ops.
    """
    bits = b.bits(x)
    a, one = b.abs(x), b.const(1, x)
    i, g = _exp_less_one(b, _clamp(b, b.add(a, a), None, {32: 20.0, 64: 40.0}[bits]), _BIAS[bits])
    power = _power_of_two(b, i, x)
    large = b.sub(one, b.div(b.const(2, x), b.fma(g, power, b.add(power, one))))
    z = b.mul(a, a)
    small = b.fma(b.mul(_horner(b, _TANH[bits], z), z), a, a)
    return b.copysign(b.select(b.cmp("olt", a, one), small, large), x)


def erf(b: Arithmetic[V], x: V) -> V:
    """erf x = x + x p(x^2) for |x| < 1; else 1 - e^-w(|x|), w(t) = -log erfc t, with the sign of x

    The second form is N. Juffa's. f32 0.99 ULP, f64 1.01; 34 and 57 ops.
    """
    bits = b.bits(x)
    a = b.abs(x)
    w = _horner(b, _ERFC[bits], _clamp(b, a, None, {32: 4.0, 64: 6.0}[bits]))
    i, g = _exp_less_one(b, b.neg(w), _BIAS[bits])
    power = _power_of_two(b, i, x)
    large = b.fma(b.neg(g), power, b.sub(b.const(1, x), power))
    small = b.fma(_horner(b, _ERF[bits], b.mul(a, a)), a, a)
    return b.copysign(b.select(b.cmp("olt", a, b.const(1, x)), small, large), x)


# Logarithms


def _split(b: Arithmetic[V], x: V, lowest: float = 0.75) -> tuple[V, V]:
    """x = 2^k m, lowest <= m < 2 lowest, of a normal positive x: (k as an integer, m)."""
    bits = b.bits(x)
    shift, i = b.iconst(_MANTISSA[bits], x), b.bitcast_int(x)
    k = b.ashr(b.isub(i, b.iconst(_float_bits(lowest, bits), x)), shift)
    return k, b.bitcast_float(b.isub(i, b.shl(k, shift)))


def _split_any(b: Arithmetic[V], x: V, lowest: float = 0.75) -> tuple[V, V]:
    """The same of any positive x, denormal ones too: (k as a float, m)."""
    bits = b.bits(x)
    smallest = 2.0 ** (1 - _BIAS[bits])
    up = _MANTISSA[bits] + 1
    denormal = b.cmp("olt", x, b.const(smallest, x))
    k, m = _split(b, b.select(denormal, b.mul(x, b.const(2.0**up, x)), x), lowest)
    return b.sub(b.sitofp(k), b.select(denormal, b.const(up, x), b.const(0, x))), m


def _log_domain(b: Arithmetic[V], x: V, zero: float, result: V) -> V:
    """`result`, but inf for inf, -inf at `zero`, NaN below it and for NaN."""
    infinity = b.const(math.inf, x)
    result = b.select(b.cmp("oeq", x, infinity), infinity, result)
    limit = b.const(zero, x)
    outside = b.select(b.cmp("oeq", x, limit), b.const(-math.inf, x), b.const(math.nan, x))
    return b.select(b.cmp("ogt", x, limit), result, outside)


def _log_of_parts(b: Arithmetic[V], k: V, f: V) -> V:
    """log(2^k (1 + f)) = (k ln 2 + f) + f^2 q(f), -0.25 <= f <= 0.5, the bracket in two floats."""
    bits = b.bits(f)
    ln2 = b.const(math.log(2), f)
    tail = b.fma(k, b.const(_LN2_LOW[bits], f), b.mul(b.mul(f, f), _horner(b, _LOG[bits], f)))
    main = b.fma(k, ln2, f)
    return b.add(main, b.add(tail, b.add(b.fma(k, ln2, b.neg(main)), f)))


def log(b: Arithmetic[V], x: V) -> V:
    """log x = k ln 2 + f + f^2 q(f), x = 2^k (1 + f); f32 0.96 ULP, f64 0.9; 33 and 45 ops."""
    k, m = _split_any(b, x)
    return _log_domain(b, x, 0, _log_of_parts(b, k, b.sub(m, b.const(1, x))))


def log2(b: Arithmetic[V], x: V) -> V:
    """log2 x = (k + f log2 e) + f^2 q(f), x = 2^k (1 + f), the bracket in two floats

    sqrt(1/2) <= 1 + f < sqrt 2, so that results of k = -1 and 1 are not below 1/2, the tail being the larger error.
    f32 0.96 ULP, f64 0.91; 36 and 47 ops.
    """
    bits = b.bits(x)
    k, m = _split_any(b, x, math.sqrt(0.5))
    f = b.sub(m, b.const(1, x))
    scale = b.const(_LOG2E, x)
    linear = b.mul(f, scale)
    linear_low = b.fma(f, b.const(_LOG2E_LOW[bits], x), b.fma(f, scale, b.neg(linear)))
    main = b.add(k, linear)
    main_low = b.add(b.add(b.sub(k, main), linear), linear_low)
    return _log_domain(b, x, 0, b.add(main, b.fma(b.mul(f, f), _horner(b, _LOG2[bits], f), main_low)))


def log1p(b: Arithmetic[V], x: V) -> V:
    """log(1 + x) = k ln 2 + f + f^2 q(f), 1 + x = 2^k (1 + f)

    k comes from the rounded 1 + x and f = 2^-k x + (2^-k - 1) from x itself: exact until k = 24 (53), where x is all
    of 1 + x. f32 0.96 ULP, f64 0.89; 36 and 48 ops.
    """
    bits = b.bits(x)
    one, quarter = b.const(1, x), b.const(0.25, x)
    k, _ = _split(b, b.add(x, one))
    power = _power_of_two(b, b.isub(b.iconst(_BIAS[bits] + 2, x), k), x)       # 2^(2-k): 2^-128 would be denormal
    f = b.fma(b.mul(x, quarter), power, b.fma(power, quarter, b.neg(one)))
    result = _log_domain(b, x, -1, _log_of_parts(b, b.sitofp(k), f))
    return b.select(b.cmp("olt", b.abs(x), b.const(2.0**-60, x)), x, result)    # -0; part of a denormal is inexact


def rsqrt(b: Arithmetic[V], x: V) -> V:
    """1 / sqrt x, both correctly rounded; two roundings: f32 and f64 1.5 ULP; 2 ops."""
    return b.div(b.const(1, x), b.sqrt(x))


# Powers


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
    k, m = _split(b, x)
    f = b.sub(m, b.const(1, x))
    low = b.mul(b.mul(f, f), _horner(b, _POW_LOG2, f))
    return b.add(b.sitofp(k), b.fma(f, b.const(_LOG2E, x), low))


def _log2_in_two(b: Arithmetic[V], x: V) -> tuple[V, V]:
    """log2 x of a positive f64 as a sum of two floats, relative error about 2^-64

    x = 2^k m and s = (m - 1) / (m + 1): log m = 2 s + s^3 (2/3 + s^2 p(s^2)), all but p in two floats.
    """
    k, m = _split_any(b, x)
    one = b.const(1, x)
    f, d = b.sub(m, one), b.add(m, one)
    inverse = b.div(one, d)
    s = b.mul(f, inverse)
    minus = b.neg(s)
    s_low = b.mul(b.fma(minus, b.sub(m, b.sub(d, one)), b.fma(minus, d, f)), inverse)
    z = b.mul(s, s)
    z_low = b.fma(b.add(s, s), s_low, b.fma(s, s, b.neg(z)))
    third, third_low = b.const(2 / 3, x), b.const(float.fromhex("0x1.5555555555555p-55"), x)
    tail = _horner(b, _POW_LOG, z)
    c = b.fma(tail, z, third)
    c_low = b.add(b.fma(tail, z, b.sub(third, c)), third_low)
    cube = b.mul(s, z)                                  # s^3
    cube_low = b.add(b.fma(s, z, b.neg(cube)), b.fma(s, z_low, b.mul(s_low, z)))
    term = b.mul(cube, c)
    term_low = b.add(b.fma(cube, c, b.neg(term)), b.fma(cube, c_low, b.mul(cube_low, c)))
    double = b.add(s, s)
    log = b.add(double, term)
    log_low = b.add(b.add(b.sub(double, log), term), b.fma(b.const(2, x), s_low, term_low))
    scale = b.const(_LOG2E, x)
    fraction = b.mul(log, scale)
    fraction_low = b.fma(log, b.const(_LOG2E_LOW[64], x), b.fma(log_low, scale, b.fma(log, scale, b.neg(fraction))))
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
    exponent = b.mul(_log_domain(b, wide, 0, _log2_in_f64(b, wide)), b.extf(y))
    exponent = _clamp(b, exponent, -160.0, 130.0)
    i, n = _round(b, exponent, 1, _BIAS[64])
    f = b.sub(exponent, n)
    g = b.fma(f, b.const(math.log(2), f), b.mul(b.mul(f, f), _horner(b, _POW_EXP2, f)))
    power = _power_of_two(b, i, f)
    return b.truncf(b.fma(g, power, power))


def _pow_in_two(b: Arithmetic[V], x: V, y: V) -> V:
    """x^y of f64, x not negative."""
    log, log_low = _log2_in_two(b, x)
    log = _log_domain(b, x, 0, log)
    exponent = b.mul(log, y)
    low = b.fma(log_low, y, b.fma(log, y, b.neg(exponent)))
    finite = b.cmp("olt", b.abs(exponent), b.const(1100, x))
    low = b.select(finite, low, b.const(0, x))
    exponent = _clamp(b, exponent, -1100.0, 1100.0)
    i, n = _round(b, exponent, 1, 2 * _BIAS[64])
    whole = b.sub(exponent, n)
    f = b.add(whole, low)
    f_low = b.add(b.sub(whole, f), low)
    ln2 = b.const(math.log(2), x)
    tail = b.fma(f, b.const(_LN2_LOW[64], x), b.mul(f_low, ln2))
    g = b.fma(f, ln2, b.fma(b.mul(f, f), _horner(b, _EXP2[64], f), tail))
    first, second = _two_powers(b, i, x)
    return b.mul(b.fma(g, first, first), second)


# Trigonometry


def _quarters_of_f32(b: Arithmetic[V], x: V) -> tuple[V, V]:
    """x = (n + q) pi/2 of a non-negative f32 given as f64: (n modulo 4 in the low bits of an integer, q), |q| <= 1/2

    1 / (2 pi) is cut into pieces of 29 bits. The product of x with one is exact, and so is dropping its whole turns;
    the last piece has all 53 bits, its product is below 2^-18 and rounded. The sum tells n, then n is taken from the
    first part: where that cancels, every sum is exact, so that q is right to 2^-50 of itself.
    """
    products = [b.mul(x, b.const(piece, x)) for piece in _TURN_PIECES]
    parts = [*(b.sub(product, b.roundeven(product)) for product in products[:-1]), products[-1]]
    total = parts[0]
    for part in parts[1:]:
        total = b.add(total, part)
    i, n = _round(b, total, 4, 0)
    rest = b.fma(n, b.const(-0.25, x), parts[0])
    for part in parts[1:]:
        rest = b.add(rest, part)
    return i, b.mul(rest, b.const(4, x))


def _two_sum(b: Arithmetic[V], x: V, y: V) -> tuple[V, V]:
    """x + y = its rounded value + its error (Knuth)."""
    total = b.add(x, y)
    part = b.sub(total, x)
    return total, b.add(b.sub(x, b.sub(total, part)), b.sub(y, part))


def _turns_in_two(b: Arithmetic[V], x: V) -> tuple[V, V]:
    """x / (2 pi) less an integer, of a non-negative f64, as a sum of two floats (Payne and Hanek)

    1 / (2 pi) is cut into words of 53 bits. The first j of them give integers only, j from the exponent of x, and
    five more decide: they are picked by shifting the row of words by 16, 8, 4, 2, 1 where j has the bit. Words are
    scaled up and x down by 2^512. Below 2^-450 the result is 0.
    """
    exponent = b.sitofp(b.lshr(b.bitcast_int(x), b.iconst(_MANTISSA[64], x)))
    step = b.fma(exponent, b.const(1 / 53, x), b.const(-(_BIAS[64] + 54) / 53 - 0.49, x))
    j, _ = _round(b, _clamp(b, step, 0.0, None), 1, 0)
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
        total, error = _two_sum(b, total, part)
        errors.append(error)
    total = b.sub(total, b.roundeven(total))
    rest, last = low[2], b.add(low[3], high[4])
    for part in (high[3], *errors):
        rest, error = _two_sum(b, rest, part)
        last = b.add(last, error)
    total, error = _two_sum(b, total, rest)
    return total, b.add(error, last)


def _reduce_f64(b: Arithmetic[V], x: V) -> tuple[V, V, V]:
    """x = n pi/2 + r + low of a non-negative f64: (n modulo 4 in the low bits of an integer, r, low), |r| <= pi/4"""
    turns, turns_low = _turns_in_two(b, x)
    i, n = _round(b, turns, 4, 0)
    four, right = b.const(4, x), b.const(math.pi / 2, x)
    quarters = b.fma(turns, four, b.neg(n))
    r = b.mul(quarters, right)
    low = b.fma(quarters, b.const(_HALF_PI_LOW, x), b.fma(quarters, right, b.neg(r)))
    low = b.fma(b.mul(turns_low, four), right, low)
    small = b.cmp("olt", x, b.const(0.5, x))
    return i, b.select(small, x, r), b.select(small, b.const(0, x), low)


def _sin_or_cos(b: Arithmetic[V], x: V, quarter: int) -> V:
    """sin(x + quarter pi/2)"""
    bits = b.bits(x)
    wide = b.extf(b.abs(x)) if bits == 32 else b.abs(x)
    one, low = b.const(1, wide), None
    if bits == 32:
        i, quarters = _quarters_of_f32(b, wide)
        r = b.mul(quarters, b.const(math.pi / 2, wide))
    else:
        i, r, low = _reduce_f64(b, wide)
    i = b.iadd(i, b.iconst(quarter, wide))
    z = b.mul(r, r)
    tail = b.mul(b.mul(_horner(b, _SIN[bits], z), z), r)
    v = b.fma(_horner(b, _COS[bits], z), z, b.const(-0.5, wide))
    sine, cosine = b.add(r, tail), b.fma(v, z, one)
    if low is not None:                                 # sin(r + low) = sin r + low cos r, and likewise the cosine
        loss = b.fma(low, sine, b.mul(b.fma(r, r, b.neg(z)), b.const(0.5, wide)))
        sine, cosine = b.add(r, b.fma(low, cosine, tail)), b.add(one, b.fma(v, z, b.neg(loss)))
    result = b.select(b.icmp("eq", b.iand(i, b.iconst(1, wide)), b.iconst(0, wide)), sine, cosine)
    sign = b.shl(b.lshr(i, b.iconst(1, wide)), b.iconst(63, wide))
    result = b.bitcast_float(b.ixor(b.bitcast_int(result), sign))
    if bits == 32:
        result = b.truncf(result)
    if quarter == 0:
        minus = b.iand(b.bitcast_int(x), b.iconst(1 << (bits - 1), x))
        result = b.bitcast_float(b.ixor(b.bitcast_int(result), minus))
    return result


def sin(b: Arithmetic[V], x: V) -> V:
    """sin x from the sine or cosine of x less the nearest multiple of pi/2; f32 is computed in f64

    f32 0.501 ULP, f64 0.93; 55 and 186 ops.
    """
    return _sin_or_cos(b, x, 0)


def cos(b: Arithmetic[V], x: V) -> V:
    """cos x = sin(x + pi/2), the quarter turn added after the reduction

    f32 0.501 ULP, f64 0.93; 53 and 184 ops.
    """
    return _sin_or_cos(b, x, 1)


# Remainders


_STEP = 2.0**50
"""A quotient below this is rounded to an integer without error, and what is left of the dividend is exact."""


def _fmod(b: Arithmetic[V], x: V, y: V, steps: int) -> V:
    """C's fmod(x, y) in f64, exactly: multiples of |y| 2^(50 k) are taken off |x|, the largest k first."""
    rest, scale, zero = b.abs(x), b.const(_STEP, x), b.const(0, x)
    units = [b.abs(y)]
    for _ in range(steps - 1):
        units.append(b.mul(units[-1], scale))
    for unit in reversed(units):
        left = b.fma(b.neg(b.roundeven(b.div(rest, unit))), unit, rest)
        left = b.select(b.cmp("olt", left, zero), b.add(left, unit), left)
        rest = b.select(b.cmp("ogt", unit, rest), rest, left)       # a unit that overflowed is greater, too
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
    """floor(x / y), from the exact remainder, as Python's // has it; x / y where y is 0"""
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
