"""Programs with plain Python control flow, each with arguments that take it along its different paths.

What they do in plain Python, on tensors, is what they do compiled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import mlc

GLOBAL = 2.0


def f32(x: Any) -> Any:
    return np.asarray(x, np.float32)[()]


def i64(x: Any) -> Any:
    return np.asarray(x, np.int64)[()]


def newton(a: Any, tolerance: Any) -> Any:
    x = a
    for step in range(50):  # noqa: B007 (it is returned)
        change = (x * x - a) / (2 * x)
        x = x - change
        if abs(change) < tolerance:
            break
    else:
        step = -1
    return x, step


def adaptive(y: Any, end: Any) -> Any:
    """dy/dt = -y by Heun's method, with steps that halve and double."""
    t, h, rejected = 0.0, 0.5, 0
    while t < end:
        if t + h > end:
            h = end - t
        k1 = -y
        k2 = -(y + h * k1)
        error = abs(h * (k2 - k1)).max()
        if error > 0.02:
            h = h / 2
            rejected += 1
            continue
        t, y = t + h, y + h * (k1 + k2) / 2
        if error < 0.002:
            h = 2 * h
    return y, rejected


def search(xs: Any, target: Any) -> Any:
    """The first pair with a sum, of those before a negative number."""
    count = 0
    for i in range(len(xs)):
        if xs[i] < 0:
            break
        for j in range(i):
            count += 1
            if xs[j] == 0:
                continue
            if xs[i] + xs[j] == target:
                return i, j, count
    return -1, -1, count


def fizzbuzz(n: Any) -> Any:
    total = 0
    for i in range(1, n + 1):
        if i % 15 == 0:
            total += 1000
        elif i % 3 == 0:
            total += 10
        elif i % 5 == 0:
            total += 100
        else:
            total += i
    return total


def nested(x: Any, n: Any) -> Any:
    """while inside if inside for"""
    for i in range(n):
        if i % 2 == 1:
            while x.sum() > i:
                x = x / 2
                if not x[0] > 0.25:
                    break
        elif x[1] < 1:
            x = x + i
    return x


def rnn(xs: Any, lengths: Any, w: Any) -> Any:
    """The last state of each sequence, which ends at its length."""
    h = mlc.zeros(xs.shape[1], w.shape[1])
    last = h
    for t, x in enumerate(xs):
        if t >= lengths.max():
            break
        h = mlc.tanh(mlc.cat([x, h], 1) @ w)
        last = mlc.where((lengths == t + 1).reshape(-1, 1), h, last)
    return last


def beam(scores: Any, table: Any, end: Any) -> Any:
    """Steps of a beam search that ends when the best beam does."""
    length = 0
    best = mlc.zeros(2, dtype=mlc.int64)
    while length < 5:
        every = scores.reshape(-1, 1) + table[best]
        scores, at = mlc.topk(every.reshape(-1), 2)
        best = at % table.shape[1]
        length += 1
        if best[0] == end:
            return scores, best, length
    return scores, best, -length


def early(x: Any) -> Any:
    if x > 10:
        return x
    y = x * 2
    if y > 10:
        if y > 15:
            return y + 1
        y = y - 1
    elif y < 0:
        return -y
    return y * y


def words(x: Any, y: Any) -> Any:
    a = x > 0 and y > 0 and x < y
    b = not a or y > 5
    c = 0 < x < y <= 7
    d = x if x > y else -y
    e = 1 if a else 2 if b else 0.5
    return a, b, c, d, e, (x > 0 and 10 / x > 1) or y > 0, x or y


def countdown(n: Any) -> Any:
    down = 0
    for i in range(n, 0, -2):
        down = 10 * down + i
    return down


def rows(m: Any, scale: Any) -> Any:
    best = m[0] * 1
    for row, s in zip(m, scale):
        best = row * s if row.sum() * s > best.sum() else best
    for row in reversed(m):
        best += row
        if (best > 10).any():
            return best
    return best


def out_of_an_else(x: Any, limit: Any) -> Any:
    """Jumps in the `else` of a loop are those of the loop around it."""
    total, last = x * 0, -1
    for i in range(6):
        if i > 0:
            for j in range(2):
                if total > limit + j:
                    break
            else:
                if i == 4:
                    break
                continue
        total, last = total + x, i
    return total, last


def by_mode(x: Any, mode: str, n: int = 3) -> Any:
    """Control flow of Python's own values."""
    parts = []
    for i in range(n if mode == "many" else 1):
        if mode == "many" and i == 1:
            continue
        parts.append(x * i if x.ndim else x)
    return mlc.stack(parts)


class Counter:
    """A user's object, with methods and private names."""

    def __init__(self, limit: float) -> None:
        self.__limit = limit

    def clip(self, x: Any) -> Any:
        if x > self.__limit:
            return self.__limit + 0 * x
        return x


class Loud(Counter):
    def clip(self, x: Any) -> Any:
        if x < 0:
            return super().clip(-x) + 100
        return super().clip(x)


