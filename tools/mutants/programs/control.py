"""Statements on tensors as the recorder captures them, and derivatives and batches of these."""

import numpy as np

import mlc


def branches(x, flag):
    y = x * 2
    if flag > 0:
        y = y + 1
    if x.sum() > 3:
        z = y + 1
        y = z * x
    elif not x.max() > 1 and 0 < x.min() < 5:
        y = y - 1
    else:
        y = -y
    return y if x[0] > 0 or x[1] > 0 else x


def early(x):
    total = x[0] * 0
    for i in range(5):
        if total > 4:
            return total * 10
        total = total + x[i]
    return total


def newton(a):
    x = 1.0
    error = a * x + x**3 - 1
    while mlc.abs(error) > 1e-10:
        x = x - error / (a + 3 * x**2)
        error = a * x + x**3 - 1
    return x


def weak(x, flag):
    return (x if flag > 0 else 2) * 3, (0.5 if flag > 0 else x) + 1


def known(x, high=True, low=False):
    if high:
        x = x + 1
    if low:
        x = x * 100
    return x if not low else -x


def crooked(x):
    y = x * 2
    if x.sum() > 3:
        y = y * mlc.sin(x)
    else:
        y = y + x * x
    return (y * x).sum(), y[0] * x


def iterations(x):
    a, b = x, x * 0.5
    for i in range(3):
        a, b = b * x, a + mlc.sin(b) * i
    return (a * b).sum()


def between(start, stop, x):
    for i in range(start, stop):
        x = x * 1.5 + i
    return x


def scanned(x):
    return mlc.scan(lambda carry, row: (carry * 0.5 + row, carry * row), x[0], x)


def stops(x):
    total = x * 0
    for _, v in (("a", 1.0), ("b", 5.0), ("c", 2.5)):      # a loop over Python's values, which a tensor ends
        if total.sum() > 4:
            break
        total = total + x * v
    return total


def loops(x, y):
    a, b = mlc.fori_loop(0, 3, lambda i, c: (c[1] * x, c[0] + mlc.sin(c[1]) * y), (x, y))
    return (a * b).sum()


if __name__ == "__main__":
    x = np.array([1.0, -2.0, 3.0, 0.5, 2.0])
    checked = mlc.compile(branches)
    for scale in (1.0, -1.0, 0.25):
        checked(x * scale, mlc.tensor(1.0))
    checked(np.array([0.5, 0.25, 0.125, 0.5, 0.25]), -1.0)
    mlc.compile(weak)(mlc.tensor(np.float32(1.5)), 1.0)
    mlc.compile(weak)(mlc.tensor(np.float64(0.3)), -1.0)
    mlc.compile(known)(x)
    for scale in (1.0, -1.0):
        mlc.compile(lambda x, t: mlc.jvp(crooked, (x,), (t,)))(x * scale, x[::-1].copy())
        mlc.compile(mlc.grad(lambda x: crooked(x)[0]))(x * scale)
    first = mlc.compile(early)
    first(x)
    first(np.full(5, 0.25))
    first(x * 3)
    a = np.linspace(1.0, 4.0, 3)
    mlc.compile(mlc.vmap(newton))(a)
    mlc.compile(mlc.vmap(mlc.grad(newton)))(a)
    mlc.compile(mlc.value_and_grad(iterations))(x[:3])
    mlc.compile(lambda x, t: mlc.jvp(iterations, (x,), (t,)))(x[:3], x[1:4])
    mlc.compile(scanned)(x.reshape(5, 1))
    ends = np.array([[0, 2, 5], [3, 3, 4]])
    mlc.compile(mlc.vmap(between))(*ends, x[:3])
    mlc.compile(mlc.vmap(mlc.grad(between, argnums=2)))(*ends, x[:3])
    mlc.compile(stops)(x[2:4])
    mlc.compile(stops)(x[3:])
    mlc.compile(lambda x, y: mlc.jvp(loops, (x, y), (y, x)))(x[:2] * 0.3, x[3:])
