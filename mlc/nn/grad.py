"""Gradients of convolutions by their operands, under the names of torch.nn.grad.

For y = conv(x, w) and the gradient g of a loss by y, `conv2d_input` is the loss's gradient by x and `conv2d_weight`
that by w. Automatic differentiation computes the same; these are for programs that write a backward themselves.

Example:
    >>> w, g = mlc.ones(1, 1, 2), mlc.ones(1, 1, 3)
    >>> nn.grad.conv1d_input((1, 1, 4), w, g)
    tensor([[[1., 2., 2., 1.]]], dtype=mlc.float32)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlc.frontend.arguments import coded
from mlc.frontend.derivatives import vjp
from mlc.frontend.functions.convolution import Ints, conv1d, conv2d, conv3d
from mlc.frontend.functions.create import asarray, zeros
from mlc.frontend.tensor import Operand, Tensor


def _pulled(f: Callable[[Any], Tensor], shape: Sequence[int], grad_output: Operand, like: Operand) -> Tensor:
    """The cotangent of an operand of this shape, in which f is linear."""
    _, pullback = vjp(f, zeros(tuple(shape), dtype=asarray(like).dtype))
    return pullback(asarray(grad_output))[0]  # type: ignore[no-any-return]


@coded
def conv1d_input(input_size: Sequence[int], weight: Operand, grad_output: Operand, stride: Ints = 1, padding: Ints = 0,
                 dilation: Ints = 1, groups: int = 1) -> Tensor:
    """The gradient of `conv1d` by its input.

    Args:
        input_size: Shape of the input, (n, channels, w).
        weight: The kernels.
        grad_output: The gradient by the result.
        stride: Step from one window to the next, an integer, or one for each dimension.
        padding: Zeros before and after, likewise.
        dilation: Distance of the elements of a window, likewise.
        groups: Number of groups of channels.

    Returns:
        Tensor of shape `input_size`.

    Raises:
        UserError: shapes do not fit (MLC0367, MLC0432), or a setting is out of range (MLC0360).

    Example:
        >>> nn.grad.conv1d_input((1, 1, 3), mlc.ones(1, 1, 2), mlc.ones(1, 1, 2)).sum()
        tensor(4., dtype=mlc.float32)
    """
    return _pulled(lambda x: conv1d(x, weight, None, stride, padding, dilation, groups), input_size, grad_output,
                   weight)


@coded
def conv1d_weight(input: Operand, weight_size: Sequence[int], grad_output: Operand, stride: Ints = 1,
                  padding: Ints = 0, dilation: Ints = 1, groups: int = 1) -> Tensor:
    """The gradient of `conv1d` by its kernels.

    Args:
        input: The input, of shape (n, channels, w).
        weight_size: Shape of the kernels.
        grad_output: The gradient by the result.
        stride: Step from one window to the next, an integer, or one for each dimension.
        padding: Zeros before and after, likewise.
        dilation: Distance of the elements of a window, likewise.
        groups: Number of groups of channels.

    Returns:
        Tensor of shape `weight_size`.

    Raises:
        UserError: shapes do not fit (MLC0367, MLC0432), or a setting is out of range (MLC0360).

    Example:
        >>> nn.grad.conv1d_weight(mlc.ones(1, 1, 3), (1, 1, 2), mlc.ones(1, 1, 2)).sum()
        tensor(4., dtype=mlc.float32)
    """
    return _pulled(lambda w: conv1d(input, w, None, stride, padding, dilation, groups), weight_size, grad_output,
                   input)


@coded
def conv2d_input(input_size: Sequence[int], weight: Operand, grad_output: Operand, stride: Ints = 1, padding: Ints = 0,
                 dilation: Ints = 1, groups: int = 1) -> Tensor:
    """The gradient of `conv2d` by its input.

    Args:
        input_size: Shape of the input, (n, channels, h, w).
        weight: The kernels.
        grad_output: The gradient by the result.
        stride: Step from one window to the next, an integer, or one for each dimension.
        padding: Zeros before and after, likewise.
        dilation: Distance of the elements of a window, likewise.
        groups: Number of groups of channels.

    Returns:
        Tensor of shape `input_size`.

    Raises:
        UserError: shapes do not fit (MLC0367, MLC0432), or a setting is out of range (MLC0360).

    Example:
        >>> nn.grad.conv2d_input((1, 1, 3, 3), mlc.ones(1, 1, 2, 2), mlc.ones(1, 1, 2, 2)).sum()
        tensor(16., dtype=mlc.float32)
    """
    return _pulled(lambda x: conv2d(x, weight, None, stride, padding, dilation, groups), input_size, grad_output,
                   weight)


@coded
def conv2d_weight(input: Operand, weight_size: Sequence[int], grad_output: Operand, stride: Ints = 1,
                  padding: Ints = 0, dilation: Ints = 1, groups: int = 1) -> Tensor:
    """The gradient of `conv2d` by its kernels.

    Args:
        input: The input, of shape (n, channels, h, w).
        weight_size: Shape of the kernels.
        grad_output: The gradient by the result.
        stride: Step from one window to the next, an integer, or one for each dimension.
        padding: Zeros before and after, likewise.
        dilation: Distance of the elements of a window, likewise.
        groups: Number of groups of channels.

    Returns:
        Tensor of shape `weight_size`.

    Raises:
        UserError: shapes do not fit (MLC0367, MLC0432), or a setting is out of range (MLC0360).

    Example:
        >>> nn.grad.conv2d_weight(mlc.ones(1, 1, 3, 3), (1, 1, 2, 2), mlc.ones(1, 1, 2, 2)).sum()
        tensor(16., dtype=mlc.float32)
    """
    return _pulled(lambda w: conv2d(input, w, None, stride, padding, dilation, groups), weight_size, grad_output,
                   input)


@coded
def conv3d_input(input_size: Sequence[int], weight: Operand, grad_output: Operand, stride: Ints = 1, padding: Ints = 0,
                 dilation: Ints = 1, groups: int = 1) -> Tensor:
    """The gradient of `conv3d` by its input.

    Args:
        input_size: Shape of the input, (n, channels, d, h, w).
        weight: The kernels.
        grad_output: The gradient by the result.
        stride: Step from one window to the next, an integer, or one for each dimension.
        padding: Zeros before and after, likewise.
        dilation: Distance of the elements of a window, likewise.
        groups: Number of groups of channels.

    Returns:
        Tensor of shape `input_size`.

    Raises:
        UserError: shapes do not fit (MLC0367, MLC0432), or a setting is out of range (MLC0360).

    Example:
        >>> nn.grad.conv3d_input((1, 1, 3, 3, 3), mlc.ones(1, 1, 2, 2, 2), mlc.ones(1, 1, 2, 2, 2)).sum()
        tensor(64., dtype=mlc.float32)
    """
    return _pulled(lambda x: conv3d(x, weight, None, stride, padding, dilation, groups), input_size, grad_output,
                   weight)


@coded
def conv3d_weight(input: Operand, weight_size: Sequence[int], grad_output: Operand, stride: Ints = 1,
                  padding: Ints = 0, dilation: Ints = 1, groups: int = 1) -> Tensor:
    """The gradient of `conv3d` by its kernels.

    Args:
        input: The input, of shape (n, channels, d, h, w).
        weight_size: Shape of the kernels.
        grad_output: The gradient by the result.
        stride: Step from one window to the next, an integer, or one for each dimension.
        padding: Zeros before and after, likewise.
        dilation: Distance of the elements of a window, likewise.
        groups: Number of groups of channels.

    Returns:
        Tensor of shape `weight_size`.

    Raises:
        UserError: shapes do not fit (MLC0367, MLC0432), or a setting is out of range (MLC0360).

    Example:
        >>> nn.grad.conv3d_weight(mlc.ones(1, 1, 3, 3, 3), (1, 1, 2, 2, 2), mlc.ones(1, 1, 2, 2, 2)).sum()
        tensor(64., dtype=mlc.float32)
    """
    return _pulled(lambda w: conv3d(input, w, None, stride, padding, dilation, groups), weight_size, grad_output,
                   input)


__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]
