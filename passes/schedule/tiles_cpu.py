"""The schedule of a product on the tiles of AMX.

The rows of a block are packed for all panels of columns, or read where they are. Each panel is packed once for all
rows of a block, or read where it is, and meets the rows tile by tile (lower_kernel/matrices.py). What follows the sums
is done panel by panel, while they are in cache. If there are many terms of packed rows, slices of them are added one
after the other, and the sums of a block lie in memory meanwhile.

The rows of an image whose channels are last are read where they are: blocks of channels are rows of tiles. Each line of
a window begins elsewhere in the image, and a tile may have the last pixels of a line and the first ones of the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mlc.dialects import arith, loop
from mlc.dialects.loop import For, Kernel, ScratchType
from mlc.dialects.loop.pairs import distance_of_rows, terms_of_block
from mlc.ir.affine import step_along
from mlc.ir.core import Value, before
from mlc.ir.types import i8, i32
from mlc.passes.schedule.contraction_cpu import has_more_rows, vector_dimension
from mlc.passes.schedule.extents import ceil, even, guess
from mlc.passes.schedule.factors import Factor, extended, extension_of, factor
from mlc.passes.schedule.transforms import (
    contraction,
    enclosing_loops,
    in_words,
    interchange,
    outside,
    packed,
    record,
    split_k,
    strip_mine,
    tile,
)

LANES, PANEL = 16, 32
"""Columns of a tile, and of a panel: two tiles."""
SLICE = 3072
"""Most bytes of the terms of a slice of a row: sums are loaded and stored once for each."""
ROWS, COLUMNS, SUMS = 512, 1024, 512
"""Most rows and columns of a block, and most columns of one whose sums lie in memory."""
CACHE = 1 << 20
"""Bytes of the packed rows of a block, or of a panel, and of columns from which on these are prefetched: half of the
second cache of every processor with AMX."""
TASKS, WORK = 8, 1 << 25
"""Tasks that there should be of a product, and multiply-adds that each should have at least: of bf16 some 30
microseconds."""
FEW = 4
"""Fewest rows on tiles: fewer are added as columns are read, with no panels to fill."""
EPILOGUE = 8
"""Rows of a tile of registers after the sum."""


def schedule_pairs_of_terms(kernel: Kernel) -> None:
    """The schedule of a kernel with a `loop.contract_pairs`."""
    if (n := vector_dimension(kernel)) is None:
        return
    n, rows = with_columns_last(kernel, n)
    if has_rows_of_tiles(kernel, rows, n):
        schedule_tiles(kernel, rows, n)
    else:
        schedule_vectors(kernel, rows, n)


def schedule_bytes(kernel: Kernel) -> bool:
    """The schedule of a kernel with a sum of products of bytes on tiles; whether it has one."""
    sum, contract = contraction(kernel)
    k, start, n = contract.dim, sum.operands[0].op, vector_dimension(kernel)
    if n is None or not isinstance(contract, loop.Contract) or contract.in_lanes or not (
            isinstance(start, loop.Full) and start.value == 0) or sum.unroll:
        return False
    bytes = all(isinstance(extension_of(v), arith.ExtSI | arith.ExtUI) for v in (contract.lhs, contract.rhs))
    terms = kernel.domain[k]
    if not bytes or kernel.schedule.tile[k] != 1 or not isinstance(terms, int) or terms % terms_of_block(i8):
        return False
    n, rows = with_columns_last(kernel, n)
    if not has_rows_of_tiles(kernel, rows, n):
        return False
    schedule_tiles(kernel, rows, n)
    return True


def with_columns_last(kernel: Kernel, n: int) -> tuple[int, list[int]]:
    """The dimension of columns, which is the last one then if there are more rows, and those of rows."""
    left, right = sides(kernel, n)
    if n != kernel.parallel - 1 and has_more_rows(kernel, left, right, n):
        interchange(kernel, [*(d for d in range(kernel.parallel) if d != n), n])
        n = kernel.parallel - 1
        left, right = sides(kernel, n)
    return n, [d for d in range(kernel.parallel) if kernel.domain[d] != 1 and d in left.type.dims
               and d not in right.type.dims]


def has_rows_of_tiles(kernel: Kernel, rows: list[int], n: int) -> bool:
    """Whether there are enough rows for tiles, and factors that have rows and columns of them."""
    many = prod(guess(kernel.domain[d]) for d in rows) >= FEW
    return bool(rows) and many and is_on_tiles(kernel, *sides(kernel, n), n)


def sides(kernel: Kernel, n: int) -> tuple[Value, Value]:
    """The factors of a product as they are stored: that of rows, and that of the columns along n."""
    _, contract = contraction(kernel)
    left, right = (extended(v) or v for v in (contract.lhs, contract.rhs))
    return (right, left) if n in left.type.dims and n not in right.type.dims else (left, right)


def is_on_tiles(kernel: Kernel, left: Value, right: Value, n: int) -> bool:
    """Whether the factors are those of rows and columns, with no more points where a panel has one."""
    sum, contract = contraction(kernel)
    k = contract.dim
    return (sum.parent_op is kernel and k in left.type.dims and {n, k} <= {*right.type.dims}
            and n not in left.type.dims and {*left.type.dims, *right.type.dims} - {k} == {*contract.result.type.dims})


def schedule_vectors(kernel: Kernel, rows: list[int], n: int) -> None:
    """Add the terms of few rows in vectors of columns."""
    tile(kernel, n, LANES if guess(kernel.domain[n]) > LANES // 2 else LANES // 2, vector=True)
    if rows:
        tile(kernel, rows[-1], even(kernel.domain[rows[-1]], FEW, 1))


def schedule_tiles(kernel: Kernel, rows: list[int], n: int) -> None:
    """Pack both factors, or read them where they are, and multiply the panels."""
    m, k = rows[-1], contraction(kernel)[1].dim
    terms = kernel.domain[k]
    assert isinstance(terms, int)
    place = rows_in_memory(kernel, rows, n, k)
    if place is not None:
        schedule_rows_in_memory(kernel, place, n)
        return
    dtype = sides(kernel, n)[0].type.dtype
    most = SLICE // dtype.itemsize
    slice, divided = even(terms, most, terms_of_block(dtype)), terms > most
    tile(kernel, m, even(kernel.domain[m], min(ROWS, CACHE // (dtype.itemsize * slice)), LANES))
    tile(kernel, n, even(kernel.domain[n], columns_of_task(kernel, n, SUMS if divided else COLUMNS), PANEL),
         vector=True, lanes=LANES)
    if divided:
        split_k(kernel, slice)
    strip_mine(kernel, m, EPILOGUE)
    strip_mine(kernel, n, PANEL)
    multiply_panels(kernel, n)


@dataclass(frozen=True)
class Rows:
    """Rows that are read where they are: their dimension and how many of its points are in a block, and those of the
    one before it, if both are multiplied as one, with the distance of its points in rows."""

    m: int
    points: int
    line: int = -1
    lines: int = 1
    pitch: int = 0


def rows_in_memory(kernel: Kernel, rows: list[int], n: int, k: int) -> Rows | None:
    """The rows of a product, if tiles of them can be loaded from memory: as many as a tile has, at one distance.
    A panel of columns has all terms then, and a block whole lines, if these are multiplied as one: so neither may have
    too many.
    """
    left, _ = sides(kernel, n)
    load, m, extent = left.op, rows[-1], kernel.domain[rows[-1]]
    if not isinstance(load, loop.Load) or load.mask is not None or load.tiles or not isinstance(extent, int) or (
            m != max(d for d in left.type.dims if d != k)):
        return None
    terms = kernel.domain[k]
    distance = distance_of_rows(load.map, load.buffer, m, k, terms)
    if distance is None or not isinstance(terms, int) or left.type.dtype.itemsize * PANEL * terms > CACHE:
        return None
    most = max(2, ceil(extent, LANES)) * LANES            # points of whole tiles, or of two where they fill none
    for line in rows[-2:-1]:
        step, lines = step_along(loop.position(load.map, load.buffer), line), kernel.domain[line]
        if isinstance(step, int) and isinstance(lines, int) and step % distance == 0 and (
                extent <= step // distance <= min(most, ROWS)):
            pitch = step // distance
            block = even(lines, ROWS // pitch, 1)
            if ((lines % block or block) - 1) * pitch + extent >= LANES:
                return Rows(m, extent, line, block, pitch)
    points = even(extent, ROWS, LANES)
    return Rows(m, points) if (extent % points or points) >= LANES else None


def schedule_rows_in_memory(kernel: Kernel, rows: Rows, n: int) -> None:
    """Multiply rows that are read where they are, all of their terms at a time."""
    few = next(i for i in range(EPILOGUE, 0, -1) if not rows.pitch or ceil(rows.points, i) * i <= rows.pitch)
    tile(kernel, rows.m, ceil(rows.points, few) * few)     # the last sums of a line are before those of the next one
    if rows.pitch:
        tile(kernel, rows.line, rows.lines)
    tile(kernel, n, even(kernel.domain[n], columns_of_task(kernel, n, COLUMNS), PANEL), vector=True, lanes=LANES)
    strip_mine(kernel, rows.m, few)
    if rows.pitch:
        strip_mine(kernel, rows.line, 1)
    strip_mine(kernel, n, PANEL)
    multiply_panels(kernel, n, rows)


def columns_of_task(kernel: Kernel, n: int, most: int) -> int:
    """The columns of a block: as many that there are enough tasks, which have enough work."""
    work = prod(map(guess, kernel.domain))
    blocks = prod(ceil(guess(kernel.domain[d]), kernel.schedule.tile[d]) for d in range(kernel.parallel) if d != n)
    tasks = max(1, min(TASKS, work // WORK))
    return min(most, ceil(guess(kernel.domain[n]), ceil(tasks, blocks)))


def multiply_panels(kernel: Kernel, n: int, place: Rows | None = None) -> None:
    """Replace the sum in each tile of a block by that of its panels, which is the sum of all terms or is added to what
    is in memory. Rows are packed, or read at their `place`."""
    sum, contract = contraction(kernel)
    k, start = contract.dim, sum.operands[0].op
    left, right = sides(kernel, n)
    load, unsigned = left.op, unsigned_panels(kernel, left)
    if place is not None and isinstance(load, loop.Load):
        with before(outside(contract, left), contract.loc):
            type = ScratchType(tuple(sorted(left.type.dims)), left.type.dtype)
            rows: Value = loop.Words(type, load.buffer, load.map, k).result
    else:
        apart = is_transposed(factor(left), k, max(d for d in left.type.dims if d != k))
        rows = packed(kernel, left, k, LANES if apart else 0, k, across=LANES if apart else 1)
    along = next(op for op in enclosing_loops(sum) if op.dim not in right.type.dims)
    columns = columns_in_memory(kernel, right, along, k)
    if columns is None:
        words = i32.width // right.type.dtype.width * LANES
        columns = packed(kernel, right, n, words if is_transposed(factor(right), n, k) else 0, k)
    with before(along, contract.loc):
        divided = isinstance(start, loop.LoadScratch)
        sums = start.scratch if isinstance(start, loop.LoadScratch) else memory_of_sums(kernel, contract.result)
        loop.ContractPanels(sums, rows, columns, dim=k, from_zero=not divided,
                            pitch=place.pitch if place is not None else 0, unsigned=unsigned,
                            prefetch=isinstance(columns.op, loop.Words) and is_prefetched(columns.op))
    if divided:
        along.erase()
    else:
        with before(sum, contract.loc):
            sum.replace_by(loop.LoadScratch(sums).result)
    record(kernel, "multiply_panels", dim=f"{k}", rows="packed" if place is None else "in place")


def is_prefetched(columns: loop.Words) -> bool:
    """Whether panels of columns come from memory, or from a cache that takes as long: those of a large buffer, which a
    processor does not read ahead beside the rows."""
    buffer, (_, distance) = columns.buffer.type, columns.runs
    large = prod(buffer.shape) * buffer.dtype.itemsize >= CACHE
    return bool(large and distance * buffer.dtype.width <= PANEL * i32.width)


def unsigned_panels(kernel: Kernel, left: Value) -> str:
    """The panels of bytes without sign, of which the factor `left` is that of rows."""
    _, contract = contraction(kernel)
    names = {"rows" if extended(v) is left else "columns" for v in (contract.lhs, contract.rhs)
             if isinstance(extension_of(v), arith.ExtUI)}
    return "both" if len(names) == 2 else names.pop() if names else "none"


def memory_of_sums(kernel: Kernel, tile: Value) -> Value:
    """Scratch memory for the sums of a tile, with columns side by side."""
    order = sorted(tile.type.dims, key=lambda d: (d == kernel.schedule.vector, d))
    return loop.Scratch(ScratchType(tuple(order), tile.type.dtype)).result


def columns_in_memory(kernel: Kernel, right: Value, along: For, k: int) -> Value | None:
    """A panel of columns that is read where it is, if all of its words are at the same distance."""
    load, terms = right.op, kernel.domain[k]
    found = loop.words_of_runs(loop.position(load.map, load.buffer), k, terms, right.type.dtype) \
        if isinstance(load, loop.Load) and isinstance(terms, int) else None
    words = in_words(kernel, right, along, k) if found is not None and found[0] == terms else None
    if words is None:
        return None
    assert isinstance(words.op, loop.Words)
    (_, distance), shape = words.op.runs, words.op.buffer.type.shape
    if None not in shape and prod(shape) % distance == 0:
        return words
    words.op.erase()
    return None


def is_transposed(factor: Factor, outer: int, inner: int) -> bool:
    """Whether neighbours along one dimension lie apart in memory, and those along another side by side."""
    return outer not in factor.along and inner in factor.along
