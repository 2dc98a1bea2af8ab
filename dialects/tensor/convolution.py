"""tensor, convolution: a composite whose derivatives are convolutions too."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple, TypeVar

import numpy as np

from mlc.dialects.tensor import parts
from mlc.dialects.tensor.base import (
    Array,
    SizedOp,
    again,
    batch_axis_at,
    batch_axis_first,
    broadcast_to,
    cast,
    less,
    reshape,
    rounded,
    shape_text,
)
from mlc.dialects.tensor.composite import Composite, widened
from mlc.dialects.tensor.contract import DotGeneral
from mlc.dialects.tensor.reduce import ReduceFma, ReduceSum
from mlc.dialects.tensor.shape import transpose
from mlc.dialects.tensor.slicing import Reverse, Slice, pad
from mlc.dialects.tensor.window import Windows, window_count
from mlc.ir import sizes
from mlc.ir.core import BatchResult, Value
from mlc.ir.sizes import Dim, divide, modulo, product
from mlc.ir.types import TensorType, i8, i32, ui8

T = TypeVar("T")
Pairs = tuple[tuple[int, int], ...]


class Axis(NamedTuple):
    """Placement of the windows along one spatial axis."""

    stride: int = 1
    low: Dim = 0
    high: Dim = 0
    dilation: int = 1
    spread: int = 1


class Convolution(SizedOp, Composite, name="tensor.convolution"):
    """result[n, o, p] = the sum over c, k of w[o, c, k] * z[n, c0 + c, p * stride + k * dilation]

    p and k are indices of the spatial axes. z is x with `spread` - 1 zeros between its elements (input dilation), and
    padded by `low` zeros before and `high` after them (negative amounts remove elements). Each list has one entry per
    spatial axis, or is empty for the default. Channels form `groups` of equal size; c0 is the first input channel of
    the group of o. Of bytes, x of either sign and w with sign, the products are added as i32.

        %r = tensor.convolution %x, %w : (tensor<Bx3x8xf32>, tensor<5x3x3xf32>) -> tensor<Bx5x6xf32>
    """

    on_parts = parts.bilinear
    x: Value
    w: Value
    stride: tuple[int, ...] = ()
    low: tuple[Dim, ...] = ()
    high: tuple[Dim, ...] = ()
    dilation: tuple[int, ...] = ()
    spread: tuple[int, ...] = ()
    groups: int = 1
    format = "$x `,` $w attr-dict `:` functional-type"

    @property
    def needs_finite(self) -> bool:
        """Where `x` is spread: the zeros between its elements take part in some formulas, and 0 * inf is NaN."""
        return any(n > 1 for n in self.spread)

    def infer(self) -> TensorType:
        x, w = self.tensors() if self.is_of_bytes() else self.floats()
        spatial = x.rank - 2
        if spatial < 0 or w.rank != x.rank:
            self.refuse(f"weights of shape {shape_text(w.shape)} do not fit {shape_text(x.shape)}", "MLC0117")
        for name in Axis._fields:
            if len(self.attrs[name]) not in (0, spatial):
                self.refuse(f"{name} has {len(self.attrs[name])} entries for {spatial} spatial axes", "MLC0117")
            if name not in ("low", "high") and any(n < 1 for n in self.attrs[name]):
                self.refuse(f"{name} {list(self.attrs[name])} is not positive", "MLC0116")
        if self.groups < 1 or x.shape[1] != w.shape[1] * self.groups or w.shape[0] % self.groups != 0:
            self.refuse(f"weights of shape {shape_text(w.shape)} do not fit {x.shape[1]} channels in {self.groups} "
                        "groups", "MLC0115", symbols=sizes.symbols(x.shape[1], *w.shape[:2]))
        out = list[Dim]()
        for n, k, axis in zip(x.shape[2:], w.shape[2:], self.axes()):
            padded = axis.low + (n - 1) * axis.spread + 1 + axis.high
            out.append(window_count(padded, k, axis.stride, axis.dilation))
            if less(k, 1) or less(out[-1], 0):
                self.refuse(f"weights of size {k} do not fit in size {padded}", "MLC0115",
                            symbols=sizes.symbols(k, out[-1]))
        result = x.with_shape((x.shape[0], w.shape[0], *out))
        return result.with_dtype(i32) if self.is_of_bytes() else result

    def is_of_bytes(self) -> bool:
        """Whether the convolution is one of bytes."""
        types = [v.type.dtype for v in self.operands if isinstance(v.type, TensorType)]
        return len(types) == 2 and types[0] in (i8, ui8) and types[1] == i8

    def axes(self) -> list[Axis]:
        """The spatial axes."""
        lists = {name: self.attrs[name] for name in Axis._fields if self.attrs[name]}
        return [Axis(**{name: entries[i] for name, entries in lists.items()}) for i in range(self.x.type.rank - 2)]

    # -- reference --------------------------------------------------------------------------------------------------
    def compute(self, size: Any, x: Any, w: Any) -> Array:
        g, out = self.groups, [size(d) for d in self.result.type.shape]
        z: Any = np.asarray(x).astype(np.float64)
        for i, axis in enumerate(self.axes()):
            z = _spread(z, i + 2, size(axis.low), size(axis.high), axis.spread)
        z = z.reshape(z.shape[0], g, z.shape[1] // g, *z.shape[2:])
        kernel: Any = np.asarray(w).astype(np.float64).reshape(g, out[1] // g, *w.shape[1:])
        total = np.zeros((out[0], g, out[1] // g, *out[2:]))
        with np.errstate(all="ignore"):
            for k in itertools.product(*map(range, w.shape[2:])):
                starts = [i * axis.dilation for i, axis in zip(k, self.axes())]
                read = [slice(a, a + n * axis.stride, axis.stride) for a, n, axis in zip(starts, out[2:], self.axes())]
                total += np.einsum("ngc...,goc->ngo...", z[..., *read], kernel[..., *k])
        return rounded(total.reshape(out), self.result.type.dtype)

    # -- decomposition into a contraction ---------------------------------------------------------------------------
    def decompose(self) -> Value:
        """The contraction of w with the windows of x over channels and window elements, for each image."""
        if self.comes_in_phases():
            return self._in_phases()
        windows, inside = Windowing(tuple(self.axes()), self.w.type.shape[2:], self.groups).of(
            self.x, self.result.type.shape[2:])
        kernel = self.kernel()
        if self.groups > 1 and self.w.type.shape[1] == 1:
            return self._of_channels(windows, inside, kernel)
        if self.groups == 1 and is_small(self.result.type.shape[2:]):
            return self._of_few_windows(windows, inside)
        kernel = broadcast_to(kernel, (self.x.type.shape[0], *kernel.type.shape))
        batch = ((0, 0), (1, 1)) if self.groups > 1 else ((0, 0),)
        channels = (len(batch) + 1, len(batch))
        contract = self.terms([channels], [(channels[0] + 1 + i, axis) for i, axis in enumerate(inside)])
        return reshape(self.product(kernel, windows, batch, tuple(contract)), self.result.type.shape)

    def product(self, kernel: Value, windows: Value, batch: Pairs, contract: Pairs) -> Value:
        """The product of weights and windows, of numbers of the result's type."""
        kernel, windows = (cast(v, self.result.type.dtype) for v in (kernel, windows))
        return DotGeneral(kernel, windows, batch, contract).result

    def terms(self, channels: list[T], inside: list[T]) -> list[T]:
        """The axes along which products are added, in the order of the sum: those of windows last, so that neighbouring
        points share elements, or, of 8 or 16 bits, channels last, as several of them are multiplied by one
        instruction."""
        return [*inside, *channels] if self.x.type.dtype.width <= 16 else [*channels, *inside]

    def _of_channels(self, windows: Value, inside: list[int], kernel: Value) -> Value:
        """Depthwise convolution: the elements of each window times those of w, one after the other."""
        shape, (g, o, *_) = windows.type.shape, kernel.type.shape
        beside = (1, g, o, *(d if a in inside else 1 for a, d in enumerate(shape[3:], 3)))
        each = (shape[0], g, o, *shape[3:])                # each channel has o kernels
        x, w = (broadcast_to(widened(cast(v, self.result.type.dtype)), each)
                for v in (windows, reshape(kernel, beside)))
        total = x * w if not inside else ReduceSum(x * w, tuple(inside)).result if self.is_of_bytes() else (
            ReduceFma(x, w, tuple(inside)).result)
        return cast(reshape(total, self.result.type.shape), self.result.type.dtype)

    def _of_few_windows(self, windows: Value, inside: list[int]) -> Value:
        """The contraction with the windows of all images side by side, as columns of a matrix (im2col)."""
        (n, o, *out), terms = self.result.type.shape, product(self.w.type.shape[1:])
        spatial = [a for a in range(2, windows.type.rank) if a not in inside]
        columns = reshape(transpose(windows, (*self.terms([1], inside), 0, *spatial)), (terms, n * product(out)))
        weights = transpose(self.w, (0, *self.terms([1], [*range(2, self.w.type.rank)])))
        result = self.product(reshape(weights, (o, terms)), columns, (), ((1, 0),))
        return transpose(reshape(result, (o, n, *out)), (1, 0, *range(2, len(out) + 2)))

    def kernel(self) -> Value:
        """w as [group, o, c, elements of a window], without the group axis if there is one group, and without axes of
        size 1."""
        o, c, *elements = self.w.type.shape
        groups = (self.groups, o // self.groups) if self.groups > 1 else (o,)
        return reshape(self.w, (*groups, c, *(k for k in elements if k != 1)))

    def comes_in_phases(self) -> bool:
        """Whether x is spread, and each window meets an element of x at every `spread`-th of its own elements."""
        spread = [(k, axis) for k, axis in zip(self.w.type.shape[2:], self.axes()) if axis.spread > 1]
        return bool(spread) and all(isinstance(k, int) and axis.stride == axis.dilation == 1 for k, axis in spread)

    def _in_phases(self) -> Value:
        """A convolution of x itself, with one output channel per phase: per element of w that can meet x first.

        Along a spread axis, z is nonzero only at low + s * q, so result[p] is the sum of w[r + s * a] * x[u + a] over
        a, where p = low + s * u - r. For each r < s, the w[r + s * a] are the weights of one channel.
        """
        n, o, *out = self.result.type.shape
        c, *elements = self.w.type.shape[1:]
        axes, starts, phases, parts = list[Axis](), list[Dim](), list[int](), list[Dim]()
        for k, size, p, axis in zip(elements, self.x.type.shape[2:], out, self.axes()):
            s, r = axis.spread, min(axis.spread, k) if axis.spread > 1 else 1
            phases.append(r)
            parts.append((k + r - 1) // r)
            starts.append(modulo(r - 1 - axis.low, s) if s > 1 else 0)
            first = divide(r - 1 - axis.low, s)
            count = divide(starts[-1] + p + s - 1, s)
            axes.append(Axis(1, -first, first + count + parts[-1] - 1 - size) if s > 1 else axis)
        lead = len(axes)
        w: Value = pad_end(self.w, (0, 0, *(a * r - k for a, r, k in zip(parts, phases, elements))))
        for i, r in enumerate(phases):                    # element r of the window that starts at a * r
            w = Windows(w, 2 + 2 * i, r, r).result
        g = self.groups
        w = reshape(w, (g, o // g, *w.type.shape[1:]))
        each = range(4, 4 + 2 * lead, 2)
        w = transpose(Reverse(w, tuple(each)).result, (0, *each, 1, 2, *range(3, 3 + 2 * lead, 2)))
        w = reshape(w, (o * prod(phases), c, *parts))         # of a group, all channels of one phase follow each other
        strides, low, high, dilation, _ = (tuple(entries) for entries in zip(*axes))
        y: Value = Convolution(self.x, w, strides, low, high, dilation, (), g).result
        y = reshape(y, (n, g, *phases, o // g, *y.type.shape[2:]))
        y = transpose(y, (0, 1, 2 + lead, *(i + half for i in range(lead) for half in (3 + lead, 2))))
        y = reshape(y, (n, o, *y.type.shape[3:]))
        gaps = [s.spread - r for r, s in zip(phases, self.axes())]
        y = pad_end(y, (0, 0, *(d for gap in gaps for d in (0, gap))))
        y = reshape(y, (n, o, *(y.type.shape[i] * y.type.shape[i + 1] for i in range(2, 2 + 2 * lead, 2))))
        stops = (n, o, *(start + p for start, p in zip(starts, out)))
        return Slice(y, (0, 0, *starts), stops, (1,) * (lead + 2)).result

    # -- derivatives ------------------------------------------------------------------------------------------------
    def vjp(self, ct: Value) -> list[Value | None]:
        return [self._of_x(ct), self._of_w(ct)]

    def _of_x(self, ct: Value) -> Value:
        """The convolution of ct with the flipped w, with stride and spread exchanged."""
        g, elements = self.groups, self.w.type.shape[2:]
        low, high = list[Dim](), list[Dim]()
        for n, out, k, axis in zip(self.x.type.shape[2:], ct.type.shape[2:], elements, self.axes()):
            low.append((k - 1) * axis.dilation - axis.low)
            high.append((n - 1) * axis.spread - (out - 1) * axis.stride + axis.low)
        return Convolution(ct, flipped(self.w, g), self.spread, tuple(low), tuple(high), self.dilation, self.stride,
                           g).result

    def _of_w(self, ct: Value) -> Value:
        """The contraction of ct with the windows of x over images and windows; for a spread x, of x with those of ct.
        """
        axes, elements = self.axes(), self.w.type.shape[2:]
        if all(axis.spread == 1 for axis in axes) or any(axis.stride > 1 for axis in axes):
            return Windowing(tuple(axes), elements, self.groups).times(ct, self.x)
        spans = [(k - 1) * axis.dilation for k, axis in zip(elements, axes)]
        swapped = tuple(Axis(axis.spread, span - axis.low, span - axis.high, axis.dilation)
                        for span, axis in zip(spans, axes))
        return flipped(Windowing(swapped, elements, self.groups).times(self.x, ct), self.groups)

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> BatchResult:
        """Batched images are more images, batched weights more output channels, and both batched more groups."""
        (x, w), (n, o, *out), g = operands, self.result.type.shape, self.groups
        if not batched[1]:
            made = again(self, [reshape(x, (batch_size * n, *self.x.type.shape[1:])), w])
            return reshape(made, (batch_size, n, o, *out))
        elements = self.w.type.shape[1:]
        if not batched[0]:
            w = batch_axis_at(reshape(w, (batch_size, g, o // g, *elements)), 1)
            made = reshape(again(self, [x, reshape(w, (batch_size * o, *elements))]), (n, g, batch_size, o // g, *out))
            return reshape(batch_axis_first(made, 2), (batch_size, n, o, *out))
        if not isinstance(batch_size, int) or batch_size == 0:
            return None                          # the number of groups must be static
        x = reshape(batch_axis_at(x, 1), (n, batch_size * self.x.type.shape[1], *self.x.type.shape[2:]))
        made = again(self, [x, reshape(w, (batch_size * o, *elements))], groups=batch_size * g)
        return batch_axis_first(reshape(made, (n, batch_size, o, *out)), 1)


def flipped(w: Value, groups: int) -> Value:
    """Weights with input and output channels of each group exchanged, and the elements of a window reversed."""
    o, c, *elements = w.type.shape
    w = Reverse(reshape(w, (groups, o // groups, c, product(elements))), (3,)).result
    return reshape(transpose(w, (0, 2, 1, 3)), (c * groups, o // groups, *elements))


@dataclass(frozen=True)
class Windowing:
    """Placement of windows in an image, with this number of `elements` along each spatial axis."""

    axes: tuple[Axis, ...]
    elements: tuple[Dim, ...]
    groups: int

    def of(self, x: Value, out: Sequence[Dim], channels_last: bool = False) -> tuple[Value, list[int]]:
        """x as [n, group, c, windows and window elements for each spatial axis], and the axes of the window elements.

        Windows of one element have no axis for it. With `channels_last`, channels are contiguous in memory.
        """
        n, c, *spatial = x.type.shape
        if self.groups > 1:
            x = reshape(x, (n, self.groups, c // self.groups, *spatial))
        x = self.pad(x)
        lead = x.type.rank - len(spatial)
        at, inside = 1 if channels_last else lead, list[int]()
        if channels_last:
            x = transpose(x, (0, *range(lead, x.type.rank), *range(1, lead)))
        for k, count, axis in zip(self.elements, out, self.axes):
            if k == 1:
                x = every(x, at, count, axis.stride)
            else:
                x = Windows(x, at, k, axis.stride, axis.dilation).result
                at += 1
                inside.append(at)
            at += 1
        if channels_last:
            x = transpose(x, (0, *range(at, x.type.rank), *range(1, at)))
            inside = [a + lead - 1 for a in inside]
        return x, inside

    def pad(self, x: Value) -> Value:
        """x with the zeros between and around its elements, along its last axes."""
        low, high, gaps, starts, ends = (list[Dim](), list[Dim](), list[int](), list[Dim](), list[Dim]())
        for axis in (*[Axis()] * (x.type.rank - len(self.axes)), *self.axes):
            gap = axis.spread - 1
            after = axis.high - gap                       # every element is followed by a gap, including the last
            low.append(_part(axis.low, 0))
            high.append(_part(after, -gap))
            gaps.append(gap)
            starts.append(low[-1] - axis.low)
            ends.append(high[-1] - after)
        x = pad(x, low, high, gaps)
        if any(d != 0 for d in (*starts, *ends)):
            stops = tuple(n - d for n, d in zip(x.type.shape, ends))
            x = Slice(x, tuple(starts), stops, (1,) * x.type.rank).result
        return x

    def times(self, ct: Value, x: Value) -> Value:
        """result[o, c, k] = the sum over n, p of ct[n, o, p] * z[n, c0 + c, p * stride + k * dilation]"""
        g, (n, o, *out) = self.groups, ct.type.shape
        c = x.type.shape[1] // g
        windows, inside = self.of(x, out, channels_last=self.has_many(g if c == 1 else c))
        if g > 1:
            ct = reshape(ct, (n, g, o // g, *out))
        lead = ct.type.rank - len(out)
        spatial = [a for a in range(lead, windows.type.rank) if a not in inside]
        contract = ((0, 0), *zip(range(lead, ct.type.rank), spatial))
        made = DotGeneral(ct, windows, ((1, 1),) if g > 1 else (), contract).result
        return reshape(made, (o, c, *self.elements))

    def has_many(self, channels: Dim) -> bool:
        """Whether vectors of channels have more active lanes than vectors of window elements."""
        return not less(channels, 8) and any(k != 1 for k in self.elements)


FEW, SHORT = 64, 8
"""Most windows of a small image, and of its rows: vectors along such rows would be half empty."""


def is_small(out: Sequence[Dim]) -> bool:
    """Whether an image has so few windows that vectors are filled better by all of them, and by several images."""
    count = product(out)
    return isinstance(count, int) and 0 < count <= FEW and (count <= 2 * SHORT or not less(SHORT, out[-1]))


def pad_end(x: Value, amounts: Sequence[Dim]) -> Value:
    """x padded at the end with zeros, by the amount for each axis."""
    none = (0,) * x.type.rank
    return pad(x, none, amounts, none)


def every(x: Value, axis: int, count: Dim, step: int) -> Value:
    """Every `step`-th element along an axis, `count` of them."""
    if step == 1:
        return x
    rank = x.type.rank
    stops = list(x.type.shape)
    stops[axis] = (count - 1) * step + 1 if count != 0 else 0
    return Slice(x, (0,) * rank, tuple(stops), tuple(step if a == axis else 1 for a in range(rank))).result


def _part(amount: Dim, least: int) -> Dim:
    """The amount that padding can add: at least `least`, which a symbolic amount is assumed to be."""
    return max(amount, least) if isinstance(amount, int) else amount


def _spread(x: Array, axis: int, low: int, high: int, spread: int) -> Array:
    """x with zeros between and around its elements along an axis; negative amounts remove elements."""
    n = x.shape[axis]
    wide = np.zeros((*x.shape[:axis], (n - 1) * spread + 1 if n else 0, *x.shape[axis + 1:]))
    wide[(slice(None),) * axis + (slice(None, None, spread),)] = x
    around = [(0, 0)] * x.ndim
    around[axis] = (max(low, 0), max(high, 0))
    wide = np.pad(wide, around)
    return wide[(slice(None),) * axis + (slice(max(-low, 0), wide.shape[axis] - max(-high, 0)),)]
