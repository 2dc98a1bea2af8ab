"""Histograms, and positions of a number that is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from mlc.dialects import tensor as T
from mlc.frontend.axes import plain_int
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions import shape as S
from mlc.frontend.functions.grids import unravel_index
from mlc.frontend.functions.reduce.sums import float_only
from mlc.frontend.functions.scan import cumsum
from mlc.frontend.functions.scatter import scatter_add
from mlc.frontend.functions.sort import searchsorted
from mlc.frontend.operands import broadcast_to, cast, full, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.bounds import MAX_ELEMENTS
from mlc.ir.diag import UserError
from mlc.ir.types import i1, i64


class Histogram(NamedTuple):
    """Result of `histogram`."""

    hist: Tensor
    bin_edges: Tensor


class HistogramDD(NamedTuple):
    """Result of `histogramdd`."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


def _even_edges(column: Tracer, count: Any, low: Any, high: Any) -> Tracer:
    """The ends of equal intervals, over the range of the elements if none is given."""
    n = plain_int(count, "bins")
    if not 0 < n < MAX_ELEMENTS:
        raise UserError(f"{n} bins", code="MLC0360")
    if low is None:
        if column.shape[0] == 0:
            low, high = 0.0, 1.0
        else:
            low, high = R.amin(column), R.amax(column)
    low, high = (cast(tracer(x), column.type.dtype) for x in (low, high))
    same = low == high
    low, high = E.where(same, low - 0.5, low), E.where(same, high + 0.5, high)
    number = emit(T.Iota, (n + 1,), 0, i64)
    step = (high - low) / n
    return tracer(E.where(2 * number < n + 1, low + step * number, high - step * (n - number)))


def _given_edges(bins: Tensor, x: Tracer) -> Tracer:
    edges = cast(tracer(bins), x.type.dtype)
    if edges.ndim != 1 or edges.shape[0] in (0, 1):
        raise UserError(f"edges of shape [{', '.join(map(str, edges.shape))}], expected a vector of two or more",
                        code="MLC0364")
    return edges


def _counted(points: Tracer, edges: Sequence[Tracer], weight: Operand, density: bool) -> Tensor:
    """How many points, the rows of a matrix, are in each box."""
    rows, dtype = points.shape[0], points.type.dtype
    shape = [plain_int(e.shape[0], "the number of edges") - 1 for e in edges]
    place: Any = full(0, emit(T.Full, 0, (), i64), [rows])
    inside: Any = full(True, emit(T.Full, True, (), i1), [rows])
    for d, (e, n) in enumerate(zip(edges, shape)):
        x = tracer(S.select(points, 1, d))
        at = searchsorted(e, x, right=True) - 1
        at = E.where(x == e[n], n - 1, at)
        inside = inside & (at >= 0) & (at < n)
        place = place * n + E.clamp(at, 0, n - 1)
    weights = full(1, points, [rows]) if weight is None else cast(reshape(tracer(weight), [rows]), dtype)
    kept = E.where(inside, weights, 0.0)
    hist = scatter_add(full(0, points, [sizes.product(shape)]), 0, place, kept)
    out = reshape(tracer(hist), shape)
    if not density:
        return out
    result: Any = out / R.sum(out)
    for d, e in enumerate(edges):
        widths = S.narrow(e, 0, 1, shape[d]) - S.narrow(e, 0, 0, shape[d])
        result = result / reshape(tracer(widths), [shape[d], *[1] * (len(shape) - d - 1)])
    return tracer(result)


def _range_of(range: Sequence[float] | None, d: int, count: int = 1) -> tuple[Any, Any]:
    """The ends for one of several coordinates; UserError if they are no ends."""
    if range is None:
        return None, None
    if len(range) != 2 * count:
        raise UserError(f"range has {len(range)} numbers for {count} coordinates, expected two for each",
                        code="MLC0357")
    low, high = range[2 * d], range[2 * d + 1]
    if not -math.inf < low <= high < math.inf:
        raise UserError(f"range = ({low}, {high}), expected finite numbers in ascending order", code="MLC0360")
    return low, high


