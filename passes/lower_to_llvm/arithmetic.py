"""Lowering of arith and math: one instruction or intrinsic each, except where LLVM would emit a library call.

16-bit floats are stored as their bits, in i16. They are computed in f32, where double rounding is innocuous for + - * /
and the square root (24 bits are at least 2*11 + 2). Conversions are expanded here, since LLVM emits library calls for
most of them, or flushes denormals to zero (AVX512_BF16).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlc.dialects import arith, llvm, math
from mlc.ir.core import Op, Value
from mlc.ir.types import ScalarType, Type, VectorType, element, f16, f32, f64, i1, i16, index
from mlc.passes.lower_to_llvm.lowering import (
    RULES,
    Lowering,
    Parts,
    as_int,
    convert,
    convert_scalar,
    is_narrow,
    rule,
    width,
    with_element,
)
from mlc.passes.lower_to_llvm.memory import is_in_addresses_only
from mlc.passes.lower_to_llvm.remainder import remainder

BITWISE = (arith.NegF, math.AbsF, math.CopySign)
"""Operations on the sign bit."""
CASTS = (arith.ExtSI, arith.ExtUI, arith.TruncI)
OWN_ROWS = (arith.CmpI, arith.CmpF, math.Fma)
"""Operations that are one instruction on most types, and several on others."""
DIRECT: dict[type[Op], type[Op]] = {
    op: instruction for op, instruction in llvm.INSTRUCTIONS.items()
    if issubclass(op, arith.Elementwise) and op not in BITWISE and op not in OWN_ROWS}
"""Operations that map to one instruction; 16-bit floats are extended to f32 and rounded back."""

ROW_RULES: dict[type[Op], Callable[..., Value]] = {}
"""Lowers one row of an elementwise operation, given the operation and a row of each operand."""


def rows(*targets: type[Op]) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register the lowering of one row of an elementwise operation."""
    def register(apply: Callable[..., Value]) -> Callable[..., Value]:
        for target in targets:
            ROW_RULES[target] = apply
            RULES[target] = _elementwise
        return apply
    return register


def _elementwise(low: Lowering, op: Op) -> list[Parts]:
    apply = ROW_RULES[type(op)]
    return [[apply(low, op, *row) for row in zip(*(low.env[v] for v in op.operands))]]


# -- constants and plain instructions ---------------------------------------------------------------------------------
@rule(arith.Constant)
def _constant(low: Lowering, op: arith.Constant) -> list[Parts]:
    type, = set(convert(op.type))
    if not isinstance(op.type, VectorType):
        return [[llvm.constant(_bits(op.ref()) if is_narrow(op.type) else op.value, type)]]
    lines = np.asarray(op.ref()).reshape(-1, op.type.shape[-1])
    if is_narrow(op.type):
        lines = np.ascontiguousarray(lines).view(np.int16)
    same = [line.tobytes() == line[:1].tobytes() * line.size for line in lines]
    return [[llvm.constant(line[0].item() if splat else line, type) for line, splat in zip(lines, same)]]


def _bits(value: Any) -> int:
    return int(np.asarray(value).view(np.int16))


@rows(*DIRECT)
def _direct(low: Lowering, op: Op, *xs: Value) -> Value:
    cls = DIRECT[type(op)]
    kind = element(op.operands[0].type)
    if not is_narrow(kind):
        return cls(*xs).result
    return narrow(cls(*(widen(x, kind) for x in xs)).result, kind)


@rule(arith.AddI)
def _add(low: Lowering, op: arith.AddI) -> list[Parts] | None:
    """No instruction for an index plus a constant that occurs in addresses only."""
    if op.result.type == index and isinstance(offset := low.number(op.rhs), int) and is_in_addresses_only(op):
        low.offsets[op.result] = low.number(op.lhs), offset
        return None
    return _elementwise(low, op)


@rows(*CASTS)
def _cast(low: Lowering, op: arith.Cast, x: Value) -> Value:
    return llvm.INSTRUCTIONS[type(op)](x, target_type(op, x)).result


def target_type(op: arith.Cast, x: Value) -> Type:
    """The type of one row of a cast's result."""
    return with_element(x.type, convert_scalar(element(op.type)))


@rows(arith.FloorDivSI)
def _floor_div(low: Lowering, op: Op, a: Value, b: Value) -> Value:
    """The truncated quotient, minus one if the remainder is nonzero and its sign differs from that of b."""
    quotient, remainder = llvm.SDiv(a, b).result, llvm.SRem(a, b).result
    zero = llvm.constant(0, a.type)
    signs = llvm.ICmp("slt", llvm.Xor(remainder, b).result, zero).result
    lower = llvm.And(llvm.ICmp("ne", remainder, zero).result, signs).result
    return llvm.Add(quotient, llvm.SExt(lower, a.type).result if width(a) > 1 else lower).result


