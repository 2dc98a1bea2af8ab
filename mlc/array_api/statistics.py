"""Sums, statistics, and what runs along an axis."""

from __future__ import annotations

import math

import mlc
from mlc.array_api.data_types import isdtype
from mlc.frontend.axes import axes as normal_axes
from mlc.frontend.axes import axis as normal_axis
from mlc.frontend.dtypes import DType
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError

__all__ = [
    "all", "any", "clip", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod", "std", "sum",
    "var",
]

Axes = int | tuple[int, ...] | None


def _sum_dtype(x: Tensor, dtype: DType | None) -> DType | None:
    """The dtype of a sum: integers are summed in 64 bits, unsigned ones without a sign."""
    if dtype is not None or not isdtype(x.dtype, ("bool", "integral")):
        return dtype
    return mlc.uint64 if isdtype(x.dtype, "unsigned integer") else mlc.int64


def all(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether all elements are true, which numbers other than 0 are, and NaN.

    Args:
        x: Tensor.
        axis: One or several axes; all by default, and () for none.
        keepdims: Whether the result has the axes, with size 1.

    Returns:
        Tensor of bools.

    Raises:
        UserError: An axis is out of range (MLC0356), or given twice (MLC0357).

    Example:
        >>> xp.all(xp.asarray([True, False]))
        tensor(False, dtype=mlc.bool)
    """
    return x != 0 if axis == () else mlc.all(x, axis, keepdims).to(mlc.bool)     # mlc.all of uint8 is uint8


def any(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether an element is true, which numbers other than 0 are, and NaN.

    Args:
        x: Tensor.
        axis: One or several axes; all by default, and () for none.
        keepdims: Whether the result has the axes, with size 1.

    Returns:
        Tensor of bools.

    Raises:
        UserError: An axis is out of range (MLC0356), or given twice (MLC0357).

    Example:
        >>> xp.any(xp.asarray([True, False]))
        tensor(True, dtype=mlc.bool)
    """
    return x != 0 if axis == () else mlc.any(x, axis, keepdims).to(mlc.bool)


def clip(x: Tensor, /, min: float | Tensor | None = None, max: float | Tensor | None = None) -> Tensor:
    """Each element, but not below `min` and not above `max`, in the dtype of x.

    Args:
        x: Tensor of real numbers.
        min: Lower limit, a number or a tensor; none if left out.
        max: Upper limit, a number or a tensor; none if left out.

    Returns:
        Tensor of the broadcast shape and the dtype of x.

    Example:
        >>> xp.clip(xp.asarray([1, 2, 3]), 2)
        tensor([2, 2, 3], dtype=mlc.int64)
    """
    if min is None and max is None:
        return x.clone()
    low, high = _limit(x, min), _limit(x, max)
    for limit in (low, high):
        if limit is not None and limit.shape:
            x = mlc.broadcast_to(x, mlc.broadcast_shapes(x.shape, limit.shape))
    if low is not None:
        x = mlc.maximum(x, low)
    return x if high is None else mlc.minimum(x, high)


def _limit(x: Tensor, limit: float | Tensor | None) -> Tensor | None:
    """A limit as a tensor of the dtype of x; integers outside of that become its ends."""
    if limit is None:
        return None
    if isinstance(limit, int | float) and isdtype(x.dtype, "integral"):
        ends = mlc.iinfo(x.dtype)
        limit = ends.min if limit < ends.min else ends.max if limit > ends.max else limit
    return mlc.asarray(limit, dtype=x.dtype)


def cumulative_prod(x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None,
                    include_initial: bool = False) -> Tensor:
    """The product of the elements up to each, along an axis.

    Args:
        x: Tensor of numbers.
        axis: The axis; it may be left out if x has only one.
        dtype: Dtype of the result; by default that of x, but 64 bits for integers.
        include_initial: Whether the result starts with the product of no elements.

    Returns:
        Tensor of the shape of x, along the axis one more with `include_initial`.

    Raises:
        UserError: The axis is out of range (MLC0356), or left out for several (MLC0883).

    Example:
        >>> xp.cumulative_prod(xp.asarray([1, 2, 3]))
        tensor([1, 2, 6], dtype=mlc.int64)
    """
    if axis is None:
        if x.ndim != 1:
            raise UserError(f"a tensor of {x.ndim} dimensions has no only axis", code="MLC0883", loc=user_loc(),
                            hint="pass the axis")
        axis = 0
    place = normal_axis(axis, x.ndim)
    out = mlc.cumprod(x, place, dtype=_sum_dtype(x, dtype))
    if not include_initial:
        return out
    first = mlc.full((*x.shape[:place], 1, *x.shape[place + 1:]), 1, dtype=out.dtype, device=out.device)
    return mlc.cat([first, out], place)


def cumulative_sum(x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None,
                   include_initial: bool = False) -> Tensor:
    """The sum of the elements up to each, along an axis.

    Args:
        x: Tensor of numbers.
        axis: The axis; it may be left out if x has only one.
        dtype: Dtype of the result; by default that of x, but 64 bits for integers.
        include_initial: Whether the result starts with the sum of no elements.

    Returns:
        Tensor of the shape of x, along the axis one more with `include_initial`.

    Raises:
        UserError: The axis is out of range (MLC0356), or left out for several (MLC0883).

    Example:
        >>> xp.cumulative_sum(xp.asarray([1, 2, 3]))
        tensor([1, 3, 6], dtype=mlc.int64)
    """
    if axis is None:
        if x.ndim != 1:
            raise UserError(f"a tensor of {x.ndim} dimensions has no only axis", code="MLC0883", loc=user_loc(),
                            hint="pass the axis")
        axis = 0
    place = normal_axis(axis, x.ndim)
    out = mlc.cumsum(x, place, dtype=_sum_dtype(x, dtype))
    if not include_initial:
        return out
    first = mlc.full((*x.shape[:place], 1, *x.shape[place + 1:]), 0, dtype=out.dtype, device=out.device)
    return mlc.cat([first, out], place)


def diff(x: Tensor, /, n: int = 1, *, axis: int = -1, prepend: Tensor | None = None,
         append: Tensor | None = None) -> Tensor:
    """The differences of neighbours along an axis.

    Args:
        x: Tensor of numbers.
        n: How often differences are taken. Programs pass it by position too, as numpy has it, against the standard.
        axis: The axis.
        prepend: Elements before the first ones.
        append: Elements after the last ones.

    Returns:
        Tensor of the dtype of x, along the axis shorter by n.

    Raises:
        UserError: The axis is out of range (MLC0356).

    Example:
        >>> xp.diff(xp.asarray([1, 4, 9]))
        tensor([3, 5], dtype=mlc.int64)
    """
    return mlc.diff(x, n, axis, prepend, append)


def max(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The largest element; NaN if there is one.

    Args:
        x: Tensor of real numbers.
        axis: One or several axes; all by default, and () for none.
        keepdims: Whether the result has the axes, with size 1.

    Returns:
        Tensor of the dtype of x.

    Raises:
        UserError: There is no element (MLC0365), an axis is out of range (MLC0356), or given twice (MLC0357).

    Example:
        >>> xp.max(xp.asarray([3, 7, 5]))
        tensor(7, dtype=mlc.int64)
    """
    return x.clone() if axis == () else mlc.amax(x, axis, keepdims)


def min(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The smallest element; NaN if there is one.

    Args:
        x: Tensor of real numbers.
        axis: One or several axes; all by default, and () for none.
        keepdims: Whether the result has the axes, with size 1.

    Returns:
        Tensor of the dtype of x.

    Raises:
        UserError: There is no element (MLC0365), an axis is out of range (MLC0356), or given twice (MLC0357).

    Example:
        >>> xp.min(xp.asarray([3, 7, 5]))
        tensor(3, dtype=mlc.int64)
    """
    return x.clone() if axis == () else mlc.amin(x, axis, keepdims)


def mean(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The mean of the elements; NaN of none.

    Args:
        x: Tensor of floats or complex numbers.
        axis: One or several axes; all by default, and () for none.
        keepdims: Whether the result has the axes, with size 1.

    Returns:
        Tensor of the dtype of x.

    Raises:
        UserError: An axis is out of range (MLC0356), or given twice (MLC0357).

    Example:
        >>> xp.mean(xp.asarray([1.0, 2.0]))
        tensor(1.5, dtype=mlc.float32)
    """
    return x.clone() if axis == () else mlc.mean(x, axis, keepdims)


def prod(x: Tensor, /, *, axis: Axes = None, dtype: DType | None = None, keepdims: bool = False) -> Tensor:
    """The product of the elements.

    Args:
        x: Tensor of numbers.
        axis: One or several axes; all by default, and () for none.
        dtype: Dtype of the result; by default that of x, but 64 bits for integers: int64, or uint64 of unsigned ones.
        keepdims: Whether the result has the axes, with size 1.

    Returns:
        Tensor of the dtype.

    Raises:
        UserError: An axis is out of range (MLC0356), or given twice (MLC0357).

    Example:
        >>> xp.prod(xp.asarray([2, 3], dtype=xp.uint8))
        tensor(6, dtype=mlc.uint64)
    """
    dtype = _sum_dtype(x, dtype)
    if axis == ():
        return x.to(dtype or x.dtype, copy=True)
    return mlc.prod(x, axis, keepdims, dtype=dtype)


def sum(x: Tensor, /, *, axis: Axes = None, dtype: DType | None = None, keepdims: bool = False) -> Tensor:
    """The sum of the elements.

    Args:
        x: Tensor of numbers.
        axis: One or several axes; all by default, and () for none.
        dtype: Dtype of the result; by default that of x, but 64 bits for integers: int64, or uint64 of unsigned ones.
        keepdims: Whether the result has the axes, with size 1.

    Returns:
        Tensor of the dtype.

    Raises:
        UserError: An axis is out of range (MLC0356), or given twice (MLC0357).

    Example:
        >>> xp.sum(xp.asarray([2, 3], dtype=xp.uint8))
        tensor(5, dtype=mlc.uint64)
    """
    dtype = _sum_dtype(x, dtype)
    if axis == ():
        return x.to(dtype or x.dtype, copy=True)
    return mlc.sum(x, axis, keepdims, dtype=dtype)


def std(x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation of the elements.

    Args:
        x: Tensor of floats.
        axis: One or several axes; all by default, and () for none.
        correction: What is subtracted from the number N of elements, by which the sum of squares is divided; where
            none is left, the result is NaN.
        keepdims: Whether the result has the axes, with size 1.

    Returns:
        Tensor of the dtype of x.

    Raises:
        UserError: An axis is out of range (MLC0356), or given twice (MLC0357).

    Example:
        >>> xp.std(xp.asarray([1.0, 3.0]))
        tensor(1., dtype=mlc.float32)
    """
    return mlc.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def var(x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance of the elements.

    Args:
        x: Tensor of floats.
        axis: One or several axes; all by default, and () for none.
        correction: What is subtracted from the number N of elements, by which the sum of squares is divided; where
            none is left, the result is NaN.
        keepdims: Whether the result has the axes, with size 1.

    Returns:
        Tensor of the dtype of x.

    Raises:
        UserError: An axis is out of range (MLC0356), or given twice (MLC0357).

    Example:
        >>> xp.var(xp.asarray([1.0, 3.0]))
        tensor(1., dtype=mlc.float32)
    """
    axes = () if axis == () else normal_axes(axis, x.ndim)
    centred = x - mean(x, axis=axes, keepdims=True)
    squares = sum(mlc.square(centred), axis=axes, keepdims=keepdims)
    count = math.prod(x.shape[i] for i in axes)
    return squares / (count - correction) if count > correction else mlc.full_like(squares, math.nan)
