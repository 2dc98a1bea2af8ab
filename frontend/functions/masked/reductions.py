"""Reductions of the elements that a mask selects.

What is masked out counts as the identity element of the operation. Where all is masked out, a sum is 0, a product 1, a
maximum -inf, and a mean NaN.
"""

from __future__ import annotations

import math

from mlc.frontend.dtypes import as_ir
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.linalg import vector_norm
from mlc.frontend.functions.sort import nanmedian
from mlc.frontend.operands import broadcast_shapes, broadcast_to, cast, conjugate, floating, full, same_shape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Dims, DTypeLike, Operand, Tensor
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.types import IntType, f32


def _least(x: Tracer, sign: int) -> float:
    """The least number of the dtype, or the greatest, for a sign of -1."""
    dtype = x.type.dtype
    if not isinstance(dtype, IntType):
        return -sign * math.inf
    low, high = (0, (1 << dtype.width) - 1) if dtype.unsigned or dtype.is_bool else (
        -1 << (dtype.width - 1), (1 << (dtype.width - 1)) - 1)
    return low if sign > 0 else high


def filled(input: Operand, mask: Operand, value: float, dtype: DTypeLike = None) -> Tracer:
    """The tensor, in a dtype, with a number in place of the elements that are masked out."""
    x = tracer(input) if dtype is None else cast(tracer(input), as_ir(dtype))
    if mask is None:
        return x
    kept = tracer(mask)
    if not same_shape(broadcast_shapes(x.shape, kept.shape), x.shape):
        raise UserError(f"a mask of shape [{', '.join(map(str, kept.shape))}] does not broadcast to "
                        f"[{', '.join(map(str, x.shape))}]", code="MLC0367", symbols=sizes.symbols(*x.shape))
    return tracer(E.where(kept, x, full(value, x)))


def _wide(x: Tracer) -> Tracer:
    """The tensor; of elements of 16 bits in float32, which counts beyond 2048 need."""
    return cast(x, f32) if x.type.dtype.width < 32 else x


def _counts(x: Tracer, mask: Operand, dim: Dims, keepdim: bool) -> Tensor:
    """How many elements a reduction over `dim` reduces, in the dtype of x."""
    kept = full(1, x, x.shape) if mask is None else broadcast_to(cast(tracer(mask), x.type.dtype), x.shape)
    return R.sum(kept, dim, keepdim)


@operation(name="masked.sum")
def sum(input: Operand, dim: Dims = None, *, keepdim: bool = False, dtype: DTypeLike = None,
        mask: Operand = None) -> Tensor:
    """The sum of the selected elements over `dim`.

    Args:
        input: Tensor.
        dim: Dimension, or several, that are reduced; all by default.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Dtype to convert the elements to first; None for that of `input`.
        mask: Tensor of bools that broadcasts to the shape of `input`, False where elements do not count; None for all.

    Returns:
        Tensor without the dimensions of `dim`.

    Raises:
        UserError: `mask` does not broadcast to `input` (MLC0111, or MLC0367 if it is larger) or is not of bools
            (MLC0362), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.masked.sum(mlc.tensor([1.0, 2.0, 5.0]), mask=mlc.tensor([True, False, True]))
        tensor(6., dtype=mlc.float32)
    """
    return R.sum(filled(input, mask, 0, dtype), dim, keepdim)


@operation(name="masked.prod")
def prod(input: Operand, dim: Dims = None, *, keepdim: bool = False, dtype: DTypeLike = None,
         mask: Operand = None) -> Tensor:
    """The product of the selected elements over `dim`.

    Args:
        input: Tensor.
        dim: Dimension, or several, that are reduced; all by default.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Dtype to convert the elements to first; None for that of `input`.
        mask: Tensor of bools that broadcasts to the shape of `input`, False where elements do not count; None for all.

    Returns:
        Tensor without the dimensions of `dim`.

    Raises:
        UserError: `mask` does not broadcast to `input` (MLC0111, or MLC0367 if it is larger) or is not of bools
            (MLC0362), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.masked.prod(mlc.tensor([1.0, 2.0, 5.0]), mask=mlc.tensor([True, False, True]))
        tensor(5., dtype=mlc.float32)
    """
    return R.prod(filled(input, mask, 1, dtype), dim, keepdim)


