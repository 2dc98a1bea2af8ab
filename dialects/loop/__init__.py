"""loop: kernels. A kernel has an iteration domain, some dimensions of which are parallel and the others are loops; its
body is a program on tiles.

A tile `!loop.tile<d0xd1xf32>` holds one element per point of the current block of the named dimensions. The kernel's
schedule (or a loop with a block size of its own) sets the block sizes, so rescheduling changes numbers but no
operations. A tile that spans no dimension is a scalar. Operands of different dimensions broadcast.

An affine map (ir/affine.py) gives the element of a buffer to access. It has one result per dimension of the buffer,
over the coordinates `d0`, `d1`, ... of the point, the size symbols of the kernel, and `t0`, `t1`, ... for index tiles
(a gather). Points outside the domain (the last block may extend beyond it) are never read or written.

A scratch buffer `!loop.scratch<d2xd0xf32>` is local memory of the kernel: a tile that outlives a loop. It has no map,
as it is accessed at the coordinates of the point, and no explicit size, as that follows from the blocks. On a GPU, a
packed one is filled for the blocks of all threads that share it.
"""

from mlc.dialects.loop.access import (
    Check,
    Load,
    LoadScratch,
    Pack,
    Prefetch,
    Scratch,
    Store,
    StoreScratch,
    is_of_rows,
    position,
)
from mlc.dialects.loop.compute import (
    Contract,
    Fold,
    FoldFma,
    Full,
    InBounds,
    Index,
    Map,
    Mma,
    MultiplyAdd,
    Reduce,
    Scan,
)
from mlc.dialects.loop.interleaved import (
    ContractBytes,
    ContractInterleaved,
    LeastExponent,
    Words,
    in_whole_runs,
    words_of_runs,
)
from mlc.dialects.loop.kernel import Activation, End, For, InKernel, Kernel, Yield, iterator_types
from mlc.dialects.loop.pairs import ContractPairs, ContractPanels
from mlc.dialects.loop.quantized import (
    BlockMinima,
    BlockScales,
    Dequantize,
    DotPairs,
    DotQuads,
    LoadEncoded,
    UnpackPairs,
    UnpackQuads,
)
from mlc.dialects.loop.schedule import Schedule
from mlc.dialects.loop.types import ScratchType, TileType, coordinate, spanned, union

__all__ = [
    "Activation", "BlockMinima", "BlockScales", "Check", "Contract", "ContractBytes", "ContractInterleaved",
    "ContractPairs", "ContractPanels", "Dequantize", "DotPairs", "DotQuads", "End", "Fold", "FoldFma", "For",
    "Full", "InBounds", "InKernel", "Index", "Kernel", "LeastExponent", "Load", "LoadEncoded", "LoadScratch", "Map",
    "Mma", "MultiplyAdd", "Pack", "Prefetch", "Reduce", "Scan", "Schedule", "Scratch", "ScratchType", "Store",
    "StoreScratch", "TileType", "UnpackPairs", "UnpackQuads", "Words", "Yield", "coordinate", "in_whole_runs",
    "is_of_rows", "iterator_types", "position", "spanned", "union", "words_of_runs",
]
