"""Products of bf16 panels whose terms lie in memory two by two, as processors with AVX512_BF16 read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.loop.access import Scratch, ScratchBuffer
from mlc.dialects.loop.compute import Combining
from mlc.dialects.loop.kernel import InKernel
from mlc.dialects.loop.types import TileType
from mlc.ir.core import Op, Value
from mlc.ir.exact import fma
from mlc.ir.types import Type, f32, i32

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
        state = self.activation(frame)
        around, buffer = state.coordinates[self.dim], frame[self.lhs]
        first, terms = (part[buffer.dims.index(self.dim)] for part in (buffer.first, buffer.elements.shape))
        state.axis(self.dim, np.arange(first, min(first + terms, state.extents[self.dim])))
        lhs, rhs = (frame[v].load(state).astype(np.float32) for v in (self.lhs, self.rhs))
        state.coordinates[self.dim] = around
        acc = np.zeros(state.shape(self.result.type.dims), np.float32)
        for k in range(lhs.shape[self.dim]):
            acc = fma(*np.broadcast_arrays(*(np.take(x, [k], axis=self.dim) for x in (lhs, rhs)), acc))
        return acc
