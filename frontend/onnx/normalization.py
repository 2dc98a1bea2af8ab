"""Normalisation by means and variances, of batches, channels and neighbourhoods."""

from __future__ import annotations

from typing import Any

from mlc.frontend.onnx.moving import padded
from mlc.frontend.onnx.table import row
from mlc.frontend.onnx.values import axis_of, dtype_of, refuse
from mlc.frontend.tensor import OPERATIONS as O


def per_channel(v: Any, x: Any) -> Any:
    """A number per channel, to be broadcast with x."""
    return O["reshape"](v, (1, -1, *(1,) * (x.ndim - 2)))


@row("BatchNormalization")
def batch_normalization(x: Any, scale: Any, bias: Any, mean: Any, var: Any, *, epsilon: float = 1e-5,
                        momentum: float = 0.9, training_mode: int = 0, is_test: int = 1, spatial: int = 1,
                        consumed_inputs: Any = None, outputs: int) -> Any:
    if not spatial:
        refuse("statistics of each element")
    if not training_mode:
        if outputs > 1:
            refuse("statistics of a batch, in a model for inference")
        slope = scale / O["sqrt"](var + epsilon)
        out = (x - per_channel(mean, x)) * per_channel(slope, x) + per_channel(bias, x)
        return O["cast"](out, x.dtype)
    axes = (0, *range(2, x.ndim))
    own = O["mean"](x, axes)
    spread = O["mean"](O["square"](x - per_channel(own, x)), axes)
    out = (x - per_channel(own, x)) / O["sqrt"](per_channel(spread, x) + epsilon)
    out = out * per_channel(scale, x) + per_channel(bias, x)
    return out, mean * momentum + own * (1 - momentum), var * momentum + spread * (1 - momentum)


@row("InstanceNormalization")
def instance_normalization(x: Any, scale: Any, bias: Any, *, epsilon: float = 1e-5, consumed_inputs: Any = None) -> Any:
    axes = tuple(range(2, x.ndim))
    around = x - O["mean"](x, axes, True)
    out = around / O["sqrt"](O["mean"](O["square"](around), axes, True) + epsilon)
    return out * per_channel(scale, x) + per_channel(bias, x)


@row("LayerNormalization")
def layer_normalization(x: Any, scale: Any, bias: Any = None, *, axis: int = -1, epsilon: float = 1e-5,
                        stash_type: int = 1) -> Any:
    """The result, and the mean and the inverse standard deviation, which are of the type of `stash_type`."""
    axes = tuple(range(axis_of(axis, x.ndim), x.ndim))
    wide = O["cast"](x, dtype_of(stash_type))
    mean = O["mean"](wide, axes, True)
    around = wide - mean
    inverse = O["reciprocal"](O["sqrt"](O["mean"](O["square"](around), axes, True) + epsilon))
    out = O["cast"](around * inverse, x.dtype) * scale
    return out if bias is None else out + bias, mean, inverse


@row("LpNormalization")
def lp_normalization(x: Any, *, axis: int = -1, p: int = 2) -> Any:
    """Zero where the norm is."""
    size = O["sqrt"](O["sum"](x * x, axis, True)) if p == 2 else O["sum"](O["abs"](x), axis, True)
    return O["where"](O["eq"](size, 0), O["zeros_like"](x), x / size)


@row("LRN")
def local_response(x: Any, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Any:
    """The squares of neighbouring channels are summed."""
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    rank = x.ndim
    squares = padded(x * x, [0, before, *(0,) * (rank - 2), 0, after, *(0,) * (rank - 2)])
    total = squares[:, 0:x.shape[1]]
    for k in range(1, size):
        total = total + squares[:, k:k + x.shape[1]]
    return x / O["pow"](total * (alpha / size) + bias, beta)
