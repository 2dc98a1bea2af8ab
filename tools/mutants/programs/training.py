"""A step of training: products, losses, normalisation, an optimiser, and the derivatives of all of them."""

import numpy as np

import mlc
from mlc import nn


def step(model, state, x, y):
    def loss(model, x, y):
        return nn.functional.cross_entropy(model(x), y)

    value, gradients = mlc.value_and_grad(loss)(model, x, y)
    return *optimizer.update(gradients, state, model), value


if __name__ == "__main__":
    mlc.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.Tanh(), nn.Linear(7, 6), nn.LayerNorm(6), nn.ReLU(),
                          nn.Linear(6, 3))
    optimizer = mlc.optim.AdamW(lr=1e-2)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((9, 5)).astype(np.float32), rng.integers(0, 3, 9)
    train = mlc.compile(step, donate=("model", "state"))
    state = optimizer.init(model)
    for _ in range(2):
        model, state, value = train(model, state, x, y)
