"""Elements at indices that are computed: gather and scatter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.backends.onnx.moving import LARGEST, along, counted, filled
from mlc.backends.onnx.writer import Writer, refused, result, row
from mlc.dialects import tensor
from mlc.dialects.tensor.base import splat
from mlc.ir.core import Value
from mlc.ir.sizes import Dim
from mlc.ir.types import bf16, f16, f32, i32, i64, int_range

REDUCTIONS = {"set": "none", "add": "add", "mul": "mul", "max": "max", "min": "min"}


def _from_the_end(indices: Value, n: Dim) -> Value | None:
    """The i of `i < 0 ? i + n : i`, the rule by which ONNX reads indices; None for other indices."""
    op = indices.op
    if not isinstance(op, tensor.Select) or not isinstance(op.condition.op, tensor.Compare):
        return None
    test, moved = op.condition.op, op.a.op
    if test.predicate != "lt" or test.lhs is not op.b or not isinstance(moved, tensor.Add) or moved.lhs is not op.b:
        return None
    zero = splat(test.rhs)
    size = splat(moved.rhs) if not isinstance(moved.rhs.op, tensor.Size) else moved.rhs.op.value
    return op.b if zero is not None and zero == 0 and size is not None and bool(size == n) else None


def checked(w: Writer, indices: Value, n: Dim) -> str:
    """Indices that fail if they are negative, as in mlc; ONNX would count them from the end."""
    found = _from_the_end(indices, n)
    if found is not None:
        return _of_64_bits(w, w.of(found))
    name = _of_64_bits(w, w.of(indices))
    known = w.static(name)
    if isinstance(indices.op, tensor.Iota | tensor.ArgSort | tensor.ArgMax) or (
            known is not None and (known >= 0).all()):
        return name
    dtype = w.types[name].dtype
    return w.where(w.compare("Less", name, w.like(0, name)), w.constant(int_range(dtype)[1], dtype), name)


def _of_64_bits(w: Writer, indices: str) -> str:
    """Indices of a type that ONNX takes."""
    return indices if w.types[indices].dtype in (i32, i64) else w.cast(indices, i64)


@row("tensor.take")
def take(w: Writer, op: Any) -> str:
    """Slices along an axis."""
    indices = checked(w, op.indices, op.x.type.shape[op.axis])
    return w.op("Gather", [w.of(op.x), indices], result(op), axis=op.axis)


@row("tensor.take_along")
def take_along(w: Writer, op: Any) -> str:
    """An element for each index."""
    indices = checked(w, op.indices, op.x.type.shape[op.axis])
    return w.op("GatherElements", [w.of(op.x), indices], result(op), axis=op.axis)


def scattered(w: Writer, x: str, indices: str, updates: str, axis: int, kind: str) -> str:
    """An update for each index; floats of 16 bits are combined in f32."""
    dtype = w.types[x].dtype
    if dtype in (f16, bf16):
        x, updates = w.cast(x, f32), w.cast(updates, f32)
    found = w.op("ScatterElements", [x, indices, updates], w.types[x], axis=axis, reduction=REDUCTIONS[kind])
    return w.cast(found, dtype)


@row("tensor.scatter_along")
def scatter_along(w: Writer, op: Any) -> str:
    """An update for each index."""
    if op.kind not in REDUCTIONS:
        raise refused(op, f"updates of the kind {op.kind}")
    indices = checked(w, op.indices, op.x.type.shape[op.axis])
    return scattered(w, w.of(op.x), indices, w.of(op.updates), op.axis, op.kind)


@row("tensor.scatter")
def scatter(w: Writer, op: Any) -> str:
    """Slices of updates along an axis, each element at its index."""
    if op.kind not in REDUCTIONS:
        raise refused(op, f"updates of the kind {op.kind}")
    shape, axis, count = op.x.type.shape, op.axis, op.indices.type.size
    flat = [*shape[:axis], count, *shape[axis + 1:]]
    indices = w.reshape(checked(w, op.indices, shape[axis]), (count,))
    return scattered(w, w.of(op.x), along(w, indices, axis, flat), w.reshape(w.of(op.updates), flat), axis, op.kind)


# -- windows ----------------------------------------------------------------------------------------------------------
def positions(w: Writer, windows: Dim, size: Dim, stride: int, dilation: int) -> str:
    """i * stride + j * dilation for windows i and their elements j."""
    if isinstance(windows, int) and isinstance(size, int) and windows * size <= LARGEST:
        return w.constant(np.arange(windows)[:, None] * stride + np.arange(size) * dilation, i64)
    i = w.binary("Mul", w.unsqueeze(counted(w, windows), [1]), w.constant(stride, i64))
    return w.binary("Add", i, w.binary("Mul", counted(w, size), w.constant(dilation, i64)))


@row("tensor.windows")
def windows(w: Writer, op: Any) -> str:
    """The elements of each window."""
    n, size = result(op).shape[op.axis: op.axis + 2]
    return w.op("Gather", [w.of(op.x), positions(w, n, size, op.stride, op.dilation)], result(op), axis=op.axis)


def _diagonal(w: Writer, op: Any, shape: Sequence[Dim]) -> str:
    """The position of element j of window i, for each element of a shape."""
    at = positions(w, shape[op.axis], shape[op.axis + 1], op.stride, op.dilation)
    others = [a for a in range(len(shape)) if a not in (op.axis, op.axis + 1)]
    return w.expand(w.unsqueeze(at, others), tuple(shape))


@row("tensor.pick")
def pick(w: Writer, op: Any) -> str:
    """The element j of what belongs to element j of the windows."""
    at = _diagonal(w, op, result(op).shape)
    return w.op("GatherElements", [w.of(op.x), at], result(op), axis=op.axis)


@row("tensor.place")
def place(w: Writer, op: Any) -> str:
    """The reverse of `pick`."""
    type = result(op)
    at = _diagonal(w, op, op.x.type.shape)
    return w.op("ScatterElements", [filled(w, 0, type.shape, type.dtype), at, w.of(op.x)], type, axis=op.axis)
