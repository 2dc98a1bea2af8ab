"""Functions that take dimensions away: sums, extrema, moments, norms, truth of all or any."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from mlc.dialects import tensor as T
from mlc.frontend.dtypes import as_ir
from mlc.frontend.functions import elementwise as E
from mlc.frontend.operands import (
    axes,
    axis,
    boolean,
    cast,
    floating,
    is_tensor,
    kind,
    need,
    reshape,
    rounded_once,
    tracer,
)
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Dims, DTypeLike, Operand, Tensor
from mlc.frontend.trace import Tracer, emit
from mlc.ir import sizes
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.types import i64


class ValuesAndIndices(NamedTuple):
    """What `max(x, dim)` and `min(x, dim)` return."""

    values: Tensor
    indices: Tensor


def kept(x: Tensor, like: Tracer, over: tuple[int, ...], keepdim: bool) -> Tensor:
    """A reduced tensor, with 1 in place of the dimensions that are gone if they are to be kept."""
    assert isinstance(x, Tracer)
    return reshape(x, [1 if i in over else d for i, d in enumerate(like.shape)]) if keepdim else x


def _reduce(cls: Any, x: Tracer, dim: Dims, keepdim: bool) -> Tensor:
    over = axes(dim, x.ndim)
    return kept(emit(cls, x, over), x, over, keepdim)


def _not_empty(x: Tracer, over: tuple[int, ...], name: str) -> None:
    for i in over:
        need(x.shape[i] - 1, f"the {name} of no elements is not defined")


@operation()
def sum(input: Operand, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None) -> Tensor:
    """The sum of the elements over `dim`; 0 where there are none.

    Args:
        input: Tensor or number.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Dtype in which elements are summed and the result is given; by default that of floats, and int64 for
            others.

    Returns:
        Tensor without the dimensions of `dim`.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357).

    Example:
        >>> mlc.sum(mlc.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
        tensor([3., 7.], dtype=mlc.float32)
    """
    x = tracer(input)
    x = cast(x, as_ir(dtype) if dtype is not None else x.type.dtype if x.type.dtype.is_float else i64)
    return _reduce(T.ReduceSum, x, dim, keepdim)


@operation()
def prod(input: Operand, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None) -> Tensor:
    """The product of the elements over `dim`; 1 where there are none.

    Args:
        input: Tensor or number.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Dtype in which elements are multiplied and the result is given; by default that of floats, and int64 for
            others.

    Returns:
        Tensor without the dimensions of `dim`.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357).

    Example:
        >>> mlc.prod(mlc.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
        tensor([ 2., 12.], dtype=mlc.float32)
    """
    x = tracer(input)
    x = cast(x, as_ir(dtype) if dtype is not None else x.type.dtype if x.type.dtype.is_float else i64)
    return _reduce(T.ReduceProd, x, dim, keepdim)


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
    _not_empty(x, axes(dim, x.ndim), "maximum")
    if x.type.dtype.is_bool:
        return _reduce(T.ReduceAny, x, dim, keepdim)
    return _reduce(T.ReduceMax, x, dim, keepdim)


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
    _not_empty(x, axes(dim, x.ndim), "minimum")
    if x.type.dtype.is_bool:
        return _reduce(T.ReduceAll, x, dim, keepdim)
    return _reduce(T.ReduceMin, x, dim, keepdim)


def _position(x: Tracer, best: Tensor, at: int) -> Tracer:
    """Where along dimension `at` the first element equal to `best` stands (kept dimensions); a NaN equals a NaN."""
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
    _not_empty(x, (at,), name)
    y = cast(x, i64) if x.type.dtype.is_bool else x
    best = kept(emit(cls, y, (at,)), x, (at,), True)
    index = kept(_position(y, E.detach(best), at), x, (at,), keepdim)
    # The value is the element at the index, so that equal elements do not share the derivative.
    if x.type.dtype.is_float:
        at_index = index if keepdim else kept(index, x, (at,), True)
        best = emit(T.TakeAlong, x, at_index, at)
    shape = [1 if i == at else d for i, d in enumerate(x.shape) if keepdim or i != at]
    return ValuesAndIndices(cast(reshape(tracer(best), shape), x.type.dtype), index)


def _no_tensor(dim: Any, name: str) -> None:
    if is_tensor(dim):
        raise UserTypeError("dim is a tensor, expected an integer", code="MLC0355",
                            hint=f"mlc.{name}(a, b) compares two tensors element by element")


@operation()
def max(input: Operand, dim: int | None = None, keepdim: bool = False) -> Any:
    """The greatest element; with `dim`, the greatest one along it and its index.

    NaN counts as the greatest of all. Of equal elements the first one is taken, and has the derivative; without `dim`
    they share it, as in `amax`. For two tensors element by element, use `mlc.maximum`.

    Args:
        input: Tensor or number.
        dim: Dimension that is reduced; negative ones count from the last. All by default.
        keepdim: Whether the dimension stays, with size 1.

    Returns:
        Without `dim`, a 0-d tensor; with it, a named tuple of `values`, of the dtype of `input`, and `indices`, of
        int64.

    Raises:
        UserError: `dim` is out of range (MLC0356) or no integer (MLC0355), or there are no elements (MLC0363).

    Example:
        >>> mlc.max(mlc.tensor([1.0, 5.0, 3.0]))
        tensor(5., dtype=mlc.float32)
        >>> mlc.max(mlc.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1).indices
        tensor([1, 0], dtype=mlc.int64)
    """
    _no_tensor(dim, "maximum")
    return amax(input) if dim is None else _best(T.ReduceMax, input, dim, keepdim, "maximum")


@operation()
def min(input: Operand, dim: int | None = None, keepdim: bool = False) -> Any:
    """The least element; with `dim`, the least one along it and its index.

    NaN counts as the least of all. Of equal elements the first one is taken, and has the derivative; without `dim` they
    share it, as in `amin`. For two tensors element by element, use `mlc.minimum`.

    Args:
        input: Tensor or number.
        dim: Dimension that is reduced; negative ones count from the last. All by default.
        keepdim: Whether the dimension stays, with size 1.

    Returns:
        Without `dim`, a 0-d tensor; with it, a named tuple of `values`, of the dtype of `input`, and `indices`, of
        int64.

    Raises:
        UserError: `dim` is out of range (MLC0356) or no integer (MLC0355), or there are no elements (MLC0363).

    Example:
        >>> mlc.min(mlc.tensor([1.0, 5.0, 3.0]))
        tensor(1., dtype=mlc.float32)
        >>> mlc.min(mlc.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1).indices
        tensor([0, 1], dtype=mlc.int64)
    """
    _no_tensor(dim, "minimum")
    return amin(input) if dim is None else _best(T.ReduceMin, input, dim, keepdim, "minimum")


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
def aminmax(input: Operand, *, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The least and the greatest element, as `amin` and `amax` give them.

    Args:
        input: Tensor or number.
        dim: Dimension that is reduced; negative ones count from the last. All by default.
        keepdim: Whether reduced dimensions stay, with size 1.

    Returns:
        Pair (minimum, maximum) of tensors of the dtype of `input`.

    Raises:
        UserError: `dim` is out of range (MLC0356), or there are no elements (MLC0363).

    Example:
        >>> mlc.aminmax(mlc.tensor([3.0, 1.0, 2.0]))
        (tensor(1., dtype=mlc.float32), tensor(3., dtype=mlc.float32))
    """
    return amin(input, dim, keepdim), amax(input, dim, keepdim)


def float_only(x: Tracer, name: str) -> Tracer:
    """As PyTorch, which refuses means of integers."""
    if not x.type.dtype.is_float:
        raise UserTypeError(f"{name} needs floats, found {x.dtype}", code="MLC0359", hint="cast it first: x.float()")
    return x


@operation()
def mean(input: Operand, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None) -> Tensor:
    """sum_i x[i] / n, the mean over the n elements of `dim`; NaN where there are none.

    Args:
        input: Tensor of floats.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Float dtype that elements are cast to first; that of `input` by default.

    Returns:
        Tensor of floats without the dimensions of `dim`.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357), or elements are no floats
            (MLC0359).

    Example:
        >>> mlc.mean(mlc.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
        tensor([2., 3.], dtype=mlc.float32)
    """
    x = tracer(input)
    x = float_only(cast(x, as_ir(dtype)) if dtype is not None else x, "mean")
    return _reduce(T.Mean, x, dim, keepdim)


@operation()
def nansum(input: Operand, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None) -> Tensor:
    """The sum over `dim` of the elements that are not NaN; 0 where there are none.

    Args:
        input: Tensor or number.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Dtype of the sum; by default that of floats, and int64 for others.

    Returns:
        Tensor without the dimensions of `dim`.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357).

    Example:
        >>> mlc.nansum(mlc.tensor([1.0, float("nan"), 2.0]))
        tensor(3., dtype=mlc.float32)
    """
    return sum(E.where(E.isnan(input), 0, input), dim, keepdim, dtype=dtype)


@operation()
def nanmean(input: Operand, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None) -> Tensor:
    """The mean over `dim` of the elements that are not NaN; NaN where there are none.

    Args:
        input: Tensor of floats.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Float dtype that elements are cast to first; that of `input` by default.

    Returns:
        Tensor of floats without the dimensions of `dim`.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357), or elements are no floats
            (MLC0359).

    Example:
        >>> mlc.nanmean(mlc.tensor([1.0, float("nan"), 2.0]))
        tensor(1.5, dtype=mlc.float32)
    """
    x = tracer(input)
    x = float_only(cast(x, as_ir(dtype)) if dtype is not None else x, "nanmean")
    return nansum(x, dim, keepdim) / cast(tracer(sum(E.logical_not(E.isnan(x)), dim, keepdim)), x.type.dtype)


@operation()
def var(input: Operand, dim: Dims = None, *, correction: int = 1, keepdim: bool = False) -> Tensor:
    """sum_i (x[i] - mean) ** 2 / (n - correction), the variance over the n elements of `dim`.

    Args:
        input: Tensor of floats.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default.
        keepdim: Whether reduced dimensions stay, with size 1.
        correction: Bessel's correction: 1 for the unbiased estimate from a sample, 0 for the variance of the elements.

    Returns:
        Tensor of floats without the dimensions of `dim`; NaN for too few elements.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357), or elements are no floats
            (MLC0359).

    Example:
        >>> mlc.var(mlc.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor(1.6666666, dtype=mlc.float32)
    """
    x = float_only(tracer(input), "var")
    over = axes(dim, x.ndim)
    return kept(emit(T.Var, x, over, float(correction)), x, over, keepdim)


@operation()
def std(input: Operand, dim: Dims = None, *, correction: int = 1, keepdim: bool = False) -> Tensor:
    """sqrt(sum_i (x[i] - mean) ** 2 / (n - correction)), the standard deviation over the n elements of `dim`.

    The derivative is 0 where all elements are equal.

    Args:
        input: Tensor of floats.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default.
        keepdim: Whether reduced dimensions stay, with size 1.
        correction: Bessel's correction: 1 for an estimate from a sample, 0 for the deviation of the elements.

    Returns:
        Tensor of floats without the dimensions of `dim`; NaN for too few elements.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357), or elements are no floats
            (MLC0359).

    Example:
        >>> mlc.std(mlc.tensor([1.0, 2.0, 3.0]))
        tensor(1., dtype=mlc.float32)
    """
    return rounded_once(lambda x: _root(var(x, dim, correction=correction, keepdim=keepdim)), tracer(input))


def _root(x: Tensor, power: float = 0.5) -> Tensor:
    """x ** power of what is not negative, with derivative 0 at 0, as PyTorch's norms have it, in place of infinity."""
    zero = x == 0
    return E.where(zero, 0.0, E.pow(E.where(zero, 1.0, x), power))


@operation()
def var_mean(input: Operand, dim: Dims = None, *, correction: int = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The variance and the mean over `dim`, as `var` and `mean` give them.

    Args:
        input: Tensor of floats.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default.
        keepdim: Whether reduced dimensions stay, with size 1.
        correction: Bessel's correction, as in `var`.

    Returns:
        Pair (variance, mean) of tensors without the dimensions of `dim`.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357), or elements are no floats
            (MLC0359).

    Example:
        >>> mlc.var_mean(mlc.tensor([1.0, 2.0, 3.0]))
        (tensor(1., dtype=mlc.float32), tensor(2., dtype=mlc.float32))
    """
    x = tracer(input)
    return var(x, dim, correction=correction, keepdim=keepdim), mean(x, dim, keepdim)


@operation()
def std_mean(input: Operand, dim: Dims = None, *, correction: int = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean over `dim`, as `std` and `mean` give them.

    Args:
        input: Tensor of floats.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default.
        keepdim: Whether reduced dimensions stay, with size 1.
        correction: Bessel's correction, as in `var`.

    Returns:
        Pair (deviation, mean) of tensors without the dimensions of `dim`.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357), or elements are no floats
            (MLC0359).

    Example:
        >>> mlc.std_mean(mlc.tensor([1.0, 2.0, 3.0]))
        (tensor(1., dtype=mlc.float32), tensor(2., dtype=mlc.float32))
    """
    x = tracer(input)
    return std(x, dim, correction=correction, keepdim=keepdim), mean(x, dim, keepdim)


def _no_axis(dim: Dims) -> bool:
    return isinstance(dim, tuple | list) and not dim


@operation()
def any(input: Operand, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether some element over `dim` is not 0; False where there are none.

    Args:
        input: Tensor or number; NaN is not 0.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default, none for ().
        keepdim: Whether reduced dimensions stay, with size 1.

    Returns:
        Tensor of bools without the dimensions of `dim`.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357).

    Example:
        >>> mlc.any(mlc.tensor([[0, 1], [0, 0]]), dim=1)
        tensor([ True, False], dtype=mlc.bool)
    """
    return boolean(input) if _no_axis(dim) else _reduce(T.ReduceAny, boolean(input), dim, keepdim)


@operation()
def all(input: Operand, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether every element over `dim` is not 0; True where there are none.

    Args:
        input: Tensor or number; NaN is not 0.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default, none for ().
        keepdim: Whether reduced dimensions stay, with size 1.

    Returns:
        Tensor of bools without the dimensions of `dim`.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357).

    Example:
        >>> mlc.all(mlc.tensor([[0, 1], [2, 3]]), dim=1)
        tensor([False,  True], dtype=mlc.bool)
    """
    return boolean(input) if _no_axis(dim) else _reduce(T.ReduceAll, boolean(input), dim, keepdim)


@operation()
def count_nonzero(input: Operand, dim: Dims = None) -> Tensor:
    """The number of elements over `dim` that are not 0.

    Args:
        input: Tensor or number; NaN is not 0.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default.

    Returns:
        Tensor of int64 without the dimensions of `dim`.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357).

    Example:
        >>> mlc.count_nonzero(mlc.tensor([[0, 1], [2, 3]]), dim=1)
        tensor([1, 2], dtype=mlc.int64)
    """
    return sum(boolean(input), dim)


@operation()
def logsumexp(input: Operand, dim: Dims, keepdim: bool = False) -> Tensor:
    """ln(sum_i e ** x[i]) over `dim`, without overflow; -inf where there are no elements.

    The maximum is subtracted first and added at the end.

    Args:
        input: Tensor or number; integers become float32.
        dim: Dimension, or several, that are reduced; negative ones count from the last.
        keepdim: Whether reduced dimensions stay, with size 1.

    Returns:
        Tensor of floats without the dimensions of `dim`.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357).

    Example:
        >>> mlc.logsumexp(mlc.tensor([1000.0, 1000.0]), dim=0)
        tensor(1000.6932, dtype=mlc.float32)
    """
    x = floating(input)
    over = axes(dim, x.ndim)
    if len(over) == 1:
        return kept(emit(T.LogSumExp, x, over[0]), x, over, keepdim)
    if 0 in [x.shape[a] for a in over]:                    # log(0)
        return E.log(sum(x, over, keepdim))
    most = amax(x, over, keepdim=True)
    most = E.detach(E.where(E.isfinite(most), most, 0.0))
    out = E.log(sum(E.exp(x - most), over, keepdim=True)) + most
    return out if keepdim else reshape(tracer(out), [d for i, d in enumerate(x.shape) if i not in over])


@operation()
def norm(input: Operand, p: Any = 2, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """(sum_i |x[i]| ** p) ** (1 / p), the vector norm of the elements over `dim`.

    p = inf and -inf give the greatest and the least |x[i]|, and p = 0 the number of elements that are not 0. The
    derivative at a norm of 0 is 0.

    Args:
        input: Tensor of floats.
        p: The exponent, or "fro" for 2.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default.
        keepdim: Whether reduced dimensions stay, with size 1.

    Returns:
        Tensor of the dtype of `input`, without the dimensions of `dim`.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357), `p` is no number (MLC0360), or
            elements are no floats (MLC0359).

    Example:
        >>> mlc.norm(mlc.tensor([3.0, 4.0]))
        tensor(5., dtype=mlc.float32)
        >>> mlc.norm(mlc.tensor([3.0, 4.0]), p=1)
        tensor(7., dtype=mlc.float32)
    """
    x = float_only(tracer(input), "norm")
    p = 2 if p == "fro" else p
    if isinstance(p, bool) or not isinstance(p, int | float):
        raise UserError(f"p = {p!r} is no norm", code="MLC0360", hint='use a number or "fro"')
    if p in (math.inf, -math.inf):
        return (amax if p > 0 else amin)(E.abs(x), dim, keepdim)
    if p == 0:
        return cast(tracer(sum(x != 0, dim, keepdim)), x.type.dtype)
    return rounded_once(lambda x: _norm(x, p, dim, keepdim), x)


def _norm(x: Tracer, p: float, dim: Dims, keepdim: bool) -> Tensor:
    """The norm for p that is neither 0 nor infinite."""
    if p == 1:
        return sum(E.abs(x), dim, keepdim)
    if p == 2:
        return _root(sum(x * x, dim, keepdim))
    zero = x == 0
    powers = E.where(zero, 0.0 if p > 0 else math.inf, E.pow(E.abs(E.where(zero, 1.0, x)), p))
    return _root(sum(powers, dim, keepdim), 1 / p)


@operation()
def dist(input: Operand, other: Operand, p: float = 2) -> Tensor:
    """norm(input - other, p), the distance of two tensors taken as vectors.

    Args:
        input: Tensor of floats.
        other: Tensor whose shape broadcasts with that of `input`.
        p: The exponent, as in `mlc.norm`.

    Returns:
        0-d tensor.

    Raises:
        UserError: neither is of floats (MLC0359).

    Example:
        >>> mlc.dist(mlc.tensor([1.0, 2.0]), mlc.tensor([4.0, 6.0]))
        tensor(5., dtype=mlc.float32)
    """
    return norm(E.sub(input, other), p)


def is_float(x: Tracer) -> bool:
    return kind(x.type.dtype) == 2
