"""The table from ATen operators to functions on mlc's tensors, and how the modules of the families fill it.

A row is found by the full name of the overload (`aten.add.Tensor`), or by the name of the operator (`aten.add`), where
all of its overloads have their arguments in the order of mlc's function.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from mlc.frontend.tensor import OPERATIONS

Row = Callable[..., Any]
FAMILIES = ("attention", "bags", "checks", "creation", "elementwise", "gradients", "indexing", "linear_algebra",
            "moving", "networks", "normalization", "randomness", "reductions", "transforms")
TABLE: dict[str, Row] = {}
RANDOM: set[str] = set()
"""Names of rows that take a random key before the arguments of the operator."""
CONTIGUOUS: set[str] = set()
"""Names of rows that take, before the arguments of the operator, whether the first of these is contiguous."""
STRIDED: set[str] = set()
"""Names of rows that take, before the arguments of the operator, the strides that PyTorch has the first of these in."""
OUT_OF_PLACE_ONLY = ("out", "_out")
"""Ends of the names of overloads that write to their arguments, which functional graphs do not have."""


def row(*names: str, random: bool = False, contiguous: bool = False, strided: bool = False) -> Callable[[Row], Row]:
    """Make a function the rows of these operators, named without `aten.`."""
    def register(f: Row) -> Row:
        for name in names:
            TABLE[f"aten.{name}"] = f
            if random:
                RANDOM.add(f"aten.{name}")
            if contiguous:
                CONTIGUOUS.add(f"aten.{name}")
            if strided:
                STRIDED.add(f"aten.{name}")
        return f
    return register


def same(*names: str) -> None:
    """Rows of operators, or of overloads, that are mlc's functions of the same name, with the same arguments."""
    for name in names:
        TABLE[f"aten.{name}"] = OPERATIONS[name.partition(".")[0]]


def renamed(**names: str) -> None:
    """Rows of operators that are mlc's functions of another name, with the same arguments."""
    for name, ours in names.items():
        TABLE[f"aten.{name}"] = OPERATIONS[ours]


def _name_of_row(target: Any) -> str | None:
    if not TABLE:
        importlib.import_module("mlc.frontend.functions")
        for family in FAMILIES:
            importlib.import_module(f"mlc.frontend.fx.{family}")
    name = str(target)
    operator, _, overload = name.rpartition(".")
    if overload.endswith(OUT_OF_PLACE_ONLY):
        return None
    return next((n for n in (name, operator) if n in TABLE), None)


def find(target: Any) -> Row | None:
    """The function of an operator (an `OpOverload` or its name, `aten.add.Tensor`); None if there is none."""
    name = _name_of_row(target)
    return None if name is None else TABLE[name]


def is_random(target: Any) -> bool:
    """Whether the function of an operator takes a random key."""
    return _name_of_row(target) in RANDOM


def takes_contiguity(target: Any) -> bool:
    """Whether the function of an operator takes whether its first argument is contiguous."""
    return _name_of_row(target) in CONTIGUOUS


def takes_strides(target: Any) -> bool:
    """Whether the function of an operator takes the strides of its first argument."""
    return _name_of_row(target) in STRIDED
