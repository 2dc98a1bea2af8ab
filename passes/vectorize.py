"""Choose, for each kernel, the dimension that lies in vector registers and the block sizes.

takes  LOOP
gives  LOOP
why    a tile of one point is correct everywhere; this is where the machine's vectors and caches come in

The vector dimension is the parallel one along which most buffers are contiguous; reductions in lanes bring theirs
along. A contraction keeps a block of rows times a few vectors of columns in registers (product.py). Every choice is a
step (steps.py), so the kernel records it (`schedule`), and none changes a bit of the result.
"""

from __future__ import annotations

from mlc.dialects import loop
from mlc.dialects.loop import Kernel
from mlc.ir.changes import allowed
from mlc.ir.core import Op
from mlc.ir.machine import CPU, Cpu
from mlc.ir.passes import Pass
from mlc.ir.sizes import Dim
from mlc.passes.analysis.accesses import best_dimension, element_width, pace
from mlc.passes.forms import LOOP
from mlc.passes.schedule.contraction_cpu import schedule_contraction
from mlc.passes.schedule.transforms import block

__all__ = ["PASS", "run", "schedule"]

SHORT = 8
"""Rows of fewer elements are not worth turning in registers."""
SIMPLE = 16
"""Kernels of more operations are not repeated for each row of a square."""


def run(module: Op, machine: Cpu = CPU, vectors: int = 4) -> None:
    """Schedule every kernel for a machine; operations point by point take `vectors` of its registers at a time.

    One that has no points stays as it is: blocks would be of no size.
    """
    for kernel in module.inside(Kernel):
        if not kernel.schedule.steps and 0 not in kernel.domain and allowed("schedule", kernel):
            schedule(kernel, machine, vectors)


def schedule(kernel: Kernel, machine: Cpu, vectors: int) -> None:
    """The default schedule of one kernel."""
    if next(kernel.inside(loop.Contract), None) is not None:
        schedule_contraction(kernel, machine)
    elif kernel.schedule.vector < 0 and (dim := best_dimension(kernel)) is not None:
        lanes = max(1, machine.vector_bits // element_width(kernel))
        other = across(kernel, dim)
        if other is not None:
            block(kernel, other, fit(kernel.domain[other], lanes, 1))
            vectors = 1
        block(kernel, dim, fit(kernel.domain[dim], lanes, vectors), vector=True)


def across(kernel: Kernel, dim: int) -> int | None:
    """The dimension along which a kernel that hardly computes reads memory, where its vectors lie across that."""
    if next(kernel.inside(loop.For), None) is not None or len(list(kernel.inside(loop.Map))) > SIMPLE:
        return None
    for op in kernel.inside(loop.Load):
        if op.tiles or dim not in op.result.type.dims or pace(op, dim) in (None, 0, 1):
            continue
        if op.mask is not None and dim in op.mask.type.dims:
            continue
        for d in range(kernel.parallel):
            if d in op.result.type.dims and pace(op, d) == 1 and kernel.domain[d] not in range(SHORT):
                return d
    return None


def fit(extent: Dim, lanes: int, most: int) -> int:
    """The block along a vector dimension: up to `most` vectors, halved while half of it would hold the extent."""
    size = lanes * most
    while isinstance(extent, int) and size > lanes and size // 2 >= extent:
        size //= 2
    return size


PASS = Pass(run, takes=LOOP, gives=LOOP, whole=False)
