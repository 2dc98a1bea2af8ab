"""Lowering of the value of a tensor at an index to tile operations, one method per family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlc.dialects import arith, loop, math, memref
from mlc.dialects import tensor as tn
from mlc.dialects.combining import CombiningKind
from mlc.dialects.index_arithmetic import SizeBuilder
from mlc.dialects.loop import TileType
from mlc.dialects.tensor.elementwise import Elementwise
from mlc.dialects.tensor.encodings import ENCODINGS
from mlc.dialects.tensor.iteration import IndexingMap, aligned, delinear, linear
from mlc.dialects.tensor.kernel import Kernel, stored
from mlc.dialects.tensor.orders import (
    block_of_matrices,
    lanes_of_product,
    order_of,
    terms_in_block,
    terms_of_mma,
    terms_of_pairs,
)
from mlc.ir import affine, sizes
from mlc.ir.affine import AffineMap
from mlc.ir.core import Block, Op, Region, Value, at_end, before, builder
from mlc.ir.sizes import AffineDim, Dim, IndexTile, Leaf
from mlc.ir.types import SCALARS, FloatType, IntType, MemRefType, ScalarType, TensorType, bf16, f32, i1, i32, index
from mlc.passes.tensor_to_loop import windows
from mlc.passes.tensor_to_loop.flash import attention_statistics, flash_attention, flash_attention_grad
from mlc.passes.tensor_to_loop.scalar import cast_scalar, scalar

Index = tuple[Dim, ...]
Product = tn.DotGeneral | tn.DotBlocks | tn.DotGroups | tn.Blockwise


class KernelBuilder:
    """Builds the `loop.kernel` of one bufferized `tensor.kernel`."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.body = kernel.body.block
        self.outputs = self.body.terminator.operands
        self.inner = next((op for op in self.body if isinstance(op, Product)), None)
        self.domain = kernel.iteration_domain()
        self.shape: Index = self.domain.slices
        terms = 0 if self.inner is None else 2 if isinstance(self.inner, tn.DotGroups | tn.Blockwise) else 1
        self.dims = len(self.shape) + terms if terms else max(1, len(self.shape))    # rank of the domain
        self.buffers: dict[Value, Value] = dict(zip(self.body.args, kernel.ins))
        self.memo: dict[tuple[Value, Index, Value | None], Value] = {}
        self.tiles: list[Value] = []
        self.flat: dict[Value, Value] = {}
        self.sites = {op: kernel.site + i for i, op in enumerate(kernel.checked)}

    def build(self) -> None:
        kernel, rank = self.kernel, len(self.shape)
        domain, tile = list(self.shape), [1] * rank
        if not domain and self.inner is None:
            domain, tile, rank = [1], [1], 1             # a single point
        if self.inner is not None:
            domain += self.lengths(self.inner)
            tile += blocks_of_terms(self.inner, len(domain) - rank)
        block = Block()
        with at_end(block, kernel.loc):
            if self.inner is not None:
                with at_end(block, self.inner.loc):
                    home = self.index_at(self.inner.home(self.domain))
                    self.memo[self.inner.result, home, None] = _PRODUCTS[type(self.inner)](self, self.inner)
            maps = [self.index_at(map) for map in kernel.result_maps]
            values = [self.value(v, at, None) for v, at in zip(self.outputs, maps)]
            for v, at, value, buffer in zip(self.outputs, maps, values, kernel.outs):
                self.store_tensor(value, v.type, buffer, at)
            loop.End()
        with before(kernel):
            loop.Kernel(kernel.sizes, Region(block), symbols=kernel.symbols, domain=tuple(domain),
                        iterator_types=loop.iterator_types(len(domain), rank), label=kernel.label,
                        schedule=loop.Schedule(tuple(tile), vector=rank if self.inner is not None and adds_in_lanes(
                            self.inner) else -1))

    def index_at(self, map: IndexingMap | None) -> Index:
        """Index of an indexing map at the current point."""
        assert map is not None and None not in map, "a tensor of a kernel has an index at each point"
        return map  # type: ignore[return-value]

    def store_tensor(self, value: Value, type: TensorType, buffer: Value, at: Index) -> None:
        """Store a tile of a tensor of this type."""
        self.store(value, type.dtype, *self.without_quotients(buffer, type, at))

    def store(self, value: Value, dtype: ScalarType, buffer: Value, at: Index, mask: Value | None = None) -> None:
        if dtype == i1:
            value = self.map([value], lambda x: arith.ExtUI(x, stored(i1)).result)
        tiles, access = self.access(at)
        loop.Store(value, buffer, tiles, mask, map=access)

    def access(self, at: Index) -> tuple[tuple[Value, ...], AffineMap]:
        """Index tiles in expressions, and the access map of the expressions with these tiles numbered from 0."""
        used = sorted(affine.tiles_of(*at))
        local: dict[Leaf, Dim] = {IndexTile(n): affine.tile(i) for i, n in enumerate(used)}
        return tuple(self.tiles[n] for n in used), AffineMap.get(
            self.dims, [sizes.substitute(e, local) for e in at] if used else at, len(used))

    def map(self, tiles: Sequence[Value], body: Callable[..., Value]) -> Value:
        """Build a `loop.map` with the scalar computation `body`."""
        block = Block([t.type.dtype for t in tiles])
        with at_end(block):
            loop.Yield((body(*block.args),))
        return loop.Map(tuple(tiles), Region(block)).results[0]

    # -- loops ----------------------------------------------------------------------------------------------------
    def lengths(self, op: Product) -> list[Dim]:
        """Number of terms of each result of a contraction: of groups of them and in a group, if they are in groups."""
        if isinstance(op, tn.DotGeneral):
            return [sizes.product(op.lhs.type.shape[a] for a, _ in op.contract)]
        domain = op.iteration_domain()
        return [domain.shape[d] for d in domain.reduced]

    def carry(self, init: Value, body: Callable[[Value], Value], inside: int = 0) -> Value:
        """Build a loop over the reduction dimension, or one after it, with one carried tile and its own scope of
        evaluated values."""
        block = Block([init.type])
        outer = dict(self.memo)
        with at_end(block, builder.loc):
            loop.Yield((body(block.args[0]),))
        self.memo = outer
        return loop.For((init,), Region(block), dim=len(self.shape) + inside).results[0]

    def contraction(self, op: tn.DotGeneral) -> Value:
        last, domain = len(self.shape), self.domain
        inner = delinear(loop.coordinate(last), [domain.shape[d] for d in domain.reduced])
        point = {AffineDim(d): k for d, k in zip(domain.reduced, inner)}
        maps = [tuple(sizes.substitute(e, point) for e in self.index_at(map))
                for map in op.operand_maps(op.home(domain), domain)]

        def factors() -> list[Value]:
            return [self.value(v, at, None) for v, at in zip(op.operands, maps)]

        if lanes_of_product(op) > 1:
            def lane_step(acc: Value) -> Value:
                lhs, rhs = factors()
                return loop.Contract(acc, lhs, rhs, dim=last).result

            total = self.carry(loop.Full(0.0, TileType(tuple(range(last + 1)), f32)).result, lane_step)
            return loop.Reduce(total, dim=last, kind="add").result
        spans = tuple(d for d in range(last) if self.shape[d] != 1)
        init = loop.Full(0.0 if isinstance(op.result.type.dtype, FloatType) else 0,
                         TileType(spans, signless(op.result.type.dtype))).result

        block_of_mma = terms_of_mma(order_of(op))

        def step(acc: Value) -> Value:
            if terms_of_pairs(order_of(op)) is not None:
                lhs, rhs = (self.narrow(v, at, bf16) for v, at in zip(op.operands, maps))
                return loop.ContractPairs(acc, lhs, rhs, dim=last).result
            if block_of_mma is not None and block_of_mma[1] != "tf32":
                narrow = SCALARS[block_of_mma[1]]
                lhs, rhs = (self.narrow(v, at, narrow) for v, at in zip(op.operands, maps))
                return loop.Mma(acc, lhs, rhs, dim=last).result
            lhs, rhs = factors()
            if block_of_mma is not None:
                return loop.Mma(acc, lhs, rhs, dim=last).result
            return loop.Contract(acc, lhs, rhs, dim=last).result

        if terms_in_block(order_of(op)) is None:
            return self.carry(init, step)

        def block(total: Value) -> Value:
            start = loop.Full(init.op.attrs["value"], init.type).result
            return self.map([total, self.carry(start, step)], CombiningKind.ADD.emit)

        return self.carry(init, block)

    def dot_of_pairs(self, op: tn.DotBlocks) -> Value:
        """The products of pairs of integers, in lanes, each with its scales."""
        last, x = len(self.shape), op.x.type.shape
        p = loop.coordinate(last)
        rows = (*(0 if n == 1 else loop.coordinate(d) for d, n in enumerate(x[:-1])), p)
        tiles, access = self.access((loop.coordinate(last - 1), p))

        def stored(kind: type[loop.LoadEncoded]) -> Value:
            return kind(self.buffers[op.w], tiles, None, map=access, encoding=op.encoding).result

        def step(acc: Value) -> Value:
            pairs, scale, sums = (self.value(v, rows, None) for v in (op.x, op.scale, op.sums))
            dots = loop.DotPairs(pairs, stored(loop.UnpackPairs)).result
            scales = self.map([scale, stored(loop.BlockScales)], lambda a, b: arith.MulF(a, b).result)
            acc = self.map([dots, scales, acc], lambda q, s, a: math.Fma(arith.SIToFP(q, f32).result, s, a).result)
            if not ENCODINGS[op.encoding].minima:
                return acc
            return self.map([stored(loop.BlockMinima), sums, acc],
                            lambda t, s, a: math.Fma(arith.NegF(t).result, s, a).result)

        total = self.carry(loop.Full(0.0, TileType(tuple(range(last + 1)), f32)).result, step)
        return loop.Reduce(total, dim=last, kind="add").result

    def dot_of_groups(self, op: tn.DotGroups) -> Value:
        """The products of groups of integers, each an exact integer, with their scales."""
        g, q, layout = len(self.shape), len(self.shape) + 1, op.layout
        maps = [self.index_at(map) for map in op.operand_maps(
            tuple(loop.coordinate(d) for d in range(g)), op.iteration_domain())[:3]]
        quads = layout.group // 4

        def stored(kind: type[loop.LoadEncoded], place: Dim, **more: int) -> Value:
            tiles, access = self.access((loop.coordinate(g - 1), place))
            return kind(self.buffers[op.w], tiles, None, map=access, encoding=op.encoding, **more).result

        def step(total: Value) -> Value:
            scale, sums = (self.value(v, at, None) for v, at in zip((op.scale, op.sums), maps[1:]))
            start: Value = loop.Full(0, TileType(tuple(range(g + 1)), i32)).result
            if not layout.minima:
                start = self.map([start, sums], lambda a, b: arith.AddI(a, b).result)

            def quad(dots: Value) -> Value:
                w = stored(loop.UnpackQuads, loop.coordinate(g) * quads + loop.coordinate(q))
                return loop.DotQuads(dots, self.value(op.x, maps[0], None), w, dim=q, bits=layout.bits).result

            dots = self.map([self.carry(start, quad, inside=1)], lambda a: arith.SIToFP(a, f32).result)
            s = stored(loop.BlockScales, loop.coordinate(g), numbers=layout.group)
            scales = self.map([scale, s], lambda a, b: arith.MulF(a, b).result)
            total = loop.Contract(total, dots, scales, dim=g).result
            if not layout.minima:
                return total
            t = stored(loop.BlockMinima, loop.coordinate(g), numbers=layout.group)
            return loop.Contract(total, self.map([t], lambda a: arith.NegF(a).result), sums, dim=g).result

        return self.carry(loop.Full(0.0, TileType(tuple(range(g)), f32)).result, step)

    def narrow(self, v: Value, at: Index, dtype: ScalarType) -> Value:
        """The tile of a tensor converted to a narrower element type."""
        if isinstance(v.op, tn.Cast) and v.op.x.type.dtype == dtype:
            return self.value(v.op.x, at, None)
        return self.map([self.value(v, at, None)], lambda x: arith.TruncF(x, dtype).result)

    # -- values ---------------------------------------------------------------------------------------------------
    def value(self, v: Value, at: Index, mask: Value | None) -> Value:
        """The tile of tensor `v` at the index `at`; unspecified, and not loaded, where `mask` is false."""
        key = (v, at, mask)
        if key not in self.memo:
            if v.op is None:
                self.memo[key] = self.load(v, at, mask)
            else:
                with at_end(builder.block, v.op.loc):  # type: ignore[arg-type]
                    self.memo[key] = self.compute(v.op, at, mask)
        return self.memo[key]

    def load(self, v: Value, at: Index, mask: Value | None) -> Value:
        buffer, at = self.without_quotients(self.buffers[v], v.type, at)
        return self.load_from(buffer, v.type.dtype, at, mask)

    def without_quotients(self, buffer: Value, type: TensorType, at: Index) -> tuple[Value, Index]:
        """The buffer of a tensor and an index, or the same in one dimension, where the index then divides by no size.

        Divisions by symbolic sizes keep accesses from being vectorized.
        """
        if type.is_static or not any(True for e in at for _ in sizes.quotients(e)):
            return buffer, at
        place = sizes.joined(linear(at, type.shape))           # symbolic sizes have names only here
        if any(True for _ in sizes.quotients(place)):
            return buffer, at
        return self.flattened(buffer, sizes.product(type.shape)), (place,)

    def flattened(self, buffer: Value, length: Dim) -> Value:
        """Flatten a buffer to one dimension."""
        if buffer not in self.flat:
            with before(self.kernel):
                count = SizeBuilder(dict(zip(self.kernel.symbols, self.kernel.sizes))).value(length)
                row = memref.reinterpret(buffer, 0, [count], [1])
                self.flat[buffer] = memref.Cast(row, MemRefType((None,), buffer.type.dtype)).result
        return self.flat[buffer]

    def dequantize(self, op: tn.Dequantize, at: Index, mask: Value | None) -> Value:
        if op.x not in self.buffers:
            op.fail("reads blocks that its own kernel computes", code="MLC0170")
        tiles, access = self.access(at)
        return loop.Dequantize(self.buffers[op.x], tiles, mask, map=access, encoding=op.encoding).result

    def load_from(self, buffer: Value, dtype: ScalarType, at: Index, mask: Value | None) -> Value:
        tiles, access = self.access(at)
        x: Value = loop.Load(buffer, tiles, mask, map=access).result
        if dtype == i1:
            x = self.map([x], lambda b: arith.CmpI("ne", b, arith.constant(0, b.type)).result)
        return x

    def compute(self, op: Op, at: Index, mask: Value | None) -> Value:
        for base in type(op).__mro__:
            if (method := _METHODS.get(base)) is not None:
                return method(self, op, at, mask)
        op.fail("has no lowering to loops", code="MLC0170")
        raise AssertionError

    def operands(self, op: Op, at: Index, mask: Value | None) -> list[Value]:
        """Evaluate the operands of an operation with one indexing map each."""
        maps = op.operand_maps(at, self.domain)  # type: ignore[attr-defined]
        return [self.value(v, index, mask) for v, index in zip(op.operands, maps)]

    def elementwise(self, op: Op, at: Index, mask: Value | None) -> Value:
        dtypes = [v.type.dtype for v in op.operands]
        return self.map(self.operands(op, at, mask), lambda *xs: scalar(op, dtypes, xs))

    def mapped(self, op: tn.Map, at: Index, mask: Value | None) -> Value:
        block = Block([signless(v.type.dtype) for v in op.operands])
        mapping: dict[Value, Value] = dict(zip(op.body.block.args, block.args))
        with at_end(block):
            for inner in op.body.block:
                if inner.terminator:
                    loop.Yield(tuple(mapping[v] for v in inner.operands))
                else:
                    inner.insert_clone(mapping)
        return loop.Map(tuple(self.operands(op, at, mask)), Region(block)).results[0]

    def data_movement(self, op: Op, at: Index, mask: Value | None) -> Value:
        """The element of the operand that the indexing map selects."""
        value, = self.operands(op, at, mask)
        return value

    def pad(self, op: tn.Pad, at: Index, mask: Value | None) -> Value:
        inside: Value | None = None
        source: list[Dim] = []
        for a, (i, n) in enumerate(zip(at, op.x.type.shape)):
            low, high, gap = op.low[a], op.high[a], op.interior[a] + 1 if op.interior else 1
            position = i - low
            if low != 0:
                inside = self.both(inside, self.compare("sge", position, 0))
            if gap != 1:
                inside = self.both(inside, self.compare("eq", sizes.modulo(position, gap), 0))
                position = sizes.divide(position, gap)
            if high != 0 or gap != 1:
                inside = self.both(inside, self.compare("slt", position, n))
            source.append(position)
        if inside is None:
            return self.value(op.x, tuple(source), mask)
        x = self.value(op.x, tuple(source), self.both(mask, inside))
        filler = self.value(op.value, (), None)
        return self.map([inside, x, filler], lambda c, a, b: arith.Select(c, a, b).result)

    def concat(self, op: tn.Concat, at: Index, mask: Value | None) -> Value:
        out: Value | None = None
        start: Dim = 0
        for i, v in enumerate(op.operands):
            stop = start + v.type.shape[op.axis]
            after = self.compare("sge", at[op.axis], start) if i else None
            here = self.both(after, self.compare("slt", at[op.axis], stop)) if i + 1 < len(op.operands) else after
            moved = tuple(i - start if a == op.axis else i for a, i in enumerate(at))
            x = self.value(v, moved, self.both(mask, here))
            out = x if out is None or here is None else self.map(
                [here, x, out], lambda c, a, b: arith.Select(c, a, b).result)
            start = stop
        assert out is not None
        return out

    def take(self, op: tn.Take, at: Index, mask: Value | None) -> Value:
        rank = op.indices.type.rank
        position, mask = self.gathered(op, op.indices, at[op.axis: op.axis + rank], mask)
        return self.value(op.x, (*at[: op.axis], position, *at[op.axis + rank:]), mask)

    def take_along(self, op: tn.TakeAlong, at: Index, mask: Value | None) -> Value:
        position, mask = self.gathered(op, op.indices, aligned(op.indices.type.shape, at), mask)
        return self.value(op.x, tuple(position if a == op.axis else i for a, i in enumerate(
            aligned(tuple(d if a != op.axis else 2 for a, d in enumerate(op.x.type.shape)), at))), mask)

    def gathered(self, op: Any, indices: Value, at: Index, mask: Value | None) -> tuple[Dim, Value]:
        """An index tile as an expression, checked against the axis it indexes; the mask of points where it fits."""
        tile = self.value(indices, at, mask)
        extent = op.x.type.shape[op.axis]
        dtype = indices.type.dtype
        tile = self.map([tile], lambda x: _to_index(x, dtype))
        number = self.index(extent)
        fits = self.map([tile, number], lambda x, n: arith.AndI(
            arith.CmpI("sge", x, arith.constant(0, index)).result, arith.CmpI("slt", x, n).result).result)
        checked = fits if mask is None else self.map([fits, mask], lambda f, m: arith.OrI(
            f, arith.XorI(m, arith.constant(True, i1)).result).result)
        errors = self.kernel.errors
        assert errors is not None, "bufferize passes the error record to kernels that index"
        coordinates = tuple(loop.coordinate(d) for d in range(len(self.shape)))
        loop.Check(checked, errors, element=self.access((linear(coordinates, self.shape),))[1], site=self.sites[op])
        self.tiles.append(tile)
        both = self.both(mask, fits)
        assert both is not None
        return affine.tile(len(self.tiles) - 1), both

    def iota(self, op: tn.Iota, at: Index, mask: Value | None) -> Value:
        return self.number(at[op.axis], op.result.type.dtype)

    def size(self, op: tn.Size, at: Index, mask: Value | None) -> Value:
        return self.number(op.value, op.result.type.dtype)

    def full(self, op: tn.Full, at: Index, mask: Value | None) -> Value:
        assert not isinstance(op.value, complex)
        return number_tile(op.value, op.result.type.dtype)

    def constant(self, op: tn.Constant, at: Index, mask: Value | None) -> Value:
        assert op.result.type.rank == 0, "array constants are host-level operations"
        return number_tile(op.value.item(), op.result.type.dtype)

    # -- index arithmetic -----------------------------------------------------------------------------------------
    def number(self, expr: Dim, dtype: ScalarType) -> Value:
        """Evaluate an index expression as a scalar of an element type."""
        tile = self.index(expr)
        return self.map([tile], lambda x: cast_scalar(arith.IndexCast(x, IntType(64)).result, IntType(64), dtype))

    def index(self, expr: Dim) -> Value:
        tiles, access = self.access((expr,))
        return loop.Index(tiles, map=access).result

    def compare(self, predicate: str, a: Dim, b: Dim) -> Value:
        return self.map([self.index(a), self.index(b)], lambda x, y: arith.CmpI(predicate, x, y).result)

    def both(self, a: Value | None, b: Value | None) -> Value | None:
        if a is None or b is None:
            return a if b is None else b
        return self.conjunction(a, b)

    def conjunction(self, a: Value, b: Value) -> Value:
        return self.map([a, b], lambda x, y: arith.AndI(x, y).result)


