"""Training steps in PyTorch's style: the same lines under PyTorch, eagerly, and under `mlc.compile`.

    python -m mlc.tools.bench.training [--only NAME,...] [--steps N] [--rounds R] [--inductor]

All models begin with the same weights and see the same data. The table says how far the losses of 50 steps are apart,
the largest relative difference, and how long a step takes; of several rounds, which alternate between the ways, the
best one counts. With --inductor, torch.compile too, which needs a C++ compiler.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlc.tools.bench.library import Library

Step = Callable[[], Any]


def mlp(a: Library) -> tuple[Callable[..., Any], Sequence[Any]]:
    nn = a.nn
    model = a.same(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)))
    step = a.training(lambda x, y: nn.functional.cross_entropy(model(x), y),
                      a.optim.Adam(model.parameters(), lr=1e-3))
    return step, (a.floats(64, 64), a.integers(10, 64))


def lenet(a: Library) -> tuple[Callable[..., Any], Sequence[Any]]:
    nn = a.nn
    model = a.same(nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)))
    step = a.training(lambda x, y: nn.functional.cross_entropy(model(x), y),
                      a.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9))
    return step, (a.floats(32, 1, 28, 28), a.integers(10, 32))


def batch_norm(a: Library) -> tuple[Callable[..., Any], Sequence[Any]]:
    nn = a.nn
    model = a.same(nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1),
        nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)))
    step = a.training(lambda x, y: nn.functional.cross_entropy(model(x), y),
                      a.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, weight_decay=1e-4))
    return step, (a.floats(16, 3, 16, 16), a.integers(10, 16))


def recurrent(kind: str) -> Callable[[Library], tuple[Callable[..., Any], Sequence[Any]]]:
    def make(a: Library) -> tuple[Callable[..., Any], Sequence[Any]]:
        nn = a.nn

        class Tagger(nn.Module):  # type: ignore[name-defined,misc]
            def __init__(self) -> None:
                super().__init__()
                self.embedding, self.cells = nn.Embedding(50, 32), getattr(nn, kind)(32, 64, batch_first=True)
                self.out = nn.Linear(64, 50)

            def forward(self, x: Any) -> Any:
                return self.out(self.cells(self.embedding(x))[0])

        model = a.same(Tagger())
        step = a.training(lambda x, y: nn.functional.cross_entropy(model(x).reshape(-1, 50), y.reshape(-1)),
                          a.optim.Adam(model.parameters(), lr=1e-3))
        return step, (a.integers(50, 16, 24), a.integers(50, 16, 24))
    return make


def gpt(a: Library) -> tuple[Callable[..., Any], Sequence[Any]]:
    nn = a.nn
    width, heads, length, words = 64, 4, 32, 65

    class Block(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            b, t, c = x.shape
            q, k, v = (p.reshape(b, t, heads, c // heads).transpose(1, 2) for p in self.qkv(self.first(x)).split(c, 2))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
            return x + self.mlp(self.second(x))

    class GPT(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(3)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

        def forward(self, x: Any) -> Any:
            at = a.lib.arange(length)
            return self.head(self.norm(self.blocks(self.words(x) + self.places(at))))

    model = a.same(GPT())
    step = a.training(lambda x, y: nn.functional.cross_entropy(model(x).reshape(-1, words), y.reshape(-1)),
                      a.optim.AdamW(model.parameters(), lr=1e-3))
    return step, (a.integers(words, 8, length), a.integers(words, 8, length))


def vae(a: Library) -> tuple[Callable[..., Any], Sequence[Any]]:
    nn = a.nn
    coder, decoder = a.same(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))), a.same(
        nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64)))

    def loss(x: Any, noise: Any) -> Any:
        mean, spread = coder(x).chunk(2, 1)
        made = decoder(mean + noise * (0.5 * spread).exp())
        return nn.functional.mse_loss(made, x) - 0.001 * (1 + spread - mean**2 - spread.exp()).sum(1).mean()

    params = [*coder.parameters(), *decoder.parameters()]
    return a.training(loss, a.optim.Adam(params, lr=1e-3)), (a.floats(32, 64), a.floats(32, 8))


def deep(a: Library) -> tuple[Callable[..., Any], Sequence[Any]]:
    """200 parameters with next to no arithmetic: the cost of a step itself."""
    nn = a.nn
    model = a.same(nn.Sequential(*(nn.Linear(4, 4) for _ in range(100))))
    step = a.training(lambda x: (model(x) ** 2).sum(), a.optim.SGD(model.parameters(), lr=1e-3))
    return step, (a.floats(2, 4),)


MODELS: dict[str, Callable[[Library], tuple[Callable[..., Any], Sequence[Any]]]] = {
    "mlp": mlp, "lenet": lenet, "batch_norm": batch_norm, "lstm": recurrent("LSTM"), "gru": recurrent("GRU"),
    "gpt": gpt, "vae": vae, "200 parameters": deep}


def ways_of(make: Callable[[Library], tuple[Callable[..., Any], Sequence[Any]]], inductor: bool) -> dict[str, Step]:
    """The step of a model in each way, from the same beginning."""
    import torch

    import mlc
    found: dict[str, Step] = {}
    ways: dict[str, tuple[str, Callable[[Any], Any]]] = {
        "torch": ("torch", lambda f: f), "eager": ("mlc", lambda f: f), "compiled": ("mlc", mlc.compile)}
    if inductor:
        ways["inductor"] = "torch", torch.compile
    for way, (library, compile) in ways.items():
        step, data = make(Library(library))
        step = compile(step)
        found[way] = lambda step=step, data=data: step(*data)  # type: ignore[misc]
    return found


def best(step: Step, count: int) -> float:
    """Seconds of a step, the mean of several."""
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


def main(argv: Sequence[str] | None = None) -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(prog="python -m mlc.tools.bench.training", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="names of models, separated by commas")
    parser.add_argument("--steps", type=int, default=50, help="steps whose losses are compared")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--inductor", action="store_true", help="torch.compile, too")
    options = parser.parse_args(argv)
    names = options.only.split(",") if options.only else [*MODELS]
    if unknown := [n for n in names if n not in MODELS]:
        parser.error(f"there is no model {unknown[0]!r}; there are {', '.join(MODELS)}")
    import torch
    torch.set_num_threads(2)
    print(f"{'':16}{'losses apart':>24}{'us per step':>44}{'torch / mlc':>22}\n{'':16}{'eager':>12}{'compiled':>12}"
          f"{'torch':>12}{'eager':>12}{'compiled':>12}{'inductor':>8}{'eager':>11}{'compiled':>11}")
    for name in names:
        ways = ways_of(MODELS[name], options.inductor)
        losses = {way: np.array([float(step().detach()) for _ in range(options.steps)]) for way, step in ways.items()}
        apart = {way: np.max(np.abs(x - losses["torch"]) / np.abs(losses["torch"])) for way, x in losses.items()}
        count = max(3, int(0.15 / best(ways["torch"], 3)))
        times = {way: min(best(step, count) for _ in range(options.rounds)) * 1e6 for way, step in ways.items()}
        inductor = f"{times['inductor']:8.0f}" if options.inductor else f"{'-':>8}"
        print(f"{name:16}{apart['eager']:12.1e}{apart['compiled']:12.1e}{times['torch']:12.0f}{times['eager']:12.0f}"
              f"{times['compiled']:12.0f}{inductor}{times['torch'] / times['eager']:11.2f}"
              f"{times['torch'] / times['compiled']:11.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
