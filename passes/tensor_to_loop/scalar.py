"""Scalar arithmetic of elementwise operations and reductions.

Every operation is exact or correctly rounded; polynomial approximations have been expanded by fix_numerics. Integers
are signless below the tensor level, so the tensor's element type chooses between signed and unsigned operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlc.dialects import arith, math
from mlc.dialects import tensor as tn
from mlc.dialects.combining import CombiningKind
from mlc.dialects.tensor.elementwise import Elementwise
from mlc.ir.core import Op, Value
from mlc.ir.types import FloatType, IntType, ScalarType, f32, i1


def scalar(op: Op, dtypes: Sequence[ScalarType], xs: Sequence[Value]) -> Value:
    """One element of the result of `op`, from one element of each operand; `dtypes` are the operands' element types."""
    if isinstance(op, tn.Cast):
        return cast_scalar(xs[0], dtypes[0], op.result.type.dtype)
    if isinstance(op, tn.Bitcast):
        target = op.result.type.dtype
        bits = IntType(target.width) if isinstance(target, IntType) else target
        return xs[0] if xs[0].type == bits else arith.Bitcast(xs[0], bits).result
    if isinstance(op, tn.Compare):
        return _compare(op.predicate, dtypes[0], *xs)
    if isinstance(op, tn.Select):
        return arith.Select(*xs).result
    is_float = isinstance(dtypes[0], FloatType)
    if isinstance(op, Elementwise) and (same := op.on_floats if is_float else op.on_integers) is not None:
        return same(*xs).result
    rules = _ON_FLOATS if is_float else _ON_INTEGERS
    if type(op) not in rules:
        op.fail(f"has no scalar form for {dtypes[0]}", code="MLC0170")
    return rules[type(op)](dtypes[0], *xs)


def _const(value: float, x: Value) -> Value:
    return arith.constant(value, x.type)


def _is_unsigned(dtype: ScalarType) -> bool:
    return isinstance(dtype, IntType) and (dtype.unsigned or dtype == i1)


def _choose(signed: type[Op], unsigned: type[Op]) -> Callable[..., Value]:
    return lambda t, *xs: (unsigned if _is_unsigned(t) else signed)(*xs).result


def _float_sign(t: ScalarType, x: Value) -> Value:
    """0 where x is 0 or NaN, else 1 with the sign of x"""
    unit, zero = math.CopySign(_const(1.0, x), x).result, _const(0.0, x)
    return arith.Select(arith.CmpF("one", x, zero).result, unit, zero).result


def _int_sign(t: ScalarType, x: Value) -> Value:
    zero, one = _const(0, x), _const(1, x)
    positive = arith.CmpI("ne" if _is_unsigned(t) else "sgt", x, zero).result
    negative = _const(0, x) if _is_unsigned(t) else arith.ShRSI(x, _const(x.type.width - 1, x)).result
    return arith.Select(positive, one, negative).result


def _safe_divisor(b: Value, a: Value | None = None) -> Value:
    """b, or 1 where division by b traps: at 0, and at -1 if a is the minimum of the type."""
    one = _const(1, b)
    trap = arith.CmpI("eq", b, _const(0, b)).result
    if a is not None:
        least = arith.CmpI("eq", a, _const(-(1 << (a.type.width - 1)), a)).result
        minus = arith.CmpI("eq", b, _const(-1, b)).result
        trap = arith.OrI(trap, arith.AndI(least, minus).result).result
    return arith.Select(trap, one, b).result


def _int_floordiv(t: ScalarType, a: Value, b: Value) -> Value:
    """floor(a / b); 0 where b is 0, and a negated (wrapped to itself) where the quotient of -2^n and -1 overflows"""
    zero = _const(0, a)
    by_zero = arith.CmpI("eq", b, zero).result
    if _is_unsigned(t):
        quotient = arith.DivUI(a, _safe_divisor(b)).result
    else:
        divisor = _safe_divisor(b, a)
        truncated = arith.DivSI(a, divisor).result
        rest = arith.SubI(a, arith.MulI(truncated, divisor).result).result
        inexact = arith.CmpI("ne", rest, zero).result
        opposite = arith.CmpI("slt", arith.XorI(rest, divisor).result, zero).result
        down = arith.AndI(inexact, opposite).result
        quotient = arith.SubI(truncated, arith.ExtUI(down, a.type).result).result
    return arith.Select(by_zero, zero, quotient).result


