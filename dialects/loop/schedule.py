"""The schedule of a kernel: how its iteration domain is tiled, vectorized and shared out among threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlc.ir import sizes
from mlc.ir.attributes import DialectAttribute
from mlc.ir.machine import WARP
from mlc.ir.sizes import Dim

MAX_TILE = 1 << 16
"""Points of a tile along one dimension: much of the code for a tile is written out."""


@dataclass(frozen=True, slots=True)
class Schedule(DialectAttribute):
    """`#loop.schedule<tile = [8, 48, 1], vector = 1, lanes = 16>`: the schedule of a `loop.kernel`.

    No field but `tile` and `vector` of a dimension whose partial results are combined across lanes has an influence on
    a result: there they are the order of summation.

    tile              the tile size along each dimension of the domain
    vector            the dimension that lies in vector registers, or -1
    lanes             how many points of it one register holds; 0, or where a tile is no multiple of it, the whole tile

    Of a CPU:

    threads           how many leading dimensions are shared out among threads
    grain_size        how many tiles of those are worth a thread: a number, or a size over the symbols of the kernel

    Of a GPU:

    tiles_per_cta     how many neighbouring tiles the threads of a CTA take together, one each; where a register holds
                      one lane, there are so many threads for each tile as the vector dimension has points
    threads_per_cta   how many of them lie along each parallel dimension, which makes the CTA tile; () for a row of them
    threads_per_warp  how many threads of a warp lie along each parallel dimension of the CTA tile, () if that does not
                      matter. The points of a thread have those of its warp between them: all of them, or pairs along
                      the vector dimension

    For people:

    steps             the transformations that have made the schedule; a kernel that has any is not scheduled again
    """

    mnemonic: ClassVar[str] = "loop.schedule"
    tile: tuple[int, ...]
    vector: int = -1
    lanes: int = 0
    threads: int = 0
    grain_size: Dim = 1
    tiles_per_cta: int = 0
    threads_per_cta: tuple[int, ...] = ()
    threads_per_warp: tuple[int, ...] = ()
    steps: tuple[str, ...] = ()

    def with_tile(self, dim: int, size: int) -> tuple[int, ...]:
        """The tile sizes with another one along a dimension."""
        return (*self.tile[:dim], size, *self.tile[dim + 1:])

    def problems(self, rank: int, parallel: int, symbols: tuple[str, ...]) -> Iterator[str]:
        """Inconsistencies with a domain of `rank` dimensions, the leading `parallel` of which are parallel."""
        if len(self.tile) != rank:
            yield f"tile = {list(self.tile)} has {len(self.tile)} sizes, the domain has {rank} dimensions"
        if not all(1 <= t <= MAX_TILE for t in self.tile):
            yield f"tile = {list(self.tile)}: tile sizes are positive, and at most {MAX_TILE}"
        if not -1 <= self.vector < rank:
            yield f"vector = {self.vector} names a dimension of {rank}, or is -1"
        if self.lanes < 0:
            yield f"lanes = {self.lanes} is negative"
        if not 0 <= self.threads <= parallel:
            yield f"threads = {self.threads}, but {parallel} dimensions are parallel"
        if isinstance(self.grain_size, int) and self.grain_size < 1:
            yield f"grain_size = {self.grain_size} is not positive"
        if unknown := sizes.symbols(self.grain_size) - {*symbols}:
            yield f"grain_size = {self.grain_size} names {min(unknown)}, which is no symbol of the kernel"
        if self.tiles_per_cta < 0:
            yield f"tiles_per_cta = {self.tiles_per_cta} is negative"
        cta, warp = self.threads_per_cta, self.threads_per_warp
        if cta and (len(cta) != parallel or min(cta) < 1 or prod(cta) != self.tiles_per_cta):
            yield (f"threads_per_cta = {list(cta)} is not what {self.tiles_per_cta} threads take along {parallel} "
                   "parallel dimensions")
        if warp and (len(warp) != len(cta) or prod(warp) != WARP or any(w < 1 or c % w for c, w in zip(cta, warp))):
            yield f"threads_per_warp = {list(warp)} does not divide threads_per_cta = {list(cta)} into warps"
