"""How compiled functions are called: several arguments and results, layouts, donation, what they reach, equal text."""

import numpy as np

import mlc

factor = mlc.tensor(2.0)


def several(x, y):
    return x + 1, y @ x.T, (x * y).sum(0)


if __name__ == "__main__":
    wide = np.arange(12, dtype=np.float32).reshape(3, 4)
    square = np.arange(9, dtype=np.float32).reshape(3, 3)
    f = mlc.compile(several)
    for _ in range(3):
        f(wide, wide[::-1].copy())
        f(wide, wide[:, ::-1])
    f(np.asfortranarray(wide), wide)
    g = mlc.compile(lambda x: (x * factor).T @ x)
    g(square)
    g(square.T)
    factor = mlc.tensor(3.0)
    g(square)
    h = mlc.compile(lambda x, y: (y * 2, x + y), donate=("x", "y"))
    for _ in range(3):
        h(mlc.tensor(wide) * 1.0, mlc.tensor(wide) + 1.0)
    a = np.asarray(np.random.default_rng(0).standard_normal((40, 40)))
    arena = mlc.compile(lambda x: mlc.exp(x @ x - x).T @ x)
    for _ in range(2):
        arena(a)
    d = mlc.compile(lambda x, y: (x[:, None] * y, mlc.cumsum(x, 0) @ x), dynamic=True)
    for n, m in ((3, 4), (4, 3), (40, 2), (3, 4)):
        d(np.arange(n, dtype=np.float32), np.arange(m, dtype=np.float32))
    for k in range(3):
        table = np.arange(6.0) ** k
        mlc.compile(lambda x, k=k, table=table: (x[k: k + 2] + table[::3], x.sum() * (k + 2.5), x + table))(
            np.arange(6.0))
        mlc.compile(lambda x, k=k: x.cumsum(k % 2))(square)
        mlc.compile(lambda x, k=k: x + np.array([1.0, 2.0 + k, 3.0]))(np.arange(3.0))
    matrices = mlc.compile(lambda x: (x * 2, x.sum(1)), dynamic=True)
    for n, m in ((3, 4), (4, 3), (3, 4)):
        matrices(np.arange(float(n * m)).reshape(n, m))
    product = mlc.compile(lambda x, y: x @ y)
    for n in (3, 4, 5):
        product(np.full((n, 3), 0.1, np.float32), square)
    with mlc.autocast("cpu", mlc.bfloat16):
        product(np.full((6, 3), 0.1, np.float32), square)
    pulled = mlc.compile(lambda w: (w * w).sum().backward())
    w = mlc.ones(3, requires_grad=True)
    for _ in range(3):
        pulled(w)                                          # the first has no gradient to add to
    signed = mlc.compile(lambda x, n: (x * n, mlc.copysign(x + 1, mlc.full_like(x, n))), static="n")
    for n in (0.0, -0.0, 1, True, 1.0, float("nan")):      # equal numbers that are not the same
        signed(np.arange(3.0), n)
    second = mlc.compile(lambda x, y: x + y, donate=("y",))
    first = mlc.compile(lambda x, y: x + y.flip(0), donate=("x",))
    for _ in range(3):
        second(mlc.tensor(np.arange(4.0)), mlc.tensor(np.arange(4.0)))
        first(mlc.tensor(np.arange(4.0)), mlc.tensor(np.arange(4.0)))
