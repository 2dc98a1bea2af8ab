"""The CPU schedule of reductions over the elements of windows: depthwise convolution and pooling."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

from mlc.dialects import loop
from mlc.dialects.loop import Kernel
from mlc.ir.core import before
from mlc.ir.machine import Cpu
from mlc.ir.sizes import AffineDim, leaves
from mlc.passes.schedule.extents import guess
from mlc.passes.schedule.transforms import record, tile, unroll

TERMS = 49
"""Most terms that are unrolled: a window of 7 x 7."""
POINTS = 100
"""Most terms of all rows of a tile."""
ROWS = 4
"""Most rows of a tile; each element of a window of three rows is then loaded 1.5 times and not 3 times."""
OPERATIONS = 2500
"""Most operations that a loop is unrolled to, in all rows and vectors of a tile, before constants are folded."""


def schedule_windows(kernel: Kernel, vector: int, machine: Cpu, vectors: int) -> int:
    """Unroll the reduction of a window, and tile the rows whose windows overlap; the number of vectors in a row.

    With terms that are constants, so are the offsets of their elements and most bounds of the padding, which takes
    longer to compute than the terms themselves. Kernels with other reductions stay as they are: the loop of a sum along
    an axis is as fast, and shorter. So do sums of several runs, whose terms are added in another order if unrolled.
    """
    terms = kernel.parallel
    length = kernel.domain[terms] if kernel.iterator_types[terms:] == ("reduction",) else 0
    shared = overlapping(kernel, terms)
    if not shared or not isinstance(length, int) or not 1 < length <= TERMS:
        return vectors
    loops = [op for op in kernel.inside(loop.For) if op.dim == terms]
    size = length * sum(len(op.body.block) for op in loops)
    if size > OPERATIONS or any(op.outer() is not None or 0 < op.run < length for op in loops):
        return vectors
    unroll(kernel, terms, length)
    row = max(shared - {vector}, default=None)
    if row is None:
        return vectors
    extent = kernel.domain[row]
    rows = max(1, min(ROWS, POINTS // length, OPERATIONS // size, extent if isinstance(extent, int) else ROWS))
    tile(kernel, row, rows)
    if vector not in shared:
        prefetch_windows(kernel, row, rows, machine)
    most = machine.vector_registers // (4 * rows) if vector in shared else 1      # channels share their own elements
    return max(1, min(vectors, most, OPERATIONS // (size * rows)))


def overlapping(kernel: Kernel, terms: int) -> set[int]:
    """The parallel dimensions along which neighbours read elements of which most are the same."""
    return set[int]().union(*(windows_of(op, terms) for op in kernel.inside(loop.Load)))


def windows_of(load: loop.Load, terms: int) -> set[int]:
    """Those along which this one reads windows: an index is a coordinate of theirs plus one of the terms."""
    found: set[int] = set()
    for index in load.map.results:
        dims = {d.position for d in leaves(index, AffineDim)}
        if terms in dims:
            found |= dims - {terms}
    return found


def prefetch_windows(kernel: Kernel, row: int, rows: int, machine: Cpu) -> None:
    """Prefetch what the tile below reads and this one does not, into the second cache, if the image is larger than it.

    With channels last, a tile reads a line of cache or two of each of its points, then the next channels of them: too
    many short streams for what processors prefetch themselves.
    """
    terms = kernel.parallel
    for load in list(kernel.inside(loop.Load)):
        above = max(windows_of(load, terms) - {row}, default=None)
        size = prod(map(guess, load.buffer.type.shape)) * load.buffer.type.dtype.itemsize
        if above is None or load.tiles or load.map.symbols or size <= machine.l2_bytes:
            continue

        def read(down: int, right: int, load: loop.Load = load, above: int = above) -> dict[Any, tuple[int, int]]:
            """The term and the point of the tile for each place that is read, so many rows below and points beside."""
            found, point = {}, [0] * len(kernel.domain)
            for term, i in product(range(int(kernel.domain[terms])), range(rows)):
                point[above], point[row], point[terms] = down, right + i, term
                found[load.map.evaluate(point)] = term, i
            return found

        others = read(0, 0).keys() | read(1, rows).keys()
        new = [at for place, at in read(1, 0).items() if place not in others]
        around = load.enclosing(loop.For)
        with before(around.body.block.terminator, load.loc):
            for term, i in new:
                loop.Prefetch(load.buffer, map=load.map.replace_dims({
                    terms: term, above: loop.coordinate(above) + 1, row: loop.coordinate(row) + i}), locality=2)
        record(kernel, "prefetch_windows", dim=f"{above}", lines=len(new))
