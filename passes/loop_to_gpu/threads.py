"""The lowering of a kernel to the code of one thread."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, ClassVar

from mlc.dialects import arith, gpu, loop, scf
from mlc.dialects.builtin import Module
from mlc.dialects.index_arithmetic import SizeBuilder
from mlc.dialects.loop import Kernel
from mlc.ir import sizes
from mlc.ir.core import Op, Value, at_end
from mlc.ir.diag import BackendError
from mlc.ir.machine import WARP, Gpu
from mlc.ir.sizes import Dim
from mlc.ir.types import i1
from mlc.passes.lower_kernel import checks, compute  # noqa: F401  (they register the rules that hold here too)
from mlc.passes.lower_kernel.memory import flatten_buffers
from mlc.passes.lower_kernel.nest import RULES, LoopScope, Lowering, Point

Rule = Callable[["Threads", Any], None]
THREAD_RULES: dict[type[Op], Rule] = {}
"""Lowering rules of operations on tiles for threads, where they differ from those for a CPU."""


class ThreadScope(LoopScope):
    """Emission state of a thread, with the bounds checks of partial tiles."""

    def __init__(self, numbers: SizeBuilder, outer: ThreadScope | None = None) -> None:
        super().__init__(numbers, outer)
        self.ends: dict[int, Dim] = dict(outer.ends) if outer else {}        # bounds, if a block may exceed them
        self.within: dict[tuple[int, int], Value] = dict(outer.within) if outer else {}
        self.clamped: dict[tuple[int, int, Dim], Dim] = dict(outer.clamped) if outer else {}
        self.groups: dict[int, tuple[int, int]] = dict(outer.groups) if outer else {}    # (size, distance) of the
        #                                                                   groups of a thread's points along it
        self.slots: dict[Value, Dim] = dict(outer.slots) if outer else {}    # start of a multi-buffered scratch's stage
        self.piece: tuple[int, int, int] = outer.piece if outer else (-1, 0, 0)      # dimension and the part of it
        #                                                                   that is lowered at present
        self.packing: bool = outer is not None and outer.packing
        self.multiples: dict[int, int] = dict(outer.multiples) if outer else {}      # known divisor of an origin
        self.spare: dict[int, Dim] = dict(outer.spare) if outer else {}      # coordinate to load in place of one beyond
        #                                                                    its end
        self.block_number: int = outer.block_number if outer else 0          # of a loop without a counter
        self.by_first_group: bool = outer is not None and outer.by_first_group
        self.first_score: Dim = outer.first_score if outer else 0            # the first column of a block of scores

    def inner(self) -> ThreadScope:
        return ThreadScope(self.numbers.inner(), self)


class Threads(Lowering):
    """The lowering of one kernel to threads: tiles are scalars; a thread uses vectors for memory accesses only."""

    rules: ClassVar[Mapping[type[Op], Callable[[Any, Any], None]]] = ChainMap[Any, Any](THREAD_RULES, RULES)
    scope: ThreadScope

    def __init__(self, function: gpu.Func, kernel: Kernel, machine: Gpu) -> None:
        super().__init__(function.enclosing(Module), kernel)
        self.function, self.machine = function, machine
        self.scope = ThreadScope(self.scope.numbers)
        self.scope.vector, self.scope.lanes = -1, 1
        schedule, parallel = kernel.schedule, kernel.parallel
        if not schedule.tiles_per_cta:
            kernel.fail("a thread takes a tile on a GPU, but tiles_per_cta = 0, as for a CPU", code="MLC0171")
        inner = schedule.vector >= parallel
        own = schedule.adjacent_lanes if inner else 1
        self.across = kernel.dim_of_threads                                # the dimension whose lanes are threads
        divided = self.across >= 0
        self.along = schedule.vector if inner and not divided else -1      # the one whose lanes are registers
        self.own = own if divided else 1                                   # adjacent lanes of a thread across threads
        self.scores = kernel.scores_dim if schedule.threads_per_warp else -1     # the columns of a factor in registers
        self.counts = [sizes.divide(n + t - 1, t) for n, t in zip(kernel.domain, schedule.tile)][: parallel]
        self.total = sizes.product(self.counts)
        self.threads_per_cta = schedule.threads_per_cta or (1,) * parallel
        self.corner: dict[int, Dim] = {}                 # first coordinate of the CTA tile
        self.part_of_warp: dict[int, Dim] = {}           # offset of the warp's points in it
        self.thread: Dim = 0
        if inner and (not divided or own > 1):
            self.scope.block[schedule.vector] = own
        self.lane: Dim = 0                               # the number of the thread among those of a block of points
        self.group: Dim = 0
        self.part_of_rows: Dim = 0                       # the part of the rows of a scatter that the CTA has
        self.member: Dim = 0                             # the number of the thread in its group
        self.exists: Value | None = None                 # whether there are such points; None if there always are
        self.rows: dict[tuple[Value, int], dict[Point, Value]] = {}      # rows in registers, by number of the block
        self.taken = 0                                   # bytes of shared memory of a block

    @property
    def bytes_together(self) -> int:
        """The maximum bytes of one access."""
        return self.machine.vector_bits // 8

    def take(self, size: int, op: Op, most: int = 0) -> None:
        """Count bytes of shared memory that an operation needs; BackendError if a block has not as many."""
        self.taken, most = self.taken + size, most or self.machine.most_shared
        if self.taken > most:
            raise BackendError(f"{op.name}: a block takes {self.taken} bytes of shared memory with this, more than "
                               f"{most}", code="MLC0543", loc=op.loc)

    @property
    def lanes_across(self) -> int:
        """The number of threads that work on one block of points."""
        return self.kernel.schedule.tile[self.across] // self.own if self.across >= 0 else 1

    @property
    def size(self) -> int:
        """The number of threads of a block."""
        return self.group_size * self.kernel.schedule.groups_per_tile

    @property
    def group_size(self) -> int:
        """The number of threads of a group, of which a block has one unless they share its tiles."""
        return self.kernel.schedule.tiles_per_cta * self.lanes_across

    def points_along(self, d: int) -> int:
        """The number of points along `d` that a block of threads works on at a time."""
        if d < self.kernel.parallel:
            return self.threads_per_cta[d] * self.kernel.schedule.tile[d]
        return self.scope.block[d]

    def warp_points(self, d: int) -> int:
        """The number of points along `d` of a warp."""
        return self.kernel.schedule.threads_per_warp[d] * self.kernel.schedule.tile[d]

    @property
    def grid(self) -> Dim:
        """The number of blocks."""
        if self.kernel.schedule.threads_per_cta:
            return sizes.product(self.ctas)
        tiles = self.kernel.schedule.tiles_per_cta
        return sizes.divide(self.total + tiles - 1, tiles) * self.kernel.schedule.row_parts

    @property
    def ctas(self) -> list[Dim]:
        """The number of CTA tiles along each parallel dimension."""
        return [sizes.divide(n + p - 1, p) for n, p in zip(self.counts, self.threads_per_cta)]

    def run(self) -> None:
        kernel = self.kernel
        self.function.attrs["known_block_size"] = (self.size, 1, 1)
        if kernel.schedule.ctas_at_once:
            self.function.attrs["nvvm.minctasm"] = kernel.schedule.ctas_at_once
        if self.total == 0:
            return
        flatten_buffers(self)
        thread, block = (self.named(word, place(dimension="x").result) for word, place in (
            ("thread", gpu.ThreadId), ("block", gpu.BlockId)))
        self.thread = self.member = thread
        if (parts := kernel.schedule.row_parts) > 1:
            self.part_of_rows, block = (self.named(word, self.number(at(block, parts)))
                                        for word, at in (("part", sizes.modulo), ("block", sizes.divide)))
        if kernel.schedule.groups_per_tile > 1:
            self.member, self.group = (self.named(word, self.number(at(thread, self.group_size)))
                                       for word, at in (("member", sizes.modulo), ("group", sizes.divide)))
            if self.across < 0 and sizes.modulo(self.total, kernel.schedule.tiles_per_cta) != 0:
                kernel.fail("groups of threads share whole CTAs", code="MLC0171")
        if self.across >= 0:
            self.unit(self.row(block))
            return
        if kernel.schedule.threads_per_cta:
            self.cta_tile(block)
            return
        unit = block * kernel.schedule.tiles_per_cta + self.member
        if sizes.modulo(self.total, kernel.schedule.tiles_per_cta) == 0:
            self.unit(unit)
            return
        if parts > 1:                                        # its threads work together, so none may be missing
            self.exists = arith.CmpI("slt", self.number(unit), self.number(self.total)).result
            self.unit(self.least(unit, self.total - 1))
            return
        there = arith.CmpI("slt", self.number(unit), self.number(self.total)).result
        branch = scf.branch(there, otherwise=False)
        with at_end(branch.then_body.block), self.scoped():
            self.unit(unit)
            scf.Yield(())

    def row(self, block: Dim) -> Dim:
        """The number of the tile that a thread works on together with others, which are lanes of one warp if a CTA has
        several tiles. Threads without one compute the last one too, as all take part in shuffles, but do not store it.
        """
        rows, lanes = self.kernel.schedule.tiles_per_cta, self.lanes_across
        self.lane = self.member
        if rows == 1:
            return block
        if lanes > WARP or self.kernel.schedule.groups_per_tile > 1:
            self.kernel.fail("a CTA takes several rows only if the lanes of each are in one warp", code="MLC0171")
        self.lane = self.named("lane", self.number(sizes.modulo(self.member, lanes)))
        row = block * rows + self.named("row", self.number(sizes.divide(self.member, lanes)))
        if sizes.modulo(self.total, rows) == 0:
            return row
        self.exists = arith.CmpI("slt", self.number(row), self.number(self.total)).result
        return self.least(row, self.total - 1)

    def unit(self, number: Dim) -> None:
        """Lower the kernel for the block of points with this number, in row-major order."""
        kernel = self.kernel
        for d in reversed(range(kernel.parallel)):
            at = sizes.modulo(number, self.counts[d]) if d else number
            number = sizes.divide(number, self.counts[d])
            self.enter(d, self.named("block", self.number(at)) * kernel.schedule.tile[d], kernel.schedule.tile[d])
            if sizes.modulo(kernel.domain[d], kernel.schedule.tile[d]) != 0:
                self.scope.ends[d] = kernel.domain[d]
        self.body()

    @contextmanager
    def where_existing(self) -> Iterator[None]:
        """A branch for threads with a tile. It contains no barrier."""
        if (exists := self.exists) is None:
            yield
            return
        branch = scf.branch(exists, otherwise=False)
        with at_end(branch.then_body.block), self.scoped():
            self.exists = None
            yield
            self.exists = exists
            scf.Yield(())

    def cta_tile(self, block: Dim) -> None:
        """Lower the kernel for a thread's points of a CTA tile, in groups of `lanes` along the vector dimension.

        The groups of the threads, or of those of a warp if `threads_per_warp` is set, are interleaved, so that adjacent
        threads access adjacent elements. A thread whose points are all out of bounds does not return early, since it
        has to reach the barriers.
        """
        kernel, thread = self.kernel, self.thread
        schedule = kernel.schedule
        warps = schedule.threads_per_warp or self.threads_per_cta
        warp = sizes.divide(thread, prod(warps))
        lane = sizes.modulo(thread, prod(warps)) if schedule.threads_per_warp else thread
        if schedule.group_m:
            block = self.grouped(block)
        for d in reversed(range(kernel.parallel)):
            tile, threads = schedule.tile[d], self.threads_per_cta[d]
            points, many = tile * threads, threads // warps[d]
            group = self.lanes_of(tile) if d == schedule.vector else 1 if schedule.threads_per_warp else tile
            at, part, place = (sizes.modulo(x, n) if d else x for x, n in (
                (block, self.ctas[d]), (warp, many), (lane, warps[d])))
            block, warp, lane = (sizes.divide(x, n) for x, n in (
                (block, self.ctas[d]), (warp, many), (lane, warps[d])))
            self.corner[d] = self.named("box", self.number(at)) * points
            self.part_of_warp[d] = self.named("warp", self.number(part)) * (tile * warps[d]) if many > 1 else 0
            self.enter(d, self.corner[d] + self.part_of_warp[d] + self.named("place", self.number(place)) * group, tile)
            if group < tile:
                self.scope.groups[d] = group, group * warps[d]
            if sizes.modulo(kernel.domain[d], points) != 0:
                self.scope.ends[d] = kernel.domain[d]
        self.body()

    def grouped(self, block: Dim) -> Dim:
        """The number of a CTA tile in row-major order, where CTAs are numbered group by group."""
        *_, rows, columns = self.ctas
        matrix, size = sizes.divide(block, rows * columns), self.kernel.schedule.group_m
        block = self.named("block", self.number(sizes.modulo(block, rows * columns)))
        first = self.named("group", self.number(sizes.divide(block, columns * size))) * size
        here = self.least(rows - first, size)
        inside = self.named("inside", self.number(sizes.modulo(block, columns * size)))
        row = self.named("row", self.number(sizes.modulo(inside, here)))
        column = self.named("column", self.number(sizes.divide(inside, here)))
        return (matrix * rows + first + row) * columns + column

    def body(self) -> None:
        """Lower the operations of the kernel, for the points of the thread."""
        kernel, read = self.kernel, False
        operations, last = list(kernel.body.block), self.epilogue()
        for op in operations[: len(operations) - len(last)]:
            inside = list(op.walk())
            if read and self.size > kernel.schedule.tiles_per_cta and any(isinstance(o, loop.Store) for o in inside):
                gpu.Barrier()                        # the store may overwrite what others have yet to load
            self.lower(op)
            read = read or any(isinstance(o, loop.Load) for o in inside)
        self.piece_by_piece(last)

    def epilogue(self) -> list[Op]:
        """The operations after the sums of a CTA tile, if each computes points by themselves; else none."""
        operations = list(self.kernel.body.block)
        sums = [i for i, op in enumerate(operations) if isinstance(op, loop.For)]
        last = operations[sums[-1] + 1:] if sums else []
        alone = loop.Map, loop.Load, loop.Store, loop.Full, loop.Index, loop.InBounds, loop.End
        return last if self.kernel.schedule.epilogue_tile and all(type(op) in alone for op in last) else []

    def piece_by_piece(self, operations: Sequence[Op]) -> None:
        """Lower an epilogue for a few points at a time: what it computes of all sums would not fit into registers."""
        schedule = self.kernel.schedule
        d = schedule.vector
        rest = list[Op]()
        for op in operations:
            if op.results and d not in op.results[0].type.dims:
                self.lower(op)                               # once for all pieces
            else:
                rest.append(op)
        if not rest:
            return
        size = schedule.epilogue_tile
        for start in range(0, schedule.tile[d], size):
            with self.scoped():
                self.scope.piece = d, start, start + size
                for op in rest:
                    self.lower(op)

    def points(self, dims: Sequence[int]) -> list[Point]:
        found = super().points(dims)
        d, start, stop = self.scope.piece
        return [p for p in found if start <= p[d] < stop] if d in dims else found

    def is_first(self) -> Value:
        """Whether this is the thread of the first lane, of the first group."""
        several = self.kernel.schedule.groups_per_tile > 1
        return arith.CmpI("eq", self.number(self.thread if several else self.lane), self.number(0)).result

    def is_first_group(self) -> Value:
        """Whether this is a thread of the first group."""
        return arith.CmpI("eq", self.number(self.group), self.number(0)).result

    # -- places ---------------------------------------------------------------------------------------------------
    def is_in_lanes(self, d: int) -> bool:
        return d in (self.across, self.along)

    def carries(self, d: int) -> bool:
        return self.is_in_lanes(d)

    def carried_points(self, d: int) -> int:
        return 1

    def enter(self, d: int, origin: Dim | Value, size: int, lanes: int = 0) -> Dim:
        if d == self.across:
            if isinstance(origin, Value):
                origin = self.named("origin", origin)
            origin, size = origin + self.lane * self.own, self.own
        for about in (self.scope.ends, self.scope.groups, self.scope.multiples, self.scope.spare):
            about.pop(d, None)
        self.scope.within = {key: v for key, v in self.scope.within.items() if key[0] != d}
        self.scope.clamped = {key: v for key, v in self.scope.clamped.items() if key[0] != d}
        if d == self.across:
            self.scope.multiples[d] = self.own
        return super().enter(d, origin, size, lanes)

    def enter_part(self, d: int, start: Dim, rest: Dim, size: int, whole: bool) -> None:
        self.enter(d, start, size)
        self.scope.ends[d] = start + rest

    def place(self, d: int, offset: int) -> Dim:
        """The unclamped coordinate along `d` of a point of the block."""
        size, distance = self.scope.groups.get(d, (1, 1))
        return self.scope.origin[d] + offset // size * distance + offset % size

    def coordinate(self, d: int, offset: int) -> Dim:
        """The coordinate of a point, clamped to the last one of the domain.

        If lanes are threads, it is not clamped: another point of the same thread takes its place, or else loads are
        guarded instead.
        """
        at = self.place(d, offset)
        end = self.scope.ends.get(d)
        if end is not None and (spare := self.scope.spare.get(d)) is not None:
            if (d, offset, end) not in self.scope.clamped:
                there = arith.CmpI("slt", self.number(at), self.number(end)).result
                chosen = arith.Select(there, self.number(at), self.number(spare)).result
                self.scope.clamped[d, offset, end] = self.named("there", chosen)
            return self.scope.clamped[d, offset, end]
        if end is None or d == self.across:
            return at
        if isinstance(at, int) and isinstance(end, int):
            return min(at, end - 1)
        if (d, offset, end) not in self.scope.clamped:
            self.scope.clamped[d, offset, end] = self.least(at, end - 1)
        return self.scope.clamped[d, offset, end]

    def inside(self, d: int, point: Point) -> Value | None:
        """Whether a point is in the domain along `d`; None if it always is."""
        end = self.scope.ends.get(d)
        if end is None:
            return None
        at = self.place(d, point[d])
        if isinstance(at, int) and isinstance(end, int):
            return None if at < end else arith.constant(False, i1)
        if (d, point[d]) not in self.scope.within:
            self.scope.within[d, point[d]] = arith.CmpI("slt", self.number(at), self.number(end)).result
        return self.scope.within[d, point[d]]


def rule(target: type[Op]) -> Callable[[Rule], Rule]:
    """Register the lowering rule of a class of operations for threads."""
    def register(apply: Rule) -> Rule:
        THREAD_RULES[target] = apply
        return apply
    return register
