"""Lowering of loads and stores of tiles, and their address computations."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlc.dialects import arith, loop, memref, scf, vector
from mlc.dialects.index_arithmetic import IndexArithmetic
from mlc.ir import sizes
from mlc.ir.affine import AffineExpr, dims_of, fold, step_along
from mlc.ir.core import Value, at_end
from mlc.ir.sizes import AffineDim, Dim, IndexTile, Leaf
from mlc.ir.types import MemRefType, VectorType, i1, index
from mlc.passes.lower_kernel.access import Access
from mlc.passes.lower_kernel.nest import Lowering, Point, rule, zero_of
from mlc.passes.lower_kernel.transposed import is_transposed, load_transposed, store_transposed


def flatten_buffers(low: Lowering) -> None:
    """Create a flat view of every buffer of a kernel, before its loops."""
    for op in low.kernel.walk():
        if isinstance(op, loop.Load | loop.Store | loop.Words):
            flatten(low, op.buffer)


def access(low: Lowering, op: loop.Load | loop.Store) -> Access:
    """The access of an operation, to the flat view of the buffer if that takes fewer divisions."""
    plain = Access(op.buffer, op.map.results, op.tiles, op.mask)
    if any(q for e in op.map.results for q in sizes.quotients(e)):
        place = address(low, plain)
        if not any(sizes.quotients(place)):
            return Access(flatten(low, op.buffer)[0], (place,), op.tiles, op.mask)
    return plain


# -- index arithmetic -------------------------------------------------------------------------------------------------
def at(low: Lowering, expr: AffineExpr, point: Point) -> AffineExpr:
    """Rewrite an expression over coordinates to one over the origins of the current block; what is divided is that of
    the run around it where that makes no difference."""
    origin = low.scope.origin
    for d, run in low.scope.run.items():
        expr = run.relative(expr, d, low.coordinate(d, point[d]), lambda v: low.named("quotient", v))

    def coordinate(leaf: Leaf) -> Dim:
        if isinstance(leaf, AffineDim) and leaf.position in origin:
            return low.coordinate(leaf.position, point[leaf.position])
        return sizes.of_atom(leaf)

    return sizes.substitute(expr, coordinate)


def numbered(low: Lowering, tiles: Sequence[Value], point: Point) -> dict[Leaf, Dim]:
    """Give each index tile of an access a name for use in expressions; returns the names."""
    names: dict[Leaf, Dim] = {}
    for i, t in enumerate(tiles):
        v = low.part(t, point)
        name = low.index_names.setdefault(v, f"tile.{len(low.index_names)}")
        names[IndexTile(i)] = sizes.sym(name)
        low.scope.numbers.symbols[name] = v
    return names


def scalar_index(low: Lowering, expr: AffineExpr, tiles: Sequence[Value], point: Point) -> Value:
    """The index value of an expression in the first lane."""
    here = at(low, expr, point)
    return low.number(sizes.substitute(here, numbered(low, tiles, point)) if tiles else here)


def lane_index(low: Lowering, expr: AffineExpr, tiles: Sequence[Value], point: Point) -> Value:
    """The vector of an expression's index values, one per lane."""
    d, lanes = low.scope.vector, low.lanes
    assert low.alignment(d, lanes) == lanes, f"vectors along d{d} begin at multiples of their {lanes} lanes"
    step = step_along(expr, d, lanes)
    if step is not None and not any(low.in_lanes(t.type.dims) for t in tiles):
        start = low.spread(scalar_index(low, expr, tiles, point))
        if step == 0:
            return start
        steps = low.once(("steps", step, low.lanes), lambda: _steps(low, step))
        return low.once((start, steps), lambda: arith.AddI(start, steps).result)
    return fold(expr, _LaneNumbers(low, tiles, point))


def _steps(low: Lowering, step: Dim) -> Value:
    """The number of each lane, times `step`."""
    steps = vector.Step(VectorType((low.lanes,), index)).result
    return steps if step == 1 else arith.MulI(steps, low.spread(low.number(step))).result