@rows(math.AbsI)
def _abs(low: Lowering, op: Op, x: Value) -> Value:
    return llvm.SMax(x, llvm.Sub(llvm.constant(0, x.type), x).result).result


@rows(arith.CmpI)
def _compare(low: Lowering, op: arith.CmpI, a: Value, b: Value) -> Value:
    return llvm.ICmp(op.predicate, a, b).result


@rows(arith.CmpF)
def _compare_floats(low: Lowering, op: arith.CmpF, a: Value, b: Value) -> Value:
    kind = element(op.lhs.type)
    a, b = (widen(x, kind) if is_narrow(kind) else x for x in (a, b))
    return llvm.FCmp({"true": "_true", "false": "_false"}.get(op.predicate, op.predicate), a, b).result


@rule(arith.Select)
def _select(low: Lowering, op: arith.Select) -> list[Parts]:
    """A scalar condition applies to every part of the values."""
    yes, no = low.env[op.true_value], low.env[op.false_value]
    conditions = low.env[op.condition]
    conditions = conditions * len(yes) if op.condition.type == i1 else conditions
    return [[llvm.Select(c, a, b).result for c, a, b in zip(conditions, yes, no)]]


@rows(*BITWISE)
def _sign(low: Lowering, op: Op, *xs: Value) -> Value:
    if not is_narrow(op.operands[0].type):
        return llvm.INSTRUCTIONS[type(op)](*xs).result
    sign, magnitude_bits = (llvm.constant(n, xs[0].type) for n in (-0x8000, 0x7FFF))
    if isinstance(op, arith.NegF):
        return llvm.Xor(xs[0], sign).result
    magnitude = llvm.And(xs[0], magnitude_bits).result
    if isinstance(op, math.AbsF):
        return magnitude
    return llvm.Or(magnitude, llvm.And(xs[1], sign).result).result


@rows(math.Fma)
def _fma(low: Lowering, op: Op, a: Value, b: Value, c: Value) -> Value:
    """For 16-bit floats: the product is exact in f64, and the sum is rounded to odd in f64 before 16 bits."""
    kind = element(op.operands[0].type)
    if not is_narrow(kind):
        return llvm.FMA(a, b, c).result
    a, b, c = (llvm.FPExt(widen(x, kind), with_element(x.type, f64)).result for x in (a, b, c))
    product = llvm.FMul(a, b).result
    total = llvm.FAdd(product, c).result
    part = llvm.FSub(total, product).result
    error = llvm.FAdd(llvm.FSub(product, llvm.FSub(total, part).result).result, llvm.FSub(c, part).result).result
    zero = llvm.constant(0.0, a.type)
    inexact = llvm.FCmp("one", error, zero).result                     # false if the error is NaN (infinite sum)
    away = llvm.Xor(llvm.FCmp("ogt", error, zero).result, llvm.FCmp("ogt", total, zero).result).result
    return narrow(_to_odd(total, inexact, away), kind)


@rows(arith.RemF)
def _remainder(low: Lowering, op: Op, a: Value, b: Value) -> Value:
    """The remainder of two 16-bit floats is representable in 16 bits, so computing it in f32 is exact."""
    kind = element(op.operands[0].type)
    if is_narrow(kind):
        return narrow(remainder(low, widen(a, kind), widen(b, kind)), kind)
    return remainder(low, a, b)


# -- conversions ------------------------------------------------------------------------------------------------------
def target_scalar(op: arith.Cast) -> ScalarType:
    """The element type of a cast's result."""
    return element(op.result.type)


@rows(arith.ExtF)
def _extend(low: Lowering, op: arith.ExtF, x: Value) -> Value:
    x = _wide(op, x)
    target = target_type(op, x)
    return x if x.type == target else llvm.FPExt(x, target).result


@rows(arith.TruncF)
def _truncate(low: Lowering, op: arith.TruncF, x: Value) -> Value:
    if is_narrow(op.result.type):
        return narrow(x, target_scalar(op), has_bf16=low.is_for_gpu)
    return llvm.FPTrunc(x, target_type(op, x)).result


@rows(arith.SIToFP, arith.UIToFP)
def _to_float(low: Lowering, op: arith.Cast, x: Value) -> Value:
    cls = llvm.SIToFP if isinstance(op, arith.SIToFP) else llvm.UIToFP
    if not is_narrow(op.result.type):
        return cls(x, target_type(op, x)).result
    if width(x) < 24:                                                     # exact in f32
        return narrow(cls(x, with_element(x.type, f32)).result, target_scalar(op))
    if width(x) == 64:
        x = _collect(x, signed=cls is llvm.SIToFP)
    return narrow(cls(x, with_element(x.type, f64)).result, target_scalar(op))


