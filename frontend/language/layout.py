"""Logical lines and indentation: comments, and line ends within brackets and strings, are skipped.

A line that begins with the keyword of a statement closes any brackets left open above it, so that a missing bracket is
a single error, at the opening bracket.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mlc.frontend.language.diagnostics import Diagnostics, Source
from mlc.ir.diag import UserError

DEEPEST_BRACKETS, DEEPEST_BLOCKS = 60, 40
LONGEST = 4_000_000
"""Characters of a file."""

_PIECE = re.compile(r'(?P<long>"""(?:[\s\S]*?"""|[\s\S]*))|(?P<string>"(?:[^"\\\n]|\\.)*(?:"|(?=\n|$)|\\$))'
                    r'|(?P<comment>#[^\n]*)|(?P<newline>\n)|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<blank>[ \t\f]+)'
                    r'|(?P<word>\w+)|(?P<other>.)')
STARTS = frozenset({"def", "model", "import", "from", "return", "while", "buffer", "yield", "unroll", "elif"})
"""Keywords that begin a statement wherever they begin a line."""
_PAIRS = {"(": ")", "[": "]", "{": "}"}


@dataclass
class Line:
    """A logical line, from offset `at` to `end`, and the lines of the block that it introduces."""

    at: int
    end: int
    indent: str
    broken: bool = False                                   # its error has been reported
    block: list[Line] = field(default_factory=list)


class Layout:
    """Splits one source into lines."""

    def __init__(self, source: Source, diagnostics: Diagnostics) -> None:
        self.source = source
        self.diagnostics = diagnostics
        self.lines: list[Line] = []
        self.open: list[tuple[str, int]] = []
        self.start: int | None = None                      # of the logical line
        self.last = 0                                      # the end of its last piece
        self.indent = ""
        self.fresh = True                                  # nothing but blanks so far on this physical line
        self.broken = False                                # whether there was an error in the logical line

    def error(self, at: int, message: str, hint: str | None = None, code: str = "MLC0620") -> None:
        self.diagnostics.add(UserError(message, code=code, loc=self.source.loc(at), hint=hint))
        self.broken = True

    def split(self) -> list[Line]:
        """The outermost lines, each with its block."""
        text = self.source.text
        for m in _PIECE.finditer(text):
            kind, at = m.lastgroup, m.start()
            if kind == "newline":
                if not self.open:
                    self._end()
                self.fresh = True
                continue
            if kind in ("blank", "comment"):
                continue
            if self.fresh:
                self._first_piece(text, at, m[0])
            if kind == "open":
                self.open.append((m[0], at))
                if len(self.open) == DEEPEST_BRACKETS + 1:
                    self.error(at, f"brackets are nested more than {DEEPEST_BRACKETS} deep",
                               "name parts of the expression on lines of their own", "MLC0621")
            elif kind == "close":
                self._close(m[0], at)
            elif kind == "long" and (len(m[0]) < 6 or not m[0].endswith('"""')):
                self.error(at, 'the text that begins here has no closing """', 'end it with """')
            elif kind == "string" and (len(m[0]) < 2 or not m[0].endswith('"')):
                self.error(at, 'the text that begins here has no closing "', 'end it with " on the same line')
            self.last = m.end()
        self._unclosed()
        self._end()
        return self._blocks()

    def _first_piece(self, text: str, at: int, piece: str) -> None:
        self.fresh = False
        if self.open and piece in STARTS:
            self._unclosed()
            self._end()
        if self.start is None:
            begin = text.rfind("\n", 0, at) + 1
            self.start, self.indent = at, text[begin:at]

    def _close(self, piece: str, at: int) -> None:
        if not self.open:
            self.error(at, f"{piece!r} closes nothing", "remove it, or open it before")
        else:
            opened, where = self.open.pop()
            if _PAIRS[opened] != piece:
                line = self.source.loc(where).line
                self.error(at, f"{piece!r} closes the {opened!r} of line {line}", f"write {_PAIRS[opened]!r}")
                while self.open and piece in [_PAIRS[o] for o, _ in self.open]:
                    if _PAIRS[self.open.pop()[0]] == piece:
                        break

    def _unclosed(self) -> None:
        if self.open and not self.broken:
            opened, at = self.open[-1]
            self.error(at, f"{opened!r} is never closed", f"close it with {_PAIRS[opened]!r}")
        self.open.clear()

    def _end(self) -> None:
        if self.start is not None:
            self.lines.append(Line(self.start, self.last, self.indent, self.broken))
            self.start, self.broken = None, False

    def _blocks(self) -> list[Line]:
        top: list[Line] = []
        stack: list[tuple[str, list[Line]]] = [("", top)]
        for line in self.lines:
            while len(stack) > 1 and not line.indent.startswith(stack[-1][0]):
                stack.pop()
            indent, block = stack[-1]
            if line.indent != indent:
                if block and line.indent.startswith(indent) and not block[-1].block and len(stack) <= DEEPEST_BLOCKS:
                    stack.append((line.indent, block[-1].block))
                    block = block[-1].block
                elif len(stack) > DEEPEST_BLOCKS:
                    line.broken = True
                    self.error(line.at, f"blocks are nested more than {DEEPEST_BLOCKS} deep",
                               "move the inner ones to functions of their own", "MLC0621")
                else:
                    line.broken = True
                    self.error(line.at, "the indentation of this line fits no block above it",
                               "indent it as the line that it belongs to, with spaces or with tabs as that line")
            block.append(line)
        return top
