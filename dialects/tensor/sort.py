"""tensor, sort: argsort along an axis, and binary search in sorted values.

Both are data-independent sequences of steps, each of which is a few operations on whole tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import arith, tensor
from mlc.dialects.tensor.base import (
    Array,
    along_axes,
    cast,
    compare,
    full,
    kind,
    reshape,
    rounded,
    select,
    shape_text,
    with_batch_axis,
)
from mlc.dialects.tensor.composite import Composite
from mlc.dialects.tensor.control import for_loop, from_index
from mlc.dialects.tensor.source import Iota, size
from mlc.ir import sizes
from mlc.ir.core import Value
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType, f64, i64, index

COUNTED = 64
"""Most elements that are sorted by counting ranks; more are sorted by a network."""


class ArgSort(Composite, name="tensor.argsort"):
    """result = the positions that sort x along axis in ascending order, stably

    NaN is greater than every number. With `descending`, NaNs come first, and the sort is stable as well.

        %r = tensor.argsort %x {axis = 1} : (tensor<Bx3xf32>) -> tensor<Bx3xi64>
    """

    x: Value
    axis: int
    descending: bool = False
    vmap = along_axes

    def infer(self) -> TensorType:
        x, = self.tensors()
        self.check_axis(self.axis, x.rank)
        return x.with_dtype(i64)

    def ref(self, x: Any) -> Array:
        if kind(self.x.type.dtype) == "float":
            x = rounded(x, f64)
        if not self.descending:
            return np.argsort(x, self.axis, kind="stable")
        backwards = np.argsort(np.flip(x, self.axis), self.axis, kind="stable")
        return np.asarray(np.flip(x.shape[self.axis] - 1 - backwards, self.axis))

    def decompose(self) -> Value:
        n = self.x.type.shape[self.axis]
        return self._by_counting(n) if isinstance(n, int) and n <= COUNTED else self._by_network(n)

    def before(self, a: Value, at_a: Value, b: Value, at_b: Value) -> Value:
        """Whether element a at position at_a comes before element b at position at_b."""
        if self.descending:
            less, greater = self._less(b, a), self._less(a, b)
        else:
            less, greater = self._less(a, b), self._less(b, a)
        tie = tensor.And(tensor.LogicalNot(greater).result, compare("lt", at_a, at_b)).result
        return tensor.Or(less, tie).result

    def _less(self, a: Value, b: Value) -> Value:
        less = compare("lt", a, b)
        if kind(a.type.dtype) != "float":
            return less
        number = tensor.LogicalNot(tensor.IsNan(a).result).result
        return tensor.Or(less, tensor.And(tensor.IsNan(b).result, number).result).result

    def _by_counting(self, n: int) -> Value:
        """rank[i] = the number of elements before element i, and result[rank[i]] = i; all pairs, on one more axis."""
        shape, axis = self.x.type.shape, self.axis
        ones = (1,) * axis
        rest = (1,) * (len(shape) - axis - 1)
        here, there = (*ones, n, 1, *rest), (*ones, 1, n, *rest)
        at, other = Iota(here, axis, i64).result, Iota(there, axis + 1, i64).result
        x = reshape(self.x, (*shape[:axis], n, 1, *shape[axis + 1:]))
        y = reshape(self.x, (*shape[:axis], 1, n, *shape[axis + 1:]))
        rank = tensor.ReduceSum(cast(self.before(y, other, x, at), i64), (axis + 1,)).result
        hit = compare("eq", reshape(rank, (*shape[:axis], 1, n, *shape[axis + 1:])), at)
        return tensor.ReduceSum(select(hit, other, full(0, other)), (axis + 1,)).result

    def _by_network(self, n: Dim) -> Value:
        """Bitonic sort of (element, position) pairs, for any n: partners past the end count as greater than all.

        At level l runs of 2^l are merged. The first step compares each element with its mirror image in the block of
        2^(l + 1), the following steps elements that are 2^(l - 1), ..., 2, 1 apart; the smaller goes to the front.
        Batcher, "Sorting networks and their applications", 1968.
        """
        shape, axis = self.x.type.shape, self.axis
        positions = Iota(shape, axis, i64).result
        line = Iota((n,), 0, i64).result
        along = tuple(n if a == axis else 1 for a in range(len(shape)))

        def step(level: Value, number: Value, x: Value, at: Value) -> list[Value]:
            mirror = tensor.Shl(full(2, line), level).result - 1
            apart = tensor.Shl(full(1, line), level - number).result
            mask = select(compare("eq", number, full(0, number)), mirror, apart)
            partner = tensor.Xor(line, mask).result
            safe = select(compare("lt", partner, size(n, i64)), partner, line)
            front = reshape(compare("lt", line, partner), along)
            y, other = tensor.Take(x, safe, axis).result, tensor.Take(at, safe, axis).result
            stays = compare("eq", self.before(x, at, y, other), front)
            return [select(stays, x, y), select(stays, at, other)]

        def merge(i: Value, x: Value, at: Value) -> list[Value]:
            level = from_index(i)
            steps = arith.AddI(i, arith.constant(1, index)).result
            return list(for_loop(0, steps, [x, at], lambda j, x, at: step(level, from_index(j), x, at)))

        return for_loop(0, _levels(n), [self.x, positions], merge)[1]


def _levels(n: Dim) -> int | Value:
    """The smallest l with 2^l >= n."""
    if isinstance(n, int):
        return max(0, n - 1).bit_length()
    powers = Iota((63,), 0, i64).result
    small = compare("lt", tensor.Shl(full(1, powers), powers).result, size(n, i64))
    return tensor.ReduceSum(cast(small, i64), (0,)).result


class SearchSorted(Composite, name="tensor.search_sorted"):
    """result[i] = the number of j with sorted[j] < values[i], or with `right` sorted[j] <= values[i]

    `sorted` is ascending along its last axis. It is a vector, or has the leading axes of values. A NaN among the values
    comes after all numbers. It is found by binary search, which also says what the result is where `sorted` is not.

        %r = tensor.search_sorted %s, %v : (tensor<7xf32>, tensor<Bx3xf32>) -> tensor<Bx3xi64>
    """

    sorted: Value
    values: Value
    right: bool = False
    format = "$sorted `,` $values attr-dict `:` functional-type"

    def infer(self) -> TensorType:
        ordered, values = self.tensors()
        if ordered.dtype != values.dtype:
            self.refuse(f"element types differ: {ordered.dtype} and {values.dtype}", "MLC0112")
        if ordered.rank == 0 or (ordered.rank > 1 and ordered.shape[:-1] != values.shape[:-1]):
            self.refuse(f"values of shape {shape_text(values.shape)} do not fit a sorted tensor of shape "
                        f"{shape_text(ordered.shape)}", "MLC0115",
                        symbols=sizes.differing(ordered.shape[:-1], values.shape[:-1]))
        return values.with_dtype(i64)

    def ref(self, ordered: Any, values: Any) -> Array:
        n = ordered.shape[-1]
        low, high = np.zeros(values.shape, np.int64), np.full(values.shape, n, np.int64)
        for _ in range(n.bit_length()):
            middle = (low + high) >> 1
            safe = np.minimum(middle, n - 1)
            found = ordered[safe] if ordered.ndim == 1 else np.take_along_axis(ordered, safe, -1)
            with np.errstate(invalid="ignore"):
                stop = found > values if self.right else found >= values
            low, high = (np.where((low < high) & ~stop, middle + 1, low), np.where((low < high) & stop, middle, high))
        return low

    def decompose(self) -> Value:
        """Binary search: the count lies between low and high."""
        n, shape = self.sorted.type.shape[-1], self.values.type.shape
        if n == 0:
            return full(0, size(0, i64), shape)
        end, one = size(n, i64), full(1, size(0, i64))
        last = end - one

        def halve(_: Value, low: Value, high: Value) -> list[Value]:
            middle = tensor.Shr(low + high, one).result
            safe = tensor.Minimum(middle, last).result
            if self.sorted.type.rank == 1:
                found = tensor.Take(self.sorted, safe, 0).result
            else:
                found = tensor.TakeAlong(self.sorted, safe, len(shape) - 1).result
            stop = compare("gt" if self.right else "ge", found, self.values)
            going = compare("lt", low, high)
            up = tensor.And(going, tensor.LogicalNot(stop).result).result
            down = tensor.And(going, stop).result
            return [select(up, middle + one, low), select(down, middle, high)]

        low = full(0, end, shape)
        high = tensor.BroadcastTo(end, shape).result
        return for_loop(0, _levels(n + 1), [low, high], halve)[0]

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        ordered, values = operands
        if self.sorted.type.rank == 1 and not batched[0]:
            return SearchSorted(ordered, values, self.right).result
        ordered, values = with_batch_axis(batch_size, operands, batched)
        rows = values if self.sorted.type.rank > 1 else reshape(values, (batch_size, self.values.type.size))
        return reshape(SearchSorted(ordered, rows, self.right).result, values.type.shape)
