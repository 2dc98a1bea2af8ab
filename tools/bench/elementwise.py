"""A fixed elementwise chain over 16 M floats on one thread, against the speed of copying the same array.

    y = exp(x * row);  out = where(x > 0, tanh(y + column), y / 2)

Run `python -m mlc.tools.bench.elementwise`. The chain reads x and writes its result, as a copy does, so a copy's time
is the limit that memory sets; what the arithmetic alone takes is measured on a block that stays in the caches.
`donated` writes over x, `new` allocates a result each time, whose pages the system has to clear first.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mlc

ROWS = COLUMNS = 4096


def chain(x: Any, row: Any, column: Any) -> Any:
    y = mlc.exp(x * row)
    return mlc.where(x > 0, mlc.tanh(y + column), y * 0.5)


def best(run: Callable[[], Any], repeat: int = 9) -> float:
    """Seconds of this thread's processor time, the least of `repeat`: other processes do not count."""
    times = []
    for _ in range(repeat):
        start = time.thread_time()
        run()
        times.append(time.thread_time() - start)
    return min(times)


def arrays(rows: int, columns: int) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s).astype(np.float32) * np.float32(0.5)
            for s in ((rows, columns), (columns,), (rows, 1))]


def measure() -> dict[str, float]:
    """Milliseconds for the large array; nanoseconds an element in the caches; ratios to copying."""
    mlc.set_num_threads(1)
    x, row, column = arrays(ROWS, COLUMNS)
    target = np.empty_like(x)
    copy = best(lambda: np.copyto(target, x))
    new = mlc.compile(chain)
    new(x, row, column)
    fresh = best(lambda: new(x, row, column))
    over = mlc.compile(chain, donate="x")
    state = [mlc.Tensor(x.copy())]

    def in_place() -> None:
        state[0] = over(state[0], row, column)

    in_place()
    donated = best(in_place)
    small = [mlc.Tensor(a) for a in arrays(64, 1024)]

    def cached() -> None:
        for _ in range(50):
            small[0] = over(*small)

    cached()
    inside = best(cached) / 50
    return {"copy ms": copy * 1e3, "donated ms": donated * 1e3, "new ms": fresh * 1e3,
            "arithmetic ns/element": inside / (64 * 1024) * 1e9, "donated / copy bandwidth": copy / donated,
            "new / copy bandwidth": copy / fresh,
            "arithmetic alone / copy bandwidth": copy / (inside * ROWS * COLUMNS / (64 * 1024))}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mlc.tools.bench.elementwise", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the measurements as JSON")
    options = parser.parse_args(arguments)
    found = measure()
    if options.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:36s} {value:8.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
