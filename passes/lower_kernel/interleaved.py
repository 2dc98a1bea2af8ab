"""Lowering of products of panels whose terms share words of 32 bits.

A word of bytes has four of them, which `x86vector.avx512.dot_bytes` multiplies and adds: the sum is the same in any
order. One of bf16 that is reversed has the first of its two terms in the high half: `x86vector.avx512.dot` adds the
product of the high halves first, so that the order of the sum is that of its terms. It takes subnormal numbers for
zeros. If all elements of one panel are multiples of 2^a and those of the other of 2^b, then products and their sums are
multiples of 2^(a+b), so that none of them is subnormal if a + b is an exponent of a normal number. Otherwise each half
is extended to f32, and its products are added by fused multiply-adds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

from mlc.dialects import arith, loop, math, memref, scf, vector, x86vector
from mlc.dialects.loop.interleaved import BIAS, LEAST_EXPONENT, PRECISION, SUBNORMAL, interleaved
from mlc.ir import sizes
from mlc.ir.core import Value, at_end
from mlc.ir.sizes import Dim
from mlc.ir.types import VectorType, bf16, f32, i8, i16, i32, index
from mlc.passes.lower_kernel import memory
from mlc.passes.lower_kernel.access import Access
from mlc.passes.lower_kernel.nest import Lowering, Point, rule
from mlc.passes.lower_kernel.transposed import row, transposed

LANES = 16
"""Words, and sums, of a vector."""
WORDS, TERMS, SUMS = VectorType((LANES,), i32), VectorType((2 * LANES,), bf16), VectorType((LANES,), f32)
BYTES = VectorType((4 * LANES,), i8)


@dataclass(frozen=True)
class Word:
    """A word of a panel: the first term of its run, the number of the word in that, and in the panel."""

    first: Dim
    within: Value
    number: Value


@rule(loop.Words)
def _in_memory(low: Lowering, op: loop.Words) -> None:
    """Nothing to do: the buffer is the panel."""


def place(low: Lowering, scratch: Value, point: Point, word: Value) -> tuple[Value, ...]:
    """The indices of a word of a scratch at a point of the current blocks of the other dimensions."""
    _, origin = low.scope.scratch_buffers[scratch]
    along = interleaved(low.kernel, scratch)
    return tuple(word if d == along else low.number(low.coordinate(d, point[d]) - origin[d])
                 for d in scratch.type.dims)


# -- filling ----------------------------------------------------------------------------------------------------------
def store_interleaved(low: Lowering, tile: Value, scratch: loop.Scratch) -> None:
    """Store the words of a tile."""
    if tile in low.scope.unread:
        _transpose_words(low, tile, scratch)
        return
    buffer, origin = low.scope.scratch_buffers[scratch.result]
    along, run = scratch.interleaved, scratch.terms_of_word
    for point in low.points(scratch.result.type.dims):
        if along != low.scope.vector and point[along] % run:
            continue
        at = place(low, scratch.result, point, word_of(low, low.coordinate(along, point[along]) - origin[along], run))
        if along == low.scope.vector:
            value = low.spread(low.part(tile, point))
            if (mask := low.mask(point)) is not None:
                value = arith.Select(mask, value, low.zeros(value.type)).result
            if scratch.reversed:
                order = [i ^ 1 for i in range(low.lanes)]
                value = vector.Shuffle(value, value, tuple(order)).result
            vector.Store(vector.Bitcast(value, VectorType((low.lanes // run,), i32)).result, buffer, at)
        elif low.in_lanes(scratch.result.type.dims):
            terms = [low.spread(term) for term in _terms(low, tile, point, scratch)]
            vector.Store(vector.Bitcast(_side_by_side(terms), VectorType((low.lanes,), i32)).result, buffer, at)
        else:
            memref.Store(_word(_terms(low, tile, point, scratch)), buffer, at)


def word_of(low: Lowering, term: Dim, run: int) -> Value:
    """The number of the word that a term is in."""
    return arith.ShRUI(low.number(term), arith.constant(run.bit_length() - 1, index)).result


def _terms(low: Lowering, tile: Value, point: Point, scratch: loop.Scratch) -> list[Value]:
    """The elements of the word of a point, from that of the low bits on; zero where there is none."""
    along = scratch.interleaved

    def term(i: int) -> Value:
        if point[along] + i >= low.scope.block[along]:
            return low.zeros(low.part(tile, point).type)
        return low.part(tile, tuple(p + i if d == along else p for d, p in enumerate(point)))

    terms = [term(i) for i in range(scratch.terms_of_word)]
    return terms[::-1] if scratch.reversed else terms


def _word(terms: Sequence[Value]) -> Value:
    """The word of two bf16 or of four bytes."""
    width = i32.width // len(terms)
    word: Value | None = None
    for i, x in enumerate(terms):
        bits = arith.ExtUI(x if x.type == i8 else arith.Bitcast(x, i16).result, i32).result
        placed = arith.ShLI(bits, arith.constant(i * width, i32)).result if i else bits
        word = placed if word is None else arith.OrI(word, placed).result
    assert word is not None
    return word


def _side_by_side(vectors: Sequence[Value]) -> Value:
    """One vector with the first lanes of all vectors, then the second ones, and so on."""
    if len(vectors) == 1:
        return vectors[0]
    even, odd = _side_by_side(vectors[::2]), _side_by_side(vectors[1::2])
    count = even.type.shape[0]
    return vector.Shuffle(even, odd, tuple(i // 2 + i % 2 * count for i in range(2 * count))).result


def _transpose_words(low: Lowering, tile: Value, scratch: loop.Scratch) -> None:
    """Load rows along the terms, transpose their words in registers, and store these: a vector of columns at a time, in
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
    access, along, run = low.scope.unread[tile], scratch.interleaved, scratch.terms_of_word
    buffer, origin = low.scope.scratch_buffers[scratch.result]
    half = arith.constant(16, WORDS)
    for corner in low.points(tile.type.dims):
        if corner[along] % (run * LANES):
            continue
        rows: list[Value] = []
        for lane in range(LANES):
            terms = row(low, tile, corner, lane, along, None, lambda p: memory.place(low, access, p), run * LANES)
            words = vector.Bitcast(terms, WORDS).result
            if scratch.reversed:
                words = arith.OrI(arith.ShLI(words, half).result, arith.ShRUI(words, half).result).result
            rows.append(words)
        start = word_of(low, low.coordinate(along, corner[along]) - origin[along], run)
        count = min(LANES, -(-(low.scope.block[along] - corner[along]) // run))
        for i, column in enumerate(transposed(rows)[:count]):
            word = arith.AddI(start, arith.constant(i, index)).result
            vector.Store(column, buffer, place(low, scratch.result, corner, word))


# -- reading ----------------------------------------------------------------------------------------------------------
def read(low: Lowering, panel: Value, point: Point, word: Word, count: int) -> Value:
    """A vector of so many words of a panel, from that of a point on."""
    if isinstance(panel.op, loop.Words):
        return _read_in_memory(low, panel.op, point, word, count)
    buffer, _ = low.scope.scratch_buffers[panel]
    return vector.Load(buffer, place(low, panel, point, word.number), VectorType((count,), i32)).result


def _read_in_memory(low: Lowering, op: loop.Words, point: Point, word: Word, count: int) -> Value:
    flat, _ = memory.flatten(low, op.buffer)
    dtype, (_, distance) = op.buffer.type.dtype, op.runs
    terms = i32.width // dtype.width
    where = memory.address(low, Access(op.buffer, op.map.results))
    with low.scoped() as scope:
        scope.origin[op.interleaved] = word.first + (terms - 1 if op.reversed else 0)
        first = memory.scalar_index(low, where, (), tuple(0 if d == op.interleaved else p for d, p in enumerate(point)))
    step = arith.MulI(word.within, arith.constant(distance, index)).result
    elements = vector.Load(flat, (arith.AddI(first, step).result,), VectorType((terms * count,), dtype)).result
    return vector.Bitcast(elements, VectorType((count,), i32)).result


# -- the least exponent -----------------------------------------------------------------------------------------------
def extent(low: Lowering, d: int) -> Dim:
    """The points of a dimension that the current block has, or all of a dimension that has no block here."""
    scope = low.scope
    if d in scope.stop:
        return scope.stop[d] - scope.origin.get(d, 0)
    return scope.block.get(d, low.kernel.domain[d])


def words_of(low: Lowering, d: int, run: int) -> Dim:
    """How many words of so many terms the current block of a dimension has."""
    terms = extent(low, d) + run - 1
    if run & (run - 1) == 0 and not isinstance(terms, int):
        return low.named("words", word_of(low, terms, run))
    return sizes.divide(terms, run)


@rule(loop.LeastExponent)
def _least_exponent(low: Lowering, op: loop.LeastExponent) -> None:
    """The least of all elements without their signs, less one as an unsigned number, which makes zero the greatest."""
    dims, along = op.scratch.type.dims, interleaved(op, op.scratch)
    lanes = LANES // 2 if dims[-1] == along else LANES           # whole vectors of terms, or of others
    bits = VectorType((2 * lanes,), i16)
    magnitude, one = arith.constant(0x7FFF, bits), arith.constant(1, bits)
    zero = arith.constant(0, index)
    if isinstance(op.scratch.op, loop.Words) and dims[-1] == along:
        op.fail(f"words of d{along} are no vectors in memory", code="MLC0171")

    def least_of(remaining: Sequence[int], least: Value, number: Value | None = None) -> Value:
        """The least of this and of all elements along the `remaining` dimensions."""
        if not remaining:
            assert number is not None
            word = Word(low.scope.origin.get(along, 0), number, number)
            x = vector.Bitcast(read(low, op.scratch, (0,) * len(low.kernel.domain), word, lanes), bits).result
            below = arith.SubI(arith.AndI(x, magnitude).result, one).result
            return arith.MinUI(least, below).result
        d, *others = remaining
        count = words_of(low, d, 2) if d == along else extent(low, d)
        step = arith.constant(1 if others else lanes, index)
        inner = scf.loop(zero, low.number(count), step, [least], "i")
        with at_end(inner.block), low.scoped() as scope:
            if d == along:
                number = inner.counter
            else:
                scope.origin[d] = scope.origin.get(d, 0) + low.named("at", inner.counter)
            scf.Yield((least_of(others, inner.carried[0], number),))
        return inner.results[0]

    least = least_of(dims, arith.constant(-1, bits))
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
    points = points_of_sums(low, op)
    least = arith.AddI(*(low.part(e, points[0]) for e in (op.lhs_exponent, op.rhs_exponent))).result
    normal = arith.CmpI("sge", least, arith.constant(LEAST_EXPONENT, i32)).result
    branch = scf.branch(normal, [SUMS] * len(points))
    with at_end(branch.then_body.block), low.scoped():
        scf.Yield(tuple(_sum(low, op, points, 2, _dots)))
    with at_end(branch.else_body.block), low.scoped():
        scf.Yield(tuple(_sum(low, op, points, 1, _multiply_adds)))
    low.scope.tiles[op.result] = dict(zip(points, branch.results))


@rule(loop.ContractBytes)
def _contract_bytes(low: Lowering, op: loop.ContractBytes) -> None:
    points = points_of_sums(low, op)
    sums = _sum(low, op, points, 4, _dots_of_bytes)
    low.scope.tiles[op.result] = dict(zip(points, sums))


Product = loop.ContractInterleaved | loop.ContractBytes
Step = Callable[[Lowering, Any, Word], tuple[Callable[[Value, Point], Value], Any]]


def points_of_sums(low: Lowering, op: Product) -> list[Point]:
    """The points of the current tile of a product, in the order in which their sums are updated."""
    dims = op.result.type.dims
    if low.lanes != LANES or not low.in_lanes(dims):
        op.fail(f"its sums lie in vectors of {LANES} lanes", code="MLC0171")
    v = low.scope.vector
    # an element that is broadcast meets all of its vectors before the next one takes its register
    return sorted(low.points(dims), key=lambda p: (*p[:v], *p[v + 1:], p[v]))


def _sum(low: Lowering, op: Product, points: Sequence[Point], terms: int, step: Step) -> list[Value]:
    """The sums of all points, of so many terms in each step: run by run, if a panel in memory consists of several."""
    panels = [v.op for v in (op.lhs, op.rhs) if isinstance(v.op, loop.Words)]
    run = gcd(*(panel.runs[0] for panel in panels))
    sums: list[Value] = [low.zeros(VectorType((LANES,), op.result.type.dtype))] * len(points)
    zero, one = arith.constant(0, index), arith.constant(1, index)
    first, count = low.scope.origin.get(op.dim, 0), words_of(low, op.dim, terms)
    if not panels or run == low.kernel.domain[op.dim]:
        return _sum_of_run(low, op, points, first, zero, count, sums, step)
    around = scf.loop(zero, low.number(words_of(low, op.dim, run)), one, sums, f"i{op.dim}")
    with at_end(around.block), low.scoped():
        number = low.named("run", around.counter)
        before = low.number(number * (run // terms))
        scf.Yield(tuple(_sum_of_run(low, op, points, first + number * run, before, run // terms, around.carried, step)))
    return list(around.results)


def _sum_of_run(low: Lowering, op: Product, points: Sequence[Point], first: Dim, before: Value, count: Dim,
                sums: Sequence[Value], step: Step) -> list[Value]:
    """The sums with `count` more steps, from the term `first` on, `before` which there are as many steps."""
    around = scf.loop(arith.constant(0, index), low.number(count), arith.constant(1, index), sums, f"i{op.dim}")
    with at_end(around.block), low.scoped():
        word = Word(first, around.counter, arith.AddI(before, around.counter).result)
        factor, add = step(low, op, word)
        sides = sorted((op.lhs, op.rhs), key=lambda v: not low.in_lanes(v.type.dims))
        scf.Yield(tuple(add(acc, *(factor(v, p) for v in sides)) for p, acc in zip(points, around.carried)))
    return list(around.results)


def _words(low: Lowering, panel: Value, point: Point, word: Word) -> Value:
    """A vector of words: those of the lanes, or one for all."""
    own = tuple(p if d in panel.type.dims else 0 for d, p in enumerate(point))

    def made() -> Value:
        if low.in_lanes(panel.type.dims):
            return read(low, panel, point, word, LANES)
        if isinstance(panel.op, loop.Words):
            return vector.splat(vector.Extract(read(low, panel, point, word, 1), (), (0,)).result, LANES)
        buffer, _ = low.scope.scratch_buffers[panel]
        return vector.splat(memref.Load(buffer, place(low, panel, point, word.number)).result, LANES)

    return low.once((panel, own), made)


def _dots(low: Lowering, op: loop.ContractInterleaved, pair: Word) -> tuple[Callable[[Value, Point], Value], Any]:
    def factor(scratch: Value, point: Point) -> Value:
        words = _words(low, scratch, point, pair)
        return low.once(("terms", words), lambda: vector.Bitcast(words, TERMS).result)

    return factor, lambda acc, a, b: x86vector.Dot(acc, a, b).result


def _dots_of_bytes(low: Lowering, op: loop.ContractBytes,
                   word: Word) -> tuple[Callable[[Value, Point], Value], Any]:
    def factor(scratch: Value, point: Point) -> Value:
        words = _words(low, scratch, point, word)
        return low.once(("bytes", words), lambda: vector.Bitcast(words, BYTES).result)

    in_lanes_first = low.in_lanes(op.unsigned_panel.type.dims)
    return factor, lambda acc, a, b: x86vector.DotBytes(acc, *((a, b) if in_lanes_first else (b, a))).result


def _multiply_adds(low: Lowering, op: loop.ContractInterleaved,
                   term: Word) -> tuple[Callable[[Value, Point], Value], Any]:
    one = arith.constant(1, index)
    within, number = (arith.ShRUI(n, one).result for n in (term.within, term.number))
    pair, odd = Word(term.first, within, number), arith.IndexCast(arith.AndI(term.within, one).result, i32).result
    shift = vector.splat(arith.ShLI(odd, arith.constant(4, i32)).result, LANES)
    high = arith.constant(-(1 << 16), WORDS)

    def factor(scratch: Value, point: Point) -> Value:
        words = _words(low, scratch, point, pair)
        return low.once(("term", words), lambda: arith.Bitcast(
            arith.AndI(arith.ShLI(words, shift).result, high).result, SUMS).result)

    return factor, lambda acc, a, b: math.Fma(a, b, acc).result
