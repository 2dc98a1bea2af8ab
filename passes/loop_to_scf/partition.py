"""Partitioning of a kernel among threads.

The blocks of the partitioned dimensions are numbered in loop order (row-major), and each iteration of an scf.parallel
takes a contiguous range of at least `grain_size` blocks. So a part is the same loop nest with other bounds, and
remainder blocks are where they are in the sequential nest.
"""

from __future__ import annotations

from mlc.dialects import arith, scf
from mlc.ir import sizes
from mlc.ir.core import at_end
from mlc.ir.sizes import Dim
from mlc.ir.types import index
from mlc.passes.lower_kernel.nest import Lowering


def share(low: Lowering) -> None:
    """The loops of a kernel, in parts of at least `grain_size` tiles; without scf.parallel if there is one part."""
    kernel, schedule = low.kernel, low.kernel.schedule
    counts = [_blocks(extent, size) for extent, size in zip(kernel.domain, schedule.tile)][: schedule.thread_dims]
    total = sizes.product(counts)
    parts = sizes.divide(total, schedule.grain_size)
    if not counts or (isinstance(parts, int) and parts < 2):
        low.nest(0)
        return
    zero, one = arith.constant(0, index), arith.constant(1, index)
    if not isinstance(parts, int):                       # at least 1, or 0 for an empty domain
        some = arith.MinSI(low.number(total), one).result
        parts = low.named("parts", arith.MaxSI(low.number(parts), some).result)
    op = scf.parallel([zero], [low.number(parts)], [one], ["part"])
    with at_end(op.block), low.scoped():
        part = low.named("part", op.counters[0])
        first, last = (low.named("block", low.number(sizes.divide(p * total, parts))) for p in (part, part + 1))
        _rows(low, counts, first, last)
        scf.Reduce()


def _rows(low: Lowering, counts: list[Dim], first: Dim, last: Dim) -> None:
    """Blocks `first` to `last` - 1: row by row of the last partitioned dimension; end rows may be partial."""
    dim, width = len(counts) - 1, counts[-1]
    if dim == 0:
        _between(low, 0, first, last)
        low.nest(0)
        return
    rows = low.number(sizes.divide(first, width)), low.number(_blocks(last, width))
    op = scf.loop(*rows, arith.constant(1, index), (), "row")
    with at_end(op.block), low.scoped():
        row = low.named("row", op.counter)
        place: Dim = row
        for d in reversed(range(dim)):
            at = sizes.modulo(place, counts[d]) if d else place
            at = low.named("block", low.number(at))
            place = sizes.divide(place, counts[d])
            _between(low, d, at, at + 1)
        start = arith.MaxSI(low.number(first - row * width), arith.constant(0, index)).result
        _between(low, dim, low.named("block", start), low.least(last - row * width, width))
        low.nest(0)
        scf.Yield(())


def _between(low: Lowering, d: int, first: Dim, last: Dim) -> None:
    """Set the bounds of the loop of dimension `d` to blocks `first` to `last` - 1; a single block needs no loop."""
    extent, size = low.kernel.domain[d], low.kernel.schedule.tile[d]
    if isinstance(extent, int) and extent <= size:
        return
    low.scope.origin[d] = first * size
    whole = sizes.modulo(extent, size) == 0
    low.scope.stop[d] = last * size if whole else low.least(last * size, extent)


def _blocks(extent: Dim, size: Dim) -> Dim:
    """The number of blocks of an extent; the last one may be shorter."""
    return sizes.divide(extent + size - 1, size)
