"""The questions of the server about a text of either language. Places are offsets into the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mlc.ir.diag import Error, UserError


@dataclass(frozen=True)
class Span:
    """Part of a text; of another file, if `file` is not ""."""

    start: int
    end: int
    file: str = ""


@dataclass(frozen=True)
class Finding:
    """An error of the compiler, and the part of the text that it is about."""

    span: Span
    error: Error


@dataclass(frozen=True)
class Symbol:
    """A definition in the outline. `kind` is one of LSP's, in lower case."""

    name: str
    kind: str
    detail: str
    span: Span
    named: Span
    children: Sequence[Symbol] = ()


@dataclass(frozen=True)
class Proposal:
    """A completion."""

    label: str
    kind: str
    detail: str = ""
    documentation: str = ""


@dataclass(frozen=True)
class Lens:
    """A command above a line."""

    span: Span
    title: str
    line: int
    level: str


@dataclass(frozen=True)
class Shown:
    """The text of a hover, in Markdown."""

    span: Span
    text: str


class Analysis(Protocol):
    """One state of a text."""

    text: str

    @property
    def findings(self) -> Sequence[Finding]: ...
    def hover(self, at: int) -> Shown | None: ...
    def definition(self, at: int) -> Sequence[Span]: ...
    def references(self, at: int) -> Sequence[Span]:
        """All occurrences of the name at `at`, its definition first."""

    def symbols(self) -> Sequence[Symbol]: ...
    def proposals(self, at: int) -> Sequence[Proposal]: ...
    def renamed(self, at: int, name: str) -> Sequence[tuple[Span, str]]:
        """The edits that rename what stands at `at`; UserError (MLC0690) if it cannot have this name."""

    def lenses(self) -> Sequence[Lens]: ...
    def formatted(self) -> str:
        """The text as `mlc fmt` writes it; an Error if it is not of the language."""


def not_renamed(message: str, hint: str) -> UserError:
    """The error of a name that cannot be changed."""
    return UserError(message, code="MLC0690", hint=hint)


@dataclass
class Lines:
    """Offsets of lines, and back."""

    text: str
    starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.starts = [0]
        at = self.text.find("\n")
        while at >= 0:
            self.starts.append(at + 1)
            at = self.text.find("\n", at + 1)

    def offset(self, line: int, column: int) -> int:
        """Of a line and a column, from 0; what is beyond the end is there."""
        if line >= len(self.starts):
            return len(self.text)
        end = self.starts[line + 1] - 1 if line + 1 < len(self.starts) else len(self.text)
        return min(self.starts[line] + column, end)

    def line_of(self, at: int) -> int:
        from bisect import bisect_right
        return bisect_right(self.starts, at) - 1

    def line(self, number: int) -> str:
        """The text of a line, without its end."""
        end = self.starts[number + 1] - 1 if number + 1 < len(self.starts) else len(self.text)
        return self.text[self.starts[number]:end]
