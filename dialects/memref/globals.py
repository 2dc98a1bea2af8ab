"""memref, globals: constant data of a module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.memref.layout import fresh
from mlc.ir.core import Op, ResultType, Symbol, Value
from mlc.ir.diag import IRError
from mlc.ir.symbols import lookup
from mlc.ir.types import MemRefType, Type, from_numpy

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


class Global(Op, name="memref.global", pure=False):
    """Named memory of static lifetime; `constant` if it is never written"""

    sym_name: Symbol
    type: Type
    sym_visibility: str | None = None
    initial_value: np.ndarray[Any, Any] | None = None
    constant: bool | None = None
    alignment: int | None = None

    def infer(self) -> tuple[Type, ...]:
        held, type = self.initial_value, self.type
        self.constant = self.constant or None               # upstream's unit attribute
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


class GetGlobal(Op, name="memref.get_global", pure=True):
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
    """A shape with its dynamic sizes filled in."""
    numbers = iter(sizes)
    out = tuple(int(next(numbers)) if n is None else n for n in shape)
    if any(n < 0 for n in out):
        op.fail(f"sizes {list(out)} are not all positive", code="MLC0163")
    return out


def may_equal(a: int | None, b: int | None) -> bool:
    return a is None or b is None or a == b


def times(a: int | None, b: int | None) -> int | None:
    return 0 if a == 0 or b == 0 else None if a is None or b is None else a * b
