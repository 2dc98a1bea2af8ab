"""Differences of the texts of two modules, up to the names of values and blocks.

Lines are compared without names; of those that are equal then, the names must stand for each other throughout a
function. An operation in another's place makes one line differ, and not all that use its result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

_NAMES = re.compile(r'"(?:[^"\\]|\\.)*"|(?P<name>[%^][\w$.-]+)')
_ISOLATED = re.compile(r'\s*(?:"?[\w.]*\.func\b|"?(?:\w+\.)?module\b)')
"""The beginning of an operation whose names are its own."""


@dataclass(frozen=True)
class Line:
    """A line of the comparison: in both texts (" "), in the first ("-") or in the second ("+")."""

    mark: str
    text: str


def compared(before: str, after: str) -> list[Line]:
    """All lines of both texts; of equal ones, the second's.

    Those of the first have the names of the second, or a prime where equal lines have the name for another value.
    """
    old, new = before.splitlines(), after.splitlines()
    keys = [[_nameless(line) for line in lines] for lines in (old, new)]
    out: list[tuple[Line, _Names]] = []
    names = _Names()
    for tag, i, j, k, m in SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_opcodes():
        if tag != "equal":
            for line in old[i:j]:
                if _ISOLATED.match(line):
                    names = _Names()
                out.append((Line("-", line), names))
            out += [(Line("+", line), names) for line in new[k:m]]
            continue
        for a, b in zip(old[i:j], new[k:m]):
            if _ISOLATED.match(a):
                names = _Names()
            out += [(line, names) for line in ([Line(" ", b)] if names.fit(a, b) else [Line("-", a), Line("+", b)])]
    return [Line("-", names.renamed(line.text)) if line.mark == "-" else line for line, names in out]


def _nameless(line: str) -> str:
    return _NAMES.sub(lambda m: m[0] if m["name"] is None else m[0][0], line)


def _names(line: str) -> list[str]:
    return [m["name"] for m in _NAMES.finditer(line) if m["name"] is not None]


class _Names:
    """The names of a function in two texts that stand for each other."""

    def __init__(self) -> None:
        self.forth: dict[str, str] = {}
        self.back: dict[str, str] = {}

    def renamed(self, line: str) -> str:
        """A line of the first text by the names of the second."""
        return _NAMES.sub(lambda m: m[0] if m["name"] is None else self.forth.get(
            m["name"], m["name"] + "'" * (m["name"] in self.back)), line)

    def fit(self, a: str, b: str) -> bool:
        """Whether two lines that are equal without names have corresponding ones; new ones correspond from then on."""
        pairs = list(zip(_names(a), _names(b)))
        if any(self.forth.get(x, y) != y or self.back.get(y, x) != x for x, y in pairs):
            return False
        self.forth.update(pairs)
        self.back.update((y, x) for x, y in pairs)
        return True


def folded(lines: Sequence[Line], context: int = 2) -> str:
    """The lines that differ, with those around them and the heads of the regions that they are in; "" if none does."""
    changed = [i for i, line in enumerate(lines) if line.mark != " "]
    if not changed:
        return ""
    shown = {j for i in changed for j in range(max(0, i - context), min(len(lines), i + context + 1))}
    for i in changed:
        shown |= set(_heads(lines, i))
    out, last = [], -1
    for i in [*sorted(shown), len(lines)]:
        if i > last + 1:
            indent = " " * (len(lines[last + 1].text) - len(lines[last + 1].text.lstrip()))
            out.append(f" {indent}... {i - last - 1} lines" if i - last > 2 else f" {lines[last + 1].text}")
        if i < len(lines):
            out.append(f"{lines[i].mark}{lines[i].text}".rstrip())
        last = i
    return "\n".join(out) + "\n"


def _heads(lines: Sequence[Line], at: int) -> Iterator[int]:
    """The lines above that are indented less, each the head of a region around."""
    indent = _indent(lines[at])
    for i in range(at - 1, -1, -1):
        if indent == 0:
            return
        if lines[i].text.strip() and _indent(lines[i]) < indent:
            indent = _indent(lines[i])
            yield i


def _indent(line: Line) -> int:
    return len(line.text) - len(line.text.lstrip())
