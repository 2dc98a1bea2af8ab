"""vector: values of fixed shape in registers, with upstream's names, syntax and meaning.

A vector access goes along the last dimension of a memref, whose elements are adjacent; it may not leave that
dimension, except in lanes that a mask switches off. There is no float sum over lanes: its order would be left open.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.arith import UnsignedBinary, one_bit, store, unsigned
from mlc.dialects.combining import KINDS, CombiningKind
from mlc.dialects.memref import DYNAMIC, Array, Mixed, check_bounds, check_indices, strides_of
from mlc.ir.core import Op, ResultType, Value
from mlc.ir.types import (
    IndexType,
    IntType,
    MemRefType,
    ScalarType,
    Type,
    VectorType,
    element,
    i1,
    index,
    like,
    to_numpy,
)

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


# -- memory -----------------------------------------------------------------------------------------------------------
class Access(Op):
    """An access to memory along its last dimension, one lane per element."""

    pure = False
    if TYPE_CHECKING:                                # each class declares them where they stand in its own order
        @property
        def base(self) -> Value: ...
        @property
        def indices(self) -> tuple[Value, ...]: ...

    def check_access(self, type: Type) -> MemRefType:
        """The type of `base`, from or to which a vector of `type` may go."""
        memory = check_indices(self, self.base, self.indices)
        if not isinstance(type, VectorType) or type.rank != 1 or type.dtype != memory.dtype:
            self.fail(f"moves vectors of one dimension over {memory.dtype}, not {type}", code="MLC0164")
        if not memory.rank or strides_of(memory)[-1] != 1:
            self.fail(f"the last dimension of {memory} is not contiguous", code="MLC0164")
        return memory

    def lanes(self, frame: Frame, offsets: Array, mask: Array | None = None) -> tuple[Array, Array]:
        """The row of memory accessed, and the position in it of each lane that `mask` does not switch off."""
        array, indices = frame[self.base], frame.all(self.indices)
        if mask is not None and not mask.any():          # no lane touches memory, wherever the indices point
            return np.zeros(0, array.dtype), np.zeros(0, np.int64)
        row = array[check_bounds(self, array, indices[:-1])]
        at = offsets.astype(np.int64) + indices[-1]
        at = at if mask is None else at[mask]
        if at.size and not 0 <= at.min() <= at.max() < row.size:
            self.fail(f"elements {at.min()}..{at.max()} of a dimension of size {row.size}", code="MLC0163")
        return row, at


def _check_lanes(op: Op, type: VectorType, **values: Value) -> None:
    """`mask`, `pass_thru` and the others fit a vector of `type`."""
    for name, value in values.items():
        if value.type != (like(type, i1) if name == "mask" else type):
            op.fail(f"{name} is {value.type}, which does not fit {type}", code="MLC0164")


class Load(Access, name="vector.load", reads=True):
    """result[l] = base[indices + l], in the last dimension"""

    base: Value
    indices: tuple[Value, ...]
    type: ResultType
    alignment: int | None = None
    format = "$base `[` $indices `]` attr-dict `:` type($base) `,` type(result)"

    def infer(self) -> Type:
        self.check_access(self.results[0].type)
        return self.results[0].type  # type: ignore[no-any-return]

    def interpret(self, frame: Frame) -> Any:
        row, at = self.lanes(frame, np.arange(self.result.type.shape[0]))
        return row[at]


class Store(Access, name="vector.store"):
    """base[indices + l] = value[l], in the last dimension"""

    value: Value
    base: Value
    indices: tuple[Value, ...]
    alignment: int | None = None
    format = "$value `,` $base `[` $indices `]` attr-dict `:` type($base) `,` type($value)"

    def infer(self) -> tuple[Type, ...]:
        self.check_access(self.value.type)
        return ()

    def interpret(self, frame: Frame) -> list[Any]:
        row, at = self.lanes(frame, np.arange(self.value.type.shape[0]))
        row[at] = frame[self.value]
        return []


class MaskedLoad(Access, name="vector.maskedload", reads=True):
    """result[l] = mask[l] ? base[indices + l] : pass_thru[l]"""

    base: Value
    indices: tuple[Value, ...]
    mask: Value
    pass_thru: Value
    format = ("$base `[` $indices `]` `,` $mask `,` $pass_thru attr-dict `:` type($base) `,` type($mask) `,` "
              "type($pass_thru) `into` type(result)")

    def infer(self) -> Type:
        self.check_access(self.pass_thru.type)
        _check_lanes(self, self.pass_thru.type, mask=self.mask)
        return self.pass_thru.type  # type: ignore[no-any-return]

    def interpret(self, frame: Frame) -> Any:
        mask, out = frame[self.mask], np.array(frame[self.pass_thru])
        row, at = self.lanes(frame, np.arange(mask.size), mask)
        out[mask] = row[at]
        return out


class MaskedStore(Access, name="vector.maskedstore"):
    """where mask[l]: base[indices + l] = value[l]"""

    base: Value
    indices: tuple[Value, ...]
    mask: Value
    value: Value
    format = ("$base `[` $indices `]` `,` $mask `,` $value attr-dict `:` type($base) `,` type($mask) `,` "
              "type($value)")

    def infer(self) -> tuple[Type, ...]:
        self.check_access(self.value.type)
        _check_lanes(self, self.value.type, mask=self.mask)
        return ()

    def interpret(self, frame: Frame) -> list[Any]:
        mask = frame[self.mask]
        row, at = self.lanes(frame, np.arange(mask.size), mask)
        row[at] = frame[self.value][mask]
        return []


class Gather(Access, name="vector.gather", reads=True):
    """result[l] = mask[l] ? base[indices + lanes_at[l]] : pass_thru[l], in the last dimension"""

    base: Value
    indices: tuple[Value, ...]
    lanes_at: Value
    mask: Value
    pass_thru: Value
    format = ("$base `[` $indices `]` `[` $lanes_at `]` `,` $mask `,` $pass_thru attr-dict `:` type($base) `,` "
              "type($lanes_at) `,` type($mask) `,` type($pass_thru) `into` type(result)")

    def infer(self) -> Type:
        type = self.pass_thru.type
        self.check_access(type)
        _check_lanes(self, type, mask=self.mask)
        at = self.lanes_at.type
        if not isinstance(at, VectorType) or at.shape != type.shape or not isinstance(at.dtype, IntType | IndexType):
            self.fail(f"positions {at} do not fit {type}", code="MLC0164")
        return type  # type: ignore[no-any-return]

    def interpret(self, frame: Frame) -> Any:
        mask, out = frame[self.mask], np.array(frame[self.pass_thru])
        row, at = self.lanes(frame, frame[self.lanes_at], mask)
        out[mask] = row[at]
        return out


# -- shapes -----------------------------------------------------------------------------------------------------------
class Broadcast(Op, name="vector.broadcast"):
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
        return type  # type: ignore[no-any-return]

    def ref(self, x: Any) -> Any:
        return np.broadcast_to(np.asarray(x, to_numpy(self.result.type.dtype)), self.result.type.shape)


class FromElements(Op, name="vector.from_elements"):
    """result = [elements...]: a vector of these scalars, in row-major order"""

    elements: tuple[Value, ...]
    type: ResultType

    def infer(self) -> Type:
        type = self.results[0].type
        if not isinstance(type, VectorType) or math.prod(type.shape) != len(self.elements) or any(
                v.type != type.dtype for v in self.elements):
            self.fail(f"{len(self.elements)} elements do not make a {type}", code="MLC0164")
        return type  # type: ignore[no-any-return]

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


class _Positioned(Op):
    """An operation on a place in a vector; DYNAMIC in the static list stands for the next operand."""

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
        """What stands at the position: a scalar, or a vector of the remaining dimensions."""
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


class Shuffle(Op, name="vector.shuffle"):
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


class Transpose(Op, name="vector.transpose"):
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


class Bitcast(Op, name="vector.bitcast"):
    """result = the same bits, the last dimension cut into elements of another width"""

    source: Value
    type: ResultType
    format = "$source attr-dict `:` type($source) `to` type(result)"

    def infer(self) -> Type:
        a, b = self.source.type, self.results[0].type
        if (not isinstance(a, VectorType) or not isinstance(b, VectorType) or not a.rank or a.rank != b.rank
                or a.shape[:-1] != b.shape[:-1] or a.shape[-1] * a.dtype.width != b.shape[-1] * b.dtype.width
                or {a.dtype, b.dtype} & {i1, index}):
            self.fail(f"{a} has not the bits of {b}", code="MLC0164")
        return b  # type: ignore[no-any-return]

    def ref(self, x: Any) -> Any:
        return np.ascontiguousarray(x).view(to_numpy(self.result.type.dtype))


# -- masks and lanes --------------------------------------------------------------------------------------------------
class CreateMask(Op, name="vector.create_mask"):
    """result[i] = all(i < sizes)"""

    sizes: tuple[Value, ...]
    type: ResultType
    format = "$sizes attr-dict `:` type(result)"

    def infer(self) -> Type:
        type = self.results[0].type
        if not isinstance(type, VectorType) or type.dtype != i1 or len(self.sizes) != type.rank or any(
                v.type != index for v in self.sizes):
            self.fail(f"takes one index per dimension of a vector of i1, not {type}", code="MLC0164")
        return type  # type: ignore[no-any-return]

    def ref(self, *sizes: int) -> Any:
        out = np.ones(self.result.type.shape, np.bool_)
        for axis, n in enumerate(sizes):
            along = np.arange(out.shape[axis]) < n
            out &= along.reshape(tuple(-1 if a == axis else 1 for a in range(out.ndim)))
        return out


class Step(Op, name="vector.step"):
    """result[l] = l"""

    type: ResultType
    format = "attr-dict `:` type(result)"

    def infer(self) -> Type:
        type = self.results[0].type
        if not isinstance(type, VectorType) or type.rank != 1 or type.dtype != index:
            self.fail(f"gives a vector of index, not {type}", code="MLC0164")
        return type  # type: ignore[no-any-return]

    def ref(self) -> Any:
        return np.arange(self.result.type.shape[0], dtype=np.int64)


def join_lanes(kind: str, lanes: list[Any], dtype: ScalarType) -> Any:
    """The lanes, joined by the operation `kind`."""
    join = CombiningKind(kind).associative_op
    if dtype == i1:
        return store(np.asarray(reduce(join.f, [one_bit(v) for v in lanes])) & 1, dtype)
    if issubclass(join, UnsignedBinary):
        lanes = [unsigned(v, dtype)[()] for v in lanes]
    return store(np.asarray(reduce(join.f, lanes)).astype(to_numpy(dtype)), dtype)


class Reduction(Op, name="vector.reduction"):
    """result = the lanes of a vector, and `acc` if there is one, joined by the operation `kind`"""

    kind: str
    vector: Value
    acc: Value | None = None

    def infer(self) -> Type:
        self.kind = self.kind.removeprefix("#vector.kind<").removesuffix(">")
        type = self.vector.type
        if not isinstance(type, VectorType) or type.rank != 1 or self.kind not in KINDS:
            self.fail(f"no reduction {self.kind!r} of {type}", code="MLC0164")
        if not isinstance(type.dtype, CombiningKind(self.kind).associative_op.accepts):
            self.fail(f"{self.kind} does not work on {type}", code="MLC0164")
        if self.acc is not None and self.acc.type != type.dtype:
            self.fail(f"the accumulator is {self.acc.type}, not {type.dtype}", code="MLC0164")
        return type.dtype  # type: ignore[no-any-return]

    def ref(self, x: Any, acc: Any = None) -> Any:
        return join_lanes(self.kind, list(x) if acc is None else [*x, acc], self.result.type)

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        return f"#vector.kind<{value}>" if name == "kind" and generic else super().attr_text(name, value, generic)

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, ("kind",))
        p.append(f" <{self.kind}>, {p.values(self.operands)}{' ' + extra if extra else ''} : "
                 f"{p.type(self.vector.type)} into {p.type(self.result.type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        parser.expect("<")
        kind = parser.keyword(KINDS)
        parser.expect(">")
        parser.expect(",")
        refs = parser.operand_list()
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        vector = parser.type()
        parser.expect("into")
        type = parser.type()
        return Reduction.make(parser.resolve_all(refs, [vector, type][:len(refs)]), {"kind": kind, **extra}, [type])


def splat(value: Value, lanes: int) -> Value:
    """A vector of `lanes` equal elements."""
    return Broadcast(value, VectorType((lanes,), value.type)).result


def lane_count(type: Type) -> int:
    """How many elements a value of a type has: 1 for a scalar."""
    return math.prod(type.shape) if isinstance(type, VectorType) else 1
