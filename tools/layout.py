"""Layout of text for a terminal: its width, tables, and lines that are wrapped."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence


def terminal_width() -> int:
    """Width of the terminal, from stdout or COLUMNS; 0 if unknown, so that nothing is truncated."""
    fallback = shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else 0
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() else fallback


def page_width() -> int:
    """Width of what is wrapped, and not truncated: that of the terminal; 80 if unknown."""
    return max(terminal_width() or 80, NARROWEST)


NARROWEST = 24
"""Minimum width of a column that is wrapped, however narrow the terminal is."""


def table(rows: Sequence[tuple[str, ...]], width: int = 0) -> list[str]:
    """Rows with aligned columns that fit `width`: the last column is wrapped, and below the others where these leave it
    no room. A single word may be longer. 0 is for no limit."""
    width = width or sys.maxsize
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    before = sum(widths) + 2 * len(widths)
    out = list[str]()
    if before + NARROWEST > width:
        for row in rows:
            out += wrapped("  ".join(filter(None, row[:-1])), width) + [
                "    " + line for line in wrapped(row[-1], width - 4)]
        return out
    for row in rows:
        first, *more = wrapped(row[-1], width - before) or [""]
        out.append("  ".join([*(f"{cell:{w}}" for cell, w in zip(row, widths)), first]).rstrip())
        out += [" " * before + line for line in more]
    return out


def wrapped(text: str, width: int) -> list[str]:
    """The lines of a text, which is broken between words, and after commas in long ones."""
    out = [""]
    for part in re.findall(r"\S*?,(?=\S)|\S+\s*|\s+", text):
        if out[-1] and len(out[-1]) + len(part.rstrip()) > width:
            out.append("")
        out[-1] += part
    return [line.rstrip() for line in out if line.strip()]
