"""Computations on tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.combining import KINDS, CombiningKind
from mlc.dialects.loop.access import as_tile, check_number
from mlc.dialects.loop.kernel import For, InKernel, Kernel
from mlc.dialects.loop.types import TileType, spanned, union
from mlc.dialects.tensor.orders import mma, tf32
from mlc.ir.affine import AffineMap
from mlc.ir.core import Region, ResultType, Value
from mlc.ir.exact import fma
from mlc.ir.types import FloatType, IntType, Type, bf16, f16, f32, i1, index, to_numpy

if TYPE_CHECKING:
    from mlc.ir.interp import Frame



class Index(InKernel, name="loop.index", pure=True):
    """result[p] = map(p), a number computed from the coordinates of the point"""

    pointwise = True
    tiles: tuple[Value, ...]
    map: AffineMap

    def infer(self) -> Type:
        check_number(self, self.map, self.tiles)
        return TileType(spanned(self.map.leaves, self.tiles), index)

    def maps(self) -> tuple[AffineMap, ...]:
        return (self.map,)

    def interpret(self, frame: Frame) -> Any:
        state = self.activation(frame)
        value = state.evaluate(self.map.result, frame.all(self.tiles))
        return np.broadcast_to(np.asarray(value, np.int64), state.shape(self.result.type.dims))


class InBounds(InKernel, name="loop.in_bounds", pure=True):
    """result[p] = coordinate dim of p < extent of dim: false for points outside the domain"""

    pointwise = True
    dim: int

    def infer(self) -> Type:
        return TileType((self.dim,), i1)

    def used_dims(self) -> set[int]:
        return {self.dim}

    def interpret(self, frame: Frame) -> Any:
        return self.activation(frame).inside((self.dim,))


class Full(InKernel, name="loop.full", pure=True):
    """result[p] = value"""

    pointwise = True
    value: int | float | bool
    type: ResultType

    def infer(self) -> Type:
        type = as_tile(self, self.results[0])
        if isinstance(type.dtype, IntType) and not self.in_range(type.dtype.width):
            self.fail(f"{self.value} is not a value of {type.dtype}", code="MLC0151")
        return type

    def in_range(self, width: int) -> bool:
        """Whether the value is a signed integer of `width` bits; one bit is true or false."""
        if width == 1:
            return self.value in (0, 1)
        whole = isinstance(self.value, int) or self.value.is_integer()
        return whole and -(1 << (width - 1)) <= self.value < 1 << (width - 1)

    def interpret(self, frame: Frame) -> Any:
        type = self.result.type
        return np.full(self.activation(frame).shape(type.dims), self.value, to_numpy(type.dtype))

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        from mlc.ir.printer import float_text
        dtype = self.result.type.dtype if self.results else None
        if name == "value" and isinstance(dtype, FloatType):
            return f"{float_text(value, dtype)} : {dtype}"
        return super().attr_text(name, value, generic)


class Map(InKernel, name="loop.map", pure=True):
    """result[p] = body(tiles[p]...), scalar by scalar"""

    pointwise = True
    tiles: tuple[Value, ...]
    body: Region

    def infer(self) -> tuple[Type, ...]:
        block = self.body.block
        if tuple(a.type for a in block.args) != tuple(as_tile(self, v).dtype for v in self.operands):
            self.fail("the body's arguments are not the elements of the tiles", code="MLC0151")
        dims = union(self.operands)
        return tuple(TileType(dims, v.type) for v in block.terminator.operands)

    def verify_op(self) -> None:
        super().verify_op()
        here = {*self.body.block.args, *(r for op in self.body.block for r in op.results)}
        for op in self.body.block:
            if (not op.terminator and (not op.pure or op.regions)) or not {*op.operands} <= here:
                op.fail("is not arithmetic on elements of the map's tiles", code="MLC0151")

    def interpret(self, frame: Frame) -> list[Any]:
        shape = self.activation(frame).shape(union(self.operands))
        out = frame.run(self.body, frame.all(self.operands))
        return [np.broadcast_to(np.asarray(x, to_numpy(r.type.dtype)), shape) for x, r in zip(out, self.results)]


class Combining(InKernel, pure=True):
    """An operation that combines points along a dimension, which must not be parallel."""

    def verify_op(self) -> None:
        super().verify_op()
        if self.attrs["dim"] < self.enclosing(Kernel).parallel:
            self.fail(f"combines along d{self.attrs['dim']}, which is a parallel dimension", code="MLC0151")

    def terms(self, frame: Frame) -> tuple[Any, list[Any]]:
        """The sums of a product, its first operand, without the dimension of its terms, and the factors with theirs in
        the domain last."""
        (acc, *factors), dim = frame.all(self.operands), self.attrs["dim"]
        here = int(self.activation(frame).inside((dim,)).sum())
        last = [np.moveaxis(x, dim, -1)[..., :here] for x in factors]
        return np.moveaxis(acc, dim, -1)[..., 0], [np.broadcast_to(x, (*x.shape[:-1], here)) for x in last]


class Reduce(Combining, name="loop.reduce"):
    """result[p] = x combined over the block of dimension dim, as a tree: halves are combined until one is left

    With n lanes: lane[i] = combine(lane[i], lane[i + n/2]) for i < n/2, then the same with n/2. n is a power of two.
    """

    x: Value
    dim: int
    kind: str
    enums = {"kind": KINDS}

    def infer(self) -> Type:
        if self.dim not in as_tile(self, self.x).dims:
            self.fail(f"{self.x.type} does not span d{self.dim}", code="MLC0151")
        return TileType(tuple(d for d in self.x.type.dims if d != self.dim), self.x.type.dtype)

    def verify_op(self) -> None:
        super().verify_op()
        around = self.parent_op
        while isinstance(around, For) and around.dim != self.dim:
            around = around.parent_op
        lanes = around.step if isinstance(around, For) else dict(
            enumerate(self.enclosing(Kernel).schedule.tile)).get(self.dim, 1)
        if lanes & (lanes - 1):
            self.fail(f"blocks of {lanes} points of d{self.dim} are not a power of two", code="MLC0151")

    def ref(self, x: Any) -> Any:
        combine = CombiningKind(self.kind).combine
        while (n := x.shape[self.dim]) > 1:
            low, high = np.split(x, [n // 2], axis=self.dim)
            x = combine(low, high)
        return x


class Fold(Combining, name="loop.fold"):
    """result[p] = acc[p] combined with x at each point of the block of dimension dim, in ascending order"""

    acc: Value
    x: Value
    dim: int
    kind: str
    enums = {"kind": KINDS}

    def infer(self) -> Type:
        acc, x = as_tile(self, self.acc), as_tile(self, self.x)
        if acc.dtype != x.dtype or not {*x.dims} <= {*acc.dims, self.dim}:
            self.fail(f"{x} does not fold into {acc}", code="MLC0151")
        return acc

    def used_dims(self) -> set[int]:
        return {self.dim}

    def interpret(self, frame: Frame) -> Any:
        acc, x, state = frame[self.acc], frame[self.x], self.activation(frame)
        for k in range(int(state.inside((self.dim,)).sum())):
            acc = CombiningKind(self.kind).combine(acc, np.take(x, [min(k, x.shape[self.dim] - 1)], axis=self.dim))
        return acc


class Scan(Combining, name="loop.scan"):
    """result[p] = acc[p] combined with x at each point of the block of dimension dim up to p, in ascending order"""

    acc: Value
    x: Value
    dim: int
    kind: str
    enums = {"kind": KINDS}

    def infer(self) -> Type:
        acc, x = as_tile(self, self.acc), as_tile(self, self.x)
        if acc.dtype != x.dtype or self.dim in acc.dims or not {*x.dims} <= {*acc.dims, self.dim}:
            self.fail(f"{x} does not accumulate onto {acc}", code="MLC0151")
        return TileType(tuple(sorted((*acc.dims, self.dim))), acc.dtype)

    def used_dims(self) -> set[int]:
        return {self.dim}

    def interpret(self, frame: Frame) -> Any:
        acc, x = frame[self.acc], frame[self.x]
        steps = []
        for k in range(self.activation(frame).coordinates[self.dim].size):
            acc = CombiningKind(self.kind).combine(acc, np.take(x, [min(k, x.shape[self.dim] - 1)], axis=self.dim))
            steps.append(acc)
        return np.concatenate(steps, axis=self.dim)


class MultiplyAdd(Combining):
    """A sum of products along the block of dimension dim, ascending: one fused multiply-add each."""

    acc: Value
    lhs: Value
    rhs: Value
    dim: int

    def infer(self) -> Type:
        acc, lhs, rhs = (as_tile(self, v) for v in self.operands)
        if lhs.dtype != acc.dtype or rhs.dtype != acc.dtype:
            self.fail(f"{lhs} and {rhs} do not accumulate into {acc}", code="MLC0151")
        if not {*lhs.dims, *rhs.dims} <= {*acc.dims, self.dim}:
            self.fail(f"{acc} does not span the dimensions of its factors", code="MLC0151")
        return acc

    def used_dims(self) -> set[int]:
        return {self.dim}

    def interpret(self, frame: Frame) -> Any:
        acc, lhs, rhs = frame.all(self.operands)
        floats = isinstance(self.acc.type.dtype, FloatType)
        for k in range(int(self.activation(frame).inside((self.dim,)).sum())):
            a, b = (np.take(x, [min(k, x.shape[self.dim] - 1)], axis=self.dim) for x in (lhs, rhs))
            acc = fma(a, b, acc) if floats else acc + a * b
        return acc


class FoldFma(MultiplyAdd, name="loop.fold_fma"):
    """result[p] = acc[p] + sum over the block of dimension dim, ascending, of lhs * rhs: one fused multiply-add each

    The factors are computed at each point, as the operand of a fold is; contract is for those that blocks share.
    """


class Contract(MultiplyAdd, name="loop.contract"):
    """result[p] = acc[p] + sum over the block of dimension dim, ascending, of lhs * rhs: one fused multiply-add each

    If acc spans dim, each of its points has a sum of its own: result[p] = acc[p] + lhs[p] * rhs[p].
    """

    @property
    def in_lanes(self) -> bool:
        """Whether the points of a block have sums of their own."""
        return self.dim in self.acc.type.dims

    def interpret(self, frame: Frame) -> Any:
        if not self.in_lanes:
            return super().interpret(frame)
        acc, lhs, rhs = frame.all(self.operands)
        return fma(lhs, rhs, acc)


class Mma(Combining, name="loop.mma"):
    """result[p] = acc[p] + sum over the block of dimension dim, ascending and in f64, of lhs * rhs, rounded to f32 once

    The factors are bf16 or f16, or f32 truncated to TF32 (10 bits of mantissa), so that every product is exact in f64.
    Tensor cores compute the same up to the last bits.
    """

    acc: Value
    lhs: Value
    rhs: Value
    dim: int

    def infer(self) -> Type:
        acc, lhs, rhs = as_tile(self, self.acc, f32), as_tile(self, self.lhs), as_tile(self, self.rhs)
        if lhs.dtype != rhs.dtype or lhs.dtype not in (bf16, f16, f32):
            self.fail(f"{lhs} and {rhs} are not both of bf16, of f16 or of f32", code="MLC0151")
        if not {*lhs.dims, *rhs.dims} <= {*acc.dims, self.dim} or self.dim in acc.dims:
            self.fail(f"{acc} does not span the dimensions of its factors", code="MLC0151")
        return acc

    def verify_op(self) -> None:
        super().verify_op()
        schedule = self.enclosing(Kernel).schedule
        n, warp = schedule.vector, {d: w for d, w in enumerate(schedule.threads_per_warp) if w > 1}
        m = next((d for d in warp if d != n), -1)
        fits = warp == {m: 8, n: 4} and schedule.tile[m] % 2 == 0 and schedule.adjacent_lanes == 2
        if schedule.mma_warps == 1 and warp and not fits:            # those of warpgroups have a check of their own
            self.fail(f"a thread has 2 x 2 sums of a product of tensor cores: with threads_per_warp = "
                      f"{list(schedule.threads_per_warp)} and tile = {list(schedule.tile)}, there are not 8 threads "
                      f"along rows, with an even tile, and 4 along `vector`, with lanes = 2", code="MLC0151")

    def used_dims(self) -> set[int]:
        return {self.dim}

    def interpret(self, frame: Frame) -> Any:
        acc, factors = self.terms(frame)
        if self.lhs.type.dtype == f32:
            factors = [tf32(x) for x in factors]
        return np.expand_dims(mma(acc, *factors), self.dim)
