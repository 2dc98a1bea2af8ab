"""Layers under the name of the file that PyTorch has them in."""

from mlc.nn.shape import Flatten, Unflatten

__all__ = ["Flatten", "Unflatten"]
