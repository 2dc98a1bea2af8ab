"""Lower kernels to scf loops, vectors and memory accesses.

takes  LOOP
gives  LOW: builtin func arith math scf memref vector, as upstream MLIR means them
why    the last structured level: each operation is one or two machine instructions

A kernel becomes one scf.for per parallel dimension, with the tile size as step. A remainder is one smaller tile if its
size is static, else tiles of one point or, in the vector dimension, masked vectors. A tile that spans the vector
dimension becomes one vector per combination of points of its other dimensions; any other tile becomes scalars.
"""

from __future__ import annotations

from mlc.dialects.builtin import Module
from mlc.dialects.loop import Kernel
from mlc.ir.core import before
from mlc.ir.passes import Pass
from mlc.passes.forms import LOOP, LOW
from mlc.passes.loop_to_scf import scratch
from mlc.passes.loop_to_scf.partition import share
from mlc.passes.lower_kernel import checks, compute, dequantize, interleaved, matrices, memory
from mlc.passes.lower_kernel.nest import Lowering

__all__ = ["PASS", "checks", "compute", "dequantize", "interleaved", "matrices", "memory", "run",   # rules register
           "scratch"]


def run(module: Module) -> None:
    """Lower every kernel of `module`."""
    for kernel in list(module.inside(Kernel)):
        with before(kernel):
            lowering = Lowering(module, kernel)
            memory.flatten_buffers(lowering)
            share(lowering)
        kernel.erase()


PASS = Pass(run, takes=LOOP, gives=LOW)
