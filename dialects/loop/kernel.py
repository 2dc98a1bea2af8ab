"""Kernels, and the loops inside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mlc.dialects.combining import KINDS, CombiningKind
from mlc.dialects.loop.schedule import MAX_TILE, Schedule
from mlc.dialects.loop.types import ScratchType, TileType
from mlc.dialects.tensor.orders import LEVELS
from mlc.ir import logs, sizes
from mlc.ir.affine import AffineExpr, AffineMap, Numbers, fold
from mlc.ir.affine_syntax import is_positional
from mlc.ir.core import Op, Region, Value
from mlc.ir.diag import IRError
from mlc.ir.sizes import AffineDim, Dim
from mlc.ir.types import Type, index

if TYPE_CHECKING:
    from mlc.ir.interp import Frame

Array = np.ndarray[Any, Any]

MAX_UNROLL = 64
"""Most blocks that a loop takes at a time."""


@dataclass
class Activation:
    """State of the interpretation of a kernel: its sizes, and the coordinates of the current block of each dimension.

    Parallel dimensions are interpreted at once, as their points are independent; loops proceed block by block.

    shared    the block size of each leading dimension whose blocks are distributed among threads
    accesses  accesses of those blocks: the operation, whether it wrote, the addresses, and the block of each
    """

    sizes: Mapping[str, int]
    extents: tuple[int, ...]
    shared: tuple[int, ...] = ()
    coordinates: dict[int, Array] = field(default_factory=dict)
    accesses: list[tuple[Op, bool, Array, Array]] = field(default_factory=list)

    def access(self, op: Op, write: bool, buffer: Array, position: Sequence[Array], dims: Sequence[int],
               where: tuple[Array, ...]) -> None:
        """Record which elements the points `where` of `dims` accessed, if blocks are distributed among threads."""
        if not self.shared:
            return
        start: int = buffer.__array_interface__["data"][0]
        block: Any = 0
        addresses = np.full(len(where[0]), start, np.int64)
        for at, stride in zip(position, buffer.strides):
            addresses += at * stride
        for d, size in enumerate(self.shared):
            count = -(-self.extents[d] // size)
            if d not in dims and count > 1:              # every block does it: record two
                for one in (-1, -2):
                    self.accesses.append((op, write, addresses, np.full(len(where[0]), one)))
                return
            block = block * count + (self.coordinates[d] // size if d in dims else 0)
        shape = self.shape(dims)
        self.accesses.append((op, write, addresses, np.broadcast_to(block, shape)[where]))

    def check_races(self) -> None:
        """Raise IRError if a block wrote an element that another block read or wrote."""
        if not any(write for _, write, _, _ in self.accesses):
            return
        ops = np.concatenate([np.full(len(a), i) for i, (_, _, a, _) in enumerate(self.accesses)])
        addresses, blocks = (np.concatenate([row[i] for row in self.accesses]) for i in (2, 3))
        writes = np.concatenate([np.full(len(a), write) for _, write, a, _ in self.accesses])
        order = np.lexsort((~writes, addresses))           # writes come first for each address
        addresses, blocks, writes, ops = addresses[order], blocks[order], writes[order], ops[order]
        first = np.searchsorted(addresses, addresses)
        bad = np.flatnonzero(writes[first] & (blocks != blocks[first]))
        if bad.size:
            one, other = (self.accesses[ops[i]] for i in (first[bad[0]], bad[0]))
            verb = "writes" if other[1] else "reads"
            raise IRError(f"threads share the leading {len(self.shared)} dimensions, but a block {verb} an element "
                          "that another one writes", code="MLC0154", loc=other[0].loc,
                          notes=(f"written by {one[0].name} at {one[0].loc}",))

    def axis(self, d: int, values: Array) -> None:
        shape = [1] * len(self.extents)
        shape[d] = -1
        self.coordinates[d] = values.reshape(shape)

    def shape(self, dims: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.coordinates[d].size if d in dims else 1 for d in range(len(self.extents)))

    def inside(self, dims: Sequence[int]) -> np.ndarray[Any, Any]:
        """Mask of the points of the block that are in the domain."""
        out = np.ones(self.shape(dims), bool)
        for d in dims:
            out &= self.coordinates[d] < self.extents[d]
        return out

    def evaluate(self, expr: AffineExpr, tiles: Sequence[Any]) -> Any:
        """Evaluate an expression over coordinates, sizes and index tiles, for every point."""
        return fold(expr, Numbers(lambda leaf: self.sizes[leaf] if isinstance(leaf, str) else
                                  (self.coordinates if isinstance(leaf, AffineDim) else tiles)[leaf.position]))


def iterator_types(rank: int, parallel: int) -> tuple[str, ...]:
    """The iterator types of a domain whose leading `parallel` dimensions are parallel."""
    return ("parallel",) * parallel + ("reduction",) * (rank - parallel)


class Kernel(Op, name="loop.kernel", pure=False):
    """Run the body for every point of the parallel domain.

    domain          the extent of each dimension, over `symbols`, whose values are the operands
    iterator_types  "parallel" or "reduction" for each dimension; the parallel ones come first. The others, for
                    reductions, scans and updates in order, are iterated by a `loop.for` inside
    schedule        tiling, vectorization and distribution of the domain among threads
    label           a readable name
    """

    sizes: tuple[Value, ...]
    body: Region
    symbols: tuple[str, ...]
    domain: tuple[Dim, ...]
    iterator_types: tuple[str, ...]
    schedule: Schedule
    label: str = ""

    @property
    def parallel(self) -> int:
        """Number of leading parallel dimensions."""
        return self.iterator_types.count("parallel")

    @property
    def shared_dim(self) -> int:
        """The dimension whose blocks groups of threads share, or -1."""
        return self.schedule.shared_dim(len(self.domain), self.parallel)

    @property
    def dim_of_threads(self) -> int:
        """The reduction dimension whose lanes are threads of a GPU, or -1."""
        return self.schedule.dim_of_threads(self.parallel)

    @property
    def scores_dim(self) -> int:
        """The reduction dimension along which a product on tensor cores has columns, whose sums are factors of another
        product, or -1."""
        found = {d for op in self.walk() if op.name == "loop.mma" for d in op.result.type.dims if d >= self.parallel}
        return min(found, default=-1)

    def lies_in_lanes(self, dim: int, vector: int) -> bool:
        """Whether all accesses for which it matters what points along a dimension are in the domain are vectors along
        another one, which have masks."""
        bounded = [op.bounded_dims() for op in self.inside(InKernel)]
        return all(dim not in dims or vector in dims for dims in bounded)

    def reschedule(self, **fields: Any) -> None:
        """Replace fields of the schedule."""
        self.schedule = replace(self.schedule, **fields)

    def log_schedule(self) -> None:
        """Write the log of schedules, if it is asked for."""
        if not logs.wants("schedule"):
            return
        schedule = {name: value for name, value in self.schedule.printed().items() if name != "steps"}
        domain = " x ".join(f"{d}{'' if kind == 'parallel' else ' (reduction)'}"
                            for d, kind in zip(self.domain, self.iterator_types))
        chosen = ", ".join(f"{name} {value}" for name, value in schedule.items())
        logs.write("schedule", f"{self.label or 'copy'} ({self.loc}) over {domain or 'one point'}: {chosen}",
                   kernel=self.label, line=str(self.loc), domain=[str(d) for d in self.domain],
                   schedule={name: str(value) for name, value in schedule.items()})

    def infer(self) -> tuple[Type, ...]:
        """Check what operations inside rely on, which are verified earlier: that each dimension has a tile size."""
        if len(self.schedule.tile) != len(self.domain):
            problem = next(self.schedule.problems(len(self.domain), self.parallel, self.symbols))
            self.fail(f"schedule: {problem}", code="MLC0150")
        return ()

    def verify_op(self) -> None:
        if self.iterator_types != iterator_types(len(self.domain), self.parallel):
            self.fail(f"iterator_types = {list(self.iterator_types)} does not fit the domain: one of parallel and "
                      f"reduction for each of {len(self.domain)} dimensions, the parallel ones first", code="MLC0150")
        for problem in self.schedule.problems(len(self.domain), self.parallel, self.symbols):
            self.fail(f"schedule: {problem}", code="MLC0150")
        for d in self.schedule.masked:
            if not self.lies_in_lanes(d, self.schedule.vector) or any(op.vector for op in self.inside(For)):
                self.fail(f"schedule: masked = {list(self.schedule.masked)}, but there are accesses along d{d} that "
                          f"are no vectors along d{self.schedule.vector}", code="MLC0150")
        if len(self.symbols) != len(self.operands) or any(v.type != index for v in self.operands):
            self.fail("one index operand per symbol", code="MLC0150")
        if taken := [s for s in self.symbols if is_positional(s) or self.symbols.count(s) > 1]:
            self.fail(f"{taken[0]} names a coordinate, an index tile or another size", code="MLC0150")
        if unknown := {n for d in self.domain for n in sizes.symbols(d)} - {*self.symbols}:
            self.fail(f"the domain names {', '.join(unknown)}, which is not a symbol of the kernel", code="MLC0150")
        self.verify_body(self.body)

    def verify_body(self, body: Region) -> None:
        """Check that all operations of the kernel and its loops work on tiles; only loop.map works on elements."""
        for op in body.block:
            if not isinstance(op, InKernel | End | Yield):
                op.fail("is not an operation on tiles, as operations of a kernel must be", code="MLC0150")
            if isinstance(op, For):
                self.verify_body(op.body)

    def interpret(self, frame: Frame) -> list[Any]:
        env = dict(zip(self.symbols, frame.all(self.operands)))
        extents = tuple(sizes.evaluate(d, env) for d in self.domain)
        activation = Activation(env, extents, self.schedule.tile[: self.schedule.thread_dims])
        for d, extent in enumerate(extents):
            activation.axis(d, np.arange(extent if d < self.parallel else self.schedule.tile[d]))
        frame.state[self] = activation
        frame.run(self.body)
        activation.check_races()
        return []


class InKernel(Op):
    """An operation inside a kernel.

    pointwise  whether each element of the result depends on buffers, coordinates and the same element of the operands
               alone, so that any thread can compute it
    """

    pointwise: ClassVar[bool] = False

    def maps(self) -> tuple[AffineMap, ...]:
        """Affine maps of the operation, over coordinates, sizes of the kernel and index tiles."""
        return ()

    def bounded_dims(self) -> tuple[int, ...]:
        """The dimensions of the points of which only those in the domain may be accessed."""
        return ()

    def used_dims(self) -> set[int]:
        """The dimensions whose current block the operation depends on."""
        return {d for m in self.maps() for d in m.used_dims}

    def whole_points(self, d: int) -> int:
        """The points along a dimension of scratch memory of which the operation accesses whole blocks."""
        return 1

    def located_dims(self) -> set[int]:
        """The dimensions that have a coordinate here: the parallel ones and those of enclosing loops."""
        dims, op = set[int](), self.parent_op
        while isinstance(op, InKernel):
            dims |= {op.dim} if isinstance(op, For) else set()
            op = op.parent_op
        return dims | {*range(op.parallel)} if isinstance(op, Kernel) else dims

    def verify_op(self) -> None:
        kernel = self.parent_op
        while kernel is not None and not isinstance(kernel, Kernel):
            kernel = kernel.parent_op
        if kernel is None:
            self.fail("is outside of a kernel", code="MLC0150")
            return
        rank = len(kernel.domain)
        for map in self.maps():
            if map.dims != rank:
                self.fail(f"{map} takes {map.dims} dimensions, the domain of the kernel has {rank}", code="MLC0155")
            if unknown := [s for s in map.symbols if s not in kernel.symbols]:
                self.fail(f"{unknown[0]} is not a symbol of the kernel", code="MLC0155")
        dims = [d for r in self.results if isinstance(r.type, TileType | ScratchType) for d in r.type.dims]
        if not all(0 <= d < rank for d in (*dims, self.attrs.get("dim", 0))):
            self.fail(f"names a dimension that a domain of {rank} does not have", code="MLC0151")
        if outside := self.used_dims() - self.located_dims():
            self.fail(f"d{min(outside)} has no coordinate outside of a loop.for", code="MLC0151")

    def activation(self, frame: Frame) -> Activation:
        state: Activation = frame.state[self.enclosing(Kernel)]
        return state


class End(Op, name="loop.end", terminator=True, pure=False):
    """The terminator of a kernel's body."""


