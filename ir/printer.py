"""The printer: MLIR's syntax in two forms, pretty for people and generic for tools.

Generic text quotes the name of every operation and spells out every type, so any MLIR tool can read it; there our own
dialects have the prefix `mlc.`, because upstream owns the name `tensor`. `ir/parser.py` reads both forms.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from mlc.ir.affine import AffineMap
from mlc.ir.assembly import print_op
from mlc.ir.attributes import DialectAttribute
from mlc.ir.core import Block, Op, OpResult, Region, Symbol, Value
from mlc.ir.diag import MODULE, UNKNOWN, Error, Loc
from mlc.ir.sizes import Size
from mlc.ir.thread_values import set_in_thread
from mlc.ir.types import ComplexType, ScalarType, Type, from_numpy

UPSTREAM = frozenset({"builtin", "func", "arith", "math", "scf", "cf", "memref", "vector", "llvm", "gpu", "nvgpu",
                      "nvvm", "x86vector", "amx"})
"""Dialects with upstream MLIR's names and semantics; all others are ours."""

_HEX_ELEMENTS = 32
"""Element lists longer than this print as hexadecimal bytes, as upstream does for large constants."""


def generic_name(name: str) -> str:
    """The name of an operation in generic text: ours have the prefix `mlc.`."""
    return name if name.split(".", 1)[0] in UPSTREAM else "mlc." + name


def to_text(op: Op, generic: bool = False, locations: bool = False) -> str:
    """The text of `op` with its regions, ending in a newline. `locations` adds `loc(...)` to every operation."""
    printer = Printer(generic, locations)
    printer.op(op)
    return "\n".join(printer.lines) + "\n"


def nameless_text(op: Op) -> str:
    """The generic form with numbered values and without locations: equal for modules that differ only in those."""
    printer = _Nameless(generic=True, locations=False)
    printer.op(op)
    return "\n".join(printer.lines)


def op_line(op: Op) -> str:
    """The first line of an operation, for messages; works on invalid IR too."""
    printer = Printer(False, False)
    for value in op.operands:
        printer.name(value)
    try:
        printer.op(op)
    except (Error, LookupError, AttributeError, TypeError, ValueError):    # parts are missing, or of the wrong kind
        return op.name
    return printer.lines[0] + ("" if len(printer.lines) == 1 else " ...")


def quote(text: str) -> str:
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    out = "".join(c if c.isprintable() and c not in '"\\' else "".join(f"\\{b:02X}" for b in c.encode())
                  for c in text)
    return f'"{out}"'


def float_text(value: float, type: ScalarType | None = None) -> str:
    """Shortest decimal that parses to the same number; inf and nan as the bits of `type` (default f64)."""
    value = float(value)
    if math.isfinite(value):
        text = repr(value)
        if "e" in text and "." not in text.split("e")[0]:
            text = text.replace("e", ".0e")
        return text
    from mlc.ir.types import f64, to_numpy
    dtype = to_numpy(type or f64)
    bits = np.array(value, dtype).tobytes()[::-1].hex().upper()
    return f"0x{bits}"


def complex_text(value: complex, type: ComplexType) -> str:
    """`(re, im)`, as upstream writes the elements of `dense`."""
    value = complex(value)
    return f"({float_text(value.real, type.part)}, {float_text(value.imag, type.part)})"


class _Elided(threading.local):
    """Number of elements above which this thread prints constants without them."""

    above = math.inf


_elided = _Elided()


def large_constants_elided(above: int) -> AbstractContextManager[None]:
    """Context in which constants of more elements are printed as `dense_resource<__elided__>`, for people to read."""
    return set_in_thread(_elided, "above", above)


def elements_text(array: np.ndarray[Any, Any], container: str) -> str:
    """`dense<...> : type` of an array; `container` is the type's text."""
    dtype = from_numpy(array.dtype)

    def one(x: Any) -> str:
        if dtype.is_bool:
            return "true" if x else "false"
        if isinstance(dtype, ComplexType):
            return complex_text(x, dtype)
        return float_text(x, dtype) if dtype.is_float else str(int(x))

    def nested(x: np.ndarray[Any, Any]) -> str:
        return one(x) if x.ndim == 0 else "[" + ", ".join(nested(row) for row in x) + "]"

    if array.size == 0:
        return f"dense<> : {container}"
    if array.size > _elided.above:
        return f"dense_resource<__elided__> : {container}"
    flat = np.ascontiguousarray(array).reshape(-1)
    as_bits = flat.view(np.uint8).reshape(flat.size, -1)
    if array.ndim and (as_bits == as_bits[0]).all():
        return f"dense<{one(flat[0])}> : {container}"
    if array.size > _HEX_ELEMENTS and not dtype.is_bool:
        little = array.astype(array.dtype.newbyteorder("<"))
        return f'dense<"0x{little.tobytes().hex().upper()}"> : {container}'
    return f"dense<{nested(array)}> : {container}"


