"""Lineage of operations: from which operation each one comes, through all passes, by the locations that they carry.

Passes hand locations on: what a pass builds for an operation has the location of that operation. So each operation that
is new after a pass gets a mark in its location (`Loc.via`), and the mark that it finds there is that of the operation
it comes from. Equal operations that were merged have fused locations (`Loc.fused`), with one mark each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from mlc.ir.core import Op
from mlc.ir.diag import Loc

MARK = "%"
"""Start of the entries of `Loc.via` that are marks; passes and rules are words."""
ALIVE = -1


@dataclass(slots=True)
class Node:
    """An operation that exists after some pass.

    number   position in `Lineage.nodes`
    name     of the operation
    parents  numbers of the operations that it comes from
    loc      without marks
    born     the pass that made it (0 is the module as it was recorded)
    died     the pass that removed it, or ALIVE
    rule     the rule that made it, or ""
    """

    number: int
    name: str
    parents: tuple[int, ...]
    loc: Loc
    born: int
    died: int = ALIVE
    rule: str = ""


class Seen(NamedTuple):
    """A look at a module: numbers of the new operations, and how many there are and are gone."""

    made: list[int]
    ops: int
    gone: int


class _Read(NamedTuple):
    """A location, which is held so that no other gets its id, and what it says."""

    loc: Loc
    parents: tuple[int, ...]
    plain: Loc
    rule: str


class Lineage:
    """The operations of a module through a pipeline; `look` is called after each pass, with its number."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.number_of: dict[Op, int] = {}                 # holds the operations, so that none is taken for a later one
        self._alive: set[int] = set()
        self._marked: list[Loc] = []                       # the location that each operation was left with
        self._read: dict[int, _Read] = {}

    def look(self, module: Op, step: int) -> Seen:
        """Take note of the operations after a pass."""
        alive, new = set[int](), list[int]()
        for op in module.walk():
            number = self.number_of.get(op)
            if number is None:
                number = self._add(op, step)
                new.append(number)
            elif op.loc is not self._marked[number]:
                self._merge(op, number)
            alive.add(number)
        gone = self._alive - alive
        for number in gone:
            self.nodes[number].died = step
        self._alive = alive
        return Seen(new, len(alive), len(gone))

    def _add(self, op: Op, step: int) -> int:
        number = self.number_of[op] = len(self.nodes)
        read = self._read.get(id(op.loc))
        if read is None:                                   # what a pass builds for one operation shares a location
            rule = op.loc.via[-1].partition("/")[2] if op.loc.via else ""
            read = self._read[id(op.loc)] = _Read(op.loc, _marks(op.loc), without_marks(op.loc), rule)
        self.nodes.append(Node(number, op.name, read.parents, read.plain, step, rule=read.rule))
        self._marked.append(op.loc)
        self._mark(op, number)
        return number

    def _merge(self, op: Op, number: int) -> None:
        """A known operation has another location: those of others were fused with it."""
        node = self.nodes[number]
        found = [n for n in _marks(op.loc) if n != number and n not in node.parents]
        node.parents += tuple(found)
        node.loc = without_marks(op.loc)
        self._mark(op, number)

    def _mark(self, op: Op, number: int) -> None:
        plain = self.nodes[number].loc
        op.loc = self._marked[number] = Loc(plain.file, plain.line, plain.col, (*plain.via, f"{MARK}{number}"),
                                            plain.fused, plain.scope)


def _marks(loc: Loc) -> tuple[int, ...]:
    """The operations whose marks a location has, the nearest first."""
    found = [next((int(n[len(MARK):]) for n in reversed(one.via) if n.startswith(MARK)), None)
             for one in (loc, *loc.fused)]
    return tuple(dict.fromkeys(n for n in found if n is not None))


def without_marks(loc: Loc) -> Loc:
    """A location as it is without a lineage."""
    out = replace(loc, via=tuple(n for n in loc.via if not n.startswith(MARK)), fused=())
    for other in loc.fused:
        out = out.with_fused(without_marks(other))
    return out
