"""Medians, quantiles and the mode."""

from __future__ import annotations

from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.reduce import ValuesAndIndices, float_only
from mlc.frontend.functions.sort.order import argsort_along, as_line, element_at, shaped_like, sort
from mlc.frontend.operands import broadcast_to, cast, fail_unless, full, need, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.types import i64

INTERPOLATION = ("linear", "lower", "higher", "midpoint", "nearest")


def _count(x: Tracer, at: int) -> Tracer:
    """The number of elements along an axis."""
    return tracer(x.shape[at])


def _median(input: Operand, dim: int | None, keepdim: bool, ignore: bool) -> Any:
    x = tracer(input)
    if dim is None:
        flat = reshape(x, [sizes.product(x.shape)])
        if flat.shape[0] == 0 and R.is_float(x):
            return full(float("nan"), x)
        found = _median(flat, 0, False, ignore).values
        if not R.is_float(x):
            return found
        return _shared(flat, emit(T.StopGradient, tracer(found)))
    x, at = as_line(x, dim)
    need(x.shape[at] - 1, "the median of no elements is not defined")
    middle: Any = (_count(x, at) - 1) // 2
    position = broadcast_to(reshape(tracer(middle), [1] * x.ndim), [1 if i == at else d for i, d in enumerate(x.shape)])
    if R.is_float(x):
        nans = R.sum(E.isnan(x), at, keepdim=True)
        if ignore:
            some = E.maximum(_count(x, at) - nans - 1, 0) // 2
            position = tracer(some)
        else:                                              # the first NaN: they stand last
            position = tracer(E.where(nans > 0, _count(x, at) - nans, position))
    return shaped_like(element_at(x, position, at, keepdim and tracer(input).ndim > 0, argsort_along(x, at)), input)


def _shared(x: Tracer, found: Tracer) -> Any:
    """`found`, an element of x, with a derivative that the elements that are equal to it share."""
    chosen = E.logical_or(E.eq(x, found), E.logical_and(E.isnan(x), E.isnan(found)))
    apart: Any = E.where(E.isfinite(found), found, 0.0)              # a mean of equal numbers could be rounded
    return apart + R.sum(E.where(chosen, x - apart, 0.0)) / R.sum(chosen)


