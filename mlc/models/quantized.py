"""Weights of models that are quantised: blocks of bytes, whose numbers are computed where a kernel reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from mlc import nn
from mlc.dialects.tensor.encodings import ENCODINGS
from mlc.frontend import known_calls
from mlc.frontend.functions.quantized import dequantize_blocks, quantized_linear
from mlc.frontend.tensor import Tensor


class QuantizedTensor(nn.Module):
    """A tensor of which each row is a sequence of blocks of bytes.

    Attributes:
        blocks: Its memory, a parameter [.., bytes] of uint8 without a gradient.
        encoding: How numbers lie in a block; dialects/tensor/encodings.py has the layouts.
        shape: Of its numbers.

    Args:
        blocks: As above.
        encoding: As above.

    Example:
        >>> from mlc.models.quantized import QuantizedTensor
        >>> QuantizedTensor(mlc.zeros(3, 34, dtype="uint8"), "q8_0").float().shape
        (3, 32)
    """

    def __init__(self, blocks: Tensor, encoding: str) -> None:
        layout = ENCODINGS[encoding]
        self.blocks, self.encoding = nn.Parameter(blocks, requires_grad=False), encoding
        self.shape = (*blocks.shape[:-1], blocks.shape[-1] // layout.bytes * layout.elements)

    def float(self) -> Tensor:  # type: ignore[override]
        """Its numbers."""
        out: Tensor = dequantize_blocks(self.blocks, self.encoding)
        return out

    def product(self, x: Tensor) -> Tensor:
        """x [.., columns] times the transposed matrix: by integers within `integer_products`, else exact."""
        if not _integers.get():
            return nn.functional.linear(x, self.float())
        out: Tensor = quantized_linear(x, self.blocks, self.encoding)
        return out

    def forward(self) -> Tensor:
        return self.float()


_integers: ContextVar[bool] = ContextVar("integer_products", default=False)
known_calls.SETTINGS.append(_integers.get)


@contextmanager
def integer_products(wanted: bool) -> Iterator[None]:
    """Within it, products with quantised matrices round the other factor to 8 bits, or do not.

    It holds for what is recorded within it: the choice is a part of the program that is compiled.
    """
    token = _integers.set(wanted)
    try:
        yield
    finally:
        _integers.reset(token)
