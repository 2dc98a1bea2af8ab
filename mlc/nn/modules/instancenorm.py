"""Layers under the name of the file that PyTorch has them in."""

from mlc.nn.batch_normalization import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from mlc.nn.lazy_normalization import LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
           "LazyInstanceNorm3d"]
