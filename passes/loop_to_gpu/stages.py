"""Software pipelining: loops whose next blocks are copied to shared memory while the current one is computed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from mlc.dialects import arith, gpu, loop, nvgpu, nvvm, scf
from mlc.ir import sizes
from mlc.ir.core import Value, at_end
from mlc.ir.sizes import Dim
from mlc.passes.loop_to_gpu import memory, panels, scores
from mlc.passes.loop_to_gpu.memory import is_in_registers
from mlc.passes.loop_to_gpu.rows import RowLoop
from mlc.passes.loop_to_gpu.scatters import rows_of_part
from mlc.passes.loop_to_gpu.threads import Threads, rule
from mlc.passes.lower_kernel.memory import access
from mlc.passes.lower_kernel.nest import loop_over


@rule(loop.For)
def _for(low: Threads, op: loop.For) -> None:
    packs = [inner for inner in op.body.block if isinstance(inner, loop.Pack)]
    if (op.stages > 1 or op.dim == low.scores) and packs and op.outer() is None:
        staged = PipelinedLoop(low, op, packs)
        if all(staged.is_copied(pack) for pack in packs):
            staged.run()
            return
        if op.dim == low.scores:
            op.fail("keys and values are copied to shared memory as they are, in pieces that are contiguous",
                    code="MLC0171")
    if low.kernel.schedule.row_parts > 1:
        rows_of_part(low, op)
        return
    if low.kernel.schedule.mma_warps > 1 and low.scores < 0:
        terms_in_order(low, op)
        return
    several = op.unroll > 1 or low.kernel.schedule.groups_per_tile > 1 or any(
        isinstance(inner, loop.LoadScratch | loop.StoreScratch) and is_in_registers(inner.scratch)
        for inner in op.body.block)                      # each block of a row in registers has a number of its own
    if several and op.parent_op is low.kernel and (op.dim == low.across or (op.step == 1 and low.across < 0)):
        RowLoop(low, op).run()
        return
    loop_over(low, op)                                   # one block after the other, where a row is not gone through


def terms_in_order(low: Threads, op: loop.For) -> None:
    """The terms of a stage, block by block, without a loop: products of warpgroups follow one another at once."""
    around = op.parent_op
    if not isinstance(around, loop.For):
        op.fail("products of warpgroups need a loop of stages that are copied", code="MLC0171")
    assert isinstance(around, loop.For)
    args, carried = op.body.block.args, [low.scope.tiles[v] for v in op.operands]
    origin = low.scope.origin[op.dim]
    for offset in range(0, around.step, op.step):
        with low.scoped() as scope:
            low.enter(op.dim, origin + offset, op.step)
            scope.tiles |= dict(zip(args, carried))
            for inner in op.body.block:
                low.lower(inner)
            carried = [scope.tiles[v] for v in op.body.block.terminator.operands]
    low.scope.tiles |= dict(zip(op.results, carried))


def end_of(low: Threads, op: loop.For) -> Dim:
    """Where a loop ends: at the end of its dimension or, if the blocks from `until` on need not be taken, there, for
    the last of the points of a CTA."""
    end = low.kernel.domain[op.dim]
    return end if op.until is None else low.least(end, scores.largest(low, op.until.result, of_warp=False))


class PipelinedLoop:
    """A pipelined loop: every scratch buffer that it packs is multi-buffered, with one copy per stage.

    ahead   stages that are copied before the current one is computed: all others or, as products of warpgroups go on
            while the next stage is prepared, all but the one that may still be read
    chased  whether they go on so: if the scores of one product are the factors of the next, each is waited for
    """

    def __init__(self, low: Threads, op: loop.For, packs: Sequence[loop.Pack]) -> None:
        self.low, self.op, self.packs = low, op, packs
        self.size, self.end = op.step, end_of(low, op)
        self.by_warpgroups = low.kernel.schedule.mma_warps > 1
        self.chased = self.by_warpgroups and low.scores < 0
        self.ahead = op.stages - 1 - self.chased

    def is_copied(self, pack: loop.Pack) -> bool:
        """Whether a panel is filled by copies of at least 4 bytes, contiguous in source and destination."""
        first, low = pack.body.block.first, self.low
        if not isinstance(first, loop.Load) or isinstance(first, loop.LoadEncoded) or first.mask is not None or (
                first.tiles) or (pack.body.block.terminator.operands[0] is not first.result):
            return False
        dims = pack.scratch.type.dims
        with low.scoped():
            low.enter(self.op.dim, 0, self.size)
            along, count = panels.direction(low, pack, {d: low.points_along(d) for d in dims})
        return bool(along == dims[-1] and count * pack.scratch.type.dtype.itemsize >= 4)

    def run(self) -> None:
        """Wait for the copies of a block, start those of a later block into the free stage, then compute."""
        low, op, ahead = self.low, self.op, self.ahead
        if ahead < 1:
            op.fail(f"stages = {op.stages}: there are two at least, and three of products of warpgroups",
                    code="MLC0171")
        if op.dim == low.scores and (self.size < scores.FEWEST or self.size & (self.size - 1)):
            op.fail(f"blocks of {self.size} keys: scores are reduced as a tree, and are factors of products of "
                    f"{scores.FEWEST} terms", code="MLC0171")
        with low.scoped() as scope:
            low.enter(op.dim, 0, self.size)
            for pack in self.packs:
                memory.panel(low, pack.scratch.op, op.stages)  # type: ignore[arg-type]
            scratch_buffers = {pack.scratch: scope.scratch_buffers[pack.scratch] for pack in self.packs}
        low.scope.scratch_buffers |= scratch_buffers
        group = None
        for stage in range(ahead):
            self.begin_if_there(stage * self.size, stage)
            group = nvgpu.DeviceAsyncCreateGroup(()).result
        args = op.body.block.args
        keys = [(a, p) for a in args for p in low.points(a.type.dims)]
        source = dict(zip(args, op.operands))
        pipelined = scf.loop(low.number(0), low.number(self.end), low.number(self.size),
                        [low.part(source[a], p) for a, p in keys], f"i{op.dim}")
        assert group is not None
        with at_end(pipelined.block), low.scoped() as scope:
            origin = low.enter(op.dim, pipelined.counter, self.size)
            number = sizes.divide(origin, self.size)
            nvgpu.DeviceAsyncWait(group, numGroups=ahead - 1)
            if self.by_warpgroups:
                nvvm.FenceProxy(kind="async.shared", space="cta")
            gpu.Barrier()
            later = origin + ahead * self.size
            self.begin_if_there(later, number + ahead)
            nvgpu.DeviceAsyncCreateGroup(())
            self.place(origin, number)
            for (a, p), v in zip(keys, pipelined.carried):
                scope.tiles[a] = {**scope.tiles.get(a, {}), p: v}
            self.compute(origin)
            out = dict(zip(args, op.body.block.terminator.operands))
            scf.Yield(tuple(low.part(out[a], p) for a, p in keys))
        results = nvvm.wgmma_finish(pipelined.results) if self.chased else pipelined.results
        for a, r in zip(args, op.results):
            low.scope.tiles[r] = {p: v for (b, p), v in zip(keys, results) if b is a}

    def compute(self, origin: Dim) -> None:
        """Lower what is computed of a block."""
        low, op = self.low, self.op
        if op.dim == low.scores:
            scores.distribute(low, origin, self.size)
        else:
            whole = sizes.modulo(self.end, self.size) == 0
            low.scope.stop[op.dim] = origin + self.size if whole else low.least(origin + self.size, self.end)
        if self.chased:
            nvvm.WgmmaFence()
        for inner in op.body.block:
            if not isinstance(inner, loop.Pack | loop.Scratch):
                low.lower(inner)
        if self.chased:
            nvvm.WgmmaCommitGroup()
            nvvm.WgmmaWaitGroup(1)

    def begin_if_there(self, origin: Dim, number: Dim) -> None:
        """Copy the block that starts at `origin` if there is one."""
        low = self.low
        inside: list[Value] = []
        if isinstance(origin, int) and isinstance(self.end, int):
            if origin >= self.end:
                return
        else:
            inside = [arith.CmpI("slt", low.number(origin), low.number(self.end)).result]
        memory.guarded(inside, (), partial(self.begin, origin, number), list, low)

    def place(self, origin: Dim, number: Dim) -> None:
        """Select the stage of each scratch buffer for the block that starts at `origin`."""
        scope = self.low.scope
        for pack in self.packs:
            buffer, corner, shape, share = scope.scratch_buffers[pack.scratch]
            scope.scratch_buffers[pack.scratch] = buffer, {**corner, self.op.dim: origin}, shape, share
            slot = sizes.modulo(number, self.op.stages)
            scope.slots[pack.scratch] = slot * prod(shape)

    def begin(self, origin: Dim, number: Dim) -> list[Value]:
        """Copy the block that starts at `origin`."""
        low = self.low
        with low.scoped():
            low.enter(self.op.dim, origin, self.size)
            self.place(origin, number)
            for pack in self.packs:
                plan = panels.CopyPlan(low, pack)
                for unit in plan.units():
                    memory.guarded(plan.exists(unit), (), partial(self.copy, pack, plan, unit), list, low)
        return []

    def copy(self, pack: loop.Pack, plan: panels.CopyPlan, unit: Dim) -> list[Value]:
        """Copy one group of adjacent elements."""
        low, load = self.low, pack.body.block.first
        assert isinstance(load, loop.Load)
        with low.scoped():
            place = plan.enter(unit)
            point = (0,) * len(low.kernel.domain)
            flat, at = memory.place_of(low, access(low, load), point, plan.along, plan.count)
            buffer = low.scope.scratch_buffers[pack.scratch][0]
            whole = plan.count * pack.scratch.type.dtype.itemsize == low.bytes_together
            nvgpu.DeviceAsyncCopy(buffer, (low.number(place),), flat, (at,), self.elements(plan),
                                  dstElements=plan.count, bypassL1=whole or None)
        return []

    def elements(self, plan: panels.CopyPlan) -> Value | None:
        """The elements of a unit that are copied: none of rows beyond the last score, which are zeros, as an infinite
        number times a weight of 0 would be NaN. None if there are no such rows."""
        low, d = self.low, self.op.dim
        if d != low.scores or sizes.modulo(low.kernel.domain[d], self.size) == 0:
            return None
        there = arith.CmpI("slt", low.number(plan.first[d]), low.number(low.kernel.domain[d])).result
        return arith.Select(there, low.number(plan.count), low.number(0)).result
