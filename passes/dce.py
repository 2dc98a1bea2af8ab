"""Erase dead operations and unreachable private functions.

takes  any form
gives  the same form
why    every pass may leave dead operations behind

An operation is dead if it has no side effects and no used results; its operands are then revisited. A private function
is unreachable if no public one reaches it through calls.
"""

from __future__ import annotations

from mlc.dialects import func
from mlc.ir.core import Op
from mlc.ir.passes import Pass
from mlc.passes.analysis.effects import is_pure, pure_functions


def run(module: Op) -> None:
    """Erase dead operations, then the private functions that are unreachable from public ones."""
    pure = pure_functions(module)
    work: dict[Op, None] = {}
    for op in module.walk():
        if (op.results or isinstance(op, func.Call)) and not op.terminator:
            work[op] = None
    while work:
        op, _ = work.popitem()                   # users come after definitions, so one pass erases most
        if op.parent is None or any(r.uses for r in op.results) or not is_pure(op, pure, reading=True):
            continue
        sources = {v.op: None for inner in op.walk() for v in inner.operands if v.op is not None}
        op.erase()
        work.update({s: None for s in sources if s.parent is not None})
    for table in [op for op in module.walk() if op.symbol_table]:
        _functions(table)


def _functions(module: Op) -> None:
    functions = {f.sym_name: f for f in func.functions(module)}
    used = {name for op in module.regions[0].block if not isinstance(op, func.Func) for name in func.references(op)}
    live: set[str] = set()
    work = [name for name, f in functions.items() if f.is_public or name in used]
    while work:
        name = work.pop()
        if name not in live and name in functions:
            live.add(name)
            work += func.references(functions[name])
    for name, function in functions.items():
        if name not in live:
            function.erase()


PASS = Pass(run)
