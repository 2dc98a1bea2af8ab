"""Maxima of windows with their indices, as PyTorch names them."""

from __future__ import annotations

from mlc.frontend.functions.pooling.adaptive import adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d
from mlc.frontend.functions.pooling.fractional import fractional_max_pool2d, fractional_max_pool3d
from mlc.frontend.functions.pooling.sliding import max_pool1d, max_pool2d, max_pool3d
from mlc.frontend.functions.variant import Function, variant


def _indexed(f: Function, spatial: int, size: str = "2") -> Function:
    name = f"{f.__name__}_with_indices"
    shape = ", ".join(["4"] * spatial)
    return variant(f, name, f"`{f.__name__}` with the indices of the maxima in the flattened image, as two results.",
                   f"nn.functional.{name}(mlc.ones(1, 1, {shape}), {size})[1].dtype -> mlc.int64", return_indices=True)


adaptive_max_pool1d_with_indices = _indexed(adaptive_max_pool1d, 1)
adaptive_max_pool2d_with_indices = _indexed(adaptive_max_pool2d, 2)
adaptive_max_pool3d_with_indices = _indexed(adaptive_max_pool3d, 3)
fractional_max_pool2d_with_indices = _indexed(fractional_max_pool2d, 2, "2, output_size=2")
fractional_max_pool3d_with_indices = _indexed(fractional_max_pool3d, 3, "2, output_size=2")
max_pool1d_with_indices = _indexed(max_pool1d, 1)
max_pool2d_with_indices = _indexed(max_pool2d, 2)
max_pool3d_with_indices = _indexed(max_pool3d, 3)
