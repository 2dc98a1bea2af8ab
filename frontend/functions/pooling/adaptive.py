"""Pooling into a given number of windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions.convolution import batched, unbatched
from mlc.frontend.functions.pooling.sliding import Geometry, max_pool_windows
from mlc.frontend.functions.shape import permute
from mlc.frontend.operands import cast, count_of, number, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim
from mlc.ir.types import f32, i64


def _outputs(output_size: Any, shape: Sequence[Dim]) -> list[Dim]:
    """The requested output sizes; None keeps a size."""
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
        if n == o:                                         # also for 0 elements, where None keeps the size
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
            raise UserError(f"{o} windows of a size that is not known: {n}", code="MLC0365",
                            symbols=sizes.symbols(*(d for d in (n, o) if not isinstance(d, int))))
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
            found = max_pool_windows(x, Geometry(spatial, kernel, None, 0, 1, False), return_indices)
            return tuple(unbatched(y, was_added) for y in found) if return_indices else unbatched(found, was_added)
    best = R.max(_last(_divided(x, out, -math.inf)[0]), -1)
    values = unbatched(best.values, was_added)
    if not return_indices:
        return values
    place = reshape(emit(T.Iota, (sizes.product(image),), 0, i64), [1, 1, *image])
    places = _last(_divided(place, out, -1)[0])
    places = emit(T.BroadcastTo, places, (*best.indices.shape, places.shape[-1]))
    chosen = emit(T.TakeAlong, places, reshape(tracer(best.indices), [*best.indices.shape, 1]), places.ndim - 1)
    return values, unbatched(reshape(chosen, best.indices.shape), was_added)


def _last(x: Tracer) -> Tracer:
    """Merge the window dimensions into one last dimension."""
    inside = range(3, x.ndim, 2)
    moved = tracer(permute(x, [*(a for a in range(x.ndim) if a not in inside), *inside]))
    return reshape(moved, [*moved.shape[: -len(inside)], sizes.product(moved.shape[-len(inside):])])


@operation()
def adaptive_avg_pool1d(input: Operand, output_size: Any) -> Tensor:
    """The mean of each of `output_size` windows that divide the input as evenly as can be.

    Window i of o covers the elements from floor(i * n / o) to ceil((i + 1) * n / o) - 1.

    Args:
        input: Tensor of shape (n, c, w), or one image without n, of floats.
        output_size: Number of windows, an integer.

    Returns:
        Tensor of shape (n, c, *output_size).

    Raises:
        UserError: elements are no floats (MLC0359), the number of dimensions is wrong (MLC0364), or `output_size` has
            the wrong length (MLC0357) or is 0 (MLC0360).

    Example:
        >>> nn.functional.adaptive_avg_pool1d(mlc.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]]), 2)
        tensor([[2., 4.]], dtype=mlc.float32)
    """
    return _adaptive_avg(1, input, output_size)


@operation()
def adaptive_avg_pool2d(input: Operand, output_size: Any) -> Tensor:
    """The mean of each of `output_size` windows that divide the input as evenly as can be.

    Window i of o covers the elements from floor(i * n / o) to ceil((i + 1) * n / o) - 1.

    Args:
        input: Tensor of shape (n, c, h, w), or one image without n, of floats.
        output_size: Number of windows, an integer, or one for each dimension; None keeps a size.

    Returns:
        Tensor of shape (n, c, *output_size).

    Raises:
        UserError: elements are no floats (MLC0359), the number of dimensions is wrong (MLC0364), `output_size` has the
            wrong length (MLC0357) or is 0 (MLC0360), or a size of the result is negative (MLC0358).

    Example:
        >>> nn.functional.adaptive_avg_pool2d(mlc.ones(1, 1, 4, 4), 2)
        tensor([[[[1., 1.],
                  [1., 1.]]]], dtype=mlc.float32)
    """
    return _adaptive_avg(2, input, output_size)


@operation(autocast="fp32")
def adaptive_avg_pool3d(input: Operand, output_size: Any) -> Tensor:
    """The mean of each of `output_size` windows that divide the input as evenly as can be.

    Window i of o covers the elements from floor(i * n / o) to ceil((i + 1) * n / o) - 1.

    Args:
        input: Tensor of shape (n, c, d, h, w), or one image without n, of floats.
        output_size: Number of windows, an integer, or one for each dimension; None keeps a size.

    Returns:
        Tensor of shape (n, c, *output_size).

    Raises:
        UserError: elements are no floats (MLC0359), the number of dimensions is wrong (MLC0364), `output_size` has the
            wrong length (MLC0357) or is 0 (MLC0360), or a size of the result is negative (MLC0358).

    Example:
        >>> nn.functional.adaptive_avg_pool3d(mlc.ones(1, 1, 4, 4, 4), 2)
        tensor([[[[[1., 1.],
                   [1., 1.]],
        <BLANKLINE>
                  [[1., 1.],
                   [1., 1.]]]]], dtype=mlc.float32)
    """
    return _adaptive_avg(3, input, output_size)


@operation()
def adaptive_max_pool1d(input: Operand, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum of each of `output_size` windows that divide the input as evenly as can be.

    Window i of o covers the elements from floor(i * n / o) to ceil((i + 1) * n / o) - 1.

    Args:
        input: Tensor of shape (n, c, w), or one image without n, of floats.
        output_size: Number of windows, an integer.
        return_indices: Whether to tell where each maximum stands, the first of several, in the flattened image.

    Returns:
        Tensor of shape (n, c, *output_size), or a pair of it and the indices, of int64.

    Raises:
        UserError: elements are no floats (MLC0359), the number of dimensions is wrong (MLC0364), `output_size` has the
            wrong length (MLC0357) or is 0 (MLC0360), or a size of the result is negative (MLC0358).

    Example:
        >>> nn.functional.adaptive_max_pool1d(mlc.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]]), 2)
        tensor([[3., 5.]], dtype=mlc.float32)
    """
    return _adaptive_max(1, input, output_size, return_indices)


