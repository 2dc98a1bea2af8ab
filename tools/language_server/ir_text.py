"""Texts of IR: each operation of the outermost module is read by itself, and again only when it has changed."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from mlc.dialects import load_all
from mlc.ir.core import REGISTRY, Block, BlockArg, Op, Region, Symbol
from mlc.ir.diag import Error
from mlc.ir.lexer import Token
from mlc.ir.type_parser import load_dialect
from mlc.ir.verify import verify
from mlc.tools.language_server import ir_help
from mlc.tools.language_server.analysis import Finding, Lens, Lines, Proposal, Shown, Span, not_renamed
from mlc.tools.language_server.analysis import Symbol as Outline
from mlc.tools.language_server.ir_reader import Found, Mention, Place, read

_PIECE = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|\{-#[\s\S]*?#-\}|[{}]|\n(?=[A-Za-z_]\w*\.|module\b|"|%)')
_MODULE = re.compile(r"(?:\s|//[^\n]*\n)*(?:builtin\.)?module\s*(?:@[\w.]+\s*)?\{")
_NAME = re.compile(r"[A-Za-z_$.-][\w$.-]*|\d+")
KEPT = 4096
"""Pieces that stay known."""
MOST_RULES = 10
"""Errors of the verifier that are looked for."""


@dataclass(slots=True)
class Piece:
    """An outermost operation, and where it begins. Offsets in `found` are relative to that."""

    at: int
    text: str
    found: Found


class Pieces:
    """The pieces of texts that have been read, by what stands in them."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Found] = OrderedDict()
        self._numbers = count()

    def of(self, text: str) -> Found:
        """An operation is in one place: the same text a second time is `new`."""
        found = self._known.pop(text, None) or self.new(text)
        self._known[text] = found
        if len(self._known) > KEPT:
            self._known.popitem(last=False)
        return found

    def new(self, text: str) -> Found:
        return read(text, f"<{next(self._numbers)}>")                  # by which errors of the verifier are told apart


def split(text: str) -> Iterator[tuple[int, str]]:
    """The outermost operations, each with its offset; what is in a module is as outermost as what is in none."""
    start, end, outside = 0, len(text), 0
    if (head := _MODULE.match(text)) and (closing := _closing(text, head.end())) is not None:
        start, end, outside = head.end(), closing, 1
    depth, last = 0, start
    pattern = re.compile(_PIECE.pattern.replace(r"\n(?=", r"\n[ \t]*(?=")) if outside else _PIECE
    for m in pattern.finditer(text, start, end):
        if m[0] == "{":
            depth += 1
        elif m[0] == "}":
            depth -= 1
        elif m[0][0] == "\n" and depth <= 0:
            if text[last:m.start()].strip():
                yield last, text[last:m.start() + 1]
                last = m.start() + 1
    yield last, text[last:end]


def _closing(text: str, start: int) -> int | None:
    """Where the module ends whose bracket is before `start`, if nothing follows it."""
    depth = 1
    for m in _PIECE.finditer(text, start):
        depth += (m[0] == "{") - (m[0] == "}")
        if depth == 0:
            rest = re.sub(r"//[^\n]*|\{-#[\s\S]*?#-\}|\bloc\(.*\)", "", text[m.end():])
            return m.start() if not rest.strip() else None
    return None


