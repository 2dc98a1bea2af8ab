"""Choose, for each kernel, how its points are distributed over the threads of a GPU.

takes  LOOP
gives  LOOP
why    the default, one thread per point, is always correct; this pass optimises for coalescing and register reuse

A CTA takes `tiles_per_cta` consecutive tiles, one per thread, in row-major order of the parallel dimensions. For a
reduction in many lanes, each lane is a thread and a CTA takes a row, or some short ones (schedule/rows_gpu.py). For a
contraction, a CTA takes a CTA tile with operands in shared memory (schedule/contraction_gpu.py). Results are bitwise
independent of the distribution, since fix_numerics has fixed the order of reductions.
"""

from __future__ import annotations

from mlc.dialects import loop
from mlc.dialects.loop import Kernel
from mlc.ir.core import Op
from mlc.ir.machine import GPU, WARP, Gpu
from mlc.ir.passes import Pass
from mlc.passes.analysis.accesses import best_dimension, contiguity, element_width
from mlc.passes.forms import LOOP
from mlc.passes.schedule.contraction_gpu import schedule_contraction
from mlc.passes.schedule.rows_gpu import schedule_columns, schedule_rows
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
    if lanes >= WARP:
        schedule_rows(kernel, machine)
    elif 0 in kernel.domain or not schedule_contraction(kernel, machine):
        if not lanes and next(kernel.inside(loop.For), None) is None:
            wide(kernel, machine)
            kernel.reschedule(tiles_per_cta=threads)
        else:
            schedule_columns(kernel, machine, threads)


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
