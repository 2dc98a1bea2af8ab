"""Functions that change what they reach: a step of training in PyTorch's style, counters, views, and hooks."""

import numpy as np

import mlc
from mlc import nn

mlc.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Dropout(0.5), nn.Linear(7, 3))
optimizer = mlc.optim.AdamW(model.parameters(), lr=0.01, betas=(0.8, 0.95), weight_decay=0.1)
scheduler = mlc.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
table = mlc.zeros(4, 3)
total = mlc.tensor(0.0)


def step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    scheduler.step()
    return loss


def count(x):
    table[1:3].add_(x[:2])
    table.t()[0].mul_(0.5)
    total.add_(table.sum())
    return table + x.sum()


def gradients(x):
    w = model[0].weight
    w.grad = None
    (w @ x).pow(2).sum().backward()
    return w.grad * 2


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    x, y = mlc.tensor(rng.standard_normal((6, 5)).astype(np.float32)), mlc.tensor(rng.integers(0, 3, 6))
    train = mlc.compile(step)
    for _ in range(3):
        train(x, y)
    counted = mlc.compile(count)
    for k in range(3):
        counted(mlc.tensor(np.full((4, 3), k + 1.0, np.float32)))
    kept = table.numpy()
    counted(mlc.ones(4, 3))
    assert kept.shape == (4, 3)
    pulled = mlc.compile(gradients)
    for _ in range(2):
        pulled(x[0])
    with mlc.no_grad():
        model[0].weight.data = model[0].weight * 2.0
    pulled(x[0])
    train(x, y)
