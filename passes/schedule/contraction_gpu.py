"""The default schedule of a contraction on a GPU.

Each thread keeps a tile of accumulators in registers, and the threads of a CTA take a CTA tile. The reduction goes in
stages: the CTA copies panels of both factors into shared memory with coalesced accesses, and a row or a column of
threads uses every element copied. The sizes of the tiles follow from the extents: large ones read less per term, small
ones occupy more multiprocessors.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mlc.dialects import loop
from mlc.dialects.loop import Kernel
from mlc.ir import sizes
from mlc.ir.affine import is_multiple_of
from mlc.ir.core import Op
from mlc.ir.machine import WARP, Gpu
from mlc.ir.sizes import AffineDim, Dim
from mlc.ir.types import f32, i1
from mlc.passes.analysis.accesses import position, stride
from mlc.passes.schedule.extents import ceil, guess
from mlc.passes.schedule.factors import factor
from mlc.passes.schedule.gpu_transforms import (
    computed_by,
    cta_tile,
    multiply_by_warpgroups,
    pipeline,
    promote_to_shared,
    stage,
    tile_epilogue,
    warp_tile,
)
from mlc.passes.schedule.transforms import contraction, tile

TILES, CTA_THREADS = (1, 2, 4, 8), (64, 128, 256)
"""Candidate thread tiles along rows or columns, and candidate thread counts of a CTA."""
FEW, TERMS, UNROLL = 8, (16, 32), 4
"""Fewest terms that are worth a stage, terms of a stage of large and of small CTA tiles, and the unroll factor."""
SUMS, SIMPLE, EPILOGUE = 64, 2, 16
"""Most words of accumulators of a thread, most operations per copied element beyond which it is half as many, and
points of a thread that are computed at a time after their sums."""


@dataclass(frozen=True)
class Side:
    """One side of a CTA tile: accumulators of a thread, and threads."""

    tile: int
    threads: int

    @property
    def points(self) -> int:
        return self.tile * self.threads

    def split(self, extents: Sequence[Dim]) -> list[tuple[int, int]] | None:
        """(tile, threads) along each dimension, the last one filled first; None if there are fewer points."""
        points, tile = self.points, self.tile
        out: list[tuple[int, int]] = []
        for extent in reversed(extents):
            size = min(points, 1 << max(0, extent - 1).bit_length()) if isinstance(extent, int) else points
            here = min(tile, size)
            out.insert(0, (here, size // here))
            points, tile = points // size, tile // here
        return out if points == 1 else None


@dataclass(frozen=True)
class Work:
    """Cost parameters of a product: batch size, 32-bit words of an accumulator, bytes of an element of a factor, and
    operations per element of either factor until it is in shared memory."""

    batch: int
    words: int
    itemsize: int
    rows: int
    columns: int

    def fits(self, rows: Side, columns: Side, machine: Gpu) -> bool:
        """Whether the accumulators of a thread fit into the registers beside what it copies, and the panels of both
        factors, whose rows are padded, into shared memory."""
        most = SUMS if max(self.rows, self.columns) <= SIMPLE else SUMS // 2
        terms, padding = stage_terms((rows, columns)), machine.vector_bits // 8 // self.itemsize
        panels = sum(max((side.points + padding) * terms, side.points * (terms + padding)) for side in (rows, columns))
        return rows.tile * columns.tile * self.words <= most and panels * self.itemsize <= machine.shared_bytes


def cycles(rows: Side, columns: Side, ctas: int, work: Work, machine: Gpu) -> float:
    """Estimated cycles per term of all sums: arithmetic, reads and writes of shared memory, and synchronization."""
    threads, sums = rows.threads * columns.threads, rows.tile * columns.tile
    reads = threads / WARP * (ceil(rows.tile, 4) + ceil(columns.tile, 4))
    copies = (rows.points * work.rows + columns.points * work.columns) / machine.fill_per_cycle
    busy = max(threads * sums * work.words / machine.fma_per_cycle, reads, copies) + (reads + copies) / 4
    resident = max(1, min(machine.registers // (threads * (2 * sums * work.words + 40)), machine.threads // threads))
    return max(ceil(ctas, machine.multiprocessors) * busy,
               ceil(ctas, machine.multiprocessors * resident) * machine.fma_latency)


@functools.cache
def best_sides(rows: tuple[Dim, ...], columns: tuple[Dim, ...], work: Work, machine: Gpu) -> tuple[Side, Side] | None:
    """Cheapest CTA tile for extents of rows and columns; None if they fill none."""
    found: list[tuple[float, int, Side, Side]] = []
    for threads, a, b in itertools.product(CTA_THREADS, TILES, TILES):
        for n in (1 << i for i in range(threads.bit_length())):
            sides = Side(a, threads // n), Side(b, n)
            split = [side.split(extents) for side, extents in zip(sides, (rows, columns))]
            if work.fits(*sides, machine) and all(s is not None for s in split):
                ctas = work.batch * prod(ceil(guess(e), t * p) for s, extents in zip(split, (rows, columns))
                                     for (t, p), e in zip(s or (), extents))
                found.append((cycles(*sides, ctas, work, machine), -threads, *sides))
    return min(found, key=lambda f: f[:2])[2:] if found else None


def schedule_contraction(kernel: Kernel, machine: Gpu) -> bool:
    """Schedule a product with its epilogue, if CTA tiles pay off."""
    products = [op for op in kernel.walk() if isinstance(op, loop.Contract | loop.Mma)]
    if len(products) != 1:
        return False
    if isinstance(products[0], loop.Mma):
        return schedule_mma(kernel, machine)
    sum, contract = contraction(kernel)
    k, factors = contract.dim, {"lhs": contract.lhs, "rhs": contract.rhs}
    if sum.run or len(sum.operands) != 1 or kernel.domain[k] in range(FEW):
        return False
    free = [d for d in range(kernel.parallel) if kernel.domain[d] != 1]
    sides = [[d for d in free if d in a.type.dims and d not in b.type.dims] for a, b in itertools.permutations(
        factors.values())]
    batch = prod(guess(kernel.domain[d]) for d in free if d not in (*sides[0], *sides[1]))
    sources = [computed_by(v) for v in factors.values()]
    itemsize = max(v.type.dtype.itemsize for v in factors.values())
    work = Work(batch, ceil(contract.acc.type.dtype.width, 32), itemsize,
                *(ceil(1 + operations(s or ()), 2) for s in sources))
    best = best_sides(*(tuple(kernel.domain[d] for d in side) for side in sides), work, machine)
    if best is None:
        return False
    shared = [name for (name, v), other, source in zip(factors.items(), reversed(best), sources)
              if source is not None and k in v.type.dims and v.type.dtype != i1
              and (other.threads > 1 or not factor(v).along & {*range(kernel.parallel)})]
    if not shared:
        return False
    panel, last = [1] * kernel.parallel, max((*sides[0], *sides[1]))
    for side, dims in zip(best, sides):
        for d, (size, threads) in zip(dims, side.split([kernel.domain[d] for d in dims]) or ()):
            panel[d] = threads
            if size > 1:
                lanes = min(size, max(1, machine.vector_bits // 8 // contract.acc.type.dtype.itemsize))
                tile(kernel, d, size, vector=d == last, lanes=lanes if d == last else 0)
    cta_tile(kernel, tuple(panel))
    tile_epilogue(kernel, EPILOGUE)
    stage(kernel, stage_terms(best), UNROLL)
    for side_name in shared:
        promote_to_shared(kernel, side_name)
    return True


UNPACKING = 9
"""Operations that unpacking a number of a quantised factor counts as, its block's scale included."""


