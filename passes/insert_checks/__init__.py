"""Instrument code to report undefined behaviour of memory accesses and index arithmetic, with its location.

takes  LOW
gives  LOW: the same results and, in the error record, the first location of undefined behaviour
why    the lowest level at which an access names its memref

In every function that has an error record, or is called by one that has, the pass checks:

    accesses     unmasked lanes of `memref` and `vector` loads and stores are within bounds; views are within their
                 source; vectors have the alignment that they claim
    arithmetic   sums, differences and products of `index` do not overflow 64 bits
    values       elements that are read are initialised: arguments and constants are; results, the arena and allocated
                 memory are after a store

An access out of bounds is suppressed: a load gives 0, a store does nothing. A single location is reported: the first
in program order, callers before callees, but accesses and arithmetic before values, which they may have corrupted. So
the report does not depend on the number of threads. It overrides an error of the program itself, such as an index out
of range, which may be a consequence.

Every memref has a shadow of the same shape: an integer as wide as the element for each element, 0 if it is initialised.
Views are taken of both, and functions take both as arguments.
"""

from __future__ import annotations

from mlc.dialects import func
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func
from mlc.ir import abi
from mlc.ir.core import Value
from mlc.ir.diag import IRError
from mlc.ir.passes import Pass
from mlc.ir.types import MemRefType
from mlc.passes.forms import LOW
from mlc.passes.insert_checks.function import Checker
from mlc.passes.insert_checks.shadow import shadow_type
from mlc.passes.insert_checks.traps import RECORD, Traps


def run(module: Module) -> None:
    """Insert checks into every function that can report errors."""
    traps = Traps(module)
    functions = [f for f in _in_order_of_calls(module) if _can_report(f)]
    records = {str(f.sym_name): _extend(f) for f in functions if not f.is_public}
    checkers = [Checker(f, records, traps) for f in functions]
    for step in (Checker.places, Checker.values, Checker.results):         # causes are reported before what they cause
        for checker in checkers:
            step(checker)
    traps.describe()


def _in_order_of_calls(module: Module) -> list[Func]:
    """The functions of a module, callers before callees, and callees in the order of their first calls."""
    table = {f.sym_name: f for f in func.functions(module)}
    out: dict[Func, None] = {}
    work = [*(f for f in table.values() if not f.is_public), *reversed([f for f in table.values() if f.is_public])]
    while work:
        function = work.pop()
        if function not in out:
            out[function] = None
            work += [table[name] for name in reversed(func.references(function)) if name in table]
    return list(out)


def _can_report(function: Func) -> bool:
    """Whether a function has, or can be given, an error record; IRError if it needs one and has none."""
    if not function.is_public:
        return True
    if abi.is_entry(function):
        if not function.args or function.args[-1].type != RECORD:
            raise IRError(f"@{function.sym_name}: the last argument is not an error record {RECORD}", code="MLC0481",
                          loc=function.loc, hint="keep the arguments that bufferize gave it")
        return True
    for op in function.walk():
        if isinstance(op, func.Call) or any(isinstance(v.type, MemRefType) for v in op.operands):
            raise IRError(f"@{function.sym_name} uses memory, but has no error record to report to", code="MLC0481",
                          loc=op.loc, hint="make it private, or give it an `interface` and an error record")
    return False


def _extend(function: Func) -> Value:
    """Append the shadows of its memrefs and an error record to a private function's arguments; returns the record."""
    block = function.body.blocks[0]
    for arg in [a for a in block.args if isinstance(a.type, MemRefType)]:
        block.add_arg(shadow_type(arg.type), f"{arg.name}_unwritten" if arg.name else "")
    record = block.add_arg(RECORD, "trap")
    function.update_type()
    return record


PASS = Pass(run, takes=LOW, gives=LOW, whole=False)
