"""Normalizations that take the number of channels of their input from the first call."""

from __future__ import annotations

from typing import Any

from mlc.frontend.tensor import DTypeLike
from mlc.nn.batch_normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from mlc.nn.lazy import LazyModuleMixin


class _LazyNorm(LazyModuleMixin):
    _size_name = "num_features"
    def __init__(self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Any = None, dtype: DTypeLike = None, *,
                 bias: bool = True) -> None:
        self._begin({"eps": eps, "momentum": momentum, "affine": affine, "track_running_stats": track_running_stats,
                     "device": device, "dtype": dtype, "bias": bias})

    def _size_of(self, x: Any) -> int:
        kind = self.cls_to_become
        instances = issubclass(kind, InstanceNorm1d | InstanceNorm2d | InstanceNorm3d)
        return int(x.shape[0 if instances and len(x.shape) == min(kind.ranks) else 1])

    def _size_in(self, saved: dict[str, Any]) -> int:
        return int(saved["weight" if "weight" in saved else "running_mean"].shape[0])


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """`BatchNorm1d` whose num_features is the number of channels of its first input.

    Args:
        eps: Added to the variance.
        momentum: Weight of the new statistics; None for the mean over all batches.
        affine: Whether there are a weight and a bias.
        track_running_stats: Whether there are running statistics.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.
        bias: Whether there is a bias, if `affine`.

    Raises:
        UserError: The first call is in a function that is recorded (MLC0741).

    Example:
        >>> layer = nn.LazyBatchNorm1d()
        >>> _ = layer(mlc.ones(2, 3, 4))
        >>> layer.num_features
        3
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """`BatchNorm2d` whose num_features is the number of channels of its first input.

    Args:
        eps: Added to the variance.
        momentum: Weight of the new statistics; None for the mean over all batches.
        affine: Whether there are a weight and a bias.
        track_running_stats: Whether there are running statistics.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.
        bias: Whether there is a bias, if `affine`.

    Raises:
        UserError: The first call is in a function that is recorded (MLC0741).

    Example:
        >>> layer = nn.LazyBatchNorm2d()
        >>> _ = layer(mlc.ones(2, 3, 4, 4))
        >>> layer.num_features
        3
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """`BatchNorm3d` whose num_features is the number of channels of its first input.

    Args:
        eps: Added to the variance.
        momentum: Weight of the new statistics; None for the mean over all batches.
        affine: Whether there are a weight and a bias.
        track_running_stats: Whether there are running statistics.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.
        bias: Whether there is a bias, if `affine`.

    Raises:
        UserError: The first call is in a function that is recorded (MLC0741).

    Example:
        >>> layer = nn.LazyBatchNorm3d()
        >>> _ = layer(mlc.ones(2, 3, 4, 4, 4))
        >>> layer.num_features
        3
    """

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """`InstanceNorm1d` whose num_features is the number of channels of its first input.

    Args:
        eps: Added to the variance.
        momentum: Weight of the new statistics; None for the mean over all batches.
        affine: Whether there are a weight and a bias.
        track_running_stats: Whether there are running statistics.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.
        bias: Whether there is a bias, if `affine`.

    Raises:
        UserError: The first call is in a function that is recorded (MLC0741).

    Example:
        >>> layer = nn.LazyInstanceNorm1d()
        >>> _ = layer(mlc.ones(2, 3, 4))
        >>> layer.num_features
        3
    """

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """`InstanceNorm2d` whose num_features is the number of channels of its first input.

    Args:
        eps: Added to the variance.
        momentum: Weight of the new statistics; None for the mean over all batches.
        affine: Whether there are a weight and a bias.
        track_running_stats: Whether there are running statistics.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.
        bias: Whether there is a bias, if `affine`.

    Raises:
        UserError: The first call is in a function that is recorded (MLC0741).

    Example:
        >>> layer = nn.LazyInstanceNorm2d()
        >>> _ = layer(mlc.ones(2, 3, 4, 4))
        >>> layer.num_features
        3
    """

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """`InstanceNorm3d` whose num_features is the number of channels of its first input.

    Args:
        eps: Added to the variance.
        momentum: Weight of the new statistics; None for the mean over all batches.
        affine: Whether there are a weight and a bias.
        track_running_stats: Whether there are running statistics.
        device: Device of the parameters.
        dtype: Floating-point dtype of the parameters; None for float32.
        bias: Whether there is a bias, if `affine`.

    Raises:
        UserError: The first call is in a function that is recorded (MLC0741).

    Example:
        >>> layer = nn.LazyInstanceNorm3d()
        >>> _ = layer(mlc.ones(2, 3, 4, 4, 4))
        >>> layer.num_features
        3
    """

    cls_to_become = InstanceNorm3d
