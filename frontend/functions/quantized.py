"""Numbers of quantised tensors."""

from __future__ import annotations

from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.operands import tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand
from mlc.frontend.trace import emit


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
