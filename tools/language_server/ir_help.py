"""Texts about operations, values and types of IR."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from mlc.ir.core import REGISTRY, Op, Value
from mlc.ir.types import SCALARS
from mlc.tools.language_server.analysis import Proposal
from mlc.tools.ops import equation

if TYPE_CHECKING:
    from mlc.tools.language_server.ir_reader import Place


def meaning(cls: type[Op]) -> str:
    """The equation of an operation: the first line of its docstring, or of its family's."""
    docs = (c.__dict__.get("__doc__") for c in cls.__mro__[:cls.__mro__.index(Op)])
    doc = next(filter(None, docs), "")
    return equation(cls) or doc.strip().partition("\n")[0]


def _signature(cls: type[Op]) -> str:
    marks = {"one": "", "optional": "?", "many": "..."}
    operands = [f.name + marks[f.shape] for f in cls.operand_fields]
    attributes = [f.name + ("=" + repr(cls.attr_defaults[f.name]) if f.name in cls.attr_defaults else "")
                  for f in cls.attr_fields]
    return f"{cls.name}({', '.join(operands)})" + (f" {{{', '.join(attributes)}}}" if attributes else "")


def of_operation(cls: type[Op], place: Place | None) -> str:
    """An operation: its form, its equation, and here its types and its line in the program."""
    lines = [f"```mlir\n{_signature(cls)}\n```", meaning(cls)]
    if place is not None and (place.op.operands or place.op.results):
        inputs = ", ".join(str(v.type) for v in place.op.operands)
        lines.append(f"`({inputs}) -> {', '.join(str(r.type) for r in place.op.results) or '()'}`")
    if place is not None and place.written is not None and place.written.file:
        lines.append(f"from {place.written}")
    doc = inspect.cleandoc(cls.__doc__ or "")
    rest = doc.partition("\n")[2].strip()
    if rest:
        lines.append(f"```text\n{rest}\n```")
    return "\n\n".join(filter(None, lines))


def of_value(name: str, values: Sequence[Value], place: Place | None) -> str:
    """A value: its type and shape, and what computes it."""
    lines = [f"```mlir\n{name} : {', '.join(str(v.type) for v in values)}\n```"]
    shape = getattr(values[0].type, "shape", None)
    if shape is not None and len(values) == 1:
        sizes = " x ".join("?" if d is None else str(d) for d in shape)
        lines.append(f"shape {sizes or 'of a number'}, elements {values[0].type.dtype}")
    if place is not None:
        lines.append(f"`{place.op.name}`: {meaning(type(place.op))}")
        if place.written is not None and place.written.file:
            lines.append(f"from {place.written}")
    else:
        lines.append("an argument")
    return "\n\n".join(lines)


def of_symbol(op: Op) -> str:
    """A function, or whatever else has a name."""
    type = op.attrs.get("function_type")
    return f"```mlir\n{op.name} @{op.attrs['sym_name']}{f' : {type}' if type is not None else ''}\n```"


@cache
def operations() -> list[Proposal]:
    """All operations."""
    return [Proposal(name.removeprefix("builtin."), "function", meaning(cls)[:120]) for name, cls in
            sorted(REGISTRY.items())]


def attributes(cls: type[Op], given: set[str]) -> list[Proposal]:
    """The attributes of an operation that are not given."""
    return [Proposal(f.name, "property", "" if f.name not in cls.attr_defaults else f"= {cls.attr_defaults[f.name]!r}")
            for f in cls.attr_fields if f.name not in given]


@cache
def types() -> list[Proposal]:
    """The types of values."""
    shaped = [Proposal(f"{name}<>", "class", f"{name}<4x?xf32>" if name == "memref" else f"{name}<4x8xf32>")
              for name in ("tensor", "memref", "vector")]
    return [*(Proposal(name, "keyword") for name in SCALARS), *shaped]
