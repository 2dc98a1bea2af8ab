"""memref, memory: allocations, loads, stores and atomic updates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mlc.dialects.arith import store
from mlc.dialects.combining import CombiningKind
from mlc.dialects.memref.globals import fill_shape
from mlc.dialects.memref.layout import check_bounds, check_indices, fresh
from mlc.ir.core import Op, ResultType, Value
from mlc.ir.types import IntType, MemRefType, Type, index

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


class Allocate(Op):
    """An allocation; one operand per `?` of its shape."""

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
        return type

    def interpret(self, frame: Frame) -> Any:
        type = self.result.type
        return fresh(fill_shape(self, type.shape, frame.all(self.sizes)), type.dtype, self.alignment or 64)


class Alloc(Allocate, name="memref.alloc"):
    """result = memory on the heap, until it is deallocated"""


class Alloca(Allocate, name="memref.alloca"):
    """result = memory on the stack, until the function returns"""


class Dealloc(Op, name="memref.dealloc", pure=False):
    """Free memory of `memref.alloc`."""

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


class Prefetch(Op, name="memref.prefetch", pure=False):
    """A hint that memref[indices] is read soon: nothing happens, also where there is no such element."""

    attr_types = {"localityHint": "i32"}
    memref: Value
    indices: tuple[Value, ...]
    isWrite: bool = False
    localityHint: int = 3
    isDataCache: bool = True

    def infer(self) -> tuple[Type, ...]:
        check_indices(self, self.memref, self.indices)
        if not 0 <= self.localityHint <= 3:
            self.fail(f"a locality of {self.localityHint} is not one from 0 to 3", code="MLC0162")
        return ()

    def interpret(self, frame: Frame) -> list[Any]:
        return []

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, ("isWrite", "localityHint", "isDataCache"))
        p.append(f" {p.values([self.memref])}[{p.values(self.indices)}], {'write' if self.isWrite else 'read'}, "
                 f"locality<{self.localityHint}>, {'data' if self.isDataCache else 'instr'}"
                 f"{' ' + extra if extra else ''} : {p.type(self.memref.type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        memory = parser.operand()
        parser.expect("[")
        refs = parser.list_of(parser.operand, "]")
        parser.expect(",")
        attrs: dict[str, Any] = {"isWrite": parser.keyword(("read", "write")) == "write"}
        for word in (",", "locality", "<"):
            parser.expect(word)
        attrs["localityHint"] = parser.integer()
        for word in (">", ","):
            parser.expect(word)
        attrs["isDataCache"] = parser.keyword(("data", "instr")) == "data"
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        type = parser.type()
        return Prefetch.make([parser.resolve(memory, type), *parser.resolve_all(refs, [index] * len(refs))],
                             {**attrs, **extra}, None)


class AtomicRMW(Op, name="memref.atomic_rmw", pure=False):
    """result = memref[indices]; memref[indices] = result combined with value, atomically"""

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
        """Value in memory after the operation."""
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
