"""tensor, windows: an axis as overlapping windows, and the inverse. These operations only move elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor import parts
from mlc.dialects.tensor.base import Array, CopyOp, SizedOp, along_axes, less, reshape
from mlc.dialects.tensor.iteration import IndexingMap, IterationDomain
from mlc.dialects.tensor.sharding_rule import Label, ShardingRule, labelled
from mlc.dialects.tensor.slicing import Slice, pad
from mlc.dialects.tensor.traits import Cost
from mlc.ir import sizes
from mlc.ir.core import Value
from mlc.ir.rewrite import rewrite
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType


def window_count(n: Dim, size: Dim, stride: int, dilation: int) -> Dim:
    """Number of windows of `size` elements, `dilation` apart, that start at multiples of `stride` and fit in n."""
    return (n - (size - 1) * dilation - 1) // stride + 1


class _Window(SizedOp, CopyOp):
    """Element j of window i is at position i * stride + j * dilation."""

    on_parts = parts.each_part
    x: Value
    axis: int
    vmap = along_axes
    cost = Cost.CHEAP
    moves_elements = True

    def windows_in(self, n: Dim, size: Dim, stride: int, dilation: int) -> Dim:
        """Number of windows in an axis of size n; refuses invalid parameters."""
        for what, number in (("size", size), ("stride", stride), ("dilation", dilation)):
            if less(number, 1):
                self.refuse(f"the {what} {number} is not positive", "MLC0116")
            if isinstance(number, int) and number >> 63:
                self.refuse(f"the {what} {number} does not fit in 64 bits", "MLC0116")
        count = window_count(n, size, stride, dilation)
        if less(count, 0):
            self.refuse(f"windows of {size} elements, {dilation} apart, do not fit in axis {self.axis} of size {n}",
                        "MLC0115", symbols=sizes.symbols(count))
        return count

    def sharding_rule(self) -> ShardingRule:
        """All axes but those of the windows, of their elements and of the positions."""
        x, result = self.x.type.rank, self.result.type.rank
        before, after = range(self.axis), [("after", a) for a in range(result - self.axis - 2)]

        def labels(rank: int) -> list[Label]:
            return [*before, *[None] * (rank - len(before) - len(after)), *after]

        return labelled(self, [labels(x)], labels(result))

    def spread_types(self) -> TensorType:
        """The type of the operand, which has the window elements along the axis after `axis`."""
        x, = self.tensors()
        self.check_axis(self.axis, x.rank)
        if self.axis + 1 == x.rank:
            self.refuse(f"there is no axis after axis {self.axis}", "MLC0114")
        return x


def in_window(i: Dim | None, j: Dim | None, stride: int, dilation: int) -> Dim | None:
    """The position along the axis of element j of window i."""
    return None if i is None or j is None else i * stride + j * dilation


def window_positions(windows: int, size: int, stride: int, dilation: int) -> Array:
    """The position of element j of window i, for each [i, j]."""
    return np.arange(windows)[:, None] * stride + np.arange(size) * dilation


class Windows(_Window, name="tensor.windows"):
    """result[a, i, j, b] = x[a, i * stride + j * dilation, b], where a are the axes of x before axis, and j < size

        %r = tensor.windows %x {axis = 0, size = 3, stride = 2} : (tensor<8xf32>) -> tensor<3x3xf32>
    """

    x: Value
    axis: int
    size: Dim
    stride: int = 1
    dilation: int = 1

    def infer(self) -> TensorType:
        x, = self.tensors()
        self.check_axis(self.axis, x.rank)
        windows = self.windows_in(x.shape[self.axis], self.size, self.stride, self.dilation)
        return x.with_shape((*x.shape[: self.axis], windows, self.size, *x.shape[self.axis + 1:]))

    def size_constraints(self) -> Iterator[tuple[Dim, str]]:
        yield self.size - 1, f"the size {self.size} is not positive"

    def compute(self, size: Any, x: Any) -> Array:
        windows, inside = (size(d) for d in self.result.type.shape[self.axis: self.axis + 2])
        return np.take(x, window_positions(windows, inside, self.stride, self.dilation), self.axis)

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        i, j = at[self.axis: self.axis + 2]
        return [(*at[: self.axis], in_window(i, j, self.stride, self.dilation), *at[self.axis + 2:])]

    def vjp(self, ct: Value) -> list[Value | None]:
        return [overlapped(ct, [(self.axis, self.x.type.shape[self.axis], self.stride, self.dilation)])]


class Place(_Window, name="tensor.place"):
    """result[a, i * stride + j * dilation, j, b] = x[a, i, j, b] for the windows i of an axis of `size`, else 0

        %r = tensor.place %x {axis = 0, size = 8, stride = 2} : (tensor<3x3xf32>) -> tensor<8x3xf32>
    """

    x: Value
    axis: int
    size: Dim
    stride: int = 1
    dilation: int = 1

    def infer(self) -> TensorType:
        x = self.spread_types()
        windows, inside = x.shape[self.axis: self.axis + 2]
        if windows != self.windows_in(self.size, inside, self.stride, self.dilation):
            self.refuse(f"{windows} is not the number of windows of {inside} elements in size {self.size}", "MLC0115",
                        symbols=sizes.symbols(windows, inside, self.size))
        return x.with_shape((*x.shape[: self.axis], self.size, *x.shape[self.axis + 1:]))

    def compute(self, size: Any, x: Any) -> Array:
        out = np.zeros([size(d) for d in self.result.type.shape], x.dtype)
        windows, inside = x.shape[self.axis: self.axis + 2]
        at = window_positions(windows, inside, self.stride, self.dilation)
        np.moveaxis(out, (self.axis, self.axis + 1), (0, 1))[at, np.arange(inside)] = np.moveaxis(
            x, (self.axis, self.axis + 1), (0, 1))
        return out

    def vjp(self, ct: Value) -> list[Value | None]:
        return [Pick(ct, self.axis, self.stride, self.dilation).result]


class Pick(_Window, name="tensor.pick"):
    """result[a, i, j, b] = x[a, i * stride + j * dilation, j, b], where a are the axes of x before axis

        %r = tensor.pick %x {axis = 0, stride = 2} : (tensor<8x3xf32>) -> tensor<3x3xf32>
    """

    x: Value
    axis: int
    stride: int = 1
    dilation: int = 1

    def infer(self) -> TensorType:
        x = self.spread_types()
        n, inside = x.shape[self.axis: self.axis + 2]
        windows = self.windows_in(n, inside, self.stride, self.dilation)
        return x.with_shape((*x.shape[: self.axis], windows, *x.shape[self.axis + 1:]))

    def compute(self, size: Any, x: Any) -> Array:
        windows, inside = (size(d) for d in self.result.type.shape[self.axis: self.axis + 2])
        at = window_positions(windows, inside, self.stride, self.dilation)
        front = np.moveaxis(x, (self.axis, self.axis + 1), (0, 1))
        return np.moveaxis(front[at, np.arange(inside)], (0, 1), (self.axis, self.axis + 1))

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        i, j = at[self.axis: self.axis + 2]
        return [(*at[: self.axis], in_window(i, j, self.stride, self.dilation), *at[self.axis + 1:])]

    def vjp(self, ct: Value) -> list[Value | None]:
        return [Place(ct, self.axis, self.x.type.shape[self.axis], self.stride, self.dilation).result]


def partitioned(n: Dim, size: Dim, stride: int, dilation: int) -> int | None:
    """How many of n elements the windows cover, if each of these is in one window; None otherwise."""
    return n // stride * stride if isinstance(n, int) and stride == size and dilation == 1 else None


def overlapped(x: Value, axes: Sequence[tuple[int, Dim, int, int]]) -> Value:
    """The sum of windows at their positions; x has windows along some axes, each with its elements along the next one.

    Windows that overlap are added sequentially: vectors lie along the axis, not within a window.

    axes  of windows, in order: number, size of the axis in the result, stride and dilation
    """
    added: list[int] = []
    for axis, n, stride, dilation in reversed(axes):
        shape = x.type.shape
        kept = partitioned(n, shape[axis + 1], stride, dilation)
        if kept is None:
            x = Place(x, axis, n, stride, dilation).result
            added.append(axis + 1)
            continue
        x = reshape(x, (*shape[:axis], kept, *shape[axis + 2:]))
        rest = tuple(n - kept if a == axis else 0 for a in range(x.type.rank))
        x = pad(x, (0,) * x.type.rank, rest, (0,) * x.type.rank)
        added = [a - 1 for a in added]
    return tensor.ReduceSum(x, tuple(sorted(added)), "chain").result if added else x


@rewrite(Windows)
def windows_apart(op: Windows) -> Value | None:
    """windows(x, size = n, stride = n) == reshape(x), without the elements at the end that are in no window"""
    shape = op.x.type.shape
    kept = partitioned(shape[op.axis], op.size, op.stride, op.dilation)
    if kept is None:
        return None
    stops = tuple(kept if a == op.axis else n for a, n in enumerate(shape))
    x = op.x if stops == shape else Slice(op.x, (0,) * len(shape), stops, (1,) * len(shape)).result
    return reshape(x, op.result.type.shape)


@rewrite(Windows, Place, Pick)
def windows_of_one(op: Windows | Place | Pick) -> Value | None:
    """windows(x, size = 1, stride = 1) == reshape(x), and place(x) == pick(x) == x for such windows"""
    if op.stride != 1 or op.result.type.shape[op.axis + 1] != 1:
        return None
    return reshape(op.x, op.result.type.shape)
