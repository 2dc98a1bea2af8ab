"""Operations on elements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.frontend.dtypes import as_dtype, of_ir
from mlc.frontend.stablehlo.interpreter import constant
from mlc.frontend.stablehlo.table import plain, row
from mlc.frontend.tensor import OPERATIONS as O
from mlc.ir.types import to_numpy

if TYPE_CHECKING:
    from mlc.frontend.stablehlo.interpreter import Step


def width(x: Any) -> int:
    """Bits of an element."""
    return 1 if x.dtype.name == "bool" else int(x.dtype.itemsize) * 8


def is_float(x: Any) -> bool:
    """Whether the elements are real floats."""
    return bool(x.dtype.is_floating_point)


def is_unsigned(x: Any) -> bool:
    """Whether the elements are unsigned integers."""
    return str(x.dtype.name).startswith("uint")


def full(value: Any, x: Any) -> Any:
    """A number of the dtype of a tensor."""
    return constant(np.asarray(value, to_numpy(x.dtype.ir)))


plain(cosine=O["cos"], sine=O["sin"], tan=O["tan"], tanh=O["tanh"], exponential=O["exp"],
      exponential_minus_one=O["expm1"], log=O["log"], log_plus_one=O["log1p"], sqrt=O["sqrt"], rsqrt=O["rsqrt"],
      ceil=O["ceil"], floor=O["floor"], round_nearest_even=O["round"])


@row("stablehlo.real", "stablehlo.imag")
def part(step: Step, x: Any) -> Any:
    """A part of complex numbers; a real number is its own real part, and its imaginary one is 0."""
    if x.dtype.is_complex:
        return O[step.op.name.partition(".")[2]](x)
    return x if step.op.name.endswith("real") else O["zeros_like"](x)


@row("stablehlo.atan2")
def atan2(step: Step, y: Any, x: Any) -> Any:
    """Of complex numbers, -i log((x + iy) / sqrt(x^2 + y^2))."""
    if not x.dtype.is_complex:
        return O["atan2"](y, x)
    i = full(1j, x)
    size = O["sqrt"](O["add"](O["mul"](x, x), O["mul"](y, y)))
    return O["mul"](O["log"](O["div"](O["add"](x, O["mul"](i, y)), size)), full(-1j, x))


@row("stablehlo.logistic")
def logistic(step: Step, x: Any) -> Any:
    return O["sigmoid"](x)


def _boolean(x: Any) -> bool:
    return bool(x.dtype.name == "bool")


@row("stablehlo.add")
def add(step: Step, x: Any, y: Any) -> Any:
    return O["logical_or"](x, y) if _boolean(x) else O["add"](x, y)


@row("stablehlo.multiply")
def multiply(step: Step, x: Any, y: Any) -> Any:
    return O["logical_and"](x, y) if _boolean(x) else O["mul"](x, y)


@row("stablehlo.subtract")
def subtract(step: Step, x: Any, y: Any) -> Any:
    return O["logical_xor"](x, y) if _boolean(x) else O["sub"](x, y)


@row("stablehlo.negate")
def negate(step: Step, x: Any) -> Any:
    return O["sub"](full(0, x), x) if is_unsigned(x) else O["neg"](x)


@row("stablehlo.abs")
def absolute(step: Step, x: Any) -> Any:
    return O["abs"](x)


@row("stablehlo.divide")
def divide(step: Step, x: Any, y: Any) -> Any:
    """Of integers, the quotient towards zero; by zero it is -1, and the least integer by -1 is itself, as in XLA."""
    if x.dtype.is_floating_point or x.dtype.is_complex:
        return O["div"](x, y)
    zero = O["eq"](y, full(0, y))
    found = O["div"](x, O["where"](zero, full(1, y), y), rounding_mode="trunc")
    return O["where"](zero, full(-1 if not is_unsigned(x) else 2 ** width(x) - 1, x), found)


@row("stablehlo.remainder")
def remainder(step: Step, x: Any, y: Any) -> Any:
    """The remainder with the sign of the dividend; by zero the dividend, for integers."""
    if x.dtype.is_floating_point:
        return O["fmod"](x, y)
    zero = O["eq"](y, full(0, y))
    return O["where"](zero, x, O["fmod"](x, O["where"](zero, full(1, y), y)))


@row("stablehlo.power")
def power(step: Step, x: Any, y: Any) -> Any:
    """Integers to a negative power are 1, -1 or 0."""
    if x.dtype.is_floating_point or x.dtype.is_complex or is_unsigned(x):
        return O["pow"](x, y)
    negative = O["lt"](y, full(0, y))
    found = O["pow"](x, O["where"](negative, full(0, y), y))
    odd = O["ne"](O["bitwise_and"](y, full(1, y)), full(0, y))
    minus = O["where"](odd, full(-1, x), full(1, x))
    ones = O["where"](O["eq"](x, full(1, x)), full(1, x),
                      O["where"](O["eq"](x, full(-1, x)), minus, full(0, x)))
    return O["where"](negative, ones, found)


@row("stablehlo.maximum")
def maximum(step: Step, x: Any, y: Any) -> Any:
    """Of complex numbers, the larger in lexicographic order."""
    if x.dtype.is_complex:
        return O["where"](_before(y, x), x, y)
    return O["logical_or"](x, y) if _boolean(x) else O["maximum"](x, y)


@row("stablehlo.minimum")
def minimum(step: Step, x: Any, y: Any) -> Any:
    """Of complex numbers, the smaller in lexicographic order."""
    if x.dtype.is_complex:
        return O["where"](_before(x, y), x, y)
    return O["logical_and"](x, y) if _boolean(x) else O["minimum"](x, y)


def _before(x: Any, y: Any) -> Any:
    same = O["eq"](O["real"](x), O["real"](y))
    return O["logical_or"](O["lt"](O["real"](x), O["real"](y)),
                           O["logical_and"](same, O["lt"](O["imag"](x), O["imag"](y))))


@row("stablehlo.and", "stablehlo.or", "stablehlo.xor")
def bits(step: Step, x: Any, y: Any) -> Any:
    name = step.op.name.partition(".")[2]
    return O[f"logical_{name}" if _boolean(x) else f"bitwise_{name}"](x, y)


@row("stablehlo.not")
def inverted(step: Step, x: Any) -> Any:
    return O["logical_not"](x) if _boolean(x) else O["bitwise_not"](x)


def unsigned(x: Any) -> Any:
    """The same bits as an unsigned integer."""
    return x if is_unsigned(x) else O["cast"](x, f"uint{width(x)}")


def shifted(x: Any, y: Any, name: str, beyond: Any) -> Any:
    """A shift; `beyond` is what there is where the count is negative, or as large as the width or larger."""
    count = unsigned(y)
    outside = O["ge"](count, full(width(x), count))
    return O["where"](outside, beyond, O[name](x, O["where"](outside, full(0, y), y)))


@row("stablehlo.shift_left")
def shift_left(step: Step, x: Any, y: Any) -> Any:
    return shifted(x, y, "bitwise_left_shift", full(0, x))


@row("stablehlo.shift_right_arithmetic")
def shift_right_arithmetic(step: Step, x: Any, y: Any) -> Any:
    if is_unsigned(x):
        signed = f"int{width(x)}"
        return O["cast"](shift_right_arithmetic(step, O["cast"](x, signed), O["cast"](y, signed)), x.dtype)
    return shifted(x, y, "bitwise_right_shift", O["bitwise_right_shift"](x, full(width(x) - 1, x)))


@row("stablehlo.shift_right_logical")
def shift_right_logical(step: Step, x: Any, y: Any) -> Any:
    wide = unsigned(x)
    return O["cast"](shifted(wide, unsigned(y), "bitwise_right_shift", full(0, wide)), x.dtype)


@row("stablehlo.popcnt")
def population_count(step: Step, x: Any) -> Any:
    """The number of bits that are 1, in sums of 2, 4, 8 ... neighbours."""
    return O["cast"](ones_of(unsigned(x)), x.dtype)


def ones_of(x: Any) -> Any:
    """The number of bits of unsigned integers that are 1."""
    span = 1
    while span < width(x):
        mask = full(sum(((1 << span) - 1) << at for at in range(0, width(x), 2 * span)), x)
        upper = O["bitwise_right_shift"](x, full(span, x))
        x = O["add"](O["bitwise_and"](x, mask), O["bitwise_and"](upper, mask))
        span *= 2
    return x


@row("stablehlo.count_leading_zeros")
def count_leading_zeros(step: Step, x: Any) -> Any:
    found, span = unsigned(x), 1
    while span < width(x):
        found = O["bitwise_or"](found, O["bitwise_right_shift"](found, full(span, found)))
        span *= 2
    return O["cast"](O["sub"](full(width(x), found), ones_of(found)), x.dtype)


@row("stablehlo.sign")
def sign(step: Step, x: Any) -> Any:
    """-1, 0 or 1; NaN and zeros of either sign stay what they are."""
    if x.dtype.is_complex:
        return O["sgn"](x)
    if is_unsigned(x):
        return O["where"](O["gt"](x, full(0, x)), full(1, x), full(0, x))
    found = O["sign"](x)
    return O["where"](O["logical_or"](O["ne"](x, x), O["eq"](x, full(0, x))), x, found) if is_float(x) else found


@row("stablehlo.cbrt")
def cube_root(step: Step, x: Any) -> Any:
    """The power of a third of the absolute value, corrected by a step of Newton's method."""
    if x.dtype.is_complex:
        return O["pow"](x, full(1 / 3, x))
    wide = O["cast"](x, "float64" if x.dtype.name == "float64" else "float32")
    size = O["abs"](wide)
    root = O["pow"](size, full(1 / 3, wide))
    usable = O["logical_and"](O["isfinite"](size), O["gt"](size, full(0, wide)))
    safe = O["where"](usable, root, full(1, wide))
    error = O["div"](O["sub"](safe, O["div"](O["div"](size, safe), safe)), full(3, wide))
    better = O["where"](usable, O["sub"](root, error), size)
    return O["cast"](O["copysign"](better, wide), x.dtype)


