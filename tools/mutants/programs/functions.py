"""Elementary functions and what is decomposed, where they are difficult."""

import numpy as np

import mlc
from mlc.nn import functional as F

HARD = np.array([0.0, -0.0, 1e-30, -1e-3, 0.5, -0.75, 1.0, 3.0, -10.0, 17.0, 80.0, -80.0, np.inf, -np.inf, np.nan])


def elementary(x):
    return (mlc.exp(x), mlc.log(x), mlc.sin(x), mlc.sinh(x), mlc.asinh(x), mlc.tanh(x), mlc.log1p(x), mlc.erf(x),
            mlc.sigmoid(x), F.softplus(x), mlc.sqrt(x), mlc.hypot(x, 3.0))


def rows(x):
    return (F.softmax(x, 1), F.log_softmax(x, 0), mlc.logsumexp(x, 1), mlc.var(x, 1), mlc.std(x, 0), x.argmax(1),
            F.relu(x), F.layer_norm(x, (5,)), mlc.cumprod(x, 1), x.prod(0), x.amax((0, 1)), F.gelu(x), x.sum(),
            mlc.logcumsumexp(x, 0))


def slopes(x):
    y = mlc.abs(x) + 0.5
    return (mlc.exp2(x) + mlc.expm1(x) + mlc.log1p(y) + mlc.sqrt(y) + mlc.rsqrt(y) + mlc.cos(x) * mlc.tanh(x)
            + mlc.sigmoid(x) / y - x * mlc.reciprocal(y) + y**2.5 + mlc.maximum(x, 0.25) - mlc.minimum(x, y)
            + mlc.remainder(x, y) + mlc.hypot(x, y) + mlc.where(x > 0, x, y * x)).sum()


if __name__ == "__main__":
    small = np.linspace(-1.7, 2.1, 15).reshape(3, 5)
    mlc.compile(elementary)(HARD.astype(np.float32))
    mlc.compile(rows)(small.astype(np.float32))
    mlc.compile(mlc.grad(lambda x: sum((r * mlc.cos(r + k)).sum() for k, r in enumerate(rows(x)) if k != 5)))(
        small)
    mlc.compile(mlc.grad(slopes))(small)
    mlc.compile(mlc.grad(lambda x: x.amax(1).sum() + F.relu(x).sum() + x.prod(1).sum()))(
        np.array([[1.0, 1, 0], [0, 2, 0]]))
    mlc.compile(mlc.grad(lambda x: (mlc.grad(lambda y: y.prod(1).sum())(x) * x.cos().flip(1)).sum()))(
        np.array([[2.0, 0, 3, 0], [2, 0, 3, 1]]))
    # exponentials that overflow unless the maximum is taken off, and rows whose maximum is infinite
    mlc.compile(lambda x: (F.softmax(x, 1), mlc.logsumexp(x, 1)))(
        np.array([[1000.0, 0.0, 999.0], [-np.inf, -np.inf, -np.inf], [np.inf, 1.0, 2.0]]))
