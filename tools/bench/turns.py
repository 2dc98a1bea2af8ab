"""Times of several calls that do the same work, which take turns so that a busy machine slows all of them."""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

COMPUTING = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    sum(range(100_000))
"""
"""A program that computes until the process that started it, whose number it is given, has ended."""


def times(runs: Sequence[Callable[[], Any]], rounds: int = 7, least: float = 0.02,
          of_rounds: Callable[[Sequence[float]], float] = min) -> list[float]:
    """The seconds of each run: the least of rounds in which they take turns.

    Args:
        runs: Calls, each of which has been called before.
        rounds: Turns of each.
        least: Seconds of a turn at least, for which short runs are repeated.
        of_rounds: What the times of the rounds become; where other programs compute, the least of them is luck.
    """
    counts = []
    for run in runs:
        run()
        start = time.perf_counter()
        run()
        counts.append(max(1, math.ceil(least / max(time.perf_counter() - start, 1e-7))))
    found: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, count, seconds in zip(runs, counts, found):
            wait_for_threads()
            run()                                          # the caches of the processor are another's
            start = time.perf_counter()
            for _ in range(count):
                run()
            seconds.append((time.perf_counter() - start) / count)
    return [of_rounds(seconds) for seconds in found]


def times_while_busy(runs: Sequence[Callable[[], Any]], rounds: int, others: int) -> list[float]:
    """The same while so many other programs compute without a pause; the median of the rounds."""
    with computing(others):
        return times(runs, rounds, of_rounds=statistics.median)


@contextmanager
def computing(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """A context in which so many programs compute, each with one thread."""
    with ExitStack() as started:
        programs = list[subprocess.Popen[bytes]]()
        for _ in range(count):
            programs.append(subprocess.Popen([sys.executable, "-c", COMPUTING, str(os.getpid())]))
            started.callback(_end, programs[-1])
        yield programs


def _end(program: subprocess.Popen[bytes]) -> None:
    program.kill()
    program.wait()


def wait_for_threads(longest: float = 1.0) -> None:
    """Wait until no thread of this process computes, for a second at most: those of a runtime wait for its next call by
    asking again and again, ONNX Runtime's for 40 ms, and would take a processor from the one whose turn it is."""
    end = time.perf_counter() + longest
    while time.perf_counter() < end:
        start, used = time.perf_counter(), time.process_time()
        time.sleep(0.01)                                   # a few ticks, as the system counts their time
        if time.process_time() - used < 0.1 * (time.perf_counter() - start):
            return
