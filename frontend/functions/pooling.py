"""Pooling: one number for each window of the last dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.convolution import Ints, batched, each, fits, padded, unbatched, windows
from mlc.frontend.functions.shape import permute
from mlc.frontend.operands import cast, count_of, floating, number, plain_int, reshape, rounded_once, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import Tracer, emit
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import f32, i64

NEGATIVE_INFINITY = float("-inf")


class _Geometry:
    """How windows lie along the last dimensions of an input."""

    def __init__(self, spatial: int, kernel_size: Ints, stride: Ints | None, padding: Ints, dilation: Ints,
                 ceil_mode: bool) -> None:
        self.spatial, self.ceil_mode = spatial, ceil_mode
        self.kernel = each(kernel_size, spatial, "kernel_size", 1)
        self.stride = self.kernel if stride is None or stride == () else each(stride, spatial, "stride", 1)
        self.low = each(padding, spatial, "padding")
        self.dilation = each(dilation, spatial, "dilation", 1)
        for p, k in zip(self.low, self.kernel):
            if 2 * p > k:
                raise UserError(f"padding = {p} is more than half of kernel_size = {k}", code="MLC0360")

    def high(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        """How much goes after each dimension; with ceil_mode, so much that the last window begins within the input."""
        return tuple(self._high(*axis) for axis in zip(shape, self.kernel, self.stride, self.low, self.dilation))

    def _high(self, n: Dim, k: int, s: int, p: int, d: int) -> Dim:
        if not self.ceil_mode:
            return p
        if not isinstance(n, int):
            raise UserError(f"ceil_mode needs sizes that are known, found {n}", code="MLC0365")
        count = -(-(n + 2 * p - (k - 1) * d - 1) // s) + 1
        count -= (count - 1) * s >= n + p
        return max(p, (count - 1) * s + (k - 1) * d + 1 - n - p)


def _max_pool(input: Operand, geometry: _Geometry, return_indices: bool) -> Any:
    x, was_added = batched(floating(input), geometry.spatial, "the input")
    high = geometry.high(x.shape[2:])
    out: Tracer = emit(T.MaxPool, x, geometry.kernel, geometry.stride, geometry.low, high, geometry.dilation)
    fits(out, x)
    values = unbatched(out, was_added)
    return (values, unbatched(_places(x, out, geometry, high), was_added)) if return_indices else values


def _places(x: Tracer, out: Tracer, geometry: _Geometry, high: Sequence[Dim]) -> Tracer:
    """Where in each image, its spatial dimensions flattened, the first greatest element of a window lies."""
    image, g = x.shape[2:], geometry
    place: Any = number(0, i64)
    for i, n in enumerate(image):
        place = place * (n if isinstance(n, int) else tracer(n)) + emit(
            T.Iota, tuple(n if a == i else 1 for a, n in enumerate(image)), i, i64)
    far = number(np.iinfo(np.int64).max, i64)
    last = emit(T.BroadcastTo, tracer(place), tuple(image))
    last = windows(padded(last, g.low, high, -1), g.kernel, g.stride, g.dilation)
    spread = windows(padded(x, g.low, high, NEGATIVE_INFINITY), g.kernel, g.stride, g.dilation)
    inside = tuple(range(3, spread.ndim, 2))
    best = reshape(out, [1 if a in inside else n for a, n in enumerate(spread.shape)])
    found = E.logical_and(E.logical_or(spread == best, E.isnan(spread)), last >= 0)
    return emit(T.ReduceMin, tracer(E.where(found, last, far)), inside, "chain")  # type: ignore[no-any-return]


@operation()
def max_pool1d(input: Operand, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1,
               ceil_mode: bool = False, return_indices: bool = False) -> Any:
    """The greatest element of each window, and with return_indices also where it stands."""
    return _max_pool(input, _Geometry(1, kernel_size, stride, padding, dilation, ceil_mode), return_indices)


@operation()
def max_pool2d(input: Operand, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1,
               ceil_mode: bool = False, return_indices: bool = False) -> Any:
    """max_pool1d over two dimensions; an index counts in the flattened image"""
    return _max_pool(input, _Geometry(2, kernel_size, stride, padding, dilation, ceil_mode), return_indices)


@operation()
def max_pool3d(input: Operand, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1,
               ceil_mode: bool = False, return_indices: bool = False) -> Any:
    """max_pool1d over three dimensions; an index counts in the flattened image"""
    return _max_pool(input, _Geometry(3, kernel_size, stride, padding, dilation, ceil_mode), return_indices)


# -- averages ---------------------------------------------------------------------------------------------------------
def _sums(x: Tracer, geometry: _Geometry) -> Tracer:
    """The sum of each window."""
    spread = windows(padded(x, geometry.low, geometry.high(x.shape[2:])), geometry.kernel, geometry.stride,
                     geometry.dilation)
    return emit(T.ReduceSum, spread, tuple(range(3, spread.ndim, 2)), "chain")  # type: ignore[no-any-return]


def _avg_pool(input: Operand, geometry: _Geometry, count_include_pad: bool, divisor: int | None) -> Tensor:
    given, was_added = batched(R.float_only(tracer(input), "avg_pool"), geometry.spatial, "the input")
    x = cast(given, f32) if given.type.dtype.width < 32 else given
    total = _sums(x, geometry)
    fits(total, x)
    if divisor is not None:
        if plain_int(divisor, "divisor_override") == 0:
            raise UserError("divisor_override = 0", code="MLC0360")
        out = total / divisor
    else:
        out = total / cast(tracer(_counts(x.shape[2:], total.shape[2:], geometry, count_include_pad)), x.type.dtype)
    return unbatched(cast(tracer(out), given.type.dtype), was_added)


def _counts(shape: Sequence[Dim], out: Sequence[Dim], geometry: _Geometry, with_padding: bool) -> Any:
    """How many elements each window has: what lies in the input, or also the padding that was asked for."""
    if not geometry.ceil_mode and (with_padding or not any(geometry.low)):
        return number(int(np.prod(geometry.kernel)), i64)
    total: Any = number(1, i64)
    for i, (n, count, k, s, p) in enumerate(zip(shape, out, geometry.kernel, geometry.stride, geometry.low)):
        start = emit(T.Iota, tuple(count if a == i else 1 for a in range(len(out))), i, i64) * s - p
        limit = n + p if with_padding else n
        stop = E.minimum(start + k, limit if isinstance(limit, int) else tracer(limit))
        total = total * (stop - (start if with_padding else E.maximum(start, 0)))
    return total


@operation()
def avg_pool1d(input: Operand, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
               ceil_mode: bool = False, count_include_pad: bool = True) -> Tensor:
    """The mean of each window"""
    return _avg_pool(input, _Geometry(1, kernel_size, stride, padding, 1, ceil_mode), count_include_pad, None)


@operation()
def avg_pool2d(input: Operand, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
               ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
    """The mean of each window, or its sum divided by divisor_override"""
    return _avg_pool(input, _Geometry(2, kernel_size, stride, padding, 1, ceil_mode), count_include_pad,
                     divisor_override)


@operation()
def avg_pool3d(input: Operand, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
               ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
    """avg_pool2d over three dimensions"""
    return _avg_pool(input, _Geometry(3, kernel_size, stride, padding, 1, ceil_mode), count_include_pad,
                     divisor_override)


def _lp_pool(input: Operand, p: float, geometry: _Geometry) -> Tensor:
    if not p or not math.isfinite(p):
        raise UserError(f"norm_type = {p}", code="MLC0360", hint="use max_pool for the maximum")
    x, was_added = batched(R.float_only(tracer(input), "lp_pool"), geometry.spatial, "the input")

    def norms(x: Tracer) -> Tensor:
        total: Any = _sums(tracer(E.pow(x, p)), geometry)
        fits(total, x)
        if geometry.ceil_mode:                     # a window that sticks out counts as a whole one of the same mean
            counts = cast(tracer(_counts(x.shape[2:], total.shape[2:], geometry, False)), x.type.dtype)
            total = total * (int(np.prod(geometry.kernel)) / counts)
        zero = total == 0                          # the root's derivative at 0 is infinite; that of relu before it is 0
        return E.where(zero, 0.0, E.pow(E.where(zero, 1.0, total), 1 / p))
    return unbatched(rounded_once(norms, x), was_added)


@operation()
def lp_pool1d(input: Operand, norm_type: float, kernel_size: Ints, stride: Ints | None = None,
              ceil_mode: bool = False) -> Tensor:
    """(the sum of input ** norm_type over each window) ** (1 / norm_type)"""
    return _lp_pool(input, norm_type, _Geometry(1, kernel_size, stride, 0, 1, ceil_mode))


@operation()
def lp_pool2d(input: Operand, norm_type: float, kernel_size: Ints, stride: Ints | None = None,
              ceil_mode: bool = False) -> Tensor:
    """lp_pool1d over two dimensions"""
    return _lp_pool(input, norm_type, _Geometry(2, kernel_size, stride, 0, 1, ceil_mode))


@operation()
def lp_pool3d(input: Operand, norm_type: float, kernel_size: Ints, stride: Ints | None = None,
              ceil_mode: bool = False) -> Tensor:
    """lp_pool1d over three dimensions"""
    return _lp_pool(input, norm_type, _Geometry(3, kernel_size, stride, 0, 1, ceil_mode))


# -- a given number of windows ----------------------------------------------------------------------------------------
def _outputs(output_size: Any, shape: Sequence[Dim]) -> list[Dim]:
    """The sizes asked for; None keeps a size."""
    given = tuple(output_size) if isinstance(output_size, tuple | list) else (output_size,) * len(shape)
    if len(given) != len(shape):
        raise UserError(f"output_size = {output_size} has {len(given)} entries for {len(shape)} spatial dimensions",
                        code="MLC0357")
    return [n if o is None else count_of(o, "output_size") for o, n in zip(given, shape)]


def _divided(x: Tracer, out: Sequence[Dim], fill: float | int) -> tuple[Tracer, Tracer]:
    """x as [n, c, windows and their elements for each dimension], and how many elements each window has.

    Window i of o goes from floor(i * n / o) to ceil((i + 1) * n / o). Where they differ in length, `fill` is in place
    of what the shorter ones lack.
    """
    total: Any = number(1, i64)
    for i, (n, o) in enumerate(zip(x.shape[2:], out)):
        at = 2 + 2 * i
        if n == o:                                         # also of 0 elements: None keeps what is there
            x = reshape(x, [*x.shape[:at], n, 1, *x.shape[at + 1:]])
        elif o == 0:
            raise UserError("output_size = 0", code="MLC0360")
        elif n % o == 0:
            x = reshape(x, [*x.shape[:at], o, n // o, *x.shape[at + 1:]])
            total = total * (n // o if isinstance(n, int) else tracer(n // o))
        elif isinstance(n, int) and isinstance(o, int):
            x, lengths = _uneven(x, at, n, o, fill)
            total = total * reshape(lengths, [o if a == i else 1 for a in range(len(out))])
        else:
            raise UserError(f"{o} windows of a size that is not known: {n}", code="MLC0365")
    return x, total


def _uneven(x: Tracer, at: int, n: int, o: int, fill: float | int) -> tuple[Tracer, Tracer]:
    starts = np.arange(o) * n // o
    lengths = -(-(np.arange(o) + 1) * n // o) - starts
    inside = np.arange(lengths.max())
    places = np.minimum(starts[:, None] + inside, n - 1)
    picked = emit(T.Take, x, emit(T.Constant, places), at)
    missing = emit(T.Constant, inside >= lengths[:, None])
    missing = reshape(missing, [*places.shape, *[1] * (x.ndim - at - 1)])
    return tracer(E.masked_fill(picked, missing, fill)), emit(T.Constant, lengths)


def _adaptive_avg(spatial: int, input: Operand, output_size: Any) -> Tensor:
    given, was_added = batched(R.float_only(tracer(input), "adaptive_avg_pool"), spatial, "the input")
    x = cast(given, f32) if given.type.dtype.width < 32 else given
    spread, count = _divided(x, _outputs(output_size, x.shape[2:]), 0)
    total = emit(T.ReduceSum, spread, tuple(range(3, spread.ndim, 2)))
    return unbatched(cast(tracer(total / cast(count, x.type.dtype)), given.type.dtype), was_added)


def _adaptive_max(spatial: int, input: Operand, output_size: Any, return_indices: bool) -> Any:
    x, was_added = batched(R.float_only(tracer(input), "adaptive_max_pool"), spatial, "the input")
    image, out = x.shape[2:], _outputs(output_size, x.shape[2:])
    if all(isinstance(n, int) and isinstance(o, int) and o and n % o == 0 for n, o in zip(image, out)):
        kernel = [n // o for n, o in zip(image, out)]
        if all(kernel):
            found = _max_pool(x, _Geometry(spatial, kernel, None, 0, 1, False), return_indices)
            return tuple(unbatched(y, was_added) for y in found) if return_indices else unbatched(found, was_added)
    best = R.max(_last(_divided(x, out, NEGATIVE_INFINITY)[0]), -1)
    values = unbatched(best.values, was_added)
    if not return_indices:
        return values
    place = reshape(emit(T.Iota, (sizes.product(image),), 0, i64), [1, 1, *image])
    places = _last(_divided(place, out, -1)[0])
    places = emit(T.BroadcastTo, places, (*best.indices.shape, places.shape[-1]))
    chosen = emit(T.TakeAlong, places, reshape(tracer(best.indices), [*best.indices.shape, 1]), places.ndim - 1)
    return values, unbatched(reshape(chosen, best.indices.shape), was_added)


def _last(x: Tracer) -> Tracer:
    """The elements of windows, of all dimensions, as one last dimension."""
    inside = range(3, x.ndim, 2)
    moved = tracer(permute(x, [*(a for a in range(x.ndim) if a not in inside), *inside]))
    return reshape(moved, [*moved.shape[: -len(inside)], sizes.product(moved.shape[-len(inside):])])


@operation()
def adaptive_avg_pool1d(input: Operand, output_size: Any) -> Tensor:
    """The mean of each of output_size windows that divide the input as evenly as can be"""
    return _adaptive_avg(1, input, output_size)


@operation()
def adaptive_avg_pool2d(input: Operand, output_size: Any) -> Tensor:
    """adaptive_avg_pool1d over two dimensions; None keeps a size"""
    return _adaptive_avg(2, input, output_size)


@operation()
def adaptive_avg_pool3d(input: Operand, output_size: Any) -> Tensor:
    """adaptive_avg_pool1d over three dimensions; None keeps a size"""
    return _adaptive_avg(3, input, output_size)


@operation()
def adaptive_max_pool1d(input: Operand, output_size: Any, return_indices: bool = False) -> Any:
    """The greatest element of each of output_size windows that divide the input as evenly as can be"""
    return _adaptive_max(1, input, output_size, return_indices)


@operation()
def adaptive_max_pool2d(input: Operand, output_size: Any, return_indices: bool = False) -> Any:
    """adaptive_max_pool1d over two dimensions; None keeps a size"""
    return _adaptive_max(2, input, output_size, return_indices)


@operation()
def adaptive_max_pool3d(input: Operand, output_size: Any, return_indices: bool = False) -> Any:
    """adaptive_max_pool1d over three dimensions; None keeps a size"""
    return _adaptive_max(3, input, output_size, return_indices)
