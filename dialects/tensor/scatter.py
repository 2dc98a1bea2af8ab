"""tensor, scatter: updates at computed positions, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.combining import CombiningKind
from mlc.dialects.tensor import parts
from mlc.dialects.tensor.base import (
    Array,
    TensorOp,
    accumulator,
    along_axes,
    cast,
    compare,
    full,
    is_splat,
    kind,
    less,
    reshape,
    rounded,
    select,
    shape_text,
    with_batch_axis,
)
from mlc.dialects.tensor.index import Take, TakeAlong, along, in_block, positions, spread
from mlc.dialects.tensor.iteration import IndexingMap, IterationDomain
from mlc.dialects.tensor.sharding_rule import ShardingRule, labelled
from mlc.dialects.tensor.slicing import Slice
from mlc.dialects.tensor.source import Iota
from mlc.dialects.tensor.traits import Cost, Iteration
from mlc.ir import sizes
from mlc.ir.core import Value
from mlc.ir.sizes import Dim, product
from mlc.ir.types import TensorType, i64, to_numpy

UPDATES = ("set", "add", "mul", "max", "min")
"""Kinds of updates: replace the old value, or combine with it."""


class Scattering(TensorOp):
    """x with updates of a `kind` along an axis, in ascending order of their positions.

    Floats are combined in the accumulator type and rounded at the end. The updates of a row go to one row of x, so rows
    are independent. Indices out of range, including negative ones, raise UserIndexError.
    """

    x: Value
    indices: Value
    updates: Value
    axis: int
    kind: str = "add"
    on_parts = parts.each_part
    format = "$x `,` $indices `,` $updates attr-dict `:` functional-type"
    cost = Cost.EXPENSIVE
    iteration = Iteration.SCATTER
    moves_elements = False
    checked_operand = 1

    @property
    def combining(self) -> CombiningKind | None:
        """The combining kind of updates; None if they replace the old value."""
        return None if self.kind == "set" else CombiningKind.of(self.kind, self.x.type.dtype)

    def block_axis(self) -> int | None:
        return self.axis if self.kind == "add" else None

    def on_block(self, operands: Sequence[Value], start: Value) -> Value:
        x, indices, updates = operands
        at, here = in_block(indices, self.x.type.shape[self.axis], x.type.shape[self.axis], start)
        kept = select(self.for_each(here, updates), updates, full(0, updates))
        return type(self)(x, at, kept, self.axis, self.kind).result

    def for_each(self, here: Value, updates: Value) -> Value:
        """A fact about each index, for each element of the updates."""
        raise NotImplementedError

    def iterator_types(self) -> tuple[str, ...]:
        return tuple(self.iteration.iterator_type if d == self.axis else "parallel" for d in range(self.x.type.rank))

    def home(self, domain: IterationDomain) -> tuple[Dim, ...]:
        return domain.points

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        """x is read at the element itself."""
        return (at if at == domain.points else None, None, None)

    def operand_types(self) -> tuple[TensorType, TensorType, TensorType]:
        x, indices, updates = self.tensors()
        if kind(indices.dtype) != "int":
            self.refuse(f"the indices have {indices.dtype} elements, not integers", "MLC0113")
        if x.dtype != updates.dtype:
            self.refuse(f"element types differ: {x.dtype} and {updates.dtype}", "MLC0112")
        if self.kind not in UPDATES:
            self.refuse(f"{self.kind} is not one of {', '.join(UPDATES)}", "MLC0116")
        if kind(x.dtype) == "bool" and self.kind != "set":
            self.refuse(f"{self.kind} does not work on i1, only on int and float elements", "MLC0113")
        if kind(x.dtype) == "complex" and self.kind not in ("set", "add"):
            self.refuse(f"{self.kind} is not defined on complex elements, only set and add", "MLC0785")
        self.check_axis(self.axis, x.rank)
        return x, indices, updates

    def combined(self, x: Array, at: Array, updates: Array, others: tuple[Array, ...]) -> Array:
        """x with row i of the updates combined into its row at[i] along the axis, at `others` of the other axes."""
        wide = x.dtype if kind(self.x.type.dtype) != "float" else to_numpy(accumulator(self.x.type.dtype))
        out = np.moveaxis(np.array(x, wide), self.axis, 0)
        with np.errstate(all="ignore"):
            for k, row in zip(at, np.moveaxis(np.asarray(updates, wide), self.axis, 0)):
                old = out[k, *others]
                out[k, *others] = row if self.combining is None else self.combining.combine(old, row)
        return rounded(np.moveaxis(out, 0, self.axis), self.x.type.dtype)

    # -- derivatives, in terms of gathers at the positions ---------------------------------------------------------
    def taken(self, x: Value) -> Value:
        """Gather: the element of a tensor shaped like x at the position of each update."""
        raise NotImplementedError

    def scattered(self, x: Value, updates: Value, kind: str) -> Value:
        """Other updates at the same positions."""
        return type(self)(x, self.indices, updates, self.axis, kind).result

    def vjp(self, ct: Value) -> list[Value | None]:
        dx, updates = getattr(self, f"_vjp_{self.kind}")(ct)
        return [dx, None, updates]

    def _vjp_add(self, ct: Value) -> tuple[Value, Value]:
        return ct, self.taken(ct)

    def _vjp_set(self, ct: Value) -> tuple[Value, Value]:
        """The last update of a position gets its cotangent; x there, and earlier updates, get none."""
        shape, updates = self.x.type.shape, self.updates.type.shape
        nothing = full(0, ct, updates)
        number = self.number()
        last = self.scattered(full(0, number, shape), number, "set")
        kept = compare("eq", self.taken(last), number)
        return self.scattered(ct, nothing, "set"), select(kept, self.taken(ct), full(0, ct))

    def number(self) -> Value:
        """The position of each update along the axes of the indices, as one i64."""
        raise NotImplementedError

    def _vjp_mul(self, ct: Value) -> tuple[Value, Value]:
        """dx: ct times the product of the updates. du: ct * result / u, and if u is 0, ct times the other factors; if
        one of these is 0, it is a factor, too, which makes the second derivative correct."""
        x, u = self.x, self.updates
        one, zero = full(1, x), full(0, x)
        dx = ct * self.scattered(full(1, x, x.type.shape), u, "mul")
        zero_x, zero_u = compare("eq", x, zero), compare("eq", u, zero)
        zeros = self.scattered(cast(zero_x, i64), cast(zero_u, i64), "add")
        nonzero = self.scattered(select(zero_x, one, x), select(zero_u, one, u), "mul")
        sums = self.scattered(select(zero_x, x, zero), select(zero_u, u, full(0, u)), "add")
        count, others = self.taken(zeros), self.taken(nonzero)
        several = select(compare("eq", count, full(2, count)), others * (self.taken(sums) - u), full(0, u))
        at_zero = select(compare("eq", count, full(1, count)), others, several)
        du = self.taken(ct) * select(zero_u, at_zero, self.taken(self.result) / select(zero_u, one, u))
        return dx, du

    def _vjp_max(self, ct: Value) -> tuple[Value, Value]:
        """Divided evenly among ties of x and updates."""
        old, new = compare("eq", self.x, self.result), compare("eq", self.updates, self.taken(self.result))
        count = self.scattered(cast(old, ct.type.dtype), cast(new, ct.type.dtype), "add")
        share = ct / select(compare("eq", count, full(0, ct)), full(1, ct), count)
        return select(old, share, full(0, ct)), select(new, self.taken(share), full(0, ct))

    _vjp_min = _vjp_max


class Scatter(Scattering, name="tensor.scatter"):
    """result[a, k, b] = x[a, k, b] combined with updates[a, i, b] for each i with indices[i] = k, in order

    The transpose of take: a are the axes before axis, and indices may have any number of dimensions.

        %r = tensor.scatter %x, %i, %u {axis = 0} : (tensor<5x3xf32>, tensor<Bxi64>, tensor<Bx3xf32>) -> tensor<5x3xf32>
    """

    def sharding_rule(self) -> ShardingRule:
        """The other axes; the axis itself, if updates are added: each rank adds those of its block; and the updates, if
        they are added to zeros, so that partial results add up."""
        x, indices = ([(side, axis) for axis in range(v.type.rank)] for side, v in zip("xi", self.operands))
        before, after = x[: self.axis], x[self.axis + 1:]
        whole = x if self.kind == "add" else [*before, None, *after]
        return labelled(self, [whole, indices, [*before, *indices, *after]], whole,
                        "add" if self.kind == "add" and is_splat(self.x, 0) else "")

    def for_each(self, here: Value, updates: Value) -> Value:
        return spread(here, self.axis, updates.type.shape)

    def infer(self) -> TensorType:
        x, indices, updates = self.operand_types()
        expected = (*x.shape[: self.axis], *indices.shape, *x.shape[self.axis + 1:])
        if updates.shape != expected:
            self.refuse(f"updates of shape {shape_text(updates.shape)} do not fit {shape_text(expected)}", "MLC0115",
                        symbols=sizes.differing(updates.shape, expected))
        return x

    def ref(self, x: Any, indices: Any, updates: Any) -> Array:
        at = positions(self, x, np.asarray(indices), self.axis).ravel()
        rows = np.reshape(updates, (*x.shape[: self.axis], len(at), *x.shape[self.axis + 1:]))
        return self.combined(x, at, rows, ())

    def taken(self, x: Value) -> Value:
        return Take(x, self.indices, self.axis).result

    def number(self) -> Value:
        count = self.indices.type
        rank = self.updates.type.rank
        shape = [1] * self.axis + list(count.shape) + [1] * (rank - self.axis - count.rank)
        flat = Iota((count.size,), 0, i64).result
        return tensor.BroadcastTo(reshape(flat, shape), self.updates.type.shape).result

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        x, updates = with_batch_axis(batch_size, operands[::2], batched[::2])
        if not batched[1]:
            return Scatter(x, operands[1], updates, self.axis + 1, self.kind).result
        shape = x.type.shape
        line = (*shape[: self.axis + 1], product(self.indices.type.shape), *shape[self.axis + 2:])
        at = along(operands[1], self.axis + 1, line)
        return ScatterAlong(x, at, reshape(updates, line), self.axis + 1, self.kind).result


class ScatterAlong(Scattering, name="tensor.scatter_along"):
    """result[a, k, b] = x[a, k, b] combined with updates[a, i, b] for each i with indices[a, i, b] = k, in order

    The transpose of take_along: a are the axes before axis. Other axes of the updates may be shorter than those of x.

        %r = tensor.scatter_along %x, %i, %u {axis = 0} : (tensor<9xf32>, tensor<Bxi64>, tensor<Bxf32>) -> tensor<9xf32>
    """

    def sharding_rule(self) -> ShardingRule:
        """As of a scatter; other axes are divided only where the updates are as long as x."""
        block = "block" if self.kind == "add" else None
        axes = [block if a == self.axis else a for a in range(self.x.type.rank)]
        updates = [("updates", a) if a == self.axis else a for a in range(self.x.type.rank)]
        return labelled(self, [axes, updates, updates], axes,
                        "add" if self.kind == "add" and is_splat(self.x, 0) else "")

    def for_each(self, here: Value, updates: Value) -> Value:
        return here

    def infer(self) -> TensorType:
        x, indices, updates = self.operand_types()
        if indices.shape != updates.shape:
            self.refuse(f"indices of shape {shape_text(indices.shape)} do not fit updates of shape "
                        f"{shape_text(updates.shape)}", "MLC0115",
                        symbols=sizes.differing(indices.shape, updates.shape))
        if x.rank != indices.rank or any(less(d, 0) for d, _ in self.size_constraints()):
            self.refuse(f"indices of shape {shape_text(indices.shape)} do not fit {shape_text(x.shape)} outside axis "
                        f"{self.axis}", "MLC0115")
        return x

    def size_constraints(self) -> Iterator[tuple[Dim, str]]:
        for a, (n, used) in enumerate(zip(self.x.type.shape, self.updates.type.shape)):
            if a != self.axis:
                yield n - used, f"axis {a}: {used} updates for size {n}"

    def ref(self, x: Any, indices: Any, updates: Any) -> Array:
        at = np.moveaxis(positions(self, x, np.asarray(indices), self.axis), self.axis, 0)
        return self.combined(x, at, np.asarray(updates), np.ix_(*(np.arange(n) for n in at.shape[1:])))

    def taken(self, x: Value) -> Value:
        shape = x.type.shape
        stops = tuple(n if a == self.axis else d for a, (n, d) in enumerate(zip(shape, self.updates.type.shape)))
        if stops != shape:
            x = Slice(x, (0,) * len(shape), stops, (1,) * len(shape)).result
        return TakeAlong(x, self.indices, self.axis).result

    def number(self) -> Value:
        return Iota(self.updates.type.shape, self.axis, i64).result

    vmap = along_axes
