"""Lowering of quantised loads: the bytes of neighbours in a block are loaded as a vector and unpacked in registers.

Lanes that are aligned, as those along a row are, lie in one half of 32 numbers and so share a scale. Any other tile is
unpacked number by number. Shifts and masks are of positions in a block; where they are known, LLVM folds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlc.dialects import arith, loop, memref, scf, vector
from mlc.dialects.tensor.encodings import ENCODINGS
from mlc.ir.affine import AffineExpr, dims_of, step_along
from mlc.ir.core import Value, at_end
from mlc.ir.types import VectorType, f16, f32, i8, i16, i32, index
from mlc.passes.lower_kernel.access import Access
from mlc.passes.lower_kernel.memory import address, flatten, lane_index, lane_mask, scalar_index
from mlc.passes.lower_kernel.nest import Lowering, Point, rule

HALF = 16
"""Numbers that share a scale and lie side by side, in every encoding."""


@rule(loop.Dequantize)
def _dequantize(low: Lowering, op: loop.Dequantize) -> None:
    *row, element = op.map.results
    rows = Access(op.buffer, (*row, 0), op.tiles, op.mask)
    places = Access(op.buffer, (*row, element), op.tiles, op.mask)
    if not low.in_lanes(op.result.type.dims):
        low.define(op.result, lambda p: _if(low, op, p, lambda: _scalar(low, op, rows, p)))
    elif _is_aligned(low, op):
        low.define(op.result, lambda p: _if(low, op, p, lambda: _aligned(low, op, rows, p), low.lanes))
    else:
        low.define(op.result, lambda p: _one_by_one(low, op, rows, places, p))


@rule(loop.UnpackPairs)
def _unpack_pairs(low: Lowering, op: loop.UnpackPairs) -> None:
    rows, place = _rows_and_place(low, op)

    def part(point: Point) -> Value:
        block = _block(low, op, scalar_index(low, address(low, rows), op.tiles, point),
                       scalar_index(low, place, op.tiles, point), low.lanes, 2)
        _prefetch_next(low, op, block, rows)
        return _PAIRS[op.encoding](block)

    low.define(op.result, part)


@rule(loop.BlockScales)
@rule(loop.BlockMinima)
def _block_scales(low: Lowering, op: loop.BlockScales) -> None:
    if op.encoding in _ALL_SCALES:
        _of_whole_blocks(low, op)
    else:
        _of_single_numbers(low, op)


def _of_single_numbers(low: Lowering, op: loop.BlockScales) -> None:
    """A block has one scale: those of all rows of the tile are widened at once."""
    d, (rows, place) = low.scope.vector, _rows_and_place(low, op)
    first = sorted({(*p[:d], 0, *p[d + 1:]) for p in low.points(op.result.type.dims)})
    raw = [_block(low, op, scalar_index(low, address(low, rows), op.tiles, p), scalar_index(low, place, op.tiles, p),
                  low.lanes, 2).raw_half(2 * op.part - 2) for p in first]
    halves = vector.Bitcast(vector.FromElements(tuple(raw), VectorType((len(raw),), i16)).result,
                            VectorType((len(raw),), f16)).result
    wide = arith.ExtF(halves, VectorType((len(raw),), f32)).result
    if op.part == 2:                                       # they are added
        wide = arith.NegF(wide).result
    number = {p: i for i, p in enumerate(first)}
    low.define(op.result, lambda p: vector.Shuffle(
        wide, wide, (number[*p[:d], 0, *p[d + 1:]],) * low.lanes).result)


def _rows_and_place(low: Lowering, op: loop.LoadEncoded) -> tuple[Access, AffineExpr]:
    """The start of the rows that are read, and the place in them."""
    if not low.in_lanes(op.result.type.dims) or not _is_aligned(low, op):
        op.fail("the pairs of a block are the lanes of vectors: `vector` is their dimension", code="MLC0171")
    *row, place = op.map.results
    return Access(op.buffer, (*row, 0), op.tiles, op.mask), place


def _of_whole_blocks(low: Lowering, op: loop.BlockScales) -> None:
    """Compute all scales or minima of a block at once, as a vector, from which the pairs have theirs."""
    places = op.layout.elements // 2
    if low.scope.block[low.scope.vector] != places:
        op.fail(f"the {places} pairs of a block are a tile of vectors", code="MLC0171")
    (rows, place), found = _rows_and_place(low, op), dict[Point, Value]()

    def part(point: Point) -> Value:
        d = low.scope.vector
        first = (*point[:d], 0, *point[d + 1:])
        if first not in found:
            block = _block(low, op, scalar_index(low, address(low, rows), op.tiles, first),
                           scalar_index(low, place, op.tiles, first), low.lanes, 2)
            found[first] = _ALL_SCALES[op.encoding](block, op.part)
        each = places // found[first].type.shape[0]
        order = tuple((point[d] + lane) // each for lane in range(low.lanes))
        return vector.Shuffle(found[first], found[first], order).result

    low.define(op.result, part)


def _prefetch_next(low: Lowering, op: loop.LoadEncoded, block: Block, rows: Access) -> None:
    """Ask for the same place in the rows of the next tile: processors foresee how single rows go on, but do not follow
    several that lie close to each other.
    """
    place, ahead = address(low, rows), 0
    for d in range(low.kernel.parallel):
        step = step_along(place, d)
        if step not in (None, 0) and isinstance(step, int):
            ahead = step * low.kernel.schedule.tile[d]
    if ahead:
        memref.Prefetch(block.flat, (block.at(ahead),))


@rule(loop.DotPairs)
def _dot_pairs(low: Lowering, op: loop.DotPairs) -> None:
    """LLVM knows the products of even and of odd lanes, added, as one instruction of x86 (vpmaddwd)."""
    def halves(v: Value) -> list[Value]:
        lanes = low.lanes
        words = vector.Bitcast(low.spread(v), VectorType((2 * lanes,), i16)).result
        return [arith.ExtSI(vector.Shuffle(words, words, tuple(range(i, 2 * lanes, 2))).result,
                            VectorType((lanes,), i32)).result for i in (0, 1)]

    def dot(point: Point) -> Value:
        (a, b), (c, d) = (halves(low.part(v, point)) for v in (op.lhs, op.rhs))
        return arith.AddI(arith.MulI(a, c).result, arith.MulI(b, d).result).result

    low.define(op.result, dot)


def _is_aligned(low: Lowering, op: loop.LoadEncoded) -> bool:
    """Whether the lanes are neighbours in one half of 32 numbers of a row: rows are whole blocks."""
    *row, element = op.map.results
    d = low.scope.vector
    step = low.kernel.schedule.tile[d]
    return (element == loop.coordinate(d) and not any(low.in_lanes(t.type.dims) for t in op.tiles)
            and d not in dims_of(*row) and HALF % low.lanes == 0 and step % low.lanes == 0
            and all(f.size % low.lanes == 0 for f in low.kernel.inside(loop.For) if f.dim == d)
            and (op.mask is None or not low.in_lanes(op.mask.type.dims)))


def _if(low: Lowering, op: loop.Dequantize, point: Point, read: Callable[[], Value], lanes: int = 0) -> Value:
    """The result of `read` where the mask holds, which is the same for all lanes; zeros elsewhere."""
    if op.mask is None:
        return read()
    type = VectorType((lanes,), f32) if lanes else f32
    branch = scf.branch(low.part(op.mask, point), [type])
    with at_end(branch.then_body.block), low.scoped():
        scf.Yield((read(),))
    with at_end(branch.else_body.block):
        scf.Yield((arith.constant(0.0, type),))
    return branch.results[0]


def _aligned(low: Lowering, op: loop.Dequantize, rows: Access, point: Point) -> Value:
    block = _block(low, op, scalar_index(low, address(low, rows), op.tiles, point),
                   scalar_index(low, op.map.results[-1], op.tiles, point), low.lanes, 1)
    if point[low.scope.vector] == 0 and not op.tiles:
        _prefetch_next(low, op, block, rows)
    return _UNPACK[op.encoding](block)


def _scalar(low: Lowering, op: loop.Dequantize, rows: Access, point: Point) -> Value:
    row = scalar_index(low, address(low, rows), op.tiles, point)
    x = _unpacked(low, op, row, scalar_index(low, op.map.results[-1], op.tiles, point), 1)
    return vector.Extract(x, (), (0,)).result


def _one_by_one(low: Lowering, op: loop.Dequantize, rows: Access, places: Access, point: Point) -> Value:
    """Unpack the number of each active lane."""
    row = lane_index(low, address(low, rows), op.tiles, point)
    element = lane_index(low, op.map.results[-1], op.tiles, point)
    mask = lane_mask(low, places, point)
    numbers = []
    for lane in range(low.lanes):
        def read(lane: int = lane) -> Value:
            start, place = (vector.Extract(v, (), (lane,)).result for v in (row, element))
            return vector.Extract(_unpacked(low, op, start, place, 1), (), (0,)).result

        if mask is None:
            numbers.append(read())
            continue
        branch = scf.branch(vector.Extract(mask, (), (lane,)).result, [f32])
        with at_end(branch.then_body.block), low.scoped():
            scf.Yield((read(),))
        with at_end(branch.else_body.block):
            scf.Yield((arith.constant(0.0, f32),))
        numbers.append(branch.results[0])
    return vector.FromElements(tuple(numbers), VectorType((low.lanes,), f32)).result


def _unpacked(low: Lowering, op: loop.Dequantize, row: Value, element: Value, lanes: int) -> Value:
    """The numbers of a row from an element on, as a vector of lanes."""
    return _UNPACK[op.encoding](_block(low, op, row, element, lanes, 1))


def _block(low: Lowering, op: loop.LoadEncoded, row: Value, place: Value, lanes: int, numbers: int) -> Block:
    """The block that a place in a row is in, for places of one number or two."""
    layout = ENCODINGS[op.encoding]
    places = layout.elements // numbers
    number = arith.ShRUI(place, arith.constant(places.bit_length() - 1, index)).result
    start = arith.AddI(row, arith.MulI(number, arith.constant(layout.bytes, index)).result).result
    inside = arith.AndI(place, arith.constant(places - 1, index)).result
    return Block(flatten(low, op.buffer)[0], start, inside, lanes)


class Block:
    """A block in memory, and the position of the lanes in it.

    flat    the buffer
    start   of the block, in bytes
    inside  the number of the first lane in the block
    lanes   how many numbers are wanted
    """

    def __init__(self, flat: Value, start: Value, inside: Value, lanes: int) -> None:
        self.flat, self.start, self.inside, self.lanes = flat, start, inside, lanes

    def at(self, offset: int | Value, more: int = 0) -> Value:
        """The index of a byte of the block."""
        total = self.start
        if isinstance(offset, Value):
            total, offset = arith.AddI(total, offset).result, 0
        return arith.AddI(total, arith.constant(offset + more, index)).result

    def bytes(self, at: Value) -> Value:
        """Bytes from one on, one per lane."""
        return vector.Load(self.flat, (at,), VectorType((self.lanes,), i8)).result

    def wide(self, at: Value) -> Value:
        """The same, without sign, in 32 bits."""
        return arith.ExtUI(self.bytes(at), VectorType((self.lanes,), i32)).result

    def byte(self, at: Value, signed: bool = False) -> Value:
        """One byte in 32 bits."""
        one = vector.Load(self.flat, (at,), VectorType((1,), i8)).result
        return (arith.ExtSI if signed else arith.ExtUI)(vector.Extract(one, (), (0,)).result, i32).result

    def raw_half(self, offset: int) -> Value:
        """The bits of a number in f16."""
        two = vector.Load(self.flat, (self.at(offset),), VectorType((2,), i8)).result
        return vector.Extract(vector.Bitcast(two, VectorType((1,), i16)).result, (), (0,)).result

    def half(self, offset: int) -> Value:
        """A number in f16, as f32."""
        return arith.ExtF(arith.Bitcast(self.raw_half(offset), f16).result, f32).result

    def spread(self, x: Value) -> Value:
        return vector.splat(x, self.lanes)

    def number(self, q: Value) -> Value:
        """Integers as f32: they are small, so that this is exact."""
        return arith.SIToFP(q, VectorType((self.lanes,), f32)).result

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
        return self.shifted(self.wide(self.at(at, offset)), high, 15)


def _q8_0(b: Block) -> Value:
    q = arith.ExtSI(b.bytes(b.at(b.inside, 2)), VectorType((b.lanes,), i32)).result
    return arith.MulF(b.number(q), b.spread(b.half(0))).result


def _q4_0(b: Block) -> Value:
    q = b.nibbles(2, 16)
    return arith.MulF(b.number(arith.SubI(q, arith.constant(8, q.type)).result), b.spread(b.half(0))).result


def _q4_1(b: Block) -> Value:
    scaled = arith.MulF(b.number(b.nibbles(4, 16)), b.spread(b.half(0))).result
    return arith.AddF(scaled, b.spread(b.half(2))).result


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


def _with_minimum(b: Block, q: Value) -> Value:
    scale, least = _scale_and_minimum(b)
    return arith.SubF(arith.MulF(b.number(q), b.spread(scale)).result, b.spread(least)).result


def _q4_k(b: Block) -> Value:
    return _with_minimum(b, b.nibbles(16, 32))


def _q5_k(b: Block) -> Value:
    fifth = b.shifted(b.wide(b.at(b.part(0, 31), 16)), b.part(5, 7), 1)
    top = arith.ShLI(fifth, arith.constant(4, fifth.type)).result
    return _with_minimum(b, arith.OrI(b.nibbles(48, 32), top).result)


def _q6_k(b: Block) -> Value:
    part = arith.MulI(b.part(7, 1), arith.constant(32, index)).result
    two = b.shifted(b.wide(b.at(arith.AddI(part, b.part(0, 31)).result, 128)),
                    arith.MulI(b.part(5, 3), arith.constant(2, index)).result, 3)
    q = arith.OrI(b.nibbles(0, 64), arith.ShLI(two, arith.constant(4, two.type)).result).result
    q = arith.SubI(q, arith.constant(32, q.type)).result
    scale = arith.SIToFP(b.byte(b.at(b.part(4, 15), 192), signed=True), f32).result
    return arith.MulF(b.number(q), b.spread(arith.MulF(b.half(208), scale).result)).result


_UNPACK: Mapping[str, Callable[[Block], Value]] = {
    "q8_0": _q8_0, "q4_0": _q4_0, "q4_1": _q4_1, "q4_k": _q4_k, "q5_k": _q5_k, "q6_k": _q6_k}


# -- pairs of integers ------------------------------------------------------------------------------------------------
def _words(b: Block, at: Value, count: int = 2) -> Value:
    """Bytes from one on, `count` per lane, in 16 bits each."""
    raw = vector.Load(b.flat, (at,), VectorType((count * b.lanes,), i8)).result
    return arith.ExtUI(raw, VectorType((count * b.lanes,), i16)).result


def _bits(words: Value, shift: Value, mask: int) -> Value:
    """Some bits of each word, from a place on."""
    (n,) = words.type.shape
    by = vector.splat(arith.IndexCast(shift, i16).result, n)
    return arith.AndI(arith.ShRUI(words, by).result, arith.constant(mask, words.type)).result


def _as_pairs(b: Block, words: Value) -> Value:
    return vector.Bitcast(words, VectorType((b.lanes,), i32)).result


def _less(words: Value, number: int) -> Value:
    return arith.SubI(words, arith.constant(number, words.type)).result


def _twice(b: Block) -> Value:
    """The number of the first of the numbers of the lanes, which are two each, in the block."""
    return arith.MulI(b.inside, arith.constant(2, index)).result


def _pairs_q8_0(b: Block) -> Value:
    raw = vector.Load(b.flat, (b.at(_twice(b), 2),), VectorType((2 * b.lanes,), i8)).result
    return _as_pairs(b, arith.ExtSI(raw, VectorType((2 * b.lanes,), i16)).result)


def _halves_as_words(b: Block, offset: int) -> Value:
    """4 bits per number of 16 bytes, of which the low bits come first."""
    if 2 * b.lanes < 2 * HALF:
        return _nibbles_as_words(b, offset, 16)
    raw = vector.Load(b.flat, (b.at(offset),), VectorType((HALF,), i8)).result
    words = arith.ExtUI(raw, VectorType((HALF,), i16)).result
    low = arith.AndI(words, arith.constant(15, words.type)).result
    high = arith.ShRUI(words, arith.constant(4, words.type)).result
    return vector.Shuffle(low, high, tuple(range(2 * HALF))).result


def _pairs_q4_0(b: Block) -> Value:
    return _as_pairs(b, _less(_halves_as_words(b, 2), 8))


def _pairs_q4_1(b: Block) -> Value:
    return _as_pairs(b, _halves_as_words(b, 4))


def _nibbles_as_words(b: Block, offset: int, group: int) -> Value:
    """4 bits per number, of groups of bytes whose low bits come first."""
    log = group.bit_length() - 2                           # in pairs
    start = arith.MulI(b.part(log + 1, 255), arith.constant(group, index)).result
    within = arith.MulI(b.part(0, group // 2 - 1), arith.constant(2, index)).result
    high = arith.MulI(b.part(log, 1), arith.constant(4, index)).result
    return _bits(_words(b, b.at(arith.AddI(start, within).result, offset)), high, 15)


def _above(words: Value, more: Value) -> Value:
    return arith.OrI(words, arith.ShLI(more, arith.constant(4, more.type)).result).result


def _pairs_q4_k(b: Block) -> Value:
    return _as_pairs(b, _nibbles_as_words(b, 16, 32))


def _pairs_q5_k(b: Block) -> Value:
    within = arith.MulI(b.part(0, 15), arith.constant(2, index)).result
    fifth = _bits(_words(b, b.at(within, 16)), b.part(4, 7), 1)
    return _as_pairs(b, _above(_nibbles_as_words(b, 48, 32), fifth))


def _pairs_q6_k(b: Block) -> Value:
    part = arith.MulI(b.part(6, 1), arith.constant(32, index)).result
    within = arith.MulI(b.part(0, 15), arith.constant(2, index)).result
    two = _bits(_words(b, b.at(arith.AddI(part, within).result, 128)),
                arith.MulI(b.part(4, 3), arith.constant(2, index)).result, 3)
    return _as_pairs(b, _less(_above(_nibbles_as_words(b, 0, 64), two), 32))


_PAIRS: Mapping[str, Callable[[Block], Value]] = {
    "q8_0": _pairs_q8_0, "q4_0": _pairs_q4_0, "q4_1": _pairs_q4_1, "q4_k": _pairs_q4_k, "q5_k": _pairs_q5_k,
    "q6_k": _pairs_q6_k}


# -- scales and minima of pairs ---------------------------------------------------------------------------------------
def _all_of_k(b: Block, part: int) -> Value:
    """The 8 scales (part 1) or minima (part 2)."""
    four = VectorType((4,), i32)

    def bytes(offset: int) -> Value:
        return arith.ExtUI(vector.Load(b.flat, (b.at(offset),), VectorType((4,), i8)).result, four).result

    own, high = bytes(4 * part), bytes(12)
    low = arith.AndI(own, arith.constant(63, four)).result
    top = arith.ShLI(arith.ShRUI(own, arith.constant(6, four)).result, arith.constant(4, four)).result
    rest = arith.ShRUI(high, arith.constant(4, four)).result if part == 2 else arith.AndI(
        high, arith.constant(15, four)).result
    late = arith.OrI(rest, top).result
    both = vector.Shuffle(low, late, tuple(range(8))).result
    numbers = arith.SIToFP(both, VectorType((8,), f32)).result
    return arith.MulF(vector.splat(b.half(2 * part - 2), 8), numbers).result


def _all_of_q6_k(b: Block, part: int) -> Value:
    """The 16 scales."""
    raw = vector.Load(b.flat, (b.at(192),), VectorType((16,), i8)).result
    numbers = arith.SIToFP(arith.ExtSI(raw, VectorType((16,), i32)).result, VectorType((16,), f32)).result
    return arith.MulF(vector.splat(b.half(208), 16), numbers).result


_ALL_SCALES: Mapping[str, Callable[[Block, int], Value]] = {
    "q4_k": _all_of_k, "q5_k": _all_of_k, "q6_k": _all_of_q6_k}
