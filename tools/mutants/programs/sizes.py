"""One code for all sizes, called with several: tails of every length, parts for threads, rows of every kind."""

import numpy as np

import mlc


@mlc.compile(dynamic=True)
def rows(x, y):
    z = x * 2.0 + y
    return z, z.sum(1), z.sum(0), z.amax(1), mlc.softmax(z, 1), z.mean(), z.reshape(-1)[::-1], z[:, ::2], z.T


@mlc.compile(dynamic=True)
def counted(x, i):
    return x.cumsum(0), mlc.flip(x, (0,)).cumsum(0), mlc.index_add(mlc.zeros_like(x), 0, i, x), x[i], x * (x > 0)


if __name__ == "__main__":
    for n, m in ((1, 1), (3, 17), (5, 8)):
        rows(np.arange(n * m, dtype=np.float32).reshape(n, m) % 7 - 3, np.linspace(-1, 1, m, dtype=np.float32))
    for n in (1, 33, 40):
        counted(np.linspace(-2, 3, n), np.arange(n) * 7 % max(1, n // 3))
    mlc.compile(lambda x: (x.sum((0, 2)), x.sum(1), x.sum(), x.amax((1, 2))))(
        np.linspace(-1, 1, 3 * 5 * 70, dtype=np.float32).reshape(3, 5, 70))
    mlc.compile(lambda x: x.sum())(np.linspace(-1, 1, 1100, dtype=np.float32))
