"""Tensors with a slice, a diagonal, or the elements at some indices replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.axes import axis, plain_int
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.index import coordinates_of, from_the_front, take
from mlc.frontend.functions.scan import cumsum
from mlc.frontend.functions.shape import cat, coordinates, movedim, sliced
from mlc.frontend.operands import (
    broadcast_shapes,
    broadcast_to,
    cast,
    fail_unless,
    integer,
    need,
    reshape,
    same_shape,
    tracer,
)
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError, UserIndexError, UserTypeError
from mlc.ir.types import i64


def _fitting(src: Operand, x: Tracer, shape: Sequence[Any]) -> Tracer:
    """src in the dtype of x; UserError if it has another shape than this."""
    new = cast(tracer(src), x.type.dtype)
    if not same_shape(new.shape, shape):
        raise UserError(f"src has shape {list(new.shape)}, expected {list(shape)}", code="MLC0367",
                        symbols=sizes.differing(new.shape, tuple(shape)))
    return new


@operation()
def select_scatter(input: Operand, src: Operand, dim: int, index: int) -> Tensor:
    """The tensor with its slice at one index of a dimension replaced: result[index] = src for dim = 0.

    Args:
        input: Tensor of at least one dimension.
        src: Tensor of the shape of `input` without `dim`; it is cast to the dtype of `input`.
        dim: The dimension; negative ones count from the last.
        index: Python integer; negative ones count from the end.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: the index is out of range (MLC0366, an IndexError), `dim` is (MLC0356), `src` has another shape
            (MLC0367), or `input` has no dimensions (MLC0364).

    Example:
        >>> mlc.select_scatter(mlc.zeros(2, 2), mlc.ones(2), 0, 1)
        tensor([[0., 0.],
                [1., 1.]], dtype=mlc.float32)
    """
    x = tracer(input)
    at, i = axis(dim, x.ndim, scalar=False), plain_int(index, "index")
    n = x.shape[at]
    if isinstance(n, int) and not -n <= i < n:
        raise UserIndexError(f"index {i} is out of range for a dimension of {n}", code="MLC0366")
    need(n - i - 1 if i >= 0 else n + i, f"index {i} is out of range for a dimension of {n}")
    new = _fitting(src, x, [d for k, d in enumerate(x.shape) if k != at])
    wide = broadcast_to(reshape(new, [1 if k == at else d for k, d in enumerate(x.shape)]), x.shape)
    return E.where(coordinates(x, at) == tracer(i if i >= 0 else n + i), wide, x)


@operation()
def slice_scatter(input: Operand, src: Operand, dim: int = 0, start: int | None = None, end: int | None = None,
                  step: int = 1) -> Tensor:
    """The tensor with a slice of a dimension replaced: result[start:end:step] = src for dim = 0.

    Args:
        input: Tensor of at least one dimension.
        src: Tensor of the shape of the slice; it is cast to the dtype of `input`.
        dim: The dimension; negative ones count from the last.
        start: First index; negative ones count from the end, and those out of range are limited.
        end: Index behind the last one, in the same way.
        step: Distance between indices, at least 1.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: `dim` is out of range (MLC0356), `src` has another shape (MLC0367), `step` is not positive (MLC0360),
            the size of the dimension is symbolic (MLC0365), or `input` has no dimensions (MLC0364).

    Example:
        >>> mlc.slice_scatter(mlc.zeros(5), mlc.ones(2), start=1, end=5, step=2)
        tensor([0., 1., 0., 1., 0.], dtype=mlc.float32)
    """
    x = tracer(input)
    at, by = axis(dim, x.ndim, scalar=False), plain_int(step, "step")
    n = x.shape[at]
    if by < 1:
        raise UserError(f"step = {by}, expected at least 1", code="MLC0360")
    if not isinstance(n, int):
        raise UserError(f"slice_scatter needs a size that is known, found {n}", code="MLC0365",
                        symbols=sizes.symbols(n))
    first, last, _ = slice(start, end, by).indices(n)
    count = len(range(first, last, by))
    new = _fitting(src, x, [count if k == at else d for k, d in enumerate(x.shape)])
    if not count:
        return x
    if by == 1:
        return cat([sliced(x, at, 0, first), new, sliced(x, at, first + count, n)], at)
    place = coordinates(x, at)
    inside = (place >= first) & (place < last) & (((place - first) % by) == 0)
    index = E.clamp((tracer(emit(T.Iota, (n,), 0, i64)) - first) // by, 0, count - 1)
    return E.where(inside, take(new, index, at), x)


@operation()
def diagonal_scatter(input: Operand, src: Operand, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The tensor with a diagonal of two of its dimensions replaced; `mlc.diagonal` of the result is `src`.

    Args:
        input: Tensor of at least two dimensions.
        src: Tensor of the shape of the diagonal; it is cast to the dtype of `input`.
        offset: The diagonal: 0 for the main one, positive above it, negative below it.
        dim1: Dimension of the rows; negative ones count from the last.
        dim2: Dimension of the columns.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: a dimension is out of range (MLC0356) or named twice (MLC0357), or `src` has another shape (MLC0367).

    Example:
        >>> mlc.diagonal_scatter(mlc.zeros(2, 2), mlc.tensor([1.0, 2.0]))
        tensor([[1., 0.],
                [0., 2.]], dtype=mlc.float32)
    """
    from mlc.frontend.functions.index import diagonal
    x = tracer(input)
    a, b = axis(dim1, x.ndim, "dim1"), axis(dim2, x.ndim, "dim2")
    new = _fitting(src, x, tracer(diagonal(x, offset, a, b)).shape)
    if 0 in new.shape:
        return x
    square, by = tracer(movedim(x, (a, b), (-2, -1))), plain_int(offset, "offset")
    row, column = coordinates(square, square.ndim - 2), coordinates(square, square.ndim - 1)
    rows, length = square.shape[-2], new.shape[-1]
    index = E.clamp(tracer(emit(T.Iota, (rows,), 0, i64)) + min(by, 0), 0, tracer(length) - 1)
    spread = take(new, index, new.ndim - 1)
    wide = broadcast_to(reshape(spread, [*spread.shape, 1]), square.shape)
    return movedim(E.where(column == row + by, wide, square), (-2, -1), (a, b))


