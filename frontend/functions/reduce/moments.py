"""Means, variances and norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mlc.dialects import tensor as T
from mlc.dialects.tensor.promotion import promote
from mlc.frontend.axes import axes, axis
from mlc.frontend.dtypes import as_ir
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.reduce.extrema import amax, amin
from mlc.frontend.functions.reduce.sums import inexact_only, kept, nansum, reduce_over, sum
from mlc.frontend.operands import cast, floating, number, reshape, rounded_once, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Dims, DTypeLike, Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.types import f32, f64, i64


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
    x = inexact_only(cast(x, as_ir(dtype)) if dtype is not None else x, "mean")
    return reduce_over(T.Mean, x, dim, keepdim)


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
    x = inexact_only(cast(x, as_ir(dtype)) if dtype is not None else x, "nanmean")
    return nansum(x, dim, keepdim) / cast(tracer(sum(E.logical_not(E.isnan(x)), dim, keepdim)), x.type.dtype)


@operation()
def var(input: Operand, dim: Dims | bool = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: int | None = 1) -> Tensor:
    """sum_i (x[i] - mean) ** 2 / (n - correction), the variance over the n elements of `dim`.

    Args:
        input: Tensor of floats.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default. A bool is
            `unbiased`.
        unbiased: True for a `correction` of 1, False for 0.
        keepdim: Whether reduced dimensions stay, with size 1.
        correction: Bessel's correction: 1, or None, for the unbiased estimate from a sample, 0 for the variance of
            the elements.

    Returns:
        Tensor of floats without the dimensions of `dim`; NaN for too few elements.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357), or elements are no floats
            (MLC0359).

    Example:
        >>> mlc.var(mlc.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor(1.6666666, dtype=mlc.float32)
    """
    x = inexact_only(tracer(input), "var")
    dim, correction = _dim_and_correction(dim, unbiased, correction)
    over = axes(dim, x.ndim)
    return kept(emit(T.Var, x, over, float(correction)), x, over, keepdim)


def _dim_and_correction(dim: Dims | bool, unbiased: bool | None, correction: int | None) -> tuple[Dims, int]:
    correction = 1 if correction is None else correction
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return dim, correction if unbiased is None else int(unbiased)


@operation()
def std(input: Operand, dim: Dims | bool = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: int | None = 1) -> Tensor:
    """sqrt(sum_i (x[i] - mean) ** 2 / (n - correction)), the standard deviation over the n elements of `dim`.

    The derivative is 0 where all elements are equal.

    Args:
        input: Tensor of floats.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default. A bool is
            `unbiased`.
        unbiased: True for a `correction` of 1, False for 0.
        keepdim: Whether reduced dimensions stay, with size 1.
        correction: Bessel's correction: 1, or None, for an estimate from a sample, 0 for the deviation of the elements.

    Returns:
        Tensor of floats without the dimensions of `dim`; NaN for too few elements.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357), or elements are no floats
            (MLC0359).

    Example:
        >>> mlc.std(mlc.tensor([1.0, 2.0, 3.0]))
        tensor(1., dtype=mlc.float32)
    """
    x = tracer(input)
    if x.type.dtype.is_complex:
        return _root(var(x, dim, unbiased, keepdim, correction=correction))
    return rounded_once(lambda x: _root(var(x, dim, unbiased, keepdim, correction=correction)), x)


def _root(x: Tensor, power: float = 0.5) -> Tensor:
    """x ** power for nonnegative x, with derivative 0 instead of infinity at 0, as in PyTorch's norms."""
    zero = x == 0
    return E.where(zero, 0.0, E.pow(E.where(zero, 1.0, x), power))


