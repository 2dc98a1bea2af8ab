"""Products, convolutions, softmax, layer norm and a training step beside PyTorch's eager mode, in one run.

    python -m mlc.tools.bench.kernels [--threads 2] [--only conv] [--batch 8]

Both run on the same number of threads, by turns, so that a busy machine slows both; a time is the least of several
rounds. The ratio is PyTorch's time over ours; the first line says how fast one thread copies memory.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlc
from mlc import nn

Run = Callable[[], Any]

RESNET50 = (                     # channels in, size, channels out, kernel, stride: each shape of the network once
    (3, 224, 64, 7, 2), (64, 56, 64, 1, 1), (64, 56, 64, 3, 1), (64, 56, 256, 1, 1), (256, 56, 64, 1, 1),
    (256, 56, 128, 1, 1), (128, 56, 128, 3, 2), (128, 28, 512, 1, 1), (256, 56, 512, 1, 2), (512, 28, 128, 1, 1),
    (128, 28, 128, 3, 1), (512, 28, 256, 1, 1), (256, 28, 256, 3, 2), (256, 14, 1024, 1, 1), (512, 28, 1024, 1, 2),
    (1024, 14, 256, 1, 1), (256, 14, 256, 3, 1), (1024, 14, 512, 1, 1), (512, 14, 512, 3, 2), (512, 7, 2048, 1, 1),
    (1024, 14, 2048, 1, 2), (2048, 7, 512, 1, 1), (512, 7, 512, 3, 1),
)


@dataclass(frozen=True)
class Row:
    """One comparison: `ours` and `theirs` do the same work, of so many floating-point operations or bytes moved."""

    name: str
    ours: Run
    theirs: Run
    flops: float = 0.0
    bytes: float = 0.0


def times(runs: Sequence[Run], rounds: int = 7, least: float = 0.02) -> list[float]:
    """The seconds of each run, the least over rounds in which they take turns; short runs are repeated in a round."""
    counts = []
    for run in runs:
        run()
        start = time.perf_counter()
        run()
        counts.append(max(1, math.ceil(least / max(time.perf_counter() - start, 1e-7))))
    best = [math.inf] * len(runs)
    for _ in range(rounds):
        for i, (run, count) in enumerate(zip(runs, counts)):
            start = time.perf_counter()
            for _ in range(count):
                run()
            best[i] = min(best[i], (time.perf_counter() - start) / count)
    return best


def _random(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _call(f: Any, arrays: Sequence[Any]) -> Run:
    ours = mlc.compile(f)
    tensors = [mlc.Tensor(a) for a in arrays]
    return lambda: ours(*tensors)


def _row(name: str, ours: Any, theirs: Any, arrays: Sequence[Any], flops: float = 0.0, moved: float = 0.0) -> Row:
    import torch
    others = [torch.from_numpy(a) for a in arrays]

    def their_run() -> Any:
        with torch.no_grad():
            return theirs(*others)

    return Row(name, _call(ours, arrays), their_run, flops, moved)


def products() -> Iterator[Row]:
    import torch
    for n in (256, 1024, 2048):
        yield _row(f"matmul {n}", lambda a, b: a @ b, torch.matmul, (_random(n, n), _random(n, n)), 2.0 * n**3)
    n = 1024
    yield _row("matmul 1024, x @ w.T", lambda a, b: a @ b.T, lambda a, b: a @ b.T, (_random(n, n), _random(n, n)),
               2.0 * n**3)
    yield _row("matmul 1024, x.T @ g", lambda a, b: a.T @ b, lambda a, b: a.T @ b, (_random(n, n), _random(n, n)),
               2.0 * n**3)
    yield _row("matmul 12 x 128 x 64 x 128", lambda a, b: a @ b, torch.matmul,
               (_random(12, 128, 64), _random(12, 64, 128)), 2.0 * 12 * 128 * 64 * 128)
    yield _row("linear 512 x 768 x 3072", lambda x, w, b: mlc.relu(x @ w.T + b),
               lambda x, w, b: torch.relu(torch.nn.functional.linear(x, w, b)),
               (_random(512, 768), _random(3072, 768), _random(3072)), 2.0 * 512 * 768 * 3072)


def convolutions(batch: int) -> Iterator[Row]:
    import torch
    for channels, size, out, kernel, stride in RESNET50:
        pad = kernel // 2
        x, w = _random(batch, channels, size, size), _random(out, channels, kernel, kernel)
        flops = 2.0 * batch * out * ((size + 2 * pad - kernel) // stride + 1) ** 2 * channels * kernel**2

        def ours(x: Any, w: Any, stride: int = stride, pad: int = pad) -> Any:
            return nn.functional.conv2d(x, w, stride=stride, padding=pad)

        def theirs(x: Any, w: Any, stride: int = stride, pad: int = pad) -> Any:
            return torch.nn.functional.conv2d(x, w, stride=stride, padding=pad)

        yield _row(f"conv {channels}x{size} -> {out}, {kernel}x{kernel} / {stride}", ours, theirs, (x, w), flops)


def rows(r: int = 8192, n: int = 1024) -> Iterator[Row]:
    import torch
    x, w, b = _random(r, n), _random(n), _random(n)
    yield _row(f"softmax {r}x{n}", lambda x: mlc.softmax(x, dim=1), lambda x: torch.softmax(x, 1), (x,),
               moved=8.0 * r * n)
    yield _row(f"layer norm {r}x{n}", lambda x, w, b: mlc.layer_norm(x, (n,), w, b),
               lambda x, w, b: torch.nn.functional.layer_norm(x, (n,), w, b), (x, w, b), moved=8.0 * r * n)


def training(batch: int = 256, sizes: Sequence[int] = (784, 512, 512, 10)) -> Iterator[Row]:
    """One step of AdamW on a multilayer perceptron."""
    import torch
    x, y = _random(batch, sizes[0]), np.random.default_rng(1).integers(0, sizes[-1], batch)
    layers: list[Any] = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    optimizer = mlc.optim.AdamW(lr=1e-3)

    def loss(model: Any, x: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(model(x), y)

    def step(model: Any, state: Any, x: Any, y: Any) -> Any:
        value, gradients = mlc.value_and_grad(loss)(model, x, y)
        model, state = optimizer.update(gradients, state, model)
        return model, state, value

    compiled = mlc.compile(step, donate=("model", "state"))
    held = [model, optimizer.init(model)]

    def ours() -> None:
        held[0], held[1], value = compiled(held[0], held[1], x, y)
        value.item()

    stack: list[Any] = []
    for a, b in zip(sizes, sizes[1:]):
        stack += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    network = torch.nn.Sequential(*stack[:-1])
    update = torch.optim.AdamW(network.parameters(), lr=1e-3)
    tx, ty = torch.from_numpy(x), torch.from_numpy(y)

    def theirs() -> None:
        update.zero_grad()
        value = torch.nn.functional.cross_entropy(network(tx), ty)
        value.backward()
        update.step()
        value.item()

    weights = sum(a * b for a, b in zip(sizes, sizes[1:]))
    yield Row(f"MLP {'-'.join(map(str, sizes))} AdamW step, batch {batch}", ours, theirs, 6.0 * batch * weights)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mlc.tools.bench.kernels", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=8, help="images of a convolution")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args(arguments)
    import torch
    torch.set_num_threads(options.threads)
    mlc.set_num_threads(options.threads)
    source, target = _random(1 << 24), np.empty(1 << 24, np.float32)
    copied = 2.0 * source.nbytes / times([lambda: np.copyto(target, source)])[0]
    print(f"{options.threads} threads; one thread copies {copied / 1e9:.1f} GB/s (read and written)")
    print(f"{'':44s} {'mlc ms':>9s} {'torch ms':>9s} {'ratio':>6s}")
    ratios: list[float] = []
    for group in (products(), convolutions(options.batch), rows(), training()):
        for row in group:
            if options.only not in row.name:
                continue
            ours, theirs = times([row.ours, row.theirs])
            speed = f"{row.flops / ours / 1e9:7.1f} GF/s" if row.flops else f"{row.bytes / ours / 1e9:7.1f} GB/s"
            print(f"{row.name:44s} {ours * 1e3:9.3f} {theirs * 1e3:9.3f} {theirs / ours:6.2f} {speed}", flush=True)
            if row.name.startswith("conv"):
                ratios.append(theirs / ours)
    if ratios:
        print(f"convolutions, geometric mean of the ratios: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