class _LaneNumbers(IndexArithmetic):
    """Per-lane evaluation of index expressions that are not linear in the lane."""

    def __init__(self, low: Lowering, tiles: Sequence[Value], point: Point) -> None:
        self.low, self.tiles, self.point = low, tiles, point

    def constant(self, value: int) -> Value:
        return self.low.spread(arith.constant(value, index))

    def leaf(self, leaf: Leaf) -> Value:
        low, expr = self.low, sizes.of_atom(leaf)
        if isinstance(leaf, IndexTile):
            return low.spread(low.part(self.tiles[leaf.position], self.point))
        if isinstance(leaf, AffineDim) and leaf.position == low.scope.vector:
            return lane_index(low, expr, (), self.point)
        return low.spread(scalar_index(low, expr, (), self.point))


# -- addresses --------------------------------------------------------------------------------------------------------
def flatten(low: Lowering, buffer: Value) -> tuple[Value, list[Dim]]:
    """The flat view of a buffer, and its strides; built once, before the loops or where a scratch is allocated."""
    if buffer in low.flat_views:
        return low.flat_views[buffer]
    type: MemRefType = buffer.type
    numbers = low.scope.numbers
    shape: list[Dim] = []
    for axis, n in enumerate(type.shape):
        if n is None:
            name = f"size.{len(low.flat_views)}.{axis}"
            numbers.symbols[name] = memref.Dim(buffer, arith.constant(axis, index)).result
        shape.append(sizes.sym(name) if n is None else n)
    strides: list[Dim] = [1] * len(shape)
    for axis in reversed(range(len(shape) - 1)):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    flat = buffer
    if len(shape) != 1:
        total = sizes.product(shape)
        count = total if isinstance(total, int) else None
        row = memref.reinterpret(buffer, 0, [numbers.value(total) if count is None else count], [1])
        flat = memref.Cast(row, MemRefType((count,), type.dtype)).result
    low.flat_views[buffer] = flat, strides
    return low.flat_views[buffer]


def address(low: Lowering, access: Access) -> Dim:
    """The linear position in the flat buffer, as an expression."""
    key = access.buffer, access.indices
    if key not in low.addresses:
        _, strides = flatten(low, access.buffer)
        total: Dim = 0
        for e, s in zip(access.indices, strides):
            total = total + e * s
        low.addresses[key] = sizes.joined(total)
    return low.addresses[key]


def stride(low: Lowering, access: Access) -> Dim | None:
    """The stride between lanes in elements, if it is constant."""
    gathers = any(low.in_lanes(t.type.dims) for t in access.tiles)
    vector = low.scope.vector
    return None if gathers else step_along(address(low, access), vector, low.alignment(vector, low.lanes))


def is_contiguous(low: Lowering, access: Access) -> bool:
    return stride(low, access) == 1


def place(low: Lowering, access: Access, point: Point) -> tuple[Value, tuple[Value, ...]]:
    """Buffer and indices of a contiguous or scalar access; the buffer is not flattened if only its last axis varies."""
    moves = low.scope.vector in dims_of(*access.indices[:-1])
    if access.indices and not moves:
        return access.buffer, tuple(scalar_index(low, e, access.tiles, point) for e in access.indices)
    flat, _ = flatten(low, access.buffer)
    return flat, (scalar_index(low, address(low, access), access.tiles, point),)


def lane_mask(low: Lowering, access: Access, point: Point) -> Value | None:
    """The mask of the lanes that an access may touch; None for all."""
    own = low.spread(low.part(access.mask, point)) if access.mask is not None else None
    inside = low.mask(point) if access.bounded else None
    if own is None or inside is None:
        return own if own is not None else inside
    return low.once((own, inside), lambda: arith.AndI(own, inside).result)


