"""Operations that do nothing, or nearly: zeros of both signs, axes of size 1 and 0, the same twice."""

import numpy as np

import mlc


def numbers(x, y):
    return (x - (-0.0), -mlc.abs(x), x[1:2].sum(0), mlc.where(mlc.full((4,), True), x, y),
            mlc.where(mlc.full((4,), False), x, y))


def axes(x, y):
    return x.amax(0).amax(0), x.permute(1, 0, 2).permute(0, 2, 1), y[::2][1:], (y.T @ y).T


def equal_or_not(x):
    return (x - x.T, x.T - x, x.sum(0), x.sum(1), x.cumsum(0), x.cumsum(1), mlc.full((3,), 0.0), mlc.full((3,), -0.0))


@mlc.compile
def layer(a, b):
    for _ in range(3):                                      # too much to be inlined
        a = mlc.tanh(mlc.sin(a) * b + 0.5)
    return a, b, a.sum()


def used_in_part(x, y):
    p, q, _ = layer(x, y)
    _, r, s = layer(y, x)
    return p + q, r * s


if __name__ == "__main__":
    mlc.compile(numbers)(np.array([0.0, -0.0, 1.5, -2.0]), np.arange(4.0))
    mlc.compile(axes)(np.arange(24.0).reshape(2, 3, 4)[::-1].copy(), np.arange(15.0).reshape(5, 3))
    mlc.compile(lambda a, b: a @ b)(np.ones((3, 0)), np.ones((0, 2)))
    mlc.compile(equal_or_not)(np.arange(9.0).reshape(3, 3) ** 2)
    mlc.compile(used_in_part)(np.array([0.3, 0.7]), np.array([0.2, 1.1]))
