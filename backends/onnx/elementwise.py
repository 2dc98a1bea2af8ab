"""Operations on elements: arithmetic, elementary functions, comparisons, casts."""

from __future__ import annotations

import math
from typing import Any

from mlc.backends.onnx.graph import data_type
from mlc.backends.onnx.writer import WIDER, Writer, refused, result, row
from mlc.ir.core import Op
from mlc.ir.types import FloatType, IntType, ScalarType, TensorType, f32, f64, i1, i64, int_range, ui8, ui16, ui32, ui64

UNARY = {"abs": "Abs", "sqrt": "Sqrt", "floor": "Floor", "ceil": "Ceil", "round": "Round", "exp": "Exp", "log": "Log",
         "sin": "Sin", "cos": "Cos", "tan": "Tan", "tanh": "Tanh", "sigmoid": "Sigmoid", "erf": "Erf", "asin": "Asin",
         "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh", "acosh": "Acosh",
         "atanh": "Atanh", "reciprocal": "Reciprocal"}
BINARY = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div"}
BITWISE = {"and": ("And", "BitwiseAnd"), "or": ("Or", "BitwiseOr"), "xor": ("Xor", "BitwiseXor")}
COMPARED = {"eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}
UNSIGNED: dict[int, ScalarType] = {8: ui8, 16: ui16, 32: ui32, 64: ui64}
BIT_CAST = 26
"""The first version of the operators that has BitCast."""


def is_unsigned(dtype: ScalarType) -> bool:
    """Whether a type is of integers without a sign."""
    return isinstance(dtype, IntType) and (dtype.unsigned or dtype == i1)


def in_floats(w: Writer, op: Op) -> list[str]:
    """The operands, of 16-bit floats in f32: steps of a computation are not rounded to 16 bits."""
    return [w.cast(x, f32) if (t := w.types[x].dtype).is_float and t.width == 16 else x for x in w.all(op.operands)]


@row(*(f"tensor.{n}" for n in UNARY))
def unary(w: Writer, op: Op) -> str:
    """One operation of one operand."""
    return w.unary(UNARY[op.name.partition(".")[2]], w.of(op.operands[0]))


@row(*(f"tensor.{n}" for n in BINARY))
def binary(w: Writer, op: Op) -> str:
    """One operation of two operands."""
    return w.binary(BINARY[op.name.partition(".")[2]], *w.all(op.operands))


@row("tensor.neg")
def neg(w: Writer, op: Op) -> str:
    """-x, of unsigned integers as 0 - x."""
    x = w.of(op.operands[0])
    return w.binary("Sub", w.like(0, x), x) if is_unsigned(w.types[x].dtype) else w.unary("Neg", x)


@row("tensor.sign")
def sign(w: Writer, op: Op) -> str:
    """0 for NaN, where ONNX Runtime has NaN."""
    x = w.of(op.operands[0])
    found = w.unary("Sign", x)
    return w.where(w.is_nan(x), w.like(0, x), found) if w.types[x].dtype.is_float else found


@row("tensor.logical_not")
def logical_not(w: Writer, op: Op) -> str:
    """not x"""
    return w.logical("Not", w.of(op.operands[0]))


@row("tensor.isnan")
def isnan(w: Writer, op: Op) -> str:
    """x != x"""
    return w.is_nan(w.of(op.operands[0]))


@row("tensor.rsqrt")
def rsqrt(w: Writer, op: Op) -> str:
    """1 / sqrt(x)"""
    x, = in_floats(w, op)
    return w.cast(w.unary("Reciprocal", w.unary("Sqrt", x)), result(op).dtype)


@row("tensor.expm1")
def expm1(w: Writer, op: Op) -> str:
    """tanh(x / 2) (e^x + 1), in which nothing cancels."""
    x, = in_floats(w, op)
    half = w.unary("Tanh", w.binary("Mul", x, w.like(0.5, x)))
    return w.cast(w.binary("Mul", half, w.binary("Add", w.unary("Exp", x), w.like(1, x))), result(op).dtype)


@row("tensor.log1p")
def log1p(w: Writer, op: Op) -> str:
    """log(u) x / (u - 1) for u = 1 + x, which corrects the rounding of u; x where u is 1 (Kahan)."""
    x, = in_floats(w, op)
    u = w.binary("Add", x, w.like(1, x))
    d, log = w.binary("Sub", u, w.like(1, x)), w.unary("Log", u)
    none = w.compare("Equal", d, w.like(0, x))
    ratio = w.binary("Div", x, w.where(none, w.like(1, x), d))
    found = w.where(w.compare("Equal", d, x), log, w.binary("Mul", log, ratio))
    return w.cast(w.where(none, x, found), result(op).dtype)


@row("tensor.exp2", "tensor.log2", "tensor.log10")
def other_bases(w: Writer, op: Op) -> str:
    """Powers of 2, and logarithms to other bases."""
    x, = in_floats(w, op)
    if op.name == "tensor.exp2":
        return w.cast(w.binary("Pow", w.like(2, x), x), result(op).dtype)
    base = 2 if op.name == "tensor.log2" else 10
    return w.cast(w.binary("Div", w.unary("Log", x), w.like(math.log(base), x)), result(op).dtype)


@row("tensor.erfc")
def erfc(w: Writer, op: Op) -> str:
    """1 - erf(x)"""
    x, = in_floats(w, op)
    return w.cast(w.binary("Sub", w.like(1, x), w.unary("Erf", x)), result(op).dtype)


@row("tensor.silu")
def silu(w: Writer, op: Op) -> str:
    """x times its sigmoid; at -inf it is 0."""
    x, = in_floats(w, op)
    return w.cast(w.binary("Mul", w.binary("Max", x, w.like(-800, x)), w.unary("Sigmoid", x)), result(op).dtype)


@row("tensor.hypot")
def hypot(w: Writer, op: Op) -> str:
    """m sqrt(1 + (n / m)^2) of the larger absolute value m and the smaller n; infinite if m is."""
    a, b = (w.unary("Abs", x) for x in in_floats(w, op))
    m, n = w.binary("Max", a, b), w.binary("Min", a, b)
    one, top = w.like(1, m), w.like(math.inf, m)
    ratio = w.binary("Div", n, w.where(w.compare("Equal", m, w.like(0, m)), one, m))
    found = w.binary("Mul", m, w.unary("Sqrt", w.binary("Add", one, w.binary("Mul", ratio, ratio))))
    infinite = w.logical("Or", w.compare("Equal", a, top), w.compare("Equal", b, top))
    return w.cast(w.where(infinite, top, found), result(op).dtype)


def _negative(w: Writer, x: str) -> str:
    """Where the sign of floats is -, also of zeros."""
    zero = w.like(0, x)
    return w.logical("Or", w.compare("Less", x, zero), w.compare("Less", w.unary("Reciprocal", x), zero))


@row("tensor.atan2")
def atan2(w: Writer, op: Op) -> str:
    """The arc tangent of the smaller absolute value by the larger, moved to the octant."""
    y, x = in_floats(w, op)
    a, b = w.unary("Abs", y), w.unary("Abs", x)
    m, n = w.binary("Max", a, b), w.binary("Min", a, b)
    one = w.like(1, m)
    safe = w.where(w.compare("Equal", m, w.like(0, m)), one, m)
    infinite = w.compare("Equal", n, w.like(math.inf, n))
    angle = w.unary("Atan", w.where(infinite, one, w.binary("Div", n, safe)))
    angle = w.where(w.compare("Greater", a, b), w.binary("Sub", w.like(math.pi / 2, m), angle), angle)
    angle = w.where(_negative(w, x), w.binary("Sub", w.like(math.pi, m), angle), angle)
    return w.cast(w.where(_negative(w, y), w.unary("Neg", angle), angle), result(op).dtype)


# -- quotients and powers ---------------------------------------------------------------------------------------------
@row("tensor.fmod", "tensor.rem", "tensor.floordiv")
def divisions(w: Writer, op: Op) -> str:
    """The remainder with the sign of the dividend, or of the divisor, and the quotient that is rounded down."""
    if result(op).dtype.is_float:
        return w.cast(_of_floats(w, op), result(op).dtype)
    a, b = w.all(op.operands)
    type, zero, one = result(op), w.like(0, b), w.like(1, b)
    nothing = w.compare("Equal", b, zero)
    special = nothing if is_unsigned(type.dtype) else w.logical("Or", nothing, w.compare("Equal", b, w.like(-1, b)))
    safe = w.where(special, one, b)                        # the quotient by -1 can overflow, which CPUs trap
    rest = w.op("Mod", [a, safe], type, fmod=int(op.name == "tensor.fmod"))
    if op.name != "tensor.floordiv":
        return rest                                        # 0 for divisors 0, 1 and -1
    found = w.binary("Div", w.binary("Sub", a, rest), safe)
    if special != nothing:
        found = w.where(w.compare("Equal", b, w.like(-1, b)), w.binary("Sub", w.like(0, a), a), found)
    return w.where(nothing, zero, found)


def _of_floats(w: Writer, op: Op) -> str:
    """As Python has them, by way of the exact remainder."""
    a, b = in_floats(w, op)
    type = TensorType(w.broadcast_shape(a, b), w.types[a].dtype)
    rest = w.op("Mod", [a, b], type, fmod=1)
    if op.name == "tensor.fmod":
        return rest
    zero = w.like(0, b)
    some = w.logical("Not", w.compare("Equal", rest, zero))
    differs = w.logical("And", some, w.logical("Xor", w.compare("Less", rest, zero), w.compare("Less", b, zero)))
    if op.name == "tensor.rem":
        return w.where(differs, w.binary("Add", rest, b), rest)
    whole = w.binary("Div", w.binary("Sub", a, rest), b)
    whole = w.where(differs, w.binary("Sub", whole, w.like(1, b)), whole)
    return w.where(w.compare("Equal", b, zero), w.binary("Div", a, b), w.unary("Round", whole))


@row("tensor.pow")
def power(w: Writer, op: Op) -> str:
    """A power of floats; of integers by squaring, digit by digit of the exponent."""
    x, y = w.all(op.operands)
    if result(op).dtype.is_float:
        return w.binary("Pow", x, y)
    dtype = result(op).dtype
    one, zero = w.like(1, x), w.like(0, x)
    known = w.static(y)
    bits = dtype.width - (0 if is_unsigned(dtype) else 1)
    if known is not None:
        bits = max((int(n).bit_length() for n in known.ravel()), default=0)
    negative = w.compare("Less", y, zero)
    left = w.where(negative, zero, y)
    found, square, two = one, x, w.like(2, x)
    for k in range(bits):
        odd = w.compare("Equal", w.op("Mod", [left, two], w.types[left], fmod=0), one)
        found = w.where(odd, w.binary("Mul", found, square), found)
        if k + 1 < bits:
            square, left = w.binary("Mul", square, square), w.binary("Div", left, two)
    if not is_unsigned(dtype):                             # the integer part of 1 / x^-y: not 0 for 1 and -1 only
        odd = w.compare("Equal", w.op("Mod", [y, two], w.types[y], fmod=0), one)
        unit = w.where(w.compare("Equal", x, w.like(-1, x)), w.where(odd, x, one), zero)
        unit = w.where(w.compare("Equal", x, one), one, unit)
        found = w.where(negative, unit, found)
    return w.expand(found, result(op).shape)


# -- bits -------------------------------------------------------------------------------------------------------------
@row(*(f"tensor.{n}" for n in BITWISE))
def bitwise(w: Writer, op: Op) -> str:
    """An operation on bits, or on truth values."""
    logical, bits = BITWISE[op.name.partition(".")[2]]
    xs = w.all(op.operands)
    return w.logical(logical, *xs) if result(op).dtype == i1 else w.binary(bits, *xs)


@row("tensor.shl", "tensor.shr")
def shift(w: Writer, op: Op) -> str:
    """A shift, which ONNX has for unsigned integers and by less than their width."""
    x, y = w.all(op.operands)
    dtype, left = result(op).dtype, op.name == "tensor.shl"
    bits = UNSIGNED[dtype.width]
    signed = not is_unsigned(dtype) and not left
    known = w.static(y)
    inside = None
    if known is None or not ((known >= 0) & (known < dtype.width)).all():
        inside = w.logical("And", w.compare("GreaterOrEqual", y, w.like(0, y)),
                           w.compare("Less", y, w.like(dtype.width, y)))
        y = w.where(inside, y, w.like(dtype.width - 1 if signed else 0, y))
    by, given = w.cast(y, bits), w.cast(x, bits)
    if signed:                                             # ~(~x >> y) for a negative x
        negative = w.compare("Less", x, w.like(0, x))
        ones = w.where(negative, w.constant(int_range(bits)[1], bits), w.constant(0, bits))
        given = w.binary("BitwiseXor", given, ones)
    type = TensorType(w.broadcast_shape(given, by), bits)
    found = w.op("BitShift", [given, by], type, direction="LEFT" if left else "RIGHT")
    if signed:
        return w.cast(w.binary("BitwiseXor", found, ones), dtype)
    found = w.cast(found, dtype)
    return found if inside is None else w.where(inside, found, w.like(0, found))


# -- comparisons and selection ----------------------------------------------------------------------------------------
@row("tensor.maximum", "tensor.minimum")
def extremum(w: Writer, op: Op) -> str:
    """The larger, or the smaller; NaN if one is."""
    xs, largest = w.all(op.operands), op.name == "tensor.maximum"
    if result(op).dtype == i1:
        return w.logical("Or" if largest else "And", *xs)
    return w.binary("Max" if largest else "Min", *xs)


@row("tensor.compare")
def compare(w: Writer, op: Any) -> str:
    """Elements beside each other."""
    xs = w.all(op.operands)
    return w.logical("Not", w.compare("Equal", *xs)) if op.predicate == "ne" else w.compare(COMPARED[op.predicate], *xs)


@row("tensor.select")
def select(w: Writer, op: Op) -> str:
    """a where the condition holds, else b"""
    return w.where(*w.all(op.operands))


# -- conversions ------------------------------------------------------------------------------------------------------
@row("tensor.cast", "tensor.from_scalar")
def cast(w: Writer, op: Op) -> str:
    """The elements in another type; from floats to integers rounded towards zero, to the nearest if out of range."""
    x, dtype = w.of(op.operands[0]), result(op).dtype
    source = w.types[x].dtype
    if not isinstance(source, FloatType) or not isinstance(dtype, IntType) or dtype == i1:
        return w.cast(x, dtype)
    if dtype.width == 64:
        return _to_64_bits(w, w.cast(x, WIDER.get(source, source)), dtype)
    low, high = int_range(dtype)
    x = w.cast(x, f64)
    x = w.where(w.is_nan(x), w.like(0, x), x)
    x = w.binary("Min", w.binary("Max", x, w.like(low, x)), w.like(high, x))
    return w.cast(w.cast(x, i64), dtype)


def _to_64_bits(w: Writer, x: str, dtype: IntType) -> str:
    """The largest integer is no float, so that it is selected."""
    low, high = int_range(dtype)
    x = w.binary("Max", w.where(w.is_nan(x), w.like(0, x), x), w.like(low, x))
    beyond = w.compare("GreaterOrEqual", x, w.like(float(high), x))
    return w.where(beyond, w.constant(high, dtype), w.cast(w.where(beyond, w.like(0, x), x), dtype))


@row("tensor.bitcast")
def bitcast(w: Writer, op: Op) -> str:
    """The bits as another type."""
    if w.opset < BIT_CAST:
        raise refused(op, f"the operators of version {w.opset} have no BitCast", f"pass opset_version={BIT_CAST}")
    dtype = result(op).dtype
    return w.op("BitCast", [w.of(op.operands[0])], result(op), to=data_type(dtype))
