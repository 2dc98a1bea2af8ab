"""Put the bodies of functions where they are called.

takes  any form
gives  the same form
why    what stands in one function can be simplified and fused together

Inlined are private functions called once, and small ones; with `all`, every function that can be. Callees are
treated before their callers, so one walk suffices. A body's size symbols become the sizes at the call. Functions
that call themselves, and bodies of several blocks, stay.
"""

from __future__ import annotations

from mlc.dialects import func
from mlc.dialects.func import Func
from mlc.ir.core import Op, Symbol, Value
from mlc.ir.passes import Pass
from mlc.ir.sizes import symbol_name
from mlc.ir.types import bind_symbols

SMALL = 8
"""Operations of a body that is inlined wherever it is called."""


def run(module: Op, all: bool = False, small: int = SMALL) -> None:
    """Inline calls; private functions that are then no longer used are removed."""
    for table in [op for op in module.walk() if op.symbol_table]:
        _module(table, all, small)


def _module(module: Op, everything: bool, small: int) -> None:
    uses: dict[str, int] = {}
    for op in module.walk():
        if isinstance(op, func.Call):
            uses[op.callee] = uses.get(op.callee, 0) + 1
    done: dict[str, Func] = {}                   # functions whose own calls have been looked at
    inlined: set[str] = set()
    for function in func.callees_first(module):
        for call in list(function.inside(func.Call)):
            callee = done.get(call.callee)
            if callee is None or len(callee.body.blocks) != 1:
                continue
            once = not callee.is_public and uses[call.callee] == 1
            if everything or once or len(callee.block) <= small:
                _inline(call, callee)
                inlined.add(callee.sym_name)
        done[function.sym_name] = function
    still = {v for op in module.walk() if not isinstance(op, Func) for v in op.attrs.values() if isinstance(v, Symbol)}
    for name in inlined:
        if not done[name].is_public and name not in still:
            done[name].erase()


def _inline(call: func.Call, callee: Func) -> None:
    """Replace one call by a copy of the body."""
    env = bind_symbols([a.type for a in callee.args], [v.type for v in call.operands])
    renamed = {name: size for name, size in env.items() if symbol_name(size) != name}
    mapping: dict[Value, Value] = dict(zip(callee.args, call.operands))
    assert call.parent is not None
    for op in callee.block:
        if op.terminator:
            call.replace_by(*(mapping.get(v, v) for v in op.operands))
            return
        copy = op.clone(mapping, env=renamed)
        for inner in copy.walk():
            inner.loc = inner.loc.through("inline")
        call.parent.insert(copy, call)


PASS = Pass(run)
