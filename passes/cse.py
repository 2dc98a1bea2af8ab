"""Common subexpression elimination.

takes  any form
gives  the same form
why    derivatives and decompositions repeat themselves

An operation without side effects is replaced by an equal one (same class, operands, attributes and regions) that
dominates it: in the same block, in a dominating block, or in an enclosing region. A private function is replaced by an
equal one, callees first, so that callers become equal too.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable

from mlc.dialects import func
from mlc.dialects.func import Func
from mlc.ir.changes import allowed
from mlc.ir.core import Block, Op, Region, Symbol
from mlc.ir.passes import Pass
from mlc.ir.verify import immediate_dominators
from mlc.passes.analysis.effects import is_pure, pure_functions
from mlc.passes.analysis.structural_key import attribute_key, operation_key, region_key

Table = dict[Hashable, Op]


def run(module: Op) -> None:
    """Replace private functions by equal ones, and operations by equal ones that dominate them."""
    _merge_functions(module)
    pure = pure_functions(module)
    for region in module.regions:
        _region(region, {}, pure)


def _merge_functions(module: Op) -> None:
    alike: dict[Hashable, Func | dict[Hashable, Func]] = {}
    calls: dict[str, list[Op]] = {}
    for op in module.walk():
        for value in op.attrs.values():
            if isinstance(value, Symbol) and not isinstance(op, Func):
                calls.setdefault(value, []).append(op)
    for function in func.callees_first(module):
        if function.is_public or function.is_declaration:
            continue
        same = _equal(function, alike)
        if same is None or not allowed("equal functions", function):
            continue
        for op in calls.get(function.sym_name, ()):
            for name, value in op.attrs.items():
                if isinstance(value, Symbol) and value == function.sym_name:
                    op.attrs[name] = same.sym_name
        same.fuse_locations(function)
        function.erase()


def _equal(function: Func, alike: dict[Hashable, Func | dict[Hashable, Func]]) -> Func | None:
    """An earlier function that is equal up to its name. A cheap key tells most functions apart; keys of whole bodies
    are computed only if it collides."""
    attrs = {k: v for k, v in function.attrs.items() if k != "sym_name"}
    shape = attribute_key(attrs), tuple([type(op) for op in function.walk()])
    found = alike.setdefault(shape, function)
    if found is function:
        return None
    if isinstance(found, Func):
        found = alike[shape] = {region_key(found.body): found}
    same = found.setdefault(region_key(function.body), function)
    return same if same is not function else None


def _region(region: Region, table: Table, pure: Collection[str]) -> None:
    """Walk the blocks down the dominator tree; `table` has the operations that dominate the current one."""
    children: dict[Block, list[Block]] = {block: [] for block in region.blocks}
    if len(region.blocks) > 1:
        for block, dominator in immediate_dominators(region).items():
            if dominator is not None:
                children[dominator].append(block)
    work: list[Block | list[Hashable]] = list(region.blocks[:1])
    while work:
        item = work.pop()
        if isinstance(item, Block):
            work.append(_block(item, table, pure))
            work += reversed(children[item])
        else:
            for key in item:
                del table[key]


def _block(block: Block, table: Table, pure: Collection[str]) -> list[Hashable]:
    """Walk one block; returns its additions to `table`."""
    added: list[Hashable] = []
    for op in block:
        if op.results and not op.terminator and is_pure(op, pure):
            key = operation_key(op)
            if (known := table.get(key)) is not None:
                if allowed("equal", op):
                    known.fuse_locations(op)
                    op.replace_by(*known.results)
                continue
            table[key] = op
            added.append(key)
        for region in op.regions:
            _region(region, {} if op.isolated else table, pure)
    return added


PASS = Pass(run, whole=False)