@rule(loop.Prefetch)
def _prefetch(low: Lowering, op: loop.Prefetch) -> None:
    flat, _ = flatten(low, op.buffer)
    first = (0,) * len(low.kernel.domain)
    where = scalar_index(low, address(low, Access(op.buffer, op.map.results)), (), first)
    if not op.guarded:
        memref.Prefetch(flat, (where,), localityHint=op.locality)
        return
    row = scalar_index(low, op.map.results[0], (), first)
    inside = arith.CmpI("slt", row, memref.Dim(op.buffer, arith.constant(0, index)).result).result
    branch = scf.branch(inside, otherwise=False)
    with at_end(branch.then_body.block):
        memref.Prefetch(flat, (where,), localityHint=op.locality)
        scf.Yield(())


# -- reading ----------------------------------------------------------------------------------------------------------
@rule(loop.Load)
def _load(low: Lowering, op: loop.Load) -> None:
    where = access(low, op)
    panel = filled_panel(op)
    run = panel.terms_of_word * low.lanes if panel is not None and panel.interleaved != low.scope.vector else 0
    if run and is_transposed(low, where, address(low, where), run) is not None:
        low.scope.unread[op.result] = where
    else:
        load(low, op.result, where)


def filled_panel(op: loop.Load) -> loop.Scratch | None:
    """The panel of words that a load does nothing but fill, so that its words can be transposed; or None."""
    stores = [user.scratch.op for user in op.result.users if isinstance(user, loop.StoreScratch)]
    if op.mask is not None or len(op.result.uses) != 1:
        return None
    return next((panel for panel in stores if isinstance(panel, loop.Scratch) and panel.interleaved >= 0), None)


def load(low: Lowering, tile: Value, access: Access) -> None:
    """Define a tile by loading its points."""
    if not low.in_lanes(tile.type.dims):
        low.define(tile, lambda p: _load_scalar(low, access, p))
    elif (along := is_transposed(low, access, address(low, access), low.lanes)) is not None:
        load_transposed(low, tile, along, access.mask, lambda p: place(low, access, p))
    else:
        step = stride(low, access)
        low.define(tile, lambda p: _load_lanes(low, access, p, step))


def _load_scalar(low: Lowering, access: Access, point: Point) -> Value:
    def read() -> Value:
        indices = tuple(scalar_index(low, e, access.tiles, point) for e in access.indices)
        return memref.Load(access.buffer, indices).result

    if access.mask is None:
        return read()
    dtype = access.buffer.type.dtype
    branch = scf.branch(low.part(access.mask, point), [dtype])
    with at_end(branch.then_body.block), low.scoped():
        scf.Yield((read(),))
    with at_end(branch.else_body.block):
        scf.Yield((arith.constant(zero_of(dtype), dtype),))
    return branch.results[0]


def one_condition(low: Lowering, access: Access, point: Point) -> Value | None:
    """The mask of an access if it is the same for all lanes, as that of an index that is checked to be in range.

    A branch that is always taken costs less than masked accesses: processors take masked stores apart, and do not
    forward what they store to the next load.
    """
    if access.mask is None or low.in_lanes(access.mask.type.dims):
        return None
    return low.part(access.mask, point)


def is_never_empty(access: Access, count: int) -> bool:
    """Whether the first `count` elements of a buffer can be read where an element of a window is in its padding.

    Of rows that an index tells, a branch reads none.
    """
    shape: tuple[int | None, ...] = access.buffer.type.shape
    return not access.tiles and None not in shape and prod(n for n in shape if n is not None) >= count


def _load_somewhere(low: Lowering, holds: Value, access: Access, point: Point, type: VectorType) -> Value:
    """Load a contiguous vector if a condition holds, else the first elements of the buffer in place of which there are
    zeros: without a branch, so that the elements that neighbouring windows share are loaded once."""
    flat, _ = flatten(low, access.buffer)
    where = scalar_index(low, address(low, access), access.tiles, point)
    where = arith.Select(holds, where, arith.constant(0, index)).result
    mask, zeros = lane_mask(low, access.unmasked(), point), low.zeros(type)
    x: Value = (vector.Load(flat, (where,), type) if mask is None else
                vector.MaskedLoad(flat, (where,), mask, zeros)).result
    return arith.Select(low.spread(holds), x, zeros).result


