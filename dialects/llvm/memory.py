"""Instructions and intrinsics on memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mlc.dialects.combining import CombiningKind
from mlc.dialects.llvm.arithmetic import constant
from mlc.dialects.llvm.types import ArrayType, PtrType, StructType, member_offset, ptr, size_of, stored_bytes
from mlc.dialects.memref import fresh
from mlc.ir.core import Op, ResultType, Value
from mlc.ir.diag import IRError
from mlc.ir.interp import Heap, Interpreter, Pointer, start_of
from mlc.ir.types import IntType, ScalarType, Type, VectorType, element, i1, i8, i64, like, to_numpy

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer

Array = np.ndarray[Any, Any]
DYNAMIC = -(1 << 31)
"""Marks an entry of a list of constant indices that is given by an operand."""


# -- the interpreter's memory -----------------------------------------------------------------------------------------
def heap(interpreter: Interpreter) -> Heap:
    """The heap of an interpreter."""
    return interpreter.heap


def _bytes(op: Op, pointer: Pointer, count: int, alignment: int = 1) -> Array:
    """The bytes of an access, checked for bounds and alignment."""
    if alignment > 1 and (start_of(pointer.buffer) + pointer.offset) % alignment:
        op.fail(f"the address is no multiple of {alignment}", code="MLC0163")
    try:
        return pointer.bytes(count)
    except IndexError as error:
        raise IRError(f"{op.name}: {error}", code="MLC0163", loc=op.loc) from None


def _read(frame: Frame, op: Op, pointer: Pointer, type: Type, alignment: int = 1) -> Any:
    """The value of `type` at an address."""
    if isinstance(type, StructType):
        return tuple(_read(frame, op, pointer + member_offset(type, i), m) for i, m in enumerate(type.members))
    raw = _bytes(op, pointer, stored_bytes(type), alignment)
    if element(type) == ptr:
        found = [heap(frame.interpreter).find(int(a)) for a in raw.copy().view(np.int64)]
        return _objects(found) if isinstance(type, VectorType) else found[0]
    values = raw.copy().view(to_numpy(element(type)))
    return values if isinstance(type, VectorType) else values[0]


def _write(frame: Frame, op: Op, pointer: Pointer, type: Type, value: Any, alignment: int = 1) -> None:
    """Write a value of `type` to an address."""
    if isinstance(type, StructType):
        for i, member in enumerate(type.members):
            _write(frame, op, pointer + member_offset(type, i), member, value[i])
        return
    raw = _bytes(op, pointer, stored_bytes(type), alignment)
    if element(type) == ptr:
        addresses = [heap(frame.interpreter).address(p) for p in np.atleast_1d(np.asarray(value, object))]
        raw[...] = np.array(addresses, np.int64).view(np.uint8)
    else:
        bits = np.atleast_1d(np.asarray(value, to_numpy(element(type))))
        raw[...] = np.ascontiguousarray(bits).view(np.uint8)


def _objects(items: Sequence[Any]) -> Array:
    out = np.empty(len(items), object)
    out[:] = items
    return out


def _check_address(op: Op, value: Value) -> None:
    if value.type != ptr:
        op.fail(f"the address is {value.type}, not {ptr}", code="MLC0167")


# -- scalars and whole vectors ----------------------------------------------------------------------------------------
class Load(Op, name="llvm.load", pure=False, reads=True):
    """result = the value at addr"""

    addr: Value
    type: ResultType
    alignment: int | None = None
    format = "$addr attr-dict `:` type($addr) `->` type(result)"

    def infer(self) -> Type:
        _check_address(self, self.addr)
        size_of(self.results[0].type)
        return self.results[0].type  # type: ignore[no-any-return]

    def interpret(self, frame: Frame) -> Any:
        return _read(frame, self, frame[self.addr], self.result.type, self.alignment or 1)


class Store(Op, name="llvm.store", pure=False):
    """the memory at addr = value"""

    value: Value
    addr: Value
    alignment: int | None = None
    format = "$value `,` $addr attr-dict `:` type($value) `,` type($addr)"

    def infer(self) -> tuple[Type, ...]:
        _check_address(self, self.addr)
        size_of(self.value.type)
        return ()

    def interpret(self, frame: Frame) -> list[Any]:
        _write(frame, self, frame[self.addr], self.value.type, frame[self.value], self.alignment or 1)
        return []


class AtomicRMW(Op, name="llvm.atomicrmw", pure=False):
    """result = the integer at ptr, which is atomically replaced by result combined with val"""

    ptr: Value
    val: Value
    bin_op: str
    ordering: str = "monotonic"
    alignment: int | None = None
    enums = {"bin_op": ("xchg", "add", "sub", "_and", "nand", "_or", "_xor", "max", "min", "umax", "umin"),
             "ordering": ("not_atomic", "unordered", "monotonic", "consume", "acquire", "release", "acq_rel",
                          "seq_cst")}
    KINDS: ClassVar[dict[str, CombiningKind]] = {kind.llvm_atomic: kind for kind in CombiningKind if kind.llvm_atomic}
    format = "$bin_op $ptr `,` $val $ordering attr-dict `:` type($ptr) `,` type($val)"

    def infer(self) -> Type:
        _check_address(self, self.ptr)
        if not isinstance(self.val.type, IntType) or self.bin_op not in self.KINDS or self.ordering != "monotonic":
            self.fail(f"{self.bin_op} {self.ordering} of a {self.val.type}; there are monotonic "
                      f"{', '.join(self.KINDS)} of integers", code="MLC0167")
        return self.val.type

    def interpret(self, frame: Frame) -> Any:
        old = _read(frame, self, frame[self.ptr], self.val.type, self.alignment or self.val.type.itemsize)
        _write(frame, self, frame[self.ptr], self.val.type, self.KINDS[self.bin_op].combine(old, frame[self.val]),
               self.alignment or self.val.type.itemsize)
        return old


class Alloca(Op, name="llvm.alloca", pure=False):
    """result = the address of stack memory for `count` values of a type, until the function returns"""

    count: Value
    type: ResultType
    elem_type: Type
    alignment: int | None = None

    def infer(self) -> Type:
        size_of(self.elem_type)
        if not isinstance(self.count.type, IntType):
            self.fail(f"the count is {self.count.type}, no integer", code="MLC0167")
        return ptr

    def interpret(self, frame: Frame) -> Any:
        memory = fresh((int(frame[self.count]) * size_of(self.elem_type),), i8, self.alignment or 16)
        return heap(frame.interpreter).pointer(memory)

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, ("elem_type",))
        p.append(f" {p.name(self.count)} x {p.type(self.elem_type)}{' ' + extra if extra else ''} : "
                 f"({p.type(self.count.type)}) -> {p.type(ptr)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        count, _, type = parser.operand(), parser.expect("x"), parser.type()
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        inputs, results = parser.signature()
        return parser.build(Alloca, parser.resolve_all([count], inputs), {"elem_type": type, **extra}, results)


class GetElementPtr(Op, name="llvm.getelementptr", pure=True):
    """result = base + the byte offset of the element at the indices, in an array of elem_type

    The first index counts values of elem_type, the following select parts of it. A vector of indices or of addresses
    gives one address per lane.
    """

    base: Value
    dynamic_indices: tuple[Value, ...]
    type: ResultType
    elem_type: Type
    rawConstantIndices: tuple[int, ...]
    attr_types = {"rawConstantIndices": "i32"}

    def infer(self) -> Type:
        lanes = {v.type.shape for v in self.operands if isinstance(v.type, VectorType)}
        if self.rawConstantIndices.count(DYNAMIC) != len(self.dynamic_indices) or not self.rawConstantIndices:
            self.fail("needs an operand for each index that is not constant", code="MLC0167")
        if element(self.base.type) != ptr or len(lanes) > 1:
            self.fail(f"addresses {self.base.type} do not fit the indices", code="MLC0167")
        return VectorType(lanes.pop(), ptr) if lanes else ptr

    @property
    def indices(self) -> list[int | Value]:
        values = iter(self.dynamic_indices)
        return [next(values) if n == DYNAMIC else n for n in self.rawConstantIndices]

    def interpret(self, frame: Frame) -> Any:
        numbers = [n if isinstance(n, int) else frame[n] for n in self.indices]
        numbers = [n.astype(np.int64) if isinstance(n, np.ndarray) else int(n) for n in numbers]
        type, total = self.elem_type, numbers[0] * size_of(self.elem_type)
        for n in numbers[1:]:
            if isinstance(type, StructType):
                total, type = total + member_offset(type, n), type.members[n]
            elif isinstance(type, ArrayType):
                total, type = total + n * size_of(type.element), type.element
            else:
                self.fail(f"an index into {type}", code="MLC0167")
        base = frame[self.base]
        if not isinstance(self.result.type, VectorType):
            return base + total
        lanes = np.broadcast_to(np.asarray(total), self.result.type.shape)
        bases = base if isinstance(base, np.ndarray) else [base] * len(lanes)
        return _objects([b + int(n) for b, n in zip(bases, lanes)])

    def print_form(self, p: Printer) -> None:
        at = ", ".join(p.name(n) if isinstance(n, Value) else str(n) for n in self.indices)
        extra = p.attr_dict(self, ("elem_type", "rawConstantIndices"))
        p.append(f" {p.name(self.base)}[{at}]{' ' + extra if extra else ''} : "
                 f"({p.types(v.type for v in self.operands)}) -> {p.type(self.result.type)}, {p.type(self.elem_type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        base, _ = parser.operand(), parser.expect("[")
        items = parser.list_of(lambda: parser.operand() if parser.at_value() else parser.integer(), "]")
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        inputs, results = parser.signature()
        parser.expect(",")
        attrs = {"elem_type": parser.type(), "rawConstantIndices": tuple(
            n if isinstance(n, int) else DYNAMIC for n in items), **extra}
        refs = [base, *(n for n in items if not isinstance(n, int))]
        return GetElementPtr.make(parser.resolve_all(refs, inputs), attrs, results)


def element_address(base: Value, index: Value | int, type: Type) -> Value:
    """The address of element `index` of the array of `type` that starts at `base`."""
    if isinstance(index, int) and not DYNAMIC < index < 1 << 31:
        index = constant(index, i64)
    dynamic = (index,) if isinstance(index, Value) else ()
    lanes = [v.type.shape for v in (base, *dynamic) if isinstance(v.type, VectorType)]
    result = VectorType(lanes[0], ptr) if lanes else ptr
    return GetElementPtr(base, dynamic, result, type, (index if isinstance(index, int) else DYNAMIC,)).result


class AddrSpaceCast(Op, name="llvm.addrspacecast", pure=True):
    """result = the same place, as an address in another address space"""

    arg: Value
    type: ResultType
    format = "$arg attr-dict `:` type($arg) `to` type(result)"

    def infer(self) -> Type:
        type = self.results[0].type
        if not isinstance(self.arg.type, PtrType) or not isinstance(type, PtrType) or self.arg.type == type:
            self.fail(f"{self.arg.type} is no address in another space than {type}", code="MLC0167")
        return type

    def ref(self, x: Any) -> Any:
        return x


class PtrToInt(Op, name="llvm.ptrtoint", pure=True):
    """result = the address as an integer"""

    x: Value
    type: ResultType
    format = "$x attr-dict `:` type($x) `to` type(result)"

    def infer(self) -> Type:
        if not isinstance(self.x.type, PtrType):
            self.fail(f"{self.x.type} is no address", code="MLC0167")
        return self.results[0].type  # type: ignore[no-any-return]

    def interpret(self, frame: Frame) -> Any:
        bits = np.int64(heap(frame.interpreter).address(frame[self.x]))
        return bits.astype(to_numpy(element(self.result.type)))


class IntToPtr(Op, name="llvm.inttoptr", pure=True):
    """result = the integer as an address"""

    x: Value
    type: ResultType
    format = "$x attr-dict `:` type($x) `to` type(result)"

    def infer(self) -> Type:
        if not isinstance(self.x.type, IntType):
            self.fail(f"{self.x.type} is no integer", code="MLC0167")
        return ptr

    def interpret(self, frame: Frame) -> Any:
        return heap(frame.interpreter).find(int(frame[self.x]))


# -- masked lanes -----------------------------------------------------------------------------------------------------
def _check_masked(op: Op, value: Value, addresses: Value, mask: Value, scattered: bool) -> Type:
    """The type of the lanes, which fits mask and addresses."""
    type = value.type
    if not isinstance(type, VectorType) or type.rank != 1 or mask.type != like(type, i1):
        op.fail(f"{mask.type} is no mask of {type}", code="MLC0167")
    if addresses.type != (VectorType(type.shape, ptr) if scattered else ptr):
        op.fail(f"{addresses.type} are no addresses for {type}", code="MLC0167")
    return type


class _Masked(Op):
    """A memory access whose mask switches lanes off; `alignment` is that of one lane."""

    pure = False

    def lanes(self, frame: Frame, addresses: Value, mask: Value, dtype: ScalarType) -> list[tuple[int, Pointer]]:
        """Lane and address, of the lanes that are on."""
        held, size = frame[addresses], dtype.itemsize
        return [(lane, held[lane] if isinstance(held, np.ndarray) else held + lane * size)
                for lane in map(int, np.flatnonzero(frame[mask]))]


class MaskedLoad(_Masked, name="llvm.intr.masked.load"):
    """result[l] = mask[l] ? data[l] : pass_thru[l]"""

    data: Value
    mask: Value
    pass_thru: Value
    alignment: int
    attr_types = {"alignment": "i32"}
    format = "$data `,` $mask `,` $pass_thru attr-dict `:` functional-type"
    scattered = False

    def infer(self) -> Type:
        return _check_masked(self, self.pass_thru, self.data, self.mask, self.scattered)

    def interpret(self, frame: Frame) -> Any:
        if not self.scattered and frame[self.mask].all():
            return _read(frame, self, frame[self.data], self.result.type, self.alignment)
        out, dtype = np.array(frame[self.pass_thru]), self.result.type.dtype
        for lane, pointer in self.lanes(frame, self.data, self.mask, dtype):
            out[lane] = _read(frame, self, pointer, dtype, self.alignment)
        return out


class MaskedGather(MaskedLoad, name="llvm.intr.masked.gather"):
    """result[l] = mask[l] ? the value at data[l] : pass_thru[l]"""

    scattered = True


class MaskedStore(_Masked, name="llvm.intr.masked.store"):
    """where mask[l]: data[l] = value[l]"""

    value: Value
    data: Value
    mask: Value
    alignment: int
    attr_types = {"alignment": "i32"}
    format = ("$value `,` $data `,` $mask attr-dict `:` type($value) `,` type($mask) `into` type($data)")
    scattered = False

    def infer(self) -> tuple[Type, ...]:
        _check_masked(self, self.value, self.data, self.mask, self.scattered)
        return ()

    def interpret(self, frame: Frame) -> list[Any]:
        values, dtype = frame[self.value], self.value.type.dtype
        if not self.scattered and frame[self.mask].all():
            _write(frame, self, frame[self.data], self.value.type, values, self.alignment)
            return []
        for lane, pointer in self.lanes(frame, self.data, self.mask, dtype):
            _write(frame, self, pointer, dtype, values[lane], self.alignment)
        return []


class MaskedScatter(MaskedStore, name="llvm.intr.masked.scatter"):
    """where mask[l]: the memory at data[l] = value[l], lane by lane"""

    scattered = True


# -- ranges of bytes --------------------------------------------------------------------------------------------------
class MemCpy(Op, name="llvm.intr.memcpy", pure=False):
    """the `len` bytes at dst = those at src; the two do not overlap"""

    dst: Value
    src: Value
    len: Value
    isVolatile: bool = False

    def infer(self) -> tuple[Type, ...]:
        _check_address(self, self.dst)
        _check_address(self, self.src)
        return ()

    def interpret(self, frame: Frame) -> list[Any]:
        count = int(frame[self.len])
        target, source = _bytes(self, frame[self.dst], count), _bytes(self, frame[self.src], count)
        if np.shares_memory(target, source) and start_of(target) != start_of(source):
            self.fail("source and destination overlap", code="MLC0163")
        target[...] = source
        return []


class Prefetch(Op, name="llvm.intr.prefetch", pure=False):
    """A hint that the memory at addr is accessed soon: nothing happens, whatever the address."""

    addr: Value
    rw: int
    hint: int
    cache: int
    attr_types = {"rw": "i32", "hint": "i32", "cache": "i32"}

    def infer(self) -> tuple[Type, ...]:
        _check_address(self, self.addr)
        return ()

    def interpret(self, frame: Frame) -> list[Any]:
        return []


class MemSet(Op, name="llvm.intr.memset", pure=False):
    """the `len` bytes at dst = val"""

    dst: Value
    val: Value
    len: Value
    isVolatile: bool = False

    def infer(self) -> tuple[Type, ...]:
        _check_address(self, self.dst)
        if self.val.type != i8:
            self.fail(f"the byte is {self.val.type}, not i8", code="MLC0167")
        return ()

    def interpret(self, frame: Frame) -> list[Any]:
        _bytes(self, frame[self.dst], int(frame[self.len]))[...] = np.asarray(frame[self.val]).view(np.uint8)
        return []
