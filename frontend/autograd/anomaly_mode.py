"""Anomaly mode of the backward pass: nodes know the line that they record, and gradients are checked.

`mlc.anomaly` has the checks, and the public functions that enable them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlc.frontend.location import user_loc
from mlc.ir.diag import Error, Loc

LINE = "line"
"""Key of a node's metadata: the line of the program that recorded the node."""


class _State:
    """Whether nodes are told their lines, and what checks the gradients that they compute."""

    enabled = False
    check: Callable[[Any, Sequence[Any], Sequence[Any]], None] | None = None


state = _State()


def tell_line(metadata: dict[Any, Any]) -> None:
    """Store the program's line with a node that is being recorded."""
    metadata[LINE] = user_loc()


def note(name: str, metadata: dict[Any, Any]) -> str:
    """The note that leads from an error of the backward pass to the line that was differentiated."""
    line: Loc | None = metadata.get(LINE)
    if line is None:
        return f"{name} was recorded before anomaly mode was enabled, so that its line is not known"
    return f"{name} is the gradient of {line}"


def add_note(error: Error, name: str, metadata: dict[Any, Any]) -> None:
    """Have an error of the backward pass name the line that was differentiated."""
    error.notes = (*error.notes, note(name, metadata))
