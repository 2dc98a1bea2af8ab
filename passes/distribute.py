"""Choose, for each kernel, how its points are distributed over the threads of a GPU.

takes  LOOP
gives  LOOP
why    the default, one thread per point, is always correct; this pass optimises for coalescing and register reuse

A CTA takes `tiles_per_cta` consecutive tiles, one per thread, in row-major order of the parallel dimensions. For a
reduction in many lanes, each lane is a thread and a CTA takes a row, or some short ones (schedule/rows_gpu.py). For a
product with a quantised factor, a thread has several lanes, and the threads of a row are in one warp. For a
contraction, a CTA takes a CTA tile with operands in shared memory (schedule/contraction_gpu.py). Results are bitwise
independent of the distribution, since fix_numerics has fixed the order of reductions.
"""

from __future__ import annotations

from math import prod

from mlc.dialects import loop
from mlc.dialects.loop import Kernel
from mlc.ir.core import Op
from mlc.ir.machine import GPU, WARP, Gpu
from mlc.ir.passes import Pass
from mlc.passes.analysis.accesses import best_dimension, contiguity, element_width
from mlc.passes.forms import LOOP
from mlc.passes.schedule.attention_gpu import schedule_attention
from mlc.passes.schedule.contraction_gpu import schedule_contraction
from mlc.passes.schedule.extents import guess
from mlc.passes.schedule.rows_gpu import schedule_columns, schedule_rows, unroll_rows
from mlc.passes.schedule.scatters_gpu import schedule_scatter
from mlc.passes.schedule.transforms import tile

THREADS = 256
"""Threads of a CTA without shared memory."""


def run(module: Op, machine: Gpu = GPU, threads: int = THREADS) -> None:
    """Distribute every unscheduled kernel over CTAs of `threads` threads."""
    for kernel in module.inside(Kernel):
        if not kernel.schedule.steps:
            distribute(kernel, machine, threads)
        kernel.log_schedule()


def distribute(kernel: Kernel, machine: Gpu, threads: int) -> None:
    """The default schedule of one kernel."""
    lanes = kernel.schedule.tile[kernel.schedule.vector] if kernel.schedule.vector >= 0 else 0
    if kernel.scores_dim >= 0:
        schedule_attention(kernel, machine)
    elif next(kernel.inside(loop.DotPairs), None) is not None and 0 not in kernel.domain:
        dot_of_pairs(kernel, machine, threads)
    elif lanes >= WARP:
        schedule_rows(kernel, machine)
    elif 0 in kernel.domain or not schedule_contraction(kernel, machine):
        if not lanes and next(kernel.inside(loop.For), None) is None:
            wide(kernel, machine)
            kernel.reschedule(tiles_per_cta=threads)
        elif not schedule_scatter(kernel, machine, threads):
            schedule_columns(kernel, machine, threads)


OWN, SUMS, ROWS = (8, 4, 2, 1), 32, 8
"""Pairs of a block that a thread may take, of which 8 share a scale; most sums of a thread, and most of a column."""
BLOCKS, TERMS = 4, 8
"""Most blocks that a thread loads at a time, and most sums that it then has terms of."""


def dot_of_pairs(kernel: Kernel, machine: Gpu, threads: int) -> None:
    """The schedule of a product of pairs of integers with a quantised factor.

    The pairs of a block are divided among threads of a warp, which read the bytes of a row together; each unpacks a
    pair once for several rows of the other factor. The fewer results, the more threads for each, and the more blocks
    at a time: the chains of sums are few and long then, and would wait for the bytes of each block in turn.
    """
    n, k = kernel.parallel - 1, len(kernel.domain) - 1
    lanes = kernel.schedule.tile[k]
    m = next((d for d in reversed(range(n)) if kernel.domain[d] != 1), None)
    rows = 1 if m is None else min(ROWS, 1 << (guess(kernel.domain[m]) - 1).bit_length())
    tiles = prod(guess(e) for e in kernel.domain[: kernel.parallel]) // rows
    fits = [own for own in OWN if lanes // own <= WARP]
    busy = machine.multiprocessors * machine.threads // 2
    own = next((own for own in fits if tiles * lanes // own >= busy), fits[-1])
    if m is not None:
        tile(kernel, m, min(rows, SUMS // own))
    tile(kernel, k, lanes, vector=True, lanes=own)
    kernel.reschedule(tiles_per_cta=max(1, threads * own // lanes))
    unroll_rows(kernel, k, [max(1, min(BLOCKS, TERMS // (own * prod(kernel.schedule.tile[: kernel.parallel]))))])


def wide(kernel: Kernel, machine: Gpu) -> None:
    """Widen the accesses of a thread to the vector width, if that divides the row length."""
    d = best_dimension(kernel)
    if d is None or not isinstance(kernel.domain[d], int):
        return
    lanes = machine.vector_bits // element_width(kernel)
    while lanes > 1 and kernel.domain[d] % lanes:
        lanes //= 2
    accesses = [op for op in kernel.walk() if isinstance(op, loop.Load | loop.Store)]
    if lanes > 1 and any(contiguity(op, d) == 1 for op in accesses):
        tile(kernel, d, lanes, vector=True, lanes=lanes)


PASS = Pass(run, takes=LOOP, gives=LOOP, whole=False)
