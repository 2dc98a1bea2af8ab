"""nvvm: LLVM intrinsics for NVIDIA GPUs, with upstream's names and semantics."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlc.dialects.llvm.aggregates import ExtractValue
from mlc.dialects.llvm.control import InlineAsm
from mlc.dialects.llvm.types import PtrType, StructType
from mlc.ir.core import Op, ResultType, Value
from mlc.ir.types import Type, VectorType, f16, f32, i1, i32

if TYPE_CHECKING:
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer

AXES = ("x", "y", "z")


class SpecialRegister(Op, pure=True):
    """A special register."""

    format = "attr-dict `:` type(result)"

    def infer(self) -> Type:
        return i32


class Tid(SpecialRegister):
    """result = the index of the thread in its block, along one axis"""


class Ctaid(SpecialRegister):
    """result = the index of the block in the grid, along one axis"""


class Ntid(SpecialRegister):
    """result = the number of threads of a block along one axis"""


class Nctaid(SpecialRegister):
    """result = the number of blocks of the grid along one axis"""


def _along(base: type[SpecialRegister], axis: str) -> type[SpecialRegister]:
    """The class of a register along one axis; upstream has a name for each."""
    word = base.__name__.lower()
    members: dict[str, Any] = {"__doc__": base.__doc__, "__module__": __name__, "__annotations__": {}}
    return type(f"{base.__name__}{axis.upper()}", (base,), members, name=f"nvvm.read.ptx.sreg.{word}.{axis}")


REGISTERS: dict[tuple[type[Op], str], type[SpecialRegister]] = {
    (base, axis): _along(base, axis) for base in (Tid, Ctaid, Ntid, Nctaid) for axis in AXES}
"""Special-register classes by quantity and axis."""


class Barrier(Op, name="nvvm.barrier", pure=False):
    """Wait until every thread of the block arrives; writes before it are visible to all of them after it."""

    barrierId: Value | None = None
    numberOfThreads: Value | None = None

    def infer(self) -> tuple[Type, ...]:
        if self.operands:
            self.fail("barriers here are those of the whole block", code="MLC0180")
        return ()

    def print_form(self, p: Printer) -> None:
        if extra := p.attr_dict(self, ("operandSegmentSizes",)):
            p.append(" " + extra)

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        return parser.build(Barrier, [], parser.attr_dict() if parser.at("{") else {}, [], segments=[0, 0])


class ShflSync(Op, name="nvvm.shfl.sync", pure=False):
    """result = val of another thread of the warp, as PTX's shfl.sync defines it

    With `return_value_and_is_valid`, result = (that value, whether the thread is in the group).
    """

    thread_mask: Value
    val: Value
    offset: Value
    mask_and_clamp: Value
    type: ResultType
    kind: str
    return_value_and_is_valid: bool | None = None
    KINDS = ("bfly", "up", "down", "idx")

    def infer(self) -> Type:
        self.kind = self.kind.removeprefix("#nvvm<shfl_kind").strip().rstrip(">")
        self.return_value_and_is_valid = self.return_value_and_is_valid or None      # upstream's unit attribute
        if self.kind not in self.KINDS or self.val.type not in (i32, f32) or any(
                v.type != i32 for v in (self.thread_mask, self.offset, self.mask_and_clamp)):
            self.fail(f"{self.kind} of {self.val.type}: one of {', '.join(self.KINDS)}, of an i32 or f32, and i32s",
                      code="MLC0180")
        return StructType((self.val.type, i1)) if self.return_value_and_is_valid else self.val.type

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        if generic and name == "return_value_and_is_valid":
            return "unit"
        return f"#nvvm<shfl_kind {value}>" if generic and name == "kind" else super().attr_text(name, value, generic)

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, ("kind",))
        p.append(f" {self.kind} {p.values(self.operands)}{' ' + extra if extra else ''} : {p.type(self.val.type)} -> "
                 f"{p.type(self.result.type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        kind = parser.keyword(ShflSync.KINDS)
        refs = parser.operand_list()
        if len(refs) != 4:
            parser.fail("takes a mask of threads, a value, an offset and a clamp", "MLC0209")
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        type = parser.type()
        parser.expect("->")
        operands = parser.resolve_all(refs, [i32, type, i32, i32])
        return parser.build(ShflSync, operands, {"kind": kind, **extra}, [parser.type()])


# -- matrices of a warp -----------------------------------------------------------------------------------------------
def _word(text: Any, head: str) -> str:
    """The keyword in brackets of an attribute such as #nvvm.mma_layout<row>, or the word itself."""
    found = re.fullmatch(rf"#nvvm\s*(?:\.{head}\s*<|<\s*{head}\b)\s*(.*?)\s*>", str(text), re.S)
    return found[1] if found else str(text)


