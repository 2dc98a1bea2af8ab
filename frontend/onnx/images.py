"""Images: resizing, sampling at points of a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlc.frontend.dtypes import DType
from mlc.frontend.element_types import iinfo
from mlc.frontend.onnx.table import row
from mlc.frontend.onnx.values import Array, axis_of, ints, refuse
from mlc.frontend.tensor import OPERATIONS as O
from mlc.ir.sizes import Size


@dataclass(frozen=True)
class Resizing:
    """Settings of Resize, by the names of its attributes."""

    mode: str
    coordinates: str
    nearest: str = "round_prefer_floor"
    cubic: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    extrapolation: float = 0.0


def positions(how: Resizing, n: int, m: int, scale: float, start: float, end: float) -> Array:
    """Where the elements of an axis of m are in the axis of n that it is made of."""
    x, whole = np.arange(m, dtype=np.float64), scale * n
    if how.coordinates == "asymmetric":
        return x / scale
    if how.coordinates == "align_corners":
        return np.zeros(m) if whole == 1 else x * (n - 1) / (whole - 1)
    if how.coordinates == "tf_crop_and_resize":
        first = start * (n - 1)
        return np.full(m, first + (end - start) * (n - 1) / 2) if whole == 1 else (
            first + x * (end - start) * (n - 1) / (whole - 1))
    if how.coordinates == "pytorch_half_pixel" and whole == 1:
        return np.full(m, -0.5)
    if how.coordinates == "half_pixel_symmetric":
        return n / 2 * (1 - m / whole) + (x + 0.5) / scale - 0.5
    if how.coordinates not in ("half_pixel", "pytorch_half_pixel"):
        refuse(f"coordinates by {how.coordinates!r}")
    return (x + 0.5) / scale - 0.5


def _cubic(x: Array, a: float) -> Array:
    """The kernel of cubic convolution."""
    x = np.abs(x)
    near, far = ((a + 2) * x - (a + 3)) * x * x + 1, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def weights(how: Resizing, n: int, at: Array, scale: float) -> Array:
    """The matrix by which an axis of n is multiplied to be resized."""
    m, out = len(at), np.zeros((len(at), n))
    base = np.ceil(at) - 1
    ratio = at - base                                      # more than 0, and at most 1
    if how.mode == "nearest":
        chosen = {"round_prefer_floor": np.ceil(at - 0.5), "round_prefer_ceil": np.floor(at + 0.5),
                  "floor": np.floor(at), "ceil": np.ceil(at)}.get(how.nearest)
        if chosen is None:
            refuse(f"the nearest element by {how.nearest!r}")
        out[np.arange(m), np.clip(chosen, 0, n - 1).astype(int)] = 1
        return out
    if how.mode not in ("linear", "cubic"):
        refuse(f"resizing of the mode {how.mode!r}")
    shrink = min(scale, 1.0) if how.antialias else 1.0
    reach = 1 if how.mode == "linear" else 2
    first = math.floor(-reach / shrink) + 1
    for k in range(first, 2 - first):
        away = (k - ratio) * shrink
        part = np.clip(1 - np.abs(away), 0, 1) if how.mode == "linear" else _cubic(away, how.cubic)
        place = base + k
        if how.exclude_outside:
            part = np.where((place < 0) | (place >= n), 0, part)
        np.add.at(out, (np.arange(m), np.clip(place, 0, n - 1).astype(int)), part)
    return out / out.sum(1, keepdims=True) if how.exclude_outside or how.antialias else out


def resized(x: Any, how: Resizing, axes: Sequence[int], sizes: Sequence[int], scales: Sequence[float],
            roi: Sequence[float] | None) -> Any:
    """x with axes of other sizes, one after the other."""
    outside = list[tuple[int, Array]]()
    if roi is None and how.coordinates == "tf_crop_and_resize":
        refuse("resizing of a region without the region")
    dtype = x.dtype
    for k, axis in enumerate(axes):
        n = x.shape[axis]
        start, end = (0.0, 1.0) if roi is None else (roi[k], roi[k + len(axes)])
        at = positions(how, n, sizes[k], scales[k], start, end)
        if how.coordinates == "tf_crop_and_resize":
            outside.append((axis, (at < 0) | (at > n - 1)))
        elif n == sizes[k] and scales[k] == 1:
            continue
        matrix = weights(how, n, at, scales[k])
        if how.mode == "nearest":
            x = O["index_select"](x, axis, matrix.argmax(1))
        else:
            x = x if x.dtype.is_floating_point else O["cast"](x, "float64")
            moved = O["matmul"](O["moveaxis"](x, axis, -1), O["cast"](matrix.T.copy(), x.dtype))
            x = O["moveaxis"](moved, -1, axis)
    for axis, mask in outside:
        shaped = mask.reshape([-1 if k == axis else 1 for k in range(x.ndim)])
        x = O["where"](shaped, O["full"]((), how.extrapolation, dtype=x.dtype), x)
    return x if x.dtype is dtype else _saturated(x, dtype)


def _saturated(x: Any, dtype: DType) -> Any:
    """Floats as the nearest integers of a type, as in ONNX's reference."""
    if dtype.name == "bool":
        refuse("tensors of bool are resized by weights")
    limits = iinfo(dtype)
    return O["cast"](O["clamp"](O["round"](x), limits.min, limits.max), dtype)


