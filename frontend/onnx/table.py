"""The table from ONNX operators to functions on mlc's tensors, and how the modules of the families fill it.

A row is for a domain, an operator and the version of the operator set since which it has its meaning. Its positional
parameters are the operator's inputs, its keyword-only parameters the attributes, by their names, with their defaults.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlc.frontend.tensor import OPERATIONS

FAMILIES = ("control", "creation", "elementwise", "images", "indexing", "learned", "linear_algebra", "moving",
            "networks", "normalization", "quantization", "recurrent", "reductions", "sequences", "signals")
EXTRA = frozenset({"outputs", "opset", "steps_of"})
"""Parameters of rows that are no attributes: the number of outputs that are used, the operator set's version, and what
tensors are made of by DequantizeLinear."""


@dataclass(frozen=True)
class Row:
    """The meaning of an operator since a version.

    f       the function
    since   the first version of the operator set that it is the meaning in
    known   names of inputs that it takes as arrays, since they decide about sizes or about the program
    values  names of inputs that it takes as they are, known or not
    """

    f: Callable[..., Any]
    since: int
    known: frozenset[str]
    values: frozenset[str]
    signature: inspect.Signature


TABLE: dict[tuple[str, str], list[Row]] = {}
"""Per domain and operator its rows, the newest first. The domain of ONNX itself is empty."""


def row(*names: str, since: int = 1, known: tuple[str, ...] = (), values: tuple[str, ...] = (),
        domain: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function the row of these operators since a version."""
    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        made = Row(f, since, frozenset(known), frozenset(values), inspect.signature(f))
        for name in names:
            rows = TABLE.setdefault((domain, name), [])
            rows.append(made)
            rows.sort(key=lambda r: -r.since)
        return f
    return register


def same(*names: str, since: int = 1, **renamed: str) -> None:
    """Rows of operators that are functions of mlc's of tensors alone: of their name in small letters, or as given."""
    for name, ours in {**{n: n.lower() for n in names}, **renamed}.items():
        row(name, since=since)(_of_tensors(OPERATIONS[ours]))


def _of_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *inputs, consumed_inputs=None: function(*inputs)


def find(domain: str, name: str, version: int) -> Row | None:
    """The row of an operator in a version of its operator set; None if there is none."""
    if not TABLE:
        importlib.import_module("mlc.frontend.functions")
        for family in FAMILIES:
            importlib.import_module(f"mlc.frontend.onnx.{family}")
    rows = TABLE.get(("" if domain == "ai.onnx" else domain, name), ())
    return next((r for r in rows if r.since <= version), None)
