"""Lowering of products of bf16 panels whose terms lie in memory two by two.

A panel is a buffer of pairs, an i32 each with the first of its terms in the high half: `x86vector.avx512.dot` adds the
product of the high halves first, so that the order of the sum is that of its terms. It takes subnormal numbers for
zeros. If all elements of one panel are multiples of 2^a and those of the other of 2^b, then products and their sums are
multiples of 2^(a+b), so that none of them is subnormal if a + b is an exponent of a normal number. Otherwise each half
is extended to f32, and its products are added by fused multiply-adds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlc.dialects import arith, loop, math, memref, scf, vector, x86vector
from mlc.dialects.loop.interleaved import BIAS, LEAST_EXPONENT, PRECISION, SUBNORMAL, interleaved
from mlc.ir.core import Value, at_end
from mlc.ir.sizes import Dim
from mlc.ir.types import VectorType, bf16, f32, i16, i32, index
from mlc.passes.lower_kernel import memory
from mlc.passes.lower_kernel.nest import Lowering, Point, rule
from mlc.passes.lower_kernel.transposed import row, transposed

LANES = 16
"""Pairs, and sums, of a vector."""
PAIRS, TERMS, SUMS = VectorType((LANES,), i32), VectorType((2 * LANES,), bf16), VectorType((LANES,), f32)


def place(low: Lowering, scratch: Value, point: Point, pair: Value) -> tuple[Value, ...]:
    """The indices of a pair of the panel at a point of the current blocks of the other dimensions."""
    _, origin = low.scope.scratch_buffers[scratch]
    along = interleaved(low.kernel, scratch)
    return tuple(pair if d == along else low.number(low.coordinate(d, point[d]) - origin[d])
                 for d in scratch.type.dims)


# -- filling ----------------------------------------------------------------------------------------------------------
def store_interleaved(low: Lowering, tile: Value, scratch: loop.Scratch) -> None:
    """Store the pairs of a tile."""
    buffer, origin = low.scope.scratch_buffers[scratch.result]
    along = scratch.interleaved
    if tile in low.scope.unread:
        _transpose_pairs(low, tile, scratch)
        return
    for point in low.points(scratch.result.type.dims):
        if along != low.scope.vector and point[along] % 2:
            continue
        first = low.number(low.coordinate(along, point[along]) - origin[along])
        at = place(low, scratch.result, point, arith.ShRUI(first, arith.constant(1, index)).result)
        if along == low.scope.vector:
            value = low.spread(low.part(tile, point))
            if (mask := low.mask(point)) is not None:
                value = arith.Select(mask, value, low.zeros(value.type)).result
            order = [i ^ 1 for i in range(low.lanes)]
            swapped = vector.Shuffle(value, value, tuple(order)).result
            vector.Store(vector.Bitcast(swapped, VectorType((low.lanes // 2,), i32)).result, buffer, at)
            continue
        halves = [low.part(tile, point), second(low, tile, point, along)]
        if not low.in_lanes(scratch.result.type.dims):
            bits = [arith.ExtUI(arith.Bitcast(x, i16).result, i32).result for x in halves]
            memref.Store(arith.OrI(arith.ShLI(bits[0], arith.constant(16, i32)).result, bits[1]).result, buffer, at)
            continue
        high, below = map(low.spread, halves)
        order = [i // 2 + (0 if i % 2 == 0 else low.lanes) for i in range(2 * low.lanes)]
        both = vector.Shuffle(below, high, tuple(order)).result
        vector.Store(vector.Bitcast(both, VectorType((low.lanes,), i32)).result, buffer, at)


def _transpose_pairs(low: Lowering, tile: Value, scratch: loop.Scratch) -> None:
    """Load rows along the terms, transpose their pairs in registers, and store these: a vector of columns at a time, in
    a loop, since each takes many instructions."""
    v, scope = low.scope.vector, low.scope
    vectors, known = scope.block[v] // LANES, all(isinstance(n, int) for n in scope.counts.values())
    if vectors == 1 or (known and scope.counts):
        _transpose_vectors(low, tile, scratch)
        return
    zero, one = arith.constant(0, index), arith.constant(1, index)
    around = scf.loop(zero, low.number(vectors), one, [], f"i{v}")
    with at_end(around.block), low.scoped() as inner:
        offset = low.named("vector", around.counter) * LANES
        inner.unread = scope.unread
        inner.origin[v] = scope.origin[v] + offset
        inner.block[v] = LANES
        inner.counts = {0: scope.counts[0] - offset} if scope.counts else {}
        _transpose_vectors(low, tile, scratch)
        scf.Yield(())


def _transpose_vectors(low: Lowering, tile: Value, scratch: loop.Scratch) -> None:
    access, along = low.scope.unread[tile], scratch.interleaved
    buffer, origin = low.scope.scratch_buffers[scratch.result]
    half = arith.constant(16, PAIRS)
    for corner in low.points(tile.type.dims):
        if corner[along] % (2 * LANES):
            continue
        rows: list[Value] = []
        for lane in range(LANES):
            terms = row(low, tile, corner, lane, along, None, lambda p: memory.place(low, access, p), 2 * LANES)
            pairs = vector.Bitcast(terms, PAIRS).result
            rows.append(arith.OrI(arith.ShLI(pairs, half).result, arith.ShRUI(pairs, half).result).result)
        first = low.number(low.coordinate(along, corner[along]) - origin[along])
        start = arith.ShRUI(first, arith.constant(1, index)).result
        count = min(LANES, (low.scope.block[along] - corner[along] + 1) // 2)
        for i, column in enumerate(transposed(rows)[:count]):
            pair = arith.AddI(start, arith.constant(i, index)).result
            vector.Store(column, buffer, place(low, scratch.result, corner, pair))


def second(low: Lowering, tile: Value, point: Point, along: int) -> Value:
    """The second element of the pair of a point; zero if there is none."""
    if point[along] + 1 >= low.scope.block[along]:
        dtype = low.part(tile, point).type
        return low.zeros(dtype)
    return low.part(tile, tuple(p + 1 if d == along else p for d, p in enumerate(point)))


# -- the least exponent -----------------------------------------------------------------------------------------------
def extent(low: Lowering, d: int) -> Dim:
    """The points of a dimension that the current block has, or all of a dimension that has no block here."""
    scope = low.scope
    if d in scope.stop:
        return scope.stop[d] - scope.origin.get(d, 0)
    return scope.block.get(d, low.kernel.domain[d])


def pairs_of(low: Lowering, d: int) -> Dim:
    terms = extent(low, d) + 1
    return terms // 2 if isinstance(terms, int) else low.named("pairs", arith.ShRUI(
        low.number(terms), arith.constant(1, index)).result)


@rule(loop.LeastExponent)
def _least_exponent(low: Lowering, op: loop.LeastExponent) -> None:
    """The least of all elements without their signs, less one as an unsigned number, which makes zero the greatest."""
    scratch = op.scratch.op
    assert isinstance(scratch, loop.Scratch)
    buffer, _ = low.scope.scratch_buffers[op.scratch]
    dims = scratch.result.type.dims
    lanes = LANES // 2 if dims[-1] == scratch.interleaved else LANES           # whole vectors of terms, or of others
    bits, pairs = VectorType((2 * lanes,), i16), VectorType((lanes,), i32)
    magnitude, one = arith.constant(0x7FFF, bits), arith.constant(1, bits)
    zero = arith.constant(0, index)

    def along(remaining: Sequence[int], at: tuple[Value, ...], least: Value) -> Value:
        if not remaining:
            x = vector.Bitcast(vector.Load(buffer, at, pairs).result, bits).result
            below = arith.SubI(arith.AndI(x, magnitude).result, one).result
            return arith.MinUI(least, below).result
        d, *others = remaining
        count = pairs_of(low, d) if d == scratch.interleaved else extent(low, d)
        step = arith.constant(1 if others else lanes, index)
        inner = scf.loop(zero, low.number(count), step, [least], "i")
        with at_end(inner.block), low.scoped():
            scf.Yield((along(others, (*at, inner.counter), inner.carried[0]),))
        return inner.results[0]

    least = along(dims, (), arith.constant(-1, bits))
    nearest = arith.ExtUI(vector.Reduction("minui", least).result, i32).result

    def number(n: int) -> Value:
        return arith.constant(n, i32)

    field = arith.ShRUI(arith.AddI(nearest, number(1)).result, number(PRECISION)).result
    normal = arith.CmpI("ne", field, number(0)).result
    exponent = arith.SubI(field, number(BIAS + PRECISION)).result
    value = arith.Select(normal, exponent, number(SUBNORMAL)).result
    low.define(op.result, lambda p: value)


# -- the product ------------------------------------------------------------------------------------------------------
@rule(loop.ContractInterleaved)
def _contract(low: Lowering, op: loop.ContractInterleaved) -> None:
    dims = op.result.type.dims
    if low.lanes != LANES or not low.in_lanes(dims):
        op.fail(f"its sums lie in vectors of {LANES} lanes", code="MLC0171")
    v = low.scope.vector
    # an element that is broadcast meets all of its vectors before the next one takes its register
    points = sorted(low.points(dims), key=lambda p: (*p[:v], *p[v + 1:], p[v]))
    least = arith.AddI(*(low.part(e, points[0]) for e in (op.lhs_exponent, op.rhs_exponent))).result
    normal = arith.CmpI("sge", least, arith.constant(LEAST_EXPONENT, i32)).result
    branch = scf.branch(normal, [SUMS] * len(points))
    with at_end(branch.then_body.block), low.scoped():
        scf.Yield(tuple(_sum(low, op, points, low.number(pairs_of(low, op.dim)), _dots)))
    with at_end(branch.else_body.block), low.scoped():
        scf.Yield(tuple(_sum(low, op, points, low.number(extent(low, op.dim)), _multiply_adds)))
    low.scope.tiles[op.result] = dict(zip(points, branch.results))


Step = Callable[[Lowering, loop.ContractInterleaved, Value], tuple[Callable[[Value, Point], Value], Any]]


def _sum(low: Lowering, op: loop.ContractInterleaved, points: Sequence[Point], count: Value, step: Step) -> list[Value]:
    """The sums of all points, of `count` steps each."""
    zeros = [arith.constant(0.0, SUMS)] * len(points)
    around = scf.loop(arith.constant(0, index), count, arith.constant(1, index), zeros, f"i{op.dim}")
    with at_end(around.block), low.scoped():
        factor, add = step(low, op, around.counter)
        sides = sorted((op.lhs, op.rhs), key=lambda v: not low.in_lanes(v.type.dims))
        sums = [add(acc, *(factor(v, p) for v in sides)) for p, acc in zip(points, around.carried)]
        scf.Yield(tuple(sums))
    return list(around.results)


def _pairs(low: Lowering, scratch: Value, point: Point, pair: Value) -> Value:
    """A vector of pairs: those of the lanes, or one for all."""
    buffer, _ = low.scope.scratch_buffers[scratch]
    own = tuple(p if d in scratch.type.dims else 0 for d, p in enumerate(point))

    def read() -> Value:
        at = place(low, scratch, point, pair)
        if low.in_lanes(scratch.type.dims):
            return vector.Load(buffer, at, PAIRS).result
        return vector.splat(memref.Load(buffer, at).result, LANES)

    return low.once((scratch, own), read)


def _dots(low: Lowering, op: loop.ContractInterleaved, pair: Value) -> tuple[Callable[[Value, Point], Value], Any]:
    def factor(scratch: Value, point: Point) -> Value:
        pairs = _pairs(low, scratch, point, pair)
        return low.once(("terms", pairs), lambda: vector.Bitcast(pairs, TERMS).result)

    return factor, lambda acc, a, b: x86vector.Dot(acc, a, b).result


def _multiply_adds(low: Lowering, op: loop.ContractInterleaved,
                   term: Value) -> tuple[Callable[[Value, Point], Value], Any]:
    one = arith.constant(1, index)
    pair, odd = arith.ShRUI(term, one).result, arith.IndexCast(arith.AndI(term, one).result, i32).result
    shift = vector.splat(arith.ShLI(odd, arith.constant(4, i32)).result, LANES)
    high = arith.constant(-(1 << 16), PAIRS)

    def factor(scratch: Value, point: Point) -> Value:
        pairs = _pairs(low, scratch, point, pair)
        return low.once(("term", pairs), lambda: arith.Bitcast(
            arith.AndI(arith.ShLI(pairs, shift).result, high).result, SUMS).result)

    return factor, lambda acc, a, b: math.Fma(a, b, acc).result
