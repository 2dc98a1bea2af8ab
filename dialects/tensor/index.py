"""tensor, index: gathers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor import parts
from mlc.dialects.tensor.base import (
    Array,
    TensorOp,
    along_axes,
    batch_axis_first,
    broadcast_to,
    cast,
    compare,
    full,
    kind,
    reshape,
    select,
    shape_text,
    zeros,
)
from mlc.dialects.tensor.iteration import IndexingMap, IterationDomain, aligned
from mlc.dialects.tensor.sharding_rule import ShardingRule, labelled
from mlc.dialects.tensor.traits import Cost, Iteration
from mlc.ir import sizes
from mlc.ir.core import Value
from mlc.ir.diag import UserIndexError
from mlc.ir.rewrite import rewrite
from mlc.ir.sizes import Dim, product
from mlc.ir.types import TensorType, i64


class _Pick(TensorOp):
    """Elements of x at `indices` along an axis. Indices out of range, including negative ones, raise UserIndexError."""

    on_parts = parts.each_part
    x: Value
    indices: Value
    axis: int
    format = "$x `,` $indices attr-dict `:` functional-type"
    cost = Cost.CHEAP
    iteration = Iteration.INDEXED
    moves_elements = False
    checked_operand = 1

    def block_axis(self) -> int | None:
        return None if kind(self.x.type.dtype) == "complex" else self.axis

    def on_block(self, operands: Sequence[Value], start: Value) -> Value:
        x, indices = operands
        at, here = in_block(indices, self.x.type.shape[self.axis], x.type.shape[self.axis], start)
        found: Value = type(self)(x, at, self.axis).result
        nothing = -0.0 if kind(x.type.dtype) == "float" else 0         # -0.0 + x is x, also where x is -0.0
        return select(self.for_each(here, found), found, full(nothing, found))

    def for_each(self, here: Value, found: Value) -> Value:
        """A fact about each index, for each element that is picked."""
        raise NotImplementedError

    @property
    def combines(self) -> str:
        """How results of the blocks of the axis combine: all but one are zeros."""
        return "" if self.block_axis() is None else "or" if kind(self.x.type.dtype) == "bool" else "add"

    def operand_types(self) -> tuple[TensorType, TensorType]:
        x, indices = self.tensors()
        if kind(indices.dtype) != "int":
            self.refuse(f"the indices have {indices.dtype} elements, not integers", "MLC0113")
        self.check_axis(self.axis, x.rank)
        return x, indices

    def checked(self, x: Array, indices: Any) -> Array:
        return positions(self, x, np.asarray(indices), self.axis)


def positions(op: TensorOp, x: Array, indices: Array, axis: int) -> Array:
    """The indices as i64; UserIndexError for the first that is out of range."""
    n = x.shape[axis]
    wrong = np.argwhere(np.atleast_1d((indices < 0) | (indices >= n)))
    if len(wrong):
        at = tuple(int(i) for i in wrong[0])[: indices.ndim]
        where = f" at {list(at)}" if at else ""
        raise UserIndexError(f"{op.name}: index {int(indices[at])}{where} is out of range for size {n} of axis {axis}",
                             code="MLC0340", loc=op.loc)
    return indices.astype(np.int64)


def in_block(indices: Value, whole: Dim, block: Dim, start: Value) -> tuple[Value, Value]:
    """Positions in an axis as those in a block of it, and whether they are there.

    Positions in other blocks become 0. Those that are out of range stay so, and are refused as ever.
    """
    indices = cast(indices, i64)
    local = tensor.Sub(indices, broadcast_to(start, indices.type.shape)).result
    zero = full(0, indices)

    def within(x: Value, n: Dim) -> Value:
        return tensor.And(compare("ge", x, zero), compare("lt", x, full(n, x))).result

    here = within(local, block)
    return select(here, local, select(within(indices, whole), zero, indices)), here


def spread(here: Value, axis: int, shape: Sequence[Dim]) -> Value:
    """A fact about each index, for each element of a tensor that has the axes of the indices from `axis` on."""
    after = len(shape) - axis - here.type.rank
    return broadcast_to(reshape(here, (*[1] * axis, *here.type.shape, *[1] * after)), shape)


class Take(_Pick, name="tensor.take"):
    """result[a, i, b] = x[a, indices[i], b], where a are the axes of x before axis and b those after it

        %r = tensor.take %x, %i {axis = 0} : (tensor<10x3xf32>, tensor<Bxi64>) -> tensor<Bx3xf32>
    """

    def sharding_rule(self) -> ShardingRule:
        """All axes; along that which elements are picked along, each rank picks those of its block."""
        x, indices = ([(side, axis) for axis in range(v.type.rank)] for side, v in zip("xi", self.operands))
        before, after = x[: self.axis], x[self.axis + 1:]
        return labelled(self, [x, indices], [*before, *indices, *after], self.combines)

    def for_each(self, here: Value, found: Value) -> Value:
        return spread(here, self.axis, found.type.shape)

    def infer(self) -> TensorType:
        x, indices = self.operand_types()
        return x.with_shape((*x.shape[: self.axis], *indices.shape, *x.shape[self.axis + 1:]))

    def ref(self, x: Any, indices: Any) -> Array:
        return np.take(x, self.checked(x, indices), self.axis)

    def vjp(self, ct: Value) -> list[Value | None]:
        """dx[a, k, b] = the sum of ct[a, i, b] over the i with indices[i] = k"""
        return [tensor.Scatter(zeros(self.x), self.indices, ct, self.axis, "add").result, None]

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        x, indices = operands
        if not batched[1]:
            return Take(x, indices, self.axis + 1).result
        if not batched[0]:
            return batch_axis_first(Take(x, indices, self.axis).result, self.axis)
        shape = x.type.shape
        line = (*shape[: self.axis + 1], product(self.indices.type.shape), *shape[self.axis + 2:])
        elements = TakeAlong(x, along(indices, self.axis + 1, line), self.axis + 1).result
        return reshape(elements, (batch_size, *self.result.type.shape))


class TakeAlong(_Pick, name="tensor.take_along"):
    """result[a, i, b] = x[a, indices[a, i, b], b], where a are the axes before axis and b those after it

        %r = tensor.take_along %x, %i {axis = 1} : (tensor<Bx3xf32>, tensor<Bx1xi64>) -> tensor<Bx1xf32>
    """

    def sharding_rule(self) -> ShardingRule:
        """All axes; along that which elements are picked along, each rank picks those of its block."""
        axes = range(self.x.type.rank)
        return labelled(self, [[("x", a) if a == self.axis else a for a in axes], axes], axes, self.combines)

    def for_each(self, here: Value, found: Value) -> Value:
        return here

    def infer(self) -> TensorType:
        x, indices = self.operand_types()
        if x.rank != indices.rank or any(
                d != e for a, (d, e) in enumerate(zip(x.shape, indices.shape)) if a != self.axis):
            self.refuse(f"indices of shape {shape_text(indices.shape)} do not fit {shape_text(x.shape)} outside axis "
                        f"{self.axis}", "MLC0115",
                        symbols=sizes.differing(x.shape[: self.axis], indices.shape[: self.axis])
                                or sizes.differing(x.shape[self.axis + 1:], indices.shape[self.axis + 1:]))
        return x.with_shape(indices.shape)

    def picks_in_slice(self, domain: IterationDomain) -> bool:
        """Whether it picks one element of each reduction slice of a domain."""
        return (self.x.type.shape, (self.axis,)) == (domain.shape, domain.reduced) and (
            self.indices.type.shape[self.axis] == 1 and domain.shape[self.axis] != 1)

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        if not self.picks_in_slice(domain) or at != domain.map_of(self.indices.type.shape):
            return (None, None)
        return (domain.in_slice, aligned(self.indices.type.shape, at))

    def ref(self, x: Any, indices: Any) -> Array:
        return np.take_along_axis(x, self.checked(x, indices), self.axis)

    def vjp(self, ct: Value) -> list[Value | None]:
        """dx[a, k, b] = the sum of ct[a, i, b] over the i with indices[a, i, b] = k"""
        return [tensor.ScatterAlong(zeros(self.x), self.indices, ct, self.axis, "add").result, None]

    vmap = along_axes


def along(indices: Value, axis: int, shape: Sequence[Dim]) -> Value:
    """The indices of each batch element, flattened along an axis of `shape` and broadcast over the other axes."""
    row = (shape[0], *(shape[axis] if a == axis else 1 for a in range(1, len(shape))))
    return broadcast_to(reshape(indices, row), shape)


def row_of(indices: Value, axis: int) -> Value | None:
    """The argument of `along` as [batch, positions], if `along` built these indices."""
    op = indices.op
    if not isinstance(op, tensor.BroadcastTo) or op.x.type.rank != indices.type.rank:
        return None
    batch_size, row = indices.type.shape[0], op.x.type.shape
    if row[0] != batch_size or any(d != 1 for a, d in enumerate(row) if a not in (0, axis)):
        return None
    return reshape(op.x, (batch_size, row[axis])) if row[axis] == indices.type.shape[axis] else None


@rewrite(TakeAlong)
def take_of_repeated(op: TakeAlong) -> Value | None:
    """take_along(broadcast_to(x), indices of each element) == take(x, indices), if all batch elements share x"""
    source = op.x.op
    if op.axis == 0 or not isinstance(source, tensor.BroadcastTo) or source.x.type.shape != op.x.type.shape[1:]:
        return None
    if (row := row_of(op.indices, op.axis)) is None:
        return None
    return batch_axis_first(Take(source.x, row, op.axis - 1).result, op.axis - 1)
