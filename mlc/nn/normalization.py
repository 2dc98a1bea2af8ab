"""Normalization that training and evaluation share: LayerNorm, RMSNorm, GroupNorm, LocalResponseNorm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.functions import create, neural, normalization
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.ir.diag import UserError
from mlc.nn import anew
from mlc.nn.module import Module


class LayerNorm(Module):
    """Layer normalization: (x - mean) / sqrt(var + eps) * weight + bias, over the last dimensions.

    The variance is that of the population (divided by n). Weights are at first 1, biases 0. The result has the dtype of
    the input; statistics of float16 and bfloat16 are computed in float32. (Ba, Kiros and Hinton 2016, "Layer
    Normalization".)

    Shape:
        [..., *normalized_shape] -> the same shape.

    Attributes:
        weight: Parameter of shape normalized_shape, or None.
        bias: Parameter of shape normalized_shape, or None.

    Args:
        normalized_shape: Sizes of the last dimensions of the input; an integer for one.
        eps: Added to the variance.
        elementwise_affine: Whether there are a weight and a bias.
        bias: Whether there is a bias beside the weight.
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of the parameters; None for float32.

    Raises:
        UserError: The shape of the input does not end in `normalized_shape` (MLC0367), or a size is negative (MLC0358).
        UserTypeError: Input and parameters do not go together, such as float64 and float32 (MLC0420).

    Example:
        >>> nn.LayerNorm(2)(mlc.tensor([[1.0, 3.0], [0.0, 8.0]]))
        tensor([[-0.999995 ,  0.999995 ],
                [-0.9999997,  0.9999997]], dtype=mlc.float32, grad_fn=<LayerNormBackward>)
    """

    _parameters = ("weight", "bias")

    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True,
                 bias: bool = True, device: Any = None, dtype: DTypeLike = None) -> None:
        dtype = dtype or "float32"
        shape = tuple(normalized_shape) if isinstance(normalized_shape, tuple | list) else (normalized_shape,)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        self.weight = create.ones(*shape, dtype=dtype) if elementwise_affine else None
        self.bias = create.zeros(*shape, dtype=dtype) if elementwise_affine and bias else None
        self.to(device=device)

    def extra_repr(self) -> str:
        return (f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
                f"bias={self.bias is not None}")

    def reset_parameters(self) -> None:
        """Give the parameters the values of a new layer.

        Example:
            >>> nn.LayerNorm(2).reset_parameters()
        """
        anew.identity(self.weight, self.bias)

    def forward(self, input: Operand) -> Tensor:
        return neural.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """Root mean square normalization: x / sqrt(mean(x**2) + eps) * weight, over the last dimensions.

    Weights are at first 1. float16 and bfloat16 are computed in float32 and rounded once.
    (Zhang and Sennrich 2019, "Root Mean Square Layer Normalization".)

    Shape:
        [..., *normalized_shape] -> the same shape.

    Attributes:
        weight: Parameter of shape normalized_shape, or None.

    Args:
        normalized_shape: Sizes of the last dimensions of the input; an integer for one.
        eps: Added to the mean square; None for the machine epsilon, 2**-52 for float64 and 2**-23 for all else.
        elementwise_affine: Whether there is a weight.
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of the weight; None for float32.

    Raises:
        UserError: The shape of the input does not end in `normalized_shape` (MLC0367), or a size is negative (MLC0358).
        UserTypeError: Input and weight do not go together, such as float64 and float32 (MLC0420).

    Example:
        >>> nn.RMSNorm(2)(mlc.tensor([[3.0, 4.0]]))
        tensor([[0.84852815, 1.1313709 ]], dtype=mlc.float32, grad_fn=<RmsNormBackward>)
    """

    _parameters = ("weight",)

    def __init__(self, normalized_shape: int | Sequence[int], eps: float | None = None,
                 elementwise_affine: bool = True, device: Any = None, dtype: DTypeLike = None) -> None:
        dtype = dtype or "float32"
        shape = tuple(normalized_shape) if isinstance(normalized_shape, tuple | list) else (normalized_shape,)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        self.weight = create.ones(*shape, dtype=dtype) if elementwise_affine else None
        self.to(device=device)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"

    def reset_parameters(self) -> None:
        """Give the parameters the values of a new layer.

        Example:
            >>> nn.RMSNorm(2).reset_parameters()
        """
        anew.identity(self.weight)

    def forward(self, input: Operand) -> Tensor:
        return neural.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class GroupNorm(Module):
    """Group normalization: (x - mean) / sqrt(var + eps) * weight + bias, over groups of channels of each sample.

    The variance is that of the population. Weights are at first 1, biases 0. Training and evaluation are alike.
    (Wu and He 2018, "Group Normalization".)

    Shape:
        [n, num_channels, ...] -> the same shape.

    Attributes:
        weight: Parameter [num_channels], or None.
        bias: Parameter [num_channels], or None.

    Args:
        num_groups: Number of groups, of num_channels / num_groups consecutive channels each.
        num_channels: Size of dimension 1 of the input.
        eps: Added to the variance.
        affine: Whether there are a weight and a bias.
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of the parameters; None for float32.
        bias: Whether there is a bias, if `affine`.

    Raises:
        UserError: The channels are not divisible by `num_groups` (MLC0358), the input has another number of channels
            (MLC0367), fewer than 2 dimensions (MLC0364), or the float dtypes of the input and the parameters differ
            (MLC0420).

    Example:
        >>> nn.GroupNorm(1, 2)(mlc.tensor([[1.0, 3.0]]))
        tensor([[-0.999995,  0.999995]], dtype=mlc.float32, grad_fn=<GroupNormBackward>)
    """

    _parameters = ("weight", "bias")

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
                 device: Any = None, dtype: DTypeLike = None, *, bias: bool = True) -> None:
        dtype = dtype or "float32"
        if num_groups < 1 or num_channels % num_groups:
            raise UserError(f"{num_channels} channels do not make up {num_groups} groups", code="MLC0358",
                            loc=user_loc())
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.weight = create.ones(num_channels, dtype=dtype) if affine else None
        self.bias = create.zeros(num_channels, dtype=dtype) if affine and bias else None
        self.to(device=device)

    def extra_repr(self) -> str:
        return (f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
                f"bias={self.bias is not None}")

    def reset_parameters(self) -> None:
        """Give the parameters the values of a new layer.

        Example:
            >>> nn.GroupNorm(1, 2).reset_parameters()
        """
        anew.identity(self.weight, self.bias)

    def forward(self, input: Operand) -> Tensor:
        return normalization.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class LocalResponseNorm(Module):
    """Local response normalization: x / (k + alpha * mean of x**2 over neighbouring channels)**beta.

    The neighbours of channel c are the `size` channels from c - size // 2 on; absent ones count as 0, and the mean
    divides by `size` (Krizhevsky, Sutskever and Hinton 2012, "ImageNet Classification with Deep Convolutional Neural
    Networks", take the sum).

    Shape:
        [n, c, ...] of at least 3 dimensions -> the same shape.

    Args:
        size: Number of channels of a window.
        alpha: Factor of the mean square.
        beta: Exponent.
        k: Added before the power.

    Raises:
        UserError: The input has fewer than 3 dimensions (MLC0364), or `size` is below 1 (MLC0360).

    Example:
        >>> nn.LocalResponseNorm(2, alpha=1.0)(mlc.ones(1, 2, 1)).flatten()
        tensor([0.73778796, 0.59460354], dtype=mlc.float32)
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"

    def forward(self, input: Operand) -> Tensor:
        return normalization.local_response_norm(input, self.size, self.alpha, self.beta, self.k)
