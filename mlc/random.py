"""Random numbers as functions of a key: mlc.random.normal(mlc.random.key(0), (3, 4))."""

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
from mlc.frontend.functions.random import (
    bernoulli,
    bits,
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

__all__ = ["bernoulli", "bits", "categorical", "cauchy", "choice", "dropout", "exponential", "fold_in", "gumbel",
           "key", "laplace", "normal", "permutation", "rademacher", "rand", "rand_like", "randint", "randn",
           "randn_like", "randperm", "split", "truncated_normal", "uniform"]
