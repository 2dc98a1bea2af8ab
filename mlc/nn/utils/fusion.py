"""Batch normalization in evaluation as a part of the layer in front of it: the functions of torch.nn.utils.fusion.

In evaluation, batch normalization is an affine map per channel, y = (x - mean) / sqrt(var + eps) * gamma + beta, so its
factor goes into the weight of a convolution or a linear layer, and the rest into the bias. The functions return a new
module or new tensors, and leave their arguments as they are.

Example:
    >>> linear, norm = nn.Linear(3, 2).eval(), nn.BatchNorm1d(2).eval()
    >>> fused, x = nn.utils.fusion.fuse_linear_bn_eval(linear, norm), mlc.ones(1, 3)
    >>> mlc.allclose(fused(x), norm(linear(x)), atol=1e-5)
    True
"""

from __future__ import annotations

import copy
from typing import Any

from mlc.frontend.arguments import coded
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.functions import create
from mlc.frontend.functions import elementwise as E
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.nn.module import Module
from mlc.nn.parameter import Parameter


def _check(*modules: Module) -> None:
    if any(m.training for m in modules):
        raise UserError("a batch normalization in training cannot be fused", code="MLC0744", loc=user_loc(),
                        hint="call eval() on both first")


@coded
def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Module:
    """Fuse a convolution and the batch normalization behind it, both in evaluation.

    Args:
        conv: The convolution, which stays as it is.
        bn: The normalization.
        transpose: Whether it is a transposed convolution.

    Returns:
        A convolution that gives what both give together.

    Raises:
        UserError: One of them is in training (MLC0744).

    Example:
        >>> conv, norm = nn.Conv2d(2, 3, 1).eval(), nn.BatchNorm2d(3).eval()
        >>> nn.utils.fuse_conv_bn_eval(conv, norm)
        Conv2d(2, 3, kernel_size=(1, 1), stride=(1, 1))
    """
    _check(conv, bn)
    return _fused(conv, bn, fuse_conv_bn_weights, transpose)


@coded
def fuse_linear_bn_eval(linear: Module, bn: Module) -> Module:
    """Fuse a linear map and the batch normalization behind it, both in evaluation.

    Args:
        linear: The linear map, which stays as it is.
        bn: The normalization.

    Returns:
        A linear map that gives what both give together.

    Raises:
        UserError: One of them is in training, or they have different numbers of features (MLC0744).

    Example:
        >>> nn.utils.fuse_linear_bn_eval(nn.Linear(2, 3).eval(), nn.BatchNorm1d(3).eval())
        Linear(in_features=2, out_features=3, bias=True)
    """
    _check(linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise UserError(f"a linear map to {linear.out_features} features and a normalization of {bn.num_features}",
                        code="MLC0744", loc=user_loc())
    return _fused(linear, bn, fuse_linear_bn_weights)


def _fused(layer: Module, bn: Module, fuse: Any, *more: Any) -> Module:
    out = copy.deepcopy(layer)
    out.weight, out.bias = fuse(layer.weight, layer.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
                                *more)
    return out


@coded
def fuse_conv_bn_weights(conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float,
                         bn_w: Tensor | None, bn_b: Tensor | None, transpose: bool = False) -> tuple[Tensor, Tensor]:
    """Compute the parameters of a convolution fused with the batch normalization behind it.

    Args:
        conv_w: Weight of the convolution.
        conv_b: Its bias, or None.
        bn_rm: Running mean.
        bn_rv: Running variance.
        bn_eps: Added to the variance.
        bn_w: Weight of the normalization, or None.
        bn_b: Its bias, or None.
        transpose: Whether it is a transposed convolution.

    Returns:
        Weight and bias, parameters.

    Example:
        >>> one = mlc.ones(1)
        >>> nn.utils.fuse_conv_bn_weights(mlc.ones(1, 1, 1), None, one, one, 0.0, 2 * one, None)[0]
        tensor([[[2.]]], dtype=mlc.float32)
    """
    axis = 1 if transpose else 0
    shape = [-1 if a == axis else 1 for a in range(conv_w.ndim)]
    return _scaled(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


@coded
def fuse_linear_bn_weights(linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float,
                           bn_w: Tensor, bn_b: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the parameters of a linear map fused with the batch normalization behind it.

    Args:
        linear_w: Weight of the linear map.
        linear_b: Its bias, or None.
        bn_rm: Running mean.
        bn_rv: Running variance.
        bn_eps: Added to the variance.
        bn_w: Weight of the normalization.
        bn_b: Its bias.

    Returns:
        Weight and bias, parameters.

    Example:
        >>> one = mlc.ones(1)
        >>> nn.utils.fuse_linear_bn_weights(mlc.ones(1, 1), None, one, one, 0.0, one, one)[1]
        tensor([0.], dtype=mlc.float32, requires_grad=True)
    """
    return _scaled(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _scaled(w: Tensor, b: Tensor | None, mean: Tensor, var: Tensor, eps: float, bn_w: Tensor | None,
            bn_b: Tensor | None, shape: list[int]) -> tuple[Tensor, Tensor]:
    with GradMode(False):
        scale = E.rsqrt(var + eps) * (create.ones_like(var) if bn_w is None else bn_w)
        bias = ((create.zeros_like(mean) if b is None else b) - mean) * scale + (0.0 if bn_b is None else bn_b)
        return Parameter(w * scale.reshape(shape), w.requires_grad), Parameter(
            bias, True if b is None else b.requires_grad)
