"""Pooling as modules, under the names of torch.nn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from mlc.frontend.functions import pooling as P
from mlc.frontend.tensor import Operand, Tensor
from mlc.nn.module import Module

Ints = int | Sequence[int]


class _Pool(Module):
    """Settings of windows over the last `spatial` dimensions."""

    spatial: ClassVar[int]


class _MaxPool(_Pool):
    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1,
                 return_indices: bool = False, ceil_mode: bool = False) -> None:
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, x: Operand) -> Any:
        pool = (P.max_pool1d, P.max_pool2d, P.max_pool3d)[self.spatial - 1]
        return pool(x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)


class _AvgPool(_Pool):
    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: int | None = None) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, x: Operand) -> Tensor:
        pool = P.avg_pool2d if self.spatial == 2 else P.avg_pool3d
        return pool(x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
                    self.divisor_override)


class _LPPool(_Pool):
    def __init__(self, norm_type: float, kernel_size: Ints, stride: Ints | None = None,
                 ceil_mode: bool = False) -> None:
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, x: Operand) -> Tensor:
        pool = (P.lp_pool1d, P.lp_pool2d, P.lp_pool3d)[self.spatial - 1]
        return pool(x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class _AdaptiveAvgPool(_Pool):
    def __init__(self, output_size: Any) -> None:
        self.output_size = output_size

    def forward(self, x: Operand) -> Tensor:
        pool = (P.adaptive_avg_pool1d, P.adaptive_avg_pool2d, P.adaptive_avg_pool3d)[self.spatial - 1]
        return pool(x, self.output_size)


class _AdaptiveMaxPool(_Pool):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, x: Operand) -> Any:
        pool = (P.adaptive_max_pool1d, P.adaptive_max_pool2d, P.adaptive_max_pool3d)[self.spatial - 1]
        return pool(x, self.output_size, self.return_indices)


class AvgPool1d(_Pool):
    """The mean of each window of [n, c, l]"""

    spatial = 1

    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, x: Operand) -> Tensor:
        return P.avg_pool1d(x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AvgPool2d(_AvgPool):
    """The mean of each window of [n, c, h, w]"""

    spatial = 2


class AvgPool3d(_AvgPool):
    """The mean of each window of [n, c, d, h, w]"""

    spatial = 3


class MaxPool1d(_MaxPool):
    """The greatest element of each window of [n, c, l]"""

    spatial = 1


class MaxPool2d(_MaxPool):
    """The greatest element of each window of [n, c, h, w]"""

    spatial = 2


class MaxPool3d(_MaxPool):
    """The greatest element of each window of [n, c, d, h, w]"""

    spatial = 3


class LPPool1d(_LPPool):
    """(sum of x ** p) ** (1 / p) for each window of [n, c, l]"""

    spatial = 1


class LPPool2d(_LPPool):
    """(sum of x ** p) ** (1 / p) for each window of [n, c, h, w]"""

    spatial = 2


class LPPool3d(_LPPool):
    """(sum of x ** p) ** (1 / p) for each window of [n, c, d, h, w]"""

    spatial = 3


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The mean of each of output_size equal parts of [n, c, l]"""

    spatial = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The mean of each of output_size equal parts of [n, c, h, w]"""

    spatial = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The mean of each of output_size equal parts of [n, c, d, h, w]"""

    spatial = 3


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The greatest element of each of output_size equal parts of [n, c, l]"""

    spatial = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The greatest element of each of output_size equal parts of [n, c, h, w]"""

    spatial = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The greatest element of each of output_size equal parts of [n, c, d, h, w]"""

    spatial = 3
