"""Choose, for each kernel, the vector dimension and the tile sizes.

takes  LOOP
gives  LOOP
why    the default, a tile of one point, is always correct; this pass optimises for vector registers and caches

The vector dimension is the parallel one along which most buffers are contiguous. Reductions in lanes determine theirs,
unless what they read is contiguous along another one: then each lane has a vector along that.
A contraction has a register tile of rows times a few vectors of columns (schedule/contraction_cpu.py). Every choice is
a transform (schedule/transforms.py) recorded in the kernel, and preserves the result bit for bit.
"""

from __future__ import annotations

from mlc.dialects import loop
from mlc.dialects.func import COLD, Func
from mlc.dialects.loop import Kernel
from mlc.ir.affine import step_along
from mlc.ir.changes import allowed
from mlc.ir.core import Op
from mlc.ir.machine import CPU, Cpu
from mlc.ir.passes import Pass
from mlc.ir.sizes import Dim
from mlc.passes.analysis.accesses import best_dimension, element_width, position, stride
from mlc.passes.forms import LOOP
from mlc.passes.schedule.contraction_cpu import schedule_contraction
from mlc.passes.schedule.quantized_cpu import schedule_groups, schedule_pairs
from mlc.passes.schedule.tiles_cpu import schedule_bytes, schedule_pairs_of_terms
from mlc.passes.schedule.transforms import tile
from mlc.passes.schedule.windows import schedule_windows

__all__ = ["PASS", "run", "schedule"]

SHORT = 8
"""Minimum row length for which transposing in registers pays off."""
SPILLED = 4
"""Vectors of sums for each register: those that lie on the stack cost less than elements of vectors read one by one."""
SIMPLE = 16
"""Maximum number of operations of a kernel that is unrolled over the rows of a transposed tile, and of one that is not
computed in vectors if the elements that it updates lie apart."""


def run(module: Op, machine: Cpu = CPU, vectors: int = 4) -> None:
    """Schedule every kernel for a machine; pointwise kernels take `vectors` vector registers at a time.

    Kernels with an empty domain stay unscheduled: their tile sizes would be 0.
    """
    for kernel in module.inside(Kernel):
        if not kernel.schedule.steps and 0 not in kernel.domain and allowed("schedule", kernel):
            schedule(kernel, machine, vectors)


def schedule(kernel: Kernel, machine: Cpu, vectors: int) -> None:
    """The default schedule of one kernel."""
    if next(kernel.inside(loop.DotPairs), None) is not None:
        schedule_pairs(kernel, machine)
    elif next(kernel.inside(loop.DotQuads), None) is not None:
        schedule_groups(kernel, machine)
    elif next(kernel.inside(loop.ContractPairs), None) is not None:
        schedule_pairs_of_terms(kernel)
    elif next(kernel.inside(loop.Contract), None) is not None:
        if not (machine.byte_tiles and schedule_bytes(kernel)):
            schedule_contraction(kernel, machine)
    elif kernel.schedule.vector >= 0:
        if (dim := across_lanes(kernel, machine)) is not None:
            tile(kernel, dim, fit(kernel.domain[dim], lanes_along(kernel, dim, machine), 1), vector=True)
    elif (dim := best_dimension(kernel)) is not None and not scatters_across(kernel, dim):
        lanes = lanes_along(kernel, dim, machine)
        other = None if COLD in kernel.enclosing(Func).attrs else across(kernel, dim)
        if other is not None:
            tile(kernel, other, fit(kernel.domain[other], lanes, 1))
            vectors = 1
        else:
            vectors = schedule_windows(kernel, dim, machine, vectors)
        tile(kernel, dim, fit(kernel.domain[dim], lanes, vectors), vector=True)


def scatters_across(kernel: Kernel, dim: int) -> bool:
    """Whether the elements that a kernel updates for neighbours along a dimension do not lie side by side, and little
    is computed for each. One at a time, all updates of one row come before those of the next; in lanes they are of many
    rows, which no cache holds."""
    computed = sum(1 for op in kernel.inside(loop.Map) for inner in op.body.block if not inner.terminator)
    return computed <= SIMPLE and any(
        op.tiles and step_along(position(op), dim, 1) != 1 for op in kernel.inside(loop.Store))


def across(kernel: Kernel, dim: int) -> int | None:
    """The dimension along which a memory-bound kernel loads contiguously, if it is not the vector dimension."""
    if next(kernel.inside(loop.For), None) is not None or len(list(kernel.inside(loop.Map))) > SIMPLE:
        return None
    for op in kernel.inside(loop.Load):
        if op.tiles or dim not in op.result.type.dims or stride(op, dim) in (None, 0, 1):
            continue
        if op.mask is not None and dim in op.mask.type.dims:
            continue
        for d in range(kernel.parallel):
            if d in op.result.type.dims and stride(op, d) == 1 and kernel.domain[d] not in range(SHORT):
                return d
    return None


def lanes_along(kernel: Kernel, dim: int, machine: Cpu) -> int:
    """The lanes of a vector register that holds points along a dimension."""
    return max(1, machine.vector_bits // element_width(kernel, dim))


def across_lanes(kernel: Kernel, machine: Cpu) -> int | None:
    """The dimension along which all that a reduction in lanes reads is contiguous, if it is not that of the reduction,
    and each lane can have a vector of its own; None if rows are contiguous."""
    last = kernel.schedule.vector
    loads = [op for op in kernel.inside(loop.Load) if last in op.result.type.dims]
    sums = max((len(op.operands) for op in kernel.inside(loop.For)), default=0)
    if not loads or next(kernel.inside(loop.Scratch), None) is not None or (
            kernel.schedule.tile[last] * sums > SPILLED * machine.vector_registers):
        return None
    return next((d for d in range(kernel.parallel) if kernel.domain[d] not in range(SHORT)
                 and all(not op.tiles and stride(op, d) == 1 for op in loads) and kernel.lies_in_lanes(last, d)), None)


def fit(extent: Dim, lanes: int, most: int) -> int:
    """The tile size of a vector dimension: up to `most` vectors, halved while half still covers the extent."""
    size = lanes * most
    while isinstance(extent, int) and size > lanes and size // 2 >= extent:
        size //= 2
    return size


PASS = Pass(run, takes=LOOP, gives=LOOP, whole=False)
