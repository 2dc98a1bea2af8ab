"""Make code report what is undefined in memory and index arithmetic, at the place where it happens.

takes  LOW
gives  LOW: the same results and, in the error record, the first place at which something below is wrong
why    the last form whose accesses say which memory they are meant for

Checked are, in every function that has an error record or is called by one that has:

    accesses     `memref` and `vector` loads and stores, masked lanes excepted, within the sizes of their memref; views
                 within their source; vectors at the alignment that they claim
    arithmetic   sums, differences and products of `index` within 64 bits
    values       elements that are read have been written: arguments and constants are, results, the arena and fresh
                 memory are not until something is stored there

An access that is outside does not happen: a load gives 0, a store nothing. Of what is wrong, the place of the smallest
number is reported, in the order of the program, after the errors of the program itself. So the report does not depend
on the number of threads.

Whether an element is written is kept beside it: every memref has a shadow of the same shape, with an integer as wide
as an element for each, 0 where it is written. Views are made of both, and functions take both.
"""

from __future__ import annotations

from mlc.dialects import func
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func
from mlc.ir.core import Value
from mlc.ir.diag import IRError
from mlc.ir.passes import Pass
from mlc.ir.types import MemRefType, i64
from mlc.passes.forms import LOW
from mlc.passes.insert_checks.function import Checker
from mlc.passes.insert_checks.shadow import shadow_type
from mlc.passes.insert_checks.traps import Traps

RECORD = MemRefType((1,), i64)
"""The type of an error record."""


def run(module: Module) -> None:
    """Insert checks into every function that can report what they find."""
    traps = Traps(module)
    order = [f for f in reversed(func.callees_first(module)) if _can_report(f)]
    own = {f.sym_name: _extend(f) for f in order if not f.is_public}
    for function in order:
        Checker(function, own, traps).run()
    traps.describe()


def _can_report(function: Func) -> bool:
    """Whether a function has, or can be given, an error record; IRError if it needs one and has none."""
    if not function.is_public:
        return True
    if "interface" in function.attrs:
        if not function.args or function.args[-1].type != RECORD:
            raise IRError(f"@{function.sym_name}: the last argument is no error record {RECORD}", code="MLC0481",
                          loc=function.loc, hint="keep the arguments that bufferize gave it")
        return True
    for op in function.walk():
        if isinstance(op, func.Call) or any(isinstance(v.type, MemRefType) for v in op.operands):
            raise IRError(f"@{function.sym_name} uses memory, but has no error record to report to", code="MLC0481",
                          loc=op.loc, hint="make it private, or give it an `interface` and an error record")
    return False


def _extend(function: Func) -> Value:
    """Give a private function the shadows of its memrefs, and last an error record, as arguments; the latter."""
    block = function.body.blocks[0]
    for arg in [a for a in block.args if isinstance(a.type, MemRefType)]:
        block.add_arg(shadow_type(arg.type), f"{arg.name}_unwritten" if arg.name else "")
    record = block.add_arg(RECORD, "trap")
    function.update_type()
    return record


PASS = Pass(run, takes=LOW, gives=LOW)
