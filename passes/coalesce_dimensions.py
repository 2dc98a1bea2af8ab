"""Coalesce adjacent dimensions of kernels that every access traverses contiguously.

takes  LOOP
gives  LOOP
why    a short innermost dimension would leave vectors partly empty; one long dimension fills them

Dimensions d and d+1 are coalesced if each buffer has either both as adjacent axes, with the whole extent of d+1, or
neither. The buffers are then reinterpreted with the two axes as one. Results are bitwise the same. So are words of a
few elements with what lies beside them, if that holds for what is stored and nothing is reduced: what is loaded is
gathered for whole vectors.

Before that, the dimensions of a kernel whose accesses are contiguous along another one than the last are put in the
order in which its result lies in memory, as that of an image with channels last: loops nest in this order. A product
is left as it is: its rows pass through a panel of columns, in whatever order.
"""

from __future__ import annotations

from dataclasses import replace

from mlc.dialects import arith, loop, memref
from mlc.dialects.index_arithmetic import SizeBuilder
from mlc.dialects.loop import Kernel, ScratchType, TileType
from mlc.ir import sizes
from mlc.ir.affine import AffineMap, dims_of
from mlc.ir.changes import allowed
from mlc.ir.core import Block, Op, Region, Value, before
from mlc.ir.passes import Pass
from mlc.ir.types import MemRefType, index
from mlc.passes.analysis.accesses import best_dimension, stride
from mlc.passes.forms import LOOP
from mlc.passes.schedule.transforms import interchange

WORDS = (2, 4)
"""Extents of a last dimension that is coalesced though what is loaded lies elsewhere, as that of words in panels."""


def run(module: Op) -> None:
    """Coalesce the dimensions of every unscheduled kernel."""
    for kernel in list(module.inside(Kernel)):
        if (order := order_of_memory(kernel)) is not None and allowed("order", kernel):
            interchange(kernel, order)
        if mergeable(kernel) is None or not allowed("dimensions", kernel):
            continue
        while (d := mergeable(kernel)) is not None:
            kernel = merge(kernel, d)


def order_of_memory(kernel: Kernel) -> list[int] | None:
    """The parallel dimensions in the order of the first result, outermost first; None if the kernel is to stay."""
    store = next(kernel.inside(loop.Store), None)
    if store is None or store.tiles or kernel.parallel < 2 or kernel.schedule.vector >= 0 or any(
            isinstance(op, loop.Contract | loop.DotPairs | loop.DotQuads | loop.Check) for op in kernel.walk()):
        return None
    last = best_dimension(kernel)
    if last in (None, kernel.parallel - 1):
        return None
    steps = {d: stride(store, d) or 0 for d in range(kernel.parallel) if kernel.domain[d] != 1}
    if min(steps.values()) < 1 or steps[last] != 1:
        return None
    return sorted(range(kernel.parallel), key=lambda d: (d in steps, -steps.get(d, 0), d))


def mergeable(kernel: Kernel) -> int | None:
    """The last parallel dimension that can be merged with the one after it; None if a schedule has been chosen."""
    tile, vector = kernel.schedule.tile, kernel.schedule.vector
    if kernel.schedule != loop.Schedule(tile, vector) or any(t != 1 for t in tile[: kernel.parallel]):
        return None
    return next((d for d in reversed(range(kernel.parallel - 1)) if all(fits(op, kernel, d) for op in kernel.walk())),
                None)


def fits(op: Op, kernel: Kernel, d: int) -> bool:
    """Whether an operation can be written with d and d+1 as one dimension."""
    if isinstance(op, loop.LoadEncoded) and (op.is_within_rows(d) or op.is_within_rows(d + 1)):
        return False                                       # points along a row are places, and no bytes of it
    if isinstance(op, loop.Load) and d + 2 == len(kernel.domain) and kernel.domain[d + 1] in WORDS and not op.tiles:
        return True
    if isinstance(op, loop.Load | loop.Store):
        return position(op, kernel, d) is not None or not op.map.used_dims & {d, d + 1}
    if isinstance(op, loop.Index):
        return not op.map.used_dims & {d, d + 1}
    return not isinstance(op, loop.Check)


def position(op: loop.Load | loop.Store, kernel: Kernel, d: int) -> int | None:
    """The axis of the buffer indexed by d and followed by one that is all of d+1; None if they are used otherwise."""
    used = [i for i, e in enumerate(op.map.results) if dims_of(e) & {d, d + 1}]
    if len(used) != 2 or used[1] != used[0] + 1:
        return None
    axis = used[0]
    if op.map.results[axis: axis + 2] != (loop.coordinate(d), loop.coordinate(d + 1)):
        return None
    return axis if op.buffer.type.shape[axis + 1] == kernel.domain[d + 1] else None


