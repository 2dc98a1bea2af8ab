"""Tensor core products of fragments; tiles are distributed over the threads of a warp as mma.sync requires."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from mlc.dialects import arith, loop, memref, nvgpu, nvvm, vector
from mlc.ir import sizes
from mlc.ir.core import Value
from mlc.ir.machine import WARP
from mlc.ir.sizes import Dim
from mlc.ir.types import VectorType, f32, i32, i64, index
from mlc.passes.loop_to_gpu.memory import moved
from mlc.passes.loop_to_gpu.threads import Threads, rule
from mlc.passes.lower_kernel.compute import sum_in_f64
from mlc.passes.lower_kernel.nest import Point

WARPGROUP_ROWS = 64
"""Rows of a product of four warps."""
ROWS, COLUMNS, TERM_BYTES = 16, 8, 32
"""The shape of one product of a warp, and the bytes of its terms, also of one of a warpgroup."""
TERMS = 16
"""Terms of a product of 16-bit floats."""


@rule(loop.Mma)
def _mma(low: Threads, op: loop.Mma) -> None:
    """Multiply all 16-row by all 8-column fragments of the warp; a thread holds 2 x 2 sums of each product."""
    kernel = low.kernel
    if not kernel.schedule.threads_per_warp:
        sum_in_f64(low, op)
        return
    if low.scores >= 0:
        multiply_scores(low, op)
        return
    around, terms = op.parent_op, TERM_BYTES // op.lhs.type.dtype.itemsize
    if not isinstance(around, loop.For) or around.dim != op.dim or around.step != terms:
        op.fail(f"tensor cores add {terms} terms of {op.lhs.type.dtype} at a time", code="MLC0171")
    if kernel.schedule.mma_warps > 1:
        multiply_by_warpgroup(low, op)
        return
    n = kernel.schedule.vector
    m = next(d for d, w in enumerate(kernel.schedule.threads_per_warp) if w > 1 and d != n)
    left, right = (op.lhs, op.rhs) if m in op.lhs.type.dims else (op.rhs, op.lhs)
    a = [fragment(low, left, m, op.dim, ROWS * i, 4) for i in range(kernel.schedule.tile[m] // 2)]
    b = [fragment(low, right, n, op.dim, COLUMNS * j, 2) for j in range(kernel.schedule.tile[n] // 2)]
    single = left.type.dtype == f32
    shape = ROWS, COLUMNS, 8 if single else 16
    type, sums_by_point = VectorType((2, 2), f32), dict[Point, Value]()
    for point in low.points(op.result.type.dims):
        if point[m] % 2 or point[n] % 2:
            continue
        corners = [moved(moved(point, m, i), n, j) for i in range(2) for j in range(2)]
        sums = vector.FromElements(tuple(low.part(op.acc, p) for p in corners), type).result
        product = nvgpu.MmaSync(a[point[m] // 2], b[point[n] // 2], sums, mmaShape=shape,
                             tf32Enabled=single or None).result
        for i, p in enumerate(corners):
            sums_by_point[p] = vector.Extract(product, (), (i // 2, i % 2)).result
    low.scope.tiles[op.result] = sums_by_point


def multiply_scores(low: Threads, op: loop.Mma) -> None:
    """Multiply all terms of a block: queries by keys, or the scores that threads have in registers by values."""
    schedule = low.kernel.schedule
    in_registers = op.dim == low.scores
    n = schedule.vector if in_registers else low.scores
    m = next(d for d, w in enumerate(schedule.threads_per_warp) if w == ROWS // 2)
    left, right = (op.lhs, op.rhs) if m in op.lhs.type.dims else (op.rhs, op.lhs)
    points = sorted(low.points(op.result.type.dims), key=lambda p: (p[n] // 2, p[m], p[n] % 2))
    check_terms(low, op)
    if low.warp_points(m) != ROWS:
        op.fail(f"a warp has the scores of {ROWS} queries, not of {low.warp_points(m)}", code="MLC0171")
    sums, terms = [low.part(op.acc, p) for p in points], range(0, schedule.tile[op.dim], TERMS)
    rows = [FragmentRows(low, left, m, op.dim, term, in_registers) for term in terms]
    if schedule.mma_warps > 1:
        sums = multiply_rows(low, op, rows, right, sums)
    else:
        fragments = [row.vector() for row in rows]
        for column in range(0, len(sums), 4):
            part: Value = vector.FromElements(tuple(sums[column: column + 4]), VectorType((2, 2), f32)).result
            for a, term in zip(fragments, terms):
                b = fragment(low, right, n, op.dim, column // 4 * COLUMNS, 2, term)
                part = nvgpu.MmaSync(a, b, part, mmaShape=(ROWS, COLUMNS, TERMS)).result
            sums[column: column + 4] = [vector.Extract(part, (), (i // 2, i % 2)).result for i in range(4)]
    low.scope.tiles[op.result] = dict(zip(points, sums))


def multiply_rows(low: Threads, op: loop.Mma, rows: Sequence[FragmentRows], right: Value, sums: Sequence[Value]
                  ) -> list[Value]:
    """The sums after a product of the rows of warpgroups, for which they wait.

    Sums that begin with zeros are no operands: the fence must come after any access to registers of a product.
    """
    left, in_registers = rows[0].tile, rows[0].in_registers
    group = sizes.divide(low.thread, nvvm.WARPGROUP)
    factors = [(row.words() if in_registers else (descriptor(low, left, op.dim, group * WARPGROUP_ROWS, row.term),),
                descriptor(low, right, op.dim, 0, row.term)) for row in rows]
    transposed = not in_registers and is_transposed(left, op.dim), is_transposed(right, op.dim)
    product = nvvm.Wgmma(2 * len(sums), str(left.type.dtype), transposed, in_registers)
    from_zero = isinstance(op.acc.op, loop.Full) and op.acc.op.value == 0
    nvvm.WgmmaFence()
    if from_zero:
        a, b = factors.pop(0)
        sums = nvvm.wgmma(replace(product, from_zero=True), (), a, b)
    for a, b in factors:
        sums = nvvm.wgmma(product, sums, a, b)
    nvvm.WgmmaCommitGroup()
    return nvvm.wgmma_finish(sums)


def check_terms(low: Threads, op: loop.Mma) -> None:
    """Refuse a loop that takes other terms than the tile, or scores that are not sums of all terms."""
    around, size = op.parent_op, low.kernel.schedule.tile[op.dim]
    while isinstance(around, loop.For) and around.dim != op.dim:
        around = around.parent_op
    whole = op.dim == low.scores or size == low.kernel.domain[op.dim]
    if not isinstance(around, loop.For) or around.step != size or size % TERMS or not whole:
        op.fail(f"tensor cores add {TERMS} terms of {op.lhs.type.dtype} at a time, those of a tile, and all of a score",
                code="MLC0171")


@dataclass(frozen=True)
class FragmentRows:
    """The 16 rows of a warp of a factor along `m`, 16 terms along `k` from `term` on: in a panel, or the sums of a
    product whose columns the terms were, of which a thread has just what a factor's fragment takes."""

    low: Threads
    tile: Value
    m: int
    k: int
    term: int
    in_registers: bool

    def vector(self) -> Value:
        """As mma.sync takes it."""
        if not self.in_registers:
            return fragment(self.low, self.tile, self.m, self.k, 0, 4, self.term)
        values = tuple(v for pair in self._pairs() for v in pair)
        return vector.FromElements(values, VectorType((4, 2), self.tile.type.dtype)).result

    def words(self) -> tuple[Value, ...]:
        """As wgmma takes it."""
        pair, word = VectorType((2,), self.tile.type.dtype), VectorType((1,), i32)
        made = [vector.Bitcast(vector.FromElements(both, pair).result, word).result for both in self._pairs()]
        return tuple(vector.Extract(v, (), (0,)).result for v in made)

    def _pairs(self) -> Iterator[tuple[Value, Value]]:
        """The terms of each register."""
        first = self.term // COLUMNS * 2
        for column, row in itertools.product((first, first + 2), range(2)):
            at = moved(moved((0,) * len(self.low.kernel.domain), self.m, row), self.k, column)
            yield self.low.part(self.tile, at), self.low.part(self.tile, moved(at, self.k, 1))


