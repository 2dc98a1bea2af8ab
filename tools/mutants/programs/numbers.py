"""Arithmetic at the ends of the ranges of types, and what rules of arithmetic must keep."""

import numpy as np

import mlc

FLOATS = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-42, 3e38, 2.5, 0.5, -2.5, 7.0], np.float32)
INTS = np.array([0, 1, -1, 7, -7, 2**31 - 1, -2**31, 31, 32, 40, -40, 3, 100], np.int32)


def floats(x, y):
    return (x + 0.0, x - 0.0, x * 1, x / 1, x + -y, x - (-y), x * 0, mlc.abs(-x), mlc.floor(mlc.abs(x)), x // 1.0,
            x == y, x != x, mlc.logical_not(x < y), mlc.maximum(x, y), mlc.minimum(x, -0.0), mlc.round(x),
            mlc.sign(x), mlc.neg(-x), x**2, x**3, mlc.pow(x, 3.0),
            mlc.pow(x, y), mlc.where(x > 0, x, x), 2.0 - x, 1.0 / x, x[:1].sum(0), x[2:3].prod(0),
            mlc.fmod(x, y), mlc.remainder(x, 1.5), mlc.ceil(x), x.amax(0), x.amin(0))


def integers(i, j):
    u = i.to(mlc.uint32)
    return (i + j, i - j, i * 0, i & -1, i | 0, i ^ j, i & j, i << 3, i >> j, i // j, i % j, mlc.maximum(i, j), u > 5,
            u >> 1, u // 7, i.to(mlc.int8).to(mlc.int64), i.to(mlc.float32), u.to(mlc.float32), u.amax(0), i.amin(0),
            i.to(mlc.int64).to(mlc.float64).to(mlc.int32), i.to(mlc.float64).to(mlc.int8), mlc.sign(i), i < j,
            5 - i, u.to(mlc.int64), u.to(mlc.int32), u.to(mlc.bfloat16))


def casts(x):
    return (x.to(mlc.int32), x.to(mlc.uint8), x.to(mlc.bfloat16), x.to(mlc.float16).to(mlc.float32), x.to(mlc.int64),
            (x.to(mlc.bfloat16) * 3 + 1), (x.to(mlc.float16) + 1).sum(0), x.to(mlc.bool), x.to(mlc.float64))


def narrowed(x, i):
    """Rounded once, also where a wider float type lies between, of which these become ties."""
    return (x.to(mlc.bfloat16), x.to(mlc.float16), i.to(mlc.bfloat16), i.to(mlc.float16), i.to(mlc.float32),
            i.to(mlc.int32).to(mlc.bfloat16), i.to(mlc.int32).to(mlc.float32).to(mlc.float64))


def constants(x):
    """Elements that are equal, and not the same."""
    return x / np.array([0.0, -0.0], np.float32), 1 / (1 / x)


def divided(i, j):
    return i // j, i % j, mlc.fmod(i, j)


if __name__ == "__main__":
    mlc.compile(floats)(FLOATS, FLOATS[::-1].copy())
    mlc.compile(integers)(INTS, INTS[::-1].copy())
    mlc.compile(casts)(np.concatenate([FLOATS, np.array([300.0, -129.0, 2.0**31, 1.00390625, 65520.0], np.float32)]))
    mlc.compile(narrowed)(1 + np.array([2.0**-8 + 2.0**-30, 2.0**-8 - 2.0**-30, 2.0**-11 + 2.0**-30]),
                          np.array([2**24 + 2**16 + 1, 2**24 + 1, 2**60 + 2**36 + 1]))
    mlc.compile(constants)(np.array([3.0, 0.1], np.float32))
    # -2^31 / -1 traps where nothing prevents it; rounding carries a NaN all of whose bits are set to another number
    mlc.compile(divided)(np.array([-2**31, -7, 7, 5], np.int32), np.array([-1, -1, -1, 0], np.int32))
    full = np.array([0x7FFFFFFF, 0xFFFFFFFF, 0x3F800000], np.uint32)
    mlc.compile(lambda x: x.to(mlc.bfloat16))(full.view(np.float32))
