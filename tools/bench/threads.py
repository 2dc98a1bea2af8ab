"""Cost of handing work to another thread, and the speedup from several threads.

    python -m mlc.tools.bench.threads [--threads 2]

`hand-off` is the time of a region of one iteration for each thread, without that of an iteration: from the moment at
which the caller has work to that at which it knows that all is done. The other threads wait for work, or sleep. Below,
microseconds of whole calls on one thread and on several, by turns; a time is the least of many, for other processes
disturb, and a machine that is busy shows no gain at all.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import mlc

REGIONS = """
func.func @regions(%times: index, %count: index, %steps: index, %out: memref<?xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %t = %c0 to %times step %c1 {
    scf.parallel (%i) = (%c0) to (%count) step (%c1) {
      %one = arith.constant 1 : i64
      %factor = arith.constant 6364136223846793005 : i64
      %r = scf.for %s = %c0 to %steps step %c1 iter_args(%x = %one) -> (i64) {
        %y = arith.muli %x, %factor : i64
        %z = arith.addi %y, %one : i64
        scf.yield %z : i64
      }
      %at = arith.muli %i, %c8 : index
      memref.store %r, %out[%at] : memref<?xi64>
    }
  }
  func.return
}
"""
STEPS = 3000
"""Dependent multiplications of an iteration: some 4 us, so that the caller finds none of the others' to take."""


def regions() -> Callable[..., Any]:
    """Run regions one after another: times, iterations of each, steps of an iteration, where results go, their size."""
    from mlc.backends.cpu import threads
    from mlc.backends.cpu.targets import host
    from mlc.backends.emit_llvm import emit
    from mlc.backends.link import link
    from mlc.backends.load import load
    from mlc.backends.object_code import compile_object
    from mlc.ir import abi
    from mlc.ir.parser import parse_module
    from mlc.passes import pipeline
    module = pipeline.resume(parse_module(REGIONS))
    library = load(link(compile_object(emit(module, host()), host()), ["regions", abi.HOOK]))
    threads.attach(library)
    kinds = [ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64]
    return library.function("regions", None, kinds)


def best(runs: Sequence[Callable[[], Any]], seconds: float = 1.0) -> list[float]:
    """The least time of each of some runs, which take turns."""
    least = [float("inf")] * len(runs)
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop:
        for i, run in enumerate(runs):
            start = time.perf_counter()
            run()
            least[i] = min(least[i], time.perf_counter() - start)
    return least


def hand_off(count: int, pause: float) -> float:
    """Seconds from work to done beyond those of one iteration, when the other threads last had work `pause` ago."""
    run, out = regions(), np.zeros(8 * count, np.int64)
    times = 1 if pause else 100

    def go(iterations: int) -> None:
        run(times, iterations, STEPS, out.ctypes.data, out.size)

    mlc.set_num_threads(count)
    least = [float("inf"), float("inf")]
    stop = time.perf_counter() + 1
    while time.perf_counter() < stop:
        for i, iterations in enumerate((1, count)):
            time.sleep(pause)
            start = time.perf_counter()
            go(iterations)
            least[i] = min(least[i], time.perf_counter() - start)
    return (least[1] - least[0]) / times


def workloads() -> Iterator[tuple[str, Callable[..., Any], list[tuple[int, ...]]]]:
    yield "x * y + 1, 1 M elements", lambda x, y: x * y + 1, [(1 << 20,)] * 2
    yield "x * y + 1, 16 M elements", lambda x, y: x * y + 1, [(1 << 24,)] * 2
    yield "tanh, 64 K elements", lambda x: mlc.tanh(x), [(1 << 16,)]
    yield "relu(x + bias), 512 x 1000", lambda x, b: mlc.relu(x + b), [(512, 1000), (1000,)]
    yield "softmax, 512 x 1000", lambda x: mlc.softmax(x, dim=1), [(512, 1000)]
    yield "matmul 256", lambda x, y: x @ y, [(256, 256)] * 2
    yield "matmul 1024", lambda x, y: x @ y, [(1024, 1024)] * 2


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mlc.tools.bench.threads", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=max(2, mlc.get_num_threads()), help="how many to compare with")
    count = parser.parse_args(arguments).threads
    print(f"hand-off to {count - 1} waiting {hand_off(count, 0) * 1e6:8.2f} us")
    print(f"hand-off to {count - 1} asleep  {hand_off(count, 0.002) * 1e6:8.2f} us")
    rng = np.random.default_rng(0)
    print(f"\n{'':28s} {'1 thread':>10s} {f'{count} threads':>10s}")
    for name, f, shapes in workloads():
        compiled, arrays = mlc.compile(f), [mlc.tensor(rng.standard_normal(s).astype(np.float32)) for s in shapes]

        def on(k: int, run: Any = compiled, given: Any = arrays) -> Callable[[], Any]:
            def call() -> Any:
                mlc.set_num_threads(k)
                return run(*given)
            return call

        one, several = best([on(1), on(count)])
        print(f"{name:28s} {one * 1e6:10.1f} {several * 1e6:10.1f}   {one / several:5.2f} x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
