"""Insertion into and extraction from vectors and structs, and undefined, poison and zero values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects import vector
from mlc.dialects.llvm.types import PtrType, StructType, ptr
from mlc.ir.core import Op, ResultType, Value
from mlc.ir.interp import NOWHERE, Pointer
from mlc.ir.types import FloatType, IntType, Type, VectorType, element, to_numpy

if TYPE_CHECKING:
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer

NULL = Pointer(NOWHERE, 0)
"""The null pointer, which cannot be dereferenced."""


class InsertElement(Op, name="llvm.insertelement", pure=True):
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
        return type

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


class ExtractElement(Op, name="llvm.extractelement", pure=True):
    """result = lane `position` of vector"""

    vector: Value
    position: Value

    def infer(self) -> Type:
        type = self.vector.type
        if not isinstance(type, VectorType) or type.rank != 1 or not isinstance(self.position.type, IntType):
            self.fail(f"lane {self.position.type} of {type}", code="MLC0166")
        return type.dtype

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


class ShuffleVector(Op, name="llvm.shufflevector", pure=True):
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


class ExtractValue(Op, name="llvm.extractvalue", pure=True):
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


class InsertValue(Op, name="llvm.insertvalue", pure=True):
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
        type = type.members[i]
    return type


def undefined(type: Type) -> Any:
    """The interpreter's value for an undefined one: all bits set, which is NaN in every float type."""
    if isinstance(type, StructType):
        return tuple(undefined(m) for m in type.members)
    if element(type) == ptr:
        return np.full(type.shape, NULL) if isinstance(type, VectorType) else NULL
    count = vector.lane_count(type)
    dtype = to_numpy(element(type))
    raw = np.ones(count, np.bool_) if dtype == np.bool_ else np.full(count * dtype.itemsize, 0xFF, np.uint8).view(dtype)
    return raw.reshape(type.shape) if isinstance(type, VectorType) else raw[0]


class _Source(Op, pure=True):
    """A value without operands."""

    type: ResultType
    format = "attr-dict `:` type(result)"

    def infer(self) -> Type:
        type = self.results[0].type
        if not isinstance(type, IntType | FloatType | VectorType | StructType | PtrType):
            self.fail(f"no value of {type}", code="MLC0166")
        return type

    def ref(self) -> Any:
        return undefined(self.result.type)


class Undef(_Source, name="llvm.mlir.undef"):
    """result = an undefined value, which may differ at each use"""


class Poison(_Source, name="llvm.mlir.poison"):
    """result = a poison value"""


class Zero(_Source, name="llvm.mlir.zero"):
    """result = the value whose bits are all zero; the null pointer"""

    def ref(self) -> Any:
        def zero(type: Type) -> Any:
            if isinstance(type, StructType):
                return tuple(zero(m) for m in type.members)
            if element(type) == ptr:
                return np.full(type.shape, NULL) if isinstance(type, VectorType) else NULL
            dtype = to_numpy(element(type))
            return np.zeros(type.shape, dtype) if isinstance(type, VectorType) else dtype.type(0)
        return zero(self.result.type)
