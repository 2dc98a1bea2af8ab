"""Convolutions, and unfold and fold, which extract and combine their windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.dialects.tensor.window import window_count
from mlc.frontend.axes import axis, plain_int
from mlc.frontend.functions.shape import permute, sliced
from mlc.frontend.operands import factors, need, number, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim, Size

Ints = int | Sequence[int]
Padding = int | str | Sequence[int]


def each(value: Any, count: int, name: str, least: int = 0) -> tuple[int, ...]:
    """An integer, or one for each of `count` spatial dimensions, none less than `least`."""
    given = tuple(value) if isinstance(value, tuple | list) else (value,)
    out = tuple(plain_int(v, name) for v in given)
    if len(out) == 1:
        out *= count
    if len(out) != count:
        raise UserError(f"{name} = {given} has {len(given)} entries for {count} spatial dimensions", code="MLC0357")
    if any(n < least for n in out):
        raise UserError(f"{name} = {value}, expected at least {least}", code="MLC0360")
    return out


def batched(x: Tracer, spatial: int, name: str) -> tuple[Tracer, bool]:
    """x with a batch dimension, and whether it was added: the input may be one image."""
    if x.ndim not in (spatial + 1, spatial + 2):
        raise UserError(f"{name} has {x.ndim} dimensions, expected {spatial + 1} or {spatial + 2}", code="MLC0364")
    return (x, False) if x.ndim == spatial + 2 else (reshape(x, [1, *x.shape]), True)


def unbatched(x: Tensor, was_added: bool) -> Tensor:
    """x without the batch dimension that `batched` added."""
    return reshape(tracer(x), x.shape[1:]) if was_added else x


def pads(padding: Padding, kernel: Sequence[Dim], stride: Sequence[int],
         dilation: Sequence[int]) -> tuple[tuple[Dim, ...], tuple[Dim, ...]]:
    """The zero padding before and after each spatial dimension."""
    if padding == "valid":
        padding = 0
    if padding == "same":
        if any(s != 1 for s in stride):
            raise UserError(f'padding = "same" goes with stride 1, found {tuple(stride)}', code="MLC0360")
        total = [(k - 1) * d for k, d in zip(kernel, dilation)]
        low = tuple(n // 2 for n in total)
        return low, tuple(n - a for n, a in zip(total, low))
    if isinstance(padding, str):
        raise UserError(f"padding = {padding!r}", code="MLC0360", hint='use a number, "same" or "valid"')
    both = each(padding, len(kernel), "padding")
    return both, both


def _convolution(spatial: int, input: Operand, weight: Operand, bias: Operand, stride: Ints, padding: Padding,
                 dilation: Ints, groups: int) -> Tensor:
    x, w = factors(input, weight, floating=True)
    x, was_added = batched(x, spatial, "the input")
    _check(w, spatial, groups, x.shape[1], w.shape[1] * groups if w.ndim > 1 else 0)
    s, d = each(stride, spatial, "stride", 1), each(dilation, spatial, "dilation", 1)
    low, high = pads(padding, w.shape[2:], s, d)
    check_windows(x, w.shape[2:], d, low, high)
    out = emit(T.Convolution, x, w, s, low, high, d, (), groups)
    fits(out, x)
    return unbatched(_with_bias(out, bias), was_added)


TOO_LARGE = "a window is larger than the image, which has {} elements and the padding"


def check_windows(x: Tracer, kernel: Sequence[Dim], dilation: Sequence[Dim], low: Sequence[Dim],
                  high: Sequence[Dim]) -> None:
    """UserError if a window is larger than the padded image by sizes that are known; `fits` has the others checked."""
    for n, k, d, before, after in zip(x.shape[2:], kernel, dilation, low, high):
        room = n + before + after - (k - 1) * d - 1
        if isinstance(room, int) and room < 0 and n != 0:
            raise UserError(TOO_LARGE.format(list(x.shape[2:])), code="MLC0367")


def fits(out: Tracer, x: Tracer) -> None:
    """UserError if a window is larger than the padded image."""
    message = TOO_LARGE.format(list(x.shape[2:]))
    if 0 in out.shape[2:] and 0 not in x.shape[2:]:
        raise UserError(message, code="MLC0367")
    for n in out.shape[2:]:
        if isinstance(n, Size):
            need(n - 1, message)


def _check(w: Tracer, spatial: int, groups: Any, channels: Dim, taken: Dim) -> None:
    if plain_int(groups, "groups") < 1:
        raise UserError(f"groups = {groups}, expected at least 1", code="MLC0360")
    if w.ndim != spatial + 2:
        raise UserError(f"the weight has {w.ndim} dimensions, expected {spatial + 2}", code="MLC0364")
    if channels != taken:
        raise UserError(f"the input has {channels} channels, and a weight of shape {list(w.shape)} in {groups} groups "
                        f"takes {taken}", code="MLC0367", symbols=sizes.symbols(channels, taken),
                        hint="channels come second, after the batch; x.movedim(-1, 1) brings last ones there")
    if w.shape[0] % groups != 0:
        raise UserError(f"a weight of shape {list(w.shape)} is not divided into {groups} groups", code="MLC0367",
                        symbols=sizes.symbols(*w.shape[:1]))


def _with_bias(x: Tracer, bias: Operand) -> Tensor:
    if bias is None:
        return x
    x, b = factors(x, bias)
    if b.shape != (x.shape[1],):
        raise UserError(f"the bias has shape {list(b.shape)}, expected [{x.shape[1]}]", code="MLC0367",
                        symbols=sizes.differing(b.shape, x.shape[1:2]))
    return x + reshape(b, [x.shape[1], *[1] * (x.ndim - 2)])


@operation(autocast="lower_precision")
def conv1d(input: Operand, weight: Operand, bias: Operand = None, stride: Ints = 1, padding: Padding = 0,
           dilation: Ints = 1, groups: int = 1) -> Tensor:
    """sum over c, k of weight[o, c, k] * input[n, c, p * stride + k * dilation] + bias[o].

    It is a cross-correlation, as in PyTorch: filters are not reversed.

    Args:
        input: Tensor of shape (n, c, w), or one image without n; integers become float32.
        weight: Filters of shape (out_channels, c / groups, kernel).
        bias: Tensor of shape (out_channels,); None for 0.
        stride: Step from one window to the next, an integer.
        padding: Zeros before and after, an integer; "valid" for none, "same" for as many windows as elements, with
            stride 1.
        dilation: Distance of the elements of a window, an integer.
        groups: Number of groups of channels; each is convolved with its own filters.

    Returns:
        Tensor of shape (n, out_channels, *windows) in the promoted dtype.

    Raises:
        UserError: the number of dimensions is wrong (MLC0364), channels do not fit or a window is larger than the image
            (MLC0367), a setting is out of range (MLC0360) or has the wrong length (MLC0357), or the float dtypes differ
            (MLC0420).

    Example:
        >>> nn.functional.conv1d(mlc.tensor([[1.0, 2.0, 4.0]]), mlc.tensor([[[-1.0, 1.0]]]))
        tensor([[1., 2.]], dtype=mlc.float32)
    """
    return _convolution(1, input, weight, bias, stride, padding, dilation, groups)


@operation(autocast="lower_precision")
def conv2d(input: Operand, weight: Operand, bias: Operand = None, stride: Ints = 1, padding: Padding = 0,
           dilation: Ints = 1, groups: int = 1) -> Tensor:
    """The convolution of images with filters: `conv1d` over two dimensions.

    It is a cross-correlation, as in PyTorch: filters are not reversed.

    Args:
        input: Tensor of shape (n, c, h, w), or one image without n; integers become float32.
        weight: Filters of shape (out_channels, c / groups, *kernel).
        bias: Tensor of shape (out_channels,); None for 0.
        stride: Step from one window to the next, an integer, or one for each dimension.
        padding: Zeros before and after, an integer, or one for each dimension; "valid" for none, "same" for as many
            windows as elements, with stride 1.
        dilation: Distance of the elements of a window, an integer, or one for each dimension.
        groups: Number of groups of channels; each is convolved with its own filters.

    Returns:
        Tensor of shape (n, out_channels, *windows) in the promoted dtype.

    Raises:
        UserError: the number of dimensions is wrong (MLC0364), channels do not fit or a window is larger than the image
            (MLC0367), a setting is out of range (MLC0360) or has the wrong length (MLC0357), or the float dtypes differ
            (MLC0420).

    Example:
        >>> nn.functional.conv2d(mlc.ones(1, 1, 3, 3), mlc.ones(1, 1, 2, 2))
        tensor([[[[4., 4.],
                  [4., 4.]]]], dtype=mlc.float32)
    """
    return _convolution(2, input, weight, bias, stride, padding, dilation, groups)


@operation(autocast="lower_precision")
def conv3d(input: Operand, weight: Operand, bias: Operand = None, stride: Ints = 1, padding: Padding = 0,
           dilation: Ints = 1, groups: int = 1) -> Tensor:
    """The convolution of volumes with filters: `conv1d` over three dimensions.

    It is a cross-correlation, as in PyTorch: filters are not reversed.

    Args:
        input: Tensor of shape (n, c, d, h, w), or one image without n; integers become float32.
        weight: Filters of shape (out_channels, c / groups, *kernel).
        bias: Tensor of shape (out_channels,); None for 0.
        stride: Step from one window to the next, an integer, or one for each dimension.
        padding: Zeros before and after, an integer, or one for each dimension; "valid" for none, "same" for as many
            windows as elements, with stride 1.
        dilation: Distance of the elements of a window, an integer, or one for each dimension.
        groups: Number of groups of channels; each is convolved with its own filters.

    Returns:
        Tensor of shape (n, out_channels, *windows) in the promoted dtype.

    Raises:
        UserError: the number of dimensions is wrong (MLC0364), channels do not fit or a window is larger than the image
            (MLC0367), a setting is out of range (MLC0360) or has the wrong length (MLC0357), or the float dtypes differ
            (MLC0420).

    Example:
        >>> nn.functional.conv3d(mlc.ones(1, 1, 2, 2, 2), mlc.ones(1, 1, 2, 2, 2))
        tensor([[[[[8.]]]]], dtype=mlc.float32)
    """
    return _convolution(3, input, weight, bias, stride, padding, dilation, groups)


def _transposed(spatial: int, input: Operand, weight: Operand, bias: Operand, stride: Ints, padding: Ints,
                output_padding: Ints, groups: int, dilation: Ints) -> Tensor:
    x, w = factors(input, weight, floating=True)
    x, was_added = batched(x, spatial, "the input")
    _check(w, spatial, groups, x.shape[1], w.shape[0] if w.ndim else 0)
    s, d = each(stride, spatial, "stride", 1), each(dilation, spatial, "dilation", 1)
    cut, more = each(padding, spatial, "padding"), each(output_padding, spatial, "output_padding")
    for extra, step, apart in zip(more, s, d):
        if extra >= max(step, apart):
            raise UserError(f"output_padding = {output_padding} is not less than the stride or the dilation",
                            code="MLC0360")
    c, o, *kernel = w.shape
    flipped = reshape(emit(T.Reverse, w, tuple(range(2, w.ndim))), [groups, c // groups, o, *kernel])
    flipped = tracer(permute(flipped, (0, 2, 1, *range(3, flipped.ndim))))
    flipped = reshape(flipped, [groups * o, c // groups, *kernel])
    low = tuple((k - 1) * apart - p for k, apart, p in zip(kernel, d, cut))
    high = tuple(a + extra for a, extra in zip(low, more))
    out = emit(T.Convolution, x, flipped, (), low, high, d, s, groups)
    return unbatched(_with_bias(out, bias), was_added)


@operation(autocast="lower_precision")
def conv_transpose1d(input: Operand, weight: Operand, bias: Operand = None, stride: Ints = 1, padding: Ints = 0,
                     output_padding: Ints = 0, groups: int = 1, dilation: Ints = 1) -> Tensor:
    """The transposed convolution.

    It sums input[n, c, p] * weight[c, o, k] at [n, o, p * stride + k * dilation - padding], which is the derivative of
    `conv1d` with respect to its input.

    Args:
        input: Tensor of shape (n, c, w), or one image without n; integers become float32.
        weight: Filters of shape (c, out_channels / groups, kernel).
        bias: Tensor of shape (out_channels,); None for 0.
        stride: Step from one window to the next, an integer.
        padding: Elements that are cut off before and after, an integer.
        output_padding: Elements that are added behind, less than the stride or the dilation.
        groups: Number of groups of channels; each is convolved with its own filters.
        dilation: Distance of the elements of a window, an integer.

    Returns:
        Tensor of shape (n, out_channels, *sizes), sizes (p - 1) * stride - 2 * padding + dilation * (kernel - 1) +
        output_padding + 1 for p elements, in the promoted dtype.

    Raises:
        UserError: the number of dimensions is wrong (MLC0364), channels do not fit (MLC0367), a setting is out of range
            (MLC0360) or has the wrong length (MLC0357), or the float dtypes differ (MLC0420).

    Example:
        >>> nn.functional.conv_transpose1d(mlc.tensor([[1.0, 2.0]]), mlc.tensor([[[1.0, 10.0]]]))
        tensor([[ 1., 12., 20.]], dtype=mlc.float32)
    """
    return _transposed(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@operation(autocast="lower_precision")
def conv_transpose2d(input: Operand, weight: Operand, bias: Operand = None, stride: Ints = 1, padding: Ints = 0,
                     output_padding: Ints = 0, groups: int = 1, dilation: Ints = 1) -> Tensor:
    """The transposed convolution: `conv_transpose1d` over two dimensions.

    It sums input[n, c, p] * weight[c, o, k] at [n, o, p * stride + k * dilation - padding], which is the derivative of
    `conv2d` with respect to its input.

    Args:
        input: Tensor of shape (n, c, h, w), or one image without n; integers become float32.
        weight: Filters of shape (c, out_channels / groups, *kernel).
        bias: Tensor of shape (out_channels,); None for 0.
        stride: Step from one window to the next, an integer, or one for each dimension.
        padding: Elements that are cut off before and after, an integer, or one for each dimension.
        output_padding: Elements that are added behind, less than the stride or the dilation.
        groups: Number of groups of channels; each is convolved with its own filters.
        dilation: Distance of the elements of a window, an integer, or one for each dimension.

    Returns:
        Tensor of shape (n, out_channels, *sizes), sizes (p - 1) * stride - 2 * padding + dilation * (kernel - 1) +
        output_padding + 1 for p elements, in the promoted dtype.

    Raises:
        UserError: the number of dimensions is wrong (MLC0364), channels do not fit (MLC0367), a setting is out of range
            (MLC0360) or has the wrong length (MLC0357), or the float dtypes differ (MLC0420).

    Example:
        >>> nn.functional.conv_transpose2d(mlc.ones(1, 1, 2, 2), mlc.ones(1, 1, 2, 2))
        tensor([[[[1., 2., 1.],
                  [2., 4., 2.],
                  [1., 2., 1.]]]], dtype=mlc.float32)
    """
    return _transposed(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@operation(autocast="lower_precision")
def conv_transpose3d(input: Operand, weight: Operand, bias: Operand = None, stride: Ints = 1, padding: Ints = 0,
                     output_padding: Ints = 0, groups: int = 1, dilation: Ints = 1) -> Tensor:
    """The transposed convolution: `conv_transpose1d` over three dimensions.

    It sums input[n, c, p] * weight[c, o, k] at [n, o, p * stride + k * dilation - padding], which is the derivative of
    `conv3d` with respect to its input.

    Args:
        input: Tensor of shape (n, c, d, h, w), or one image without n; integers become float32.
        weight: Filters of shape (c, out_channels / groups, *kernel).
        bias: Tensor of shape (out_channels,); None for 0.
        stride: Step from one window to the next, an integer, or one for each dimension.
        padding: Elements that are cut off before and after, an integer, or one for each dimension.
        output_padding: Elements that are added behind, less than the stride or the dilation.
        groups: Number of groups of channels; each is convolved with its own filters.
        dilation: Distance of the elements of a window, an integer, or one for each dimension.

    Returns:
        Tensor of shape (n, out_channels, *sizes), sizes (p - 1) * stride - 2 * padding + dilation * (kernel - 1) +
        output_padding + 1 for p elements, in the promoted dtype.

    Raises:
        UserError: the number of dimensions is wrong (MLC0364), channels do not fit (MLC0367), a setting is out of range
            (MLC0360) or has the wrong length (MLC0357), or the float dtypes differ (MLC0420).

    Example:
        >>> nn.functional.conv_transpose3d(mlc.ones(1, 1, 1, 1, 1), mlc.ones(1, 1, 2, 2, 2))
        tensor([[[[[1., 1.],
                   [1., 1.]],
        <BLANKLINE>
                  [[1., 1.],
                   [1., 1.]]]]], dtype=mlc.float32)
    """
    return _transposed(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


# -- windows as columns -----------------------------------------------------------------------------------------------
def windows(x: Tracer, kernel: Sequence[Dim], stride: Sequence[int], dilation: Sequence[int]) -> Tracer:
    """x with each of its last dimensions as windows and their elements: [..., p, k, q, l]."""
    at = x.ndim - len(kernel)
    for k, s, d in zip(kernel, stride, dilation):
        x = emit(T.Windows, x, at, k, s, d)
        at += 2
    return x


def padded(x: Tracer, low: Sequence[Dim], high: Sequence[Dim], value: float = 0) -> Tracer:
    """x with `value` around its last dimensions."""
    if not any(d != 0 for d in (*low, *high)):
        return x
    lead = (0,) * (x.ndim - len(low))
    return emit(T.Pad, x, number(value, x.type.dtype), (*lead, *low), (*lead, *high),  # type: ignore[no-any-return]
                (0,) * x.ndim)


def _windows(array: Any, dimension: int, size: int, step: int) -> Any:
    at = dimension % array.ndim if array.ndim else 0
    given, array = array, array if array.ndim else array.reshape(1)
    found = np.lib.stride_tricks.sliding_window_view(array, size, at)[(slice(None),) * at + (slice(None, None, step),)]
    return found if array is given else found[0]


@operation(name="Tensor.unfold", view=_windows)
def unfold_dimension(input: Operand, dimension: int, size: int, step: int) -> Tensor:
    """The windows of `size` elements along a dimension, one every `step`; their elements are a last dimension.

    Args:
        input: Tensor.
        dimension: The dimension; negative ones count from the last.
        size: Number of elements of a window.
        step: Distance of one window from the next.

    Returns:
        Tensor of the dtype of `input`, with a dimension more.

    Raises:
        UserError: `dimension` is out of range (MLC0356), or no window fits (MLC0366).
    """
    x = tracer(input)
    if not x.ndim:                                         # a vector of one element, whose one window is the result
        only = unfold_dimension(reshape(x, [1]), dimension, size, step)
        return reshape(tracer(only), [size])
    at, k, s = axis(dimension, x.ndim, "dimension"), plain_int(size, "size"), plain_int(step, "step")
    n = x.shape[at]
    message = f"windows of {k}, one every {s}, in a dimension of {n}"
    if k < 1 or s < 1 or (isinstance(n, int) and k > n):
        raise UserError(message, code="MLC0366")
    need(n - k, message)
    spread = emit(T.Windows, x, at, k, s)
    return permute(spread, [*(a for a in range(spread.ndim) if a != at + 1), at + 1])


@operation()
def unfold(input: Operand, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Tensor:
    """The windows of images as columns (im2col).

    Column l has the elements of window l, channel by channel and each in row-major order; windows are in row-major
    order too. Each dimension has floor((size + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1 windows. A
    convolution is weight.reshape(out, -1) @ unfold(input).

    Args:
        input: Tensor of shape (n, c, h, w), or one image without n.
        kernel_size: Size of the windows, an integer, or one for each dimension.
        dilation: Distance of the elements of a window, likewise.
        padding: Zeros before and after, likewise.
        stride: Step from one window to the next, likewise.

    Returns:
        Tensor of shape (n, c * elements of a window, number of windows) and the dtype of `input`.

    Raises:
        UserError: the number of dimensions is wrong (MLC0364), a setting is out of range (MLC0360) or has the wrong
            length (MLC0357), or a window is larger than the image (MLC0367).

    Example:
        >>> nn.functional.unfold(mlc.reshape(mlc.arange(6), (1, 2, 3)), 2)
        tensor([[0, 1],
                [1, 2],
                [3, 4],
                [4, 5]], dtype=mlc.int64)
    """
    x, was_added = batched(tracer(input), 2, "the input")
    kernel, apart = each(kernel_size, 2, "kernel_size", 1), each(dilation, 2, "dilation", 1)
    around, step = each(padding, 2, "padding"), each(stride, 2, "stride", 1)
    check_windows(x, kernel, apart, around, around)
    spread = windows(padded(x, around, around), kernel, step, apart)
    n, c, rows, k, columns, m = spread.shape
    for count in (rows, columns):
        if isinstance(count, Size):
            need(count - 1, TOO_LARGE.format(list(x.shape[2:])))
    columns_last = tracer(permute(spread, (0, 1, 3, 5, 2, 4)))
    return unbatched(reshape(columns_last, [n, c * k * m, rows * columns]), was_added)


@operation()
def fold(input: Operand, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0,
         stride: Ints = 1) -> Tensor:
    """Columns as `unfold` makes them, summed where they came from (col2im).

    The adjoint of `unfold`: an element that several windows have is the sum of its occurrences, so fold(unfold(x)) is x
    times the number of windows at each place.

    Args:
        input: Tensor of shape (n, c * elements of a window, number of windows), or one image without n.
        output_size: Sizes of the images, an integer, or one for each dimension.
        kernel_size: Size of the windows, likewise.
        dilation: Distance of the elements of a window, likewise.
        padding: Elements that are cut off before and after, likewise.
        stride: Step from one window to the next, likewise.

    Returns:
        Tensor of shape (n, c, *output_size) and the dtype of `input`.

    Raises:
        UserError: the number of dimensions is wrong (MLC0364), the columns do not fit (MLC0367), or a setting is out of
            range (MLC0360) or has the wrong length (MLC0357).

    Example:
        >>> nn.functional.fold(mlc.ones(4, 4), 3, 2)
        tensor([[[1., 2., 1.],
                 [2., 4., 2.],
                 [1., 2., 1.]]], dtype=mlc.float32)
    """
    x = tracer(input)
    if x.ndim not in (2, 3):
        raise UserError(f"the input has {x.ndim} dimensions, expected 2 or 3", code="MLC0364")
    was_added = x.ndim == 2
    x = reshape(x, [1, *x.shape]) if was_added else x
    size, kernel = each(output_size, 2, "output_size"), each(kernel_size, 2, "kernel_size", 1)
    around, step, apart = each(padding, 2, "padding"), each(stride, 2, "stride", 1), each(dilation, 2, "dilation", 1)
    whole = [n + 2 * p for n, p in zip(size, around)]
    counts = [window_count(n, k, s, d) for n, k, s, d in zip(whole, kernel, step, apart)]
    n, rows, columns = x.shape
    inside = sizes.product(kernel)
    if rows % inside != 0 or columns != sizes.product(counts):
        raise UserError(f"columns of shape {list(x.shape)} do not make up {counts} windows of {list(kernel)} elements",
                        code="MLC0367", symbols=sizes.symbols(rows, columns))
    x = tracer(permute(reshape(x, [n, rows // inside, *kernel, *counts]), (0, 1, 4, 2, 5, 3)))
    for at, full, p, s, d in zip((2, 3), whole, around, step, apart):
        x = emit(T.ReduceSum, emit(T.Place, x, at, full, s, d), (at + 1,), "chain")
        x = sliced(x, at, p, full - p) if p else x
    return unbatched(x, was_added)
