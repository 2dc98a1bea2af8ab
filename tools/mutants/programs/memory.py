"""In-place reuse of buffers: operands read elsewhere, views, loops that carry, slots of several sizes."""

import numpy as np

import mlc


def crossed(x, y):
    a = mlc.exp(x)
    b = a.flip(0) + a
    c = a.T @ b
    d = mlc.exp(b).reshape(-1)
    e = mlc.softmax(d.reshape(6, 6) @ c, 1)
    f = e - e.sum(0)
    g = mlc.cumsum(f, 0) + y
    return b, g @ e, d.cumsum(0)[::5], g.T + g, f.amax(1) * c.sum(0), mlc.cumsum(d.reshape(4, 9), 1).T @ d[:4]


def rows(x):
    a = mlc.exp(x * 0.1)
    b = mlc.sqrt(a) + 1
    c = b - b.amax(1)[:, None] + b.T
    d = mlc.tanh(c) * 2
    e = d / d.sum(1)[:, None] - d.flip(1)
    return mlc.sin(e).cumsum(1) + 1


def carried(x):
    a, b, c = x, x.flip(0), x @ x
    for _ in range(3):
        a, b = b, a + b.T
        c = (c @ a).tanh()
    return a, b, c


def narrower(x):
    a = x.to(mlc.float32) @ x.to(mlc.float32)
    return a.to(mlc.float64).cumsum(0), mlc.cumsum((a > 0).to(mlc.int8), 1)


def swapped(x, y):
    while x.sum() < 30:
        x, y = y + x, x * 1.0
    return x, y, y


rng = np.random.default_rng(3)


if __name__ == "__main__":
    x, y = (rng.standard_normal((6, 6)) for _ in range(2))
    mlc.compile(crossed)(x, y)
    mlc.compile(crossed, dynamic=True)(x, y)
    mlc.compile(rows)(x)
    mlc.compile(carried)(x * 0.3)
    mlc.compile(narrower)(x)
    mlc.compile(swapped)(np.abs(x), np.abs(y))
