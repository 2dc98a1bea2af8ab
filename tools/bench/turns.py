"""Times of several calls that do the same work, which take turns so that a busy machine slows all of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any


def times(runs: Sequence[Callable[[], Any]], rounds: int = 7, least: float = 0.02) -> list[float]:
    """The seconds of each run, the least over rounds in which they take turns.

    Args:
        runs: Calls, each of which has been called before.
        rounds: Turns of each.
        least: Seconds of a turn at least, for which short runs are repeated.
    """
    counts = []
    for run in runs:
        run()
        start = time.perf_counter()
        run()
        counts.append(max(1, math.ceil(least / max(time.perf_counter() - start, 1e-7))))
    best = [math.inf] * len(runs)
    for _ in range(rounds):
        for i, (run, count) in enumerate(zip(runs, counts)):
            wait_for_threads()
            run()                                          # the caches of the processor are another's
            start = time.perf_counter()
            for _ in range(count):
                run()
            best[i] = min(best[i], (time.perf_counter() - start) / count)
    return best


def wait_for_threads(longest: float = 1.0) -> None:
    """Wait until no thread of this process computes, for a second at most: those of a runtime wait for its next call by
    asking again and again, ONNX Runtime's for 40 ms, and would take a processor from the one whose turn it is."""
    end = time.perf_counter() + longest
    while time.perf_counter() < end:
        start, used = time.perf_counter(), time.process_time()
        time.sleep(0.01)                                   # a few ticks, as the system counts their time
        if time.process_time() - used < 0.1 * (time.perf_counter() - start):
            return
