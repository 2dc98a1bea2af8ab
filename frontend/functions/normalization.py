"""Normalisation by mean and variance, and attention, under the names of torch.nn.functional."""

from __future__ import annotations

import math
from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.axes import plain_int
from mlc.frontend.functions import contract as C
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions import shape as S
from mlc.frontend.functions.convolution import padded
from mlc.frontend.functions.neural import dropout, softmax
from mlc.frontend.generator import drawing
from mlc.frontend.operands import (
    broadcast_shapes,
    broadcast_to,
    cast,
    factors,
    floating,
    parameter,
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
from mlc.ir.types import f32


def _per_channel(p: Operand, x: Tracer, name: str) -> Tracer:
    """A vector with one number for each channel (dimension 1) of x, in its element type and ready to broadcast."""
    v = parameter(p, x, name)
    if v.shape != (x.shape[1],):
        raise UserError(f"the {name} has shape {list(v.shape)}, expected [{x.shape[1]}]", code="MLC0367",
                        symbols=sizes.symbols(*v.shape, x.shape[1]))
    return reshape(v, [x.shape[1], *[1] * (x.ndim - 2)])


def _affine(x: Tracer, weight: Operand, bias: Operand) -> Tracer:
    """x * weight + bias, channel by channel"""
    out: Any = x
    if weight is not None:
        out = out * _per_channel(weight, x, "weight")
    return tracer(out if bias is None else out + _per_channel(bias, x, "bias"))


def _channels(input: Operand, name: str) -> tuple[Tracer, Tracer]:
    """The input, and the input in at least float32, for computing its statistics."""
    x = floating(input)
    if x.ndim < 2:
        raise UserError(f"{name} needs at least 2 dimensions, found {x.ndim}", code="MLC0364")
    return x, cast(x, f32) if x.type.dtype.width < 32 else x


@operation()
def batch_norm(input: Operand, running_mean: Operand = None, running_var: Operand = None, weight: Operand = None,
               bias: Operand = None, training: bool = False, *, eps: float = 1e-5) -> Tensor:
    """`nn.functional.batch_norm`, without a change of the running statistics."""
    x, wide = _channels(input, "batch_norm")
    if training or running_mean is None or running_var is None:
        axes = tuple(a for a in range(x.ndim) if a != 1)
        return cast(_affine(emit(T.Standardize, wide, axes, eps), weight, bias), x.type.dtype)
    mean, var = (_per_channel(p, wide, f"running {n}") for p, n in ((running_mean, "mean"), (running_var, "variance")))
    scale: Any = E.rsqrt(var + eps)
    if weight is not None:
        scale = scale * _per_channel(weight, wide, "weight")
    shift = -mean * scale if bias is None else _per_channel(bias, wide, "bias") - mean * scale
    return cast(tracer(wide * scale + shift), x.type.dtype)


@operation()
def moved_statistics(input: Operand, mean: Operand, var: Operand, keep: Operand, part: Operand) -> list[Tensor]:
    """keep * mean + part * (the mean of the batch), and the same of the variance, for each channel, dimension 1.

    Args:
        input: Tensor of shape (n, channels, ...); statistics of narrow floats are computed in float32.
        mean: The running mean, of shape (channels,).
        var: The running variance, likewise; that of the batch has Bessel's correction.
        keep: Weight of the running statistics.
        part: Weight of those of the batch.

    Returns:
        The new running mean and variance, in the dtypes of those given.
    """
    x, wide = _channels(input, "batch_norm")
    axes = tuple(a for a in range(x.ndim) if a != 1)
    old = tracer(mean), tracer(var)
    return [tracer(keep * o + part * E.cast_to(new, o.dtype))
            for o, new in zip(old, (R.mean(wide, axes), R.var(wide, axes)))]


@operation()
def instance_norm(input: Operand, running_mean: Operand = None, running_var: Operand = None, weight: Operand = None,
                  bias: Operand = None, use_input_stats: bool = True, *, eps: float = 1e-5) -> Tensor:
    """`nn.functional.instance_norm`, without a change of the running statistics."""
    x, wide = _channels(input, "instance_norm")
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, weight, bias, False, eps=eps)
    if x.ndim < 3:
        raise UserError(f"instance_norm needs at least 3 dimensions, found {x.ndim}", code="MLC0364")
    out = emit(T.Standardize, wide, tuple(range(2, x.ndim)), eps)
    return cast(_affine(out, weight, bias), x.type.dtype)


