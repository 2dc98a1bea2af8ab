"""func: functions, calls and returns, with upstream's names, syntax and meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlc.ir.core import Block, Op, Region, ResultType, Symbol, Value
from mlc.ir.types import FunctionType, Type

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.parser import Parser
    from mlc.ir.printer import Printer


class Func(Op, name="func.func", isolated=True, pure=False):
    """A named function; its body sees nothing from outside but symbols."""

    body: Region
    sym_name: Symbol
    function_type: FunctionType
    sym_visibility: str | None = None

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def args(self) -> Sequence[Value]:
        return self.body.blocks[0].args

    @property
    def is_public(self) -> bool:
        return self.sym_visibility != "private"

    def update_type(self) -> None:
        """Make `function_type` say what the body takes and returns, after a pass changed them."""
        returned = self.body.blocks[-1].terminator.operands
        self.function_type = FunctionType(tuple(a.type for a in self.args), tuple(v.type for v in returned))

    def verify_op(self) -> None:
        if tuple(a.type for a in self.args) != self.function_type.inputs:
            self.fail("the entry block's arguments are not the function's inputs", code="MLC0108")

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        return super().attr_text(name, str(value) if name == "sym_name" else value, generic)

    def print_form(self, p: Printer) -> None:
        from mlc.ir.printer import attr_text
        private = " private" if self.sym_visibility == "private" else ""
        args = ", ".join(f"{p.name(a)}: {p.type(a.type)}" for a in self.args)
        results = p.types(self.function_type.results)
        arrow = "" if not results else f" -> {results}" if len(self.function_type.results) == 1 else f" -> ({results})"
        p.append(f"{private} {attr_text(Symbol(self.sym_name), False)}({args}){arrow}")
        if extra := p.attr_dict(self, ("sym_name", "function_type", "sym_visibility")):
            p.append(f" attributes {extra}")
        p.braces(self.body, entry_args=False)

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        visibility = "private" if parser.accept("private") else "public" if parser.accept("public") else None
        name = parser.kind("symbol", "a function name such as @f").text[1:].strip('"')
        parser.expect("(")
        args = parser.list_of(parser.typed_arg, ")")
        results: list[Type] = []
        if parser.accept("->"):
            results = parser.list_of(parser.type, ")") if parser.accept("(") else [parser.type()]
        extra = parser.attr_dict() if parser.accept("attributes") else {}
        type = FunctionType(tuple(t for _, t in args), tuple(results))
        return parser.build(Func, [], {"sym_name": Symbol(name), "function_type": type, "sym_visibility": visibility,
                                       **extra}, [], [parser.region(args, isolated=True)])


def function(name: str, inputs: Sequence[Type], names: Sequence[str] = (), private: bool = False) -> Func:
    """A detached function with an empty body; call `update_type` when its return is in place."""
    return Func.make([], {"sym_name": Symbol(name), "function_type": FunctionType(tuple(inputs), ()),
                          "sym_visibility": "private" if private else None}, [], [Region(Block(inputs, names))])


class Return(Op, name="func.return", terminator=True, pure=False):
    """Leave the function with these values."""

    values: tuple[Value, ...]

    def verify_op(self) -> None:
        function = self.parent_op
        if not isinstance(function, Func):
            self.fail("stands outside a function", code="MLC0108")
        elif tuple(v.type for v in self.values) != function.function_type.results:
            self.fail("the values are not of the function's result types", code="MLC0108")

    def print_form(self, p: Printer) -> None:
        if self.operands:
            p.append(f" {p.values(self.operands)} : {p.types(v.type for v in self.operands)}")
        if extra := p.attr_dict(self):
            p.append(" " + extra)

    @staticmethod
    def parse_form(parser: Parser) -> Op:
        refs = parser.operand_list()
        types = parser.type_list() if refs and parser.accept(":") else None
        extra = parser.attr_dict() if parser.at("{") else {}
        return Return.make(parser.resolve_all(refs, types), extra, [])


class Call(Op, name="func.call", pure=False):
    """The results of a function of this module."""

    callee: Symbol
    args: tuple[Value, ...]
    types: tuple[ResultType, ...]
    format = "$callee `(` $args `)` attr-dict `:` functional-type"

    def interpret(self, frame: Frame) -> list[Any]:
        return frame.interpreter.call(self.callee, frame.all(self.operands))


def callee(call: Call) -> Func:
    """The function that a call names."""
    from mlc.dialects.builtin import Module
    for op in call.enclosing(Module).body.block:
        if isinstance(op, Func) and op.sym_name == call.callee:
            return op
    call.fail(f"@{call.callee} is not defined", code="MLC0106")
    raise AssertionError
