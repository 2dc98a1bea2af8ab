"""Maxima and minima, and their indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mlc.dialects import tensor as T
from mlc.frontend.arguments import coded
from mlc.frontend.axes import axes, axis
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.reduce.sums import check_not_empty, kept, reduce_over
from mlc.frontend.operands import cast, is_tensor, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import OPERATIONS, Dims, Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.types import i64


class ValuesAndIndices(NamedTuple):
    """Result of `max(x, dim)` and `min(x, dim)`."""

    values: Tensor
    indices: Tensor


class MinAndMax(NamedTuple):
    """Result of `aminmax(x)`."""

    min: Tensor
    max: Tensor


@operation()
def amax(input: Operand, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The greatest element over `dim`; NaN if one is NaN.

    Elements that are equally great share the derivative.

    Args:
        input: Tensor or number.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default.
        keepdim: Whether reduced dimensions stay, with size 1.

    Returns:
        Tensor of the dtype of `input`, without the dimensions of `dim`.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357), or there are no elements
            (MLC0363).

    Example:
        >>> mlc.amax(mlc.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1)
        tensor([5., 7.], dtype=mlc.float32)
    """
    x = tracer(input)
    check_not_empty(x, axes(dim, x.ndim), "maximum")
    if x.type.dtype.is_bool:
        return reduce_over(T.ReduceAny, x, dim, keepdim)
    return reduce_over(T.ReduceMax, x, dim, keepdim)


@operation()
def amin(input: Operand, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The least element over `dim`; NaN if one is NaN.

    Elements that are equally small share the derivative.

    Args:
        input: Tensor or number.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default.
        keepdim: Whether reduced dimensions stay, with size 1.

    Returns:
        Tensor of the dtype of `input`, without the dimensions of `dim`.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357), or there are no elements
            (MLC0363).

    Example:
        >>> mlc.amin(mlc.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1)
        tensor([1., 2.], dtype=mlc.float32)
    """
    x = tracer(input)
    check_not_empty(x, axes(dim, x.ndim), "minimum")
    if x.type.dtype.is_bool:
        return reduce_over(T.ReduceAll, x, dim, keepdim)
    return reduce_over(T.ReduceMin, x, dim, keepdim)


def _position(x: Tracer, best: Tensor, at: int) -> Tracer:
    """Index along dimension `at` of the first element equal to `best` (kept dimensions); NaN equals NaN."""
    same = E.eq(x, best)
    if x.type.dtype.is_float:
        same = E.logical_or(same, E.isnan(x))
    place = emit(T.Iota, x.shape, at, i64)
    last = E.count(x.shape[at] - 1, place)
    found: Tracer = emit(T.ReduceMin, E.where(same, place, last), (at,))
    return found


def _best(cls: Any, input: Operand, dim: int, keepdim: bool, name: str) -> ValuesAndIndices:
    x = tracer(input)
    if not x.ndim:
        return ValuesAndIndices(x, E.count(0, emit(T.Full, 0, (), i64)))
    at = axis(dim, x.ndim)
    check_not_empty(x, (at,), name)
    y = cast(x, i64) if x.type.dtype.is_bool else x
    best = kept(emit(cls, y, (at,)), x, (at,), True)
    index = kept(_position(y, E.detach(best), at), x, (at,), keepdim)
    # The value is the element at the index, so that equal elements do not share the derivative.
    if x.type.dtype.is_float:
        at_index = index if keepdim else kept(index, x, (at,), True)
        best = emit(T.TakeAlong, x, at_index, at)
    shape = [1 if i == at else d for i, d in enumerate(x.shape) if keepdim or i != at]
    return ValuesAndIndices(cast(reshape(tracer(best), shape), x.type.dtype), index)


@operation(name="max")
def _max(input: Operand, dim: int | None, keepdim: bool) -> Any:
    """The greatest element, along a dimension or of all."""
    return amax(input) if dim is None else _best(T.ReduceMax, input, dim, keepdim, "maximum")


@coded
def max(input: Operand, dim: int | Operand | None = None, keepdim: bool = False, *, other: Operand = None,
        out: Any = None) -> Any:
    """The greatest element; with `dim`, the greatest one along it and its index.

    NaN counts as the greatest of all. Of equal elements the first one is taken, and has the derivative; without `dim`
    they share it, as in `amax`. Of two tensors it is `mlc.maximum`.

    Args:
        input: Tensor or number.
        dim: Dimension that is reduced; negative ones count from the last. All by default. A tensor is `other`.
        keepdim: Whether the dimension stays, with size 1.
        other: Tensor or number that `input` is compared with element by element.
        out: Tensor that the result is written to; with `dim`, a pair of them.

    Returns:
        Without `dim` and `other`, a 0-d tensor; with `other`, a tensor of the broadcast shape; with `dim`, a named
        tuple of `values`, of the dtype of `input`, and `indices`, of int64.

    Raises:
        UserError: `dim` is out of range (MLC0356) or no integer (MLC0355), or there are no elements (MLC0363).

    Example:
        >>> mlc.max(mlc.tensor([1.0, 5.0, 3.0]))
        tensor(5., dtype=mlc.float32)
        >>> mlc.max(mlc.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1).indices
        tensor([1, 0], dtype=mlc.int64)
    """
    if other is not None or is_tensor(dim):
        return _written(E.maximum, out, input, dim if other is None else other)
    return _written(_max, out, input, dim, keepdim)


OPERATIONS["max"] = max


def _written(f: Callable[..., Any], out: Any, *args: Any) -> Any:
    return f(*args) if out is None else f(*args, out=out)


@operation(name="min")
def _min(input: Operand, dim: int | None, keepdim: bool) -> Any:
    """The least element, along a dimension or of all."""
    return amin(input) if dim is None else _best(T.ReduceMin, input, dim, keepdim, "minimum")


@coded
def min(input: Operand, dim: int | Operand | None = None, keepdim: bool = False, *, other: Operand = None,
        out: Any = None) -> Any:
    """The least element; with `dim`, the least one along it and its index.

    NaN counts as the least of all. Of equal elements the first one is taken, and has the derivative; without `dim` they
    share it, as in `amin`. Of two tensors it is `mlc.minimum`.

    Args:
        input: Tensor or number.
        dim: Dimension that is reduced; negative ones count from the last. All by default. A tensor is `other`.
        keepdim: Whether the dimension stays, with size 1.
        other: Tensor or number that `input` is compared with element by element.
        out: Tensor that the result is written to; with `dim`, a pair of them.

    Returns:
        Without `dim` and `other`, a 0-d tensor; with `other`, a tensor of the broadcast shape; with `dim`, a named
        tuple of `values`, of the dtype of `input`, and `indices`, of int64.

    Raises:
        UserError: `dim` is out of range (MLC0356) or no integer (MLC0355), or there are no elements (MLC0363).

    Example:
        >>> mlc.min(mlc.tensor([1.0, 5.0, 3.0]))
        tensor(1., dtype=mlc.float32)
        >>> mlc.min(mlc.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1).indices
        tensor([0, 1], dtype=mlc.int64)
    """
    if other is not None or is_tensor(dim):
        return _written(E.minimum, out, input, dim if other is None else other)
    return _written(_min, out, input, dim, keepdim)


OPERATIONS["min"] = min


def _arg(cls: Any, input: Operand, dim: int | None, keepdim: bool, name: str) -> Tensor:
    x = tracer(input)
    if dim is None:
        flat = reshape(x, [sizes.product(x.shape)])
        index = tracer(_best(cls, flat, 0, False, name).indices)
        return reshape(index, [1] * x.ndim) if keepdim else index
    return _best(cls, x, dim, keepdim, name).indices


@operation()
def argmax(input: Operand, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the greatest element along `dim`, or in the flattened tensor.

    Of equal elements it is the first; NaN counts as the greatest of all.

    Args:
        input: Tensor or number.
        dim: Dimension that is reduced; negative ones count from the last. None for the flattened tensor.
        keepdim: Whether reduced dimensions stay, with size 1.

    Returns:
        Tensor of int64 without the dimension.

    Raises:
        UserError: `dim` is out of range (MLC0356), or there are no elements (MLC0363).

    Example:
        >>> mlc.argmax(mlc.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1)
        tensor([1, 0], dtype=mlc.int64)
    """
    return _arg(T.ReduceMax, input, dim, keepdim, "maximum")


