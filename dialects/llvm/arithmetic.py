"""Instructions and intrinsics on numbers: the meaning of each is that of its counterpart in arith or math."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mlc.dialects import arith, math, vector
from mlc.dialects.arith import store
from mlc.dialects.llvm.types import PtrType, StructType, ptr
from mlc.ir.core import Op, ResultType, Value
from mlc.ir.types import (
    FloatType,
    IntType,
    ScalarType,
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


class Constant(Op, name="llvm.mlir.constant"):
    """result = value

    The value is a number, or an array for a vector; an array of one element fills the whole vector.
    """

    value: bool | float | np.ndarray[Any, Any]
    type: ResultType

    def infer(self) -> Type:
        type = self.results[0].type
        if not isinstance(type, IntType | FloatType | VectorType) or index in (type, element(type)):
            self.fail(f"no constant of {type}", code="MLC0166")
        return type  # type: ignore[no-any-return]

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
    """result = predicate(lhs, rhs); `o` predicates are false and `u` predicates true where either is NaN"""

    enums = {"predicate": ("_false", *tuple(arith.FLOAT_PREDICATES)[1:-1], "_true")}
    format = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs)"

    def ref(self, a: Any, b: Any) -> Any:
        meaning = arith.FLOAT_PREDICATES[self.predicate.removeprefix("_")]
        return store(meaning(np.asarray(a), np.asarray(b)), self.result.type)


class Select(arith.Select, name="llvm.select"):
    """result = condition ? true_value : false_value, element by element where the condition is a vector"""

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


class Freeze(Op, name="llvm.freeze"):
    """result = x, and some fixed value where x is undefined"""

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


class Bitcast(Op, name="llvm.bitcast"):
    """result = the same bits read as another type; a vector may be cut into elements of another width"""

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
    """The bits of a number or a vector of numbers; None for any other type."""
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


# -- vectors and structs ----------------------------------------------------------------------------------------------
class InsertElement(Op, name="llvm.insertelement"):
    """result = vector, with value in lane `position`"""

    vector: Value
    value: Value
    position: Value

    def infer(self) -> Type:
        type = self.vector.type
        if not isinstance(type, VectorType) or type.rank != 1 or type.dtype != self.value.type:
            self.fail(f"a {self.value.type} is no element of {type}", code="MLC0166")
        if not isinstance(self.position.type, IntType):
            self.fail(f"the position is {self.position.type}, no integer", code="MLC0166")
        return type  # type: ignore[no-any-return]

    def ref(self, x: Any, value: Any, position: Any) -> Any:
        out = np.array(x)
        out[_lane(self, out, position)] = value
        return out

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self)
        p.append(f" {p.name(self.value)}, {p.name(self.vector)}[{p.name(self.position)} : {p.type(self.position.type)}]"
                 f"{' ' + extra if extra else ''} : {p.type(self.vector.type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        value, _, whole, _ = parser.operand(), parser.expect(","), parser.operand(), parser.expect("[")
        position, _, kind, _ = parser.operand(), parser.expect(":"), parser.type(), parser.expect("]")
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        type = parser.type()
        part = type.dtype if isinstance(type, VectorType) else None
        operands = [parser.resolve(whole, type), parser.resolve(value, part), parser.resolve(position, kind)]
        return InsertElement.make(operands, extra, None)


class ExtractElement(Op, name="llvm.extractelement"):
    """result = lane `position` of vector"""

    vector: Value
    position: Value

    def infer(self) -> Type:
        type = self.vector.type
        if not isinstance(type, VectorType) or type.rank != 1 or not isinstance(self.position.type, IntType):
            self.fail(f"lane {self.position.type} of {type}", code="MLC0166")
        return type.dtype  # type: ignore[no-any-return]

    def ref(self, x: Any, position: Any) -> Any:
        return x[_lane(self, x, position)]

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self)
        p.append(f" {p.name(self.vector)}[{p.name(self.position)} : {p.type(self.position.type)}]"
                 f"{' ' + extra if extra else ''} : {p.type(self.vector.type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        whole, _ = parser.operand(), parser.expect("[")
        position, _, kind, _ = parser.operand(), parser.expect(":"), parser.type(), parser.expect("]")
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        return ExtractElement.make([parser.resolve(whole, parser.type()), parser.resolve(position, kind)], extra, None)


def _lane(op: Op, array: Any, position: Any) -> int:
    if not 0 <= int(position) < len(array):
        op.fail(f"lane {position} of {len(array)}", code="MLC0163")
    return int(position)


class ShuffleVector(Op, name="llvm.shufflevector"):
    """result[l] = (v1 ++ v2)[mask[l]], undefined where mask[l] is -1"""

    v1: Value
    v2: Value
    mask: tuple[int, ...]
    attr_types = {"mask": "i32"}
    format = "$v1 `,` $v2 $mask attr-dict `:` type($v1)"

    def infer(self) -> Type:
        type = self.v1.type
        if not isinstance(type, VectorType) or type.rank != 1 or self.v2.type != type:
            self.fail(f"takes two vectors of one type, got {type} and {self.v2.type}", code="MLC0166")
        if not self.mask or any(not -1 <= m < 2 * type.shape[0] for m in self.mask):
            self.fail(f"{list(self.mask)} names lanes that two {type} do not have", code="MLC0166")
        return VectorType((len(self.mask),), type.dtype)

    def ref(self, a: Any, b: Any) -> Any:
        poison = undefined(self.v1.type)[:1]
        return np.concatenate([a, b, poison])[list(self.mask)]

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        a, _, b = parser.operand(), parser.expect(","), parser.operand()
        mask = parser.attribute()
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        type = parser.type()
        return ShuffleVector.make(parser.resolve_all([a, b], [type, type]), {"mask": mask, **extra}, None)


class ExtractValue(Op, name="llvm.extractvalue"):
    """result = the member of a struct at `position`"""

    container: Value
    position: tuple[int, ...]
    format = "$container $position attr-dict `:` type($container)"

    def infer(self) -> Type:
        return _member(self, self.container.type, self.position)

    def ref(self, x: Any) -> Any:
        for i in self.position:
            x = x[i]
        return x


class InsertValue(Op, name="llvm.insertvalue"):
    """result = a struct, with `value` as the member at `position`"""

    container: Value
    value: Value
    position: tuple[int, ...]

    def infer(self) -> Type:
        if _member(self, self.container.type, self.position) != self.value.type:
            self.fail(f"a {self.value.type} is no member {list(self.position)} of {self.container.type}",
                      code="MLC0166")
        return self.container.type  # type: ignore[no-any-return]

    def ref(self, x: Any, value: Any) -> Any:
        def put(x: Any, position: tuple[int, ...]) -> Any:
            if not position:
                return value
            first, *rest = position
            return tuple(put(m, tuple(rest)) if i == first else m for i, m in enumerate(x))
        return put(x, self.position)

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, ("position",))
        p.append(f" {p.name(self.value)}, {p.name(self.container)}{list(self.position)}{' ' + extra if extra else ''}"
                 f" : {p.type(self.container.type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        value, _, container = parser.operand(), parser.expect(","), parser.operand()
        position = parser.attribute()
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        type = parser.type()
        member = type
        for i in position:
            member = member.members[i] if isinstance(member, StructType) else member
        return InsertValue.make([parser.resolve(container, type), parser.resolve(value, member)],
                                {"position": position, **extra}, None)


def _member(op: Op, type: Type, position: tuple[int, ...]) -> Type:
    for i in position:
        if not isinstance(type, StructType) or not 0 <= i < len(type.members):
            op.fail(f"{type} has no member {i}", code="MLC0166")
        type = type.members[i]  # type: ignore[attr-defined]
    return type


def undefined(type: Type) -> Any:
    """What the interpreter takes where a value is undefined: all bits set, NaN in every float type."""
    if isinstance(type, StructType):
        return tuple(undefined(m) for m in type.members)
    if element(type) == ptr:
        from mlc.dialects.llvm.memory import NULL
        return np.full(type.shape, NULL) if isinstance(type, VectorType) else NULL
    count = vector.lane_count(type)
    dtype = to_numpy(element(type))
    raw = np.ones(count, np.bool_) if dtype == np.bool_ else np.full(count * dtype.itemsize, 0xFF, np.uint8).view(dtype)
    return raw.reshape(type.shape) if isinstance(type, VectorType) else raw[0]


class _Source(Op):
    """A value that needs no operands."""

    type: ResultType
    format = "attr-dict `:` type(result)"

    def infer(self) -> Type:
        type = self.results[0].type
        if not isinstance(type, IntType | FloatType | VectorType | StructType | PtrType):
            self.fail(f"no value of {type}", code="MLC0166")
        return type  # type: ignore[no-any-return]

    def ref(self) -> Any:
        return undefined(self.result.type)


class Undef(_Source, name="llvm.mlir.undef"):
    """result = any value, at each use another"""


class Poison(_Source, name="llvm.mlir.poison"):
    """result = a value that must not matter"""


class Zero(_Source, name="llvm.mlir.zero"):
    """result = the value whose bits are all zero; the null pointer"""

    def ref(self) -> Any:
        from mlc.dialects.llvm.memory import NULL

        def zero(type: Type) -> Any:
            if isinstance(type, StructType):
                return tuple(zero(m) for m in type.members)
            if element(type) == ptr:
                return np.full(type.shape, NULL) if isinstance(type, VectorType) else NULL
            dtype = to_numpy(element(type))
            return np.zeros(type.shape, dtype) if isinstance(type, VectorType) else dtype.type(0)
        return zero(self.result.type)


# -- intrinsics -------------------------------------------------------------------------------------------------------
_UNARY = "`(` $x `)` attr-dict `:` functional-type"
_BINARY = "`(` $lhs `,` $rhs `)` attr-dict `:` functional-type"


class FMA(math.Fma, name="llvm.intr.fma"):
    """result = a * b + c, rounded once"""

    format = "`(` $a `,` $b `,` $c `)` attr-dict `:` functional-type"


class Sqrt(math.Sqrt, name="llvm.intr.sqrt"):
    """result = the float nearest to the square root of x"""

    format = _UNARY


class FAbs(math.AbsF, name="llvm.intr.fabs"):
    """result = |x|: the sign bit cleared, also of NaN"""

    format = _UNARY


class Floor(math.Floor, name="llvm.intr.floor"):
    """result = the largest integer <= x"""

    format = _UNARY


class Ceil(math.Ceil, name="llvm.intr.ceil"):
    """result = the smallest integer >= x"""

    format = _UNARY


class RoundEven(math.RoundEven, name="llvm.intr.roundeven"):
    """result = the integer nearest to x, of two the even one"""

    format = _UNARY


class TruncF(math.Trunc, name="llvm.intr.trunc"):
    """result = the integer nearest to x towards zero"""

    format = _UNARY


class CopySign(math.CopySign, name="llvm.intr.copysign"):
    """result = the magnitude of lhs with the sign bit of rhs"""

    format = _BINARY


class Maximum(arith.MaximumF, name="llvm.intr.maximum"):
    """result = max(lhs, rhs); NaN if either is NaN; +0 > -0"""

    format = _BINARY


class Minimum(arith.MinimumF, name="llvm.intr.minimum"):
    """result = min(lhs, rhs); NaN if either is NaN; -0 < +0"""

    format = _BINARY


class SMax(arith.MaxSI, name="llvm.intr.smax"):
    """result = max(lhs, rhs), signed"""

    format = _BINARY


class SMin(arith.MinSI, name="llvm.intr.smin"):
    """result = min(lhs, rhs), signed"""

    format = _BINARY


class UMax(arith.MaxUI, name="llvm.intr.umax"):
    """result = max(lhs, rhs), unsigned"""

    format = _BINARY


class UMin(arith.MinUI, name="llvm.intr.umin"):
    """result = min(lhs, rhs), unsigned"""

    format = _BINARY


class Reduce(Op):
    """result = the lanes of a vector joined by `kind`, of `vector.reduction`'s kinds"""

    vector: Value
    kind: ClassVar[str]
    format = "`(` $vector `)` attr-dict `:` functional-type"

    def infer(self) -> ScalarType:
        type = self.vector.type
        if not isinstance(type, VectorType) or type.rank != 1 or not isinstance(
                type.dtype, vector.KINDS[self.kind].accepts):
            self.fail(f"does not work on {type}", code="MLC0166")
        return type.dtype  # type: ignore[no-any-return]

    def ref(self, x: Any) -> Any:
        return vector.join_lanes(self.kind, list(x), self.result.type)