@operation(stored={"source": "input"})
def masked_scatter(input: Operand, mask: Operand, source: Operand) -> Tensor:
    """The tensor with the elements that a mask picks replaced by the first ones of a source, in order.

    Args:
        input: Tensor.
        mask: Tensor of bools whose shape broadcasts with that of `input`.
        source: Tensor of at least as many elements as the mask has True ones; it is cast to the dtype of `input`.

    Returns:
        Tensor of the broadcast shape and the dtype of `input`.

    Raises:
        UserError: the mask is not of bool (MLC0362), the source has too few elements (MLC0340, an IndexError), or the
            shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.masked_scatter(mlc.zeros(4), mlc.tensor([False, True, False, True]), mlc.tensor([5.0, 6.0]))
        tensor([0., 5., 0., 6.], dtype=mlc.float32)
    """
    x, hit = tracer(input), tracer(mask)
    if not hit.type.dtype.is_bool:
        raise UserTypeError(f"the mask is of {hit.dtype}, expected mlc.bool", code="MLC0362",
                            hint="compare it: mask != 0")
    shape = broadcast_shapes(x.shape, hit.shape)
    x, hit = broadcast_to(x, shape), broadcast_to(hit, shape)
    new = cast(tracer(source), x.type.dtype)
    total = sizes.product(new.shape)
    if total == 0:
        fail_unless(E.logical_not(R.any(hit)), "the source has no elements, and the mask is not all False")
        return x
    flat = reshape(hit, [sizes.product(shape)])
    order = E.where(flat, tracer(cumsum(cast(flat, i64), 0)) - 1, 0)
    return E.where(hit, reshape(take(reshape(new, [total]), order, 0), shape), x)


