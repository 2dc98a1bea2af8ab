"""Normalization that moves running statistics, which are tensors that it writes to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mlc.frontend.arguments import coded
from mlc.frontend.autograd.grad_mode import no_grad
from mlc.frontend.functions import normalization
from mlc.frontend.functions import reduce as R
from mlc.frontend.in_place_methods import copy_
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserTypeError


def moved(old: Tensor, new: Tensor, part: Any) -> Tensor:
    """A running statistic after such a part of the way toward that of a batch."""
    return (1 - part) * old + part * new.to(old.dtype)  # type: ignore[no-any-return]


def _write(old: tuple[Any, Any], new: Iterable[Tensor]) -> None:
    for x, value in zip(old, new):
        if not isinstance(x, Tensor):
            raise UserTypeError(f"the running statistics are {type(x).__name__}, and a tensor would be written to",
                                code="MLC0421", loc=user_loc(), hint="pass mlc.tensor(...), or training=False")
        copy_(x, value)


@coded
def batch_norm(input: Operand, running_mean: Operand = None, running_var: Operand = None, weight: Operand = None,
               bias: Operand = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel, dimension 1 (Ioffe and Szegedy 2015).

    In training mean and variance (without Bessel's correction) are those of the batch, otherwise the running ones.
    Statistics of narrow floats are computed in float32. In training running statistics are changed, in place:
    running = (1 - momentum) * running + momentum * that of the batch, of the variance with Bessel's correction.

    Args:
        input: Tensor of shape (n, channels, ...); integers become float32.
        running_mean: Mean for each channel, of shape (channels,); None to take those of the input.
        running_var: Variance for each channel, likewise.
        weight: Factor for each channel; None for 1.
        bias: Summand for each channel; None for 0.
        training: Whether to take the statistics of the batch.
        momentum: Part of the way that running statistics move toward those of the batch.
        eps: Added to the variance.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: `input` has fewer than 2 dimensions (MLC0364), a parameter is not of shape (channels,) (MLC0367), or
            running statistics cannot be written to (MLC0421, MLC0756).

    Example:
        >>> mean, var = mlc.zeros(1), mlc.ones(1)
        >>> nn.functional.batch_norm(mlc.tensor([[1.0], [3.0]]), mean, var, training=True)
        tensor([[-0.999995],
                [ 0.999995]], dtype=mlc.float32)
        >>> mean, var
        (tensor([0.2], dtype=mlc.float32), tensor([1.1], dtype=mlc.float32))
    """
    out = normalization.batch_norm(input, running_mean, running_var, weight, bias, training, eps=eps)
    if training and running_mean is not None and running_var is not None and 0 not in out.shape:
        with no_grad():
            _write((running_mean, running_var), normalization.moved_statistics(
                input, running_mean, running_var, 1 - momentum, momentum))
    return out


@coded
def instance_norm(input: Operand, running_mean: Operand = None, running_var: Operand = None, weight: Operand = None,
                  bias: Operand = None, use_input_stats: bool = True, momentum: float = 0.1,
                  eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel of each image.

    The method is that of Ulyanov, Vedaldi and Lempitsky 2016. Where the statistics are those of images, running ones
    are changed, in place, as by `batch_norm`, toward the means of these over the images.

    Args:
        input: Tensor of shape (n, channels, *image); integers become float32.
        running_mean: Mean for each channel, of shape (channels,); None to take those of the input.
        running_var: Variance for each channel, likewise.
        weight: Factor for each channel; None for 1.
        bias: Summand for each channel; None for 0.
        use_input_stats: Whether to take the statistics of each image; otherwise it is `batch_norm` with the running
            ones.
        momentum: Part of the way that running statistics move.
        eps: Added to the variance.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: `input` has fewer than 3 dimensions (MLC0364), a parameter is not of shape (channels,) (MLC0367), or
            running statistics cannot be written to (MLC0421, MLC0756).

    Example:
        >>> nn.functional.instance_norm(mlc.tensor([[[1.0, 3.0]]]))
        tensor([[[-0.999995,  0.999995]]], dtype=mlc.float32)
    """
    out = normalization.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, eps=eps)
    if use_input_stats and running_mean is not None and running_var is not None and 0 not in out.shape:
        with no_grad():
            old: Any = running_mean, running_var
            _write(old, [moved(x, new, momentum) for x, new in zip(old, statistics_of_images(input))])
    return out


def statistics_of_images(x: Any) -> tuple[Tensor, Tensor]:
    """The means over images of the mean and the variance, with Bessel's correction, of each channel."""
    axes = tuple(range(2, len(x.shape)))
    wide = x.float() if x.dtype.itemsize < 4 else x
    return R.mean(R.mean(wide, axes), 0), R.mean(R.var(wide, axes), 0)
