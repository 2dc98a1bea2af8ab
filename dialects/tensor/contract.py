"""tensor, contract: tensor contractions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects.tensor import parts
from mlc.dialects.tensor.base import (
    Array,
    TensorOp,
    accumulator,
    batch_axis_first,
    broadcast_to,
    full,
    kind,
    reshape,
    rounded,
    shape_text,
)
from mlc.dialects.tensor.binary import Add, Mul
from mlc.dialects.tensor.iteration import IndexingMap, IterationDomain, aligned
from mlc.dialects.tensor.orders import block_of_matrices, dot_in_order, lanes, run_length, terms_in_block
from mlc.dialects.tensor.shape import BroadcastTo, Transpose, inverse, transpose
from mlc.dialects.tensor.traits import Cost, Iteration
from mlc.ir import sizes
from mlc.ir.affine import dim
from mlc.ir.core import Value
from mlc.ir.rewrite import rewrite
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType, f32, f64, i32, to_numpy


class DotGeneral(TensorOp, name="tensor.dot_general"):
    """result[b, i, j] = the sum over k of lhs[b, i, k] * rhs[b, j, k]

    `batch` and `contract` are the pairs (axis of lhs, axis of rhs) of b and k, in order; i and j are the other axes of
    lhs and rhs. `order` is the order in which floats are added (orders.py); fix_numerics sets it.

        %r = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]} : tensor<3x3xf32>
    """

    on_parts = parts.bilinear
    lhs: Value
    rhs: Value
    batch: tuple[tuple[int, int], ...]
    contract: tuple[tuple[int, int], ...]
    order: str | None = None
    format = "$lhs `,` $rhs attr-dict `:` functional-type"
    cost = Cost.EXPENSIVE
    iteration = Iteration.CONTRACT
    moves_elements = False
    checked_operand = None

    def infer(self) -> TensorType:
        lhs, rhs = self.tensors()
        if lhs.dtype != rhs.dtype:
            self.refuse(f"element types differ: {lhs.dtype} and {rhs.dtype}", "MLC0112",
                        hint="cast the operands to one type first")
        if kind(lhs.dtype) == "bool":
            self.refuse("does not work on i1, only on int and float elements", "MLC0113")
        for side, t in ((0, lhs), (1, rhs)):
            used = [pair[side] for pair in (*self.batch, *self.contract)]
            for axis in used:
                self.check_axis(axis, t.rank)
            if len(set(used)) < len(used):
                self.refuse(f"an axis of operand {side} is used twice in batch {list(self.batch)} and contract "
                            f"{list(self.contract)}", "MLC0114")
        for what, pairs in (("batch", self.batch), ("inner", self.contract)):
            for i, j in pairs:
                if lhs.shape[i] != rhs.shape[j]:
                    self.refuse(f"{what} sizes differ: {lhs.shape[i]} (axis {i} of {shape_text(lhs.shape)}) and "
                                f"{rhs.shape[j]} (axis {j} of {shape_text(rhs.shape)})", "MLC0115",
                                symbols=sizes.symbols(lhs.shape[i], rhs.shape[j]))
        if self.order is not None and (block := block_of_matrices(self.order)) is not None:
            terms = sizes.product(lhs.shape[i] for i, _ in self.contract)
            dtype = i32 if self.order.startswith("quads") else f32
            if lhs.dtype != dtype or not isinstance(terms, int) or terms % block:
                self.refuse(f"{self.order} adds whole blocks of {dtype}: not {terms} terms of {lhs.dtype}", "MLC0116")
        elif self.order is not None and terms_in_block(self.order) is None:
            terms = sizes.product(lhs.shape[i] for i, _ in self.contract)
            if run_length(self.order):
                self.refuse(f"a product of matrices is added in a chain, in lanes or in blocks, not in {self.order}",
                            "MLC0116")
            if lanes(self.order) > 1 and (not isinstance(terms, int) or terms % lanes(self.order)):
                self.refuse(f"{self.order} adds whole blocks of lanes: not {terms} terms", "MLC0116")
        return lhs.with_shape([*(lhs.shape[i] for i, _ in self.batch), *(lhs.shape[i] for i in self.free(0)),
                               *(rhs.shape[j] for j in self.free(1))])

    def iteration_domain(self) -> IterationDomain:
        """The dimensions of the result, and then the contracted ones."""
        shape = self.result.type.shape
        inner = tuple(self.lhs.type.shape[i] for i, _ in self.contract)
        return IterationDomain((*shape, *inner), tuple(range(len(shape), len(shape) + len(inner))))

    def combining_name(self) -> str:
        return "add"

    def home(self, domain: IterationDomain) -> tuple[Dim, ...]:
        return tuple(domain.points[d] for d in domain.parallel)

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        if domain != self.iteration_domain():
            return (None, None)
        maps: list[IndexingMap] = []
        start = len(self.batch)
        for side, v in enumerate(self.operands):
            free = self.free(side)
            place = dict(zip((pair[side] for pair in self.batch), at)) | dict(zip(free, at[start:])) | {
                pair[side]: dim(d) for pair, d in zip(self.contract, domain.reduced)}
            maps.append(aligned(v.type.shape, tuple(place[axis] for axis in range(v.type.rank))))
            start += len(free)
        return maps

    def free(self, side: int) -> list[int]:
        """The free axes of an operand (0: lhs, 1: rhs): those that are neither batch axes nor contracted."""
        used = {pair[side] for pair in (*self.batch, *self.contract)}
        return [i for i in range(self.operands[side].type.rank) if i not in used]

    def ref(self, lhs: Any, rhs: Any) -> Array:
        dtype = self.lhs.type.dtype
        shape = [*(lhs.shape[i] for i, _ in self.batch), *(lhs.shape[i] for i in self.free(0)),
                 *(rhs.shape[j] for j in self.free(1))]
        a, b = self._rows(0, lhs), self._rows(1, rhs)
        with np.errstate(all="ignore"):
            if kind(dtype) != "float":
                return np.asarray(np.matmul(a, b.transpose(0, 2, 1), dtype=to_numpy(dtype))).reshape(shape)
            if self.order is None:                         # in a type so wide that the order of numpy's sum is not seen
                wider = np.longdouble if dtype == f64 and a.shape[-1] > 1 else np.float64   # one is rounded once
                wide = np.matmul(rounded(a, f64).astype(wider), rounded(b, f64).astype(wider).transpose(0, 2, 1))
                narrow = rounded(wide.astype(np.float64), dtype)
                return np.add(narrow, np.zeros((), narrow.dtype)).reshape(shape)      # no sum is -0
            wide = dot_in_order(rounded(a, accumulator(dtype)), rounded(b, accumulator(dtype)), self.order)
        return rounded(wide, dtype).reshape(shape)

    def _rows(self, side: int, x: Array) -> Array:
        """An operand as [batch, free, contracted], with each group of axes flattened."""
        batch, free = [pair[side] for pair in self.batch], self.free(side)
        contract = [pair[side] for pair in self.contract]
        sizes = [int(np.prod([x.shape[i] for i in axes], dtype=np.int64)) for axes in (batch, free, contract)]
        # contiguous, as numpy's order of addition depends on strides
        return np.asarray(np.transpose(x, (*batch, *free, *contract)).reshape(sizes), order="C")

    def fold(self) -> Value | Array | None:
        arrays = None if kind(self.lhs.type.dtype) == "float" else self.constants()
        return None if arrays is None else np.asarray(self.ref(*arrays))

    def vjp(self, ct: Value) -> list[Value | None]:
        return [self._side(ct, 0), self._side(ct, 1)]

    def _side(self, ct: Value, side: int) -> Value:
        """d lhs[b, i, k] = the sum over j of ct[b, i, j] * rhs[b, j, k], transposed to the axes of lhs; rhs alike."""
        other = self.operands[1 - side]
        count, free, summed = len(self.batch), self.free(side), self.free(1 - side)
        at = count if side == 1 else count + len(free)            # first axis of ct that is summed over
        batch = tuple((i, pair[1 - side]) for i, pair in enumerate(self.batch))
        slope = DotGeneral(ct, other, batch, tuple((at + i, axis) for i, axis in enumerate(summed))).result
        remaining = sorted(self.contract, key=lambda pair: pair[1 - side])
        layout = [*(pair[side] for pair in self.batch), *free, *(pair[side] for pair in remaining)]
        return transpose(slope, inverse(layout))

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        """A batch axis of both operands is one more batch axis; a batch axis of one operand is one more free axis."""
        (lhs, rhs), (left, right) = operands, batched
        batch, contract = (tuple((i + left, j + right) for i, j in pairs) for pairs in (self.batch, self.contract))
        if left and right:
            return DotGeneral(lhs, rhs, ((0, 0), *batch), contract, self.order).result
        made = DotGeneral(lhs, rhs, batch, contract, self.order).result
        return batch_axis_first(made, len(batch) + (0 if left else len(self.free(0))))


@rewrite(DotGeneral)
def dot_of_nothing(op: DotGeneral) -> Value | None:
    """dot_general(x, y) == full(0), if a contracted size is 0"""
    if any(op.lhs.type.shape[i] == 0 for i, _ in op.contract):
        return full(0, op.result, op.result.type.shape)
    return None


@rewrite(DotGeneral)
def dot_of_single_terms(op: DotGeneral) -> Value | None:
    """dot_general(x, y) == x * y + 0, if all contracted sizes are 1; the sum of the term -0 alone is 0

    An outer product, such as a weight's gradient for one sample, is limited by memory, and fuses with what reads it.
    """
    if any(op.lhs.type.shape[i] != 1 for i, _ in op.contract):
        return None
    product = Mul(_spread(op, 0), _spread(op, 1)).result
    if kind(product.type.dtype) != "float":
        return product
    return Add(product, full(0, product, op.result.type.shape)).result


def _spread(op: DotGeneral, side: int) -> Value:
    """An operand without contracted elements, broadcast to the shape of the result."""
    x, free, others = op.operands[side], op.free(side), [1] * len(op.free(1 - side))
    batch, contract = ([pair[side] for pair in pairs] for pairs in (op.batch, op.contract))
    lead, own = ([x.type.shape[i] for i in axes] for axes in (batch, free))
    shape = [*lead, *own, *others] if side == 0 else [*lead, *others, *own]
    return broadcast_to(reshape(transpose(x, [*batch, *free, *contract]), shape), op.result.type.shape)


@rewrite(DotGeneral)
def product_with_repeated(op: DotGeneral) -> Value | None:
    """dot_general(x, broadcast_to(y)) == dot_general(x, y) without the batch axes along which y is broadcast

    So batch elements share one read of y. Only if the axes of the result keep their order.
    """
    for side in (0, 1):
        source, other = op.operands[side].op, 1 - side
        if not isinstance(source, BroadcastTo) or op.order is not None:
            continue
        new_axes = source.result.type.rank - source.x.type.rank
        kept = tuple(pair for pair in op.batch if pair[side] >= new_axes)
        dropped = [pair for pair in op.batch if pair[side] < new_axes]
        freed = [pair[other] for pair in dropped]
        in_order = op.batch == (*kept, *dropped) and freed == sorted(freed) and not any(
            a < freed[-1] for a in op.free(other)) if dropped else False
        if not in_order or (side == 0 and op.free(0)):
            continue
        left = [a for a in range(source.result.type.rank) if a not in [pair[side] for pair in dropped]]
        y = broadcast_to(source.x, [source.shape[a] for a in left])
        batch, contract = (tuple((left.index(i), j) if side == 0 else (i, left.index(j)) for i, j in pairs)
                           for pairs in (kept, op.contract))
        return DotGeneral(y if side == 0 else op.lhs, op.rhs if side == 0 else y, batch, contract).result
    return None


@rewrite(Transpose)
def transpose_of_product(op: Transpose) -> Value | None:
    """transpose(dot_general(x, y)) == dot_general(y, x), if it moves the free axes of y before those of x"""
    product = op.x.op
    if not isinstance(product, DotGeneral) or len(product.result.uses) > 1 or product.order is not None:
        return None
    batch, left, right = len(product.batch), len(product.free(0)), len(product.free(1))
    order = [*range(batch), *range(batch + left, batch + left + right), *range(batch, batch + left)]
    if list(op.perm) != order:
        return None
    batch_pairs, contract = (tuple((b, a) for a, b in pairs) for pairs in (product.batch, product.contract))
    return DotGeneral(product.rhs, product.lhs, batch_pairs, contract).result
