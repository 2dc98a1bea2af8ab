"""Layers under the name of the file that PyTorch has them in."""

from mlc.nn.batch_normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from mlc.nn.lazy_normalization import LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d
from mlc.nn.synchronized_normalization import SyncBatchNorm

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d",
           "SyncBatchNorm"]
