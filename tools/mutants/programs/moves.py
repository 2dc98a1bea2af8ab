"""Data movement in pairs of operations that rewrite rules match, and its derivatives."""

import numpy as np

import mlc


def moved(x, y, i):
    a = x[1:][:, ::2][::-1].transpose(0, 1)
    b = mlc.flip(mlc.flip(x, (0,)), (0, 1))
    c = mlc.cat([x, mlc.zeros((0, 6), dtype=mlc.float32), y], 0)[2:, 1:]
    d = x.permute(1, 0).reshape(2, 3, 5).permute(2, 0, 1).permute(1, 2, 0)
    e = mlc.nn.functional.pad(x, (1, 2, 0, 1), value=3.0)
    f = mlc.where(mlc.logical_not(x > 0), x, -x)
    g = x[:, 5:][:, :1].transpose(0, 1)
    h = x.take(i) + x[i % 5].sum() + x.cumsum(1)[::2, -1:].sum()
    return a, b, c, d, e, f, g, h, x.reshape(3, 10)[:, ::3], x[3:][1:][:, 1:][:, 1:], mlc.flip(x[:2], (0,))


def summed(x, y, i):
    a, b, c, d, e, f, g, _, *rest = moved(x, y, i)
    out = x[i % 5].sum() * 0
    for k, part in enumerate((a, b, c, d, e, f, g, *rest)):
        out = out + (part * mlc.sin(part + k)).sum()
    return out + mlc.index_add(x, 0, i % 5, y[:1].expand(4, 6)).square().sum()


def at_places(x, y, i):
    """From and to a place that a number of one byte tells, which is 128 or more."""
    return mlc.dynamic_slice(x, (i,), (3,)), mlc.dynamic_update_slice(x, y, (i,)) + 1


def overlapping(x, i):
    """Reading and writing begin at two places, and what is read is many vectors long."""
    return mlc.dynamic_update_slice(x, mlc.dynamic_slice(x, (i,), (150,)) * 2, (i + 3,))


def columns(x, y):
    return mlc.cat([x, y], 1), mlc.nn.functional.pad(x, (3, 9))


rng = np.random.default_rng(1)


if __name__ == "__main__":
    x, y = (rng.standard_normal(s).astype(np.float32) for s in ((5, 6), (3, 6)))
    i = np.array([4, 0, 4, 2])
    mlc.compile(moved)(x, y, i)
    mlc.compile(mlc.grad(summed, (0, 1)))(x, y, i)
    mlc.compile(moved, dynamic=True)(x, y, i)
    long = np.arange(200, dtype=np.float32)
    mlc.compile(at_places)(long, y[0], np.uint8(130))
    mlc.compile(overlapping, donate=(0,))(long, 5)
    mlc.compile(mlc.grad(lambda x, y: (mlc.scatter_reduce(x, 0, i, y, "amax") * x.cos()).sum(), (0, 1)))(
        np.array([1.0, 2, 3, 4, 5]), np.array([5.0, 1, 0, 3]))     # ties of old and new elements
    mlc.compile(columns)(np.ones((3, 24), np.float32), np.full((3, 50), 2, np.float32))
    mlc.compile(lambda q, k, w: (q[0] @ w, k[0] @ w, q[1] @ w, k[1] @ w))(*rng.standard_normal((2, 2, 3, 4)),
                                                                          rng.standard_normal((4, 5)))
    mlc.compile(lambda x: (x[:, :4] * 2, x[:3] + 1))(x)      # from the first element on, of rows that are longer