def merge(kernel: Kernel, d: int) -> Kernel:
    """The kernel with dimensions d and d+1 as one; the old one is erased."""
    with before(kernel):
        numbers = SizeBuilder(dict(zip(kernel.symbols, kernel.sizes)))
        views: dict[tuple[Value, int], Value] = {}
        for op in kernel.walk():
            if isinstance(op, loop.Load | loop.Store) and (axis := position(op, kernel, d)) is not None:
                if (op.buffer, axis) not in views:
                    views[op.buffer, axis] = merged_view(op.buffer, axis, numbers)
        body = Region(Block())
        mapping: dict[Value, Value] = {}
        copy_ops(kernel.body.block, body.block, kernel, d, views, mapping)
        tile, vector = kernel.schedule.tile, kernel.schedule.vector       # the other fields have their defaults
        domain = (*kernel.domain[:d], kernel.domain[d] * kernel.domain[d + 1], *kernel.domain[d + 2:])
        new = Kernel(kernel.sizes, body, symbols=kernel.symbols, domain=domain, label=kernel.label,
                     iterator_types=kernel.iterator_types[:d] + kernel.iterator_types[d + 1:],
                     schedule=loop.Schedule(tile[:d] + tile[d + 1:], vector - 1 if vector > d else vector))
    kernel.erase()
    return new


def merged_view(buffer: Value, axis: int, numbers: SizeBuilder) -> Value:
    """A row-major buffer with two neighbouring axes as one."""
    type: MemRefType = buffer.type

    def size(a: int) -> int | Value:
        n = type.shape[a]
        return n if n is not None else memref.Dim(buffer, arith.constant(a, index)).result

    def times(a: int | Value, b: int | Value) -> int | Value:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        as_value = [numbers.value(x) if isinstance(x, int) else x for x in (a, b)]
        return arith.MulI(*as_value).result

    shape = [size(a) for a in range(type.rank)]
    shape[axis: axis + 2] = [times(shape[axis], shape[axis + 1])]
    strides: list[int | Value] = [1] * len(shape)
    for a in reversed(range(len(shape) - 1)):
        strides[a] = times(strides[a + 1], shape[a + 1])
    view = memref.reinterpret(buffer, 0, shape, strides)
    plain = MemRefType(tuple(n if isinstance(n, int) else None for n in shape), type.dtype)
    return memref.Cast(view, plain).result


def copy_ops(source: Block, target: Block, kernel: Kernel, d: int, views: dict[tuple[Value, int], Value],
             mapping: dict[Value, Value]) -> None:
    """Copy a block of tile operations, with the dimensions after d renamed."""
    for op in source:
        attrs = dict(op.attrs)
        operands = [mapping.get(v, v) for v in op.operands]
        if isinstance(op, loop.Load | loop.Store):
            axis = position(op, kernel, d)
            if axis is not None:
                operands[op.operands.index(op.buffer)] = views[op.buffer, axis]
                attrs["map"] = op.map.drop_result(axis + 1)
            elif op.map.used_dims & {d, d + 1}:
                both, n = loop.coordinate(d), kernel.domain[d + 1]
                attrs["map"] = op.map.replace_dims({d: sizes.divide(both, n), d + 1: sizes.modulo(both, n)})
            attrs["map"] = without(attrs["map"], d)
        elif isinstance(op, loop.Index):
            attrs["map"] = without(op.map, d)
        if "dim" in attrs and attrs["dim"] > d:
            attrs["dim"] -= 1
        regions = []
        if isinstance(op, loop.For):
            inner = Block([renumbered(a.type, d) for a in op.body.block.args])
            mapping.update(zip(op.body.block.args, inner.args))
            copy_ops(op.body.block, inner, kernel, d, views, mapping)
            regions = [Region(inner)]
        elif isinstance(op, loop.Map):
            regions = [op.regions[0]]
            op.regions[0].parent = None
            op.regions = ()
        types = [renumbered(r.type, d) for r in op.results]
        copy = type(op).make(operands, attrs, types, regions, segments=op.segments, loc=op.loc)
        target.insert(copy)
        mapping.update(zip(op.results, copy.results))


def renumbered(type: TileType | ScratchType, d: int) -> TileType | ScratchType:
    """The type of a tile or a scratch with d and d+1 as one dimension."""
    return replace(type, dims=tuple(dict.fromkeys(n if n <= d else n - 1 for n in type.dims)))


def without(map: AffineMap, d: int) -> AffineMap:
    """The map over the merged domain: the dimensions after d are renumbered, and d+1 no longer occurs."""
    return map.replace_dims({n: loop.coordinate(n - 1) for n in range(d + 2, map.dims)}, map.dims - 1)


PASS = Pass(run, takes=LOOP, gives=LOOP, whole=False)
