"""Normalization and softmax."""

from __future__ import annotations

from typing import Any

from mlc.frontend.fx.table import row, same
from mlc.frontend.tensor import OPERATIONS as O

same("native_group_norm", "native_layer_norm")


@row("_softmax")
def softmax(x: Any, dim: int, half_to_float: bool = False) -> Any:
    return O["softmax"](x, dim, "float32" if half_to_float else None)


@row("_log_softmax")
def log_softmax(x: Any, dim: int, half_to_float: bool = False) -> Any:
    return O["log_softmax"](x, dim, "float32" if half_to_float else None)


@row("_native_batch_norm_legit_no_training")
def batch_norm_inference(x: Any, weight: Any, bias: Any, mean: Any, var: Any, momentum: float, eps: float) -> Any:
    return O["native_batch_norm"](x, weight, bias, mean, var, False, momentum, eps)


@row("_native_batch_norm_legit.no_stats")
def batch_norm_of_batch(x: Any, weight: Any, bias: Any, training: bool, momentum: float, eps: float) -> Any:
    return O["native_batch_norm"](x, weight, bias, None, None, training, momentum, eps)


@row("_native_batch_norm_legit_functional")
def batch_norm(x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float,
               eps: float) -> Any:
    """The result, the statistics of the batch, and the running statistics after it."""
    out = O["native_batch_norm"](x, weight, bias, mean, var, training, momentum, eps)
    if not training:
        return *out, mean, var
    wide = O["cast"](x, mean.dtype)
    of_batch, around = O["var_mean"](wide, [a for a in range(x.ndim) if a != 1], correction=1)
    return *out, mean * (1 - momentum) + around * momentum, var * (1 - momentum) + of_batch * momentum
