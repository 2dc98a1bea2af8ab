"""Transposed accesses: contiguous rows are loaded or stored as vectors, and transposed in registers."""

from __future__ import annotations

from collections.abc import Callable

from mlc.dialects import arith, vector
from mlc.ir.affine import dims_of, step_along
from mlc.ir.core import Value
from mlc.ir.sizes import Dim
from mlc.ir.types import VectorType, element, i1, index
from mlc.passes.lower_kernel.access import Access
from mlc.passes.lower_kernel.nest import Lowering, Point


def is_transposed(low: Lowering, access: Access, address: Dim, width: int) -> int | None:
    """The tiled dimension, not that of the vectors, every `width` points of which are contiguous; None if none is."""
    lanes, step = low.lanes, step_along(address, low.scope.vector)
    if access.tiles or step in (None, 0, 1) or lanes & (lanes - 1) or lanes < 2:
        return None
    if (access.mask is not None and low.in_lanes(access.mask.type.dims)) or low.scope.valid:
        return None

    def is_contiguous(d: int) -> bool:
        run = low.alignment(d, width)                        # short runs may end within a row
        return step_along(address, d, run if run == width else 1) == 1

    return next((d for d in sorted(dims_of(*access.indices)) if low.scope.block.get(d, 1) > 1
                 and d not in low.scope.stop and is_contiguous(d)), None)


def load_transposed(low: Lowering, tile: Value, along: int, mask: Value | None,
                place: Callable[[Point], tuple[Value, tuple[Value, ...]]]) -> None:
    """Load a tile as square blocks of lanes x lanes elements, transposed in registers."""
    vd, lanes, parts = low.scope.vector, low.lanes, dict[Point, Value]()
    for corner in low.points(tile.type.dims):
        if corner[along] % lanes:
            continue
        inside = _bits(low, mask, corner, along) if mask is not None else None
        rows = [row(low, tile, corner, lane, along, inside, place, lanes) for lane in range(lanes)]
        for i, v in enumerate(transposed(rows)):
            parts[tuple(p + i if d == along else p for d, p in enumerate(corner))] = v
    low.scope.tiles[tile] = parts
    assert vd != along


def _bits(low: Lowering, mask: Value, corner: Point, along: int) -> Value:
    """The mask of the contiguous elements to read from a corner on."""
    bits: Value = arith.constant(False, VectorType((low.lanes,), i1))
    if along not in mask.type.dims:
        return vector.splat(low.part(mask, corner), low.lanes)
    for i in range(min(low.lanes, low.scope.block[along] - corner[along])):
        bit = low.part(mask, tuple(p + i if d == along else p for d, p in enumerate(corner)))
        bits = vector.Insert(bit, bits, (), (i,)).result
    return bits


def row(low: Lowering, tile: Value, corner: Point, lane: int, along: int, inside: Value | None,
        place: Callable[[Point], tuple[Value, tuple[Value, ...]]], width: int) -> Value:
    """Contiguous elements, `width` from a corner on, for one lane; zeros past the block and for an inactive lane."""
    scope, vd = low.scope, low.scope.vector
    type = VectorType((width,), tile.type.dtype)
    zeros = low.zeros(type)
    count = scope.counts.get(corner[vd], low.lanes)
    length = min(width, scope.block[along] - corner[along])
    if isinstance(count, int) and lane >= count:
        return zeros
    buffer, indices = place(tuple(p + lane if d == vd else p for d, p in enumerate(corner)))
    if isinstance(count, int) and length == width:
        if inside is None:
            return vector.Load(buffer, indices, type).result
        return vector.MaskedLoad(buffer, indices, inside, zeros).result
    mask = _held(low, lane, length, count, width)
    if inside is not None:
        mask = arith.AndI(mask, inside).result
    return vector.MaskedLoad(buffer, indices, mask, zeros).result


def store_transposed(low: Lowering, tile: Value, along: int, dims: tuple[int, ...],
                     place: Callable[[Point], tuple[Value, tuple[Value, ...]]],
                     masked: Callable[[Value, Value, Value, tuple[Value, ...]], None]) -> None:
    """Store a tile as square blocks of lanes x lanes elements, transposed in registers: a row per lane."""
    scope, vd, lanes = low.scope, low.scope.vector, low.lanes
    type = VectorType((lanes,), tile.type.dtype)
    zeros = low.zeros(type)
    for corner in low.points(dims):
        if corner[along] % lanes:
            continue
        length = min(lanes, scope.block[along] - corner[along])
        parts = [low.spread(low.part(tile, tuple(p + i if d == along else p for d, p in enumerate(corner))))
                 for i in range(length)]
        count = scope.counts.get(corner[vd], lanes)
        for lane, row in enumerate(transposed([*parts, *[zeros] * (lanes - length)])):
            if isinstance(count, int) and lane >= count:
                break
            buffer, indices = place(tuple(p + lane if d == vd else p for d, p in enumerate(corner)))
            if isinstance(count, int) and length == lanes:
                vector.Store(row, buffer, indices)
            else:
                masked(row, _held(low, lane, length, count, lanes), buffer, indices)


def _held(low: Lowering, lane: int, length: int, count: Dim, width: int) -> Value:
    """The mask of the first `length` elements of a row, or of none if the lane is not one of the first `count`."""
    held = low.number(length)
    if not isinstance(count, int):
        there = arith.CmpI("slt", arith.constant(lane, index), low.number(count)).result
        held = arith.Select(there, held, arith.constant(0, index)).result
    mask: Value = vector.CreateMask((held,), VectorType((width,), i1)).result
    return mask


def transposed(rows: list[Value]) -> list[Value]:
    """Transpose a square of rows: first within pieces of 16 bytes, where shuffles are cheapest, then across pieces."""
    n = len(rows)
    piece = min(n, max(1, 16 // element(rows[0].type).itemsize))
    groups = [columns(rows[i: i + piece], 1, piece) for i in range(0, n, piece)]
    out: list[Value] = [rows[0]] * n
    for j in range(piece):
        out[j::piece] = columns([group[j] for group in groups], piece, n)
    return out


def columns(rows: list[Value], unit: int, width: int) -> list[Value]:
    """Transpose columns of `unit` lanes within every group of `width` lanes: the even columns, then the odd ones."""
    if len(rows) == 1:
        return rows
    out: list[Value] = list(rows)
    for odd in (0, 1):
        half = [picked(a, b, unit, width, odd) for a, b in zip(rows[::2], rows[1::2])]
        out[odd::2] = columns(half, unit, width)
    return out


def picked(a: Value, b: Value, unit: int, width: int, odd: int) -> Value:
    """Within every group of `width` lanes, every other unit of `a`, followed by those of `b`."""
    n = a.type.shape[0]
    lanes = [lane for lane in range(width) if lane // unit % 2 == odd]
    return vector.Shuffle(a, b, tuple(start + offset + lane for start in range(0, n, width) for offset in (0, n)
                                      for lane in lanes)).result
