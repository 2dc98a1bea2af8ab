"""Functions that sort, or pick by rank: all by tensor.argsort, which is stable and puts NaN last.

Values are the elements at the positions found, so derivatives go to them. Where PyTorch leaves open which of equal
elements is picked, here it is the first.
"""

from __future__ import annotations

from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.reduce import ValuesAndIndices, float_only
from mlc.frontend.functions.shape import narrow
from mlc.frontend.operands import axis, broadcast_to, cast, full, need, plain_int, reshape, together, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import Tracer, emit
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.types import i32, i64

INTERPOLATION = ("linear", "lower", "higher", "midpoint", "nearest")


def _order(x: Tracer, at: int, descending: bool = False) -> Tracer:
    return emit(T.ArgSort, x, at, bool(descending))  # type: ignore[no-any-return]


def _picked(x: Tracer, order: Tracer, at: int) -> ValuesAndIndices:
    return ValuesAndIndices(emit(T.TakeAlong, x, order, at), order)


def _line(x: Tracer, dim: int) -> tuple[Tracer, int]:
    """The tensor and its axis; a number is a vector of one element."""
    return (x, axis(dim, x.ndim)) if x.ndim else (reshape(x, [1]), axis(dim, 1))


@operation()
def sort(input: Operand, dim: int = -1, descending: bool = False, stable: bool = False) -> ValuesAndIndices:
    """(values, indices): the elements along `dim` in order, and where they were; equal elements keep their order"""
    x, at = _line(tracer(input), dim)
    return _like(_picked(x, _order(x, at, descending), at), input)


def _like(found: ValuesAndIndices, input: Operand) -> ValuesAndIndices:
    shape = tracer(input).shape
    return found if shape else ValuesAndIndices(reshape(tracer(found.values), []), reshape(tracer(found.indices), []))


