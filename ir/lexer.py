"""The lexer: tokens of a text, the current position, and errors located there."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from mlc.ir.core import Symbol
from mlc.ir.diag import Loc, ParseError
from mlc.ir.literals import symbol

MAX_TEXT = 256 << 20
"""Most characters of a module's text."""
MAX_DEPTH = 64
"""Deepest nesting of regions, and of brackets in a type or an attribute."""

_TOKEN = re.compile(r"""
    (?P<space>\s+|//[^\n]*|\{-\#[\s\S]*?\#-\})                  # the last: resources, for other tools
  | (?P<value>%[\w$.-]+(?:\#\d+)?)
  | (?P<block>\^[\w$.-]+)
  | (?P<symbol>@(?:[\w$.]+(?:::@[\w$.]+)*|"(?:[^"\\]|\\.)*"))
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<hex>0x[0-9A-Fa-f]+(?![\w]))
  | (?P<number>-?\d+(?:\.\d*(?:[eE][-+]?\d+)?)?)
  | (?P<hash>\#[\w.]+)
  | (?P<dtype>![\w.]+)
  | (?P<word>[A-Za-z_][\w$.]*)
  | (?P<punct>->|::|[-+*/(){}\[\]<>,:=?])
""", re.VERBOSE)


@dataclass(slots=True)
class Token:
    kind: str
    text: str
    start: int


class Lexer:
    """A position in the list of tokens of a text."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        if len(text) > MAX_TEXT:
            raise ParseError(f"the text has {len(text)} characters, more than {MAX_TEXT}", code="MLC0204")
        self.line_starts = [0] + [m.end() for m in re.finditer("\n", text)]
        self.tokens: list[Token] = []
        self.pos = 0
        self.depth = 0
        self._tokenize()

    def _tokenize(self) -> None:
        at, text, out = 0, self.text, self.tokens
        for m in _TOKEN.finditer(text):
            start, end = m.span()
            if start != at:
                break
            kind = m.lastgroup
            if kind != "space":
                out.append(Token(kind or "", m[0], at))
            at = end
        if at < len(text):
            self.fail_at(at, f"unexpected character {text[at]!r}", "MLC0203")
        out.append(Token("end", "", len(text)))

    # -- locations and errors -------------------------------------------------------------------------------------
    def loc(self, offset: int) -> Loc:
        line = bisect.bisect_right(self.line_starts, offset)
        return Loc(self.file, line, offset - self.line_starts[line - 1] + 1)

    def fail_at(self, offset: int, message: str, code: str) -> NoReturn:
        raise ParseError(message, code=code, loc=self.loc(offset))

    def fail(self, message: str, code: str = "MLC0203", token: Token | None = None) -> NoReturn:
        self.fail_at((token or self.tokens[self.pos]).start, message, code)

    # -- tokens ---------------------------------------------------------------------------------------------------
    @property
    def token(self) -> Token:
        return self.tokens[self.pos]

    def take(self) -> Token:
        token = self.tokens[self.pos]
        if token.kind != "end":
            self.pos += 1
        return token

    def at(self, text: str) -> bool:
        token = self.tokens[self.pos]
        return token.text == text and token.kind != "string"

    def at_value(self) -> bool:
        return self.token.kind == "value"

    def accept(self, text: str) -> bool:
        if self.at(text):
            self.pos += 1
            return True
        return False

    def expect(self, text: str) -> Token:
        if not self.at(text):
            found = self.token.text
            self.fail(f"expected '{text}', found {repr(found) if found else 'the end of the text'}")
        return self.take()

    def kind(self, kind: str, what: str) -> Token:
        if self.token.kind != kind:
            found = self.token.text
            self.fail(f"expected {what}, found {repr(found) if found else 'the end of the text'}")
        return self.take()

    def word(self, what: str = "a name") -> str:
        return self.kind("word", what).text

    def symbol(self, what: str = "a name such as @f") -> Symbol:
        return symbol(self.kind("symbol", what).text)

    def keyword(self, allowed: Sequence[str]) -> str:
        token = self.token
        if token.text not in allowed:
            self.fail(f"expected one of {', '.join(allowed)}, found {token.text!r}")
        return self.take().text

    def integer(self) -> int:
        token = self.kind("number", "an integer")
        if "." in token.text or len(token.text) > 40:
            self.fail(f"expected an integer, found {token.text[:40]!r}", token=token)
        return int(token.text)

    def list_of(self, one: Callable[[], Any], end: str) -> list[Any]:
        """Comma separated items up to and including `end`."""
        out: list[Any] = []
        if self.accept(end):
            return out
        while True:
            out.append(one())
            if self.accept(end):
                return out
            self.expect(",")

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"nesting deeper than {MAX_DEPTH}", "MLC0204")
