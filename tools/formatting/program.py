"""The layout of programs in the text language.

Blocks are indented by four spaces, and what continues a line in brackets by as much as it was, at least four. Operators
have a space on either side, but for signs, `..`, `:` in an index and `=` of a named argument. Comments stay where they
are, and lines are not joined. One of more than 120 columns is broken in its outermost brackets, after the last comma
that fits, or else before the last operator; what follows stands below what is in the bracket. A line that is too long
outside of brackets stays, as it cannot be continued.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from mlc.frontend.language import syntax as S
from mlc.frontend.language.diagnostics import Diagnostics, Source
from mlc.frontend.language.layout import STARTS, Layout, Line
from mlc.frontend.language.parser import KEYWORDS, parse
from mlc.ir.diag import InternalError

_TOKEN = re.compile(r'(?P<long>"""[\s\S]*?""")|(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<comment>#[^\n]*)|(?P<newline>\n)'
                    r"|(?P<blank>[ \t\f]+)|(?P<number>(?:\d[\d_]*(?:\.(?!\.)\d*)?|\.\d+)(?:[eE][+-]?\d+)?)"
                    r"|(?P<word>[^\W\d]\w*)|(?P<open>[(\[{])|(?P<close>[)\]}])"
                    r"|(?P<operator>\.\.\.|->|=>|\*\*=|//=|[-+*/%@]=|\*\*|//|\.\.|[<>=!]=|.)")
_TIGHT = frozenset({".", "..", "'"})
_ENDS = frozenset({"word", "number", "string", "long", "close"})
"""Kinds of tokens that an operand may end with."""
_BEFORE_VALUES = frozenset(KEYWORDS - {"true", "false", "none"})
_OPERATORS = frozenset({"+", "-", "*", "/", "//", "%", "@", "==", "!=", "<", "<=", ">", ">=", "and", "or", "if", "else",
                        "for"})
INDENT = 4
WIDTH = 120


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int


def formatted(text: str, file: str = "<text>") -> str:
    """The text in its layout; ProgramError if it is not of the language."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    diagnostics = Diagnostics()
    source = Source(file, text)
    before = parse(source, diagnostics)
    diagnostics.check()
    out = _laid_out(text, Layout(source, diagnostics).split())
    again = Diagnostics()
    if not _same(before, parse(Source(file, out), again)) or again.found or _comments(out) != _comments(text):
        raise InternalError("the layout of the text changes its meaning", hint="report it, with the file")
    Source(file, text)                                     # messages quote the text as it is
    return out


def _comments(text: str) -> list[str]:
    return [m[0].rstrip() for m in _TOKEN.finditer(text) if m["comment"]]


def _same(a: Any, b: Any) -> bool:
    """Whether trees are equal but for their places."""
    work = [(a, b)]
    while work:
        x, y = work.pop()
        if type(x) is not type(y):
            return False
        if isinstance(x, S.Node):
            work += [(getattr(x, f.name), getattr(y, f.name)) for f in fields(x)
                     if f.name not in ("at", "depth", "file_at")]
        elif isinstance(x, list | tuple):
            if len(x) != len(y):
                return False
            placed = isinstance(x, tuple) and len(x) in (2, 3) and isinstance(x[0], str) and type(x[1]) is int
            work += [(p, q) for i, (p, q) in enumerate(zip(x, y)) if not (placed and i == 1)]
        elif x != y and not (x != x and y != y):
            return False
    return True


def _laid_out(text: str, lines: Sequence[Line]) -> str:
    """The text: logical lines by their depth, physical lines and comments between as they are."""
    depths = dict(_depths(lines, 0))
    starts = sorted(depths)
    out: list[str] = []
    depth, shift, level, blank, logical = 0, 0, _Brackets(), 0, iter(starts)
    following = next(logical, None)
    for at, tokens in _physical(text):
        column = len(text[at:tokens[0].start].expandtabs(INDENT)) if tokens else 0
        if not tokens:
            blank += 1
            continue
        begins = following is not None and any(t.start == following for t in tokens[:1])
        if begins and following is not None:
            depth, following = depths[following], next(logical, None)
            shift, level = INDENT * depth - column, _Brackets()
            indent = INDENT * depth
        elif tokens[0].kind == "comment" and not level.open:
            indent = _of_comment(text, column, depth, depths, following)
        else:
            indent = max(column + shift, INDENT * (depth + 1))
            if tokens[0].kind == "close":
                indent = max(column + shift, INDENT * depth)
        if blank and out:
            out += [""] * min(blank, 2 if indent == 0 else 1)
        blank = 0
        out += _broken(tokens, indent, level, INDENT * (depth + 1))
    return "".join(line + "\n" for line in out)


def _broken(tokens: Sequence[_Token], indent: int, level: _Brackets, least: int) -> Iterator[str]:
    """A physical line, in several where it is too long; `least` is the indentation of what continues a line.

    Each cut depends on the rest of the line and the brackets around it alone, so a text that is laid out stays.
    """
    whole = any("\n" in token.text for token in tokens)    # a text of several lines, which keeps them
    while not whole and (cut := level.cut(tokens, indent)) is not None:
        yield " " * indent + level.spaced(tokens[:cut.at])
        tokens, indent = tokens[cut.at:], max(indent if cut.column is None else cut.column, least)
    yield " " * indent + level.spaced(tokens)


