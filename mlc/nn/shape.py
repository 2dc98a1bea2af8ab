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
    """Flattening: the dimensions from start_dim to end_dim become one.

    Elements keep their row-major order. By default the batch dimension stays, so it stands between convolutions and
    linear layers. It has no parameters.

    Shape:
        [n, a, b, c] -> [n, a * b * c] with the defaults.

    Args:
        start_dim: First dimension that is flattened.
        end_dim: Last one; negative numbers count from the last.

    Raises:
        UserError: `start_dim` comes after `end_dim` (MLC0356).
        UserIndexError: One of them is out of range (MLC0356).

    Example:
        >>> nn.Flatten()(mlc.ones(2, 3, 4)).shape
        (2, 12)
    """

    _shown = ("start_dim", "end_dim")

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Operand) -> Tensor:
        return S.flatten(input, self.start_dim, self.end_dim)


class Unflatten(Module):
    """Splitting of a dimension into several: the inverse of `Flatten`.

    Elements keep their row-major order: k becomes (i, j) with k = i * size of j + j. The result is a view, and there
    are no parameters.

    Shape:
        [..., size at dim, ...] -> [..., *unflattened_size, ...].

    Args:
        dim: Dimension to split; negative numbers count from the last.
        unflattened_size: Sizes whose product is that of the dimension; one may be -1.

    Raises:
        UserError: The sizes do not make up that of the dimension (MLC0358), or the number of dimensions is wrong
            (MLC0364).
        UserIndexError: `dim` is out of range (MLC0356).

    Example:
        >>> nn.Unflatten(1, (2, -1))(mlc.ones(5, 6)).shape
        (5, 2, 3)
    """

    _shown = ("dim", "unflattened_size")

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Operand) -> Tensor:
        return S.unflatten(input, self.dim, self.unflattened_size)


class PixelShuffle(Module):
    """Channels to pixels: y[..., c, h * r + i, w * r + j] = x[..., (c * r + i) * r + j, h, w], r = upscale_factor.

    (Shi et al. 2016, "Real-Time Single Image and Video Super-Resolution Using an Efficient Sub-Pixel Convolutional
    Neural Network".)

    Shape:
        [..., c * r * r, h, w] -> [..., c, h * r, w * r].

    Args:
        upscale_factor: The factor r.

    Raises:
        UserError: The channels are not divisible by r * r (MLC0358), or the input has fewer than 3 dimensions
            (MLC0364).

    Example:
        >>> nn.PixelShuffle(2)(mlc.ones(8, 3, 3)).shape
        (2, 6, 6)
    """

    _shown = ("upscale_factor",)

    def __init__(self, upscale_factor: int) -> None:
        self.upscale_factor = upscale_factor

    def forward(self, input: Operand) -> Tensor:
        return resize.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Module):
    """Pixels to channels: y[..., (c * r + i) * r + j, h, w] = x[..., c, h * r + i, w * r + j], r = downscale_factor.

    It is the inverse of `PixelShuffle`.

    Shape:
        [..., c, h * r, w * r] -> [..., c * r * r, h, w].

    Args:
        downscale_factor: The factor r.

    Raises:
        UserError: Height or width is not divisible by r (MLC0358), or the input has fewer than 3 dimensions (MLC0364).

    Example:
        >>> nn.PixelUnshuffle(2)(mlc.ones(2, 6, 6)).shape
        (8, 3, 3)
    """

    _shown = ("downscale_factor",)

    def __init__(self, downscale_factor: int) -> None:
        self.downscale_factor = downscale_factor

    def forward(self, input: Operand) -> Tensor:
        return resize.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Module):
    """Transposition of channel groups: y[:, i * groups + g] = x[:, g * (c / groups) + i].

    (Zhang, Zhou, Lin and Sun 2018, "ShuffleNet".)

    Shape:
        [n, c, ...] of at least 3 dimensions -> the same shape.

    Args:
        groups: Number of groups.

    Raises:
        UserError: The channels are not divisible by `groups` (MLC0358), or the input has fewer than 3 dimensions
            (MLC0364).

    Example:
        >>> nn.ChannelShuffle(2)(mlc.arange(4.0).reshape(1, 4, 1)).flatten()
        tensor([0., 2., 1., 3.], dtype=mlc.float32)
    """

    _shown = ("groups",)

    def __init__(self, groups: int) -> None:
        self.groups = groups

    def forward(self, input: Operand) -> Tensor:
        return resize.channel_shuffle(input, self.groups)


def _factor(x: Any) -> Any:
    return float(x) if type(x) is int and abs(x) < 2**63 else x


