"""Random outcomes of trials, drawn from a `Generator` under PyTorch's names: by probabilities, weights and rates.

What can be computed from uniform numbers is, and may be recorded; numbers of the Poisson and the binomial distribution
are numpy's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.frontend.dtypes import DType, as_dtype, float32
from mlc.frontend.functions import random
from mlc.frontend.functions.create import creation
from mlc.frontend.functions.random.distributions import float_type
from mlc.frontend.functions.random_sampling import draw_floats, shape_and_dtype_of, source_of
from mlc.frontend.generator import Generator
from mlc.frontend.operands import count_of, fail_unless, tracer
from mlc.frontend.tensor import OPERATIONS, Array, Operand, Tensor, as_array, wrap
from mlc.frontend.trace import state
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserError
from mlc.ir.types import f64, to_numpy


def _probabilities(x: Operand, name: str) -> Array:
    array = as_array(x)
    if not ((array >= 0) & (array <= 1)).all():
        raise UserError(f"{name} has elements that are no probabilities, which are from 0 to 1", code="MLC0360")
    return array


@creation
def bernoulli(input: Operand, p: Operand = None, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that the element of the tensor is, else 0.

    Args:
        input: Tensor of probabilities; with `p`, a tensor that tells the shape and the dtype.
        p: The probability of all elements, or a tensor of probabilities that broadcasts.
        generator: Source of the numbers; the default generator if left out.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: An element is no probability (MLC0360), the probabilities are integers (MLC0359), or a function is
            being recorded (MLC0716).

    Example:
        >>> mlc.bernoulli(mlc.tensor([0.0, 1.0]))
        tensor([0., 1.], dtype=mlc.float32)
    """
    source = source_of(generator, True)
    shape, wanted = shape_and_dtype_of(input, None)
    if p is None:
        float_type(wanted)
    if state.trace is not None:
        return _recorded_bernoulli(input if p is None else p, shape, wanted, source)
    chance = _probabilities(input, "input") if p is None else _probabilities(p, "p")
    kind = as_dtype("float64" if chance.dtype == np.float64 else float32)
    drawn = draw_floats(random.rand_like, shape, kind, source)
    return wrap(np.asarray(drawn.array < chance).astype(to_numpy(wanted.ir)))      # of one number numpy makes no array


def _recorded_bernoulli(p: Operand, shape: Sequence[Any], dtype: DType, source: Generator) -> Tensor:
    chance = tracer(p)
    valid = OPERATIONS["logical_and"](OPERATIONS["ge"](chance, 0), OPERATIONS["le"](chance, 1))
    fail_unless(valid, "bernoulli has elements that are no probabilities, which are from 0 to 1")
    kind = as_dtype("float64" if chance.type.dtype == f64 else float32)
    return OPERATIONS["cast"](draw_floats(random.rand_like, shape, kind, source) < chance, dtype)  # type: ignore[no-any-return]


@creation
def multinomial(input: Operand, num_samples: int, replacement: bool = False, *,
                generator: Generator | None = None) -> Tensor:
    """Indices along the last dimension, drawn with probabilities that are proportional to the elements.

    Args:
        input: Vector of weights of at least 0, or a matrix whose rows are such vectors.
        num_samples: How many indices are drawn from each row.
        replacement: Whether they are drawn independently; otherwise none comes twice.
        generator: Source of the numbers; the default generator if left out.

    Returns:
        Tensor of int64 of shape (num_samples,) or (rows, num_samples).

    Raises:
        UserError: The tensor has another number of dimensions (MLC0364), no floats (MLC0359), a weight is negative or
            not finite, or a row has too few that are positive (MLC0360), a draw cannot be recorded (MLC0716), or
            `num_samples` is negative (MLC0358).
        UserAssertionError: The same of weights, where a function is recorded.

    Example:
        >>> mlc.multinomial(mlc.tensor([0.0, 3.0, 0.0]), 2, replacement=True)
        tensor([1, 1], dtype=mlc.int64)
    """
    source = source_of(generator, True)
    weights = tracer(input) if state.trace is not None else as_array(input)
    float_type(weights.dtype)
    if weights.ndim not in (1, 2):
        raise UserError(f"the weights have {weights.ndim} dimensions, expected 1 or 2", code="MLC0364")
    count = count_of(num_samples, "num_samples")
    if isinstance(weights, Tracer):
        return _recorded_multinomial(weights, count, replacement, source)
    rows = np.atleast_2d(weights.astype(np.float64))
    if not (np.isfinite(rows) & (rows >= 0)).all():
        raise UserError("the weights have to be finite and at least 0", code="MLC0360")
    if not count:
        raise UserError("num_samples = 0, expected at least 1", code="MLC0360")
    least = int((rows > 0).sum(1).min(initial=rows.shape[1]))
    if least < (1 if replacement else count):
        raise UserError(f"{count} indices are drawn where a row has {least} positive weights", code="MLC0360")
    draw = _drawn_again if replacement else _drawn_once
    return wrap(draw(rows, count, source).reshape((*weights.shape[:-1], count)))


