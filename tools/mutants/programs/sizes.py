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


@mlc.compile(dynamic=True)
def parted(x, y):
    z = mlc.cat([x, x, y, x[:2]])
    even = mlc.cat([x, x, mlc.ones(2)])
    return even[::2], z[::2], z[1::3], z[::-2], z.unfold(0, 2, 2), mlc.nn.functional.pad(x, (1, 2))[::2]


def random(*shape):
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


if __name__ == "__main__":
    for n, m in ((1, 1), (3, 17), (5, 8)):
        rows(random(n, m), random(m))
    for n in (1, 33, 40):
        counted(random(n), np.arange(n) * 7 % max(1, n // 3))
    for n, m in ((4, 2), (5, 2), (6, 3)):
        parted(random(n), random(m))
    mlc.compile(lambda x: (x.sum((0, 2)), x.sum(1), x.sum(), x.amax((1, 2))))(
        random(3, 5, 70))
    mlc.compile(lambda x: mlc.exp(x.T) * 2)(random(5, 65))                       # a single element is left
    mlc.compile(lambda x: x.sum())(random(1100))
    mlc.compile(lambda x: (x.sum(1), (x * x).amax(1)))(random(3, 5000))         # runs of two kinds in one kernel
    mlc.compile(lambda x: x.sum((0, 1, 2)))(random(2200, 60, 1))        # in blocks, beside an axis of one