@operation(autocast="fp32_on_cuda")
def group_norm(input: Operand, num_groups: int, weight: Operand = None, bias: Operand = None,
               eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias for each group of channels of each image (Wu and He 2018).

    Args:
        input: Tensor of shape (n, channels, ...); integers become float32.
        num_groups: Number of groups, a divisor of the channels.
        weight: Factor for each channel; None for 1.
        bias: Summand for each channel; None for 0.
        eps: Added to the variance.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: `input` has fewer than 2 dimensions (MLC0364), the groups do not divide the channels (MLC0358), or a
            parameter is not of shape (channels,) (MLC0367).

    Example:
        >>> nn.functional.group_norm(mlc.tensor([[1.0, 3.0, 10.0, 30.0]]), 2)
        tensor([[-0.999995  ,  0.999995  , -0.99999994,  0.99999994]], dtype=mlc.float32)
    """
    x, wide = _channels(input, "group_norm")
    g, (n, c, *rest) = plain_int(num_groups, "num_groups"), x.shape
    if g < 1 or c % g != 0:
        raise UserError(f"{c} channels do not make up {g} groups", code="MLC0358", symbols=sizes.symbols(c))
    grouped = reshape(wide, [n, g, c // g, *rest])
    out = reshape(emit(T.Standardize, grouped, tuple(range(2, grouped.ndim)), eps), x.shape)
    return cast(_affine(out, weight, bias), x.type.dtype)


@operation()
def local_response_norm(input: Operand, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha * mean of x ** 2 over `size` neighbouring channels) ** beta.

    The method is that of Krizhevsky, Sutskever and Hinton 2012. Beyond the first and the last channel x is 0, which
    counts in the mean.

    Args:
        input: Tensor of shape (n, channels, *image); integers become float32.
        size: Number of channels, with that of x in the middle.
        alpha: Factor of the mean.
        beta: Exponent.
        k: Summand.

    Returns:
        Tensor of floats, of the shape of `input`.

    Raises:
        UserError: `input` has fewer than 3 dimensions (MLC0364), or `size` is not positive (MLC0360).

    Example:
        >>> nn.functional.local_response_norm(mlc.ones(1, 2, 1), 2, alpha=1.0)
        tensor([[[0.73778796],
                 [0.59460354]]], dtype=mlc.float32)
    """
    x = floating(input)
    if x.ndim < 3:
        raise UserError(f"local_response_norm needs at least 3 dimensions, found {x.ndim}", code="MLC0364")
    n = plain_int(size, "size")
    if n < 1:
        raise UserError(f"size = {size}, expected at least 1", code="MLC0360")
    rest = (0,) * (x.ndim - 2)

    def normalized(x: Tracer) -> Tensor:
        square = padded(tracer(x * x), (n // 2, *rest), ((n - 1) // 2, *rest))
        total = emit(T.ReduceSum, emit(T.Windows, square, 1, n), (2,))
        return x / E.pow(total * (alpha / n) + k, beta)
    return rounded_once(normalized, x)


# -- attention --------------------------------------------------------------------------------------------------------
@drawing(lambda given: given["dropout_p"], "dropout_key")
@operation(autocast="lower_precision", static=("dropout_key",))
def scaled_dot_product_attention(query: Operand, key: Operand, value: Operand, attn_mask: Operand = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False, *, dropout_key: Operand = None) -> Tensor:
    """softmax(scale * query @ key.T + mask) @ value (Vaswani et al. 2017).

    Long sequences are computed in blocks of queries: memory is in proportion to l + s, and not to l * s, unless sizes
    are symbolic, `dropout_p` is not 0, or a mask of floats has a gradient.

    Args:
        query: Tensor of floats of shape (..., l, e).
        key: Tensor of shape (..., s, e); the dimensions before the last two broadcast.
        value: Tensor of shape (..., s, v).
        attn_mask: Tensor that broadcasts to (..., l, s): bools, True where a query attends to a key, or floats that are
            added.
        dropout_p: Probability with which a weight becomes 0.
        is_causal: Whether query i attends to keys up to i only.
        scale: Factor of the products; 1 / sqrt(e) by default.
        enable_gqa: Whether several heads (dimension -3) of queries may share one of keys and values (Ainslie et al.
            2023).
        dropout_key: Random key; by default one that the default generator draws where `dropout_p` is not 0.

    Returns:
        Tensor of shape (..., l, v).

    Raises:
        UserError: a tensor has fewer than 2 dimensions (MLC0364), shapes do not fit (MLC0367), `is_causal` comes with a
            mask (MLC0360), the dropout key is left out while a function is recorded (MLC0716), or the float dtypes
            differ (MLC0420).

    Example:
        >>> nn.functional.scaled_dot_product_attention(mlc.ones(1, 2), mlc.ones(2, 2), mlc.tensor([[1.0], [3.0]]))
        tensor([[2.]], dtype=mlc.float32)
    """
    q, k, v = factors(query, key, value, floating=True)
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise UserError("query, key and value need at least 2 dimensions", code="MLC0364")
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise UserError(f"query {list(q.shape)}, key {list(k.shape)} and value {list(v.shape)} do not fit",
                        code="MLC0367", symbols=sizes.differing((q.shape[-1], k.shape[-2]), (k.shape[-1], v.shape[-2])))
    if is_causal and attn_mask is not None:
        raise UserError("attn_mask does not go with is_causal", code="MLC0360")
    shape = (*q.shape[:-1], v.shape[-1])
    q, k, v, heads = _heads(q, k, v, enable_gqa)
    if not heads:
        shape = (*q.shape[:-1], v.shape[-1])
    mask = _mask(attn_mask, q, k, heads)
    factor = 1 / math.sqrt(max(1, _width(q))) if scale is None else float(scale)
    if dropout_p:
        weights = dropout(_weights(q, k, mask, factor, is_causal), dropout_p, key=dropout_key)
        return reshape(tracer(C.matmul(weights, v)), shape)
    return reshape(emit(T.Attention, q, k, v, mask, factor, is_causal), shape)


def _width(q: Tracer) -> int:
    if not isinstance(q.shape[-1], int):
        raise UserError(f"the size {q.shape[-1]} of a query is not known", code="MLC0365",
                        symbols=sizes.symbols(q.shape[-1]), hint="pass scale")
    return q.shape[-1]


def _heads(q: Tracer, k: Tracer, v: Tracer, grouped: bool) -> tuple[Tracer, Tracer, Tracer, int]:
    """Broadcast the batch dimensions of the operands; query heads that share a key head become a dimension."""
    heads = 0
    if grouped and q.ndim > 2 and k.ndim > 2 and q.shape[-3] != k.shape[-3]:
        if k.shape[-3] != v.shape[-3] or k.shape[-3] == 0 or q.shape[-3] % k.shape[-3] != 0:
            raise UserError(f"{q.shape[-3]} heads of queries do not share {k.shape[-3]} heads of keys and "
                            f"{v.shape[-3]} of values", code="MLC0367",
                            symbols=sizes.symbols(q.shape[-3], k.shape[-3], v.shape[-3]))
        heads = q.shape[-3] // k.shape[-3]
        q = reshape(q, [*q.shape[:-3], k.shape[-3], heads, *q.shape[-2:]])
    own = 3 if heads else 2
    batch = broadcast_shapes(q.shape[:-own], k.shape[:-2], v.shape[:-2])
    q = broadcast_to(q, [*batch, *q.shape[q.ndim - own:]])
    k, v = (broadcast_to(x, [*batch, *x.shape[-2:]]) for x in (k, v))
    return q, k, v, heads


def _mask(mask: Operand, q: Tracer, k: Tracer, heads: int) -> Tracer | None:
    """The mask, with the dimension of query heads that share a key head, if q has it."""
    if mask is None:
        return None
    m = tracer(mask)
    m = m if m.type.dtype.is_bool else cast(m, q.type.dtype)
    if heads and m.ndim > 2:
        split = [1, 1] if m.shape[-3] == 1 else [k.shape[-3], heads]
        m = reshape(m, [*m.shape[:-3], *split, *m.shape[-2:]])
    return m


def _weights(q: Tracer, k: Tracer, mask: Tracer | None, scale: float, causal: bool) -> Tensor:
    """The materialised attention weights, of each key for each query."""
    if q.ndim > k.ndim:
        k = reshape(k, [*k.shape[:-2], 1, *k.shape[-2:]])
    scores: Any = C.matmul(q, S.transpose(k, -1, -2)) * scale
    if causal:
        mask = tracer(S.tril(broadcast_to(tracer(True), scores.shape[-2:])))
    if mask is not None:
        scores = E.where(mask, scores, -math.inf) if mask.type.dtype.is_bool else scores + mask
        nothing = R.amax(scores, -1, True) == -math.inf    # who attends to no key gets 0, as of tensor.attention
        return E.where(nothing, 0.0, softmax(E.where(nothing, 0.0, scores), -1))
    return softmax(scores, -1)