def _int_rem(t: ScalarType, a: Value, b: Value) -> Value:
    """a - b * floor(a / b), and 0 where b is 0"""
    rest = arith.SubI(a, arith.MulI(b, _int_floordiv(t, a, b)).result).result
    return arith.Select(arith.CmpI("eq", b, _const(0, b)).result, _const(0, a), rest).result


def _int_fmod(t: ScalarType, a: Value, b: Value) -> Value:
    """a - b * trunc(a / b), and 0 where b is 0"""
    rest = (arith.RemUI(a, _safe_divisor(b)) if _is_unsigned(t) else arith.RemSI(a, _safe_divisor(b, a))).result
    return arith.Select(arith.CmpI("eq", b, _const(0, b)).result, _const(0, a), rest).result


def _shift(left: bool) -> Callable[..., Value]:
    def build(t: ScalarType, a: Value, b: Value) -> Value:
        """Shifts by the width or more give what shifting one by one would: 0, or the sign."""
        width = a.type.width
        far = arith.CmpI("uge", b, _const(width if width > 1 else 1, b)).result
        within = arith.Select(far, _const(width - 1, b), b).result
        if left:
            return arith.Select(far, _const(0, a), arith.ShLI(a, within).result).result
        if _is_unsigned(t):
            return arith.Select(far, _const(0, a), arith.ShRUI(a, within).result).result
        return arith.ShRSI(a, within).result
    return build


def _logical_not(t: ScalarType, x: Value) -> Value:
    if isinstance(t, FloatType):
        return arith.CmpF("oeq", x, _const(0.0, x)).result
    return arith.CmpI("eq", x, _const(0, x)).result


def _int_pow(t: ScalarType, a: Value, b: Value) -> Value:
    """a ** b modulo 2^width by squaring, a step per bit of the exponent; a negative exponent gives 1 / a, truncated"""
    one, zero = _const(1, a), _const(0, a)
    result, square = one, a
    bits = a.type.width if _is_unsigned(t) else a.type.width - 1
    for i in range(bits):
        bit = arith.AndI(arith.ShRUI(b, _const(i, b)).result, _const(1, b)).result
        use = arith.CmpI("ne", bit, zero).result
        result = arith.Select(use, arith.MulI(result, square).result, result).result
        square = arith.MulI(square, square).result
    if _is_unsigned(t):
        return result
    odd = arith.CmpI("ne", arith.AndI(b, _const(1, b)).result, zero).result
    minus = arith.Select(odd, _const(-1, a), one).result
    inverse = arith.Select(arith.CmpI("eq", a, one).result, one, arith.Select(
        arith.CmpI("eq", a, _const(-1, a)).result, minus, zero).result).result
    return arith.Select(arith.CmpI("slt", b, zero).result, inverse, result).result


_ON_FLOATS: dict[type[Op], Callable[..., Value]] = {
    tn.Sign: _float_sign,
    tn.Reciprocal: lambda t, x: arith.DivF(_const(1.0, x), x).result,
    tn.IsNan: lambda t, x: arith.CmpF("uno", x, x).result, tn.LogicalNot: _logical_not,
}
"""The rules of operations that are more than one operation of arith or math (`Elementwise.on_floats`)."""
_ON_INTEGERS: dict[type[Op], Callable[..., Value]] = {
    tn.Neg: lambda t, x: arith.SubI(_const(0, x), x).result,
    tn.Abs: lambda t, x: x if _is_unsigned(t) else math.AbsI(x).result, tn.Sign: _int_sign,
    tn.Floor: lambda t, x: x, tn.Ceil: lambda t, x: x, tn.Round: lambda t, x: x,
    tn.IsNan: lambda t, x: arith.constant(False, i1), tn.LogicalNot: _logical_not,
    tn.FloorDiv: _int_floordiv,
    tn.Rem: _int_rem, tn.Fmod: _int_fmod, tn.Pow: _int_pow,
    tn.Maximum: _choose(arith.MaxSI, arith.MaxUI), tn.Minimum: _choose(arith.MinSI, arith.MinUI),
    tn.Shl: _shift(True), tn.Shr: _shift(False),
}