@operation()
def argmin(input: Operand, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the least element along `dim`, or in the flattened tensor.

    Of equal elements it is the first; NaN counts as the least of all.

    Args:
        input: Tensor or number.
        dim: Dimension that is reduced; negative ones count from the last. None for the flattened tensor.
        keepdim: Whether reduced dimensions stay, with size 1.

    Returns:
        Tensor of int64 without the dimension.

    Raises:
        UserError: `dim` is out of range (MLC0356), or there are no elements (MLC0363).

    Example:
        >>> mlc.argmin(mlc.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1)
        tensor([0, 1], dtype=mlc.int64)
    """
    return _arg(T.ReduceMin, input, dim, keepdim, "minimum")


@operation()
def aminmax(input: Operand, *, dim: int | None = None, keepdim: bool = False) -> MinAndMax:
    """The least and the greatest element, as `amin` and `amax` give them.

    Args:
        input: Tensor or number.
        dim: Dimension that is reduced; negative ones count from the last. All by default.
        keepdim: Whether reduced dimensions stay, with size 1.

    Returns:
        Named tuple of `min` and `max`, tensors of the dtype of `input`.

    Raises:
        UserError: `dim` is out of range (MLC0356), or there are no elements (MLC0363).

    Example:
        >>> mlc.aminmax(mlc.tensor([3.0, 1.0, 2.0]))
        MinAndMax(min=tensor(1., dtype=mlc.float32), max=tensor(3., dtype=mlc.float32))
    """
    return MinAndMax(amin(input, dim, keepdim), amax(input, dim, keepdim))