class IRText:
    """The `Analysis` of a text of IR."""

    def __init__(self, text: str, pieces: Pieces) -> None:
        load_all()
        self.text, self.lines = text, Lines(text)
        self.pieces, seen = list[Piece](), set[str]()
        for at, part in split(text):
            self.pieces.append(Piece(at, part, pieces.new(part) if part in seen else pieces.of(part)))
            seen.add(part)
        self.findings: list[Finding] = []
        for piece in self.pieces:
            self.findings += [Finding(self._span_of(piece, error), error) for error in piece.found.errors]
        self._check_rules()

    # -- errors -------------------------------------------------------------------------------------------------------
    def _span_of(self, piece: Piece, error: Error) -> Span:
        lines = piece.text.split("\n")
        at = sum(len(line) + 1 for line in lines[:max(error.loc.line - 1, 0)]) + max(error.loc.col - 1, 0)
        token = next((t for t in piece.found.tokens if t.start <= at < t.start + len(t.text)), None)
        end = token.start + len(token.text) if token is not None else min(at + 1, len(piece.text))
        return Span(piece.at + at, piece.at + max(end, at))

    def _check_rules(self) -> None:
        """Verify what could be read: types, dominance, symbols, and each operation's own rules."""
        load_dialect("builtin.module")
        usable = [p for p in self.pieces if not p.found.errors and p.found.ops]
        if len(usable) == 1 and len(usable[0].found.ops) == 1 and usable[0].found.ops[0].name == "builtin.module":
            self._check_module(usable[0].found.ops[0], usable, any(p.found.errors for p in self.pieces))
            return
        block = Block()
        try:
            for piece in usable:
                for op in piece.found.ops:
                    block.insert(op)
            module = REGISTRY["builtin.module"].make([], {"sym_name": None}, [], [Region(block)])
            self._check_module(module, usable, len(usable) < len([p for p in self.pieces if p.text.strip()]))
        finally:
            for piece in usable:
                for op in piece.found.ops:
                    if op.parent is not None:
                        op.detach()

    def _check_module(self, module: Op, usable: list[Piece], incomplete: bool) -> None:
        owner = {op: piece for piece in usable for op in piece.found.ops}
        for _ in range(MOST_RULES):
            try:
                verify(module)
                return
            except Error as error:
                outermost = _outermost(error, owner)
                if outermost is None:
                    return
                if not (error.code == "MLC0106" and incomplete):       # it may be what could not be read
                    self.findings.append(Finding(self._span_of(owner[outermost], error), error))
                if outermost is module:
                    return
                outermost.detach()
                incomplete = True

    # -- what stands at a place ---------------------------------------------------------------------------------------
    def _piece(self, at: int) -> Piece:
        return next((p for p in reversed(self.pieces) if p.at <= at), self.pieces[0])

    def _token(self, piece: Piece, at: int) -> Token | None:
        inside = at - piece.at
        touching = [t for t in piece.found.tokens if t.start <= inside <= t.start + len(t.text) and t.text]
        return next((t for t in touching if inside < t.start + len(t.text)), touching[-1] if touching else None)

    def _mention(self, piece: Piece, token: Token) -> Mention | None:
        return next((m for m in piece.found.mentions if m.token is token), None)

    def _span(self, piece: Piece, token: Token) -> Span:
        return Span(piece.at + token.start, piece.at + token.start + len(token.text))

    def hover(self, at: int) -> Shown | None:
        piece = self._piece(at)
        token = self._token(piece, at)
        if token is None:
            return None
        span = self._span(piece, token)
        place = next((p for p in piece.found.places if p.name is token), None)
        if place is not None:
            return Shown(span, ir_help.of_operation(type(place.op), place))
        if token.kind == "value" and (mention := self._mention(piece, token)):
            return Shown(span, ir_help.of_value(token.text, mention.values, self._place_of(piece, mention)))
        if token.kind == "symbol" and (found := self._defined(token.text[1:])):
            return Shown(span, ir_help.of_symbol(found[2].op))
        if token.kind in ("word", "string") and (cls := REGISTRY.get(token.text.strip('"').removeprefix("mlc."))):
            return Shown(span, ir_help.of_operation(cls, None))
        return None

    def _place_of(self, piece: Piece, mention: Mention) -> Place | None:
        value = mention.values[0]
        return next((p for p in piece.found.places if p.op is getattr(value, "op", None)), None)

    def _same(self, piece: Piece, mention: Mention) -> list[Mention]:
        """All mentions of the values, the definition first."""
        values = set(mention.values)
        for m in piece.found.mentions:
            if m.defines and not values.isdisjoint(m.values):
                values |= set(m.values)
        found = [m for m in piece.found.mentions if not values.isdisjoint(m.values)]
        return sorted(found, key=lambda m: (not m.defines, m.token.start))

    def _defined(self, name: str) -> tuple[Piece, Token, Place] | None:
        """Where a symbol is defined."""
        for piece in self.pieces:
            for place in piece.found.places:
                if place.op.attrs.get("sym_name") == name:
                    for token in piece.found.tokens[place.first:place.last]:
                        if token.kind == "symbol" and token.text == "@" + name:
                            return piece, token, place
        return None

    def definition(self, at: int) -> Sequence[Span]:
        found = self.references(at)
        return found[:1]

    def references(self, at: int) -> Sequence[Span]:
        piece = self._piece(at)
        token = self._token(piece, at)
        if token is None:
            return []
        if token.kind == "value" and (mention := self._mention(piece, token)):
            return [self._span(piece, m.token) for m in self._same(piece, mention)]
        if token.kind == "symbol":
            places = [self._span(p, t) for p in self.pieces for t in p.found.tokens
                      if t.kind == "symbol" and t.text == token.text]
            first = self._defined(token.text[1:])
            own = self._span(first[0], first[1]) if first else None
            return [own, *(s for s in places if s != own)] if own else places
        if token.kind == "block":
            return sorted((self._span(piece, t) for t in self._labels(piece, token)),
                          key=lambda s: (self.lines.line(self.lines.line_of(s.start)).lstrip()[:1] != "^", s.start))
        return []

    def _labels(self, piece: Piece, token: Token) -> list[Token]:
        """The places of a label in the innermost region that has it."""
        inside = [r for r in piece.found.regions if r.start <= token.start < r.end]
        region = max(inside, key=lambda r: r.start) if inside else None
        return [t for t in piece.found.tokens if t.kind == "block" and t.text == token.text and (
            region is None or region.start <= t.start < region.end)]

    # -- outline ------------------------------------------------------------------------------------------------------
    def symbols(self) -> Sequence[Outline]:
        return [found for piece in self.pieces for found in self._outline(piece, (), piece.found.places)]

    def _outline(self, piece: Piece, around: tuple[int, ...], places: Sequence[Place]) -> list[Outline]:
        out = []
        for place in (p for p in places if p.around == around):
            tokens = piece.found.tokens
            name = place.op.attrs.get("sym_name")
            inner = [p for p in places if p.around[:len(around)] == around and len(p.around) > len(around)
                     and tokens[place.first].start <= tokens[p.first].start < tokens[place.last - 1].start]
            if not name and not place.op.regions:
                continue
            children = [x for region in dict.fromkeys(p.around[:len(around) + 1] for p in inner)
                        for x in self._outline(piece, region, inner)]
            token = next((t for t in tokens[place.first:place.last] if name and t.text == f"@{name}"), place.name)
            last = tokens[place.last - 1]
            detail = place.op.name if name else ", ".join(str(r.type) for r in place.op.results)
            out.append(Outline(f"@{name}" if name else place.op.name, "function" if "func" in place.op.name else
                               "namespace" if name else "operator", detail,
                               Span(piece.at + tokens[place.first].start, piece.at + last.start + len(last.text)),
                               self._span(piece, token), children))
        return out

    # -- completion ---------------------------------------------------------------------------------------------------
    def proposals(self, at: int) -> Sequence[Proposal]:
        line = self.text[self.text.rfind("\n", 0, at) + 1:at]
        if re.search(r"%[\w$.#-]*$", line):
            return self._visible(at)
        if re.search(r"@[\w$.]*$", line):
            return [Proposal(f"@{name}", "function", str(op.attrs.get("function_type", op.name)))
                    for piece in self.pieces for op in (p.op for p in piece.found.places)
                    if (name := op.attrs.get("sym_name"))]
        if re.match(r"\s*(%[\w$.#:, %-]*=\s*)?\"?[\w.]*$", line):
            return ir_help.operations()
        before = self.text[max(0, at - 2000):at]
        if (m := re.search(r"([A-Za-z_]\w*\.[\w.]+)[^\n{}]*\{([^\n{}]*)$", before)) and m[1] in REGISTRY:
            return ir_help.attributes(REGISTRY[m[1]], set(re.findall(r"(\w+)\s*=", m[2])))
        return ir_help.types() if re.search(r"(:|->|<|,|\()\s*[\w!.]*$", line) else []

    def _visible(self, at: int) -> list[Proposal]:
        """The values that may be used at a place."""
        piece, out = self._piece(at), dict[str, Proposal]()
        inside = at - piece.at
        for m in piece.found.mentions:
            regions = [piece.found.regions[i] for i in m.around]
            if not m.defines or m.token.start >= inside or not all(r.start < inside <= r.end for r in regions):
                continue
            shut = any(r.isolated and r.start < inside <= r.end and i not in m.around
                       for i, r in enumerate(piece.found.regions))
            own = self._place_of(piece, m)
            if shut or (own is not None and piece.found.tokens[own.last].start >= inside):
                continue
            for i, value in enumerate(m.values):
                label = m.token.text if len(m.values) == 1 else f"{m.token.text}#{i}"
                kind = "variable" if not isinstance(value, BlockArg) else "field"
                out[label] = Proposal(label, kind, str(value.type))
        return list(reversed(out.values()))

    # -- changes ------------------------------------------------------------------------------------------------------
    def renamed(self, at: int, name: str) -> Sequence[tuple[Span, str]]:
        piece = self._piece(at)
        token = self._token(piece, at)
        if token is None or token.kind not in ("value", "symbol"):
            raise not_renamed("there is no value or function here", "place the cursor on a name such as %x or @f")
        plain = name.lstrip("%@")
        if not _NAME.fullmatch(plain):
            raise not_renamed(f"{name!r} is no name", "use letters, digits and _")
        if token.kind == "symbol":
            if self._defined(plain) is not None:
                raise not_renamed(f"@{plain} is defined already", "choose another name")
            return [(span, "@" + plain) for span in self.references(at)]
        mention = self._mention(piece, token)
        if mention is None:
            raise not_renamed(f"{token.text} is not defined", "define it first")
        same = self._same(piece, mention)
        outermost = mention.around[:1]
        taken = {m.token.text[1:].split("#")[0] for m in piece.found.mentions if m not in same
                 and m.around[:1] == outermost}
        if plain in taken:
            raise not_renamed(f"%{plain} is another value of this function", "choose another name")
        return [(self._span(piece, m.token), "%" + plain + "".join(m.token.text.partition("#")[1:])) for m in same]

    def lenses(self) -> Sequence[Lens]:
        out = []
        for piece in self.pieces:
            for place in piece.found.places:
                if not place.around and isinstance(place.op.attrs.get("sym_name"), Symbol | str) and place.op.regions:
                    span = self._span(piece, place.name)
                    out.append(Lens(span, "show at the next level", self.lines.line_of(span.start), ""))
        return out

    def formatted(self) -> str:
        from mlc.tools.formatting import ir
        return ir.formatted(self.text)


def _outermost(error: Error, owner: dict[Op, Piece]) -> Op | None:
    """The outermost operation that an error of the verifier is in: its piece has a location of its own."""
    duplicate = re.match(r"@(\S+) is defined twice", error.message)
    found = [op for op, piece in owner.items() if op.parent is not None and (
        op.attrs.get("sym_name") == duplicate[1] if duplicate else piece.found.file == error.loc.file)]
    if not found and len(owner) == 1:
        return next(iter(owner))
    return found[-1] if found else None
