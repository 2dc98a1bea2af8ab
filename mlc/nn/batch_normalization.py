"""Normalization with running statistics: BatchNorm and InstanceNorm."""

from __future__ import annotations

from typing import Any, ClassVar

from mlc.dialects import tensor as T
from mlc.frontend.autograd.grad_mode import no_grad
from mlc.frontend.functions import create, normalization
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.running_statistics import moved, statistics_of_images
from mlc.frontend.location import user_loc
from mlc.frontend.operands import tracer
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.ir import sizes
from mlc.ir.core import located
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim, Size
from mlc.nn import anew
from mlc.nn.module import Module, set_buffer


class _Tracking(Module):
    """Parameters and running statistics of channels.

    In training, running_mean and running_var move by `momentum` toward the statistics of the batch; those of a
    BatchNorm with momentum = None are the mean over all batches. They are buffers: see Module.
    """

    _parameters = ("weight", "bias")
    _buffers = ("running_mean", "running_var", "num_batches_tracked")
    ranks: ClassVar[tuple[int, ...]]

    def __init__(self, num_features: int, eps: float, momentum: float | None, affine: bool, track_running_stats: bool,
                 device: Any, dtype: DTypeLike, bias: bool) -> None:
        dtype = dtype or "float32"
        self.num_features, self.eps, self.momentum, self.affine = num_features, eps, momentum, affine
        self.track_running_stats = track_running_stats
        self.weight = create.ones(num_features, dtype=dtype) if affine else None
        self.bias = create.zeros(num_features, dtype=dtype) if affine and bias else None
        self.running_mean = create.zeros(num_features, dtype=dtype) if track_running_stats else None
        self.running_var = create.ones(num_features, dtype=dtype) if track_running_stats else None
        self.num_batches_tracked = create.zeros(dtype="int64") if track_running_stats else None
        self.to(device=device)

    def extra_repr(self) -> str:
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}")

    def reset_running_stats(self) -> None:
        """Set the running statistics to those before the first batch: mean 0 and variance 1.

        Example:
            >>> layer = nn.BatchNorm1d(2)
            >>> _ = layer(mlc.tensor([[1.0, 2.0], [3.0, 6.0]]))
            >>> layer.reset_running_stats()
            >>> layer.running_mean, layer.num_batches_tracked
            (tensor([0., 0.], dtype=mlc.float32), tensor(0, dtype=mlc.int64))
        """
        for x, value in ((self.running_mean, 0), (self.running_var, 1), (self.num_batches_tracked, 0)):
            if x is not None:
                x.fill_(value)

    def reset_parameters(self) -> None:
        """Give the parameters and the running statistics the values of a new layer.

        Example:
            >>> nn.BatchNorm1d(2).reset_parameters()
        """
        self.reset_running_stats()
        anew.identity(self.weight, self.bias)

    def check(self, x: Operand) -> None:
        if len(x.shape) not in self.ranks:
            raise UserError(f"{type(self).__name__} takes {' or '.join(map(str, self.ranks))} dimensions, found "
                            f"{len(x.shape)}", code="MLC0364", loc=user_loc(),
                            hint="the first two are the batch and the channels")

    def check_channels(self, channels: Dim) -> None:
        held = next((p for p in (self.weight, self.running_mean) if p is not None), None)
        if held is not None and held.shape[0] != channels:
            raise UserError(f"{type(self).__name__} has {held.shape[0]} channels, the input {channels}", code="MLC0367",
                            loc=user_loc(), symbols=sizes.symbols(channels),
                            hint=f"channels come second, after the batch: {type(self).__name__}({channels})")

    def check_count(self, count: Dim) -> None:
        """The variance is not that of one value; of a size with symbols, the compiled function checks it."""
        message = f"{type(self).__name__} in training needs more than one value for each channel"
        if isinstance(count, Size):
            with located(user_loc()):
                T.FailIf(T.Item(tracer(E.eq(tracer(count), 1)).value).result, message)
        elif count == 1:
            raise UserError(message, code="MLC0363", loc=user_loc(),
                            hint="use larger batches, DataLoader(drop_last=True), or model.eval()")

    def track(self, mean: Tensor, var: Tensor, part: Any) -> None:
        """Move the running statistics by a part of the way toward those of a batch."""
        for name, new in (("running_mean", mean), ("running_var", var)):
            set_buffer(self, name, moved(getattr(self, name), E.detach(new), part))


