"""Layers under the name of the file that PyTorch has them in."""

from mlc.nn.lazy import LazyLinear
from mlc.nn.linear import Bilinear, Identity, Linear, NonDynamicallyQuantizableLinear

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear", "NonDynamicallyQuantizableLinear"]
