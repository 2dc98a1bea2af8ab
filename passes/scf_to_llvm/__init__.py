"""Lower structured control flow, memory and vectors to the llvm dialect.

takes  LOW   without undefined behaviour: division by zero or of the minimum integer by -1, shifts by the bit width or
             more, conversions of floats out of the range of the integer type
gives  LLVM  each function under its own name with unpacked arguments; for an entry (a function with an
             `interface`) also the wrapper `NAME_entry`, see entry.py; locations preserved
why    LLVM IR is printed from this form, one instruction per operation
"""

from __future__ import annotations

from mlc.dialects import func, llvm, memref
from mlc.dialects.builtin import Module
from mlc.ir.abi import is_entry
from mlc.ir.core import Op
from mlc.ir.diag import BackendError
from mlc.ir.passes import Pass
from mlc.passes.forms import LLVM, LOW
from mlc.passes.lower_to_llvm import arithmetic, control, memory, tiles, vectors
from mlc.passes.lower_to_llvm.lowering import NAME, Lowering, pool_constants
from mlc.passes.scf_to_llvm import clock, parallel
from mlc.passes.scf_to_llvm.entry import arena_function, entry

RULE_MODULES = (arithmetic, clock, control, memory, parallel, tiles, vectors)
"""Importing these modules registers their rules."""


def run(module: Op) -> None:
    assert isinstance(module, Module)
    body = module.body.block
    sources = [op for op in body if isinstance(op, func.Func)]
    entries = [f for f in sources if is_entry(f)]
    inner = {f.sym_name for f in entries} | {arena_function(f) for f in entries}
    functions: dict[str, llvm.Func] = {}
    for op in body.ops:
        if isinstance(op, memref.Global):
            body.insert(memory.lower_global(op), op)
            op.erase()
        elif isinstance(op, func.Func):
            lowered = control.declare(op, internal=not op.is_public or op.sym_name in inner)
            body.insert(lowered, op)
            functions[op.sym_name] = lowered
        else:
            raise BackendError(f"{op.name} has no lowering to llvm", code="MLC0540", loc=op.loc)
    for source in sources:
        if not source.is_declaration:
            _function(module, source, functions)
    for source in entries:
        body.insert(entry(source, functions[source.sym_name], functions.get(arena_function(source))), source)
    for source in sources:
        source.erase()


def _function(module: Module, source: func.Func, functions: dict[str, llvm.Func]) -> None:
    """Fill a declared function with the code of its source."""
    target = functions[source.sym_name]
    low = Lowering(module, target, target.body.blocks[0], functions, source.loc.through(NAME))
    low.bind(source.args, target.args)
    for op in source.block:
        if isinstance(op, func.Return):
            control.lower_return(low, op)
        else:
            low.lower(op)
    pool_constants(target)


PASS = Pass(run, LOW, LLVM)
