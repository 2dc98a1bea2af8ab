"""How the accesses of a kernel walk through memory."""

from __future__ import annotations

from mlc.dialects import loop
from mlc.dialects.loop import Kernel
from mlc.ir.affine import step_along
from mlc.ir.sizes import Dim
from mlc.ir.types import i1, index

RUN = 16
"""Elements of the longest vector: in runs of so many, panels of a multiple of them are contiguous."""


def element_width(kernel: Kernel, along: int | None = None) -> int:
    """The widest element that the kernel computes with, in tiles along a dimension if one is given; indices do not
    count where nothing else is that wide, nor single numbers, such as where a slice begins."""
    widths = [r.type.dtype.width for op in kernel.walk() for r in op.results
              if isinstance(r.type, loop.TileType) and r.type.dtype not in (index, i1)
              and (r.type.dims if along is None else along in r.type.dims)]
    return max([w for w in widths if w > 8], default=32)


def best_dimension(kernel: Kernel) -> int | None:
    """The parallel dimension along which the most accesses are contiguous; None if none has more than one point."""
    scores: dict[int, int] = {}
    for d in range(kernel.parallel):
        if kernel.domain[d] == 1:
            continue
        scores[d] = sum(contiguity(op, d) for op in kernel.walk() if isinstance(op, loop.Load | loop.Store))
    return max(scores, key=lambda d: (scores[d], d)) if scores else None


def contiguity(access: loop.Load | loop.Store, dim: int) -> int:
    """1 if neighbours along `dim` are neighbours in memory, 0 if backwards or the same element, else -4: a gather."""
    step = None if any(dim in t.type.dims for t in access.tiles) else stride(access, dim)
    return max(step, 0) if step in (-1, 0, 1) else -4


def stride(access: loop.Load | loop.Store, dim: int) -> int | None:
    """How many elements further a neighbour along `dim` in the same run lies; None if that differs or is not known."""
    step = step_along(position(access), dim, RUN)
    return step if isinstance(step, int) else None


def position(access: loop.Load | loop.Store) -> Dim:
    """Where the element of a point lies in the buffer, unknown sizes of which have names of their own."""
    return loop.position(access.map, access.buffer)