def operations(source: Sequence[Op]) -> int:
    """The operations that compute an element of a factor."""
    return sum(UNPACKING if isinstance(op, loop.Dequantize) else 1 for op in source)


def is_plain(source: Sequence[Op] | None) -> bool:
    """Whether elements of a factor are in memory as they are."""
    return source is not None and len(source) == 1 and not isinstance(source[0], loop.LoadEncoded)


def stage_terms(sides: tuple[Side, Side]) -> int:
    """The terms of a stage of a CTA tile."""
    return TERMS[sides[0].points + sides[1].points <= 64]


# -- tensor cores -----------------------------------------------------------------------------------------------------
WARP_TILES, WARPS, STAGE = ((8, 8), (8, 4), (4, 4), (2, 4), (2, 2)), ((2, 4), (2, 2), (1, 2)), 64
"""Accumulators of a thread of a warp of 8 x 4, warps of a CTA tile, both largest first, and bytes of a stage."""
STAGES, COPIED = 4, 16
"""Most pipeline stages, and most elements per thread that are computed before they are shared: these stay in
registers until the previous stage is consumed."""


def schedule_mma(kernel: Kernel, machine: Gpu) -> bool:
    """Schedule a product for tensor cores: the largest CTA tiles that occupy the machine, else the smallest."""
    _, contract = contraction(kernel)
    k, free = contract.dim, [d for d in range(kernel.parallel) if kernel.domain[d] != 1]
    sides = {name: [d for d in free if d in a.type.dims and d not in b.type.dims] for name, a, b in (
        ("lhs", contract.lhs, contract.rhs), ("rhs", contract.rhs, contract.lhs))}
    if not all(sides.values()) or any(computed_by(v) is None or k not in v.type.dims
                                      for v in (contract.lhs, contract.rhs)):
        return False
    n = max(d for dims in sides.values() for d in dims)
    m = next(dims[-1] for dims in sides.values() if n not in dims)
    others = prod(guess(kernel.domain[d]) for d in free if d not in (m, n))
    along = {name: factor(v).along for name, v in (("lhs", contract.lhs), ("rhs", contract.rhs))}
    last = {name: d if (d := n if n in dims else m) in along[name] and k not in along[name] else k
            for name, dims in sides.items()}
    if machine.warpgroup_mma and schedule_wgmma(kernel, machine, m, n, last, others):
        return True
    itemsize = contract.lhs.type.dtype.itemsize
    terms = STAGE // itemsize
    plain = all(is_plain(computed_by(v)) for v in (contract.lhs, contract.rhs))
    shapes = [s for s in itertools.product(WARP_TILES, WARPS) if plain or copied(*s, terms) <= COPIED]
    sums, warps = min(shapes, key=lambda s: mma_cost(s[0], s[1], guess(kernel.domain[m]), guess(kernel.domain[n]),
                                                       others, machine))
    panel, threads = [1] * kernel.parallel, [1] * kernel.parallel
    threads[m], threads[n] = 8, 4
    panel[m], panel[n] = 8 * warps[0], 4 * warps[1]
    tile(kernel, m, sums[0])
    tile(kernel, n, sums[1], vector=True, lanes=2)
    cta_tile(kernel, tuple(panel))
    tile_epilogue(kernel, EPILOGUE)
    warp_tile(kernel, tuple(threads))
    stage(kernel, terms, kernel.schedule.tile[k])
    for name in sides:
        promote_to_shared(kernel, name, last[name])
    height, width = kernel.schedule.tile[m] * panel[m], kernel.schedule.tile[n] * panel[n]
    pad = machine.vector_bits // 8                        # between two rows, as loop_to_gpu lays out panels
    bytes = (height + width) * (STAGE + pad) + terms * pad
    stages = min(STAGES, machine.shared_bytes_optin // bytes)
    if stages > 1 and plain:
        pipeline(kernel, stages)
    return True


ROWS, GROUP_TERMS, GROUP_STAGES = (128, 64), 64, 4
"""Rows of a CTA tile of warpgroups, 64 of each; terms of a stage, whose rows have the 128 bytes of the swizzle; and
stages: two are copied to while one is multiplied and one may still be."""
GROUP_M = 8
"""CTA tiles along the rows that are numbered together: 8 or 16 give the same speed for products of 4096 and 8192."""
COLUMNS = (256, 128, 64)
"""Columns of a CTA tile of warpgroups: the sums of a thread are half as many."""


def schedule_wgmma(kernel: Kernel, machine: Gpu, m: int, n: int, last: dict[str, int], others: int) -> bool:
    """Schedule a product for warpgroups, if its factors can be copied to shared memory as they are, in 16 bytes."""
    _, contract = contraction(kernel)
    k = contract.dim
    terms = kernel.domain[k]
    loads = {"lhs": computed_by(contract.lhs), "rhs": computed_by(contract.rhs)}
    if contract.lhs.type.dtype == f32 or not isinstance(terms, int) or terms % GROUP_TERMS or not all(
            ops is not None and is_plain(ops) and is_copied_in_pieces(kernel, ops[0], last[name])
            for name, ops in loads.items()):
        return False
    rows, columns = min(itertools.product(ROWS, COLUMNS), key=lambda s: wgmma_cost(
        s[0], s[1], guess(kernel.domain[m]), guess(kernel.domain[n]), others, machine))
    panel, threads = [1] * kernel.parallel, [1] * kernel.parallel
    threads[m], threads[n] = 8, 4
    panel[m], panel[n] = rows // 2, 4
    tile(kernel, m, 2)
    tile(kernel, n, columns // 4, vector=True, lanes=2)
    cta_tile(kernel, tuple(panel), GROUP_M if (m, n) == (kernel.parallel - 2, kernel.parallel - 1) else 0)
    tile_epilogue(kernel, EPILOGUE)
    warp_tile(kernel, tuple(threads))
    multiply_by_warpgroups(kernel)
    stage(kernel, GROUP_TERMS, kernel.schedule.tile[k])
    for name in loads:
        promote_to_shared(kernel, name, last[name], swizzle=128)
    pipeline(kernel, GROUP_STAGES)
    return True


def is_copied_in_pieces(kernel: Kernel, load: Op, last: int) -> bool:
    """Whether 16 bytes of a factor, contiguous along `last`, are at a multiple of 16 bytes wherever they start."""
    if not isinstance(load, loop.Load) or load.mask is not None or load.tiles:
        return False
    piece, at = 16 // load.buffer.type.dtype.itemsize, position(load)
    extent = kernel.domain[last]
    return (isinstance(extent, int) and extent % piece == 0 and stride(load, last) == 1
            and is_multiple_of(sizes.substitute(at, {AffineDim(last): 0}), piece))


def wgmma_cost(height: int, width: int, rows: int, columns: int, others: int, machine: Gpu) -> float:
    """Estimated cycles per term of all sums: products, filling shared memory, and waiting for a CTA's other half."""
    ctas = ceil(rows, height) * ceil(columns, width) * others
    resident = 1 if height * width > 128 * 128 else 2
    return ceil(ctas, machine.multiprocessors * resident) * resident * max(
        height * width / machine.mma_per_cycle, (height + width) / (2 * machine.fill_per_cycle))


def copied(tile: tuple[int, int], warps: tuple[int, int], terms: int) -> int:
    """Elements of a stage that each thread copies."""
    return ceil((8 * tile[0] * warps[0] + 4 * tile[1] * warps[1]) * terms, WARP * warps[0] * warps[1])


def mma_cost(tile: tuple[int, int], warps: tuple[int, int], rows: int, columns: int, others: int,
             machine: Gpu) -> float:
    """Estimated cycles per term of all sums: tensor core operations and filling shared memory."""
    height, width = 8 * tile[0] * warps[0], 4 * tile[1] * warps[1]
    ctas = ceil(rows, height) * ceil(columns, width) * others
    return ceil(ctas, machine.multiprocessors) * (
        height * width / machine.mma_per_cycle + (height + width) / machine.fill_per_cycle)
