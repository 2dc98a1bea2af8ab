"""Interpretation of products of a warpgroup (wgmma), for all threads at once.

A warpgroup issues a product and goes on; the product reads shared memory meanwhile. The interpreter computes it when it
is issued, and reports writes to what it reads until its warpgroup waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlc.dialects import llvm, memref, nvvm
from mlc.dialects.gpu import lowered, simt
from mlc.dialects.gpu.simt import Array, Shared, Threads, exchanged
from mlc.ir.core import Op
from mlc.ir.types import SCALARS, to_numpy

TERMS, ROWS = 16, 64
"""Terms and rows of one product."""
WINDOW = 1 << 18
"""Descriptors tell addresses modulo this."""


@dataclass
class Reading:
    """Memory that a product of a warpgroup reads until the group with this number is complete."""

    group: int
    warpgroup: int
    cells: Array


class InFlight:
    """The products in flight. `groups`: number of groups that each warpgroup has committed."""

    def __init__(self, count: int) -> None:
        self.groups = np.zeros(count, np.int64)
        self.readings: list[Reading] = []

    @classmethod
    def of(cls, threads: Threads) -> InFlight:
        if threads.products is None:
            threads.products = cls(threads.mask.size // nvvm.WARPGROUP)
        found: InFlight = threads.products
        return found

    def wait(self, threads: Threads, but: int) -> None:
        """Complete all groups of the active warpgroups except the last `but`."""
        left, here = [], active(threads)
        for reading in self.readings:
            done = here[reading.warpgroup] and reading.group < self.groups[reading.warpgroup] - but
            if done:
                threads.region.reading[reading.cells] -= 1
            else:
                left.append(reading)
        self.readings = left


def active(threads: Threads) -> Array:
    """Which warpgroups are active."""
    out: Array = threads.mask.reshape(-1, nvvm.WARPGROUP)[:, 0]
    return out


def whole_warpgroups(op: Op, threads: Threads) -> None:
    """Check that all threads of each warpgroup are active, or none."""
    if threads.per_block % nvvm.WARPGROUP:
        op.fail(f"blocks of {threads.per_block} threads are not made of whole warpgroups", code="MLC0183")
    exchanged(op, threads, threads.lane, np.zeros_like(threads.lane))
    groups = threads.mask.reshape(-1, nvvm.WARPGROUP)
    if (groups.any(1) != groups.all(1)).any():
        op.fail("some warps of a warpgroup do not take part", code="MLC0183")


def places(op: Op, descriptor: int, extent: int, transposed: bool) -> Array:
    """Positions in bytes, [element, term], of a factor of `extent` rows by its descriptor, before swizzling."""
    start, leading, stride = descriptor & 0x3FFF, descriptor >> 16 & 0x3FFF, descriptor >> 32 & 0x3FFF
    if descriptor >> 62 != 1 or descriptor >> 49 & 7:
        op.fail(f"descriptor {descriptor:#x} is not of a matrix with the 128-byte swizzle", code="MLC0184")
    i, k = np.arange(extent)[:, None], np.arange(TERMS)
    if transposed:
        inside = i // 64 * (leading << 4) + k // 8 * (stride << 4) + k % 8 * nvvm.ROW_BYTES + i % 64 * 2
    else:
        inside = i // 8 * (stride << 4) + i % 8 * nvvm.ROW_BYTES + k * 2
    return (start << 4) + inside


def factor(op: Op, threads: Threads, group: int, descriptor: int, extent: int, transposed: bool,
           dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """A factor of a warpgroup's product, [element, term], and the cells of the block's memory that it lies in."""
    block = threads.inside[group * nvvm.WARPGROUP]
    region = threads.region
    at = (places(op, descriptor, extent, transposed) - region.start(block)) % WINDOW
    at = at ^ (at >> 7 & 7) << 4                             # the region starts at a multiple of the pattern's period
    if (at >= region.size).any():
        op.fail("a descriptor leaves the shared memory of the block", code="MLC0163")
    raw = region.bytes[block]
    words = raw[at[..., None] + np.arange(2)].reshape(extent, -1)
    return np.ascontiguousarray(words).view(dtype).astype(np.float64), block * (region.size // 2) + at.ravel() // 2


def held(registers: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """A factor of 64 rows and 16 terms of the registers of the threads of a warpgroup, [row, term]."""
    lane, r = np.arange(nvvm.WARPGROUP)[:, None, None], np.arange(4)[:, None]
    rows = 16 * (lane // 32) + lane % 32 // 4 + 8 * (r % 2) + np.zeros(2, int)
    terms = 2 * (lane % 4) + 8 * (r // 2) + np.arange(2)
    matrix = np.zeros((ROWS, TERMS))
    words = np.ascontiguousarray(np.stack(registers, axis=1).astype(np.int32))
    matrix[rows, terms] = words.view(dtype).reshape(nvvm.WARPGROUP, 4, 2).astype(np.float64)
    return matrix


def multiply(op: Op, threads: Threads, product: nvvm.Wgmma, sums: Array, factors: Sequence[Array]) -> Array:
    """The sums of each thread, [thread, sum], after a product."""
    whole_warpgroups(op, threads)
    if threads.region is None:
        op.fail("descriptors tell addresses in shared memory whose alignment is that of the pattern", code="MLC0184")
    flight, dtype, out = InFlight.of(threads), to_numpy(SCALARS[product.dtype]), sums.copy()
    lane, d = np.arange(nvvm.WARPGROUP)[:, None], np.arange(product.sums)
    rows = 16 * (lane // 32) + lane % 32 // 4 + 8 * (d // 2 % 2)
    columns = 8 * (d // 4) + 2 * (lane % 4) + d % 2
    for group in np.nonzero(active(threads))[0]:
        mine = slice(group * nvvm.WARPGROUP, (group + 1) * nvvm.WARPGROUP)
        found = [held([x[mine] for x in factors[:-1]], dtype)] if product.in_registers else []
        by_descriptor = [*zip(factors[-2:], (ROWS, product.columns), product.transposed)][product.in_registers:]
        for all_of, extent, transposed in by_descriptor:
            if (all_of[mine] != all_of[mine][0]).any():
                op.fail("the threads of a warpgroup have different descriptors", code="MLC0183")
            matrix, cells = factor(op, threads, int(group), int(all_of[mine][0]), extent, transposed, dtype)
            threads.region.read(op, threads, group, cells)
            flight.readings.append(Reading(int(flight.groups[group]), int(group), cells))
            found.append(matrix)
        total = np.zeros((ROWS, product.columns))
        with np.errstate(all="ignore"):
            for k in range(TERMS):
                total = total + found[0][:, k, None] * found[1][:, k]
            out[mine] = (sums[mine].astype(np.float64) + total[rows, columns]).astype(np.float32)
    return out


# -- rules ------------------------------------------------------------------------------------------------------------
def _inline_asm(op: llvm.InlineAsm, threads: Threads) -> Any:
    product, values = nvvm.Wgmma.of(op), threads.all(op.args)
    if nvvm.is_finish(op):
        InFlight.of(threads).wait(threads, 0)
        return tuple(values)
    if product is None:
        return op.ref()
    sums = np.zeros((threads.mask.size, product.sums), np.float32)
    for i, v in enumerate(values[: product.carried]):
        sums[:, i] = threads.each(v, np.float32)
    factors = [threads.each(v, np.int32 if kind == "r" else np.int64)
               for v, kind in zip(values[product.carried:], product.factors)]
    found = multiply(op, threads, product, sums, factors)
    return tuple(found[:, i] for i in range(product.sums))


def _commit(op: Op, threads: Threads) -> Any:
    InFlight.of(threads).groups[active(threads)] += 1
    return []


def _wait(op: nvvm.WgmmaWaitGroup, threads: Threads) -> Any:
    InFlight.of(threads).wait(threads, op.group)
    return []


def _fence_proxy(op: Op, threads: Threads) -> Any:
    if threads.region is not None:
        threads.region.fence(threads.mask)
    return []


def _nothing(op: Op, threads: Threads) -> Any:
    return []


for _rules in (simt.RULES, lowered.RULES):
    _rules.update({llvm.InlineAsm: _inline_asm, nvvm.WgmmaCommitGroup: _commit, nvvm.WgmmaWaitGroup: _wait,
                   nvvm.WgmmaFence: _nothing, nvvm.FenceProxy: _fence_proxy})


@simt.rule(memref.Address)
def _address(op: memref.Address, threads: Threads) -> Any:
    memory = threads[op.source]
    if not isinstance(memory, Shared):
        return op.ref(memory)
    start = int(memory.array.__array_interface__["data"][0])
    return start + memory.rows(threads) * memory.array.strides[0]
