"""gpu: kernels that run on a grid of thread blocks with shared memory; upstream's names, syntax and semantics.

A `gpu.module` holds kernels; `gpu.launch_func` runs one for every thread of a grid of blocks. The interpreter
(simt.py) runs all threads of several blocks at once, and reports what is undefined behaviour on hardware as a located
error: races, divergent barriers, out-of-bounds accesses, shuffles with inactive threads.
"""

from mlc.dialects.gpu import lowered, warp, warpgroup
from mlc.dialects.gpu.launch import Launch
from mlc.dialects.gpu.module import ALIGNED, ALIGNMENT, Func, GPUModule, Return, function
from mlc.dialects.gpu.thread import (
    AXES,
    Barrier,
    BlockDim,
    BlockId,
    GridDim,
    Shuffle,
    ThreadId,
)

__all__ = ["ALIGNED", "ALIGNMENT", "AXES", "Barrier", "BlockDim", "BlockId", "Func", "GPUModule", "GridDim", "Launch",
           "Return", "Shuffle", "ThreadId", "function", "lowered", "warp", "warpgroup"]
