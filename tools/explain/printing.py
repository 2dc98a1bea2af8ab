"""Text of a module after each pass of a pipeline: a value keeps its name, and lines that stay the same are kept.

Numbering values anew after every pass would make all lines below a removed operation differ, and printing all
operations again would take longer than the passes.
"""

from __future__ import annotations

import re
from operator import is_
from typing import Any

from mlc.ir.core import Block, Op, Value
from mlc.ir.printer import Printer, large_constants_elided
from mlc.ir.types import Type
from mlc.tools.explain.explanation import Line
from mlc.tools.explain.lineage import Lineage

FEW = 16
"""Elements up to which a constant is written out."""


class _Scope:
    """The names of values and blocks in an operation that is isolated from above."""

    def __init__(self) -> None:
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set()
        self.counters: dict[str, int] = {}
        self.labels: dict[Block, str] = {}


_Known = tuple[str, int, int, dict[Value, str], list[Value], list[Any], list[Type]]
"""The line of an operation, its number, and all that they depend on, which is compared by identity: the indentation,
the names, operands, attributes and types of results."""


def _attribute(value: Any) -> Any:
    """A key of an attribute: equal only for those of equal text, unlike 0.0 and -0.0, or 1 and True."""
    if type(value) in (int, bool, str) or (type(value) is tuple and all(type(x) is int for x in value)):
        return type(value), value
    return (float, repr(value)) if type(value) is float else id(value)


def _template(text: str, names: list[str]) -> list[str | int] | None:
    """A text with the positions of names in their places; None where a string has what may be a name."""
    if _NAME_IN_STRING.search(text):
        return None
    return [names.index(part) if part in names else part for part in _NAME.split(text) if part]


_NAME = re.compile(r"(%[\w$.-]+(?:#\d+)?)")
_NAME_IN_STRING = re.compile(r'"[^"]*%')


class ContinuousPrinter(Printer):
    """Prints a module repeatedly; `lineage` knows the operations."""

    def __init__(self, lineage: Lineage) -> None:
        super().__init__(generic=False, locations=False)
        self.lineage = lineage
        self.owners: list[int] = []
        self._owner = -1
        self._scopes: dict[Op, _Scope] = {}
        self._known: dict[Op, _Known] = {}
        self._types: dict[int, tuple[Type, str]] = {}
        # by the kind of an operation: its template, and the attributes, which are held since ids may stand for them
        self._templates: dict[Any, tuple[list[str | int] | None, list[Any]]] = {}

    def module(self, module: Op) -> list[Line]:
        """The lines of a module, as it is now."""
        self.lines, self.owners, self.indent = [], [], 0
        self._scopes.setdefault(module, _Scope())
        with large_constants_elided(above=FEW):
            self.op(module)
        return list(map(Line, self.lines, self.owners))

    def name_in(self, function: Op, value: Value) -> str:
        """The name of a value of a function that has been printed."""
        return self._scopes[function].names.get(value, "")

    def line(self, text: str) -> None:
        super().line(text)
        self.owners.append(self._owner)

    def op(self, op: Op) -> None:
        """An operation; the line of one without regions is kept while nothing in it changes."""
        known = self._known.get(op)
        if known is not None:
            line, number, indent, names, operands, attrs, types = known
            now = op.attrs
            if (names is self.names and indent == self.indent and operands == op.operands and len(attrs) == len(now)
                    and all(map(is_, attrs, now.values())) and all(map(is_, types, [r.type for r in op.results]))):
                self.lines.append(line)
                self.owners.append(number)
                return
        number = self.lineage.number_of[op]
        if op.regions or op.successors:                    # whose names are not checked
            outer, self._owner = self._owner, number
            super().op(op)
            self._owner = outer
            return
        line = "  " * self.indent + self._text(op)
        self.lines.append(line)
        self.owners.append(number)
        self._known[op] = (line, number, self.indent, self.names, op.operands[:], [*op.attrs.values()],
                           [r.type for r in op.results])

    def _text(self, op: Op) -> str:
        """The text of an operation without regions: that of another of its kind, with its own names."""
        if len(op.results) > 1:
            return self._printed(op)
        values = [*op.results, *op.operands]
        attrs, types = op.attrs, [self._types.get(id(v.type)) or self._type(v.type) for v in values]
        key = (type(op), tuple(attrs), tuple(map(_attribute, attrs.values())) if attrs else (),
               tuple([text for _, text in types]), tuple(map(values.index, values)), tuple(op.segments or ()))
        template = self._templates.get(key)
        if template is None:
            text = self._printed(op)
            self._templates[key] = _template(text, [self.name(v) for v in values]), list(attrs.values())
            return text
        parts = template[0]
        if parts is None:
            return self._printed(op)
        names = [self.names.get(v) or self.name(v) for v in values]
        return "".join([x if type(x) is str else names[x] for x in parts])      # type: ignore[index]

    def _printed(self, op: Op) -> str:
        """The text of an operation, as any printer makes it."""
        lines, owners, indent = self.lines, self.owners, self.indent
        self.lines, self.owners, self.indent = [], [], 0
        super().op(op)
        (text,), self.lines, self.owners, self.indent = self.lines, lines, owners, indent
        return text

    def type(self, type: Type) -> str:
        return (self._types.get(id(type)) or self._type(type))[1]

    def _type(self, type: Type) -> tuple[Type, str]:
        """A type, held so that no other gets its id, and its text."""
        known = self._types[id(type)] = type, super().type(type)
        return known

    def functional_type(self, op: Op) -> str:
        """As of `Printer`; comparing texts that are known takes less time than comparing types."""
        inputs, results = [self.type(v.type) for v in op.operands], [self.type(r.type) for r in op.results]
        if len(results) == 1 and inputs and inputs.count(results[0]) == len(inputs):
            return results[0]
        out = ", ".join(results)
        return f"({', '.join(inputs)}) -> {out if len(results) == 1 else f'({out})'}"

    def enter(self, op: Op) -> None:
        scope = self._scopes.setdefault(op, _Scope())
        scope.names.update((v, self.name(v)) for v in (*op.operands, *op.results))
        self.names, self.taken, self.counters, self.labels = scope.names, scope.taken, scope.counters, scope.labels