def _compare(predicate: str, t: ScalarType, a: Value, b: Value) -> Value:
    if isinstance(t, FloatType):
        return arith.CmpF("une" if predicate == "ne" else "o" + predicate, a, b).result
    sign = "" if predicate in ("eq", "ne") else "u" if _is_unsigned(t) else "s"
    return arith.CmpI(sign + predicate, a, b).result


def cast_scalar(x: Value, source: ScalarType, target: ScalarType) -> Value:
    """x in another element type: floats round to nearest even, float to integer truncates and saturates (NaN: 0),
    integers wrap, and anything but 0 is true."""
    if source == target:
        return x
    if target == i1:
        if isinstance(source, FloatType):
            return arith.CmpF("une", x, _const(0.0, x)).result
        return arith.CmpI("ne", x, _const(0, x)).result
    if isinstance(source, FloatType):
        return _float_to_float(x, source, target) if isinstance(target, FloatType) else _float_to_int(x, target)
    if isinstance(target, FloatType):
        return _int_to_float(x, source, target)
    if target.width == source.width:
        return x
    if target.width < source.width:
        return arith.TruncI(x, IntType(target.width)).result
    return (arith.ExtUI if _is_unsigned(source) else arith.ExtSI)(x, IntType(target.width)).result


def _float_to_float(x: Value, source: ScalarType, target: ScalarType) -> Value:
    if source.width == target.width:                 # f16 and bf16: neither holds the other
        x, source = arith.ExtF(x, f32).result, f32
    return (arith.ExtF if target.width > source.width else arith.TruncF)(x, target).result


def _int_to_float(x: Value, source: ScalarType, target: ScalarType) -> Value:
    convert = arith.UIToFP if _is_unsigned(source) else arith.SIToFP
    return convert(x, target).result


def _float_to_int(x: Value, target: ScalarType) -> Value:
    """Clamped first, since a number out of range has no defined conversion; both bounds are exact in the float type."""
    width, unsigned = target.width, _is_unsigned(target)
    if x.type.width < 32:
        x = arith.ExtF(x, f32).result
    low, high = (0, (1 << width) - 1) if unsigned else (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    edge = float(high + 1)                           # a power of two; the least float that does not fit
    below = arith.CmpF("ogt", x, _const(float(low), x)).result if not unsigned else arith.CmpF(
        "ogt", x, _const(-1.0, x)).result
    fits = arith.AndI(below, arith.CmpF("olt", x, _const(edge, x)).result).result
    inside = arith.Select(fits, x, _const(0.0, x)).result
    number = (arith.FPToUI if unsigned else arith.FPToSI)(inside, IntType(width)).result
    over = arith.CmpF("oge", x, _const(edge, x)).result
    top = -1 if unsigned else high
    out = arith.Select(over, arith.constant(top, number.type), number).result
    if unsigned:
        return out
    under = arith.CmpF("ole", x, _const(float(low), x)).result
    return arith.Select(under, arith.constant(low, number.type), out).result


def identity(kind: CombiningKind, dtype: ScalarType) -> float | int | bool:
    """The identity element of a combining kind as a signless number, as elements below the tensor level are."""
    number = kind.identity(dtype)
    return number - (1 << dtype.width) if _is_unsigned(dtype) and number >= 1 << (dtype.width - 1) and (
        dtype != i1) else number


__all__ = ["cast_scalar", "identity", "scalar"]
