"""The default schedule of a contraction.

A register tile of rows times a few vectors of columns accumulates one fused multiply-add per element and term. Its
shape minimises remainders. A panel of columns that many rows use is packed: read once across memory, then from cache in
the order of its use, with its index maps, masks and conversions evaluated once. Long reductions are split (split-K), so
that a packed panel stays in cache.

Where an instruction adds two products of bf16 at a time (AVX512_BF16), or four of bytes (AVX512_VNNI), both factors of
a product of many rows are packed in words of so many terms. The bits are those of the other code
(lower_kernel/interleaved.py).
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from math import copysign, gcd, lcm, prod

from mlc.dialects import arith, loop
from mlc.dialects.loop import Kernel
from mlc.ir.affine import dims_of, step_along
from mlc.ir.core import Value
from mlc.ir.machine import LINE, Cpu
from mlc.ir.sizes import Dim, quotients
from mlc.passes.analysis.accesses import best_dimension, contiguity, element_width, position
from mlc.passes.schedule.extents import ceil, even, guess, lanes_for
from mlc.passes.schedule.factors import Factor, extended, extension_of, factor, is_contiguous, loads_of
from mlc.passes.schedule.transforms import (
    contraction,
    interchange,
    interleave,
    pack,
    prefetch_panels,
    prefetch_rows,
    prefetch_tiles,
    spill_accumulator,
    split_k,
    strip_mine,
    tile,
    unroll,
    unroll_terms,
)

ROWS, COLUMN = 480, 512
"""Rows that share a packed panel, and bytes of a column of it: a panel takes half of a cache."""
LANES, FEW = 16, 4
"""Lanes of a vector of unpacked numbers, and rows of a tile of sums in lanes."""
PANELS, TASKS = 4, 8
"""Most panels of columns for which rows are packed once, and least tasks that there should be of them, if there are two
panels for each."""
MOST = 14, 7, 4
"""Most rows, lines and vectors of a register tile."""
KIND = 0.02
"""Slowdown that is accepted for one kind of tiles less: each has code of its own, which takes time to compile."""
TERMS = 16
"""Most terms of a product that are unrolled."""
AHEAD = 1 << 14
"""Least bytes between those of a quantised factor that are read and those that are prefetched for later."""
COLUMNS, LINES = 1024, 8
"""Columns and lines of memory that are streamed together where there are too few rows for reuse."""


@dataclass(frozen=True)
class Window:
    """Consecutive terms of a product whose places differ by known numbers, from a multiple of `terms` on: those of a
    window, or of a row of it; neighbouring rows are `stride` such places apart."""

    terms: int
    stride: int

    def elements(self, rows: int) -> int:
        """The elements that these terms of some rows read. Neighbours share them, in registers."""
        return (rows - 1) * self.stride + self.terms


@dataclass(frozen=True)
class Shape:
    """A register tile: rows x (lines x vectors) of columns, with lines along a second column dimension.

    masked  whether the last tiles of columns and lines are whole ones, with masked accesses
    """

    rows: int
    lines: int
    vectors: int
    masked: bool = False

    def cost(self, machine: Cpu, rows: int, lines: int, columns: int, lanes: int, kept: int = 0) -> float:
        """Estimated cycles per term of all sums; remainders are tiles of their own, unless they are masked. The lines
        of more rows than `kept`, if there is such a number, are read from the second cache for each term."""
        vectors = max(1, ceil(columns, lanes))
        of_rows, of_lines, of_vectors = parts(rows, self.rows), parts(lines, self.lines), parts(vectors, self.vectors)
        kinds = len(of_rows) * len(of_lines) * len(parts(columns, self.vectors * lanes))
        if self.masked:
            of_lines = [(self.lines, ceil(lines, self.lines))]
            of_vectors = [(self.vectors, ceil(vectors, self.vectors))]
            kinds = len(of_rows)
        total = 0.0
        for r, many_rows in of_rows:
            for a, many_lines in of_lines:
                for v, many_vectors in of_vectors:
                    evicted = r / 2 if kept and r > kept else 0
                    cycles = max(r * a * v, machine.fma_in_flight) + r / 4 + a * v / 2 + evicted
                    total += many_rows * many_lines * many_vectors * cycles
        return total * (1 + KIND * kinds)

    def fits(self, registers: int, window: Window | None = None) -> bool:
        """Whether accumulators, columns and one row element fit into the registers, or all those that the rows of a
        window share."""
        elements = window.elements(self.rows) if window is not None else 1
        return self.rows * self.lines * self.vectors + self.lines * self.vectors + elements < registers


def parts(extent: int, size: int) -> list[tuple[int, int]]:
    """Partition of an extent: (size, count) of whole tiles and of the remainder."""
    return [(n, many) for n, many in ((size, extent // size), (extent % size, 1)) if n and many]


def vector_dimension(kernel: Kernel) -> int | None:
    """Best vector dimension for the loads of the factors; stores count less, since each is done once.

    Columns that a factor has in panels are in vectors: the panels are there for that.
    """
    sum, contract = contraction(kernel)
    for v in (contract.lhs, contract.rhs):
        if (d := factor(v).panels) is not None:
            return d
    loads = list(sum.inside(loop.Load))
    for d in reversed(range(kernel.parallel)):
        if kernel.domain[d] != 1 and any(is_contiguous(op, d) for op in loads):
            return d
    return best_dimension(kernel)


def schedule_contraction(kernel: Kernel, machine: Cpu) -> None:
    """The default schedule of a kernel with a contraction."""
    sum, contract = contraction(kernel)
    if isinstance(contract, loop.Contract) and contract.in_lanes:
        schedule_lanes(kernel, machine)
        return
    n = vector_dimension(kernel)
    if n is None:
        return
    left, right = contract.lhs, contract.rhs
    if n in left.type.dims and n not in right.type.dims:
        left, right = right, left
    if n != kernel.parallel - 1 and has_more_rows(kernel, left, right, n):
        interchange(kernel, [*(d for d in range(kernel.parallel) if d != n), n])
        n = kernel.parallel - 1
    sides = ("lhs", "rhs") if left is contract.lhs else ("rhs", "lhs")
    k = contract.dim
    free = [d for d in range(kernel.parallel) if d != n and kernel.domain[d] != 1]
    rows = [d for d in free if d in left.type.dims and d not in right.type.dims]
    lines = [d for d in free if d in right.type.dims and d not in left.type.dims]
    m, line = rows[-1] if rows else None, lines[-1] if lines else None
    narrow = terms_of_instruction(left, right, machine) > 1
    in_panels = factor(right).panels == n and not narrow
    lanes = lanes_for(kernel.domain[n], max(1, machine.vector_bits // element_width(kernel, n)))
    registers = machine.vector_registers
    extents = tuple(kernel.domain[d] if d is not None else 1 for d in (m, line, n))
    packing = packing_of(kernel, (left, right), m, n, k, machine) if m is not None else None
    may_mask = (packing is not None and packing.fills_columns and guess(extents[0]) >= 2 * MOST[0]
                and (line is None or kernel.lies_in_lanes(line, n)))
    window = window_of(left, m, k) if in_panels and m is not None else None
    kept = kept_rows(left, m, k, machine) if in_panels and m is not None and window is None else 0
    shape = best_shape(extents, lanes, machine, may_mask, window, panel_of(right, n) if in_panels else 0, kept)
    more = second_line_dimension(kernel, shape, lines, registers) if m is None else None
    if more is not None:                      # values that depend on neither line are read once for both
        most = (registers - 2) // (shape.lines * guess(kernel.domain[more]) + 1)
        shape = Shape(1, shape.lines, even(ceil(guess(kernel.domain[n]), lanes), min(shape.vectors, most), 1))
        tile(kernel, more, guess(kernel.domain[more]))
    tile(kernel, n, lanes * shape.vectors, vector=True, lanes=lanes, masked=shape.masked)
    if line is not None and shape.lines > 1:
        tile(kernel, line, shape.lines, masked=shape.masked)
    if isinstance(sum.parent_op, loop.For):
        spill_accumulator(kernel)
        right = getattr(contraction(kernel)[1], sides[1])
    if m is not None and in_panels and prod(guess(kernel.domain[d]) for d in rows) >= 2 * shape.rows:
        schedule_elements(kernel, shape, window, rows, n, k, machine)
    elif m is None or prod(guess(kernel.domain[d]) for d in (rows[-2:] if narrow else [m])) < 2 * shape.rows:
        if m is not None:
            tile(kernel, m, shape.rows)
        if n not in left.type.dims:
            schedule_few_rows(kernel, factor(right), n, k, shape.rows, machine)
    else:
        assert packing is not None
        schedule_panels(kernel, shape, packing, sides, rows, n, k, machine)


def has_more_rows(kernel: Kernel, left: Value, right: Value, n: int) -> bool:
    """Whether the factor `left` is larger than that of the columns along n. Threads then share out its rows, so that
    each reads the part of an image that it has written: where caches are apart, the others' is far away."""
    rows, columns = (prod(guess(kernel.domain[d]) for d in v.type.dims) for v in (left, right))
    return n not in left.type.dims and rows > columns


