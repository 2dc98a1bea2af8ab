"""Arithmetic instructions, with the semantics of their counterparts in arith or math."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects import arith, vector
from mlc.dialects.arith import store
from mlc.ir.core import Op, ResultType, Value
from mlc.ir.types import (
    FloatType,
    IntType,
    ShapedType,
    Type,
    VectorType,
    element,
    i1,
    index,
    to_numpy,
)

if TYPE_CHECKING:
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


class Constant(Op, name="llvm.mlir.constant", pure=True):
    """result = value

    The value is a number, or an array for a vector; an array of one element fills the whole vector.
    """

    value: bool | float | np.ndarray[Any, Any]
    type: ResultType

    def infer(self) -> Type:
        type = self.results[0].type
        if not isinstance(type, IntType | FloatType | VectorType) or index in (type, element(type)):
            self.fail(f"no constant of {type}", code="MLC0166")
        return type

    def ref(self) -> Any:
        if isinstance(self.type, ShapedType):
            return np.broadcast_to(np.asarray(self.value, to_numpy(self.type.dtype)), self.type.shape)
        return store(self.value, self.type)

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        if name == "value":
            return arith.constant_text(value, self.type, generic)
        return super().attr_text(name, value, generic)

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, ("value",))
        p.append(f"({self.attr_text('value', self.value, False)}){' ' + extra if extra else ''} : {p.type(self.type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        parser.expect("(")
        value = arith.parse_constant(parser)[0]
        parser.expect(")")
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        return Constant.make([], {"value": value, **extra}, [parser.type()])


def constant(value: Any, type: Type) -> Value:
    """A constant of a scalar type, or a splat of a vector type."""
    return Constant(value, type).result


# -- integers ---------------------------------------------------------------------------------------------------------
class Add(arith.AddI, name="llvm.add"):
    """result = lhs + rhs modulo 2^width"""


class Sub(arith.SubI, name="llvm.sub"):
    """result = lhs - rhs modulo 2^width"""


class Mul(arith.MulI, name="llvm.mul"):
    """result = lhs * rhs modulo 2^width"""


class SDiv(arith.DivSI, name="llvm.sdiv"):
    """result = trunc(lhs / rhs), signed; undefined for rhs = 0 and for overflow"""


class UDiv(arith.DivUI, name="llvm.udiv"):
    """result = floor(lhs / rhs), unsigned; undefined for rhs = 0"""


class SRem(arith.RemSI, name="llvm.srem"):
    """result = lhs - rhs * trunc(lhs / rhs), signed; undefined for rhs = 0 and for overflow"""


class URem(arith.RemUI, name="llvm.urem"):
    """result = lhs mod rhs, unsigned; undefined for rhs = 0"""


class And(arith.AndI, name="llvm.and"):
    """result = lhs & rhs"""


class Or(arith.OrI, name="llvm.or"):
    """result = lhs | rhs"""


class Xor(arith.XorI, name="llvm.xor"):
    """result = lhs ^ rhs"""


class Shl(arith.ShLI, name="llvm.shl"):
    """result = lhs * 2^rhs modulo 2^width; undefined for rhs >= width"""


class AShr(arith.ShRSI, name="llvm.ashr"):
    """result = floor(lhs / 2^rhs), signed; undefined for rhs >= width"""


class LShr(arith.ShRUI, name="llvm.lshr"):
    """result = floor(lhs / 2^rhs), unsigned; undefined for rhs >= width"""


class ICmp(arith.CmpI, name="llvm.icmp"):
    """result = predicate(lhs, rhs); `s` compares signed and `u` unsigned"""

    format = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs)"


# -- floats -----------------------------------------------------------------------------------------------------------
class FAdd(arith.AddF, name="llvm.fadd"):
    """result = lhs + rhs"""


class FSub(arith.SubF, name="llvm.fsub"):
    """result = lhs - rhs"""


class FMul(arith.MulF, name="llvm.fmul"):
    """result = lhs * rhs"""


class FDiv(arith.DivF, name="llvm.fdiv"):
    """result = lhs / rhs"""


class FNeg(arith.NegF, name="llvm.fneg"):
    """result = -x, also for NaN and zero"""


class FCmp(arith.CmpF, name="llvm.fcmp"):
    """result = predicate(lhs, rhs); with a NaN, `o` predicates are false and `u` predicates true"""

    enums = {"predicate": ("_false", *tuple(arith.FLOAT_PREDICATES)[1:-1], "_true")}
    format = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs)"

    def ref(self, a: Any, b: Any) -> Any:
        meaning = arith.FLOAT_PREDICATES[self.predicate.removeprefix("_")]
        return store(meaning(np.asarray(a), np.asarray(b)), self.result.type)


class Select(arith.Select, name="llvm.select"):
    """result = condition ? true_value : false_value, elementwise if the condition is a vector"""

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self)
        p.append(f" {p.values(self.operands)}{' ' + extra if extra else ''} : "
                 f"{p.type(self.condition.type)}, {p.type(self.result.type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        refs = parser.operand_list()
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        condition, _, type = parser.type(), parser.expect(","), parser.type()
        return Select.make(parser.resolve_all(refs, [condition, type, type]), extra, None)


class Freeze(Op, name="llvm.freeze", pure=True):
    """result = x, or an arbitrary but fixed value if x is undefined"""

    x: Value
    format = "$x attr-dict `:` type($x)"

    def infer(self) -> Type:
        return self.x.type  # type: ignore[no-any-return]

    def ref(self, x: Any) -> Any:
        return x


# -- conversions ------------------------------------------------------------------------------------------------------
class Trunc(arith.TruncI, name="llvm.trunc"):
    """result = x modulo 2^width"""


class ZExt(arith.ExtUI, name="llvm.zext"):
    """result = x, unsigned, in a wider integer type"""


class SExt(arith.ExtSI, name="llvm.sext"):
    """result = x, signed, in a wider integer type"""


class FPTrunc(arith.TruncF, name="llvm.fptrunc"):
    """result = x rounded to a narrower float type, to nearest even"""


class FPExt(arith.ExtF, name="llvm.fpext"):
    """result = x in a wider float type, exactly"""


class SIToFP(arith.SIToFP, name="llvm.sitofp"):
    """result = x, signed, rounded to the float type"""


class UIToFP(arith.UIToFP, name="llvm.uitofp"):
    """result = x, unsigned, rounded to the float type"""


class FPToSI(arith.FPToSI, name="llvm.fptosi"):
    """result = trunc(x), signed; undefined where it does not fit"""


class FPToUI(arith.FPToUI, name="llvm.fptoui"):
    """result = trunc(x), unsigned; undefined where it does not fit"""


class Bitcast(Op, name="llvm.bitcast", pure=True):
    """result = the same bits as another type; a vector may be divided into elements of another width"""

    x: Value
    type: ResultType
    format = "$x attr-dict `:` type($x) `to` type(result)"

    def infer(self) -> Type:
        source, target = self.x.type, self.results[0].type
        if _bits(source) != _bits(target) or _bits(source) is None:
            self.fail(f"{source} has not the bits of {target}", code="MLC0166")
        return target  # type: ignore[no-any-return]

    def ref(self, x: Any) -> Any:
        bits = _as_lanes(x, self.x.type)
        out = _from_lanes(bits, self.result.type)
        return out if isinstance(self.result.type, ShapedType) else out[0]


def _bits(type: Type) -> int | None:
    """The number of bits of a number or a vector of numbers; None for any other type."""
    scalar = type.dtype if isinstance(type, VectorType) and type.rank == 1 else type
    if not isinstance(scalar, IntType | FloatType):
        return None
    return vector.lane_count(type) * scalar.width


def _as_lanes(x: Any, type: Type) -> Any:
    """The bits of a value, as bytes; a vector of i1 counts eight lanes to the byte, the first lowest."""
    array = np.atleast_1d(np.asarray(x, to_numpy(element(type))))
    return np.packbits(array, bitorder="little") if element(type) == i1 else np.ascontiguousarray(array).view(np.uint8)


def _from_lanes(bits: Any, type: Type) -> Any:
    if element(type) == i1:
        return np.unpackbits(bits, count=vector.lane_count(type), bitorder="little").astype(np.bool_)
    return bits.view(to_numpy(element(type)))
