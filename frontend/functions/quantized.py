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
        UserError: There is no such encoding, or the rows are no sequences of its blocks (MLC0919).

    Example:
        >>> import numpy as np
        >>> from mlc.frontend.functions.quantized import dequantize_blocks
        >>> block = np.concatenate([np.array([0.5], np.float16).view(np.uint8), np.arange(32, dtype=np.uint8)])
        >>> dequantize_blocks(mlc.tensor(block), "q8_0")[:4]
        tensor([0.0000, 0.5000, 1.0000, 1.5000], dtype=mlc.float32)
    """
    return emit(T.Dequantize, tracer(input), encoding)