@operation()
def var_mean(input: Operand, dim: Dims | bool = None, unbiased: bool | None = None, keepdim: bool = False, *,
             correction: int | None = 1) -> tuple[Tensor, Tensor]:
    """The variance and the mean over `dim`, as `var` and `mean` give them.

    Args:
        input: Tensor of floats.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default. A bool is
            `unbiased`.
        unbiased: True for a `correction` of 1, False for 0.
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
    dim, correction = _dim_and_correction(dim, unbiased, correction)
    return var(x, dim, keepdim=keepdim, correction=correction), mean(x, dim, keepdim)


@operation()
def std_mean(input: Operand, dim: Dims | bool = None, unbiased: bool | None = None, keepdim: bool = False, *,
             correction: int | None = 1) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean over `dim`, as `std` and `mean` give them.

    Args:
        input: Tensor of floats.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default. A bool is
            `unbiased`.
        unbiased: True for a `correction` of 1, False for 0.
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
    dim, correction = _dim_and_correction(dim, unbiased, correction)
    return std(x, dim, keepdim=keepdim, correction=correction), mean(x, dim, keepdim)


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
    if x.type.dtype.is_complex:
        return _complex_logsumexp(x, over, keepdim)
    if len(over) == 1:
        return kept(emit(T.LogSumExp, x, over[0]), x, over, keepdim)
    if 0 in [x.shape[a] for a in over]:                    # log(0)
        return E.log(sum(x, over, keepdim))
    most = amax(x, over, keepdim=True)
    most = E.detach(E.where(E.isfinite(most), most, 0.0))
    out = E.log(sum(E.exp(x - most), over, keepdim=True)) + most
    return out if keepdim else reshape(tracer(out), [d for i, d in enumerate(x.shape) if i not in over])


def _complex_logsumexp(x: Tracer, over: Sequence[int], keepdim: bool) -> Tensor:
    """The greatest real part is taken out of the sum."""
    if 0 in [x.shape[a] for a in over]:
        return E.log(sum(x, over, keepdim))
    most = E.detach(amax(emit(T.Real, x), over, keepdim=True))
    out = E.log(sum(E.exp(x - E.where(E.isfinite(most), most, 0.0)), over, keepdim=True)) + most
    return out if keepdim else reshape(tracer(out), [d for i, d in enumerate(x.shape) if i not in over])


@operation(autocast="fp32_on_cuda")
def norm(input: Operand, p: Any = 2, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None) -> Tensor:
    """(sum_i |x[i]| ** p) ** (1 / p), the vector norm of the elements over `dim`.

    p = inf and -inf give the greatest and the least |x[i]|, and p = 0 the number of elements that are not 0. The norm
    of one element is its absolute value, where the power would overflow, too. The derivative at a norm of 0 is 0.

    Args:
        input: Tensor of floats.
        p: The exponent, "fro" for 2, or "nuc" for the sum of the singular values of matrices.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Dtype that elements are converted to before, at least as wide; by default their own.

    Returns:
        Tensor of the dtype of `input`, or of `dtype`, without the dimensions of `dim`.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357), `p` is no number (MLC0360),
            elements are no floats, or `dtype` is too narrow (MLC0359).

    Example:
        >>> mlc.norm(mlc.tensor([[3.0, 0.0], [0.0, 4.0]]), "nuc")
        tensor(7., dtype=mlc.float32)
        >>> mlc.norm(mlc.tensor([3.0, 4.0]))
        tensor(5., dtype=mlc.float32)
        >>> mlc.norm(mlc.tensor([3.0, 4.0]), p=1)
        tensor(7., dtype=mlc.float32)
    """
    x = inexact_only(tracer(input), "norm")
    x = x if dtype is None else widened(x, dtype)
    if p == "nuc":
        return _nuclear(x, dim, keepdim)
    x = tracer(E.abs(x)) if x.type.dtype.is_complex else x
    p = 2 if p == "fro" else p
    if isinstance(p, bool) or not isinstance(p, int | float):
        raise UserError(f"p = {p!r} is no norm", code="MLC0360", hint='use a number, "fro" or "nuc"')
    over = axes(dim, x.ndim)
    count = sizes.product(x.shape[a] for a in over)
    if p != 0 and count == 1:
        return kept(sum(E.abs(x), over), x, over, keepdim)
    if p in (math.inf, -math.inf):
        return (amax if p > 0 else amin)(E.abs(x), dim, keepdim)
    if p == 0:
        return cast(tracer(sum(x != 0, dim, keepdim)), x.type.dtype)
    if p == 1 or isinstance(count, int):
        return rounded_once(lambda x: _norm(x, p, dim, keepdim), x)
    alone = emit(T.Compare, "eq", tracer(count), number(1, i64))          # which only a call knows
    return rounded_once(lambda x: E.where(alone, sum(E.where(alone, E.abs(x), 0.0), dim, keepdim),
                                          _norm(tracer(E.where(alone, 0.0, x)), p, dim, keepdim)), x)


def widened(x: Tracer, dtype: DTypeLike) -> Tracer:
    """The operand of a norm, converted to a dtype that loses nothing; UserError if it may lose something."""
    own, wanted = x.type.dtype, as_ir(dtype)
    narrow = own.is_inexact and promote(own, wanted) != wanted
    if narrow or not wanted.is_inexact or wanted.is_complex != own.is_complex:
        raise UserError(f"dtype = {wanted} for a norm of elements of {own}", code="MLC0359",
                        hint="a norm is computed in floats at least as wide as the elements, complex ones of complex "
                             "elements")
    return cast(x, wanted)


def _nuclear(x: Tracer, dim: Dims, keepdim: bool) -> Tensor:
    """The sum of the singular values of the matrices in two dimensions."""
    over = axes(dim, x.ndim)
    if len(over) != 2:
        raise UserError(f"the nuclear norm is one of two dimensions, found {len(over)}", code="MLC0357",
                        hint="dim=(-2, -1)")
    last = emit(T.Transpose, x, (*(a for a in range(x.ndim) if a not in over), *over))
    narrow = last if last.type.dtype in (f32, f64) else cast(last, f32)
    values = sum(emit(T.Svd, narrow)[1], -1)
    return kept(cast(tracer(values), x.type.dtype), x, over, keepdim)


def _norm(x: Tracer, p: float, dim: Dims, keepdim: bool) -> Tensor:
    """The norm for p that is neither 0 nor infinite."""
    if p == 1:
        return sum(E.abs(x), dim, keepdim)
    if p == 2:
        return _root(sum(x * x, dim, keepdim))
    zero = x == 0
    powers = E.where(zero, 0.0 if p > 0 else math.inf, E.pow(E.abs(E.where(zero, 1.0, x)), p))
    return _root(sum(powers, dim, keepdim), 1 / p)


@operation(autocast="fp32_on_cuda")
def dist(input: Operand, other: Operand, p: float = 2) -> Tensor:
    """norm(input - other, p), the distance of two tensors taken as vectors.

    Args:
        input: Tensor of floats.
        other: Tensor whose shape broadcasts with that of `input`.
        p: The exponent, as in `mlc.norm`.

    Returns:
        0-d tensor.

    Raises:
        UserError: neither is of floats (MLC0359), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.dist(mlc.tensor([1.0, 2.0]), mlc.tensor([4.0, 6.0]))
        tensor(5., dtype=mlc.float32)
    """
    return norm(E.sub(input, other), p)


@operation(autocast="fp32_on_cuda")
def renorm(input: Operand, p: float, dim: int, maxnorm: float) -> Tensor:
    """The slices of a dimension, scaled down to a norm of `maxnorm` where theirs is greater.

    Args:
        input: Tensor of floats, of at least two dimensions.
        p: The exponent of the norm, above 0.
        dim: The dimension whose slices are scaled; negative ones count from the last.
        maxnorm: The greatest norm, at least 0.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: `input` has fewer than two dimensions (MLC0364), `dim` is out of range (MLC0356), `p` is not
            positive or `maxnorm` negative (MLC0360), or elements are no floats (MLC0359).

    Example:
        >>> mlc.renorm(mlc.tensor([[3.0, 4.0], [0.5, 0.0]]), 2, 0, 1.0)
        tensor([[0.6, 0.8],
                [0.5, 0. ]], dtype=mlc.float32)
    """
    x = inexact_only(tracer(input), "renorm")
    if x.ndim < 2:
        raise UserError(f"renorm needs at least 2 dimensions, found {x.ndim}", code="MLC0364")
    if not p > 0 or not maxnorm >= 0:
        raise UserError(f"p = {p}, maxnorm = {maxnorm}", code="MLC0360", hint="p is positive, and no norm negative")
    at = axis(dim, x.ndim)
    norms = norm(x, p, tuple(i for i in range(x.ndim) if i != at), keepdim=True)
    return E.mul(x, E.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0))
