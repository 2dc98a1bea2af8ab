"""Scans and normalizations of the elements that a mask selects."""

from __future__ import annotations

import math

from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import neural as N
from mlc.frontend.functions import scan as S
from mlc.frontend.functions.masked.reductions import filled, norm
from mlc.frontend.operands import floating
from mlc.frontend.operation import operation
from mlc.frontend.tensor import DTypeLike, Operand, Tensor


@operation(name="masked.cumsum")
def cumsum(input: Operand, dim: int, *, dtype: DTypeLike = None, mask: Operand = None) -> Tensor:
    """The sums of the selected elements up to each place along `dim`.

    Args:
        input: Tensor.
        dim: The dimension.
        dtype: Dtype to convert the elements to first; None for that of `input`.
        mask: Tensor of bools that broadcasts to the shape of `input`, False where elements do not count; None for all.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `mask` does not broadcast to `input` (MLC0111, or MLC0367 if it is larger) or is not of bools
            (MLC0362), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.masked.cumsum(mlc.tensor([1.0, 2.0, 5.0]), 0, mask=mlc.tensor([True, False, True]))
        tensor([1., 1., 6.], dtype=mlc.float32)
    """
    return S.cumsum(filled(input, mask, 0, dtype), dim)


@operation(name="masked.cumprod")
def cumprod(input: Operand, dim: int, *, dtype: DTypeLike = None, mask: Operand = None) -> Tensor:
    """The products of the selected elements up to each place along `dim`.

    Args:
        input: Tensor.
        dim: The dimension.
        dtype: Dtype to convert the elements to first; None for that of `input`.
        mask: Tensor of bools that broadcasts to the shape of `input`, False where elements do not count; None for all.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `mask` does not broadcast to `input` (MLC0111, or MLC0367 if it is larger) or is not of bools
            (MLC0362), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.masked.cumprod(mlc.tensor([1.0, 2.0, 5.0]), 0, mask=mlc.tensor([True, False, True]))
        tensor([1., 1., 5.], dtype=mlc.float32)
    """
    return S.cumprod(filled(input, mask, 1, dtype), dim)


@operation(name="masked.softmax")
def softmax(input: Operand, dim: int, *, dtype: DTypeLike = None, mask: Operand = None) -> Tensor:
    """Softmax of the selected elements along `dim`; NaN where there are none.

    Args:
        input: Tensor.
        dim: The dimension.
        dtype: Dtype to convert the elements to first; None for that of `input`.
        mask: Tensor of bools that broadcasts to the shape of `input`, False where elements do not count; None for all.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `mask` does not broadcast to `input` (MLC0111, or MLC0367 if it is larger) or is not of bools
            (MLC0362), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.masked.softmax(mlc.zeros(3), 0, mask=mlc.tensor([True, False, True]))
        tensor([0.5, 0. , 0.5], dtype=mlc.float32)
    """
    return N.softmax(filled(floating(input, dtype), mask, -math.inf), dim)


@operation(name="masked.log_softmax")
def log_softmax(input: Operand, dim: int, *, dtype: DTypeLike = None, mask: Operand = None) -> Tensor:
    """The logarithm of softmax of the selected elements along `dim`; NaN where there are none.

    Args:
        input: Tensor.
        dim: The dimension.
        dtype: Dtype to convert the elements to first; None for that of `input`.
        mask: Tensor of bools that broadcasts to the shape of `input`, False where elements do not count; None for all.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `mask` does not broadcast to `input` (MLC0111, or MLC0367 if it is larger) or is not of bools
            (MLC0362), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.masked.log_softmax(mlc.zeros(3), 0, mask=mlc.tensor([True, False, True]))
        tensor([-0.6931472,       -inf, -0.6931472], dtype=mlc.float32)
    """
    return N.log_softmax(filled(floating(input, dtype), mask, -math.inf), dim)


@operation(name="masked.softmin")
def softmin(input: Operand, dim: int, *, dtype: DTypeLike = None, mask: Operand = None) -> Tensor:
    """Softmax of the opposite numbers of the selected elements along `dim`; NaN where there are none.

    Args:
        input: Tensor.
        dim: The dimension.
        dtype: Dtype to convert the elements to first; None for that of `input`.
        mask: Tensor of bools that broadcasts to the shape of `input`, False where elements do not count; None for all.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `mask` does not broadcast to `input` (MLC0111, or MLC0367 if it is larger) or is not of bools
            (MLC0362), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.masked.softmin(mlc.zeros(3), 0, mask=mlc.tensor([True, False, True]))
        tensor([0.5, 0. , 0.5], dtype=mlc.float32)
    """
    return N.softmin(filled(floating(input, dtype), mask, math.inf), dim)


@operation(name="masked.normalize")
def normalize(input: Operand, ord: float, dim: int, *, eps: float = 1e-12, dtype: DTypeLike = None,
              mask: Operand = None) -> Tensor:
    """The selected elements divided by their vector norm along `dim`, and 0 in place of the others.

    Args:
        input: Tensor.
        ord: Order of the norm.
        dim: The dimension.
        eps: The least divisor.
        dtype: Dtype to convert the elements to first; None for that of `input`.
        mask: Tensor of bools that broadcasts to the shape of `input`, False where elements do not count; None for all.

    Returns:
        Tensor of the shape of `input`.

    Raises:
        UserError: `mask` does not broadcast to `input` (MLC0111, or MLC0367 if it is larger) or is not of bools
            (MLC0362), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.masked.normalize(mlc.tensor([3.0, 7.0, 4.0]), 2.0, 0, mask=mlc.tensor([True, False, True]))
        tensor([0.6, 0. , 0.8], dtype=mlc.float32)
    """
    x = floating(input, dtype)
    return filled(x, mask, 0) / E.clamp_min(norm(x, ord, dim, keepdim=True, mask=mask), eps)


@operation(name="masked.logaddexp")
def logaddexp(input: Operand, other: Operand, *, dtype: DTypeLike = None, input_mask: Operand = None,
              other_mask: Operand = None) -> Tensor:
    """ln(exp(input) + exp(other)), elementwise, without the terms that are masked out.

    Args:
        input: Tensor.
        other: Tensor of the same shape.
        dtype: Dtype to convert the elements to first; None for their own.
        input_mask: Mask of `input`.
        other_mask: Mask of `other`.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: a mask does not broadcast to its tensor (MLC0111, or MLC0367 if it is larger) or is not of bools
            (MLC0362).

    Example:
        >>> mlc.masked.logaddexp(mlc.zeros(2), mlc.zeros(2), other_mask=mlc.tensor([True, False]))
        tensor([0.6931472, 0.       ], dtype=mlc.float32)
    """
    return E.logaddexp(filled(floating(input, dtype), input_mask, -math.inf),
                       filled(floating(other, dtype), other_mask, -math.inf))
