"""Statistics of the batches of all ranks of a group, whose gradients are of all ranks, too."""

from __future__ import annotations

from typing import Any

from mlc import distributed
from mlc.distributed.groups import ProcessGroup
from mlc.frontend.autograd.custom_function import Function
from mlc.frontend.functions import create
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.shape.joining import stack
from mlc.frontend.tensor import Tensor


class _Gathered(Function):
    """The tensors of all ranks, by position; the gradient of one is the sum of what all ranks have for it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        out = create.empty(group.size(), *x.shape, dtype=x.dtype, device=x.device)
        distributed.all_gather_into_tensor(out, x, group)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return _Scattered.apply(gradient, ctx.group), None


class _Scattered(Function):
    """The sum over the ranks of what each has for this one: the transpose of `_Gathered`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        out = create.empty(*x.shape[1:], dtype=x.dtype, device=x.device)
        distributed.reduce_scatter_tensor(out, x, group=group)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return _Gathered.apply(gradient, ctx.group), None


def statistics_of_ranks(x: Tensor, group: ProcessGroup) -> tuple[Tensor, Tensor, Tensor]:
    """The mean, the variance (of the population) and the number of the values in each channel, dimension 1, of all
    ranks: the same bits on each. A rank may have no values.

    They are combined as in Chan, Golub and LeVeque 1979, "Updating formulae and a pairwise algorithm for computing
    sample variances": one collective, and no difference of large numbers.
    """
    axes = tuple(a for a in range(x.ndim) if a != 1)
    shape = tuple(n if a == 1 else 1 for a, n in enumerate(x.shape))
    number = x.numel() // max(x.shape[1], 1)
    mean = R.sum(x, axes) / max(number, 1)
    apart = R.sum((x - mean.reshape(shape)) ** 2, axes)
    mine = stack([mean, apart, create.full_like(mean, number)])
    means, parts, numbers = _Gathered.apply(mine, group).unbind(1)
    total = R.sum(numbers, 0)
    mean = R.sum(numbers * means, 0) / total
    return mean, R.sum(parts + numbers * (means - mean) ** 2, 0) / total, total
