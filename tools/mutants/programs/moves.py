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


rng = np.random.default_rng(1)


if __name__ == "__main__":
    x, y = (rng.standard_normal(s).astype(np.float32) for s in ((5, 6), (3, 6)))
    i = np.array([4, 0, 4, 2])
    mlc.compile(moved)(x, y, i)
    mlc.compile(mlc.grad(summed, (0, 1)))(x, y, i)
    mlc.compile(moved, dynamic=True)(x, y, i)
    mlc.compile(lambda x: (x[:, :4] * 2, x[:3] + 1))(x)      # from the first element on, of rows that are longer