@operation()
def argsort(input: Operand, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The positions of the elements along `dim` in order, input[result[i]] <= input[result[i + 1]]; it is stable"""
    return sort(input, dim, descending).indices


@operation()
def msort(input: Operand) -> Tensor:
    """The elements in order along the first dimension."""
    return sort(input, 0).values


@operation()
def topk(input: Operand, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> ValuesAndIndices:
    """(values, indices) of the k greatest elements along `dim`, or the smallest; always in order"""
    x, at = _line(tracer(input), dim)
    count = plain_int(k, "k")
    if count < 0 or (isinstance(x.shape[at], int) and count > x.shape[at]):
        raise UserError(f"k = {count} of {x.shape[at]} elements", code="MLC0360")
    order = tracer(narrow(_order(x, at, largest), at, 0, count))
    return _like(_picked(x, order, at), input) if count else _picked(x, order, at)


def _one(x: Tracer, position: Any, at: int, keepdim: bool, order: Tracer) -> ValuesAndIndices:
    """The element whose place in the order is `position`, a number or a tensor with size 1 along the axis."""
    if isinstance(position, int):
        index = tracer(narrow(order, at, position, 1))
    else:
        index = emit(T.TakeAlong, order, position, at)
    found = _picked(x, index, at)
    if keepdim:
        return found
    shape = [d for i, d in enumerate(x.shape) if i != at]
    return ValuesAndIndices(reshape(tracer(found.values), shape), reshape(tracer(found.indices), shape))


@operation()
def kthvalue(input: Operand, k: int, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """(values, indices) of the k-th smallest element along `dim`, counted from 1"""
    x, at = _line(tracer(input), dim)
    rank = plain_int(k, "k")
    if rank < 1 or (isinstance(x.shape[at], int) and rank > x.shape[at]):
        raise UserError(f"k = {rank} of {x.shape[at]} elements", code="MLC0360")
    return _like(_one(x, rank - 1, at, keepdim and tracer(input).ndim > 0, _order(x, at)), input)


def _count(x: Tracer, at: int) -> Tracer:
    """The number of elements along an axis."""
    return tracer(x.shape[at])


def _median(input: Operand, dim: int | None, keepdim: bool, ignore: bool) -> Any:
    x = tracer(input)
    if dim is None:
        flat = reshape(x, [sizes.product(x.shape)])
        if flat.shape[0] == 0 and R.is_float(x):
            return full(float("nan"), x)
        return _median(flat, 0, False, ignore).values
    x, at = _line(x, dim)
    need(x.shape[at] - 1, "the median of no elements is not defined")
    middle: Any = (_count(x, at) - 1) // 2
    position = broadcast_to(reshape(tracer(middle), [1] * x.ndim), [1 if i == at else d for i, d in enumerate(x.shape)])
    if R.is_float(x):
        nans = R.sum(E.isnan(x), at, keepdim=True)
        if ignore:
            some = E.maximum(_count(x, at) - nans - 1, 0) // 2
            position = tracer(some)
        else:                                              # a NaN, which stands last
            position = tracer(E.where(nans > 0, _count(x, at) - 1, position))
    return _like(_one(x, position, at, keepdim and tracer(input).ndim > 0, _order(x, at)), input)


@operation()
def median(input: Operand, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle element in order, of two the smaller, NaN if there is one; with `dim`, (values, indices) along it"""
    return _median(input, dim, keepdim, False)


@operation()
def nanmedian(input: Operand, dim: int | None = None, keepdim: bool = False) -> Any:
    """As median, of the elements that are not NaN."""
    return _median(input, dim, keepdim, True)


def _quantile(input: Operand, q: Operand, dim: int | None, keepdim: bool, how: str, ignore: bool) -> Tensor:
    if how not in INTERPOLATION:
        raise UserError(f"interpolation = {how!r}", code="MLC0360", hint="use one of " + ", ".join(INTERPOLATION))
    x = float_only(tracer(input), "quantile")
    rank = x.ndim
    x, at = _line(x if dim is not None else reshape(x, [sizes.product(x.shape)]), dim or 0)
    part = cast(tracer(q), x.type.dtype)
    if part.ndim > 1:
        raise UserError(f"q has {part.ndim} dimensions, expected at most 1", code="MLC0364")
    need(x.shape[at] - 1, "the quantile of no elements is not defined")
    values = tracer(sort(x, at).values)
    nans = R.sum(E.isnan(x), at, keepdim=True)
    last = cast(tracer(_count(x, at) - 1 - (nans if ignore else 0)), x.type.dtype)
    column = reshape(part, [*part.shape, *[1] * x.ndim])
    place = tracer(E.maximum(column * last, 0.0))                  # [q, ..., 1, ...]
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
    """The positions below and above a place between them, or the one that stands for both."""
    low, high = E.floor(place), E.ceil(place)
    if how in ("linear", "midpoint"):
        return low, high
    one = {"lower": low, "higher": high, "nearest": E.round(place)}[how]
    return one, one


@operation()
def quantile(input: Operand, q: Operand, dim: int | None = None, keepdim: bool = False, *,
             interpolation: str = "linear") -> Tensor:
    """The value below which the part q of the elements along `dim` lies; several q are the first dimension."""
    return _quantile(input, q, dim, keepdim, interpolation, False)


@operation()
def nanquantile(input: Operand, q: Operand, dim: int | None = None, keepdim: bool = False, *,
                interpolation: str = "linear") -> Tensor:
    """As quantile, of the elements that are not NaN."""
    return _quantile(input, q, dim, keepdim, interpolation, True)


@operation()
def mode(input: Operand, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """(values, indices) of the most frequent element along `dim`, or the smallest of them; the last index it has

    All NaN are one element, and greater than any other.
    """
    x, at = _line(tracer(input), dim)
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
    found = _one(x, tracer(best + most - 1), at, keepdim and tracer(input).ndim > 0, tracer(order))
    return _like(found, input)


@operation()
def searchsorted(sorted_sequence: Operand, input: Operand, *, out_int32: bool = False, right: bool = False,
                 side: str | None = None) -> Tensor:
    """Where elements would go in an ascending last dimension: before equal ones, or behind them with side="right"."""
    if side not in (None, "left", "right"):
        raise UserError(f"side = {side!r}", code="MLC0360", hint='use "left" or "right"')
    ordered, values = together(sorted_sequence, input)
    single = not values.ndim
    values = reshape(values, [1]) if single else values
    found = emit(T.SearchSorted, ordered, values, bool(right) or side == "right")
    found = cast(found, i32) if out_int32 else found
    return reshape(found, []) if single else found


@operation()
def bucketize(input: Operand, boundaries: Operand, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The number of boundaries below each element, or with `right` not above it."""
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@operation()
def isin(elements: Operand, test_elements: Operand, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is one of test_elements; NaN is not."""
    x, table = together(elements, test_elements)
    flat = reshape(table, [sizes.product(table.shape)])
    found = R.any(reshape(x, [*x.shape, 1]) == flat, -1)
    return E.logical_not(found) if invert else found


@operation()
def histc(input: Operand, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements lie in each of `bins` equal intervals from min to max; of the extrema if both are equal"""
    x = float_only(tracer(input), "histc")
    count = plain_int(bins, "bins")
    if count < 1 or max < min:
        raise UserError(f"{count} bins from {min} to {max}", code="MLC0360")
    flat = E.detach(reshape(x, [sizes.product(x.shape)]))
    if flat.shape[0] == 0:
        return full(0.0, x, [count])
    low: Any = min
    high: Any = max
    if min == max:
        low, high = R.amin(flat), R.amax(flat)
        same = low == high
        low, high = E.where(same, low - 1, low), E.where(same, high + 1, high)
    place = E.floor((flat - low) / (high - low) * count)
    place = E.where(flat == high, count - 1.0, place)
    inside = E.logical_and(flat >= low, flat <= high)
    at = cast(tracer(E.where(inside, place, -1.0)), i64)
    hits = reshape(at, [*at.shape, 1]) == emit(T.Iota, (count,), 0, i64)
    return cast(tracer(R.sum(hits, 0)), x.type.dtype)