@operation(name="masked.amax")
def amax(input: Operand, dim: Dims = None, *, keepdim: bool = False, dtype: DTypeLike = None,
         mask: Operand = None) -> Tensor:
    """The greatest of the selected elements over `dim`.

    Args:
        input: Tensor.
        dim: Dimension, or several, that are reduced; all by default.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Dtype to convert the elements to first; None for that of `input`.
        mask: Tensor of bools that broadcasts to the shape of `input`, False where elements do not count; None for all.

    Returns:
        Tensor without the dimensions of `dim`.

    Raises:
        UserError: `mask` does not broadcast to `input` (MLC0111, or MLC0367 if it is larger) or is not of bools
            (MLC0362), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.masked.amax(mlc.tensor([1.0, 2.0, 5.0]), mask=mlc.tensor([True, False, True]))
        tensor(5., dtype=mlc.float32)
    """
    x = tracer(input) if dtype is None else cast(tracer(input), as_ir(dtype))
    return R.amax(filled(x, mask, _least(x, 1)), dim, keepdim)


@operation(name="masked.amin")
def amin(input: Operand, dim: Dims = None, *, keepdim: bool = False, dtype: DTypeLike = None,
         mask: Operand = None) -> Tensor:
    """The least of the selected elements over `dim`.

    Args:
        input: Tensor.
        dim: Dimension, or several, that are reduced; all by default.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Dtype to convert the elements to first; None for that of `input`.
        mask: Tensor of bools that broadcasts to the shape of `input`, False where elements do not count; None for all.

    Returns:
        Tensor without the dimensions of `dim`.

    Raises:
        UserError: `mask` does not broadcast to `input` (MLC0111, or MLC0367 if it is larger) or is not of bools
            (MLC0362), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.masked.amin(mlc.tensor([1.0, 2.0, 5.0]), mask=mlc.tensor([True, False, True]))
        tensor(1., dtype=mlc.float32)
    """
    x = tracer(input) if dtype is None else cast(tracer(input), as_ir(dtype))
    return R.amin(filled(x, mask, _least(x, -1)), dim, keepdim)


@operation(name="masked.argmax")
def argmax(input: Operand, dim: int | None = None, *, keepdim: bool = False, dtype: DTypeLike = None,
           mask: Operand = None) -> Tensor:
    """The position of the greatest of the selected elements along `dim`.

    Args:
        input: Tensor.
        dim: The dimension; None for the position in the flattened tensor.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Dtype to convert the elements to first; None for that of `input`.
        mask: Tensor of bools that broadcasts to the shape of `input`, False where elements do not count; None for all.

    Returns:
        Tensor without dimension `dim`, of the dtype of the elements, as in PyTorch.

    Raises:
        UserError: `mask` does not broadcast to `input` (MLC0111, or MLC0367 if it is larger) or is not of bools
            (MLC0362), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.masked.argmax(mlc.tensor([1.0, 2.0, 5.0]), mask=mlc.tensor([True, False, True]))
        tensor(2., dtype=mlc.float32)
    """
    x = tracer(input) if dtype is None else cast(tracer(input), as_ir(dtype))
    return cast(tracer(R.argmax(filled(x, mask, _least(x, 1)), dim, keepdim)), x.type.dtype)