@operation()
def index_put(input: Operand, indices: Sequence[Operand], values: Operand, accumulate: bool = False) -> Tensor:
    """The tensor with the elements at given indices replaced: result[indices] = values, or += if they accumulate.

    Of several values for one place the last one counts, unless they accumulate.

    Args:
        input: Tensor.
        indices: Tensors of integers or masks of bools, for the leading dimensions; they broadcast, and negative
            integers count from the end.
        values: Tensor or number that broadcasts to the shape of `input[indices]`; it is cast to the dtype of `input`.
        accumulate: Whether values are added to what is there.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: there are more indices than dimensions (MLC0366, an IndexError), they are not of integers (MLC0354)
            or out of range (MLC0340, an IndexError), or shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.index_put(mlc.zeros(2, 2), (mlc.tensor([0, 1]), mlc.tensor([1, 1])), mlc.tensor([5.0, 6.0]))
        tensor([[0., 5.],
                [0., 6.]], dtype=mlc.float32)
    """
    x = tracer(input)
    given = list(indices) if isinstance(indices, tuple | list) else [indices]
    position, covered, shape = coordinates_of(x, [tracer(i) for i in given])
    rest = covered[1:]
    new = broadcast_to(cast(tracer(values), x.type.dtype), [*shape, *rest])
    count = sizes.product(shape)
    out = emit(T.Scatter, reshape(x, covered), reshape(position, [count]), reshape(new, [count, *rest]), 0,
               "add" if accumulate else "set")
    return reshape(out, x.shape)


@operation()
def put(input: Operand, index: Operand, source: Operand, accumulate: bool = False) -> Tensor:
    """The tensor with elements at indices of the flattened tensor replaced, or added to if they accumulate.

    Args:
        input: Tensor.
        index: Tensor of integers; negative ones count from the end.
        source: Tensor of as many elements as `index`, or a number; it is cast to the dtype of `input`.
        accumulate: Whether elements are added to what is there.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: `index` is not of integers (MLC0354) or out of range (MLC0340, an IndexError), or the numbers of
            elements differ (MLC0367).

    Example:
        >>> mlc.put(mlc.zeros(2, 2), mlc.tensor([3, 0]), mlc.tensor([5.0, 6.0]))
        tensor([[6., 0.],
                [0., 5.]], dtype=mlc.float32)
    """
    x, at = tracer(input), integer(index, "index")
    new = cast(tracer(source), x.type.dtype)
    count, total = sizes.product(at.shape), sizes.product(x.shape)
    if new.ndim and not sizes.is_equal(sizes.product(new.shape), count):
        raise UserError(f"{sizes.product(new.shape)} elements for {count} indices", code="MLC0367")
    new = reshape(new, [count]) if new.ndim else broadcast_to(new, [count])
    out = emit(T.Scatter, reshape(x, [total]), from_the_front(reshape(at, [count]), total), new, 0,
               "add" if accumulate else "set")
    return reshape(out, x.shape)


@operation()
def fill(input: Operand, value: Operand) -> Tensor:
    """A tensor of the shape and dtype of `input`, all of whose elements are `value`.

    Args:
        input: Tensor, whose elements do not count.
        value: Number or 0-d tensor; it is cast to the dtype of `input`.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: `value` is not 0-d (MLC0364).

    Example:
        >>> mlc.fill(mlc.zeros(2), 7)
        tensor([7., 7.], dtype=mlc.float32)
    """
    x, v = tracer(input), tracer(value)
    if v.ndim:
        raise UserError(f"the value has {v.ndim} dimensions, expected 0", code="MLC0364")
    return broadcast_to(cast(v, x.type.dtype), x.shape)
