"""Which operations and functions do nothing but give results: those may be merged, moved and removed."""

from __future__ import annotations

from collections.abc import Collection

from mlc.dialects import func
from mlc.ir.core import Op


def pure_functions(module: Op) -> set[str]:
    """The functions of a module that have no effect; those that may call themselves do not count as such."""
    pure: set[str] = set()
    for function in func.callees_first(module):
        if not function.is_declaration and all(is_pure(op, pure) for block in function.body.blocks for op in block):
            pure.add(function.sym_name)
    return pure


def is_pure(op: Op, pure: Collection[str], reading: bool = False) -> bool:
    """Whether `op` and all inside it have no effect, given the functions that have none; `reading` memory may be one.
    """
    if op.pure and not op.regions:
        return True
    return all(inner.pure or inner.effects_inside or inner.terminator or (reading and inner.reads)
               or (inner.effects_of_callee and inner.attrs["callee"] in pure) for inner in op.walk())
