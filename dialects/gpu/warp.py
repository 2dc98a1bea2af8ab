"""Interpretation of warp-level operations and asynchronous copies, for all threads at once.

The threads of a warp hold matrices in fragments, as PTX defines them for mma.sync. With g = lane // 4, t = lane % 4 and
e adjacent elements per register, register r of A (16 x k) starts at row g + 8 (r % 2) and column e t + 4 e (r // 2), of
B (k x 8) at column g and row e t + 4 e r, and of C (16 x 8) at row g + 8 r and column 2 t.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlc.dialects import nvgpu, nvvm
from mlc.dialects.gpu import lowered, simt
from mlc.dialects.gpu.lowered import Instructions
from mlc.dialects.gpu.simt import Array, Threads, exchanged
from mlc.dialects.tensor.orders import tf32
from mlc.ir.core import Op
from mlc.ir.diag import IRError
from mlc.ir.machine import WARP
from mlc.ir.types import SCALARS, to_numpy

LANE = np.arange(WARP)[:, None, None]


def fragment_a(held: int) -> tuple[Array, Array]:
    """Rows and columns of A, [lane, register, element]."""
    r, j = np.arange(4)[:, None], np.arange(held)
    return LANE // 4 + 8 * (r % 2) + 0 * j, LANE % 4 * held + j + 4 * held * (r // 2)


def fragment_b(held: int) -> tuple[Array, Array]:
    """Rows and columns of B."""
    r, j = np.arange(2)[:, None], np.arange(held)
    return LANE % 4 * held + j + 4 * held * r, LANE // 4 + 0 * r + 0 * j


def fragment_c() -> tuple[Array, Array]:
    """Rows and columns of C."""
    r, j = np.arange(2)[:, None], np.arange(2)
    return LANE // 4 + 8 * r + 0 * j, LANE % 4 * 2 + j + 0 * r


def whole_warps(op: Op, threads: Threads) -> None:
    """Check that all threads of each warp are active, or none."""
    if threads.per_block % WARP:
        op.fail(f"blocks of {threads.per_block} threads are not made of whole warps", code="MLC0183")
    exchanged(op, threads, threads.lane, np.zeros_like(threads.lane))


def product(op: Op, threads: Threads, a: Array, b: Array, c: Array, truncated: bool) -> Array:
    """D = A B + C on fragments [thread, register, element]: k products are summed in f64, added to C, rounded once."""
    whole_warps(op, threads)
    if truncated:
        a, b = tf32(a), tf32(b)
    warps, held = threads.mask.size // WARP, a.shape[-1]
    where = fragment_a(held), fragment_b(held), fragment_c()
    k = 8 * held
    matrices = [np.zeros((warps, *shape)) for shape in ((16, k), (k, 8), (16, 8))]
    for matrix, at, x in zip(matrices, where, (a, b, c)):
        matrix[(slice(None), *at)] = x.astype(np.float64).reshape(warps, *at[0].shape)
    left, right, total = matrices
    with np.errstate(all="ignore"):
        sums = np.zeros_like(total)
        for i in range(k):
            sums = sums + left[:, :, i, None] * right[:, i, None, :]
        found = (total + sums).astype(np.float32)
    return found[(slice(None), *where[2])].reshape(threads.mask.size, 2, 2)


def tiles(op: Op, threads: Threads, count: int, transposed: bool, read: Callable[[], Array]) -> Array:
    """Fragments [thread, tile, 2] of matrices; each of the first threads reads one row of 8 elements."""
    whole_warps(op, threads)
    before = threads.mask
    threads.mask = before & (threads.lane % WARP < 8 * count)
    rows = read()
    threads.mask = before
    matrices = rows.reshape(-1, WARP, 8)[:, : 8 * count].reshape(-1, count, 8, 8)
    if transposed:
        matrices = matrices.swapaxes(2, 3)
    lane = np.arange(WARP)[:, None]
    found = matrices[:, :, lane // 4, lane % 4 * 2 + np.arange(2)]         # [warp, tile, lane, 2]
    return np.ascontiguousarray(found.swapaxes(1, 2)).reshape(threads.mask.size, count, 2)


# -- copies -----------------------------------------------------------------------------------------------------------
@dataclass
class Copy:
    """An asynchronous copy by some threads: destination, write function, and the group index of each thread."""

    op: Op
    threads: Array
    group: Array
    addresses: Array
    size: int
    write: Callable[[Array], None]


class Copies:
    """The copies in flight."""

    def __init__(self, count: int) -> None:
        self.groups = np.zeros(count, np.int64)              # number of groups of each thread
        self.begun: list[Copy] = []

    @classmethod
    def of(cls, threads: Threads) -> Copies:
        if threads.copies is None:
            threads.copies = cls(threads.mask.size)
        found: Copies = threads.copies
        return found

    def mark(self, threads: Threads, copy: Copy, here: Array, under_way: bool) -> None:
        """Mark the cells that some threads of a copy write as in flight, or as complete."""
        for trace in threads.traces:
            if copy.addresses.size and trace.start <= copy.addresses[0] < trace.end:
                who = threads.block[copy.threads] * threads.per_block + threads.lane[copy.threads]
                cells = trace.cells(copy.addresses, copy.size)
                busy = trace.copier[cells[here]]
                if under_way and (busy != trace.NONE).any():
                    raise IRError(f"{copy.op.name}: overlaps a copy of {trace.name(busy[busy != trace.NONE][0])} that "
                                  "is in flight", code="MLC0185", loc=copy.op.loc)
                trace.copier[cells[here]] = who[here, None] if under_way else trace.NONE

    def begin(self, op: Op, threads: Threads, addresses: Array, size: int, write: Callable[[Array], None]) -> None:
        here = np.nonzero(threads.mask)[0]
        if threads.region is not None:
            threads.region.write(op, addresses, size, here)
        copy = Copy(op, here, self.groups[here].copy(), addresses, size, write)
        self.mark(threads, copy, np.ones(here.size, bool), under_way=True)
        self.begun.append(copy)

    def commit(self, threads: Threads) -> None:
        self.groups[threads.mask] += 1

    def wait(self, threads: Threads, but: int) -> None:
        """Complete all groups of the active threads except the last `but`."""
        left: list[Copy] = []
        for copy in self.begun:
            who = copy.threads
            done = threads.mask[who] & (copy.group < self.groups[who] - but)
            if done.any():
                self.mark(threads, copy, done, under_way=False)
                threads.trace(copy.op, copy.addresses[done], copy.size, write=True, threads=who[done])
                copy.write(done)
            if not done.all():
                rest = np.nonzero(~done)[0]
                left.append(Copy(copy.op, who[rest], copy.group[rest], copy.addresses[rest], copy.size,
                                 _of_rest(copy.write, rest, who.size)))
        self.begun = left


def _of_rest(write: Callable[[Array], None], rest: Array, count: int) -> Callable[[Array], None]:
    """Restrict `write` to the threads in `rest`: it takes a mask of all `count` threads."""
    def apply(chosen: Array) -> None:
        every = np.zeros(count, bool)
        every[rest[chosen]] = True
        write(every)
    return apply


# -- on vectors and memrefs -------------------------------------------------------------------------------------------
def _vector(threads: Threads, value: Any, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(value, (threads.mask.size, *shape))


@simt.rule(nvgpu.MmaSync)
def _mma(op: nvgpu.MmaSync, threads: Threads) -> Any:
    a, b, c = (_vector(threads, threads[v], v.type.shape) for v in op.operands)
    return product(op, threads, a, b, c, bool(op.tf32Enabled))


@simt.rule(nvgpu.LdMatrix)
def _ldmatrix(op: nvgpu.LdMatrix, threads: Threads) -> Any:
    dtype = to_numpy(op.memory.type.dtype)
    found = tiles(op, threads, op.numTiles, op.transpose, lambda: simt.move(
        op, threads, threads[op.memory], threads.all(op.indices), 16 // dtype.itemsize, alignment=16).view(np.uint16))
    return found.view(dtype)


@simt.rule(nvgpu.DeviceAsyncCopy)
def _copy(op: nvgpu.DeviceAsyncCopy, threads: Threads) -> Any:
    count, here = op.dstElements, np.nonzero(threads.mask)[0]
    values = simt.move(op, threads, threads[op.src], threads.all(op.src_at), count, alignment=op.bytes)[here]
    if op.srcElements is not None:
        read = threads.each(threads[op.srcElements], np.int64)[here]
        values = np.where(np.arange(count) < read[:, None], values, np.zeros((), values.dtype))
    array, at = simt.positions_in(op, threads, threads[op.dst], threads.all(op.dst_at), count)
    addresses = simt.addresses_of(array, at, here.size)
    if (addresses % op.bytes).any():
        raise IRError(f"{op.name}: an address is no multiple of {op.bytes}", code="MLC0163", loc=op.loc)
    at = (*(i[:, None] for i in at[:-1]), at[-1][:, None] + np.arange(count))

    def write(chosen: Array) -> None:
        array[tuple(i[chosen] for i in at)] = values[chosen]

    Copies.of(threads).begin(op, threads, addresses, op.bytes, write)
    return [None]


@simt.rule(nvgpu.DeviceAsyncCreateGroup)
def _commit(op: Op, threads: Threads) -> Any:
    Copies.of(threads).commit(threads)
    return [None]


@simt.rule(nvgpu.DeviceAsyncWait)
def _wait(op: nvgpu.DeviceAsyncWait, threads: Threads) -> Any:
    Copies.of(threads).wait(threads, op.numGroups or 0)
    return []


# -- on registers and addresses ---------------------------------------------------------------------------------------
@lowered.rule(nvvm.MmaSync)
def _mma_registers(op: nvvm.MmaSync, threads: Instructions) -> Any:
    dtype = {"bf16": "bf16", "f16": "f16", "tf32": "f32"}[op.kind]

    def fragment(values: Any, name: str) -> Array:
        parts = [np.ascontiguousarray(_vector(threads, x, np.shape(x)[1:])) for x in threads.all(values)]
        rows = [p.view(to_numpy(SCALARS[name])).reshape(threads.mask.size, -1) for p in parts]
        return np.stack(rows, axis=1)

    a, b = fragment(op.operandA, dtype), fragment(op.operandB, dtype)
    c = np.stack([threads.each(x, np.float32) for x in threads.all(op.operandC)], axis=1).reshape(-1, 2, 2)
    found = product(op, threads, a, b, c, op.kind == "tf32").reshape(-1, 4)
    return tuple(found[:, i] for i in range(4))


@lowered.rule(nvvm.LdMatrix)
def _ldmatrix_address(op: nvvm.LdMatrix, threads: Instructions) -> Any:
    def read() -> Array:
        here, memory, at = threads.bytes(op, threads[op.ptr], 16, 16, write=False)
        rows = np.zeros((threads.mask.size, 8), np.int16)
        rows[here] = memory[at].view(np.int16)
        return rows

    found = tiles(op, threads, op.num, op.layout == "col", read).view(np.int32)[..., 0]
    return found[:, 0] if op.num == 1 else tuple(found[:, i] for i in range(op.num))


@lowered.rule(nvvm.CpAsyncSharedGlobal)
def _copy_bytes(op: nvvm.CpAsyncSharedGlobal, threads: Instructions) -> Any:
    _, source, at = threads.bytes(op, threads[op.src], op.size, op.size, write=False)
    values = source[at]
    if op.cpSize is not None:
        read = threads.each(threads[op.cpSize], np.int64)[np.nonzero(threads.mask)[0]]
        values = np.where(np.arange(op.size) < read[:, None], values, np.zeros((), values.dtype))
    here, memory, to = threads.bytes(op, threads[op.dst], op.size, op.size, write=True, traced=False)

    def write(chosen: Array) -> None:
        memory[to[chosen]] = values[chosen]

    addresses = threads.each(threads[op.dst], np.int64)[here]
    Copies.of(threads).begin(op, threads, addresses, op.size, write)
    return []


@lowered.rule(nvvm.CpAsyncCommitGroup)
def _commit_group(op: Op, threads: Instructions) -> Any:
    Copies.of(threads).commit(threads)
    return []


@lowered.rule(nvvm.CpAsyncWaitGroup)
def _wait_group(op: nvvm.CpAsyncWaitGroup, threads: Instructions) -> Any:
    Copies.of(threads).wait(threads, op.n)
    return []