@row("stablehlo.round_nearest_afz")
def round_away(step: Step, x: Any) -> Any:
    """The nearest integer; of two, the one further from zero."""
    whole = O["trunc"](x)
    away = O["ge"](O["abs"](O["sub"](x, whole)), full(0.5, x))
    found = O["where"](away, O["add"](whole, O["copysign"](full(1, x), x)), whole)
    return O["copysign"](O["where"](O["isfinite"](x), found, x), x)


@row("stablehlo.is_finite")
def is_finite(step: Step, x: Any) -> Any:
    return O["isfinite"](x)


@row("stablehlo.complex")
def make_complex(step: Step, x: Any, y: Any) -> Any:
    return O["complex"](x, y)


@row("stablehlo.clamp")
def clamp(step: Step, low: Any, x: Any, high: Any) -> Any:
    return O["minimum"](O["maximum"](x, low), high)


@row("stablehlo.select")
def select(step: Step, which: Any, x: Any, y: Any) -> Any:
    return O["where"](which, x, y)


COMPARISONS = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}


@row("stablehlo.compare")
def compare(step: Step, x: Any, y: Any) -> Any:
    """Elements beside each other; in the total order, the bits of floats decide."""
    direction = step.op.need("comparison_direction")
    if direction not in COMPARISONS:
        step.op.wrong(f"there is no comparison {direction}")
    if step.op.get("compare_type") == "TOTALORDER" and is_float(x):
        x, y = ordered(x), ordered(y)
    if x.dtype.is_complex and direction not in ("EQ", "NE"):
        step.op.wrong("complex numbers have no order")
    return O[COMPARISONS[direction]](x, y)


