"""The pretty form of operations: one format string per class defines both printer and parser.

A format is a sequence of

    `literal`            a keyword or punctuation
    $name                an operand (or several, comma separated), a region, a successor, or an attribute
    type($name)          the type(s) of an operand field;  type(result), type(results)
    functional-type      `(operands) -> results`, or a single type if all are equal
    attr-dict            `{k = v}` of the attributes not written elsewhere, nothing if there are none

The default format is `name $a, $b attr-dict : functional-type $region`. A class whose syntax no format can express
overrides `print_form(self, printer)` and `parse_form(cls, parser)`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mlc.ir.core import Block, Op, Region, Value
from mlc.ir.types import Type

if TYPE_CHECKING:
    from mlc.ir.parser import Parser, Unresolved
    from mlc.ir.printer import Printer

_DIRECTIVE = re.compile(r"\s*(?:`([^`]*)`|type\(\$?(\w+)\)|(functional-type|attr-dict)|\$(\w+))")
_GLUED = frozenset(",)]>([<")


_FORMATS: dict[type, tuple[tuple[str, str], ...]] = {}


def directives(cls: type[Op]) -> tuple[tuple[str, str], ...]:
    """The format of a class as (kind, argument) pairs: literal, type, functional-type, attr-dict, or a field kind."""
    if cls not in _FORMATS:
        _FORMATS[cls] = _read_format(cls)
    return _FORMATS[cls]


def _read_format(cls: type[Op]) -> tuple[tuple[str, str], ...]:
    kinds = {f.name: f.kind for f in cls.fields}
    if not cls.format:
        return (("operands", ""), *((f.kind, f.name) for f in cls.fields if f.kind == "successor"), ("attr-dict", ""),
                ("optional-functional-type", ""), *((f.kind, f.name) for f in cls.fields if f.kind == "region"))
    out: list[tuple[str, str]] = []
    text, at = cls.format.rstrip(), 0
    while at < len(text):
        m = _DIRECTIVE.match(text, at)
        assert m, f"{cls.name}: bad format at {text[at:]!r}"
        literal, typed, keyword, field = m.groups()
        out.append(("literal", literal) if literal is not None else ("type", typed) if typed else
                   (keyword, "") if keyword else (kinds[field], field))
        at = m.end()
    return tuple(out)


def print_op(p: Printer, op: Op) -> None:
    """Append the pretty form of `op` to the current line."""
    p.append(op.name.removeprefix("builtin."))
    if custom := getattr(op, "print_form", None):
        custom(p)
        return
    line = p.lines[-1]
    for kind, arg in directives(type(op)):
        if kind == "region":
            p.lines[-1] = line
            _print_regions(p, op, arg)
            line = p.lines[-1]
        elif text := _print_one(p, op, kind, arg):
            line += text if text in _GLUED or line[-1] in "([<" else " " + text
    p.lines[-1] = line


def _print_regions(p: Printer, op: Op, field: str) -> None:
    value = getattr(op, field)
    for region in value if isinstance(value, tuple) else (value,):
        p.braces(region)


def _print_one(p: Printer, op: Op, kind: str, arg: str) -> str:
    if kind == "literal":
        return arg
    if kind == "operands":
        return p.values(op.operands)
    if kind == "attr-dict":
        return p.attr_dict(op, [field for kind, field in directives(type(op)) if kind == "attr"] if op.attrs else ())
    if kind == "functional-type":
        return p.functional_type(op)
    if kind == "optional-functional-type":
        return ": " + p.functional_type(op) if op.operands or op.results else ""
    if kind == "type":
        if arg in ("result", "results"):
            return p.types(r.type for r in op.results)
        value = getattr(op, arg)
        return p.types(v.type for v in value) if isinstance(value, tuple) else p.type(value.type) if value else ""
    value = getattr(op, arg)
    if kind == "operand":
        return p.values(value) if isinstance(value, tuple) else p.name(value) if value is not None else ""
    if kind == "successor":
        return ", ".join(p.label(b) for b in (value if isinstance(value, (tuple, list)) else [value]))
    if arg in op.enums:
        return str(value)
    return op.attr_text(arg, value, False)


class Parts:
    """Parsed parts of an operation, in any order."""

    def __init__(self) -> None:
        self.operands: dict[str, list[Unresolved]] = {}
        self.all_operands: list[Unresolved] | None = None
        self.operand_types: dict[str, list[Type]] = {}
        self.input_types: list[Type] | None = None
        self.result_types: list[Type] | None = None
        self.attrs: dict[str, Any] = {}
        self.regions: list[Region] = []
        self.successors: list[Block] = []


def parse_op(parser: Parser, cls: type[Op]) -> Op:
    """Parse an operation after its name, as `print_op` prints it; the result is detached."""
    if custom := getattr(cls, "parse_form", None):
        op: Op = custom(parser)
        return op
    parts = Parts()
    for kind, arg in directives(cls):
        _parse_one(parser, cls, parts, kind, arg)
    return _assemble(parser, cls, parts)


def _parse_one(parser: Parser, cls: type[Op], parts: Parts, kind: str, arg: str) -> None:
    shape = next((f.shape for f in cls.fields if f.name == arg), "one")
    if kind == "literal":
        parser.expect(arg)
    elif kind == "operands":
        parts.all_operands = parser.operand_list()
    elif kind == "attr-dict":
        if parser.at("{"):
            parts.attrs |= parser.attr_dict()
    elif kind == "functional-type":
        parts.input_types, parts.result_types = parser.functional_type()
    elif kind == "optional-functional-type":
        if parser.accept(":"):
            parts.input_types, parts.result_types = parser.functional_type()
    elif kind == "type" and arg in ("result", "results"):
        parts.result_types = parser.type_list()
    elif kind == "type":
        parts.operand_types[arg] = parser.type_list() if shape == "many" else \
            [parser.type()] if shape == "one" or parts.operands[arg] else []
    elif kind == "operand":
        one = shape == "one" or (shape == "optional" and parser.at_value())
        parts.operands[arg] = parser.operand_list() if shape == "many" else [parser.operand()] if one else []
    elif kind == "successor":
        parts.successors += parser.successor_list() if shape == "many" else [parser.successor()]
    elif kind == "region":
        parts.regions.append(parser.region())
        while shape == "many" and parser.at("{"):
            parts.regions.append(parser.region())
    elif arg in cls.enums:
        parts.attrs[arg] = parser.keyword(cls.enums[arg])
    else:
        parts.attrs[arg] = parser.attribute()


def _assemble(parser: Parser, cls: type[Op], parts: Parts) -> Op:
    segments = parts.attrs.pop("operandSegmentSizes", None)
    if parts.all_operands is not None:
        types = parts.input_types or []
        if len(types) == 1 and len(parts.all_operands) != 1:
            types = types * len(parts.all_operands)
        operands = parser.resolve_all(parts.all_operands, types)
    else:
        operands, segments = [], []
        flat = sum(len(parts.operands[f.name]) for f in cls.operand_fields if f.name in parts.operands)
        inputs = list(parts.input_types or [])
        if len(inputs) == 1:
            inputs = inputs * flat
        for f in cls.operand_fields:
            refs = parts.operands.get(f.name, [])
            types = parts.operand_types.get(f.name) or inputs[len(operands): len(operands) + len(refs)]
            if len(types) == 1 and len(refs) > 1:
                types = types * len(refs)
            group: list[Value] = parser.resolve_all(refs, types)
            operands += group
            segments.append(len(group))
        if not cls._variadic:
            segments = None
    return parser.build(cls, operands, parts.attrs, parts.result_types, parts.regions, parts.successors, segments)
