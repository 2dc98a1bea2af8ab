"""Rates of kernels on a GPU for tools/gpu_check.py: those of mlc, and of PyTorch if it supports the device."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mlc
from mlc.ir.types import bf16, to_numpy

Array = np.ndarray[Any, Any]
BF16 = to_numpy(bf16)
ROUNDED = {"bfloat16": 2.0 ** -7, "float16": 2.0 ** -10, "tf32": 2.0 ** -8}
"""Tolerance relative to the largest number: twice the rounding error of the result or, for tf32, of the factors."""


@dataclass(frozen=True)
class Speed:
    """One measurement: `make(n)` gives arrays; `count(n)` bytes moved, or operations of a product; `close`: how far
    off a result may be, relative to the largest; `precision` of products."""

    name: str
    sizes: tuple[int, ...]
    make: Callable[[int, np.random.Generator], list[Array]]
    ours: Callable[..., Any]
    theirs: Callable[[Any], Callable[..., Any]]
    count: Callable[[int], float]
    unit: str
    close: float = 1e-4
    precision: str | None = None


def _square(n: int, rng: np.random.Generator) -> list[Array]:
    return [rng.standard_normal((n, n), np.float32)]


def _two(n: int, rng: np.random.Generator) -> list[Array]:
    return [rng.standard_normal((n, n), np.float32) for _ in range(2)]


def _two_narrow(n: int, rng: np.random.Generator) -> list[Array]:
    return [x.astype(BF16) for x in _two(n, rng)]


def _with_scale(n: int, rng: np.random.Generator) -> list[Array]:
    return [*_square(n, rng), *(rng.standard_normal(n, np.float32) for _ in range(2))]


HEADS, FEATURES = 16, 128
"""Of attention."""


def _three_narrow(n: int, rng: np.random.Generator) -> list[Array]:
    return [rng.standard_normal((1, HEADS, n, FEATURES), np.float32).astype(BF16) for _ in range(3)]


SPEEDS = (
    Speed("copy", (4096, 16384), _square, lambda x: x * 1.0, lambda t: lambda x: x.clone(), lambda n: 8.0 * n * n,
          "GB/s"),
    Speed("elementwise", (4096, 16384), _two, lambda x, y: mlc.tanh(x * y + x) * 0.5,
          lambda t: lambda x, y: t.tanh(x * y + x) * 0.5, lambda n: 12.0 * n * n, "GB/s"),
    Speed("softmax", (1024, 4096, 16384), _square, lambda x: mlc.softmax(x, 1), lambda t: lambda x: t.softmax(x, 1),
          lambda n: 8.0 * n * n, "GB/s"),
    Speed("layer norm", (1024, 4096, 16384), _with_scale,
          lambda x, w, b: mlc.layer_norm(x, (x.shape[1],), w, b),
          lambda t: lambda x, w, b: t.nn.functional.layer_norm(x, (x.shape[1],), w, b), lambda n: 8.0 * n * n, "GB/s"),
    Speed("matmul f32", (1024, 2048, 4096, 8192), _two, lambda x, y: x @ y, lambda t: lambda x, y: x @ y,
          lambda n: 2.0 * n ** 3, "GFLOP/s"),
    Speed("matmul bf16", (1024, 2048, 4096, 8192), _two_narrow, lambda x, y: x @ y, lambda t: lambda x, y: x @ y,
          lambda n: 2.0 * n ** 3, "GFLOP/s", ROUNDED["bfloat16"]),
    Speed("matmul tf32", (1024, 2048, 4096, 8192), _two, lambda x, y: x @ y, lambda t: lambda x, y: x @ y,
          lambda n: 2.0 * n ** 3, "GFLOP/s", ROUNDED["tf32"], "tf32"),
    Speed("attention bf16", (2048, 8192), _three_narrow, mlc.nn.functional.scaled_dot_product_attention,
          lambda t: t.nn.functional.scaled_dot_product_attention, lambda n: 4.0 * HEADS * FEATURES * n * n, "GFLOP/s",
          2 * ROUNDED["bfloat16"]),
    Speed("causal attention bf16", (2048, 8192), _three_narrow,
          lambda q, k, v: mlc.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True),
          lambda t: lambda q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True),
          lambda n: 2.0 * HEADS * FEATURES * n * n, "GFLOP/s", 2 * ROUNDED["bfloat16"]),
)


def torch_with_device() -> Any:
    """PyTorch, if it sees a device."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    return torch


