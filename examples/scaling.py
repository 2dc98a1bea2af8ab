"""How training of a small GPT scales to thousands of ranks, simulated: python examples/scaling.py --plot scaling.png

Strong scaling divides one batch among more and more ranks; weak scaling gives each rank as many sequences as before.
For each number of ranks the step is divided by the passes of the compiler, on a mesh of no job, and its program is
simulated on a model of the machine: nothing runs. Ranks of equal programs are simulated once.

    python examples/scaling.py --ranks 1,8,64,512,4096 --plan zero3
    python examples/scaling.py --host 1 --network 1e9 --jitter 0.05 --failures 1e-7 --checkpoint 30

Modelled are the arithmetic and memory of each segment, two kinds of links (within a host and between hosts, with a
latency and a bandwidth each), the slowest of all ranks, and the time that failures and checkpoints take. Not modelled
are collectives that overlap with arithmetic, and links that jobs share.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlc
import mlc.distributed as dist

sys.path.insert(0, str(Path(__file__).parent))
import gpt


@dataclass(frozen=True)
class Point:
    """A number of ranks.

    batch    sequences in a step, of all ranks
    timing   of a step
    useful   the part of the time that goes into steps that count
    """

    ranks: int
    batch: int
    timing: dist.Timing
    useful: float

    @property
    def rate(self) -> float:
        """Sequences in a second."""
        return self.batch / self.timing.total * self.useful


def simulate(ranks: int, batch: int, plan: str, machine: dist.Cluster) -> Point:
    """The time of a step of so many sequences on so many ranks."""
    mesh = dist.mesh({"data": ranks}, abstract=True)
    mlc.manual_seed(0)
    sizes = gpt.Sizes(64)
    model = dist.distribute(gpt.GPT(sizes), mesh, dist.FullySharded("data") if plan == "zero3" else dist.replicated)
    optimizer = mlc.optim.SGD(model.parameters(), lr=0.1)
    if plan == "zero3":
        dist.shard_optimizer(optimizer, mesh, "data")

    @mlc.compile
    def step(x: mlc.Tensor, y: mlc.Tensor) -> mlc.Tensor:
        optimizer.zero_grad()
        loss = mlc.nn.functional.cross_entropy(model(x).transpose(1, 2), y)
        loss.backward()
        optimizer.step()
        return loss

    x, y = (dist.shard(mlc.zeros(batch, sizes.context, dtype=mlc.int64), "data", mesh=mesh) for _ in range(2))
    return Point(ranks, batch, dist.report(step, x, y).time(machine), machine.useful(ranks))


def show(kind: str, points: list[Point]) -> None:
    """Print a table of some numbers of ranks."""
    print(f"{kind} scaling:\n ranks  sequences  step in ms  of which communication  sequences/s  efficiency")
    first = points[0]
    for p in points:
        efficiency = p.rate / first.rate * first.ranks / p.ranks
        print(f"{p.ranks:6} {p.batch:10} {1e3 * p.timing.total:11.3f} {p.timing.communication / p.timing.total:23.0%} "
              f"{p.rate:12.0f} {efficiency:11.0%}")


def plot(path: str, found: dict[str, list[Point]]) -> None:
    """Draw sequences in a second over ranks, with the line of perfect scaling."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, both = pyplot.subplots(1, len(found), figsize=(5 * len(found), 4), layout="constrained", squeeze=False)
    for axes, (kind, points) in zip(both[0], found.items()):
        ranks, first = [p.ranks for p in points], points[0]
        axes.plot(ranks, [first.rate / first.ranks * n for n in ranks], "--", color="grey", label="perfect")
        axes.plot(ranks, [p.rate for p in points], "o-", label="simulated")
        axes.set(xscale="log", yscale="log", xlabel="ranks", ylabel="sequences/s", title=f"{kind} scaling")
        axes.legend()
    figure.savefig(path)
    pyplot.close(figure)


def main(words: list[str] | None = None) -> dict[str, list[Point]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="1,4,16,64,256,1024,4096", help="numbers of ranks (default to 4096)")
    parser.add_argument("--batch", type=int, help="sequences of strong scaling (default 4 for each of the most ranks)")
    parser.add_argument("--each", type=int, default=16, help="sequences of a rank in weak scaling (default 16)")
    parser.add_argument("--plan", choices=["data", "zero3"], default="data", help="data parallel, or fully sharded")
    parser.add_argument("--plot", metavar="FILE", help="draw both as a chart (.png, .svg, .pdf)")
    units: Any = {"flops": (1e14, "operations in a second"), "memory": (2e12, "bytes read or written in a second"),
                  "latency": (5e-6, "seconds of a message between hosts"), "network": (2.5e10, "bytes in a second"),
                  "call": (2e-5, "seconds of a call of a segment"), "host": (8, "ranks of a host"),
                  "near-latency": (2e-6, "seconds of a message within a host"),
                  "near-network": (3e11, "bytes in a second"), "jitter": (0.0, "deviation of times among ranks"),
                  "straggler": (1.0, "how many times as long the slowest rank computes"),
                  "failures": (0.0, "of a rank in a second"), "checkpoint": (0.0, "seconds"),
                  "restart": (0.0, "seconds")}
    for name, (default, meaning) in units.items():
        parser.add_argument(f"--{name}", type=type(default), default=default, help=f"{meaning} (default {default:g})")
    options = parser.parse_args(words)
    machine = dist.Cluster(**{name: getattr(options, name) for name in (n.replace("-", "_") for n in units)})
    ranks = sorted(map(int, options.ranks.split(",")))
    batch = options.batch or 4 * ranks[-1]
    found = {"strong": [simulate(n, batch, options.plan, machine) for n in ranks],
             "weak": [simulate(n, n * options.each, options.plan, machine) for n in ranks]}
    for kind, points in found.items():
        show(kind, points)
    if options.plot:
        plot(options.plot, found)
    return found


if __name__ == "__main__":
    main()
