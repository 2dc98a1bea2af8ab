"""Sorting, and selection by rank."""

from __future__ import annotations

from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.axes import axis, plain_int
from mlc.frontend.functions.reduce import ValuesAndIndices
from mlc.frontend.functions.shape import narrow
from mlc.frontend.operands import reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserError


def argsort_along(x: Tracer, at: int, descending: bool = False) -> Tracer:
    return emit(T.ArgSort, x, at, bool(descending))  # type: ignore[no-any-return]


def _picked(x: Tracer, order: Tracer, at: int) -> ValuesAndIndices:
    return ValuesAndIndices(emit(T.TakeAlong, x, order, at), order)


def as_line(x: Tracer, dim: int) -> tuple[Tracer, int]:
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
    x, at = as_line(tracer(input), dim)
    return shaped_like(_picked(x, argsort_along(x, at, descending), at), input)


def shaped_like(found: ValuesAndIndices, input: Operand) -> ValuesAndIndices:
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
        k: How many elements. A tensor without dimensions has its one element, as in PyTorch, for 0 of them, too.
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
    x, at = as_line(tracer(input), dim)
    count = plain_int(k, "k")
    if count < 0 or (isinstance(x.shape[at], int) and count > x.shape[at]):
        raise UserError(f"k = {count} of {x.shape[at]} elements", code="MLC0360")
    count = max(count, 1) if tracer(input).ndim == 0 else count
    return shaped_like(_picked(x, tracer(narrow(argsort_along(x, at, largest), at, 0, count)), at), input)


def element_at(x: Tracer, position: Any, at: int, keepdim: bool, order: Tracer) -> ValuesAndIndices:
    """The element of rank `position`, a number or a tensor of size 1 along the axis."""
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
    x, at = as_line(tracer(input), dim)
    rank = plain_int(k, "k")
    if rank < 1 or (isinstance(x.shape[at], int) and rank > x.shape[at]):
        raise UserError(f"k = {rank} of {x.shape[at]} elements", code="MLC0360")
    return shaped_like(element_at(x, rank - 1, at, keepdim and tracer(input).ndim > 0, argsort_along(x, at)), input)
