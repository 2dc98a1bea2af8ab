"""Layers under the name of the file that PyTorch has them in."""

from mlc.nn.shape import Upsample, UpsamplingBilinear2d, UpsamplingNearest2d

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]