@operation(name="masked.argmin")
def argmin(input: Operand, dim: int | None = None, *, keepdim: bool = False, dtype: DTypeLike = None,
           mask: Operand = None) -> Tensor:
    """The position of the least of the selected elements along `dim`.

    Args:
        input: Tensor.
        dim: The dimension; None for the position in the flattened tensor.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Dtype to convert the elements to first; None for that of `input`.
        mask: Tensor of bools that broadcasts to the shape of `input`, False where elements do not count; None for all.

    Returns:
        Tensor without dimension `dim`, of the dtype of the elements, as in PyTorch.

    Raises:
        UserError: `mask` does not broadcast to `input` (MLC0111, or MLC0367 if it is larger) or is not of bools
            (MLC0362), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.masked.argmin(mlc.tensor([1.0, 2.0, 5.0]), mask=mlc.tensor([True, False, True]))
        tensor(0., dtype=mlc.float32)
    """
    x = tracer(input) if dtype is None else cast(tracer(input), as_ir(dtype))
    return cast(tracer(R.argmin(filled(x, mask, _least(x, -1)), dim, keepdim)), x.type.dtype)


@operation(name="masked.mean")
def mean(input: Operand, dim: Dims = None, *, keepdim: bool = False, dtype: DTypeLike = None,
         mask: Operand = None) -> Tensor:
    """The mean of the selected elements over `dim`; NaN where there are none.

    Args:
        input: Tensor.
        dim: Dimension, or several, that are reduced; all by default.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Dtype to convert the elements to first; None for that of `input`.
        mask: Tensor of bools that broadcasts to the shape of `input`, False where elements do not count; None for all.

    Returns:
        Tensor without the dimensions of `dim`.

    Raises:
        UserError: `mask` does not broadcast to `input` (MLC0111, or MLC0367 if it is larger) or is not of bools
            (MLC0362), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.masked.mean(mlc.tensor([1.0, 2.0, 5.0]), mask=mlc.tensor([True, False, True]))
        tensor(3., dtype=mlc.float32)
    """
    x = floating(filled(input, mask, 0, dtype))
    wide = _wide(x)
    return E.cast_to(R.sum(wide, dim, keepdim) / _counts(wide, mask, dim, keepdim), x.dtype)


@operation(name="masked.median")
def median(input: Operand, dim: int = -1, *, keepdim: bool = False, dtype: DTypeLike = None,
           mask: Operand = None) -> Tensor:
    """The median of the selected elements along `dim`, the lower of two; NaN where there are none.

    Args:
        input: Tensor.
        dim: The dimension.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Dtype to convert the elements to first; None for that of `input`.
        mask: Tensor of bools that broadcasts to the shape of `input`, False where elements do not count; None for all.

    Returns:
        Tensor without dimension `dim`.

    Raises:
        UserError: `mask` does not broadcast to `input` (MLC0111, or MLC0367 if it is larger) or is not of bools
            (MLC0362), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.masked.median(mlc.tensor([1.0, 2.0, 5.0]), mask=mlc.tensor([True, False, True]))
        tensor(1., dtype=mlc.float32)
    """
    return nanmedian(filled(floating(input, dtype), mask, math.nan), dim, keepdim)[0]  # type: ignore[no-any-return]


@operation(name="masked.logsumexp")
def logsumexp(input: Operand, dim: Dims = None, *, keepdim: bool = False, dtype: DTypeLike = None,
              mask: Operand = None) -> Tensor:
    """ln of the sum of exp of the selected elements over `dim`; -inf where there are none.

    Args:
        input: Tensor.
        dim: Dimension, or several, that are reduced; all by default.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Dtype to convert the elements to first; None for that of `input`.
        mask: Tensor of bools that broadcasts to the shape of `input`, False where elements do not count; None for all.

    Returns:
        Tensor without the dimensions of `dim`.

    Raises:
        UserError: `mask` does not broadcast to `input` (MLC0111, or MLC0367 if it is larger) or is not of bools
            (MLC0362), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.masked.logsumexp(mlc.zeros(3), mask=mlc.tensor([True, False, True]))
        tensor(0.6931472, dtype=mlc.float32)
    """
    x = filled(floating(input, dtype), mask, -math.inf)
    return R.logsumexp(x, tuple(range(x.ndim)) if dim is None else dim, keepdim)