def _depths(lines: Sequence[Line], depth: int) -> Iterator[tuple[int, int]]:
    for line in lines:
        yield line.at, depth
        yield from _depths(line.block, depth + 1)


def _physical(text: str) -> Iterator[tuple[int, list[_Token]]]:
    """The tokens of each physical line, and where it begins; a long text belongs to the line that it begins on."""
    at, tokens = 0, list[_Token]()
    for m in _TOKEN.finditer(text):
        if m["newline"]:
            yield at, tokens
            at, tokens = m.end(), []
        elif not m["blank"]:
            tokens.append(_Token(m.lastgroup or "", m[0].rstrip() if m["comment"] else m[0], m.start()))
    if tokens:
        yield at, tokens


def _of_comment(text: str, column: int, depth: int, depths: dict[int, int], following: int | None) -> int:
    """The indentation of a comment on a line of its own: that of the next line, unless it is indented deeper."""
    if following is None:
        return INDENT * depth if column else 0
    begin = text.rfind("\n", 0, following) + 1
    next_column = len(text[begin:following].expandtabs(INDENT))
    return INDENT * (max(depth, depths[following]) if column > next_column else depths[following])


@dataclass(frozen=True)
class _Cut:
    """Where a line is broken: before a token; its new column, None for that of the line."""

    at: int
    column: int | None


class _Brackets:
    """The brackets that are open: of a call "(", a definition "d", an index "[", a list "l", a group "g"."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.before: _Token | None = None
        self.defines = False

    def spaced(self, tokens: Sequence[_Token]) -> str:
        """A physical line with its spaces."""
        out, previous = "", None
        for token in tokens:
            if previous is not None:
                out += self._space(previous, token)
            out += token.text
            self._take(token)
            previous = token
        return out

    def _copy(self) -> _Brackets:
        other = _Brackets()
        other.open, other.before, other.defines, other.signed = [*self.open], self.before, self.defines, self.signed
        return other

    def cut(self, tokens: Sequence[_Token], indent: int) -> _Cut | None:
        """Where to break a physical line; None if it is not too long, or there is no place to do so."""
        state, inner, end = self._copy(), list[int | None]([None] * len(self.open)), indent
        best, best_rank, last = None, (0, 0, 0), None
        for i, token in enumerate(tokens):
            if token.kind == "comment":                    # only code has to fit
                return None
            if last is not None and inner and _may_begin(token) and (last.text == "," or state._splits(token)):
                rank = -len(inner), last.text == ",", i
                if best is None or rank > best_rank:
                    best, best_rank = _Cut(i, inner[-1]), rank
            end += len(token.text) + (len(state._space(last, token)) if last is not None else 0)
            if end > WIDTH:
                return best
            state._take(token)
            if token.kind == "open":
                inner.append(end)
            elif token.kind == "close" and inner:
                inner.pop()
            last = token
        return None

    def _splits(self, token: _Token) -> bool:
        """Whether a line may be broken before a token: an operator between two operands, or a word that is one."""
        return self.before is not None and self._ends(self.before) and token.text in _OPERATORS

    def _take(self, token: _Token) -> None:
        before = self.before
        attached = before is not None and (before.kind in ("word", "close") or before.text == "'") and (
            before.text not in _BEFORE_VALUES)
        if token.kind == "open":
            self.open.append(("d" if self.defines and not self.open else "(" if attached else "g")
                             if token.text == "(" else "[" if attached else "l")
        elif token.kind == "close" and self.open:
            self.defines = self.open.pop() != "d" and self.defines
        if token.text in ("def", "model") and before is None:
            self.defines = True
        if token.kind != "comment":
            self.before = token
            self.signed = token.text in ("+", "-") and (before is None or not self._ends(before))

    def _ends(self, token: _Token) -> bool:
        """Whether an operand ends with a token, so that + and - after it are no signs."""
        return (token.kind in _ENDS and token.text not in _BEFORE_VALUES) or token.text in ("'", "...")

    def _space(self, a: _Token, b: _Token) -> str:
        inner = self.open[-1] if self.open else ""
        if b.kind == "comment":
            gap = b.start - a.start - len(a.text)
            return " " * max(gap, 2)
        if a.kind == "open" or b.kind == "close" or b.text == "," or a.text in _TIGHT or b.text in _TIGHT:
            return " " if a.text == "," and b.text in ("..", ".") else ""
        if b.kind == "open":
            attached = (a.kind in ("word", "close") or a.text == "'") and a.text not in _BEFORE_VALUES
            return "" if attached or self.signed else " "
        if inner in ("[",) and ":" in (a.text, b.text):
            return " " if a.text == "," else ""
        if b.text == ":":
            return ""
        if inner == "(" and "=" in (a.text, b.text):
            return ""
        return "" if self.signed else " "

    signed = False


def _may_begin(token: _Token) -> bool:
    """Whether a line that goes on may begin with a token."""
    return token.text not in STARTS and token.kind not in ("comment", "close")
