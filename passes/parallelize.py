"""Partition kernels among threads, if the work per thread outweighs the cost of dispatch.

takes  LOOP
gives  LOOP, with `thread_dims` and `grain_size` in schedules
why    the work per tile depends on the schedule

Work is estimated as time, in picoseconds per element of each operation, from the rates of the machine model. A kernel
of static size that is too small for two threads stays sequential; for symbolic sizes, `grain_size` is an expression
over them.
"""

from __future__ import annotations

from mlc.dialects import arith, loop, math
from mlc.dialects.loop import For, InKernel, Kernel, TileType
from mlc.ir import sizes
from mlc.ir.affine import dims_of, tiles_of
from mlc.ir.changes import allowed
from mlc.ir.core import Op
from mlc.ir.machine import CPU, Cpu
from mlc.ir.passes import Pass
from mlc.ir.sizes import Dim
from mlc.ir.types import i1, index
from mlc.passes.forms import LOOP

ENOUGH = 64
"""Number of tiles at which no further dimension is parallelized."""


def run(module: Op, machine: Cpu = CPU, worth: int = -1) -> None:
    """Parallelize every kernel with enough work: `worth` nanoseconds per thread, by default the model's."""
    for kernel in module.inside(Kernel):
        if not kernel.schedule.thread_dims:
            parallelize(kernel, machine, worth if worth >= 0 else machine.handover_ns)
        kernel.log_schedule()


def parallelize(kernel: Kernel, machine: Cpu, worth: int) -> None:
    """Partition the leading parallel dimensions of a kernel into parts of `worth` nanoseconds, if at least two."""
    total: Dim = 1
    count = 0
    for d in range(shareable(kernel)):
        if isinstance(total, int) and total >= ENOUGH:
            break
        total, count = total * blocks(kernel, d), d + 1
    if not count or total == 1:
        return
    time = work(kernel, count, machine)
    grain_size = max(1, -(-1000 * worth // max(time, 1))) if isinstance(time, int) else \
        sizes.divide(1000 * worth, time + 1) + 1
    if isinstance(total, int) and isinstance(grain_size, int) and total < 2 * grain_size:
        return
    if not allowed("share out", kernel):
        return
    kernel.reschedule(thread_dims=count, grain_size=grain_size,
                      steps=(*kernel.schedule.steps, f"parallelize(thread_dims={count}, grain_size={grain_size})"))


def shareable(kernel: Kernel) -> int:
    """The number of leading dimensions that can be partitioned: distinct points write to distinct elements."""
    stores = [{d for e in op.map.results if not tiles_of(e) for d in dims_of(e)}
              for op in kernel.inside(loop.Store)]          # an index tile may map several points to one element
    return next((d for d in range(kernel.parallel) if kernel.domain[d] != 1 and not all(d in dims for dims in stores)),
                kernel.parallel)


def blocks(kernel: Kernel, d: int) -> Dim:
    """The number of blocks of a dimension."""
    return sizes.divide(kernel.domain[d] + kernel.schedule.tile[d] - 1, kernel.schedule.tile[d])


def work(kernel: Kernel, shared: int, machine: Cpu) -> Dim:
    """Estimated picoseconds of a block of the first `shared` dimensions; terms known to be small are left out."""
    total: Dim = 0
    vectors = kernel.schedule.vector >= 0 or any(op.vector for op in kernel.inside(For))
    for op in kernel.inside(InKernel):
        if price := cost(op, machine):
            total = total + (price if vectors else price * machine.scalar_factor) * _elements(kernel, op, shared)
    return total


def cost(op: InKernel, machine: Cpu) -> int:
    """Picoseconds per element of vectorised code."""
    types = [v.type for v in (*op.results, *op.operands) if isinstance(v.type, TileType)]
    words = max([t.dtype.width for t in types if t.dtype not in (i1, index)], default=32)
    if isinstance(op, loop.Load | loop.Store):
        return machine.ps_gather if op.tiles else machine.ps_per_byte * words // 8
    if isinstance(op, loop.Map):
        return sum(machine.ps_division if isinstance(inner, arith.DivF | math.Sqrt) else machine.ps_simple
                   for inner in op.body.block if not inner.terminator) * words // 32
    if isinstance(op, loop.MultiplyAdd | loop.Mma | loop.DotQuads):
        return machine.ps_fma * words // 32
    if isinstance(op, loop.ContractInterleaved):
        return machine.ps_fma // 2
    if isinstance(op, loop.ContractPanels):
        return max(1, machine.ps_fma // 8)
    folds = isinstance(op, loop.Fold | loop.Reduce | loop.Scan | loop.StoreScratch | loop.LoadScratch)
    return machine.ps_simple if folds else 0


def _elements(kernel: Kernel, op: InKernel, shared: int) -> Dim:
    """The number of elements that an operation computes in a block of the first `shared` dimensions."""
    spans = {d for v in (*op.results, *op.operands) if isinstance(v.type, TileType) for d in v.type.dims}
    if isinstance(op, loop.Store):                           # one value may go to all elements
        spans |= {d for e in op.map.results for d in dims_of(e)}
    steps = {d: kernel.schedule.tile[d] for d in range(kernel.parallel)}
    outer = op.parent_op
    while isinstance(outer, For):
        steps[outer.dim] = min(outer.step, steps.get(outer.dim, outer.step))
        outer = outer.parent_op
    if isinstance(op, loop.ContractPanels):
        spans |= {*op.sums.type.dims}
    if isinstance(op, loop.ContractInterleaved | loop.ContractPanels):     # all terms, which a loop may be around
        spans.add(op.dim)
        steps.setdefault(op.dim, 1)
    total: Dim = 1
    for d, step in steps.items():
        extent = kernel.schedule.tile[d] if d < shared else kernel.domain[d]
        if d in spans or step == 1:
            total = total * extent
        elif isinstance(extent, int):
            total = total * -(-extent // step)
        else:
            return 0
    return total


PASS = Pass(run, takes=LOOP, gives=LOOP, whole=False)
