"""Functions with results of data-dependent size: selection by a mask, unique elements.

The number of elements is a data-dependent size (frontend/data_dependent.py). Equal masks give equal sizes, so
`x[mask] + y[mask]` fits. No derivative goes to a mask or to positions; values are picked by position.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.axes import axis
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.operands import boolean, broadcast_shapes, broadcast_to, cast, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import current, emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.core import Value
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.sizes import Dim
from mlc.ir.types import i64
from mlc.passes.analysis.structural_key import attribute_key

DEPTH = 8
"""Depth to which the definitions of two masks are compared."""

MOST_COLUMNS = 256
"""Limit on the elements of slices that are sorted."""


def picked(mask: Tracer) -> Tracer:
    """The positions of the true elements of a mask in row-major order, ascending."""
    trace = current()
    if (known := trace.elements(mask)) is not None:        # so their number is static
        return tracer(np.flatnonzero(known))
    return trace.data_dependent.once(_computed(trace.local(mask), DEPTH),
                             lambda: _positions(reshape(mask, [sizes.product(mask.shape)])))


def _positions(mask: Tracer) -> Tracer:
    """Each position goes to the place that the number of those before it says, all others to one after the end."""
    total, = mask.shape
    ones = cast(mask, i64)
    trace = current()
    count = trace.local(tracer(R.sum(ones)))
    rank = emit(T.Cumulative, ones, "add", 0) - 1
    rows = trace.data_dependent.new(count, total)
    place = E.where(mask, rank, tracer(total))
    line = emit(T.Iota, (total,), 0, i64)
    buffer = emit(T.Full, 0, (total + 1,), i64)
    placed = emit(T.Scatter, buffer, tracer(place), line, 0, "set")
    return emit(T.Slice, placed, (0,), (rows,), (1,))  # type: ignore[no-any-return]


def _computed(value: Value, depth: int) -> Hashable:
    """A key that is equal for values computed by the same operations from the same values."""
    op = value.op
    if depth == 0 or op is None or op.regions or not op.pure or isinstance(op, T.Constant):
        return id(value)
    attrs = tuple((k, attribute_key(v)) for k, v in sorted(op.attrs.items()) if v is not None)
    return type(op), attrs, op.results.index(value), tuple(_computed(v, depth - 1) for v in op.operands)


def coordinates(positions: Tracer, shape: Sequence[Dim]) -> tuple[Tracer, ...]:
    """Convert positions in row-major order to indices along each axis of `shape`."""
    out = []
    for i, n in enumerate(shape):
        later = sizes.product(shape[i + 1:])
        at = positions if later == 1 else tracer(E.floor_divide(positions, later if isinstance(later, int)
                                                                else tracer(later)))
        out.append(at if i == 0 else tracer(E.remainder(at, n if isinstance(n, int) else tracer(n))))
    return tuple(out)


def _where_not_zero(input: Operand) -> tuple[Tracer, tuple[Dim, ...]]:
    mask = boolean(input)
    return picked(mask), mask.shape


@operation()
def nonzero(input: Operand, *, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not 0, in row-major order.

    Their number is a data-dependent size within a compiled function.

    Args:
        input: Tensor or number; NaN is not 0.
        as_tuple: Whether to give a tuple of one index vector for each dimension, which can index the tensor.

    Returns:
        Tensor of int64 of shape (count, number of dimensions), or the tuple.

    Example:
        >>> mlc.nonzero(mlc.tensor([[0, 5], [6, 0]]))
        tensor([[0, 1],
                [1, 0]], dtype=mlc.int64)
    """
    positions, shape = _where_not_zero(input)
    if as_tuple:
        return coordinates(positions, shape or (1,))
    columns = [reshape(c, [*c.shape, 1]) for c in coordinates(positions, shape)]
    if not columns:
        return emit(T.Full, 0, (*positions.shape, 0), i64)
    return emit(T.Concat, tuple(columns), 1) if len(columns) > 1 else columns[0]


