"""The arguments of a program in other sizes: what is compiled for all sizes is right for these, too, or refuses them.

A size keeps what it means: equal sizes are mostly replaced by equal ones, and a size of 1, along which elements are
repeated, stays, unless a program is to be called with what it may have been compiled to exclude.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
APART = 0.3
"""How often two sizes that were equal differ, and a size of 1 becomes another one."""


def resized(arrays: Sequence[Array], rng: random.Random) -> tuple[Array, ...]:
    """The arrays in other sizes, with their elements over and over again; one that was given twice still is."""
    apart, sizes = rng.random() < APART, dict[int, int]()
    made = dict[int, Array]()
    for x in arrays:
        shape = tuple(another(n, rng) if apart and rng.random() < 0.5 else
                      sizes.setdefault(n, n if n == 1 else another(n, rng)) for n in x.shape)
        made.setdefault(id(x), np.array(np.resize(x, shape), x.dtype))
    return tuple(made[id(x)] for x in arrays)


def another(n: int, rng: random.Random) -> int:
    """A size other than n: near it, a few times as large, 0 or 1."""
    return rng.choice([k for k in (n + 1, n + 1, n - 1, 2 * n, 3 * n + 2, 0, 1) if k >= 0 and k != n])
