"""Lower kernels to loops: tensor operations become operations on tiles, and index arithmetic becomes access maps.

takes  BUFFERIZED
gives  LOOP: no tensor is left; each kernel is a parallel domain whose body loads, computes and stores tiles
why    scheduling (block sizes, vectors, later packing and threads) needs one form for all operations

Results are evaluated on demand: the value of a tensor x at index expressions e is a load if x is an operand, a map of
the values of its operands at e if x is elementwise, and for data movement (transpose, slice, pad, concat, take, ...)
the value of the operand at other expressions. No intermediate is materialized. A kernel with reductions passes over its
reduction slices in stages (dialects/tensor/stages.py). An update whose result has the buffer of its operand has the
domain of what it replaces: a loop that fills a tensor row by row writes each row once.
"""

from __future__ import annotations

from mlc.dialects import tensor as tn
from mlc.dialects.tensor.kernel import Kernel
from mlc.dialects.tensor.reduce import Reduce
from mlc.dialects.tensor.scatter import Scattering
from mlc.ir.core import Op
from mlc.ir.passes import Pass
from mlc.passes.forms import BUFFERIZED, LOOP
from mlc.passes.tensor_to_loop.evaluate import KernelBuilder
from mlc.passes.tensor_to_loop.reductions import ReductionBuilder
from mlc.passes.tensor_to_loop.scatters import ScatterBuilder
from mlc.passes.tensor_to_loop.updates import UpdateBuilder, updates_in_place


def run(module: Op) -> None:
    """Lower every kernel."""
    for kernel in list(module.inside(Kernel)):
        builder_of(kernel)(kernel).build()
        kernel.erase()


def builder_of(kernel: Kernel) -> type[KernelBuilder]:
    """Builder of a kernel's loops, selected by the operation with loops of its own, if there is one."""
    if any(isinstance(op, Scattering) for op in kernel.body.block):
        return ScatterBuilder
    if any(isinstance(op, Reduce | tn.Cumulative) for op in kernel.body.block):
        return ReductionBuilder
    return UpdateBuilder if updates_in_place(kernel) else KernelBuilder


PASS = Pass(run, takes=BUFFERIZED, gives=LOOP)
