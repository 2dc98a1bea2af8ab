"""Random numbers as functions of a key: equal keys give equal numbers, eager and compiled, on every machine.

    key = mlc.random.key(0)
    key, sub = mlc.random.split(key)
    x = mlc.random.normal(sub, (3, 4))

A key is a tensor of two uint32. Element i of a result depends on the key and on i alone, not on the shape or the
number of threads. Two draws with one key are the same numbers: split it first.
"""

# ruff: noqa: F403

from mlc.frontend.functions.random.choices import *
from mlc.frontend.functions.random.distributions import *
from mlc.frontend.functions.random.keys import *
