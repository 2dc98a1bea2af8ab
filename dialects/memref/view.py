"""memref, views: sizes and addresses of memory, and views of it with other shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.memref.globals import fill_shape, may_equal, times
from mlc.dialects.memref.layout import DYNAMIC, Array, Mixed, strides_of
from mlc.ir.core import Op, ResultType, Value
from mlc.ir.types import MemRefType, Type, i8, index, to_numpy

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


class Dim(Op, name="memref.dim", pure=True):
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


class Address(Op, name="memref.extract_aligned_pointer_as_index", pure=True):
    """result = the address of the first element of a memref"""

    source: Value
    format = "$source attr-dict `:` type($source) `->` type(result)"

    def infer(self) -> Type:
        if not isinstance(self.source.type, MemRefType) or self.source.type.offset != 0:
            self.fail(f"takes a memref without an offset, got {self.source.type}", code="MLC0162")
        return index

    def ref(self, x: Any) -> int:
        return int(x.__array_interface__["data"][0])


class ViewLike(Op, pure=True):
    """An operation whose result is a view of the memory of its first operand, `source`."""

    source: Value


class View(ViewLike, name="memref.view"):
    """result = the bytes of a buffer from `byte_shift` on, as contiguous memory of another type"""

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
        return type

    def ref(self, source: Any, shift: int, *sizes: int) -> Any:
        type = self.result.type
        shape = fill_shape(self, type.shape, sizes)
        size = math.prod(shape) * to_numpy(type.dtype).itemsize
        if not 0 <= shift <= shift + size <= source.size:
            self.fail(f"bytes {shift}..{shift + size} of a buffer of {source.size}", code="MLC0163")
        return source[shift: shift + size].view(to_numpy(type.dtype)).reshape(shape)


class Cast(ViewLike, name="memref.cast"):
    """result = the same memory, with other static sizes and strides in its type"""

    type: ResultType
    format = "$source attr-dict `:` type($source) `to` type(result)"

    def infer(self) -> Type:
        source, type = self.source.type, self.results[0].type
        if (not isinstance(source, MemRefType) or not isinstance(type, MemRefType) or source.rank != type.rank
                or source.dtype != type.dtype
                or not all(may_equal(a, b) for a, b in zip(source.shape, type.shape))
                or not all(may_equal(a, b) for a, b in zip(strides_of(source), strides_of(type)))
                or not may_equal(source.offset, type.offset)):
            self.fail(f"cannot cast {source} to {type}", code="MLC0162")
        return type

    def ref(self, x: Any) -> Any:
        for n, expected in zip(x.shape, self.result.type.shape):
            if not may_equal(n, expected):
                self.fail(f"a memref of sizes {list(x.shape)} is no {self.result.type}", code="MLC0163")
        return x


class Windowed(ViewLike):
    """Views with offsets, sizes and strides; DYNAMIC in a static list stands for the next operand."""

    offsets: tuple[Value, ...]
    sizes: tuple[Value, ...]
    strides: tuple[Value, ...]
    static_offsets: tuple[int, ...]
    static_sizes: tuple[int, ...]
    static_strides: tuple[int, ...]
    type: ResultType

    def mixed(self, name: str) -> list[Mixed]:
        """`offsets`, `sizes` or `strides`, with operands in place of DYNAMIC."""
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
    """The type of a subview of `source`; DYNAMIC marks dynamic numbers."""
    static: Callable[[int], int | None] = lambda n: None if n == DYNAMIC else n
    base = strides_of(source)
    steps = tuple(times(a, static(b)) for a, b in zip(base, strides))
    offset = source.offset
    for o, step in zip(offsets, base):
        part = times(static(o), step)
        offset = None if offset is None or part is None else offset + part
    return MemRefType(tuple(static(n) for n in sizes), source.dtype, steps, offset)


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
