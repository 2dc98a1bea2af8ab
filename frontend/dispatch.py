"""Dispatch of eager calls: an operation's code for the patterns of calls that it has seen, and the general path behind.

A `Dispatcher` begins with the general path, a Python function that finds out everything anew. Each kernel that this
compiles is put in front of it as a native callable that takes the calls of one pattern (ir/call_pattern.py) and leaves
all others to the next. While an eager call is not what it looks like, since a function is being recorded or operations
are observed, a gate keeps native callables closed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CellType
from typing import Any

from mlc.frontend.compiler import Entry, compiler
from mlc.ir.call_pattern import CallPattern

MAX_PATTERNS = 64
"""Number of patterns of an operation that are tried one after another; calls of any other take the general path."""
GATE = CellType(None)
"""Contains None if native callables may run."""
_changing = threading.Lock()
os.register_at_fork(after_in_child=_changing._at_fork_reinit)  # type: ignore[attr-defined]


@contextmanager
def general_path() -> Iterator[None]:
    """Context in which all eager calls, of all threads, take the general path."""
    hold(1)
    try:
        yield
    finally:
        hold(-1)


def hold(change: int) -> None:
    """Add to the number of reasons for which all eager calls take the general path."""
    with _changing:
        GATE.cell_contents = ((GATE.cell_contents or 0) + change) or None


DISPATCHERS: dict[str, Dispatcher] = {}
"""Those of the public operations, by name."""


class Dispatcher:
    """The ways to run an operation.

    call      runs it: a native callable, or the general path
    patterns  how many native callables there are
    """

    call: Callable[..., Any]
    patterns = 0

    def add(self, entry: Entry, pattern: CallPattern, record: Callable[..., Any] | None) -> None:
        """Have compiled code take the calls of a pattern; `record` is as in `native_call`."""
        if self.patterns < MAX_PATTERNS:
            made = native_call(entry, pattern, self.call, record)
            if made is not None:
                self.call, self.patterns = made, self.patterns + 1


def native_call(entry: Entry, pattern: CallPattern, otherwise: Callable[..., Any],
                record: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """A callable that runs compiled code for calls of a pattern, and `otherwise` for any other; None if there is none.

    record  called on the result and the arguments if a tensor among these has a record for autograd; returns the result
    """
    return compiler().native_call(entry, pattern, otherwise, record, GATE)
