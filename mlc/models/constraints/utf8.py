"""Ranges of characters as sequences of ranges of bytes, as UTF-8 encodes them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

ByteRanges = tuple[tuple[int, int], ...]
"""One range for each byte of a character."""

_LAST_OF_LENGTH = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)


@lru_cache(maxsize=4096)
def byte_ranges(low: int, high: int) -> tuple[ByteRanges, ...]:
    """The encodings of the characters from low to high: together they are all of them, and nothing else."""
    return tuple(_split(low, high))


def _split(low: int, high: int) -> Iterator[ByteRanges]:
    if low > high:
        return
    if low <= 0xDFFF and high >= 0xD800:                   # surrogates have no encoding
        yield from _split(low, 0xD7FF)
        yield from _split(0xE000, high)
        return
    for last in _LAST_OF_LENGTH:
        if low <= last < high:
            yield from _split(low, last)
            yield from _split(last + 1, high)
            return
    for bits in (6, 12, 18):                               # until the bytes that follow take all values, or are equal
        mask = (1 << bits) - 1
        if high > 0x7F and low & ~mask != high & ~mask:
            if low & mask:
                yield from _split(low, low | mask)
                yield from _split((low | mask) + 1, high)
                return
            if high & mask != mask:
                yield from _split(low, (high & ~mask) - 1)
                yield from _split(high & ~mask, high)
                return
    yield tuple(zip(chr(low).encode(), chr(high).encode()))
