"""Loops over a row whose lanes are threads, or over a column of each thread.

A thread takes `unroll` blocks at a time, so that as many loads are in flight. Groups of threads take turns with runs of
blocks: in each turn every group reduces a run of its own, and all threads then combine the runs in their order, through
shared memory. What is left after the last whole block is the first group's, and is combined last.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlc.dialects import arith, gpu, loop, memref, scf
from mlc.dialects.combining import CombiningKind
from mlc.dialects.tensor.orders import LEVELS
from mlc.ir import sizes
from mlc.ir.core import Op, Value, at_end
from mlc.ir.sizes import Dim
from mlc.ir.types import MemRefType, i1, i32
from mlc.passes.loop_to_gpu.memory import is_in_registers
from mlc.passes.loop_to_gpu.threads import Threads, ThreadScope
from mlc.passes.lower_kernel.nest import Point, zero_of


class RowLoop:
    """The lowering of one loop."""

    def __init__(self, low: Threads, op: loop.For) -> None:
        kernel, block = low.kernel, op.body.block
        self.low, self.op, self.d, self.size = low, op, op.dim, op.step
        self.groups = kernel.schedule.groups_per_tile
        self.span = kernel.schedule.blocks_per_group * self.size          # points of a group's turn
        self.unroll = max(1, op.unroll)
        self.end = kernel.domain[op.dim]
        self.whole = self.end - sizes.modulo(self.end, self.size)
        self.keys: list[tuple[Value, Point]] = [(a, p) for a in block.args for p in low.points(a.type.dims)]
        self.kinds = [CombiningKind(kind) for a, kind in zip(block.args, op.kinds) for b, _ in self.keys if b is a]
        source: dict[Value, Value] = dict(zip(block.args, op.operands))
        self.inits = [low.part(source[a], p) for a, p in self.keys]
        self.free, self.chained = self.split()
        self.in_registers = any(is_in_registers(inner.scratch) for inner in block
                                if isinstance(inner, loop.LoadScratch | loop.StoreScratch))
        self.buffers: list[Value] = []
        self.lane = low.lane * low.own if op.dim == low.across else 0

    @property
    def own(self) -> Dim:
        """The first coordinate of the group's first turn."""
        return self.low.group * self.span

    def split(self) -> tuple[list[Op], list[Op]]:
        """The operations of the body that do not depend on the carried tiles, and those that do."""
        free, chained, carried = list[Op](), list[Op](), set[Value](self.op.body.block.args)
        for inner in self.op.body.block:
            if inner.terminator:
                continue
            if any(v in carried for op in inner.walk() for v in op.operands):
                carried |= {*inner.results}
                chained.append(inner)
            else:
                free.append(inner)
        return free, chained

    def run(self) -> None:
        if self.kinds:
            out = self.runs(0, self.whole, LEVELS - 1)
        elif self.groups > 1:
            out = self.turns(0, self.whole)
        else:
            out = self.blocks(0, self.whole, self.inits)
        out = self.remainder(out)
        for a, r in zip(self.op.body.block.args, self.op.results):
            self.low.scope.tiles[r] = {p: v for (b, p), v in zip(self.keys, out) if b is a}

    # -- runs -----------------------------------------------------------------------------------------------------
    def runs(self, start: Dim, stop: Dim, level: int) -> list[Value]:
        """Reduce the blocks between two coordinates in nested runs, as `Lowering.runs` does."""
        if level == 0:
            return self.blocks(start, stop, self.inits)
        if level == 1 and self.groups > 1:
            return self.turns(start, stop)
        low, length = self.low, self.size * self.op.run ** level
        if isinstance(start, int) and isinstance(stop, int) and (self.in_registers or stop - start <= length):
            carried = self.inits
            for at in range(start, stop, length):
                carried = self.combined(carried, self.runs(at, min(at + length, stop), level - 1))
            return carried
        made = scf.loop(low.number(start), low.number(stop), low.number(length), self.inits, f"i{self.d}")
        with at_end(made.block), low.scoped():
            here = low.named("origin", made.counter)
            scf.Yield(tuple(self.combined(made.carried, self.runs(here, low.least(here + length, stop), level - 1))))
        return list(made.results)

    def combined(self, carried: Sequence[Value], more: Sequence[Value]) -> list[Value]:
        return [kind.emit(a, b) for kind, a, b in zip(self.kinds, carried, more)]

    # -- turns of the groups --------------------------------------------------------------------------------------
    def turns(self, start: Dim, stop: Dim) -> list[Value]:
        """The groups take the runs between two coordinates in turn."""
        low, length, carried = self.low, self.span * self.groups, self.inits
        if isinstance(start, int) and isinstance(stop, int) and (self.in_registers or stop - start <= length):
            for at in range(start, stop, length):
                carried = self.turn(at, stop, carried)
            return carried
        made = scf.loop(low.number(start), low.number(stop), low.number(length), carried, f"i{self.d}")
        with at_end(made.block), low.scoped():
            scf.Yield(tuple(self.turn(low.named("turn", made.counter), stop, made.carried)))
        return list(made.results)

    def turn(self, at: Dim, stop: Dim, carried: Sequence[Value]) -> list[Value]:
        """One run for each group, from `at` on, and their combination."""
        low = self.low
        mine = self.blocks(at, stop, self.inits, turn=True)
        if not self.keys:
            return []
        out = list(carried)
        number = sizes.modulo(sizes.divide(at, self.span * self.groups), 2)
        for i, run in enumerate(self.exchanged(mine, number)):
            begin = at + i * self.span
            if isinstance(begin, int) and isinstance(stop, int):
                out = self.combined(out, run) if begin < stop else out
                continue
            there = arith.CmpI("slt", low.number(begin), low.number(stop)).result
            out = [arith.Select(there, new, old).result for new, old in zip(self.combined(out, run), out)]
        return out

    def exchanged(self, values: Sequence[Value], number: Dim) -> list[list[Value]]:
        """The values of each group, in order, in every thread of a lane.

        There are two buffers, which alternate: a thread that stores its next value has passed the barrier after which
        all threads loaded the one before the last.
        """
        low, each, total = self.low, self.low.group_size, self.low.size
        values = [arith.ExtUI(v, i32).result if v.type == i1 else v for v in values]    # i1 has no place in memory
        if not self.buffers:
            self.buffers = [low.function.share(MemRefType((2 * total,), v.type)) for v in values]
            low.take(sum(2 * total * v.type.itemsize for v in values), self.op)
        place = low.number(number * total + low.thread)
        for v, buffer in zip(values, self.buffers):
            memref.Store(v, buffer, (place,))
        gpu.Barrier()
        out = list[list[Value]]()
        for i in range(self.groups):
            place = low.number(number * total + i * each + low.member)
            loaded: list[Value] = [memref.Load(buffer, (place,)).result for buffer in self.buffers]
            out.append([arith.TruncI(v, i1).result if a.type.dtype == i1 else v
                        for v, (a, _) in zip(loaded, self.keys)])
        return out

    # -- blocks ---------------------------------------------------------------------------------------------------
    def blocks(self, start: Dim, stop: Dim, carried: list[Value], turn: bool = False) -> list[Value]:
        """The blocks between two coordinates; of a turn that starts there, those of the thread's group."""
        if self.in_registers:
            assert isinstance(start, int) and isinstance(stop, int)
            return self.known_blocks(start, stop, carried, turn)
        low, length = self.low, self.unroll * self.size
        first, end = start, stop
        if turn:
            first = low.named("first", low.number(start + self.own))
            end = low.least(first + self.span, stop)
        if isinstance(first, int) and isinstance(end, int):
            known = end - (end - first) % length
            carried = low.repeat(self.d, first, known, length, carried, self.here)
            return self.batch(known, (end - known) // self.size, carried) if known < end else carried
        there = low.named("end", arith.MaxSI(low.number(first), low.number(end)).result)
        left = low.named("left", low.number(first + sizes.divide(there - first, length) * length))
        carried = low.repeat(self.d, first, left, length, carried, self.here)
        if self.unroll == 1 or (turn and self.span % length == 0 and sizes.modulo(self.whole, self.span) == 0):
            return carried
        if self.d != low.across:                         # nothing asks which points are inside
            return low.repeat(self.d, left, there, self.size, carried, lambda c: self.here(c, 1))
        more = arith.CmpI("slt", low.number(left), low.number(there)).result
        return low.where(more, carried, lambda: self.batch(left, self.unroll, carried, end=there, spare=left))

    def here(self, carried: Sequence[Value], count: int = 0) -> list[Value]:
        """A batch at the current place of an emitted loop."""
        origin = self.low.scope.origin[self.d] - self.lane
        return self.batch(origin, count or self.unroll, list(carried))

    def known_blocks(self, start: int, stop: int, carried: list[Value], turn: bool) -> list[Value]:
        """The same without a loop, so that each block of a row in registers has a number of its own.

        Where the last run is shorter, or a group has none, batches end where that does: a group takes part in all of a
        batch or in nothing of it.
        """
        first, begin = start + (self.own if turn else 0), start // self.size
        length, beyond, short = stop - start, 0, 0
        if turn:
            begin = start // (self.span * self.groups) * (self.span // self.size)
            length, beyond, short = min(self.span, length), (self.groups - 1) * self.span, length % self.span
        at = 0
        while at < length:
            end = min(at + self.unroll * self.size, short if at < short else length)
            count, number = (end - at) // self.size, begin + at // self.size
            if start + beyond + end <= stop:
                carried = self.batch(first + at, count, carried, number=number)
            else:
                carried = self.batch_if_there(first + at, count, carried, stop, number)
            at = end
        return carried

    def batch_if_there(self, origin: Dim, count: int, carried: list[Value], stop: Dim, number: int) -> list[Value]:
        """A batch in the groups for which it ends at or before `stop`."""
        low = self.low
        kept = [(inner.scratch, number + j, p) for inner in self.free if isinstance(inner, loop.StoreScratch)
                and is_in_registers(inner.scratch) for j in range(count) for p in low.points(inner.scratch.type.dims)]
        there = arith.CmpI("sle", low.number(origin + count * self.size), low.number(stop)).result
        types = [v.type for v in carried] + [scratch.type.dtype for scratch, _, _ in kept]
        branch = scf.branch(there, types, otherwise=bool(types))
        with at_end(branch.then_body.block), low.scoped():
            out = self.batch(origin, count, carried, number=number)
            scf.Yield((*out, *(low.rows[scratch, n][p] for scratch, n, p in kept)))
        if types:
            with at_end(branch.else_body.block):
                scf.Yield((*carried, *(arith.constant(zero_of(scratch.type.dtype), scratch.type.dtype)
                                       for scratch, _, _ in kept)))
        for (scratch, n, p), v in zip(kept, branch.results[len(carried):]):
            low.rows[scratch, n] = {**low.rows[scratch, n], p: v}
        return list(branch.results[: len(carried)])

    def batch(self, origin: Dim, count: int, carried: Sequence[Value], end: Dim | None = None, spare: Dim | None = 0,
              number: int = 0) -> list[Value]:
        """Adjacent blocks, the loads of all of which come first.

        If some may lie beyond `end`, those load instead what the thread has at `spare`, or nothing if that is None.
        """
        low, outer, scopes = self.low, self.low.scope, list[ThreadScope]()
        for j in range(count):
            with low.scoped():
                low.enter(self.d, origin + j * self.size, self.size)
                low.scope.block_number = number + j
                if end is not None:
                    low.scope.ends[self.d] = end
                    if spare is not None:
                        low.scope.spare[self.d] = spare + self.lane
                scopes.append(low.scope)
        for op in self.free:
            for scope in scopes:
                low.scope = scope
                low.lower(op)
        values = list(carried)
        for scope in scopes:
            low.scope = scope
            for (a, p), v in zip(self.keys, values):
                low.scope.tiles[a] = {**low.scope.tiles.get(a, {}), p: v}
            for op in self.chained:
                low.lower(op)
            out: dict[Value, Value] = dict(zip(self.op.body.block.args, self.op.body.block.terminator.operands))
            values = [low.part(out[a], p) for a, p in self.keys]
        low.scope = outer
        return values

    def remainder(self, out: list[Value]) -> list[Value]:
        """The partial block at the end."""
        low, rest = self.low, self.end - self.whole
        if rest == 0:
            return out

        def emit() -> list[Value]:
            if self.groups == 1:
                return self.batch(self.whole, 1, out, self.end, spare=None, number=LAST)
            with low.scoped():
                low.scope.by_first_group = True
                last = self.batch(self.whole, 1, self.inits, self.end, spare=None, number=LAST)
            if not self.keys:
                return []
            turns = sizes.divide(self.whole + self.span * self.groups - 1, self.span * self.groups)
            return self.combined(out, self.exchanged(last, sizes.modulo(turns, 2))[0])

        if isinstance(rest, int):
            return emit()
        return low.where(arith.CmpI("sgt", low.number(rest), low.number(0)).result, out, emit)


LAST = -1
"""The number of the partial block."""

