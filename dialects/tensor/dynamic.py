"""tensor, dynamic: pieces of a tensor that start where a value says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mlc.dialects.tensor.base import Array, CopyOp, SizedOp, constant_array, kind, less, shape_text, zeros
from mlc.dialects.tensor.shape import Slice
from mlc.dialects.tensor.source import check_shape
from mlc.ir.core import Value
from mlc.ir.rewrite import rewrite
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType


class _Dynamic(CopyOp):
    """A start that would let the piece stick out of x is moved so that it fits."""

    def check_starts(self, starts: Sequence[Value], x: TensorType, piece: Sequence[Dim]) -> None:
        for v in starts:
            if v.type.rank or kind(v.type.dtype) != "int":
                self.refuse(f"a start is {v.type}, not one integer", "MLC0113")
        if not len(starts) == len(piece) == x.rank:
            self.refuse(f"{x.rank} dimensions need as many starts and sizes, found {len(starts)} and {len(piece)}",
                        "MLC0117")
        if any(less(n, d) for n, d in zip(x.shape, piece)):
            self.refuse(f"a piece of {shape_text(piece)} does not fit in {shape_text(x.shape)}", "MLC0115")


def room(x: TensorType, piece: Sequence[Dim]) -> Iterator[tuple[Dim, str]]:
    """What is not negative where a piece of these sizes fits in x."""
    for axis, (n, d) in enumerate(zip(x.shape, piece)):
        yield n - d, f"axis {axis}: a piece of {d} does not fit in size {n}"


def inside(x: Array, starts: Sequence[Any], piece: Sequence[int]) -> tuple[slice, ...]:
    """The piece of x, its starts clamped."""
    at = (max(0, min(int(s), n - d)) for s, n, d in zip(starts, x.shape, piece))
    return tuple(slice(a, a + d) for a, d in zip(at, piece))


class DynamicSlice(SizedOp, _Dynamic, name="tensor.dynamic_slice"):
    """result[i] = x[start + i], where start = max(0, min(starts, the size of x - shape)) along each axis

        %r = tensor.dynamic_slice %x, %i {shape = [2]} : (tensor<5xf32>, tensor<i64>) -> tensor<2xf32>
    """

    x: Value
    starts: tuple[Value, ...]
    shape: tuple[Dim, ...]

    def infer(self) -> TensorType:
        x, *_ = self.tensors()
        check_shape(self, self.shape)
        self.check_starts(self.starts, x, self.shape)
        return x.with_shape(self.shape)

    def conditions(self) -> Iterator[tuple[Dim, str]]:
        return room(self.x.type, self.shape)

    def compute(self, size: Any, x: Any, *starts: Any) -> Array:
        return np.asarray(x[inside(x, starts, [size(d) for d in self.shape])])

    def vjp(self, ct: Value) -> list[Value | None]:
        return [DynamicUpdateSlice(zeros(self.x), ct, self.starts).result, *(None for _ in self.starts)]


class DynamicUpdateSlice(_Dynamic, name="tensor.dynamic_update_slice"):
    """result[i] = update[i - start] where that is within update, else x[i]; start as in dynamic_slice

        %r = tensor.dynamic_update_slice %x, %u, %i : (tensor<5xf32>, tensor<2xf32>, tensor<i64>) -> tensor<5xf32>
    """

    x: Value
    update: Value
    starts: tuple[Value, ...]

    def infer(self) -> TensorType:
        x, update, *_ = self.tensors()
        if x.dtype != update.dtype:
            self.refuse(f"element types differ: {x.dtype} and {update.dtype}", "MLC0112")
        self.check_starts(self.starts, x, update.shape)
        return x

    def conditions(self) -> Iterator[tuple[Dim, str]]:
        return room(self.x.type, self.update.type.shape)

    def ref(self, x: Any, update: Any, *starts: Any) -> Array:
        out = np.array(x)
        out[inside(x, starts, update.shape)] = update
        return out

    def vjp(self, ct: Value) -> list[Value | None]:
        return [DynamicUpdateSlice(ct, zeros(self.update), self.starts).result,
                DynamicSlice(ct, self.starts, self.update.type.shape).result, *(None for _ in self.starts)]


@rewrite(DynamicSlice)
def slice_at_known_start(op: DynamicSlice) -> Value | None:
    """dynamic_slice(x, c) == slice(x, c : c + shape), where c is constant, moved so that the piece fits"""
    known = [constant_array(v) for v in op.starts]
    room = [n - d for n, d in zip(op.x.type.shape, op.shape)]
    if any(c is None or not isinstance(most, int) for c, most in zip(known, room)):
        return None
    at = tuple(max(0, min(int(c), most)) for c, most in zip(known, room))  # type: ignore[arg-type]
    stops = tuple(a + d for a, d in zip(at, op.shape))
    return Slice(op.x, at, stops, (1,) * len(at)).result
