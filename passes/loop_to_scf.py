"""Make loops, vectors and memory accesses of kernels.

takes  LOOP
gives  LOW: builtin func arith math scf memref vector, as upstream MLIR means them
why    the last level with structure: from here on each operation is one or two machine instructions

A kernel becomes one scf.for per parallel dimension, in steps of its block; what is left over runs with blocks of one
point, or, in the vector dimension, as one masked vector. A tile that spans the vector dimension becomes vectors, one
for each combination of points of its other dimensions; any other tile becomes scalars.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mlc.dialects import arith, loop, math, memref, scf, vector
from mlc.dialects.builtin import Module
from mlc.dialects.func import Call, Return, function
from mlc.dialects.loop import Kernel
from mlc.ir import sizes
from mlc.ir.core import Op, Symbol, Value, at_end, before, builder, located
from mlc.ir.passes import Pass
from mlc.ir.sizes import Dim
from mlc.ir.types import FloatType, FunctionType, MemRefType, ScalarType, Type, VectorType, element, i1, i64, index
from mlc.passes.bufferize import SizeBuilder, quotient
from mlc.passes.forms import LOOP, LOW
from mlc.passes.vectorize import stride

Point = tuple[int, ...]


def run(module: Module) -> None:
    """Lower every kernel of `module`."""
    for kernel in list(module.inside(Kernel)):
        with before(kernel):
            _Lowering(module, kernel).run()
        kernel.erase()


class Scope:
    """Where code is being emitted: block sizes, origins, the mask of a partial vector, and what is computed already.

    An inner scope sees what an outer one has computed, and leaves nothing behind in it.
    """

    def __init__(self, numbers: SizeBuilder, outer: Scope | None = None) -> None:
        self.numbers = numbers
        self.block: dict[int, int] = dict(outer.block) if outer else {}
        self.mask: Value | None = outer.mask if outer else None
        self.tiles: dict[Value, dict[Point, Value]] = dict(outer.tiles) if outer else {}

    def inner(self) -> Scope:
        numbers = SizeBuilder(dict(self.numbers.symbols))
        numbers.known = dict(self.numbers.known)
        return Scope(numbers, self)

    def enter(self, d: int, origin: Value, size: int) -> None:
        """Let the coordinates of dimension `d` start at `origin`, in a block of `size`."""
        self.block[d] = size
        name = origin_name(d)
        self.numbers.symbols[name] = origin
        self.numbers.known = {e: v for e, v in self.numbers.known.items() if name not in sizes.symbols(e)}


def origin_name(d: int) -> str:
    """The name of the first coordinate of a block of dimension `d`; with its dot, no size of the user can have it."""
    return f"origin.{d}"


class _Lowering:
    def __init__(self, module: Module, kernel: Kernel) -> None:
        self.module = module
        self.kernel = kernel
        self.vd = kernel.vector
        self.flat_views: dict[Value, tuple[Value, list[Dim]]] = {}
        self.index_names: dict[Value, str] = {}
        self.scope = Scope(SizeBuilder(dict(zip(kernel.symbols, kernel.sizes))))

    def run(self) -> None:
        for op in self.kernel.walk():
            if isinstance(op, loop.Load | loop.Store):
                self.flatten(op.buffer)
        self.nest(0)

    # -- loops ----------------------------------------------------------------------------------------------------
    @contextmanager
    def scoped(self) -> Iterator[Scope]:
        outer = self.scope
        self.scope = outer.inner()
        yield self.scope
        self.scope = outer

    def nest(self, d: int) -> None:
        """The loops of the parallel dimensions from `d` on, and the body inside them."""
        if d == self.kernel.parallel:
            for op in self.kernel.body.block:
                self.lower(op)
            return

        def body(carried: Sequence[Value]) -> list[Value]:
            self.nest(d + 1)
            return []

        self.blocks(d, [], body)

    def blocks(self, d: int, carried: list[Value], body: Callable[[Sequence[Value]], list[Value]]) -> list[Value]:
        """Run `body` for every block of dimension `d`, and for what is left over; it carries values along."""
        extent, size = self.kernel.domain[d], self.kernel.tile[d]
        whole = extent if size == 1 else sizes.divide(extent, size) * size
        carried = self.repeat(d, 0, whole, size, size, carried, body)
        rest = extent - whole
        if rest == 0:
            return carried
        if d != self.vd:
            return self.repeat(d, whole, extent, 1, 1, carried, body)
        return self.masked(d, whole, rest, carried, body)

    def repeat(self, d: int, start: Dim, stop: Dim, step: int, size: int, carried: list[Value],
               body: Callable[[Sequence[Value]], list[Value]]) -> list[Value]:
        """A loop from `start` to `stop`; none where it has no or one iteration for certain."""
        trip = stop - start
        if trip == 0:
            return carried
        number = self.scope.numbers.value
        if trip == step:
            with self.scoped() as scope:
                scope.enter(d, number(start), size)
                return body(carried)
        op = scf.loop(number(start), number(stop), number(step), carried, f"i{d}")
        with at_end(op.block), self.scoped() as scope:
            scope.enter(d, op.counter, size)
            scf.Yield(tuple(body(op.carried)))
        return list(op.results)

    def masked(self, d: int, start: Dim, rest: Dim, carried: list[Value],
               body: Callable[[Sequence[Value]], list[Value]]) -> list[Value]:
        """One partial vector, if the sizes leave one."""
        size = self.kernel.tile[d]

        def emit() -> list[Value]:
            with self.scoped() as scope:
                scope.enter(d, scope.numbers.value(start), size)
                count = scope.numbers.value(rest)
                scope.mask = vector.CreateMask((count,), VectorType((size,), i1)).result
                return body(carried)

        if isinstance(rest, int):
            return emit()
        left = arith.CmpI("sgt", self.scope.numbers.value(rest), arith.constant(0, index)).result
        op = scf.branch(left, [v.type for v in carried])
        with at_end(op.then_body.block):
            scf.Yield(tuple(emit()))
        with at_end(op.else_body.block):
            scf.Yield(tuple(carried))
        return list(op.results)

    # -- tiles ----------------------------------------------------------------------------------------------------
    def points(self, dims: Sequence[int]) -> list[Point]:
        """The combinations of offsets in the current block, one number per kernel dimension, of a tile's values."""
        ranges = [range(self.scope.block.get(d, 1)) if d in dims and d != self.vd else range(1)
                  for d in range(len(self.kernel.domain))]
        return list(itertools.product(*ranges))

    def part(self, tile: Value, point: Point) -> Value:
        """The scalar or vector of a tile at a point; dimensions that the tile does not span do not matter."""
        dims = tile.type.dims
        return self.scope.tiles[tile][tuple(p if d in dims and d != self.vd else 0 for d, p in enumerate(point))]

    def define(self, tile: Value, make: Callable[[Point], Value]) -> None:
        self.scope.tiles[tile] = {p: make(p) for p in self.points(tile.type.dims)}

    def in_lanes(self, dims: Sequence[int]) -> bool:
        return self.vd in dims

    @property
    def lanes(self) -> int:
        return self.kernel.tile[self.vd]

    def spread(self, v: Value) -> Value:
        """A value in every lane of a vector; a vector stays."""
        if isinstance(v.type, VectorType):
            return v
        if isinstance(v.op, arith.Constant):
            return arith.constant(v.op.value, VectorType((self.lanes,), v.type))
        return vector.splat(v, self.lanes)

    def lower(self, op: Op) -> None:
        if op.terminator:
            return
        with located(op.loc.through("loop_to_scf")):
            getattr(self, "_" + op.name.removeprefix("loop."))(op)

    # -- index arithmetic -----------------------------------------------------------------------------------------
    def at(self, expr: Dim, point: Point) -> Dim:
        """An expression over coordinates as one over the origins of the current block."""
        return sizes.substitute(expr, {f"d{d}": sizes.sym(origin_name(d)) + p for d, p in enumerate(point)})

    def scalar_index(self, expr: Dim, op: Any, point: Point) -> Value:
        """An expression as an index, in the first lane."""
        with self.indexed(op, point) as names:
            return self.scope.numbers.value(sizes.substitute(self.at(expr, point), names))

    def lane_index(self, expr: Dim, op: Any, point: Point) -> Value:
        """An expression as a vector of indices, one per lane."""
        step = stride(expr, f"d{self.vd}")
        tiles = any(self.in_lanes(t.type.dims) for t in op.tiles)
        if step is not None and not tiles:
            start = self.spread(self.scalar_index(expr, op, point))
            if step == 0:
                return start
            steps = vector.Step(VectorType((self.lanes,), index)).result
            if step != 1:
                steps = arith.MulI(steps, self.spread(self.scope.numbers.value(step))).result
            return arith.AddI(start, steps).result
        return _LaneNumbers(self, op, point).value(expr)

    @contextmanager
    def indexed(self, op: Any, point: Point) -> Iterator[dict[str, Dim]]:
        """Let the index tiles of an access have numbers, under names of their own."""
        names: dict[str, Dim] = {}
        for i, t in enumerate(op.tiles):
            v = self.part(t, point)
            name = self.index_names.setdefault(v, f"tile.{len(self.index_names)}")
            names[f"t{i}"] = sizes.sym(name)
            self.scope.numbers.symbols[name] = v
        yield names

    # -- memory ---------------------------------------------------------------------------------------------------
    def flatten(self, buffer: Value) -> tuple[Value, list[Dim]]:
        """A buffer as one row, and its strides as sizes; built once, before the loops."""
        if buffer in self.flat_views:
            return self.flat_views[buffer]
        type: MemRefType = buffer.type
        numbers = self.scope.numbers
        shape: list[Dim] = []
        for axis, n in enumerate(type.shape):
            if n is None:
                name = f"size.{len(self.flat_views)}.{axis}"
                numbers.symbols[name] = memref.Dim(buffer, arith.constant(axis, index)).result
            shape.append(sizes.sym(name) if n is None else n)
        strides: list[Dim] = [1] * len(shape)
        for axis in reversed(range(len(shape) - 1)):
            strides[axis] = strides[axis + 1] * shape[axis + 1]
        flat = buffer
        if len(shape) != 1:
            total = sizes.product(shape)
            count = total if isinstance(total, int) else None
            row = memref.reinterpret(buffer, 0, [numbers.value(total) if count is None else count], [1])
            flat = memref.Cast(row, MemRefType((count,), type.dtype)).result
        self.flat_views[buffer] = flat, strides
        return self.flat_views[buffer]

    def address(self, op: loop.Load | loop.Store) -> Dim:
        """The position in the flat buffer, as an expression."""
        _, strides = self.flatten(op.buffer)
        total: Dim = 0
        for e, s in zip(op.map, strides):
            total = total + e * s
        return total

    def is_contiguous(self, op: loop.Load | loop.Store) -> bool:
        return stride(self.address(op), f"d{self.vd}") == 1 and not any(self.in_lanes(t.type.dims) for t in op.tiles)

    def place(self, op: loop.Load | loop.Store, point: Point) -> tuple[Value, tuple[Value, ...]]:
        """Buffer and indices of a contiguous or single access: the row itself, where only its last axis moves."""
        moves = any(f"d{self.vd}" in sizes.symbols(e) for e in op.map[:-1])
        if op.map and not moves:
            return op.buffer, tuple(self.scalar_index(e, op, point) for e in op.map)
        flat, _ = self.flatten(op.buffer)
        return flat, (self.scalar_index(self.address(op), op, point),)

    def lane_mask(self, op: loop.Load | loop.Store, point: Point) -> Value | None:
        """Which lanes an access may touch; None for all."""
        own = self.spread(self.part(op.mask, point)) if op.mask is not None else None
        if own is None or self.scope.mask is None:
            return own if own is not None else self.scope.mask
        return arith.AndI(own, self.scope.mask).result

    def _load(self, op: loop.Load) -> None:
        in_lanes = self.in_lanes(op.result.type.dims)
        self.define(op.result, lambda p: self.load_lanes(op, p) if in_lanes else self.load_scalar(op, p))

    def load_scalar(self, op: loop.Load, point: Point) -> Value:
        def read() -> Value:
            return memref.Load(op.buffer, tuple(self.scalar_index(e, op, point) for e in op.map)).result

        if op.mask is None:
            return read()
        branch = scf.branch(self.part(op.mask, point), [op.buffer.type.dtype])
        with at_end(branch.then_body.block), self.scoped():
            scf.Yield((read(),))
        with at_end(branch.else_body.block):
            scf.Yield((_zero(op.buffer.type.dtype),))
        return branch.results[0]

    def load_lanes(self, op: loop.Load, point: Point) -> Value:
        type = VectorType((self.lanes,), op.buffer.type.dtype)
        mask = self.lane_mask(op, point)
        if not self.in_lanes(loop.spanned(op.map, op.tiles)):
            return self.load_one_for_all(op, point, type)
        if self.is_contiguous(op):
            buffer, indices = self.place(op, point)
            if mask is None:
                return vector.Load(buffer, indices, type).result
            return vector.MaskedLoad(buffer, indices, mask, arith.constant(_zero_of(type.dtype), type)).result
        flat, _ = self.flatten(op.buffer)
        everywhere = arith.constant(True, VectorType((self.lanes,), i1)) if mask is None else mask
        return vector.Gather(flat, (arith.constant(0, index),), self.lane_index(self.address(op), op, point),
                             everywhere, arith.constant(_zero_of(type.dtype), type)).result

    def load_one_for_all(self, op: loop.Load, point: Point, type: VectorType) -> Value:
        """An element that does not move with the lanes but is wanted in some of them only: read it if in any."""
        mask = self.lane_mask(op, point)
        assert mask is not None, "a load that does not move spans the lanes only through its mask"
        branch = scf.branch(vector.Reduction("or", mask).result, [type.dtype])
        with at_end(branch.then_body.block), self.scoped():
            scf.Yield((memref.Load(op.buffer, tuple(self.scalar_index(e, op, point) for e in op.map)).result,))
        with at_end(branch.else_body.block):
            scf.Yield((_zero(type.dtype),))
        return self.spread(branch.results[0])

    def _store(self, op: loop.Store) -> None:
        mask_dims = op.mask.type.dims if op.mask is not None else ()
        dims = tuple({*op.value.type.dims, *mask_dims, *loop.spanned(op.map, op.tiles)})
        for point in self.points(dims):
            value = self.part(op.value, point)
            if not self.in_lanes(dims):
                self.store_scalar(op, value, point)
            elif self.is_contiguous(op):
                buffer, indices = self.place(op, point)
                mask = self.lane_mask(op, point)
                if mask is None:
                    vector.Store(self.spread(value), buffer, indices)
                else:
                    vector.MaskedStore(buffer, indices, mask, self.spread(value))
            else:
                self.scatter(op, value, point)

    def store_scalar(self, op: loop.Store, value: Value, point: Point) -> None:
        def write() -> None:
            memref.Store(value, op.buffer, tuple(self.scalar_index(e, op, point) for e in op.map))

        if op.mask is None:
            write()
            return
        branch = scf.branch(self.part(op.mask, point), otherwise=False)
        with at_end(branch.then_body.block), self.scoped():
            write()
            scf.Yield(())

    def scatter(self, op: loop.Store, value: Value, point: Point) -> None:
        """Lane by lane, where neighbours do not lie side by side."""
        flat, _ = self.flatten(op.buffer)
        where = self.lane_index(self.address(op), op, point)
        mask, value = self.lane_mask(op, point), self.spread(value)
        for lane in range(self.lanes):
            at = vector.Extract(where, (), (lane,)).result
            x = vector.Extract(value, (), (lane,)).result
            if mask is None:
                memref.Store(x, flat, (at,))
                continue
            branch = scf.branch(vector.Extract(mask, (), (lane,)).result, otherwise=False)
            with at_end(branch.then_body.block):
                memref.Store(x, flat, (at,))
                scf.Yield(())

    # -- computation ----------------------------------------------------------------------------------------------
    def _full(self, op: loop.Full) -> None:
        tile: loop.TileType = op.result.type
        type = VectorType((self.lanes,), tile.dtype) if self.in_lanes(tile.dims) else tile.dtype
        self.define(op.result, lambda p: arith.constant(op.value, type))

    def _index(self, op: loop.Index) -> None:
        in_lanes = self.in_lanes(op.result.type.dims)
        self.define(op.result, lambda p: (self.lane_index if in_lanes else self.scalar_index)(op.expr, op, p))

    def _in_bounds(self, op: loop.InBounds) -> None:
        inside = self.scope.mask if op.dim == self.vd and self.scope.mask is not None else arith.constant(True, i1)
        self.define(op.result, lambda p: inside)

    def _map(self, op: loop.Map) -> None:
        dims = loop.union(op.operands)
        for r in op.results:
            self.scope.tiles[r] = {}
        for point in self.points(dims):
            values: dict[Value, Value] = {a: self.part(v, point) for a, v in zip(op.body.block.args, op.operands)}
            for inner in op.body.block:
                if not inner.terminator:
                    with located(inner.loc.through("loop_to_scf")):
                        self.apply(inner, values)
            for r, v in zip(op.results, op.body.block.terminator.operands):
                self.scope.tiles[r][point] = values[v]

    def apply(self, op: Op, values: dict[Value, Value]) -> None:
        """One scalar operation of a map's body, on vectors where an operand is; one condition may choose for all."""
        operands = [values[v] for v in op.operands]
        types: list[Type] = [r.type for r in op.results]
        if any(isinstance(v.type, VectorType) for v in operands):
            keep = isinstance(op, arith.Select) and not isinstance(operands[0].type, VectorType)
            operands = [v if keep and i == 0 else self.spread(v) for i, v in enumerate(operands)]
            types = [VectorType((self.lanes,), r.type) for r in op.results]
        copy = type(op).make(operands, dict(op.attrs), types, loc=op.loc)
        insert(copy)
        values.update(zip(op.results, copy.results))

    def _for(self, op: loop.For) -> None:
        if op.dim != self.vd and any(op.dim in v.type.dims for v in op.operands):
            op.fail(f"a tile that is carried along its own dimension d{op.dim} lies in vector registers: `vector` is "
                    "that dimension", code="MLC0171")
        keys = [(a, p) for a in op.body.block.args for p in self.points(a.type.dims)]
        source = dict(zip(op.body.block.args, op.operands))
        lanes_of = {a: self.in_lanes(a.type.dims) for a in op.body.block.args}
        start = [self.spread(self.part(source[a], p)) if lanes_of[a] else self.part(source[a], p) for a, p in keys]

        def body(carried: Sequence[Value]) -> list[Value]:
            for (a, p), v in zip(keys, carried):
                self.scope.tiles.setdefault(a, {})
                self.scope.tiles[a] = {**self.scope.tiles[a], p: v}
            for inner in op.body.block:
                self.lower(inner)
            yielded = dict(zip(op.body.block.args, op.body.block.terminator.operands))
            return [self.spread(self.part(yielded[a], p)) if lanes_of[a] else self.part(yielded[a], p)
                    for a, p in keys]

        out = self.blocks(op.dim, start, body)
        for a, r in zip(op.body.block.args, op.results):
            self.scope.tiles[r] = {p: v for (b, p), v in zip(keys, out) if b is a}

    def _reduce(self, op: loop.Reduce) -> None:
        if op.dim != self.vd:
            op.fail("the lanes that it combines lie in vector registers: `vector` is their dimension", code="MLC0171")
        combine = _COMBINERS[op.kind]

        def tree(point: Point) -> Value:
            v, n = self.spread(self.part(op.x, point)), self.lanes
            while n > 1:
                low = vector.Shuffle(v, v, tuple(range(n // 2))).result
                high = vector.Shuffle(v, v, tuple(range(n // 2, n))).result
                v, n = combine(low, high), n // 2
            return vector.Extract(v, (), (0,)).result

        self.define(op.result, tree)

    def _fold(self, op: loop.Fold) -> None:
        if op.dim == self.vd:
            op.fail("an ordered sum cannot lie in vector registers along its own dimension", code="MLC0171")

        def chain(point: Point) -> Value:
            acc = self.part(op.acc, point)
            for k in range(self.scope.block[op.dim]):
                x = self.part(op.x, (*point[: op.dim], k, *point[op.dim + 1:]))
                if self.in_lanes(op.result.type.dims):
                    acc, x = self.spread(acc), self.spread(x)
                acc = _COMBINERS[op.kind](acc, x)
            return acc

        self.define(op.result, chain)

    def _contract(self, op: loop.Contract) -> None:
        if op.dim == self.vd:
            op.fail("the dimension of a contraction cannot lie in vector registers: its sum is one chain",
                    code="MLC0171")

        def chain(point: Point) -> Value:
            acc = self.part(op.acc, point)
            for k in range(self.scope.block[op.dim]):
                at = (*point[: op.dim], k, *point[op.dim + 1:])
                lhs, rhs = self.part(op.lhs, at), self.part(op.rhs, at)
                if self.in_lanes(op.result.type.dims):
                    acc, lhs, rhs = self.spread(acc), self.spread(lhs), self.spread(rhs)
                if isinstance(element(acc.type), FloatType):
                    acc = math.Fma(lhs, rhs, acc).result
                else:
                    acc = arith.AddI(acc, arith.MulI(lhs, rhs).result).result
            return acc

        self.define(op.result, chain)

    def _check(self, op: loop.Check) -> None:
        dims = tuple({*op.condition.type.dims, *loop.spanned((op.element,))})
        record = recorder(self.module)
        site = arith.constant(op.site, i64)
        for point in self.points(dims):
            condition = self.part(op.condition, point)
            linear = self.scalar_index(op.element, _NoTiles, point)
            if not isinstance(condition.type, VectorType):
                bad = arith.XorI(condition, arith.constant(True, i1)).result
                self.report(record, op.errors, bad, site, linear)
                continue
            lanes = self.lanes
            bad = arith.XorI(condition, arith.constant(True, VectorType((lanes,), i1))).result
            if self.scope.mask is not None:
                bad = arith.AndI(bad, self.scope.mask).result
            step = stride(op.element, f"d{self.vd}")
            assert step is not None, "the position of an element is linear in each coordinate"
            branch = scf.branch(vector.Reduction("or", bad).result, otherwise=False)
            with at_end(branch.then_body.block), self.scoped() as scope:
                for lane in range(lanes):
                    lane_bad = vector.Extract(bad, (), (lane,)).result
                    moved = arith.AddI(linear, scope.numbers.value(step * lane)).result
                    self.report(record, op.errors, lane_bad, site, moved)
                scf.Yield(())

    def report(self, record: Symbol, errors: Value, bad: Value, site: Value, position: Value) -> None:
        branch = scf.branch(bad, otherwise=False)
        with at_end(branch.then_body.block):
            Call(record, (errors, site, arith.IndexCast(position, i64).result), ())
            scf.Yield(())


class _NoTiles:
    """Stands for an operation without index tiles."""

    tiles: tuple[Value, ...] = ()


class _LaneNumbers:
    """Index expressions lane by lane, where they are not linear in the lane."""

    def __init__(self, lowering: _Lowering, op: Any, point: Point) -> None:
        self.lowering, self.op, self.point = lowering, op, point

    def value(self, expr: Dim) -> Value:
        low = self.lowering
        if isinstance(expr, int):
            return low.spread(arith.constant(expr, index))
        total: Value | None = None
        for monomial, coefficient in expr.terms:
            term: Value | None = None
            for atom, power in monomial:
                factor = self.atom(atom)
                for _ in range(power):
                    term = factor if term is None else arith.MulI(term, factor).result
            number = low.spread(arith.constant(coefficient, index))
            term = number if term is None else term if coefficient == 1 else arith.MulI(term, number).result
            total = term if total is None else arith.AddI(total, term).result
        assert total is not None
        return total

    def atom(self, atom: Any) -> Value:
        low = self.lowering
        if not isinstance(atom, str):
            return quotient(atom, self.value(atom.num), self.value(atom.den))
        if atom[0] == "t" and atom[1:].isdigit():
            return low.spread(low.part(self.op.tiles[int(atom[1:])], self.point))
        if atom == f"d{low.vd}":
            return low.lane_index(sizes.sym(atom), _NoTiles, self.point)
        return low.spread(low.scalar_index(sizes.sym(atom), _NoTiles, self.point))


def _combiner(floats: Any, integers: Any) -> Callable[[Value, Value], Value]:
    return lambda a, b: (floats if isinstance(element(a.type), FloatType) else integers)(a, b).result


_COMBINERS: dict[str, Callable[[Value, Value], Value]] = {
    "add": _combiner(arith.AddF, arith.AddI), "mul": _combiner(arith.MulF, arith.MulI),
    "max": _combiner(arith.MaximumF, arith.MaxSI), "min": _combiner(arith.MinimumF, arith.MinSI),
    "maxu": _combiner(arith.MaxUI, arith.MaxUI), "minu": _combiner(arith.MinUI, arith.MinUI),
    "or": _combiner(arith.OrI, arith.OrI), "and": _combiner(arith.AndI, arith.AndI),
}
"""The operation that combines two elements, by `kind`, where they are floats and where they are integers."""


def insert(op: Op) -> None:
    """Put a detached operation at the insertion point."""
    assert builder.block is not None
    builder.block.insert(op, builder.before)


def _zero_of(dtype: ScalarType) -> float:
    return 0.0 if isinstance(dtype, FloatType) else 0


def _zero(dtype: ScalarType) -> Value:
    return arith.constant(_zero_of(dtype), dtype)


def recorder(module: Module) -> Symbol:
    """`@record_error(errors, site, element)`, which keeps the least (site, element) that was reported."""
    inputs = (MemRefType((2,), i64), i64, i64)
    named = {op.attrs.get("sym_name"): op for op in module.body.block}
    name = Symbol("record_error")
    while name in named:
        if named[name].attrs.get("function_type") == FunctionType(inputs, ()):
            return name
        name = Symbol(name + "_")                    # a function of the user has the name
    f = function(name, inputs, ["errors", "site", "element"], private=True)
    errors, site, position = f.args
    with at_end(f.block, f.loc):
        at = [arith.constant(i, index) for i in (0, 1)]
        held_site, held_position = (memref.Load(errors, (i,)).result for i in at)
        none = arith.CmpI("slt", held_site, arith.constant(0, i64)).result
        earlier = arith.CmpI("slt", site, held_site).result
        same = arith.CmpI("eq", site, held_site).result
        less = arith.AndI(same, arith.CmpI("slt", position, held_position).result).result
        branch = scf.branch(arith.OrI(none, arith.OrI(earlier, less).result).result, otherwise=False)
        with at_end(branch.then_body.block):
            memref.Store(site, errors, (at[0],))
            memref.Store(position, errors, (at[1],))
            scf.Yield(())
        Return(())
    f.update_type()
    module.body.block.insert(f)
    return name


PASS = Pass(run, takes=LOOP, gives=LOW)