def seconds_of(call: Callable[[], Any], wait: Callable[[], None], least: float, rounds: int = 3) -> float:
    """Seconds of one call, when many are under way: the best of some rounds of at least `least` seconds."""
    call()
    wait()
    count, best = 1, float("inf")
    while True:
        started = time.perf_counter()
        for _ in range(count):
            call()
        wait()
        taken = time.perf_counter() - started
        if taken >= least:
            break
        count = max(2 * count, int(1.2 * count * least / max(taken, 1e-9)))
    for _ in range(rounds):
        started = time.perf_counter()
        for _ in range(count):
            call()
        wait()
        best = min(best, (time.perf_counter() - started) / count)
    return best


def measured(what: Speed, n: int, rng: np.random.Generator, torch: Any, small: bool) -> tuple[float, dict[str, float]]:
    """The error of a result, and the numbers of the measurement."""
    arrays = what.make(n, rng)
    least, rounds = (0.001, 1) if small else (0.1, 3)
    f = mlc.compile(what.ours, target="cuda", graph=True, matmul_precision=what.precision)
    ours = [mlc.tensor(a).cuda() for a in arrays]
    found = f(*ours)
    error = far(what, arrays, found)
    taken = seconds_of(lambda: f(*ours), mlc.cuda.synchronize, least, rounds)
    numbers = {"seconds": taken, what.unit: what.count(n) / taken / 1e9, "error": error}
    if torch is not None:
        theirs = [(torch.from_numpy(a.view(np.int16)).view(torch.bfloat16) if a.dtype == BF16 else
                   torch.from_numpy(a)).cuda() for a in arrays]
        run = what.theirs(torch)
        torch.backends.cuda.matmul.allow_tf32 = what.precision == "tf32"
        numbers["torch_seconds"] = seconds_of(lambda: run(*theirs), torch.cuda.synchronize, least, rounds)
        numbers["ratio"] = numbers["torch_seconds"] / taken
    return error, numbers


def attention_in_f64(q: Array, k: Array, v: Array, causal: bool) -> Array:
    """The result of attention, by its definition."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:]) == 1, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    out: Array = weights @ v / weights.sum(-1, keepdims=True)
    return out


def far(what: Speed, arrays: Sequence[Array], found: mlc.Tensor) -> float:
    """Error of some rows of a result, of one head of attention, against float64, relative to the largest number."""
    if "attention" in what.name:
        q, k, v = (a[0, 3] for a in arrays)
        wanted = attention_in_f64(q, k, v, what.name.startswith("causal"))
        return float(np.abs(found.numpy()[0, 3].astype(np.float64) - wanted).max() / np.abs(wanted).max())
    rows = sorted({0, len(arrays[0]) // 2, len(arrays[0]) - 1})
    x, *rest = (a.astype(np.float64) for a in (arrays[0][rows], *arrays[1:]))
    if what.name == "copy":
        wanted = x
    elif what.name == "elementwise":
        wanted = np.tanh(x * rest[0][rows] + x) * 0.5
    elif what.name == "softmax":
        e = np.exp(x - x.max(1, keepdims=True))
        wanted = e / e.sum(1, keepdims=True)
    elif what.name == "layer norm":
        wanted = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * rest[0] + rest[1]
    else:
        wanted = x @ rest[0]
    return float(np.abs(found.numpy()[rows].astype(np.float64) - wanted).max() / np.abs(wanted).max())