@row("Resize", since=11, known=("roi", "scales", "sizes"))
def resize(x: Any, roi: Any = None, scales: Any = None, sizes: Any = None, *, antialias: int = 0, axes: Any = None,
           coordinate_transformation_mode: str = "half_pixel", cubic_coeff_a: float = -0.75, exclude_outside: int = 0,
           extrapolation_value: float = 0.0, keep_aspect_ratio_policy: str = "stretch", mode: str = "nearest",
           nearest_mode: str = "round_prefer_floor") -> Any:
    over = list(range(x.ndim)) if axes is None else [axis_of(a, x.ndim) for a in axes]
    before = [x.shape[a] for a in over]
    if any(isinstance(n, Size) for n in before):
        kept = [k for k, n in enumerate(before) if not isinstance(n, Size)]
        if scales is None or not scales.size or any(scales.ravel()[k] != 1 for k in range(len(over)) if k not in kept):
            refuse("an axis of a symbolic size is resized")
        roi = None if roi is None or not roi.size else roi.ravel()[[*kept, *(k + len(over) for k in kept)]]
        scales, over, before = scales.ravel()[kept], [over[k] for k in kept], [before[k] for k in kept]
    if sizes is not None and sizes.size:
        after = ints(sizes)
        factors = [m / n for n, m in zip(before, after)]
        if keep_aspect_ratio_policy != "stretch":
            one = (min if keep_aspect_ratio_policy == "not_larger" else max)(factors)
            factors, after = [one] * len(factors), [math.floor(one * n + 0.5) for n in before]
    elif scales is not None and scales.size:
        factors = [float(s) for s in scales.ravel()]
        after = [math.floor(n * s) for n, s in zip(before, factors)]
    else:
        refuse("neither scales nor sizes are given")
    if len(factors) != len(over) or min(factors, default=1) <= 0 or max(after, default=0) > 1 << 20:
        refuse(f"the axes {over} are resized by {factors}")
    how = Resizing(mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a, bool(exclude_outside),
                   bool(antialias), extrapolation_value)
    region = None if roi is None or not roi.size else [float(r) for r in roi.ravel()]
    return resized(x, how, over, after, factors, region)


@row("Upsample")
def upsample_before_7(x: Any, *, height_scale: float, width_scale: float, mode: str = "nearest") -> Any:
    return resize_before_11(x, np.array([1, 1, height_scale, width_scale]), mode=mode)


@row("Upsample", since=7)
def upsample_before_9(x: Any, *, scales: Sequence[float], mode: str = "nearest") -> Any:
    return resize_before_11(x, np.array(scales), mode=mode)


@row("Resize", since=10, known=("scales",))
@row("Upsample", since=9, known=("scales",))
def resize_before_11(x: Any, scales: Any, *, mode: str = "nearest") -> Any:
    return resize(x, None, scales, mode=mode, coordinate_transformation_mode="asymmetric", nearest_mode="floor")


MODES = {"linear": "bilinear", "cubic": "bicubic", "bilinear": "bilinear", "bicubic": "bicubic", "nearest": "nearest"}


@row("GridSample")
def grid_sample(x: Any, grid: Any, *, align_corners: int = 0, mode: str = "bilinear",
                padding_mode: str = "zeros") -> Any:
    if mode not in MODES:
        refuse(f"sampling of the mode {mode!r}")
    return O["grid_sample"](x, grid, MODES[mode], padding_mode, bool(align_corners))


@row("AffineGrid", since=20, known=("size",))
def affine_grid(theta: Any, size: Any, *, align_corners: int = 0) -> Any:
    """A sum over axes. The function that ONNX defines it by squeezes the batch away too where that is of one image."""
    image = ints(size)[2:]
    count = len(image)
    if any(isinstance(n, Size) for n in image):
        refuse("the grid of an image of a symbolic size")
    if count not in (2, 3) or tuple(theta.shape[1:]) != (count, count + 1):
        refuse(f"maps of the shape {list(theta.shape)} for images of the shape {ints(size)}")

    def of_maps(column: int) -> Any:
        return O["reshape"](theta[:, :, column], (theta.shape[0], *(1,) * count, count))

    out = of_maps(count)
    for k, n in enumerate(image):
        step = 2 / max(n - 1, 1) if align_corners else 2 / max(n, 1)
        places = np.arange(n) * step - (1 if align_corners else 1 - step / 2)
        out = out + O["cast"](places.reshape([-1 if j == k else 1 for j in range(count + 1)]), theta.dtype) * of_maps(
            count - 1 - k)
    return out
