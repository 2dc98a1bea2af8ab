"""Search in sorted sequences, sets and histograms."""

from __future__ import annotations

import math
from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.axes import plain_int
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.index import gather
from mlc.frontend.functions.reduce import float_only
from mlc.frontend.operands import cast, fail_unless, full, reshape, together, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.types import i32, i64


@operation()
def searchsorted(sorted_sequence: Operand, input: Operand, *, out_int32: bool = False, right: bool = False,
                 side: str | None = None, sorter: Operand = None) -> Tensor:
    """Where elements would go in an ascending sequence, so that it stays in order.

    The result i has sequence[i - 1] < x <= sequence[i], or with `right` sequence[i - 1] <= x < sequence[i].

    Args:
        sorted_sequence: Vector in ascending order, or tensor of which each slice along the last dimension is.
        input: Tensor or number; the dimensions before the last are those of a `sorted_sequence` that is no vector.
        out_int32: Whether the result is of int32.
        right: Whether elements go behind equal ones.
        side: "left" or "right", another way to say `right`.
        sorter: Indices that bring a `sorted_sequence` in any order into ascending order, as `mlc.argsort` gives them.

    Returns:
        Tensor of int64, or int32, of the shape of `input`.

    Raises:
        UserError: `side` is another string (MLC0360), the sequence is a number (MLC0364), the dimensions of `input` are
            not those of the sequences (MLC0367), or `sorter` does not go with the sequence (as in `mlc.gather`).

    Example:
        >>> mlc.searchsorted(mlc.tensor([1.0, 3.0, 5.0]), mlc.tensor([3.0, 4.0]))
        tensor([1, 2], dtype=mlc.int64)
    """
    if side not in (None, "left", "right"):
        raise UserError(f"side = {side!r}", code="MLC0360", hint='use "left" or "right"')
    ordered, values = together(sorted_sequence, input)
    ordered = ordered if sorter is None else tracer(gather(ordered, -1, sorter))
    single = not values.ndim
    values = reshape(values, [1]) if single else values
    if not ordered.ndim:
        raise UserError("the sorted sequence is a number, expected a vector at least", code="MLC0364")
    if ordered.ndim > 1 and (ordered.ndim != values.ndim or not all(
            map(sizes.is_equal, ordered.shape[:-1], values.shape[:-1]))):
        raise UserError(f"elements of shape {list(values.shape)} for sequences of shape {list(ordered.shape)}: their "
                        "dimensions but the last are to be the same", code="MLC0367")
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

    Raises:
        UserError: `boundaries` is no vector (MLC0364).

    Example:
        >>> mlc.bucketize(mlc.tensor([0.0, 3.0, 9.0]), mlc.tensor([1.0, 3.0, 5.0]))
        tensor([0, 1, 3], dtype=mlc.int64)
    """
    if tracer(boundaries).ndim != 1:
        raise UserError(f"the boundaries have {tracer(boundaries).ndim} dimensions, expected a vector", code="MLC0364")
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

    Each interval includes its left end, the last one both. Elements outside do not count, nor does NaN.

    Args:
        input: Tensor of floats.
        bins: Number of intervals.
        min: Left end of the first; if it equals `max`, the least and the greatest element are taken.
        max: Right end of the last.

    Returns:
        1-D tensor of `bins` counts, of the dtype of `input`; it has no derivative.

    Raises:
        UserError: elements are no floats (MLC0359), `bins` is not positive, `max` is below `min`, or one of these is
            not finite (MLC0360).
        UserAssertionError: the range is that of the elements, and one is NaN or infinite (MLC0612).

    Example:
        >>> mlc.histc(mlc.tensor([1.0, 2.0, 2.5, 4.0]), bins=3, min=1, max=4)
        tensor([1., 2., 1.], dtype=mlc.float32)
    """
    x = float_only(tracer(input), "histc")
    count = plain_int(bins, "bins")
    if count < 1 or max < min or not (math.isfinite(min) and math.isfinite(max)):
        raise UserError(f"{count} bins from {min} to {max}", code="MLC0360")
    flat = E.detach(reshape(x, [sizes.product(x.shape)]))
    if flat.shape[0] == 0:
        return full(0.0, x, [count])
    low: Any = min
    high: Any = max
    if min == max:
        low, high = R.amin(flat), R.amax(flat)
        fail_unless(E.logical_and(E.isfinite(low), E.isfinite(high)), "histc: the range of the elements is not finite")
        same = low == high
        low, high = E.where(same, low - 1, low), E.where(same, high + 1, high)
    place = E.floor((flat - low) * count / (high - low))      # exact for whole numbers
    place = E.where(flat == high, count - 1.0, place)
    inside = E.logical_and(flat >= low, flat <= high)
    at = cast(tracer(E.where(inside, place, -1.0)), i64)
    hits = reshape(at, [*at.shape, 1]) == emit(T.Iota, (count,), 0, i64)
    return cast(tracer(R.sum(hits, 0)), x.type.dtype)
