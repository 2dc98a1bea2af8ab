"""The updates of a scatter whose rows are divided among CTAs, if each is of the same row in all columns.

The threads of a CTA look at many updates at a time: each asks for the rows of a few, adjacent ones, and the threads
together list those of the CTA's part in shared memory, in order. Then each thread applies them to its column. An update
that fails a check is in the list of every CTA, so that it is reported as if every thread had looked at it.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlc.dialects import arith, gpu, loop, memref, scf
from mlc.ir import sizes
from mlc.ir.core import Op, Value, at_end
from mlc.ir.machine import WARP
from mlc.ir.sizes import Dim
from mlc.ir.types import MemRefType, i1, i32, index
from mlc.passes.loop_to_gpu.threads import Threads, ThreadScope

OWN, TOGETHER = 4, 4
"""Adjacent updates that a thread asks for the rows of, and updates that it loads, which are on their way together."""


def deciding(operations: Sequence[Op], row: Value) -> list[Op]:
    """The operations by which it is known where an update goes, and whether it may."""
    checks = [op for op in operations if isinstance(op, loop.Check)]
    needed, work = set[Op](), [row, *(check.condition for check in checks)]
    while work:
        op = work.pop().op
        if op is not None and op in operations and op not in needed:
            needed.add(op)
            work += op.operands
    return [op for op in operations if op in needed]


def is_listed(low: Threads, op: loop.For, operations: Sequence[Op], row: Value) -> bool:
    """Whether the threads of a CTA list its updates: their rows do not depend on the column."""
    return low.size % WARP == 0 and all(
        set(v.type.dims) <= {op.dim} for inner in deciding(operations, row) for v in inner.results)


class ListedUpdates:
    """The lowering of one loop over updates."""

    def __init__(self, low: Threads, op: loop.For, operations: Sequence[Op], row: Value) -> None:
        self.low, self.op, self.operations, self.row = low, op, operations, row
        self.count: Dim = low.kernel.domain[op.dim]
        self.batch = OWN * low.size
        self.warps = low.size // WARP
        low.take((self.batch + self.warps) * i32.itemsize, op)
        self.list = low.function.share(MemRefType((self.batch,), i32))
        self.totals = low.function.share(MemRefType((self.warps,), i32))

    def run(self) -> None:
        low = self.low
        made = scf.loop(low.number(0), low.number(self.count), low.number(self.batch), [], f"i{self.op.dim}")
        with at_end(made.block), low.scoped():
            found = self.look(low.named("first", made.counter))
            total = self.write(found)
            with low.where_existing():
                self.apply(total, made.counter)
            scf.Yield(())

    def look(self, first: Dim) -> list[tuple[Value, Value]]:
        """The numbers of a thread's updates from the first one on, as i32, and whether they are of the CTA's part.

        Where there are no more updates, the thread looks at the last one instead, without a branch.
        """
        low, outer, scopes = self.low, self.low.scope, list[ThreadScope]()
        numbers = [low.thread * OWN + i for i in range(OWN)]
        for number in numbers:
            with low.scoped():
                low.enter(self.op.dim, low.least(first + number, self.count - 1), 1)
                scopes.append(low.scope)
        for inner in deciding(self.operations, self.row):
            for scope in scopes:
                low.scope = scope
                low.lower(inner)
        found = list[tuple[Value, Value]]()
        for number, scope in zip(numbers, scopes):
            low.scope = scope
            mine = self.is_mine()
            there = arith.CmpI("slt", low.number(first + number), low.number(self.count)).result
            found.append((arith.IndexCast(low.number(number), i32).result, arith.AndI(mine, there).result))
        low.scope = outer
        return found

    def is_mine(self) -> Value:
        """Whether the current update is of the CTA's part, or fails a check."""
        low = self.low
        row = low.part(self.row, low.points(self.row.type.dims)[0])
        mine = arith.CmpI("eq", arith.RemSI(row, low.number(low.kernel.schedule.row_parts)).result,
                          low.number(low.part_of_rows)).result
        for check in self.operations:
            if isinstance(check, loop.Check):
                passes = low.part(check.condition, low.points(check.condition.type.dims)[0])
                mine = arith.OrI(mine, arith.XorI(passes, arith.constant(True, i1)).result).result
        return mine

    def write(self, found: Sequence[tuple[Value, Value]]) -> Value:
        """Write the numbers of the CTA's updates into its list, in order; returns how many they are.

        Two barriers suffice: a thread that writes into the list, or its warp's total, has passed the barrier after
        which nobody reads what was there.
        """
        low = self.low
        counts = [arith.ExtUI(mine, i32).result for _, mine in found]
        own = counts[0]
        for count in counts[1:]:
            own = arith.AddI(own, count).result
        upto = self.sum_of_warp(own)
        place = arith.SubI(upto, own).result
        total = arith.constant(0, i32)
        warp = low.named("warp", low.number(sizes.divide(low.thread, WARP)))
        last = arith.CmpI("eq", low.number(sizes.modulo(low.thread, WARP)), low.number(WARP - 1)).result
        self.store_if(last, upto, self.totals, low.number(warp))
        gpu.Barrier()
        for i in range(self.warps):
            there = memref.Load(self.totals, (low.number(i),)).result
            earlier = arith.CmpI("slt", low.number(i), low.number(warp)).result
            place = arith.AddI(place, arith.Select(earlier, there, arith.constant(0, i32)).result).result
            total = arith.AddI(total, there).result
        for (number, mine), count in zip(found, counts):
            self.store_if(mine, number, self.list, arith.IndexCast(place, index).result)
            place = arith.AddI(place, count).result
        gpu.Barrier()
        return arith.IndexCast(total, index).result

    def sum_of_warp(self, x: Value) -> Value:
        """The sum of the numbers of a warp's threads up to this one."""
        width, step = arith.constant(WARP, i32), 1
        while step < WARP:
            before, there = gpu.Shuffle(x, arith.constant(step, i32), width, mode="up").results
            x = arith.AddI(x, arith.Select(there, before, arith.constant(0, i32)).result).result
            step *= 2
        return x

    def store_if(self, condition: Value, x: Value, buffer: Value, place: Value) -> None:
        branch = scf.branch(condition, otherwise=False)
        with at_end(branch.then_body.block):
            memref.Store(x, buffer, (place,))
            scf.Yield(())

    def apply(self, total: Value, start: Value) -> None:
        """Apply the updates in the list, whose numbers count from a first one on, to the thread's column."""
        low = self.low
        whole = arith.SubI(total, arith.RemUI(total, low.number(TOGETHER)).result).result
        for first, end, count in ((low.number(0), whole, TOGETHER), (whole, total, 1)):
            made = scf.loop(first, end, low.number(count), [], "listed")
            with at_end(made.block), low.scoped():
                self.apply_together(low.named("listed", made.counter), count, start)
                scf.Yield(())

    def apply_together(self, first: Dim, count: int, start: Value) -> None:
        """Apply adjacent updates of the list, after all loads that do not depend on what these store."""
        low, outer, scopes = self.low, self.low.scope, list[ThreadScope]()
        for i in range(count):
            with low.scoped():
                number = arith.IndexCast(memref.Load(self.list, (low.number(first + i),)).result, index).result
                low.enter(self.op.dim, arith.AddI(start, number).result, 1)
                scopes.append(low.scope)
        free = self.before_result()
        for inner in free:
            for scope in scopes:
                low.scope = scope
                low.lower(inner)
        for scope in scopes:
            low.scope = scope
            for inner in self.operations:
                if inner not in free:
                    low.lower(inner)
        low.scope = outer

    def before_result(self) -> list[Op]:
        """The operations that compute an update, but not what they need of the result."""
        result = {inner.buffer for inner in self.operations if isinstance(inner, loop.Store)}
        later = set[Value]()
        for inner in self.operations:
            if (isinstance(inner, loop.Load) and inner.buffer in result) or later.intersection(inner.operands):
                later.update(inner.results)
        return [inner for inner in self.operations if inner.results and not later.intersection(inner.results)]
