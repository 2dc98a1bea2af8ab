"""Pooling over windows of a given size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.dialects.combining import lowest
from mlc.frontend.axes import plain_int
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.convolution import Ints, batched, check_windows, each, fits, padded, unbatched, windows
from mlc.frontend.operands import cast, number, reshape, rounded_once, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import f32, i64


class Geometry:
    """Window sizes, strides, padding and dilation along the last dimensions of an input."""

    def __init__(self, spatial: int, kernel_size: Ints, stride: Ints | None, padding: Ints, dilation: Ints,
                 ceil_mode: bool) -> None:
        self.spatial, self.ceil_mode = spatial, ceil_mode
        self.kernel = each(kernel_size, spatial, "kernel_size", 1)
        self.stride = self.kernel if stride is None or stride == () else each(stride, spatial, "stride", 1)
        self.low = each(padding, spatial, "padding")
        self.dilation = each(dilation, spatial, "dilation", 1)
        for p, k in zip(self.low, self.kernel):
            if 2 * p > k:
                raise UserError(f"padding = {p} is more than half of kernel_size = {k}", code="MLC0360")

    def high(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        """How much goes after each dimension; with ceil_mode, so much that the last window begins within the input."""
        return tuple(self._high(*axis) for axis in zip(shape, self.kernel, self.stride, self.low, self.dilation))

    def _high(self, n: Dim, k: int, s: int, p: int, d: int) -> Dim:
        if not self.ceil_mode:
            return p
        if not isinstance(n, int):
            raise UserError(f"ceil_mode needs sizes that are known, found {n}", code="MLC0365",
                            symbols=sizes.symbols(n))
        count = -(-(n + 2 * p - (k - 1) * d - 1) // s) + 1
        count -= (count - 1) * s >= n + p
        return max(p, (count - 1) * s + (k - 1) * d + 1 - n - p)


def max_pool_windows(input: Operand, geometry: Geometry, return_indices: bool) -> Any:
    x, was_added = batched(tracer(input), geometry.spatial, "the input")
    high = geometry.high(x.shape[2:])
    check_windows(x, geometry.kernel, geometry.dilation, geometry.low, high)
    out: Tracer = emit(T.MaxPool, x, geometry.kernel, geometry.stride, geometry.low, high, geometry.dilation)
    fits(out, x)
    values = unbatched(out, was_added)
    return (values, unbatched(_places(x, out, geometry, high), was_added)) if return_indices else values


def _places(x: Tracer, out: Tracer, geometry: Geometry, high: Sequence[Dim]) -> Tracer:
    """The index of the first maximum of each window, in the flattened spatial dimensions of the image."""
    image, g = x.shape[2:], geometry
    place: Any = number(0, i64)
    for i, n in enumerate(image):
        place = place * (n if isinstance(n, int) else tracer(n)) + emit(
            T.Iota, tuple(n if a == i else 1 for a, n in enumerate(image)), i, i64)
    far = number(np.iinfo(np.int64).max, i64)
    last = emit(T.BroadcastTo, tracer(place), tuple(image))
    last = windows(padded(last, g.low, high, -1), g.kernel, g.stride, g.dilation)
    spread = windows(padded(x, g.low, high, lowest(x.type.dtype)), g.kernel, g.stride, g.dilation)
    inside = tuple(range(3, spread.ndim, 2))
    best = reshape(out, [1 if a in inside else n for a, n in enumerate(spread.shape)])
    found = E.logical_and(E.logical_or(spread == best, E.isnan(spread)), last >= 0)
    return emit(T.ReduceMin, tracer(E.where(found, last, far)), inside, "chain")  # type: ignore[no-any-return]


@operation()
def max_pool1d(input: Operand, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1,
               ceil_mode: bool = False, return_indices: bool = False) -> Any:
    """The maximum of each window of a signal; NaN if one element is.

    Args:
        input: Tensor of shape (n, c, w), or one image without n, of floats or integers.
        kernel_size: Size of the windows, an integer.
        stride: Step from one window to the next; `kernel_size` by default.
        padding: Elements of -inf before and after, at most half of the window.
        dilation: Distance of the elements of a window.
        ceil_mode: Whether a last window may reach over the edge.
        return_indices: Whether to tell where each maximum stands, the first of several, in the flattened image.

    Returns:
        Tensor of shape (n, c, *windows), or a pair of it and the indices, of int64.

    Raises:
        UserError: the number of dimensions is wrong (MLC0364), a setting is out of range (MLC0360) or has the wrong
            length (MLC0357), or a window is larger than the image (MLC0367).

    Example:
        >>> nn.functional.max_pool1d(mlc.tensor([[1.0, 4.0, 2.0, 3.0]]), 2)
        tensor([[4., 3.]], dtype=mlc.float32)
    """
    return max_pool_windows(input, Geometry(1, kernel_size, stride, padding, dilation, ceil_mode), return_indices)


@operation()
def max_pool2d(input: Operand, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1,
               ceil_mode: bool = False, return_indices: bool = False) -> Any:
    """The maximum of each window of an image; NaN if one element is.

    Args:
        input: Tensor of shape (n, c, h, w), or one image without n, of floats or integers.
        kernel_size: Size of the windows, an integer, or one for each dimension.
        stride: Step from one window to the next; `kernel_size` by default.
        padding: Elements of -inf before and after, at most half of the window.
        dilation: Distance of the elements of a window.
        ceil_mode: Whether a last window may reach over the edge.
        return_indices: Whether to tell where each maximum stands, the first of several, in the flattened image.

    Returns:
        Tensor of shape (n, c, *windows), or a pair of it and the indices, of int64.

    Raises:
        UserError: the number of dimensions is wrong (MLC0364), a setting is out of range (MLC0360) or has the wrong
            length (MLC0357), or a window is larger than the image (MLC0367).

    Example:
        >>> nn.functional.max_pool2d(mlc.ones(1, 1, 4, 4), 2)
        tensor([[[[1., 1.],
                  [1., 1.]]]], dtype=mlc.float32)
    """
    return max_pool_windows(input, Geometry(2, kernel_size, stride, padding, dilation, ceil_mode), return_indices)


@operation(autocast="fp32")
def max_pool3d(input: Operand, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1,
               ceil_mode: bool = False, return_indices: bool = False) -> Any:
    """The maximum of each window of a volume; NaN if one element is.

    Args:
        input: Tensor of shape (n, c, d, h, w), or one image without n, of floats or integers.
        kernel_size: Size of the windows, an integer, or one for each dimension.
        stride: Step from one window to the next; `kernel_size` by default.
        padding: Elements of -inf before and after, at most half of the window.
        dilation: Distance of the elements of a window.
        ceil_mode: Whether a last window may reach over the edge.
        return_indices: Whether to tell where each maximum stands, the first of several, in the flattened image.

    Returns:
        Tensor of shape (n, c, *windows), or a pair of it and the indices, of int64.

    Raises:
        UserError: the number of dimensions is wrong (MLC0364), a setting is out of range (MLC0360) or has the wrong
            length (MLC0357), or a window is larger than the image (MLC0367).

    Example:
        >>> nn.functional.max_pool3d(mlc.ones(1, 1, 4, 4, 4), 2)
        tensor([[[[[1., 1.],
                   [1., 1.]],
        <BLANKLINE>
                  [[1., 1.],
                   [1., 1.]]]]], dtype=mlc.float32)
    """
    return max_pool_windows(input, Geometry(3, kernel_size, stride, padding, dilation, ceil_mode), return_indices)


def _sums(x: Tracer, geometry: Geometry) -> Tracer:
    """The sum of each window."""
    high = geometry.high(x.shape[2:])
    check_windows(x, geometry.kernel, geometry.dilation, geometry.low, high)
    spread = windows(padded(x, geometry.low, high), geometry.kernel, geometry.stride, geometry.dilation)
    return emit(T.ReduceSum, spread, tuple(range(3, spread.ndim, 2)), "chain")  # type: ignore[no-any-return]


def _avg_pool(input: Operand, geometry: Geometry, count_include_pad: bool, divisor: int | None) -> Tensor:
    given, was_added = batched(R.float_only(tracer(input), "avg_pool"), geometry.spatial, "the input")
    x = cast(given, f32) if given.type.dtype.width < 32 else given
    total = _sums(x, geometry)
    fits(total, x)
    if divisor is not None:
        if plain_int(divisor, "divisor_override") == 0:
            raise UserError("divisor_override = 0", code="MLC0360")
        out = total / divisor
    else:
        out = total / cast(tracer(_counts(x.shape[2:], total.shape[2:], geometry, count_include_pad)), x.type.dtype)
    return unbatched(cast(tracer(out), given.type.dtype), was_added)


def _counts(shape: Sequence[Dim], out: Sequence[Dim], geometry: Geometry, with_padding: bool) -> Any:
    """How many elements each window has: what lies in the input, or also the padding that was asked for."""
    if not geometry.ceil_mode and (with_padding or not any(geometry.low)):
        return number(int(np.prod(geometry.kernel)), i64)
    total: Any = number(1, i64)
    for i, (n, count, k, s, p) in enumerate(zip(shape, out, geometry.kernel, geometry.stride, geometry.low)):
        start = emit(T.Iota, tuple(count if a == i else 1 for a in range(len(out))), i, i64) * s - p
        limit = n + p if with_padding else n
        stop = E.minimum(start + k, limit if isinstance(limit, int) else tracer(limit))
        total = total * (stop - (start if with_padding else E.maximum(start, 0)))
    return total


@operation()
def avg_pool1d(input: Operand, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
               ceil_mode: bool = False, count_include_pad: bool = True) -> Tensor:
    """The mean of each window of a signal.

    result[n, c, i] = mean_k input[n, c, i * stride + k - padding]. There are floor((w + 2 * padding - kernel_size) /
    stride) + 1 windows, or ceil with `ceil_mode`; elements beyond the padding do not count in the mean.

    Args:
        input: Tensor of shape (n, c, w), or one image without n, of floats.
        kernel_size: Size of the windows, an integer.
        stride: Step from one window to the next; `kernel_size` by default.
        padding: Zeros before and after, at most half of the window.
        ceil_mode: Whether a last window may reach over the edge.
        count_include_pad: Whether the zeros of the padding count in the mean.

    Returns:
        Tensor of shape (n, c, *windows) and the dtype of `input`.

    Raises:
        UserError: elements are no floats (MLC0359), the number of dimensions is wrong (MLC0364), a setting is out of
            range (MLC0360) or has the wrong length (MLC0357), or a window is larger than the image (MLC0367).

    Example:
        >>> nn.functional.avg_pool1d(mlc.tensor([[1.0, 4.0, 2.0, 3.0]]), 2)
        tensor([[2.5, 2.5]], dtype=mlc.float32)
    """
    return _avg_pool(input, Geometry(1, kernel_size, stride, padding, 1, ceil_mode), count_include_pad, None)


@operation()
def avg_pool2d(input: Operand, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
               ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
    """The mean of each window of an image.

    result[n, c, i, j] is the mean over kh * kw elements from (i * stride - padding, j * stride - padding) on. Each
    dimension has floor((size + 2 * padding - kernel_size) / stride) + 1 windows, or ceil with `ceil_mode`.

    Args:
        input: Tensor of shape (n, c, h, w), or one image without n, of floats.
        kernel_size: Size of the windows, an integer, or one for each dimension.
        stride: Step from one window to the next; `kernel_size` by default.
        padding: Zeros before and after, at most half of the window.
        ceil_mode: Whether a last window may reach over the edge.
        count_include_pad: Whether the zeros of the padding count in the mean.
        divisor_override: Number that sums are divided by, in place of the number of elements.

    Returns:
        Tensor of shape (n, c, *windows) and the dtype of `input`.

    Raises:
        UserError: elements are no floats (MLC0359), the number of dimensions is wrong (MLC0364), a setting is out of
            range (MLC0360) or has the wrong length (MLC0357), or a window is larger than the image (MLC0367).

    Example:
        >>> nn.functional.avg_pool2d(mlc.ones(1, 1, 4, 4), 2)
        tensor([[[[1., 1.],
                  [1., 1.]]]], dtype=mlc.float32)
    """
    return _avg_pool(input, Geometry(2, kernel_size, stride, padding, 1, ceil_mode), count_include_pad,
                     divisor_override)


@operation(autocast="fp32")
def avg_pool3d(input: Operand, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
               ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
    """The mean of each window of a volume.

    Each of the three dimensions has floor((size + 2 * padding - kernel_size) / stride) + 1 windows, or ceil with
    `ceil_mode`. Each channel is averaged by itself.

    Args:
        input: Tensor of shape (n, c, d, h, w), or one image without n, of floats.
        kernel_size: Size of the windows, an integer, or one for each dimension.
        stride: Step from one window to the next; `kernel_size` by default.
        padding: Zeros before and after, at most half of the window.
        ceil_mode: Whether a last window may reach over the edge.
        count_include_pad: Whether the zeros of the padding count in the mean.
        divisor_override: Number that sums are divided by, in place of the number of elements.

    Returns:
        Tensor of shape (n, c, *windows) and the dtype of `input`.

    Raises:
        UserError: elements are no floats (MLC0359), the number of dimensions is wrong (MLC0364), a setting is out of
            range (MLC0360) or has the wrong length (MLC0357), or a window is larger than the image (MLC0367).

    Example:
        >>> nn.functional.avg_pool3d(mlc.ones(1, 1, 4, 4, 4), 2)
        tensor([[[[[1., 1.],
                   [1., 1.]],
        <BLANKLINE>
                  [[1., 1.],
                   [1., 1.]]]]], dtype=mlc.float32)
    """
    return _avg_pool(input, Geometry(3, kernel_size, stride, padding, 1, ceil_mode), count_include_pad,
                     divisor_override)


def _lp_pool(input: Operand, p: float, geometry: Geometry) -> Tensor:
    if not p or not math.isfinite(p):
        raise UserError(f"norm_type = {p}", code="MLC0360", hint="use max_pool for the maximum")
    x, was_added = batched(R.float_only(tracer(input), "lp_pool"), geometry.spatial, "the input")

    def norms(x: Tracer) -> Tensor:
        total: Any = _sums(tracer(E.pow(x, p)), geometry)
        fits(total, x)
        if geometry.ceil_mode:                     # a window that sticks out counts as a whole one of the same mean
            counts = cast(tracer(_counts(x.shape[2:], total.shape[2:], geometry, False)), x.type.dtype)
            total = total * (int(np.prod(geometry.kernel)) / counts)
        zero = total == 0                          # the root's derivative at 0 is infinite; that of relu before it is 0
        return E.where(zero, 0.0, E.pow(E.where(zero, 1.0, total), 1 / p))
    return unbatched(rounded_once(norms, x), was_added)


@operation()
def lp_pool1d(input: Operand, norm_type: float, kernel_size: Ints, stride: Ints | None = None,
              ceil_mode: bool = False) -> Tensor:
    """(sum of x ** norm_type over a window) ** (1 / norm_type), for each window.

    Args:
        input: Tensor of shape (n, c, w), or one image without n, of floats.
        norm_type: The exponent; inf is not taken.
        kernel_size: Size of the windows, an integer.
        stride: Step from one window to the next; `kernel_size` by default.
        ceil_mode: Whether a last window may reach over the edge.

    Returns:
        Tensor of shape (n, c, *windows) and the dtype of `input`; the derivative of a window of sum 0 is 0.

    Raises:
        UserError: elements are no floats (MLC0359), the number of dimensions is wrong (MLC0364), a setting is out of
            range (MLC0360) or has the wrong length (MLC0357), or a window is larger than the image (MLC0367).

    Example:
        >>> nn.functional.lp_pool1d(mlc.tensor([[3.0, 4.0]]), 2, 2)
        tensor([[5.]], dtype=mlc.float32)
    """
    return _lp_pool(input, norm_type, Geometry(1, kernel_size, stride, 0, 1, ceil_mode))


@operation()
def lp_pool2d(input: Operand, norm_type: float, kernel_size: Ints, stride: Ints | None = None,
              ceil_mode: bool = False) -> Tensor:
    """(sum of x ** norm_type over a window) ** (1 / norm_type), for each window.

    Args:
        input: Tensor of shape (n, c, h, w), or one image without n, of floats.
        norm_type: The exponent; inf is not taken.
        kernel_size: Size of the windows, an integer, or one for each dimension.
        stride: Step from one window to the next; `kernel_size` by default.
        ceil_mode: Whether a last window may reach over the edge.

    Returns:
        Tensor of shape (n, c, *windows) and the dtype of `input`; the derivative of a window of sum 0 is 0.

    Raises:
        UserError: elements are no floats (MLC0359), the number of dimensions is wrong (MLC0364), a setting is out of
            range (MLC0360) or has the wrong length (MLC0357), or a window is larger than the image (MLC0367).

    Example:
        >>> nn.functional.lp_pool2d(mlc.ones(1, 1, 4, 4), 2, 2)
        tensor([[[[2., 2.],
                  [2., 2.]]]], dtype=mlc.float32)
    """
    return _lp_pool(input, norm_type, Geometry(2, kernel_size, stride, 0, 1, ceil_mode))


@operation()
def lp_pool3d(input: Operand, norm_type: float, kernel_size: Ints, stride: Ints | None = None,
              ceil_mode: bool = False) -> Tensor:
    """(sum of x ** norm_type over a window) ** (1 / norm_type), for each window.

    Args:
        input: Tensor of shape (n, c, d, h, w), or one image without n, of floats.
        norm_type: The exponent; inf is not taken.
        kernel_size: Size of the windows, an integer, or one for each dimension.
        stride: Step from one window to the next; `kernel_size` by default.
        ceil_mode: Whether a last window may reach over the edge.

    Returns:
        Tensor of shape (n, c, *windows) and the dtype of `input`; the derivative of a window of sum 0 is 0.

    Raises:
        UserError: elements are no floats (MLC0359), the number of dimensions is wrong (MLC0364), a setting is out of
            range (MLC0360) or has the wrong length (MLC0357), or a window is larger than the image (MLC0367).

    Example:
        >>> nn.functional.lp_pool3d(mlc.ones(1, 1, 4, 4, 4), 2, 2)
        tensor([[[[[2.828427, 2.828427],
                   [2.828427, 2.828427]],
        <BLANKLINE>
                  [[2.828427, 2.828427],
                   [2.828427, 2.828427]]]]], dtype=mlc.float32)
    """
    return _lp_pool(input, norm_type, Geometry(3, kernel_size, stride, 0, 1, ceil_mode))