class BatchNorm(_Tracking):
    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Any = None, dtype: DTypeLike = None, *,
                 bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Operand) -> Tensor:
        input = create.asarray(input)
        self.check(input)
        self.check_channels(input.shape[1])
        of_batch = self.training or self.running_mean is None
        if self.training and self.track_running_stats and self.running_mean is not None:
            axes = tuple(a for a in range(len(input.shape)) if a != 1)
            self.check_count(sizes.product([input.shape[a] for a in axes]))
            assert self.num_batches_tracked is not None
            with no_grad():
                set_buffer(self, "num_batches_tracked", self.num_batches_tracked + 1)
                if 0 not in input.shape:                   # an empty batch has no statistics
                    part: Any = 1 / self.num_batches_tracked if self.momentum is None else self.momentum
                    moved = normalization.moved_statistics(input, self.running_mean, self.running_var, 1 - part, part)
                    for name, new in zip(("running_mean", "running_var"), moved):
                        set_buffer(self, name, new)
        return normalization.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias, of_batch,
                                        eps=self.eps)


class BatchNorm1d(BatchNorm):
    """Batch normalization: (x - mean) / sqrt(var + eps) * weight + bias, for each channel.

    In training, mean and variance are those of the batch (the variance of the population), and the running statistics
    move toward them: running = (1 - momentum) * running + momentum * batch, with the unbiased variance. In evaluation
    the running statistics are used. Weights are at first 1, biases 0, running means 0 and variances 1. A compiled
    function or a derivative assigns the buffers of the module that it is given. Statistics of float16 and bfloat16 are
    computed in float32. (Ioffe and Szegedy 2015, "Batch Normalization".)

    Shape:
        [n, num_features] or [n, num_features, l] of floats -> the same shape.

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
        track_running_stats: Whether there are running statistics; without them those of the batch are always used.
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of parameters and statistics; None for float32.
        bias: Whether there is a bias, if `affine`.

    Raises:
        UserError: The input has another number of dimensions (MLC0364) or channels (MLC0367), in training a single
            value for each channel (MLC0363), or a size is negative (MLC0358).
        UserTypeError: The input is not of floats (MLC0359), or its dtype does not go with that of the parameters
            (MLC0420).

    Example:
        >>> norm = nn.BatchNorm1d(2)
        >>> norm(mlc.ones(4, 2)).shape
        (4, 2)
        >>> norm.running_mean
        tensor([0.1, 0.1], dtype=mlc.float32)
    """

    ranks = (2, 3)


class BatchNorm2d(BatchNorm):
    """Batch normalization: (x - mean) / sqrt(var + eps) * weight + bias, for each channel.

    In training, mean and variance are those of the batch (the variance of the population), and the running statistics
    move toward them: running = (1 - momentum) * running + momentum * batch, with the unbiased variance. In evaluation
    the running statistics are used. Weights are at first 1, biases 0, running means 0 and variances 1. A compiled
    function or a derivative assigns the buffers of the module that it is given. Statistics of float16 and bfloat16 are
    computed in float32. (Ioffe and Szegedy 2015, "Batch Normalization".)

    Shape:
        [n, num_features, h, w] of floats -> the same shape.

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
        track_running_stats: Whether there are running statistics; without them those of the batch are always used.
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of parameters and statistics; None for float32.
        bias: Whether there is a bias, if `affine`.

    Raises:
        UserError: The input has another number of dimensions (MLC0364) or channels (MLC0367), in training a single
            value for each channel (MLC0363), or a size is negative (MLC0358).
        UserTypeError: The input is not of floats (MLC0359), or its dtype does not go with that of the parameters
            (MLC0420).

    Example:
        >>> norm = nn.BatchNorm2d(2)
        >>> norm(mlc.ones(4, 2, 3, 3)).shape
        (4, 2, 3, 3)
        >>> norm.running_mean
        tensor([0.1, 0.1], dtype=mlc.float32)
    """

    ranks = (4,)


