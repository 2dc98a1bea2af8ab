"""tensor, encodings: how numbers lie in the blocks of a quantised tensor, as ggml has them in memory and in files.

A row of a quantised tensor is a sequence of blocks; each holds `elements` consecutive numbers in `bytes` bytes. The
first bytes are numbers in f16, `q` is an integer:

    q8_0   32 numbers in 34 bytes: d, then 32 q of 8 bits, signed                                      x = q * d
    q4_0   32 in 18: d, then 16 bytes: q of element i in the low, of i + 16 in the high 4 bits         x = (q - 8) * d
    q4_1   32 in 20: d, m, then as q4_0                                                                x = q * d + m
    q4_k   256 in 144: d, m, 12 bytes of scales, then 128 bytes: of each 64 elements the first 32 in the low, the others
           in the high 4 bits. Elements 32 j .. 32 j + 31 share a scale s and a minimum t of 6 bits   x = q * ds - mt
    q5_k   256 in 176: d, m and scales as q4_k, then 32 bytes with bit j of byte i the fifth of q of element 32 j + i,
           then 128 bytes as q4_k                                                                      x = q * ds - mt
    q6_k   256 in 210: 128 bytes with the low 4 bits of q, 64 bytes with the high 2, 16 scales s of 8 bits, signed, and
           then d. Elements 16 j .. 16 j + 15 share a scale                                            x = (q - 32) * ds

The scales of q4_k and q5_k: for j < 4, s is the low 6 bits of byte j and t those of byte j + 4; for the others, s has
the low 4 bits of byte j + 4, and t its high 4 bits; their bits 4 and 5 are bits 6 and 7 of bytes j - 4 and j.

Arithmetic is in f32 with every step rounded: the products ds and mt first, then q times the former, then the sum. It is
the order of ggml's own dequantisation (ggml-quants.c), so that the numbers are the same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


Parts = tuple[Array, Array, Array | None]
"""Integers q [n, elements], and of each 16 numbers in a row the scale s and the minimum t, or None: x = q * s - t."""

GROUP = 16
"""Numbers in a row that share a scale, in every encoding; in most of them, so do twice as many (`Encoding.group`)."""


@dataclass(frozen=True)
class Encoding:
    """The layout of a block.

    name      as in the IR
    elements  numbers in a block
    bytes     that it takes
    parts     of blocks [n, bytes]: integers, scales and minima
    minima    whether there are minima
    zero      what is added to the integers so that they are bytes without sign
    bits      of those bytes that may not be 0
    group     numbers in a row that share a scale, and a minimum
    """

    name: str
    elements: int
    bytes: int
    parts: Callable[[Array], Parts]
    minima: bool = False
    zero: int = 0
    bits: int = 4
    group: int = 2 * GROUP

    def decode(self, blocks: Array) -> Array:
        """The numbers [n, elements] of blocks [n, bytes], in f32."""
        q, s, t = self.parts(blocks)
        x = q.astype(np.float32).reshape(len(q), self.elements // GROUP, GROUP) * s[:, :, None]
        return np.asarray(x if t is None else x - t[:, :, None]).reshape(len(q), self.elements)


def _f16(blocks: Array, at: int) -> Array:
    """The number in f16 at a byte of each block, in f32 [n, 1]."""
    raw = np.ascontiguousarray(blocks[:, at: at + 2])
    return raw.view("<f2").astype(np.float32)


def _nibbles(bytes: Array, group: int) -> Array:
    """Of every `group` bytes the low 4 bits, then the high ones."""
    grouped = bytes.reshape(len(bytes), bytes.shape[1] // group, 1, group)
    return np.concatenate([grouped & 15, grouped >> 4], 2).reshape(len(bytes), 2 * bytes.shape[1]).astype(np.int8)


def _twice(x: Array) -> Array:
    """The value of 32 numbers for both halves of them."""
    return np.repeat(x, 2, 1)


def _q8_0(blocks: Array) -> Parts:
    return np.ascontiguousarray(blocks[:, 2:]).view(np.int8), _twice(_f16(blocks, 0)), None


def _q4_0(blocks: Array) -> Parts:
    return _nibbles(blocks[:, 2:], 16) - np.int8(8), _twice(_f16(blocks, 0)), None


def _q4_1(blocks: Array) -> Parts:
    return _nibbles(blocks[:, 4:], 16), _twice(_f16(blocks, 0)), _twice(-_f16(blocks, 2))


def scales_of_k(bytes: Array) -> tuple[Array, Array]:
    """The scales and minima [n, 8] of 12 bytes of q4_k and q5_k."""
    low, middle, high = bytes[:, 0:4], bytes[:, 4:8], bytes[:, 8:12]
    s = np.concatenate([low & 63, (high & 15) | (low >> 6 << 4)], 1)
    t = np.concatenate([middle & 63, (high >> 4) | (middle >> 6 << 4)], 1)
    return s, t


def _with_minima(blocks: Array, q: Array) -> Parts:
    s, t = scales_of_k(blocks[:, 4:16])
    scale, least = (_twice(_f16(blocks, at) * x.astype(np.float32)) for at, x in ((0, s), (2, t)))
    return q, scale, least


def _q4_k(blocks: Array) -> Parts:
    return _with_minima(blocks, _nibbles(blocks[:, 16:], 32))


def _q5_k(blocks: Array) -> Parts:
    fifth = blocks[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[None, :, None] & 1
    return _with_minima(blocks, _nibbles(blocks[:, 48:], 32) | (fifth << 4).reshape(len(blocks), 256).astype(np.int8))


def _q6_k(blocks: Array) -> Parts:
    low = _nibbles(blocks[:, :128], 64).reshape(len(blocks), 2, 4, 32)
    high = blocks[:, 128:192].reshape(len(blocks), 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    q = (low | (high << 4).astype(np.int8)) - np.int8(32)
    s = _f16(blocks, 208) * np.ascontiguousarray(blocks[:, 192:208]).view(np.int8).astype(np.float32)
    return q.reshape(len(blocks), 256), s, None


ENCODINGS: Mapping[str, Encoding] = {e.name: e for e in (
    Encoding("q8_0", 32, 34, _q8_0, zero=128, bits=8), Encoding("q4_0", 32, 18, _q4_0, zero=8),
    Encoding("q4_1", 32, 20, _q4_1, minima=True), Encoding("q4_k", 256, 144, _q4_k, minima=True),
    Encoding("q5_k", 256, 176, _q5_k, minima=True, bits=5),
    Encoding("q6_k", 256, 210, _q6_k, zero=32, bits=6, group=GROUP))}
"""The encodings by name."""


def decode(rows: Array, encoding: Encoding) -> Array:
    """The numbers [.., columns] of rows of blocks [.., bytes]."""
    *lead, size = rows.shape
    blocks = np.ascontiguousarray(rows).reshape(rows.size // encoding.bytes, encoding.bytes)
    with np.errstate(all="ignore"):
        return encoding.decode(blocks).reshape(*lead, size // encoding.bytes * encoding.elements)


def parts_of_rows(rows: Array, encoding: Encoding) -> Parts:
    """The same as integers in pairs of neighbours [.., columns / 2, 2], and scales and minima [.., columns / 16]."""
    *lead, size = rows.shape
    count = size // encoding.bytes
    with np.errstate(all="ignore"):
        q, s, t = encoding.parts(np.ascontiguousarray(rows).reshape(rows.size // encoding.bytes, encoding.bytes))
    pairs = q.reshape(*lead, count * encoding.elements // 2, 2)
    groups = (x if x is None else x.reshape(*lead, count * encoding.elements // GROUP) for x in (s, t))
    return pairs, *groups  # type: ignore[return-value]


def groups_of_rows(rows: Array, encoding: Encoding) -> Parts:
    """The same as bytes without sign in groups [.., columns / group, group], and scales and minima of the groups."""
    pairs, *parts = parts_of_rows(rows, encoding)
    *lead, count, _ = pairs.shape
    bytes = (pairs.astype(np.int16) + encoding.zero).astype(np.uint8)
    s, t = (x if x is None else x[..., :: encoding.group // GROUP] for x in parts)
    assert s is not None
    return bytes.reshape(*lead, 2 * count // encoding.group, encoding.group), s, t
