"""Decide in which order the axes of each tensor between kernels are in memory.

takes  FUSED
gives  FUSED; a tensor that is not in row-major order is handed over transposed
why    a product whose channels lie in vectors, and all that works on its result, reads and writes memory in order

A product with a factor in panels (hoist_constants) has the columns of the panels in vectors: the result is contiguous
along them, as an image whose channels are last. From there the choice is carried forward: a kernel follows the operands
that take the most memory. Arguments and results of public functions, and what others than kernels and calls of private
functions read, stay as they are, in row-major order.

Nothing but the type of the tensor changes, and the kernels at both of its ends: inside of them a transpose restores the
axes, which is an access map and no code.

An image that is padded for windows gets more channels, too, where pixels would lie at a distance that is a multiple of
a large power of two: the lines of a window would then be in very few sets of the first cache, and evict each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from mlc.dialects import func, tensor
from mlc.dialects.func import Func
from mlc.dialects.tensor.kernel import Kernel
from mlc.dialects.tensor.orders import lanes, terms_of_tiles
from mlc.dialects.tensor.packed import panels_of
from mlc.dialects.tensor.reduce import LANES_ACROSS, Reduce
from mlc.dialects.tensor.shape import inverse
from mlc.ir import sizes
from mlc.ir.affine import AffineMap, dim, dims_of
from mlc.ir.changes import allowed
from mlc.ir.core import Op, Symbol, Value, before
from mlc.ir.machine import LINE, Cpu
from mlc.ir.passes import Pass
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType
from mlc.passes.forms import FUSED


def run(module: Op) -> None:
    """Assign layouts to the tensors of a module in which a product has a factor in panels."""
    if next(module.inside(tensor.Unpack), None) is None:
        return
    layouts = Layouts(module)
    while not layouts.decide():
        pass
    layouts.carry_out()


Order = tuple[int, ...]
"""The axes of a tensor in memory, the contiguous one last."""


class Layouts:
    """The order of each tensor that is not in row-major order, and the tensors that have to be.

    Arguments of a private function have the layouts of the operands at its calls; if these differ, all are in row-major
    order, which is found out by deciding once more.

    private  functions that are only called, and not by themselves: their arguments and results may have any layout
    orders   the order of a tensor
    """

    def __init__(self, module: Op) -> None:
        self.functions = {f.sym_name: f for f in func.functions(module) if not f.is_declaration}
        self.calls: dict[str, list[func.Call]] = {}
        for call in module.inside(func.Call):
            self.calls.setdefault(call.callee, []).append(call)
        order = [f.sym_name for f in func.callees_first(module)]
        called = {name: i for i, name in enumerate(order) if name in self.calls}
        otherwise = {n for op in module.walk() if not isinstance(op, func.Call | Func)
                     for n in op.attrs.values() if isinstance(n, Symbol)}
        self.private = {name for name, f in self.functions.items() if not f.is_public and name in called
                        and name not in otherwise and len(f.body.blocks) == 1
                        and all(called.get(n, -1) < called[name] for n in func.references(f))}
        self.pinned: set[Value] = set()
        self.orders: dict[Value, Order] = {}
        self.allowed: dict[Kernel, bool] = {}              # each kernel is asked about once

    def decide(self) -> bool:
        """Decide about all functions; False if the calls of one do not agree, whose arguments are pinned now."""
        self.orders, self.seen = {}, set[str]()
        agreed = True
        for name, function in self.functions.items():
            if name not in self.private:
                agreed &= self._function(function)
        return agreed

    def _function(self, function: Func) -> bool:
        agreed = True
        for op in _host_ops(function):
            if isinstance(op, Kernel):
                self._kernel(op)
            elif isinstance(op, tensor.Reshape) and op.x in self.orders:
                order = order_of_view(op, self.orders[op.x])
                assert order is not None
                if order != row_major(op.result):
                    self.orders[op.result] = order
            elif isinstance(op, func.Call) and op.callee in self.private:
                agreed &= self._call(op)
        return agreed

    def _call(self, call: func.Call) -> bool:
        """Decide about a private function at its first call, and compare the others with that."""
        function, agreed = self.functions[call.callee], True
        first = call.callee not in self.seen
        for i, (v, argument) in enumerate(zip(call.args, function.args)):
            if first and v in self.orders and self._is_free(argument, self.orders[v]):
                self.orders[argument] = self.orders[v]
            elif self.orders.get(v) != self.orders.get(argument):
                self.pinned |= {argument, *(c.args[i] for c in self.calls[call.callee])}
                agreed = False
        if first:
            self.seen.add(call.callee)
            agreed &= self._function(function)
        for result, v in zip(call.results, function.block.terminator.operands):
            if v in self.orders:
                if self._is_free(result, self.orders[v]):
                    self.orders[result] = self.orders[v]
                else:
                    self.pinned |= {v, result}
                    agreed = False
        return agreed

    def _kernel(self, kernel: Kernel) -> None:
        """Have the results of a kernel contiguous along the dimension that it prefers."""
        along = self._along(kernel)
        if along is None or kernel.update_of_piece() is not None or kernel.scatter() is not None:
            return
        held = {op.attrs.get("materialize") for op in kernel.body.block}     # values for later stages, row-major
        for i, (v, map) in enumerate(zip(kernel.results, kernel.result_maps)):
            if i in held or dim(along) not in map[:-1] or all(n == 1 for n in v.type.shape[map.index(dim(along)) + 1:]):
                continue
            if self._is_free(v, order := with_last(v, map.index(dim(along)))):
                if kernel not in self.allowed:
                    self.allowed[kernel] = allowed("layout", kernel)
                if self.allowed[kernel]:
                    self.orders[v] = order

    def _along(self, kernel: Kernel) -> int | None:
        """The dimension of the columns of a factor in panels, or of the channels of an image that tiles read, else that
        along which most operands are contiguous; None if all of them are in row-major order."""
        for op in kernel.body.block:
            if isinstance(op, tensor.DotGeneral) and (found := columns_in_panels(op)) is not None:
                return found
        if (found := channels_of_blocks(kernel)) is not None:
            return found
        if not any(v in self.orders for v in kernel.ins):
            return None
        votes = Counter[int]()
        for v, reads in zip(kernel.ins, kernel.staging().reads().values()):
            axis = self.orders.get(v, row_major(v))[-1] if v.type.rank else -1
            for at in {at for _, at in reads if at}:
                index = at[axis]
                if index is None and len(at) == len(kernel.result_maps[0]):      # padded or concatenated along it
                    index = kernel.result_maps[0][axis]
                for d in [d for d, kind in enumerate(kernel.iterator_types) if kind == "parallel" and index == dim(d)]:
                    votes[d] += (v.type.size if v.type.is_static else UNKNOWN) * 2 + (v in self.orders)
        return max(votes, key=lambda d: votes[d]) if votes else None

    def _is_free(self, v: Value, order: Order) -> bool:
        """Whether only kernels, views that have such an order, and calls of private functions read a tensor, and no
        kernel reads rows of it."""
        if v in self.pinned or not isinstance(v.type, TensorType):
            return False
        for op, i in v.uses:
            if isinstance(op, tensor.Reshape):
                there = order_of_view(op, order)
                if there is None or not self._is_free(op.result, there):
                    return False
            elif isinstance(op, Kernel):
                if order != row_major(v) and self._reads_rows(op, i, order[-1]):
                    return False
            elif not ((isinstance(op, func.Call) and op.callee in self.private)
                      or (isinstance(op, func.Return) and op.enclosing(Func).sym_name in self.private)):
                return False
        return True

    def _reads_rows(self, kernel: Kernel, i: int, axis: int) -> bool:
        """Whether a kernel is to read an operand in row-major order: one that adds along its last axis in lanes, unless
        each lane can be a vector of its own, or one of padded windows whose results are in row-major order, too."""
        ops = list(kernel.body.block)
        reduces = [op for op in ops if isinstance(op, Reduce)]
        if not reduces:
            return False
        maps = {at for _, at in [*kernel.staging().reads().values()][i] if at}
        most = LANES_ACROSS if kernel.staging().count == 1 else 1
        if any(lanes(op.order or "chain") > most for op in reduces):
            return any(at[-1] is None or any(kernel.iterator_types[d] == "reduction" for d in dims_of(at[-1]))
                       for at in maps)
        if not any(isinstance(op, tensor.Pad) for op in ops):
            return False
        along = next((at[axis] for at in maps), None)
        return not all(along in map and self._is_free(v, with_last(v, map.index(along)))
                       for v, map in zip(kernel.results, kernel.result_maps))

    # -- carrying out ---------------------------------------------------------------------------------------------
    def carry_out(self) -> None:
        """Change the types of the tensors, and restore their axes in the kernels."""
        for v, order in self.orders.items():
            if isinstance(v.op, Kernel) and _evicts_itself(v.op, order[-1]) and allowed("spread", v.op):
                _add_channels(v.op, order[-1])
            if isinstance(v.op, Kernel):
                _transpose_result(v.op, v.op.results.index(v), order)
            for kernel in dict.fromkeys(op for op, _ in v.uses if isinstance(op, Kernel)):
                for i in [i for op, i in v.uses if op is kernel]:
                    _transpose_operand(kernel, i, order)
            v.type = v.type.with_shape(v.type.shape[a] for a in order)
            if isinstance(v.op, tensor.Reshape):
                v.op.shape = v.type.shape
        for name in self.private:
            self.functions[name].update_type()


UNKNOWN = 1 << 16
"""Assumed elements of a tensor of unknown size."""
NEAR = Cpu.l1_way_bytes // 2
"""A distance in bytes, at multiples of which lines have at most two sets of the first cache."""


def _host_ops(function: Func) -> Iterator[Op]:
    """The operations of a function outside of kernels, in order."""
    work = [op for block in function.body.blocks for op in block][::-1]
    while work:
        op = work.pop()
        yield op
        if not isinstance(op, Kernel):
            work += [inner for region in op.regions for block in region.blocks for inner in block][::-1]


def row_major(v: Value) -> Order:
    return tuple(range(v.type.rank))


def with_last(v: Value, axis: int) -> Order:
    """The order of a tensor in which an axis is contiguous, and the others are as they were."""
    return (*(a for a in range(v.type.rank) if a != axis), axis)


def order_of_view(op: tensor.Reshape, order: Order) -> Order | None:
    """The order that a view has if its operand has this one; None if it is no view of that, since axes that it merges
    do not follow each other."""
    ones = next((a for a, n in enumerate(op.shape) if n != 1), len(op.shape))
    there = [*range(ones)]
    place = {axis: i for i, axis in enumerate(a for a in order if op.x.type.shape[a] != 1)}
    for old, new in sorted(_groups(op.x.type.shape, op.shape, ones), key=lambda group: place[group[0][0]]):
        if [place[a] for a in old] != [*range(place[old[0]], place[old[0]] + len(old))]:
            return None
        there += new
    return tuple(there)


def _groups(old: Sequence[Dim], new: Sequence[Dim], start: int) -> Iterator[tuple[list[int], list[int]]]:
    """The axes of a tensor and those of a view of it, from one on, that have the same elements, as few as possible at a
    time. Axes of one element are left out of the tensor's; of the view's, each is with the axis before it."""
    axes = [a for a, n in enumerate(old) if n != 1]
    ends = {sizes.product(new[:a + 1]): a + 1 for a in range(len(new))}
    first = 0
    for i in range(len(axes)):
        end = ends.get(sizes.product(old[:axes[i] + 1]))
        if end is not None:
            yield axes[first:i + 1], [*range(start, end)]
            first, start = i + 1, end


def columns_in_panels(op: tensor.DotGeneral) -> int | None:
    """The dimension of a product whose columns a factor has in panels."""
    before = len(op.batch)
    for side, v in enumerate(op.operands):
        if (panels := panels_of(v, widened=True)) is not None:
            axis = panels.axis + v.type.rank - panels.result.type.rank
            if axis in op.free(side):
                return before + op.free(side).index(axis)
        before += len(op.free(side))
    return None


def channels_of_blocks(kernel: Kernel) -> int | None:
    """The dimension of a kernel that pads an image along which blocks of terms are read by all of its readers, products
    on tiles; None for other kernels."""
    if len(kernel.results) != 1 or not isinstance(kernel.body.block.terminator.operands[0].op, tensor.Pad):
        return None
    axes = set[int | None]()
    for reader, i in kernel.results[0].uses:
        products = list(reader.inside(tensor.DotGeneral)) if isinstance(reader, Kernel) else []
        blocks = any(op.order is not None and terms_of_tiles(op.order) is not None for op in products)
        reads = reader.indexing_maps[i].results if isinstance(reader, Kernel) and blocks else ()
        last = dim(len(reader.domain) - 1) if isinstance(reader, Kernel) else None
        axes.add(next((axis for axis, e in enumerate(reads) if e == last), None))
    axis = axes.pop() if len(axes) == 1 else None
    if axis is None:
        return None
    at = kernel.result_maps[0][axis]
    return next((d for d in range(len(kernel.domain)) if at == dim(d)), None)


def _evicts_itself(kernel: Kernel, axis: int) -> bool:
    """Whether the result of a kernel, contiguous along an axis, is a padded image that is only read in windows, and the
    lines of a window would be in few sets of a cache."""
    *reads, written = kernel.indexing_maps
    result, yielded = kernel.results[0], kernel.body.block.terminator.operands[0]
    type = result.type
    return (len(kernel.results) == 1 and isinstance(yielded.op, tensor.Pad)
            and type.is_static and type.shape[axis] * type.dtype.itemsize % NEAR == 0
            and all(e == dim(d) or n == 1 for d, (e, n) in enumerate(zip(written.results, type.shape)))
            and not any(map.results for map in reads)
            and all(isinstance(op, Kernel) and any(len(dims_of(e)) > 1 for e in op.indexing_maps[i].results)
                    for op, i in result.uses))


def _add_channels(kernel: Kernel, axis: int) -> None:
    """Have a kernel that pads an image pad it along another axis, too: by a line of elements that nothing reads."""
    result, pad = kernel.results[0], kernel.body.block.terminator.operands[0].op
    assert isinstance(pad, tensor.Pad)
    old, count = result.type.shape, LINE // result.type.dtype.itemsize
    pad.high = (*pad.high[:axis], pad.high[axis] + count, *pad.high[axis + 1:])
    kernel.domain = (*old[:axis], old[axis] + count, *old[axis + 1:])
    result.type = pad.result.type = result.type.with_shape(kernel.domain)
    for reader, i in list(result.uses):
        assert isinstance(reader, Kernel)
        argument, block = reader.body.block.args[i], reader.body.block
        uses = list(argument.uses)
        argument.type = result.type
        assert block.first is not None
        with before(block.first, reader.loc):
            part = tensor.Slice(argument, (0,) * len(old), old, (1,) * len(old)).result
        for op, at in uses:
            op.set_operand(at, part)


def _transpose_result(kernel: Kernel, i: int, perm: tuple[int, ...]) -> None:
    """Have a kernel yield a result with its axes in another order."""
    terminator = kernel.body.block.terminator
    with before(terminator, terminator.loc):
        terminator.set_operand(i, tensor.Transpose(terminator.operands[i], perm).result)
    _permute_map(kernel, len(kernel.ins) + i, perm)


def _transpose_operand(kernel: Kernel, i: int, perm: tuple[int, ...]) -> None:
    """Have a kernel take an operand with its axes in another order."""
    argument, block = kernel.body.block.args[i], kernel.body.block
    uses = list(argument.uses)
    argument.type = argument.type.with_shape(argument.type.shape[p] for p in perm)
    assert block.first is not None
    with before(block.first, kernel.loc):
        restored = tensor.Transpose(argument, inverse(perm)).result
    for op, at in uses:
        op.set_operand(at, restored)
    _permute_map(kernel, i, perm)


def _permute_map(kernel: Kernel, i: int, perm: tuple[int, ...]) -> None:
    map = kernel.indexing_maps[i]
    if map.results:
        changed = AffineMap.get(map.dims, [map.results[p] for p in perm])
        kernel.indexing_maps = (*kernel.indexing_maps[:i], changed, *kernel.indexing_maps[i + 1:])


PASS = Pass(run, takes=FUSED, gives=FUSED, whole=False)
