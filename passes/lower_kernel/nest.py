"""Emission of a kernel's loop nest, with the scalars and vectors that make up each tile."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import gcd
from typing import Any, ClassVar, TypeVar

from mlc.dialects import arith, loop, scf, vector
from mlc.dialects.builtin import Module
from mlc.dialects.combining import CombiningKind
from mlc.dialects.index_arithmetic import SizeBuilder
from mlc.dialects.loop import Kernel
from mlc.dialects.tensor.orders import LEVELS
from mlc.ir import sizes
from mlc.ir.core import Block, Op, Value, at_end, builder, located
from mlc.ir.sizes import Dim
from mlc.ir.types import FloatType, ScalarType, Type, VectorType, element, i1, index
from mlc.passes.lower_kernel.runs import Run

T = TypeVar("T")
Point = tuple[int, ...]
Body = Callable[[Sequence[Value]], list[Value]]
Rule = Callable[["Lowering", Any], None]
RULES: dict[type[Op], Rule] = {}
"""Lowering rules of the operations on tiles."""


def rule(target: type[Op]) -> Callable[[Rule], Rule]:
    """Register the lowering rule of a class of operations."""
    def register(apply: Rule) -> Rule:
        RULES[target] = apply
        return apply
    return register


class LoopScope:
    """Emission state in a loop nest: the current tile of each dimension, and the values that are available.

    Values of an outer scope are visible in an inner one, but not vice versa.
    """

    def __init__(self, numbers: SizeBuilder, outer: LoopScope | None = None) -> None:
        self.numbers = numbers
        self.vector: int = outer.vector if outer else -1
        self.lanes: int = outer.lanes if outer else 0
        self.block: dict[int, int] = dict(outer.block) if outer else {}      # points of the current block
        self.origin: dict[int, Dim] = dict(outer.origin) if outer else {}    # first coordinate of the block
        self.stop: dict[int, Dim] = dict(outer.stop) if outer else {}        # its end, if inner loops split it
        self.run: dict[int, Run] = dict(outer.run) if outer else {}          # that the current block is in
        self.counts: dict[int, Dim] = dict(outer.counts) if outer else {}    # valid lanes, by offset of a vector
        self.masks: dict[int, Value] = dict(outer.masks) if outer else {}    # their masks, unless all are valid
        self.valid: dict[int, Dim] = dict(outer.valid) if outer else {}      # valid points of a whole block, if masked
        self.row_masks: dict[tuple[Point, ...], Value] = dict(outer.row_masks) if outer else {}     # of `mask`
        self.tiles: dict[Value, dict[Point, Value]] = dict(outer.tiles) if outer else {}
        self.scratch_buffers: dict[Value, Any] = dict(outer.scratch_buffers) if outer else {}
        self.unread: dict[Value, Any] = {}               # by tile, the access of a load that its only user does

    def inner(self) -> LoopScope:
        return LoopScope(self.numbers.inner(), self)


class Lowering:
    """The lowering of one kernel to loops."""

    rules: ClassVar[Mapping[type[Op], Callable[[Any, Any], None]]] = RULES

    def __init__(self, module: Module, kernel: Kernel) -> None:
        self.module = module
        self.kernel = kernel
        self.flat_views: dict[Value, tuple[Value, list[Dim]]] = {}
        self.addresses: dict[tuple[Value, tuple[Dim, ...]], Dim] = {}       # linear positions by (buffer, indices)
        self.index_names: dict[Value, str] = {}
        self.made: dict[tuple[Block | None, Hashable], Any] = {}          # by `once`
        self.divided = {op.dim for op in kernel.inside(loop.For)}           # the dimensions with loops of their own
        self.around: list[loop.For] = []                 # the loops that are being lowered, outermost first
        self.words = {op.interleaved: op.terms_of_word for op in kernel.inside(loop.Scratch) if op.interleaved >= 0}
        self.names = itertools.count()
        self.stack = 0                                   # bytes of scratch buffers on the stack
        self.scope = LoopScope(SizeBuilder(dict(zip(kernel.symbols, kernel.sizes))))
        self.scope.vector = vector = kernel.schedule.vector
        self.scope.lanes = self.lanes_of(kernel.schedule.tile[vector]) if vector >= 0 else 0

    # -- loops ----------------------------------------------------------------------------------------------------
    @contextmanager
    def scoped(self) -> Iterator[LoopScope]:
        outer = self.scope
        self.scope = outer.inner()
        yield self.scope
        self.scope = outer

    def nest(self, d: int) -> None:
        """Emit the loops of the parallel dimensions from `d` on, with the body inside."""
        if d == self.kernel.parallel:
            for op in self.kernel.body.block:
                self.lower(op)
            return

        def body(carried: Sequence[Value]) -> list[Value]:
            self.nest(d + 1)
            return []

        size, masked = self.kernel.schedule.tile[d], d in self.kernel.schedule.masked and d not in self.divided
        if masked and not self.is_whole(d, size):
            self.masked_blocks(d, size, body)
        else:
            self.blocks(d, size, [], body, ranged=d in self.divided)

    def is_whole(self, d: int, size: int) -> bool:
        """Whether the blocks of a dimension are all whole, or there is one with vectors of its own."""
        extent = self.kernel.domain[d]
        return sizes.modulo(extent, size) == 0 or (isinstance(extent, int) and extent < size)

    def masked_blocks(self, d: int, size: int, body: Body) -> None:
        """Emit `body` for every block of a dimension, with masks of what is in the domain."""
        extent, first = self.kernel.domain[d], self.scope.origin.get(d, 0)
        stop = self.scope.stop.get(d, extent)
        op = scf.loop(self.number(first), self.number(stop), self.number(size), [], f"i{d}")
        with at_end(op.block), self.scoped() as scope:
            origin = self.named("origin", op.counter)
            if self.is_in_lanes(d):
                self.enter_part(d, origin, extent - origin, size, whole=True)
            else:
                self.enter(d, origin, size)
                scope.valid[d], scope.row_masks = extent - origin, {}
            scf.Yield(tuple(body([])))

    def blocks(self, d: int, size: int, carried: list[Value], body: Body, ranged: bool = False,
               whole: bool = False) -> list[Value]:
        """Emit `body` for every block of dimension `d` and for the remainder, with loop-carried values.

        If an enclosing loop is over `d` too, these are blocks of its current block. `ranged` blocks are split further
        by inner loops; `whole` ones keep their size and are masked, since values are carried along `d`.
        """
        first, stop, extent = self.scope.origin.get(d, 0), self.scope.stop.get(d), self.kernel.domain[d]
        end = extent if stop is None else stop
        if ranged:
            return self.ranges(d, size, first, end, carried, body)
        length = end - first
        if stop is None or isinstance(length, int):
            rest = sizes.modulo(length, size)
            carried = self.repeat(d, first, end - rest, size, carried, body)
            return self.leftover(d, end - rest, end, size, carried, body, whole)
        rest = sizes.modulo(extent, size)                # the enclosing block may extend beyond the domain
        if rest == 0:
            return self.repeat(d, first, end, size, carried, body)
        carried = self.repeat(d, first, self.least(end, extent - rest), size, carried, body)
        if not isinstance(rest, int) and d != self.scope.vector:
            return self.points_of_rest(d, extent - rest, end, size, carried, body)
        cut = arith.CmpI("sgt", self.number(end), self.number(extent - rest)).result
        return self.where(cut, carried, lambda: self.leftover(d, extent - rest, extent, size, carried, body, whole))

    def ranges(self, d: int, size: int, first: Dim, end: Dim, carried: list[Value], body: Body) -> list[Value]:
        """Blocks of which the last may be shorter; inner loops run to the end of each."""
        length, aligned = end - first, self.alignment(d, size) == size
        if isinstance(length, int) and length <= size:
            if length == 0:
                return carried
            with self.scoped() as scope:
                self.enter(d, first, length)
                scope.stop[d] = end
                if aligned:
                    scope.run[d] = Run(first, size, builder.block, scope.numbers)
                return body(carried)
        op = scf.loop(self.number(first), self.number(end), self.number(size), carried, f"i{d}")
        with at_end(op.block), self.scoped() as scope:
            origin = self.enter(d, op.counter, size)
            divides = isinstance(length, int) and length % size == 0
            scope.stop[d] = origin + size if divides else self.least(origin + size, end)
            if aligned:
                scope.run[d] = Run(origin, size, op.block, scope.numbers)
            scf.Yield(tuple(body(op.carried)))
        return list(op.results)

    def repeat(self, d: int, start: Dim, stop: Dim, size: int, carried: list[Value], body: Body) -> list[Value]:
        """A loop from `start` to `stop` in blocks of `size`; no loop if the trip count is known to be 0 or 1."""
        trip = stop - start
        if trip == 0:
            return carried
        if trip == size:
            with self.scoped():
                self.enter(d, start, size)
                return body(carried)
        op = scf.loop(self.number(start), self.number(stop), self.number(size), carried, f"i{d}")
        with at_end(op.block), self.scoped():
            self.enter(d, op.counter, size)
            scf.Yield(tuple(body(op.carried)))
        return list(op.results)

    def points_of_rest(self, d: int, start: Dim, end: Dim, size: int, carried: list[Value], body: Body) -> list[Value]:
        """Emit `body` for the points of a remainder of unknown length: one at a time, or, if a panel has several in a
        word, for whole words and then for what is left of the last one."""
        run = self.words.get(d, 1)
        if run < size:
            stop = end - sizes.modulo(end - start, run)
            carried, start = self.repeat(d, start, stop, run, carried, body), stop

        def part(left: int) -> Callable[[], list[Value]]:
            return lambda: self.repeat(d, start, start + left, left, carried, body)

        for left in range(1, run):
            is_left = arith.CmpI("eq", self.number(end - start), arith.constant(left, index)).result
            carried = self.where(is_left, carried, part(left))
        return carried

    def terms(self, d: int, size: int, carried: list[Value], body: Body) -> list[Value]:
        """Emit `body` for each term of a sum by itself: `size` of them at a time from a multiple of `size` on, where
        quotients by it are known numbers, and one at a time before and after these."""
        first, stop = self.scope.origin.get(d, 0), self.scope.stop.get(d)
        end = self.kernel.domain[d] if stop is None else stop
        start, last = sizes.divide(first + size - 1, size), sizes.divide(end, size)
        head = self.least(start * size, end)               # a short block may have no multiple in it
        carried = self.repeat(d, first, head, 1, carried, body)
        op = scf.loop(self.number(start), self.number(last), self.number(1), carried, f"i{d}")
        with at_end(op.block), self.scoped():
            origin, inside = self.named("block", op.counter) * size, list(op.carried)
            for i in range(size):
                with self.scoped():
                    self.enter(d, origin + i, 1)
                    inside = body(inside)
            scf.Yield(tuple(inside))
        return self.repeat(d, self.greatest(last * size, head), end, 1, list(op.results), body)

    def runs(self, d: int, size: int, run: int, kinds: Sequence[str], inits: list[Value], body: Body,
             own: bool) -> list[Value]:
        """Reduce blocks in nested runs: each run starts from `inits`, and is combined with the preceding ones."""
        end = self.kernel.domain[d]
        whole = end - sizes.modulo(end, size)

        def part(start: Dim, stop: Dim, level: int) -> list[Value]:
            if level == 0:
                return self.repeat(d, start, stop, size, inits, body)
            length = size * run ** level

            def combined(carried: Sequence[Value], start: Dim, stop: Dim) -> list[Value]:
                return [CombiningKind(kind).emit(a, b)
                        for kind, a, b in zip(kinds, carried, part(start, stop, level - 1))]

            if isinstance(stop, int) and isinstance(start, int) and stop - start <= length:
                return combined(inits, start, stop) if stop > start else inits
            op = scf.loop(self.number(start), self.number(stop), self.number(length), inits, f"i{d}")
            with at_end(op.block), self.scoped():
                here = self.named("origin", op.counter)
                scf.Yield(tuple(combined(op.carried, here, self.least(here + length, stop))))
            return list(op.results)

        return self.leftover(d, whole, end, size, part(0, whole, LEVELS - 1), body, whole=own)

    def leftover(self, d: int, start: Dim, end: Dim, size: int, carried: list[Value], body: Body,
                 whole: bool) -> list[Value]:
        """The remainder after the last whole block: one smaller block, or a `whole` one or vectors with masks."""
        rest = end - start
        if rest == 0:
            return carried
        if not self.is_in_lanes(d) and not whole:
            if isinstance(rest, int):
                return self.repeat(d, start, end, rest, carried, body)
            return self.points_of_rest(d, start, end, size, carried, body)

        def masked() -> list[Value]:
            with self.scoped() as scope:
                if self.is_in_lanes(d):
                    self.enter_part(d, start, rest, size, whole)
                else:
                    self.enter(d, start, size)
                    scope.valid[d], scope.row_masks = rest, {}
                return body(carried)

        if isinstance(rest, int):
            return masked()
        left = arith.CmpI("sgt", self.number(rest), arith.constant(0, index)).result
        return self.where(left, carried, masked)

    def enter_part(self, d: int, start: Dim, rest: Dim, size: int, whole: bool) -> None:
        """Start a partial block of the vector dimension at `start`, with `rest` valid points."""
        scope, lanes = self.scope, self.lanes_of(size)
        self.enter(d, start, size if whole or not isinstance(rest, int) else -(-rest // lanes) * lanes, lanes)
        for offset in range(0, scope.block[d], lanes):
            count = rest - offset
            if not isinstance(count, int) or count < lanes:
                scope.counts[offset] = count
                scope.masks[offset] = vector.CreateMask(
                    (self.number(max(count, 0) if isinstance(count, int) else count),), VectorType((lanes,), i1)).result

    def where(self, condition: Value, carried: list[Value], emit: Callable[[], list[Value]]) -> list[Value]:
        """The results of `emit` if a condition holds, else the carried values."""
        op = scf.branch(condition, [v.type for v in carried])
        with at_end(op.then_body.block), self.scoped():
            scf.Yield(tuple(emit()))
        with at_end(op.else_body.block):
            scf.Yield(tuple(carried))
        return list(op.results)

    def enter(self, d: int, origin: Dim | Value, size: int, lanes: int = 0) -> Dim:
        """Start a block of `size` points of dimension `d` at `origin`; returns the origin as a number."""
        scope = self.scope
        if isinstance(origin, Value):
            origin = self.named("origin", origin)
        scope.origin[d], scope.block[d] = origin, size
        scope.stop.pop(d, None)
        scope.valid.pop(d, None)
        if d == scope.vector:
            scope.lanes = lanes or self.lanes_of(size)
            scope.counts, scope.masks, scope.row_masks = {}, {}, {}
        return origin

    def named(self, word: str, value: Value) -> Dim:
        """Name a value for use in expressions; the name has a dot, so that it differs from every size symbol."""
        name = f"{word}.{next(self.names)}"
        self.scope.numbers.symbols[name] = value
        return sizes.sym(name)

    def number(self, size: Dim) -> Value:
        return self.scope.numbers.value(size)

    def least(self, a: Dim, b: Dim) -> Dim:
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self.named("stop", arith.MinSI(self.number(a), self.number(b)).result)

    def greatest(self, a: Dim, b: Dim) -> Dim:
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        return self.named("start", arith.MaxSI(self.number(a), self.number(b)).result)

    def lanes_of(self, size: int) -> int:
        """The number of lanes of the vectors in a block of `size`."""
        own = self.around[-1].lanes if self.around else 0
        lanes = own or self.kernel.schedule.lanes
        return lanes if lanes and size % lanes == 0 else size

    # -- tiles ----------------------------------------------------------------------------------------------------
    def points(self, dims: Sequence[int]) -> list[Point]:
        """The offsets of a tile's scalars or vectors in the current block, one number per dimension of the kernel."""
        scope = self.scope
        for d in dims:
            if d in scope.stop and scope.block[d] > 1:
                self.kernel.fail(f"a tile of d{d} is outside of the loop over its block",
                                 code="MLC0171")

        def offsets(d: int) -> range:
            if d not in dims:
                return range(1)
            if d != scope.vector:
                return range(scope.block.get(d, self.carried_points(d)))
            return range(0, scope.block.get(d, self.kernel.schedule.tile[d]), scope.lanes)

        return list(itertools.product(*map(offsets, range(len(self.kernel.domain)))))

    def part(self, tile: Value, point: Point) -> Value:
        """The scalar or vector of a tile at a point; dimensions that the tile does not span are ignored."""
        dims = tile.type.dims
        return self.scope.tiles[tile][tuple(p if d in dims else 0 for d, p in enumerate(point))]

    def define(self, tile: Value, make: Callable[[Point], Value]) -> None:
        self.scope.tiles[tile] = {p: make(p) for p in self.points(tile.type.dims)}

    def coordinate(self, d: int, offset: int) -> Dim:
        """The coordinate along `d` of a point of the current block."""
        return self.scope.origin[d] + offset

    def is_in_lanes(self, d: int) -> bool:
        """Whether the points of a block along `d` are vector lanes, so that tiles may be carried along `d`."""
        return d == self.scope.vector

    def carries(self, d: int) -> bool:
        """Whether tiles may be carried along `d`: in lanes, or as a vector along another dimension for each point."""
        return self.is_in_lanes(d) or self.kernel.lies_in_lanes(d, self.scope.vector)

    def carried_points(self, d: int) -> int:
        """The points along `d` of a tile that is carried along it, before and after the loop."""
        return self.kernel.schedule.tile[d]

    def in_lanes(self, dims: Sequence[int]) -> bool:
        return self.scope.vector in dims

    @property
    def lanes(self) -> int:
        return self.scope.lanes

    def alignment(self, d: int, count: int) -> int:
        """A number that divides `count`, and the coordinate along `d` of every `count`-th point of a block."""
        tile = self.kernel.schedule.tile[d] if d < self.kernel.parallel else 0
        return gcd(count, tile, *(op.step for op in self.around if op.dim == d))

    def mask(self, point: Point) -> Value | None:
        """The mask of the lanes at a point that are in the domain; None for all."""
        scope = self.scope
        later = tuple((d, point[d]) for d in scope.valid if self.is_valid(d, point[d]) is not True)
        if not later:
            return scope.masks.get(point[scope.vector])
        key = ((scope.vector, point[scope.vector]), *later)
        if key not in scope.row_masks:
            held = self.number(scope.counts.get(point[scope.vector], self.lanes))
            for d, offset in later:
                held = arith.Select(self.valid(d, offset), held, arith.constant(0, index)).result
            scope.row_masks[key] = vector.CreateMask((held,), VectorType((self.lanes,), i1)).result
        return scope.row_masks[key]

    def is_valid(self, d: int, offset: int) -> bool | None:
        """Whether a point of a block with masks is in the domain, as the first one always is; None if not known."""
        count = self.scope.valid.get(d)
        if count is None or not offset:
            return True
        return offset < count if isinstance(count, int) else None

    def valid(self, d: int, offset: int) -> Value:
        """The same as a value."""
        if (known := self.is_valid(d, offset)) is not None:
            return arith.constant(known, i1)
        return arith.CmpI("slt", arith.constant(offset, index), self.number(self.scope.valid[d])).result

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, built once in a block: the points of a tile have much in common, and what is built at
        all costs more than what it is for. Operations are appended, so that later ones of the block see it."""
        where = builder.block, key
        if where not in self.made:
            self.made[where] = make()
        return self.made[where]  # type: ignore[no-any-return]

    def spread(self, v: Value) -> Value:
        """Broadcast a scalar to all lanes; a vector is returned as it is."""
        return v if isinstance(v.type, VectorType) else self.once((v, self.lanes), lambda: self._spread(v))

    def _spread(self, v: Value) -> Value:
        if isinstance(v.op, arith.Constant):
            return arith.constant(v.op.value, VectorType((self.lanes,), v.type))
        return vector.splat(v, self.lanes)

    def zeros(self, type: Type) -> Value:
        """The constant zero of a vector type."""
        return self.once(("zero", type), lambda: arith.constant(zero_of(element(type)), type))

    def lower(self, op: Op) -> None:
        if op.terminator:
            return
        if (apply := self.rules.get(type(op))) is None:
            op.fail("has no code for this kind of machine", code="MLC0171")
        if isinstance(op, loop.For):
            self.around.append(op)
        with located(op.loc.through("loop_to_scf")):
            apply(self, op)
        if isinstance(op, loop.For):
            self.around.pop()


@rule(loop.For)
def _for(low: Lowering, op: loop.For) -> None:
    loop_over(low, op, op.unroll)


def loop_over(low: Lowering, op: loop.For, unroll: int = 0) -> None:
    """Lower a loop over blocks, with its loop-carried tiles, of which `unroll` terms are taken at a time."""
    own = any(op.dim in v.type.dims for v in op.operands)
    if own and not low.carries(op.dim):
        op.fail(f"a tile that is carried along its own dimension d{op.dim} lies in vector registers: `vector` is "
                "that dimension, or all that is read along it lies along `vector`, too", code="MLC0171")
    args = op.body.block.args
    with low.scoped() as scope:
        if op.vector:
            scope.vector, scope.lanes = op.dim, low.lanes_of(op.step)
            scope.counts, scope.masks = {}, {}
        keys = [(a, p) for a in args for p in low.points(a.type.dims)]
        source = dict(zip(args, op.operands))
        lanes_of = {a: low.in_lanes(a.type.dims) for a in args}

        def taken(values: dict[Any, Value]) -> list[Value]:
            parts = [(a, low.part(values[a], p)) for a, p in keys]
            return [low.spread(v) if lanes_of[a] else v for a, v in parts]

        def body(carried: Sequence[Value]) -> list[Value]:
            for (a, p), v in zip(keys, carried):
                low.scope.tiles[a] = {**low.scope.tiles.get(a, {}), p: v}
            for inner in op.body.block:
                low.lower(inner)
            return taken(dict(zip(args, op.body.block.terminator.operands)))

        if op.run:
            kinds = [kind for a, kind in zip(args, op.kinds) for b, _ in keys if b is a]
            out = low.runs(op.dim, op.step, op.run, kinds, taken(source), body, own)
        elif unroll:
            if op.step != 1 or op.is_ranged or low.is_in_lanes(op.dim):
                op.fail(f"unroll = {unroll}: blocks of d{op.dim} are unrolled if each is one point, and no vector",
                        code="MLC0171")
            out = low.terms(op.dim, unroll, taken(source), body)
        else:
            out = low.blocks(op.dim, op.step, taken(source), body, op.is_ranged, whole=own)
    for a, r in zip(args, op.results):
        low.scope.tiles[r] = {p: v for (b, p), v in zip(keys, out) if b is a}


def zero_of(dtype: ScalarType) -> float:
    return 0.0 if isinstance(dtype, FloatType) else 0
