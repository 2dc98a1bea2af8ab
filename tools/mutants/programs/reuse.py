"""Memory used again: what loops read from outside, views that live on, wider elements, results of several stages."""

import numpy as np

import mlc


def viewed(x, i):
    y = x @ x
    return (y + y.reshape(-1)[i]) @ x


def outlived(x):
    y = x @ x
    flat = y.reshape(-1)
    a = x @ x.T
    return mlc.tanh(a @ x) @ a, flat.cumsum(0)


def outside(x):
    w = x @ x
    return mlc.fori_loop(0, 3, lambda i, c: mlc.tanh(w + c) @ c, x)


def twice_read(x):
    """The carried value is read by a value that the next one is computed from."""
    def body(i, c):
        t = mlc.softmax(c, 1)
        return t @ t.T
    return mlc.fori_loop(0, 3, body, x) @ x


def in_place(x, row):
    """One row of factors, so that the two dimensions stay two."""
    return mlc.fori_loop(0, 3, lambda i, c: mlc.tanh(c) * row + 1, x)


def wider(x):
    y = mlc.fori_loop(0, 2, lambda i, c: mlc.tanh(c) @ c, x.to(mlc.float32))
    z = mlc.exp(y.to(mlc.float64) * 0.1)
    return z @ z.T


def swept(x, w):
    """`e` is known, and can be stored, before `x` is read for the last time."""
    x = mlc.fori_loop(0, 2, lambda i, c: mlc.tanh(c) @ w, x)
    e = x - x.amax(1, keepdim=True)
    return e @ w, (x * mlc.exp(e).sum(1, keepdim=True)) @ w


def shifted(x):
    """The value carried on is one that the same iteration reads, in its own buffer."""
    return mlc.fori_loop(0, 3, lambda i, c: (mlc.tanh(c[0] @ x) + c[1], c[0]), (x, x + 1))


def normalized(x):
    """The exponentials are kept in the memory of the result, which is not that of `y`: it is read once more."""
    y = x @ x
    return (mlc.softmax(y, 1) * y) @ x


@mlc.compile
def inner(a, b):
    c = mlc.exp((a * 0.2 + 1) @ b * 0.1)
    return mlc.tanh(a) + (c.T @ a).sum(0), b * c.sum(1)


def called(x):
    """Both arguments of the first call are one value once equal operations are merged."""
    p, q = inner(mlc.tanh(x) * 3, mlc.tanh(x) * 3)
    r, s = inner(p + 1, q)
    return r @ s, s


rng = np.random.default_rng(0)


if __name__ == "__main__":
    x = rng.standard_normal((4, 4)) * 0.5
    mlc.compile(viewed)(x, rng.integers(0, 16, (4, 4)))
    for f in (outlived, outside, twice_read, wider, shifted):
        mlc.compile(f)(x)
    mlc.compile(normalized)(rng.standard_normal((40, 40)))
    mlc.compile(lambda x: mlc.fori_loop(0, 3, lambda i, c: c @ x, x))(rng.standard_normal((9, 9)))
    mlc.compile(in_place)(rng.standard_normal((3, 40)), rng.standard_normal(40))
    mlc.compile(swept)(rng.standard_normal((9, 9)) * 0.5, rng.standard_normal((9, 9)))
    mlc.compile(called)(x)
