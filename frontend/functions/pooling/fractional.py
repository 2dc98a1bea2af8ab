"""Fractional max pooling: windows at random places that the number of results, rather than a step, spaces."""

from __future__ import annotations

from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import random
from mlc.frontend.functions.convolution import Ints, batched, each, unbatched
from mlc.frontend.functions.index import gather
from mlc.frontend.functions.reduce import argmax
from mlc.frontend.functions.shape import permute, sliced
from mlc.frontend.generator import drawing
from mlc.frontend.operands import cast, floating, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.types import i64


def _pooled(input: Operand, kernel_size: Ints, output_size: Any, output_ratio: Any, return_indices: bool,
            samples: Operand, key: Operand, spatial: int) -> Any:
    x, was_added = batched(floating(input), spatial, "the input")
    image = x.shape[2:]
    for n in image:
        if not isinstance(n, int):
            raise UserError(f"fractional pooling needs sizes that are known, found {n}", code="MLC0365",
                            symbols=sizes.symbols(n))
    kernel = each(kernel_size, spatial, "kernel_size", 1)
    out = _outputs(output_size, output_ratio, image, spatial)
    for n, k, o in zip(image, kernel, out):
        if o < 1 or o + k - 1 > n:
            raise UserError(f"{o} windows of size {k} do not fit into {n} elements", code="MLC0115")
    if samples is None:
        if key is None:
            raise UserError("fractional pooling needs a key to draw with", code="MLC0353",
                            hint="pass key=mlc.random.key(seed), and another one every time: see mlc.random.split")
        samples = random.uniform(key, (*x.shape[:2], spatial), dtype=x.dtype)
    drawn = cast(tracer(samples), x.type.dtype)
    if was_added and drawn.ndim == 3:                      # those of the first image, as in PyTorch
        drawn = sliced(drawn, 0, 0, 1)
    if drawn.shape != (*x.shape[:2], spatial):
        raise UserError(f"samples of shape {list(drawn.shape)}, expected {[*x.shape[:2], spatial]}", code="MLC0367")
    order = range(spatial) if spatial == 3 else reversed(range(spatial))   # as PyTorch takes them
    places = [_places(drawn, s, n, k, o) for s, n, k, o in zip(order, image, kernel, out)]
    flat = places[0]
    for at in range(1, spatial):
        flat = flat[..., None] * image[at] + places[at][:, :, *[None] * at]
    return _maxima(x, tracer(flat), kernel, out, return_indices, was_added)


def _outputs(output_size: Any, output_ratio: Any, image: Any, spatial: int) -> tuple[int, ...]:
    if (output_size is None) == (output_ratio is None):
        raise UserError("fractional pooling takes either output_size or output_ratio", code="MLC0360")
    if output_ratio is None:
        return each(output_size, spatial, "output_size", 1)
    ratios = tuple(output_ratio) if isinstance(output_ratio, tuple | list) else (output_ratio,) * spatial
    if len(ratios) != spatial or not all(isinstance(r, int | float) and 0 < r < 1 for r in ratios):
        raise UserError(f"output_ratio = {output_ratio}, expected numbers between 0 and 1", code="MLC0360")
    return tuple(int(n * r) for n, r in zip(image, ratios))


def _places(samples: Tracer, which: int, n: int, kernel: int, out: int) -> Any:
    """The positions [batch, channels, out * kernel] of all elements of the windows along a dimension."""
    u = samples[:, :, which:which + 1]
    i = cast(emit(T.Iota, (1, 1, out), 2, i64), samples.type.dtype)
    step = (n - kernel) / (out - 1) if out > 1 else 0.0
    start: Any = cast(tracer(E.trunc((i + u) * step) - E.trunc(u * step)), i64)
    start = E.where(i == out - 1, n - kernel, start)
    place = start[..., None] + emit(T.Iota, (1, 1, 1, kernel), 3, i64)
    return reshape(tracer(place), [*samples.shape[:2], out * kernel])


