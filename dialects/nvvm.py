"""nvvm: what LLVM knows of NVIDIA's GPUs beyond plain instructions, with upstream's names and meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlc.dialects.llvm.types import StructType
from mlc.ir.core import Op, ResultType, Value
from mlc.ir.types import Type, f32, i1, i32

if TYPE_CHECKING:
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer

AXES = ("x", "y", "z")


class SpecialRegister(Op):
    """A number that the hardware keeps for each thread."""

    format = "attr-dict `:` type(result)"

    def infer(self) -> Type:
        return i32


class Tid(SpecialRegister):
    """result = the number of the thread in its block, along one axis"""


class Ctaid(SpecialRegister):
    """result = the number of the block in the grid, along one axis"""


class Ntid(SpecialRegister):
    """result = how many threads a block has along one axis"""


class Nctaid(SpecialRegister):
    """result = how many blocks there are along one axis"""


def _along(base: type[SpecialRegister], axis: str) -> type[SpecialRegister]:
    """The class of a register along one axis; upstream has a name for each."""
    word = base.__name__.lower()
    members: dict[str, Any] = {"__doc__": base.__doc__, "__module__": __name__, "__annotations__": {}}
    return type(f"{base.__name__}{axis.upper()}", (base,), members, name=f"nvvm.read.ptx.sreg.{word}.{axis}")


REGISTERS: dict[tuple[type[Op], str], type[SpecialRegister]] = {
    (base, axis): _along(base, axis) for base in (Tid, Ctaid, Ntid, Nctaid) for axis in AXES}
"""The classes, by what they tell and along which axis."""


class Barrier(Op, name="nvvm.barrier", pure=False):
    """Wait until every thread of the block is here; what they wrote before, all of them read after."""

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
