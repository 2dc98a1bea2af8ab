"""Products of matrices, convolutions and attention, with tails of vectors and blocks, and their derivatives."""

import ml_dtypes
import numpy as np

import mlc
from mlc.nn import functional as F


def products(a, b):
    return a @ b, (a @ b).T, b.T @ a.T, mlc.einsum("ik,kj->ji", a, b), a.T[::-1].T @ b[::-1]


def layers(x, w, q):
    y = F.conv2d(x, w, padding=1, stride=2, dilation=2)
    return (y * mlc.sin(y)).sum() + (F.scaled_dot_product_attention(q, q * 0.5, q + 1) ** 2).sum() + F.max_pool2d(
        x, 2).sum()


rng = np.random.default_rng(2)


def random(*shape):
    return rng.standard_normal(shape).astype(np.float32)


if __name__ == "__main__":
    mlc.compile(products)(random(7, 19), random(19, 21))
    mlc.compile(lambda a, b: a @ b)(random(3, 300), random(300, 5))
    mlc.compile(lambda a, b: a.flip(0).T @ b)(random(5, 30), random(5, 100))     # transposed, so it is packed in blocks
    mlc.compile(lambda a, b: (a * 2).relu() @ b, dynamic=True)(random(5, 6), random(6, 4))
    mlc.compile(mlc.grad(layers, (0, 1, 2)))(random(1, 2, 7, 7), random(3, 2, 3, 3), random(1, 2, 5, 4))
    mlc.compile(mlc.grad(lambda a, b: ((a @ b).T @ a).sum(), (0, 1)))(random(4, 3), random(3, 4))
    small = (-abs(random(16, 64)) * 2.0**-66).astype(ml_dtypes.bfloat16), (random(64, 96) * 2.0**-66).astype(
        ml_dtypes.bfloat16)
    mlc.compile(lambda a, b: (a @ b).float() * 2.0**120)(*small)     # products that a processor may take for zeros
    mlc.compile(mlc.vmap(lambda a, w: a @ w, (0, None)))(random(2, 3, 4), random(4, 2))
