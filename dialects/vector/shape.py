"""vector, shapes: broadcasts, extracts, inserts, shuffles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.arith import store
from mlc.dialects.memref import DYNAMIC, Array, Mixed, check_bounds
from mlc.ir.core import Op, ResultType, Value
from mlc.ir.types import (
    ScalarType,
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


# -- shapes -----------------------------------------------------------------------------------------------------------
class Broadcast(Op, name="vector.broadcast", pure=True):
    """result[..., i] = source[i]: a scalar or a vector repeated along new leading dimensions"""

    source: Value
    type: ResultType
    format = "$source attr-dict `:` type($source) `to` type(result)"

    def infer(self) -> Type:
        source, type = self.source.type, self.results[0].type
        tail = source.shape if isinstance(source, VectorType) else ()
        if (not isinstance(type, VectorType) or not isinstance(source, VectorType | ScalarType)
                or element(source) != type.dtype or type.shape[type.rank - len(tail):] != tail):
            self.fail(f"cannot repeat {source} to {type}", code="MLC0164")
        return type

    def ref(self, x: Any) -> Any:
        return np.broadcast_to(np.asarray(x, to_numpy(self.result.type.dtype)), self.result.type.shape)


class FromElements(Op, name="vector.from_elements", pure=True):
    """result = [elements...]: a vector of these scalars, in row-major order"""

    elements: tuple[Value, ...]
    type: ResultType

    def infer(self) -> Type:
        type = self.results[0].type
        if not isinstance(type, VectorType) or math.prod(type.shape) != len(self.elements) or any(
                v.type != type.dtype for v in self.elements):
            self.fail(f"{len(self.elements)} elements do not make a {type}", code="MLC0164")
        return type

    def ref(self, *elements: Any) -> Any:
        return np.array(elements, to_numpy(self.result.type.dtype)).reshape(self.result.type.shape)

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        refs = parser.operand_list()
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        type = parser.type()
        dtype = type.dtype if isinstance(type, VectorType) else type
        return parser.build(FromElements, parser.resolve_all(refs, [dtype] * len(refs)), extra, [type])

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self)
        p.append(f" {p.values(self.elements)}{' ' + extra if extra else ''} : {p.type(self.result.type)}")


class _Positioned(Op, pure=True):
    """An operation on a position in a vector; DYNAMIC in the static list stands for the next operand."""

    if TYPE_CHECKING:
        @property
        def dynamic_position(self) -> tuple[Value, ...]: ...
        @property
        def static_position(self) -> tuple[int, ...]: ...

    @property
    def position(self) -> list[Mixed]:
        values = iter(self.dynamic_position)
        return [next(values) if n == DYNAMIC else n for n in self.static_position]

    def part_type(self, whole: Type) -> Type:
        """Type of the value at the position: a scalar, or a vector of the remaining dimensions."""
        at = self.static_position
        if not isinstance(whole, VectorType) or len(at) > whole.rank or not at:
            self.fail(f"{list(at)} is no place in {whole}", code="MLC0164")
        assert isinstance(whole, VectorType)
        if at.count(DYNAMIC) != len(self.dynamic_position) or any(
                n != DYNAMIC and not 0 <= n < size for n, size in zip(at, whole.shape)):
            self.fail(f"{list(at)} is no place in {whole}", code="MLC0164")
        rest = whole.shape[len(at):]
        return VectorType(rest, whole.dtype) if rest else whole.dtype

    def place(self, array: Array, dynamic: Sequence[int]) -> tuple[int, ...]:
        values = iter(dynamic)
        return check_bounds(self, array, [next(values) if n == DYNAMIC else n for n in self.static_position])

    def position_text(self, p: Printer) -> str:
        return "[" + ", ".join(p.name(n) if isinstance(n, Value) else str(n) for n in self.position) + "]"

    @staticmethod
    def parse_position(parser: Parser) -> tuple[list[Any], tuple[int, ...]]:
        parser.expect("[")
        items = parser.list_of(lambda: parser.operand() if parser.at_value() else parser.integer(), "]")
        dynamic = [n for n in items if not isinstance(n, int)]
        return (parser.resolve_all(dynamic, [index] * len(dynamic)),
                tuple(n if isinstance(n, int) else DYNAMIC for n in items))


class Extract(_Positioned, name="vector.extract"):
    """result = source[position]"""

    source: Value
    dynamic_position: tuple[Value, ...]
    static_position: tuple[int, ...]

    def infer(self) -> Type:
        return self.part_type(self.source.type)

    def ref(self, x: Any, *dynamic: int) -> Any:
        return store(x[self.place(x, dynamic)], self.result.type)

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, ("static_position",))
        p.append(f" {p.name(self.source)}{self.position_text(p)}{' ' + extra if extra else ''} : "
                 f"{p.type(self.result.type)} from {p.type(self.source.type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        source = parser.operand()
        dynamic, static = Extract.parse_position(parser)
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        type = parser.type()
        parser.expect("from")
        return Extract.make([parser.resolve(source, parser.type()), *dynamic], {"static_position": static, **extra},
                            [type])


class Insert(_Positioned, name="vector.insert"):
    """result = dest, with value at position"""

    value: Value
    dest: Value
    dynamic_position: tuple[Value, ...]
    static_position: tuple[int, ...]

    def infer(self) -> Type:
        if self.part_type(self.dest.type) != self.value.type:
            self.fail(f"a {self.value.type} does not fit into {self.dest.type}", code="MLC0164")
        return self.dest.type  # type: ignore[no-any-return]

    def ref(self, x: Any, dest: Any, *dynamic: int) -> Any:
        out = np.array(dest)
        out[self.place(out, dynamic)] = x
        return out

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, ("static_position",))
        p.append(f" {p.name(self.value)}, {p.name(self.dest)}{self.position_text(p)}{' ' + extra if extra else ''} : "
                 f"{p.type(self.value.type)} into {p.type(self.dest.type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        value, _, dest = parser.operand(), parser.expect(","), parser.operand()
        dynamic, static = Insert.parse_position(parser)
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        part = parser.type()
        parser.expect("into")
        return Insert.make([parser.resolve(value, part), parser.resolve(dest, parser.type()), *dynamic],
                           {"static_position": static, **extra}, None)


class Shuffle(Op, name="vector.shuffle", pure=True):
    """result[l] = (v1 ++ v2)[mask[l]]"""

    v1: Value
    v2: Value
    mask: tuple[int, ...]
    format = "$v1 `,` $v2 $mask attr-dict `:` type($v1) `,` type($v2)"

    def infer(self) -> Type:
        a, b = self.v1.type, self.v2.type
        if not isinstance(a, VectorType) or not isinstance(b, VectorType) or a.rank != 1 or b.rank != 1 \
                or a.dtype != b.dtype:
            self.fail(f"takes two vectors of one dimension and one type, got {a} and {b}", code="MLC0164")
        if not self.mask or any(not 0 <= m < a.shape[0] + b.shape[0] for m in self.mask):
            self.fail(f"{list(self.mask)} names lanes that {a} and {b} do not have", code="MLC0164")
        return VectorType((len(self.mask),), a.dtype)

    def ref(self, a: Any, b: Any) -> Any:
        return np.concatenate([a, b])[list(self.mask)]


class Transpose(Op, name="vector.transpose", pure=True):
    """result[i_permutation] = vector[i]"""

    vector: Value
    permutation: tuple[int, ...]
    format = "$vector `,` $permutation attr-dict `:` type($vector) `to` type(result)"

    def infer(self) -> Type:
        type = self.vector.type
        if not isinstance(type, VectorType) or sorted(self.permutation) != list(range(type.rank)):
            self.fail(f"{list(self.permutation)} is no permutation of the dimensions of {type}", code="MLC0164")
        return VectorType(tuple(type.shape[p] for p in self.permutation), type.dtype)

    def ref(self, x: Any) -> Any:
        return np.transpose(x, self.permutation)


class Bitcast(Op, name="vector.bitcast", pure=True):
    """result = the same bits, with the last dimension divided into elements of another width"""

    source: Value
    type: ResultType
    format = "$source attr-dict `:` type($source) `to` type(result)"

    def infer(self) -> Type:
        a, b = self.source.type, self.results[0].type
        if (not isinstance(a, VectorType) or not isinstance(b, VectorType) or not a.rank or a.rank != b.rank
                or a.shape[:-1] != b.shape[:-1] or a.shape[-1] * a.dtype.width != b.shape[-1] * b.dtype.width
                or {a.dtype, b.dtype} & {i1, index}):
            self.fail(f"{a} has not the bits of {b}", code="MLC0164")
        return b

    def ref(self, x: Any) -> Any:
        return np.ascontiguousarray(x).view(to_numpy(self.result.type.dtype))
