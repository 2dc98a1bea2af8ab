"""Reductions and scans over different iteration domains: of two lengths, along other axes, or gathered from."""

import numpy as np

import mlc


def two_lengths(x, y):
    return x.sum(1) + y.sum(1)


def along_the_other(x):
    return x - x.sum(1), mlc.softmax(x, 1).sum(1) * x


def picked(x, i):
    return mlc.take_along_dim(x.cumsum(1), i[:, None], 1), mlc.take_along_dim(mlc.exp(x), x.argmax(1, keepdim=True), 1)


def two_orders(x):
    """A long sum is added up in runs, a product is not."""
    return x.sum(), x.prod()


rng = np.random.default_rng(0)


if __name__ == "__main__":
    x = rng.standard_normal((9, 9))
    mlc.compile(two_lengths)(x, rng.standard_normal((9, 12)))
    mlc.compile(along_the_other)(x)
    mlc.compile(picked)(x, np.arange(9)[::-1].copy())
    mlc.compile(two_orders)(1 + rng.standard_normal(3000) * 1e-3)
