"""The operations of the kernel library, as programs that call them.

A kernel serves all sizes, but depends on the types, the ranks, the axes of size 1, and the arguments that are no
tensors. So the programs have one size for each axis, and a batch of one image or sequence besides one of several. What
a kernel cannot be symbolic in (the features of a layer norm, the width of a head) is there in the usual numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mlc
from mlc import nn
from mlc.tools.kernel_library.elementwise import elementwise

F = nn.functional
WIDTHS = (64, 128, 192, 256, 384, 512, 768, 1024)
HEADS = (16, 32, 64, 128)


def forward_and_backward(f: Callable[..., Any], *operands: Any) -> None:
    """Run a function without history, and with that of its float operands."""
    with mlc.no_grad():
        f(*operands)
    leaves = [x.detach().requires_grad_() if isinstance(x, mlc.Tensor) and x.is_floating_point() else x
              for x in operands]
    out = f(*leaves)
    out.backward(mlc.ones_like(out))


def batches(*shape: int) -> Iterator[Any]:
    """Tensors of a batch of several and of one."""
    for n in (3, 1):
        yield mlc.ones(n, *shape)


def linear() -> None:
    for shape in ((5,), (7, 5)):
        for x in batches(*shape):
            for bias in (mlc.ones(6), None):
                forward_and_backward(lambda x, w, bias=bias: F.linear(x, w, bias), x, mlc.ones(6, 5))
    for a, b in (((4, 5), (5, 6)), ((3, 4, 5), (3, 5, 6)), ((2, 3, 4, 5), (2, 3, 5, 6)), ((3, 4, 5), (5, 6))):
        forward_and_backward(mlc.matmul, mlc.ones(a), mlc.ones(b))


def convolutions() -> None:
    """Without their gradients, whose kernels are for one size."""
    kinds = [(1, 1, 0), (1, 2, 0), (3, 1, 1), (3, 2, 1), (5, 1, 2), (5, 1, 0), (7, 2, 3), (3, 1, 0)]
    with mlc.no_grad():
        for x in batches(3, 12, 13):
            for size, stride, padding in kinds:
                for bias in (mlc.ones(6), None)[size in (5,):]:
                    F.conv2d(x, mlc.ones(6, 3, size, size), bias, stride, padding)
            for patch in (4, 8, 16, 32):
                F.conv2d(x.expand(-1, -1, 12, 13) if patch == 4 else mlc.ones(x.shape[0], 3, patch, 2 * patch),
                         mlc.ones(6, 3, patch, patch), mlc.ones(6), patch)


def images() -> None:
    for x in batches(5, 12, 14):
        with mlc.no_grad():
            F.max_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2)
        forward_and_backward(lambda x: F.adaptive_avg_pool2d(x, 1), x)
        for module in (nn.BatchNorm2d(5), nn.BatchNorm2d(5, affine=False)):
            with mlc.no_grad():
                module.eval()(x)
            forward_and_backward(module.train(), x)


def transformer() -> None:
    for width in WIDTHS:
        norm = nn.LayerNorm(width)
        for x in (*batches(7, width), mlc.ones(3, width)):
            forward_and_backward(norm, x)
    for width in HEADS:
        for x in batches(5, 7, width):
            for causal in (False, True):
                forward_and_backward(
                    lambda q, k, v, causal=causal: F.scaled_dot_product_attention(q, k, v, is_causal=causal), x, x, x)
    table = mlc.ones(9, 5)
    for index in (mlc.zeros(6, dtype=mlc.int64), mlc.zeros(3, 6, dtype=mlc.int64), mlc.zeros(1, 6, dtype=mlc.int64)):
        forward_and_backward(lambda table, index=index: F.embedding(index, table), table)
    for x in batches(7, 5):
        forward_and_backward(mlc.add, x, mlc.ones(1, 7, 5))
        forward_and_backward(mlc.add, x, mlc.ones(7, 5))
        forward_and_backward(lambda x: mlc.cat([mlc.ones(x.shape[0], 1, 5), x], 1), x)
        for axis in (1, 2):
            forward_and_backward(lambda x, axis=axis: x.mean(axis), x)


def losses() -> None:
    labels = mlc.zeros(4, dtype=mlc.int64)
    for scores in (mlc.ones(4, 5), mlc.ones(1, 5)):
        forward_and_backward(lambda x: F.cross_entropy(x, labels[:x.shape[0]]), scores)
        forward_and_backward(lambda x: F.softmax(x, -1), scores)
        forward_and_backward(lambda x: F.log_softmax(x, -1), scores)
        with mlc.no_grad():
            scores.argmax(1), scores.argmax(-1), scores.max(1)
    for x in (mlc.ones(4), mlc.ones(4, 5), mlc.ones(4, 5, 6)):
        for loss in (F.mse_loss, F.l1_loss, F.binary_cross_entropy_with_logits):
            forward_and_backward(lambda x, loss=loss: loss(x, mlc.ones_like(x)), x)
        forward_and_backward(lambda x: x.sum(), x)
        forward_and_backward(lambda x: x.mean(), x)


PROGRAMS: dict[str, Callable[[], None]] = {
    "elementwise": elementwise, "linear": linear, "convolutions": convolutions, "images": images,
    "transformer": transformer, "losses": losses}
