"""Layers that move elements: flattening, pixels and channels, resizing, blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.functions import convolution, resize
from mlc.frontend.functions import shape as S
from mlc.frontend.tensor import Operand, Tensor
from mlc.nn.module import Module

Ints = int | Sequence[int]


class Flatten(Module):
    """The dimensions from start_dim to end_dim made one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Operand) -> Tensor:
        return S.flatten(x, self.start_dim, self.end_dim)


class Unflatten(Module):
    """Dimension dim made several, of the sizes unflattened_size."""

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, x: Operand) -> Tensor:
        return S.unflatten(x, self.dim, self.unflattened_size)


class PixelShuffle(Module):
    """[..., c * r * r, h, w] to [..., c, h * r, w * r]: channels become pixels"""

    def __init__(self, upscale_factor: int) -> None:
        self.upscale_factor = upscale_factor

    def forward(self, x: Operand) -> Tensor:
        return resize.pixel_shuffle(x, self.upscale_factor)


class PixelUnshuffle(Module):
    """[..., c, h * r, w * r] to [..., c * r * r, h, w]: pixels become channels"""

    def __init__(self, downscale_factor: int) -> None:
        self.downscale_factor = downscale_factor

    def forward(self, x: Operand) -> Tensor:
        return resize.pixel_unshuffle(x, self.downscale_factor)


class ChannelShuffle(Module):
    """The channels of `groups` groups, one of each group in turn."""

    def __init__(self, groups: int) -> None:
        self.groups = groups

    def forward(self, x: Operand) -> Tensor:
        return resize.channel_shuffle(x, self.groups)


class Upsample(Module):
    """Images in another size, or scaled."""

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                 align_corners: bool | None = None, recompute_scale_factor: bool | None = None) -> None:
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def forward(self, x: Operand) -> Tensor:
        return resize.interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners,
                                  self.recompute_scale_factor)


class Unfold(Module):
    """Blocks of images [n, c, h, w] as columns [n, c * elements of a block, blocks]"""

    def __init__(self, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> None:
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, x: Operand) -> Tensor:
        return convolution.unfold(x, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Module):
    """The sum of blocks at their places: what Unfold does, the other way"""

    def __init__(self, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0,
                 stride: Ints = 1) -> None:
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, x: Operand) -> Tensor:
        return convolution.fold(x, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)
