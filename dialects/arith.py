"""arith: arithmetic on scalars, and on vectors and tiles element by element, as upstream defines it.

Integers are signless: an operation says which reading it means. Floating-point operations are IEEE 754 with one
rounding and no contraction. `ref` works on numpy scalars and arrays alike; an `index` is a Python int.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mlc.ir.core import OPERATORS, Op, ResultType, Value
from mlc.ir.rewrite import rewrite
from mlc.ir.types import (
    FloatType,
    IndexType,
    IntType,
    ScalarType,
    ShapedType,
    Type,
    bf16,
    element,
    i1,
    index,
    like,
    to_numpy,
)

if TYPE_CHECKING:
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer

_UNSIGNED = {1: np.bool_, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def store(value: Any, type: Type) -> Any:
    """`value` as the interpreter keeps values of `type`: Python int, numpy scalar, or array; rounded once."""
    dtype = element(type)
    if dtype == bf16:
        value = _odd_float32(value)
    if isinstance(type, ShapedType):
        return np.asarray(value).astype(to_numpy(dtype), copy=False)
    if isinstance(value, int) and isinstance(dtype, IntType) and dtype != i1:
        lowest = 0 if dtype.unsigned else -1 << dtype.width - 1
        value = (value - lowest) % (1 << dtype.width) + lowest
    if isinstance(value, np.ndarray) and value.ndim:         # a scalar operation run on many elements at once
        return value.astype(to_numpy(dtype), copy=False)
    return int(value) if dtype == index else to_numpy(dtype).type(value)


def _odd_float32(value: Any) -> Any:
    """A wider number as a float32 that rounds to the bfloat16 nearest to it: ml_dtypes goes through float32.

    The detour is exact if its first step rounds to odd: the neighbour whose last bit is 1 where it is inexact.
    """
    wide = np.asarray(value)
    if wide.dtype.kind in "iu":
        wide = wide_to_odd(wide)
    if wide.dtype != np.float64:
        return value
    narrow = np.asarray(wide.astype(np.float32))
    bits = narrow.view(np.int32)
    inexact = (narrow != wide) & (bits & 1 == 0) & ~np.isnan(wide)
    away = np.abs(narrow.astype(np.float64)) > np.abs(wide)
    return np.where(inexact, bits + np.where(away, -1, 1).astype(np.int32), bits).view(np.float32)


def wide_to_odd(x: Any) -> Any:
    """A 64-bit integer as a float64, exact below 2^53 and rounded to odd above: bit 11 collects those below it."""
    collected = (x >> 11 << 11) | ((x & 2047 != 0).astype(x.dtype) << 11) if x.dtype.itemsize == 8 else x
    exact = (x < 1 << 53) & (x > -(1 << 53)) if x.dtype.kind == "i" else x < 1 << 53
    return np.where(exact, x, collected).astype(np.float64)


def unsigned(x: Any, type: Type) -> Any:
    """The same bits read as an unsigned integer."""
    return np.asarray(x, to_numpy(element(type))).view(_UNSIGNED[element(type).width])


class Constant(Op, name="arith.constant"):
    """result = value

    The value is a number, or an array for a vector; an array of one element fills the whole vector.
    """

    value: bool | float | np.ndarray[Any, Any]
    type: ResultType

    def infer(self) -> Type:
        type = self.results[0].type
        dtype, shape = getattr(type, "dtype", type), getattr(type, "shape", ())
        given = () if isinstance(self.value, int | float) else np.shape(self.value)  # numpy takes 2 us for a number
        if not isinstance(dtype, ScalarType) or None in shape or given not in ((), (1,) * len(shape), shape):
            self.fail(f"the value does not fit {type}", code="MLC0109")
        if isinstance(dtype, IntType | IndexType) and not given and (
                self.value % 1 != 0 or not -(1 << dtype.width - 1) <= self.value < 1 << dtype.width):
            self.fail(f"{self.value} is no {dtype}", code="MLC0109")
        return type  # type: ignore[no-any-return]

    def ref(self) -> Any:
        if isinstance(self.type, ShapedType):
            return np.broadcast_to(np.asarray(self.value, to_numpy(self.type.dtype)), self.type.shape)
        return store(self.value, self.type)

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        return constant_text(value, self.type, generic) if name == "value" else super().attr_text(name, value, generic)

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, ("value",))
        p.append(f" {extra + ' ' if extra else ''}{self.attr_text('value', self.value, False)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        extra = parser.attr_dict() if parser.at("{") else {}
        value, type = parse_constant(parser)
        return Constant.make([], {"value": value, **extra}, [type])


def constant_text(value: Any, type: Type, generic: bool) -> str:
    """`1.0 : f32`, `true`, `dense<[1, 2]> : vector<2xi32>`"""
    from mlc.ir.printer import elements_text, float_text
    if isinstance(type, ShapedType):
        array = np.broadcast_to(np.asarray(value, to_numpy(type.dtype)), type.shape)
        return elements_text(array, type.text(generic))
    if type == i1:
        return "true" if value else "false"
    number = float_text(value, type) if isinstance(type, FloatType) else str(int(value))
    return f"{number} : {type}"


def parse_constant(parser: Parser) -> tuple[Any, Type]:
    """What `constant_text` writes; a vector of equal elements gives one number."""
    if parser.at("dense"):
        array, type = parser.dense()
        first = array.reshape(-1)[:1]
        same = bool(array.size) and array.tobytes() == first.tobytes() * array.size        # 0 and -0 are not the same
        return (first[0].item() if same else array), type
    if parser.at("true") or parser.at("false"):
        return parser.take().text == "true", i1
    value, scalar = parser.typed_number()
    if scalar is None:
        parser.fail("a constant needs a type, as in 1.0 : f32")
    return value, scalar


def constant(value: Any, type: Type) -> Value:
    """A constant of a scalar type, or a splat of a shaped one."""
    return Constant(value, type).result


def constant_value(value: Value) -> Any:
    """What a value is known to be at compile time, or None."""
    return value.op.ref() if isinstance(value.op, Constant) else None


class Elementwise(Op):
    """Operands and result of one type; the meaning `f` of the elements is numpy's."""

    f: ClassVar[Callable[..., Any]]
    accepts: ClassVar[tuple[type[ScalarType], ...]] = ()

    def infer(self) -> Type:
        first: Type = self.operands[0].type
        for v in self.operands[1:]:
            if v.type != first:
                self.fail(f"operand types differ: {first} and {v.type}", code="MLC0109")
        if not isinstance(element(first), self.accepts):
            self.fail(f"does not work on {first}", code="MLC0109")
        return first

    def ref(self, *xs: Any) -> Any:
        return store(type(self).f(*xs), self.results[0].type)

    def fold(self) -> Any:
        if isinstance(self.result.type, FloatType | IntType | IndexType) and all(
                isinstance(v.op, Constant) for v in self.operands):
            return self.ref(*(constant_value(v) for v in self.operands))
        return None