def adds_in_lanes(op: Product) -> bool:
    """Whether the dimension of the terms of a product is that of the vectors."""
    return isinstance(op, tn.DotBlocks) or (isinstance(op, tn.DotGeneral) and lanes_of_product(op) > 1)


def blocks_of_terms(op: Product, dims: int) -> list[int]:
    """The block along each dimension of the terms of a product."""
    if isinstance(op, tn.Blockwise):
        features = op.operands[0].type.shape[-1]
        if not isinstance(features, int):
            op.fail("scores of an unknown number of terms have no code", code="MLC0170")
        return [op.attrs["block"], features]
    return [1] * (dims - 1) + [block_of_terms(op)]


def block_of_terms(op: Product) -> int:
    """How many terms of a product are added together: a block of them, or one for each lane."""
    if isinstance(op, tn.DotBlocks):
        return ENCODINGS[op.encoding].elements // 2
    if isinstance(op, tn.DotGroups):
        return op.layout.group // 4
    order = order_of(op)
    exact = order.startswith("quads")                      # one after the other, until a schedule puts them on tiles
    return terms_in_block(order) or (None if exact else block_of_matrices(order)) or lanes_of_product(op)


def number_tile(value: float, dtype: ScalarType) -> Value:
    """A constant tile; unsigned integers become signless ones of the same bits."""
    if isinstance(dtype, IntType) and dtype.unsigned and value >= 1 << (dtype.width - 1):
        value -= 1 << dtype.width
    return loop.Full(value, TileType((), signless(dtype))).result


