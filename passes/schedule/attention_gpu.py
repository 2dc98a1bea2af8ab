"""The schedule of attention on a GPU with tensor cores.

A CTA has some rows of queries in shared memory, and goes through the keys block by block; the copies of the next block
overlap with the products of this one. A thread has the scores and sums of two rows: of 16 for each warp, which
multiplies by mma.sync, or of 64 for each warpgroup, which multiplies by wgmma. In kernels of the derivative of keys and
values, rows are those of keys, and the blocks of queries.
"""

from __future__ import annotations

from math import prod

from mlc.dialects import loop
from mlc.dialects.loop import For, Kernel
from mlc.dialects.nvvm import ROW_BYTES
from mlc.ir.diag import BackendError
from mlc.ir.machine import Gpu
from mlc.passes.schedule.contraction_gpu import EPILOGUE, is_copied_in_pieces
from mlc.passes.schedule.extents import ceil, guess
from mlc.passes.schedule.gpu_transforms import (
    computed_by,
    cta_tile,
    multiply_by_warpgroups,
    promote_rows,
    tile_epilogue,
    warp_tile,
)
from mlc.passes.schedule.transforms import record, tile

ROWS, STAGES = (128, 64), 2
"""Rows of a CTA: the more, the less is copied; the fewer, the more CTAs there are. Blocks of keys in shared memory."""
PAD = 8
"""Elements between rows in shared memory where they are not swizzled."""
MOST = 116
"""Registers of a thread for scores, weights, sums and queries with which a multiprocessor holds two CTAs of 256
threads, by ptxas 13.0; those of the derivative, which keep other numbers of each row besides, have more."""


def schedule_attention(kernel: Kernel, machine: Gpu) -> None:
    """Schedule the products of attention, or of its derivative, for tensor cores."""
    products = [op for op in kernel.walk() if isinstance(op, loop.Mma)]
    sums = [op for op in products if op.dim == kernel.scores_dim]
    scores = [op for op in products if op not in sums]
    others = scores[0].enclosing(For)
    terms = others.parent_op
    assert isinstance(terms, For)
    m = max(d for d in scores[0].lhs.type.dims if d < kernel.parallel)
    n = kernel.parallel - 1
    factors = [*((op, "lhs", terms, op.dim) for op in scores), *((op, "rhs", others, op.dim) for op in scores),
               *((op, "rhs", others, n) for op in sums)]
    for product, side, _, last in factors:
        source = computed_by(getattr(product, side))
        if not machine.tensor_cores or source is None or not is_copied_in_pieces(kernel, source[-1], last):
            raise BackendError("attention block by block needs tensor cores, and operands whose rows are whole pieces "
                               "of 16 bytes", code="MLC0543", loc=product.loc)
    features, width = (int(kernel.domain[d]) for d in (scores[0].dim, n))
    whole = all(2 * n % ROW_BYTES == 0 for n in (features, *[width] * len(sums)))
    swizzle = ROW_BYTES if machine.warpgroup_mma and whole else 0
    room = [len(scores) * (features + PAD), STAGES * others.step * (
        len(scores) * (features + PAD) + len(sums) * (width + PAD))]
    outer = prod(guess(kernel.domain[d]) for d in range(kernel.parallel) if d not in (m, n))
    rows = next((rows for rows in ROWS if outer * ceil(guess(kernel.domain[m]), rows) >= machine.multiprocessors
                 and 2 * (rows * room[0] + room[1]) <= machine.shared_bytes_optin), ROWS[-1])
    panel, warp = [1] * kernel.parallel, [1] * kernel.parallel
    panel[m], panel[n], warp[m], warp[n] = rows // 2, 4, 8, 4
    tile(kernel, m, 2)
    tile(kernel, n, width // 4, vector=True, lanes=2)
    cta_tile(kernel, tuple(panel))
    tile_epilogue(kernel, EPILOGUE)
    warp_tile(kernel, tuple(warp))
    if swizzle:
        multiply_by_warpgroups(kernel)
    elif not any(kernel.inside(loop.Reduce)) or others.step * 3 // 4 + width // 2 + features // 16 > MOST:
        kernel.reschedule(ctas_at_once=1)
        record(kernel, "bound_ctas", count=1)
    for product, side, around, last in factors:
        promote_rows(kernel, product, side, around, last, swizzle)
    others.stages = STAGES
    record(kernel, "pipeline", stages=STAGES)