def one_bit(x: Any) -> Any:
    """A bool as a signed number of one bit: 0 or -1."""
    return -np.asarray(x).astype(np.int8)


def wrapped(x: Any) -> Any:
    """An index, kept as a Python int, modulo 2^64; other numbers wrap by themselves."""
    return (x + (1 << 63)) % (1 << 64) - (1 << 63) if isinstance(x, int) and not -1 << 63 <= x < 1 << 63 else x


class FloatBinary(Elementwise):
    lhs: Value
    rhs: Value
    accepts = (FloatType,)
    format = "$lhs `,` $rhs attr-dict `:` type(result)"


class IntBinary(Elementwise):
    lhs: Value
    rhs: Value
    accepts = (IntType, IndexType)
    format = "$lhs `,` $rhs attr-dict `:` type(result)"

    def ref(self, *xs: Any) -> Any:
        if element(self.lhs.type) == i1:                 # numpy's bool is no number of one bit
            return store(np.asarray(type(self).f(*map(one_bit, xs))) & 1, self.result.type)
        return store(wrapped(type(self).f(*xs)), self.result.type)


class UnsignedBinary(IntBinary):
    """As IntBinary, with `f` on the unsigned reading of both operands."""

    def ref(self, *xs: Any) -> Any:
        if element(self.lhs.type) == i1:
            return store(type(self).f(*(np.asarray(x).astype(np.uint8) for x in xs)), self.result.type)
        out = type(self).f(*(unsigned(x, self.lhs.type) for x in xs))
        return store(np.asarray(out).view(to_numpy(element(self.lhs.type))), self.result.type)


