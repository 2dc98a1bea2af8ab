"""Numbers of quantised tensors."""

from __future__ import annotations

from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.functions.convolution import Ints, Padding, batched, each, fits, pads, unbatched
from mlc.frontend.functions.elementwise import clamp, round
from mlc.frontend.operands import cast, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand
from mlc.frontend.trace import emit
from mlc.ir.diag import UserError
from mlc.ir.types import f32, i8, i32, ui8

MOST_TERMS = (1 << 31) // (255 * 128)
"""Products of a byte without sign and one with sign whose sum surely fits in int32."""


@operation()
def dequantize_blocks(input: Operand, encoding: str) -> Any:
    """The numbers of rows of blocks, as GGUF files hold them.

    Compiled functions that read the result read the blocks only: the numbers are computed where they are used.

    Args:
        input: Rows of blocks [.., bytes], of uint8.
        encoding: How numbers lie in a block: "q8_0", "q4_0", "q4_1", "q4_k", "q5_k" or "q6_k".

    Returns:
        Tensor [.., numbers] of float32.

    Raises:
        UserError: There is no such encoding, or the rows are no sequences of its blocks (MLC0923).

    Example:
        >>> import numpy as np
        >>> from mlc.frontend.functions.quantized import dequantize_blocks
        >>> block = np.concatenate([np.array([0.5], np.float16).view(np.uint8), np.arange(32, dtype=np.uint8)])
        >>> dequantize_blocks(mlc.tensor(block), "q8_0")[:4]
        tensor([0.0000, 0.5000, 1.0000, 1.5000], dtype=mlc.float32)
    """
    return emit(T.Dequantize, tracer(input), encoding)


@operation()
def quantized_linear(input: Operand, blocks: Operand, encoding: str) -> Any:
    """The product of rows with a quantised matrix, transposed, by integers of 8 bits.

    Each 32 numbers of a row are rounded to 255 steps, integers are multiplied exactly, and scales after that:
    `linear(input, dequantize_blocks(blocks))` up to this rounding, and faster.

    Args:
        input: Rows of numbers [.., columns], in float32.
        blocks: The matrix, of rows of blocks [rows, bytes] of uint8.
        encoding: How numbers lie in a block, as of `dequantize_blocks`.

    Returns:
        Tensor [.., rows] of float32.

    Raises:
        UserError: There is no such encoding, or the rows do not fit (MLC0923).

    Example:
        >>> from mlc.frontend.functions.quantized import quantized_linear
        >>> quantized_linear(mlc.ones(2, 32), mlc.zeros(3, 34, dtype="uint8"), "q8_0").shape
        (2, 3)
    """
    return emit(T.QuantizedDot, tracer(input), tracer(blocks), encoding)


@operation()
def quantize_per_tensor(input: Operand, scale: Operand, zero_point: Operand) -> Any:
    """Numbers rounded to the 256 steps of a scale: clamp(round(input * (1 / scale)) + zero_point, 0, 255), as uint8.

    A step q stands for (q - zero_point) * scale. Ties are rounded to even. It is that of
    `torch.ops.quantized_decomposed`. NaN becomes some step.

    Args:
        input: Numbers of float32.
        scale: The distance of two steps, a positive number of float32 or a tensor of one.
        zero_point: The step that stands for 0, an integer from 0 to 255 or a tensor of one.

    Returns:
        Tensor of the input's shape, of uint8.

    Example:
        >>> from mlc.frontend.functions.quantized import quantize_per_tensor
        >>> quantize_per_tensor(mlc.tensor([-1.0, 0.0, 0.26, 9.0]), 0.1, 10)
        tensor([  0,  10,  13, 100], dtype=mlc.uint8)
    """
    steps = round(cast(tracer(input), f32) * (1.0 / tracer(scale))) + cast(tracer(zero_point), f32)
    return cast(tracer(clamp(steps, 0.0, 255.0)), ui8)


@operation()
def linear_integer(input: Operand, weight: Operand) -> Any:
    """The products of rows of steps with rows of integers, added exactly: sum over c of weight[o, c] * input[.., c].

    It is ONNX's MatMulInteger with a transposed matrix, and without zero points.

    Args:
        input: Steps of shape (.., columns), of uint8, as `quantize_per_tensor` makes them.
        weight: Rows of shape (rows, columns), of int8.

    Returns:
        Tensor of shape (.., rows), of int32.

    Raises:
        UserError: The numbers of columns differ (MLC0115), or the numbers are no integers of 8 bits (MLC0113).

    Example:
        >>> from mlc.frontend.functions.quantized import linear_integer
        >>> linear_integer(mlc.tensor([1, 200], dtype="uint8"), mlc.tensor([[-1, 1], [0, 2]], dtype="int8"))
        tensor([199, 400], dtype=mlc.int32)
    """
    x, w = tracer(input), tracer(weight)
    if x.type.dtype not in (ui8, i8) or w.type.dtype != i8:
        raise UserError(f"integers of 8 bits are multiplied here, not {x.type.dtype} and {w.type.dtype}",
                        code="MLC0113")
    return emit(T.DotGeneral, cast(x, i32), cast(w, i32), (), ((x.ndim - 1, 1),))


@operation()
def conv_integer(input: Operand, weight: Operand, zero_point: Operand, stride: Ints = 1, padding: Padding = 0,
                 dilation: Ints = 1, groups: int = 1) -> Any:
    """The convolution of steps with filters of integers, added exactly: sum over c, k of weight * input, as int32.

    It is ONNX's ConvInteger without the zero point taken off, which the caller does with the sums of the filters: the
    image is padded with `zero_point`, so that each window has as many steps.

    Args:
        input: Steps of shape (n, c, *sizes), or (c, *sizes), of uint8, as `quantize_per_tensor` makes them.
        weight: Filters of shape (out_channels, c / groups, *kernel), of int8.
        zero_point: The step that stands for 0, an integer from 0 to 255 or a tensor of one.
        stride: Step from one window to the next, an integer, or one for each dimension.
        padding: Elements before and after, an integer, or one for each dimension; "valid" for none, "same" for as many
            windows as elements, with stride 1.
        dilation: Distance of the elements of a window, an integer, or one for each dimension.
        groups: Number of groups of channels; each is convolved with its own filters.

    Returns:
        Tensor of shape (n, out_channels, *windows), of int32.

    Raises:
        UserError: Channels do not fit or a window is larger than the image (MLC0115, MLC0367), or a setting has the
            wrong length (MLC0357).

    Example:
        >>> from mlc.frontend.functions.quantized import conv_integer
        >>> x, w = mlc.tensor([[[1, 2, 3]]], dtype="uint8"), mlc.tensor([[[-1, 1]]], dtype="int8")
        >>> conv_integer(x, w, mlc.tensor(0, dtype="uint8"))
        tensor([[[1, 1]]], dtype=mlc.int32)
    """
    w, zero = tracer(weight), cast(tracer(zero_point), ui8)
    spatial = w.ndim - 2
    x, was_added = batched(tracer(input), spatial, "the input")
    s, d = each(stride, spatial, "stride", 1), each(dilation, spatial, "dilation", 1)
    low, high = pads(padding, w.shape[2:], s, d)
    if any(n != 0 for n in (*low, *high)):
        x = emit(T.Pad, x, zero, (0, 0, *low), (0, 0, *high), (0,) * x.ndim)
    out = emit(T.Convolution, x, w, s, (), (), d, (), groups)
    fits(out, x)
    return unbatched(out, was_added)
