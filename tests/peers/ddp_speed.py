"""The speed of data parallel training on two ranks of this machine: mlc over MPI and PyTorch over gloo, in turns.

mlc trains by DistributedDataParallel, as PyTorch does, and by a compiled step on a mesh.

    python -m tests.peers.ddp_speed --rounds 4

Both train the same network on batches of the same size, one thread for each rank. The figure of each is the best of the
rounds, each of which is the median of its steps; what a step costs without other ranks is measured beside it.
"""
from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mlc.tools.ranks import launcher

SIZES = {"small": (64, 128, 64, 10), "large": (784, 2048, 2048, 10)}
WARM, STEPS = 10, 40


def layers(nn: Any, sizes: tuple[int, ...]) -> Any:
    parts = []
    for a, b in zip(sizes, sizes[1:]):
        parts += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*parts[:-1])


def data(sizes: tuple[int, ...], rank: int, batch: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(rank)
    return rng.standard_normal((batch, sizes[0])).astype(np.float32), rng.integers(0, sizes[-1], batch)


def ours(sizes: tuple[int, ...], batch: int, alone: bool) -> tuple[int, Callable[[], Any]]:
    import mlc
    from mlc import distributed, nn
    distributed.init_process_group(timeout=60)
    rank = distributed.get_rank()
    x, y = (mlc.tensor(a) for a in data(sizes, rank, batch))
    net: Any = mlc.compile(layers(nn, sizes))
    model = net if alone else nn.parallel.DistributedDataParallel(net)
    optimizer = mlc.optim.SGD(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return rank, step


def on_mesh(sizes: tuple[int, ...], batch: int) -> tuple[int, Callable[[], Any]]:
    import mlc
    from mlc import distributed, nn
    distributed.init_process_group(timeout=300)
    mlc.manual_seed(0)                                     # the parameters are the same on all ranks
    mesh = distributed.mesh({"data": 2})
    x, y = (distributed.from_local(a, "data", mesh=mesh) for a in data(sizes, mesh.rank, batch))
    model = distributed.distribute(layers(nn, sizes), mesh)
    optimizer = mlc.optim.SGD(model.parameters(), lr=1e-3)

    @mlc.compile
    def step() -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return mesh.rank, step


def theirs(sizes: tuple[int, ...], batch: int, alone: bool) -> tuple[int, Callable[[], Any]]:
    import torch
    from torch import distributed, nn
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    rank = int(distributed.get_rank())
    x, y = (torch.from_numpy(a) for a in data(sizes, rank, batch))
    net = layers(nn, sizes)
    model = net if alone else nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return rank, step


def child(which: str, size: str, batch: int, alone: bool) -> None:
    if which == "mesh":
        rank, step = on_mesh(SIZES[size], batch)
    else:
        rank, step = (ours if which == "mlc" else theirs)(SIZES[size], batch, alone)
    times = []
    for _ in range(WARM + STEPS):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    if rank == 0:
        print(f"median {statistics.median(times[WARM:]) * 1e3}", flush=True)
    if which == "torch":                                   # a thread of gloo may abort a process that ends Python
        os._exit(0)


def measure(which: str, size: str, batch: int, alone: bool) -> float:
    start = [launcher(), "-n", "2", sys.executable] if which != "torch" else \
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run([*start, "-m", "tests.peers.ddp_speed", "--child", which, "--size", size, "--batch",
                           str(batch), *["--alone"] * alone], capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=300)
    if done.returncode or "median" not in done.stdout:
        raise SystemExit(f"{which} {size} {alone}: status {done.returncode}: {done.stdout} {done.stderr}")
    return float(done.stdout.split("median")[1].split()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--child", choices=["mlc", "mesh", "torch"], help=argparse.SUPPRESS)
    parser.add_argument("--size", choices=SIZES, help="one network only")
    parser.add_argument("--batch", type=int, default=64, help="of each rank")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    if options.child:
        return child(options.child, options.size, options.batch, options.alone)
    for size in [options.size] if options.size else SIZES:
        best = dict[tuple[str, bool], float]()
        for _ in range(options.rounds):
            for key in (("mlc", False), ("torch", False), ("mesh", False), ("mlc", True), ("torch", True)):
                best[key] = min(best.get(key, np.inf), measure(key[0], size, options.batch, key[1]))
        torch = best["torch", False]
        print(f"{size} {SIZES[size]}, batch {options.batch} per rank, ms: torch {torch:.2f}; "
              f"mlc {best['mlc', False]:.2f}, "
              f"{torch / best['mlc', False]:.2f} times as fast; compiled on a mesh {best['mesh', False]:.2f}, "
              f"{torch / best['mesh', False]:.2f} times; without averages: torch {best['torch', True]:.2f}, mlc "
              f"{best['mlc', True]:.2f}; load {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()