def attr_text(value: Any, generic: bool, int_type: str = "i64") -> str:
    """An attribute as MLIR writes it."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, Symbol):
        plain = re.fullmatch(r"[A-Za-z_][\w$.]*(::[A-Za-z_][\w$.]*)*", value)
        return "@" + (value.replace("::", "::@") if plain else quote(value))
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, Size):
        return quote(str(value))
    if isinstance(value, AffineMap):
        return str(value)
    if isinstance(value, DialectAttribute):
        parts = [f"{name} = {attr_text(v, False)}" for name, v in value.printed().items()]
        return f"#{'mlc.' if generic else ''}{value.mnemonic}<{', '.join(parts)}>"
    if isinstance(value, (int, np.integer)):
        return f"{value} : {int_type}" if generic else str(value)
    if isinstance(value, (float, np.floating)):
        return f"{float_text(float(value))} : f64" if generic or not math.isfinite(value) else float_text(float(value))
    if isinstance(value, Type):
        return value.text(generic)
    if isinstance(value, (tuple, list)):
        if generic and all(isinstance(x, int) and not isinstance(x, bool) for x in value):
            return f"array<{int_type}{': ' if value else ''}{', '.join(map(str, value))}>"
        return "[" + ", ".join(attr_text(x, generic, int_type) for x in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {attr_text(v, generic)}" for k, v in value.items()) + "}"
    if isinstance(value, np.ndarray):
        shape = "".join(f"{d}x" for d in value.shape)
        return elements_text(value, f"tensor<{shape}{from_numpy(value.dtype)}>")
    raise TypeError(f"{value!r} ({type(value).__name__}) is not an attribute")


def loc_text(loc: Loc) -> str:
    """`loc("file":line:col)`, wrapped in a named location for its module, and one per pass or rule it went through;
    with others, `fused`."""
    return f"loc({_inner_loc_text(loc)})"


def _inner_loc_text(loc: Loc) -> str:
    inner = f"{quote(loc.file)}:{loc.line}:{loc.col}" if loc.file else "unknown"
    if loc.scope:
        inner = f"{quote(MODULE + loc.scope)}({inner})"
    for name in loc.via:
        inner = f"{quote(name)}({inner})"
    return f"fused[{', '.join([inner, *map(_inner_loc_text, loc.fused)])}]" if loc.fused else inner


class Printer:
    """Printer state: the lines so far, and the names of the values seen."""

    def __init__(self, generic: bool, locations: bool) -> None:
        self.generic = generic
        self.locations = locations
        self.lines: list[str] = []
        self.indent = 0
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set()
        self.counters: dict[str, int] = {}
        self.labels: dict[Block, str] = {}

    def fresh(self, hint: str, default: str) -> str:
        """An unused name: the hint, the hint with a number, or the next free number."""
        if hint and re.fullmatch(r"[A-Za-z_][\w$]*", hint):
            name, n = hint, 0
            while name in self.taken:
                name, n = f"{hint}_{n}", n + 1
        else:
            number = self.counters.get(default, 0)
            while (name := f"{default}{number}") in self.taken:
                number += 1
            self.counters[default] = number + 1
        self.taken.add(name)
        return name

    def name(self, value: Value) -> str:
        """`%x` of a value."""
        if (known := self.names.get(value)) is not None:
            return known
        if isinstance(value, OpResult) and len(value.op.results) > 1:
            base = self.fresh(value.op.results[0].name, "")
            for i, r in enumerate(value.op.results):
                self.names[r] = f"%{base}#{i}"
        else:
            self.names[value] = "%" + self.fresh(value.name, "" if isinstance(value, OpResult) else "arg")
        return self.names[value]

    def values(self, values: Iterable[Value]) -> str:
        return ", ".join([self.name(v) for v in values])

    def type(self, type: Type) -> str:
        return type.text(self.generic)

    def types(self, types: Iterable[Type]) -> str:
        return ", ".join([self.type(t) for t in types])

    def functional_type(self, op: Op) -> str:
        """`(operand types) -> result types`; in pretty text a single type if all are equal."""
        inputs, results = [v.type for v in op.operands], [r.type for r in op.results]
        if not self.generic and inputs and results and len({*inputs, *results}) == 1 and len(results) == 1:
            return self.type(inputs[0])
        out = self.types(results)
        return f"({self.types(inputs)}) -> {out if len(results) == 1 else f'({out})'}"

    def label(self, block: Block) -> str:
        if block not in self.labels:
            self.labels[block] = f"^bb{len(self.labels)}"
        return self.labels[block]

    def line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)

    def append(self, text: str) -> None:
        """Continue the last line."""
        self.lines[-1] += text

    def op(self, op: Op) -> None:
        if len(op.results) == 1:
            self.line(f"{self.name(op.results[0])} = ")
        elif op.results:
            self.line(f"{self.name(op.results[0]).split('#')[0]}:{len(op.results)} = ")
        else:
            self.line("")
        saved = None
        if op.isolated and (not self.generic or op.name.split(".")[0] in UPSTREAM):  # tools do not know that ours are
            saved = (self.names, self.taken, self.counters, self.labels)
            self.enter(op)
        if self.generic:
            self.generic_form(op)
        else:
            print_op(self, op)
        if self.locations and op.loc is not UNKNOWN:
            self.append(" " + loc_text(op.loc))
        if saved:
            self.names, self.taken, self.counters, self.labels = saved

    def enter(self, op: Op) -> None:
        """Begin the names in an operation that is isolated from above; its own operands keep theirs."""
        self.names, self.taken, self.counters, self.labels = dict(self.names), set(), {}, {}

    def generic_form(self, op: Op) -> None:
        self.append(f'"{generic_name(op.name)}"({self.values(op.operands)})')
        if op.successors:
            self.append("[" + ", ".join(self.label(b) for b in op.successors) + "]")
        declared = {f.name for f in op.attr_fields}
        properties = [self.named_attr(op, k, op.attrs[k]) for k in sorted(declared) if op.attrs.get(k) is not None]
        if op.segments is not None and sum(f.shape != "one" for f in op.operand_fields) > 1:
            properties.append(f"operandSegmentSizes = array<i32: {', '.join(map(str, op.segments))}>")
        if properties:
            self.append(" <{" + ", ".join(properties) + "}>")
        if op.regions:
            self.append(" (")
            for i, region in enumerate(op.regions):
                self.append(", {" if i else "{")
                self.region_body(region)
                self.line("}")
            self.append(")")
        extra = [self.named_attr(op, k, v) for k, v in op.attrs.items() if k not in declared and v is not None]
        if extra:
            self.append(" {" + ", ".join(extra) + "}")
        self.append(" : " + self.functional_type(op))

    def named_attr(self, op: Op, name: str, value: Any) -> str:
        if name in op.enums and self.generic:
            return f"{name} = {op.enums[name].index(value)} : {op.attr_types.get(name, 'i64')}"
        return f"{name} = {op.attr_text(name, value, self.generic)}"

    def attr_dict(self, op: Op, shown: Iterable[str] = ()) -> str:
        """`{k = v}` of the attributes not in `shown` and not at their default; "" if there are none."""
        if not op.attrs and op.segments is None:
            return ""
        defaults = op.attr_defaults
        parts = [self.named_attr(op, k, v) for k, v in op.attrs.items()
                 if k not in shown and v is not None and not (k in defaults and _same(defaults[k], v))]
        grouped = op.segments is not None and sum(f.shape != "one" for f in op.operand_fields) > 1
        if grouped and not op.format and "operandSegmentSizes" not in shown:
            assert op.segments is not None
            parts.append(f"operandSegmentSizes = [{', '.join(map(str, op.segments))}]")
        return "{" + ", ".join(parts) + "}" if parts else ""

    def region_body(self, region: Region, entry_args: bool = True) -> None:
        """The blocks of a region, one level in; `entry_args=False` leaves out the header of the first block."""
        for i, block in enumerate(region.blocks):
            if i or (block.args and entry_args) or (self.generic and len(block) == 0):
                args = ", ".join(f"{self.name(a)}: {self.type(a.type)}" for a in block.args)
                self.line(f"{self.label(block)}({args}):" if args else f"{self.label(block)}:")
            else:
                self.label(block)
            self.indent += 1
            for op in block:
                self.op(op)
            self.indent -= 1

    def braces(self, region: Region, entry_args: bool = True) -> None:
        """` {`, the region, `}`, on the current line and those below."""
        self.append(" {")
        self.region_body(region, entry_args)
        self.line("}")


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b)


class _Nameless(Printer):
    def fresh(self, hint: str, default: str) -> str:
        return super().fresh("", default)
