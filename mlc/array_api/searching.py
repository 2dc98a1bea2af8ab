"""Functions that search, sort, and find distinct elements."""

from __future__ import annotations

from typing import Any, NamedTuple

import mlc
from mlc.array_api.data_types import NUMBER, result_type, tensors_in_one_dtype
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserError

__all__ = [
    "argmax", "argmin", "argsort", "count_nonzero", "isin", "nonzero", "searchsorted", "sort", "unique_all",
    "unique_counts", "unique_inverse", "unique_values", "where",
]


class UniqueAll(NamedTuple):
    """Distinct elements, with the index of the first of each, the index of that of every element, and counts."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Distinct elements and how often they occur."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Distinct elements, and for every element the index of the one that it equals."""

    values: Tensor
    inverse_indices: Tensor


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the largest element, the first of equal ones.

    Args:
        x: Tensor of real numbers.
        axis: The axis; None for the index among all elements.
        keepdims: Whether the result has the axis, with size 1.

    Returns:
        Tensor of int64.

    Raises:
        UserError: There is no element (MLC0365), or the axis is out of range (MLC0356).

    Example:
        >>> xp.argmax(xp.asarray([3, 7, 5]))
        tensor(1, dtype=mlc.int64)
    """
    return mlc.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the smallest element, the first of equal ones.

    Args:
        x: Tensor of real numbers.
        axis: The axis; None for the index among all elements.
        keepdims: Whether the result has the axis, with size 1.

    Returns:
        Tensor of int64.

    Raises:
        UserError: There is no element (MLC0365), or the axis is out of range (MLC0356).

    Example:
        >>> xp.argmin(xp.asarray([3, 7, 5]))
        tensor(0, dtype=mlc.int64)
    """
    return mlc.argmin(x, axis, keepdims)


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort x.

    Args:
        x: Tensor of real numbers.
        axis: The axis.
        descending: Whether the largest comes first.
        stable: Whether equal elements keep their order.

    Returns:
        Tensor of int64, of the shape of x.

    Raises:
        UserError: The axis is out of range (MLC0356).

    Example:
        >>> xp.argsort(xp.asarray([3, 7, 5]))
        tensor([0, 2, 1], dtype=mlc.int64)
    """
    return mlc.argsort(x, axis, descending, stable)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order; NaN come last, or first if descending.

    Args:
        x: Tensor of real numbers.
        axis: The axis.
        descending: Whether the largest comes first.
        stable: Whether equal elements keep their order.

    Returns:
        Tensor of the shape and the dtype of x.

    Raises:
        UserError: The axis is out of range (MLC0356).

    Example:
        >>> xp.sort(xp.asarray([3, 7, 5]))
        tensor([3, 5, 7], dtype=mlc.int64)
    """
    return mlc.sort(x, axis, descending, stable).values