def traced(f: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(f)
    def wrapper(*args: Any, **keywords: Any) -> Any:
        if args[0] < 0:
            return f(-args[0], *args[1:], **keywords)
        return f(*args, **keywords)
    return wrapper


@traced
def decorated(x: Any, *, by: float = GLOBAL) -> Any:
    return x * by if x < 5 else x


def scopes(x: Any) -> Any:
    """Closures, nonlocal, lambdas, defaults, decorators, methods, comprehensions, the walrus."""
    total = 0.0

    def add(y: Any, factor: float = 3.0) -> None:
        nonlocal total
        if y > 1:
            total = total + y * factor

    for k in (1, 2, 3):
        add(x * k)
    pick: Any = lambda a, b: a if a > b else b
    if (half := x / 2) > 1:
        total += half
    total += sum([pick(x, y) for y in (1.0, 2.0)])
    return total + decorated(x) + Loud(4.0).clip(x) + GLOBAL


def redefined(x: Any, n: Any) -> Any:
    """Names that are used again with other types are no carries of a loop."""
    part = x.sum()
    for i in range(n):
        part = x * i
        count: int = 2
        x = x + part / count
    del part
    return x


def rescued(x: Any) -> Any:
    """Python's own exceptions, and `with`, around and beside tensors."""
    try:
        scale = {"a": 2.0}["b"]
    except KeyError as error:
        scale = len(error.args) + 1.0
    finally:
        x = x + 1
    with np.errstate(all="ignore"):
        if x > 2:
            return x * scale
    return x


def in_try(x: Any) -> Any:
    match x.ndim:
        case 0:
            y = x + 1
        case n if n > 1:
            y = x - n
        case _:
            y = x
    return y


def tries(x: Any, key: str) -> Any:
    for _ in range(2):
        try:
            scale = {"a": 2.0, "b": -1.0}[key]
            if scale < 0:
                return x
        except KeyError:
            break
        else:
            x = x * scale
        finally:
            x = x + 1
        if x > 8:
            return -x
    return x * 10


def numbers(x: Any, n: Any) -> Any:
    k = int(n) + 1
    total = float(x.sum()) if bool(n) else 0.5
    for i in range(k):
        total += max(float(x[0]), i, 0.5) - min(x[0], x[1])
    return total, int(total), k


def infinite(x: Any) -> Any:
    n = 0
    while True:
        n += 1
        x = x * 2
        if x > 100:
            return x, n
        if n > 20:
            break
    return x, -n


PROGRAMS: list[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = [
    (newton, [(f32(9), f32(1e-3)), (f32(1e-4), f32(1e-9)), (f32(2), f32(-1))]),
    (adaptive, [(f32([1, 8]), f32(2)), (f32([0, 0]), f32(1)), (f32([3, 1]), f32(0))]),
    (out_of_an_else, [(f32(1), f32(9)), (f32(2), f32(1)), (f32(1), f32(-5))]),
    (search, [(f32([1, 0, 5, 8, 2]), f32(k)) for k in (6, 5, 10, 99)] + [(f32([1, -5, 5, 6, 2]), f32(6))]),
    (fizzbuzz, [(i64(k),) for k in (0, 1, 4, 5, 15, 31)]),
    (nested, [(f32([3, 5]), i64(k)) for k in (0, 1, 2, 5)] + [(f32([-3, 0.5]), i64(6))]),
    (rnn, [(f32(np.linspace(-1, 1, 24).reshape(4, 3, 2)), i64(n), f32(np.linspace(-1, 1, 8).reshape(4, 2)))
           for n in ([1, 2, 4], [0, 0, 0], [1, 1, 2])]),
    (beam, [(f32([0, -9]), f32([[0, 2, 1], [1, 0, 4], [3, 1, 0]]), i64(k)) for k in (0, 1, 2, 5)]),
    (early, [(f32(x),) for x in (11, 9, 6, 2, -3)]),
    (words, [(f32(x), f32(y)) for x, y in ((1, 2), (2, 1), (-1, 6), (3, 8), (0, 0))]),
    (countdown, [(i64(k),) for k in (0, 1, 7, 8)]),
    (rows, [(f32([[1, 2], [3, 1], [0, 4]]), f32(s)) for s in ([1, 2, 3], [-1, 0, 9])]),
    (by_mode, [(f32([1, 2]), "many"), (f32([1, 2]), "one"), (f32(1), "many")]),
    (scopes, [(f32(x),) for x in (-7, -1, 0.5, 3, 9)]),
    (redefined, [(f32([1, 2]), i64(k)) for k in (0, 3)]),
    (rescued, [(f32(0),), (f32(4),)]),
    (in_try, [(f32(0),), (f32([[1]]),), (f32([1]),)]),
    (tries, [(f32(x), key) for x in (1, 5) for key in "abc"]),
    (numbers, [(f32([1.5, -2]), i64(k)) for k in (0, 3)]),
    (infinite, [(f32(3),), (f32(0),)]),
]
