"""The roofline of a machine: what its arithmetic, its caches and its memory allow.

`mlc bench`, `mlc profile` and `mlc explain` all compare with it; `tools/bench/roofline.py` measures it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

MEMORY = "memory"
"""The name of the level that has room for everything."""


class Level(NamedTuple):
    """A level of the caches, or memory.

    Args:
        name: "L2", "L3" or "memory".
        size: Bytes of an array that a thread copies within it; with its target twice as many are in use.
        rates: Bytes a second that are read and written, of one thread and of all.
    """

    name: str
    size: int
    rates: tuple[float, float]


@dataclass(frozen=True)
class Limits:
    """The limits of the machine: a roofline for each level of the caches, and for memory.

    Work is compared with the level that has room for all that it reads and writes, as it has for a copy of as many
    bytes. What lies nearer, in the first cache or in registers, may be faster: more than 100 %.

    Args:
        operations: By kind of number ("f32", also "bf16" and "int8" where there are instructions for their products):
            operations a second, of one thread and of all. A multiply-add is two.
        levels: The levels, the smallest first.
        threads: The number of all threads.
    """

    operations: Mapping[str, tuple[float, float]]
    levels: tuple[Level, ...]
    threads: int = 1

    def level(self, count: float, many: bool = True) -> Level:
        """The nearest level that has room for what is read and written.

        Args:
            count: Number of bytes.
            many: Whether all threads share them.

        Returns:
            The level.
        """
        each = count / (self.threads if many else 1)
        return next((level for level in self.levels if each <= 2 * level.size), self.levels[-1])

    def seconds(self, flops: float, count: float, many: bool = True, number: str = "f32") -> float:
        """The least possible time of a piece of work.

        Args:
            flops: Floating-point operations.
            count: Bytes that are read and written.
            many: Whether all threads share the work.
            number: The kind of number that is multiplied; f32 where it has no instructions of its own.

        Returns:
            Seconds.
        """
        rates = self.operations.get(number, self.operations["f32"])
        return max(flops / rates[many], count / self.level(count, many).rates[many])