def count_nonzero(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
    """The number of elements that are not zero.

    Args:
        x: Tensor.
        axis: One or several axes; all by default.
        keepdims: Whether the result has the axes, with size 1.

    Returns:
        Tensor of int64.

    Raises:
        UserError: An axis is out of range (MLC0356), or given twice (MLC0357).

    Example:
        >>> xp.count_nonzero(xp.asarray([0, 3, 5]))
        tensor(2, dtype=mlc.int64)
    """
    isnt = x != 0
    return isnt.to(mlc.int64) if axis == () else mlc.sum(isnt, axis, keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of the elements that are not zero.

    Args:
        x: Tensor of at least one dimension.

    Returns:
        Tuple of a tensor of int64 for each axis.

    Raises:
        UserError: x has no dimensions (MLC0364).

    Example:
        >>> xp.nonzero(xp.asarray([0, 3, 5]))
        (tensor([1, 2], dtype=mlc.int64),)
    """
    if not x.ndim:
        raise UserError("nonzero of a tensor of no dimensions", code="MLC0364", loc=user_loc(),
                        hint="ask for its truth: x != 0")
    return tuple(mlc.nonzero(x, as_tuple=True))


def searchsorted(x1: Tensor, x2: Operand, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """The positions at which elements would keep a sorted tensor sorted.

    Args:
        x1: Sorted tensor of one dimension.
        x2: The elements, a tensor or a number.
        side: "left" for the first position, "right" for the one after equal elements.
        sorter: Indices that sort x1, if it is not sorted.

    Returns:
        Tensor of int64 of the shape of x2.

    Example:
        >>> xp.searchsorted(xp.asarray([1, 3, 5]), xp.asarray([3, 4]))
        tensor([1, 2], dtype=mlc.int64)
    """
    a, b = tensors_in_one_dtype(x1, x2)
    if sorter is not None:
        a = a[sorter.to(mlc.int64)]
    return mlc.searchsorted(a, b, side=side)


def where(condition: Tensor, x1: Operand = None, x2: Operand = None, /) -> Any:
    """x1 where the condition holds, and x2 elsewhere, in their common dtype.

    Programs also call it without x1 and x2, as numpy and PyTorch have it, against the standard: `nonzero(condition)`.

    Args:
        condition: Tensor of bools.
        x1: Tensor or number.
        x2: Tensor or number.

    Returns:
        Tensor of the broadcast shape of the three.

    Raises:
        UserTypeError: There is no common dtype (MLC0341), or only one of x1 and x2 (MLC0353).

    Example:
        >>> xp.where(xp.asarray([True, False]), xp.asarray([1, 2]), 0)
        tensor([1, 0], dtype=mlc.int64)
    """
    if x1 is None or x2 is None:
        return nonzero(condition) if x1 is x2 else mlc.where(condition, x1, x2)
    if isinstance(x1, NUMBER) and isinstance(x2, NUMBER):
        return mlc.where(condition, mlc.asarray(x1), x2)
    dtype = result_type(x1, x2)
    a, b = (mlc.asarray(x, dtype=dtype) for x in (x1, x2))
    return mlc.where(condition, a, b)


def isin(x1: Operand, x2: Operand, /, *, invert: bool = False) -> Tensor:
    """Whether each element is among others.

    Args:
        x1: Tensor or number.
        x2: Tensor or number: the others.
        invert: Whether to ask for those that are not.

    Returns:
        Tensor of bools of the shape of x1.

    Raises:
        UserTypeError: Both are numbers (MLC0880), or there is no common dtype (MLC0341).

    Example:
        >>> xp.isin(xp.asarray([1, 2, 3]), xp.asarray([1, 3]))
        tensor([ True, False,  True], dtype=mlc.bool)
    """
    a, b = tensors_in_one_dtype(x1, x2)
    found = mlc.any(a.unsqueeze(-1) == b.reshape(-1), -1)
    return ~found if invert else found


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements, where the first of each is, which one every element equals, and how many do.

    Every NaN is distinct from the others, and zeros of both signs are equal.

    Args:
        x: Tensor.

    Returns:
        Named tuple of `values`, in order; `indices` into x as one row; `inverse_indices`, of the shape of x; `counts`.

    Example:
        >>> xp.unique_all(xp.asarray([5, 3, 5])).inverse_indices
        tensor([1, 0, 1], dtype=mlc.int64)
    """
    row = x.reshape(-1)
    order = _order(row)
    values = row[order]
    new = mlc.ones_like(values, dtype=mlc.bool)
    new[1:] = values[1:] != values[:-1]
    first = mlc.nonzero(new, as_tuple=True)[0]
    inverse = mlc.zeros_like(order)
    inverse[order] = mlc.cumsum(new, 0) - 1
    ends = mlc.cat([first[1:], mlc.full((min(1, row.numel()),), row.numel())])
    return UniqueAll(values[first], order[first], inverse.reshape(x.shape), ends - first)


def _order(row: Tensor) -> Tensor:
    """The indices that sort, with equal elements in their order; complex numbers by the real part first."""
    if row.dtype is mlc.bool:
        row = row.to(mlc.uint8)
    if not row.dtype.is_complex:
        return mlc.argsort(row, stable=True)
    imaginary = mlc.argsort(mlc.imag(row) + 0.0, stable=True)          # -0.0 + 0.0 is 0.0
    return imaginary[mlc.argsort(mlc.real(row)[imaginary] + 0.0, stable=True)]


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements, and how often they occur; see `unique_all`.

    Args:
        x: Tensor.

    Returns:
        Named tuple of `values`, in order, and `counts`.

    Example:
        >>> xp.unique_counts(xp.asarray([5, 3, 5])).counts
        tensor([1, 2], dtype=mlc.int64)
    """
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements, and which one every element equals; see `unique_all`.

    Args:
        x: Tensor.

    Returns:
        Named tuple of `values`, in order, and `inverse_indices`, of the shape of x.

    Example:
        >>> xp.unique_inverse(xp.asarray([5, 3, 5])).inverse_indices
        tensor([1, 0, 1], dtype=mlc.int64)
    """
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements; see `unique_all`.

    Args:
        x: Tensor.

    Returns:
        Tensor of one dimension, in order.

    Example:
        >>> xp.unique_values(xp.asarray([5, 3, 5]))
        tensor([3, 5], dtype=mlc.int64)
    """
    return unique_all(x).values
