"""Indices of stored elements as positions in row-major order, and back; runs of equal ones; compressed indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.ragged import coordinates, picked, runs
from mlc.frontend.functions.scatter import index_add
from mlc.frontend.functions.sort import argsort
from mlc.frontend.location import user_loc
from mlc.frontend.operands import cast, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.refusals import refusal
from mlc.frontend.tensor import OPERATIONS, Operand, Tensor, wrap
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.types import i1, i64


def strides_of(shape: Sequence[int]) -> Tensor:
    """The distances in row-major order between neighbours along each dimension, as a column."""
    return wrap(np.array([math.prod(shape[k + 1:]) for k in range(len(shape))], np.int64).reshape(-1, 1))


@operation(name="_sparse_positions")
def _positions(indices: Operand, strides: Operand) -> Tensor:
    """The sums of columns of indices times strides."""
    return R.sum(tracer(indices) * tracer(strides), 0)


def positions(indices: Tensor, shape: Sequence[int]) -> Tensor:
    """The positions in row-major order that columns of indices stand for."""
    return indices[0] if len(shape) == 1 else _positions(indices, strides_of(shape))


@operation(name="_sparse_columns")
def _columns(positions: Operand, strides: Operand, shape: Operand) -> Tensor:
    """The columns of indices below `shape` whose sums times strides are the positions."""
    return (tracer(reshape(tracer(positions), [1, *tracer(positions).shape])) // tracer(strides)) % tracer(shape)


def columns(positions: Tensor, shape: Sequence[int]) -> Tensor:
    """The columns of indices that positions stand for."""
    return _columns(positions, strides_of(shape), wrap(np.array(shape, np.int64).reshape(-1, 1)))


@operation(name="_sparse_coalesce")
def coalesced(indices: Operand, values: Operand, strides: Operand) -> Any:
    """Columns of indices in order, and the sums of the values of equal ones."""
    where, x = tracer(indices), tracer(values)
    place = tracer(_positions(where, strides))
    order = tracer(argsort(place, stable=True))
    first, number = runs(emit(T.Take, place, order, 0), 0)
    exact = cast(x, i64) if x.type.dtype == i1 else x
    zeros = emit(T.Full, 0, (*first.shape, *x.shape[1:]), exact.type.dtype)
    sums = tracer(index_add(zeros, 0, number, emit(T.Take, exact, order, 0)))
    return emit(T.Take, where, emit(T.Take, order, first, 0), 1), cast(sums, x.type.dtype)


@operation(name="_sparse_order")
def in_order(indices: Operand, values: Operand, strides: Operand) -> Any:
    """Columns of indices in order, and the values in the same order."""
    where, x = tracer(indices), tracer(values)
    order = tracer(argsort(_positions(where, strides), stable=True))
    return emit(T.Take, where, order, 1), emit(T.Take, x, order, 0)


@operation(name="_sparse_stored")
def stored_in(input: Operand, sparse_dim: int) -> Any:
    """The indices along the first dimensions at which a dense tensor is not zero, and the slices there."""
    x = tracer(input)
    shape, dense = x.shape[:sparse_dim], x.shape[sparse_dim:]
    mask = E.ne(x, 0)
    mask = tracer(R.any(mask, list(range(sparse_dim, x.ndim))) if dense else mask)
    found = picked(mask)
    flat = reshape(x, [sizes.product(shape), *dense])
    rows = [reshape(c, [1, *c.shape]) for c in coordinates(found, shape)]
    where = emit(T.Concat, tuple(rows), 0) if len(rows) > 1 else rows[0] if rows else emit(
        T.Full, 0, (0, *found.shape), i64)
    return where, emit(T.Take, flat, found, 0)


@operation(name="_sparse_scatter")
def scattered(positions: Operand, values: Operand, zeros: Operand) -> Tensor:
    """The slices of `zeros` with values added at positions."""
    into, x = tracer(zeros), tracer(values)
    if x.type.dtype == i1:
        return cast(tracer(index_add(cast(into, i64), 0, positions, cast(x, i64))), i1)
    return index_add(into, 0, positions, x)


@operation(name="_sparse_expand")
def expanded(compressed: Operand, plain: Operand) -> Tensor:
    """The row of each stored element, from where rows begin and end: the number of rows that end before it."""
    ends, count = tracer(compressed), tracer(plain).shape[0]
    last = emit(T.Slice, ends, (1,), (ends.shape[0],), (1,))
    marks = index_add(emit(T.Full, 0, (count + 1,), i64), 0, cast(last, i64), 1)
    return emit(T.Slice, emit(T.Cumulative, tracer(marks), "add", 0), (0,), (count,), (1,))  # type: ignore[no-any-return]


def spread(counts: Tensor, name: str) -> tuple[Tensor, Tensor]:
    """The numbers of elements that are repeated `counts` times, each as often, and the number of each repetition."""
    if isinstance(counts, Tracer):
        raise refusal(f"the result of {name} has as many stored elements as only the run will tell", code="MLC0772",
                      loc=user_loc(), hint="call it outside of the recorded function, or with to_dense()")
    after = OPERATIONS["cumsum"](counts, 0)
    line = OPERATIONS["arange"](int(after[-1].item()) if after.shape[0] else 0)
    which = expanded(OPERATIONS["cat"]([after.new_zeros(1), after]), line)
    return which, line - (after - counts)[which]


def compressed(rows: Tensor, count: int) -> Tensor:
    """Where rows begin and end among stored elements that are in the order of their rows."""
    return OPERATIONS["searchsorted"](rows, OPERATIONS["arange"](count + 1))  # type: ignore[no-any-return]
