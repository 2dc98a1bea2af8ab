"""Give every tensor a buffer.

takes  FUSED
gives  BUFFERIZED: kernels read and write memrefs; every public function has the interface of compiled code
why    everything below addresses memory

A function `@f(tensors) -> tensors` becomes

    @f(one index per size symbol, inputs, results that have no donated buffer, %arena: memref<?xi8>,
       %errors: memref<1xi64>)

All temporary values lie in the arena: a plan gives each an offset, and two whose lifetimes do not overlap may share
bytes. An operation writes in place over an operand that dies there if it reads each element only where it writes it.
What a loop carries has one buffer, in which it also ends.

A call passes a piece of the arena that is the callee's while it runs, and may pass one buffer for an argument and a
result where the callee allows it. A function that calls itself has no arena of a known size and is refused.

A public function gets the attributes `interface` (its tensor type, as text), `symbols`, `aliases` (per result: the
position of the donated input whose buffer it takes, or -1), `error_sites`, `conditions` (sizes that must not be
negative: the caller sees to it), `condition_sites`, `work`, `temporaries` (bytes of all values in the arena) and
`arena` (its bytes), and a companion `@f_arena_bytes` that computes how many bytes of arena a call needs. All of them
include what its callees need, but for callees with data-dependent sizes: those have memory of the heap.

A data-dependent size that has a bound is known below its `tensor.bind_size`. Values of that size lie in the arena, in
as many bytes as they take at most; views of them are made where the number is read.
"""

from __future__ import annotations

from mlc.dialects import func
from mlc.dialects.builtin import Module
from mlc.ir.passes import Pass
from mlc.passes.bufferize.function import Bufferizer, Callee
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
