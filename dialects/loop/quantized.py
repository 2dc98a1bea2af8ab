"""Loads from rows of blocks of quantised tensors, and products of pairs and of quads of their integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.loop.access import Load, as_tile, check_access
from mlc.dialects.loop.compute import Combining
from mlc.dialects.loop.kernel import InKernel
from mlc.dialects.loop.types import TileType, spanned, union
from mlc.dialects.tensor.encodings import ENCODINGS, GROUP, Encoding, decode, groups_of_rows, parts_of_rows
from mlc.ir.affine import AffineMap, dims_of
from mlc.ir.core import Value
from mlc.ir.types import ScalarType, Type, f32, i1, i8, i32

if TYPE_CHECKING:
    from mlc.ir.interp import Frame

Array = np.ndarray[Any, Any]


class LoadEncoded(Load, pure=False):
    """A load of numbers that the bytes of blocks stand for: the last result of `map` is a place in the row, no byte."""

    buffer: Value
    tiles: tuple[Value, ...]
    mask: Value | None
    map: AffineMap
    encoding: str

    pointwise = False                       # pairs are the lanes of vectors
    numbers = 2
    """How many numbers a place has."""

    @property
    def layout(self) -> Encoding:
        return ENCODINGS[self.encoding]

    def is_within_rows(self, d: int) -> bool:
        """Whether points along a dimension are different places of a row."""
        return d in dims_of(self.map.results[-1])

    def infer(self) -> Type:
        type = check_access(self, self.buffer, self.map, self.tiles)
        layout, row = ENCODINGS.get(self.encoding), type.shape[-1] if type.shape else None
        if layout is None or type.dtype != i8 or row is None or row % layout.bytes:
            self.fail(f"{type} does not hold rows of blocks of {self.encoding}", code="MLC0151")
        dims = set(spanned(self.map.leaves, self.tiles))
        if self.mask is not None:
            dims |= set(as_tile(self, self.mask, i1).dims)
        return TileType(tuple(sorted(dims)), type_of(self))

    def of_blocks(self, blocks: Array, place: Array) -> Array:
        """The number at a place of each block [n, bytes]."""
        raise NotImplementedError

    def interpret(self, frame: Frame) -> Any:
        state, tiles, layout = self.activation(frame), frame.all(self.tiles), self.layout
        dims = self.result.type.dims
        valid = state.inside(dims)
        if self.mask is not None:
            valid = valid & frame[self.mask]
        out = np.zeros(state.shape(dims), np.float32 if type_of(self) == f32 else np.int32)
        if valid.any():
            buffer, where, places = frame[self.buffer], np.nonzero(valid), layout.elements // self.numbers
            *row, place = (np.broadcast_to(state.evaluate(e, tiles), out.shape)[where] for e in self.map.results)
            first = place // places * layout.bytes
            spread = [*(r[:, None] for r in row), first[:, None] + np.arange(layout.bytes)]
            out[where] = self.of_blocks(buffer[tuple(spread)].view(np.uint8), place % places)
            state.access(self, False, buffer, [*row, first], dims, where)
        return out


class Dequantize(LoadEncoded, name="loop.dequantize", pure=False):
    """result[p] = number e of the row i of blocks in buffer, where map(p) = (i, e), p is in the domain and mask[p]
    holds, else 0

    The numbers of a block follow from its bytes as `encoding` says (dialects/tensor/encodings.py).
    """

    pointwise = True
    numbers = 1

    def of_blocks(self, blocks: Array, place: Array) -> Array:
        return np.asarray(np.take_along_axis(decode(blocks, self.layout), place[:, None], 1)[:, 0])


class UnpackPairs(LoadEncoded, name="loop.unpack_pairs", pure=False):
    """result[p] = the pair e of integers of the row i of blocks in buffer, where map(p) = (i, e), in 16 bits each

    The first is in the low bits.
    """

    def of_blocks(self, blocks: Array, place: Array) -> Array:
        pairs = parts_of_rows(blocks, self.layout)[0].astype(np.int32)
        packed = pairs[..., 0] & 0xFFFF | pairs[..., 1] << 16
        return np.asarray(np.take_along_axis(packed, place[:, None], 1)[:, 0])


class UnpackQuads(LoadEncoded, name="loop.unpack_quads", pure=False):
    """result[p] = the quad e of integers of the row i of blocks in buffer, where map(p) = (i, e), as bytes without sign

    The first is in the low bits. To each, the `zero` of the encoding has been added (dialects/tensor/encodings.py).
    """

    numbers = 4

    def of_blocks(self, blocks: Array, place: Array) -> Array:
        quads = groups_of_rows(blocks, self.layout)[0].reshape(len(blocks), self.layout.elements).view("<i4")
        return np.asarray(np.take_along_axis(quads, place[:, None], 1)[:, 0])


class BlockScales(LoadEncoded, name="loop.block_scales", pure=False):
    """result[p] = the scale of the pair e of integers of the row i of blocks in buffer, where map(p) = (i, e); or of
    the group e of as many numbers as `numbers` says"""

    buffer: Value
    tiles: tuple[Value, ...]
    mask: Value | None
    map: AffineMap
    encoding: str
    numbers: int = 2

    part = 1

    def infer(self) -> Type:
        type = super().infer()                             # which knows the encoding, or refuses it
        if self.numbers not in (2, self.layout.group):
            self.fail(f"places of {self.numbers} numbers: {self.encoding} has scales of {self.layout.group}, or of "
                      "pairs of them", code="MLC0151")
        return type

    def of_blocks(self, blocks: Array, place: Array) -> Array:
        found = parts_of_rows(blocks, self.layout)[self.part]
        assert found is not None
        return np.asarray(np.take_along_axis(found, place[:, None] * self.numbers // GROUP, 1)[:, 0])


class BlockMinima(BlockScales, name="loop.block_minima", pure=False):
    """result[p] = the minimum of the pair, or group, e of integers of the row i of blocks in buffer, where map(p) =
    (i, e)"""

    part = 2

    def infer(self) -> Type:
        type = super().infer()
        if not self.layout.minima:
            self.fail(f"{self.encoding} has no minima", code="MLC0151")
        return type


def type_of(op: LoadEncoded) -> ScalarType:
    return i32 if isinstance(op, UnpackPairs | UnpackQuads) else f32


class DotPairs(InKernel, name="loop.dot_pairs", pure=True):
    """result[p] = the sum of the products of the low and of the high 16 bits of lhs[p] and rhs[p], with sign"""

    lhs: Value
    rhs: Value

    def infer(self) -> Type:
        for v in self.operands:
            as_tile(self, v, i32)
        return TileType(union(self.operands), i32)

    def ref(self, lhs: Any, rhs: Any) -> Any:
        def halves(x: Array) -> tuple[Array, Array]:
            return x.astype(np.int16).astype(np.int32), x >> 16

        (a, b), (c, d) = halves(np.asarray(lhs)), halves(np.asarray(rhs))
        return a * c + b * d


class DotQuads(Combining, name="loop.dot_quads"):
    """result[p] = acc[p] + sum over the block of dimension dim of the products of the four bytes of lhs, with sign, and
    of rhs, without, of which at most the low `bits` are not 0

    The result is the same with instructions of x86 that add products: of pairs of bytes (`x86vector.pairs_of_bytes`),
    or of quads (`x86vector.avx512.dot_bytes`). `instruction` says which of them the processor has, for vectors of up to
    `widest` bytes: 16, 32 or 64. With a schedule that has vectors of other widths, bytes are multiplied one by one.
    """

    acc: Value
    lhs: Value
    rhs: Value
    dim: int
    bits: int = 8
    instruction: str = "none"
    widest: int = 64
    enums = {"instruction": ("none", "pairs", "quads")}

    def infer(self) -> Type:
        acc, lhs, rhs = (as_tile(self, v, i32) for v in self.operands)
        if self.dim in acc.dims or not {*lhs.dims, *rhs.dims} <= {*acc.dims, self.dim}:
            self.fail(f"{lhs} and {rhs} do not accumulate into {acc}", code="MLC0151")
        if not 1 <= self.bits <= 8:
            self.fail(f"bits = {self.bits} of bytes", code="MLC0151")
        return acc

    def used_dims(self) -> set[int]:
        return {self.dim}

    def interpret(self, frame: Frame) -> Any:
        def bytes(x: Array, dtype: type) -> Array:
            return np.ascontiguousarray(x, "<i4")[..., None].view(dtype).astype(np.int32)

        acc, lhs, rhs = frame.all(self.operands)
        for k in range(int(self.activation(frame).inside((self.dim,)).sum())):
            a, b = (np.take(x, [min(k, x.shape[self.dim] - 1)], axis=self.dim) for x in (lhs, rhs))
            acc = acc + (bytes(a, np.int8) * bytes(b, np.uint8)).sum(-1, dtype=np.int32)
        return acc
