"""Layers and similarities as functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast as typed

from mlc.dialects import tensor as T
from mlc.frontend.functions import contract as C
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions import shape as S
from mlc.frontend.operands import (
    broadcast_shapes,
    factors,
    floating,
    parameter,
    reals,
    reshape,
    rounded_once,
    tracer,
)
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import f64


@operation(autocast="fp32_on_cuda")
def layer_norm(input: Operand, normalized_shape: Sequence[Dim], weight: Operand = None, bias: Operand = None,
               eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions (Ba, Kiros and Hinton 2016).

    Mean and variance (without Bessel's correction) are those of all elements of `normalized_shape`.

    Args:
        input: Tensor of shape (..., *normalized_shape); integers become float32.
        normalized_shape: Sizes of the last dimensions.
        weight: Tensor of shape `normalized_shape`; None for 1.
        bias: Tensor of shape `normalized_shape`; None for 0.
        eps: Added to the variance.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: shapes do not fit (MLC0367), or a parameter is of a wider float dtype than `input` (MLC0420).

    Example:
        >>> mlc.layer_norm(mlc.tensor([1.0, 3.0]), (2,))
        tensor([-0.999995,  0.999995], dtype=mlc.float32)
    """
    x, shape = _last_dimensions(input, normalized_shape)
    extra = [_of_shape(p, x, shape, name) for name, p in (("weight", weight), ("bias", bias))]
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    return typed(Tensor, emit(T.LayerNorm, x, extra[0], extra[1], axes, eps))


def _last_dimensions(input: Operand, normalized_shape: Sequence[Dim]) -> tuple[Tracer, tuple[Dim, ...]]:
    x = floating(input)
    shape = tuple(normalized_shape) if isinstance(normalized_shape, tuple | list) else (normalized_shape,)
    if not shape or x.shape[x.ndim - len(shape):] != shape or len(shape) > x.ndim:
        raise UserError(f"normalized_shape {list(shape)} is not the end of shape {list(x.shape)}", code="MLC0367",
                        symbols=sizes.differing(shape, x.shape))
    return x, shape


@operation()
def rms_norm(input: Operand, normalized_shape: Sequence[Dim], weight: Operand = None,
             eps: float | None = None) -> Tensor:
    """x / sqrt(mean(x ** 2) + eps) * weight over the last dimensions (Zhang and Sennrich 2019).

    Args:
        input: Tensor of shape (..., *normalized_shape); integers become float32.
        normalized_shape: Sizes of the last dimensions.
        weight: Tensor of shape `normalized_shape`; None for 1.
        eps: Added to the mean; by default the epsilon of the dtype in which it is computed.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: shapes do not fit (MLC0367), or `weight` is float32 for an `input` of float64 (MLC0420).

    Example:
        >>> mlc.rms_norm(mlc.tensor([3.0, 4.0]), (2,))
        tensor([0.84852815, 1.1313709 ], dtype=mlc.float32)
    """
    x, shape = _last_dimensions(input, normalized_shape)
    if eps is None:
        eps = 2.0 ** -52 if x.type.dtype == f64 else 2.0 ** -23    # that of the type it is computed in
    scale = _of_shape(weight, x, shape, "weight")

    def normalized(x: Tracer, *scale: Tracer) -> Tensor:
        power = R.mean(x * x, tuple(range(x.ndim - len(shape), x.ndim)), keepdim=True)
        return math.prod(scale, start=x * E.rsqrt(power + eps))
    return rounded_once(normalized, x, *([] if scale is None else [scale]))


def _of_shape(p: Operand, x: Tracer, shape: tuple[Dim, ...], name: str) -> Tracer | None:
    """A parameter over the normalised dimensions, cast to the element type of x; None stays None."""
    out = None if p is None else parameter(p, x, name)
    if out is not None and out.shape != shape:
        raise UserError(f"the {name} has shape {list(out.shape)}, expected {list(shape)}", code="MLC0367",
                        symbols=sizes.differing(out.shape, shape))
    return out


