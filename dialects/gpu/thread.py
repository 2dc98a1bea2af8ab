"""Operations of a single thread: its position, and communication with the other threads of its block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlc.ir.core import Op, Value
from mlc.ir.types import FloatType, IntType, Type, i1, i32, index

if TYPE_CHECKING:
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer

AXES = ("x", "y", "z")


class _Place(Op):
    """A coordinate or extent of the grid, available in running kernels only."""

    dimension: str
    pure = True

    def infer(self) -> Type:
        self.dimension = self.dimension.removeprefix("#gpu<").removeprefix("dim").strip(" >,")
        if self.dimension not in AXES:
            self.fail(f"there is no axis {self.dimension!r}: x, y or z", code="MLC0180")
        return index

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        return f"#gpu<dim {value}>" if name == "dimension" and generic else super().attr_text(name, value, generic)

    def print_form(self, p: Printer) -> None:
        p.append(f" {self.dimension}")
        if extra := p.attr_dict(self, ("dimension",)):
            p.append(" " + extra)

    @classmethod
    def parse_form(cls, parser: Parser) -> Op:
        dimension = parser.keyword(AXES)
        extra = parser.attr_dict() if parser.at("{") else {}
        return parser.build(cls, [], {"dimension": dimension, **extra}, [index])


class ThreadId(_Place, name="gpu.thread_id"):
    """result = the index of the thread in its block, along one axis"""


class BlockId(_Place, name="gpu.block_id"):
    """result = the index of the block in the grid, along one axis"""


class BlockDim(_Place, name="gpu.block_dim"):
    """result = the number of threads of a block along one axis"""


class GridDim(_Place, name="gpu.grid_dim"):
    """result = the number of blocks of the grid along one axis"""


class Barrier(Op, name="gpu.barrier", pure=False):
    """Wait until every thread of the block arrives; writes before it are visible to all of them after it."""

    format = "attr-dict"


class Shuffle(Op, name="gpu.shuffle", pure=False):
    """(result, valid) = the value of another thread of the same group of `width` neighbours, and whether it exists

    With t the index of the thread in its group, the source is t xor offset, t + offset (`down`), t - offset (`up`), or
    offset (`idx`). All threads of the group must take part. If the source is outside of the group, the result is the
    thread's own value.
    """

    value: Value
    offset: Value
    width: Value
    mode: str
    MODES = ("xor", "down", "up", "idx")

    def infer(self) -> tuple[Type, ...]:
        self.mode = self.mode.removeprefix("#gpu<shuffle_mode").strip().rstrip(">")
        if self.mode not in self.MODES:
            self.fail(f"there is no mode {self.mode}: {', '.join(self.MODES)}", code="MLC0180")
        type = self.value.type
        if not isinstance(type, IntType | FloatType) or type.width not in (32, 64):
            self.fail(f"exchanges numbers of 32 or 64 bits, not {type}", code="MLC0180")
        if self.offset.type != i32 or self.width.type != i32:
            self.fail("offset and width are i32", code="MLC0180")
        return type, i1

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        if name == "mode" and generic:
            return f"#gpu<shuffle_mode {value}>"
        return super().attr_text(name, value, generic)

    def print_form(self, p: Printer) -> None:
        extra = p.attr_dict(self, ("mode",))
        p.append(f" {self.mode} {p.values(self.operands)}{' ' + extra if extra else ''} : {p.type(self.value.type)}")

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        mode = parser.keyword(Shuffle.MODES)
        refs = parser.operand_list()
        if len(refs) != 3:
            parser.fail("a shuffle takes a value, an offset and a width", "MLC0209")
        extra = parser.attr_dict() if parser.at("{") else {}
        parser.expect(":")
        type = parser.type()
        return parser.build(Shuffle, parser.resolve_all(refs, [type, i32, i32]), {"mode": mode, **extra}, [type, i1])