def _collect(x: Value, signed: bool) -> Value:
    """Round x to odd at bit 11: the result is exact in f64, and rounds to fewer bits as x does (sticky bit)."""
    def number(n: int) -> Value:
        return llvm.constant(n, x.type)
    low = llvm.ICmp("ne", llvm.And(x, number(2047)).result, number(0)).result
    sticky = llvm.Shl(llvm.ZExt(low, x.type).result, number(11)).result
    collected = llvm.Or(llvm.And(x, number(-2048)).result, sticky).result
    small = llvm.ICmp("ult", x, number(1 << 53)).result
    if signed:
        small = llvm.ICmp("ult", llvm.Add(x, number(1 << 53)).result, number(1 << 54)).result
    return llvm.Select(small, x, collected).result


@rows(arith.FPToSI, arith.FPToUI)
def _to_int(low: Lowering, op: arith.Cast, x: Value) -> Value:
    x = _wide(op, x)
    return (llvm.FPToSI if isinstance(op, arith.FPToSI) else llvm.FPToUI)(x, target_type(op, x)).result


@rows(arith.IndexCast, arith.IndexCastUI)
def _index_cast(low: Lowering, op: arith.Cast, x: Value) -> Value:
    target = target_type(op, x)
    before, after = width(x), element(target).width
    if before == after:
        return x
    if before > after:
        return llvm.Trunc(x, target).result
    return (llvm.SExt if isinstance(op, arith.IndexCast) else llvm.ZExt)(x, target).result


@rows(arith.Bitcast)
def _bitcast(low: Lowering, op: arith.Cast, x: Value) -> Value:
    target = target_type(op, x)
    return x if x.type == target else llvm.Bitcast(x, target).result


# -- 16-bit floats ----------------------------------------------------------------------------------------------------
def widen(x: Value, kind: ScalarType) -> Value:
    """Extend the bits of a 16-bit float to f32, exactly. A bfloat16 is the high half of an f32."""
    target = with_element(x.type, f32)
    if kind == f16:
        return llvm.FPExt(llvm.Bitcast(x, with_element(x.type, f16)).result, target).result
    bits = llvm.ZExt(x, as_int(target)).result
    return llvm.Bitcast(llvm.Shl(bits, llvm.constant(16, as_int(target))).result, target).result


def _wide(op: Op, x: Value) -> Value:
    """The operand of an operation, extended to f32 if it is a 16-bit float."""
    kind = element(op.operands[0].type)
    return widen(x, kind) if is_narrow(kind) else x


def narrow(x: Value, kind: ScalarType, has_bf16: bool = False) -> Value:
    """Round an f32 or f64 to the bits of a 16-bit float, to nearest even; `has_bf16`: whether one instruction rounds to
    bf16, which may change the bits of a NaN."""
    if element(x.type) == f64:
        x = _odd_f32(x)
    if kind == f16 or has_bf16:
        return llvm.Bitcast(llvm.FPTrunc(x, with_element(x.type, kind)).result, with_element(x.type, i16)).result
    ints = as_int(x.type)
    bits = llvm.Bitcast(x, ints).result

    def number(n: int) -> Value:
        return llvm.constant(n, ints)
    odd = llvm.ICmp("ne", llvm.And(bits, number(1 << 16)).result, number(0)).result
    rounded = llvm.Add(bits, llvm.Select(odd, number(0x8000), number(0x7FFF)).result).result
    quiet = llvm.Or(bits, number(0x40 << 16)).result       # rounding could carry a NaN to infinity
    chosen = llvm.Select(llvm.FCmp("uno", x, x).result, quiet, rounded).result
    return llvm.Trunc(llvm.LShr(chosen, number(16)).result, with_element(x.type, i16)).result


def _odd_f32(x: Value) -> Value:
    """Round an f64 to odd in f32, so that a further rounding gives the same bits as rounding x directly."""
    nearest = llvm.FPTrunc(x, with_element(x.type, f32)).result
    back = llvm.FPExt(nearest, x.type).result
    inexact = llvm.FCmp("one", back, x).result
    away = llvm.FCmp("ogt", llvm.FAbs(back).result, llvm.FAbs(x).result).result
    return _to_odd(nearest, inexact, away)


def _to_odd(x: Value, inexact: Value, away: Value) -> Value:
    """Round to odd: of the two floats adjacent to an inexact number, the one with last bit 1. x is the nearest one;
    `away`: whether it is further from zero than the number."""
    ints = as_int(x.type)
    bits = llvm.Bitcast(x, ints).result
    even = llvm.ICmp("eq", llvm.And(bits, llvm.constant(1, ints)).result, llvm.constant(0, ints)).result
    step = llvm.Select(away, llvm.constant(-1, ints), llvm.constant(1, ints)).result
    moved = llvm.Add(bits, step).result
    return llvm.Bitcast(llvm.Select(llvm.And(even, inexact).result, moved, bits).result, x.type).result

