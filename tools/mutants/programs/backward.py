"""Calls of compiled modules that are recorded for backward outside of them."""

import numpy as np

import mlc
from mlc import nn

mlc.manual_seed(0)
layers = nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.GELU(), nn.Linear(7, 4), nn.ReLU(), nn.Linear(4, 3))
images = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.5))


def attended(q, k):
    return nn.functional.scaled_dot_product_attention(q @ k.transpose(-1, -2), k, k), (q * 2).exp()


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    x, y = (mlc.tensor(rng.standard_normal(shape).astype(np.float32)) for shape in ((6, 5), (2, 2, 8, 8)))
    for model, given in ((layers, x), (images, y)):
        f = mlc.compile(model)
        for wanted in (False, False, True, True, False):
            f(given.clone().requires_grad_(wanted)).pow(2).sum().backward()
        with mlc.no_grad():
            f(given)
    f = mlc.compile(attended)
    q, k = (mlc.tensor(rng.standard_normal((4, 4)).astype(np.float32)).requires_grad_() for _ in range(2))
    for used in (0, 1, 0):
        f(q, k)[used].sum().backward()
