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
    """The elements along a dimension in order, and where they were.

    The sort is stable whether asked for or not. NaN counts as the greatest of all.

    Args:
        input: Tensor or number.
        dim: The dimension; negative ones count from the last.
        descending: Whether the greatest comes first.
        stable: Accepted for PyTorch's sake: equal elements always keep their order.

    Returns:
        Named tuple of `values`, of the shape and dtype of `input`, and `indices`, of int64.

    Raises:
        UserError: `dim` is out of range (MLC0356).

    Example:
        >>> mlc.sort(mlc.tensor([3.0, 1.0, 2.0]))
        ValuesAndIndices(values=tensor([1., 2., 3.], dtype=mlc.float32), indices=tensor([1, 2, 0], dtype=mlc.int64))
    """
    x, at = _line(tracer(input), dim)
    return _like(_picked(x, _order(x, at, descending), at), input)


def _like(found: ValuesAndIndices, input: Operand) -> ValuesAndIndices:
    shape = tracer(input).shape
    return found if shape else ValuesAndIndices(reshape(tracer(found.values), []), reshape(tracer(found.indices), []))


@operation()
def argsort(input: Operand, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices that sort a dimension: input[result[i]] <= input[result[i + 1]].

    The sort is stable whether asked for or not. NaN counts as the greatest of all.

    Args:
        input: Tensor or number.
        dim: The dimension; negative ones count from the last.
        descending: Whether the greatest comes first.
        stable: Accepted for PyTorch's sake: equal elements always keep their order.

    Returns:
        Tensor of int64 of the shape of `input`.

    Raises:
        UserError: `dim` is out of range (MLC0356).

    Example:
        >>> mlc.argsort(mlc.tensor([3.0, 1.0, 2.0]))
        tensor([1, 2, 0], dtype=mlc.int64)
    """
    return sort(input, dim, descending).indices


@operation()
def msort(input: Operand) -> Tensor:
    """The elements in ascending order along the first dimension.

    Args:
        input: Tensor or number.

    Returns:
        Tensor of the shape and dtype of `input`.

    Example:
        >>> mlc.msort(mlc.tensor([3.0, 1.0, 2.0]))
        tensor([1., 2., 3.], dtype=mlc.float32)
    """
    return sort(input, 0).values


@operation()
def topk(input: Operand, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> ValuesAndIndices:
    """The k greatest elements along a dimension, or the k least, and where they are.

    NaN counts as the greatest of all. Of equal elements the first ones are taken.

    Args:
        input: Tensor or number.
        k: How many elements.
        dim: The dimension; negative ones count from the last.
        largest: False for the least elements.
        sorted: Accepted for PyTorch's sake: the result is always in order, the best first.

    Returns:
        Named tuple of `values`, of the dtype of `input`, and `indices`, of int64, with k elements along `dim`.

    Raises:
        UserError: `k` is negative or greater than the size (MLC0360), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.topk(mlc.tensor([3.0, 1.0, 2.0]), 2)
        ValuesAndIndices(values=tensor([3., 2.], dtype=mlc.float32), indices=tensor([0, 2], dtype=mlc.int64))
    """
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
    """The k-th least element along a dimension, counted from 1, and its index.

    NaN counts as the greatest of all.

    Args:
        input: Tensor or number.
        k: The rank, from 1 to the size.
        dim: The dimension; negative ones count from the last.
        keepdim: Whether the dimension stays, with size 1.

    Returns:
        Named tuple of `values`, of the dtype of `input`, and `indices`, of int64.

    Raises:
        UserError: `k` is no rank (MLC0360), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.kthvalue(mlc.tensor([3.0, 1.0, 2.0]), 2)
        ValuesAndIndices(values=tensor(2., dtype=mlc.float32), indices=tensor(2, dtype=mlc.int64))
    """
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
    """The median: the middle element in order, of two the lesser; with `dim`, along it, and its index.

    NaN if there is one. Unlike `quantile`, it takes no mean of two.

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

    NaN where there is no other element.

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
    """The value below which the part q of the elements lies.

    It stands at place q * (n - 1) in order, and between two elements is interpolated (definition 7 of Hyndman and Fan
    1996). NaN if there is one. A part below 0 counts as 0.

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
            (MLC0363), `q` has more dimensions (MLC0364) or is above 1 (MLC0340), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.quantile(mlc.tensor([1.0, 2.0, 3.0, 4.0]), mlc.tensor([0.5, 0.9]))
        tensor([2.5      , 3.6999998], dtype=mlc.float32)
    """
    return _quantile(input, q, dim, keepdim, interpolation, False)


@operation()
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
        UserError: as `quantile` (MLC0340, MLC0356, MLC0359, MLC0360, MLC0363, MLC0364).

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
    """Where elements would go in an ascending sequence, so that it stays in order.

    The result i has sequence[i - 1] < x <= sequence[i], or with `right` sequence[i - 1] <= x < sequence[i].

    Args:
        sorted_sequence: Vector in ascending order, or tensor of which each slice along the last dimension is.
        input: Tensor or number; the dimensions before the last are those of a `sorted_sequence` that is no vector.
        out_int32: Whether the result is of int32.
        right: Whether elements go behind equal ones.
        side: "left" or "right", another way to say `right`.

    Returns:
        Tensor of int64, or int32, of the shape of `input`.

    Raises:
        UserError: `side` is another string (MLC0360).

    Example:
        >>> mlc.searchsorted(mlc.tensor([1.0, 3.0, 5.0]), mlc.tensor([3.0, 4.0]))
        tensor([1, 2], dtype=mlc.int64)
    """
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
    """The index of the interval between boundaries that each element lies in.

    It is `searchsorted` with the arguments exchanged: the number of boundaries below an element.

    Args:
        input: Tensor or number.
        boundaries: Vector in ascending order.
        out_int32: Whether the result is of int32.
        right: Whether an interval includes its left boundary instead of its right one.

    Returns:
        Tensor of int64, or int32, of the shape of `input`.

    Example:
        >>> mlc.bucketize(mlc.tensor([0.0, 3.0, 9.0]), mlc.tensor([1.0, 3.0, 5.0]))
        tensor([0, 1, 3], dtype=mlc.int64)
    """
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@operation()
def isin(elements: Operand, test_elements: Operand, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is among the test elements; NaN never is.

    Every element is compared with every other one: the work is the product of both sizes.

    Args:
        elements: Tensor or number.
        test_elements: Tensor or number.
        assume_unique: Accepted for PyTorch's sake; the result is the same.
        invert: Whether to tell which elements are not among them.

    Returns:
        Tensor of bools of the shape of `elements`.

    Example:
        >>> mlc.isin(mlc.tensor([1, 2, 3]), mlc.tensor([2, 5]))
        tensor([False,  True, False], dtype=mlc.bool)
    """
    x, table = together(elements, test_elements)
    flat = reshape(table, [sizes.product(table.shape)])
    found = R.any(reshape(x, [*x.shape, 1]) == flat, -1)
    return E.logical_not(found) if invert else found


@operation()
def histc(input: Operand, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """The histogram of the elements over equal intervals from min to max.

    Each interval includes its left end, the last one both. Elements outside do not count, nor does NaN; where the ends
    are those of the elements, NaN makes all counts 0.

    Args:
        input: Tensor of floats.
        bins: Number of intervals.
        min: Left end of the first; if it equals `max`, the least and the greatest element are taken.
        max: Right end of the last.

    Returns:
        1-D tensor of `bins` counts, of the dtype of `input`; it has no derivative.

    Raises:
        UserError: elements are no floats (MLC0359), or `bins` is not positive or `max` below `min` (MLC0360).

    Example:
        >>> mlc.histc(mlc.tensor([1.0, 2.0, 2.5, 4.0]), bins=3, min=1, max=4)
        tensor([1., 2., 1.], dtype=mlc.float32)
    """
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
