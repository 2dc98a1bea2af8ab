"""The cycle counter that timed code reads, and its relation to the clock of Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from time import perf_counter_ns
from typing import Any

from mlc.backends.cpu import runtime
from mlc.backends.target import Target

APART = 20_000_000
"""Nanoseconds that two readings are apart at least, so that their own error of about 100 does not count."""
_TRIES = 16


def _text(target: Target) -> str:
    return (f'target triple = "{target.triple}"\ndeclare i64 @llvm.readcyclecounter()\n'
            "define i64 @mlc_cycles() {\n  %now = call i64 @llvm.readcyclecounter()\n  ret i64 %now\n}\n")


@cache
def _cycles() -> Callable[[], int]:
    """A native function that reads the counter."""
    return runtime.library("cycle counter", _text, ["mlc_cycles"], frozenset()).function(
        "mlc_cycles", ctypes.c_int64, [])


def reading() -> tuple[int, int]:
    """Nanoseconds of `perf_counter_ns`, and the cycle counter at that moment."""
    read, best = _cycles(), (1 << 62, 0, 0)
    for _ in range(_TRIES):
        before = perf_counter_ns()
        cycles = read()
        after = perf_counter_ns()
        best = min(best, (after - before, (before + after) // 2, cycles))
    return best[1], best[2]


class CycleClock:
    """Conversion of cycles to nanoseconds of `perf_counter_ns`, by two readings that are far enough apart."""

    def __init__(self) -> None:
        self.first = self.last = reading()

    def stop(self) -> None:
        """Take the second reading."""
        self.last = reading()

    @property
    def nanoseconds_per_cycle(self) -> float:
        """The length of a cycle; waits until the readings are far enough apart."""
        while self.last[0] - self.first[0] < APART:
            self.last = reading()
        return (self.last[0] - self.first[0]) / (self.last[1] - self.first[1])

    def nanoseconds(self, cycles: Any) -> Any:
        """The time at which the counter was there; of an integer or of an array."""
        return self.first[0] + (cycles - self.first[1]) * self.nanoseconds_per_cycle
