"""The measurement of one row, in a process of its own, so that no peer has the memory or the threads of another row."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from mlc.tools.bench.peers import PEERS, arrays
from mlc.tools.bench.rows import Row, all_rows
from mlc.tools.bench.turns import times, times_while_busy


@dataclass
class Measured:
    """The times of a row.

    seconds  of a call, by peer
    first    of compiling and the first call, by peer
    apart    the largest difference from mlc's results, relative to their largest element
    failed   the reason why a peer has no time
    flops    floating-point operations of a call, if they are known
    bytes    bytes that are read and written
    number   the kind of number that is multiplied, as in mlc/roofline.py
    """

    row: str
    group: str
    seconds: dict[str, float] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)
    apart: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    flops: float = 0.0
    bytes: float = 0.0
    number: str = "f32"

    @property
    def best(self) -> tuple[str, float] | None:
        """The fastest peer other than mlc whose results are the same."""
        others = [(s, n) for n, s in self.seconds.items() if n != "mlc"]
        return min(others)[::-1] if others else None

    @property
    def ratio(self) -> float | None:
        """The time of the fastest peer over mlc's."""
        return self.best[1] / self.seconds["mlc"] if self.best and "mlc" in self.seconds else None


def measure(row: Row, peers: Sequence[str], threads: int, rounds: int, busy: int = 0) -> Measured:
    """Prepare a row's call of every peer, compare the results, and measure in turns, while `busy` other programs
    compute."""
    out = Measured(row.name, row.group, flops=row.flops, bytes=row.bytes, number=row.number)
    calls, expected = dict[str, Callable[[], Any]](), None
    for name in peers:
        try:
            prepared = row.prepare(PEERS[name], threads)
            if prepared is None:
                continue
            start = time.perf_counter()
            result = [x.astype(np.float64) for x in arrays(prepared.call())]
            first = prepared.seconds + time.perf_counter() - start
        except Exception as error:               # a peer that cannot run a row has no time: the table says why
            if name == "mlc":
                raise
            out.failed[name] = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"
            continue
        expected = expected or result
        out.apart[name] = apart(result, expected)
        if out.apart[name] > row.apart:
            out.failed[name] = f"its results are {out.apart[name]:.1e} apart from those of {peers[0]}"
            continue
        out.first[name], calls[name] = first, prepared.call
    runs = [*calls.values()]
    out.seconds = dict(zip(calls, times_while_busy(runs, rounds, busy) if busy else times(runs, rounds)))
    return out


def apart(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    """The largest difference of two results, relative to the largest element; infinite if their shapes differ."""
    if [x.shape for x in xs] != [y.shape for y in ys]:
        return float("inf")
    largest = max((float(np.abs(y).max()) for y in ys if y.size), default=0.0)
    away = max((float(np.abs(x - y).max()) for x, y in zip(xs, ys) if y.size), default=0.0)
    return away / largest if largest else away


def flops_of(name: str) -> float:
    """The multiply-adds of a network's products and convolutions, as PyTorch counts them; 0 without PyTorch."""
    import importlib.util

    from mlc.tools.bench.library import Library
    from mlc.tools.bench.networks import NETWORKS
    if importlib.util.find_spec("torch") is None:
        return 0.0
    from torch.utils.flop_counter import FlopCounterMode
    trains, wide = name.endswith(" training"), name.endswith(" x16")
    network, a = NETWORKS[name.split()[0]], Library("torch")
    model = network.make(a).train(trains)
    batch = max(network.batch, 4) if trains else 16 if wide else network.batch
    with FlopCounterMode(display=False) as counter:
        out = model(*network.data(a, batch))
        if trains:
            network.loss(a, out).backward()
    return float(counter.get_total_flops())


def _in_child(name: str, peers: Sequence[str], threads: int, rounds: int, busy: int) -> dict[str, Any]:
    import warnings
    _end_with_parent()
    warnings.simplefilter("ignore")
    os.environ["MLC_CACHE"] = "0"                          # the first call is to be one of a fresh machine
    row = all_rows()[name]
    found = measure(row, peers, threads, rounds, busy)
    if row.group in ("models", "models of bf16", "models of int8", "training"):
        found.flops = flops_of(name)
    return asdict(found)


def _end_with_parent() -> None:
    """End this process when the one that started it does, however that is: its programs that compute end then, too."""
    def watch() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def measured(name: str, peers: Sequence[str], threads: int, rounds: int, busy: int = 0) -> Measured:
    """The times of a row of the table, from a new process; an error of that process is raised here."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
        return Measured(**pool.submit(_in_child, name, peers, threads, rounds, busy).result())
