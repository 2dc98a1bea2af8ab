"""Normalisation: LayerNorm, RMSNorm, BatchNorm, GroupNorm, InstanceNorm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from mlc.dialects import tensor as T
from mlc.frontend.functions import create, neural, normalization
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.location import user_loc
from mlc.frontend.operands import tracer
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.ir import sizes
from mlc.ir.core import located
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim, Size
from mlc.nn.module import Module


class LayerNorm(Module):
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions"""

    _parameters = ("weight", "bias")

    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True,
                 bias: bool = True, dtype: DTypeLike = "float32") -> None:
        shape = tuple(normalized_shape) if isinstance(normalized_shape, tuple | list) else (normalized_shape,)
        self.normalized_shape, self.eps = shape, eps
        self.weight = create.ones(*shape, dtype=dtype) if elementwise_affine else None
        self.bias = create.zeros(*shape, dtype=dtype) if elementwise_affine and bias else None

    def forward(self, x: Operand) -> Tensor:
        return neural.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """x / sqrt(mean(x ** 2) + eps) * weight over the last dimensions"""

    _parameters = ("weight",)

    def __init__(self, normalized_shape: int | Sequence[int], eps: float | None = None,
                 elementwise_affine: bool = True, dtype: DTypeLike = "float32") -> None:
        shape = tuple(normalized_shape) if isinstance(normalized_shape, tuple | list) else (normalized_shape,)
        self.normalized_shape, self.eps = shape, eps
        self.weight = create.ones(*shape, dtype=dtype) if elementwise_affine else None

    def forward(self, x: Operand) -> Tensor:
        return neural.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class GroupNorm(Module):
    """(x - mean) / sqrt(var + eps) * weight + bias, mean and variance of groups of channels of one image"""

    _parameters = ("weight", "bias")

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
                 dtype: DTypeLike = "float32") -> None:
        if num_groups < 1 or num_channels % num_groups:
            raise UserError(f"{num_channels} channels do not make up {num_groups} groups", code="MLC0358",
                            loc=user_loc())
        self.num_groups, self.eps = num_groups, eps
        self.weight = create.ones(num_channels, dtype=dtype) if affine else None
        self.bias = create.zeros(num_channels, dtype=dtype) if affine else None

    def forward(self, x: Operand) -> Tensor:
        return normalization.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)


class LocalResponseNorm(Module):
    """x / (k + alpha * the mean of x ** 2 over `size` neighbouring channels) ** beta"""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, x: Operand) -> Tensor:
        return normalization.local_response_norm(x, self.size, self.alpha, self.beta, self.k)


class _Tracking(Module):
    """Parameters and running statistics of channels.

    In training, running_mean and running_var move by `momentum` toward the statistics of the batch; those of a
    BatchNorm with momentum = None are the mean over all batches. They are buffers: see Module.
    """

    _parameters = ("weight", "bias")
    _buffers = ("running_mean", "running_var", "num_batches_tracked")
    ranks: ClassVar[tuple[int, ...]]

    def __init__(self, num_features: int, eps: float, momentum: float | None, affine: bool, track_running_stats: bool,
                 dtype: DTypeLike) -> None:
        self.eps, self.momentum = eps, momentum
        self.weight = create.ones(num_features, dtype=dtype) if affine else None
        self.bias = create.zeros(num_features, dtype=dtype) if affine else None
        self.running_mean = create.zeros(num_features, dtype=dtype) if track_running_stats else None
        self.running_var = create.ones(num_features, dtype=dtype) if track_running_stats else None
        self.num_batches_tracked = create.zeros(dtype="int64") if track_running_stats else None

    def check(self, x: Operand) -> None:
        if len(x.shape) not in self.ranks:
            raise UserError(f"{type(self).__name__} takes {' or '.join(map(str, self.ranks))} dimensions, found "
                            f"{len(x.shape)}", code="MLC0364", loc=user_loc())

    def check_count(self, count: Dim) -> None:
        """The variance is not that of one value; of a size with symbols, the compiled function checks it."""
        message = f"{type(self).__name__} in training needs more than one value for each channel"
        if isinstance(count, Size):
            with located(user_loc()):
                T.FailIf(T.Item(tracer(E.eq(tracer(count), 1)).value).result, message)
        elif count == 1:
            raise UserError(message, code="MLC0363", loc=user_loc())

    def track(self, mean: Tensor, var: Tensor, part: Any) -> None:
        """Move the running statistics by a part of the way toward those of a batch."""
        assert self.running_mean is not None and self.running_var is not None
        self.running_mean, self.running_var = (
            (1 - part) * old + part * E.cast_to(E.detach(new), old.dtype)
            for old, new in ((self.running_mean, mean), (self.running_var, var)))


class _BatchNorm(_Tracking):
    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, dtype: DTypeLike = "float32") -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)

    def forward(self, x: Operand) -> Tensor:
        x = create.asarray(x)
        self.check(x)
        of_batch = self.training or self.running_mean is None
        if self.training and self.running_mean is not None:
            axes = tuple(a for a in range(len(x.shape)) if a != 1)
            self.check_count(sizes.product([x.shape[a] for a in axes]))
            wide = x.float() if x.dtype.itemsize < 4 else x
            assert self.num_batches_tracked is not None
            self.num_batches_tracked = self.num_batches_tracked + 1
            self.track(R.mean(wide, axes), R.var(wide, axes),
                       1 / self.num_batches_tracked if self.momentum is None else self.momentum)
        return normalization.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, of_batch,
                                        eps=self.eps)


class BatchNorm1d(_BatchNorm):
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel of [n, c] or [n, c, l]: of the batch in training,
    else the running ones"""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """BatchNorm1d of images [n, c, h, w]"""

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """BatchNorm1d of [n, c, d, h, w]"""

    ranks = (5,)


class _InstanceNorm(_Tracking):
    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = False,
                 track_running_stats: bool = False, dtype: DTypeLike = "float32") -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)

    def forward(self, x: Operand) -> Tensor:
        x = create.asarray(x)
        self.check(x)
        if len(x.shape) == min(self.ranks):
            return self._normalized(x.unsqueeze(0)).squeeze(0)
        return self._normalized(x)

    def _normalized(self, x: Tensor) -> Tensor:
        of_image = self.training or self.running_mean is None
        if self.training and self.running_mean is not None:
            axes = tuple(range(2, len(x.shape)))
            wide = x.float() if x.dtype.itemsize < 4 else x
            self.track(R.mean(R.mean(wide, axes), 0), R.mean(R.var(wide, axes), 0), self.momentum or 0.0)
        return normalization.instance_norm(x, self.running_mean, self.running_var, self.weight, self.bias, of_image,
                                           eps=self.eps)


class InstanceNorm1d(_InstanceNorm):
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel of each sequence in [n, c, l] or [c, l]"""

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """InstanceNorm1d of images [n, c, h, w] or [c, h, w]"""

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """InstanceNorm1d of [n, c, d, h, w] or [c, d, h, w]"""

    ranks = (4, 5)
