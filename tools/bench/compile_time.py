"""The cost of compiling: every pass by itself, per operation, and the whole of it cold, from recording to native code.

Run `python -m mlc.tools.bench.compile_time [PROGRAM ...]`. Programs: `mlp-training` (the training step of
bench.startup), `forward-N`, `training-N` (a pre-norm transformer of N layers, 768 wide with 12 heads, on 128 tokens,
the latter with gradient and AdamW), and the networks of `mlc bench`, `resnet50` or `resnet50-training`, the latter
with gradient and SGD. Nothing is run. Passes are measured in the processor's time, so that a busy machine measures
about the same; LLVM, which may run in several processes, by the clock. Operations are those before a pass or after it,
whichever are more; above 20 us for each a pass is marked. What `--verify-each` would add is measured beside it, and is
not part of the total.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import mlc
from mlc import nn, optim
from mlc.backends.cpu.targets import host
from mlc.backends.executable import build
from mlc.ir.core import Op
from mlc.ir.passes import Form, Pipeline, no_collection
from mlc.ir.verify import verify
from mlc.nn import functional
from mlc.passes import pipeline
from mlc.tools.bench.library import Library
from mlc.tools.bench.networks import NETWORKS

WIDTH, HEADS, TOKENS = 768, 12, 128
SLOW = 20.0
"""Microseconds per operation and pass above which a pass is marked."""
DEFAULT = ("mlp-training", "forward-6", "forward-12", "forward-24", "training-6", "training-12", "training-24")


class Block(nn.Module):
    """Attention and a feed-forward net, each behind a norm and beside a shortcut."""

    def __init__(self) -> None:
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        y = self.norm1(x)
        q, k, v = (self.heads(f(y)) for f in (self.query, self.key, self.value))
        weights = functional.softmax(q @ k.transpose(-1, -2) * (HEADS / WIDTH) ** 0.5, -1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(x.shape))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))

    def heads(self, x: Any) -> Any:
        return x.reshape((*x.shape[:2], HEADS, WIDTH // HEADS)).transpose(1, 2)


def mlp() -> tuple[Callable[..., Any], list[Any]]:
    layers = [nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)]
    x, y = np.zeros((64, 64), np.float32), np.zeros(64, np.int64)
    return training(nn.Sequential(*layers), functional.cross_entropy, x, y)


def transformer(layers: int, trains: bool) -> tuple[Callable[..., Any], list[Any]]:
    net = nn.Sequential(*(Block() for _ in range(layers)), nn.LayerNorm(WIDTH))
    x = np.zeros((1, TOKENS, WIDTH), np.float32)
    return training(net, functional.mse_loss, x, x) if trains else (lambda net, x: net(x), [net, x])


def training(net: nn.Module, loss: Callable[..., Any], x: Any, y: Any) -> tuple[Callable[..., Any], list[Any]]:
    """A step: forward, backward, update."""
    optimizer = optim.AdamW()

    def step(net: Any, state: Any, x: Any, y: Any) -> Any:
        value, grads = mlc.value_and_grad(lambda net: loss(net(x), y))(net)
        net, state = optimizer.update(grads, state, net)
        return net, state, value

    return step, [net, optimizer.init(net), x, y]


def network(name: str, trains: bool) -> tuple[Callable[..., Any], list[Any]]:
    """A network of `mlc bench`, as its rows run it: with samples of a call, or of a training step."""
    a, what = Library("mlc"), NETWORKS[name]
    net = what.module(a).train(trains)
    if not trains:
        return (lambda net, *data: net(*data)), [net, *what.data(a, what.batch)]
    optimizer = optim.SGD(lr=1e-3)

    def step(net: Any, state: Any, *data: Any) -> Any:
        value, grads = mlc.value_and_grad(lambda net: what.loss(a, net(*data)))(net)
        net, state = optimizer.update(grads, state, net)
        return net, state, value

    return step, [net, optimizer.init(net), *what.data(a, max(what.batch, 4))]


def program(name: str) -> tuple[Callable[..., Any], list[Any]]:
    if name == "mlp-training":
        return mlp()
    kind, _, rest = name.partition("-")
    if kind in NETWORKS and rest in ("", "training"):
        return network(kind, bool(rest))
    if kind in ("forward", "training") and rest.isdigit():
        return transformer(int(rest), kind == "training")
    raise SystemExit(f"there is no program {name}: mlp-training, forward-N, training-N, NETWORK or NETWORK-training "
                     f"of {', '.join(NETWORKS)}")


@dataclass
class Report:
    """Rows of (pass, operations, seconds), and the seconds of what is no pass."""

    rows: list[tuple[str, int, float]] = field(default_factory=list)
    others: dict[str, float] = field(default_factory=dict)
    verifying: float = 0.0

    @property
    def total(self) -> float:
        return sum(s for _, _, s in self.rows) + sum(self.others.values())


def measure(name: str) -> Report:
    """Compile a program once, cold."""
    report = Report()
    f, args = program(name)
    start = time.process_time()
    module = mlc.lower(f, args, level="trace").module
    report.others["recording"] = time.process_time() - start
    count = operations(module)
    form: Form | None = None
    for step in pipeline.steps("llvm", host().machine):
        before, start = count, time.process_time()
        Pipeline([step]).run(module)
        seconds = time.process_time() - start
        count = operations(module)
        report.rows.append((str(step), max(before, count), seconds))
        form, start = step.transform.gives or form, time.process_time()
        with no_collection():                            # as within a pipeline
            verify(module)
            if form is not None:
                form.check(module)
        report.verifying += time.process_time() - start
    start = time.perf_counter()
    build(module, host())
    report.others["LLVM, linking, loading"] = time.perf_counter() - start
    return report


def operations(module: Op) -> int:
    return sum(1 for _ in module.walk())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mlc.tools.bench.compile_time", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", default=DEFAULT, metavar="PROGRAM")
    parser.add_argument("--brief", action="store_true", help="only the totals")
    options = parser.parse_args(arguments)
    measure("mlp-training")                                       # what is imported on first use is no part of the cost
    for name in options.programs:
        report = measure(name)
        print(f"{name}: {report.total:.2f} s; --verify-each adds {report.verifying:.2f} s "
              f"({report.verifying / report.total:.0%})")
        if options.brief:
            continue
        for step, count, seconds in report.rows:
            each = seconds / count * 1e6
            print(f"  {step:28s} {count:8d} ops {seconds * 1e3:9.1f} ms {each:8.1f} us/op{' <' * (each > SLOW)}")
        for what, seconds in report.others.items():
            print(f"  {what:28s} {seconds * 1e3:25.1f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
