"""tensor, quantized: numbers of quantised tensors, whose blocks are bytes in memory (encodings.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects.tensor.base import Array, TensorOp, leading, shape_text
from mlc.dialects.tensor.encodings import ENCODINGS, Encoding, decode
from mlc.dialects.tensor.iteration import IndexingMap, IterationDomain
from mlc.dialects.tensor.traits import Cost, Iteration
from mlc.ir import sizes
from mlc.ir.core import Value
from mlc.ir.types import TensorType, f32, ui8


class Dequantize(TensorOp, name="tensor.dequantize"):
    """result[.., i] = number i of the row of blocks x[..]

    `encoding` says how many numbers a block has, and how they follow from its bytes: q8_0, q4_0, q4_1, q4_k, q5_k or q6_k
    (encodings.py). Every kernel that reads the result has the operation in it, so that nothing but the blocks is read
    from memory.

        %r = tensor.dequantize %x {encoding = "q8_0"} : (tensor<Bx68xui8>) -> tensor<Bx64xf32>
    """

    x: Value
    encoding: str
    format = "$x attr-dict `:` functional-type"
    vmap = leading
    cost = Cost.FREE
    iteration = Iteration.INDEXED
    moves_elements = True
    checked_operand = None

    @property
    def layout(self) -> Encoding:
        return ENCODINGS[self.encoding]

    def infer(self) -> TensorType:
        x, = self.tensors()
        if self.encoding not in ENCODINGS:
            self.refuse(f"there is no encoding {self.encoding!r}", "MLC0919", hint="one of " + ", ".join(ENCODINGS))
        if x.dtype != ui8:
            self.refuse(f"blocks are ui8, not {x.dtype}", "MLC0113")
        row = x.shape[-1] if x.rank else 1
        if not isinstance(row, int) or row % self.layout.bytes:
            self.refuse(f"the last axis of {shape_text(x.shape)} is no sequence of blocks of {self.layout.bytes} bytes",
                        "MLC0919", symbols=sizes.symbols(row))
        return TensorType((*x.shape[:-1], row // self.layout.bytes * self.layout.elements), f32)

    def ref(self, x: Any) -> Array:
        return decode(np.asarray(x), self.layout)

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        return [(*at[:-1], None)]

    def vjp(self, ct: Value) -> list[Value | None]:
        return [None]
