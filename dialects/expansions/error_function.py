"""Expansions: the error function and its complement."""

from __future__ import annotations

from mlc.dialects.expansions.arithmetic import (
    BIAS,
    LN2_LOW,
    Arithmetic,
    V,
    clamp,
    horner,
    power_of_two,
    quotient_error,
    round_scaled,
    table,
    two_powers,
    two_product,
)
from mlc.dialects.expansions.exponential import EXP, exp_less_one, reduce_exp

# Tables of tools/fit_polynomials.py, lowest degree first. The error is relative to the function's result.
_ERF = {   # erf(x)/x - 1 in x^2
    32: table(  # on [0.0, 1.0], error 2^-29.39
        "0x1.06eba8p-3 -0x1.81273ep-2 0x1.ce2ce6p-4 -0x1.b7f71ap-6",
        "0x1.53f224p-8 -0x1.a3515ep-11 0x1.4771fcp-14",
    ),
    64: table(  # on [0.0, 1.0], error 2^-56.34
        "0x1.06eba8214db69p-3 -0x1.812746b037a25p-2 0x1.ce2f21a0458e2p-4 -0x1.b82ce313552f9p-6",
        "0x1.565bcd2c79acdp-8 -0x1.c02db938b48bap-11 0x1.f9a3ba2590804p-14 -0x1.f4dd04d0d2deep-17",
        "0x1.ba6a3e87e52e9p-20 -0x1.639c3d8f9b958p-23 0x1.1366dc30cd507p-26 -0x1.c69f76aa62ac6p-30",
        "0x1.3e74dff95e37p-33",
    ),
}
_LOG_ERFC = {   # -log erfc t
    32: table(  # on [1.0, 4.0], error 2^-29.79
        "0x1.667f24p-12 0x1.2088d2p+0 0x1.46bb3ep-1 0x1.a651p-4",
        "-0x1.65c70ep-6 0x1.8251f6p-9 -0x1.86ce92p-13",
    ),
    64: table(  # on [1.0, 6.0], error 2^-62.32
        "0x1.de158dba2b5bap-26 0x1.20dd70cb62372p+0 0x1.45f3272d5137fp-1 0x1.a4f301ca4eb62p-4",
        "-0x1.3964cd8055b0cp-6 -0x1.a849b270b2dafp-13 0x1.b715e623d67b7p-10 -0x1.219a20418814ep-11",
        "-0x1.711c3dc6dd2bdp-16 0x1.d0a50ed323b67p-14 -0x1.0f9f131306854p-14 0x1.97589cf6ab5f3p-16",
        "-0x1.c74407d29cc3p-18 0x1.8a829f1a4b394p-20 -0x1.0a6da34b7385ap-22 0x1.1489e8fc485fep-25",
        "-0x1.ab2977daa2c01p-29 0x1.ceebcebebe586p-33 -0x1.3a210c07d9662p-37 0x1.91a7839a4a50ap-43",
    ),
}
_LOG2_ERFC = table(  # -log2 erfc t on [0.0, 9.194], error 2^-17.2
    "-0x1.26f1c2p-17 0x1.a0d4e4p+0 0x1.d51da6p-1 0x1.3b3842p-3",
    "-0x1.203404p-5 0x1.7b5238p-8 -0x1.3f5c18p-11 0x1.cc0d56p-16",
    "0x1.0cadd2p-19 -0x1.9b3ae4p-22 0x1.87eeaep-26 -0x1.174596p-31",
)
_SHORT_EXP2 = table(  # 2^f on [-0.5, 0.5], error 2^-18.55
    "0x1.ffffe8p-1 0x1.62e0dcp-1 0x1.ec0692p-3 0x1.ca1436p-5",
    "0x1.39a65p-7",
)
_ERFCX = {   # (1 + 2 t) e^(t^2) erfc t - 5/4 in (t - 3) / (t + 3)
    32: table(  # on [-0.719198, 0.541985], error 2^-30.1
        "0x1.8a45b4p-9 -0x1.15c084p-3 -0x1.85a18p-5 0x1.09834cp-3",
        "-0x1.e889b8p-4 0x1.17ccdcp-4 -0x1.85b774p-6 0x1.48ec42p-9",
        "0x1.ff4ae2p-10 -0x1.6ef9p-11 -0x1.8a678cp-13",
    ),
    64: table(  # on [-0.719198, 0.8], error 2^-59.83
        "0x1.8a45afc930e66p-9 -0x1.15c084bb9e8f3p-3 -0x1.85a15c58aa5cdp-5 0x1.098366a5b46d1p-3",
        "-0x1.e88b803a49398p-4 0x1.17ca2877f0b49p-4 -0x1.8574c40bc7f0ap-6 0x1.4b884e44eeca3p-9",
        "0x1.ef1bdd3daad35p-10 -0x1.98db5134c9d57p-11 -0x1.b9126ca893e0bp-14 0x1.065a3a2806efep-13",
        "0x1.4c213e49593b3p-18 -0x1.513b9818e9153p-16 -0x1.87d55b40c9432p-21 0x1.d209c3b6fff85p-19",
        "0x1.7a2198b67b984p-22 -0x1.4a7c3c9fe8aaap-21 -0x1.1eb136093ea54p-23 0x1.ab92e54ebd51ep-24",
        "0x1.1ffd8f6473536p-25 -0x1.77b68c0bc05cbp-27 -0x1.17719abb3d2a7p-28",
    ),
}