def _recorded_multinomial(weights: Tracer, count: int, replacement: bool, source: Generator) -> Tensor:
    f = OPERATIONS
    rows = f["cast"](f["reshape"](weights, (-1, weights.shape[-1])), "float64")
    positive = rows > 0
    fail_unless(f["logical_and"](f["isfinite"](rows), rows >= 0), "the weights have to be finite and at least 0")
    least = 1 if replacement else count
    fail_unless(f["sum"](positive, 1) >= least, f"{count} indices are drawn where a row has fewer positive weights")
    shape = (rows.shape[0], count) if replacement else rows.shape
    unit = draw_floats(random.rand_like, shape, as_dtype("float64"), source)
    if replacement:
        totals = f["cumsum"](rows, 1)
        last = f["amax"](f["where"](positive, f["arange"](rows.shape[1]), 0), 1, keepdim=True)
        drawn = f["minimum"](f["searchsorted"](totals, unit * totals[:, -1:], right=True), last)
    else:
        arrivals = f["where"](positive, -f["log1p"](-unit) / rows, math.inf)
        drawn = f["argsort"](arrivals, 1, stable=True)[:, :count]
    return f["reshape"](drawn, (*weights.shape[:-1], count))  # type: ignore[no-any-return]


def _drawn_again(rows: Array, count: int, generator: Generator) -> Array:
    """Independent indices, by the inverse of the distribution function."""
    unit = draw_floats(random.rand_like, (len(rows), count), as_dtype("float64"), generator).array
    out = np.empty(unit.shape, np.int64)
    for i, row in enumerate(rows):
        totals = np.cumsum(row)
        out[i] = np.minimum(np.searchsorted(totals, unit[i] * totals[-1], "right"), np.flatnonzero(row)[-1])
    return out


def _drawn_once(rows: Array, count: int, generator: Generator) -> Array:
    """Different indices: those of the first arrivals of exponential clocks, each running at the rate of its weight."""
    unit = draw_floats(random.rand_like, rows.shape, as_dtype("float64"), generator).array
    with np.errstate(divide="ignore", invalid="ignore"):
        arrivals = np.where(rows > 0, -np.log1p(-unit) / rows, np.inf)
    return np.argsort(arrivals, 1, kind="stable")[:, :count]


@creation
def poisson(input: Operand, generator: Generator | None = None) -> Tensor:
    """Numbers of the Poisson distribution, one for each rate.

    Args:
        input: Tensor of rates, at least 0.
        generator: Source of the numbers; the default generator if left out.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: A rate is negative, or above 2^62 (MLC0360), the rates are no floats (MLC0359), or a function is
            being recorded (MLC0716).

    Example:
        >>> mlc.poisson(mlc.zeros(2))
        tensor([0., 0.], dtype=mlc.float32)
    """
    source = source_of(generator)
    rates = as_array(input)
    float_type(rates.dtype)
    if not ((rates >= 0) & (rates <= 2.0**62)).all():
        raise UserError("the rates have to be from 0 to 2^62", code="MLC0360")
    return wrap(np.asarray(source.numpy().poisson(rates.astype(np.float64)), np.int64).astype(rates.dtype))


@creation
def binomial(count: Operand, prob: Operand, generator: Generator | None = None) -> Tensor:
    """Numbers of the binomial distribution: how many of `count` trials succeed, each with probability `prob`.

    Args:
        count: Tensor of the numbers of trials, whole and at least 0.
        prob: Tensor of probabilities that broadcasts.
        generator: Source of the numbers; the default generator if left out.

    Returns:
        Tensor of the broadcast shape and the dtype of `count`.

    Raises:
        UserError: A count is negative, or `prob` is no probability (MLC0360), the counts are no floats (MLC0359), the
            shapes do not broadcast (MLC0111), or a function is being recorded (MLC0716).

    Example:
        >>> mlc.binomial(mlc.tensor([3.0, 5.0]), mlc.tensor([1.0, 0.0]))
        tensor([3., 0.], dtype=mlc.float32)
    """
    source = source_of(generator)
    trials, chance = as_array(count), _probabilities(prob, "prob")
    float_type(trials.dtype)
    if not ((trials >= 0) & (trials <= 2.0**62)).all():
        raise UserError("the numbers of trials have to be from 0 to 2^62", code="MLC0360")
    try:
        np.broadcast_shapes(trials.shape, chance.shape)
    except ValueError:
        raise UserError(f"shapes {list(trials.shape)} and {list(chance.shape)} do not broadcast",
                        code="MLC0111") from None
    drawn = source.numpy().binomial(trials.astype(np.int64), chance.astype(np.float64))
    return wrap(np.asarray(drawn).astype(trials.dtype))
