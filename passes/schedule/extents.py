"""Extents of dimensions in cost models, and tile sizes that divide them about evenly."""

from __future__ import annotations

from mlc.ir.sizes import Dim

UNKNOWN = 512
"""Assumed extent of a dimension of unknown size."""


def even(extent: Dim, most: int, step: int) -> int:
    """Tile size that divides an extent about evenly: a multiple of `step`, at most `most`."""
    most = max(step, most // step * step)
    if not isinstance(extent, int) or extent == 0:
        return most
    count = ceil(extent, most)
    return ceil(ceil(extent, count), step) * step


def ceil(a: int, b: int) -> int:
    """a / b, rounded up."""
    return (a + b - 1) // b


def guess(extent: Dim) -> int:
    """The extent, or the assumed one if it is not known."""
    return extent if isinstance(extent, int) else UNKNOWN


def lanes_for(extent: Dim, lanes: int) -> int:
    """Halve the lanes, down to four, while half of them hold the extent."""
    while isinstance(extent, int) and lanes > 4 and lanes // 2 >= extent:
        lanes //= 2
    return lanes
