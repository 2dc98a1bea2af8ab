"""The schedule of a kernel: tiling, vectorization and distribution of its iteration domain among threads."""

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
"""Most points of a tile along one dimension, as much of the code for a tile is unrolled."""


@dataclass(frozen=True, slots=True)
class Schedule(DialectAttribute):
    """`#loop.schedule<tile = [8, 48, 1], vector = 1, lanes = 16>`: the schedule of a `loop.kernel`.

    Results do not depend on the schedule, except on `tile` and `vector` of a dimension whose partial results are
    combined across lanes, and on `tile` of one along which several contractions add to one sum, block by block: there
    they are the order of summation.

    tile              tile size along each dimension of the domain
    vector            the vectorized dimension, or -1
    lanes             points of it per vector register; 0, or one that does not divide the tile, means the whole tile

    Of a CPU:

    masked            dimensions whose last tile is a whole one with masked accesses, and not a smaller one with code of
                      its own
    thread_dims       number of leading dimensions that are distributed among threads
    grain_size        tiles of those per parallel task: a number, or a size over the symbols of the kernel

    Of a GPU:

    tiles_per_cta     number of adjacent tiles per CTA, one for each thread; if `lanes` are fewer than the points of a
                      vector dimension that is summed, each thread has so many of them, and a tile as many threads as
                      that takes
    threads_per_cta   threads along each parallel dimension, which determine the CTA tile; () for a single row
    threads_per_warp  threads of a warp along each parallel dimension of the CTA tile; () if irrelevant. The points of a
                      thread are interleaved with those of its warp: single points, or pairs along the vector dimension
    mma_warps         warps that multiply together on tensor cores: 1 by mma.sync, of fragments that they load, or 4 by
                      wgmma, of swizzled panels
    group_m           if not 0, CTA tiles are numbered in groups of so many along the last but one parallel dimension,
                      column by column: those that run at a time have more of both factors in common (Triton's name)
    epilogue_tile     points of a thread along `vector` that are computed and stored at a time after the sums of a CTA
                      tile (CUTLASS's name): all that is computed of all sums might not fit into registers; 0 if the
                      sums are no CTA tile's
    groups_per_tile   groups of threads that share the tiles of a CTA: each group has a thread per lane, or per tile,
                      and takes some blocks of the vector dimension, or of the only reduction dimension
    blocks_per_group  adjacent blocks of it that a group takes before it is the next one's turn
    row_parts         of a scatter: parts that the rows of its result, along axis `row_axis`, are divided into. Row i is
                      in part i modulo `row_parts`; each tile has a CTA for every part, with the updates of its rows
    ctas_at_once      CTAs that a multiprocessor has to hold, which bounds the registers of a thread; 0 for no bound

    Informative:

    steps             the transformations that produced the schedule; a kernel with any is not scheduled again
    """

    mnemonic: ClassVar[str] = "loop.schedule"
    tile: tuple[int, ...]
    vector: int = -1
    lanes: int = 0
    masked: tuple[int, ...] = ()
    thread_dims: int = 0
    grain_size: Dim = 1
    tiles_per_cta: int = 0
    threads_per_cta: tuple[int, ...] = ()
    threads_per_warp: tuple[int, ...] = ()
    mma_warps: int = 1
    group_m: int = 0
    epilogue_tile: int = 0
    groups_per_tile: int = 1
    blocks_per_group: int = 0
    ctas_at_once: int = 0
    row_parts: int = 1
    row_axis: int = 0
    steps: tuple[str, ...] = ()

    def with_tile(self, dim: int, size: int) -> tuple[int, ...]:
        """The tile sizes with that of one dimension replaced."""
        return (*self.tile[:dim], size, *self.tile[dim + 1:])

    @property
    def adjacent_lanes(self) -> int:
        """The number of adjacent points in a vector of the tile: `lanes`, or the whole tile; 0 without vectors."""
        if not 0 <= self.vector < len(self.tile):
            return 0
        size = self.tile[self.vector]
        return self.lanes if self.lanes > 0 and size % self.lanes == 0 else size

    def dim_of_threads(self, parallel: int) -> int:
        """The reduction dimension whose lanes are threads of a GPU, or -1."""
        divided = self.vector >= parallel and 0 < self.adjacent_lanes < self.tile[self.vector]
        return self.vector if divided and self.tiles_per_cta else -1

    def shared_dim(self, rank: int, parallel: int) -> int:
        """The dimension whose blocks groups of threads may share, or -1."""
        if self.vector >= parallel:
            return self.vector if self.lanes == 1 else -1
        return parallel if self.vector < 0 and rank == parallel + 1 else -1

    def problems(self, rank: int, parallel: int, symbols: tuple[str, ...]) -> Iterator[str]:
        """Inconsistencies with a domain of `rank` dimensions, the leading `parallel` of which are parallel."""
        if len(self.tile) != rank:
            yield f"tile = {list(self.tile)} has {len(self.tile)} sizes, the domain has {rank} dimensions"
        if not all(1 <= t <= MAX_TILE for t in self.tile):
            yield f"tile = {list(self.tile)}: tile sizes are positive, and at most {MAX_TILE}"
        if not -1 <= self.vector < rank:
            yield f"vector = {self.vector} is neither one of {rank} dimensions nor -1"
        if self.lanes < 0:
            yield f"lanes = {self.lanes} is negative"
        if not all(0 <= d < parallel for d in self.masked) or (self.masked and self.vector < 0):
            yield f"masked = {list(self.masked)}: only vectors of {parallel} parallel dimensions are masked"
        if not 0 <= self.thread_dims <= parallel:
            yield f"thread_dims = {self.thread_dims}, but {parallel} dimensions are parallel"
        if isinstance(self.grain_size, int) and self.grain_size < 1:
            yield f"grain_size = {self.grain_size} is not positive"
        if unknown := sizes.symbols(self.grain_size) - {*symbols}:
            yield f"grain_size = {self.grain_size} names {min(unknown)}, which is not a symbol of the kernel"
        if self.tiles_per_cta < 0:
            yield f"tiles_per_cta = {self.tiles_per_cta} is negative"
        divided = self.row_parts > 1
        if self.row_parts < 1 or self.row_axis < 0 or (divided and (self.vector >= 0 or self.threads_per_cta)):
            yield f"row_parts = {self.row_parts}: rows are divided if no lanes and no CTA tiles are"
        cta, warp = self.threads_per_cta, self.threads_per_warp
        if self.groups_per_tile < 1 or self.blocks_per_group < 0 or self.ctas_at_once < 0:
            yield (f"groups_per_tile = {self.groups_per_tile}, blocks_per_group = {self.blocks_per_group}, "
                   f"ctas_at_once = {self.ctas_at_once}: there is a group, and no number is negative")
        if self.groups_per_tile > 1 and (self.shared_dim(rank, parallel) < 0 or not self.blocks_per_group or cta):
            yield (f"groups_per_tile = {self.groups_per_tile} needs lanes that are threads or one reduction dimension, "
                   "and the number of blocks that each group takes at a time")
        if cta and (len(cta) != parallel or min(cta) < 1 or prod(cta) != self.tiles_per_cta):
            yield (f"threads_per_cta = {list(cta)} does not arrange {self.tiles_per_cta} threads along {parallel} "
                   "parallel dimensions")
        if cta and self.vector >= parallel:
            yield f"vector = {self.vector} is a reduction dimension, along which no CTA tile lies"
        if warp and (len(warp) != len(cta) or prod(warp) != WARP or any(w < 1 or c % w for c, w in zip(cta, warp))):
            yield f"threads_per_warp = {list(warp)} does not divide threads_per_cta = {list(cta)} into warps"
        if self.group_m < 0 or (self.group_m and len(cta) < 2):
            yield f"group_m = {self.group_m}: CTA tiles of two dimensions or more are grouped"
        if self.epilogue_tile and (not cta or self.vector < 0 or self.epilogue_tile < 0 or (
                self.tile[self.vector] % self.epilogue_tile or self.epilogue_tile % self.adjacent_lanes)):
            yield (f"epilogue_tile = {self.epilogue_tile}: vectors of {self.adjacent_lanes} lanes that divide the tile "
                   "along `vector`, of a CTA tile")
        if self.mma_warps not in (1, 4) or (self.mma_warps == 4 and not self._has_warpgroups()):
            yield (f"mma_warps = {self.mma_warps}: four warps multiply 64 rows, two for each thread of warps of 8 x 4, "
                   "by 8 to 256 columns along `vector`")

    def _has_warpgroups(self) -> bool:
        """Whether the threads of four warps have the sums that wgmma gives them."""
        shape = [(d, c // w, w) for d, (c, w) in enumerate(zip(self.threads_per_cta, self.threads_per_warp)) if c > 1]
        rows = [(d, n) for d, n, w in shape if w == 8]
        columns = [(d, n) for d, n, w in shape if w == 4]
        return (len(shape) == 2 and len(rows) == len(columns) == 1 and rows[0][1] % 4 == 0 and columns[0][1] == 1
                and self.tile[rows[0][0]] == 2 and columns[0][0] == self.vector and self.adjacent_lanes == 2
                and self.tile[self.vector] in range(2, 65, 2))
