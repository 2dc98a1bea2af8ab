"""Shared memory of thread blocks that descriptors of matrices tell addresses in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects import nvvm
from mlc.ir.core import Op
from mlc.ir.diag import IRError
from mlc.ir.types import to_numpy

if TYPE_CHECKING:
    from mlc.dialects.gpu.simt import Threads

Array = np.ndarray[Any, Any]


class SharedRegion:
    """The shared memory of the blocks that run together, if descriptors tell addresses in it.

    bytes     [block, byte]
    reading   number of products in flight that read each cell of two bytes
    unfenced  for each cell the thread that wrote it, until it has fenced its writes; else -1
    """

    def __init__(self, blocks: int, size: int) -> None:
        period = nvvm.SWIZZLE_PERIOD
        self.size = -(-size // period) * period
        self.held = np.full(blocks * self.size + period, 0xFF, np.uint8)
        first = -int(self.held.__array_interface__["data"][0]) % period
        self.bytes = self.held[first: first + blocks * self.size].reshape(blocks, self.size)
        self.reading = np.zeros(blocks * self.size // 2, np.int64)
        self.unfenced = np.full(self.reading.size, -1, np.int64)

    @property
    def address(self) -> int:
        """The address of the first byte."""
        return int(self.bytes.__array_interface__["data"][0])

    def start(self, block: int) -> int:
        """The address of the memory of a block."""
        return self.address + int(block) * self.size

    def buffer(self, at: int, type: Any) -> Array:
        """One buffer of every block, as an array [block, ...]."""
        dtype = to_numpy(type.dtype)
        strides, step = list[int](), dtype.itemsize
        for n in reversed(type.shape):
            strides.insert(0, step)
            step *= n
        return np.ndarray((len(self.bytes), *type.shape), dtype, self.bytes, at, (self.size, *strides))

    def read(self, op: Op, threads: Threads, group: int, cells: Array) -> None:
        """Record that a warpgroup's product reads cells."""
        trace = next(t for t in threads.traces if t.start == self.address)
        first = np.array([group * nvvm.WARPGROUP])
        who = threads.block[first] * threads.per_block + threads.lane[first]
        cells = np.unique(cells)
        if (self.unfenced[cells] >= 0).any():
            raise IRError(f"{op.name}: reads what a thread wrote, with no nvvm.fence.proxy of that thread in between",
                          code="MLC0185", loc=op.loc)
        trace.access(op, self.address + 2 * cells, 2, np.repeat(who, cells.size),
                     np.repeat(threads.epoch[threads.inside[first]], cells.size), False, False)
        self.reading[cells] += 1

    def write(self, op: Op, addresses: Array, size: int, threads: Array) -> None:
        """Record that threads write, or begin to copy; raises IRError if a product in flight reads there."""
        cells = ((addresses - self.address) // 2)[:, None] + np.arange(max(1, size // 2))
        if (cells < 0).any() or (cells >= self.reading.size).any():
            return                                           # other memory
        if self.reading[cells].any():
            raise IRError(f"{op.name}: writes what a product of a warpgroup reads that has not been waited for",
                          code="MLC0185", loc=op.loc)
        self.unfenced[cells] = threads[:, None]

    def fence(self, mask: Array) -> None:
        """The active threads fence their writes."""
        self.unfenced[(self.unfenced >= 0) & mask[self.unfenced]] = -1
