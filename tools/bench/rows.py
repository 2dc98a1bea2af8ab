"""The rows of `mlc bench`: networks, and single operations."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from mlc.tools.bench.networks import NETWORKS
from mlc.tools.bench.peers import Peer, Prepared


@dataclass(frozen=True)
class Row:
    """Work that mlc and its peers do.

    prepare  a peer's call for so many threads; None if the peer does not do this
    flops    floating-point operations of a call; those of a network are counted by PyTorch
    bytes    bytes that a call has to read and write
    apart    how far results may be apart, relative to the largest element
    number   the kind of number that is multiplied, as in mlc/roofline.py
    """

    name: str
    group: str
    prepare: Callable[[Peer, int], Prepared | None]
    flops: float = 0.0
    bytes: float = 0.0
    apart: float = 1e-3
    number: str = "f32"


RESNET50 = (                     # channels in, size, channels out, kernel, stride: each shape of the network once
    (3, 224, 64, 7, 2), (64, 56, 64, 1, 1), (64, 56, 64, 3, 1), (64, 56, 256, 1, 1), (256, 56, 64, 1, 1),
    (256, 56, 128, 1, 1), (128, 56, 128, 3, 2), (128, 28, 512, 1, 1), (256, 56, 512, 1, 2), (512, 28, 128, 1, 1),
    (128, 28, 128, 3, 1), (512, 28, 256, 1, 1), (256, 28, 256, 3, 2), (256, 14, 1024, 1, 1), (512, 28, 1024, 1, 2),
    (1024, 14, 256, 1, 1), (256, 14, 256, 3, 1), (1024, 14, 512, 1, 1), (512, 14, 512, 3, 2), (512, 7, 2048, 1, 1),
    (1024, 14, 2048, 1, 2), (2048, 7, 512, 1, 1), (512, 7, 512, 3, 1),
)
ODD_SHAPES, LARGEST_ODD = 37, 600


def _networks() -> Iterator[Row]:
    for name, network in NETWORKS.items():
        for suffix, batch in (("", network.batch), (" x16", 16)):
            if batch != network.batch or not suffix:
                yield Row(name + suffix, "models", lambda peer, threads, n=network, b=batch:  # type: ignore[misc]
                          peer.forward(n, b, threads))
        yield Row(f"{name} bf16", "models of bf16", lambda peer, threads, n=network:  # type: ignore[misc]
                  peer.forward(n, n.batch, threads, "bf16"), apart=0.1, number="bf16")
        yield Row(f"{name} int8", "models of int8", lambda peer, threads, n=network:  # type: ignore[misc]
                  peer.forward(n, n.batch, threads, "int8"), apart=0.4, number="int8")
        yield Row(f"{name} training", "training", lambda peer, threads, n=network:  # type: ignore[misc]
                  peer.step(n, max(n.batch, 4), threads), apart=1e-2)


def operation(name: str, group: str, f: Callable[..., Any], shapes: Sequence[tuple[int, ...]], flops: float = 0.0,
              moved: float = 0.0, number: str = "f32") -> Row:
    """A row of one function of a library and arrays of these shapes, whose elements are normally distributed; of f32 or
    bf16."""
    def prepare(peer: Peer, threads: int) -> Prepared | None:
        random = np.random.default_rng(0)
        arrays = [random.standard_normal(s, np.float32) for s in shapes]
        if number == "bf16":
            arrays = [x.astype(ml_dtypes.bfloat16) for x in arrays]
        return peer.function(f, arrays, threads)
    return Row(name, group, prepare, flops, moved, 1e-3 if number == "f32" else 1e-2, number)


def _products() -> Iterator[Row]:
    def matmul(a: Any, x: Any, y: Any) -> Any:
        return x @ y

    for n in (256, 512, 1024, 2048, 4096):
        yield operation(f"matmul {n}", "products", matmul, ((n, n), (n, n)), 2.0 * n**3)
    n = 1024
    yield operation("matmul 1024, x @ w.T", "products", lambda a, x, w: x @ w.T, ((n, n), (n, n)), 2.0 * n**3)
    yield operation("matmul 1024, x.T @ g", "products", lambda a, x, g: x.T @ g, ((n, n), (n, n)), 2.0 * n**3)
    yield operation("matmul 12x128x64x128", "products", matmul, ((12, 128, 64), (12, 64, 128)),
                    2.0 * 12 * 128 * 64 * 128)
    yield operation("matmul 1x4096x4096", "products", matmul, ((1, 4096), (4096, 4096)), 2.0 * 4096**2, 4.0 * 4096**2)
    yield operation("linear 512x768x3072, relu", "products",
                    lambda a, x, w, b: a.nn.functional.relu(a.nn.functional.linear(x, w, b)),
                    ((512, 768), (3072, 768), (3072,)), 2.0 * 512 * 768 * 3072)
    for n in (256, 512, 1024, 2048):
        yield operation(f"matmul bf16 {n}", "products of bf16", matmul, ((n, n), (n, n)), 2.0 * n**3, number="bf16")
    yield operation("linear bf16 512x768x3072, relu", "products of bf16",
                    lambda a, x, w, b: a.nn.functional.relu(a.nn.functional.linear(x, w, b)),
                    ((512, 768), (3072, 768), (3072,)), 2.0 * 512 * 768 * 3072, number="bf16")
    draw = random.Random(0)
    for _ in range(ODD_SHAPES):
        m, k, n = (draw.randint(1, LARGEST_ODD) for _ in range(3))
        yield operation(f"matmul {m}x{k}x{n}", "shapes", matmul, ((m, k), (k, n)), 2.0 * m * k * n)


def _convolutions(batch: int = 8) -> Iterator[Row]:
    for channels, size, out, kernel, stride in RESNET50:
        side = (size + 2 * (kernel // 2) - kernel) // stride + 1
        shapes = (batch, channels, size, size), (out, channels, kernel, kernel)
        flops = 2.0 * batch * out * side**2 * channels * kernel**2

        def forward(a: Any, x: Any, w: Any, stride: int = stride, pad: int = kernel // 2) -> Any:
            return a.nn.functional.conv2d(x, w, stride=stride, padding=pad)

        def backward(a: Any, x: Any, w: Any, g: Any, f: Any = forward) -> Any:
            x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
            return a.lib.autograd.grad(f(a, x, w), (x, w), g)

        name = f"{channels}x{size} -> {out}, {kernel}x{kernel}/{stride}"
        yield operation(f"conv {name}", "convolutions", forward, shapes, flops)
        yield operation(f"conv backward {name}", "convolutions", backward, (*shapes, (batch, out, side, side)),
                        2.0 * flops)


def _attention() -> Iterator[Row]:
    for length in (128, 1024, 4096):
        shape = (1, 12, length, 64)
        for causal in (False, True):
            yield operation(f"attention {length}{', causal' * causal}", "attention",
                            lambda a, q, k, v, causal=causal: a.nn.functional.scaled_dot_product_attention(
                                q, k, v, is_causal=causal), (shape,) * 3, 4.0 * 12 * length**2 * 64 / (1 + causal))


def _along_rows(r: int = 8192, n: int = 1024) -> Iterator[Row]:
    x = (r, n)
    moved = 8.0 * r * n
    yield operation(f"softmax {r}x{n}", "rows", lambda a, x: a.nn.functional.softmax(x, 1), (x,), moved=moved)
    yield operation(f"layer norm {r}x{n}", "rows", lambda a, x, w, b: a.nn.functional.layer_norm(x, (n,), w, b),
                    (x, (n,), (n,)), moved=moved)
    yield operation(f"gelu {r}x{n}", "rows", lambda a, x: a.nn.functional.gelu(x), (x,), moved=moved)
    yield operation(f"sum {r}x{n}, dim 0", "rows", lambda a, x: x.sum(0), (x,), moved=moved / 2)
    yield operation(f"cumsum {r}x{n}", "rows", lambda a, x: x.cumsum(1), (x,), moved=moved)
    yield operation(f"sort {r}x{n}", "rows", lambda a, x: x.sort(1)[0], (x,), moved=moved)
    yield operation(f"transpose {r}x{n}", "rows", lambda a, x: x.t().contiguous(), (x,), moved=moved)


def all_rows() -> dict[str, Row]:
    """The rows by name, in the order of the table."""
    found = [*_networks(), *_products(), *_convolutions(), *_attention(), *_along_rows()]
    return {row.name: row for row in found}
