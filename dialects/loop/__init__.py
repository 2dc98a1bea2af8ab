"""loop: kernels. A kernel is a domain of points, some dimensions of which are parallel and the rest are loops; its
body is a small program on tiles.

A tile `!loop.tile<d0xd1xf32>` holds one element for each point of the current block of the named dimensions. How
large a block is says the kernel's schedule (or a loop, where it has blocks of its own size), so a schedule
changes numbers and every operation stays as it is; a tile that spans no dimension is a scalar. Operands of different
dimensions broadcast.

Where a buffer is read or written says an affine map (ir/affine.py), with one result per dimension of the buffer over
the coordinates `d0`, `d1`, ... of the point, the size symbols of the kernel, and `t0`, `t1`, ... for index tiles (a
gather). Points outside the domain (the last block may stick out) are never read or written.

A scratch `!loop.scratch<d2xd0xf32>` is memory of the kernel's own: a tile that outlives a loop. It has no map, for it
is kept and recalled at the point's own coordinates, and no size, for that follows from the blocks. One that is packed
is filled for the blocks of all threads that share it, where these are those of a GPU.
"""

from mlc.dialects.loop.access import Check, Load, LoadScratch, Pack, Scratch, Store, StoreScratch
from mlc.dialects.loop.compute import Contract, Fold, Full, InBounds, Index, Map, Mma, Reduce, Scan
from mlc.dialects.loop.kernel import Activation, End, For, InKernel, Kernel, Yield, iterator_types
from mlc.dialects.loop.schedule import Schedule
from mlc.dialects.loop.types import ScratchType, TileType, coordinate, spanned, union

__all__ = [
    "Activation", "Check", "Contract", "End", "Fold", "For", "Full", "InBounds", "InKernel", "Index",
    "Kernel", "Load", "LoadScratch", "Map", "Mma", "Pack", "Reduce", "Scan", "Schedule", "Scratch", "ScratchType",
    "Store", "StoreScratch", "TileType", "Yield", "coordinate", "iterator_types", "spanned", "union",
]
