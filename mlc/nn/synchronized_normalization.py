"""Batch normalization with the statistics of the batches of all ranks."""

from __future__ import annotations

from typing import Any

from mlc.frontend.autograd.grad_mode import no_grad
from mlc.frontend.functions import create, normalization
from mlc.frontend.functions import elementwise as E
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.frontend.trace import state
from mlc.nn.batch_normalization import BatchNorm
from mlc.nn.module import Module, set_buffer


class SyncBatchNorm(BatchNorm):
    """Batch normalization over the batches of all ranks of a group, which a job of several processes trains.

    It is `BatchNorm2d` for any number of dimensions, but in training mean and variance are those of the values that all
    ranks have: each forward and each backward calls one collective. The gradients of the parameters are those of the
    rank's own values, which `DistributedDataParallel` averages. Without a job, or in one of one rank, and in compiled
    functions of tensors on a mesh, where a batch is that of all ranks anyway, it is an ordinary batch normalization.
    Compile what it is in after `init_process_group`: code that is made before knows no other ranks.

    Shape:
        [n, num_features, ...] of floats -> the same shape; n may differ from rank to rank, and be 0.

    Attributes:
        weight: Parameter [num_features], or None.
        bias: Parameter [num_features], or None.
        running_mean: Buffer [num_features], or None.
        running_var: Buffer [num_features], or None.
        num_batches_tracked: Buffer [], int64, or None.

    Args:
        num_features: Number of channels.
        eps: Added to the variance.
        momentum: Weight of the new statistics; None for the mean over all batches.
        affine: Whether there are a weight and a bias.
        track_running_stats: Whether there are running statistics.
        process_group: The group; None for all ranks.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.

    Raises:
        UserError: As for `BatchNorm2d` (MLC0364, MLC0367, MLC0363), a size is negative (MLC0358), the float dtypes of
            the input and the parameters differ (MLC0420), or in a job of several ranks it is trained in a compiled
            function whose tensors are on no mesh (MLC0976).
        RankError: As collectives raise.

    Example:
        >>> from mlc.backends.transport import threads
        >>> def normalized(rank):
        ...     mlc.distributed.init_process_group()
        ...     return nn.SyncBatchNorm(1, eps=0.0)(mlc.tensor([[rank * 2.0]])).item()
        >>> threads.run(2, normalized)
        [-1.0, 1.0]
    """

    ranks = tuple(range(2, 64))

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, process_group: Any = None, device: Any = None,
                 dtype: DTypeLike = None) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)
        self.process_group = process_group

    def forward(self, input: Operand) -> Tensor:
        group = self._group() if self.training else None
        if group is None:
            return super().forward(input)
        if state.trace is not None:
            state.trace.root.across_ranks = user_loc()
            return super().forward(input)
        x = create.asarray(input)
        self.check(x)
        self.check_channels(x.shape[1])
        return self._normalized(x if x.dtype.is_floating_point else x.float(), group)

    def _group(self) -> Any:
        """The group, if it has several ranks."""
        from mlc.distributed.groups import resolved, world  # a program that trains alone does not import it
        if self.process_group is None and world() is None:
            return None
        group = resolved(self.process_group)
        return group if group.size() > 1 else None

    def _normalized(self, x: Tensor, group: Any) -> Tensor:
        from mlc.nn.parallel.statistics import statistics_of_ranks
        wide = x.float() if x.dtype.itemsize < 4 else x
        mean, var, number = statistics_of_ranks(wide, group)
        count = x.numel() // max(x.shape[1], 1)
        if count <= 1 and x.shape[1]:                      # other ranks may have more
            count = int(number.min())
            self.check_count(count)
        shape = tuple(n if a == 1 else 1 for a, n in enumerate(x.shape))
        out: Any = (wide - mean.reshape(shape)) * E.rsqrt(var + self.eps).reshape(shape)
        out = normalization.batch_norm(out, create.zeros_like(mean), create.ones_like(mean), self.weight, self.bias,
                                       eps=0.0)
        if self.track_running_stats and self.running_mean is not None and count:     # no values have no statistics
            assert self.num_batches_tracked is not None
            with no_grad():
                set_buffer(self, "num_batches_tracked", self.num_batches_tracked + 1)
                part: Any = 1 / self.num_batches_tracked if self.momentum is None else self.momentum
                self.track(mean, var * (number / (number - 1)), part)
        return out.to(x.dtype)  # type: ignore[no-any-return]

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replace the batch normalizations in a module by such layers, with the same parameters and statistics.

        Args:
            module: The module, which is changed; if it is a batch normalization itself, the result stands for it.
            process_group: The group; None for all ranks.

        Returns:
            The module.

        Example:
            >>> nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)))[1]
            SyncBatchNorm(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
        """
        made: dict[int, SyncBatchNorm] = {}                # by layer, which may be in several places
        for name, child in list(module.named_modules(remove_duplicate=False)):
            if isinstance(child, BatchNorm) and not isinstance(child, cls):
                out = made.get(id(child)) or cls(child.num_features, child.eps, child.momentum, child.affine,
                                                 child.track_running_stats, process_group)
                made[id(child)] = out
                vars(out).update(vars(child))
                if not name:
                    return out
                module.set_submodule(name, out)
        return module