class MmaSync(Op, name="nvvm.mma.sync", pure=True):
    """result = A x B + C, on matrices that are distributed over the threads of a warp

    As nvgpu.mma.sync: m16n8k16 of bf16, two to an i32, and of f16, or m16n8k8 of tf32 as i32, with sums in f32.
    """

    operandA: tuple[Value, ...]
    operandB: tuple[Value, ...]
    operandC: tuple[Value, ...]
    type: ResultType
    shape: tuple[int, ...] | str
    layoutA: str = "row"
    layoutB: str = "col"
    multiplicandAPtxType: str | None = None
    multiplicandBPtxType: str | None = None

    def infer(self) -> Type:
        if isinstance(self.shape, str):
            self.shape = tuple(int(n) for n in re.findall(r"=\s*(\d+)", self.shape))
        self.layoutA, self.layoutB = (_word(x, "mma_layout") for x in (self.layoutA, self.layoutB))
        given = [_word(x, "mma_type") for x in (self.multiplicandAPtxType, self.multiplicandBPtxType) if x is not None]
        held = {*(v.type for v in (*self.operandA, *self.operandB))}
        kinds = {*given} or ({"f16"} if held == {VectorType((2,), f16)} else set())
        kind = next(iter(kinds), "")
        k, register = {"bf16": (16, i32), "f16": (16, VectorType((2,), f16)), "tf32": (8, i32)}.get(kind, (0, i32))
        counts = [len(group) for group in (self.operandA, self.operandB, self.operandC)]
        if (len(kinds) != 1 or self.shape != (16, 8, k) or (self.layoutA, self.layoutB) != ("row", "col")
                or counts != [4, 2, 4] or held != {register} or any(v.type != f32 for v in self.operandC)):
            self.fail("there are m16n8k16 of bf16 and f16 and m16n8k8 of tf32, row by column, with f32 sums",
                      code="MLC0184")
        self.multiplicandAPtxType = self.multiplicandBPtxType = kind
        return StructType((f32,) * 4)

    @property
    def extents(self) -> tuple[int, ...]:
        """m, n and k."""
        return tuple(int(n) for n in self.shape)

    @property
    def kind(self) -> str:
        return self.multiplicandAPtxType or ""

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        if name == "shape":
            return f"#nvvm.shape<m = {value[0]}, n = {value[1]}, k = {value[2]}>"
        if name.startswith("layout"):
            return f"#nvvm.mma_layout<{value}>"
        if name.startswith("multiplicand"):
            return f"#nvvm.mma_type<{value}>"
        return super().attr_text(name, value, generic)

    def print_form(self, p: Printer) -> None:
        groups = self.operandA, self.operandB, self.operandC
        p.append("".join(f" {word}[{p.values(group)}]" for word, group in zip("ABC", groups)))
        p.append(f" {p.attr_dict(self, ('operandSegmentSizes',))} : "
                 f"({', '.join(p.type(group[0].type) for group in groups)}) -> {p.type(self.result.type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        groups = []
        for word in "ABC":
            parser.expect(word)
            parser.expect("[")
            groups.append(parser.list_of(parser.operand, "]"))
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        types, results = parser.signature()
        if len(types) != 3:
            parser.fail("A, B and C have a type each", "MLC0209")
        operands = [v for group, type in zip(groups, types) for v in parser.resolve_all(group, [type] * len(group))]
        return parser.build(MmaSync, operands, extra, results, segments=[len(group) for group in groups])


SHARED, GLOBAL = PtrType(3), PtrType(1)


def _addresses(op: Op, values: Sequence[Value], types: Sequence[Type]) -> None:
    if [v.type for v in values] != [*types]:
        op.fail(f"takes addresses {', '.join(map(str, types))}", code="MLC0184")


class LdMatrix(Op, name="nvvm.ldmatrix", pure=False):
    """result = the fragments of num matrices of 8 x 8 elements of 16 bits, two to an i32; as nvgpu.ldmatrix

    With the layout `col`, matrices are transposed.
    """

    ptr: Value
    type: ResultType
    num: int
    layout: str = "row"
    shape: tuple[int, ...] | str = (8, 8)
    eltType: str = "b16"
    format = "$ptr attr-dict `:` functional-type"

    def infer(self) -> Type:
        if isinstance(self.shape, str):
            self.shape = tuple(int(n) for n in re.findall(r"=\s*(\d+)", self.shape))
        self.layout, self.eltType = _word(self.layout, "mma_layout"), _word(self.eltType, "ld_st_matrix_elt_type")
        _addresses(self, self.operands, [SHARED])
        if self.num not in (1, 2, 4) or (self.shape, self.eltType) != ((8, 8), "b16") or (
                self.layout not in ("row", "col")):
            self.fail("there are 1, 2 or 4 matrices of 8 x 8 elements of 16 bits", code="MLC0184")
        return i32 if self.num == 1 else StructType((i32,) * self.num)

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        texts = {"num": f"{value} : i32", "layout": f"#nvvm.mma_layout<{value}>",
                 "eltType": f"#nvvm.ld_st_matrix_elt_type<{value}>"}
        if name == "shape":
            return f"#nvvm.ld_st_matrix_shape<m = {value[0]}, n = {value[1]}>"
        return texts.get(name) or super().attr_text(name, value, generic)


# -- asynchronous copies ----------------------------------------------------------------------------------------------
class CpAsyncSharedGlobal(Op, name="nvvm.cp.async.shared.global", pure=False):
    """dst[i] = src[i] for i < size bytes, asynchronously, complete once the thread waits for it

    `ca` caches at all levels; `cg`, which requires 16 bytes, in L2 only. With `cpSize`, only so many bytes are read,
    and the others are 0.
    """

    dst: Value
    src: Value
    cpSize: Value | None
    size: int
    modifier: str = "ca"
    MODIFIERS = ("ca", "cg")

    def infer(self) -> tuple[Type, ...]:
        self.modifier = _word(self.modifier, "load_cache_modifier")
        _addresses(self, self.operands[:2], [SHARED, GLOBAL])
        if self.cpSize is not None and self.cpSize.type != i32:
            self.fail(f"cpSize is a {self.cpSize.type}, not an i32", code="MLC0180")
        if self.modifier not in self.MODIFIERS or self.size not in ((16,) if self.modifier == "cg" else (4, 8, 16)):
            self.fail(f"{self.size} bytes by {self.modifier}: 4, 8 or 16 by ca, 16 by cg", code="MLC0184")
        return ()

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        if generic:
            return f"{value} : i32" if name == "size" else f"#nvvm<load_cache_modifier {value}>"
        return super().attr_text(name, value, generic)

    def print_form(self, p: Printer) -> None:
        read = "" if self.cpSize is None else f", {p.name(self.cpSize)}"
        p.append(f" {p.values(self.operands[:2])}, {self.size}, cache = {self.modifier}{read} : "
                 f"{', '.join(p.type(v.type) for v in self.operands)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        dst, _, src, _ = parser.operand(), parser.expect(","), parser.operand(), parser.expect(",")
        size = int(parser.kind("number", "a number of bytes").text)
        for text in (",", "cache", "="):
            parser.expect(text)
        modifier = parser.keyword(CpAsyncSharedGlobal.MODIFIERS)
        read = [parser.operand()] if parser.accept(",") else []
        parser.expect(":")
        types = [parser.type()]
        while parser.accept(","):
            types.append(parser.type())
        return parser.build(CpAsyncSharedGlobal, parser.resolve_all([dst, src, *read], types),
                            {"size": size, "modifier": modifier}, [], segments=[1, 1, len(read)])


class CpAsyncCommitGroup(Op, name="nvvm.cp.async.commit.group", pure=False):
    """Commit the copies that the thread has issued since the last group as a group."""

    format = "attr-dict"


class CpAsyncWaitGroup(Op, name="nvvm.cp.async.wait.group", pure=False):
    """Wait until all groups of the thread's copies except the last n are complete."""

    n: int
    format = "$n attr-dict"

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        return f"{value} : i32" if name == "n" and generic else super().attr_text(name, value, generic)


# -- products of a warpgroup ------------------------------------------------------------------------------------------
WARPGROUP = 128
"""Threads of a warpgroup: four adjacent warps."""
ROW_BYTES, SWIZZLE_PERIOD = 128, 1024
"""Bytes of a row of a matrix that wgmma reads with the 128-byte swizzle, and of the eight rows after which its pattern
repeats: matrices start at multiples of them."""


class WgmmaFence(Op, name="nvvm.wgmma.fence.aligned", pure=False):
    """Order earlier accesses to registers before the products of wgmma.mma_async that follow."""

    format = "attr-dict"


class WgmmaCommitGroup(Op, name="nvvm.wgmma.commit.group.sync.aligned", pure=False):
    """Commit the products that the warpgroup has issued since the last group as a group."""

    format = "attr-dict"


class WgmmaWaitGroup(Op, name="nvvm.wgmma.wait.group.sync.aligned", pure=False):
    """Wait until all groups of the warpgroup's products except the last `group` are complete.

    Sums may be read after that. LLVM does not know that the wait has to do with them: use `wgmma_finish` for the last.
    """

    group: int
    format = "$group attr-dict"

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        return f"{value} : i64" if name == "group" and generic else super().attr_text(name, value, generic)


class FenceProxy(Op, name="nvvm.fence.proxy", pure=False):
    """Order the thread's earlier accesses to shared memory before later ones by wgmma.mma_async."""

    kind: str
    space: str
    format = "attr-dict"

    def infer(self) -> tuple[Type, ...]:
        self.kind, self.space = _word(self.kind, "proxy_kind"), _word(self.space, "shared_space")
        if (self.kind, self.space) != ("async.shared", "cta"):
            self.fail(f"{self.kind} of {self.space}: there is async.shared of cta", code="MLC0184")
        return ()

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        return f"#nvvm.{'proxy_kind' if name == 'kind' else 'shared_space'}<{value}>"


@dataclass(frozen=True)
class Wgmma:
    """The instruction wgmma.mma_async: D = A B + D of 64 x n sums in f32 and 16 terms, or D = A B if `from_zero`.

    A (64 x 16) and B (16 x n) are read from shared memory by descriptors (`wgmma_descriptor`); rows hold terms, or with
    `transposed` elements of one term. The thread with lane l of warp w has d[4 j + 2 i + c]: row 16 w + l // 4 + 8 i,
    column 8 j + 2 (l % 4) + c. If A is in registers, its four have pairs of terms: register r of row 16 w + l // 4 +
    8 (r % 2), terms 2 (l % 4) + 8 (r // 2) and the next.
    """

    columns: int
    dtype: str
    transposed: tuple[bool, bool]
    in_registers: bool = False
    from_zero: bool = False

    @property
    def sums(self) -> int:
        """Sums of a thread."""
        return self.columns // 2

    def text(self) -> str:
        """The instruction, with its operands as LLVM numbers them."""
        registers = ", ".join(f"${i}" for i in range(self.sums))
        a, b = (int(t) for t in self.transposed)
        first = self.sums + self.carried
        left, *_, right = (f"${first + i}" for i in range(len(self.factors)))
        if self.in_registers:
            left = "{" + ", ".join(f"${first + i}" for i in range(4)) + "}"
        return (f"wgmma.mma_async.sync.aligned.m64n{self.columns}k16.f32.{self.dtype}.{self.dtype} {{{registers}}}, "
                f"{left}, {right}, {int(not self.from_zero)}, 1, 1, {'' if self.in_registers else f'{a}, '}{b};")

    @property
    def carried(self) -> int:
        """The operands before the factors: sums, if any are added to."""
        return 0 if self.from_zero else self.sums

    @property
    def factors(self) -> list[str]:
        """The constraints of the operands after the sums: descriptors, or registers of A and a descriptor."""
        return ["r"] * 4 + ["l"] if self.in_registers else ["l", "l"]

    @staticmethod
    def of(op: InlineAsm) -> Wgmma | None:
        """The instruction that an operation stands for, if it is one of these to the letter."""
        found = re.match(r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k16\.f32\.(bf16|f16)\..*"
                         r", \$\d+, ([01]), 1, 1(, [01])?, ([01]);$", op.asm_string)
        if not found or int(found[1]) not in range(8, 257, 8):
            return None
        made = Wgmma(int(found[1]), found[2], (found[4] == ", 1", found[5] == "1"), found[4] is None, found[3] == "0")
        bound = _is_bound(op, made.sums, made.carried, made.factors)
        return made if op.asm_string == made.text() and bound else None


FINISH = "wgmma.wait_group.sync.aligned 0;"


def _constraints(sums: int, carried: int, more: Sequence[str]) -> str:
    return ",".join([*["=f"] * sums, *map(str, range(carried)), *more, "~{memory}"])


def _is_bound(op: InlineAsm, sums: int, carried: int, more: Sequence[str]) -> bool:
    return (bool(op.has_side_effects) and op.constraints == _constraints(sums, carried, more) and len(op.results) == 1
            and op.results[0].type == StructType((f32,) * sums) and all(v.type == f32 for v in op.args[:carried]))


def is_finish(op: InlineAsm) -> bool:
    """Whether an operation is that of `wgmma_finish`."""
    sums = len(op.args)
    return op.asm_string == FINISH and _is_bound(op, sums, sums, [])


def wgmma(instruction: Wgmma, sums: Sequence[Value], a: Sequence[Value], b: Value) -> list[Value]:
    """Issue a product of the warpgroup, by the descriptors of its factors, or the registers of A, and with the sums
    that it adds to; returns the new sums, not to be read before `wgmma_finish`. LLVM has no intrinsic for it."""
    count = instruction.sums
    made = InlineAsm((*sums, *a, b), instruction.text(), _constraints(count, len(sums), instruction.factors), True,
                     (StructType((f32,) * count),)).result
    return [ExtractValue(made, (i,)).result for i in range(count)]


def wgmma_finish(sums: Sequence[Value]) -> list[Value]:
    """Wait for all products of the warpgroup; returns the sums. They are operands so that LLVM reads none before."""
    made = InlineAsm(tuple(sums), FINISH, _constraints(len(sums), len(sums), []), True,
                     (StructType((f32,) * len(sums)),)).result
    return [ExtractValue(made, (i,)).result for i in range(len(sums))]


def descriptor_bits(leading: int, stride: int) -> int:
    """The bits beside the address in the descriptor of a matrix with the 128-byte swizzle: bytes between matrices of 64
    elements along a transposed row, and between groups of eight rows (PTX ISA, "Matrix descriptor")."""
    return leading >> 4 << 16 | stride >> 4 << 32 | 1 << 62