def multiply_by_warpgroup(low: Threads, op: loop.Mma) -> None:
    """Multiply 64 rows by all columns of the CTA tile; four warps read both factors from shared memory."""
    kernel = low.kernel
    n = kernel.schedule.vector
    m = next(d for d, w in enumerate(kernel.schedule.threads_per_warp) if w > 1 and d != n)
    left, right = (op.lhs, op.rhs) if m in op.lhs.type.dims else (op.rhs, op.lhs)
    product = nvvm.Wgmma(low.points_along(n), str(left.type.dtype),
                         (is_transposed(left, op.dim), is_transposed(right, op.dim)))
    group = sizes.divide(low.thread, nvvm.WARPGROUP)
    points = sorted(low.points(op.result.type.dims), key=lambda p: (p[n] // 2, p[m], p[n] % 2))
    sums = nvvm.wgmma(product, [low.part(op.acc, p) for p in points],
                      (descriptor(low, left, op.dim, group * WARPGROUP_ROWS),), descriptor(low, right, op.dim, 0))
    low.scope.tiles[op.result] = dict(zip(points, sums))


def is_transposed(tile: Value, k: int) -> bool:
    """Whether the rows of a panel hold elements of one term."""
    assert isinstance(tile.op, loop.LoadScratch)
    return bool(tile.op.scratch.type.dims[-1] != k)


def descriptor(low: Threads, tile: Value, k: int, first: Dim, term: Dim | None = None) -> Value:
    """The descriptor of a factor's block of terms, from its row or column `first` on; by default the block that the
    enclosing loop is at."""
    assert isinstance(tile.op, loop.LoadScratch) and isinstance(tile.op.scratch.op, loop.Scratch)
    scratch = tile.op.scratch
    buffer, corner, shape, _ = low.scope.scratch_buffers[scratch]
    itemsize, extents = scratch.type.dtype.itemsize, dict(zip(scratch.type.dims, shape))
    width = nvvm.ROW_BYTES // itemsize
    if not tile.op.scratch.op.swizzle or (not is_transposed(tile, k) and extents[k] % width):
        tile.op.fail("warps multiply together what is swizzled, in rows of 64 terms", code="MLC0171")
    term = low.scope.origin[k] - corner[k] if term is None else term
    if is_transposed(tile, k):                               # matrices of 64 elements, one row of which is a term
        leading = extents[k] * nvvm.ROW_BYTES
        start = sizes.divide(first, width) * leading + term * nvvm.ROW_BYTES
    else:
        leading = 16                                         # not used: a row of terms is as long as the pattern
        part = prod(n for d, n in extents.items() if d != k) * nvvm.ROW_BYTES    # of longer rows, one after the other
        start = sizes.divide(term, width) * part + first * nvvm.ROW_BYTES + sizes.modulo(term, width) * itemsize
    bits = nvvm.descriptor_bits(leading, nvvm.SWIZZLE_PERIOD)
    address = low.named("panel", memref.Address(buffer).result)
    place = address + low.scope.slots.get(scratch, 0) * itemsize + start
    number = arith.AndI(low.number(sizes.divide(place, 16)), arith.constant(0x3FFF, index)).result
    return arith.OrI(arith.IndexCast(number, i64).result, arith.constant(bits, i64)).result


def fragment(low: Threads, tile: Value, d: int, k: int, first: int, count: int, term: int | None = None) -> Value:
    """Load a fragment of a factor from `first` on along `d`, and from `term` on along `k`, by default of the block that
    the enclosing loop is at: matrices of 8 rows of 16 bytes, ordered by `k` in B and by
    row in A.

    Thread 8 t + r provides the address of row r of matrix t. A panel with rows along `d` is loaded transposed, which
    `ldmatrix` supports for 16-bit elements only: 32-bit elements are loaded by each thread.
    """
    assert isinstance(tile.op, loop.LoadScratch)
    buffer, corner, shape, _ = low.scope.scratch_buffers[tile.op.scratch]
    dims = tile.op.scratch.type.dims
    transposed = dims[-1] == d
    lane, dtype = sizes.modulo(low.thread, WARP), buffer.type.dtype
    wide, slot = 16 // dtype.itemsize, low.scope.slots.get(tile.op.scratch, 0)

    begin = low.scope.origin[k] - corner[k] if term is None else term

    def place(along_d: Dim, along_k: Dim) -> Value:
        at: dict[int, Dim] = {d: low.part_of_warp.get(d, 0) + first + along_d, k: begin + along_k}
        found: Dim = 0
        for dim, extent in zip(dims, shape):
            found = found * extent + at.get(dim, 0)
        return low.number(found + slot)

    if transposed and dtype == f32:
        group, member = sizes.divide(lane, 4), sizes.modulo(lane, 4)
        parts = [(8 * (r % 2), 4 * (r // 2)) if count == 4 else (0, 4 * r) for r in range(count)]
        return vector.FromElements(tuple(memref.Load(buffer, (place(group + i, member + j),)).result for i, j in parts),
                                   VectorType((count, 1), f32)).result
    matrix, row = sizes.divide(lane, 8), sizes.modulo(lane, 8)
    second, third = sizes.modulo(matrix, 2), sizes.modulo(sizes.divide(matrix, 2), 2)
    along_d, along_k = (second * 8, third * wide) if count == 4 else (0, second * wide)
    along_d, along_k = (along_d, along_k + row) if transposed else (along_d + row, along_k)
    return nvgpu.LdMatrix(buffer, (place(along_d, along_k),), VectorType((count, 4 // dtype.itemsize), dtype),
                          transpose=transposed, numTiles=count).result
