"""Schedule transforms. Each rewrites a kernel in place, records itself in the schedule, and preserves every bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import gcd

from mlc.dialects import arith, loop
from mlc.dialects.loop import For, Kernel, ScratchType, TileType
from mlc.ir.affine import AffineMap, dims_of, step_along
from mlc.ir.core import Block, Op, Region, Value, at_end, before, builder
from mlc.ir.sizes import Dim, modulo, quotients
from mlc.ir.types import bf16, i1, i32, index
from mlc.passes.analysis.accesses import RUN, stride
from mlc.passes.schedule.extents import ceil, guess
from mlc.passes.schedule.factors import extended, extension_of

VECTOR = 512
"""Bits of the vectors that panels of words are filled by."""


def record(kernel: Kernel, step: str, **arguments: object) -> None:
    text = ", ".join(f"{k}={v}" for k, v in arguments.items() if v not in (False, 0))
    kernel.reschedule(steps=(*kernel.schedule.steps, f"{step}({text})"))


def tile(kernel: Kernel, dim: int, size: int, vector: bool = False, lanes: int = 0, masked: bool = False) -> None:
    """Tile dimension `dim` by `size`; with `vector`, the points lie in vector registers of `lanes` lanes. If `masked`,
    those of the last tile that are beyond the domain are masked."""
    others = tuple(d for d in kernel.schedule.masked if d != dim)
    kernel.reschedule(tile=kernel.schedule.with_tile(dim, size),
                      masked=tuple(sorted((*others, dim))) if masked else others)
    if vector:
        kernel.reschedule(vector=dim, lanes=lanes if lanes != size else 0)
    arguments: dict[str, object] = {"dim": f"{dim}", "size": size, "vector": vector, "lanes": lanes, "masked": masked}
    record(kernel, "tile", **arguments)


def interchange(kernel: Kernel, order: Sequence[int]) -> None:
    """Put the parallel dimensions of an unscheduled kernel in another order, in which loops then nest: dimension
    `order[i]` becomes dimension i."""
    place = {d: i for i, d in enumerate(order)} | {d: d for d in range(len(order), len(kernel.domain))}
    for op in kernel.walk():
        for v in (*op.results, *(a for region in op.regions for block in region.blocks for a in block.args)):
            if isinstance(v.type, TileType):
                v.type = replace(v.type, dims=tuple(sorted(place[d] for d in v.type.dims)))
        for name, value in op.attrs.items():
            if isinstance(value, AffineMap):
                op.attrs[name] = value.replace_dims({d: loop.coordinate(i) for d, i in place.items()})
            elif name == "dim":
                op.attrs[name] = place[value]
    tile, vector = kernel.schedule.tile, kernel.schedule.vector
    kernel.domain = tuple(kernel.domain[d] for d in order) + kernel.domain[len(order):]
    kernel.reschedule(tile=tuple(tile[d] for d in order) + tile[len(order):], vector=place.get(vector, vector))


def unroll(kernel: Kernel, dim: int, size: int) -> None:
    """Unroll the innermost loops over `dim` by `size`."""
    for op in list(kernel.inside(For)):
        if op.dim == dim and not op.is_ranged:
            if op.outer() is None:
                kernel.reschedule(tile=kernel.schedule.with_tile(dim, size))
            else:
                op.size = size
    record(kernel, "unroll", dim=f"{dim}", size=size)


def unroll_terms(kernel: Kernel, count: int) -> None:
    """Unroll the sum of a contraction, term by term, by `count`."""
    sum, contract = contraction(kernel)
    sum.unroll = count
    record(kernel, "unroll_terms", dim=f"{contract.dim}", count=count)


def prefetch_rows(kernel: Kernel, load: loop.Load, row: int, count: int, line: int) -> None:
    """Prefetch rows of a factor of a contraction after the current `count`, where all lie one after the other: a line
    of cache, of `line` elements, per term, which makes `line` rows."""
    sum, contract = contraction(kernel)
    ahead = {row: loop.coordinate(row) + count, contract.dim: loop.coordinate(contract.dim) * line}
    with before(sum.body.block.terminator, contract.loc):
        loop.Prefetch(load.buffer, map=load.map.replace_dims(ahead))
    record(kernel, "prefetch_rows", dim=f"{row}", count=count)


def prefetch_panels(kernel: Kernel, load: loop.Load, n: int, rows: Mapping[int, int], line: int) -> None:
    """Prefetch what follows the current slice of the panels of a factor, along n, into the second cache: all tiles of
    rows, whose sizes `rows` has from the innermost loop on, have time for that, and the first one reads a slice as fast
    as it computes. With each term, a tile prefetches a line of cache of each panel, of `line` elements, and the next
    tile the next line."""
    sum, contract = contraction(kernel)
    k, shape, zero = contract.dim, load.buffer.type.shape, 0 * loop.coordinate(n)
    number, tiles = zero, 1
    for d, size in rows.items():
        number, tiles = number + loop.coordinate(d) // size * tiles, tiles * ceil(guess(kernel.domain[d]), size)
    width = shape[-1]
    each = ceil(ceil(width, line), tiles)
    in_slices = any(around.dim == k for around in enclosing_loops(sum))
    after = (loop.coordinate(k) + guess(kernel.schedule.tile[k] if in_slices else kernel.domain[k])) * width
    with before(sum.body.block.terminator, contract.loc):
        for panel, i in product(range(0, kernel.schedule.tile[n], width), range(each)):
            place = [zero] * len(shape)
            place[0], place[-1] = (loop.coordinate(n) + panel) // width, after + (number * each + i) * line
            loop.Prefetch(load.buffer, map=AffineMap.get(len(kernel.domain), place), locality=2)
    record(kernel, "prefetch_panels", dim=f"{n}", lines=each)


def prefetch_blocks(kernel: Kernel, sum: For, line: int, least: int) -> None:
    """Prefetch the rows of one of the next tiles of a quantised factor, at least `least` bytes ahead. They lie one
    after the other: with each group of numbers, as many lines of cache as the groups of all rows take. They go to the
    second cache, to which more may be on their way at a time."""
    load = next(kernel.inside(loop.LoadEncoded))
    row, layout = kernel.schedule.vector, load.layout
    rows, groups = kernel.schedule.tile[row], layout.elements // layout.group
    taken = -(-rows * layout.bytes // groups)
    ahead = tiles_ahead(rows, load.buffer.type.shape[-1], least)
    with before(sum.body.block.terminator, load.loc):
        for first in range(0, taken, line):
            loop.Prefetch(load.buffer, map=AffineMap.get(len(kernel.domain), (
                loop.coordinate(row) + ahead, loop.coordinate(sum.dim) * taken + first)), locality=2, guarded=True)
    record(kernel, "prefetch_blocks", dim=f"{row}", rows=ahead)


def prefetch_tiles(kernel: Kernel, load: loop.Load, row: int, line: int, least: int) -> None:
    """The same of a matrix that is read in blocks of terms: with each, as many lines of `line` elements as the blocks
    of all rows of a tile take."""
    around = load.enclosing(For)
    rows, d = kernel.schedule.tile[row], around.dim
    ahead = tiles_ahead(rows, load.buffer.type.shape[-1] * load.buffer.type.dtype.itemsize, least)
    with before(around.body.block.terminator, load.loc):
        for first in range(0, rows * around.step, line):
            loop.Prefetch(load.buffer, map=load.map.replace_dims({
                row: loop.coordinate(row) + ahead, d: loop.coordinate(d) * rows + first}), locality=2, guarded=True)
    record(kernel, "prefetch_tiles", dim=f"{row}", rows=ahead)


def tiles_ahead(rows: int, size: int, least: int) -> int:
    """The rows of so many tiles of `rows` rows of `size` bytes that they are at least `least` bytes."""
    return rows * max(1, -(-least // (rows * size)))


def strip_mine(kernel: Kernel, dim: int, size: int) -> None:
    """Strip-mine a tiled parallel dimension: a loop over smaller tiles around the operations of each tile."""
    _strip_mine(kernel.body.block, dim, size)
    record(kernel, "strip_mine", dim=f"{dim}", size=size)


def _strip_mine(body: Block, dim: int, size: int) -> None:
    run: list[Op] = []
    for op in body.ops:
        ranged = isinstance(op, For) and op.is_ranged
        if not (op.terminator or ranged or isinstance(op, loop.Scratch)):
            run.append(op)
            continue
        if run:
            _wrap(run, dim, size)
            run = []
        if ranged:
            _strip_mine(op.regions[0].block, dim, size)


def _wrap(run: Sequence[Op], dim: int, size: int) -> None:
    """Wrap consecutive operations in a loop."""
    inside = Block()
    with before(run[0]):
        with at_end(inside, run[0].loc):
            end = loop.Yield(())
        For((), Region(inside), dim=dim, size=size)
    for op in run:
        op.move_before(end)


# -- split reductions -------------------------------------------------------------------------------------------------
Contraction = loop.Contract | loop.ContractPairs | loop.Mma


def contraction(kernel: Kernel) -> tuple[For, Contraction]:
    """The single contraction of a kernel and its loop."""
    op = next(op for op in kernel.walk() if isinstance(op, Contraction))
    around = op.parent_op
    assert isinstance(around, For)
    return around, op


def spill_accumulator(kernel: Kernel) -> None:
    """Spill the accumulator of a blocked sum to scratch memory, so that registers hold only the sum of a block.

    Operations of the body that do not contribute to the sum move after it.
    """
    sum, contract = contraction(kernel)
    blocks = sum.parent_op
    assert isinstance(blocks, For) and blocks.dim == contract.dim and blocks.parent_op is kernel
    start, total = blocks.operands[0], blocks.body.block.args[0]
    outer, buffer = Block(), scratch_for(kernel, contract.result)
    later = before_last(kernel, blocks, start.op)
    with before(blocks):
        loop.StoreScratch(start, buffer)
        with at_end(outer, blocks.loc):
            mapping: dict[Value, Value] = {}
            copy_slice([v for op in blocks.walk() for v in op.operands], later, mapping)
            for op in blocks.body.block:
                if op.terminator:
                    loop.StoreScratch(mapping[op.operands[0]], buffer)
                    loop.Yield(())
                else:
                    if total in op.operands:
                        mapping[total] = loop.LoadScratch(buffer).result
                    op.insert_clone(mapping)
        For((), Region(outer), dim=contract.dim)
        whole = loop.LoadScratch(buffer)
    blocks.replace_by(whole.result)
    move_after(whole, later)
    record(kernel, "spill_accumulator")


def split_k(kernel: Kernel, size: int) -> None:
    """Split the reduction into slices of `size` terms, with the accumulator in scratch memory between slices.

    Operations around the sum that do not contribute to it move after it.
    """
    sum, contract = contraction(kernel)
    start, around = sum.operands[0], sum.parent_op
    inside = around is not kernel                        # a sum in blocks: of each of them
    outer, buffer = Block(), scratch_for(kernel, contract.result)
    later = before_last(around, sum, start.op)
    with before(sum):
        loop.StoreScratch(start, buffer)
        with at_end(outer, sum.loc):
            mapping: dict[Value, Value] = {}
            copy_slice([v for op in sum.walk() for v in op.operands], later, mapping)
            mapping[start] = loop.LoadScratch(buffer).result
            loop.StoreScratch(sum.insert_clone(mapping).results[0], buffer)
            loop.Yield(())
        For((), Region(outer), dim=contract.dim, size=size if inside else 0)
        total = loop.LoadScratch(buffer)
    sum.replace_by(total.result)
    move_after(total, later)
    if not inside:
        kernel.reschedule(tile=kernel.schedule.with_tile(contract.dim, size))
    record(kernel, "split_k", dim=f"{contract.dim}", size=size)


def scratch_for(kernel: Kernel, tile: Value) -> Value:
    """Scratch buffer for a tile at the start of the kernel, contiguous along the vector dimension."""
    order = sorted(tile.type.dims, key=lambda d: (d == kernel.schedule.vector, d))
    assert kernel.body.block.first is not None
    with before(kernel.body.block.first):
        return loop.Scratch(ScratchType(tuple(order), tile.type.dtype)).result


def before_last(around: Op | None, last: Op, start: Op | None) -> list[Op]:
    """Operations of a body before `last`, without the initial value of a sum and scratch memory."""
    assert around is not None
    ops = around.regions[0].block.ops
    return [op for op in ops[: ops.index(last)] if op is not start and not isinstance(op, loop.Scratch)]


def move_after(op: Op, moved: Sequence[Op]) -> None:
    """Move operations after `op`, in order."""
    for m in moved:
        m.detach()
        assert op.parent is not None
        op.parent.insert(m, op.next)
        op = m


def copy_slice(values: Sequence[Value], among: Sequence[Op], mapping: dict[Value, Value]) -> None:
    """Clone the backward slice of values among the operations of a list."""
    needed, work = set[Op](), [v.op for v in values]
    here = {*among}
    while work:
        op = work.pop()
        if op in here and op not in needed:
            needed.add(op)
            work += [v.op for inner in op.walk() for v in inner.operands]
    for op in among:
        if op in needed:
            op.insert_clone(mapping)


# -- packing ----------------------------------------------------------------------------------------------------------
def pack(kernel: Kernel, side: str, vector: int, size: int = 0) -> None:
    """Pack a factor of the contraction, lhs or rhs, into scratch memory in the order in which it is read.

    The packed panel is contiguous along dimension `vector`, and is filled `size` points at a time: of `vector` if that
    is not tiled yet, else of the reduction dimension.
    """
    _, contract = contraction(kernel)
    factor: Value = getattr(contract, side)
    buffer = packed(kernel, factor, vector, size)
    with before(contract):
        copied = loop.LoadScratch(buffer).result
    for i, v in enumerate(contract.operands):
        if v is factor:
            contract.set_operand(i, copied)
    drop_unused(contract)
    arguments: dict[str, object] = {"side": side, "vector": f"{vector}", "size": size}
    record(kernel, "pack", **arguments)


def outside(reader: Op, factor: Value) -> For:
    """The outermost loop around the reader of a factor that is not along a dimension of it."""
    return next(op for op in enclosing_loops(reader) if op.dim not in factor.type.dims)


def packed(kernel: Kernel, factor: Value, vector: int, size: int, interleaved: int = -1, reversed: bool = False,
           reader: Op | None = None, across: int = 1) -> Value:
    """Fill a panel with a factor, or with the tile that it is extended from, before the loop `outside` of it.

    If it is interleaved along a dimension, whole words are filled at a time, whose terms may be `reversed`. `reader` is
    by default the contraction. Of the dimension before the last one, `across` points are filled at a time.
    """
    contract = reader or contraction(kernel)[1]
    loops, target = enclosing_loops(contract), outside(contract, factor)
    below = loops[loops.index(target) + 1:]
    dims = sorted(factor.type.dims, key=lambda d: (d == vector, d < kernel.parallel, d))
    filled = [d for d in dims if any(op.dim == d for op in below)]
    source = [op for op in target.walk() if isinstance(op, loop.InKernel) and not isinstance(op, For)]
    sizes = {contract.attrs.get("dim", -1) if vector == kernel.schedule.vector else vector: size}
    if across > 1:
        sizes[dims[-2]] = across
    run, lanes = 0, 0
    if interleaved >= 0:
        sizes[interleaved] = sizes.get(interleaved, 0) or i32.width // factor.type.dtype.width
    if interleaved == vector >= 0:
        blocks = [op.step for op in loops[:loops.index(target)] if op.dim == interleaved]
        run = run_of(factor, interleaved, blocks)
        lanes = lanes_of_copy(factor, interleaved, run or (blocks[-1] if blocks else kernel.domain[interleaved]))
        sizes[interleaved] = lanes or sizes[interleaved]
    with before(target, contract.loc):
        type = ScratchType(tuple(dims), factor.type.dtype)
        buffer = loop.Scratch(type, interleaved=interleaved, reversed=reversed).result

        def fill() -> None:
            mapping: dict[Value, Value] = {}
            copy_slice([factor], source, mapping)
            loop.StoreScratch(mapping[factor], buffer)

        nested(kernel, filled, vector, sizes, fill, run, lanes)
    return buffer


def pack_blocks(kernel: Kernel, groups: int) -> None:
    """Pack what is unpacked of a quantised factor, integers, scales and minima, in scratch memory, where the dimension
    of vectors is that of its rows: all `groups` of a block at a time."""
    for op in list(kernel.inside(loop.LoadEncoded)):
        factor, (reader, _) = op.result, next(iter(op.result.uses))
        if isinstance(op, loop.BlockMinima):             # less than 0 where they are used
            factor, (reader, _) = reader.results[0], next(iter(reader.results[0].uses))
        target = outside(reader, factor)
        buffer = packed(kernel, factor, kernel.schedule.vector, 0, reader=reader)
        for around in [target.prev, *target.prev.inside(For)] if target.prev is not None else []:
            if isinstance(around, For) and around.dim == kernel.parallel and groups > 1:
                around.unroll = groups
        with before(reader):
            factor.replace_by(loop.LoadScratch(buffer).result)
        for dead in {factor.op: None, op: None}:
            assert dead is not None
            dead.erase()
    record(kernel, "pack_blocks", groups=groups)


def nested(kernel: Kernel, dims: Sequence[int], vector: int, sizes: Mapping[int, int], fill: Callable[[], None],
           run: int = 0, lanes: int = 0) -> None:
    """Build a loop nest over dimensions with `fill` as its body, the last one of which is in runs of `run` points, and
    in vectors of `lanes`, if there are such numbers."""
    if not dims:
        fill()
        return
    d, inside = dims[0], Block()
    in_runs = run > 0 and len(dims) == 1
    with at_end(inside, builder.loc):
        nested(kernel, dims if in_runs else dims[1:], vector, sizes, fill, 0 if in_runs else run, lanes)
        loop.Yield(())
    in_vectors = d == vector and vector != kernel.schedule.vector and not in_runs
    For((), Region(inside), dim=d, size=run if in_runs else sizes.get(d, 0), vector=in_vectors,
        lanes=lanes if in_vectors else 0)


def run_of(factor: Value, k: int, blocks: Sequence[int]) -> int:
    """How many terms of a factor, from a multiple of that on, lie in one row of an image, and are padding or not, in
    blocks of so many; 0 if all do, or if there is no such number."""
    maps = [map for op in slice_of(factor) if isinstance(op, loop.InKernel) for map in op.maps()]
    dens = [q.den for map in maps for e in map.results for q in quotients(e) if k in dims_of(q.num) and not any(
        k in dims_of(inner.num) for inner in quotients(q.num))]
    run = gcd(*(n for n in dens if isinstance(n, int)))
    run = gcd(run, *blocks) if run else 0
    return run if run % i32.width == 0 else 0


def lanes_of_copy(factor: Value, k: int, block: Dim) -> int:
    """The lanes of the longest vectors by which a block of a factor is copied as it is, or is zero; 0 if it is computed
    or not whole vectors."""
    lanes = gcd(VECTOR // factor.type.dtype.width, block) if isinstance(block, int) else 0
    if lanes < i32.width:                                  # half of a vector of bytes, or one of bf16
        return 0
    loads = [op for op in slice_of(factor) if isinstance(op, loop.Load) and k in op.result.type.dims]
    if any(op.tiles or step_along(loop.position(op.map, op.buffer), k, lanes) != 1 for op in loads):
        return 0
    computed = any(r.type.dtype not in (factor.type.dtype, index, i1) for op in slice_of(factor) for r in op.results
                   if isinstance(r.type, TileType))
    return 0 if computed else lanes


def slice_of(value: Value) -> list[Op]:
    """The operations of a kernel that a value is computed by."""
    found: dict[Op, None] = {}
    work = [value.op]
    while work:
        op = work.pop()
        if op is not None and op not in found and not isinstance(op, Kernel):
            found[op] = None
            work += [v.op for v in op.operands]
    return list(found)


def enclosing_loops(op: Op) -> list[For]:
    """Enclosing loops of an operation, outermost first."""
    out: list[For] = []
    while isinstance(op := op.parent_op, For):  # type: ignore[assignment]
        out.insert(0, op)
    return out


def drop_unused(contract: Contraction) -> None:
    """Erase the operations in the loop of a contraction that are dead once a factor is packed."""
    assert contract.parent is not None
    for op in reversed(contract.parent.ops):
        if op.results and not op.terminator and not any(r.uses for r in op.results):
            op.erase()


# -- products of narrow numbers ---------------------------------------------------------------------------------------
def interleave(kernel: Kernel, sides: Mapping[str, tuple[int, int]]) -> None:
    """Pack both factors of a contraction, as bf16 in pairs of terms or as bytes in quads, which one instruction
    multiplies and adds. One that is in such words in memory is read where it is.

    `sides` has the dimension along which each panel is contiguous, and how many points are filled at a time (`pack`).
    """
    sum, contract = contraction(kernel)
    extensions = {side: extension_of(getattr(contract, side)) for side in sides}
    unsigned = next((side for side, op in extensions.items() if isinstance(op, arith.ExtUI)), None)
    panels: dict[str, Value] = {}
    exponents: dict[str, Value] = {}
    for side, (vector, size) in sides.items():
        tile = extended(getattr(contract, side))
        assert tile is not None
        target = outside(contract, tile)
        reversed = tile.type.dtype == bf16
        panels[side] = in_words(kernel, tile, target, contract.dim, reversed) or (
            packed(kernel, tile, vector, size, contract.dim, reversed))
        if unsigned is None:
            with before(target, contract.loc):
                exponents[side] = loop.LeastExponent(panels[side]).result
    start = sum.operands[0].op
    with before(sum, contract.loc):
        total = loop.ContractInterleaved(
            panels["lhs"], panels["rhs"], exponents["lhs"], exponents["rhs"], dim=contract.dim,
        ).result if unsigned is None else loop.ContractBytes(
            panels["lhs"], panels["rhs"], dim=contract.dim, unsigned=unsigned).result
    sum.replace_by(total)
    if start is not None and not start.results[0].uses:
        start.erase()
    record(kernel, "interleave", **{side: f"{vector}" for side, (vector, _) in sides.items()})


def in_words(kernel: Kernel, tile: Value, target: For, k: int, reversed: bool = False) -> Value | None:
    """A tile of narrow numbers as a panel that is read where it is, if the terms along k share words there."""
    load, terms = tile.op, kernel.domain[k]
    if not isinstance(load, loop.Load) or load.mask is not None or load.tiles or not isinstance(terms, int):
        return None
    found = loop.words_of_runs(loop.position(load.map, load.buffer), k, terms, tile.type.dtype, reversed)
    if found is None:
        return None
    for around in enclosing_loops(target):
        if around.dim == k and not loop.in_whole_runs(found[0], around.step, terms):
            if tile.type.dtype == bf16 or around.size or around.step < found[0]:
                return None
            kernel.reschedule(tile=kernel.schedule.with_tile(k, around.step // found[0] * found[0]))    # sums are exact
    lanes = kernel.schedule.vector
    across = lanes in tile.type.dims
    side_by_side = across and stride(load, lanes) == i32.width // tile.type.dtype.width and (
        has_whole_vectors(load, lanes))
    if not side_by_side and (across or tile.type.dtype == bf16):       # the least exponent is that of vectors of words
        return None
    dims = sorted(tile.type.dims, key=lambda d: (d == lanes, d < kernel.parallel, d))
    with before(target, load.loc):
        return loop.Words(ScratchType(tuple(dims), tile.type.dtype), load.buffer, load.map, k, reversed).result


def has_whole_vectors(load: loop.Load, d: int) -> bool:
    """Whether what a load reads along d, up to a multiple of the lanes of any vector, is in its buffer: it lies in
    panels, which are as wide, or is a multiple itself."""
    extent = load.enclosing(Kernel).domain[d]
    return modulo(extent, RUN) == 0 or step_along(loop.position(load.map, load.buffer), d) is None
