"""Lowering of products on tiles of AMX, where their factors are in panels: of bf16, whose terms are added in pairs, and
of bytes; and of those of bf16 elsewhere.

A step of a sum multiplies two tiles of rows by two of columns, so that each tile that is loaded is used twice and all
eight are in registers. The last rows and columns may be those of one tile: panels and sums have memory for whole ones,
and what lies beyond the domain is not read again. Of rows that are read where they are, the last tile begins earlier,
so that all of its rows are in memory, and some sums are stored twice.

Panels of columns that come from memory are prefetched: while each two tiles of rows meet one, they prefetch a part of
the one after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from mlc.dialects import amx, arith, loop, math, memref, scf, vector
from mlc.dialects.loop.pairs import SIDE, distance_of_rows
from mlc.ir import sizes
from mlc.ir.core import Value, at_end
from mlc.ir.sizes import Dim
from mlc.ir.types import MemRefType, ScalarType, VectorType, f32, i8, i32, index
from mlc.passes.lower_kernel import memory
from mlc.passes.lower_kernel.access import Access
from mlc.passes.lower_kernel.interleaved import extent
from mlc.passes.lower_kernel.nest import Lowering, Point, rule

TINY = 2.0 ** -126
"""The least normal number of f32."""


# -- tiles ------------------------------------------------------------------------------------------------------------
@rule(loop.ContractPanels)
def _contract_panels(low: Lowering, op: loop.ContractPanels) -> None:
    *lines, _, _ = op.rows.type.dims
    if op.pitch:
        lines.pop()                                          # which are rows like those along m

    def along(remaining: Sequence[int], place: dict[int, Value]) -> None:
        if not remaining:
            _rows(low, Product(low, op, place))
            return
        d, *others = remaining
        count = extent(low, d)
        if count == 1:
            along(others, place)
            return
        around = scf.loop(arith.constant(0, index), low.number(count), arith.constant(1, index), [], f"i{d}")
        with at_end(around.block), low.scoped():
            along(others, place | {d: around.counter})
            scf.Yield(())

    along(lines, {})


class Product:
    """The panels of a product and the memory of its sums, at a place along all dimensions of rows but the last, or but
    the last two, which are one."""

    def __init__(self, low: Lowering, op: loop.ContractPanels, place: dict[int, Value]) -> None:
        self.low, self.op, self.place = low, op, place
        self.blocks = low.number(sizes.divide(extent(low, op.dim), op.block))
        self.m, self.n = op.rows.type.dims[-2], op.columns.type.dims[-1]
        self.first = op.rows.type.dims[-3] if op.pitch else self.m     # that of the first index of a row
        self.of_bytes = op.rows.type.dtype == i8
        self.factor, self.tile = (amx.BYTES, amx.SUMS_OF_BYTES) if self.of_bytes else (amx.FACTOR, amx.SUMS)
        self.zeros = _zeros(4, self.tile.dtype) if op.from_zero else []

    @property
    def count(self) -> Dim:
        """The rows."""
        if self.op.pitch:
            return (extent(self.low, self.first) - 1) * self.op.pitch + extent(self.low, self.m)
        return extent(self.low, self.m)

    def matrix(self, panel: Value, lead: int, along: int) -> Value:
        """A panel as a matrix along two of its dimensions, those between which have one point or are one with the
        first."""
        buffer, _ = self.low.scope.scratch_buffers[panel]
        dims, shape = panel.type.dims, buffer.type.shape
        first, last = dims.index(lead), dims.index(along)
        between = prod(shape[first + 1: last])
        if between != (self.op.pitch if lead == self.first != self.m else 1):
            self.op.fail(f"{panel.type} has several points between d{lead} and d{along}", code="MLC0171")
        return _reshaped(buffer, (*shape[:first], shape[first] * between, shape[last]))

    def at(self, panel: Value, d: int, offset: Value) -> Value:
        """The index along a dimension of a panel of the point at an offset from the start of the current block."""
        _, origin = self.low.scope.scratch_buffers[panel]
        start = self.low.scope.origin.get(d, 0) - origin[d]
        return offset if start == 0 else arith.AddI(self.low.number(start), offset).result

    def before(self, panel: Value, d: int) -> list[Value]:
        """The indices along the dimensions of a panel before one."""
        dims = panel.type.dims
        return [self.place.get(e, arith.constant(0, index)) for e in dims[:dims.index(d)]]

    def sums(self) -> Value:
        """The memory of sums as a matrix of rows."""
        return self.matrix(self.op.sums, self.first, self.n)

    def sum_at(self, row: Value, column: Value) -> tuple[Value, ...]:
        """The indices of a sum in it."""
        sums = self.op.sums
        return (*self.before(sums, self.first), self.at(sums, self.m, row), self.at(sums, self.n, column))

    def tile_of_rows(self, row: Value, block: Value) -> Value:
        """A tile of rows, with the terms of a block."""
        op, low = self.op, self.low
        if not isinstance(op.rows.op, loop.Words):
            word = arith.MulI(block, arith.constant(SIDE, index)).result
            place = (*self.before(op.rows, self.m), self.at(op.rows, self.m, row), word)
            return amx.TileLoad(self.matrix(op.rows, self.m, op.dim), place, self.factor).result
        words = op.rows.op
        distance = distance_of_rows(words.map, words.buffer, self.m, op.dim, low.kernel.domain[op.dim])
        assert distance is not None
        at = {d: low.named(f"i{d}", here) for d, here in self.place.items()}
        at[op.dim] = low.named("block", block) * op.block
        start, = self.places(words, at, lambda place: [place])
        first = arith.AddI(start, arith.MulI(row, arith.constant(distance, index)).result).result
        flat, _ = memory.flatten(low, words.buffer)
        rows = memref.reinterpret(flat, first, [SIDE, op.block], [distance, 1])
        return amx.TileLoad(rows, (arith.constant(0, index),) * 2, self.factor).result

    def multiplied(self, a: Value, b: Value, total: Value) -> Value:
        """The sums with those of a tile of rows and one of columns."""
        if not self.of_bytes:
            return amx.TileMulF(a, b, total).result
        unsigned = (self.op.is_unsigned(panel) or None for panel in ("rows", "columns"))
        return amx.TileMulI(a, b, total, *unsigned).result

    def places(self, words: loop.Words, at: Mapping[int, Dim], of: Callable[[Dim], Sequence[Dim]]) -> list[Value]:
        """Numbers of the place in memory of a point at offsets from the start of the current block."""
        low = self.low
        place = memory.address(low, Access(words.buffer, words.map.results))
        with low.scoped() as scope:
            for d in words.result.type.dims:
                scope.origin[d] = scope.origin.get(d, 0) + at.get(d, 0)
            return [memory.scalar_index(low, e, (), (0,) * len(low.kernel.domain)) for e in of(place)]

    def first_words(self, column: int) -> tuple[Value, Value, Value]:
        """The matrix of words that has those of some columns, with rows of words of the same terms, and the place in
        it of those of the first terms."""
        op, panel = self.op, self.op.columns
        if not isinstance(panel.op, loop.Words):
            at = self.at(panel, self.n, arith.constant(column, index))
            return self.matrix(panel, op.dim, self.n), arith.constant(0, index), at
        buffer, distance = panel.op.buffer, panel.op.runs[1]
        row, start = self.places(panel.op, {self.n: column}, lambda place: [
            sizes.divide(place, distance), sizes.modulo(place, distance)])
        return _reshaped(buffer, (prod(buffer.type.shape) // distance, distance)), row, start


def _zeros(count: int, dtype: ScalarType) -> list[Value]:
    """So many tiles of zeros in memory, each with all of its rows in one place, from which it is loaded: a tile that is
    made once for several sums would be copied, for which there is no instruction."""
    line = VectorType((SIDE,), dtype)
    buffer = memref.Alloca(MemRefType((count * SIDE,), dtype), alignment=4 * SIDE).result
    for i in range(count):
        vector.Store(arith.constant(0.0 if dtype == f32 else 0, line), buffer, (arith.constant(i * SIDE, index),))
    return [memref.ReinterpretCast(
        buffer, (), (), (), static_offsets=(i * SIDE,), static_sizes=(SIDE, SIDE), static_strides=(0, 1),
        type=MemRefType((SIDE, SIDE), dtype, (0, 1), i * SIDE)).result for i in range(count)]


def _reshaped(buffer: Value, shape: tuple[int, ...]) -> Value:
    """Memory with another shape."""
    if buffer.type.shape == shape:
        return buffer
    strides = [1]
    for n in reversed(shape[1:]):
        strides.insert(0, strides[0] * n)
    return memref.ReinterpretCast(buffer, (), (), (), static_offsets=(0,), static_sizes=shape,
                                  static_strides=tuple(strides), type=MemRefType(shape, buffer.type.dtype)).result


def _rows(low: Lowering, product: Product) -> None:
    """All rows, two tiles at a time, and the last ones if they fit into one."""
    count = product.count
    twos = sizes.divide(count + SIDE - 1, 2 * SIDE)
    zero, one = arith.constant(0, index), arith.constant(1, index)
    if twos != 0:
        around = scf.loop(zero, low.number(twos), one, [], f"i{product.m}")
        with at_end(around.block), low.scoped():
            first = low.number(low.named("rows", around.counter) * (2 * SIDE))
            _columns(low, product, around.counter, [
                first, _within(low, product, arith.AddI(first, low.number(SIDE)).result)])
            scf.Yield(())
    left = sizes.divide(count + 2 * SIDE - 1, 2 * SIDE) - twos
    if left == 0:
        return

    def last() -> list[Value]:
        _columns(low, product, low.number(twos), [_within(low, product, low.number(twos * (2 * SIDE)))])
        return []

    if left == 1:
        last()
    else:
        low.where(arith.CmpI("ne", low.number(left), zero).result, [], last)


def _within(low: Lowering, product: Product, row: Value) -> Value:
    """The first row of a tile, or of the last tile that has only rows that are in memory."""
    if not isinstance(product.op.rows.op, loop.Words):
        return row
    return arith.MinSI(row, low.number(product.count - SIDE)).result


def _columns(low: Lowering, product: Product, turn: Value, rows: Sequence[Value]) -> None:
    tiles = -(-low.scope.block[product.n] // SIDE)
    for first in range(0, tiles, 2):
        _sum(low, product, turn, rows, range(first * SIDE, min(first + 2, tiles) * SIDE, SIDE))


def _sum(low: Lowering, product: Product, turn: Value, rows: Sequence[Value], columns: Sequence[int]) -> None:
    """Add all terms to the sums of a few tiles, those of the first rows and columns, in one of the turns that all rows
    take."""
    op, width = product.op, len(columns)
    sums = product.sums()
    right = [product.first_words(j) for j in columns]
    places = [product.sum_at(i, arith.constant(j, index)) for i in rows for j in columns]
    zero = arith.constant(0, index)
    totals = [amx.TileLoad(product.zeros[i], (zero, zero), product.tile).result if op.from_zero else
              amx.TileLoad(sums, at, product.tile).result for i, at in enumerate(places)]
    around = scf.loop(arith.constant(0, index), product.blocks, arith.constant(1, index), totals, f"i{op.dim}")
    with at_end(around.block), low.scoped():
        word = arith.MulI(around.counter, arith.constant(SIDE, index)).result
        for matrix, first, start in right if op.prefetch else ():
            _prefetch_words(low, product, turn, matrix, arith.AddI(first, word).result, start)
        b: list[Value] = []
        updated = []
        for i, total in enumerate(around.carried):       # what is loaded late comes while others multiply
            if i < width:
                matrix, first, start = right[i]
                b.append(amx.TileLoad(matrix, (arith.AddI(first, word).result, start), product.factor).result)
            if i % width == 0:
                a = product.tile_of_rows(rows[i // width], around.counter)
            updated.append(product.multiplied(a, b[i % width], total))
        scf.Yield(tuple(updated))
    for at, total in zip(places, around.results):
        amx.TileStore(sums, at, total)


def _prefetch_words(low: Lowering, product: Product, turn: Value, matrix: Value, row: Value, column: Value) -> None:
    """Prefetch some rows of the tile of words that is in the place of this one in the panels after the current ones:
    those of one turn. All turns of a whole block prefetch all rows."""
    op, block, words = product.op, low.scope.block, product.op.columns.op
    assert isinstance(words, loop.Words)
    rows = (block[product.first] - 1) * op.pitch + block[product.m] if op.pitch else block[product.m]
    each = -(-SIDE // -(-rows // (2 * SIDE)))
    run, (_, distance) = i32.width // op.columns.type.dtype.width, words.runs
    panels = max(1, low.scope.block[product.n] * run // distance)         # as wide as the columns of a sum
    ahead = panels * low.kernel.domain[op.dim] // run
    part = arith.RemUI(turn, arith.constant(-(-SIDE // each), index)).result
    own = arith.MulI(part, arith.constant(each, index)).result
    first = arith.AddI(arith.AddI(row, arith.constant(ahead, index)).result, own).result
    for i in range(each):
        memref.Prefetch(matrix, (arith.AddI(first, arith.constant(i, index)).result, column), localityHint=2)


# -- vectors ----------------------------------------------------------------------------------------------------------
@rule(loop.ContractPairs)
def _contract_pairs(low: Lowering, op: loop.ContractPairs) -> None:
    """Add a block of terms without tiles, for few rows or in loops that are not scheduled."""
    if low.is_in_lanes(op.dim):
        op.fail("the dimension of a contraction cannot lie in vector registers: its sums are chains", code="MLC0171")
    lanes = low.in_lanes(op.result.type.dims)
    wide = VectorType((low.lanes,), f32) if lanes else f32
    factors: dict[tuple[Value, Point], Value] = {}

    def factor(tile: Value, point: Point) -> Value:
        own = tuple(p if d in tile.type.dims else 0 for d, p in enumerate(point))
        if (tile, own) not in factors:
            x = flushed(arith.ExtF(low.part(tile, own), wide if low.in_lanes(tile.type.dims) else f32).result)
            factors[tile, own] = low.spread(x) if lanes else x
        return factors[tile, own]

    def total(point: Point) -> Value:
        chains = [arith.constant(0.0, wide)] * 2
        for k in range(low.scope.block[op.dim]):
            at = tuple(k if d == op.dim else p for d, p in enumerate(point))
            product = math.Fma(factor(op.lhs, at), factor(op.rhs, at), chains[k % 2]).result
            chains[k % 2] = flushed(product)
        acc = low.part(op.acc, point)
        both = flushed(arith.AddF(*chains).result)
        return flushed(arith.AddF(flushed(low.spread(acc) if lanes else acc), both).result)

    low.define(op.result, total)


def flushed(x: Value) -> Value:
    """A number of f32, zero with its sign if it is subnormal."""
    subnormal = arith.CmpF("olt", math.AbsF(x).result, arith.constant(TINY, x.type)).result
    return arith.Select(subnormal, math.CopySign(arith.constant(0.0, x.type), x).result, x).result
