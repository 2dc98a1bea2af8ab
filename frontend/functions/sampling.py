"""Images sampled at any places."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.axes import plain_int
from mlc.frontend.functions import contract
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.create import ones
from mlc.frontend.functions.shape import movedim, stack
from mlc.frontend.operands import broadcast_to, cast, floating, reshape, together, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.types import i64

PADDING = ("zeros", "border", "reflection")
CUBIC = -0.75


@operation(autocast="fp32")
def grid_sample(input: Operand, grid: Operand, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Tensor:
    """Images sampled at the places of a grid: (-1, -1) is the upper left corner, (1, 1) the lower right one.

    Args:
        input: Tensor of floats of shape (n, c, h, w), or (n, c, d, h, w).
        grid: Tensor of shape (n, *out, 2), or (n, *out, 3): the places, in the order x, y, z.
        mode: "bilinear" (in three dimensions trilinear), "nearest" or, in two dimensions, "bicubic", that of Keys 1981
            with a = -3/4.
        padding_mode: What is beyond the edge: "zeros", "border" for the nearest pixel, or "reflection".
        align_corners: Whether -1 and 1 are the centres of the corner pixels, rather than the corners of the image.

    Returns:
        Tensor of shape (n, c, *out) and the promoted dtype.

    Raises:
        UserError: `mode` or `padding_mode` is another string (MLC0360), a number of dimensions is wrong (MLC0364),
            shapes do not fit (MLC0367), or the size of an image is symbolic (MLC0365).

    Example:
        >>> image = mlc.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> nn.functional.grid_sample(image, mlc.zeros(1, 1, 1, 2))
        tensor([[[[2.5]]]], dtype=mlc.float32)
    """
    x, places = together(input, grid, floating=True)
    spatial = x.ndim - 2
    if mode not in ("bilinear", "nearest", "bicubic") or padding_mode not in PADDING:
        raise UserError(f"mode = {mode!r}, padding_mode = {padding_mode!r}", code="MLC0360",
                        hint='use "bilinear", "nearest" or "bicubic", and "zeros", "border" or "reflection"')
    if spatial not in (2, 3) or places.ndim != x.ndim or (spatial == 3 and mode == "bicubic"):
        raise UserError(f"an input of {x.ndim} and a grid of {places.ndim} dimensions, for mode = {mode!r}",
                        code="MLC0364")
    if places.shape[-1] != spatial or not sizes.is_equal(places.shape[0], x.shape[0]):
        raise UserError(f"a grid of shape {list(places.shape)} does not fit images of shape {list(x.shape)}",
                        code="MLC0367")
    image = x.shape[2:]
    if not all(isinstance(n, int) for n in image):
        raise UserError(f"grid_sample needs sizes that are known, found {list(image)}", code="MLC0365")
    taps = []
    for k, n in enumerate(image):
        place = tracer(places[..., spatial - 1 - k])
        place = reshape(place, [place.shape[0], 1, sizes.product(place.shape[1:])])
        taps.append(_taps(place, int(n), mode, padding_mode, bool(align_corners)))
    flat = reshape(x, [*x.shape[:2], sizes.product(image)])
    total: Any = None
    for corner in itertools.product(*taps):
        index, weight = corner[0]
        for (more, factor), n in zip(corner[1:], image[1:]):
            index, weight = index * n + more, weight * factor
        where = broadcast_to(tracer(index), [*x.shape[:2], tracer(index).shape[-1]])
        part = emit(T.TakeAlong, flat, where, 2) * weight
        total = part if total is None else total + part
    return reshape(tracer(total), [*x.shape[:2], *places.shape[1:-1]])


def _taps(place: Tracer, n: int, mode: str, padding: str, align: bool) -> list[tuple[Any, Any]]:
    """Indices and weights of the pixels along one dimension of size n that a place in [-1, 1] takes."""
    at: Any = (place + 1.0) * (0.5 * (n - 1)) if align else ((place + 1.0) * n - 1.0) * 0.5
    if mode == "bicubic":
        first = E.floor(at)
        t = at - first
        return [_pixel(first + float(k - 1), n, padding, align, weight) for k, weight in enumerate(_cubic(t))]
    if padding != "zeros":
        at = _inside(at, n, padding, align)
    if mode == "nearest":
        return [_pixel(E.round(at), n, "zeros", align, 1.0)]
    first = E.floor(at)
    return [_pixel(first, n, "zeros", align, first + 1.0 - at), _pixel(first + 1.0, n, "zeros", align, at - first)]


def _cubic(t: Tensor) -> list[Tensor]:
    """Weights of the four neighbours, for a place t behind the second one."""
    def near(d: Tensor) -> Tensor:
        return ((CUBIC + 2) * d - (CUBIC + 3)) * d * d + 1.0

    def far(d: Tensor) -> Tensor:
        return ((CUBIC * d - 5 * CUBIC) * d + 8 * CUBIC) * d - 4 * CUBIC
    return [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]


def _inside(at: Tensor, n: int, padding: str, align: bool) -> Tensor:
    """A place brought into the image."""
    if padding == "reflection":
        low, span = (0.0, n - 1.0) if align else (-0.5, float(n))
        if span == 0:
            at = at * 0.0
        else:
            distance = E.abs(at - low)
            flips = E.detach(E.floor(distance / span))
            rest = distance - flips * span
            at = E.where(E.remainder(flips, 2.0) == 0, rest + low, span - rest + low)
    inside = (at > 0.0) & (at < n - 1.0)                   # at the border itself there is no derivative, as in PyTorch
    return E.where(inside, at, E.detach(E.clamp(at, 0.0, n - 1.0)))


def _pixel(at: Tensor, n: int, padding: str, align: bool, weight: Any) -> tuple[Any, Any]:
    """The index of a pixel, and its weight, which is 0 outside the image."""
    whole = E.detach(at if padding == "zeros" else _inside(at, n, padding, align))
    if padding == "zeros":
        weight = E.where((whole >= 0) & (whole <= n - 1), weight, 0.0)
    return cast(tracer(E.clamp(E.nan_to_num(whole), 0, n - 1)), i64), weight


@operation()
def affine_grid(theta: Operand, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid for `grid_sample` that affine maps make of the places of an image.

    Args:
        theta: Tensor of floats of shape (n, 2, 3), or (n, 3, 4).
        size: Shape of the images that are sampled, (n, c, h, w) or (n, c, d, h, w).
        align_corners: Whether -1 and 1 are the centres of the corner pixels, rather than the corners of the image.

    Returns:
        Tensor of shape (n, h, w, 2), or (n, d, h, w, 3).

    Raises:
        UserError: `theta` has not the shape that `size` asks for (MLC0367), or a size is no integer (MLC0355).

    Example:
        >>> nn.functional.affine_grid(mlc.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2))
        tensor([[[[-0.5,  0. ],
                  [ 0.5,  0. ]]]], dtype=mlc.float32)
    """
    maps = floating(theta)
    image = [plain_int(n, "size") for n in size[2:]]
    spatial = len(image)
    if spatial not in (2, 3) or maps.ndim != 3 or maps.shape[1:] != (spatial, spatial + 1):
        raise UserError(f"maps of shape {list(maps.shape)} for images of shape {list(size)}", code="MLC0367")
    axes = []
    for k, n in reversed(list(enumerate(image))):
        step = emit(T.Iota, tuple(image), k, i64) * 1.0
        unit = (step * (2.0 / max(n - 1, 1)) - (1.0 if n > 1 else 0.0)) if align_corners else (
            (step * 2.0 + 1.0) / n - 1.0)
        axes.append(cast(tracer(unit), maps.type.dtype))
    axes.append(cast(tracer(ones(*image)), maps.type.dtype))
    base = reshape(tracer(stack(axes, -1)), [1, sizes.product(image), spatial + 1])
    found = contract.matmul(base, movedim(maps, 1, 2))
    return reshape(tracer(found), [maps.shape[0], *image, spatial])
