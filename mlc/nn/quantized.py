"""Layers whose products are of integers of 8 bits: what `mlc.quantization.quantize` makes of layers of `mlc.nn`.

A layer rounds its input to 256 steps of one scale (`input_scale`, `zero_point`) and multiplies them with weights that
are rounded to 255 steps of a scale for each output. Products are added exactly, as int32, and multiplied with both
scales at the end.

Example:
    >>> layer = nn.quantized.Linear(nn.Linear(2, 3), low=-1.0, high=1.0)
    >>> layer.integers.dtype, layer(mlc.zeros(4, 2)).shape
    (mlc.int8, (4, 3))
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from mlc.frontend.functions import quantized
from mlc.frontend.functions.create.data import tensor
from mlc.frontend.tensor import Operand, Tensor
from mlc.nn import convolution, linear
from mlc.nn.module import Module

STEPS, LARGEST = 255, 127
"""The last step of an input, and the largest one of a weight."""


class _Quantized(Module):
    """The buffers of a quantised layer.

    The sum over c of integer * (step - zero_point) is that of integer * step less a number of each output, which is
    added to the bias once and for all. Neither is named as in the layer that is quantised: code that reads its weight
    or bias would take them for these.
    """

    def _set(self, weight: np.ndarray[Any, Any], bias: np.ndarray[Any, Any] | None, low: float, high: float) -> None:
        low, high = min(low, 0.0), max(high, 0.0)
        step = np.float32(max((high - low) / STEPS, float(np.finfo(np.float32).tiny)))
        zero = int(np.clip(np.rint(-low / step), 0, STEPS))
        rows = weight.reshape(len(weight), prod(weight.shape[1:])).astype(np.float32)
        most = np.abs(rows).max(1, initial=0.0)
        scales = np.where(most > 0, most / LARGEST, 1.0).astype(np.float32)
        steps = np.clip(np.rint(rows / scales[:, None]), -LARGEST, LARGEST).astype(np.int8)
        scale = scales * step
        offset = scale * (zero * steps.sum(1, dtype=np.int64)).astype(np.float32)
        self.register_buffer("integers", tensor(steps.reshape(weight.shape)))
        self.register_buffer("scale", tensor(scale))
        self.register_buffer("offset", tensor(((0.0 if bias is None else bias) - offset).astype(np.float32)))
        self.register_buffer("input_scale", tensor(step))
        self.register_buffer("zero_point", tensor(np.uint8(zero)))

    def _get_name(self) -> str:
        return f"Quantized{super()._get_name()}"

    def _steps(self, input: Operand) -> Any:
        return quantized.quantize_per_tensor(input, self.input_scale, self.zero_point)

    def _numbers(self, total: Any, each: tuple[int, ...], input: Any) -> Tensor:
        """The numbers that sums stand for, in the input's type if that is one of floats."""
        out = total.float() * self.scale.reshape(each).float() + self.offset.reshape(each).float()
        narrow = isinstance(input, Tensor) and input.dtype.is_floating_point
        return out.to(input.dtype) if narrow else out  # type: ignore[no-any-return]


class Linear(_Quantized):
    """Affine map of the last dimension, x @ weight.T + bias, by products of integers of 8 bits.

    The result is (sum over c of integers[o, c] * step(x)[c]) * scale[o] + offset[o], where step(x) is
    clamp(round(x / input_scale) + zero_point, 0, 255). `mlc.quantization.quantize` makes such layers.

    Shape:
        [..., in_features] -> [..., out_features], in the input's type; float32 of integers.

    Attributes:
        integers: Buffer [out_features, in_features] of int8.
        scale: Buffer [out_features]: the scale of the weights times that of the input.
        offset: Buffer [out_features]: the bias, less what the zero point adds to each sum.
        input_scale: Buffer: the distance of two steps of the input.
        zero_point: Buffer: the step that stands for 0, of uint8.

    Args:
        layer: The layer of `mlc.nn` that is rounded.
        low: The least number of its inputs.
        high: The greatest number of its inputs.

    Example:
        >>> nn.quantized.Linear(nn.Linear(2, 3), -1.0, 1.0)(mlc.ones(4, 2)).shape
        (4, 3)
    """

    def __init__(self, layer: linear.Linear, low: float, high: float) -> None:
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self._set(_array(layer.weight), _array(layer.bias), low, high)

    _shown = ("in_features", "out_features")

    def forward(self, input: Operand) -> Tensor:
        return self._numbers(quantized.linear_integer(self._steps(input), self.integers), (-1,), input)


