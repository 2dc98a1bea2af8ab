"""Convolutions and their transposes, with the parameters, arguments and initial values of torch.nn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from mlc.frontend.functions import convolution as C
from mlc.frontend.functions import shape as S
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.ir.diag import UserError
from mlc.nn import init
from mlc.nn.module import Module

Ints = int | Sequence[int]
PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """Weights and settings; `spatial` dimensions come after batch and channels."""

    _parameters = ("weight", "bias")
    spatial: ClassVar[int]

    def _check(self, in_channels: int, out_channels: int, groups: int) -> None:
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise UserError(f"{in_channels} and {out_channels} channels are not {groups} equal groups",
                            code="MLC0358", loc=user_loc())

    def _fill(self, shape: tuple[int, ...], outputs: int, bias: bool, dtype: DTypeLike,
              generator: init.Generator | None) -> None:
        """Uniform within 1 / sqrt(inputs of an output), as the layers of torch.nn begin."""
        bound = init.bound(init.fans(shape)[0])
        self.weight = init.uniform(shape, -bound, bound, dtype, generator)
        self.bias = init.uniform((outputs,), -bound, bound, dtype, generator) if bias else None


class _Conv(_Convolution):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: Ints, stride: Ints = 1,
                 padding: Ints | str = 0, dilation: Ints = 1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", dtype: DTypeLike = "float32",
                 generator: init.Generator | None = None) -> None:
        self._check(in_channels, out_channels, groups)
        if padding_mode not in PADDING_MODES:
            raise UserError(f"padding_mode = {padding_mode!r}", code="MLC0360", loc=user_loc(),
                            hint="one of " + ", ".join(PADDING_MODES))
        kernel = C.each(kernel_size, self.spatial, "kernel_size", 1)
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self.padding_mode = padding_mode
        self._fill((out_channels, in_channels // groups, *kernel), out_channels, bias, dtype, generator)

    def forward(self, x: Operand) -> Tensor:
        convolve = (C.conv1d, C.conv2d, C.conv3d)[self.spatial - 1]
        if self.padding_mode == "zeros":
            return convolve(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)
        stride, dilation = (C.each(n, self.spatial, what, 1)
                            for n, what in ((self.stride, "stride"), (self.dilation, "dilation")))
        low, high = C.pads(self.padding, self.weight.shape[2:], stride, dilation)
        around: list[Any] = [n for pair in zip(reversed(low), reversed(high)) for n in pair]
        x = S.pad(x, around, self.padding_mode)
        return convolve(x, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)


class Conv1d(_Conv):
    """[n, c, l] to [n, o, l']: result[n, o, i] = bias[o] + sum of weight[o, c, k] * x[n, c, i * stride + k * dilation]
    """

    spatial = 1


class Conv2d(_Conv):
    """Conv1d over the two dimensions of images [n, c, h, w]"""

    spatial = 2


class Conv3d(_Conv):
    """Conv1d over three dimensions [n, c, d, h, w]"""

    spatial = 3


class _ConvTranspose(_Convolution):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: Ints, stride: Ints = 1, padding: Ints = 0,
                 output_padding: Ints = 0, groups: int = 1, bias: bool = True, dilation: Ints = 1,
                 dtype: DTypeLike = "float32", generator: init.Generator | None = None) -> None:
        self._check(in_channels, out_channels, groups)
        kernel = C.each(kernel_size, self.spatial, "kernel_size", 1)
        self.stride, self.padding, self.output_padding = stride, padding, output_padding
        self.groups, self.dilation = groups, dilation
        self._fill((in_channels, out_channels // groups, *kernel), out_channels, bias, dtype, generator)

    def forward(self, x: Operand) -> Tensor:
        transposed: Any = (C.conv_transpose1d, C.conv_transpose2d, C.conv_transpose3d)[self.spatial - 1]
        out: Tensor = transposed(x, self.weight, self.bias, self.stride, self.padding, self.output_padding,
                                 self.groups, self.dilation)
        return out


class ConvTranspose1d(_ConvTranspose):
    """[n, c, l] to [n, o, l']: the map of gradients through Conv1d with the same settings"""

    spatial = 1


class ConvTranspose2d(_ConvTranspose):
    """ConvTranspose1d over the two dimensions of images [n, c, h, w]"""

    spatial = 2


class ConvTranspose3d(_ConvTranspose):
    """ConvTranspose1d over three dimensions [n, c, d, h, w]"""

    spatial = 3
