"""The schedule of scatters on a GPU.

A thread copies a column of the result and applies the updates to it, in order. If there are few columns, several CTAs
take each: one has every n-th row, and the updates of those. So updates of one element keep their order, and all bits.
"""

from __future__ import annotations

from mlc.dialects import loop
from mlc.dialects.loop import Kernel
from mlc.ir.machine import Gpu
from mlc.ir.sizes import IndexTile, of_atom, product
from mlc.passes.schedule.extents import ceil, guess
from mlc.passes.schedule.transforms import record

CTAS, ROWS, FEW_ROWS = 4, 64, 8
"""CTAs of a multiprocessor to aim for, and fewest rows of a part, as its CTA asks for the row of every update: each
thread by itself or, if it is the same for all columns, all of them together."""


def schedule_scatter(kernel: Kernel, machine: Gpu, threads: int) -> bool:
    """Divide the rows of a scatter among CTAs; False if the kernel is none, or has columns enough."""
    stores = list(kernel.inside(loop.Store))
    by_index = [op for op in stores if op.tiles]
    axes = {axis for op in by_index for axis, e in enumerate(op.map.results) if e == of_atom(IndexTile(0))}
    if len(by_index) != 1 or len(axes) != 1 or kernel.schedule.vector >= 0:
        return False
    axis, = axes
    ctas = ceil(guess(product(kernel.domain[: kernel.parallel])), threads)
    rows = by_index[0].buffer.type.shape[axis]
    together = all(d >= kernel.parallel for d in by_index[0].tiles[0].type.dims)
    fewest = FEW_ROWS if together else ROWS
    parts = min(CTAS * machine.multiprocessors // max(1, ctas), (guess(rows) if rows is not None else 0) // fewest)
    if parts < 2 or not all(loop.is_of_rows(op, axis) for op in stores):
        return False
    kernel.reschedule(tiles_per_cta=threads, row_parts=parts, row_axis=axis)
    record(kernel, "divide_rows", axis=f"{axis}", parts=parts)
    return True
