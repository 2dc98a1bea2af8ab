"""gpu: functions that very many threads run, in blocks that share memory; upstream's names, syntax and meaning.

A `gpu.module` holds kernels; `gpu.launch_func` runs one for every thread of a grid of blocks. In the interpreter
(simt.py) all threads of some blocks run together, and what hardware leaves undefined is an error at its line: races,
barriers that not all threads reach, accesses outside of memory, shuffles with threads that are not there.
"""

from mlc.dialects.gpu import lowered, warp
from mlc.dialects.gpu.launch import Launch
from mlc.dialects.gpu.module import ALIGNMENT, Func, GPUModule, Return, function
from mlc.dialects.gpu.thread import (
    AXES,
    Barrier,
    BlockDim,
    BlockId,
    GridDim,
    Shuffle,
    ThreadId,
)

__all__ = ["ALIGNMENT", "AXES", "Barrier", "BlockDim", "BlockId", "Func", "GPUModule", "GridDim", "Launch", "Return",
           "Shuffle", "ThreadId", "function", "lowered", "warp"]