class Upsample(Module):
    """Resampling of images to another size.

    Pixel centres lie at half-integer positions, or with align_corners the centres of the corner pixels of both images
    coincide. "bicubic" is cubic convolution with a = -3/4 (Keys 1981, "Cubic Convolution Interpolation for Digital
    Image Processing"); "area" is adaptive average pooling. Integers become float32. Unlike in PyTorch, there is no
    antialiasing.

    Shape:
        [n, c, l], [n, c, h, w] or [n, c, d, h, w] -> [n, c, *size].

    Args:
        size: Size of the result, an integer or one for each spatial dimension; or None.
        scale_factor: Factor of the sizes instead, a number or one for each; the product is rounded down.
        mode: "nearest", "nearest-exact", "linear" (3 dimensions), "bilinear", "bicubic" (4), "trilinear" (5) or "area".
        align_corners: Whether corners are kept in place; only for the modes that interpolate.
        recompute_scale_factor: Whether the scale is taken from the sizes, after they are rounded.

    Raises:
        UserError: Neither or both of `size` and `scale_factor` are given (MLC0353), a mode or a setting is not allowed
            (MLC0360), the input has the wrong number of dimensions (MLC0364), a tuple has the wrong length (MLC0357),
            or the result would be empty (MLC0358).

    Example:
        >>> nn.Upsample(scale_factor=2, mode="linear")(mlc.tensor([[[0.0, 4.0]]])).flatten()
        tensor([0., 1., 3., 4.], dtype=mlc.float32)
    """

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                 align_corners: bool | None = None, recompute_scale_factor: bool | None = None) -> None:
        self.size, self.mode = size, mode
        self.scale_factor = scale_factor if scale_factor is None else (
            tuple(map(_factor, scale_factor)) if isinstance(scale_factor, tuple | list) else _factor(scale_factor))
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def extra_repr(self) -> str:
        size = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{size}, mode={self.mode!r}"

    def forward(self, input: Operand) -> Tensor:
        return resize.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners,
                                  self.recompute_scale_factor)


class Unfold(Module):
    """Windows of images as columns (im2col): column p holds the elements of window p, channel by channel.

    Padding counts as 0. The dtype is kept; integers are allowed.

    Shape:
        [n, c, h, w] or [c, h, w] -> [n, c * kernel elements, windows] or [c * kernel elements, windows], where windows
        is the product over h and w of floor((size + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1.

    Args:
        kernel_size: Size of the window. An integer, or two, as for all sizes below.
        dilation: Distance from one element of a window to the next.
        padding: Elements added on both sides.
        stride: Distance from one window to the next.

    Raises:
        UserError: A size is not allowed (MLC0360), the input has the wrong number of dimensions (MLC0364), or a window
            is larger than the image (MLC0367).

    Example:
        >>> nn.Unfold(2)(mlc.arange(9.0).reshape(1, 3, 3))
        tensor([[0., 1., 3., 4.],
                [1., 2., 4., 5.],
                [3., 4., 6., 7.],
                [4., 5., 7., 8.]], dtype=mlc.float32)
    """

    _shown = ("kernel_size", "dilation", "padding", "stride")

    def __init__(self, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> None:
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Operand) -> Tensor:
        return convolution.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Module):
    """Sum of columns at the places of their windows (col2im): the transpose of the linear map that `Unfold` is.

    Shape:
        [n, c * kernel elements, windows] or [c * kernel elements, windows] -> [n, c, *output_size] or [c,
        *output_size].

    Args:
        output_size: Height and width of the result. An integer, or two, as for all sizes below.
        kernel_size: Size of the window.
        dilation: Distance from one element of a window to the next.
        padding: Elements on both sides that are cut off.
        stride: Distance from one window to the next.

    Raises:
        UserError: The columns do not make up the windows of such an image (MLC0367), a size is not allowed (MLC0360),
            or the input has the wrong number of dimensions (MLC0364).

    Example:
        >>> nn.Fold(3, 2)(mlc.ones(4, 4))
        tensor([[[1., 2., 1.],
                 [2., 4., 2.],
                 [1., 2., 1.]]], dtype=mlc.float32)
    """

    _shown = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(self, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0,
                 stride: Ints = 1) -> None:
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input: Operand) -> Tensor:
        return convolution.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class UpsamplingNearest2d(Upsample):
    """Resizing of images by the nearest element: `Upsample` with mode "nearest".

    Shape:
        [n, c, h, w] -> [n, c, h', w'].

    Args:
        size: Height and width of the result, or one integer for both.
        scale_factor: Factors of height and width, or one for both.

    Raises:
        UserError: Neither or both are given, one is out of range (MLC0360), or the number of dimensions is wrong
            (MLC0364).

    Example:
        >>> nn.UpsamplingNearest2d(scale_factor=2)(mlc.ones(1, 1, 2, 3)).shape
        (1, 1, 4, 6)
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Resizing of images by linear interpolation: `Upsample` with mode "bilinear" and aligned corners.

    Shape:
        [n, c, h, w] -> [n, c, h', w'].

    Args:
        size: Height and width of the result, or one integer for both.
        scale_factor: Factors of height and width, or one for both.

    Raises:
        UserError: Neither or both are given, one is out of range (MLC0360), or the number of dimensions is wrong
            (MLC0364).

    Example:
        >>> nn.UpsamplingBilinear2d(size=(2, 3))(mlc.ones(1, 1, 4, 4)).shape
        (1, 1, 2, 3)
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", align_corners=True)
