"""Writes in compiled functions: to views, views of views, arguments, and tensors of outside, in branches and loops."""

import contextlib

import numpy as np

import mlc


def rearranged(x, y):
    x = x * 1
    x.permute(1, 2, 0).mul_(y)
    first = x[0]
    x.add_(1)
    copied, shared = x.transpose(0, 1).flatten() + 1, x.view(-1)
    x[:, 1] = 5.0
    return x, first * 2, copied, shared + 1


def stepped(x, index):
    x = x.clone()
    x[::2] *= 3
    x[index] = x[0] + x[-1]
    x[1:].t()[1:3] -= 1
    row = x.narrow(0, 1, 2)
    row.relu_()
    x.unsqueeze(1)[:, 0, 0].fill_(7)
    return x, row.sum()


def branches(x, flag):
    x = x + 0
    head = x[:2]
    if flag > 0:
        head.mul_(2)
    else:
        x[2:] = head[0]
    for i in range(3):
        x[i].add_(i)
    while x.sum() < 50:
        x.mul_(2)
    return x, head


def either(x, flag):
    y = x * 1
    z = y if flag > 0 else y + 1
    z.add_(1)
    return z


def copied(x):
    """A copy that may not be used afterwards: it is refused, and not taken for a view."""
    x = x * 1
    y = x.t().flatten()
    x.add_(1)
    return y


def argument(x):
    x.diagonal().zero_()
    return x.sum(0)


def loss(w, x):
    w = w * 1
    w[0] = x
    with mlc.no_grad():
        w[1].mul_(0)
    w.detach()
    w[2:] *= x
    return (w * w).sum()


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32)
    mlc.compile(rearranged)(x, np.arange(12, dtype=np.float32).reshape(4, 1, 3) - 5)
    for dynamic in (None, True):
        mlc.compile(stepped, dynamic=dynamic)(x[0].T.copy(), np.array([1, 1, 3]))
    written = mlc.compile(branches)
    for flag in (1.0, -1.0):
        written(np.abs(x[:, :, 0]) + 1, mlc.tensor(flag))
        mlc.compile(either)(x[0], mlc.tensor(flag))
    mlc.compile(argument)(mlc.tensor(x[0]))
    with contextlib.suppress(mlc.UserError):
        mlc.compile(copied)(x[0])
    mlc.compile(mlc.grad(loss, argnums=(0, 1)))(x[0], x[0, 0])
    mlc.compile(lambda w, x: mlc.jvp(loss, (w, x), (w, x)))(x[0], x[0, 0])
