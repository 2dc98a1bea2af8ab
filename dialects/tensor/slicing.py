"""tensor, slicing: operations that take elements by position along axes, and that place tensors in larger ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mlc.dialects.tensor import parts
from mlc.dialects.tensor.base import (
    Array,
    CopyOp,
    SizedOp,
    along_axes,
    full,
    is_splat,
    less,
    lifted,
    select,
    shape_text,
    splat,
    unbroadcast,
)
from mlc.dialects.tensor.binary import Add
from mlc.dialects.tensor.iteration import IndexingMap, IterationDomain, moved
from mlc.dialects.tensor.shape import BroadcastTo, Reshape, Transpose
from mlc.dialects.tensor.sharding_rule import ShardingRule, by_axes
from mlc.dialects.tensor.source import Full
from mlc.dialects.tensor.traits import Cost
from mlc.ir import sizes
from mlc.ir.core import Op, Value
from mlc.ir.rewrite import rewrite
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType, i1


class Slice(SizedOp, CopyOp, name="tensor.slice"):
    """result[i] = x[starts + i * steps], along each axis the indices of range(start, stop, step)

    Starts and stops are within x unless they are equal; with a negative step, a stop may be -1.

        %r = tensor.slice %x {starts = [0, 1], stops = ["B", 6], steps = [1, 2]} : (tensor<Bx7xf32>) -> tensor<Bx3xf32>
    """

    on_parts = parts.each_part
    x: Value
    starts: tuple[Dim, ...]
    stops: tuple[Dim, ...]
    steps: tuple[int, ...]
    cost = Cost.CHEAP
    moves_elements = True

    def infer(self) -> TensorType:
        source, = self.tensors()
        if not len(self.starts) == len(self.stops) == len(self.steps) == source.rank:
            self.refuse(f"{source.rank} dimensions need as many starts, stops and steps", "MLC0117")
        for axis, bounds in enumerate(zip(source.shape, self.starts, self.stops, self.steps)):
            self._check(axis, *bounds)
        return source.with_shape(length(*r) for r in zip(self.starts, self.stops, self.steps))

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        return [tuple(moved(e, step, start) for e, step, start in zip(at, self.steps, self.starts))]

    def on_shard(self, operands: Sequence[Value], shape: tuple[Dim, ...]) -> Op:
        """Axes that are divided are whole."""
        stops = tuple(n if n != whole else stop for n, whole, stop in zip(shape, self.result.type.shape, self.stops))
        return self.with_operands(operands, stops=stops)

    def _check(self, axis: int, n: Dim, start: Dim, stop: Dim, step: int) -> None:
        if step == 0:
            self.refuse(f"axis {axis}: the step is 0", "MLC0116")
        for size, message in self._within(axis, n, start, stop, step):
            if less(size, 0):
                self.refuse(message, "MLC0116", symbols=sizes.symbols(size))

    def _within(self, axis: int, n: Dim, start: Dim, stop: Dim, step: int) -> Iterator[tuple[Dim, str]]:
        """Sizes that must be non-negative for start:stop:step to lie within n, each with a message."""
        low, high, end = (start, stop, n) if step > 0 else (stop + 1, start + 1, n)
        if low != high:
            message = f"axis {axis}: {start}:{stop}:{step} does not lie within size {n}"
            yield from ((size, message) for size in (low, high - low, end - high))

    def size_constraints(self) -> Iterator[tuple[Dim, str]]:
        for axis, bounds in enumerate(zip(self.x.type.shape, self.starts, self.stops, self.steps)):
            yield from self._within(axis, *bounds)

    def subscript(self, size: Callable[[Dim], int]) -> tuple[Any, ...]:
        """The key that picks the elements of an array; it ends in an ellipsis, so that the result is a view."""
        return (*(_as_slice(range(size(start), size(stop), step))
                  for start, stop, step in zip(self.starts, self.stops, self.steps)), ...)

    def compute(self, size: Any, x: Any) -> Array:
        return np.asarray(x[self.subscript(size)])

    def vjp(self, ct: Value) -> list[Value | None]:
        backwards = tuple(a for a, step in enumerate(self.steps) if step < 0)
        if backwards:
            ct = Reverse(ct, backwards).result
        low, high = list[Dim](), list[Dim]()
        for n, start, step, count in zip(self.x.type.shape, self.starts, self.steps, ct.type.shape):
            first = start if step > 0 else start + (count - 1) * step
            low.append(0 if isinstance(count, int) and not count else first)       # no elements may begin anywhere
            high.append(n - low[-1] - count * abs(step))
        return [pad(ct, low, high, [abs(step) - 1 for step in self.steps])]

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        return Slice(operands[0], (0, *self.starts), (batch_size, *self.stops), (1, *self.steps)).result


def _as_slice(r: range) -> slice:
    return slice(r.start, r.stop if r.stop >= 0 else None, r.step) if len(r) else slice(0, 0)


class Pad(SizedOp, CopyOp, name="tensor.pad"):
    """result[low + i * (interior + 1)] = x[i], and value elsewhere

    Each axis gets `low` copies of the value, then each element of x followed by `interior` copies, then `high` copies.
    A negative `high`, down to -interior, removes copies that follow the last element.

        %r = tensor.pad %x, %v {low = [1], high = [0], interior = [1]} : (tensor<3xi8>, tensor<i8>) -> tensor<7xi8>
    """

    on_parts = parts.each_part
    x: Value
    value: Value
    low: tuple[Dim, ...]
    high: tuple[Dim, ...]
    interior: tuple[int, ...]
    format = "$x `,` $value attr-dict `:` functional-type"
    cost = Cost.CHEAP
    moves_elements = True

    def padded(self) -> list[int]:
        """The axes along which there is padding."""
        return [a for a, n in enumerate(zip(self.low, self.high, self.interior)) if n != (0, 0, 0)]

    def sharding_rule(self) -> ShardingRule:
        return by_axes(self, *self.padded())

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        """Along the other axes the element at the same place."""
        padded = self.padded()
        return [tuple(None if a in padded else e for a, e in enumerate(at)), ()]

    def infer(self) -> TensorType:
        source, value = self.tensors()
        if not len(self.low) == len(self.high) == len(self.interior) == source.rank:
            self.refuse(f"{source.rank} dimensions need as many low, high and interior", "MLC0117")
        if value.rank:
            self.refuse(f"the value has shape {shape_text(value.shape)}, not []", "MLC0117")
        if value.dtype != source.dtype:
            self.refuse(f"element types differ: {source.dtype} and {value.dtype}", "MLC0112")
        for axis, (low, high, interior) in enumerate(zip(self.low, self.high, self.interior)):
            if interior < 0 or less(low, 0) or less(high, -interior):
                self.refuse(f"axis {axis}: negative padding low {low}, high {high}, interior {interior}", "MLC0116",
                            symbols=sizes.symbols(low, high),
                            hint="take a slice to remove elements")
        return source.with_shape(low + d * (interior + 1) + high for d, low, high, interior in zip(
            source.shape, self.low, self.high, self.interior))

    def size_constraints(self) -> Iterator[tuple[Dim, str]]:
        for axis, (low, high, interior) in enumerate(zip(self.low, self.high, self.interior)):
            message = f"axis {axis}: negative padding low {low}, high {high}, interior {interior}"
            yield from ((low, message), (high + interior, message))

    def compute(self, size: Any, x: Any, value: Any) -> Array:
        low, high = [size(d) for d in self.low], [size(d) for d in self.high]
        shape = [a + n * (k + 1) + b for n, a, b, k in zip(x.shape, low, high, self.interior)]
        out = np.full(shape, value, x.dtype)
        if x.size:
            out[tuple(slice(a, a + (n - 1) * (k + 1) + 1, k + 1)
                      for n, a, k in zip(x.shape, low, self.interior))] = x
        return out

    def vjp(self, ct: Value) -> list[Value | None]:
        steps = tuple(k + 1 for k in self.interior)
        shape = self.x.type.shape
        cut = [min(high, 0) if isinstance(high, int) else 0 for high in self.high]
        # an axis of no elements would end before its first one: the copies that were cut off are put back first
        again = tuple(0 if isinstance(n, int) else -high for n, high in zip(shape, cut))
        stops = tuple(a + n * step + (high if isinstance(n, int) and n else 0)
                      for n, a, step, high in zip(shape, self.low, steps, cut))
        none = (0,) * len(again)
        whole = Pad(ct, full(0, ct, ()), none, again, none).result if any(again) else ct
        inside = Full(False, self.x.type.shape, i1).result
        outside = Pad(inside, Full(True, (), i1).result, self.low, self.high, self.interior).result
        rest = select(outside, ct, full(0, ct))
        return [Slice(whole, self.low, stops, steps).result, unbroadcast(rest, self.value)]

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        """With a batched value, pads with zeros and then selects the value of each batch element in the padding."""
        (x, value), lead = operands, (0,) * batched[0]
        low, high, interior = (*lead, *self.low), (*lead, *self.high), (*lead, *self.interior)
        if not batched[1]:
            return Pad(x, value, low, high, interior).result
        inside = Full(False, self.x.type.shape, i1).result
        outside = Pad(inside, Full(True, (), i1).result, self.low, self.high, self.interior).result
        return select(outside, lifted(value, len(self.low) + 1), Pad(x, full(0, x), low, high, interior).result)


class Concat(CopyOp, name="tensor.concat"):
    """result[..., i, ...] = xs[k][..., i - the sizes before k, ...] along axis

        %r = tensor.concat %x, %y {axis = 0} : (tensor<Bx3xf32>, tensor<2x3xf32>) -> tensor<(B + 2)x3xf32>
    """

    on_parts = parts.each_part
    xs: tuple[Value, ...]
    axis: int
    vmap = along_axes
    cost = Cost.CHEAP
    moves_elements = True

    def sharding_rule(self) -> ShardingRule:
        return by_axes(self, self.axis)

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        """Along the other axes the element at the same place."""
        return [tuple(None if a == self.axis else e for a, e in enumerate(at))] * len(self.xs)

    def infer(self) -> TensorType:
        types = self.tensors()
        if not types:
            self.refuse("nothing to concatenate", "MLC0117")
        first = types[0]
        self.check_axis(self.axis, first.rank)
        total: Dim = 0
        for i, t in enumerate(types):
            if t.dtype != first.dtype:
                self.refuse(f"element types differ: {first.dtype} and {t.dtype}", "MLC0112",
                            hint="cast the operands to one type first")
            if t.rank != first.rank or any(d != e for a, (d, e) in enumerate(zip(first.shape, t.shape))
                                           if a != self.axis):
                self.refuse(f"shape {shape_text(t.shape)} of operand {i} does not fit {shape_text(first.shape)} "
                            f"outside axis {self.axis}", "MLC0115",
                            symbols=sizes.differing(t.shape[: self.axis], first.shape[: self.axis])
                                    or sizes.differing(t.shape[self.axis + 1:], first.shape[self.axis + 1:]))
            total = total + t.shape[self.axis]
        return first.with_shape(total if a == self.axis else d for a, d in enumerate(first.shape))

    def ref(self, *xs: Any) -> Array:
        return np.concatenate(xs, self.axis)

    def vjp(self, ct: Value) -> list[Value | None]:
        at, out = 0, list[Value | None]()
        for x in self.xs:
            end = at + x.type.shape[self.axis]
            starts = tuple(at if a == self.axis else 0 for a in range(ct.type.rank))
            stops = tuple(end if a == self.axis else d for a, d in enumerate(ct.type.shape))
            out.append(Slice(ct, starts, stops, (1,) * ct.type.rank).result)
            at = end
        return out


class Reverse(CopyOp, name="tensor.reverse"):
    """result[..., i, ...] = x[..., n - 1 - i, ...] along each of axes

        %r = tensor.reverse %x {axes = [1]} : tensor<Bx3xf32>
    """

    on_parts = parts.each_part
    x: Value
    axes: tuple[int, ...]
    vmap = along_axes
    cost = Cost.CHEAP
    moves_elements = True

    def infer(self) -> TensorType:
        source, = self.tensors()
        self.check_axes(self.axes, source.rank)
        return source

    def ref(self, x: Any) -> Array:
        return np.flip(x, self.axes)

    def vjp(self, ct: Value) -> list[Value | None]:
        return [Reverse(ct, self.axes).result]

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        return [tuple(moved(e, -1, n - 1) if a in self.axes else e
                      for a, (e, n) in enumerate(zip(at, self.x.type.shape)))]


def length(start: Dim, stop: Dim, step: int) -> Dim:
    """The number of indices in range(start, stop, step), which must be non-negative."""
    return (stop - start + step - 1) // step if step > 0 else (start - stop - step - 1) // -step


def pad(x: Value, low: Sequence[Dim], high: Sequence[Dim], interior: Sequence[int]) -> Value:
    """x padded with zeros; no operation is built if all amounts are 0."""
    if not any(d != 0 for d in (*low, *high, *interior)):
        return x
    return Pad(x, full(0, x), tuple(low), tuple(high), tuple(interior)).result


# -- rewrites ---------------------------------------------------------------------------------------------------------
@rewrite(Slice)
def slice_everything(op: Slice) -> Value | None:
    """slice(x, 0:n:1) == x"""
    same = op.result.type == op.x.type and all(s == 0 for s in op.starts) and all(s == 1 for s in op.steps)
    return op.x if same else None


@rewrite(Slice)
def slice_twice(op: Slice) -> Value | None:
    """slice(slice(x, a:b:s), c:d:t) == slice(x, a + c s : a + d s : s t), for positive steps"""
    inner = op.x.op
    if not isinstance(inner, Slice) or any(s < 0 for s in (*op.steps, *inner.steps)):
        return None
    starts, stops = list[Dim](), list[Dim]()
    for a, s, c, d, t, n in zip(inner.starts, inner.steps, op.starts, op.stops, op.steps, op.result.type.shape):
        if s > 1 and not isinstance(n, int):
            return None
        starts.append(a + c * s)
        stops.append(a + d if s == 1 else starts[-1] + (n - 1) * s * t + 1 if n != 0 else starts[-1])
    return Slice(inner.x, tuple(starts), tuple(stops), tuple(s * t for s, t in zip(inner.steps, op.steps))).result


@rewrite(Pad)
def pad_with_nothing(op: Pad) -> Value | None:
    """pad(x, v, 0, 0, 0) == x"""
    return op.x if all(d == 0 for d in (*op.low, *op.high, *op.interior)) else None


@rewrite(Concat)
def concat_of_one(op: Concat) -> Value | None:
    """concat(x) == x, after operands without elements along the axis are dropped"""
    kept = tuple(x for x in op.xs if x.type.shape[op.axis] != 0) or op.xs[:1]
    if len(kept) == 1:
        return kept[0]
    return Concat(kept, op.axis).result if len(kept) < len(op.xs) else None


@rewrite(Reverse)
def reverse_short(op: Reverse) -> Value | None:
    """reverse(x, axes) == reverse(x, those axes with more than one element), and reverse(x, []) == x"""
    kept = tuple(a for a in op.axes if op.x.type.shape[a] not in (0, 1))
    if not kept:
        return op.x
    return Reverse(op.x, kept).result if len(kept) < len(op.axes) else None


@rewrite(Reverse)
def reverse_twice(op: Reverse) -> Value | None:
    """reverse(reverse(x, a), b) == reverse(x, axes in exactly one of a and b)"""
    inner = op.x.op
    if not isinstance(inner, Reverse):
        return None
    axes = tuple(sorted({*op.axes} ^ {*inner.axes}))
    return Reverse(inner.x, axes).result if axes else inner.x


@rewrite(Reshape, Transpose, BroadcastTo, Slice, Reverse)
def copy_of_splat(op: CopyOp) -> Value | None:
    """reshape(full(c)) == full(c) of the new shape, and so for transpose, broadcast_to, slice, reverse"""
    if splat(op.operands[0]) is None:
        return None
    source = op.operands[0].op
    assert isinstance(source, Full)
    return Full(source.value, op.results[0].type.shape, source.dtype).result


@rewrite(Add)
def add_of_padded(op: Add) -> Value | None:
    """pad(x, 0) + pad(y, 0) == pad(x + y, 0), for padding that is the same and not used otherwise"""
    a, b = op.lhs.op, op.rhs.op
    if not (isinstance(a, Pad) and isinstance(b, Pad) and a is not b and a.x.type == b.x.type):
        return None
    if (a.low, a.high, a.interior) != (b.low, b.high, b.interior) or len(a.result.uses) > 1 or len(b.result.uses) > 1:
        return None
    if not (is_splat(a.value, 0) and is_splat(b.value, 0)):
        return None
    return Pad(Add(a.x, b.x).result, a.value, a.low, a.high, a.interior).result
