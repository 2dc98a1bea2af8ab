"""Resizing of images, and rearrangement of channels."""

from __future__ import annotations

from math import floor, prod
from typing import Any

import numpy as np

from mlc.dialects import tensor as T
from mlc.frontend.axes import plain_int
from mlc.frontend.functions.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from mlc.frontend.functions.shape import permute
from mlc.frontend.operands import broadcast_to, cast, count_of, floating, reshape, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.bounds import MAX_ELEMENTS
from mlc.ir.diag import UserError, UserMemoryError, UserTypeError
from mlc.ir.sizes import Dim
from mlc.ir.types import f32, to_numpy

Array = np.ndarray[Any, Any]

LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}
"""The interpolating modes, and the numbers of spatial dimensions that they support."""
MODES = ("nearest", "nearest-exact", *LINEAR, "area")


@operation()
def interpolate(input: Operand, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Tensor:
    """Resize images by interpolation.

    Bicubic interpolation is that of Keys 1981, with a = -3/4. Reducing does no smoothing beforehand, unless `antialias`
    is set: then each pixel is a weighted mean of all that it covers, with a = -1/2, as in the imaging library Pillow.

    Args:
        input: Tensor of shape (n, c, *image); integers become float32.
        size: Sizes of the new image, an integer, or one for each dimension.
        scale_factor: Factors of the sizes, in place of `size`; sizes are rounded down.
        mode: "nearest", "nearest-exact", "linear" (one dimension), "bilinear" and "bicubic" (two), "trilinear" (three)
            or "area".
        align_corners: Whether the centres of the corner pixels stay in place, rather than the corners of the images; of
            linear and cubic modes only.
        recompute_scale_factor: Whether to take the quotient of the sizes in place of `scale_factor`.
        antialias: Whether to smooth what is reduced; of "bilinear" and "bicubic" only.

    Returns:
        Tensor of shape (n, c, *new image) and the dtype of `input`.

    Raises:
        UserError: `mode` is another string or does not go with `align_corners` or `antialias` (MLC0360), or with the
            number of dimensions (MLC0364), not exactly one of `size` and `scale_factor` is given (MLC0353), it has the
            wrong length (MLC0357), a size is not positive (MLC0358) or symbolic (MLC0365), or a factor is no positive
            number (MLC0421).

    Example:
        >>> nn.functional.interpolate(mlc.tensor([[[1.0, 3.0]]]), 4)
        tensor([[[1., 1., 3., 3.]]], dtype=mlc.float32)
        >>> nn.functional.interpolate(mlc.tensor([[[1.0, 3.0]]]), 4, mode="linear")
        tensor([[[1. , 1.5, 2.5, 3. ]]], dtype=mlc.float32)
    """
    x = floating(input)
    spatial = x.ndim - 2
    if mode not in MODES:
        raise UserError(f"mode = {mode!r}", code="MLC0360", hint=f"use one of {', '.join(MODES)}")
    if spatial < 1 or LINEAR.get(mode, spatial) != spatial:
        raise UserError(f"mode = {mode!r} does not work on {x.ndim} dimensions", code="MLC0364")
    if align_corners is not None and mode not in LINEAR:
        raise UserError(f"align_corners does not go with mode = {mode!r}", code="MLC0360")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise UserError(f"antialias does not go with mode = {mode!r}", code="MLC0360")
    taps = _smoothing_taps if antialias else _taps
    out, scales = _sizes(x, size, scale_factor, bool(recompute_scale_factor))
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[spatial - 1](x, out)
    wide = cast(x, f32) if x.type.dtype.width < 32 and mode in LINEAR else x
    for i, (o, scale) in enumerate(zip(out, scales)):
        n = x.shape[2 + i]
        if not isinstance(n, int):
            raise UserError(f"interpolate needs sizes that are known, found {n}", code="MLC0365",
                            symbols=sizes.symbols(n))
        if mode not in LINEAR:
            wide = _nearest(wide, 2 + i, n, o, scale, mode)
        elif n != o or (scale != 1 and (antialias or mode == "bicubic")):      # PyTorch copies a size that stays
            wide = _mixed(wide, 2 + i, *taps(n, o, scale, bool(align_corners), mode == "bicubic"))
    return cast(wide, x.type.dtype)


@operation()
def upsample(input: Operand, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
             align_corners: bool | None = None) -> Tensor:
    """Images in another size, as `interpolate`.

    PyTorch's former name; new programs call `nn.functional.interpolate`, which says what the modes compute.

    Args:
        input: Tensor of shape (n, c, *image); integers become float32.
        size: Sizes of the new image, an integer, or one for each dimension.
        scale_factor: Factors of the sizes, in place of `size`.
        mode: As of `interpolate`.
        align_corners: As of `interpolate`.

    Returns:
        Tensor of shape (n, c, *new image) and the dtype of `input`.

    Raises:
        UserError: the arguments do not fit, as in `interpolate` (MLC0353, MLC0357, MLC0358, MLC0360, MLC0364).

    Example:
        >>> nn.functional.upsample(mlc.tensor([[[1.0, 3.0]]]), 4)
        tensor([[[1., 1., 3., 3.]]], dtype=mlc.float32)
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


@operation()
def upsample_nearest(input: Operand, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Images in another size, as `interpolate` with mode "nearest".

    Args:
        input: Tensor of shape (n, c, *image); integers become float32.
        size: Sizes of the new image, an integer, or one for each dimension.
        scale_factor: Factors of the sizes, in place of `size`.

    Returns:
        Tensor of shape (n, c, *new image) and the dtype of `input`.

    Raises:
        UserError: the arguments do not fit, as in `interpolate` (MLC0353, MLC0357, MLC0358, MLC0364).

    Example:
        >>> nn.functional.upsample_nearest(mlc.tensor([[[1.0, 3.0]]]), 4)
        tensor([[[1., 1., 3., 3.]]], dtype=mlc.float32)
    """
    return interpolate(input, size, scale_factor)


@operation()
def upsample_bilinear(input: Operand, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Images in another size, as `interpolate` with mode "bilinear" and aligned corners.

    Args:
        input: Tensor of shape (n, c, h, w); integers become float32.
        size: Sizes of the new image, an integer, or one for each dimension.
        scale_factor: Factors of the sizes, in place of `size`.

    Returns:
        Tensor of shape (n, c, *new image) and the dtype of `input`.

    Raises:
        UserError: the arguments do not fit, as in `interpolate` (MLC0353, MLC0357, MLC0358, MLC0364).

    Example:
        >>> nn.functional.upsample_bilinear(mlc.tensor([[[[1.0, 3.0]]]]), (1, 3))
        tensor([[[[1., 2., 3.]]]], dtype=mlc.float32)
    """
    return interpolate(input, size, scale_factor, "bilinear", True)


def _sizes(x: Tracer, size: Any, factor: Any, recompute: bool) -> tuple[list[int], list[float]]:
    """The sizes of the result, and the scale factors from output to input pixels."""
    spatial = x.ndim - 2
    if 0 in x.shape[2:]:
        raise UserError(f"an image of size {list(x.shape[2:])}", code="MLC0358")
    if (size is None) == (factor is None):
        raise UserError("interpolate needs either size or scale_factor", code="MLC0353")
    given = size if factor is None else factor
    listed = list(given) if isinstance(given, tuple | list) else [given] * spatial
    if len(listed) != spatial:
        raise UserError(f"{given} has {len(listed)} entries for {spatial} spatial dimensions", code="MLC0357")
    if factor is None:
        out = [count_of(o, "size") for o in listed]
    else:
        for f in listed:
            if not isinstance(f, int | float | np.integer | np.floating) or not 0 < f < 1e9:
                raise UserTypeError(f"scale_factor = {f!r}, expected a number above 0"[:200], code="MLC0421")
        out = [floor(_known(n) * f) for n, f in zip(x.shape[2:], listed)]
    if any(o < 1 for o in out):
        raise UserError(f"an image of size {out}", code="MLC0358")
    if prod(out) >= MAX_ELEMENTS:
        raise UserMemoryError(f"an image of size {out} is beyond all memory", code="MLC0328")
    if factor is None or recompute:
        return out, [_known(n) / o for n, o in zip(x.shape[2:], out)]
    return out, [1 / f for f in listed]


def _known(n: Dim) -> int:
    if not isinstance(n, int):
        raise UserError(f"interpolate needs sizes that are known, found {n}", code="MLC0365", symbols=sizes.symbols(n))
    return n


def _nearest(x: Tracer, at: int, n: int, o: int, scale: float, mode: str) -> Tracer:
    """Nearest-neighbour resampling along a dimension, by the left edge of each pixel, or with "-exact" its centre. By
    the left edge, a size of an image of two dimensions that stays or doubles does so whatever the scale is, as in
    PyTorch."""
    if o % n == 0 and (scale == n / o or (mode == "nearest" and x.ndim == 4 and o in (n, 2 * n))):
        wide = broadcast_to(reshape(x, [*x.shape[: at + 1], 1, *x.shape[at + 1:]]),
                            [*x.shape[: at + 1], o // n, *x.shape[at + 1:]])
        return reshape(wide, [*x.shape[:at], o, *x.shape[at + 1:]])
    place = np.arange(o, dtype=np.float32) + np.float32(0.5 if mode == "nearest-exact" else 0)
    source = np.floor(place * np.float32(scale)).astype(np.int64)
    return emit(T.Take, x, emit(T.Constant, np.minimum(source, n - 1)), at)  # type: ignore[no-any-return]


def _taps(n: int, o: int, scale: float, align_corners: bool, cubic: bool) -> tuple[Array, Array]:
    """Indices and weights of the input pixels that contribute to each output pixel along a dimension: [taps, o]."""
    place = np.arange(o, dtype=np.float64)
    if align_corners:
        source = place * ((n - 1) / (o - 1) if o > 1 else 0.0)
    else:
        source = (place + 0.5) * scale - 0.5
        source = source if cubic else np.maximum(source, 0)
    below = np.floor(source)
    part = source - below
    first, weights = (-1, [_cubic(1 + part), _cubic(part), _cubic(1 - part), _cubic(2 - part)]) if cubic else (
        0, [1 - part, part])
    places = below + np.arange(first, first + len(weights))[:, None]
    return np.clip(places, 0, n - 1).astype(np.int64), np.stack(weights)


def _smoothing_taps(n: int, o: int, scale: float, align_corners: bool, cubic: bool) -> tuple[Array, Array]:
    """The same for a filter that is as wide as the output pixels, where these are larger."""
    if align_corners:
        scale = (n - 1) / (o - 1) if o > 1 else 0.0
    width = max(scale, 1.0)
    reach = (2 if cubic else 1) * width
    centre = scale * (np.arange(o) + 0.5)
    first = np.maximum(np.trunc(centre - reach + 0.5), 0)
    last = np.minimum(np.trunc(centre + reach + 0.5), n)
    places = first + np.arange(int((last - first).max()))[:, None]
    distance = np.abs(places - centre + 0.5) / width
    weights = np.where(distance < 2, _cubic(distance, -0.5), 0) if cubic else np.maximum(1 - distance, 0)
    weights = np.where(places < last, weights, 0)
    return np.clip(places, 0, n - 1).astype(np.int64), weights / weights.sum(0)


def _cubic(t: Array, a: float = -0.75) -> Array:
    """The weight of a pixel at distance t in cubic convolution (Keys, 1981)."""
    near = (a + 2) * t**3 - (a + 3) * t**2 + 1
    far = a * (t**3 - 5 * t**2 + 8 * t - 4)
    return np.where(t <= 1, near, far)


def _mixed(x: Tracer, at: int, places: Array, weights: Array) -> Tracer:
    total: Any = None
    for place, weight in zip(places, weights.astype(to_numpy(x.type.dtype))):
        factor = reshape(emit(T.Constant, weight), [len(weight), *[1] * (x.ndim - at - 1)])
        part = emit(T.Take, x, emit(T.Constant, place), at) * factor
        total = part if total is None else total + part
    return tracer(total)


@operation()
def channel_shuffle(input: Operand, groups: int) -> Tensor:
    """The channels of several groups in turn: channel i * groups + g is channel i of group g (Zhang et al. 2018).

    Args:
        input: Tensor of shape (n, channels, *image).
        groups: Number of groups, a divisor of the channels.

    Returns:
        Tensor of the shape and dtype of `input`.

    Raises:
        UserError: `input` has fewer than 3 dimensions (MLC0364), or the groups do not divide the channels (MLC0358).

    Example:
        >>> nn.functional.channel_shuffle(mlc.reshape(mlc.arange(4), (1, 4, 1)), 2).flatten()
        tensor([0, 2, 1, 3], dtype=mlc.int64)
    """
    x, g = tracer(input), plain_int(groups, "groups")
    if x.ndim < 3:
        raise UserError(f"channel_shuffle needs at least 3 dimensions, found {x.ndim}", code="MLC0364")
    n, c, *rest = x.shape
    if g < 1 or c % g != 0:
        raise UserError(f"{c} channels do not make up {g} groups", code="MLC0358", symbols=sizes.symbols(c))
    x = tracer(permute(reshape(x, [n, g, c // g, *rest]), (0, 2, 1, *range(3, x.ndim + 1))))
    return reshape(x, [n, c, *rest])


@operation()
def pixel_shuffle(input: Operand, upscale_factor: int) -> Tensor:
    """Channels as pixels: result[..., c, h * r + i, w * r + j] = input[..., (c * r + i) * r + j, h, w].

    The method is that of Shi et al. 2016.

    Args:
        input: Tensor of shape (..., c * r * r, h, w).
        upscale_factor: The factor r.

    Returns:
        Tensor of shape (..., c, h * r, w * r) and the dtype of `input`.

    Raises:
        UserError: `input` has fewer than 3 dimensions (MLC0364), or the channels are no multiple of r * r (MLC0358).

    Example:
        >>> nn.functional.pixel_shuffle(mlc.reshape(mlc.arange(4), (4, 1, 1)), 2)
        tensor([[[0, 1],
                 [2, 3]]], dtype=mlc.int64)
    """
    x, r = tracer(input), plain_int(upscale_factor, "upscale_factor")
    channels, height, width = _image(x)
    if r < 1 or channels % (r * r) != 0:
        raise UserError(f"{channels} channels do not make pixels of {r} x {r}", code="MLC0358",
                        symbols=sizes.symbols(channels))
    lead, n = x.shape[:-3], x.ndim - 3
    parts = reshape(x, [*lead, channels // (r * r), r, r, height, width])
    moved = permute(parts, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return reshape(tracer(moved), [*lead, channels // (r * r), height * r, width * r])


@operation()
def pixel_unshuffle(input: Operand, downscale_factor: int) -> Tensor:
    """Pixels as channels: result[..., (c * r + i) * r + j, h, w] = input[..., c, h * r + i, w * r + j].

    It is the inverse of `pixel_shuffle`.

    Args:
        input: Tensor of shape (..., c, h * r, w * r).
        downscale_factor: The factor r.

    Returns:
        Tensor of shape (..., c * r * r, h, w) and the dtype of `input`.

    Raises:
        UserError: `input` has fewer than 3 dimensions (MLC0364), or its sizes are no multiples of r (MLC0358).

    Example:
        >>> nn.functional.pixel_unshuffle(mlc.reshape(mlc.arange(4), (1, 2, 2)), 2).shape
        (4, 1, 1)
    """
    x, r = tracer(input), plain_int(downscale_factor, "downscale_factor")
    channels, height, width = _image(x)
    if r < 1 or height % r != 0 or width % r != 0:
        raise UserError(f"images of {height} x {width} have no blocks of {r} x {r}", code="MLC0358",
                        symbols=sizes.symbols(*(n for n in (height, width) if r > 0 and n % r != 0)))
    lead, n = x.shape[:-3], x.ndim - 3
    parts = reshape(x, [*lead, channels, height // r, r, width // r, r])
    moved = permute(parts, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return reshape(tracer(moved), [*lead, channels * r * r, height // r, width // r])


def _image(x: Tracer) -> tuple[Dim, ...]:
    if x.ndim < 3:
        raise UserError(f"the input has {x.ndim} dimensions, expected [..., channels, height, width]", code="MLC0364")
    return x.shape[-3:]
