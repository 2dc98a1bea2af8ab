"""Layers under the name of the file that PyTorch has them in."""

from mlc.nn.shape import Fold, Unfold

__all__ = ["Fold", "Unfold"]
