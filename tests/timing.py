"""How the time of something grows with its input: a guard against accidental quadratic behaviour."""
from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
COUNTS = (750, 1500, 3000)


@contextmanager
def without_collections() -> Iterator[None]:
    """Within, the garbage collector does not run: its pauses depend on all else that is in memory."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def seconds_by_count(build: Callable[[int], T], work: Callable[[T], object],
                     counts: tuple[int, ...] = COUNTS) -> dict[int, float]:
    """The processor time of `work(build(n))` for each n, the best of three."""
    out = {}
    for count in counts:
        best = []
        for _ in range(3):
            subject = build(count)
            with without_collections():
                started = time.process_time()
                work(subject)
                best.append(time.process_time() - started)
        out[count] = min(best)
    return out


def assert_linear(seconds: dict[int, float]) -> None:
    """Twice the operations take at most three times as long (four would be quadratic)."""
    counts = sorted(seconds)
    for n, twice in zip(counts, counts[1:]):
        assert seconds[twice] < 3 * seconds[n] + 0.02, seconds
