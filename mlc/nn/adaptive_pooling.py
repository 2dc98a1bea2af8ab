"""Adaptive pooling as modules: the size of the result is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.functions import pooling as P
from mlc.frontend.tensor import Operand, Tensor
from mlc.nn.pooling import Pool

Ints = int | Sequence[int]


class _AdaptiveAvgPool(Pool):
    _shown = ("output_size",)

    def __init__(self, output_size: Any) -> None:
        self.output_size = output_size

    def forward(self, input: Operand) -> Tensor:
        pool = (P.adaptive_avg_pool1d, P.adaptive_avg_pool2d, P.adaptive_avg_pool3d)[self.spatial - 1]
        return pool(input, self.output_size)


class _AdaptiveMaxPool(Pool):
    _shown = ("output_size",)

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Operand) -> Any:
        pool = (P.adaptive_max_pool1d, P.adaptive_max_pool2d, P.adaptive_max_pool3d)[self.spatial - 1]
        return pool(input, self.output_size, self.return_indices)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Adaptive average pooling: the mean of each of output_size windows that cover the input.

    Along a dimension of size n with m windows, window i runs from floor(i * n / m) to ceil((i + 1) * n / m). The
    input is of floats.

    Shape:
        [n, c, l] or [c, l] -> [n, c, *output_size] or [c, *output_size].

    Args:
        output_size: Size of the result: an integer; None for the size of the input.

    Raises:
        UserError: A size is 0 (MLC0360) or negative (MLC0358), the tuple has the wrong length (MLC0357), or the input
            the wrong number of dimensions (MLC0364).
        UserTypeError: The input is not of floats (MLC0359).

    Example:
        >>> nn.AdaptiveAvgPool1d(2)(mlc.arange(3.0).reshape(1, 3)).flatten()
        tensor([0.5, 1.5], dtype=mlc.float32)
    """

    spatial = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Adaptive average pooling: the mean of each of output_size windows that cover the input.

    Along a dimension of size n with m windows, window i runs from floor(i * n / m) to ceil((i + 1) * n / m). The
    input is of floats.

    Shape:
        [n, c, h, w] or [c, h, w] -> [n, c, *output_size] or [c, *output_size].

    Args:
        output_size: Size of the result: an integer or a tuple of two; None for the size of the input.

    Raises:
        UserError: A size is 0 (MLC0360) or negative (MLC0358), the tuple has the wrong length (MLC0357), or the input
            the wrong number of dimensions (MLC0364).
        UserTypeError: The input is not of floats (MLC0359).

    Example:
        >>> nn.AdaptiveAvgPool2d(2)(mlc.arange(9.0).reshape(1, 3, 3)).flatten()
        tensor([2., 3., 5., 6.], dtype=mlc.float32)
    """

    spatial = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Adaptive average pooling: the mean of each of output_size windows that cover the input.

    Along a dimension of size n with m windows, window i runs from floor(i * n / m) to ceil((i + 1) * n / m). The
    input is of floats.

    Shape:
        [n, c, d, h, w] or [c, d, h, w] -> [n, c, *output_size] or [c, *output_size].

    Args:
        output_size: Size of the result: an integer or a tuple of three; None for the size of the input.

    Raises:
        UserError: A size is 0 (MLC0360) or negative (MLC0358), the tuple has the wrong length (MLC0357), or the input
            the wrong number of dimensions (MLC0364).
        UserTypeError: The input is not of floats (MLC0359).

    Example:
        >>> nn.AdaptiveAvgPool3d(2)(mlc.arange(27.0).reshape(1, 3, 3, 3)).flatten()
        tensor([ 6.5,  7.5,  9.5, 10.5, 15.5, 16.5, 18.5, 19.5], dtype=mlc.float32)
    """

    spatial = 3


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Adaptive max pooling: the maximum of each of output_size windows that cover the input.

    Along a dimension of size n with m windows, window i runs from floor(i * n / m) to ceil((i + 1) * n / m). The
    input is of floats.

    Shape:
        [n, c, l] or [c, l] -> [n, c, *output_size] or [c, *output_size]; with return_indices a pair of that and int64
        indices.

    Args:
        output_size: Size of the result: an integer; None for the size of the input.
        return_indices: Whether the positions of the maxima, counted in the flattened image, are returned too.

    Raises:
        UserError: A size is 0 (MLC0360) or negative (MLC0358), the tuple has the wrong length (MLC0357), or the input
            the wrong number of dimensions (MLC0364).
        UserTypeError: The input is not of floats (MLC0359).

    Example:
        >>> nn.AdaptiveMaxPool1d(2)(mlc.arange(3.0).reshape(1, 3)).flatten()
        tensor([1., 2.], dtype=mlc.float32)
    """

    spatial = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Adaptive max pooling: the maximum of each of output_size windows that cover the input.

    Along a dimension of size n with m windows, window i runs from floor(i * n / m) to ceil((i + 1) * n / m). The
    input is of floats.

    Shape:
        [n, c, h, w] or [c, h, w] -> [n, c, *output_size] or [c, *output_size]; with return_indices a pair of that and
        int64 indices.

    Args:
        output_size: Size of the result: an integer or a tuple of two; None for the size of the input.
        return_indices: Whether the positions of the maxima, counted in the flattened image, are returned too.

    Raises:
        UserError: A size is 0 (MLC0360) or negative (MLC0358), the tuple has the wrong length (MLC0357), or the input
            the wrong number of dimensions (MLC0364).
        UserTypeError: The input is not of floats (MLC0359).

    Example:
        >>> nn.AdaptiveMaxPool2d(2)(mlc.arange(9.0).reshape(1, 3, 3)).flatten()
        tensor([4., 5., 7., 8.], dtype=mlc.float32)
    """

    spatial = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Adaptive max pooling: the maximum of each of output_size windows that cover the input.

    Along a dimension of size n with m windows, window i runs from floor(i * n / m) to ceil((i + 1) * n / m). The
    input is of floats.

    Shape:
        [n, c, d, h, w] or [c, d, h, w] -> [n, c, *output_size] or [c, *output_size]; with return_indices a pair of that
        and int64 indices.

    Args:
        output_size: Size of the result: an integer or a tuple of three; None for the size of the input.
        return_indices: Whether the positions of the maxima, counted in the flattened image, are returned too.

    Raises:
        UserError: A size is 0 (MLC0360) or negative (MLC0358), the tuple has the wrong length (MLC0357), or the input
            the wrong number of dimensions (MLC0364).
        UserTypeError: The input is not of floats (MLC0359).

    Example:
        >>> nn.AdaptiveMaxPool3d(2)(mlc.arange(27.0).reshape(1, 3, 3, 3)).flatten()
        tensor([13., 14., 16., 17., 22., 23., 25., 26.], dtype=mlc.float32)
    """

    spatial = 3
