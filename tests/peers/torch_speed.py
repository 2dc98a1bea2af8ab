"""First calls and repeated calls of `torch.compile(model, backend=...)`, for `tests.peers.torch_backend speed`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class Block(nn.Module):  # type: ignore[misc]
    """A residual block of two convolutions."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer), nn.ReLU(),
            nn.Conv2d(outer, outer, 3, 1, 1, bias=False), nn.BatchNorm2d(outer))
        self.shortcut = nn.Identity() if inner == outer else nn.Conv2d(inner, outer, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet() -> nn.Module:
    widths = (64, 64, 128, 128, 256, 256, 512, 512)
    blocks = [Block(a, b, 1 + (a != b)) for a, b in zip((64, *widths), widths)]
    return nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *blocks,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


class GPT(nn.Module):  # type: ignore[misc]
    """A decoder of two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.places = nn.Embedding(256, 128), nn.Parameter(torch.zeros(64, 128))
        self.norms = nn.ModuleList(nn.LayerNorm(128) for _ in range(4))
        self.qkv = nn.ModuleList(nn.Linear(128, 384) for _ in range(2))
        self.out = nn.ModuleList(nn.Linear(128, 128) for _ in range(2))
        self.mlp = nn.ModuleList(nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128)) for _ in range(2))

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.table(words) + self.places
        for i in range(2):
            q, k, v = (t.view(*t.shape[:2], 4, 32).transpose(1, 2) for t in self.qkv[i](self.norms[2 * i](x)).chunk(
                3, -1))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out[i](y.transpose(1, 2).flatten(2))
            x = x + self.mlp[i](self.norms[2 * i + 1](x))
        out: torch.Tensor = x @ self.table.weight.t()
        return out


MODELS: dict[str, Callable[[], tuple[nn.Module, torch.Tensor]]] = {
    "one addition": lambda: (nn.Identity(), torch.randn(4)),
    "mlp": lambda: (nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)), torch.randn(32, 64)),
    "resnet18": lambda: (resnet(), torch.randn(2, 3, 64, 64)),
    "gpt": lambda: (GPT(), torch.randint(256, (2, 64)))}


def step(f: Any, x: torch.Tensor) -> None:
    f(x).square().mean().backward()


def best(call: Callable[[], Any], seconds: float = 2.0) -> float:
    """The shortest time of a call."""
    found, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        found = min(found, time.perf_counter() - start)
    return found


def measure(backends: tuple[str, ...] = ("eager", "mlc", "inductor")) -> None:
    """Print first and repeated calls, forward and training steps, for each model and backend."""
    print(f"{'':14}{'':10} {'first forward':>14} {'first step':>14} {'forward':>14} {'step':>14}")
    for name, make in MODELS.items():
        for backend in backends:
            torch._dynamo.reset()
            torch.manual_seed(0)
            model, x = make()
            model.eval()
            called: Any = (lambda y: y + 1) if name == "one addition" else model
            f: Any = called if backend == "eager" else torch.compile(called, backend=backend)
            start = time.perf_counter()
            with torch.no_grad():
                f(x)
                first = time.perf_counter() - start
                again = best(lambda: f(x))  # noqa: B023
            first_step = step_again = 0.0
            if name != "one addition":
                model.train()
                start = time.perf_counter()
                step(f, x)
                first_step = time.perf_counter() - start
                step_again = best(lambda: step(f, x))  # noqa: B023
            print(f"{name:14}{backend:10} {first:12.2f} s {first_step:12.2f} s {again * 1e6:11.0f} us "
                  f"{step_again * 1e6:11.0f} us", flush=True)
