"""Bufferize functions: assign a buffer to every tensor.

takes  FUSED
gives  BUFFERIZED: kernels read and write memrefs; every public function has the interface of compiled code
why    everything below addresses memory

A function `@f(tensors) -> tensors` becomes

    @f(one index per size symbol, inputs, results that have no donated buffer, %arena: memref<?xi8>,
       %errors: memref<1xi64>)

Temporaries are in the arena at planned offsets; values whose lifetimes do not overlap may share bytes. An operation
writes in place over an operand that dies there if it reads each element only where it writes it. A loop-carried value
and the result of the loop share one buffer.

A call passes a part of the arena to the callee for the duration of the call, and may pass one buffer for an argument
and a result if the callee allows it. A recursive function has no arena of a known size and is refused.

A public function gets the attributes `interface` (its tensor type, as text), `symbols`, `aliases` (per result: the
position of the donated input whose buffer it takes, or -1), `error_sites`, `size_constraints` (sizes that the
caller guarantees to be non-negative), `constraint_sites`, `work`, `temporaries` (bytes of all values in the arena)
and `arena` (its bytes), and a companion `@f_arena_bytes` that computes the arena bytes of a call. They include those of
callees, except for arenas of data-dependent size, which are on the heap.

The attribute `updates`, which says of results that they are the new elements of arguments, keeps those that may be
written over them.

A bounded data-dependent size is defined below its `tensor.bind_size`. Values of that size are in the arena with the
bytes of their upper bound; views of them are created where the size is bound.
"""

from __future__ import annotations

from mlc.dialects import func
from mlc.dialects.builtin import Module
from mlc.ir.passes import Pass
from mlc.passes.bufferize.function import Bufferizer
from mlc.passes.bufferize.interface import Callee
from mlc.passes.bufferize.numbers import kernel_names
from mlc.passes.bufferize.plan import ALIGNMENT
from mlc.passes.bufferize.totals import Sites
from mlc.passes.forms import BUFFERIZED, FUSED

__all__ = ["ALIGNMENT", "PASS", "IndexArithmetic", "SizeBuilder", "kernel_names", "run"]


def run(module: Module) -> None:
    """Bufferize every function of `module`, callees first."""
    sites = Sites(module)
    called = {call.callee for call in module.inside(func.Call)}
    callees: dict[str, Callee] = {}
    for function in func.callees_first(module):
        name = function.sym_name
        callees[name] = Bufferizer(module, function, callees, sites, name in called).run()


PASS = Pass(run, takes=FUSED, gives=BUFFERIZED)