def erf(b: Arithmetic[V], x: V) -> V:
    """erf x = x + x p(x^2) for |x| < 1; else 1 - e^-w(|x|), w(t) = -log erfc t, with the sign of x

    The second form is N. Juffa's. f32 0.99 ULP, f64 1.01; 34 and 57 ops.
    """
    bits = b.bits(x)
    a = b.abs(x)
    w = horner(b, _LOG_ERFC[bits], clamp(b, a, None, {32: 4.0, 64: 6.0}[bits]))
    i, g = exp_less_one(b, b.neg(w), BIAS[bits])
    power = power_of_two(b, i, x)
    large = b.fma(b.neg(g), power, b.sub(b.const(1, x), power))
    small = b.fma(horner(b, _ERF[bits], b.mul(a, a)), a, a)
    return b.copysign(b.select(b.cmp("olt", a, b.const(1, x)), small, large), x)


def erfc(b: Arithmetic[V], x: V) -> V:
    """erfc t = e^(-t^2) p(q) / (1 + 2 t), q = (t - 3) / (t + 3), for t = |x| >= 1/2; else 1 - x - x p(x^2)

    2 less that for x <= -1/2. p, the quotient and t^2 are in two floats (M. Shepherd and J. Laframboise, "Chebyshev
    approximation of (1 + 2x) exp(x^2) erfc x", 1981; the form is N. Juffa's). f32 1.66 ULP, f64 1.5; 78 and 100
    ops.
    """
    bits = b.bits(x)
    one, two, three = b.const(1, x), b.const(2, x), b.const(3, x)
    a = b.abs(x)
    t = clamp(b, a, None, {32: 10.5, 64: 28.0}[bits])
    inverse = b.div(one, b.add(t, three))
    q = b.mul(b.sub(t, three), inverse)
    q = b.fma(b.fma(b.neg(q), t, b.fma(b.neg(three), b.add(q, one), t)), inverse, q)
    tail, middle = horner(b, _ERFCX[bits], q), b.const(1.25, x)
    p = b.add(middle, tail)
    p_low = b.add(b.sub(middle, p), tail)
    d = b.fma(two, t, one)
    ratio = b.div(p, d)
    ratio_low = quotient_error(b, ratio, p, d, p_low, b.fma(two, t, b.sub(one, d)))
    square, square_low = two_product(b, t, t)
    i, minus, r_main, r = reduce_exp(b, b.neg(square), 2 * BIAS[bits])
    lost = b.sub(b.fma(minus, b.const(LN2_LOW[bits], x), b.sub(r_main, r)), square_low)
    r, rest = b.add(r, lost), b.add(b.sub(r, b.add(r, lost)), lost)
    tail = b.fma(horner(b, EXP[bits], r), b.mul(r, r), rest)
    first, second = two_powers(b, i, x)
    large = b.add(ratio, b.fma(ratio, r, b.fma(ratio, tail, ratio_low)))
    large = b.mul(b.mul(large, first), second)
    large = b.select(b.cmp("olt", x, b.const(0, x)), b.sub(two, large), large)
    main = b.sub(one, x)
    small = b.sub(main, b.fma(horner(b, _ERF[bits], b.mul(x, x)), x, b.sub(x, b.sub(one, main))))
    return b.select(b.cmp("olt", a, b.const(0.5, x)), small, large)


def short_erfc(b: Arithmetic[V], x: V) -> V:
    """erfc t = 2^-w(t), w(t) = -log2 erfc t, for t = |x| <= 9.194, else 0; 2 less that for x < 0

    For what is rounded to 16 bits, in f32: the error is less than 2^-15, relative to results that are normal numbers.
    32 ops.
    """
    a, most = b.abs(x), b.const(9.194, x)
    w = horner(b, _LOG2_ERFC, clamp(b, a, None, 9.194))
    i, n = round_scaled(b, b.neg(w), 1, BIAS[32])
    tail = b.mul(horner(b, _SHORT_EXP2, b.sub(b.neg(w), n)), power_of_two(b, i, x))
    tail = b.select(b.cmp("olt", most, a), b.const(0, x), tail)
    return b.select(b.cmp("olt", x, b.const(0, x)), b.sub(b.const(2, x), tail), tail)
