"""The numbers of a block of a quantised tensor, unpacked from its bytes in registers.

Vectors of neighbours that share a scale are unpacked at once; a block of no lanes gives one number, as a scalar. Shifts
and masks are of positions in a block; where they are known, LLVM folds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd

from mlc.dialects import arith, memref, vector
from mlc.dialects.tensor.encodings import Encoding
from mlc.ir.core import Value
from mlc.ir.types import ScalarType, Type, VectorType, f16, f32, i8, i16, i32, index

HALF = 16
"""Numbers that share a scale and lie side by side, in every encoding."""


class Block:
    """A block in memory, and the position of the lanes in it.

    flat     the buffer
    start    of the block, in bytes
    inside   the number of the first lane in the block
    lanes    how many numbers are wanted: 0 is one, as a scalar
    aligned  a number that divides the address of every block; memory may start anywhere on a CPU, so that it is 1 there
    divisor  one that divides the number of the first lane, up to 16
    """

    def __init__(self, flat: Value, start: Value, inside: Value, lanes: int, aligned: int = 1,
                 divisor: int = 1) -> None:
        self.flat, self.start, self.inside, self.lanes = flat, start, inside, lanes
        self.aligned, self.divisor = aligned, divisor

    @staticmethod
    def around(flat: Value, row: Value, place: Value, lanes: int, layout: Encoding, numbers: int,
               aligned: int = 1, divisor: int = 1) -> Block:
        """The block that a place in a row is in, for places of one number or two."""
        places = layout.elements // numbers
        number = arith.ShRUI(place, arith.constant(places.bit_length() - 1, index)).result
        start = arith.AddI(row, arith.MulI(number, arith.constant(layout.bytes, index)).result).result
        inside = arith.AndI(place, arith.constant(places - 1, index)).result
        return Block(flat, start, inside, lanes, gcd(aligned, layout.bytes), gcd(divisor, HALF))

    def type(self, dtype: ScalarType) -> Type:
        """The type of the lanes."""
        return VectorType((self.lanes,), dtype) if self.lanes else dtype

    def at(self, offset: int | Value, more: int = 0) -> Value:
        """The index of a byte of the block."""
        total = self.start
        if isinstance(offset, Value):
            total, offset = arith.AddI(total, offset).result, 0
        return arith.AddI(total, arith.constant(offset + more, index)).result

    def several(self, at: Value, count: int, offset: int) -> Value:
        """A vector of bytes, from one on whose number in the block a power of two divides if it divides `offset`."""
        alignment = gcd(self.aligned, offset)
        return vector.Load(self.flat, (at,), VectorType((count,), i8),
                           alignment=alignment if alignment > 1 else None).result

    def bytes(self, at: Value, offset: int) -> Value:
        """Bytes from one on, one per lane: those of a group of 16 or more that starts at `offset`.

        Where neighbours are scalars, LLVM loads them together if the first is aligned.
        """
        if not self.lanes and gcd(self.aligned, offset, self.divisor) == 1:
            return memref.Load(self.flat, (at,)).result
        found = self.several(at, max(1, self.lanes), gcd(offset, self.divisor))
        return found if self.lanes else vector.Extract(found, (), (0,)).result

    def wide(self, at: Value, offset: int) -> Value:
        """The same, without sign, in 32 bits."""
        return arith.ExtUI(self.bytes(self.at(at, offset), offset), self.type(i32)).result

    def byte(self, at: Value, signed: bool = False) -> Value:
        """One byte in 32 bits."""
        return (arith.ExtSI if signed else arith.ExtUI)(memref.Load(self.flat, (at,)).result, i32).result

    def raw_half(self, offset: int) -> Value:
        """The bits of a number in f16."""
        two = self.several(self.at(offset), 2, offset)
        return vector.Extract(vector.Bitcast(two, VectorType((1,), i16)).result, (), (0,)).result

    def half(self, offset: int) -> Value:
        """A number in f16, as f32."""
        return arith.ExtF(arith.Bitcast(self.raw_half(offset), f16).result, f32).result

    def spread(self, x: Value) -> Value:
        """A scalar in all lanes."""
        return vector.splat(x, self.lanes) if self.lanes else x

    def number(self, q: Value) -> Value:
        """Integers as f32: they are small, so that this is exact."""
        return arith.SIToFP(q, self.type(f32)).result

    def part(self, shift: int, mask: int) -> Value:
        """Bits of the position in the block."""
        x = arith.ShRUI(self.inside, arith.constant(shift, index)).result if shift else self.inside
        return arith.AndI(x, arith.constant(mask, index)).result

    def shifted(self, x: Value, count: Value, bits: int) -> Value:
        """Some bits of each lane from a place on."""
        by = self.spread(arith.IndexCast(count, i32).result)
        return arith.AndI(arith.ShRUI(x, by).result, arith.constant(bits, x.type)).result

    def nibbles(self, offset: int, group: int) -> Value:
        """4 bits per lane, of groups of bytes whose low bits come first."""
        log = group.bit_length() - 1
        start = arith.MulI(self.part(log + 1, 255), arith.constant(group, index)).result
        at = arith.AddI(start, self.part(0, group - 1)).result
        high = arith.MulI(self.part(log, 1), arith.constant(4, index)).result
        return self.shifted(self.wide(at, offset), high, 15)


# -- scales and minima ------------------------------------------------------------------------------------------------
def _scale(b: Block) -> tuple[Value, None]:
    return b.half(0), None


def _scale_and_addend(b: Block) -> tuple[Value, Value]:
    return b.half(0), arith.NegF(b.half(2)).result


def _scale_and_minimum(b: Block) -> tuple[Value, Value]:
    """The products of the scales of a block and of 32 numbers in it."""
    j = b.part(5, 7)
    four = arith.constant(4, index)
    late = arith.CmpI("uge", j, four).result
    first = arith.Select(late, arith.SubI(j, four).result, j).result
    low, middle, high = (b.byte(b.at(first, at)) for at in (4, 8, 12))

    def bits(x: Value, shift: int, mask: int) -> Value:
        moved = arith.ShRUI(x, arith.constant(shift, i32)).result if shift else x
        return arith.AndI(moved, arith.constant(mask, i32)).result

    def joined(x: Value, top: Value) -> Value:
        return arith.OrI(x, arith.ShLI(bits(top, 6, 3), arith.constant(4, i32)).result).result

    scale = arith.Select(late, joined(bits(high, 0, 15), low), bits(low, 0, 63)).result
    least = arith.Select(late, joined(bits(high, 4, 15), middle), bits(middle, 0, 63)).result
    return tuple(arith.MulF(b.half(at), arith.SIToFP(x, f32).result).result  # type: ignore[return-value]
                 for at, x in ((0, scale), (2, least)))


def _scale_of_16(b: Block) -> tuple[Value, None]:
    scale = arith.SIToFP(b.byte(b.at(b.part(4, 15), 192), signed=True), f32).result
    return arith.MulF(b.half(208), scale).result, None


SCALES: Mapping[str, Callable[[Block], tuple[Value, Value | None]]] = {
    "q8_0": _scale, "q4_0": _scale, "q4_1": _scale_and_addend, "q4_k": _scale_and_minimum, "q5_k": _scale_and_minimum,
    "q6_k": _scale_of_16}
"""The scale and the minimum of the lanes, if there is one, as scalars."""


# -- numbers ----------------------------------------------------------------------------------------------------------
def _scaled(b: Block, q: Value, scale: Value) -> Value:
    return arith.MulF(b.number(q), b.spread(scale)).result


def _with_minimum(b: Block, q: Value) -> Value:
    scale, least = _scale_and_minimum(b)
    return arith.SubF(_scaled(b, q, scale), b.spread(least)).result


def _q8_0(b: Block) -> Value:
    q = arith.ExtSI(b.bytes(b.at(b.inside, 2), 2), b.type(i32)).result
    return _scaled(b, q, b.half(0))


def _q4_0(b: Block) -> Value:
    q = b.nibbles(2, 16)
    return _scaled(b, arith.SubI(q, arith.constant(8, q.type)).result, b.half(0))


def _q4_1(b: Block) -> Value:
    return arith.AddF(_scaled(b, b.nibbles(4, 16), b.half(0)), b.spread(b.half(2))).result


def _q4_k(b: Block) -> Value:
    return _with_minimum(b, b.nibbles(16, 32))


def _q5_k(b: Block) -> Value:
    fifth = b.shifted(b.wide(b.part(0, 31), 16), b.part(5, 7), 1)
    top = arith.ShLI(fifth, arith.constant(4, fifth.type)).result
    return _with_minimum(b, arith.OrI(b.nibbles(48, 32), top).result)


def _q6_k(b: Block) -> Value:
    part = arith.MulI(b.part(7, 1), arith.constant(32, index)).result
    two = b.shifted(b.wide(arith.AddI(part, b.part(0, 31)).result, 128),
                    arith.MulI(b.part(5, 3), arith.constant(2, index)).result, 3)
    q = arith.OrI(b.nibbles(0, 64), arith.ShLI(two, arith.constant(4, two.type)).result).result
    return _scaled(b, arith.SubI(q, arith.constant(32, q.type)).result, _scale_of_16(b)[0])


NUMBERS: Mapping[str, Callable[[Block], Value]] = {
    "q8_0": _q8_0, "q4_0": _q4_0, "q4_1": _q4_1, "q4_k": _q4_k, "q5_k": _q5_k, "q6_k": _q6_k}
"""The numbers of the lanes."""
