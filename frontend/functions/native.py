"""Normalizations that return the statistics, too, under PyTorch's names `native_*`."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.frontend.axes import plain_int
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions import shape as S
from mlc.frontend.functions.neural import layer_norm
from mlc.frontend.functions.normalization import batch_norm, group_norm
from mlc.frontend.operands import cast, floating, full, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import f32

Statistics = tuple[Tensor, Tensor, Tensor]


def _statistics(input: Operand, over: Sequence[int], eps: float, keepdim: bool) -> tuple[Tensor, Tensor]:
    """The mean over dimensions, and 1 / sqrt(variance + eps)."""
    x = floating(input)
    x = cast(x, f32) if x.type.dtype.width < 32 else x
    return R.mean(x, tuple(over), keepdim), E.rsqrt(R.var(x, tuple(over), correction=0, keepdim=keepdim) + eps)


@operation()
def native_layer_norm(input: Operand, normalized_shape: Sequence[Dim], weight: Operand, bias: Operand,
                      eps: float) -> Statistics:
    """Layer normalization, as `nn.functional.layer_norm`, and its statistics.

    Args:
        input: Tensor.
        normalized_shape: The last sizes of `input`, over which it is normalized.
        weight: Factors of that shape; None for 1.
        bias: Summands of that shape; None for 0.
        eps: Added to the variance.

    Returns:
        The result, the means, and 1 / sqrt(variance + eps), with size 1 in the dimensions that are reduced; these have
        no derivative, as in PyTorch.

    Raises:
        UserError: shapes do not fit (MLC0367).

    Example:
        >>> mlc.native_layer_norm(mlc.tensor([[1.0, 3.0]]), (2,), None, None, 0.0)[1]
        tensor([[2.]], dtype=mlc.float32)
    """
    x = tracer(input)
    over = range(x.ndim - len(tuple(normalized_shape)), x.ndim)
    mean, scale = _statistics(x, over, eps, True)
    return layer_norm(x, normalized_shape, weight, bias, eps), E.detach(mean), E.detach(scale)


@operation()
def native_group_norm(input: Operand, weight: Operand, bias: Operand, N: Dim, C: Dim, HxW: Dim, group: int,
                      eps: float) -> Statistics:
    """Group normalization, as `nn.functional.group_norm`, and its statistics.

    Args:
        input: Tensor of shape (N, C, ...).
        weight: Factor for each channel; None for 1.
        bias: Summand for each channel; None for 0.
        N: Number of samples.
        C: Number of channels.
        HxW: Number of elements of a channel.
        group: Number of groups.
        eps: Added to the variance.

    Returns:
        The result, the means, and 1 / sqrt(variance + eps), of shape (N, group).

    Raises:
        UserError: shapes do not fit (MLC0358, MLC0367).

    Example:
        >>> mlc.native_group_norm(mlc.tensor([[[1.0], [3.0]]]), None, None, 1, 2, 1, 1, 0.0)[1]
        tensor([[2.]], dtype=mlc.float32)
    """
    x = tracer(input)
    count = sizes.product(x.shape)
    if count != sizes.product((N, C, HxW)) or any(isinstance(d, int) and d < 0 for d in (N, C, HxW)):
        raise UserError(f"N = {N}, C = {C} and HxW = {HxW} for an input of {count} elements", code="MLC0358",
                        symbols=sizes.symbols(count, N, C, HxW), hint="the input has N * C * HxW elements")
    if plain_int(group, "group") < 1 or C % group != 0:
        raise UserError(f"C = {C} channels do not make up group = {group} groups", code="MLC0358",
                        symbols=sizes.symbols(C), hint="group is a divisor of C")
    grouped = reshape(x, [N, group, C * HxW // group])
    return group_norm(x, group, weight, bias, eps), *_statistics(grouped, (2,), eps, False)


@operation()
def native_batch_norm(input: Operand, weight: Operand, bias: Operand, running_mean: Operand, running_var: Operand,
                      training: bool, momentum: float, eps: float) -> Statistics:
    """Batch normalization, as `nn.functional.batch_norm`, and its statistics.

    Unlike there, running statistics are not changed.

    Args:
        input: Tensor of shape (n, channels, ...).
        weight: Factor for each channel; None for 1.
        bias: Summand for each channel; None for 0.
        running_mean: Mean for each channel; None to take those of the input.
        running_var: Variance for each channel, likewise.
        training: Whether to take the statistics of the batch.
        momentum: Accepted for PyTorch's sake; it has no effect.
        eps: Added to the variance.

    Returns:
        The result, the means, and 1 / sqrt(variance + eps), of shape (channels,); both are empty unless `training`, and
        have no derivative, as in PyTorch.

    Raises:
        UserError: `input` has fewer than 2 dimensions (MLC0364), or a parameter is not of shape (channels,) (MLC0367).

    Example:
        >>> mlc.native_batch_norm(mlc.tensor([[1.0], [3.0]]), None, None, None, None, True, 0.1, 0.0)[1]
        tensor([2.], dtype=mlc.float32)
    """
    x = tracer(input)
    out = batch_norm(x, running_mean, running_var, weight, bias, training, eps=eps)
    if not training:
        nothing = full(0, floating(x), [0])
        return out, nothing, nothing
    mean, scale = _statistics(x, [a for a in range(x.ndim) if a != 1], eps, False)
    return out, E.detach(mean), E.detach(scale)


@operation()
def constant_pad_nd(input: Operand, pad: Sequence[int], value: float = 0) -> Tensor:
    """The tensor with a number around it, as `nn.functional.pad`.

    Args:
        input: Tensor.
        pad: How many elements to add before and after, for each dimension from the last; negative ones remove.
        value: The number.

    Returns:
        Tensor of the dtype of `input`.

    Raises:
        UserError: `pad` is not in pairs or too long (MLC0357), or cuts off more than there is (MLC0360).

    Example:
        >>> mlc.constant_pad_nd(mlc.ones(2), (1, 0))
        tensor([0., 1., 1.], dtype=mlc.float32)
    """
    return S.pad(input, pad, "constant", value)
