"""nvgpu: warp-level operations of NVIDIA GPUs on vectors and memrefs; upstream's names, syntax and semantics.

A matrix is distributed over the threads of a warp as PTX defines it for mma.sync: each holds a fragment. gpu/warp.py
interprets the operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mlc.ir.core import Op, ResultType, Value
from mlc.ir.types import TYPE_READERS, MemRefType, Type, VectorType, bf16, element, f16, f32, index

if TYPE_CHECKING:
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


@dataclass(frozen=True, slots=True)
class TokenType(Type):
    """A token of asynchronous copies, or of a group of them that a thread can wait for."""

    dialect: ClassVar[str] = "nvgpu"

    def text(self, generic: bool = False) -> str:
        return "!nvgpu.device.async.token"


token = TokenType()
TYPE_READERS["nvgpu.device.async.token"] = lambda parser: token


class MmaSync(Op, name="nvgpu.mma.sync", pure=True):
    """result = a x b + c, on matrices that are distributed over the threads of a warp

    With mmaShape = [16, 8, k], a is 16 x k, b is k x 8. For every element the k products are added up in f64 in
    ascending order, then added to c and rounded to f32 once; hardware may differ from that in the last bits. k is 16
    for bf16 and f16; with tf32Enabled it is 8, of f32 the last 13 bits of which count as zeros.
    """

    a: Value
    b: Value
    c: Value
    mmaShape: tuple[int, ...]
    tf32Enabled: bool | None = None
    format = ("`(` $a `,` $b `,` $c `)` attr-dict `:` `(` type($a) `,` type($b) `,` type($c) `)` `->` type(result)")

    def infer(self) -> Type:
        self.mmaShape, self.tf32Enabled = tuple(self.mmaShape), self.tf32Enabled or None
        dtype = element(self.a.type)
        k, held = (8, 1) if self.tf32Enabled else (16, 2)
        known = dtype == f32 if self.tf32Enabled else dtype in (bf16, f16)
        wanted = [VectorType((4, held), dtype), VectorType((2, held), dtype), VectorType((2, 2), f32)] if known else []
        if self.mmaShape != (16, 8, k) or [v.type for v in self.operands] != wanted:
            self.fail(f"{list(self.mmaShape)} of {', '.join(str(v.type) for v in self.operands)}: there are 16x8x16 of "
                      "bf16 and f16, and 16x8x8 of f32 as tf32, with f32 sums", code="MLC0184")
        return self.c.type  # type: ignore[no-any-return]

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        if name == "mmaShape":
            return str(list(value))
        return "unit" if generic and name == "tf32Enabled" else super().attr_text(name, value, generic)


def _row(op: Op, memory: Value, indices: tuple[Value, ...]) -> MemRefType:
    type = memory.type
    if not isinstance(type, MemRefType) or len(indices) != type.rank or any(v.type != index for v in indices):
        op.fail(f"{type} is not what {len(indices)} indices name an element of", code="MLC0184")
    return type


class LdMatrix(Op, name="nvgpu.ldmatrix", pure=False):
    """result = the fragment of numTiles matrices of 8 rows of 16 bytes, whose addresses the threads provide

    Thread 8 n + i provides the address of row i of tile n. With `transpose`, 8 x 8 elements of 16 bits are transposed.
    """

    memory: Value
    indices: tuple[Value, ...]
    type: ResultType
    transpose: bool
    numTiles: int
    format = "$memory `[` $indices `]` attr-dict `:` type($memory) `->` type(result)"

    def infer(self) -> Type:
        type = _row(self, self.memory, self.indices)
        if type.space != "workgroup" or self.numTiles not in (1, 2, 4) or (
                type.dtype not in ((bf16, f16) if self.transpose else (bf16, f16, f32))):
            self.fail(f"{self.numTiles} tiles of a {type}: 1, 2 or 4, of bf16 or f16, or of untransposed f32, "
                      "in the workgroup's space", code="MLC0184")
        return VectorType((self.numTiles, 4 // type.dtype.itemsize), type.dtype)

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        return f"{value} : i32" if name == "numTiles" else super().attr_text(name, value, generic)


class DeviceAsyncCopy(Op, name="nvgpu.device_async_copy", pure=False):
    """dst[dst_at + i] = src[src_at + i] for i < dstElements, asynchronously, complete once the thread waits for it

    Until then no thread may access the destination. The copy has 4, 8 or 16 bytes and that alignment; with bypassL1,
    which requires 16, it is cached in L2 only. With srcElements, only so many are read, and the others are 0.
    """

    dst: Value
    dst_at: tuple[Value, ...]
    src: Value
    src_at: tuple[Value, ...]
    srcElements: Value | None
    dstElements: int
    bypassL1: bool | None = None

    @property
    def bytes(self) -> int:
        return self.dstElements * self.dst.type.dtype.itemsize  # type: ignore[no-any-return]

    def infer(self) -> Type:
        self.bypassL1 = self.bypassL1 or None
        dst, src = _row(self, self.dst, self.dst_at), _row(self, self.src, self.src_at)
        sizes = (16,) if self.bypassL1 else (4, 8, 16)
        if dst.dtype != src.dtype or dst.space != "workgroup" or self.bytes not in sizes or (
                self.srcElements is not None and self.srcElements.type != index):
            self.fail(f"{self.dstElements} elements of {src} to {dst}: 4, 8 or 16 bytes, to the workgroup's space",
                      code="MLC0184")
        return token

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        if generic and name == "dstElements":
            return f"{value} : index"
        return "unit" if generic and name == "bypassL1" else super().attr_text(name, value, generic)

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, ("dstElements", "operandSegmentSizes"))
        p.append(f" {p.name(self.src)}[{p.values(self.src_at)}], {p.name(self.dst)}[{p.values(self.dst_at)}], "
                 f"{self.dstElements}{'' if self.srcElements is None else f', {p.name(self.srcElements)}'}"
                 f"{' ' + extra if extra else ''} : {p.type(self.src.type)} to {p.type(self.dst.type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        places = []
        for _ in range(2):
            memory = parser.operand()
            parser.expect("[")
            places.append((memory, parser.list_of(parser.operand, "]")))
            parser.expect(",")
        count = int(parser.kind("number", "a number of elements").text)
        read = [parser.operand()] if parser.accept(",") else []
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        source = parser.type()
        parser.expect("to")
        operands, segments = [], []
        for (memory, at), type in zip(reversed(places), (parser.type(), source)):
            operands += [parser.resolve(memory, type), *parser.resolve_all(at, [index] * len(at))]
            segments += [1, len(at)]
        operands += parser.resolve_all(read, [index] * len(read))
        return parser.build(DeviceAsyncCopy, operands, {"dstElements": count, **extra}, [token],
                            segments=[*segments, len(read)])


class DeviceAsyncCreateGroup(Op, name="nvgpu.device_async_create_group", pure=False):
    """result = a group of the copies that the thread has issued since the last group"""

    tokens: tuple[Value, ...]

    def infer(self) -> Type:
        if any(v.type != token for v in self.tokens):
            self.fail("a group is one of copies", code="MLC0184")
        return token

    def print_form(self, p: Printer) -> None:
        p.append(" " + p.values(self.operands) if self.operands else "")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        start, refs = parser.pos, parser.operand_list()
        if parser.at("=") or parser.at(":"):               # the operands are results of the next operation
            parser.pos, refs = start, []
        return parser.build(DeviceAsyncCreateGroup, parser.resolve_all(refs, [token] * len(refs)), {}, [token])


class DeviceAsyncWait(Op, name="nvgpu.device_async_wait", pure=False):
    """Wait until all groups of the thread's copies except the last numGroups (default 0) are complete."""

    group: Value
    numGroups: int | None = None

    def infer(self) -> tuple[Type, ...]:
        if self.group.type != token or (self.numGroups or 0) < 0:
            self.fail("waits for a group of copies", code="MLC0184")
        return ()

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        return f"{value} : i32" if name == "numGroups" else super().attr_text(name, value, generic)

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self)
        p.append(f" {p.name(self.group)}{' ' + extra if extra else ''}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        group = parser.resolve(parser.operand(), token)
        return parser.build(DeviceAsyncWait, [group], parser.attr_dict() if parser.at("{") else {}, [])