def schedule_lanes(kernel: Kernel, machine: Cpu) -> None:
    """Schedule a product whose terms are added in lanes: a tile of rows and columns, each with a sum in registers.

    A quantised factor that many rows use is unpacked once for a panel of them. One of 16-bit floats is widened by each
    tile of rows, which costs less than writing it, and rows are as many as stay in the second cache.
    """
    _, contract = contraction(kernel)
    k, n, m = contract.dim, *columns_and_rows(kernel)
    lanes = min(LANES, machine.vector_bits // 32)
    kernel.reschedule(lanes=lanes if lanes < kernel.schedule.tile[k] else 0)
    sums = (machine.vector_registers - 4) // max(1, kernel.schedule.tile[k] // lanes)       # that fit in registers
    rows = 1 if m is None else guess(kernel.domain[m])
    few = min(rows, FEW)
    if n is not None:
        columns = 1 if rows == 1 else min(8, sums // few)
        tile(kernel, n, min(guess(kernel.domain[n]), max(1, columns)))
    if m is not None and rows > 2 * FEW and n is not None:
        encoded = next(kernel.inside(loop.LoadEncoded), None) is not None
        kept = machine.l2_bytes // 2 // (guess(kernel.domain[k]) * 4) // FEW * FEW
        tile(kernel, m, even(kernel.domain[m], ROWS if encoded else min(ROWS, max(kept, 4 * FEW)), FEW))
        strip_mine(kernel, m, FEW)
        if encoded:
            pack(kernel, "rhs" if n in contract.rhs.type.dims else "lhs", k)
    elif m is not None:
        tile(kernel, m, even(kernel.domain[m], few, 1))
    if n is not None and (load := stored_rows(kernel, n, k)) is not None:
        prefetch_tiles(kernel, load, n, LINE // load.buffer.type.dtype.itemsize, AHEAD)


def stored_rows(kernel: Kernel, n: int, k: int) -> loop.Load | None:
    """The load of a matrix whose rows of terms lie one after the other, of which several are read at a time: what
    processors themselves prefetch is one row after the other."""
    if kernel.schedule.tile[n] == 1:
        return None
    here = loop.coordinate(n), loop.coordinate(k)
    shape = kernel.domain[n], kernel.domain[k]
    return next((op for op in kernel.inside(loop.Load) if op.map.results == here and op.buffer.type.shape == shape
                 and op.mask is None), None)


def columns_and_rows(kernel: Kernel) -> tuple[int | None, int | None]:
    """The last dimensions of a product that only the quantised factor has, and that only the other one has."""
    _, contract = contraction(kernel)
    sides = [contract.lhs, contract.rhs]
    if isinstance(contract.lhs.op, loop.Dequantize):
        sides.reverse()
    other, unpacked = ({d for d in v.type.dims if d != contract.dim and kernel.domain[d] != 1} for v in sides)
    return max(unpacked - other, default=None), max(other - unpacked, default=None)


def second_line_dimension(kernel: Kernel, shape: Shape, lines: list[int], registers: int) -> int | None:
    """A second dimension of lines that fits into registers as a whole, with one vector per line."""
    if len(lines) < 2 or shape.lines != kernel.domain[lines[-1]]:
        return None
    extent = kernel.domain[lines[-2]]
    fits = isinstance(extent, int) and Shape(1, shape.lines * extent, 1).fits(registers)
    return lines[-2] if fits else None


def schedule_few_rows(kernel: Kernel, right: Factor, n: int, k: int, rows: int, machine: Cpu) -> None:
    """Schedule a product of few rows: a factor read once is streamed in memory order, a few cache lines at a time."""
    lanes = kernel.schedule.lanes or kernel.schedule.tile[n]
    columns = guess(kernel.domain[n])
    bytes = guess(kernel.domain[k]) * columns * element_width(kernel) // 8
    if k in right.along and n not in right.along:
        if rows < 4:                          # lines that lie at distances of a power of two evict each other
            lanes = min(lanes, machine.l1_ways) if bytes > machine.l3_bytes else lanes
            tile(kernel, n, lanes, vector=True)
        elif bytes > machine.l2_bytes:        # processors prefetch few streams at once, such as a line of each column
            tile(kernel, n, lanes, vector=True)
        unroll(kernel, k, kernel.schedule.lanes or kernel.schedule.tile[n])
    elif rows < 4 and bytes > machine.l2_bytes and columns > kernel.schedule.tile[n]:
        width = kernel.schedule.tile[n]
        tile(kernel, n, even(kernel.domain[n], COLUMNS, width), vector=True, lanes=lanes)
        split_k(kernel, LINES)
        strip_mine(kernel, n, width)
        unroll(kernel, k, LINES)


@dataclass(frozen=True)
class Packing:
    """Which factors of a product of many rows are packed.

    left        whether the left one is, if its rows are used for several panels of columns
    right       whether the right one is: always, or (None) if there are several panels
    transposed  whether the right one is contiguous along the terms
    rows        whether the left one is packed in the order of rows, and not of terms
    large       whether the right one exceeds the cache
    """

    left: bool
    right: bool | None
    transposed: bool
    rows: bool
    large: bool

    @property
    def fills_columns(self) -> bool:
        """Whether columns are read to fill a panel only, as vectors: masks then take no time where panels are used."""
        return self.right is not False and not self.transposed and not self.left


def packing_of(kernel: Kernel, factors: tuple[Value, Value], m: int, n: int, k: int, machine: Cpu) -> Packing:
    """The packing of the factors (left, right)."""
    left, right = map(factor, factors)
    size, terms = element_width(kernel) // 8, guess(kernel.domain[k])
    large = terms * guess(kernel.domain[n]) * size > machine.l2_bytes
    across = n not in right.along
    rows = guess(kernel.domain[m])
    exceeds = terms * rows * size > machine.l2_bytes       # so that each panel of columns reads them from memory anew
    possible = {n, k} <= {*factors[1].type.dims} and right.panels is None
    along_terms = [contiguity(load, k) == 1 for load in loads_of(factors[0]) if k in load.result.type.dims]
    by_terms = bool(along_terms) and all(along_terms)
    return Packing((not left.plain or (exceeds and (k not in left.along or rows <= ROWS // 2)))
                   and {m, k} <= {*factors[0].type.dims} and n not in factors[0].type.dims,
                   possible and (across or not right.plain or (None if large else False)),
                   across and k in right.along, m in left.along or not (k in left.along or by_terms), large)


def schedule_panels(kernel: Kernel, shape: Shape, packing: Packing, sides: tuple[str, str], rows: list[int], n: int,
                    k: int, machine: Cpu) -> None:
    """Schedule a product of many rows, which pass through a panel of columns tile by tile. Those of words of several
    terms are along the last two dimensions of rows, such as those of an image."""
    m, line = rows[-1], rows[-2] if len(rows) > 1 else None
    panel = kernel.schedule.tile[n]
    lanes, columns = kernel.schedule.lanes or panel, guess(kernel.domain[n])
    pack_right = columns > panel if packing.right is None else packing.right
    pack_left = packing.left and columns > panel
    run = terms_of_words(kernel, sides, (m, n), machine)
    words = run > 1
    pack_left, pack_right = pack_left or words, pack_right or words
    if not (packing.large or pack_right or pack_left):
        tile(kernel, m, shape.rows)
        return
    step = lcm(shape.rows, lanes) if pack_left and (packing.rows or not words) else shape.rows
    most = most_rows(kernel, [m], pack_left and not words, machine)
    most = max(most, ROWS // 2) if words else most
    tile(kernel, m, even(kernel.domain[m], most, step))
    width = min(guess(kernel.domain[m]), kernel.schedule.tile[m])
    lines = most // width if words and line is not None and width == kernel.domain[m] else 1
    if line is not None and lines > 1:
        tile(kernel, line, even(kernel.domain[line], lines, 1))
    if is_split(kernel, k, machine):
        split_k(kernel, even(kernel.domain[k], machine.l2_bytes // COLUMN, run * lanes))
    strip_mine(kernel, m, shape.rows)
    if line is not None and lines > 1:
        strip_mine(kernel, line, 1)
    if pack_left:
        tiles = prod(ceil(guess(kernel.domain[d]), kernel.schedule.tile[d]) for d in rows) if words else 1
        panels = min(PANELS * (1 + words), max(2, columns // (ceil(TASKS, tiles) * panel)))
        tile(kernel, n, even(kernel.domain[n], panels * panel, panel), vector=True, lanes=lanes)
        strip_mine(kernel, n, panel)
    orders = {sides[0]: (m if packing.rows else k, lanes),
              sides[1]: (n, lanes if packing.transposed else 0)}
    if words:
        interleave(kernel, {**orders, sides[1]: (n, run * lanes if packing.transposed else 0)})
        return
    for side, wanted in zip(sides, (pack_left, pack_right)):
        if wanted:
            pack(kernel, side, *orders[side])


def terms_of_instruction(left: Value, right: Value, machine: Cpu) -> int:
    """How many terms of these factors an instruction can multiply and add at a time: two of bf16, four of bytes of
    which one has no sign, else 1."""
    extensions = tuple(type(extension_of(v)) for v in (left, right))
    if machine.bf16_dot and extensions == (arith.ExtF, arith.ExtF):
        return 2
    return 4 if machine.byte_dot and {*extensions} == {arith.ExtSI, arith.ExtUI} else 1


def terms_of_words(kernel: Kernel, sides: tuple[str, str], rows_and_columns: tuple[int, int], machine: Cpu) -> int:
    """How many terms of the factors (left, right) share a word of their panels, which an instruction multiplies at a
    time, for vectors of columns: the sum of each block of terms, from 0. 1 if none does."""
    sum, contract = contraction(kernel)
    m, n = rows_and_columns
    k, start = contract.dim, sum.operands[0].op
    factors: list[Value] = [getattr(contract, side) for side in sides]
    run, (left, right) = terms_of_instruction(factors[0], factors[1], machine), map(extended, factors)
    if run == 1 or isinstance(contract, loop.Mma) or left is None or right is None:
        return 1
    if (kernel.schedule.lanes or kernel.schedule.tile[n]) * 32 != machine.vector_bits or sum.unroll:
        return 1
    if not isinstance(start, loop.Full) or start.value != 0 or copysign(1, start.value) < 0:
        return 1
    whole = kernel.schedule.tile[k] != 1 or not is_split(kernel, k, machine)
    fits = (whole and {m, k} <= {*left.type.dims} and {n, k} <= {*right.type.dims} and n not in left.type.dims
            and {*left.type.dims, *right.type.dims} - {k} == {*contract.result.type.dims})
    return run if fits else 1


def is_split(kernel: Kernel, k: int, machine: Cpu) -> bool:
    """Whether a sum that is one chain is split into slices, for which packed panels stay in cache."""
    terms = kernel.domain[k]
    return kernel.schedule.tile[k] == 1 and (not isinstance(terms, int) or terms > machine.l2_bytes // COLUMN * 3 // 2)


def schedule_elements(kernel: Kernel, shape: Shape, window: Window | None, rows: list[int], n: int, k: int,
                      machine: Cpu) -> None:
    """Schedule a product whose columns are in panels: each element of many rows is read where it is, for a vector of
    columns. A tile has rows along the last two dimensions of rows, such as those of an image.
    """
    m, line = rows[-1], rows[-2] if len(rows) > 1 else None
    if window is not None and shape.fits(machine.vector_registers, window):
        unroll_terms(kernel, window.terms)
    most = min(most_rows(kernel, rows, False, machine), max(ROWS // 16, rows_of_tiles(kernel, rows) // TASKS))
    tile(kernel, m, even(kernel.domain[m], most, shape.rows))
    if line is not None and guess(kernel.domain[m]) <= most:
        tile(kernel, line, even(kernel.domain[line], max(1, most // kernel.schedule.tile[m]), 1))
    if is_split(kernel, k, machine):
        split_k(kernel, machine.l2_bytes // COLUMN)
    strip_mine(kernel, m, shape.rows)
    if line is not None:
        strip_mine(kernel, line, 1)
    in_line = LINE // (element_width(kernel) // 8)
    if shape.rows <= in_line and (load := load_of_rows(kernel, rows, k, machine)) is not None:
        prefetch_rows(kernel, load, m, shape.rows, in_line)
    few = prod(guess(kernel.domain[d]) for d in rows) <= ROWS
    if few and window is None and (load := load_of_panels(kernel, n, k)) is not None:
        sizes = {m: shape.rows} if line is None else {m: shape.rows, line: 1}
        prefetch_panels(kernel, load, n, sizes, LINE // load.buffer.type.dtype.itemsize)


def load_of_panels(kernel: Kernel, n: int, k: int) -> loop.Load | None:
    """The load of the factor whose columns n are in panels, term after term."""
    return next((op for op in contraction(kernel)[0].inside(loop.Load) if n in op.result.type.dims
                 and step_along(position(op), k) == op.buffer.type.shape[-1] > 1), None)


def kept_rows(left: Value, m: int, k: int, machine: Cpu) -> int:
    """How many rows of a factor, contiguous along the terms and read where they are, the first cache can hold a line
    of: rows at a distance of a power of two share few sets of it. 0 if it can hold any number."""
    load = left.op
    if not isinstance(load, loop.Load) or step_along(position(load), k) != 1:
        return 0
    step = step_along(position(load), m)
    if not isinstance(step, int):
        return 0
    way = machine.l1_way_bytes
    sets = way // gcd(step * element_width(load.enclosing(loop.Kernel)) // 8, way)
    return sets * (machine.l1_ways - 1) if sets * LINE < way else 0


def load_of_rows(kernel: Kernel, rows: list[int], k: int, machine: Cpu) -> loop.Load | None:
    """The load of a factor whose rows of terms lie one after the other, if it exceeds half of the cache."""
    size = prod(guess(kernel.domain[d]) for d in (*rows, k)) * element_width(kernel) // 8
    for op in contraction(kernel)[0].inside(loop.Load):
        if op.mask is None and not op.tiles and not any(True for e in op.map.results for _ in quotients(e)) and (
                step_along(position(op), rows[-1]), step_along(position(op), k)) == (kernel.domain[k], 1):
            return op if size > machine.l2_bytes // 2 else None
    return None


def window_of(factor: Value, m: int, k: int) -> Window | None:
    """The windows that a factor is read in along the rows `m`, if it is."""
    load = factor.op
    found: list[Window] = []
    for e in load.map.results if isinstance(load, loop.Load) else ():
        terms = [q.den for q in quotients(e) if dims_of(q.num) == {k}]
        step = step_along(e, m)
        if isinstance(step, int) and step:
            found += [Window(n, step) for n in terms if isinstance(n, int) and n <= TERMS]
    return max(found, key=lambda w: w.terms, default=None)


def panel_of(factor: Value, n: int) -> int:
    """Columns of a panel of a factor that is in panels along `n`, and perhaps extended from them."""
    load = (extended(factor) or factor).op
    assert isinstance(load, loop.Load)
    return next((q.den for e in load.map.results for q in quotients(e)
                 if dims_of(q.num) == {n} and isinstance(q.den, int)), 0)


def most_rows(kernel: Kernel, rows: list[int], pack_left: bool, machine: Cpu) -> int:
    """Most rows of a tile, along all of the dimensions `rows`; half as many if they are packed, with more columns for
    each."""
    return ROWS // 2 if pack_left else min(ROWS, max(ROWS // 4, rows_of_tiles(kernel, rows) // machine.parts))


def rows_of_tiles(kernel: Kernel, rows: list[int]) -> int:
    """The rows, along all of the dimensions `rows`, of each tile of the other dimensions, added up."""
    others = (ceil(guess(kernel.domain[d]), kernel.schedule.tile[d]) for d in range(kernel.parallel) if d not in rows)
    return prod(guess(kernel.domain[d]) for d in rows) * prod(others)


@functools.cache
def best_shape(extents: tuple[Dim, ...], lanes: int, machine: Cpu, may_mask: bool = False,
               window: Window | None = None, panel: int = 0, kept: int = 0) -> Shape:
    """Cheapest register tile for a product of these extents; `may_mask` says whether the last columns and lines may be
    masked. If any does, it has registers for the elements of a `window`, and multiples or an even part of a `panel`.
    `kept` is the number of rows whose lines the first cache holds, or 0 for any."""
    rows, lines, columns = (max(1, guess(n)) for n in extents)
    counts = rows, lines, ceil(columns, lanes)
    ranges = (range(1, min(n, most) + 1) for n, most in zip(counts, MOST))
    masked = (False,) if not may_mask else (True,) if not isinstance(extents[-1], int) else (False, True)
    shapes = [Shape(r, a, v, masks) for r, a, v in itertools.product(*ranges) for masks in masked]
    shapes = [s for s in shapes if s.fits(machine.vector_registers)]
    shapes = [s for s in shapes if panel % (s.vectors * lanes) == 0 or s.vectors * lanes % panel == 0] or shapes
    shapes = [s for s in shapes if s.fits(machine.vector_registers, window)] or shapes
    return min(shapes, key=lambda s: (s.cost(machine, rows, lines, columns, lanes, kept), s.lines * s.vectors))