class ReduceAdd(Reduce, name="llvm.intr.vector.reduce.add"):
    """result = the sum of the lanes modulo 2^width"""

    kind = "add"


class ReduceMul(Reduce, name="llvm.intr.vector.reduce.mul"):
    """result = the product of the lanes modulo 2^width"""

    kind = "mul"


class ReduceAnd(Reduce, name="llvm.intr.vector.reduce.and"):
    """result = all lanes joined by &"""

    kind = "and"


class ReduceOr(Reduce, name="llvm.intr.vector.reduce.or"):
    """result = all lanes joined by |"""

    kind = "or"


class ReduceXor(Reduce, name="llvm.intr.vector.reduce.xor"):
    """result = all lanes joined by ^"""

    kind = "xor"


class ReduceSMax(Reduce, name="llvm.intr.vector.reduce.smax"):
    """result = the largest lane, signed"""

    kind = "maxsi"


class ReduceSMin(Reduce, name="llvm.intr.vector.reduce.smin"):
    """result = the smallest lane, signed"""

    kind = "minsi"


class ReduceUMax(Reduce, name="llvm.intr.vector.reduce.umax"):
    """result = the largest lane, unsigned"""

    kind = "maxui"


class ReduceUMin(Reduce, name="llvm.intr.vector.reduce.umin"):
    """result = the smallest lane, unsigned"""

    kind = "minui"


class ReduceFMaximum(Reduce, name="llvm.intr.vector.reduce.fmaximum"):
    """result = the largest lane; NaN if any is NaN"""

    kind = "maximumf"


class ReduceFMinimum(Reduce, name="llvm.intr.vector.reduce.fminimum"):
    """result = the smallest lane; NaN if any is NaN"""

    kind = "minimumf"
