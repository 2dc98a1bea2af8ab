"""Lower kernels to GPU kernels and their launches.

takes  LOOP
gives  GPU: LOW with gpu: kernels as functions of one thread, in modules of their own
why    the last structured level; a thread executes the same loops and accesses as a CPU, on scalars

Each thread takes one tile of the parallel dimensions and executes the inner loops sequentially, several blocks at a
time. Lanes of a reduction are threads, combined in a tree of shuffles and shared memory in the order chosen by
fix_numerics; groups of threads may share its runs (rows.py). Panels are copied
cooperatively by the threads of a CTA, pipelined if the loop has stages; tensor core products are computed per warp.
Points outside the domain are clamped to its last point, and not stored.
"""

from __future__ import annotations

import itertools
import re

from mlc.dialects import arith, gpu
from mlc.dialects.builtin import Module
from mlc.dialects.index_arithmetic import SizeBuilder
from mlc.dialects.loop import Kernel
from mlc.ir import machine as machines
from mlc.ir.core import Block, Region, Symbol, Value, at_end, before
from mlc.ir.machine import Gpu
from mlc.ir.passes import Pass
from mlc.ir.types import i32, index
from mlc.passes.analysis.free_values import free_values
from mlc.passes.forms import GPU, LOOP
from mlc.passes.loop_to_gpu import checks, collective, memory, panels, quantized, stages, warps
from mlc.passes.loop_to_gpu.threads import Threads

__all__ = ["PASS", "checks", "collective", "memory", "panels", "quantized", "run", "stages", "warps"]
"""The modules of rules among them are imported to register these."""

MODULE = "kernels"


def run(module: Module, machine: Gpu = machines.GPU) -> None:
    """Lower every kernel of `module`."""
    kernels = list(module.inside(Kernel))
    if not kernels:
        return
    module.attrs["gpu.container_module"] = True
    names = {str(op.attrs["sym_name"]) for op in module.body.block if "sym_name" in op.attrs}
    holder = gpu.GPUModule.make([], {"sym_name": Symbol(_fresh(MODULE, names))}, [], [Region(Block())],
                                loc=module.loc)
    module.body.block.insert(holder, module.body.block.first)
    taken: set[str] = set()
    for kernel in kernels:
        _outline(kernel, holder, _fresh(re.sub(r"\W+", "_", kernel.label) or "kernel", taken), machine)
        kernel.erase()


def _outline(kernel: Kernel, holder: gpu.GPUModule, name: str, machine: Gpu) -> None:
    """Outline a kernel to a function of one thread in `holder`, and launch it before the kernel."""
    used = free_values(kernel)
    captured = [v for v in used if not isinstance(v.op, arith.Constant)]
    function = gpu.function(name, [v.type for v in captured], [v.name for v in captured])
    function.loc = kernel.loc
    holder.body.block.insert(function)
    here: dict[Value, Value] = dict(zip(captured, function.args))
    with at_end(function.block, kernel.loc):
        for v in used:
            if isinstance(v.op, arith.Constant):
                here[v] = v.op.insert_clone({}).results[0]
        inside = kernel.insert_clone(here)
        gpu.Return()
    assert isinstance(inside, Kernel)
    with before(inside, kernel.loc):
        low = Threads(function, inside, machine)
        low.run()
    inside.erase()
    with before(kernel, kernel.loc):
        numbers = SizeBuilder(dict(zip(kernel.symbols, kernel.sizes)))
        one = arith.constant(1, index)
        blocks = numbers.value(low.grid)
        threads = arith.constant(low.size, index)
        dynamic = arith.constant(function.dynamic_bytes, i32) if function.dynamic_bytes else None
        gpu.Launch((), blocks, one, one, threads, one, one, None, None, None, dynamic, tuple(captured), None,
                   kernel=Symbol(f"{holder.sym_name}::{name}"))


def _fresh(name: str, taken: set[str]) -> str:
    """A fresh name, which is added to `taken`."""
    name = next(n for i in itertools.count() if (n := f"{name}_{i}" if i else name) not in taken)
    taken.add(name)
    return name


PASS = Pass(run, takes=LOOP, gives=GPU)