class _Conv(_Quantized):
    def __init__(self, layer: Any, low: float, high: float) -> None:
        self.in_channels, self.out_channels, self.groups = layer.in_channels, layer.out_channels, layer.groups
        self.kernel_size, self.stride, self.padding = layer.kernel_size, layer.stride, layer.padding
        self.dilation = layer.dilation
        self._set(_array(layer.weight), _array(layer.bias), low, high)

    _shown = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups")

    def forward(self, input: Operand) -> Tensor:
        total = quantized.conv_integer(self._steps(input), self.integers, self.zero_point, self.stride, self.padding,
                                       self.dilation, self.groups)
        return self._numbers(total, (-1, *(1,) * len(self.kernel_size)), input)


class Conv1d(_Conv):
    """Convolution of rows by products of integers of 8 bits.

    The result is (the convolution of step(x) with integers)[n, o] * scale[o] + offset[o], where step(x) is
    clamp(round(x / input_scale) + zero_point, 0, 255), and images are padded with `zero_point`.
    `mlc.quantization.quantize` makes such layers.

    Shape:
        [n, in_channels, w] -> [n, out_channels, w'], as of `nn.Conv1d`, in the input's type.

    Attributes:
        integers: Buffer [out_channels, in_channels / groups, *kernel_size] of int8.
        scale: Buffer [out_channels]: the scale of the weights times that of the input.
        offset: Buffer [out_channels]: the bias, less what the zero point adds to each sum.
        input_scale: Buffer: the distance of two steps of the input.
        zero_point: Buffer: the step that stands for 0, of uint8.

    Args:
        layer: The layer of `mlc.nn` that is rounded.
        low: The least number of its inputs.
        high: The greatest number of its inputs.

    Example:
        >>> nn.quantized.Conv1d(nn.Conv1d(2, 4, 3, padding=1), -1.0, 1.0)(mlc.ones(1, 2, 5)).shape
        (1, 4, 5)
    """


class Conv2d(_Conv):
    """Convolution of images by products of integers of 8 bits.

    The result is (the convolution of step(x) with integers)[n, o] * scale[o] + offset[o], where step(x) is
    clamp(round(x / input_scale) + zero_point, 0, 255), and images are padded with `zero_point`.
    `mlc.quantization.quantize` makes such layers.

    Shape:
        [n, in_channels, h, w] -> [n, out_channels, h', w'], as of `nn.Conv2d`, in the input's type.

    Attributes:
        integers: Buffer [out_channels, in_channels / groups, *kernel_size] of int8.
        scale: Buffer [out_channels]: the scale of the weights times that of the input.
        offset: Buffer [out_channels]: the bias, less what the zero point adds to each sum.
        input_scale: Buffer: the distance of two steps of the input.
        zero_point: Buffer: the step that stands for 0, of uint8.

    Args:
        layer: The layer of `mlc.nn` that is rounded.
        low: The least number of its inputs.
        high: The greatest number of its inputs.

    Example:
        >>> nn.quantized.Conv2d(nn.Conv2d(2, 4, 3, padding=1), -1.0, 1.0)(mlc.ones(1, 2, 5, 5)).shape
        (1, 4, 5, 5)
    """


class Conv3d(_Conv):
    """Convolution of volumes by products of integers of 8 bits.

    The result is (the convolution of step(x) with integers)[n, o] * scale[o] + offset[o], where step(x) is
    clamp(round(x / input_scale) + zero_point, 0, 255), and images are padded with `zero_point`.
    `mlc.quantization.quantize` makes such layers.

    Shape:
        [n, in_channels, d, h, w] -> [n, out_channels, d', h', w'], as of `nn.Conv3d`, in the input's type.

    Attributes:
        integers: Buffer [out_channels, in_channels / groups, *kernel_size] of int8.
        scale: Buffer [out_channels]: the scale of the weights times that of the input.
        offset: Buffer [out_channels]: the bias, less what the zero point adds to each sum.
        input_scale: Buffer: the distance of two steps of the input.
        zero_point: Buffer: the step that stands for 0, of uint8.

    Args:
        layer: The layer of `mlc.nn` that is rounded.
        low: The least number of its inputs.
        high: The greatest number of its inputs.

    Example:
        >>> nn.quantized.Conv3d(nn.Conv3d(2, 4, 3, padding=1), -1.0, 1.0)(mlc.ones(1, 2, 5, 5, 5)).shape
        (1, 4, 5, 5, 5)
    """


def _array(x: Any) -> Any:
    return None if x is None else x.detach().float().cpu().numpy()


OF: dict[type, Any] = {linear.Linear: Linear, convolution.Conv1d: Conv1d, convolution.Conv2d: Conv2d,
                       convolution.Conv3d: Conv3d}
"""The quantised layer of each layer."""
