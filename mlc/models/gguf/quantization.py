"""Quantisation of numbers to blocks: round to nearest, with scales that are searched for.

The package gguf quantises the encodings whose blocks have one scale; those of 256 numbers it only reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mlc.dialects.tensor.encodings import ENCODINGS
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError
from mlc.models.text import missing_package

Array = np.ndarray[Any, Any]

ROWS = 1 << 12
"""Blocks of 256 numbers that are quantised together."""
_SCALES = {"q8_0": slice(0, 2), "q4_0": slice(0, 2), "q4_1": slice(0, 4), "q4_k": slice(0, 4), "q5_k": slice(0, 4),
           "q6_k": slice(208, 210)}
"""The bytes of a block that are its scales."""
_TRIED = np.linspace(-1.0, 1.0, 11, dtype=np.float32)
"""How much more or fewer steps than all are tried between the least and the greatest number."""


def quantize(x: Array, encoding: str) -> Array:
    """Numbers [.., columns] in f32 as rows of blocks [.., bytes]; whole blocks, see `fits`.

    Raises:
        UserError: Numbers are too large for the scales of blocks, which are f16, or not finite (MLC0994), or the
            package gguf is not installed (MLC0917).
    """
    with np.errstate(over="ignore", invalid="ignore"):     # what comes of it is refused
        blocks = _blocks(x, encoding)
    scales = blocks.reshape(-1, ENCODINGS[encoding].bytes)[:, _SCALES[encoding]]
    if not np.isfinite(np.ascontiguousarray(scales).view("<f2")).all():
        largest = np.abs(x).max()
        what = f"numbers of {largest:g} are too large for {encoding}, whose scales are 16-bit floats"
        raise UserError(what if np.isfinite(largest) else f"{encoding} has no numbers that are infinite or NaN",
                        code="MLC0994", loc=user_loc(), hint="write the tensor as f32 or bf16")
    return blocks


def _blocks(x: Array, encoding: str) -> Array:
    if encoding in _OWN:
        layout = ENCODINGS[encoding]
        blocks = x.reshape(-1, layout.elements)
        parts = [_OWN[encoding](blocks[i: i + ROWS]) for i in range(0, len(blocks), ROWS)]
        return np.concatenate(parts).reshape(*x.shape[:-1], x.shape[-1] // layout.elements * layout.bytes)
    try:
        from gguf import GGMLQuantizationType, quants
    except ImportError:
        raise missing_package("gguf", "writes GGUF files") from None
    return np.asarray(quants.quantize(x, GGMLQuantizationType[encoding.upper()]))


def fits(columns: int, encoding: str) -> bool:
    """Whether a row consists of whole blocks."""
    return columns % ENCODINGS[encoding].elements == 0


def _q6_k(x: Array) -> Array:
    """16 numbers share a scale of 8 bits: that which is best for the greatest of them as -32."""
    groups = x.reshape(-1, 16, 16)
    extreme = np.take_along_axis(groups, np.abs(groups).argmax(2)[:, :, None], 2)[:, :, 0]
    scale = _best_of_scales(groups, extreme)
    d = _half(np.abs(scale).max(1) / 127)
    s = np.rint(_divided(scale, d[:, None])).clip(-128, 127)
    q = np.rint(_divided(groups, (d[:, None] * s)[:, :, None])).clip(-32, 31).astype(np.int8) + 32
    q = q.reshape(-1, 2, 4, 32).astype(np.uint8)
    low = (q[:, :, :2] & 15 | (q[:, :, 2:] & 15) << 4).reshape(-1, 128)
    high = (q[:, :, 0] >> 4 | q[:, :, 1] >> 4 << 2 | q[:, :, 2] >> 4 << 4 | q[:, :, 3] >> 4 << 6).reshape(-1, 64)
    return np.concatenate([low, high, s.astype(np.int8).view(np.uint8), _bytes(d)], 1)


def _best_of_scales(groups: Array, extreme: Array) -> Array:
    """The scale of each group with the least square error among those that put its greatest number near -32."""
    best, least = extreme / -32, np.full(extreme.shape, np.inf, np.float32)
    for more in _TRIED:
        q = np.rint(_divided(groups, (extreme / (-32 + more))[:, :, None])).clip(-32, 31)
        scale = _divided((groups * q).sum(2), (q * q).sum(2))
        error = ((groups - scale[:, :, None] * q) ** 2).sum(2)
        best, least = np.where(error < least, scale, best), np.minimum(error, least)
    return np.asarray(best)


def _q4_k(x: Array) -> Array:
    head, q = _with_minima(x, 15)
    return np.concatenate([head, _nibbles(q)], 1)


def _q5_k(x: Array) -> Array:
    head, q = _with_minima(x, 31)
    fifth = np.bitwise_or.reduce((q >> 4) << np.arange(8, dtype=np.uint8)[None, :, None], axis=1)
    return np.concatenate([head, fifth, _nibbles(q & 15)], 1)


def _nibbles(q: Array) -> Array:
    pairs = q.reshape(-1, 4, 2, 32)
    return np.asarray(pairs[:, :, 0] | pairs[:, :, 1] << 4).reshape(-1, 128)


def _with_minima(x: Array, most: int) -> tuple[Array, Array]:
    """The first 16 bytes of blocks of q4_k and q5_k, and their integers [n, 8, 32] from 0 to `most`."""
    groups = x.reshape(-1, 8, 32)
    scale, least = _scales_and_minima(groups, most)
    d, m = _half(scale.max(1) / 63), _half(least.max(1) / 63)
    s = np.rint(_divided(scale, d[:, None])).clip(0, 63).astype(np.uint8)
    t = np.rint(_divided(least, m[:, None])).clip(0, 63).astype(np.uint8)
    step, shift = (d[:, None] * s)[:, :, None], (m[:, None] * t)[:, :, None]
    q = np.rint(_divided(groups + shift, step)).clip(0, most).astype(np.uint8)
    packed = np.concatenate([s[:, :4] | s[:, 4:] >> 4 << 6, t[:, :4] | t[:, 4:] >> 4 << 6,
                             s[:, 4:] & 15 | (t[:, 4:] & 15) << 4], 1)
    return np.concatenate([_bytes(d), _bytes(m), packed], 1), q


def _scales_and_minima(groups: Array, most: int) -> tuple[Array, Array]:
    """The scale and the minimum, both not negative, of x = q * scale - minimum with the least square error.

    For each number of steps that is tried, integers follow by rounding, and then scale and minimum by least squares.
    """
    low, high = np.minimum(groups.min(2), 0), groups.max(2)
    span = np.maximum(high - low, 0)
    best, below = span / most, -low
    least = np.full(span.shape, np.inf, np.float32)
    total = groups.sum(2)
    for more in _TRIED:
        q = np.rint(_divided(groups - low[:, :, None], (span / (most + more))[:, :, None])).clip(0, most)
        sums, squares, mixed = q.sum(2), (q * q).sum(2), (q * groups).sum(2)
        scale = _divided(32 * mixed - sums * total, 32 * squares - sums * sums)
        shift = (total - scale * sums) / 32
        plain = shift > 0                                  # a minimum may not be above 0: then the scale is for itself
        scale, shift = np.where(plain, _divided(mixed, squares), scale), np.where(plain, 0, shift)
        error = ((groups - scale[:, :, None] * q - shift[:, :, None]) ** 2).sum(2)
        better = (error < least) & (scale > 0)
        best, below, least = (np.where(better, a, b) for a, b in ((scale, best), (-shift, below), (error, least)))
    return best, below


def _divided(a: Array, b: Array) -> Array:
    """a / b, and 0 where b is 0."""
    return np.asarray(a / np.where(b == 0, np.inf, b))


def _half(x: Array) -> Array:
    """Rounded to f16, in f32."""
    return x.astype(np.float16).astype(np.float32)


def _bytes(x: Array) -> Array:
    return np.ascontiguousarray(x[:, None].astype("<f2")).view(np.uint8)


_OWN: Mapping[str, Callable[[Array], Array]] = {"q4_k": _q4_k, "q5_k": _q5_k, "q6_k": _q6_k}
