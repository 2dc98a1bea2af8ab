"""memref: memory with a shape, strides and an offset, with upstream's names, syntax and meaning.

In the interpreter a memref is a numpy array that views its buffer. Fresh memory is all ones, which is NaN in every
float type and -1 in every integer: reading what nobody wrote shows. An access outside the shape is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mlc.dialects.arith import store
from mlc.dialects.combining import CombiningKind
from mlc.ir.core import Op, ResultType, Symbol, Value
from mlc.ir.diag import IRError
from mlc.ir.symbols import lookup
from mlc.ir.types import IntType, MemRefType, ScalarType, Type, from_numpy, i8, index, to_numpy

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer

DYNAMIC = -(1 << 63)
"""Stands in a static list for a number that an operand gives."""

Array = np.ndarray[Any, Any]
Mixed = int | Value
"""A number known now, or an index value."""


def row_major(shape: Sequence[int | None]) -> tuple[int | None, ...]:
    """The strides, in elements, of contiguous memory of a shape; None from the first unknown size outwards."""
    out: list[int | None] = []
    step: int | None = 1
    for n in reversed(shape):
        out.append(step)
        step = None if step is None or n is None else step * n
    return tuple(reversed(out))


def strides_of(type: MemRefType) -> tuple[int | None, ...]:
    """The strides of a memref, in elements; None where only the value knows."""
    return row_major(type.shape) if type.strides is None else type.strides


def check_indices(op: Op, memory: Value, indices: Sequence[Value]) -> MemRefType:
    """The type of `memory`, which is a memref that takes as many indices as are given."""
    type = memory.type
    if not isinstance(type, MemRefType):
        op.fail(f"{type} is no memref", code="MLC0162")
    if len(indices) != type.rank or any(i.type != index for i in indices):
        op.fail(f"{type} takes {type.rank} indices of type index, got "
                f"{', '.join(str(i.type) for i in indices) or 'none'}", code="MLC0162")
    return type  # type: ignore[no-any-return]


def check_bounds(op: Op, array: Array, indices: Sequence[int]) -> tuple[int, ...]:
    """The indices, each within the array."""
    for axis, (i, n) in enumerate(zip(indices, array.shape)):
        if not 0 <= i < n:
            raise IRError(f"{op.name}: index {i} on axis {axis} is outside of size {n}", code="MLC0163", loc=op.loc)
    return tuple(indices)


def fresh(shape: tuple[int, ...], dtype: ScalarType, alignment: int = 64) -> Array:
    """Memory that nobody wrote: every bit is set. It starts at a multiple of `alignment` bytes."""
    size = math.prod(shape) * to_numpy(dtype).itemsize
    raw = np.full(size + alignment, 0xFF, np.uint8)
    start = -raw.ctypes.data % alignment
    return raw[start: start + size].view(to_numpy(dtype)).reshape(shape)


class Allocate(Op):
    """Fresh memory; one operand per `?` of its shape."""

    type: ResultType
    sizes: tuple[Value, ...] = ()
    symbols: tuple[Value, ...] = ()
    alignment: int | None = None
    pure = False
    format = "`(` $sizes `)` attr-dict `:` type(result)"

    def infer(self) -> Type:
        type = self.results[0].type
        if not isinstance(type, MemRefType) or type.strides is not None or self.symbols:
            self.fail(f"gives contiguous memory, not {type}", code="MLC0162")
        if len(self.sizes) != type.shape.count(None):
            self.fail(f"{type} needs {type.shape.count(None)} sizes, got {len(self.sizes)}", code="MLC0162")
        return type  # type: ignore[no-any-return]

    def interpret(self, frame: Frame) -> Any:
        type = self.result.type
        return fresh(fill_shape(self, type.shape, frame.all(self.sizes)), type.dtype, self.alignment or 64)


class Alloc(Allocate, name="memref.alloc"):
    """result = memory of the heap, until it is deallocated"""


class Alloca(Allocate, name="memref.alloca"):
    """result = memory of the stack, until the function returns"""


class Dealloc(Op, name="memref.dealloc", pure=False):
    """Give memory of `memref.alloc` back; what it held is gone."""

    memref: Value
    format = "$memref attr-dict `:` type($memref)"

    def interpret(self, frame: Frame) -> list[Any]:
        array = frame[self.memref]
        array.view(np.uint8)[...] = 0xFF if array.size else 0
        return []


class Load(Op, name="memref.load", pure=False, reads=True):
    """result = memref[indices]"""

    memref: Value
    indices: tuple[Value, ...]
    format = "$memref `[` $indices `]` attr-dict `:` type($memref)"

    def infer(self) -> Type:
        return check_indices(self, self.memref, self.indices).dtype

    def interpret(self, frame: Frame) -> Any:
        array = frame[self.memref]
        return store(array[check_bounds(self, array, frame.all(self.indices))], self.result.type)


class Store(Op, name="memref.store", pure=False):
    """memref[indices] = value"""

    value: Value
    memref: Value
    indices: tuple[Value, ...]
    format = "$value `,` $memref `[` $indices `]` attr-dict `:` type($memref)"

    def infer(self) -> tuple[Type, ...]:
        type = check_indices(self, self.memref, self.indices)
        if self.value.type != type.dtype:
            self.fail(f"a {self.value.type} is no element of {type}", code="MLC0162")
        return ()

    def interpret(self, frame: Frame) -> list[Any]:
        array = frame[self.memref]
        array[check_bounds(self, array, frame.all(self.indices))] = frame[self.value]
        return []

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        value, _, memory = parser.operand(), parser.expect(","), parser.operand()
        parser.expect("[")
        refs = parser.list_of(parser.operand, "]")
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        type = parser.type()
        dtype = type.dtype if isinstance(type, MemRefType) else None
        return Store.make([parser.resolve(value, dtype), parser.resolve(memory, type),
                           *parser.resolve_all(refs, [index] * len(refs))], extra, None)


class AtomicRMW(Op, name="memref.atomic_rmw", pure=False):
    """result = memref[indices]; memref[indices] = result combined with value, without another thread in between"""

    value: Value
    memref: Value
    indices: tuple[Value, ...]
    kind: str
    enums = {"kind": ("addf", "addi", "andi", "assign", "maximumf", "maxnumf", "maxs", "maxu", "minimumf", "minnumf",
                      "mins", "minu", "mulf", "muli", "ori", "xori")}
    KINDS: ClassVar[dict[str, CombiningKind]] = {kind.atomic: kind for kind in CombiningKind if kind.atomic}

    def infer(self) -> Type:
        type = check_indices(self, self.memref, self.indices)
        if self.value.type != type.dtype or not isinstance(type.dtype, IntType) or self.kind not in self.KINDS:
            self.fail(f"{self.kind} of a {self.value.type} and an element of {type}; there are "
                      f"{', '.join(self.KINDS)} of integers", code="MLC0162")
        return type.dtype

    def combine(self, old: Any, value: Any) -> Any:
        """What memory holds after the operation."""
        return self.KINDS[self.kind].combine(old, value)

    def interpret(self, frame: Frame) -> Any:
        array = frame[self.memref]
        at = check_bounds(self, array, frame.all(self.indices))
        old = array[at]
        array[at] = self.combine(old, frame[self.value])
        return old

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, ("kind",))
        p.append(f" {self.kind} {p.name(self.value)}, {p.name(self.memref)}[{p.values(self.indices)}]"
                 f"{' ' + extra if extra else ''} : ({p.type(self.value.type)}, {p.type(self.memref.type)}) -> "
                 f"{p.type(self.result.type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        kind = parser.keyword(AtomicRMW.enums["kind"])
        value, _, memory = parser.operand(), parser.expect(","), parser.operand()
        parser.expect("[")
        refs = parser.list_of(parser.operand, "]")
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        (dtype, type), results = parser.signature()
        operands = [parser.resolve(value, dtype), parser.resolve(memory, type),
                    *parser.resolve_all(refs, [index] * len(refs))]
        return parser.build(AtomicRMW, operands, {"kind": kind, **extra}, results)


class Dim(Op, name="memref.dim"):
    """result = the size of dimension `axis` of a memref"""

    source: Value
    axis: Value
    format = "$source `,` $axis attr-dict `:` type($source)"

    def infer(self) -> Type:
        if not isinstance(self.source.type, MemRefType) or self.axis.type != index:
            self.fail(f"takes a memref and an index, got {self.source.type} and {self.axis.type}", code="MLC0162")
        return index

    def ref(self, x: Any, axis: Any) -> int:
        if not 0 <= axis < x.ndim:
            self.fail(f"axis {axis} of {self.source.type}", code="MLC0163")
        return int(x.shape[axis])


class Address(Op, name="memref.extract_aligned_pointer_as_index"):
    """result = the address of the first element of a memref"""

    source: Value
    format = "$source attr-dict `:` type($source) `->` type(result)"

    def infer(self) -> Type:
        if not isinstance(self.source.type, MemRefType) or self.source.type.offset != 0:
            self.fail(f"takes a memref without an offset, got {self.source.type}", code="MLC0162")
        return index

    def ref(self, x: Any) -> int:
        return int(x.__array_interface__["data"][0])


class View(Op, name="memref.view"):
    """result = the bytes of a buffer from `byte_shift` on, as contiguous memory of another type"""

    source: Value
    byte_shift: Value
    sizes: tuple[Value, ...]
    type: ResultType
    format = "$source `[` $byte_shift `]` `[` $sizes `]` attr-dict `:` type($source) `to` type(result)"

    def infer(self) -> Type:
        source, type = self.source.type, self.results[0].type
        if not isinstance(source, MemRefType) or source.rank != 1 or source.dtype != i8 or source.strides is not None:
            self.fail(f"views a buffer memref<?xi8>, not {source}", code="MLC0162")
        if not isinstance(type, MemRefType) or type.strides is not None:
            self.fail(f"gives contiguous memory, not {type}", code="MLC0162")
        if len(self.sizes) != type.shape.count(None):
            self.fail(f"{type} needs {type.shape.count(None)} sizes, got {len(self.sizes)}", code="MLC0162")
        return type  # type: ignore[no-any-return]

    def ref(self, source: Any, shift: int, *sizes: int) -> Any:
        type = self.result.type
        shape = fill_shape(self, type.shape, sizes)
        size = math.prod(shape) * to_numpy(type.dtype).itemsize
        if not 0 <= shift <= shift + size <= source.size:
            self.fail(f"bytes {shift}..{shift + size} of a buffer of {source.size}", code="MLC0163")
        return source[shift: shift + size].view(to_numpy(type.dtype)).reshape(shape)


class Cast(Op, name="memref.cast"):
    """result = the same memory, with other sizes and strides known to its type"""

    source: Value
    type: ResultType
    format = "$source attr-dict `:` type($source) `to` type(result)"

    def infer(self) -> Type:
        source, type = self.source.type, self.results[0].type
        if (not isinstance(source, MemRefType) or not isinstance(type, MemRefType) or source.rank != type.rank
                or source.dtype != type.dtype
                or not all(_may_equal(a, b) for a, b in zip(source.shape, type.shape))
                or not all(_may_equal(a, b) for a, b in zip(strides_of(source), strides_of(type)))
                or not _may_equal(source.offset, type.offset)):
            self.fail(f"cannot cast {source} to {type}", code="MLC0162")
        return type  # type: ignore[no-any-return]

    def ref(self, x: Any) -> Any:
        for n, expected in zip(x.shape, self.result.type.shape):
            if not _may_equal(n, expected):
                self.fail(f"a memref of sizes {list(x.shape)} is no {self.result.type}", code="MLC0163")
        return x


class Windowed(Op):
    """Operations that give offsets, sizes and strides; DYNAMIC in a static list stands for the next operand."""

    source: Value
    offsets: tuple[Value, ...]
    sizes: tuple[Value, ...]
    strides: tuple[Value, ...]
    static_offsets: tuple[int, ...]
    static_sizes: tuple[int, ...]
    static_strides: tuple[int, ...]
    type: ResultType

    def mixed(self, name: str) -> list[Mixed]:
        """`offsets`, `sizes` or `strides` with the operands in their places."""
        values = iter(getattr(self, name))
        return [next(values) if n == DYNAMIC else n for n in getattr(self, "static_" + name)]

    def numbers(self, frame: Frame, name: str) -> list[int]:
        return [n if isinstance(n, int) else frame[n] for n in self.mixed(name)]

    def check_window(self, ranks: dict[str, int]) -> None:
        if not isinstance(self.source.type, MemRefType) or not isinstance(self.results[0].type, MemRefType):
            self.fail("goes from a memref to a memref", code="MLC0162")
        if self.source.type.dtype != self.results[0].type.dtype:
            self.fail("keeps the element type", code="MLC0162")
        for name, rank in ranks.items():
            static = getattr(self, "static_" + name)
            if len(static) != rank or static.count(DYNAMIC) != len(getattr(self, name)):
                self.fail(f"needs {rank} {name}, each a number or an operand", code="MLC0162")

    def window_text(self, p: Printer, name: str) -> str:
        return "[" + ", ".join(p.name(n) if isinstance(n, Value) else str(n) for n in self.mixed(name)) + "]"

    def print_types(self, p: Printer) -> None:
        shown = ("static_offsets", "static_sizes", "static_strides", "operandSegmentSizes")
        extra = p.attr_dict(self, shown)
        p.append(f"{' ' + extra if extra else ''} : {p.type(self.source.type)} to {p.type(self.result.type)}")

    @classmethod
    def parse_window(cls, parser: Parser, labels: Sequence[str], lead: str = "") -> Op:
        source = parser.operand()
        if lead:
            parser.expect(lead)
        static: list[tuple[int, ...]] = []
        refs, segments = [], []
        for i, label in enumerate(labels):
            if label:
                if i:
                    parser.expect(",")
                parser.expect(label)
                parser.expect(":")
            parser.expect("[")
            items = parser.list_of(lambda: parser.operand() if parser.at_value() else parser.integer(), "]")
            static.append(tuple(n if isinstance(n, int) else DYNAMIC for n in items))
            dynamic = [n for n in items if not isinstance(n, int)]
            refs += dynamic
            segments.append(len(dynamic))
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        before = parser.type()
        parser.expect("to")
        operands = [parser.resolve(source, before), *parser.resolve_all(refs, [index] * len(refs))]
        attrs = dict(zip(("static_offsets", "static_sizes", "static_strides"), static)) | extra
        return cls.make(operands, attrs, [parser.type()], segments=[1, *segments])


class ReinterpretCast(Windowed, name="memref.reinterpret_cast"):
    """result[i] = the element offset + sum(i * strides) of the memory that starts where `source` does"""

    def infer(self) -> Type:
        type, source = self.results[0].type, self.source.type
        rank = type.rank if isinstance(type, MemRefType) else 0
        self.check_window({"offsets": 1, "sizes": rank, "strides": rank})
        if source.offset != 0:
            self.fail(f"counts from the start of a buffer, but {source} has an offset", code="MLC0162")
        declared = [type.offset, *type.shape, *strides_of(type)]
        given = [*self.static_offsets, *self.static_sizes, *self.static_strides]
        if any(n != DYNAMIC and d is not None and n != d for n, d in zip(given, declared)) or any(
                n == DYNAMIC and d is not None for n, d in zip(given, declared) if type.strides is not None):
            self.fail(f"the numbers given are not those of {type}", code="MLC0162")
        return type  # type: ignore[no-any-return]

    def interpret(self, frame: Frame) -> Any:
        source: Array = frame[self.source]
        (offset,), shape, strides = (self.numbers(frame, n) for n in ("offsets", "sizes", "strides"))
        item = source.itemsize
        last = offset + sum(max(0, n - 1) * s for n, s in zip(shape, strides))
        held = 1 + sum((n - 1) * s // item for n, s in zip(source.shape, source.strides)) if source.size else 0
        if 0 not in shape and not 0 <= offset <= last < held:
            self.fail(f"elements {offset}..{last} of a memref of {held}", code="MLC0163")
        if 0 in shape:
            return np.empty(shape, source.dtype)
        flat = np.lib.stride_tricks.as_strided(source, (held,), (item,))
        return np.lib.stride_tricks.as_strided(flat[offset:], shape, [s * item for s in strides])

    def print_form(self, p: Printer) -> None:
        windows = ", ".join(f"{label}: {self.window_text(p, name)}"
                            for label, name in (("offset", "offsets"), ("sizes", "sizes"), ("strides", "strides")))
        p.append(f" {p.name(self.source)} to {windows}")
        self.print_types(p)

    @classmethod
    def parse_form(cls, parser: Parser) -> Op:
        return cls.parse_window(parser, ("offset", "sizes", "strides"), "to")


class SubView(Windowed, name="memref.subview"):
    """result[i] = source[offsets + i * strides]"""

    def infer(self) -> Type:
        rank = self.source.type.rank if isinstance(self.source.type, MemRefType) else 0
        self.check_window(dict.fromkeys(("offsets", "sizes", "strides"), rank))
        type, expected = self.results[0].type, subview_type(
            self.source.type, self.static_offsets, self.static_sizes, self.static_strides)
        if type != expected:
            self.fail(f"gives {expected}, not {type}", code="MLC0162")
        return type  # type: ignore[no-any-return]

    def interpret(self, frame: Frame) -> Any:
        source = frame[self.source]
        offsets, sizes, strides = (self.numbers(frame, n) for n in ("offsets", "sizes", "strides"))
        for axis, (o, n, s, have) in enumerate(zip(offsets, sizes, strides, source.shape)):
            if n and not (0 <= o < have and 0 <= o + (n - 1) * s < have):
                self.fail(f"{n} elements from {o} in steps of {s} on axis {axis} of size {have}", code="MLC0163")
        if 0 in sizes:
            return np.empty(sizes, source.dtype)
        start = source[tuple(slice(o, None) for o in offsets)]
        return np.lib.stride_tricks.as_strided(start, sizes, [b * s for b, s in zip(source.strides, strides)])

    def print_form(self, p: Printer) -> None:
        windows = " ".join(self.window_text(p, name) for name in ("offsets", "sizes", "strides"))
        p.append(f" {p.name(self.source)}{windows}")
        self.print_types(p)

    @classmethod
    def parse_form(cls, parser: Parser) -> Op:
        return cls.parse_window(parser, ("", "", ""))


def subview_type(source: MemRefType, offsets: Sequence[int], sizes: Sequence[int],
                 strides: Sequence[int]) -> MemRefType:
    """The type of a window into `source`; DYNAMIC marks unknown numbers."""
    known: Callable[[int], int | None] = lambda n: None if n == DYNAMIC else n
    base = strides_of(source)
    steps = tuple(_times(a, known(b)) for a, b in zip(base, strides))
    offset = source.offset
    for o, step in zip(offsets, base):
        part = _times(known(o), step)
        offset = None if offset is None or part is None else offset + part
    return MemRefType(tuple(known(n) for n in sizes), source.dtype, steps, offset)


def subview(source: Value, offsets: Sequence[Mixed], sizes: Sequence[Mixed], strides: Sequence[Mixed]) -> Value:
    """source[offsets + i * strides] for i below sizes."""
    static = [tuple(n if isinstance(n, int) else DYNAMIC for n in group) for group in (offsets, sizes, strides)]
    dynamic = [tuple(n for n in group if isinstance(n, Value)) for group in (offsets, sizes, strides)]
    type = subview_type(source.type, *static)
    return SubView(source, *dynamic, *static, type).result  # type: ignore[call-arg, arg-type]


def reinterpret(source: Value, offset: Mixed, sizes: Sequence[Mixed], strides: Sequence[Mixed]) -> Value:
    """The memory from the start of `source` with another offset, shape and strides (in elements)."""
    static = [tuple(n if isinstance(n, int) else DYNAMIC for n in group) for group in ((offset,), sizes, strides)]
    dynamic = [tuple(n for n in group if isinstance(n, Value)) for group in ((offset,), sizes, strides)]
    known = [tuple(None if n == DYNAMIC else n for n in group) for group in static]
    type = MemRefType(known[1], source.type.dtype, known[2], known[0][0])
    return ReinterpretCast(source, *dynamic, *static, type).result  # type: ignore[call-arg, arg-type]


class Global(Op, name="memref.global", pure=False):
    """Memory with a name, there before the program starts; `constant` if nobody writes it"""

    sym_name: Symbol
    type: Type
    sym_visibility: str | None = None
    initial_value: np.ndarray[Any, Any] | None = None
    constant: bool | None = None
    alignment: int | None = None

    def infer(self) -> tuple[Type, ...]:
        held, type = self.initial_value, self.type
        self.constant = self.constant or None               # upstream's unit attribute: there or not
        if not isinstance(type, MemRefType) or None in type.shape or type.strides is not None:
            self.fail(f"is contiguous memory of known size, not {type}", code="MLC0162")
        assert isinstance(type, MemRefType)
        if held is not None and (from_numpy(held.dtype) != type.dtype or held.shape != type.shape):
            self.fail(f"an array of {held.dtype}{list(held.shape)} is no value of {type}", code="MLC0162")
        return ()

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        if name == "constant" and value and generic:
            return "unit"
        return super().attr_text(name, str(value) if name == "sym_name" else value, generic)

    def print_form(self, p: Printer) -> None:
        from mlc.ir.printer import attr_text
        visibility = f' "{self.sym_visibility}"' if self.sym_visibility else ""
        value = "" if self.initial_value is None else " = " + self.attr_text(
            "initial_value", self.initial_value, False)
        extra = p.attr_dict(self, ("sym_name", "type", "sym_visibility", "initial_value", "constant"))
        p.append(f"{visibility}{' constant' if self.constant else ''} {attr_text(Symbol(self.sym_name), False)} : "
                 f"{p.type(self.type)}{value}{' ' + extra if extra else ''}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        attrs: dict[str, Any] = {"sym_visibility": None, "initial_value": None}
        if parser.token.kind == "string":
            attrs["sym_visibility"] = parser.attribute()
        attrs["constant"] = parser.accept("constant") or None
        attrs["sym_name"] = parser.attribute()
        parser.expect(":")
        attrs["type"] = parser.type()
        if parser.accept("="):
            attrs["initial_value"] = parser.attribute()
        extra = parser.attr_dict() if parser.at("{") else {}
        return parser.build(Global, [], attrs | extra, [])


class GetGlobal(Op, name="memref.get_global"):
    """result = the memory of a global; its name is the attribute `name`"""

    type: ResultType

    def infer(self) -> Type:
        if not isinstance(self.attrs.get("name"), Symbol):
            self.fail("needs the attribute name = @global", code="MLC0162")
        return self.results[0].type  # type: ignore[no-any-return]

    def verify_op(self) -> None:
        if held_global(self).type != self.result.type:
            self.fail(f"@{self.attrs['name']} is {held_global(self).type}, not {self.result.type}", code="MLC0162")

    def interpret(self, frame: Frame) -> Any:
        memory = frame.interpreter.globals
        name = self.attrs["name"]
        if name not in memory:
            held = held_global(self)
            memory[name] = fresh(self.result.type.shape, self.result.type.dtype)
            if held.initial_value is not None:
                memory[name][...] = held.initial_value
        return memory[name]

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, ("name",))
        p.append(f" @{self.attrs['name']}{' ' + extra if extra else ''} : {p.type(self.result.type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        name = parser.attribute()
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        return GetGlobal.make([], {"name": name, **extra}, [parser.type()])


def get_global(held: Global) -> Value:
    """The memory of a global."""
    from mlc.ir.core import builder, caller_loc
    op = GetGlobal.make([], {"name": Symbol(held.sym_name)}, [held.type], loc=builder.loc or caller_loc())
    assert builder.block is not None, "no insertion point"
    builder.block.insert(op, builder.before)
    return op.result


def held_global(op: Op) -> Global:
    """The global that a `memref.get_global` names."""
    from mlc.dialects.builtin import Module
    held = lookup(op.enclosing(Module), op.attrs["name"])
    if isinstance(held, Global):
        return held
    raise IRError(f"@{op.attrs['name']} is not defined", code="MLC0106", loc=op.loc)


def fill_shape(op: Op, shape: Sequence[int | None], sizes: Sequence[int]) -> tuple[int, ...]:
    """A shape with the numbers of its unknown sizes filled in."""
    numbers = iter(sizes)
    out = tuple(int(next(numbers)) if n is None else n for n in shape)
    if any(n < 0 for n in out):
        op.fail(f"sizes {list(out)} are not all positive", code="MLC0163")
    return out


def _may_equal(a: int | None, b: int | None) -> bool:
    return a is None or b is None or a == b


def _times(a: int | None, b: int | None) -> int | None:
    return 0 if a == 0 or b == 0 else None if a is None or b is None else a * b