@operation(autocast="fp32_on_cuda")
def normalize(input: Operand, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """x / max(norm(x, p), eps) along a dimension.

    The vectors along `dim` get norm 1; a vector of norm below `eps`, such as 0, is divided by `eps` and never by 0.

    Args:
        input: Tensor; integers become float32.
        p: Exponent of the norm, as in `mlc.norm`.
        dim: The dimension; negative ones count from the last.
        eps: Least divisor.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `dim` is out of range (MLC0356).

    Example:
        >>> nn.functional.normalize(mlc.tensor([[3.0, 4.0]]))
        tensor([[0.6, 0.8]], dtype=mlc.float32)
    """
    return rounded_once(lambda x: x / E.maximum(R.norm(x, p, dim, True), eps), floating(input))


@operation(autocast="lower_precision")
def linear(input: Operand, weight: Operand, bias: Operand = None) -> Tensor:
    """input @ weight.T + bias, a linear layer.

    result[..., o] = sum_i input[..., i] * weight[o, i] + bias[o]. Sums of float16 and bfloat16 are kept in float32. The
    weights have a row for each output, as those of `nn.Linear`, so a saved model of PyTorch fits as it is.

    Args:
        input: Tensor of shape (..., in_features).
        weight: Tensor of shape (out_features, in_features), or (in_features,) for one number each.
        bias: Tensor of shape (out_features,); None for 0.

    Returns:
        Tensor of shape (..., out_features).

    Raises:
        UserError: inner sizes differ (MLC0367), a number of dimensions is wrong (MLC0364), the float dtypes differ
            (MLC0420), or the shape of `bias` does not broadcast to the result's (MLC0111).

    Example:
        >>> nn.functional.linear(mlc.tensor([1.0, 2.0]), mlc.tensor([[3.0, 4.0], [5.0, 6.0]]), mlc.tensor([0.0, 1.0]))
        tensor([11., 18.], dtype=mlc.float32)
    """
    x, w = factors(input, weight)
    if w.ndim not in (1, 2) or not x.ndim:
        raise UserError(f"the weight has {w.ndim} dimensions, the input {x.ndim}", code="MLC0364")
    if x.shape[-1] != w.shape[-1]:
        raise UserError(f"inner sizes differ: the input has {x.shape[-1]} features, the weight takes {w.shape[-1]}",
                        code="MLC0367", symbols=sizes.symbols(x.shape[-1], w.shape[-1]))
    out = C.dot_general(x, w, (), ((x.ndim - 1, w.ndim - 1),))
    return out if bias is None else out + _bias_of(out.shape, tracer(bias))


def _bias_of(shape: Sequence[Dim], bias: Tracer) -> Tracer:
    """The bias of a result of this shape, which it may not make larger."""
    if len(bias.shape) > len(shape) or broadcast_shapes(shape, bias.shape) != tuple(shape):
        raise UserError(f"a bias of shape [{', '.join(map(str, bias.shape))}] does not broadcast to the result's shape "
                        f"[{', '.join(map(str, shape))}]", code="MLC0111",
                        symbols=sizes.differing(bias.shape, shape, stretch=True),
                        hint="the bias has a number for each row of the weight")
    return bias


@operation()
def bilinear(input1: Operand, input2: Operand, weight: Operand, bias: Operand = None) -> Tensor:
    """input1 @ weight[k] @ input2 + bias[k], for each k.

    Args:
        input1: Tensor of shape (..., m).
        input2: Tensor of shape (..., n).
        weight: Tensor of shape (k, m, n).
        bias: Tensor of shape (k,); None for 0.

    Returns:
        Tensor of shape (..., k).

    Raises:
        UserError: shapes do not fit (MLC0367), or the float dtypes differ (MLC0420).

    Example:
        >>> nn.functional.bilinear(mlc.tensor([1.0, 2.0]), mlc.tensor([3.0, 4.0]), mlc.ones(1, 2, 2))
        tensor([21.], dtype=mlc.float32)
    """
    a, b, w = factors(input1, input2, weight)
    if w.ndim != 3 or a.shape[:-1] != b.shape[:-1] or (a.shape[-1:], b.shape[-1:]) != (w.shape[1:2], w.shape[2:]):
        raise UserError(f"the inputs have shapes {list(a.shape)} and {list(b.shape)}, the weight {list(w.shape)}: "
                        "expected [..., m], [..., n] and [k, m, n]", code="MLC0367",
                        symbols=sizes.differing((*a.shape, *b.shape[-1:]), (*b.shape[:-1], *w.shape[1:])))
    half = C.dot_general(a, w, (), ((a.ndim - 1, 1),))                     # [..., k, n]
    out = R.sum(half * reshape(b, [*b.shape[:-1], 1, b.shape[-1]]), -1)
    return out if bias is None else out + tracer(bias)


@operation(autocast="fp32_on_cuda")
def cosine_similarity(x1: Operand, x2: Operand, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x1 . x2 / (max(|x1|, eps) * max(|x2|, eps)) along a dimension.

    Args:
        x1: Tensor; integers become float32.
        x2: Tensor whose shape broadcasts with that of `x1`.
        dim: The dimension of the broadcast shape; negative ones count from the last.
        eps: Least norm to divide by.

    Returns:
        Tensor of floats in [-1, 1], up to rounding, without the dimension.

    Raises:
        UserError: `dim` is out of range (MLC0356), or the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.cosine_similarity(mlc.tensor([1.0, 0.0]), mlc.tensor([3.0, 4.0]), dim=0)
        tensor(0.6, dtype=mlc.float32)
    """
    a, b = reals(x1, x2)
    a, b = (tracer(x) for x in S.broadcast_tensors(a, b))

    def cosine(a: Tracer, b: Tracer) -> Tensor:
        left = E.maximum(R.norm(a, 2, dim, True), eps)
        right = E.maximum(R.norm(b, 2, dim, True), eps)
        return R.sum((a / left) * (b / right), dim)
    return rounded_once(cosine, a, b)


@operation()
def pairwise_distance(x1: Operand, x2: Operand, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """norm(x1 - x2 + eps, p) along the last dimension.

    Args:
        x1: Tensor of floats of shape (..., n).
        x2: Tensor whose shape broadcasts with that of `x1`.
        p: Exponent of the norm, as in `mlc.norm`.
        eps: Added to the differences, so that the derivative is defined where they are 0.
        keepdim: Whether the last dimension stays, with size 1.

    Returns:
        Tensor without the last dimension.

    Raises:
        UserError: the shapes do not broadcast (MLC0111).

    Example:
        >>> mlc.pairwise_distance(mlc.tensor([1.0, 2.0]), mlc.tensor([4.0, 6.0]))
        tensor(4.9999986, dtype=mlc.float32)
    """
    return R.norm(E.sub(x1, x2) + eps, p, -1, keepdim)
