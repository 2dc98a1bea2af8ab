"""Products of panels whose terms share words: two of bf16, as processors with AVX512_BF16 read them, or four bytes, as
those with AVX512_VNNI do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.loop.access import Scratch, ScratchBuffer
from mlc.dialects.loop.compute import Combining
from mlc.dialects.loop.kernel import InKernel
from mlc.dialects.loop.types import TileType
from mlc.ir.core import Op, Value
from mlc.ir.exact import fma
from mlc.ir.types import Type, bf16, f32, i8, i32

if TYPE_CHECKING:
    from mlc.ir.interp import Frame

LEAST_EXPONENT = -126
"""The exponent of the least normal number of f32."""
PRECISION, BIAS = 7, 127
"""Bits of a mantissa of bf16 after the point, and the number that is added to exponents."""
NONE, SUBNORMAL = 512, -(1 << 15)
"""The least exponent field of a panel of zeros, and what stands for the exponent of a subnormal number."""


def interleaved(op: Op, value: Value) -> int:
    """The dimension along which a panel, an operand, is interleaved."""
    if not isinstance(value.op, Scratch) or value.op.interleaved < 0:
        op.fail(f"{value.type} is not an interleaved panel", code="MLC0151")
    return int(value.op.interleaved)


class LeastExponent(InKernel, name="loop.least_exponent", pure=False):
    """result = the e of a power of two, 2^e, of which every element of an interleaved panel is a multiple

    It is the exponent of the least mantissa bit of the least element that is no zero, or a number so small that no sum
    with another is an exponent of f32, if that is subnormal. In vectors, points outside of the domain may count too.
    """

    scratch: Value

    def infer(self) -> Type:
        interleaved(self, self.scratch)
        if self.scratch.type.dtype != bf16:
            self.fail(f"{self.scratch.type} is no panel of bf16", code="MLC0151")
        return TileType((), i32)

    def interpret(self, frame: Frame) -> Any:
        buffer: ScratchBuffer = frame[self.scratch]
        bits = buffer.elements.view(np.uint16).astype(np.int64) & 0x7FFF
        least = int(bits[bits > 0].min(initial=NONE << PRECISION)) >> PRECISION
        shape = self.activation(frame).shape(())
        return np.full(shape, least - BIAS - PRECISION if least else SUBNORMAL, np.int32)


class ContractInterleaved(Combining, name="loop.contract_interleaved", pure=False):
    """result[p] = sum over dimension dim of the panels, ascending from 0, of lhs * rhs: one fused multiply-add each

    The sum is over the whole panels: the current block of dim where they were allocated. Their least exponents tell
    whether a sum may be subnormal: `x86vector.avx512.dot` computes those that are not.
    """

    lhs: Value
    rhs: Value
    lhs_exponent: Value
    rhs_exponent: Value
    dim: int

    def infer(self) -> Type:
        for v in (self.lhs, self.rhs):
            if interleaved(self, v) != self.dim:
                self.fail(f"{v.type} is not interleaved along d{self.dim}", code="MLC0151")
        for v, exponent in ((self.lhs, self.lhs_exponent), (self.rhs, self.rhs_exponent)):
            if not isinstance(exponent.op, LeastExponent) or exponent.op.scratch is not v:
                self.fail(f"{exponent.type} is not the least exponent of its {v.type}", code="MLC0151")
        dims = {*self.lhs.type.dims, *self.rhs.type.dims} - {self.dim}
        return TileType(tuple(sorted(dims)), f32)

    def used_dims(self) -> set[int]:
        return {*self.result.type.dims}

    def interpret(self, frame: Frame) -> Any:
        lhs, rhs = (x.astype(np.float32) for x in whole_panels(self, frame))
        acc = np.zeros(self.activation(frame).shape(self.result.type.dims), np.float32)
        for k in range(lhs.shape[self.dim]):
            acc = fma(*np.broadcast_arrays(*(np.take(x, [k], axis=self.dim) for x in (lhs, rhs)), acc))
        return acc


class ContractBytes(Combining, name="loop.contract_bytes", pure=False):
    """result[p] = sum over dimension dim of the panels of lhs * rhs: bytes with sign, but those of the `unsigned` side

    The sum is over the whole panels, as that of `loop.contract_interleaved`, and wraps as i32 does.
    """

    lhs: Value
    rhs: Value
    dim: int
    unsigned: str
    enums = {"unsigned": ("lhs", "rhs")}

    def infer(self) -> Type:
        for v in (self.lhs, self.rhs):
            if interleaved(self, v) != self.dim or v.type.dtype != i8:
                self.fail(f"{v.type} is no panel of bytes that is interleaved along d{self.dim}", code="MLC0151")
        dims = {*self.lhs.type.dims, *self.rhs.type.dims} - {self.dim}
        return TileType(tuple(sorted(dims)), i32)

    @property
    def unsigned_panel(self) -> Value:
        """The panel of bytes without sign."""
        return self.lhs if self.unsigned == "lhs" else self.rhs

    def used_dims(self) -> set[int]:
        return {*self.result.type.dims}

    def interpret(self, frame: Frame) -> Any:
        factors = whole_panels(self, frame)
        lhs, rhs = (x.view(np.uint8 if side == self.unsigned else np.int8).astype(np.int32)
                    for side, x in zip(("lhs", "rhs"), factors))
        return np.asarray((lhs * rhs).sum(self.dim, dtype=np.int32, keepdims=True))


def whole_panels(op: ContractInterleaved | ContractBytes, frame: Frame) -> list[Any]:
    """Both panels of a product, at the points of the current tile and at all that they have along its terms."""
    state = op.activation(frame)
    around, buffer = state.coordinates[op.dim], frame[op.lhs]
    first, terms = (part[buffer.dims.index(op.dim)] for part in (buffer.first, buffer.elements.shape))
    state.axis(op.dim, np.arange(first, min(first + terms, state.extents[op.dim])))
    panels = [frame[v].load(state) for v in (op.lhs, op.rhs)]
    state.coordinates[op.dim] = around
    return panels