@operation()
def adaptive_max_pool2d(input: Operand, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum of each of `output_size` windows that divide the input as evenly as can be.

    Window i of o covers the elements from floor(i * n / o) to ceil((i + 1) * n / o) - 1.

    Args:
        input: Tensor of shape (n, c, h, w), or one image without n, of floats.
        output_size: Number of windows, an integer, or one for each dimension; None keeps a size.
        return_indices: Whether to tell where each maximum stands, the first of several, in the flattened image.

    Returns:
        Tensor of shape (n, c, *output_size), or a pair of it and the indices, of int64.

    Raises:
        UserError: elements are no floats (MLC0359), the number of dimensions is wrong (MLC0364), `output_size` has the
            wrong length (MLC0357) or is 0 (MLC0360), or a size of the result is negative (MLC0358).

    Example:
        >>> nn.functional.adaptive_max_pool2d(mlc.ones(1, 1, 4, 4), 2)
        tensor([[[[1., 1.],
                  [1., 1.]]]], dtype=mlc.float32)
    """
    return _adaptive_max(2, input, output_size, return_indices)


@operation(autocast="fp32")
def adaptive_max_pool3d(input: Operand, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum of each of `output_size` windows that divide the input as evenly as can be.

    Window i of o covers the elements from floor(i * n / o) to ceil((i + 1) * n / o) - 1.

    Args:
        input: Tensor of shape (n, c, d, h, w), or one image without n, of floats.
        output_size: Number of windows, an integer, or one for each dimension; None keeps a size.
        return_indices: Whether to tell where each maximum stands, the first of several, in the flattened image.

    Returns:
        Tensor of shape (n, c, *output_size), or a pair of it and the indices, of int64.

    Raises:
        UserError: elements are no floats (MLC0359), the number of dimensions is wrong (MLC0364), `output_size` has the
            wrong length (MLC0357) or is 0 (MLC0360), or a size of the result is negative (MLC0358).

    Example:
        >>> nn.functional.adaptive_max_pool3d(mlc.ones(1, 1, 4, 4, 4), 2)
        tensor([[[[[1., 1.],
                   [1., 1.]],
        <BLANKLINE>
                  [[1., 1.],
                   [1., 1.]]]]], dtype=mlc.float32)
    """
    return _adaptive_max(3, input, output_size, return_indices)
