"""Operators of backward graphs: each is mlc's own vector-Jacobian product of the row of its forward operator."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mlc.frontend.derivatives import vjp
from mlc.frontend.fx import networks
from mlc.frontend.fx.table import row
from mlc.frontend.tensor import OPERATIONS as O


def pulled(f: Callable[..., Any], grad: Any, *primals: Any) -> tuple[Any, ...]:
    """The cotangents of the primals of f, for that of its result."""
    return vjp(f, *primals)[1](grad)


def wanted(f: Callable[..., Any], grad: Any, primals: Sequence[Any], mask: Sequence[bool]) -> list[Any]:
    """The cotangents of the primals that a mask asks for; None for the others, and for what is None."""
    asked = [m and p is not None for m, p in zip(mask, primals)]

    def of_asked(*given: Any) -> Any:
        pending = iter(given)
        return f(*(next(pending) if a else p for a, p in zip(asked, primals)))

    found = iter(pulled(of_asked, grad, *(p for a, p in zip(asked, primals) if a)))
    return [next(found) if a else None for a in asked]


@row("convolution_backward")
def convolution(grad: Any, x: Any, weight: Any, bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
                transposed: bool, output_padding: Any, groups: int, mask: Sequence[bool]) -> Any:
    def forward(x: Any, weight: Any) -> Any:
        return networks.convolution(x, weight, None, stride, padding, dilation, transposed, output_padding, groups)
    over = [a for a in range(grad.ndim) if a != 1]
    return *wanted(forward, grad, (x, weight), mask[:2]), O["sum"](grad, over) if mask[2] else None


@row("native_layer_norm_backward")
def layer_norm(grad: Any, x: Any, shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any,
               mask: Sequence[bool]) -> Any:
    """By the saved statistics: with y = (x - mean) rstd, dx = rstd (g - mean(g) - y mean(g y)) for g = grad weight."""
    over = tuple(range(x.ndim - len(shape), x.ndim))
    dtype, wide = x.dtype, mean.dtype
    x, given = O["cast"](x, wide), O["cast"](grad, wide)
    y = (x - mean) * rstd
    g = given if weight is None else given * weight
    dx = rstd * (g - O["mean"](g, over, True) - y * O["mean"](g * y, over, True))
    rows = tuple(range(x.ndim - len(shape)))
    by = [O["cast"](dx, dtype) if mask[0] else None]
    for p, m, term in ((weight, mask[1], given * y), (bias, mask[2], given)):
        by.append(O["cast"](O["sum"](term, rows) if rows else term, p.dtype) if m and p is not None else None)
    return tuple(by)


@row("native_group_norm_backward")
def group_norm(grad: Any, x: Any, mean: Any, rstd: Any, weight: Any, n: int, c: int, hxw: int, group: int,
               mask: Sequence[bool]) -> Any:
    """As layer_norm, over the channels of a group and all that is in them."""
    dtype, wide = x.dtype, mean.dtype
    shape = [n, group, c // group, hxw]
    given = O["reshape"](O["cast"](grad, wide), shape)
    y = (O["reshape"](O["cast"](x, wide), shape) - O["reshape"](mean, [n, group, 1, 1])) * O["reshape"](
        rstd, [n, group, 1, 1])
    g = given if weight is None else given * O["reshape"](weight, [group, c // group, 1])
    dx = O["reshape"](rstd, [n, group, 1, 1]) * (g - O["mean"](g, (2, 3), True) - y * O["mean"](g * y, (2, 3), True))
    parameter = dtype if weight is None else weight.dtype
    by_weight = O["cast"](O["reshape"](O["sum"](given * y, (0, 3)), [c]), parameter) if mask[1] else None
    by_bias = O["cast"](O["reshape"](O["sum"](given, (0, 3)), [c]), parameter) if mask[2] else None
    return O["cast"](O["reshape"](dx, x.shape), dtype) if mask[0] else None, by_weight, by_bias


@row("_softmax_backward_data")
def softmax_backward(grad: Any, y: Any, dim: int, dtype: Any) -> Any:
    product = grad * y
    return O["cast"](product - y * O["sum"](product, dim, True), dtype)


@row("_log_softmax_backward_data")
def log_softmax_backward(grad: Any, y: Any, dim: int, dtype: Any) -> Any:
    return O["cast"](grad - O["exp"](y) * O["sum"](grad, dim, True), dtype)


@row("max_pool2d_with_indices_backward")
def max_pool2d(grad: Any, x: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
               indices: Any) -> Any:
    return pulled(lambda x: networks.max_pool(2, x, kernel_size, stride, padding, dilation, ceil_mode), grad, x)[0]


@row("max_pool3d_with_indices_backward")
def max_pool3d(grad: Any, x: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
               indices: Any) -> Any:
    return pulled(lambda x: networks.max_pool(3, x, kernel_size, stride, padding, dilation, ceil_mode), grad, x)[0]


@row("avg_pool2d_backward")
def avg_pool2d(grad: Any, x: Any, *settings: Any) -> Any:
    return pulled(lambda x: networks.avg_pool(2, x, *settings), grad, x)[0]


@row("avg_pool3d_backward")
def avg_pool3d(grad: Any, x: Any, *settings: Any) -> Any:
    return pulled(lambda x: networks.avg_pool(3, x, *settings), grad, x)[0]


def adaptive(name: str, rank: int, grad: Any, x: Any) -> Any:
    """The gradient of an adaptive pooling, whose sizes are those of the cotangent."""
    return pulled(lambda x: O[f"adaptive_{name}_pool{rank}d"](x, tuple(grad.shape[-rank:])), grad, x)[0]


@row("_adaptive_avg_pool2d_backward")
def adaptive_avg_pool2d(grad: Any, x: Any) -> Any:
    return adaptive("avg", 2, grad, x)


@row("_adaptive_avg_pool3d_backward")
def adaptive_avg_pool3d(grad: Any, x: Any) -> Any:
    return adaptive("avg", 3, grad, x)


@row("adaptive_max_pool2d_backward")
def adaptive_max_pool2d(grad: Any, x: Any, indices: Any) -> Any:
    return adaptive("max", 2, grad, x)


@row("adaptive_max_pool3d_backward")
def adaptive_max_pool3d(grad: Any, x: Any, indices: Any) -> Any:
    return adaptive("max", 3, grad, x)


@row("embedding_dense_backward")
def embedding(grad: Any, indices: Any, rows: int, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    """The sum of the rows of a gradient that belong to one row of the table."""
    table = O["zeros"]((rows, grad.shape[-1]), dtype=grad.dtype)
    return pulled(lambda table: O["embedding"](indices, table, padding_idx if padding_idx >= 0 else None,
                                               scale_grad_by_freq=scale_grad_by_freq), grad, table)[0]


@row("grid_sampler_2d_backward", "grid_sampler_3d_backward")
def grid_sampler(grad: Any, x: Any, grid: Any, interpolation: int, padding: int, align_corners: bool,
                 mask: Sequence[bool]) -> Any:
    return tuple(wanted(lambda x, grid: networks.grid_sampler(x, grid, interpolation, padding, align_corners), grad,
                        (x, grid), mask))


@row("reflection_pad1d_backward", "reflection_pad2d_backward", "reflection_pad3d_backward")
def reflection_pad(grad: Any, x: Any, padding: Sequence[int]) -> Any:
    return pulled(lambda x: O["pad"](x, padding, "reflect"), grad, x)[0]


@row("replication_pad1d_backward", "replication_pad2d_backward", "replication_pad3d_backward")
def replication_pad(grad: Any, x: Any, padding: Sequence[int]) -> Any:
    return pulled(lambda x: O["pad"](x, padding, "replicate"), grad, x)[0]


@row("_scaled_dot_product_flash_attention_for_cpu_backward")
def flash_attention(grad: Any, q: Any, k: Any, v: Any, out: Any, logsumexp: Any, dropout_p: float, is_causal: bool, *,
                    attn_mask: Any = None, scale: float | None = None) -> Any:
    def forward(q: Any, k: Any, v: Any) -> Any:
        return O["scaled_dot_product_attention"](q, k, v, attn_mask, is_causal=is_causal, scale=scale)
    return pulled(forward, grad, q, k, v)


@row("_cdist_backward")
def cdist(grad: Any, a: Any, b: Any, p: float, distances: Any) -> Any:
    return pulled(lambda a: O["cdist"](a, b, p), grad, a)[0]


@row("_pdist_backward")
def pdist(grad: Any, x: Any, p: float, distances: Any) -> Any:
    return pulled(lambda x: O["pdist"](x, p), grad, x)[0]


@row("_weight_norm_interface_backward")
def weight_norm(grad: Any, v: Any, g: Any, norms: Any, dim: int) -> Any:
    """With w = g v / norm, dg = (dw . v) / norm and dv = g (dw / norm - v (dw . v) / norm^3)."""
    over = tuple(a for a in range(v.ndim) if a != dim % v.ndim)
    grad, wide = O["cast"](grad, norms.dtype), O["cast"](v, norms.dtype)
    product = O["sum"](grad * wide, over, True)
    dv = O["cast"](g, norms.dtype) * (grad / norms - wide * (product / O["pow"](norms, 3)))
    return O["cast"](dv, v.dtype), O["cast"](product / norms, g.dtype)


@row("masked_scatter_backward")
def masked_scatter(grad: Any, mask: Any, sizes: Sequence[int]) -> Any:
    """The cotangent of the source: where the mask is set, in order, then zeros."""
    kept = O["reshape"](O["broadcast_to"](mask, grad.shape), [-1])
    place = O["cumsum"](kept, 0) - 1
    values = O["reshape"](O["where"](mask, grad, 0), [-1])
    count = math.prod(sizes)
    found = O["scatter_add"](O["zeros"]([count], dtype=grad.dtype), 0, O["clamp"](place, 0, count - 1), values)
    return O["reshape"](found, sizes)
