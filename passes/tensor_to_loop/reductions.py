"""Lowering of reductions and scans: slices are parallel, and the body passes over each slice in stages."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.dialects import arith, loop
from mlc.dialects import tensor as tn
from mlc.dialects.loop import ScratchType, TileType
from mlc.dialects.tensor.iteration import IndexingMap, delinear
from mlc.dialects.tensor.kernel import Kernel
from mlc.dialects.tensor.orders import lanes, order_of, run_length
from mlc.dialects.tensor.reduce import Reduce, ReduceFma, reduction_orders
from mlc.ir import sizes
from mlc.ir.core import Block, Region, Value, at_end, before, builder
from mlc.ir.sizes import AffineDim, Dim, Leaf
from mlc.passes.tensor_to_loop.evaluate import Index, KernelBuilder, signless
from mlc.passes.tensor_to_loop.scalar import identity


class ReductionBuilder(KernelBuilder):
    """Builds the `loop.kernel` of a kernel with reductions or scans over one iteration domain."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.stages = kernel.staging()
        domain = self.domain
        self.last = len(self.shape)
        self.dims = self.last + 1
        scans = [order_of(op) for op in self.stages.scans]
        order = scans[0] if scans else common_order(self.stages.reduces)
        self.lanes, self.run = lanes(order), run_length(order)
        inner = iter(delinear(self.position(), [domain.shape[d] for d in domain.reduced]))
        outer = iter(loop.coordinate(d) for d in range(self.last))
        at = [next(inner) if d in domain.reduced else next(outer) for d in range(len(domain.shape))]
        self.point: dict[Leaf, Dim] = {AffineDim(d): i for d, i in enumerate(at)}
        self.scratch: dict[Value, Value] = {}
        self.stage = 0

    def position(self) -> Dim:
        """Current position in the reduction slice; a reverse scan starts from the last."""
        directions = {op.reverse for op in self.stages.scans}
        if len(directions) > 1 or (directions and self.stages.reduces):
            self.kernel.fail("goes through its rows in more than one order", code="MLC0170")
        here = loop.coordinate(self.last)
        return self.stages.length - 1 - here if True in directions else here

    def index_at(self, map: IndexingMap | None) -> Index:
        """Index at the current point; all reduced dimensions are linearized into one loop."""
        return tuple(sizes.substitute(e, self.point) for e in super().index_at(map))

    def build(self) -> None:
        kernel, stages = self.kernel, self.stages
        block = Block()
        with at_end(block, kernel.loc):
            for v, (_, i) in stages.materialized.items():
                if i is None:
                    rows = tuple(range(self.last))                # the last dimension is that of the vectors
                    dims = (*rows, self.last) if self.lanes > 1 else (self.last, *rows)
                    self.scratch[v] = loop.Scratch(ScratchType(dims, signless(v.type.dtype))).result
                else:
                    self.buffers[v] = kernel.outs[i]
            for self.stage in range(stages.count):
                self.hoist()
                self.run_stage()
            self.stage = stages.count
            self.store_results(self.stages.count)
            loop.End()
        with before(kernel):
            loop.Kernel(kernel.sizes, Region(block), symbols=kernel.symbols, domain=(*self.shape, stages.length),
                        iterator_types=loop.iterator_types(self.last + 1, self.last), label=kernel.label,
                        schedule=loop.Schedule((*[1] * self.last, self.lanes),
                                               vector=self.last if self.lanes > 1 else -1))

    # -- stages ---------------------------------------------------------------------------------------------------
    def hoist(self) -> None:
        """Hoist the slice-invariant values of the stage."""
        domain = self.domain
        if domain.is_of_slice(domain.points):                   # slices of one point
            return
        for v, map in self.stages.evaluated(self.stage):
            if map is not None and domain.is_of_slice(map):
                self.value(v, self.index_at(map), None)

    def run_stage(self) -> None:
        """Emit the loop of a stage over the points of a slice: its reductions, then its stores."""
        reduces, scans = self.stages.reduced(self.stage), self.stages.scanned(self.stage)
        span = tuple(range(self.last + (self.lanes > 1)))
        inits = []
        accumulated: list[Reduce | tn.Cumulative] = [*reduces, *scans]
        for op in accumulated:
            dtype = op.operands[0].type.dtype
            inits.append(loop.Full(identity(op.combining, dtype), TileType(span, signless(dtype))).result)
        block, outer = Block([v.type for v in inits]), dict(self.memo)
        with at_end(block, builder.loc):
            points = self.index_at(self.domain.points)
            ends = []
            for scan, acc in zip(scans, block.args[len(reduces):]):
                x = self.value(scan.x, points, None)
                kind = scan.combining.value
                self.memo[scan.result, points, None] = loop.Scan(acc, x, dim=self.last, kind=kind).result
                ends.append(loop.Fold(acc, x, dim=self.last, kind=kind).result)
            materialized = self.stages.stored_for_later(self.stage)
            for v, map in (*self.stages.roots(self.stage), *((v, self.domain.points) for v in materialized)):
                self.value(v, self.index_at(map), None)         # loads precede the stores that may overwrite them
            steps = [self.step(op, acc, [self.value(v, points, None) for v in op.operands])
                     for op, acc in zip(reduces, block.args)]
            for v in materialized:
                self.materialize(v, self.value(v, points, None))
            self.store_results(self.stage)
            loop.Yield((*steps, *ends))
        self.memo = outer
        kinds = tuple(op.combining.value for op in accumulated) if self.run else ()
        totals = loop.For(tuple(inits), Region(block), dim=self.last, run=len(kinds) and self.run, kinds=kinds).results
        for op, total in zip(reduces, totals):
            found = loop.Reduce(total, dim=self.last, kind=op.combining.value).result if self.lanes > 1 else total
            self.memo[op.result, self.index_at(op.home(self.domain)), None] = found

    def step(self, op: Reduce, acc: Value, operands: Sequence[Value]) -> Value:
        """Combine one more tile of points into the accumulator of a reduction."""
        x, *factors = operands
        if self.lanes == 1:
            if isinstance(op, ReduceFma):
                return loop.FoldFma(acc, x, factors[0], dim=self.last).result
            return loop.Fold(acc, x, dim=self.last, kind=op.combining.value).result
        for y in factors:                                      # integers: floats are added one after the other
            x = self.map([x, y], lambda a, b: arith.MulI(a, b).result)
        neutral = identity(op.combining, op.operands[0].type.dtype)
        inside = loop.InBounds(dim=self.last).result
        x = self.map([inside, x], lambda c, v: arith.Select(c, v, arith.constant(neutral, v.type)).result)
        return self.map([acc, x], op.combining.emit)

    def store_results(self, stage: int) -> None:
        """Store the results of a stage, or those after the last one."""
        mine = [i for i, when in enumerate(self.stages.stores) if when == stage]
        at = [self.index_at(self.stages.maps[i]) for i in mine]
        values = [self.value(self.outputs[i], index, None) for i, index in zip(mine, at)]
        for i, index, value in zip(mine, at, values):
            self.store_tensor(value, self.outputs[i].type, self.kernel.outs[i], index)

    def materialize(self, v: Value, value: Value) -> None:
        """Materialize a value for later stages."""
        if v in self.scratch:
            loop.StoreScratch(value, self.scratch[v])
        else:
            self.store_tensor(value, v.type, self.buffers[v], self.index_at(self.domain.points))

    def value(self, v: Value, at: Index, mask: Value | None) -> Value:
        if (v, at, None) in self.memo:
            return self.memo[v, at, None]                       # an unmasked value is valid under any mask
        if not self.stages.is_read_back(v, self.stage):
            return super().value(v, at, mask)
        if v not in self.scratch:
            return self.load(v, at, mask)
        if at != self.index_at(self.domain.points):
            return super().value(v, at, mask)
        self.memo[v, at, None] = loop.LoadScratch(self.scratch[v]).result
        return self.memo[v, at, None]


def common_order(reduces: Sequence[Reduce]) -> str:
    """Reduction order of a kernel: that of its inexact reductions, or one of those that its exact ones ask for."""
    return min(reduction_orders(reduces) or {order_of(op) for op in reduces}, key=lanes)
