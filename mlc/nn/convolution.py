"""Convolutions and their transposes, with the parameters, arguments and initial values of torch.nn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from mlc.frontend.functions import convolution as C
from mlc.frontend.functions import shape as S
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.ir.diag import UserError
from mlc.nn import anew, init
from mlc.nn.module import Module

Ints = int | Sequence[int]
PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """Weights and settings; `spatial` dimensions come after batch and channels."""

    _parameters = ("weight", "bias")
    spatial: ClassVar[int]
    transposed: ClassVar[bool] = False
    padding: Any
    padding_mode: str

    def _check(self, in_channels: int, out_channels: int, groups: int) -> None:
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise UserError(f"{in_channels} and {out_channels} channels are not {groups} equal groups",
                            code="MLC0358", loc=user_loc(), hint="both are multiples of groups")

    def _set(self, in_channels: int, out_channels: int, groups: int, kernel_size: Ints, stride: Ints,
             dilation: Ints) -> None:
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = C.each(kernel_size, self.spatial, "kernel_size", 1)
        self.stride = C.each(stride, self.spatial, "stride", 1)
        self.dilation = C.each(dilation, self.spatial, "dilation", 1)

    def _fill(self, shape: tuple[int, ...], bias: bool, device: Any, dtype: DTypeLike,
              generator: init.Generator | None) -> None:
        """Uniform within 1 / sqrt(inputs of an output), as the layers of torch.nn begin."""
        bound, dtype = init.bound(init.fans(shape)[0]), dtype or "float32"
        self.weight = init.uniform(shape, -bound, bound, dtype, generator)
        self.bias = init.uniform((self.out_channels,), -bound, bound, dtype, generator) if bias else None
        self.to(device=device)

    def reset_parameters(self) -> None:
        """Give the parameters the values of a new layer.

        Example:
            >>> nn.Conv1d(2, 3, 1).reset_parameters()
        """
        anew.uniform(init.fans(self.weight.shape)[0], self.weight, self.bias)

    def extra_repr(self) -> str:
        same = (0,) * self.spatial
        output_padding = getattr(self, "output_padding", same)
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        parts += [f"padding={self.padding}"] * (self.padding != same)
        parts += [f"dilation={self.dilation}"] * (self.dilation != (1,) * self.spatial)
        parts += [f"output_padding={output_padding}"] * (output_padding != same)
        parts += [f"groups={self.groups}"] * (self.groups != 1) + ["bias=False"] * (self.bias is None)
        parts += [f"padding_mode={self.padding_mode}"] * (self.padding_mode != "zeros")
        return ", ".join(parts)


class _Conv(_Convolution):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: Ints, stride: Ints = 1,
                 padding: Ints | str = 0, dilation: Ints = 1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", device: Any = None, dtype: DTypeLike = None,
                 generator: init.Generator | None = None) -> None:
        self._check(in_channels, out_channels, groups)
        if padding_mode not in PADDING_MODES:
            raise UserError(f"padding_mode = {padding_mode!r}", code="MLC0360", loc=user_loc(),
                            hint="one of " + ", ".join(PADDING_MODES))
        self._set(in_channels, out_channels, groups, kernel_size, stride, dilation)
        self.padding = padding if isinstance(padding, str) else C.each(padding, self.spatial, "padding", 0)
        self.padding_mode = padding_mode
        self._fill((out_channels, in_channels // groups, *self.kernel_size), bias, device, dtype, generator)

    def forward(self, input: Operand) -> Tensor:
        convolve = (C.conv1d, C.conv2d, C.conv3d)[self.spatial - 1]
        if self.padding_mode == "zeros":
            return convolve(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)
        stride, dilation = (C.each(n, self.spatial, what, 1)
                            for n, what in ((self.stride, "stride"), (self.dilation, "dilation")))
        low, high = C.pads(self.padding, self.weight.shape[2:], stride, dilation)
        around: list[Any] = [n for pair in zip(reversed(low), reversed(high)) for n in pair]
        input = S.pad(input, around, self.padding_mode)
        return convolve(input, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)


class Conv1d(_Conv):
    """Convolution (cross-correlation) over 1 dimension: y = weight * x + bias.

    y[n, o, i] = bias[o] + sum over c, k of weight[o, c, k] * x[n, c, i * stride + k * dilation - padding]. With groups,
    the channels of the input and of the result are divided into that many parts, which have nothing to do with each
    other. Both parameters are at first uniform in [-b, b) with b = 1/sqrt(in_channels / groups * elements of the
    kernel), as in PyTorch.

    Shape:
        [n, in_channels, l] or [in_channels, l] -> [n, out_channels, l'] or [out_channels, l'], where the length becomes
        floor((size + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1.

    Attributes:
        weight: Parameter [out_channels, in_channels / groups, *kernel_size].
        bias: Parameter [out_channels], or None.

    Args:
        in_channels: Number of channels of the input.
        out_channels: Number of channels of the result.
        kernel_size: Size of the window. An integer, as for all sizes below.
        stride: Distance from one window to the next.
        padding: Elements added on both sides; "valid" for none, "same" for as many as keep the size, with stride 1.
        dilation: Distance from one element of a window to the next.
        groups: Number of parts of the channels.
        bias: Whether a bias is added.
        padding_mode: Elements that are added: "zeros", "reflect", "replicate" or "circular".
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of the parameters; None for float32.
        generator: Source of the initial values; None for the default generator.

    Raises:
        UserError: The channels are not divisible by `groups` (MLC0358), a size or mode is not allowed (MLC0360), a
            tuple has the wrong length (MLC0357), the input has the wrong number of dimensions (MLC0364) or channels
            (MLC0367), or a window does not fit (MLC0115).
        UserTypeError: The input is of another floating-point dtype than the parameters (MLC0420).

    Example:
        >>> nn.Conv1d(2, 4, 3, padding=1)(mlc.ones(1, 2, 5)).shape
        (1, 4, 5)
    """

    spatial = 1


class Conv2d(_Conv):
    """Convolution (cross-correlation) over 2 dimensions: y = weight * x + bias.

    y[n, o, i, j] = bias[o] + sum over c, k, l of weight[o, c, k, l] * x[n, c, i * s + k * d, j * s + l * d]. Here s is
    the stride, d the dilation, and x is padded. With groups, the channels of the input and of the result are divided
    into that many parts, which have nothing to do with each other. Both parameters are at first uniform in [-b, b) with
    b = 1/sqrt(in_channels / groups * elements of the kernel), as in PyTorch.

    Shape:
        [n, in_channels, h, w] or [in_channels, h, w] -> [n, out_channels, h', w'] or [out_channels, h', w'], where each
        of h and w becomes floor((size + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1.

    Attributes:
        weight: Parameter [out_channels, in_channels / groups, *kernel_size].
        bias: Parameter [out_channels], or None.

    Args:
        in_channels: Number of channels of the input.
        out_channels: Number of channels of the result.
        kernel_size: Size of the window. An integer, or two, as for all sizes below.
        stride: Distance from one window to the next.
        padding: Elements added on both sides; "valid" for none, "same" for as many as keep the size, with stride 1.
        dilation: Distance from one element of a window to the next.
        groups: Number of parts of the channels.
        bias: Whether a bias is added.
        padding_mode: Elements that are added: "zeros", "reflect", "replicate" or "circular".
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of the parameters; None for float32.
        generator: Source of the initial values; None for the default generator.

    Raises:
        UserError: The channels are not divisible by `groups` (MLC0358), a size or mode is not allowed (MLC0360), a
            tuple has the wrong length (MLC0357), the input has the wrong number of dimensions (MLC0364) or channels
            (MLC0367), or a window does not fit (MLC0115).
        UserTypeError: The input is of another floating-point dtype than the parameters (MLC0420).

    Example:
        >>> nn.Conv2d(2, 4, 3, padding=1)(mlc.ones(1, 2, 5, 5)).shape
        (1, 4, 5, 5)
    """

    spatial = 2


class Conv3d(_Conv):
    """Convolution (cross-correlation) over 3 dimensions: y = weight * x + bias.

    y[n, o, i, j, m] = bias[o] + sum over c and a window of weight[o, c, ...] * x[n, c, ...]. `Conv1d` has the formula
    of one dimension. With groups, the channels of the input and of the result are divided into that many parts, which
    have nothing to do with each other. Both parameters are at first uniform in [-b, b) with b = 1/sqrt(in_channels /
    groups * elements of the kernel), as in PyTorch.

    Shape:
        [n, in_channels, d, h, w] or [in_channels, d, h, w] -> [n, out_channels, d', h', w'] or [out_channels, d', h',
        w'], where each of d, h and w becomes floor((size + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) +
        1.

    Attributes:
        weight: Parameter [out_channels, in_channels / groups, *kernel_size].
        bias: Parameter [out_channels], or None.

    Args:
        in_channels: Number of channels of the input.
        out_channels: Number of channels of the result.
        kernel_size: Size of the window. An integer, or three, as for all sizes below.
        stride: Distance from one window to the next.
        padding: Elements added on both sides; "valid" for none, "same" for as many as keep the size, with stride 1.
        dilation: Distance from one element of a window to the next.
        groups: Number of parts of the channels.
        bias: Whether a bias is added.
        padding_mode: Elements that are added: "zeros", "reflect", "replicate" or "circular".
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of the parameters; None for float32.
        generator: Source of the initial values; None for the default generator.

    Raises:
        UserError: The channels are not divisible by `groups` (MLC0358), a size or mode is not allowed (MLC0360), a
            tuple has the wrong length (MLC0357), the input has the wrong number of dimensions (MLC0364) or channels
            (MLC0367), or a window does not fit (MLC0115).
        UserTypeError: The input is of another floating-point dtype than the parameters (MLC0420).

    Example:
        >>> nn.Conv3d(2, 4, 3, padding=1)(mlc.ones(1, 2, 5, 5, 5)).shape
        (1, 4, 5, 5, 5)
    """

    spatial = 3


class _ConvTranspose(_Convolution):
    transposed = True

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Ints, stride: Ints = 1, padding: Ints = 0,
                 output_padding: Ints = 0, groups: int = 1, bias: bool = True, dilation: Ints = 1,
                 padding_mode: str = "zeros", device: Any = None, dtype: DTypeLike = None,
                 generator: init.Generator | None = None) -> None:
        self._check(in_channels, out_channels, groups)
        if padding_mode != "zeros":
            raise UserError(f"padding_mode = {padding_mode!r} of a transposed convolution, expected 'zeros'",
                            code="MLC0360", loc=user_loc())
        self._set(in_channels, out_channels, groups, kernel_size, stride, dilation)
        self.padding = C.each(padding, self.spatial, "padding", 0)
        self.output_padding, self.padding_mode = C.each(output_padding, self.spatial, "output_padding", 0), padding_mode
        self._fill((in_channels, out_channels // groups, *self.kernel_size), bias, device, dtype, generator)

    def forward(self, input: Operand, output_size: Sequence[int] | None = None) -> Tensor:
        """Apply the layer.

        Args:
            input: As of the class.
            output_size: Spatial sizes of the result, of the `stride` that are possible along each dimension; by default
                `output_padding` says which.

        Returns:
            As of the class.

        Raises:
            UserError: The result has no such size (MLC0360).
        """
        transposed: Any = (C.conv_transpose1d, C.conv_transpose2d, C.conv_transpose3d)[self.spatial - 1]
        added = self.output_padding if output_size is None else self._added(input, output_size)
        out: Tensor = transposed(input, self.weight, self.bias, self.stride, self.padding, added, self.groups,
                                 self.dilation)
        return out

    def _added(self, input: Operand, wanted: Sequence[int]) -> tuple[Any, ...]:
        """The `output_padding` by which the result has these sizes, before which those of others may be."""
        n, shape = self.spatial, tuple(getattr(input, "shape", ()))
        if len(shape) not in (n + 1, n + 2):
            raise UserError(f"input has {len(shape)} dimensions, expected {n + 1} or {n + 2}", code="MLC0364",
                            loc=user_loc())
        least = [(size - 1) * s - 2 * p + d * (k - 1) + 1 for size, s, p, d, k in zip(
            shape[-n:], self.stride, self.padding, self.dilation, self.kernel_size)]
        found = tuple(size - low for size, low in zip(wanted[-n:], least))
        if len(wanted) not in (n, n + 2) or not all(0 <= x < s for x, s in zip(found, self.stride)):
            most = [low + s - 1 for low, s in zip(least, self.stride)]
            raise UserError(f"output_size = {tuple(wanted)}, and the result has sizes from {least} to {most}",
                            code="MLC0360", loc=user_loc())
        return found


class ConvTranspose1d(_ConvTranspose):
    """Transposed convolution over 1 dimension: the transpose of the linear map that `Conv1d` is.

    Each x[n, c, i] * weight[c, o, k] is added to the result at i * stride + k * dilation - padding. Both
    parameters are at first uniform in [-b, b) with b = 1/sqrt(out_channels / groups * elements of the kernel), as in
    PyTorch. (Zeiler, Krishnan, Taylor and Fergus 2010, "Deconvolutional Networks".)

    Shape:
        [n, in_channels, l] or [in_channels, l] -> [n, out_channels, l'] or [out_channels, l'], where the length becomes
        (size - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1.

    Attributes:
        weight: Parameter [in_channels, out_channels / groups, *kernel_size].
        bias: Parameter [out_channels], or None.

    Args:
        in_channels: Number of channels of the input.
        out_channels: Number of channels of the result.
        kernel_size: Size of the window. An integer, as for all sizes below.
        stride: Distance from one window to the next, in the result.
        padding: Elements cut off on both sides of the result.
        output_padding: Elements added at the end of the result; less than the stride or the dilation.
        groups: Number of parts of the channels that have nothing to do with each other.
        bias: Whether a bias is added.
        dilation: Distance from one element of a window to the next.
        padding_mode: "zeros"; PyTorch has no other either.
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of the parameters; None for float32.
        generator: Source of the initial values; None for the default generator.

    Raises:
        UserError: The channels are not divisible by `groups` (MLC0358), a size is not allowed (MLC0360), a tuple has
            the wrong length (MLC0357), the input has the wrong number of dimensions (MLC0364) or channels (MLC0367), or
            nothing is left of the result (MLC0115).
        UserTypeError: The input is of another floating-point dtype than the parameters (MLC0420).

    Example:
        >>> nn.ConvTranspose1d(2, 4, 3, stride=2)(mlc.ones(1, 2, 5)).shape
        (1, 4, 11)
    """

    spatial = 1


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution over 2 dimensions: the transpose of the linear map that `Conv2d` is.

    Each x[n, c, i, j] * weight[c, o, k, l] is added to the result at index * stride + offset * dilation - padding. Both
    parameters are at first uniform in [-b, b) with b = 1/sqrt(out_channels / groups * elements of the kernel), as in
    PyTorch. (Zeiler, Krishnan, Taylor and Fergus 2010, "Deconvolutional Networks".)

    Shape:
        [n, in_channels, h, w] or [in_channels, h, w] -> [n, out_channels, h', w'] or [out_channels, h', w'], where each
        of h and w becomes (size - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1.

    Attributes:
        weight: Parameter [in_channels, out_channels / groups, *kernel_size].
        bias: Parameter [out_channels], or None.

    Args:
        in_channels: Number of channels of the input.
        out_channels: Number of channels of the result.
        kernel_size: Size of the window. An integer, or two, as for all sizes below.
        stride: Distance from one window to the next, in the result.
        padding: Elements cut off on both sides of the result.
        output_padding: Elements added at the end of the result; less than the stride or the dilation.
        groups: Number of parts of the channels that have nothing to do with each other.
        bias: Whether a bias is added.
        dilation: Distance from one element of a window to the next.
        padding_mode: "zeros"; PyTorch has no other either.
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of the parameters; None for float32.
        generator: Source of the initial values; None for the default generator.

    Raises:
        UserError: The channels are not divisible by `groups` (MLC0358), a size is not allowed (MLC0360), a tuple has
            the wrong length (MLC0357), the input has the wrong number of dimensions (MLC0364) or channels (MLC0367), or
            nothing is left of the result (MLC0115).
        UserTypeError: The input is of another floating-point dtype than the parameters (MLC0420).

    Example:
        >>> nn.ConvTranspose2d(2, 4, 3, stride=2)(mlc.ones(1, 2, 5, 5)).shape
        (1, 4, 11, 11)
    """

    spatial = 2


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution over 3 dimensions: the transpose of the linear map that `Conv3d` is.

    Each x[n, c, i, j, m] * weight[c, o, k, l, q] is added to the result at index * stride + offset * dilation -
    padding. Both parameters are at first uniform in [-b, b) with b = 1/sqrt(out_channels / groups * elements of the
    kernel), as in PyTorch. (Zeiler, Krishnan, Taylor and Fergus 2010, "Deconvolutional Networks".)

    Shape:
        [n, in_channels, d, h, w] or [in_channels, d, h, w] -> [n, out_channels, d', h', w'] or [out_channels, d', h',
        w'], where each of d, h and w becomes (size - 1) * stride - 2 * padding + dilation * (kernel_size - 1) +
        output_padding + 1.

    Attributes:
        weight: Parameter [in_channels, out_channels / groups, *kernel_size].
        bias: Parameter [out_channels], or None.

    Args:
        in_channels: Number of channels of the input.
        out_channels: Number of channels of the result.
        kernel_size: Size of the window. An integer, or three, as for all sizes below.
        stride: Distance from one window to the next, in the result.
        padding: Elements cut off on both sides of the result.
        output_padding: Elements added at the end of the result; less than the stride or the dilation.
        groups: Number of parts of the channels that have nothing to do with each other.
        bias: Whether a bias is added.
        dilation: Distance from one element of a window to the next.
        padding_mode: "zeros"; PyTorch has no other either.
        device: Device of the parameters; None for the CPU.
        dtype: Floating-point dtype of the parameters; None for float32.
        generator: Source of the initial values; None for the default generator.

    Raises:
        UserError: The channels are not divisible by `groups` (MLC0358), a size is not allowed (MLC0360), a tuple has
            the wrong length (MLC0357), the input has the wrong number of dimensions (MLC0364) or channels (MLC0367), or
            nothing is left of the result (MLC0115).
        UserTypeError: The input is of another floating-point dtype than the parameters (MLC0420).

    Example:
        >>> nn.ConvTranspose3d(2, 4, 3, stride=2)(mlc.ones(1, 2, 5, 5, 5)).shape
        (1, 4, 11, 11, 11)
    """

    spatial = 3