def signless(dtype: ScalarType) -> ScalarType:
    """Signless element type, as below the tensor level."""
    return IntType(dtype.width) if isinstance(dtype, IntType) else dtype


def _to_index(x: Value, dtype: ScalarType) -> Value:
    wide = cast_scalar(x, dtype, IntType(64))
    return arith.IndexCast(wide, index).result


_PRODUCTS: dict[type[Op], Callable[[KernelBuilder, Any], Value]] = {
    tn.DotGeneral: KernelBuilder.contraction, tn.DotBlocks: KernelBuilder.dot_of_pairs,
    tn.DotGroups: KernelBuilder.dot_of_groups, tn.FlashAttention: flash_attention,
    tn.AttentionStatistics: attention_statistics, tn.FlashAttentionGrad: flash_attention_grad}
_METHODS: dict[type, Callable[[KernelBuilder, Any, Index, Value | None], Value]] = {
    Elementwise: KernelBuilder.elementwise, tn.Select: KernelBuilder.elementwise, tn.Cast: KernelBuilder.elementwise,
    tn.Bitcast: KernelBuilder.elementwise, tn.Dequantize: KernelBuilder.dequantize,
    tn.Map: KernelBuilder.mapped, tn.Pad: KernelBuilder.pad, tn.Concat: KernelBuilder.concat,
    tn.Take: KernelBuilder.take, tn.TakeAlong: KernelBuilder.take_along,
    tn.Iota: KernelBuilder.iota, tn.Size: KernelBuilder.size, tn.Full: KernelBuilder.full,
    tn.Constant: KernelBuilder.constant,
    **dict.fromkeys((tn.BroadcastTo, tn.Transpose, tn.Reshape, tn.Slice, tn.Reverse, tn.Windows, tn.Pick, tn.Pack,
                     tn.Unpack),
                    KernelBuilder.data_movement),
    tn.Place: windows.place,
    tn.DynamicSlice: windows.dynamic_slice, tn.DynamicUpdateSlice: windows.dynamic_update_slice,
}
