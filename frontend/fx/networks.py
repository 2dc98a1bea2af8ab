"""Convolution, pooling, resizing and sampling of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.fx.refusing import refuse
from mlc.frontend.fx.table import row
from mlc.frontend.tensor import OPERATIONS as O


def _spread(given: Sequence[int], rank: int) -> list[int]:
    """One number for each spatial dimension."""
    return list(given) * rank if len(given) == 1 else list(given)


@row("convolution", "_convolution")
def convolution(x: Any, weight: Any, bias: Any, stride: Sequence[int], padding: Sequence[int],
                dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int,
                *settings: bool) -> Any:
    rank = weight.ndim - 2
    if not 1 <= rank <= 3:
        refuse(f"a convolution of {rank} dimensions")
    stride, padding, dilation, output_padding = (_spread(v, rank) for v in (stride, padding, dilation, output_padding))
    if transposed:
        return O[f"conv_transpose{rank}d"](x, weight, bias, stride, padding, output_padding, groups, dilation)
    return O[f"conv{rank}d"](x, weight, bias, stride, padding, dilation, groups)


def max_pool(rank: int, x: Any, kernel_size: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
             dilation: Sequence[int] = (1,), ceil_mode: bool = False, indices: bool = False) -> Any:
    """Maximum over windows; several of ATen's operators are this."""
    kernel = _spread(kernel_size, rank)
    return O[f"max_pool{rank}d"](x, kernel, _spread(stride, rank) if stride else kernel, _spread(padding, rank),
                                 _spread(dilation, rank), ceil_mode, indices)


@row("max_pool2d_with_indices")
def max_pool2d(x: Any, kernel_size: Any, stride: Any = (), padding: Any = (0,), dilation: Any = (1,),
               ceil_mode: bool = False) -> Any:
    return max_pool(2, x, kernel_size, stride, padding, dilation, ceil_mode, True)


@row("max_pool3d_with_indices")
def max_pool3d(x: Any, kernel_size: Any, stride: Any = (), padding: Any = (0,), dilation: Any = (1,),
               ceil_mode: bool = False) -> Any:
    return max_pool(3, x, kernel_size, stride, padding, dilation, ceil_mode, True)


def avg_pool(rank: int, x: Any, kernel_size: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
             ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None) -> Any:
    """Mean over windows."""
    kernel = _spread(kernel_size, rank)
    strides = _spread(stride, rank) if stride else kernel
    if rank == 1:
        return O["avg_pool1d"](x, kernel, strides, _spread(padding, rank), ceil_mode, count_include_pad)
    return O[f"avg_pool{rank}d"](x, kernel, strides, _spread(padding, rank), ceil_mode, count_include_pad,
                                 divisor_override)


@row("avg_pool1d")
def avg_pool1d(x: Any, *settings: Any) -> Any:
    return avg_pool(1, x, *settings)


@row("avg_pool2d")
def avg_pool2d(x: Any, *settings: Any) -> Any:
    return avg_pool(2, x, *settings)


@row("avg_pool3d")
def avg_pool3d(x: Any, *settings: Any) -> Any:
    return avg_pool(3, x, *settings)


@row("_adaptive_avg_pool2d")
def adaptive_avg_pool2d(x: Any, size: Sequence[int]) -> Any:
    return O["adaptive_avg_pool2d"](x, tuple(size))


@row("_adaptive_avg_pool3d")
def adaptive_avg_pool3d(x: Any, size: Sequence[int]) -> Any:
    return O["adaptive_avg_pool3d"](x, tuple(size))


@row("adaptive_avg_pool1d")
def adaptive_avg_pool1d(x: Any, size: Sequence[int]) -> Any:
    return O["adaptive_avg_pool1d"](x, tuple(size))


@row("adaptive_max_pool2d")
def adaptive_max_pool2d(x: Any, size: Sequence[int]) -> Any:
    return tuple(O["adaptive_max_pool2d"](x, tuple(size), return_indices=True))


@row("adaptive_max_pool3d")
def adaptive_max_pool3d(x: Any, size: Sequence[int]) -> Any:
    return tuple(O["adaptive_max_pool3d"](x, tuple(size), return_indices=True))


INTERPOLATIONS, PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


@row("grid_sampler_2d", "grid_sampler_3d", "grid_sampler")
def grid_sampler(x: Any, grid: Any, interpolation: int, padding: int, align_corners: bool) -> Any:
    return O["grid_sample"](x, grid, INTERPOLATIONS[interpolation], PADDINGS[padding], align_corners)


@row("im2col")
def im2col(x: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    return O["unfold"](x, kernel_size, dilation, padding, stride)


@row("col2im")
def col2im(x: Any, size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    return O["fold"](x, size, kernel_size, dilation, padding, stride)