class Yield(Op, name="loop.yield", terminator=True, pure=False):
    """Yield values to the enclosing loop.for, loop.map or loop.pack."""

    values: tuple[Value, ...]


class For(InKernel, name="loop.for", pure=False):
    """Iterate over the blocks of dimension `dim` in ascending order, with tiles as loop-carried values.

    A loop over a parallel dimension, or inside another over the same one, iterates over the enclosing block: point by
    point, or in smaller blocks of `size`. With `vector`, vectors lie along its dimension instead of the kernel's, of so
    many `lanes` if these are given.

    With `run`, full blocks are grouped into runs of that many, each of which starts from the initial tiles. The results
    of runs are combined, each tile by its kind, in runs of runs, and so on; the 4th level is a single run. A partial
    last block continues from that result.

    With `stages`, the packs of that many blocks, including the current one, may be in flight at a time.

    With `unroll`, that many blocks are taken at a time. A thread of a GPU loads all of them before it stores any: the
    blocks must not store what others load. A CPU takes them in order, from a multiple of `unroll` on, so that quotients
    of the coordinate by it are known numbers.

    With `until`, blocks that begin at that number or beyond it for every point of a tile, or of a CTA's tiles, need not
    be taken: they do not change what is carried.
    """

    inits: tuple[Value, ...]
    body: Region
    dim: int
    size: int = 0
    vector: bool = False
    run: int = 0
    kinds: tuple[str, ...] = ()

    stages: int = 0
    unroll: int = 0
    lanes: int = 0
    until: AffineMap | None = None

    def infer(self) -> tuple[Type, ...]:
        types = tuple(v.type for v in self.operands)
        if tuple(a.type for a in self.body.block.args) != types or tuple(
                v.type for v in self.body.block.terminator.operands) != types:
            self.fail("initial values, arguments of the body and yielded values differ in type", code="MLC0152")
        return types

    def outer(self) -> For | Kernel | None:
        """The loop or kernel whose blocks this loop iterates over; None if it iterates over the whole dimension."""
        op = self.parent_op
        while isinstance(op, For):
            if op.dim == self.dim:
                return op
            op = op.parent_op
        return op if isinstance(op, Kernel) and self.dim < op.parallel else None

    @property
    def is_ranged(self) -> bool:
        """Whether nested loops iterate over its blocks."""
        return any(op is not self and op.dim == self.dim for op in self.inside(For))

    @property
    def step(self) -> int:
        """Number of points of a block."""
        if self.size:
            return self.size
        return 1 if self.outer() is not None else self.enclosing(Kernel).schedule.tile[self.dim]

    def verify_op(self) -> None:
        super().verify_op()
        kernel, outer = self.enclosing(Kernel), self.outer()
        if len(kernel.schedule.tile) != len(kernel.domain) or any(t < 1 for t in kernel.schedule.tile):
            return                                       # the kernel reports it
        around = outer.step if isinstance(outer, For) else kernel.schedule.tile[self.dim] if outer is not None else 0
        packs = self.is_ranged or any(op.name == "loop.pack" for op in self.body.block)
        if self.stages < 0 or (self.stages and (self.run or not packs)):
            self.fail(f"{self.stages} stages need panels, or blocks that nested loops iterate over", code="MLC0152")
        if not 0 <= self.size <= MAX_TILE or around % self.step:
            self.fail(f"blocks of {self.size} do not divide the enclosing block of {around}, or have more than "
                      f"{MAX_TILE} points", code="MLC0152")
        if self.lanes < 0 or (self.lanes and (not self.vector or self.step % self.lanes)):
            self.fail(f"lanes = {self.lanes}, but blocks of {self.step} are no such vectors", code="MLC0152")
        if (self.size or outer is not None) and any(self.dim in v.type.dims for v in self.operands):
            self.fail(f"carries tiles along d{self.dim}: their size is the kernel's, not {self.step}", code="MLC0152")
        if self.dim < kernel.parallel and self.operands:
            self.fail(f"carries tiles along d{self.dim}, which is a parallel dimension", code="MLC0152")
        if not 0 <= self.unroll <= MAX_UNROLL or (
                self.unroll and any(op is not self and not isinstance(kernel.domain[op.dim], int)
                                    for op in self.inside(For))):
            self.fail(f"unroll = {self.unroll}: up to {MAX_UNROLL} blocks of a loop are unrolled, without loops inside "
                      "but those of a known number of points", code="MLC0152")
        if self.dim == kernel.dim_of_threads and self.step != kernel.schedule.tile[self.dim]:
            self.fail(f"blocks of {self.step} of d{self.dim}, along which threads share blocks of "
                      f"{kernel.schedule.tile[self.dim]}, a lane each: without `size`, a loop takes such blocks",
                      code="MLC0152")
        if kernel.schedule.groups_per_tile > 1:
            self.verify_groups(kernel.schedule)
        vector = kernel.schedule.vector
        if self.vector and (self.operands or any(
                vector in v.type.dims for op in self.inside(InKernel) for v in (*op.operands, *op.results)
                if vector != self.dim and isinstance(v.type, TileType | ScratchType))):
            self.fail(f"vectors along d{self.dim} cannot be mixed with those of the kernel", code="MLC0152")
        if (self.run or self.kinds) and (self.run < 2 or outer is not None or self.is_ranged or not (
                len(self.kinds) == len(self.operands) and {*self.kinds} <= {*KINDS})):
            self.fail(f"runs of {self.run} blocks take a kind per tile, all of d{self.dim} and no loop inside over it",
                      code="MLC0152")

    def verify_groups(self, schedule: Schedule) -> None:
        """Check that groups of threads may share the loop: each takes whole runs, all within a run of runs."""
        groups, run = schedule.groups_per_tile, schedule.blocks_per_group
        kernel = self.enclosing(Kernel)
        dim, extent = kernel.shared_dim, kernel.domain[self.dim]
        if self.dim != dim or self.parent_op is not kernel or self.is_ranged or (
                self.step > 1 and dim != schedule.vector):
            self.fail(f"{groups} groups of threads share the blocks of d{dim}, in loops that are in no other",
                      code="MLC0152")
        few = isinstance(extent, int) and extent // self.step <= run * run
        if self.operands and (self.run != run or not (few or run % groups == 0)):
            self.fail(f"{groups} groups of threads each take {run} blocks at a time, but a run has {self.run}",
                      code="MLC0152")

    def check_unchanged(self, state: Activation, start: int, before: Sequence[Any], after: Sequence[Any]) -> None:
        """Check that a block has changed nothing at the points for which it need not be taken; but for NaNs, which
        infinite numbers give there, times 0."""
        assert self.until is not None
        beyond = np.asarray(start >= state.evaluate(self.until.result, ()))
        for a, b in zip(before, after):
            a, b, where = np.broadcast_arrays(a, b, beyond)
            if not ((a == b) | np.isnan(b))[where].all():
                self.fail(f"the block from {start} on is beyond `until`, but changes what is carried", code="MLC0152")

    def maps(self) -> tuple[AffineMap, ...]:
        return () if self.until is None else (self.until,)

    def interpret(self, frame: Frame) -> list[Any]:
        state, step = self.activation(frame), self.step
        carried = frame.all(self.operands)
        shapes = [state.shape(v.type.dims) for v in self.operands]
        inits = [np.broadcast_to(c, s) for c, s in zip(carried, shapes)]
        around = state.coordinates[self.dim]
        first, stop = 0, state.extents[self.dim]
        if self.outer() is not None:
            first = int(around.flat[0]) if around.size else 0
            stop = min(stop, first + around.size)
        starts = range(first, stop, step)

        def chain(starts: range, carried: list[Any]) -> list[Any]:
            for start in starts:
                state.axis(self.dim, np.arange(start, start + step))
                before, carried = carried, frame.run(self.body, carried)
                if self.until is not None:
                    self.check_unchanged(state, start, before, carried)
            return carried

        def runs(starts: range, level: int) -> list[Any]:
            if level == 0:
                return chain(starts, inits)
            carried, size = inits, self.run ** level
            for i in range(0, len(starts), size):
                inner = runs(starts[i: i + size], level - 1)
                carried = [CombiningKind(kind).combine(a, b) for kind, a, b in zip(self.kinds, carried, inner)]
            return carried

        whole = (stop - first) // step if self.run else 0
        out = chain(starts[whole:], runs(starts[:whole], LEVELS - 1) if self.run else inits)
        state.coordinates[self.dim] = around
        return out
