"""tensor, dynamic: slices and updates with run-time start indices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor import parts
from mlc.dialects.tensor.base import (
    Array,
    CopyOp,
    SizedOp,
    broadcast_to,
    cast,
    constant_array,
    kind,
    less,
    reshape,
    shape_text,
    with_batch_axis,
    zeros,
)
from mlc.dialects.tensor.iteration import IndexingMap, IterationDomain
from mlc.dialects.tensor.sharding_rule import ShardingRule, by_axes
from mlc.dialects.tensor.slicing import Slice
from mlc.dialects.tensor.source import Full, Iota, check_shape, size
from mlc.dialects.tensor.traits import Cost, is_pointwise
from mlc.ir import sizes
from mlc.ir.core import Op, Value
from mlc.ir.rewrite import rewrite
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType, i64, ui64


class _Dynamic(CopyOp):
    """Start indices are clamped, so that the slice lies within x."""

    on_parts = parts.each_part
    cost = Cost.CHEAP
    moves_elements = False

    def check_starts(self, starts: Sequence[Value], x: TensorType, piece: Sequence[Dim]) -> None:
        for v in starts:
            if v.type.rank or kind(v.type.dtype) != "int":
                self.refuse(f"a start is {v.type}, not one integer", "MLC0113")
        if not len(starts) == len(piece) == x.rank:
            self.refuse(f"{x.rank} dimensions need as many starts and sizes, found {len(starts)} and {len(piece)}",
                        "MLC0117")
        if any(less(n, d) for n, d in zip(x.shape, piece)):
            self.refuse(f"a piece of {shape_text(piece)} does not fit in {shape_text(x.shape)}", "MLC0115",
                        symbols=sizes.symbols(*(n - d for n, d in zip(x.shape, piece) if less(n, d))))


def slack(x: TensorType, piece: Sequence[Dim]) -> Iterator[tuple[Dim, str]]:
    """Sizes that must be non-negative for a piece of these sizes to fit in x, each with a message."""
    for axis, (n, d) in enumerate(zip(x.shape, piece)):
        yield n - d, f"axis {axis}: a piece of {d} does not fit in size {n}"


def inside(x: Array, starts: Sequence[Any], piece: Sequence[int]) -> tuple[slice, ...]:
    """The piece of x as slices, with clamped starts."""
    at = (max(0, min(int(s), n - d)) for s, n, d in zip(starts, x.shape, piece))
    return tuple(slice(a, a + d) for a, d in zip(at, piece))


class DynamicSlice(SizedOp, _Dynamic, name="tensor.dynamic_slice"):
    """result[i] = x[start + i], where start = max(0, min(starts, the size of x - shape)) along each axis

        %r = tensor.dynamic_slice %x, %i {shape = [2]} : (tensor<5xf32>, tensor<i64>) -> tensor<2xf32>
    """

    x: Value
    starts: tuple[Value, ...]
    shape: tuple[Dim, ...]

    def sharding_rule(self) -> ShardingRule:
        """The axes that the piece has whole."""
        return by_axes(self, *(a for a, (n, d) in enumerate(zip(self.x.type.shape, self.shape)) if n != d))

    def on_shard(self, operands: Sequence[Value], shape: tuple[Dim, ...]) -> Op:
        return self.with_operands(operands, shape=shape)

    def infer(self) -> TensorType:
        x, *_ = self.tensors()
        check_shape(self, self.shape)
        self.check_starts(self.starts, x, self.shape)
        return x.with_shape(self.shape)

    def fold(self) -> Value | Array | None:
        """A slice as large as x is x, wherever it is to start."""
        found = super().fold()
        return self.x if found is None and self.shape == self.x.type.shape else found

    def size_constraints(self) -> Iterator[tuple[Dim, str]]:
        return slack(self.x.type, self.shape)

    def compute(self, size: Any, x: Any, *starts: Any) -> Array:
        return np.asarray(x[inside(x, starts, [size(d) for d in self.shape])])

    def vjp(self, ct: Value) -> list[Value | None]:
        return [DynamicUpdateSlice(zeros(self.x), ct, self.starts).result, *(None for _ in self.starts)]

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        """With batched starts, gathers elements along one axis after the other."""
        x, starts = operands[0], [None if own else at for at, own in zip(operands[1:], batched[1:])]
        shape = [n if at is None else d for n, d, at in zip(self.x.type.shape, self.shape, starts)]
        if batched[0]:
            x = DynamicSlice(x, known_starts([None, *starts]), (batch_size, *shape)).result
        else:
            x = broadcast_to(DynamicSlice(x, known_starts(starts), tuple(shape)).result, (batch_size, *shape))
        for axis, at in enumerate(starts, 1):
            if at is None:
                index = places(operands[axis], axis, x.type.shape, self.shape[axis - 1])
                x = tensor.TakeAlong(x, index, axis).result
        return x


class DynamicUpdateSlice(_Dynamic, name="tensor.dynamic_update_slice"):
    """result[i] = update[i - start] if i - start is within update, else x[i]; start as in dynamic_slice

        %r = tensor.dynamic_update_slice %x, %u, %i : (tensor<5xf32>, tensor<2xf32>, tensor<i64>) -> tensor<5xf32>
    """

    x: Value
    update: Value
    starts: tuple[Value, ...]

    def sharding_rule(self) -> ShardingRule:
        """The axes that the piece has whole."""
        shapes = zip(self.x.type.shape, self.update.type.shape)
        return by_axes(self, *(a for a, (n, d) in enumerate(shapes) if n != d))

    def infer(self) -> TensorType:
        x, update, *_ = self.tensors()
        if x.dtype != update.dtype:
            self.refuse(f"element types differ: {x.dtype} and {update.dtype}", "MLC0112")
        self.check_starts(self.starts, x, update.shape)
        return x

    def size_constraints(self) -> Iterator[tuple[Dim, str]]:
        return slack(self.x.type, self.update.type.shape)

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        """x is read at the element itself, even if that is replaced."""
        return (at, *(None for _ in self.operands[1:]))

    def fold(self) -> Value | Array | None:
        """A piece as large as x takes the place of all of it, wherever it is to start."""
        found = super().fold()
        return self.update if found is None and self.update.type.shape == self.x.type.shape else found

    def reads_own_piece(self) -> bool:
        """Whether all else that reads x reads the piece that is replaced, an element where it is replaced."""
        return all(user is self or (isinstance(user, DynamicSlice) and user.starts == self.starts
                                    and self._is_read_where_replaced(user)) for user in self.x.users)

    def _is_read_where_replaced(self, piece: Op) -> bool:
        """Whether an element of a piece only has a part in the element that replaces it."""
        work, known = [piece], {piece}
        while work:
            value = work.pop().results[0]
            if value.type.shape != self.update.type.shape:
                return False
            for user in value.users:
                if user is self and user.operands.count(value) == 1 and user.operands[1] is value:
                    continue
                if user is self or not is_pointwise(user):
                    return False
                if user not in known:
                    known.add(user)
                    work.append(user)
        return True

    def ref(self, x: Any, update: Any, *starts: Any) -> Array:
        out = np.array(x)
        out[inside(x, starts, update.shape)] = update
        return out

    def vjp(self, ct: Value) -> list[Value | None]:
        of_update = DynamicSlice(ct, self.starts, self.update.type.shape).result       # before ct may be written over
        of_x = DynamicUpdateSlice(ct, zeros(self.update), self.starts).result
        return [of_x, of_update, *(None for _ in self.starts)]

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        """With batched starts, scatters elements along one axis after the other."""
        x, update = with_batch_axis(batch_size, operands[:2], batched[:2])
        starts = [None if own else at for at, own in zip(operands[2:], batched[2:])]
        own = [axis for axis, at in enumerate(starts, 1) if at is None]
        return _put(x, update, operands[2:], own, known_starts([None, *starts]))


# -- starts of each batch element ------------------------------------------------------------------------------------
def known_starts(starts: Sequence[Value | None]) -> tuple[Value, ...]:
    """The starts, with 0 in place of None."""
    return tuple(Full(0, (), i64).result if at is None else at for at in starts)


def places(starts: Value, axis: int, shape: Sequence[Dim], d: Dim) -> Value:
    """Positions of the d elements of each piece along an axis of `shape`, broadcast over the other axes."""
    if starts.type.dtype != ui64:
        starts = cast(starts, i64)
    starts = tensor.Minimum(starts, size(shape[axis] - d, starts.type.dtype)).result
    starts = tensor.Maximum(cast(starts, i64), Full(0, (), i64).result).result
    at = reshape(starts, (shape[0], 1)) + Iota((1, d), 1, i64).result
    at = reshape(at, (shape[0], *(d if a == axis else 1 for a in range(1, len(shape)))))
    return broadcast_to(at, (*shape[:axis], d, *shape[axis + 1:]))


def _put(x: Value, update: Value, starts: Sequence[Value], own: Sequence[int], shared: tuple[Value, ...]) -> Value:
    """x updated at starts that batch elements have of their own along the axes `own`, and share along the others.

    If a piece is shorter than x along other axes, the rows of x along the first of `own` are updated and written back.
    """
    if not own:
        return DynamicUpdateSlice(x, update, shared).result
    axis, *rest = own
    index = places(starts[axis - 1], axis, x.type.shape, update.type.shape[axis])
    if update.type.shape != index.type.shape:
        update = _put(tensor.TakeAlong(x, index, axis).result, update, starts, rest, shared)
    return tensor.ScatterAlong(x, index, update, axis, "set").result


@rewrite(DynamicSlice)
def slice_at_known_start(op: DynamicSlice) -> Value | None:
    """dynamic_slice(x, c) == slice(x, c : c + shape), for a constant c, clamped"""
    constants = [constant_array(v) for v in op.starts]
    slack = [n - d for n, d in zip(op.x.type.shape, op.shape)]
    if any(c is None or not isinstance(most, int) for c, most in zip(constants, slack)):
        return None
    at = tuple(max(0, min(int(c), most)) for c, most in zip(constants, slack))  # type: ignore[arg-type]
    stops = tuple(a + d for a, d in zip(at, op.shape))
    return Slice(op.x, at, stops, (1,) * len(at)).result
