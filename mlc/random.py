"""Random numbers as functions of a key, mlc.random.normal(mlc.random.key(0), (3, 4)), and the default generator.

A function of a key gives the same numbers for the same key, compiled or not, on every device: `split` makes
independent keys of one, `fold_in` one for a number such as the step. Without a key, the default generator gives the
next one; `mlc.manual_seed` sets it.

Example:
    >>> key = mlc.random.key(0)
    >>> (mlc.random.normal(key, (3,)) == mlc.random.normal(key, (3,))).all().item()
    True
    >>> mlc.random.normal(mlc.random.split(key)[0], (3, 4)).shape
    (3, 4)
"""

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
from mlc.frontend.functions.random import (
    bernoulli,
    bits,
    bits_like,
    categorical,
    cauchy,
    choice,
    dropout,
    exponential,
    fold_in,
    gumbel,
    key,
    laplace,
    normal,
    permutation,
    rademacher,
    rand,
    rand_like,
    randint,
    randn,
    randn_like,
    randperm,
    split,
    truncated_normal,
    uniform,
)
from mlc.frontend.generator import fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state

__all__ = ["bernoulli", "bits", "bits_like", "categorical", "cauchy", "choice", "dropout", "exponential", "fold_in",
           "fork_rng", "get_rng_state", "gumbel", "initial_seed", "key", "laplace", "manual_seed",
           "normal", "permutation", "rademacher", "rand", "rand_like", "randint", "randn", "randn_like",
           "randperm", "seed", "set_rng_state", "split", "truncated_normal", "uniform"]
