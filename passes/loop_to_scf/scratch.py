"""Lowering of scratch buffers to the stack of the thread that runs the kernel."""

from __future__ import annotations

import math

from mlc.dialects import loop, memref
from mlc.ir.affine import AffineExpr
from mlc.ir.core import Value
from mlc.ir.diag import BackendError
from mlc.ir.machine import LINE
from mlc.ir.types import MemRefType, i32
from mlc.passes.lower_kernel.access import Access
from mlc.passes.lower_kernel.interleaved import store_interleaved
from mlc.passes.lower_kernel.memory import flatten, load, store
from mlc.passes.lower_kernel.nest import Lowering, rule

LIMIT = 1 << 22
"""Maximum stack bytes of a kernel's scratch buffers; a thread has a stack of 8 MiB."""


@rule(loop.Scratch)
def _scratch(low: Lowering, op: loop.Scratch) -> None:
    type: loop.ScratchType = op.result.type
    scope = low.scope
    shape: list[int] = []
    for d in type.dims:
        points = scope.block.get(d, low.kernel.domain[d])
        if not isinstance(points, int):
            raise BackendError(f"{type}: stack memory must have a static size, but d{d} has {points} points",
                               code="MLC0543", loc=op.loc)
        shape.append(op.extent(d, points) // (op.terms_of_word if d == op.interleaved else 1))
    dtype = i32 if op.interleaved >= 0 else type.dtype           # of words
    if any(isinstance(user, loop.ContractPanels) and user.columns is not op.result for user in op.result.users):
        shape[-1] += LINE // dtype.itemsize              # rows at a distance of a power of two share sets of a cache
    low.stack += math.prod(shape) * dtype.itemsize
    if low.stack > LIMIT:
        raise BackendError(f"{type}: the kernel takes {low.stack} bytes of stack with this buffer, more than {LIMIT}",
                           code="MLC0543", loc=op.loc)
    buffer = memref.Alloca(MemRefType(tuple(shape), dtype), alignment=64).result
    flatten(low, buffer)
    scope.scratch_buffers[op.result] = buffer, {d: scope.origin.get(d, 0) for d in type.dims}


def _access(low: Lowering, scratch: Value) -> Access:
    buffer, origin = low.scope.scratch_buffers[scratch]
    indices: tuple[AffineExpr, ...] = tuple(loop.coordinate(d) - origin[d] for d in scratch.type.dims)
    return Access(buffer, indices, bounded=False)


@rule(loop.StoreScratch)
def _store_scratch(low: Lowering, op: loop.StoreScratch) -> None:
    scratch = op.scratch.op
    assert isinstance(scratch, loop.Scratch)
    if scratch.interleaved >= 0:
        store_interleaved(low, op.value, scratch)
    else:
        store(low, op.value, _access(low, op.scratch))


@rule(loop.Pack)
def _pack(low: Lowering, op: loop.Pack) -> None:
    """Fill the panel with loops over its dimensions."""
    def along(dims: list[int]) -> list[Value]:
        if dims:
            return low.blocks(dims[0], 1, [], lambda _: along(dims[1:]))
        for inner in op.body.block:
            low.lower(inner)
        store(low, op.body.block.terminator.operands[0], _access(low, op.scratch))
        return []

    along([d for d in op.scratch.type.dims if d in low.scope.stop])


@rule(loop.LoadScratch)
def _load_scratch(low: Lowering, op: loop.LoadScratch) -> None:
    load(low, op.result, _access(low, op.scratch))
