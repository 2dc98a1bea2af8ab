"""A parser of IR that goes on after errors, and remembers where each name stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mlc.ir.core import Block, Op, Region, Value
from mlc.ir.diag import Error, Loc, ParseError
from mlc.ir.lexer import Token
from mlc.ir.parser import Parser, Unresolved
from mlc.ir.types import Type

MOST_ERRORS = 50


@dataclass(slots=True)
class Mention:
    """A name of a value in the text.

    values   the values it stands for: several for `%r:2 = ...`
    around   the regions that it is in, outermost first
    """

    token: Token
    values: list[Value]
    defines: bool
    around: tuple[int, ...]


@dataclass(slots=True)
class Place:
    """An operation in the text: its tokens, and what it became."""

    first: int
    last: int
    name: Token
    op: Op
    written: Loc | None
    around: tuple[int, ...]


@dataclass(slots=True)
class RegionSpan:
    """A region in the text; names from outside do not reach into an isolated one."""

    start: int
    end: int
    isolated: bool = False


@dataclass
class Found:
    """A parsed piece of a module."""

    ops: list[Op] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)
    mentions: list[Mention] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    regions: list[RegionSpan] = field(default_factory=list)
    errors: list[Error] = field(default_factory=list)
    file: str = ""


class Reader(Parser):
    """Parses a text whose operations may be wrong one by one: an error ends the operation that it is in.

    Operations are located in the text itself; the location that is written after one is kept beside it.
    """

    def __init__(self, text: str, file: str, found: Found) -> None:
        self.found = found
        self.lost: set[str] = set()                        # results of operations that are wrong
        self.around: list[int] = []
        self.written: Loc | None = None
        self.became: dict[Value, Value] = {}               # of uses before the definition
        super().__init__(text, file)
        found.tokens = self.tokens

    def read(self) -> None:
        """Read all operations of the text."""
        block = Block()
        self._ops(block)
        while self.token.kind != "end":                    # a bracket or a block that nothing has opened
            self._report(ParseError(f"expected an operation, found {self.token.text!r}", code="MLC0203",
                                    loc=self.loc(self.token.start)))
            self.take()
            self._ops(block)
        for early in self.forward[-1].values():
            self.fail(f"{early.token.text} is not defined", "MLC0208", early.token)
        for mention in self.found.mentions:
            mention.values = [self._final(v) for v in mention.values]
        self.found.ops = [op.detach() for op in list(block)]

    def _final(self, value: Value) -> Value:
        while value in self.became:
            value = self.became[value]
        return value

    # -- errors -------------------------------------------------------------------------------------------------------
    def fail(self, message: str, code: str = "MLC0203", token: Token | None = None) -> Any:
        if code == "MLC0208" and token is not None and message.endswith("is not defined"):
            if token.text[1:] not in self.lost:
                self._report(ParseError(message, code=code, loc=self.loc(token.start)))
            return                                         # nothing that follows depends on it
        super().fail(message, code, token)

    def _report(self, error: Error) -> None:
        if len(self.found.errors) < MOST_ERRORS:
            self.found.errors.append(error)

    def _ops(self, block: Block) -> None:
        while not (self.at("}") or self.token.kind in ("end", "block")):
            start, scopes = self.pos, self.scopes
            depths = len(self.forward), len(self.block_names), self.depth, len(self.around)
            try:
                block.insert(self.op())
            except Error as error:
                names = self._names_of(start)
                if not (error.code == "MLC0208" and self._mentions_lost(error)):
                    self._report(error)
                self.lost |= names
                self.scopes = scopes
                del self.forward[depths[0]:], self.block_names[depths[1]:], self.around[depths[3]:]
                self.depth = depths[2]
                self._skip(start)

    def _names_of(self, start: int) -> set[str]:
        """The names of the results of the operation that begins at a token."""
        names = set[str]()
        at = start
        while self.tokens[at].kind in ("value", "number") or self.tokens[at].text in (",", ":"):
            if self.tokens[at].kind == "value":
                base = self.tokens[at].text[1:]
                names |= {base, *(f"{base}#{i}" for i in range(16))}
            at += 1
        return names if self.tokens[at].text == "=" else set()

    def _mentions_lost(self, error: Error) -> bool:
        return any(f"%{name} " in error.message for name in self.lost)

    def _skip(self, start: int) -> None:
        """Go to where the next operation may begin: on a later line, outside of all brackets of this one."""
        depth, at = 0, start
        while (token := self.tokens[at]).kind != "end":
            begins = at > start and "\n" in self.text[self.tokens[at - 1].start:token.start]
            if depth <= 0 and begins and (token.kind in ("value", "string", "block") or (
                    token.kind == "word" and ("." in token.text or token.text == "module"))):
                break
            if token.text in ("}", ")", "]") and token.kind == "punct":
                if depth == 0:
                    break
                depth -= 1
            elif token.text in ("{", "(", "[") and token.kind == "punct":
                depth += 1
            at += 1
        self.pos = max(at, start + 1) if self.tokens[start].kind != "end" else start

    # -- what stands where --------------------------------------------------------------------------------------------
    def define(self, name: str, value: Value, token: Token) -> None:
        early = self.forward[-1].get(name)
        super().define(name, value, token)
        if early is not None:
            self.became[early] = value
        last = self.found.mentions[-1] if self.found.mentions else None
        if last is not None and last.defines and last.token is token:
            last.values.append(value)
        else:
            self.found.mentions.append(Mention(token, [value], True, tuple(self.around)))

    def resolve(self, ref: Unresolved, type: Type | None = None) -> Value:
        value = super().resolve(ref, type)
        self.found.mentions.append(Mention(ref.token, [value], False, tuple(self.around)))
        return value

    def _defer(self, name: str, early: Any) -> None:
        held = self.forward[-1].get(name)
        super()._defer(name, early)
        if held is not None and held is not early:
            self.became[early] = held

    def region(self, args: Sequence[tuple[Token, Type]] = (), isolated: bool = False) -> Region:
        number = len(self.found.regions)
        self.found.regions.append(RegionSpan(self.token.start, len(self.text), isolated))
        self.around.append(number)
        region = super().region(args, isolated)
        self.around.pop()
        last = self.tokens[self.pos - 1]
        self.found.regions[number].end = last.start
        return region

    def location(self) -> Loc | None:
        self.written = super().location()
        return None

    def op(self) -> Op:
        first = self.pos
        around = tuple(self.around)
        op = super().op()
        name = next((t for t in self.tokens[first:self.pos] if t.kind in ("word", "string")), self.tokens[first])
        self.found.places.append(Place(first, self.pos, name, op, self.written, around))
        return op


def read(text: str, file: str) -> Found:
    """Read a text. Characters that are in no token are errors, and stand for blanks."""
    found = Found(file=file)
    wrong: list[Error] = []
    while True:
        try:
            reader = Reader(text, file, found)
        except ParseError as error:
            wrong.append(error)
            if error.code != "MLC0203" or len(wrong) > MOST_ERRORS:
                found.errors = wrong
                return found
            lines = text.split("\n")
            at = sum(len(line) + 1 for line in lines[:error.loc.line - 1]) + error.loc.col - 1
            text = text[:at] + " " + text[at + 1:]
            continue
        reader.read()
        found.errors = wrong + found.errors
        return found
