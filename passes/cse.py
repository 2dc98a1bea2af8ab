"""Compute once what is computed twice.

takes  any form
gives  the same form
why    derivatives and decompositions repeat themselves

An operation without effect is replaced by an equal one (same class, operands, attributes and regions) whose result
reaches it: one that stands before it in the same block, in a block that dominates it, or around it. A private
function gives way to an equal one, callees first, so that callers become equal too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable
from typing import Any

import numpy as np

from mlc.dialects import func
from mlc.dialects.func import Func
from mlc.ir.changes import allowed
from mlc.ir.core import Block, Op, Region, Symbol, Value
from mlc.ir.passes import Pass
from mlc.ir.verify import immediate_dominators
from mlc.passes.analysis.effects import is_pure, pure_functions

Table = dict[Hashable, Op]


def run(module: Op) -> None:
    """Replace private functions by equal ones, and operations by equal ones that dominate them."""
    _merge_functions(module)
    pure = pure_functions(module)
    for region in module.regions:
        _region(region, {}, pure)


def _merge_functions(module: Op) -> None:
    known: dict[Hashable, Func] = {}
    calls: dict[str, list[Op]] = {}
    for op in module.walk():
        for value in op.attrs.values():
            if isinstance(value, Symbol) and not isinstance(op, Func):
                calls.setdefault(value, []).append(op)
    for function in func.callees_first(module):
        if function.is_public:
            continue
        attrs = {k: v for k, v in function.attrs.items() if k != "sym_name"}
        same = known.setdefault((attribute_key(attrs), region_key(function.body)), function)
        if same is function or not allowed("equal functions", function):
            continue
        for op in calls.get(function.sym_name, ()):
            for name, value in op.attrs.items():
                if isinstance(value, Symbol) and value == function.sym_name:
                    op.attrs[name] = same.sym_name
        function.erase()


def _region(region: Region, table: Table, pure: Collection[str]) -> None:
    """Walk the blocks down the dominator tree; `table` holds what reaches the current one, and is left as found."""
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
    """Walk one block; what it added to `table`."""
    added: list[Hashable] = []
    for op in block:
        if op.results and not op.terminator and is_pure(op, pure):
            key = operation_key(op)
            if (known := table.get(key)) is not None:
                if allowed("equal", op):
                    op.replace_by(*known.results)
                continue
            table[key] = op
            added.append(key)
        for region in op.regions:
            _region(region, {} if op.isolated else table, pure)
    return added


def operation_key(op: Op) -> Hashable:
    """Equal for two operations exactly when they compute the same from the same values."""
    operands: tuple[Any, ...] = tuple([id(v) for v in op.operands])
    if op.commutative and len(operands) == 2 and operands[1] < operands[0]:
        operands = operands[::-1]
    types = tuple([r.type for r in op.results])
    if not op.attrs and not op.regions:
        return type(op), operands, types
    attrs = tuple([(k, attribute_key(v)) for k, v in sorted(op.attrs.items()) if v is not None])
    segments = tuple(op.segments) if op.segments is not None else None
    return type(op), operands, types, attrs, segments, tuple([region_key(r) for r in op.regions])


def attribute_key(value: Any) -> Hashable:
    """Equal exactly for equal attributes: 1, 1.0 and True differ, and so do the two zeros."""
    if isinstance(value, float):
        return "float", math.copysign(1.0, value), value if value == value else "nan"
    if isinstance(value, np.ndarray):
        return "array", value.dtype.name, value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, np.generic):
        return "scalar", value.dtype.name, value.tobytes()
    if isinstance(value, tuple | list):
        return "list", tuple([attribute_key(v) for v in value])
    if isinstance(value, dict):
        return "dict", tuple([(k, attribute_key(v)) for k, v in sorted(value.items())])
    return type(value), value


def region_key(region: Region) -> Hashable:
    """The structure of a region: values and blocks inside it by number, values from outside as themselves."""
    numbers: dict[Any, int] = {}
    for block in region.blocks:
        numbers[block] = len(numbers)
    out: list[Hashable] = []
    work: list[Region | Block | Op] = [region]
    while work:
        item = work.pop()
        if isinstance(item, Region):
            out.append(("region", len(item.blocks)))
            for block in item.blocks:
                numbers.setdefault(block, len(numbers))
            work += reversed(item.blocks)
        elif isinstance(item, Block):
            out.append(("block", tuple([a.type for a in item.args])))
            for arg in item.args:
                numbers[arg] = len(numbers)
            work += reversed(item.ops)
        else:
            out.append((type(item), tuple([_value_key(v, numbers) for v in item.operands]),
                        tuple([r.type for r in item.results]),
                        tuple([(k, attribute_key(v)) for k, v in sorted(item.attrs.items()) if v is not None]),
                        tuple([numbers.get(b, -1) for b in item.successors]),
                        tuple(item.segments) if item.segments is not None else None, len(item.regions)))
            for r in item.results:
                numbers[r] = len(numbers)
            work += reversed(item.regions)
    return tuple(out)


def _value_key(value: Value, numbers: dict[Any, int]) -> Hashable:
    number = numbers.get(value)
    return ("outer", id(value)) if number is None else number


PASS = Pass(run, whole=False)
