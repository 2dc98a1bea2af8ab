"""Descriptions of the kernels and values of timed code, and the layout of the buffer that it writes their times to.

A timed function (passes/time_kernels.py) has one slot for each kernel of each call in it, so that a function which
several layers share has slots for each layer; and one for each value in the arena, for its bytes. The buffer is of
64-bit integers:

    0               where the next event goes, if there is room
    1               the end of the room for events
    2 + 4 * slot    how often the kernel ran, its cycles, its floating-point operations and its bytes, in all; of a
                    value, its bytes in place of the last
    then            events: the slot, and the cycle counter before and after

Who calls the function sets the first two and clears the slots. Events for which there is no room are in the sums alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

HEADER, SLOT, EVENT = 2, 4, 3
"""Words before the slots, of a slot and of an event."""


@dataclass(frozen=True)
class SourceLine:
    """A line of the program, and the path of the module whose `forward` it is in, if it is in one."""

    file: str
    line: int
    scope: str = ""


@dataclass(frozen=True)
class KernelSite:
    """A kernel where it is called, or a value in the arena.

    label     its readable name
    lines     the lines that it computes, those with the most operations first
    threads   whether it may run on several threads
    live      of a value in the arena: the slots of the first and the last kernel that use it; () of a kernel
    number    the kind of number that it multiplies, f32 or bf16, whose products have an instruction of their own
    """

    label: str
    lines: tuple[SourceLine, ...]
    threads: bool = False
    live: tuple[int, ...] = ()
    number: str = "f32"

    def at(self, place: Callable[[SourceLine], SourceLine]) -> KernelSite:
        """The same kernel with mapped lines."""
        return replace(self, lines=tuple(map(place, self.lines)))

    def text(self) -> str:
        """The site as an attribute of the function and in files."""
        return json.dumps(asdict(self))

    @staticmethod
    def parse(text: str) -> KernelSite:
        """The site of a text."""
        row = json.loads(text)
        return KernelSite(str(row["label"]), tuple(SourceLine(**line) for line in row["lines"]), bool(row["threads"]),
                          tuple(map(int, row["live"])), str(row["number"]))


def words(slots: int, events: int) -> int:
    """The length of a buffer."""
    return HEADER + SLOT * slots + EVENT * events
