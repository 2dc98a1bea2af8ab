"""Diagnostics of a program: all errors found in one run, each with line and column."""

from __future__ import annotations

import linecache
from bisect import bisect_right
from collections.abc import Iterable
from difflib import get_close_matches

from mlc.ir.diag import Loc, UserError, render

MOST = 50
"""Number of diagnostics shown for one program; the rest are counted."""


_NAMES = set[str]()
"""Of the texts that have been read."""


def is_in_text(loc: Loc) -> bool:
    """Whether a place is one in a program's text, and none in the Python code that reads or calls it."""
    return loc.file in _NAMES


class Source:
    """The text of a file, with the line and column of every offset."""

    def __init__(self, name: str, text: str) -> None:
        _NAMES.add(name)
        self.name = name
        self.text = text
        self.starts = [0]
        for line in text.split("\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)
        # Messages quote from here. Python's own reader would cut lines at form feeds too.
        linecache.cache[name] = (len(text), None, [line + "\n" for line in text.split("\n")], name)

    def loc(self, at: int) -> Loc:
        """Columns count characters from 1; a tab is one of them."""
        line = bisect_right(self.starts, at)
        return Loc(self.name, line, at - self.starts[line - 1] + 1)


class ProgramError(UserError):
    """All errors of a program.

    diagnostics   UserErrors in the order of their places
    """

    def __init__(self, diagnostics: Iterable[UserError]) -> None:
        found = sorted(diagnostics, key=lambda e: (e.loc.file, e.loc.line, e.loc.col))
        first = found[0]
        super().__init__(first.message, code=first.code, loc=first.loc, notes=first.notes, hint=first.hint)
        self.diagnostics = tuple(found)

    def __str__(self) -> str:
        shown = [render(e) for e in self.diagnostics[:MOST]]
        if (more := len(self.diagnostics) - MOST) > 0:
            shown.append(f"{more} more errors are not shown")
        return "\n".join(shown)


class Diagnostics:
    """Collects errors, without duplicates."""

    def __init__(self) -> None:
        self.found: dict[tuple[Loc, str], UserError] = {}

    def add(self, error: UserError) -> None:
        self.found.setdefault((error.loc, error.code), error)

    def check(self) -> None:
        """ProgramError if there is any diagnostic."""
        if self.found:
            raise ProgramError(self.found.values())


def suggestion(name: str, known: Iterable[str]) -> str | None:
    """`did you mean exp?`, if a known name is close."""
    names = sorted(set(known))
    if near := get_close_matches(name, names, 1, 0.7 if len(name) > 3 else 0.8):
        return f"did you mean {near[0]}?"
    lowered = {n.lower(): n for n in names}
    found = lowered.get(name.lower())
    return f"did you mean {found}?" if found else None