def _load_if(low: Lowering, holds: Value, access: Access, point: Point, type: VectorType) -> Value:
    """Load a contiguous vector if a condition holds; zeros otherwise."""
    branch = scf.branch(holds, [type])
    with at_end(branch.then_body.block), low.scoped():
        scf.Yield((_load_lanes(low, access.unmasked(), point, 1),))
    with at_end(branch.else_body.block):
        scf.Yield((low.zeros(type),))
    return branch.results[0]


def _load_lanes(low: Lowering, access: Access, point: Point, step: Dim | None) -> Value:
    """Load a vector with a stride of `step` elements between lanes, None if it is not constant."""
    type = VectorType((low.lanes,), access.buffer.type.dtype)
    mask = lane_mask(low, access, point)
    if not low.in_lanes(access.spanned):
        return _load_one_for_all(low, access, point, type)
    if step == 1:
        if (holds := one_condition(low, access, point)) is not None:
            return (_load_somewhere if is_never_empty(access, low.lanes) else _load_if)(low, holds, access, point, type)
        buffer, indices = place(low, access, point)
        if mask is None:
            return vector.Load(buffer, indices, type).result
        return vector.MaskedLoad(buffer, indices, mask, low.zeros(type)).result
    flat, _ = flatten(low, access.buffer)
    everywhere = low.spread(low.once(True, lambda: arith.constant(True, i1))) if mask is None else mask
    if step == -1:
        return _load_backwards(low, access, point, type, mask)
    if step == 2 and low.lanes % 2 == 0:
        return _load_every_other(low, access, point, type, everywhere)
    where = lane_index(low, address(low, access), access.tiles, point)
    return vector.Gather(flat, (low.number(0),), where, everywhere, low.zeros(type)).result


def _load_backwards(low: Lowering, access: Access, point: Point, type: VectorType, mask: Value | None) -> Value:
    """Load with stride -1: load the elements up to the first lane's, and reverse them."""
    flat, _ = flatten(low, access.buffer)
    where = scalar_index(low, address(low, access) - (low.lanes - 1), access.tiles, point)
    order = tuple(reversed(range(low.lanes)))
    if mask is None:
        x = vector.Load(flat, (where,), type).result
    else:
        mask = vector.Shuffle(mask, mask, order).result
        x = vector.MaskedLoad(flat, (where,), mask, low.zeros(type)).result
    return vector.Shuffle(x, x, order).result