@operation(literal=("bins",), static=("input",))
def histogram(input: Operand, bins: Operand, *, range: Sequence[float] | None = None, weight: Operand = None,
              density: bool = False) -> Histogram:
    """The histogram of the elements, and the ends of its intervals.

    Each interval includes its left end, the last one both. Elements outside do not count.

    Args:
        input: Tensor of floats.
        bins: Number of equal intervals, or a 1-D tensor of their ends in ascending order.
        range: Left end of the first and right end of the last interval; by default the least and greatest element.
        weight: What each element counts, of the shape of `input`; None for 1.
        density: Whether the histogram is scaled so that its integral is 1.

    Returns:
        Named tuple of `hist`, of the dtype of `input`, and `bin_edges`. They have no derivative.

    Raises:
        UserError: elements are no floats (MLC0359), `bins` is not positive (MLC0360) or no vector (MLC0364), or `range`
            has other than two numbers (MLC0357), or has them out of order or infinite (MLC0360).

    Example:
        >>> mlc.histogram(mlc.tensor([1.0, 2.0, 1.5]), 2, range=(0.0, 2.0)).hist
        tensor([0., 3.], dtype=mlc.float32)
    """
    x = float_only(tracer(E.detach(input)), "histogram")
    flat = reshape(x, [sizes.product(x.shape)])
    edges = _given_edges(bins, x) if isinstance(bins, Tensor) else _even_edges(flat, bins, *_range_of(range, 0))
    return Histogram(_counted(reshape(flat, [*flat.shape, 1]), [edges], weight, density), edges)


@operation(literal=("bins",), static=("input",))
def histogramdd(input: Operand, bins: int | Sequence[Operand], *, range: Sequence[float] | None = None,
                weight: Operand = None, density: bool = False) -> HistogramDD:
    """The histogram of points of several coordinates, and the ends of its intervals along each.

    Args:
        input: Tensor of floats of shape (..., coordinates).
        bins: Number of equal intervals for each coordinate, one number for all, or for each coordinate a 1-D tensor of
            the ends of its intervals in ascending order.
        range: Left end of the first and right end of the last interval, for each coordinate; by default its least and
            greatest value.
        weight: What each point counts, of the shape of `input` without the last dimension; None for 1.
        density: Whether the histogram is scaled so that its integral is 1.

    Returns:
        Named tuple of `hist`, of the dtype of `input`, with a dimension for each coordinate, and `bin_edges`. They have
        no derivative.

    Raises:
        UserError: elements are no floats (MLC0359) or no points (MLC0364), there are not as many bins as coordinates
            (MLC0357), a number of bins is not positive (MLC0360), or `range` has not two numbers for each coordinate
            (MLC0357), or has them out of order or infinite (MLC0360).

    Example:
        >>> mlc.histogramdd(mlc.tensor([[0.0, 1.0], [1.0, 0.0]]), [2, 2]).hist
        tensor([[0., 1.],
                [1., 0.]], dtype=mlc.float32)
    """
    x = float_only(tracer(E.detach(input)), "histogramdd")
    if not x.ndim:
        raise UserError("a number is no point", code="MLC0364")
    width = plain_int(x.shape[-1], "the number of coordinates")
    points = reshape(x, [sizes.product(x.shape[:-1]), width])
    given = list(bins) if isinstance(bins, tuple | list) else [bins] * width
    if len(given) != width:
        raise UserError(f"bins of {len(given)} coordinates for points of {width}", code="MLC0357")
    ends = [_given_edges(b, x) if isinstance(b, Tensor) else
            _even_edges(tracer(S.select(points, 1, d)), b, *_range_of(range, d, width)) for d, b in enumerate(given)]
    return HistogramDD(_counted(points, ends, weight, density), tuple(ends))


@operation()
def nonzero_static(input: Operand, *, size: int, fill_value: int = -1) -> Tensor:
    """The indices of the first elements that are not 0, as rows of a matrix whose height is known.

    Args:
        input: Tensor.
        size: Number of rows.
        fill_value: What rows hold for which there is no element.

    Returns:
        Tensor of int64 of shape (size, dimensions of `input`).

    Raises:
        UserError: `size` is negative (MLC0358).

    Example:
        >>> mlc.nonzero_static(mlc.tensor([0, 5, 7]), size=3)
        tensor([[ 1],
                [ 2],
                [-1]], dtype=mlc.int64)
    """
    x, rows = tracer(input), plain_int(size, "size")
    if rows < 0:
        raise UserError(f"size = {rows}", code="MLC0358")
    count = sizes.product(x.shape)
    empty = full(fill_value, emit(T.Full, 0, (), i64), [rows, x.ndim])
    if rows == 0 or x.ndim == 0 or (isinstance(count, int) and count == 0):
        return empty
    found = reshape(tracer(x != 0), [count])
    rank = cumsum(found, 0) - 1
    at = E.where(found & (rank < rows), rank, rows)        # a row more takes the others
    places = scatter_add(full(0, empty, [rows + 1]), 0, at, E.where(at < rows, emit(T.Iota, (count,), 0, i64), 0))
    taken = reshape(tracer(emit(T.Iota, (rows,), 0, i64) < R.sum(found)), [rows, 1])
    coordinates = S.stack(list(unravel_index(S.narrow(places, 0, 0, rows), x.shape)), -1)
    return E.where(broadcast_to(taken, [rows, x.ndim]), coordinates, empty)
