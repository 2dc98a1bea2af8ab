"""Steps of training on several ranks, with collectives that overlap with computation and without, in turns.

    python -m mlc.tools.bench.overlap [--ranks N] [--latency US] [--network MB] [--width N] [--rounds R]
    mpiexec -n 2 python -m mlc.tools.bench.overlap

By itself it starts ranks that are threads, between which messages take the time of a network of this latency (in
microseconds) and speed (in MB a second for each rank), and no processor: ranks on hosts of their own, as long as there
are as many processors. Under MPI it measures the messages that there are. Each line says how long a step takes, the
least of the rounds, and what `report.time` predicts; the losses are compared bit by bit.
"""

from __future__ import annotations

import argparse
import copy
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Any

import numpy as np

import mlc
import mlc.distributed as dist
from mlc import nn
from mlc.backends.transport import launchers, threads
from mlc.backends.transport.mailbox import Mailbox, Sent
from mlc.backends.transport.transport import Array, as_bytes

RECIPES: dict[str, dist.plans.Plan] = {"data parallel": dist.replicated, "fully sharded": dist.FullySharded("data")}


class EmulatedNetwork(threads.ThreadTransport):
    """Threads whose messages arrive as late as those of a network, which carries those of a rank one after the other.

    latency  seconds of a message
    network  bytes in a second
    """

    def __init__(self, mailboxes: Sequence[Mailbox], rank: int, timeout: float, latency: float, network: float) -> None:
        super().__init__(mailboxes, rank, timeout)
        self.latency, self.network, self._free = latency, network, 0.0
        self._posted = SimpleQueue[tuple[float, Callable[[], None]] | None]()
        threading.Thread(target=self._carry, daemon=True).start()

    def send(self, to: int, tag: int, array: Array) -> Sent:
        content = as_bytes(array).copy()
        self._free = max(self._free, time.monotonic()) + content.nbytes / self.network
        self._posted.put((self._free + self.latency, lambda: self._mailboxes[to].deliver(self.rank, tag, content)))
        return Sent()

    def _carry(self) -> None:
        while (message := self._posted.get()) is not None:
            at, deliver = message
            time.sleep(max(0.0, at - time.monotonic()))
            deliver()

    def close(self) -> None:
        self._posted.put((0.0, super().close))
        self._posted.put(None)


@dataclass(frozen=True)
class Setting:
    """A model, and `rows` of a batch for each rank."""

    model: Any
    rows: int
    rounds: int


def training(overlap: bool, plan: dist.plans.Plan, setting: Setting) -> tuple[dist.DeviceMesh, Any, Any]:
    """A mesh, a step of training on it, and the arguments of the step."""
    ranks, rng = dist.get_world_size(), np.random.default_rng(0)
    mesh = dist.mesh({"data": ranks}, overlap=overlap)
    model = dist.distribute(copy.deepcopy(setting.model), mesh, plan)
    optimizer = mlc.optim.SGD(model.parameters(), lr=0.01)
    x = rng.standard_normal((setting.rows * ranks, setting.model[0].in_features)).astype(np.float32)
    y = rng.integers(0, 16, setting.rows * ranks)

    @mlc.compile
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return mesh, step, (dist.shard(x, "data", mesh=mesh), dist.shard(y, "data", mesh=mesh))


def measured(plan: dist.plans.Plan, setting: Setting) -> tuple[list[float], list[float], bool]:
    """The seconds of a step without and with overlap, those predicted, and whether losses have the same bits."""
    ways = [training(overlap, plan, setting) for overlap in (False, True)]
    losses = [[step(*args).item() for _ in range(3)] for _, step, args in ways]
    found: list[list[float]] = [[] for _ in ways]
    for _ in range(setting.rounds):
        for (mesh, step, args), times in zip(ways, found):
            step(*args)
            mesh._ranks.transport.barrier()
            start = time.perf_counter()
            step(*args)
            times.append(time.perf_counter() - start)
    predicted = []
    for mesh, step, args in ways:
        machine, transport = dist.measured_machine(mesh), mesh._ranks.transport
        if isinstance(transport, EmulatedNetwork):         # a message takes a processor as long as any of threads does
            machine = replace(machine, latency=transport.latency, network=transport.network, overhead=0.0,
                              setup=0.0, copying=2e9)
        predicted.append(dist.measured_report(step, *args).time(machine).total)
    return list(map(min, found)), predicted, losses[0] == losses[1]


def compare(setting: Setting) -> list[str]:
    """Lines about each recipe, on each rank."""
    dist.init_process_group()
    out = []
    for name, plan in RECIPES.items():
        (without, with_), (first, second), equal = measured(plan, setting)
        out.append(f"{name}: {1e3 * without:.1f} ms (predicted {1e3 * first:.1f}), overlapped {1e3 * with_:.1f} ms "
                   f"(predicted {1e3 * second:.1f}), losses {'equal' if equal else 'DIFFERENT'}")
    return out


def main() -> None:
    """Measure, and print the lines of rank 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, default in (("ranks", 2), ("latency", 30), ("network", 1000), ("width", 1024), ("layers", 4),
                          ("rows", 128), ("rounds", 20)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    mlc.set_num_threads(1)
    mlc.manual_seed(0)
    layers = [layer for _ in range(given.layers) for layer in (nn.Linear(given.width, given.width), nn.GELU())]
    setting = Setting(nn.Sequential(*layers, nn.Linear(given.width, 16)), given.rows, given.rounds)
    if launchers.by_mpi() or launchers.by_torchrun():
        lines = compare(setting)
        if dist.get_rank() == 0:
            print("\n".join(lines))
        return
    lines = threads.run(given.ranks, lambda rank: compare(setting), make=lambda mailboxes, rank, timeout:
                        EmulatedNetwork(mailboxes, rank, timeout, given.latency * 1e-6, given.network * 1e6))[0]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
