"""Constants, and operations that move elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.backends.onnx.writer import Writer, array_type, result, row
from mlc.ir.core import Op
from mlc.ir.sizes import Dim
from mlc.ir.types import ScalarType, TensorType, i64, ui64

LARGEST = 1 << 12
"""Most elements of a constant that another node could compute."""
START = -(1 << 63)
"""The end of a slice that goes backwards to the first element."""


@row("tensor.constant")
def constant(w: Writer, op: Any) -> str:
    """The numbers that it has."""
    return w.constant(op.value, result(op).dtype)


@row("tensor.full")
def full(w: Writer, op: Any) -> str:
    """A number everywhere."""
    return filled(w, op.scalar(), op.shape, result(op).dtype)


def filled(w: Writer, value: Any, shape: Sequence[Dim], dtype: ScalarType) -> str:
    """A number in every element of a shape."""
    number = w.constant(np.asarray(value).reshape(()), dtype)
    return number if not len(shape) else w.expand(number, tuple(shape))


def counted(w: Writer, n: Dim, dtype: ScalarType = i64) -> str:
    """0, 1, ... n - 1"""
    if isinstance(n, int) and n <= LARGEST:
        return w.constant(np.arange(n), dtype)
    line = w.op("Range", [w.constant(0, i64), w.scalar_size(n), w.constant(1, i64)], TensorType((n,), i64))
    return w.cast(line, dtype)


@row("tensor.iota")
def iota(w: Writer, op: Any) -> str:
    """The index along an axis."""
    return along(w, counted(w, op.shape[op.axis], op.dtype), op.axis, op.shape)


def along(w: Writer, line: str, axis: int, shape: Sequence[Dim]) -> str:
    """A vector along an axis of a shape, repeated along the others."""
    return w.expand(w.unsqueeze(line, [a for a in range(len(shape)) if a != axis]), tuple(shape))


@row("tensor.size", "tensor.extent")
def size(w: Writer, op: Any) -> str:
    """A size."""
    return w.cast(w.scalar_size(op.value), result(op).dtype)


@row("tensor.reshape", "tensor.stop_gradient")
def reshape(w: Writer, op: Op) -> str:
    """The elements in another shape."""
    return w.reshape(w.of(op.operands[0]), result(op).shape)


@row("tensor.item")
def item(w: Writer, op: Op) -> str:
    """The only element."""
    return w.cast(w.reshape(w.of(op.operands[0]), ()), result(op).dtype)


@row("tensor.transpose")
def transpose(w: Writer, op: Any) -> str:
    """Axes in another order."""
    return w.transpose(w.of(op.x), op.perm)


@row("tensor.broadcast_to")
def broadcast_to(w: Writer, op: Any) -> str:
    """Elements repeated along axes."""
    return w.expand(w.of(op.x), op.shape)


@row("tensor.slice")
def slice_(w: Writer, op: Any) -> str:
    """Elements at regular distances; with a negative step those of a positive one, reversed."""
    x, type = w.of(op.x), result(op)
    if 0 in type.shape:
        return filled(w, 0, type.shape, type.dtype)
    starts, stops, steps, axes, backwards = list[Dim](), list[Dim](), list[int](), list[int](), list[int]()
    ranges = zip(op.x.type.shape, op.starts, op.stops, op.steps, type.shape)
    for axis, (n, start, stop, step, count) in enumerate(ranges):
        if (start, stop, step) == (0, n, 1):
            continue
        if step < 0:
            start, stop = start + (count - 1) * step, start + 1
            backwards.append(axis)
        axes.append(axis)
        starts.append(start)
        stops.append(stop)
        steps.append(abs(step))
    if axes:
        more = [] if all(s == 1 for s in steps) else [w.constant(steps, i64)]
        x = w.op("Slice", [x, w.shape(starts), w.shape(stops), w.constant(axes, i64), *more], type)
    return reversed_(w, x, backwards)


def reversed_(w: Writer, x: str, axes: Sequence[int]) -> str:
    """Axes turned around."""
    if not axes:
        return x
    ends = [w.constant([n] * len(axes), i64) for n in (-1, START)]
    return w.op("Slice", [x, *ends, w.constant(list(axes), i64), w.constant([-1] * len(axes), i64)], w.types[x])


@row("tensor.reverse")
def reverse(w: Writer, op: Any) -> str:
    """Axes turned around."""
    return reversed_(w, w.of(op.x), op.axes)


@row("tensor.pad")
def pad(w: Writer, op: Any) -> str:
    """Elements around and between."""
    return padded(w, w.of(op.x), w.of(op.value), op.low, op.high, op.interior)


def padded(w: Writer, x: str, value: str, low: Sequence[Dim], high: Sequence[Dim], interior: Sequence[int]) -> str:
    """An array with elements around and between, and behind the last what `interior` says."""
    for axis, between in enumerate(interior):
        if between:
            shape = w.types[x].shape
            spread = w.unsqueeze(x, [axis + 1])
            rank = len(shape) + 1
            spread = _around(w, spread, value, [0] * rank, [between if a == axis + 1 else 0 for a in range(rank)])
            x = w.reshape(spread, [n * (between + 1) if a == axis else n for a, n in enumerate(shape)])
    return _around(w, x, value, low, high)


def _around(w: Writer, x: str, value: str, low: Sequence[Dim], high: Sequence[Dim]) -> str:
    if all(n == 0 for n in (*low, *high)):
        return x
    type = w.types[x]
    shape = [a + n + b for a, n, b in zip(low, type.shape, high)]
    return w.compute("Pad", [x, w.shape([*low, *high]), value], type.with_shape(shape), mode="constant")


@row("tensor.concat")
def concat(w: Writer, op: Any) -> str:
    """Arrays one behind the other."""
    return w.op("Concat", w.all(op.xs), result(op), axis=op.axis)


# -- places that are computed -----------------------------------------------------------------------------------------
def _start(w: Writer, start: str, n: Dim, piece: Dim) -> str:
    """A start within 0 and n - piece, as one element of a vector."""
    known = w.static(start)
    if known is not None and isinstance(n, int) and isinstance(piece, int):
        return w.constant([min(max(int(known), 0), n - piece)], i64)
    if w.types[start].dtype == ui64:
        start = w.binary("Min", start, w.constant((1 << 63) - 1, ui64))
    at = w.reshape(w.cast(start, i64), (1,))
    return w.binary("Max", w.binary("Min", at, w.size(n - piece)), w.constant([0], i64))


@row("tensor.dynamic_slice")
def dynamic_slice(w: Writer, op: Any) -> str:
    """A part at a place that is computed."""
    x = w.of(op.x)
    for axis, (start, piece) in enumerate(zip(w.all(op.starts), op.shape)):
        n = w.types[x].shape[axis]
        if n != piece:
            at = _start(w, start, n, piece)
            x = w.slice(x, axis, at, w.binary("Add", at, w.size(piece)), piece)
    return x


@row("tensor.dynamic_update_slice")
def dynamic_update_slice(w: Writer, op: Any) -> str:
    """An array with a part replaced."""
    return _updated(w, w.of(op.x), w.of(op.update), w.all(op.starts), 0)


def _updated(w: Writer, x: str, update: str, starts: Sequence[str], axis: int) -> str:
    """An array with a part along an axis replaced: it is put together of three."""
    shape, piece = w.types[x].shape, w.types[update].shape
    while axis < len(shape) and shape[axis] == piece[axis]:
        axis += 1
    if axis == len(shape):
        return update
    n, d = shape[axis], piece[axis]
    at = _start(w, starts[axis], n, d)
    end = w.binary("Add", at, w.size(d))
    if any(shape[a] != piece[a] for a in range(axis + 1, len(shape))):
        update = _updated(w, w.slice(x, axis, at, end, d), update, starts, axis + 1)
    unknown = w.types[x].shape[axis]                       # the parts around are as long as the run decides
    before = w.slice(x, axis, w.constant([0], i64), at, unknown)
    after = w.slice(x, axis, end, w.constant([(1 << 63) - 1], i64), unknown)
    return w.op("Concat", [before, update, after], w.types[x], axis=axis)


@row("tensor.bind_size")
def bind_size(w: Writer, op: Any) -> str:
    """Rows without elements, whose number is a size from then on."""
    n = w.reshape(w.of(op.n), (1,))
    n = w.binary("Max", n, w.constant([0], i64))
    if op.bound is not None:
        n = w.binary("Min", n, w.size(op.bound))
    w.scopes[-1].known["size", op.size] = n
    type = array_type(op.results[0].type, op)
    shape = w.op("Concat", [n, w.constant([0], i64)], TensorType((2,), i64), axis=0)
    return w.op("Expand", [w.constant(False, type.dtype), shape], type)
