"""Kernels that reduce or accumulate: rows are parallel, and the body goes through the points of one in sweeps."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.dialects import arith, loop
from mlc.dialects import tensor as tn
from mlc.dialects.loop import ScratchType, TileType
from mlc.dialects.tensor.kernel import Kernel
from mlc.dialects.tensor.orders import lanes, run_length
from mlc.dialects.tensor.reduce import Reduce
from mlc.ir.core import Block, Op, Region, Value, at_end, before, builder
from mlc.ir.sizes import Dim
from mlc.ir.types import IntType, ScalarType, i1
from mlc.passes.fix_numerics import reduction_order
from mlc.passes.spaces import Walk, is_exact
from mlc.passes.sweeps import Sweeps
from mlc.passes.tensor_to_loop.evaluate import Index, KernelBuilder, delinear, signless
from mlc.passes.tensor_to_loop.scalar import combine, identity


class RowBuilder(KernelBuilder):
    """Builds the `loop.kernel` of one kernel with reductions or cumulative operations of one space."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.sweeps = Sweeps(self.body)
        space = self.sweeps.space
        self.shape: Index = space.rows
        self.last = len(self.shape)
        self.dims = self.last + 1
        order = "chain" if self.sweeps.scans else order_of(self.sweeps.reduces)
        self.lanes, self.run = lanes(order), run_length(order)
        inner = iter(delinear(self.position(), [space.shape[a] for a in space.axes]))
        outer = iter(loop.coordinate(d) for d in range(self.last))
        at = [next(inner) if a in space.axes else next(outer) for a in range(len(space.shape))]
        self.at: Index = tuple(0 if n == 1 else i for i, n in zip(at, space.shape))
        self.scratch: dict[Value, Value] = {}
        self.sweep = 0

    def position(self) -> Dim:
        """Which point of a row a sweep has come to; one that accumulates in reverse starts from the last."""
        directions = {op.reverse for op in self.sweeps.scans}
        if len(directions) > 1 or (directions and self.sweeps.reduces):
            self.kernel.fail("goes through its rows in more than one order", code="MLC0170")
        here = loop.coordinate(self.last)
        return self.sweeps.length - 1 - here if True in directions else here

    def index_at(self, walk: Walk) -> Index:
        """The index of a value at the current point, or at the current row."""
        return tuple(0 if a is None else self.at[a] for a in walk)

    def index_of(self, v: Value) -> Index:
        """The index at the current point or row of a value that has one element for each."""
        walk = self.sweeps.space.walk(v.type.shape)
        assert walk is not None, "fuse takes in what walks along the space"
        return self.index_at(walk)

    def build(self) -> None:
        kernel, sweeps = self.kernel, self.sweeps
        block = Block()
        with at_end(block, kernel.loc):
            for v, (_, i) in sweeps.kept.items():
                if i is None:
                    rows = tuple(range(self.last))                # the last dimension is the one that vectors go along
                    dims = (*rows, self.last) if self.lanes > 1 else (self.last, *rows)
                    self.scratch[v] = loop.Scratch(ScratchType(dims, signless(v.type.dtype))).result
                else:
                    self.buffers[v] = kernel.outs[i]
            for self.sweep in range(sweeps.count):
                self.hoist()
                self.run_sweep()
            self.sweep = sweeps.count
            self.store_results(None)
            loop.End()
        with before(kernel):
            loop.Kernel(kernel.sizes, Region(block), symbols=kernel.symbols, domain=(*self.shape, sweeps.length),
                        iterator_types=loop.iterator_types(self.last + 1, self.last), label=kernel.label,
                        schedule=loop.Schedule((*[1] * self.last, self.lanes),
                                               vector=self.last if self.lanes > 1 else -1))

    # -- sweeps ---------------------------------------------------------------------------------------------------
    def hoist(self) -> None:
        """Evaluate before the sweep what is the same for all points of a row."""
        space = self.sweeps.space
        if space.is_row(space.points):                          # rows of one point
            return
        for v, walk in self.sweeps.visits(self.sweep):
            if walk is not None and space.is_row(walk):
                self.value(v, self.index_at(walk), None)

    def run_sweep(self) -> None:
        """One loop over the points of a row: all reductions of the sweep, then what it stores."""
        reduces, scans = self.sweeps.reduced(self.sweep), self.sweeps.scanned(self.sweep)
        span = tuple(range(self.last + (self.lanes > 1)))
        inits = []
        for op in (*reduces, *scans):
            dtype = op.operands[0].type.dtype
            inits.append(loop.Full(identity(reduction_of(op), dtype), TileType(span, signless(dtype))).result)
        block, outer = Block([v.type for v in inits]), dict(self.memo)
        with at_end(block, builder.loc):
            points = self.index_at(self.sweeps.space.points)
            ends = []
            for scan, acc in zip(scans, block.args[len(reduces):]):
                x = self.value(scan.x, points, None)
                self.memo[scan.result, points, None] = loop.Scan(acc, x, dim=self.last, kind=kind_of(scan)).result
                ends.append(loop.Fold(acc, x, dim=self.last, kind=kind_of(scan)).result)
            kept = self.sweeps.kept_in(self.sweep)
            for v, walk in (*self.sweeps.roots(self.sweep), *((v, self.sweeps.space.points) for v in kept)):
                self.value(v, self.index_at(walk), None)        # all are read before a store can change what they are
            steps = [self.step(op, acc, self.value(op.x, points, None)) for op, acc in zip(reduces, block.args)]
            for v in kept:
                self.keep(v, self.value(v, points, None))
            self.store_results(self.sweep)
            loop.Yield((*steps, *ends))
        self.memo = outer
        kinds = tuple(kind_of(op) for op in (*reduces, *scans)) if self.run else ()
        totals = loop.For(tuple(inits), Region(block), dim=self.last, run=len(kinds) and self.run, kinds=kinds).results
        for op, total in zip(reduces, totals):
            found = loop.Reduce(total, dim=self.last, kind=kind_of(op)).result if self.lanes > 1 else total
            self.memo[op.result, self.index_of(op.result), None] = found

    def step(self, op: Reduce, acc: Value, x: Value) -> Value:
        """The accumulator of a reduction with one more block of points in it."""
        if self.lanes == 1:
            return loop.Fold(acc, x, dim=self.last, kind=kind_of(op)).result
        neutral = identity(op.name, op.x.type.dtype)
        inside = loop.InBounds(dim=self.last).result
        x = self.map([inside, x], lambda c, v: arith.Select(c, v, arith.constant(neutral, v.type)).result)
        return self.map([acc, x], lambda a, b: combine(op.name, op.x.type.dtype, a, b))

    def store_results(self, sweep: int | None) -> None:
        """Store the results of a sweep; None: those with one element per row."""
        mine = [i for i in range(len(self.outputs)) if self.sweeps.stored(i) == sweep]
        at = [self.index_of(self.outputs[i]) for i in mine]
        values = [self.value(self.outputs[i], index, None) for i, index in zip(mine, at)]
        for i, index, value in zip(mine, at, values):
            self.store(value, self.outputs[i].type.dtype, self.kernel.outs[i], index)

    def keep(self, v: Value, value: Value) -> None:
        """Put a value where later sweeps find it."""
        if v in self.scratch:
            loop.Keep(value, self.scratch[v])
        else:
            self.store(value, v.type.dtype, self.buffers[v], self.index_at(self.sweeps.space.points))

    def value(self, v: Value, at: Index, mask: Value | None) -> Value:
        if (v, at, None) in self.memo:
            return self.memo[v, at, None]                       # what is known everywhere is known under a mask
        if not self.sweeps.is_read_back(v, self.sweep):
            return super().value(v, at, mask)
        if v not in self.scratch:
            return self.load(v, at, mask)
        if at != self.index_at(self.sweeps.space.points):
            return super().value(v, at, mask)
        self.memo[v, at, None] = loop.Recall(self.scratch[v]).result
        return self.memo[v, at, None]


def reduction_of(op: Op) -> str:
    """The reduction that a cumulative operation gives the steps of."""
    return f"tensor.reduce_{op.kind}" if isinstance(op, tn.Cumulative) else op.name


def order_of(reduces: Sequence[Reduce]) -> str:
    """The order in which a kernel goes through its rows: that of its sums; what is exact takes any."""
    orders = {op.attrs.get("order") or "chain" for op in reduces if not is_exact(op)}
    if not orders:
        orders = {reduction_order(op) for op in reduces}
    return min(orders, key=lanes)


def kind_of(op: Op) -> str:
    """The reduction as operations on tiles name it."""
    dtype: ScalarType = op.operands[0].type.dtype
    name = reduction_of(op).removeprefix("tensor.reduce_")
    kind = {"sum": "add", "prod": "mul", "any": "or", "all": "and"}.get(name, name)
    unsigned = isinstance(dtype, IntType) and (dtype.unsigned or dtype == i1)
    return kind + "u" if kind in ("max", "min") and unsigned else kind
