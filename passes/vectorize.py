"""Choose, for each kernel, the dimension that lies in vector registers and the block sizes.

takes  LOOP
gives  LOOP
why    a tile of one point is correct everywhere; this is where the machine's vectors come in

The vector dimension is the parallel one along which most buffers are contiguous; reductions in lanes bring theirs
along. A contraction keeps a block of rows times a few vectors of columns in registers. Every choice goes through
`block`, so the kernel records it (`schedule`), and none changes a bit of the result.
"""

from __future__ import annotations

from mlc.dialects import loop
from mlc.dialects.loop import Kernel
from mlc.ir import sizes
from mlc.ir.core import Op
from mlc.ir.passes import Pass
from mlc.ir.sizes import Dim, Size
from mlc.passes.forms import LOOP


def run(module: Op, bits: int = 512, rows: int = 6, columns: int = 4, vectors: int = 4) -> None:
    """Schedule every kernel for registers of `bits`; a contraction takes `rows` x (`columns` vectors)."""
    for kernel in module.inside(Kernel):
        if not kernel.schedule:
            schedule(kernel, bits, rows, columns, vectors)


def schedule(kernel: Kernel, bits: int, rows: int, columns: int, vectors: int) -> None:
    """The default schedule of one kernel."""
    lanes = max(1, bits // element_width(kernel))
    contraction = next(kernel.inside(loop.Contract), None)
    if contraction is not None:
        schedule_contraction(kernel, lanes, rows, columns, bits)
    elif kernel.vector < 0 and (dim := best_dimension(kernel)) is not None:
        block(kernel, dim, fit(kernel.domain[dim], lanes, vectors), vector=True)


def block(kernel: Kernel, dim: int, size: int, vector: bool = False) -> None:
    """Let each block hold `size` points along dimension `dim`; `vector` puts them in vector registers."""
    kernel.tile = (*kernel.tile[:dim], size, *kernel.tile[dim + 1:])
    if vector:
        kernel.vector = dim
    kernel.schedule = (*kernel.schedule, f"block(dim={dim}, size={size}{', vector=True' if vector else ''})")


def schedule_contraction(kernel: Kernel, lanes: int, rows: int, columns: int, bits: int) -> None:
    """Rows x columns of accumulators in registers: columns along the right factor's contiguous axis."""
    dim = best_dimension(kernel)
    if dim is None:
        return
    registers = 32 if bits >= 512 else 16
    if registers < 32:
        rows, columns = min(rows, 6), min(columns, 2)
    width = fit(kernel.domain[dim], lanes, columns)
    vectors = max(1, width // lanes)
    block(kernel, dim, width, vector=True)
    row = next((d for d in reversed(range(dim)) if kernel.domain[d] != 1), None)
    if row is not None:
        height = min(8, (registers - 4 - vectors) // vectors) if vectors < columns else rows
        extent = kernel.domain[row]
        block(kernel, row, min(height, extent) if isinstance(extent, int) and extent else height)


def fit(extent: Dim, lanes: int, most: int) -> int:
    """The block along a vector dimension: up to `most` vectors, halved while half of it would hold the extent."""
    size = lanes * most
    while isinstance(extent, int) and size > lanes and size // 2 >= extent:
        size //= 2
    return size


def element_width(kernel: Kernel) -> int:
    """The widest element that the kernel computes with; indices do not count where nothing else is that wide."""
    widths = [r.type.dtype.width for op in kernel.walk() for r in op.results
              if isinstance(r.type, loop.TileType) and str(r.type.dtype) not in ("index", "i1")]
    return max([w for w in widths if w > 8], default=32)


def best_dimension(kernel: Kernel) -> int | None:
    """The parallel dimension along which the most accesses are contiguous; None if none has more than one point."""
    scores: dict[int, int] = {}
    for d in range(kernel.parallel):
        if kernel.domain[d] == 1:
            continue
        scores[d] = sum(contiguity(op, d) for op in kernel.walk() if isinstance(op, loop.Load | loop.Store))
    return max(scores, key=lambda d: (scores[d], d)) if scores else None


def contiguity(access: loop.Load | loop.Store, dim: int) -> int:
    """1 if neighbours along `dim` are neighbours in memory, 0 if the access does not move, else -4: a gather."""
    name = f"d{dim}"
    moving = [i for i, e in enumerate(access.map) if name in sizes.symbols(e)]
    if not moving and not any(dim in t.type.dims for t in access.tiles):
        return 0
    last = len(access.map) - 1
    if moving == [last] and stride(access.map[last], name) == 1 and not any(dim in t.type.dims for t in access.tiles):
        return 1
    return -4


def stride(expr: Dim, name: str) -> Dim | None:
    """How far `expr` moves per step of the coordinate `name`, if always equally far."""
    step = sizes.substitute(expr, {name: sizes.sym(name) + 1}) - expr
    return step if isinstance(step, int) or not _mentions(step, name) else None


def _mentions(expr: Size, name: str) -> bool:
    return name in sizes.symbols(expr)


PASS = Pass(run, takes=LOOP, gives=LOOP)
