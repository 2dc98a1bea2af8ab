"""Make loops of kernels: tensor operations become programs on tiles, and index arithmetic becomes access maps.

takes  BUFFERIZED
gives  LOOP: no tensor is left; each kernel is a parallel domain whose body loads, computes and stores tiles
why    scheduling (block sizes, vectors, later packing and threads) needs one form for all operations

A kernel's results are evaluated backwards: the value of tensor x at the index expressions e is a load if x is an
operand, a map of the values of its operands at e if x is elementwise, and for transpose, slice, pad, concat, take, ...
the value of the operand at other expressions. Nothing is materialised on the way.
"""

from __future__ import annotations

from mlc.dialects.tensor.kernel import Kernel
from mlc.ir.core import Op
from mlc.ir.passes import Pass
from mlc.passes.forms import BUFFERIZED, LOOP
from mlc.passes.tensor_to_loop.evaluate import KernelBuilder


def run(module: Op) -> None:
    """Lower every kernel."""
    for kernel in list(module.inside(Kernel)):
        KernelBuilder(kernel).build()
        kernel.erase()


PASS = Pass(run, takes=BUFFERIZED, gives=LOOP)
