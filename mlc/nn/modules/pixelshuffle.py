"""Layers under the name of the file that PyTorch has them in."""

from mlc.nn.shape import PixelShuffle, PixelUnshuffle

__all__ = ["PixelShuffle", "PixelUnshuffle"]
