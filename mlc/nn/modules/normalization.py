"""Layers under the name of the file that PyTorch has them in."""

from mlc.nn.normalization import GroupNorm, LayerNorm, LocalResponseNorm, RMSNorm

__all__ = ["GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]