class BatchNorm3d(BatchNorm):
    """Batch normalization: (x - mean) / sqrt(var + eps) * weight + bias, for each channel.

    In training, mean and variance are those of the batch (the variance of the population), and the running statistics
    move toward them: running = (1 - momentum) * running + momentum * batch, with the unbiased variance. In evaluation
    the running statistics are used. Weights are at first 1, biases 0, running means 0 and variances 1. A compiled
    function or a derivative assigns the buffers of the module that it is given. Statistics of float16 and bfloat16 are
    computed in float32. (Ioffe and Szegedy 2015, "Batch Normalization".)

    Shape:
        [n, num_features, d, h, w] of floats -> the same shape.

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
        track_running_stats: Whether there are running statistics; without them those of the batch are always used.
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of parameters and statistics; None for float32.
        bias: Whether there is a bias, if `affine`.

    Raises:
        UserError: The input has another number of dimensions (MLC0364) or channels (MLC0367), in training a single
            value for each channel (MLC0363), or a size is negative (MLC0358).
        UserTypeError: The input is not of floats (MLC0359), or its dtype does not go with that of the parameters
            (MLC0420).

    Example:
        >>> norm = nn.BatchNorm3d(2)
        >>> norm(mlc.ones(4, 2, 3, 3, 3)).shape
        (4, 2, 3, 3, 3)
        >>> norm.running_mean
        tensor([0.1, 0.1], dtype=mlc.float32)
    """

    ranks = (5,)


class _InstanceNorm(_Tracking):
    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = False,
                 track_running_stats: bool = False, device: Any = None, dtype: DTypeLike = None, *,
                 bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Operand) -> Tensor:
        input = create.asarray(input)
        self.check(input)
        if len(input.shape) == min(self.ranks):
            return self._normalized(input.unsqueeze(0)).squeeze(0)
        return self._normalized(input)

    def _normalized(self, x: Tensor) -> Tensor:
        self.check_channels(x.shape[1])
        of_image = self.training or not self.track_running_stats or self.running_mean is None
        if self.training and self.track_running_stats and self.running_mean is not None:
            self.track(*statistics_of_images(x), self.momentum or 0.0)
        return normalization.instance_norm(x, self.running_mean, self.running_var, self.weight, self.bias, of_image,
                                           eps=self.eps)