@operation(name="masked.norm")
def norm(input: Operand, ord: float = 2.0, dim: Dims = None, *, keepdim: bool = False,
         dtype: DTypeLike = None, mask: Operand = None) -> Tensor:
    """The vector norm of the selected elements over `dim`.

    Args:
        input: Tensor.
        ord: Order of the norm, as of `mlc.linalg.vector_norm`.
        dim: Dimension, or several, that are reduced; all by default.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Dtype to convert the elements to first; None for that of `input`.
        mask: Tensor of bools that broadcasts to the shape of `input`, False where elements do not count; None for all.

    Returns:
        Tensor without the dimensions of `dim`.

    Raises:
        UserError: `mask` does not broadcast to `input` (MLC0111, or MLC0367 if it is larger) or is not of bools
            (MLC0362), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.masked.norm(mlc.tensor([3.0, 7.0, 4.0]), mask=mlc.tensor([True, False, True]))
        tensor(5., dtype=mlc.float32)
    """
    x = filled(floating(input, dtype), mask, math.inf if ord == -math.inf else 0)
    return vector_norm(x, ord, dim, keepdim)


@operation(name="masked.var")
def var(input: Operand, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None,
        keepdim: bool = False, dtype: DTypeLike = None, mask: Operand = None) -> Tensor:
    """The variance of the selected elements over `dim`.

    Args:
        input: Tensor.
        dim: Dimension, or several, that are reduced; all by default.
        unbiased: Whether to divide by one less than the number of elements, as it is by default.
        correction: How much less than the number of elements to divide by, in place of `unbiased`.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Dtype to convert the elements to first; None for that of `input`.
        mask: Tensor of bools that broadcasts to the shape of `input`, False where elements do not count; None for all.

    Returns:
        Tensor without the dimensions of `dim`.

    Raises:
        UserError: `mask` does not broadcast to `input` (MLC0111, or MLC0367 if it is larger) or is not of bools
            (MLC0362), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.masked.var(mlc.tensor([1.0, 2.0, 5.0]), mask=mlc.tensor([True, False, True]))
        tensor(8., dtype=mlc.float32)
    """
    given = floating(input, dtype)
    x = _wide(given)
    count = _counts(x, mask, dim, True)
    centred = x - R.sum(filled(x, mask, 0), dim, True) / count
    total = R.sum(filled(E.mul(centred, conjugate(tracer(centred))), mask, 0), dim, keepdim)
    less = float(correction if correction is not None else unbiased is not False)
    return E.cast_to(total / E.clamp_min((count if keepdim else _counts(x, mask, dim, False)) - less, 0.0), given.dtype)


@operation(name="masked.std")
def std(input: Operand, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None,
        keepdim: bool = False, dtype: DTypeLike = None, mask: Operand = None) -> Tensor:
    """The standard deviation of the selected elements over `dim`.

    Args:
        input: Tensor.
        dim: Dimension, or several, that are reduced; all by default.
        unbiased: Whether to divide by one less than the number of elements, as it is by default.
        correction: How much less than the number of elements to divide by, in place of `unbiased`.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Dtype to convert the elements to first; None for that of `input`.
        mask: Tensor of bools that broadcasts to the shape of `input`, False where elements do not count; None for all.

    Returns:
        Tensor without the dimensions of `dim`.

    Raises:
        UserError: `mask` does not broadcast to `input` (MLC0111, or MLC0367 if it is larger) or is not of bools
            (MLC0362), or `dim` is out of range (MLC0356).

    Example:
        >>> mlc.masked.std(mlc.tensor([1.0, 2.0, 5.0]), mask=mlc.tensor([True, False, True]))
        tensor(2.828427, dtype=mlc.float32)
    """
    return E.sqrt(var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask))