def _maximum(a: Any, b: Any) -> Any:
    """IEEE 754-2019 maximum: NaN if either is, and +0 above -0."""
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a), b, a), np.maximum(a, b))


def _minimum(a: Any, b: Any) -> Any:
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a), a, b), np.minimum(a, b))


def _truncated_division(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    quotient = np.floor_divide(a, b)
    return np.where((np.remainder(a, b) != 0) & ((a < 0) != (b < 0)), quotient + 1, quotient)


def _floor_division(a: Any, b: Any) -> Any:
    return 0 if isinstance(b, int) and b == 0 else a // b


def _shift(by: Any) -> Any:
    """How far a shift goes; by the width or more it is undefined, and an index must not become a number without end."""
    return by & 63 if isinstance(by, int) else by


class AddF(FloatBinary, name="arith.addf", commutative=True):
    """result = lhs + rhs"""

    f = staticmethod(np.add)


class SubF(FloatBinary, name="arith.subf"):
    """result = lhs - rhs"""

    f = staticmethod(np.subtract)


class MulF(FloatBinary, name="arith.mulf", commutative=True):
    """result = lhs * rhs"""

    f = staticmethod(np.multiply)


class DivF(FloatBinary, name="arith.divf"):
    """result = lhs / rhs"""

    f = staticmethod(np.divide)


class RemF(FloatBinary, name="arith.remf"):
    """result = lhs - rhs * trunc(lhs / rhs), exactly, with the sign of lhs"""

    f = staticmethod(np.fmod)


class MaximumF(FloatBinary, name="arith.maximumf", commutative=True):
    """result = max(lhs, rhs); NaN if either is NaN; +0 > -0"""

    f = staticmethod(_maximum)


class MinimumF(FloatBinary, name="arith.minimumf", commutative=True):
    """result = min(lhs, rhs); NaN if either is NaN; -0 < +0"""

    f = staticmethod(_minimum)


class NegF(Elementwise, name="arith.negf"):
    """result = -x, also for NaN and zero"""

    x: Value
    f = staticmethod(np.negative)
    accepts = (FloatType,)
    format = "$x attr-dict `:` type(result)"


class AddI(IntBinary, name="arith.addi", commutative=True):
    """result = lhs + rhs modulo 2^width"""

    f = staticmethod(lambda a, b: a + b)


class SubI(IntBinary, name="arith.subi"):
    """result = lhs - rhs modulo 2^width"""

    f = staticmethod(lambda a, b: a - b)


class MulI(IntBinary, name="arith.muli", commutative=True):
    """result = lhs * rhs modulo 2^width"""

    f = staticmethod(lambda a, b: a * b)


class DivSI(IntBinary, name="arith.divsi"):
    """result = trunc(lhs / rhs), signed; undefined for rhs = 0 and for overflow"""

    f = staticmethod(_truncated_division)


class RemSI(IntBinary, name="arith.remsi"):
    """result = lhs - rhs * trunc(lhs / rhs), signed"""

    f = staticmethod(lambda a, b: a - b * _truncated_division(a, b))


class FloorDivSI(IntBinary, name="arith.floordivsi"):
    """result = floor(lhs / rhs), signed; undefined for rhs = 0 and for overflow"""

    f = staticmethod(_floor_division)


class DivUI(UnsignedBinary, name="arith.divui"):
    """result = floor(lhs / rhs), unsigned"""

    f = staticmethod(np.floor_divide)


class RemUI(UnsignedBinary, name="arith.remui"):
    """result = lhs mod rhs, unsigned"""

    f = staticmethod(np.remainder)


class AndI(IntBinary, name="arith.andi", commutative=True):
    """result = lhs & rhs"""

    f = staticmethod(lambda a, b: a & b)


class OrI(IntBinary, name="arith.ori", commutative=True):
    """result = lhs | rhs"""

    f = staticmethod(lambda a, b: a | b)


class XorI(IntBinary, name="arith.xori", commutative=True):
    """result = lhs ^ rhs"""

    f = staticmethod(lambda a, b: a ^ b)


class ShLI(IntBinary, name="arith.shli"):
    """result = lhs * 2^rhs modulo 2^width; undefined for rhs >= width"""

    f = staticmethod(lambda a, b: a << _shift(b))


class ShRSI(IntBinary, name="arith.shrsi"):
    """result = floor(lhs / 2^rhs), signed; undefined for rhs >= width"""

    f = staticmethod(lambda a, b: a >> _shift(b))


class ShRUI(UnsignedBinary, name="arith.shrui"):
    """result = floor(lhs / 2^rhs), unsigned; undefined for rhs >= width"""

    f = staticmethod(np.right_shift)


class MaxSI(IntBinary, name="arith.maxsi", commutative=True):
    """result = max(lhs, rhs), signed"""

    f = staticmethod(np.maximum)


class MinSI(IntBinary, name="arith.minsi", commutative=True):
    """result = min(lhs, rhs), signed"""

    f = staticmethod(np.minimum)


class MaxUI(UnsignedBinary, name="arith.maxui", commutative=True):
    """result = max(lhs, rhs), unsigned"""

    f = staticmethod(np.maximum)


class MinUI(UnsignedBinary, name="arith.minui", commutative=True):
    """result = min(lhs, rhs), unsigned"""

    f = staticmethod(np.minimum)


FLOAT_PREDICATES: dict[str, Callable[[Any, Any], Any]] = {
    "false": lambda a, b: np.zeros(np.broadcast(a, b).shape, bool),
    "oeq": lambda a, b: a == b, "ogt": lambda a, b: a > b, "oge": lambda a, b: a >= b,
    "olt": lambda a, b: a < b, "ole": lambda a, b: a <= b, "one": lambda a, b: (a < b) | (a > b),
    "ord": lambda a, b: (a == a) & (b == b),
    "ueq": lambda a, b: ~((a < b) | (a > b)), "ugt": lambda a, b: ~(a <= b), "uge": lambda a, b: ~(a < b),
    "ult": lambda a, b: ~(a >= b), "ule": lambda a, b: ~(a > b), "une": lambda a, b: a != b,
    "uno": lambda a, b: (a != a) | (b != b),
    "true": lambda a, b: np.ones(np.broadcast(a, b).shape, bool),
}
INT_PREDICATES: dict[str, Callable[[Any, Any], Any]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "slt": lambda a, b: a < b, "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b, "sge": lambda a, b: a >= b, "ult": lambda a, b: a < b, "ule": lambda a, b: a <= b,
    "ugt": lambda a, b: a > b, "uge": lambda a, b: a >= b,
}


class _Compare(Elementwise):
    predicate: str
    lhs: Value
    rhs: Value
    format = "$predicate `,` $lhs `,` $rhs attr-dict `:` type($lhs)"

    def infer(self) -> Type:
        if self.predicate not in self.enums["predicate"]:
            self.fail(f"no predicate {self.predicate!r}", code="MLC0109")
        return like(Elementwise.infer(self), i1)


class CmpF(_Compare, name="arith.cmpf"):
    """result = predicate(lhs, rhs); `o` predicates are false and `u` predicates true where either is NaN"""

    accepts = (FloatType,)
    enums = {"predicate": tuple(FLOAT_PREDICATES)}

    def ref(self, a: Any, b: Any) -> Any:
        return store(FLOAT_PREDICATES[self.predicate](np.asarray(a), np.asarray(b)), self.result.type)


class CmpI(_Compare, name="arith.cmpi"):
    """result = predicate(lhs, rhs); `s` compares signed and `u` unsigned"""

    accepts = (IntType, IndexType)
    enums = {"predicate": tuple(INT_PREDICATES)}

    def ref(self, a: Any, b: Any) -> Any:
        if self.predicate.startswith("u"):
            a, b = unsigned(a, self.lhs.type), unsigned(b, self.lhs.type)
        elif element(self.lhs.type) == i1:
            a, b = one_bit(a), one_bit(b)
        return store(INT_PREDICATES[self.predicate](a, b), self.result.type)


class Select(Op, name="arith.select"):
    """result = condition ? true_value : false_value, element by element where the condition is a vector"""

    condition: Value
    true_value: Value
    false_value: Value

    def infer(self) -> Type:
        if self.true_value.type != self.false_value.type:
            self.fail(f"operand types differ: {self.true_value.type} and {self.false_value.type}", code="MLC0109")
        if self.condition.type not in (i1, like(self.true_value.type, i1) if isinstance(
                self.true_value.type, ShapedType | ScalarType) else i1):
            self.fail(f"condition {self.condition.type} does not fit {self.true_value.type}", code="MLC0109")
        return self.true_value.type  # type: ignore[no-any-return]

    def print_form(self, p: Printer) -> None:
        kind = "" if self.condition.type == i1 else p.type(self.condition.type) + ", "
        extra = p.attr_dict(self)
        p.append(f" {p.values(self.operands)}{' ' + extra if extra else ''} : {kind}{p.type(self.result.type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        refs = parser.operand_list()
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        types = parser.type_list()
        condition = types[0] if len(types) == 2 else i1
        return Select.make(parser.resolve_all(refs, [condition, types[-1], types[-1]]), extra, None)

    def ref(self, c: Any, a: Any, b: Any) -> Any:
        if not isinstance(self.condition.type, ShapedType) and np.ndim(c) == 0:
            return a if c else b
        return store(np.where(c, a, b), self.result.type)

    def fold(self) -> Value | None:
        chosen = constant_value(self.condition)
        return None if chosen is None or np.ndim(chosen) else self.true_value if chosen else self.false_value


class Cast(Op):
    """An element-wise change of type; the classes say which types they join."""

    x: Value
    type: ResultType
    source: ClassVar[tuple[Any, ...]]
    target: ClassVar[tuple[Any, ...]]
    format = "$x attr-dict `:` type($x) `to` type(result)"

    def infer(self) -> Type:
        source, target = element(self.x.type), element(self.result.type)
        if (not isinstance(source, self.source) or not isinstance(target, self.target)
                or like(self.x.type, target) != self.result.type or not self.fits(source, target)):
            self.fail(f"cannot convert {self.x.type} to {self.result.type}", code="MLC0109")
        return self.result.type  # type: ignore[no-any-return]

    def fits(self, source: ScalarType, target: ScalarType) -> bool:
        return True

    def ref(self, x: Any) -> Any:
        return store(x, self.result.type)

    def fold(self) -> Any:
        if isinstance(self.x.op, Constant) and not isinstance(self.x.type, ShapedType):
            return self.ref(constant_value(self.x))
        return None


class ExtF(Cast, name="arith.extf"):
    """result = x in a wider float type, exactly"""

    source = target = (FloatType,)

    def fits(self, source: ScalarType, target: ScalarType) -> bool:
        return source.width < target.width


class TruncF(Cast, name="arith.truncf"):
    """result = x rounded to a narrower float type, to nearest even"""

    source = target = (FloatType,)

    def fits(self, source: ScalarType, target: ScalarType) -> bool:
        return source.width > target.width


class ExtSI(Cast, name="arith.extsi"):
    """result = x, signed, in a wider integer type"""

    source = target = (IntType,)

    def fits(self, source: ScalarType, target: ScalarType) -> bool:
        return source.width < target.width

    def ref(self, x: Any) -> Any:
        return -store(x, self.result.type) if element(self.x.type) == i1 else store(x, self.result.type)


class ExtUI(Cast, name="arith.extui"):
    """result = x, unsigned, in a wider integer type"""

    source = target = (IntType,)

    def fits(self, source: ScalarType, target: ScalarType) -> bool:
        return source.width < target.width

    def ref(self, x: Any) -> Any:
        return store(unsigned(x, self.x.type), self.result.type)


class TruncI(Cast, name="arith.trunci"):
    """result = x modulo 2^width"""

    source = target = (IntType,)

    def fits(self, source: ScalarType, target: ScalarType) -> bool:
        return source.width > target.width

    def ref(self, x: Any) -> Any:
        return store(x & 1, self.result.type) if element(self.result.type) == i1 else store(x, self.result.type)


class SIToFP(Cast, name="arith.sitofp"):
    """result = x, signed, rounded to the float type"""

    source, target = (IntType,), (FloatType,)

    def ref(self, x: Any) -> Any:
        return store(one_bit(x) if element(self.x.type) == i1 else x, self.result.type)


class UIToFP(Cast, name="arith.uitofp"):
    """result = x, unsigned, rounded to the float type"""

    source, target = (IntType,), (FloatType,)

    def ref(self, x: Any) -> Any:
        return store(unsigned(x, self.x.type), self.result.type)


class FPToSI(Cast, name="arith.fptosi"):
    """result = trunc(x), signed; undefined where it does not fit"""

    source, target = (FloatType,), (IntType,)


class FPToUI(Cast, name="arith.fptoui"):
    """result = trunc(x), unsigned; undefined where it does not fit"""

    source, target = (FloatType,), (IntType,)

    def ref(self, x: Any) -> Any:
        wide: Any = np.asarray(x).astype(_UNSIGNED[element(self.result.type).width])
        return store(wide.view(to_numpy(element(self.result.type))), self.result.type)


class IndexCast(Cast, name="arith.index_cast"):
    """result = x, signed, between an integer type and index"""

    source = target = (IntType, IndexType)

    def fits(self, source: ScalarType, target: ScalarType) -> bool:
        return (source == index) != (target == index)

    def ref(self, x: Any) -> Any:
        return _to_bits(one_bit(x) if element(self.x.type) == i1 else x, self.result.type)


class IndexCastUI(Cast, name="arith.index_castui"):
    """result = x, unsigned, between an integer type and index"""

    source = target = (IntType, IndexType)

    def fits(self, source: ScalarType, target: ScalarType) -> bool:
        return (source == index) != (target == index)

    def ref(self, x: Any) -> Any:
        return _to_bits(unsigned(x, self.x.type), self.result.type)


def _to_bits(x: Any, type: Type) -> Any:
    """An integer modulo 2^width of `type`, which may be i1 or index."""
    bits = np.asarray(x)
    wide: Any = bits.view(np.int64) if bits.dtype == np.uint64 else bits.astype(np.int64)
    return store(wide & 1 if element(type) == i1 else wide, type)


class Bitcast(Cast, name="arith.bitcast"):
    """result = the same bits read as another type of the same width"""

    source = target = (IntType, FloatType)

    def fits(self, source: ScalarType, target: ScalarType) -> bool:
        return source.width == target.width

    def ref(self, x: Any) -> Any:
        bits = np.asarray(x, to_numpy(element(self.x.type))).view(to_numpy(element(self.result.type)))
        return store(bits, self.result.type)


def _as_value(x: Any, like_value: Value) -> Value:
    return x if isinstance(x, Value) else constant(x, like_value.type)


def _binary(float_op: type[Op], int_op: type[Op]) -> Callable[[Any, Any], Value]:
    def build(a: Any, b: Any) -> Value:
        first = a if isinstance(a, Value) else b
        cls = float_op if isinstance(element(first.type), FloatType) else int_op
        return cls(_as_value(a, first), _as_value(b, first)).result
    return build


OPERATORS["arith.add"] = _binary(AddF, AddI)
OPERATORS["arith.sub"] = _binary(SubF, SubI)
OPERATORS["arith.mul"] = _binary(MulF, MulI)
OPERATORS["arith.div"] = _binary(DivF, DivSI)
OPERATORS["arith.neg"] = lambda x: NegF(x).result if isinstance(element(x.type), FloatType) else 0 - x


def _is(value: Value, number: int) -> bool:
    known = constant_value(value)
    return known is not None and bool(np.all(np.asarray(known) == number)) and not isinstance(
        element(value.type), FloatType)


@rewrite(AddI, SubI, ShLI, ShRSI, ShRUI, OrI, XorI)
def zero_on_the_right(op: IntBinary) -> Value | None:
    """x + 0 == x - 0 == x << 0 == x >> 0 == x | 0 == x ^ 0 == x"""
    return op.lhs if _is(op.rhs, 0) else None


@rewrite(AddI, OrI, XorI)
def zero_on_the_left(op: IntBinary) -> Value | None:
    """0 + x == 0 | x == 0 ^ x == x"""
    return op.rhs if _is(op.lhs, 0) else None


@rewrite(MulI)
def multiply_by_one(op: MulI) -> Value | None:
    """x * 1 == 1 * x == x"""
    return op.lhs if _is(op.rhs, 1) else op.rhs if _is(op.lhs, 1) else None


@rewrite(MulI)
def multiply_by_zero(op: MulI) -> Value | None:
    """x * 0 == 0 * x == 0"""
    return op.rhs if _is(op.rhs, 0) else op.lhs if _is(op.lhs, 0) else None


@rewrite(DivSI, FloorDivSI, DivUI)
def divide_by_one(op: IntBinary) -> Value | None:
    """x / 1 == x"""
    return op.lhs if _is(op.rhs, 1) else None
