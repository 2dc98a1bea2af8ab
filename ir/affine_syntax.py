"""Parser for sizes and affine maps: `2*B + 1`, `affine_map<(d0, t0)[B] -> (t0, d0 + B)>`.

Only this module identifies dimensions and index tiles by name. `str` prints sizes and maps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mlc.ir.affine import AffineMap
from mlc.ir.diag import ParseError, UserError
from mlc.ir.sizes import AffineDim, Dim, IndexTile, Leaf, divide, modulo, of_atom, sym

_TOKEN = re.compile(r"\s*(?:(\d+)|(floordiv|mod)\b|([A-Za-z_]\w*)|([-+*()]))")
_MAP = re.compile(r"\s*\(([^()]*)\)\s*(?:\[([^\[\]]*)\])?\s*->\s*\((.*)\)\s*", re.S)
MAX_POSITIONS = 256
"""Most dimensions and index tiles of a parsed map."""


def is_positional(name: str) -> bool:
    """Whether a name denotes a dimension or an index tile in the text of a map, and thus cannot name a symbol.

    >>> is_positional("d0"), is_positional("t12"), is_positional("d"), is_positional("B")
    (True, True, False, False)
    """
    return re.fullmatch(r"[dt]\d+", name) is not None


def parse_size(text: str) -> Dim:
    """Parse a size as `str` prints it, such as `2*B + 1` or `(B floordiv 4)*3`; raises ParseError."""
    return _Expression(text, "size", "MLC0205", None).read()


def parse_map(text: str) -> AffineMap:
    """Parse the text between the angle brackets of `affine_map<...>`; raises ParseError.

    >>> str(parse_map("(d0, d1, t0)[B] -> (t0, B*d0 + d1)"))
    'affine_map<(d0, d1, t0)[B] -> (t0, B*d0 + d1)>'
    """
    if (m := _MAP.fullmatch(text)) is None:
        raise ParseError(f"bad affine map {text!r}; write (d0, d1)[B] -> (d0, d1 + B)", code="MLC0156")
    positions, symbols = _names(m[1]), _names(m[2] or "")
    dims = sum(name.startswith("d") for name in positions)
    leaves: list[Leaf] = [*map(AffineDim, range(dims)), *map(IndexTile, range(len(positions) - dims))]
    if positions != [str(leaf) for leaf in leaves]:
        raise ParseError(f"({m[1]}): the dimensions of an affine map are d0, d1, ..., its index tiles after them "
                         "t0, t1, ...", code="MLC0156")
    if bad := [s for s in symbols if not s.isidentifier() or is_positional(s) or symbols.count(s) > 1]:
        raise ParseError(f"[{m[2]}]: {bad[0]!r} is not a valid symbol name, or is repeated", code="MLC0156")
    names = {str(leaf): leaf for leaf in leaves} | {s: s for s in symbols}
    results = tuple(_Expression(one, "affine expression", "MLC0156", names).read() for one in _parts(m[3]))
    return AffineMap(dims, len(positions) - dims, tuple(symbols), results)


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")] if text.strip() else []
    if len(names) > MAX_POSITIONS:
        raise ParseError(f"an affine map of {len(names)} names, more than {MAX_POSITIONS}", code="MLC0204")
    return names


def _parts(text: str) -> list[str]:
    return text.split(",") if text.strip() else []


class _Expression:
    """Parser of one expression; `names` maps names to leaves, None makes every name a symbol."""

    def __init__(self, text: str, what: str, code: str, names: Mapping[str, Leaf] | None) -> None:
        self.text, self.what, self.code, self.names = text.strip(), what, code, names
        self.tokens: list[str] = []
        self.pos = at = 0
        while at < len(self.text):
            m = _TOKEN.match(self.text, at)
            if m is None:
                raise self.bad()
            self.tokens.append(m[0].strip())
            at = m.end()
        if len(self.tokens) > 1000:
            raise ParseError("a size expression has more than 1000 tokens", code="MLC0204")

    def bad(self) -> ParseError:
        return ParseError(f"bad {self.what} {self.text!r}", code=self.code)

    def read(self) -> Dim:
        try:
            out = self.total(0)
        except UserError as error:                               # too large
            raise ParseError(error.message, code=error.code) from None
        if self.pos != len(self.tokens):
            raise self.bad()
        return out

    def peek(self) -> str:
        return self.tokens[self.pos] if self.pos < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.pos += 1
        return token

    def atom(self, depth: int) -> Dim:
        token = self.take()
        if token == "(" and depth < 64:
            value = self.total(depth + 1)
            if self.take() == ")":
                return value
        elif token == "-" and depth < 64:
            return -1 * self.atom(depth + 1)
        elif token.isdigit() and len(token) < 20:
            return int(token)
        elif token.isidentifier():
            return self.named(token)
        raise self.bad()

    def named(self, name: str) -> Dim:
        if self.names is None:
            return sym(name)
        if name not in self.names:
            raise ParseError(f"{name} is not a dimension, index tile or symbol of the affine map", code=self.code)
        return of_atom(self.names[name])

    def term(self, depth: int) -> Dim:
        value = self.atom(depth)
        while self.peek() in ("*", "floordiv", "mod"):
            op, rhs = self.take(), self.atom(depth)
            if op != "*" and rhs == 0:
                raise ParseError(f"division by zero in {self.what} {self.text!r}", code=self.code)
            value = value * rhs if op == "*" else divide(value, rhs) if op == "floordiv" else modulo(value, rhs)
        return value

    def total(self, depth: int) -> Dim:
        value = self.term(depth)
        while self.peek() in ("+", "-"):
            value = value + self.term(depth) if self.take() == "+" else value - self.term(depth)
        return value
