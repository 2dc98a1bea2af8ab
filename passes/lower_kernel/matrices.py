"""Lowering of products of bf16 whose terms are added in pairs: on tiles of AMX, where their factors are in panels.

A step of a sum multiplies two tiles of rows by two of columns, so that each tile that is loaded is used twice and all
eight are in registers. The last rows and columns may be those of one tile: panels and sums have memory for whole ones,
and what lies beyond the domain is not read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlc.dialects import amx, arith, loop, math, memref, scf
from mlc.dialects.loop.pairs import BLOCK, SIDE
from mlc.ir import sizes
from mlc.ir.core import Value, at_end
from mlc.ir.types import MemRefType, VectorType, f32, index
from mlc.passes.lower_kernel import memory
from mlc.passes.lower_kernel.access import Access
from mlc.passes.lower_kernel.interleaved import extent
from mlc.passes.lower_kernel.nest import Lowering, Point, rule

TINY = 2.0 ** -126
"""The least normal number of f32."""


# -- tiles ------------------------------------------------------------------------------------------------------------
@rule(loop.ContractPanels)
def _contract_panels(low: Lowering, op: loop.ContractPanels) -> None:
    *lines, m, _ = op.rows.type.dims
    n = op.columns.type.dims[-1]

    def along(remaining: Sequence[int], place: dict[int, Value]) -> None:
        if not remaining:
            _rows(low, Product(low, op, place), m, n)
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
    """The panels of a product and the memory of its sums, at a place along all dimensions of rows but the last."""

    def __init__(self, low: Lowering, op: loop.ContractPanels, place: dict[int, Value]) -> None:
        self.low, self.op, self.place = low, op, place
        self.blocks = low.number(sizes.divide(extent(low, op.dim), BLOCK))

    def matrix(self, panel: Value, lead: int, along: int) -> Value:
        """A panel as a matrix along two of its dimensions, those between which have one point."""
        buffer, _ = self.low.scope.scratch_buffers[panel]
        dims, shape = panel.type.dims, buffer.type.shape
        first, last = dims.index(lead), dims.index(along)
        if any(n != 1 for n in shape[first + 1: last]):
            self.op.fail(f"{panel.type} has several points between d{lead} and d{along}", code="MLC0171")
        return buffer if last == first + 1 else _reshaped(buffer, (*shape[:first + 1], shape[last]))

    def at(self, panel: Value, d: int, offset: Value) -> Value:
        """The index along a dimension of a panel of the point at an offset from the start of the current block."""
        _, origin = self.low.scope.scratch_buffers[panel]
        start = self.low.scope.origin.get(d, 0) - origin[d]
        return offset if start == 0 else arith.AddI(self.low.number(start), offset).result

    def before(self, panel: Value, d: int) -> list[Value]:
        """The indices along the dimensions of a panel before one."""
        dims = panel.type.dims
        return [self.place.get(e, arith.constant(0, index)) for e in dims[:dims.index(d)]]

    def first_words(self, n: int, column: int) -> tuple[Value, Value, Value]:
        """The matrix of words that has those of some columns, with rows of words of the same terms, and the place in
        it of those of the first terms."""
        low, op, panel = self.low, self.op, self.op.columns
        zero = arith.constant(0, index)
        if not isinstance(panel.op, loop.Words):
            return self.matrix(panel, op.dim, n), zero, self.at(panel, n, arith.constant(column, index))
        _, distance = panel.op.runs
        buffer = panel.op.buffer
        place = memory.address(low, Access(buffer, panel.op.map.results))
        point = tuple(column if d == n else 0 for d in range(len(low.kernel.domain)))
        with low.scoped() as scope:
            scope.origin[op.dim] = scope.origin.get(op.dim, 0) + 1       # the second term of a word comes first
            row, start = (memory.scalar_index(low, e, (), point)
                          for e in (sizes.divide(place, distance), sizes.modulo(place, distance)))
        return _reshaped(buffer, (prod(buffer.type.shape) // distance, distance)), row, start


def _reshaped(buffer: Value, shape: tuple[int, ...]) -> Value:
    """Memory with another shape."""
    if buffer.type.shape == shape:
        return buffer
    strides = [1]
    for n in reversed(shape[1:]):
        strides.insert(0, strides[0] * n)
    return memref.ReinterpretCast(buffer, (), (), (), static_offsets=(0,), static_sizes=shape,
                                  static_strides=tuple(strides), type=MemRefType(shape, buffer.type.dtype)).result


def _rows(low: Lowering, product: Product, m: int, n: int) -> None:
    """All rows, two tiles at a time, and the last ones if they fit into one."""
    count = extent(low, m)
    twos = sizes.divide(count + SIDE - 1, 2 * SIDE)
    zero, one = arith.constant(0, index), arith.constant(1, index)
    if twos != 0:
        around = scf.loop(zero, low.number(twos), one, [], f"i{m}")
        with at_end(around.block), low.scoped():
            _columns(low, product, (m, low.number(low.named("rows", around.counter) * (2 * SIDE)), 2), n)
            scf.Yield(())
    left = sizes.divide(count + 2 * SIDE - 1, 2 * SIDE) - twos
    if left == 0:
        return

    def last() -> list[Value]:
        _columns(low, product, (m, low.number(twos * (2 * SIDE)), 1), n)
        return []

    if left == 1:
        last()
    else:
        low.where(arith.CmpI("ne", low.number(left), zero).result, [], last)


def _columns(low: Lowering, product: Product, rows: tuple[int, Value, int], n: int) -> None:
    tiles = -(-low.scope.block[n] // SIDE)
    for first in range(0, tiles, 2):
        _sum(low, product, rows, (n, first * SIDE, min(2, tiles - first)))


def _sum(low: Lowering, product: Product, rows: tuple[int, Value, int], columns: tuple[int, int, int]) -> None:
    """Add all terms to the sums of a few tiles of rows and columns: (dimension, first point, tiles) of each."""
    op = product.op
    (m, row, height), (n, column, width) = rows, columns
    sums, left = product.matrix(op.sums, m, n), product.matrix(op.rows, m, op.dim)
    right = [product.first_words(n, column + j * SIDE) for j in range(width)]
    down = [_plus(row, i * SIDE) for i in range(height)]
    across = [arith.constant(column + j * SIDE, index) for j in range(width)]
    places = [(*product.before(op.sums, m), product.at(op.sums, m, i), product.at(op.sums, n, j))
              for i in down for j in across]
    totals = [amx.TileZero(amx.SUMS).result if op.from_zero else amx.TileLoad(sums, at, amx.SUMS).result
              for at in places]
    around = scf.loop(arith.constant(0, index), product.blocks, arith.constant(1, index), totals, f"i{op.dim}")
    with at_end(around.block), low.scoped():
        word = arith.MulI(around.counter, arith.constant(SIDE, index)).result
        b: list[Value] = []
        updated = []
        for i, total in enumerate(around.carried):       # what is loaded late comes while others multiply
            if i < width:
                matrix, first, start = right[i]
                b.append(amx.TileLoad(matrix, (arith.AddI(first, word).result, start), amx.FACTOR).result)
            if i % width == 0:
                place = (*product.before(op.rows, m), product.at(op.rows, m, down[i // width]), word)
                a = amx.TileLoad(left, place, amx.FACTOR).result
            updated.append(amx.TileMulF(a, b[i % width], total).result)
        scf.Yield(tuple(updated))
    for at, total in zip(places, around.results):
        amx.TileStore(sums, at, total)


def _plus(first: Value, more: int) -> Value:
    return arith.AddI(first, arith.constant(more, index)).result if more else first


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
