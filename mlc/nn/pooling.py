"""Pooling as modules, under the names of torch.nn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from mlc.frontend.functions import pooling as P
from mlc.frontend.functions.convolution import each
from mlc.frontend.tensor import Operand, Tensor
from mlc.nn.module import Module

Ints = int | Sequence[int]


class Pool(Module):
    """Settings of windows over the last `spatial` dimensions."""

    spatial: ClassVar[int]


class _MaxPool(Pool):
    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1,
                 return_indices: bool = False, ceil_mode: bool = False) -> None:
        self.kernel_size, self.padding, self.dilation = kernel_size, padding, dilation
        self.stride = kernel_size if stride is None else stride
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Operand) -> Any:
        pool = (P.max_pool1d, P.max_pool2d, P.max_pool3d)[self.spatial - 1]
        return pool(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
                    self.return_indices)


class _AvgPool(Pool):
    _shown = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: int | None = None) -> None:
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Operand) -> Tensor:
        pool = P.avg_pool2d if self.spatial == 2 else P.avg_pool3d
        return pool(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
                    self.divisor_override)


class _LPPool(Pool):
    _shown = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(self, norm_type: float, kernel_size: Ints, stride: Ints | None = None,
                 ceil_mode: bool = False) -> None:
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Operand) -> Tensor:
        pool = (P.lp_pool1d, P.lp_pool2d, P.lp_pool3d)[self.spatial - 1]
        return pool(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class AvgPool1d(Pool):
    """Average pooling: the mean of each window over 1 dimension.

    Padding counts as 0. The input is of floats.

    Shape:
        [n, c, l] or [c, l] -> [n, c, l'] or [c, l'], where the length becomes
        floor((size + 2 * padding - kernel_size) / stride) + 1.

    Args:
        kernel_size: Size of the window. An integer, as for all sizes below.
        stride: Distance from one window to the next; None for kernel_size.
        padding: Elements added on both sides; at most half of kernel_size.
        ceil_mode: Whether a last window that begins within the input but ends beyond it counts.
        count_include_pad: Whether the mean divides by the elements of the padding too.

    Raises:
        UserError: A size is not allowed, or the padding is more than half of the window (MLC0360), a tuple has the
            wrong length (MLC0357), the input has the wrong number of dimensions (MLC0364), or a window does not fit
            (MLC0367).
        UserTypeError: The input is not of floats (MLC0359).

    Example:
        >>> nn.AvgPool1d(2)(mlc.arange(4.0).reshape(1, 4)).flatten()
        tensor([0.5, 2.5], dtype=mlc.float32)
    """

    _shown = ("kernel_size", "stride", "padding")

    spatial = 1

    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> None:
        self.kernel_size, self.padding = each(kernel_size, 1, "kernel_size", 1), each(padding, 1, "padding", 0)
        self.stride = self.kernel_size if stride is None else each(stride, 1, "stride", 1)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Operand) -> Tensor:
        return P.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AvgPool2d(_AvgPool):
    """Average pooling: the mean of each window over 2 dimensions.

    Padding counts as 0. The input is of floats.

    Shape:
        [n, c, h, w] or [c, h, w] -> [n, c, h', w'] or [c, h', w'], where each of h and w becomes
        floor((size + 2 * padding - kernel_size) / stride) + 1.

    Args:
        kernel_size: Size of the window. An integer, or two, as for all sizes below.
        stride: Distance from one window to the next; None for kernel_size.
        padding: Elements added on both sides; at most half of kernel_size.
        ceil_mode: Whether a last window that begins within the input but ends beyond it counts.
        count_include_pad: Whether the mean divides by the elements of the padding too.
        divisor_override: Divisor in place of the number of elements, not 0; None for that number.

    Raises:
        UserError: A size is not allowed, or the padding is more than half of the window (MLC0360), a tuple has the
            wrong length (MLC0357), the input has the wrong number of dimensions (MLC0364), or a window does not fit
            (MLC0367).
        UserTypeError: The input is not of floats (MLC0359).

    Example:
        >>> nn.AvgPool2d(2)(mlc.arange(16.0).reshape(1, 4, 4)).flatten()
        tensor([ 2.5,  4.5, 10.5, 12.5], dtype=mlc.float32)
    """

    spatial = 2


class AvgPool3d(_AvgPool):
    """Average pooling: the mean of each window over 3 dimensions.

    Padding counts as 0. The input is of floats.

    Shape:
        [n, c, d, h, w] or [c, d, h, w] -> [n, c, d', h', w'] or [c, d', h', w'], where each of d, h and w becomes
        floor((size + 2 * padding - kernel_size) / stride) + 1.

    Args:
        kernel_size: Size of the window. An integer, or three, as for all sizes below.
        stride: Distance from one window to the next; None for kernel_size.
        padding: Elements added on both sides; at most half of kernel_size.
        ceil_mode: Whether a last window that begins within the input but ends beyond it counts.
        count_include_pad: Whether the mean divides by the elements of the padding too.
        divisor_override: Divisor in place of the number of elements, not 0; None for that number.

    Raises:
        UserError: A size is not allowed, or the padding is more than half of the window (MLC0360), a tuple has the
            wrong length (MLC0357), the input has the wrong number of dimensions (MLC0364), or a window does not fit
            (MLC0367).
        UserTypeError: The input is not of floats (MLC0359).

    Example:
        >>> nn.AvgPool3d(2)(mlc.arange(64.0).reshape(1, 4, 4, 4)).flatten()
        tensor([10.5, 12.5, 18.5, 20.5, 42.5, 44.5, 50.5, 52.5], dtype=mlc.float32)
    """

    spatial = 3


class MaxPool1d(_MaxPool):
    """Max pooling: the maximum of each window over 1 dimension.

    Padding counts as -inf. A window that holds NaN gives NaN. Of equal maxima the first one takes the gradient.
    Integers become float32.

    Shape:
        [n, c, l] or [c, l] -> [n, c, l'] or [c, l'], where the length becomes floor((size + 2 * padding - dilation *
        (kernel_size - 1) - 1) / stride) + 1; with return_indices a pair of that and int64 indices of the same shape.

    Args:
        kernel_size: Size of the window. An integer, as for all sizes below.
        stride: Distance from one window to the next; None for kernel_size.
        padding: Elements added on both sides; at most half of kernel_size.
        dilation: Distance from one element of a window to the next.
        return_indices: Whether the positions of the maxima, counted in the flattened image, are returned too.
        ceil_mode: Whether a last window that begins within the input but ends beyond it counts.

    Raises:
        UserError: A size is not allowed, or the padding is more than half of the window (MLC0360), a tuple has the
            wrong length (MLC0357), the input has the wrong number of dimensions (MLC0364), or a window does not fit
            (MLC0367).

    Example:
        >>> nn.MaxPool1d(2)(mlc.arange(4).reshape(1, 4)).flatten()
        tensor([1, 3], dtype=mlc.int64)
    """

    spatial = 1


class MaxPool2d(_MaxPool):
    """Max pooling: the maximum of each window over 2 dimensions.

    Padding counts as -inf. A window that holds NaN gives NaN. Of equal maxima the first one takes the gradient.
    Integers become float32.

    Shape:
        [n, c, h, w] or [c, h, w] -> [n, c, h', w'] or [c, h', w'], where each of h and w becomes floor((size + 2 *
        padding - dilation * (kernel_size - 1) - 1) / stride) + 1; with return_indices a pair of that and int64 indices
        of the same shape.

    Args:
        kernel_size: Size of the window. An integer, or two, as for all sizes below.
        stride: Distance from one window to the next; None for kernel_size.
        padding: Elements added on both sides; at most half of kernel_size.
        dilation: Distance from one element of a window to the next.
        return_indices: Whether the positions of the maxima, counted in the flattened image, are returned too.
        ceil_mode: Whether a last window that begins within the input but ends beyond it counts.

    Raises:
        UserError: A size is not allowed, or the padding is more than half of the window (MLC0360), a tuple has the
            wrong length (MLC0357), the input has the wrong number of dimensions (MLC0364), or a window does not fit
            (MLC0367).

    Example:
        >>> nn.MaxPool2d(2)(mlc.arange(16).reshape(1, 4, 4)).flatten()
        tensor([ 5,  7, 13, 15], dtype=mlc.int64)
    """

    spatial = 2


class MaxPool3d(_MaxPool):
    """Max pooling: the maximum of each window over 3 dimensions.

    Padding counts as -inf. A window that holds NaN gives NaN. Of equal maxima the first one takes the gradient.
    Integers become float32.

    Shape:
        [n, c, d, h, w] or [c, d, h, w] -> [n, c, d', h', w'] or [c, d', h', w'], where each of d, h and w becomes
        floor((size + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1; with return_indices a pair of that
        and int64 indices of the same shape.

    Args:
        kernel_size: Size of the window. An integer, or three, as for all sizes below.
        stride: Distance from one window to the next; None for kernel_size.
        padding: Elements added on both sides; at most half of kernel_size.
        dilation: Distance from one element of a window to the next.
        return_indices: Whether the positions of the maxima, counted in the flattened image, are returned too.
        ceil_mode: Whether a last window that begins within the input but ends beyond it counts.

    Raises:
        UserError: A size is not allowed, or the padding is more than half of the window (MLC0360), a tuple has the
            wrong length (MLC0357), the input has the wrong number of dimensions (MLC0364), or a window does not fit
            (MLC0367).

    Example:
        >>> nn.MaxPool3d(2)(mlc.arange(64).reshape(1, 4, 4, 4)).flatten()
        tensor([21, 23, 29, 31, 53, 55, 61, 63], dtype=mlc.int64)
    """

    spatial = 3


class LPPool1d(_LPPool):
    """Power-average pooling: (sum of x**p)**(1/p) of each window over 1 dimension, with p = norm_type.

    Negative sums of an x**p with an odd p have the NaN of a root of a negative number.

    Shape:
        [n, c, l] or [c, l] -> [n, c, l'] or [c, l'], where the length becomes
        floor((size - kernel_size) / stride) + 1.

    Args:
        norm_type: The exponent p, finite and not 0.
        kernel_size: Size of the window. An integer, as for all sizes below.
        stride: Distance from one window to the next; None for kernel_size.
        ceil_mode: Whether a last window that begins within the input but ends beyond it counts.

    Raises:
        UserError: `norm_type` is 0 or infinite, or a size is not allowed (MLC0360), a tuple has the wrong length
            (MLC0357), the input has the wrong number of dimensions (MLC0364), or a window does not fit (MLC0367).
        UserTypeError: The input is not of floats (MLC0359).

    Example:
        >>> nn.LPPool1d(2, 2)(mlc.ones(1, 4)).flatten()
        tensor([1.4142135, 1.4142135], dtype=mlc.float32)
    """

    spatial = 1


class LPPool2d(_LPPool):
    """Power-average pooling: (sum of x**p)**(1/p) of each window over 2 dimensions, with p = norm_type.

    Negative sums of an x**p with an odd p have the NaN of a root of a negative number.

    Shape:
        [n, c, h, w] or [c, h, w] -> [n, c, h', w'] or [c, h', w'], where each of h and w becomes
        floor((size - kernel_size) / stride) + 1.

    Args:
        norm_type: The exponent p, finite and not 0.
        kernel_size: Size of the window. An integer, or two, as for all sizes below.
        stride: Distance from one window to the next; None for kernel_size.
        ceil_mode: Whether a last window that begins within the input but ends beyond it counts.

    Raises:
        UserError: `norm_type` is 0 or infinite, or a size is not allowed (MLC0360), a tuple has the wrong length
            (MLC0357), the input has the wrong number of dimensions (MLC0364), or a window does not fit (MLC0367).
        UserTypeError: The input is not of floats (MLC0359).

    Example:
        >>> nn.LPPool2d(2, 2)(mlc.ones(1, 4, 4)).flatten()
        tensor([2., 2., 2., 2.], dtype=mlc.float32)
    """

    spatial = 2


class LPPool3d(_LPPool):
    """Power-average pooling: (sum of x**p)**(1/p) of each window over 3 dimensions, with p = norm_type.

    Negative sums of an x**p with an odd p have the NaN of a root of a negative number.

    Shape:
        [n, c, d, h, w] or [c, d, h, w] -> [n, c, d', h', w'] or [c, d', h', w'], where each of d, h and w becomes
        floor((size - kernel_size) / stride) + 1.

    Args:
        norm_type: The exponent p, finite and not 0.
        kernel_size: Size of the window. An integer, or three, as for all sizes below.
        stride: Distance from one window to the next; None for kernel_size.
        ceil_mode: Whether a last window that begins within the input but ends beyond it counts.

    Raises:
        UserError: `norm_type` is 0 or infinite, or a size is not allowed (MLC0360), a tuple has the wrong length
            (MLC0357), the input has the wrong number of dimensions (MLC0364), or a window does not fit (MLC0367).
        UserTypeError: The input is not of floats (MLC0359).

    Example:
        >>> nn.LPPool3d(2, 2)(mlc.ones(1, 4, 4, 4)).flatten()
        tensor([2.828427, 2.828427, 2.828427, 2.828427, 2.828427, 2.828427,
                2.828427, 2.828427], dtype=mlc.float32)
    """

    spatial = 3