class InstanceNorm1d(_InstanceNorm):
    """Instance normalization: (x - mean) / sqrt(var + eps) * weight + bias, for each channel of each sample.

    The variance is that of the population. Training and evaluation are alike, unless running statistics are tracked:
    these move in training, as those of `BatchNorm1d`, toward the mean over the batch, and are used in evaluation.
    (Ulyanov, Vedaldi and Lempitsky 2016, "Instance Normalization: The Missing Ingredient for Fast Stylization".)

    Shape:
        [n, num_features, l] or [num_features, l] of floats -> the same shape.

    Attributes:
        weight: Parameter [num_features], or None.
        bias: Parameter [num_features], or None.
        running_mean: Buffer [num_features], or None.
        running_var: Buffer [num_features], or None.
        num_batches_tracked: Buffer [], int64, or None; it stays 0.

    Args:
        num_features: Number of channels; checked only where there are parameters or running statistics.
        eps: Added to the variance.
        momentum: Weight of the new statistics; None for 0.
        affine: Whether there are a weight and a bias, 1 and 0 at first.
        track_running_stats: Whether there are running statistics.
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of parameters and statistics; None for float32.
        bias: Whether there is a bias, if `affine`.

    Raises:
        UserError: The input has another number of dimensions (MLC0364), of channels than the parameters (MLC0367), or
            the float dtypes of the input and the parameters differ (MLC0420).

    Example:
        >>> nn.InstanceNorm1d(1)(mlc.arange(2.0).reshape(1, 2)).flatten()
        tensor([-0.99998,  0.99998], dtype=mlc.float32)
    """

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalization: (x - mean) / sqrt(var + eps) * weight + bias, for each channel of each sample.

    The variance is that of the population. Training and evaluation are alike, unless running statistics are tracked:
    these move in training, as those of `BatchNorm2d`, toward the mean over the batch, and are used in evaluation.
    (Ulyanov, Vedaldi and Lempitsky 2016, "Instance Normalization: The Missing Ingredient for Fast Stylization".)

    Shape:
        [n, num_features, h, w] or [num_features, h, w] of floats -> the same shape.

    Attributes:
        weight: Parameter [num_features], or None.
        bias: Parameter [num_features], or None.
        running_mean: Buffer [num_features], or None.
        running_var: Buffer [num_features], or None.
        num_batches_tracked: Buffer [], int64, or None; it stays 0.

    Args:
        num_features: Number of channels; checked only where there are parameters or running statistics.
        eps: Added to the variance.
        momentum: Weight of the new statistics; None for 0.
        affine: Whether there are a weight and a bias, 1 and 0 at first.
        track_running_stats: Whether there are running statistics.
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of parameters and statistics; None for float32.
        bias: Whether there is a bias, if `affine`.

    Raises:
        UserError: The input has another number of dimensions (MLC0364), of channels than the parameters (MLC0367), or
            the float dtypes of the input and the parameters differ (MLC0420).

    Example:
        >>> nn.InstanceNorm2d(1)(mlc.arange(4.0).reshape(1, 2, 2)).flatten()
        tensor([-1.3416355, -0.4472118,  0.4472118,  1.3416355], dtype=mlc.float32)
    """

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalization: (x - mean) / sqrt(var + eps) * weight + bias, for each channel of each sample.

    The variance is that of the population. Training and evaluation are alike, unless running statistics are tracked:
    these move in training, as those of `BatchNorm3d`, toward the mean over the batch, and are used in evaluation.
    (Ulyanov, Vedaldi and Lempitsky 2016, "Instance Normalization: The Missing Ingredient for Fast Stylization".)

    Shape:
        [n, num_features, d, h, w] or [num_features, d, h, w] of floats -> the same shape.

    Attributes:
        weight: Parameter [num_features], or None.
        bias: Parameter [num_features], or None.
        running_mean: Buffer [num_features], or None.
        running_var: Buffer [num_features], or None.
        num_batches_tracked: Buffer [], int64, or None; it stays 0.

    Args:
        num_features: Number of channels; checked only where there are parameters or running statistics.
        eps: Added to the variance.
        momentum: Weight of the new statistics; None for 0.
        affine: Whether there are a weight and a bias, 1 and 0 at first.
        track_running_stats: Whether there are running statistics.
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of parameters and statistics; None for float32.
        bias: Whether there is a bias, if `affine`.

    Raises:
        UserError: The input has another number of dimensions (MLC0364), of channels than the parameters (MLC0367), or
            the float dtypes of the input and the parameters differ (MLC0420).

    Example:
        >>> nn.InstanceNorm3d(1)(mlc.arange(8.0).reshape(1, 2, 2, 2)).flatten()
        tensor([-1.5275238 , -1.0910884 , -0.6546531 , -0.21821769,  0.21821769,
                 0.6546531 ,  1.0910884 ,  1.5275238 ], dtype=mlc.float32)
    """

    ranks = (4, 5)