def _load_every_other(low: Lowering, access: Access, point: Point, type: VectorType, mask: Value) -> Value:
    """Load with stride 2: two adjacent vectors, masked to the even elements."""
    flat, _ = flatten(low, access.buffer)
    start, lanes = address(low, access), low.lanes

    def even(first: int) -> Value:
        order = tuple(n for lane in range(first, first + lanes // 2) for n in (lane, lanes))
        return vector.Shuffle(mask, low.zeros(mask.type), order).result

    def half(first: int) -> Value:
        mask_of_half = low.once(("even", mask, first), lambda: even(first))
        where = scalar_index(low, start + 2 * first, access.tiles, point)
        return vector.MaskedLoad(flat, (where,), mask_of_half, low.zeros(type)).result

    return vector.Shuffle(half(0), half(lanes // 2), tuple(range(0, 2 * lanes, 2))).result


def _load_one_for_all(low: Lowering, access: Access, point: Point, type: VectorType) -> Value:
    """Load a lane-invariant element under a mask: load it once if any lane is active."""
    mask = lane_mask(low, access, point)
    assert mask is not None, "a lane-invariant load spans the lanes only through its mask"
    branch = scf.branch(vector.Reduction("or", mask).result, [type.dtype])
    with at_end(branch.then_body.block), low.scoped():
        indices = tuple(scalar_index(low, e, access.tiles, point) for e in access.indices)
        scf.Yield((memref.Load(access.buffer, indices).result,))
    with at_end(branch.else_body.block):
        scf.Yield((arith.constant(zero_of(type.dtype), type.dtype),))
    return low.spread(branch.results[0])


# -- writing ----------------------------------------------------------------------------------------------------------
@rule(loop.Store)
def _store(low: Lowering, op: loop.Store) -> None:
    store(low, op.value, access(low, op))


def store(low: Lowering, tile: Value, access: Access) -> None:
    """Store a tile."""
    dims = tuple({*tile.type.dims, *access.dims})
    contiguous = low.in_lanes(dims) and is_contiguous(low, access)
    if low.in_lanes(tile.type.dims) and not contiguous and access.mask is None and access.bounded and (
            along := is_transposed(low, access, address(low, access), low.lanes)) is not None:
        store_transposed(low, tile, along, dims, lambda p: place(low, access, p), _store_masked)
        return
    for point in low.points(dims):
        value = low.part(tile, point)
        if not low.in_lanes(dims):
            _store_scalar(low, access, value, point)
        elif contiguous and (holds := one_condition(low, access, point)) is not None:
            branch = scf.branch(holds, otherwise=False)
            with at_end(branch.then_body.block), low.scoped():
                _store_lanes(low, access.unmasked(), low.spread(value), point)
                scf.Yield(())
        elif contiguous:
            _store_lanes(low, access, low.spread(value), point)
        else:
            _scatter(low, access, value, point)


def _store_lanes(low: Lowering, access: Access, value: Value, point: Point) -> None:
    """Store a contiguous vector."""
    buffer, indices = place(low, access, point)
    mask = lane_mask(low, access, point)
    if mask is None:
        vector.Store(value, buffer, indices)
    else:
        _store_masked(value, mask, buffer, indices)


def _store_masked(value: Value, mask: Value, buffer: Value, indices: tuple[Value, ...]) -> None:
    """Store the active lanes. If their number is static and odd, the last lane is stored separately.

    This avoids a bug of LLVM 22.1: with mask registers, a masked store of one lane of a narrowed vector writes all the
    bytes of the vector before narrowing, and overwrites the elements after it.
    """
    count = arith.constant_value(mask.op.sizes[0]) if isinstance(mask.op, vector.CreateMask) else None
    if count is not None and count % 2:
        rest = arith.constant(count - 1, index)
        last = (*indices[:-1], arith.AddI(indices[-1], rest).result)
        memref.Store(vector.Extract(value, (), (count - 1,)).result, buffer, last)
        if count == 1:
            return
        mask = vector.CreateMask((rest,), mask.type).result
    vector.MaskedStore(buffer, indices, mask, value)


def _store_scalar(low: Lowering, access: Access, value: Value, point: Point) -> None:
    def write() -> None:
        memref.Store(value, access.buffer, tuple(scalar_index(low, e, access.tiles, point) for e in access.indices))

    if access.mask is None:
        write()
        return
    branch = scf.branch(low.part(access.mask, point), otherwise=False)
    with at_end(branch.then_body.block), low.scoped():
        write()
        scf.Yield(())


def _scatter(low: Lowering, access: Access, value: Value, point: Point) -> None:
    """Store lane by lane, for lanes that are not contiguous."""
    flat, _ = flatten(low, access.buffer)
    where = lane_index(low, address(low, access), access.tiles, point)
    mask, value = lane_mask(low, access, point), low.spread(value)
    for lane in range(low.lanes):
        at = vector.Extract(where, (), (lane,)).result
        x = vector.Extract(value, (), (lane,)).result
        if mask is None:
            memref.Store(x, flat, (at,))
            continue
        branch = scf.branch(vector.Extract(mask, (), (lane,)).result, otherwise=False)
        with at_end(branch.then_body.block):
            memref.Store(x, flat, (at,))
            scf.Yield(())