@operation()
def argwhere(input: Operand) -> Tensor:
    """The indices of the elements that are not 0, a row for each.

    Args:
        input: Tensor or number; NaN is not 0.

    Returns:
        Tensor of int64 of shape (count, number of dimensions).

    Example:
        >>> mlc.argwhere(mlc.tensor([[0, 5], [6, 0]]))
        tensor([[0, 1],
                [1, 0]], dtype=mlc.int64)
    """
    return nonzero(input)  # type: ignore[no-any-return]


@operation(stored={"input": "other", "other": "input"})
def where(condition: Operand, input: Operand = None, other: Operand = None) -> Any:
    """The elements of `input` where the condition holds, those of `other` elsewhere.

    Both are computed; the derivative goes to the one that is taken. A condition alone gives the indices where it holds,
    as `nonzero(condition, as_tuple=True)`.

    Args:
        condition: Tensor of bools.
        input: Tensor or number.
        other: Tensor or number; all three broadcast.

    Returns:
        Tensor of the broadcast shape and the promoted dtype of `input` and `other`, or a tuple of index vectors.

    Raises:
        UserError: `condition` is not of bool (MLC0362), one of `input` and `other` is missing (MLC0353), an integer
            does not fit in the dtype of the other (MLC0348), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.where(mlc.tensor([True, False]), 1.0, mlc.tensor([5.0, 6.0]))
        tensor([1., 6.], dtype=mlc.float32)
    """
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if input is None or other is None:
        raise UserTypeError("needs both input and other, or none of them", code="MLC0353")
    return E.where(condition, input, other)


@operation()
def masked_select(input: Operand, mask: Operand) -> Tensor:
    """The elements where a mask holds, as a vector, in row-major order.

    Their number is a data-dependent size within a compiled function.

    Args:
        input: Tensor.
        mask: Tensor of bools; both broadcast.

    Returns:
        1-D tensor of the dtype of `input`.

    Raises:
        UserError: `mask` is not of bool (MLC0362), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.masked_select(mlc.tensor([1, 2, 3]), mlc.tensor([True, False, True]))
        tensor([1, 3], dtype=mlc.int64)
    """
    x, m = tracer(input), tracer(mask)
    if not m.type.dtype.is_bool:
        raise UserTypeError(f"the mask is of {m.dtype}, expected mlc.bool", code="MLC0362",
                            hint="compare it: mask != 0")
    shape = broadcast_shapes(x.shape, m.shape)
    flat = reshape(broadcast_to(x, shape), [sizes.product(shape)])
    return emit(T.Take, flat, picked(broadcast_to(m, shape)), 0)  # type: ignore[no-any-return]


# -- what differs ------------------------------------------------------------------------------------------------------
def runs(x: Tracer, at: int) -> tuple[Tracer, Tracer]:
    """Where runs of equal slices along an axis begin, and to which run each slice belongs."""
    n = x.shape[at]
    line = emit(T.Iota, (n,), 0, i64)
    before = emit(T.Take, x, tracer(E.maximum(line - 1, 0)), at)
    differs = E.ne(x, before)
    others = [a for a in range(x.ndim) if a != at]
    if others:
        differs = R.any(differs, others)
    new = tracer(E.logical_or(differs, E.eq(line, 0)))
    return picked(new), emit(T.Cumulative, cast(new, i64), "add", 0) - 1


def _groups(x: Tracer, at: int, inverse: bool, counts: bool) -> list[Tracer]:
    """Of each run of equal slices along an axis the first; to which run each belongs; how long each is."""
    n = x.shape[at]
    first, number_of = runs(x, at)
    out = [emit(T.Take, x, first, at)]
    if inverse:
        out.append(number_of)
    if counts:
        zeros, ones = emit(T.Full, 0, first.shape, i64), emit(T.Full, 1, (n,), i64)
        out.append(emit(T.Scatter, zeros, number_of, ones, 0, "add"))
    return out


def _given(out: list[Tracer]) -> Any:
    return out[0] if len(out) == 1 else tuple(out)


