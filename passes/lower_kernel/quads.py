"""Lowering of products of bytes with blocks of a quantised tensor for CPUs: each lane of a vector has a row of its own.

16 bytes of the block of each row are loaded, and transposed in registers, which gives four vectors of words; quads of
integers are unpacked from words, the same for lanes as for a scalar: no bits of a byte get into the next one. Values
that several points of a tile are unpacked from are built once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from mlc.dialects import arith, loop, vector, x86vector
from mlc.ir import sizes
from mlc.ir.core import Value
from mlc.ir.sizes import AffineDim, Dim, Leaf
from mlc.ir.types import ScalarType, Type, VectorType, f16, f32, i8, i16, i32
from mlc.passes.lower_kernel.access import Access
from mlc.passes.lower_kernel.blocks import SCALES, Block
from mlc.passes.lower_kernel.memory import address, at, flatten
from mlc.passes.lower_kernel.nest import Lowering, Point, rule
from mlc.passes.lower_kernel.pairs import as_numbers

T = TypeVar("T")
CHUNK = 4
"""Words of a row that are loaded together."""


class Blocks:
    """The block that the place of a point is in, of one row, or of a row for each lane.

    place  the number of the place in the block
    """

    def __init__(self, low: Lowering, op: loop.LoadEncoded, point: Point) -> None:
        *row, place = op.map.results
        self.low, self.op, self.point, self.vector = low, op, point, low.scope.vector
        self.lanes = low.lanes if low.in_lanes(op.result.type.dims) else 0
        if op.tiles or op.mask is not None or (self.lanes and op.is_within_rows(self.vector)):
            op.fail("rows of blocks are the lanes of vectors: `vector` is their dimension", code="MLC0171")
        places = op.layout.elements // op.numbers
        here = at(low, place, point)
        self.place = sizes.modulo(here, places)
        self.start = sizes.divide(here, places) * op.layout.bytes
        self.rows = address(low, Access(op.buffer, (*row, 0), (), None))

    def type(self, dtype: ScalarType) -> Type:
        return VectorType((self.lanes,), dtype) if self.lanes else dtype

    def row(self, lane: int) -> Dim:
        """Where the row of a lane starts, in bytes; that of the last row for lanes beyond it."""
        low, d = self.low, self.vector
        if not self.lanes:
            return at(low, self.rows, self.point)
        count = low.scope.counts.get(self.point[d], self.lanes)
        if isinstance(count, int):
            own = low.coordinate(d, self.point[d] + min(lane, max(0, count - 1)))
        else:
            own = low.coordinate(d, self.point[d] + lane)
            kept = low.once(("row", self.point[d], lane), lambda: arith.MinSI(
                low.number(own), low.number(low.kernel.domain[d] - 1)).result)
            name = low.index_names.setdefault(kept, f"tile.{len(low.index_names)}")
            low.scope.numbers.symbols[name] = kept
            own = sizes.sym(name)

        def coordinate(leaf: Leaf) -> Dim:
            if isinstance(leaf, AffineDim) and leaf.position in low.scope.origin:
                position = leaf.position
                return own if position == d else low.coordinate(position, self.point[position])
            return sizes.of_atom(leaf)

        return sizes.substitute(self.rows, coordinate)

    def load(self, lane: int, offset: Dim, count: int) -> Value:
        """Bytes of the block of a lane."""
        flat, _ = flatten(self.low, self.op.buffer)
        where = self.low.number(self.row(lane) + self.start + offset)
        return vector.Load(flat, (where,), VectorType((count,), i8)).result

    def word(self, offset: Dim, index: Dim) -> Value:
        """Four bytes of each lane as an i32: those of a word from a byte of the block on."""
        if self.lanes >= CHUNK and self.lanes.bit_count() == 1 and isinstance(index, int):
            first = offset + index // CHUNK * 4 * CHUNK
            chunk = self.once(first, CHUNK, lambda: transposed([self.load(lane, first, 4 * CHUNK)
                                                                for lane in range(self.lanes)]))
            return chunk[index % CHUNK]
        words = [vector.Extract(vector.Bitcast(self.load(lane, offset + index * 4, 4), VectorType((1,), i32)).result,
                                (), (0,)).result for lane in range(max(1, self.lanes))]
        return vector.FromElements(tuple(words), self.type(i32)).result if self.lanes else words[0]

    def once(self, offset: Dim, count: int, make: Callable[[], T]) -> T:
        """The result of `make`, of bytes of the blocks from `offset` on, built once."""
        return self.low.once((self.op.buffer, self.lanes, self.row(0) + self.start + offset, count), make)

    def halves(self, offset: int) -> Value:
        """A number in f16 of each lane, as f32."""
        def make() -> Value:
            raw = tuple(vector.Extract(vector.Bitcast(self.load(lane, offset, 2), VectorType((1,), i16)).result, (),
                                       (0,)).result for lane in range(self.lanes))
            bits = vector.FromElements(raw, self.type(i16)).result
            return arith.ExtF(vector.Bitcast(bits, self.type(f16)).result, self.type(f32)).result

        return self.once(offset, 2, make)

    def half_of(self, word: Value, part: int) -> Value:
        """The low (0) or high (1) 16 bits of words as numbers in f16, as f32."""
        both = vector.Bitcast(word, VectorType((2 * self.lanes,), i16)).result
        bits = vector.Shuffle(both, both, tuple(range(part, 2 * self.lanes, 2))).result
        return arith.ExtF(vector.Bitcast(bits, self.type(f16)).result, self.type(f32)).result

    def right(self, x: Value, shift: Dim, mask: int = -1) -> Value:
        """Bits of words from a place on."""
        if shift != 0:
            x = arith.ShRUI(x, self._count(shift)).result
        return x if mask == -1 else arith.AndI(x, arith.constant(mask, x.type)).result

    def left(self, x: Value, shift: Dim) -> Value:
        return arith.ShLI(x, self._count(shift)).result

    def _count(self, shift: Dim) -> Value:
        if isinstance(shift, int):
            return arith.constant(shift, self.type(i32))
        number = arith.IndexCast(self.low.number(shift), i32).result
        return self.low.spread(number) if self.lanes else number

    def number(self, x: Value) -> Value:
        return arith.SIToFP(x, self.type(f32)).result


def transposed(rows: list[Value]) -> list[Value]:
    """Of rows of 16 bytes the words as vectors: the first of all rows, the second of all rows, and so on."""
    lanes = len(rows)
    words = [vector.Bitcast(v, VectorType((CHUNK,), i32)).result for v in rows]

    def joined(parts: Sequence[Value]) -> Value:
        while len(parts) > 1:
            count = 2 * parts[0].type.shape[0]
            parts = [vector.Shuffle(a, b, tuple(range(count))).result for a, b in zip(parts[::2], parts[1::2])]
        return parts[0]

    def interleaved(a: Value, b: Value, first: int, run: int) -> Value:
        """Of each four lanes, `run` from `first` on of a, as many of b, and the next of both."""
        order = [start + side * lanes + first + i + k for start in range(0, lanes, CHUNK)
                 for i in range(0, CHUNK // 2, run) for side in (0, 1) for k in range(run)]
        return vector.Shuffle(a, b, tuple(order)).result

    quarter = [joined(words[i::CHUNK]) for i in range(CHUNK)]
    out = []
    for first in (0, 2):
        a, b = (interleaved(quarter[i], quarter[i + 1], first, 1) for i in (0, 2))
        out += [interleaved(a, b, half, 2) for half in (0, 2)]
    return out


# -- integers ---------------------------------------------------------------------------------------------------------
def every_byte(number: int) -> int:
    """An i32 with a number in each byte."""
    bits = number * 0x01010101
    return bits - (1 << 32) if bits >> 31 else bits


def _q8_0(b: Blocks) -> Value:
    x = b.word(2, b.place)
    return arith.XorI(x, arith.constant(every_byte(128), x.type)).result


def _nibbles(b: Blocks, offset: int, group: int) -> Value:
    """4 bits per number, of groups of bytes whose low bits come first."""
    quads = group // 4
    start = sizes.divide(b.place, 2 * quads) * group + offset
    shift = sizes.modulo(sizes.divide(b.place, quads), 2) * 4
    return b.right(b.word(start, sizes.modulo(b.place, quads)), shift, every_byte(15))


def _more(b: Blocks, low: Value, offset: Dim, shift: Dim, mask: int) -> Value:
    """Bits above the 4 low ones, of 32 bytes."""
    top = b.right(b.word(offset, sizes.modulo(b.place, 8)), shift, every_byte(mask))
    return arith.OrI(low, b.left(top, 4)).result


def _q5_k(b: Blocks) -> Value:
    return _more(b, _nibbles(b, 48, 32), 16, sizes.divide(b.place, 8), 1)


def _q6_k(b: Blocks) -> Value:
    part, two = sizes.divide(b.place, 32), sizes.modulo(sizes.divide(b.place, 8), 4)
    return _more(b, _nibbles(b, 0, 64), part * 32 + 128, two * 2, 3)


QUADS: Mapping[str, Callable[[Blocks], Value]] = {
    "q8_0": _q8_0, "q4_0": lambda b: _nibbles(b, 2, 16), "q4_1": lambda b: _nibbles(b, 4, 16),
    "q4_k": lambda b: _nibbles(b, 16, 32), "q5_k": _q5_k, "q6_k": _q6_k}
"""The quad at the place."""


@rule(loop.UnpackQuads)
def _unpack_quads(low: Lowering, op: loop.UnpackQuads) -> None:
    low.define(op.result, lambda p: QUADS[op.encoding](Blocks(low, op, p)))


# -- scales and minima ------------------------------------------------------------------------------------------------
def _of_k(b: Blocks, part: int) -> Value:
    """The product of a number in f16 and one of 6 bits of each lane, of the 16 bytes that a block starts with."""
    own, last = b.word(0, part), b.word(0, 3)
    below = b.right(own, 0, every_byte(63))
    late = arith.OrI(b.right(last, 4 * part - 4, every_byte(15)), b.left(b.right(own, 6, every_byte(3)), 4)).result
    half = b.once(0, part, lambda: b.half_of(b.word(0, 0), part - 1))
    if isinstance(b.place, int):
        bytes = late if b.place >= 4 else below
    else:
        early = arith.CmpI("slt", b.low.number(b.place), b.low.number(4)).result
        bytes = arith.Select(early, below, late).result
    return arith.MulF(half, b.number(b.right(bytes, sizes.modulo(b.place, 4) * 8, 255))).result


def _of_q6_k(b: Blocks, part: int) -> Value:
    word = b.word(192, sizes.divide(b.place, 4))
    top = b.left(word, 24 - sizes.modulo(b.place, 4) * 8)
    byte = arith.ShRSI(top, arith.constant(24, top.type)).result
    return arith.MulF(b.halves(208), b.number(byte)).result


def _of_block(b: Blocks, part: int) -> Value:
    x = b.halves(2 * part - 2)
    return x if part == 1 else arith.NegF(x).result        # minima of q4_1 are added


PARTS: Mapping[str, Callable[[Blocks, int], Value]] = {
    "q8_0": _of_block, "q4_0": _of_block, "q4_1": _of_block, "q4_k": _of_k, "q5_k": _of_k, "q6_k": _of_q6_k}


def scales_of_groups(low: Lowering, op: loop.BlockScales) -> None:
    """Define the scales or minima of groups."""
    def part(point: Point) -> Value:
        b = Blocks(low, op, point)
        if b.lanes:
            return PARTS[op.encoding](b, op.part)
        flat, _ = flatten(low, op.buffer)
        start, inside = low.number(b.row(0) + b.start), low.number(b.place)
        found = SCALES[op.encoding](as_numbers(Block(flat, start, inside, 0), op.numbers))[op.part - 1]
        assert found is not None, "an encoding without minima has no loop.block_minima"
        return found

    low.define(op.result, part)


# -- products ---------------------------------------------------------------------------------------------------------
WORD = (1 << 15) - 1
"""The greatest number of 16 bits."""


@rule(loop.DotQuads)
def _dot_quads(low: Lowering, op: loop.DotQuads) -> None:
    if op.dim == low.scope.vector:
        op.fail("the dimension of a contraction cannot lie in vector registers: its sum is one chain", code="MLC0171")
    lanes = low.lanes if low.in_lanes(op.result.type.dims) else 0
    fits = 4 * lanes in x86vector.DOT_BYTES and 4 * lanes <= op.widest
    by = _INSTRUCTIONS[op.instruction] if fits else _one_by_one

    def total(point: Point) -> Value:
        places = [(*point[: op.dim], k, *point[op.dim + 1:]) for k in range(low.scope.block[op.dim])]
        parts = [low.part(op.acc, point), *(low.part(v, p) for v in (op.lhs, op.rhs) for p in places)]
        acc, *factors = map(low.spread, parts) if lanes else parts
        return by(acc, factors[: len(places)], factors[len(places):], op.bits)

    low.define(op.result, total)


def _in_quads(acc: Value, x: Sequence[Value], w: Sequence[Value], bits: int) -> Value:
    for quads in zip(w, x):
        acc = x86vector.DotBytes(acc, *(_as_bytes(v) for v in quads)).result
    return acc


def _as_bytes(quads: Value) -> Value:
    return vector.Bitcast(quads, VectorType((4 * quads.type.shape[0],), i8)).result


def _in_pairs(acc: Value, x: Sequence[Value], w: Sequence[Value], bits: int) -> Value:
    """Products of two bytes are added in words, then words of several quads as long as no sum exceeds one, then the
    words of lanes. Of bytes for which one product would, the low and the high 4 bits are multiplied apart."""
    if 2 << (bits + 7) > WORD + 1:
        nibbles, four = (arith.constant(n, acc.type) for n in (every_byte(15), 4))
        low, high = ([arith.AndI(v, nibbles).result for v in part]
                     for part in (w, [arith.ShRUI(v, four).result for v in w]))
        above = _in_pairs(arith.constant(0, acc.type), x, high, 4)
        return arith.AddI(_in_pairs(acc, x, low, 4), arith.ShLI(above, four).result).result
    together = WORD // (((1 << bits) - 1) << 8)
    half = arith.constant(16, acc.type)
    for first in range(0, len(x), together):
        words: Value | None = None
        for quads in zip(w[first: first + together], x[first: first + together]):
            more = x86vector.PairsOfBytes(*(_as_bytes(v) for v in quads)).result
            words = more if words is None else arith.AddI(words, more).result
        assert words is not None
        pairs = vector.Bitcast(words, acc.type).result
        even = arith.ShRSI(arith.ShLI(pairs, half).result, half).result
        acc = arith.AddI(acc, arith.AddI(even, arith.ShRSI(pairs, half).result).result).result
    return acc


def _one_by_one(acc: Value, x: Sequence[Value], w: Sequence[Value], bits: int) -> Value:
    for a, b in zip(x, w):
        for i in range(4):
            left, top, right, mask = (arith.constant(n, acc.type) for n in (24 - 8 * i, 24, 8 * i, 255))
            byte = arith.ShRSI(arith.ShLI(a, left).result, top).result
            other = arith.AndI(arith.ShRUI(b, right).result, mask).result
            acc = arith.AddI(acc, arith.MulI(byte, other).result).result
    return acc


_INSTRUCTIONS: Mapping[str, Callable[[Value, Sequence[Value], Sequence[Value], int], Value]] = {
    "none": _one_by_one, "pairs": _in_pairs, "quads": _in_quads}
