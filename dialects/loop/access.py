"""Memory accesses of kernels: loads, stores, run-time checks and scratch buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.loop.kernel import Activation, For, InKernel, Kernel, Yield
from mlc.dialects.loop.types import ScratchType, TileType, spanned
from mlc.ir import sizes
from mlc.ir.affine import AffineExpr, AffineMap
from mlc.ir.core import Op, Region, ResultType, Value
from mlc.ir.interp import ELEMENTS
from mlc.ir.sizes import AffineDim, IndexTile, of_atom
from mlc.ir.types import MemRefType, ScalarType, Type, bf16, f16, i1, i8, i32, i64, index, to_numpy

if TYPE_CHECKING:
    from mlc.ir.interp import Frame


def as_tile(op: Op, value: Value, dtype: ScalarType | None = None) -> TileType:
    """The type of an operand that must be a tile, of `dtype` if one is given."""
    type = value.type
    if not isinstance(type, TileType) or dtype not in (None, type.dtype):
        op.fail(f"{type} is not a tile" + (f" of {dtype}" if dtype is not None else ""), code="MLC0151")
    return type


def as_scratch(op: Op, value: Value) -> ScratchType:
    """The type of an operand that must be scratch memory."""
    if not isinstance(value.type, ScratchType):
        op.fail(f"{value.type} is not scratch memory", code="MLC0151")
    return value.type


def check_tiles(op: Op, map: AffineMap, tiles: Sequence[Value]) -> None:
    """Check that the number of index tiles is what the map takes, and that they are tiles of `index`."""
    for t in tiles:
        as_tile(op, t, index)
    if map.tiles != len(tiles):
        op.fail(f"{map} takes {map.tiles} index tiles, but there are {len(tiles)}", code="MLC0155")


def check_number(op: Op, map: AffineMap, tiles: Sequence[Value]) -> None:
    """Check that a map has one result, and that the index tiles fit it."""
    check_tiles(op, map, tiles)
    if len(map.results) != 1:
        op.fail(f"{map} has {len(map.results)} results, not one", code="MLC0155")


def check_access(op: Op, buffer: Value, map: AffineMap, tiles: Sequence[Value]) -> MemRefType:
    type = buffer.type
    if not isinstance(type, MemRefType):
        op.fail(f"{type} is not a memref", code="MLC0151")
    if len(map.results) != type.rank:
        op.fail(f"{len(map.results)} expressions for a buffer of {type.rank} dimensions", code="MLC0151")
    check_tiles(op, map, tiles)
    return type


def position(map: AffineMap, buffer: Value) -> AffineExpr:
    """Where the element of a point lies in a buffer, unknown sizes of which have names of their own."""
    total: AffineExpr = 0
    for axis, (e, n) in enumerate(zip(map.results, buffer.type.shape)):
        total = total * (sizes.sym(f"size.{axis}") if n is None else n) + e
    return sizes.joined(total)


class Load(InKernel, name="loop.load", pure=False):
    """result[p] = buffer[map(p)] where p is in the domain and mask[p] holds, else 0"""

    pointwise = True
    buffer: Value
    tiles: tuple[Value, ...]
    mask: Value | None
    map: AffineMap

    def infer(self) -> Type:
        type = check_access(self, self.buffer, self.map, self.tiles)
        dims = set(spanned(self.map.leaves, self.tiles))
        if self.mask is not None:
            dims |= set(as_tile(self, self.mask, i1).dims)
        return TileType(tuple(sorted(dims)), type.dtype)

    def maps(self) -> tuple[AffineMap, ...]:
        return (self.map,)

    def bounded_dims(self) -> tuple[int, ...]:
        return self.result.type.dims  # type: ignore[no-any-return]

    def interpret(self, frame: Frame) -> Any:
        state = self.activation(frame)
        tiles = frame.all(self.tiles)
        dims = self.bounded_dims()
        valid = state.inside(dims)
        if self.mask is not None:
            valid = valid & frame[self.mask]
        buffer = frame[self.buffer]
        shape = state.shape(dims)
        if valid.all() and valid.size and not state.shared:      # the same elements, without a list of the points
            position = [np.asarray(state.evaluate(e, tiles)) for e in self.map.results]
            return np.array(np.broadcast_to(buffer[tuple(position)], shape))
        out = np.zeros(shape, buffer.dtype)
        if valid.any():
            where = np.nonzero(valid)
            position = [np.broadcast_to(state.evaluate(e, tiles), shape)[where] for e in self.map.results]
            out[where] = buffer[tuple(position)]
            state.access(self, False, buffer, position, dims, where)
        return out


class Store(InKernel, name="loop.store", pure=False):
    """buffer[map(p)] = value[p] for every point p of the domain where mask[p] holds"""

    value: Value
    buffer: Value
    tiles: tuple[Value, ...]
    mask: Value | None
    map: AffineMap

    def infer(self) -> tuple[Type, ...]:
        type = check_access(self, self.buffer, self.map, self.tiles)
        if as_tile(self, self.value).dtype != type.dtype:
            self.fail(f"{self.value.type} does not fit a buffer {type}", code="MLC0151")
        if self.mask is not None:
            as_tile(self, self.mask, i1)
        return ()

    def verify_op(self) -> None:
        super().verify_op()
        schedule = self.enclosing(Kernel).schedule
        if schedule.row_parts > 1 and not is_of_rows(self, schedule.row_axis):
            self.fail(f"row_parts = {schedule.row_parts}, but it does not store a row of one buffer along axis "
                      f"{schedule.row_axis} in each iteration of its loop, and read no other", code="MLC0151")

    def maps(self) -> tuple[AffineMap, ...]:
        return (self.map,)

    def bounded_dims(self) -> tuple[int, ...]:
        return tuple(sorted({*spanned(self.map.leaves, self.tiles), *self.value.type.dims}))

    def interpret(self, frame: Frame) -> list[Any]:
        state = self.activation(frame)
        tiles = frame.all(self.tiles)
        dims = self.bounded_dims()
        valid = state.inside(dims)
        if self.mask is not None:
            valid = valid & frame[self.mask]
        if valid.any():
            where = np.nonzero(valid)
            values = np.broadcast_to(frame[self.value], valid.shape)[where]
            position = [np.broadcast_to(state.evaluate(e, tiles), valid.shape)[where] for e in self.map.results]
            buffer = frame[self.buffer]
            buffer[tuple(position)] = values if position else values[-1]
            state.access(self, True, buffer, position, dims, where)
        return []


class Prefetch(InKernel, name="loop.prefetch", pure=False):
    """Bring buffer[map(p)] into a cache, for the first point of each block; no effect on any result.

    The position counts in row-major order: it may lie outside of its row, and of the buffer. `locality` is 3 for the
    cache next to the core, 2 for the next one, and so on. With `guarded`, nothing is done beyond the last row: the
    branch also keeps prefetches apart where LLVM would have all of a long block of code come first.
    """

    buffer: Value
    map: AffineMap
    locality: int = 3
    guarded: bool = False

    def infer(self) -> tuple[Type, ...]:
        check_access(self, self.buffer, self.map, ())
        if not 0 <= self.locality <= 3:
            self.fail(f"a locality of {self.locality} is not one from 0 to 3", code="MLC0151")
        return ()

    def maps(self) -> tuple[AffineMap, ...]:
        return (self.map,)

    def bounded_dims(self) -> tuple[int, ...]:
        return ()

    def interpret(self, frame: Frame) -> list[Any]:
        return []


def is_of_rows(op: Store, axis: int) -> bool:
    """Whether a store is the only one of a loop without sums, each iteration of which writes, and reads of its buffer,
    one row along an axis: that of the iteration, or that of an index. Then parts of the rows depend on nothing else."""
    around = op.parent_op
    if not isinstance(around, For) or around.operands or around.step != 1 or around.is_ranged or axis >= len(
            op.map.results) or not isinstance(around.parent_op, Kernel):
        return False
    inside = [inner for inner in around.parent_op.walk() if isinstance(inner, Load | Store)]
    rows = of_atom(IndexTile(0)) if op.tiles else of_atom(AffineDim(around.dim))
    others = any(inner.map != op.map or inner.tiles != op.tiles for inner in inside
                 if inner.buffer is op.buffer and inner.parent_op is around)
    alone = [inner for inner in inside if isinstance(inner, Store) and inner.parent_op is around] == [op]
    return alone and not others and len(op.tiles) <= 1 and op.map.results[axis] == rows and all(
        inner.buffer is op.buffer for inner in inside if isinstance(inner, Store)) and all(
        isinstance(inner.parent_op, For) for inner in inside if inner.buffer is op.buffer)


class Check(InKernel, name="loop.check", pure=False):
    """errors[0] = min(errors[0], site * 2**40 + element(p)), unsigned, for p in the domain where condition[p] fails"""

    condition: Value
    errors: Value
    element: AffineMap
    site: int

    def infer(self) -> tuple[Type, ...]:
        as_tile(self, self.condition, i1)
        check_number(self, self.element, ())
        if self.errors.type != MemRefType((1,), i64):
            self.fail(f"{self.errors.type} is not an error record", code="MLC0151")
        return ()

    def maps(self) -> tuple[AffineMap, ...]:
        return (self.element,)

    def bounded_dims(self) -> tuple[int, ...]:
        return tuple(sorted({*spanned(self.element.leaves), *self.condition.type.dims}))

    def interpret(self, frame: Frame) -> list[Any]:
        state = self.activation(frame)
        dims = self.bounded_dims()
        bad = state.inside(dims) & ~frame[self.condition]
        if bad.any():
            elements = np.broadcast_to(state.evaluate(self.element.result, ()), bad.shape)[bad]
            record = frame[self.errors].view(np.uint64)
            record[0] = min(int(record[0]), self.site * ELEMENTS + int(elements.min()))
        return []


@dataclass(frozen=True, slots=True)
class ScratchBuffer:
    """Scratch buffer of the interpreter: its elements, and the first coordinate of each of its dimensions."""

    elements: np.ndarray[Any, Any]
    first: tuple[int, ...]
    dims: tuple[int, ...]

    def positions(self, state: Activation) -> list[np.ndarray[Any, Any]]:
        """Positions of the in-bounds points of the current tile along each dimension."""
        return [(c := state.coordinates[d].ravel())[c < state.extents[d]] - first
                for d, first in zip(self.dims, self.first)]

    def store(self, state: Activation, value: np.ndarray[Any, Any]) -> None:
        """Store the elements of a tile at the points of the current tile."""
        at, rank = self.positions(state), len(state.extents)
        value = np.broadcast_to(value, state.shape(self.dims))
        value = value.transpose(*self.dims, *(d for d in range(rank) if d not in self.dims))
        value = value.reshape(value.shape[: len(at)])
        self.elements[np.ix_(*at)] = value[tuple(slice(p.size) for p in at)]

    def load(self, state: Activation) -> np.ndarray[Any, Any]:
        """The elements at the points of the current tile; zeros outside of the domain."""
        at, shape = self.positions(state), state.shape(self.dims)
        out = np.zeros([shape[d] for d in self.dims], self.elements.dtype)
        out[tuple(slice(p.size) for p in at)] = self.elements[np.ix_(*at)]
        order = sorted(range(len(self.dims)), key=lambda i: self.dims[i])
        return out.transpose(order).reshape(shape)


class Scratch(InKernel, name="loop.scratch", pure=False):
    """result = uninitialized scratch buffer of a thread, for the points of its dimensions in the enclosing tiles

    With `swizzle` = 128, a panel of 16-bit elements lies in memory as tensor cores of Hopper read it: in rows of 128
    bytes, 8 parts of which are permuted by the number of the row; longer rows are cut into such rows. With `registers`,
    each thread holds the points that it stores, and loads no others; the loops that access them have a known number of
    blocks, and are unrolled. With `interleaved` = d, the points along dimension d share words of 32 bits, zero if they
    are outside of the domain: two of bf16, which `loop.contract_panels` reads, or four bytes, which
    `loop.contract_bytes` reads. With `reversed`, the second one of bf16 comes first, for `loop.contract_interleaved`.
    """

    type: ResultType
    swizzle: int = 0
    registers: bool = False
    interleaved: int = -1
    reversed: bool = False

    def infer(self) -> Type:
        type = self.results[0].type
        if not isinstance(type, ScratchType) or type.dtype == i1:
            self.fail(f"{type} is not scratch memory; store i1 values as i8", code="MLC0151")
        if self.swizzle not in (0, 128) or (self.swizzle and type.dtype not in (bf16, f16)):
            self.fail(f"swizzle = {self.swizzle} of {type}: there is 128, of bf16 and f16", code="MLC0151")
        if self.interleaved != -1 and (type.dtype not in (bf16, i8) or self.interleaved not in type.dims):
            self.fail(f"interleaved = {self.interleaved} of {type}: it names a dimension of a panel of bf16 or of i8",
                      code="MLC0151")
        if self.reversed and (self.interleaved == -1 or type.dtype != bf16):
            self.fail(f"reversed words of {type}, which is no interleaved panel of bf16", code="MLC0151")
        return type

    @property
    def terms_of_word(self) -> int:
        """How many points of an interleaved panel share a word."""
        return int(i32.width // self.result.type.dtype.width)

    def verify_op(self) -> None:
        super().verify_op()
        kernel = self.enclosing(Kernel)
        if self.swizzle and kernel.schedule.mma_warps == 1:
            self.fail(f"swizzle = {self.swizzle}, but no warps multiply together", code="MLC0151")
        if self.interleaved >= 0:
            self.verify_interleaved(kernel)
        if not self.registers:
            return
        d = kernel.schedule.vector
        if d not in self.result.type.dims or not isinstance(kernel.domain[d], int) or self.parent_op is not kernel:
            self.fail(f"a row in registers lies along the vector dimension, whose extent is known, not d{d}",
                      code="MLC0151")
        if kernel.dim_of_threads != d:
            self.fail(f"a row in registers has threads for lanes: tiles_per_cta = {kernel.schedule.tiles_per_cta} is "
                      f"positive, and lanes = {kernel.schedule.lanes} divides the tile of d{d}, "
                      f"{kernel.schedule.tile[d]}", code="MLC0151")
        for user in self.result.users:
            around = user.parent_op
            if not isinstance(user, StoreScratch | LoadScratch) or not isinstance(around, For) or around.dim != d or (
                    not around.unroll or around.parent_op is not kernel):
                user.fail(f"accesses a row in registers outside of an unrolled loop over d{d}", code="MLC0151")

    def extent(self, d: int, points: int) -> int:
        """The elements along dimension d for so many points: the last block of every loop over d is stored whole, and
        so is the last tile of a matrix unit."""
        steps = {1, *(f.step for f in self.enclosing(Kernel).inside(For) if f.dim == d and not f.is_ranged)}
        steps.update(user.whole_points(d) for user in self.result.users if isinstance(user, InKernel))
        return max(-(-points // step) * step for step in steps)

    def verify_interleaved(self, kernel: Kernel) -> None:
        """Check that words are stored whole."""
        if self.interleaved < kernel.parallel:
            self.fail(f"interleaved = {self.interleaved}, which is a parallel dimension", code="MLC0151")
        for user in self.result.users:
            around = user.parent_op
            if isinstance(user, LoadScratch | Pack):
                user.fail(f"accesses a panel that is interleaved along d{self.interleaved}", code="MLC0151")
            while isinstance(user, StoreScratch) and isinstance(around, For) and around.dim != self.interleaved:
                around = around.parent_op
            if isinstance(user, StoreScratch) and (not isinstance(around, For) or around.step % self.terms_of_word):
                user.fail(f"stores points along d{self.interleaved} that are no whole words, to a panel that is "
                          "interleaved", code="MLC0151")

    def interpret(self, frame: Frame) -> Any:
        state, type = self.activation(frame), self.result.type
        here = self.located_dims()
        blocks = [state.coordinates[d].ravel() if d in here else np.arange(state.extents[d]) for d in type.dims]
        elements = np.zeros([b.size for b in blocks], to_numpy(type.dtype))
        return ScratchBuffer(elements, tuple(int(b[0]) if b.size else 0 for b in blocks), type.dims)


class StoreScratch(InKernel, name="loop.store_scratch", pure=False):
    """scratch[p] = value[p]"""

    value: Value
    scratch: Value

    def infer(self) -> tuple[Type, ...]:
        value, type = as_tile(self, self.value), as_scratch(self, self.scratch)
        if value.dtype != type.dtype or not {*value.dims} <= {*type.dims}:
            self.fail(f"{value} does not fit {type}", code="MLC0151")
        return ()

    def used_dims(self) -> set[int]:
        return {*self.scratch.type.dims}

    def interpret(self, frame: Frame) -> list[Any]:
        frame[self.scratch].store(self.activation(frame), frame[self.value])
        return []


class Pack(InKernel, name="loop.pack", pure=False):
    """scratch[p] = body(p), for every point p of the blocks of the scratch's dimensions

    Threads that share the scratch also share the work, so the body depends on coordinates and buffers only: it uses no
    tile of its own thread's points, unless that spans no dimension.
    """

    scratch: Value
    body: Region

    def infer(self) -> tuple[Type, ...]:
        type, yielded = as_scratch(self, self.scratch), self.body.block.terminator
        values = yielded.operands
        if not isinstance(yielded, Yield) or len(values) != 1 or self.body.block.args:
            self.fail("the body takes nothing and yields one tile", code="MLC0151")
        value = as_tile(self, values[0])
        if value.dtype != type.dtype or not {*value.dims} <= {*type.dims}:
            self.fail(f"{value} does not fit {type}", code="MLC0151")
        return ()

    def used_dims(self) -> set[int]:
        return {*self.scratch.type.dims}

    def verify_op(self) -> None:
        super().verify_op()
        schedule = self.enclosing(Kernel).schedule
        if schedule.tiles_per_cta and not schedule.threads_per_cta:
            self.fail(f"the threads of a CTA tile fill a panel: threads_per_cta = [] arranges none of "
                      f"tiles_per_cta = {schedule.tiles_per_cta}", code="MLC0151")
        here = {r for op in self.body.block for r in op.results}
        for op in self.body.block:
            if not op.terminator and (not isinstance(op, InKernel) or not op.pointwise):
                op.fail("is not pointwise, as operations within loop.pack must be", code="MLC0151")
            for v in op.operands:
                if isinstance(v.type, ScratchType) or (isinstance(v.type, TileType) and v.type.dims and v not in here):
                    op.fail(f"uses {v.type} of points that belong to another thread", code="MLC0151")

    def interpret(self, frame: Frame) -> list[Any]:
        value, = frame.run(self.body)
        frame[self.scratch].store(self.activation(frame), value)
        return []


class LoadScratch(InKernel, name="loop.load_scratch", pure=False):
    """result[p] = scratch[p]"""

    scratch: Value

    def infer(self) -> Type:
        type = as_scratch(self, self.scratch)
        return TileType(tuple(sorted(type.dims)), type.dtype)

    def used_dims(self) -> set[int]:
        return {*self.scratch.type.dims}

    def interpret(self, frame: Frame) -> Any:
        return frame[self.scratch].load(self.activation(frame))
