"""Products of panels whose terms share words: two of bf16, as processors with AVX512_BF16 read them, or four bytes, as
those with AVX512_VNNI do."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.loop.access import Scratch, ScratchBuffer, check_access, position
from mlc.dialects.loop.compute import Combining
from mlc.dialects.loop.kernel import For, InKernel, Kernel
from mlc.dialects.loop.types import ScratchType, TileType, spanned
from mlc.ir.affine import AffineExpr, AffineMap, dim, dims_of, step_along
from mlc.ir.core import Op, ResultType, Value
from mlc.ir.exact import fma
from mlc.ir.sizes import AffineDim, Dim, quotients, substitute
from mlc.ir.types import ScalarType, Type, bf16, f32, i8, i32

if TYPE_CHECKING:
    from mlc.ir.interp import Frame

LEAST_EXPONENT = -126
"""The exponent of the least normal number of f32."""
PRECISION, BIAS = 7, 127
"""Bits of a mantissa of bf16 after the point, and the number that is added to exponents."""
NONE, SUBNORMAL = 512, -(1 << 15)
"""The least exponent field of a panel of zeros, and what stands for the exponent of a subnormal number."""


def words_of_runs(place: AffineExpr, k: int, terms: int, dtype: ScalarType,
                  reversed: bool = False) -> tuple[int, int] | None:
    """(run, distance) if the terms along dimension k of elements at a `place` share words as in an interleaved panel,
    which lie at a distance in runs of so many terms: in one run of all, or in several words that follow each other.
    The terms of a word follow each other, the last one first if they are `reversed`.

    >>> words_of_runs(64 * (dim(0) // 2) + 1 - dim(0) % 2, 0, 32, bf16, reversed=True)
    (32, 64)
    >>> words_of_runs(dim(0), 0, 32, i8), words_of_runs(2 * dim(0), 0, 32, i8)
    ((32, 4), None)
    """
    count = int(i32.width // dtype.width)
    if terms % count or step_along(place, k, count) != (-1 if reversed else 1):
        return None
    first = count - 1 if reversed else 0
    distance = step_along(substitute(place, {AffineDim(k): dim(k) * count + first}), k)
    if isinstance(distance, int):
        return terms, distance
    dens = [q.den for q in quotients(place) if k in dims_of(q.num)]
    run = gcd(terms, *(n for n in dens if isinstance(n, int)))
    return (run, count) if run % count == 0 and step_along(place, k, run) == 1 else None


def in_whole_runs(run: int, block: int, terms: Dim) -> bool:
    """Whether blocks of so many terms consist of whole runs, or of words of one run."""
    return block % run == 0 or run == terms or not isinstance(terms, int) or block >= terms


class Words(InKernel, name="loop.words", pure=False):
    """result[p] = buffer[map(p)], an interleaved panel that is read where it is

    Its terms along dimension `interleaved` share words in the buffer as they do in a `loop.scratch`, with the second
    one of bf16 first if they are `reversed`.
    """

    type: ResultType
    buffer: Value
    map: AffineMap
    interleaved: int
    reversed: bool = False

    def infer(self) -> Type:
        type, memory = self.results[0].type, check_access(self, self.buffer, self.map, ())
        if not isinstance(type, ScratchType) or type.dtype != memory.dtype or type.dtype not in (bf16, i8) or (
                self.interleaved not in type.dims or not {*spanned(self.map.leaves)} <= {*type.dims}):
            self.fail(f"{type} is no panel of {memory} that is interleaved along d{self.interleaved}", code="MLC0151")
        return type

    def maps(self) -> tuple[AffineMap, ...]:
        return (self.map,)

    def used_dims(self) -> set[int]:
        return set()                                     # as a panel, it has all points of those without a loop

    @property
    def runs(self) -> tuple[int, int]:
        """How many terms lie in words at the same distance, and that distance, in elements."""
        terms = self.enclosing(Kernel).domain[self.interleaved]
        place, dtype = position(self.map, self.buffer), self.buffer.type.dtype
        found = words_of_runs(place, self.interleaved, terms, dtype, self.reversed) if isinstance(terms, int) else None
        if found is None:
            self.fail(f"the terms along d{self.interleaved} share no words of {self.buffer.type}", code="MLC0151")
        assert found is not None
        return found

    def verify_op(self) -> None:
        super().verify_op()
        k, (run, _), around = self.interleaved, self.runs, self.parent_op
        while isinstance(around, For):
            if around.dim == k and not in_whole_runs(run, around.step, self.enclosing(Kernel).domain[k]):
                self.fail(f"is in a loop over d{k}, blocks of {around.step} of which are no whole runs of {run}",
                          code="MLC0151")
            around = around.parent_op

    def interpret(self, frame: Frame) -> Any:
        state, type, here = self.activation(frame), self.result.type, self.located_dims()
        around = {d: state.coordinates[d] for d in type.dims if d not in here}
        for d in around:
            state.axis(d, np.arange(state.extents[d]))
        buffer, valid = frame[self.buffer], state.inside(type.dims)
        elements, where = np.zeros(valid.shape, buffer.dtype), np.nonzero(valid)
        place = [np.broadcast_to(state.evaluate(e, ()), valid.shape)[where] for e in self.map.results]
        elements[where] = buffer[tuple(place)]
        state.access(self, False, buffer, place, type.dims, where)
        blocks = [state.coordinates[d].ravel() for d in type.dims]
        state.coordinates.update(around)
        others = [d for d in range(len(state.extents)) if d not in type.dims]
        panel = elements.transpose(*type.dims, *others).reshape([b.size for b in blocks])
        return ScratchBuffer(panel, tuple(int(b[0]) if b.size else 0 for b in blocks), type.dims)


def interleaved(op: Op, value: Value, reversed: bool | None = None) -> int:
    """The dimension along which a panel, an operand, is interleaved, with the terms of a word in the order that the
    operation reads, if it reads one."""
    if not isinstance(value.op, Scratch | Words) or value.op.interleaved < 0:
        op.fail(f"{value.type} is not an interleaved panel", code="MLC0151")
    if reversed is not None and value.op.reversed != reversed:
        op.fail(f"the terms of a word of {value.type} are {'not ' if reversed else ''}reversed", code="MLC0151")
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
            if interleaved(self, v, reversed=True) != self.dim:
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
            a, b = (np.take(x, [k], axis=self.dim) for x in (lhs, rhs))
            acc = fma(a, b, acc)
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
            if interleaved(self, v, reversed=False) != self.dim or v.type.dtype != i8:
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