@operation()
def unique(input: Operand, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           dim: int | None = None) -> Any:
    """The different elements, or the different slices along a dimension, in ascending order: that of their first
    elements, then of their second ones, and so on.

    NaN differs from NaN. Their number is a data-dependent size within a compiled function.

    Args:
        input: Tensor or number.
        sorted: Accepted for PyTorch's sake: the result is always in order.
        return_inverse: Whether to tell where each element or slice of `input` is in the result; for elements in a
            tensor of the shape of `input`.
        return_counts: Whether to tell how often each element or slice of the result occurs.
        dim: The dimension of the slices; None for the elements of the flattened tensor.

    Returns:
        Tensor of the dtype of `input`, 1-D without `dim`, or a tuple of it and what is asked for, of int64.

    Raises:
        UserError: `dim` is out of range (MLC0356), or the slices have more than 256 elements (MLC0360).

    Example:
        >>> mlc.unique(mlc.tensor([3, 1, 3]), return_counts=True)
        (tensor([1, 3], dtype=mlc.int64), tensor([1, 2], dtype=mlc.int64))
    """
    x = tracer(input)
    at = 0 if dim is None or not x.ndim else axis(dim, x.ndim)
    slices = reshape(x, [sizes.product(x.shape)]) if dim is None or not x.ndim else x
    order = _order(slices, at)
    out = _groups(emit(T.Take, slices, order, at), at, return_inverse, return_counts)
    if return_inverse:
        place = emit(T.Scatter, emit(T.Full, 0, order.shape, i64), order, out[1], 0, "set")
        out[1] = reshape(place, x.shape) if dim is None else place
    return _given(out)


def _order(x: Tracer, at: int) -> Tracer:
    """The order of the slices along an axis by their elements, the first of which counts most."""
    n, count = x.shape[at], sizes.product([d for a, d in enumerate(x.shape) if a != at])
    if not isinstance(count, int) or count > MOST_COLUMNS:
        raise UserError(f"the slices have {count} elements, expected at most {MOST_COLUMNS}", code="MLC0360",
                        hint="find the different values of a number that each slice has, such as a hash")
    columns = reshape(emit(T.Transpose, x, (at, *(a for a in range(x.ndim) if a != at))), (n, count))
    columns = cast(columns, i64) if x.type.dtype.is_bool else columns
    order: Tracer = emit(T.Iota, (n,), 0, i64)
    for column in reversed(range(count)):                  # each sort keeps the order of equal ones
        keys = reshape(emit(T.Slice, columns, (0, column), (n, column + 1), (1, 1)), (n,))
        order = emit(T.Take, order, emit(T.ArgSort, emit(T.Take, keys, order, 0), 0, False), 0)
    return order


@operation()
def unique_consecutive(input: Operand, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Any:
    """The elements that differ from the one before, or the slices along a dimension that do.

    NaN differs from NaN. Their number is a data-dependent size within a compiled function.

    Args:
        input: Tensor or number.
        return_inverse: Whether to tell to which run each element or slice belongs.
        return_counts: Whether to tell how long each run is.
        dim: The dimension of the slices; None for the elements of the flattened tensor.

    Returns:
        Tensor of the dtype of `input`, or a tuple of it and what is asked for, of int64.

    Raises:
        UserError: `dim` is out of range (MLC0356).

    Example:
        >>> mlc.unique_consecutive(mlc.tensor([1, 1, 2, 2, 1]), return_counts=True)
        (tensor([1, 2, 1], dtype=mlc.int64), tensor([2, 2, 1], dtype=mlc.int64))
    """
    x = tracer(input)
    shape = x.shape
    if dim is None or not x.ndim:
        at, x = 0, reshape(x, [sizes.product(shape)])
    else:
        at = axis(dim, x.ndim)
    out = _groups(x, at, return_inverse, return_counts)
    if return_inverse and dim is None:
        out[1] = reshape(out[1], shape)
    return _given(out)
