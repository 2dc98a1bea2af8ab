"""Layers that undo max pooling, and fractional max pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.functions import pooling as P
from mlc.frontend.functions.convolution import each
from mlc.frontend.tensor import Operand, Tensor
from mlc.nn.dropout import Keyed
from mlc.nn.module import Module

Ints = int | Sequence[int]


class _MaxUnpool(Module):
    _shown = ("kernel_size", "stride", "padding")
    spatial = 1

    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0) -> None:
        self.kernel_size = each(kernel_size, self.spatial, "kernel_size", 1)
        self.stride = self.kernel_size if stride is None else each(stride, self.spatial, "stride", 1)
        self.padding = each(padding, self.spatial, "padding", 0)

    def forward(self, input: Operand, indices: Operand, output_size: Any = None) -> Tensor:
        unpool = (P.max_unpool1d, P.max_unpool2d, P.max_unpool3d)[self.spatial - 1]
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpool):
    """Inverse of `MaxPool1d`: the maxima where they were taken from, and 0 elsewhere.

    Shape:
        Maxima and indices [n, c, l] or [c, l] -> [n, c, l'] or [c, l'], with l' = (l - 1) * stride - 2 * padding +
        kernel_size, unless the call gives an output_size.

    Args:
        kernel_size: Size of the windows.
        stride: Step from one window to the next; None for kernel_size.
        padding: Elements that were added on both sides.

    Raises:
        UserError: The number of dimensions is wrong (MLC0364), the indices have another shape (MLC0367) or are out of
            range (MLC0340, an IndexError), a setting is out of range (MLC0360) or has the wrong length (MLC0357), or
            the indices are not of integers (MLC0354).

    Example:
        >>> nn.MaxUnpool1d(2)(mlc.tensor([[4.0, 3.0]]), mlc.tensor([[1, 3]]))
        tensor([[0., 4., 0., 3.]], dtype=mlc.float32)
    """

    spatial = 1


class MaxUnpool2d(_MaxUnpool):
    """Inverse of `MaxPool2d`: the maxima where they were taken from, and 0 elsewhere.

    Shape:
        Maxima and indices [n, c, h, w] or [c, h, w] -> the same with sizes (size - 1) * stride - 2 * padding +
        kernel_size, unless the call gives an output_size.

    Args:
        kernel_size: Size of the windows, an integer, or two.
        stride: Step from one window to the next, likewise; None for kernel_size.
        padding: Elements that were added on both sides, likewise.

    Raises:
        UserError: The number of dimensions is wrong (MLC0364), the indices have another shape (MLC0367) or are out of
            range (MLC0340, an IndexError), a setting is out of range (MLC0360) or has the wrong length (MLC0357), or
            the indices are not of integers (MLC0354).

    Example:
        >>> pool, unpool = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)
        >>> unpool(*pool(mlc.tensor([[[1.0, 2.0], [3.0, 4.0]]])))
        tensor([[[0., 0.],
                 [0., 4.]]], dtype=mlc.float32)
    """

    spatial = 2


class MaxUnpool3d(_MaxUnpool):
    """Inverse of `MaxPool3d`: the maxima where they were taken from, and 0 elsewhere.

    Shape:
        Maxima and indices [n, c, d, h, w] or [c, d, h, w] -> the same with sizes (size - 1) * stride - 2 * padding +
        kernel_size, unless the call gives an output_size.

    Args:
        kernel_size: Size of the windows, an integer, or three.
        stride: Step from one window to the next, likewise; None for kernel_size.
        padding: Elements that were added on both sides, likewise.

    Raises:
        UserError: The number of dimensions is wrong (MLC0364), the indices have another shape (MLC0367) or are out of
            range (MLC0340, an IndexError), a setting is out of range (MLC0360) or has the wrong length (MLC0357), or
            the indices are not of integers (MLC0354).

    Example:
        >>> pool, unpool = nn.MaxPool3d(2, return_indices=True), nn.MaxUnpool3d(2)
        >>> unpool(*pool(mlc.ones(1, 2, 2, 2))).shape
        (1, 2, 2, 2)
    """

    spatial = 3


class _FractionalMaxPool(Keyed):
    _buffers: tuple[str, ...] = ("key", "_random_samples")
    spatial = 2

    def __init__(self, kernel_size: Ints, output_size: Any = None, output_ratio: Any = None,
                 return_indices: bool = False, _random_samples: Tensor | None = None) -> None:
        self.kernel_size, self.return_indices = each(kernel_size, self.spatial, "kernel_size", 1), return_indices
        self.output_size, self.output_ratio = output_size, output_ratio
        self._random_samples = _random_samples
        self.key = None  # type: ignore[assignment]
        if _random_samples is None:
            self.draw_key()

    def forward(self, input: Operand) -> Any:
        pool = P.fractional_max_pool2d if self.spatial == 2 else P.fractional_max_pool3d
        key = self.next_key() if self._random_samples is None else None
        return pool(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
                    self._random_samples, key=key)


class FractionalMaxPool2d(_FractionalMaxPool):
    """Max pooling with windows at random places, drawn anew in every call (Graham 2014, "Fractional Max-Pooling").

    Shape:
        [n, c, h, w] or [c, h, w] -> the same with the sizes that output_size or output_ratio says.

    Args:
        kernel_size: Size of the windows, an integer, or two.
        output_size: Number of windows, likewise.
        output_ratio: The same as a fraction of the size of the input, likewise.
        return_indices: Whether calls give the positions of the maxima in the flattened images, too.
        _random_samples: Tensor [n, c, 2] of numbers in [0, 1) that decide on the places; None to draw them.

    Raises:
        UserError: Neither or both of the sizes are given, or one is out of range (MLC0360), the windows do not fit
            (MLC0115), or the number of dimensions is wrong (MLC0364).

    Example:
        >>> nn.FractionalMaxPool2d(2, output_ratio=0.5)(mlc.ones(1, 6, 8)).shape
        (1, 3, 4)
    """

    spatial = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """Max pooling with windows at random places of volumes, as `FractionalMaxPool2d`.

    Shape:
        [n, c, d, h, w] or [c, d, h, w] -> the same with the sizes that output_size or output_ratio says.

    Args:
        kernel_size: Size of the windows, an integer, or three.
        output_size: Number of windows, likewise.
        output_ratio: The same as a fraction of the size of the input, likewise.
        return_indices: Whether calls give the positions of the maxima in the flattened volumes, too.
        _random_samples: Tensor [n, c, 3] of numbers in [0, 1) that decide on the places; None to draw them.

    Raises:
        UserError: Neither or both of the sizes are given, or one is out of range (MLC0360), the windows do not fit
            (MLC0115), or the number of dimensions is wrong (MLC0364).

    Example:
        >>> nn.FractionalMaxPool3d(2, output_size=(2, 2, 3))(mlc.ones(1, 4, 4, 6)).shape
        (1, 2, 2, 3)
    """

    spatial = 3
