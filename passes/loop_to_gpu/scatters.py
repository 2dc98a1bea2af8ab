"""Scatters whose rows are divided among CTAs: each of them takes every n-th row, and the updates of those.

If the row of an update is the same in all columns, the threads of a CTA list its updates together (updates.py).
Otherwise each thread asks for the row of one update after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlc.dialects import arith, loop, scf
from mlc.ir.core import Op, Value, at_end
from mlc.passes.loop_to_gpu.threads import Threads
from mlc.passes.loop_to_gpu.updates import ListedUpdates, is_listed


def rows_of_part(low: Threads, op: loop.For) -> None:
    """A loop over the rows, or over the updates, of the CTA's part."""
    operations = [inner for inner in op.body.block if not inner.terminator]
    store = next(inner for inner in operations if isinstance(inner, loop.Store))
    by_index = bool(store.tiles)
    if by_index and is_listed(low, op, operations, store.tiles[0]):
        ListedUpdates(low, op, operations, store.tiles[0]).run()
        return
    with low.where_existing():
        one_after_the_other(low, op, operations, store.tiles[0] if by_index else None)


def one_after_the_other(low: Threads, op: loop.For, operations: Sequence[Op], index: Value | None) -> None:
    """A loop of each thread by itself: over the rows of the CTA's part, or over all updates, if `index` has their rows.
    """
    parts, part = low.number(low.kernel.schedule.row_parts), low.number(low.part_of_rows)
    start, step = (low.number(0), low.number(1)) if index is not None else (part, parts)
    made = scf.loop(start, low.number(low.kernel.domain[op.dim]), step, [], f"i{op.dim}")
    with at_end(made.block), low.scoped():
        low.enter(op.dim, made.counter, 1)
        if index is not None:
            first = before_accesses(operations, index)
            for inner in operations[:first]:
                low.lower(inner)
            row = low.part(index, low.points(index.type.dims)[0])
            mine = arith.CmpI("eq", arith.RemSI(row, parts).result, part).result
            branch = scf.branch(mine, otherwise=False)
            with at_end(branch.then_body.block), low.scoped():
                for inner in operations[first:]:
                    low.lower(inner)
                scf.Yield(())
        else:
            for inner in operations:
                low.lower(inner)
        scf.Yield(())


def before_accesses(operations: Sequence[Op], index: Value) -> int:
    """The number of operations, from the first on, by which it is known where an update goes, and that is checked."""
    needed: set[Op] = set()
    work = [index, *(v for op in operations if isinstance(op, loop.Check) for v in op.operands)]
    while work:
        op = work.pop().op
        if op is not None and op in operations and op not in needed:
            needed.add(op)
            work += op.operands
    last = max(i for i, op in enumerate(operations) if op in needed or isinstance(op, loop.Check))
    return last + 1
