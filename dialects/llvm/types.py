"""Types of the llvm dialect: pointers, structs, arrays and functions; numbers and vectors are builtin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from mlc.ir.diag import IRError
from mlc.ir.types import TYPE_READERS, ScalarType, Type, VectorType, i1, index

if TYPE_CHECKING:
    from mlc.ir.parser import Parser


@dataclass(frozen=True, slots=True)
class PtrType(ScalarType):
    """`!llvm.ptr`: an address; `!llvm.ptr<3>`: one within an address space."""

    space: int = 0

    @property
    def width(self) -> int:  # type: ignore[override]
        return 64

    def text(self, generic: bool = False) -> str:
        return f"!llvm.ptr<{self.space}>" if self.space else "!llvm.ptr"


@dataclass(frozen=True, slots=True)
class StructType(Type):
    """`!llvm.struct<(i64, f32)>`: several values as one."""

    members: tuple[Type, ...]

    def text(self, generic: bool = False) -> str:
        return f"!llvm.struct<({', '.join(map(_inner_text, self.members))})>"


@dataclass(frozen=True, slots=True)
class ArrayType(Type):
    """`!llvm.array<4 x f32>`: elements one after the other, in memory."""

    count: int
    element: Type

    def text(self, generic: bool = False) -> str:
        return f"!llvm.array<{self.count} x {_inner_text(self.element)}>"


@dataclass(frozen=True, slots=True)
class LLVMFunctionType(Type):
    """`!llvm.func<i32 (i64, ptr)>`; no result is `void`."""

    result: Type | None
    params: tuple[Type, ...]

    def text(self, generic: bool = False) -> str:
        result = "void" if self.result is None else _inner_text(self.result)
        return f"!llvm.func<{result} ({', '.join(map(_inner_text, self.params))})>"


@dataclass(frozen=True, slots=True)
class AmxType(Type):
    """`!llvm.x86_amx`: a tile register of x86, which only intrinsics and phis have values of."""

    def text(self, generic: bool = False) -> str:
        return "!llvm.x86_amx"


ptr = PtrType()
x86_amx = AmxType()


def function_result(results: Sequence[Type]) -> Type | None:
    """Return type of a function that returns several values: None, the type of the only value, or a struct."""
    return None if not results else results[0] if len(results) == 1 else StructType(tuple(results))


def alignment_of(type: Type) -> int:
    """The bytes whose multiples addresses of values of a type are, where nothing else is said (x86-64)."""
    if isinstance(type, VectorType):
        return 1 << (size_in_bits(type) // 8 - 1).bit_length()
    if isinstance(type, StructType):
        return max((alignment_of(m) for m in type.members), default=1)
    if isinstance(type, ArrayType):
        return alignment_of(type.element)
    if isinstance(type, ScalarType) and type != index:
        return type.itemsize
    raise IRError(f"{type} has no place in memory", code="MLC0165")


@cache
def size_in_bits(type: VectorType) -> int:
    """The bits of all lanes."""
    if type.dtype == i1:
        raise IRError(f"{type} has no place in memory: masks stay in registers", code="MLC0165")
    count = 1
    for n in type.shape:
        count *= n
    return count * type.dtype.width


def stored_bytes(type: Type) -> int:
    """The bytes that a number, an address or a vector of them takes up when it is loaded or stored."""
    return size_in_bits(type) // 8 if isinstance(type, VectorType) else size_of(type)


@cache
def size_of(type: Type) -> int:
    """The bytes from one element of an array of a type to the next (x86-64)."""
    if isinstance(type, ArrayType):
        return type.count * size_of(type.element)
    end = 0
    if isinstance(type, StructType):
        end = member_offset(type, len(type.members))
    elif isinstance(type, VectorType):
        end = size_in_bits(type) // 8
    elif isinstance(type, ScalarType):
        end = type.itemsize
    align = alignment_of(type)
    return -(-end // align) * align


def member_offset(type: StructType, position: int) -> int:
    """The byte at which a member of a struct starts; after the last member, where that ends."""
    at = 0
    for member in type.members[:position]:
        align = alignment_of(member)
        at = -(-at // align) * align + size_of(member)
    if position < len(type.members):
        align = alignment_of(type.members[position])
        at = -(-at // align) * align
    return at


def _inner_text(type: Type) -> str:
    """A type within a type of this dialect, where `!llvm.` is left out."""
    return type.text(True).removeprefix("!llvm.")


def _inner(parser: Parser) -> Type:
    name = "llvm." + parser.token.text
    if parser.token.kind == "word" and name in TYPE_READERS:
        parser.take()
        parser.deeper()
        try:
            return TYPE_READERS[name](parser)
        finally:
            parser.depth -= 1
    return parser.type()


def _read_struct(parser: Parser) -> Type:
    parser.expect("<")
    parser.expect("(")
    members = parser.list_of(lambda: _inner(parser), ")")
    parser.expect(">")
    return StructType(tuple(members))


def _read_array(parser: Parser) -> Type:
    parser.expect("<")
    count = parser.integer()
    if not 0 <= count < 1 << 48:
        parser.fail(f"an array of {count} elements is absurd", "MLC0204")
    parser.expect("x")
    element = _inner(parser)
    parser.expect(">")
    return ArrayType(count, element)


def _read_function(parser: Parser) -> Type:
    parser.expect("<")
    result = None if parser.accept("void") else _inner(parser)
    parser.expect("(")
    params = parser.list_of(lambda: _inner(parser), ")")
    parser.expect(">")
    return LLVMFunctionType(result, tuple(params))


def _read_pointer(parser: Parser) -> Type:
    if not parser.accept("<"):
        return ptr
    space = parser.integer()
    parser.expect(">")
    return PtrType(space)


TYPE_READERS["llvm.x86_amx"] = lambda parser: x86_amx
TYPE_READERS["llvm.ptr"] = _read_pointer
TYPE_READERS["llvm.struct"] = _read_struct
TYPE_READERS["llvm.array"] = _read_array
TYPE_READERS["llvm.func"] = _read_function
