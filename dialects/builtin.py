"""builtin: the module operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlc.ir.core import Block, Op, Region, Symbol, builder, caller_loc

if TYPE_CHECKING:
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


EXCESS_PRECISION = "excess_precision"
"""Attribute of a module: values of 16 bits need not be rounded between two operations on f32."""


class Module(Op, name="builtin.module", isolated=True, symbol_table=True, pure=False):
    """A list of functions and globals."""

    body: Region
    sym_name: Symbol | None = None

    def print_form(self, p: Printer) -> None:
        if self.sym_name:
            p.append(f" @{self.sym_name}")
        if extra := p.attr_dict(self, ("sym_name",)):
            p.append(f" attributes {extra}")
        p.braces(self.body)

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        name = parser.attribute() if parser.token.kind == "symbol" else None
        extra = parser.attr_dict() if parser.accept("attributes") else {}
        return Module.make([], {"sym_name": name, **extra}, [], [parser.region(isolated=True)])

    def attr_text(self, name: str, value: object, generic: bool) -> str:
        if generic and value is True:                # unit attributes, such as `gpu.container_module`
            return "unit"
        return super().attr_text(name, str(value) if name == "sym_name" else value, generic)


def module() -> Module:
    """An empty module."""
    return Module.make([], {"sym_name": None}, [], [Region(Block())], loc=builder.loc or caller_loc())
