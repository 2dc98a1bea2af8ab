"""Cumulative functions (scans): running sums, products and extrema; and differences, the inverse of sums."""

from __future__ import annotations

from mlc.dialects import tensor as T
from mlc.dialects.tensor.cumulative import latest
from mlc.frontend.axes import axis, plain_int
from mlc.frontend.dtypes import as_ir
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.reduce import ValuesAndIndices
from mlc.frontend.functions.shape import cat, sliced
from mlc.frontend.operands import cast, floating, number, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir.core import Value
from mlc.ir.diag import UserError
from mlc.ir.types import i64


def _running(kind: str, input: Operand, dim: int, dtype: DTypeLike) -> Tensor:
    x = tracer(input)
    at = axis(dim, x.ndim)
    x = cast(x, as_ir(dtype) if dtype is not None else x.type.dtype if x.type.dtype.is_inexact else i64)
    return emit(T.Cumulative, x, kind, at) if x.ndim else x


@operation(autocast="fp32_on_cuda")
def cumsum(input: Operand, dim: int, *, dtype: DTypeLike = None) -> Tensor:
    """Running sums: result[i] = input[0] + ... + input[i] along a dimension.

    Args:
        input: Tensor or number.
        dim: The dimension; negative ones count from the last.
        dtype: Dtype in which elements are added; by default that of floats, and int64 for others.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `dim` is out of range (MLC0356).

    Example:
        >>> mlc.cumsum(mlc.tensor([1, 2, 3]), 0)
        tensor([1, 3, 6], dtype=mlc.int64)
    """
    return _running("add", input, dim, dtype)


@operation(autocast="fp32_on_cuda")
def cumprod(input: Operand, dim: int, *, dtype: DTypeLike = None) -> Tensor:
    """Running products: result[i] = input[0] * ... * input[i] along a dimension.

    Args:
        input: Tensor or number.
        dim: The dimension; negative ones count from the last.
        dtype: Dtype in which elements are multiplied; by default that of floats, and int64 for others.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `dim` is out of range (MLC0356).

    Example:
        >>> mlc.cumprod(mlc.tensor([1, 2, 3]), 0)
        tensor([1, 2, 6], dtype=mlc.int64)
    """
    return _running("mul", input, dim, dtype)


def _extremes(kind: str, input: Operand, dim: int) -> ValuesAndIndices:
    x = tracer(input)
    at = axis(dim, x.ndim)
    if not x.ndim:
        return ValuesAndIndices(x, number(0, i64))
    y = cast(x, i64) if x.type.dtype.is_bool else x
    values: Tracer = emit(T.Cumulative, y, kind, at)

    def places(x: Value, result: Value) -> Value:
        return latest(x, result, at)

    return ValuesAndIndices(cast(values, x.type.dtype), emit(places, y, values))


@operation()
def cummax(input: Operand, dim: int) -> ValuesAndIndices:
    """Running maxima: the greatest of input[0] to input[i] along a dimension, and its index.

    NaN counts as the greatest of all. Of equal elements the index is that of the last.

    Args:
        input: Tensor or number.
        dim: The dimension; negative ones count from the last.

    Returns:
        Named tuple of `values`, of the shape and dtype of `input`, and `indices`, of int64.

    Raises:
        UserError: `dim` is out of range (MLC0356).

    Example:
        >>> mlc.cummax(mlc.tensor([1.0, 3.0, 2.0]), 0)
        ValuesAndIndices(values=tensor([1., 3., 3.], dtype=mlc.float32), indices=tensor([0, 1, 1], dtype=mlc.int64))
    """
    return _extremes("max", input, dim)


@operation()
def cummin(input: Operand, dim: int) -> ValuesAndIndices:
    """Running minima: the least of input[0] to input[i] along a dimension, and its index.

    NaN counts as the least of all. Of equal elements the index is that of the last.

    Args:
        input: Tensor or number.
        dim: The dimension; negative ones count from the last.

    Returns:
        Named tuple of `values`, of the shape and dtype of `input`, and `indices`, of int64.

    Raises:
        UserError: `dim` is out of range (MLC0356).

    Example:
        >>> mlc.cummin(mlc.tensor([2.0, 3.0, 1.0]), 0)
        ValuesAndIndices(values=tensor([2., 2., 1.], dtype=mlc.float32), indices=tensor([0, 0, 2], dtype=mlc.int64))
    """
    return _extremes("min", input, dim)


@operation()
def logcumsumexp(input: Operand, dim: int) -> Tensor:
    """Running log-sum-exp: result[i] = ln(e ** input[0] + ... + e ** input[i]) along a dimension, without overflow.

    Args:
        input: Tensor or number; integers become float32.
        dim: The dimension; negative ones count from the last.

    Returns:
        Tensor of floats of the shape of `input`.

    Raises:
        UserError: `dim` is out of range (MLC0356).

    Example:
        >>> mlc.logcumsumexp(mlc.tensor([1000.0, 1000.0]), 0)
        tensor([1000.    , 1000.6932], dtype=mlc.float32)
    """
    x = floating(input)
    at = axis(dim, x.ndim)
    return emit(T.LogCumSumExp, x, at) if x.ndim else x


@operation()
def diff(input: Operand, n: int = 1, dim: int = -1, prepend: Operand = None, append: Operand = None) -> Tensor:
    """Differences of neighbours along a dimension, input[i + 1] - input[i], taken n times.

    Bools give the exclusive or. With n = 0 the result is the input, without `prepend` and `append`.

    Args:
        input: Tensor of at least one dimension.
        n: How often differences are taken.
        dim: The dimension; negative ones count from the last.
        prepend: Tensor that is joined before `input` first.
        append: Tensor that is joined behind it first.

    Returns:
        Tensor of the dtype of `input`, with n elements fewer along `dim`, at least 0.

    Raises:
        UserError: `input` has no dimension (MLC0364), `n` is negative (MLC0360), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.diff(mlc.tensor([1, 4, 9, 16]))
        tensor([3, 5, 7], dtype=mlc.int64)
        >>> mlc.diff(mlc.tensor([1, 4, 9, 16]), 2)
        tensor([2, 2], dtype=mlc.int64)
    """
    x = tracer(input)
    if not x.ndim:
        raise UserError("diff needs at least one dimension", code="MLC0364")
    if plain_int(n, "n") < 0:
        raise UserError(f"n = {n}, expected at least 0", code="MLC0360")
    at = axis(dim, x.ndim)
    if n == 0:
        return x
    parts = [p for p in (prepend, x, append) if p is not None]
    x = tracer(cat(parts, at)) if len(parts) > 1 else x
    if n > 1:                                              # past the size there is nothing to subtract
        n = min(n, plain_int(x.shape[at], "the size"))
    for _ in range(n):
        size = x.shape[at]
        if size == 0:
            break
        later, earlier = sliced(x, at, 1, size), sliced(x, at, 0, size - 1)
        x = tracer(E.logical_xor(later, earlier) if x.type.dtype.is_bool else later - earlier)
    return x