def ordered(x: Any) -> Any:
    """Integers in the total order of floats: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN."""
    found = bitcast(x, f"int{width(x)}")
    least = full(-(2 ** (width(x) - 1)), found)
    return O["where"](O["lt"](found, full(0, found)), O["bitwise_xor"](O["bitwise_not"](found), least), found)


def bitcast_any(x: Any, wanted: Any) -> Any:
    """As `bitcast`, also between elements of different widths."""
    old, new = x.dtype.itemsize, wanted.itemsize
    if old == new:
        return bitcast(x, wanted.name)
    if old > new:
        wide = bitcast(x, f"uint{8 * old}")
        parts = [O["bitwise_right_shift"](wide, full(8 * new * i, wide)) for i in range(old // new)]
        return bitcast(O["cast"](O["stack"](parts, -1), f"uint{8 * new}"), wanted.name)
    parts = O["cast"](bitcast(x, f"uint{8 * old}"), f"uint{8 * new}")
    found = full(0, parts)
    for i in range(new // old):
        found = O["bitwise_or"](found, O["bitwise_left_shift"](parts[..., i], full(8 * old * i, parts)))
    return bitcast(found, wanted.name)


def bitcast(x: Any, name: str) -> Any:
    """The same bits as elements of another dtype of the same width."""
    dtype = as_dtype(name)
    if x.dtype is dtype:
        return x
    if not x.dtype.is_floating_point and not dtype.is_floating_point:
        return O["cast"](x, dtype)
    return O["bitcast"](x, dtype)


@row("stablehlo.convert")
def convert(step: Step, x: Any) -> Any:
    return converted(x, of_ir(step.op.array.dtype))


def converted(x: Any, dtype: Any) -> Any:
    """Elements of another type: the real parts of complex numbers; whether they are not 0; else the nearest."""
    if x.dtype.is_complex and not dtype.is_complex:
        x = O["real"](x)
    if dtype.name == "bool":
        return O["ne"](x, full(0, x)) if x.dtype.name != "bool" else x
    return O["cast"](x, dtype)


@row("stablehlo.reduce_precision")
def reduce_precision(step: Step, x: Any) -> Any:
    """The nearest float of fewer bits of exponent and mantissa, by arithmetic on the bits."""
    exponent, mantissa = step.op.need("exponent_bits"), step.op.need("mantissa_bits")
    if not (isinstance(exponent, int) and isinstance(mantissa, int) and exponent >= 1 and mantissa >= 0):
        step.op.wrong("the bits of the exponent are at least 1, those of the mantissa at least 0")
    return reduced(x, exponent, mantissa)


FORMAT = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52)}
"""Bits of exponent and mantissa."""


def reduced(x: Any, exponent: int, mantissa: int) -> Any:
    """The nearest float of so many bits; ties to even, overflow to infinity, underflow to zero."""
    has_exponent, has_mantissa = FORMAT[x.dtype.name]
    bits = bitcast(x, f"uint{width(x)}")
    if mantissa < has_mantissa:
        drop = has_mantissa - mantissa
        last = O["bitwise_and"](O["bitwise_right_shift"](bits, full(drop, bits)), full(1, bits))
        bits = O["add"](O["add"](bits, last), full((1 << (drop - 1)) - 1, bits))
        bits = O["bitwise_and"](bits, full(((1 << width(x)) - 1) & ~((1 << drop) - 1), bits))
    sign_bit = 1 << (width(x) - 1)
    if exponent < has_exponent:
        bias, lower = (1 << (has_exponent - 1)) - 1, (1 << (exponent - 1)) - 1
        mask = ((1 << has_exponent) - 1) << has_mantissa
        found = O["bitwise_and"](bits, full(mask, bits))
        signs = O["bitwise_and"](bits, full(sign_bit, bits))
        overflow = O["gt"](found, full((bias + lower) << has_mantissa, bits))
        underflow = O["le"](found, full((bias - lower) << has_mantissa, bits))
        bits = O["where"](overflow, O["bitwise_or"](signs, full(mask, bits)), bits)
        bits = O["where"](underflow, signs, bits)
    found = bitcast(bits, x.dtype.name)
    if not mantissa:                                       # without a mantissa there is no NaN
        return O["where"](O["ne"](x, x), O["copysign"](full(math.inf, x), x), found)
    return O["where"](O["ne"](x, x), x, found)


@row("stablehlo.map")
def mapped(step: Step, *xs: Any) -> Any:
    """The region for each element."""
    return over_elements(step.body(), xs)[0]


def over_elements(f: Any, xs: Any) -> tuple[Any, ...]:
    """A function of numbers, for each element of tensors of one shape."""
    shape = xs[0].shape
    if not shape:
        return tuple(f(*xs))
    flat = [O["reshape"](x, (math.prod(shape),)) for x in xs]
    from mlc.frontend.batching import vmap
    found = vmap(lambda *ys: tuple(f(*ys)))(*flat)
    return tuple(O["reshape"](y, shape) for y in found)
