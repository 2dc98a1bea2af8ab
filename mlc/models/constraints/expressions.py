"""Expressions that describe texts: sets of characters, sequences, choices, repetitions, and rules by their names.

Regular expressions, JSON schemas and grammars become expressions, and expressions become networks of states on bytes
(network.py). A set of characters is a tuple of ranges of code points, in order and apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Ranges = tuple[tuple[int, int], ...]

LAST = 0x10FFFF
ALL: Ranges = ((0, 0xD7FF), (0xE000, LAST))
"""All characters; surrogates are none."""


@dataclass(frozen=True)
class Chars:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True)
class Text:
    """These characters, one after the other."""

    text: str


@dataclass(frozen=True)
class Sequence:
    """The parts, one after the other."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Choice:
    """One of the parts; without any, no text at all."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Repeat:
    """The body, from `least` to `most` times; None for any number of times."""

    body: Expression
    least: int = 0
    most: int | None = None


@dataclass(frozen=True)
class Rule:
    """The texts that the rule of this name describes."""

    name: str


@dataclass(frozen=True)
class Graph:
    """The texts along the ways from state 0 to an end.

    edges  of each state: an expression, and the state behind it
    ends   the states where a text may end
    """

    edges: tuple[tuple[tuple[Expression, int], ...], ...]
    ends: frozenset[int]


Expression = Chars | Text | Sequence | Choice | Repeat | Rule | Graph

EMPTY = Sequence(())


def sequence(*parts: Expression | str) -> Expression:
    """The parts, one after the other; a str stands for its text."""
    return Sequence(tuple(Text(p) if isinstance(p, str) else p for p in parts))


def choice(*parts: Expression | str) -> Expression:
    """One of the parts; a str stands for its text."""
    return Choice(tuple(Text(p) if isinstance(p, str) else p for p in parts))


def optional(body: Expression | str) -> Expression:
    """The body or nothing."""
    return Repeat(sequence(body), 0, 1)


def chars(*parts: str) -> Chars:
    """One of some characters, each given as itself, or as the two ends of a range."""
    return Chars(union((ord(p[0]), ord(p[-1])) for p in parts))


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The set of all characters of some ranges."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1] + 1:
            out[-1] = out[-1][0], max(high, out[-1][1])
        else:
            out.append((low, high))
    return tuple(out)


def intersection(a: Ranges, b: Ranges) -> Ranges:
    """The characters that are in both sets."""
    pairs = ((max(x[0], y[0]), min(x[1], y[1])) for x in a for y in b)
    return union((low, high) for low, high in pairs if low <= high)


def complement(ranges: Ranges) -> Ranges:
    """All other characters."""
    out, low = [], 0
    for first, last in union(ranges):
        out.append((low, first - 1))
        low = last + 1
    return intersection(tuple((a, b) for a, b in [*out, (low, LAST)] if a <= b), ALL)
