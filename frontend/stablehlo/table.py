"""The table from operations of StableHLO to functions on mlc's tensors, and how the modules of the families fill it."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlc.frontend.stablehlo.interpreter import Step

Row = Callable[..., Any]
FAMILIES = ("calls", "collectives", "contractions", "control", "dynamic", "elementwise", "gathering", "lapack",
            "linear_algebra", "moving", "randomness", "reductions", "scattering", "sorting", "special", "windows")
TABLE: dict[str, Row] = {}
"""Functions of a step and of tensors, by the name of the operation."""
COUNTS: dict[Row, tuple[int, int | None]] = {}
"""Per function of the table the fewest and the most operands that it takes; None for any number."""
REFUSED: dict[str, str] = {}
"""Operations that are known and not run, with the reason."""


def takes(f: Row) -> tuple[int, int | None]:
    """The fewest and the most operands that a function of the table takes; None for any number."""
    if f not in COUNTS:
        parameters = list(inspect.signature(f).parameters.values())[1:]
        fewest = sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in parameters)
        COUNTS[f] = fewest, None if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(parameters)
    return COUNTS[f]


def row(*names: str) -> Callable[[Row], Row]:
    """Make a function the row of these operations, named with their dialect."""
    def register(f: Row) -> Row:
        for name in names:
            TABLE[name] = f
        return f
    return register


def plain(**functions: Callable[..., Any]) -> None:
    """Rows of operations that are functions of their operands alone; `chlo_x` is of that dialect."""
    for name, f in functions.items():
        def made(step: Step, *xs: Any, f: Callable[..., Any] = f) -> Any:
            return f(*xs)
        required = [p for p in inspect.signature(f).parameters.values()
                    if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        COUNTS[made] = len(required), len(required)
        dialect, _, rest = name.partition("_") if name.startswith("chlo_") else ("stablehlo", "", name)
        TABLE[f"{dialect}.{rest}"] = made


@cache
def load() -> None:
    """Fill the table."""
    importlib.import_module("mlc.frontend.functions")
    for family in FAMILIES:
        importlib.import_module(f"mlc.frontend.stablehlo.{family}")


def find(name: str) -> Row | None:
    """The function of an operation; None if there is none."""
    load()
    return TABLE.get(name)


def reason(name: str) -> str:
    """Why an operation is not run."""
    return REFUSED.get(name, "mlc has no such operation")