@operation()
def median(input: Operand, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median: the middle element in order, of two the lesser; with `dim`, along it, and its index.

    NaN if there is one. Unlike `quantile`, it takes no mean of two. Without `dim`, elements that are equal to it share
    the derivative.

    Args:
        input: Tensor or number.
        dim: The dimension; negative ones count from the last. None for the median of all elements.
        keepdim: Whether the dimension stays, with size 1.

    Returns:
        Without `dim`, a 0-d tensor; with it, a named tuple of `values`, of the dtype of `input`, and `indices`, of
        int64.

    Raises:
        UserError: there are no elements along `dim` (MLC0363), or it is out of range (MLC0356).

    Example:
        >>> mlc.median(mlc.tensor([3.0, 1.0, 2.0, 4.0]))
        tensor(2., dtype=mlc.float32)
        >>> mlc.median(mlc.tensor([[3.0, 1.0, 2.0]]), 1)
        ValuesAndIndices(values=tensor([2.], dtype=mlc.float32), indices=tensor([2], dtype=mlc.int64))
    """
    return _median(input, dim, keepdim, False)


@operation()
def nanmedian(input: Operand, dim: int | None = None, keepdim: bool = False) -> Any:
    """The median of the elements that are not NaN; with `dim`, along it, and its index.

    NaN where there is no other element. Without `dim`, elements that are equal to it share the derivative.

    Args:
        input: Tensor or number.
        dim: The dimension; negative ones count from the last. None for the median of all elements.
        keepdim: Whether the dimension stays, with size 1.

    Returns:
        Without `dim`, a 0-d tensor; with it, a named tuple of `values`, of the dtype of `input`, and `indices`, of
        int64.

    Raises:
        UserError: there are no elements along `dim` (MLC0363), or it is out of range (MLC0356).

    Example:
        >>> mlc.nanmedian(mlc.tensor([3.0, float("nan"), 2.0, 4.0]))
        tensor(3., dtype=mlc.float32)
    """
    return _median(input, dim, keepdim, True)


def _quantile(input: Operand, q: Operand, dim: int | None, keepdim: bool, how: str, ignore: bool) -> Tensor:
    if how not in INTERPOLATION:
        raise UserError(f"interpolation = {how!r}", code="MLC0360", hint="use one of " + ", ".join(INTERPOLATION))
    x = float_only(tracer(input), "quantile")
    rank = x.ndim
    x, at = as_line(x if dim is not None else reshape(x, [sizes.product(x.shape)]), dim or 0)
    part = cast(tracer(q), x.type.dtype)
    if part.ndim > 1:
        raise UserError(f"q has {part.ndim} dimensions, expected at most 1", code="MLC0364")
    need(x.shape[at] - 1, "the quantile of no elements is not defined")
    fail_unless(E.logical_and(part >= 0, part <= 1), "quantile: q is not in [0, 1]")
    part = tracer(E.minimum(part, 1.0))                  # or a position beyond the elements would be the error
    values = tracer(sort(x, at).values)
    nans = R.sum(E.isnan(x), at, keepdim=True)
    last = cast(tracer(_count(x, at) - 1 - (nans if ignore else 0)), x.type.dtype)
    column = reshape(part, [*part.shape, *[1] * x.ndim])
    place = tracer(E.maximum(column * last, 0.0))        # [q, ..., 1, ...]; last is -1 where all elements are NaN
    low, high = _between(place, how)
    flat = []
    for bound in (low, high):
        shape = [*part.shape, *(1 if i == at else d for i, d in enumerate(x.shape))]
        spread = broadcast_to(tracer(bound), shape)
        source = broadcast_to(values, [*part.shape, *x.shape])
        flat.append(emit(T.TakeAlong, source, cast(spread, i64), at + part.ndim))
    out = E.lerp(flat[0], flat[1], place - low) if how == "linear" else (
        E.lerp(flat[0], flat[1], 0.5) if how == "midpoint" else flat[0])
    out = E.where((nans == _count(x, at)) if ignore else nans > 0, float("nan"), out)
    if not keepdim:
        shape = [*part.shape, *(d for i, d in enumerate(x.shape) if i != at and rank)]
    else:
        ones = [1] * rank if dim is None else [1 if i == at else d for i, d in enumerate(x.shape)][:rank]
        shape = [*part.shape, *ones]
    return reshape(tracer(out), shape)


def _between(place: Tracer, how: str) -> tuple[Tensor, Tensor]:
    """The positions below and above a fractional one, or the rounded one for both."""
    low, high = E.floor(place), E.ceil(place)
    if how in ("linear", "midpoint"):
        return low, high
    one = {"lower": low, "higher": high, "nearest": E.round(place)}[how]
    return one, one


@operation(autocast="fp32")
def quantile(input: Operand, q: Operand, dim: int | None = None, keepdim: bool = False, *,
             interpolation: str = "linear") -> Tensor:
    """The value below which the part q of the elements lies.

    It stands at place q * (n - 1) in order, and between two elements is interpolated (definition 7 of Hyndman and Fan
    1996). NaN if there is one.

    Args:
        input: Tensor of floats.
        q: Number or 1-D tensor of parts from 0 to 1.
        dim: The dimension; negative ones count from the last. None for all elements.
        keepdim: Whether the dimension stays, with size 1.
        interpolation: Between two elements: "linear", "lower", "higher", "midpoint" or "nearest".

    Returns:
        Tensor of the dtype of `input`; a 1-D `q` gives a first dimension.

    Raises:
        UserError: `interpolation` is another string (MLC0360), elements are no floats (MLC0359), there are none
            (MLC0363), `q` has more dimensions (MLC0364), or `dim` is out of range (MLC0356).
        UserAssertionError: an element of `q` is not in [0, 1] (MLC0612).

    Example:
        >>> mlc.quantile(mlc.tensor([1.0, 2.0, 3.0, 4.0]), mlc.tensor([0.5, 0.9]))
        tensor([2.5      , 3.6999998], dtype=mlc.float32)
    """
    return _quantile(input, q, dim, keepdim, interpolation, False)


@operation(autocast="fp32")
def nanquantile(input: Operand, q: Operand, dim: int | None = None, keepdim: bool = False, *,
                interpolation: str = "linear") -> Tensor:
    """The quantile of the elements that are not NaN; NaN where there is no other element.

    Args:
        input: Tensor of floats.
        q: Number or 1-D tensor of parts from 0 to 1.
        dim: The dimension; negative ones count from the last. None for all elements.
        keepdim: Whether the dimension stays, with size 1.
        interpolation: Between two elements: "linear", "lower", "higher", "midpoint" or "nearest".

    Returns:
        Tensor of the dtype of `input`; a 1-D `q` gives a first dimension.

    Raises:
        UserError: as `quantile` (MLC0356, MLC0359, MLC0360, MLC0363, MLC0364).
        UserAssertionError: an element of `q` is not in [0, 1] (MLC0612).

    Example:
        >>> mlc.nanquantile(mlc.tensor([1.0, float("nan"), 3.0]), 0.5)
        tensor(2., dtype=mlc.float32)
    """
    return _quantile(input, q, dim, keepdim, interpolation, True)


@operation()
def mode(input: Operand, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """The most frequent element along a dimension, of several the least, and the last index that it has.

    All NaN are one element, and greater than any other.

    Args:
        input: Tensor or number.
        dim: The dimension; negative ones count from the last.
        keepdim: Whether the dimension stays, with size 1.

    Returns:
        Named tuple of `values`, of the dtype of `input`, and `indices`, of int64.

    Raises:
        UserError: there are no elements along `dim` (MLC0363), or it is out of range (MLC0356).

    Example:
        >>> mlc.mode(mlc.tensor([3.0, 1.0, 3.0, 2.0]))
        ValuesAndIndices(values=tensor(3., dtype=mlc.float32), indices=tensor(2, dtype=mlc.int64))
    """
    x, at = as_line(tracer(input), dim)
    need(x.shape[at] - 1, "the mode of no elements is not defined")
    values, order = sort(x, at)
    here = reshape(tracer(values), [*x.shape[: at + 1], 1, *x.shape[at + 1:]])
    there = reshape(tracer(values), [*x.shape[:at], 1, *x.shape[at:]])
    same = here == there
    if R.is_float(x):
        same = E.logical_or(same, E.logical_and(E.isnan(here), E.isnan(there)))
    count = R.sum(same, at + 1)
    best = tracer(R.argmax(count, at, keepdim=True))
    most = emit(T.TakeAlong, tracer(count), best, at)
    found = element_at(x, tracer(best + most - 1), at, keepdim and tracer(input).ndim > 0, tracer(order))
    return shaped_like(found, input)
