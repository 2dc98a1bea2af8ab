"""Lowering of quantised loads for CPUs: the bytes of neighbours in a block are loaded as a vector and unpacked at once.

Lanes that are aligned, as those along a row are, lie in one half of 32 numbers and so share a scale. Any other tile is
unpacked number by number.
"""

from __future__ import annotations

from collections.abc import Callable

from mlc.dialects import arith, loop, memref, scf, vector
from mlc.ir.affine import AffineExpr, dims_of, step_along
from mlc.ir.core import Value, at_end
from mlc.ir.types import VectorType, f16, f32, i16, i32
from mlc.passes.lower_kernel.access import Access
from mlc.passes.lower_kernel.blocks import HALF, NUMBERS, Block
from mlc.passes.lower_kernel.memory import address, flatten, lane_index, lane_mask, scalar_index
from mlc.passes.lower_kernel.nest import Lowering, Point, rule
from mlc.passes.lower_kernel.pairs import ALL_SCALES, PAIRS
from mlc.passes.lower_kernel.quads import scales_of_groups


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
                       scalar_index(low, place, op.tiles, point), low.lanes)
        _prefetch_next(low, block, rows)
        return PAIRS[op.encoding](block)

    low.define(op.result, part)


@rule(loop.BlockScales)
@rule(loop.BlockMinima)
def _block_scales(low: Lowering, op: loop.BlockScales) -> None:
    if op.numbers != 2:
        scales_of_groups(low, op)
    elif op.encoding in ALL_SCALES:
        _of_whole_blocks(low, op)
    else:
        _of_single_numbers(low, op)


def _of_single_numbers(low: Lowering, op: loop.BlockScales) -> None:
    """A block has one scale: those of all rows of the tile are widened at once."""
    d, (rows, place) = low.scope.vector, _rows_and_place(low, op)
    first = sorted({(*p[:d], 0, *p[d + 1:]) for p in low.points(op.result.type.dims)})
    raw = [_block(low, op, scalar_index(low, address(low, rows), op.tiles, p), scalar_index(low, place, op.tiles, p),
                  low.lanes).raw_half(2 * op.part - 2) for p in first]
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
                           scalar_index(low, place, op.tiles, first), low.lanes)
            found[first] = ALL_SCALES[op.encoding](block, op.part)
        each = places // found[first].type.shape[0]
        order = tuple((point[d] + lane) // each for lane in range(low.lanes))
        return vector.Shuffle(found[first], found[first], order).result

    low.define(op.result, part)


def _prefetch_next(low: Lowering, block: Block, rows: Access) -> None:
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
                   scalar_index(low, op.map.results[-1], op.tiles, point), low.lanes)
    if point[low.scope.vector] == 0 and not op.tiles:
        _prefetch_next(low, block, rows)
    return NUMBERS[op.encoding](block)


def _scalar(low: Lowering, op: loop.Dequantize, rows: Access, point: Point) -> Value:
    row = scalar_index(low, address(low, rows), op.tiles, point)
    return NUMBERS[op.encoding](_block(low, op, row, scalar_index(low, op.map.results[-1], op.tiles, point), 0))


def _one_by_one(low: Lowering, op: loop.Dequantize, rows: Access, places: Access, point: Point) -> Value:
    """Unpack the number of each active lane."""
    row = lane_index(low, address(low, rows), op.tiles, point)
    element = lane_index(low, op.map.results[-1], op.tiles, point)
    mask = lane_mask(low, places, point)
    numbers = []
    for lane in range(low.lanes):
        def read(lane: int = lane) -> Value:
            start, place = (vector.Extract(v, (), (lane,)).result for v in (row, element))
            return NUMBERS[op.encoding](_block(low, op, start, place, 0))

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


def _block(low: Lowering, op: loop.LoadEncoded, row: Value, place: Value, lanes: int) -> Block:
    """The block that a place in a row is in."""
    return Block.around(flatten(low, op.buffer)[0], row, place, lanes, op.layout, op.numbers)
