"""tensor, pooling: max pooling, a composite."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.combining import lowest
from mlc.dialects.tensor.base import Array, SizedOp, compare, full, leading, less, reshape, rounded, select
from mlc.dialects.tensor.composite import Composite
from mlc.dialects.tensor.scatter import ScatterAlong
from mlc.dialects.tensor.slicing import Pad, Slice
from mlc.dialects.tensor.source import Full, Iota, check_dtype, size
from mlc.dialects.tensor.window import Windows, overlapped, partitioned, window_count
from mlc.ir import sizes
from mlc.ir.core import Value
from mlc.ir.sizes import Dim, is_natural
from mlc.ir.types import ScalarType, TensorType, i32, i64


class MaxPool(SizedOp, Composite, name="tensor.max_pool"):
    """result[a, p] = the maximum of z[a, p * stride + k * dilation] over the k within size

    p and k are indices of the last axes of x, one for each entry of the lists (an empty stride or dilation is 1, an
    empty low or high 0). z is x padded with -inf, or the least integer, `low` before and `high` after it. NaN
    propagates. The cotangent goes to the first maximum, or NaN, of each window that is no padding.

        %r = tensor.max_pool %x {size = [3], stride = [2]} : (tensor<Bx4x9xf32>) -> tensor<Bx4x4xf32>
    """

    x: Value
    size: tuple[int, ...]
    stride: tuple[int, ...] = ()
    low: tuple[Dim, ...] = ()
    high: tuple[Dim, ...] = ()
    dilation: tuple[int, ...] = ()
    vmap = leading

    def infer(self) -> TensorType:
        x, = self.tensors()
        check_dtype(self, x.dtype, "float", "int")
        count = len(self.size)
        if count > x.rank:
            self.refuse(f"{count} sizes for {x.rank} axes", "MLC0117")
        for name, least in (("size", 1), ("stride", 1), ("low", 0), ("high", 0), ("dilation", 1)):
            if len(self.attrs[name]) not in (0, count):
                self.refuse(f"{name} has {len(self.attrs[name])} entries for {count} axes", "MLC0117")
            if any(less(n, least) for n in self.attrs[name]):
                self.refuse(f"{name} {list(self.attrs[name])} has an entry less than {least}", "MLC0116")
        out = list[Dim]()
        for n, (k, s, low, high, d) in zip(x.shape[x.rank - count:], self.axes()):
            out.append(window_count(low + n + high, k, s, d))
            if less(out[-1], 0):
                self.refuse(f"windows of {k} elements do not fit in size {low + n + high}", "MLC0115",
                            symbols=sizes.symbols(out[-1]))
        return x.with_shape((*x.shape[: x.rank - count], *out))

    def axes(self) -> list[tuple[int, int, Dim, Dim, int]]:
        """Size, stride, low, high and dilation for each axis."""
        n = len(self.size)
        ones, zeros = (1,) * n, (0,) * n
        return list(zip(self.size, self.stride or ones, self.low or zeros, self.high or zeros, self.dilation or ones))

    def size_constraints(self) -> Any:
        return ((d, f"the padding {d} is negative") for d in (*self.low, *self.high))

    def compute(self, size: Any, x: Any) -> Array:
        out = [size(d) for d in self.result.type.shape]
        lead = len(out) - len(self.size)
        around = [(0, 0)] * lead + [(size(low), size(high)) for _, _, low, high, _ in self.axes()]
        dtype = self.x.type.dtype
        z: Any = np.asarray(x).astype(np.float64 if dtype.is_float else np.asarray(x).dtype)
        z = np.pad(z, around, constant_values=lowest(dtype)) if z.ndim else z    # numpy pads no scalars
        top = np.full(out, lowest(dtype), z.dtype)
        for k in itertools.product(*map(range, self.size)):
            read = [slice(i * d, i * d + n * s, s) for i, n, (_, s, _, _, d) in zip(k, out[lead:], self.axes())]
            here = z[..., *read]
            zeros = (top == 0) & (here == 0)               # of which numpy takes either; their sum is +0 if one is
            top = np.where(zeros, top + here, np.maximum(top, here))
        return rounded(top, dtype)

    def decompose(self) -> Value:
        """Reduces each window sequentially: vectors lie along the windows, which are many, not within one."""
        spread, inside = self.windows()
        return tensor.ReduceMax(spread, tuple(inside), "chain").result

    def windows(self) -> tuple[Value, list[int]]:
        """z with each of its last axes split into windows and window elements, and the axes of the elements."""
        lead = self.x.type.rank - len(self.size)
        low, high = ((0,) * lead + tuple(axis[i] for axis in self.axes()) for i in (2, 3))
        z = self.x
        if any(d != 0 for d in (*low, *high)):
            z = Pad(z, full(lowest(z.type.dtype), z), low, high, (0,) * len(low)).result
        inside = list(range(lead + 1, lead + 2 * len(self.size), 2))
        for at, (k, s, _, _, d) in zip(inside, self.axes()):
            z = Windows(z, at - 1, k, s, d).result
        return z, inside

    def vjp(self, ct: Value) -> list[Value | None]:
        """ct at the first maximum or NaN of each window that is no padding, summed over overlapping windows."""
        spread, inside = self.windows()
        kept = [1 if a in inside else d for a, d in enumerate(spread.type.shape)]
        maximal = compare("eq", spread, reshape(self.result, kept))
        maximal = tensor.Or(maximal, tensor.IsNan(spread).result).result
        shape, lead = self.x.type.shape, self.x.type.rank - len(inside)
        image = shape[lead:]
        places = self.places(spread, inside, i32 if is_natural(2 ** 31 - 1 - sizes.product(image)) else i64)
        for n, at, (_, _, low, high, _) in zip(image, places, self.axes()):
            if low != 0 or high != 0:
                first, end = (size(bound, at.type.dtype) for bound in (0, n))
                real = tensor.And(compare("ge", at, first), compare("lt", at, end)).result
                maximal = tensor.And(maximal, real).result
        axes = [(at - 1, low + n + high, s, d) for at, n, (_, s, low, high, d) in zip(inside, image, self.axes())]
        if any(partitioned(n, k, s, d) is None for (_, n, s, d), k in zip(axes, self.size)):
            return [self.scattered(ct, maximal, inside, places)]
        number = element_number(spread.type.shape, inside)
        candidate = select(maximal, number, full(math.prod(self.size), number))
        first = tensor.ReduceMin(candidate, tuple(inside), "chain").result
        chosen = compare("eq", number, reshape(first, kept))
        dz = overlapped(select(chosen, reshape(ct, kept), full(0, ct)), axes)
        if dz.type == self.x.type:
            return [dz]
        starts = [0] * lead + [low for _, _, low, _, _ in self.axes()]
        return [Slice(dz, tuple(starts), tuple(low + n for low, n in zip(starts, shape)), (1,) * len(shape)).result]

    def places(self, spread: Value, inside: Sequence[int], dtype: ScalarType) -> list[Value]:
        """The index along each axis of x of the elements of each window, broadcastable to the windows."""
        out = []
        for at, (_, s, low, _, d) in zip(inside, self.axes()):
            first, within = (Iota(tuple(m if a == axis else 1 for a, m in enumerate(spread.type.shape)), axis,
                                  dtype).result for axis in (at - 1, at))
            out.append(first * size(s, dtype) + within * size(d, dtype) - size(low, dtype))
        return out

    def scattered(self, ct: Value, maximal: Value, inside: Sequence[int], places: Sequence[Value]) -> Value:
        """ct of each window added to its first maximum. Where a window may be all padding, one more element takes what
        goes nowhere."""
        shape, lead = self.x.type.shape, self.x.type.rank - len(self.size)
        image, dtype = sizes.product(shape[lead:]), places[0].type.dtype
        place: Value = Full(0, (), dtype).result
        for n, along in zip(shape[lead:], places):
            place = place * size(n, dtype) + along
        place = tensor.ReduceMin(select(maximal, place, size(image, dtype)), tuple(inside), "chain").result
        padded = any(low != 0 or high != 0 for _, _, low, high, _ in self.axes())
        covers = is_natural(image - 1) and all(
            is_natural(k - 1 - pad) and d == 1 for k, _, low, high, d in self.axes() for pad in (low, high))
        place, ct = (reshape(v, (*v.type.shape[:lead], sizes.product(v.type.shape[lead:]))) for v in (place, ct))
        into = (*shape[:lead], image + 1 if padded and not covers else image)
        dx = ScatterAlong(full(0, ct, into), place, ct, lead).result
        if into[lead] != image:
            dx = Slice(dx, (0,) * (lead + 1), (*shape[:lead], image), (1,) * (lead + 1)).result
        return reshape(dx, shape)


def element_number(shape: Sequence[Dim], inside: Sequence[int]) -> Value:
    """The row-major number of each element within its window, as i32, broadcastable to `shape`."""
    number: Value | None = None
    for at in inside:
        along = Iota(tuple(d if a == at else 1 for a, d in enumerate(shape)), at, i32).result
        number = along if number is None else number * full(shape[at], along) + along
    return Full(0, (1,) * len(shape), i32).result if number is None else number
