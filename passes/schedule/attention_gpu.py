"""The schedule of attention on a GPU with tensor cores.

A CTA has some rows of queries in shared memory, and goes through the keys block by block; the copies of the next block
overlap with the products of this one. A thread has the scores and sums of two rows: of 16 for each warp, which
multiplies by mma.sync, or of 64 for each warpgroup, which multiplies by wgmma.
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


def schedule_attention(kernel: Kernel, machine: Gpu) -> None:
    """Schedule the two products of attention for tensor cores."""
    scores, sums = (op for op in kernel.walk() if isinstance(op, loop.Mma))
    keys, terms = sums.parent_op, scores.enclosing(For).parent_op
    assert isinstance(keys, For) and isinstance(terms, For)
    m = max(d for d in scores.lhs.type.dims if d < kernel.parallel and d not in scores.rhs.type.dims)
    n = next(d for d in sums.rhs.type.dims if d < kernel.parallel and d not in scores.rhs.type.dims)
    factors = (scores, "lhs", terms, scores.dim), (scores, "rhs", keys, scores.dim), (sums, "rhs", keys, n)
    for product, side, _, last in factors:
        source = computed_by(getattr(product, side))
        if not machine.tensor_cores or source is None or not is_copied_in_pieces(kernel, source[-1], last):
            raise BackendError("attention block by block needs tensor cores, and operands whose rows are whole pieces "
                               "of 16 bytes", code="MLC0543", loc=sums.loc)
    features, width = (int(kernel.domain[d]) for d in (scores.dim, n))
    swizzle = ROW_BYTES if machine.warpgroup_mma and features * 2 % ROW_BYTES == width * 2 % ROW_BYTES == 0 else 0
    others = prod(guess(kernel.domain[d]) for d in range(kernel.parallel) if d not in (m, n))
    rows = next((rows for rows in ROWS if others * ceil(guess(kernel.domain[m]), rows) >= machine.multiprocessors
                 and shared_bytes(rows, keys.step, features, width) <= machine.shared_bytes_optin), ROWS[-1])
    panel, warp = [1] * kernel.parallel, [1] * kernel.parallel
    panel[m], panel[n], warp[m], warp[n] = rows // 2, 4, 8, 4
    tile(kernel, m, 2)
    tile(kernel, n, width // 4, vector=True, lanes=2)
    cta_tile(kernel, tuple(panel))
    tile_epilogue(kernel, EPILOGUE)
    warp_tile(kernel, tuple(warp))
    if swizzle:
        multiply_by_warpgroups(kernel)
    for product, side, around, last in factors:
        promote_rows(kernel, product, side, around, last, swizzle)
    keys.stages = STAGES
    record(kernel, "pipeline", stages=STAGES)


def shared_bytes(rows: int, keys: int, features: int, width: int) -> int:
    """Bytes of queries, keys and values in shared memory; rows are padded by a piece where they are not swizzled."""
    return 2 * (rows * (features + 8) + STAGES * keys * (features + width + 16))
