"""Reads StableHLO as text: the generic form, and the pretty form that tools print.

Input is untrusted: nesting, tokens and sizes are bounded before anything is built, and every fault is one UserError at
its line and column. `forms` has the operations whose pretty form has a syntax of its own.
"""

from __future__ import annotations

from typing import Any, NoReturn

from mlc.frontend.stablehlo import forms
from mlc.frontend.stablehlo.attributes import AttributeReader
from mlc.frontend.stablehlo.syntax import SYNTAX, UNSUPPORTED, Function, Operation, Program, Region, ValueType
from mlc.ir.diag import IRError, UserError
from mlc.ir.lexer import Token
from mlc.ir.literals import symbol, unquote

MAX_RESULTS = 4096
BUILTIN = {"return": "func.return", "call": "func.call"}
"""Operations that are printed without their dialect."""


def read(text: str, file: str = "<stablehlo>") -> Program:
    """The functions of a text; UserError MLC0860 if it is no StableHLO, MLC0861 for a type that mlc has not."""
    try:
        return Reader(text, file).program()
    except UserError:
        raise
    except IRError as error:
        raise UserError(error.message, code=error.code if error.code == UNSUPPORTED else SYNTAX, loc=error.loc,
                        hint=error.hint) from None


class Reader(AttributeReader):
    """Reads operations, with the names that are in scope and their types."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file)
        self.scopes: list[dict[str, ValueType]] = []
        self.functions: dict[str, Function] = {}

    # -- programs -------------------------------------------------------------------------------------------------
    def program(self) -> Program:
        """The whole text: functions, in a module or not."""
        while self.token.kind != "end":
            self._top()
        return Program(self.functions)

    def _top(self) -> None:
        token = self.token
        if token.kind in ("hash", "dtype"):                 # an alias, of a location mostly
            self.alias()
        elif token.text in ("module", "builtin.module"):
            self.take()
            self.symbol() if self.token.kind == "symbol" else None
            if self.accept("attributes"):
                self.attr_dict()
            self._module()
        elif token.kind == "string" and unquote(token.text) == "builtin.module":
            self.take()
            self.expect("(")
            self.expect(")")
            if self.accept("<"):
                self.attr_dict()
                self.expect(">")
            self.expect("(")
            self._module(generic=True)
            self.expect(")")
            if self.at("{"):
                self.attr_dict()
            self.expect(":")
            self.signature()
        elif token.kind == "string" and unquote(token.text) == "func.func":
            self._generic_function()
        elif token.text in ("func.func", "func"):
            self._function()
        else:
            self.fail(f"expected a function, found {token.text[:40]!r}", SYNTAX)
        self.skip_location()

    def _module(self, generic: bool = False) -> None:
        self.expect("{")
        self.deeper()
        if generic and self.token.kind == "block":
            self.take()
            self.expect(":")
        while not self.accept("}"):
            if self.token.kind == "end":
                self.fail("the module does not end", SYNTAX)
            self._top()
        self.depth -= 1

    def _define(self, name: str, body: Region | None, results: list[ValueType], attrs: list[dict[str, Any]],
                token: Token) -> None:
        if name in self.functions:
            self.fail(f"@{name} is defined twice", SYNTAX, token)
        if body is not None and body.last is not None and body.last.types != results:
            self.fail(f"@{name} returns {', '.join(map(str, body.last.types)) or 'nothing'}, and its type says "
                      f"{', '.join(map(str, results)) or 'nothing'}", SYNTAX, token)
        self.functions[name] = Function(name, body, results, attrs, self.loc(token.start))

    def _function(self) -> None:
        token = self.take()
        if self.token.text in ("public", "private", "nested"):
            self.take()
        name = str(self.symbol())
        self.expect("(")
        arguments = self.list_of(self._argument, ")")
        results: list[ValueType] = []
        if self.accept("->"):
            if self.accept("("):
                results = self.list_of(self._result, ")")
            else:
                results = [self.value_type()]
        if self.accept("attributes"):
            self.attr_dict()
        names, types = [n for n, _, _ in arguments], [t for _, t, _ in arguments]
        body = self.region(names, types, isolated=True) if self.at("{") else None
        self._define(name, body, results, [a for _, _, a in arguments], token)

    def _argument(self) -> tuple[str, ValueType, dict[str, Any]]:
        name = ""
        if self.at_value():
            name = self.take().text[1:]
            self.expect(":")
        type = self.value_type()
        attrs = self.attr_dict() if self.at("{") else {}
        self.skip_location()
        return name, type, attrs

    def _result(self) -> ValueType:
        type = self.value_type()
        if self.at("{"):
            self.attr_dict()
        return type

    def _generic_function(self) -> None:
        token = self.take()
        self.expect("(")
        self.expect(")")
        attrs: dict[str, Any] = {}
        if self.accept("<"):
            attrs = self.attr_dict()
            self.expect(">")
        self.expect("(")
        body = self.region([], [], isolated=True)
        self.expect(")")
        if self.at("{"):
            attrs |= self.attr_dict()
        self.expect(":")
        self.signature()
        signature = attrs.get("function_type")
        if not isinstance(signature, tuple) or "sym_name" not in attrs:
            self.fail("func.func needs the attributes function_type and sym_name", SYNTAX, token)
        inputs, results = signature
        if body.types != list(inputs) and body.operations:
            self.fail("the arguments of the function differ from its type", SYNTAX, token)
        given = attrs.get("arg_attrs") or tuple({} for _ in inputs)
        self._define(str(attrs["sym_name"]), body if body.operations else None, list(results), list(given), token)

    # -- regions --------------------------------------------------------------------------------------------------
    def region(self, names: list[str], types: list[ValueType], isolated: bool = False) -> Region:
        """`{ operations }` with one block; `names` are the arguments of a block without a header."""
        self.expect("{")
        self.deeper()
        outer = self.scopes
        self.scopes = [{}] if isolated else [*outer, {}]
        if self.token.kind == "block":
            header = self.take()
            arguments = self.list_of(self._argument, ")") if self.accept("(") else []
            self.expect(":")
            names, types = [n for n, _, _ in arguments], [t for _, t, _ in arguments]
            if "" in names:
                self.fail("an argument of the block has no name", SYNTAX, header)
        for name, type in zip(names, types):
            self.declare(name, type)
        operations: list[Operation] = []
        while not self.accept("}"):
            if self.token.kind == "block":
                self.fail("a region with several blocks", UNSUPPORTED)
            if self.token.kind == "end":
                self.fail("the region does not end", SYNTAX)
            operations.append(self.operation())
        self._check_end(operations, "func.return" if isolated else "stablehlo.return")
        self.scopes = outer
        self.depth -= 1
        return Region(list(names), list(types), operations)

    def _check_end(self, operations: list[Operation], end: str) -> None:
        """Refuse a region that does not end, and only there, with what returns its results; functions may be empty."""
        found = [i for i, op in enumerate(operations) if op.name in ("func.return", "stablehlo.return")]
        last = len(operations) - 1
        if (operations or end == "stablehlo.return") and (found != [last] or operations[last].name != end):
            self.fail(f"a region here ends with {end}, and has no other return", SYNTAX,
                      self.tokens[self.pos - 1])

    def declare(self, name: str, type: ValueType) -> None:
        """Add a name to the scope."""
        if name in self.scopes[-1]:
            self.fail(f"%{name} is defined twice", SYNTAX)
        self.scopes[-1][name] = type

    def value(self) -> str:
        """The name of a value that is defined."""
        token = self.kind("value", "a value such as %0")
        name = token.text[1:]
        if not any(name in scope for scope in self.scopes):
            self.fail(f"%{name} is not defined here", SYNTAX, token)
        return name

    def type_of(self, name: str) -> ValueType:
        """The type of a value."""
        return next(scope[name] for scope in reversed(self.scopes) if name in scope)

    # -- operations -----------------------------------------------------------------------------------------------
    def operation(self) -> Operation:
        """One operation; its results are in scope afterwards."""
        start = self.token
        names: list[tuple[str, int]] = []
        if self.at_value():
            while True:
                name = self.kind("value", "a result").text[1:]
                count = self.integer() if self.accept(":") else 1
                if not 0 < count <= MAX_RESULTS:
                    self.fail(f"{count} results", SYNTAX, start)
                names.append((name, count))
                if not self.accept(","):
                    break
            self.expect("=")
        token = self.take()
        if token.kind == "string":
            op = self._generic(unquote(token.text), token)
        elif token.kind == "word":
            name = BUILTIN.get(token.text, token.text)
            op = forms.read(self, name, token)
        else:
            self.fail(f"expected an operation, found {token.text[:40]!r}", SYNTAX, token)
        self.skip_location()
        self._check_operands(op, token)
        if sum(n for _, n in names) != len(op.results) and names:
            self.fail(f"{op.name} has {len(op.results)} results, but {sum(n for _, n in names)} are named", SYNTAX,
                      start)
        for name, count in names:
            op.names += [name] if count == 1 else [f"{name}#{i}" for i in range(count)]
        for name, type in zip(op.names, op.results):
            self.declare(name, type)
        return op

    def _check_operands(self, op: Operation, token: Token) -> None:
        if len(op.types) != len(op.operands):
            self.fail(f"{op.name} has {len(op.operands)} operands, but {len(op.types)} types", SYNTAX, token)
        for name, type in zip(op.operands, op.types):
            if self.type_of(name) != type:
                self.fail(f"%{name} has the type {self.type_of(name)}, not {type}", SYNTAX, token)

    def _generic(self, name: str, token: Token) -> Operation:
        self.expect("(")
        operands = self.list_of(self.value, ")")
        if self.at("["):
            self.fail("an operation with successors", UNSUPPORTED)
        attrs: dict[str, Any] = {}
        if self.accept("<"):
            attrs = self.attr_dict()
            self.expect(">")
        regions = self.list_of(lambda: self.region([], []), ")") if self.accept("(") else []
        if self.at("{"):
            attrs |= self.attr_dict()
        self.expect(":")
        types, results = self.signature()
        return Operation(name, operands, types, results, attrs, regions, self.loc(token.start))

    def unreadable(self, message: str, token: Token) -> NoReturn:
        """A fault of the text at a token."""
        self.fail(message, SYNTAX, token)


def symbol_text(token: Token) -> str:
    """The name that a token such as @f has."""
    return str(symbol(token.text))