def _maxima(x: Tracer, flat: Tracer, kernel: tuple[int, ...], out: tuple[int, ...], return_indices: bool,
            was_added: bool) -> Any:
    """The greatest element of each window, whose flat positions are in a grid of all windows."""
    lead, spatial = x.shape[:2], len(out)
    split = reshape(flat, [*lead, *(n for pair in zip(out, kernel) for n in pair)])
    axes = [0, 1, *range(2, 2 + 2 * spatial, 2), *range(3, 3 + 2 * spatial, 2)]
    at = reshape(tracer(permute(split, axes)), [*lead, sizes.product(out), sizes.product(kernel)])
    elements = reshape(x, [*lead, sizes.product(x.shape[2:])])
    windows = reshape(tracer(gather(elements, 2, reshape(at, [*lead, sizes.product(at.shape[2:])]))), at.shape)
    best = tracer(gather(at, 3, argmax(E.detach(windows), 3, True)))
    best = reshape(best, [*lead, sizes.product(out)])
    found = [reshape(tracer(y), [*lead, *out]) for y in (gather(elements, 2, best), best)]
    values, indices = (unbatched(y, was_added) for y in found)
    return (values, indices) if return_indices else values


@drawing(lambda given: given["_random_samples"] is None)
@operation(autocast="fp32", static=("key",))
def fractional_max_pool2d(input: Operand, kernel_size: Ints, output_size: Any = None, output_ratio: Any = None,
                          return_indices: bool = False, _random_samples: Operand = None, *,
                          key: Operand = None) -> Any:
    """The greatest elements of windows at random places (Graham 2014, "Fractional Max-Pooling").

    Args:
        input: Tensor of shape (n, c, h, w), or one image without n.
        kernel_size: Size of the windows, an integer, or one for each dimension.
        output_size: Number of windows, likewise.
        output_ratio: The same as a fraction of the size of the input, likewise.
        return_indices: Whether to give the positions of the maxima in the flattened images, too.
        _random_samples: Tensor of shape (n, c, 2) of numbers in [0, 1) that decide on the places; None to draw them.
        key: Random key, needed without `_random_samples`.

    Returns:
        Tensor of the dtype of `input`; with `return_indices` a pair of it and of the indices, int64.

    Raises:
        UserError: Neither or both of `output_size` and `output_ratio` are given, or one is out of range (MLC0360), the
            windows do not fit (MLC0115), the samples have another shape (MLC0367), there is no key (MLC0353), or the
            number of dimensions is wrong (MLC0364).

    Example:
        >>> x = mlc.arange(16.0).reshape(1, 4, 4)
        >>> nn.functional.fractional_max_pool2d(x, 2, output_size=2, _random_samples=mlc.zeros(1, 1, 2))
        tensor([[[ 5.,  7.],
                 [13., 15.]]], dtype=mlc.float32)
    """
    return _pooled(input, kernel_size, output_size, output_ratio, return_indices, _random_samples, key, 2)


@drawing(lambda given: given["_random_samples"] is None)
@operation(autocast="fp32", static=("key",))
def fractional_max_pool3d(input: Operand, kernel_size: Ints, output_size: Any = None, output_ratio: Any = None,
                          return_indices: bool = False, _random_samples: Operand = None, *,
                          key: Operand = None) -> Any:
    """The greatest elements of windows at random places of volumes, as `fractional_max_pool2d`.

    Args:
        input: Tensor of shape (n, c, d, h, w), or one volume without n.
        kernel_size: Size of the windows, an integer, or one for each dimension.
        output_size: Number of windows, likewise.
        output_ratio: The same as a fraction of the size of the input, likewise.
        return_indices: Whether to give the positions of the maxima in the flattened volumes, too.
        _random_samples: Tensor of shape (n, c, 3) of numbers in [0, 1) that decide on the places; None to draw them.
        key: Random key, needed without `_random_samples`.

    Returns:
        Tensor of the dtype of `input`; with `return_indices` a pair of it and of the indices, int64.

    Raises:
        UserError: As for `fractional_max_pool2d` (MLC0360, MLC0115, MLC0367, MLC0353, MLC0364).

    Example:
        >>> samples = mlc.zeros(1, 1, 3)
        >>> nn.functional.fractional_max_pool3d(mlc.ones(1, 4, 4, 4), 2, output_size=2, _random_samples=samples).shape
        (1, 2, 2, 2)
    """
    return _pooled(input, kernel_size, output_size, output_ratio, return_indices, _random_samples, key, 3)
