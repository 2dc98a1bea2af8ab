"""tensor, quantized: numbers of quantised tensors, whose blocks are bytes in memory (encodings.py), and products with
them.

A product may be exact, `dot_general` of `dequantize`, or one of integers, `quantized_dot`, which rounds the other
factor to 8 bits: the choice is that of whoever writes the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor.base import Array, TensorOp, broadcast_to, cast, full, leading, reshape, shape_text
from mlc.dialects.tensor.composite import Composite
from mlc.dialects.tensor.encodings import ENCODINGS, GROUP, Encoding, decode, groups_of_rows, parts_of_rows
from mlc.dialects.tensor.iteration import IndexingMap, IterationDomain
from mlc.dialects.tensor.orders import tree
from mlc.dialects.tensor.traits import Cost, Iteration
from mlc.ir import sizes
from mlc.ir.affine import dim
from mlc.ir.core import Value
from mlc.ir.exact import fma
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType, f32, i32, i64, ui8


def numbers_in_row(op: TensorOp, blocks: TensorType, encoding: str) -> int:
    """How many numbers a row of blocks has; IRError if it is none."""
    if encoding not in ENCODINGS:
        op.refuse(f"there is no encoding {encoding!r}", "MLC0923", hint="one of " + ", ".join(ENCODINGS))
    if blocks.dtype != ui8:
        op.refuse(f"blocks are ui8, not {blocks.dtype}", "MLC0113")
    layout, row = ENCODINGS[encoding], blocks.shape[-1] if blocks.rank else 1
    if not isinstance(row, int) or row % layout.bytes:
        op.refuse(f"the last axis of {shape_text(blocks.shape)} is no sequence of blocks of {layout.bytes} bytes",
                  "MLC0923", symbols=sizes.symbols(row))
    return row // layout.bytes * layout.elements


class Dequantize(TensorOp, name="tensor.dequantize"):
    """result[.., i] = number i of the row of blocks x[..]

    `encoding` says how many numbers a block has, and how they follow from its bytes: q8_0, q4_0, q4_1, q4_k, q5_k or
    q6_k (encodings.py). Every kernel that reads the result has the operation in it, so that nothing but the blocks is
    read from memory.

        %r = tensor.dequantize %x {encoding = "q8_0"} : (tensor<Bx68xui8>) -> tensor<Bx64xf32>
    """

    x: Value
    encoding: str
    format = "$x attr-dict `:` functional-type"
    vmap = leading
    cost = Cost.FREE
    iteration = Iteration.INDEXED
    moves_elements = True
    checked_operand = None
    encoded_operand = 0

    @property
    def layout(self) -> Encoding:
        return ENCODINGS[self.encoding]

    def infer(self) -> TensorType:
        x, = self.tensors()
        return TensorType((*x.shape[:-1], numbers_in_row(self, x, self.encoding)), f32)

    def ref(self, x: Any) -> Array:
        return decode(np.asarray(x), self.layout)

    def fold(self) -> Value | Array | None:
        arrays = self.constants()
        return None if arrays is None else self.ref(*arrays)

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        return [(*at[:-1], None)]

    def vjp(self, ct: Value) -> list[Value | None]:
        return [None]


class QuantizedDot(Composite, name="tensor.quantized_dot"):
    """result[.., n] = the sum over k of x[.., k] * number k of the row of blocks w[n], with x rounded to 8 bits

    Of each 32 numbers of x in a row, with the greatest magnitude a, d = a / 127, and each is rounded to the nearest
    integer times d. Integers are multiplied exactly, and the scales after that (dot_groups). The cotangent of x is that
    of the exact product.

        %r = tensor.quantized_dot %x, %w {encoding = "q8_0"} : (tensor<Bx64xf32>, tensor<9x68xui8>) -> tensor<Bx9xf32>
    """

    x: Value
    w: Value
    encoding: str
    format = "$x `,` $w attr-dict `:` functional-type"

    def infer(self) -> TensorType:
        x, w = self.tensors()
        if x.dtype != f32 or not x.rank or w.rank != 2:
            self.refuse(f"takes rows of f32 and a matrix of blocks, not {x} and {w}", "MLC0113")
        if (terms := numbers_in_row(self, w, self.encoding)) != x.shape[-1]:
            self.refuse(f"rows of {x.shape[-1]} and of {terms} numbers have no product", "MLC0115",
                        symbols=sizes.symbols(x.shape[-1]))
        return TensorType((*x.shape[:-1], w.shape[0]), f32)

    def ref(self, x: Any, w: Any) -> Array:
        """The same arithmetic as the decomposition, which is exact up to rounding that both do."""
        x, layout = np.asarray(x), ENCODINGS[self.encoding]
        with np.errstate(all="ignore"):
            blocks = x.reshape(*x.shape[:-1], x.shape[-1] // BLOCK, BLOCK)
            scale = np.abs(blocks).max(-1, keepdims=True) / np.float32(MOST)
            rounded = np.clip(np.rint(blocks / scale), -MOST, MOST)
            q = np.where(np.isnan(rounded), 0, rounded).astype(np.int32)
            groups = q.reshape(*x.shape[:-1], x.shape[-1] // layout.group, layout.group)
            spread = np.broadcast_to(scale, (*blocks.shape[:-1], BLOCK // layout.group)).reshape(groups.shape[:-1])
        return dot_of_groups(groups, spread, sums_of(groups, spread, layout), np.asarray(w), layout)

    def decompose(self) -> Value:
        *lead, terms = self.x.type.shape
        shape = (*lead, terms // BLOCK, BLOCK)
        blocks = reshape(self.x, shape)
        axis = len(shape) - 1
        most = tensor.ReduceMax(tensor.Abs(blocks).result, (axis,)).result
        scale = most / full(float(MOST), most)
        wide = broadcast_to(reshape(scale, (*shape[:-1], 1)), shape)
        rounded = tensor.Round(blocks / wide).result
        above = tensor.Maximum(rounded, full(float(-MOST), rounded)).result
        q = cast(tensor.Minimum(above, full(float(MOST), rounded)).result, i32)
        layout = ENCODINGS[self.encoding]
        groups = (*lead, terms // layout.group)
        each = reshape(broadcast_to(reshape(scale, (*shape[:-1], 1)), (*shape[:-1], BLOCK // layout.group)), groups)
        total = tensor.ReduceSum(reshape(q, (*groups, layout.group)), (len(groups),)).result
        sums = each * cast(total, f32) if layout.minima else total * full(-layout.zero, total)
        quads = reshape(in_words(reshape(q, (*shape[:-1], BLOCK // 4, 4))), (*lead, terms // 4))
        return DotGroups(quads, each, sums, self.w, self.encoding).result

    def vjp(self, ct: Value) -> list[Value | None]:
        """That of the exact product: the derivative of rounding itself is 0 or does not exist."""
        numbers, rank = Dequantize(self.w, self.encoding).result, ct.type.rank
        return [tensor.DotGeneral(ct, numbers, (), ((rank - 1, 0),)).result, None]

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        x, w = operands
        if not batched[1]:
            return QuantizedDot(x, w, self.encoding).result
        x = x if batched[0] else broadcast_to(x, (batch_size, *x.type.shape))
        return own_matrix(QuantizedDot(x, all_rows(w), self.encoding).result, batch_size, w)


BLOCK, MOST = 32, 127
"""Numbers of a row that are rounded together, and the greatest integer."""


def in_words(q: Value) -> Value:
    """Integers [.., n] of 32 / n bits each, with sign, in an i32, the first in the low bits."""
    *_, count = q.type.shape
    width = 32 // count
    out: Value | None = None
    for i in range(count):
        part = _element(q, i)
        part = tensor.And(part, full((1 << width) - 1, part)).result if i < count - 1 else part
        part = tensor.Shl(part, full(width * i, part)).result if i else part
        out = part if out is None else tensor.Or(out, part).result
    assert out is not None
    return out


def _element(q: Value, i: int) -> Value:
    """[.., n] at i of the last axis."""
    *lead, _ = q.type.shape
    rank = len(lead)
    cut = tensor.Slice(q, (*(0,) * rank, i), (*lead, i + 1), (1,) * (rank + 1)).result
    return reshape(cut, tuple(lead))


def sums_of(groups: Array, scale: Array, layout: Encoding) -> Array:
    """The operand `sums` of `dot_groups` for integers in groups [.., n, group] and their scales [.., n]."""
    total = groups.sum(-1, dtype=np.int32)
    return np.asarray(scale * total.astype(np.float32) if layout.minima else total * np.int32(-layout.zero))


def dot_of_groups(x: Array, scale: Array, sums: Array, w: Array, layout: Encoding) -> Array:
    """The sums of `dot_groups` of integers in groups [.., n, group]."""
    q, s, t = groups_of_rows(w, layout)
    lead, count = x.shape[:-2], x.shape[-2]
    x, scale, sums = x.reshape(prod(lead), count, x.shape[-1]), *(v.reshape(prod(lead), count) for v in (scale, sums))
    total = np.zeros((len(x), len(q)), np.float32)
    with np.errstate(all="ignore"):
        for g in range(count):
            dots = x[:, g].astype(np.int32) @ q[:, g].astype(np.int32).T
            own = np.broadcast_to(sums[:, g, None], total.shape)
            dots = dots + own if t is None else dots
            total = np.asarray(fma(dots.astype(np.float32), scale[:, g, None] * s[None, :, g], total))
            if t is not None:
                total = np.asarray(fma(np.broadcast_to(-t[None, :, g], total.shape), own, total))
    return total.reshape(*lead, len(q))


class DotGroups(TensorOp, name="tensor.dot_groups"):
    """result[.., n] = the sum over g of (sums[.., g] + the sum over k of x[.., g, k] * q[n, g, k]) * scale[.., g] * s[n, g]

    x[.., i] has four integers of 8 bits, the first in the low ones. q are the integers of the row of blocks w[n] in
    groups that share a scale s, as bytes without sign: those of encodings.py plus `zero`, so that sums has -zero times
    the sum of a group of x. What is in brackets is an exact integer. Groups are added in order, from 0: total =
    fma(the integer as f32, scale * s, total).

    If the encoding has minima, sums are of f32, scale times the sum of a group, and not part of the integer: after each
    group, total = fma(-t, sums, total) with its minimum t.

        %r = tensor.dot_groups %x, %s, %m, %w {encoding = "q8_0"} : (tensor<8xi32>, tensor<1xf32>, tensor<1xi32>, tensor<9x34xui8>) -> tensor<9xf32>
    """  # noqa: E501

    x: Value
    scale: Value
    sums: Value
    w: Value
    encoding: str
    format = "$x `,` $scale `,` $sums `,` $w attr-dict `:` functional-type"
    cost = Cost.EXPENSIVE
    iteration = Iteration.CONTRACT
    moves_elements = False
    checked_operand = None
    encoded_operand = 3

    @property
    def layout(self) -> Encoding:
        return ENCODINGS[self.encoding]

    def infer(self) -> TensorType:
        x, scale, sums, w = self.tensors()
        if w.rank != 2 or not x.rank:
            self.refuse(f"takes rows of integers and a matrix of blocks, not {x} and {w}", "MLC0113")
        terms = numbers_in_row(self, w, self.encoding)
        wanted = f32 if self.layout.minima else i32
        if (x.dtype, scale.dtype, sums.dtype) != (i32, f32, wanted):
            self.refuse(f"takes quads of i32, their scales in f32 and sums in {wanted}, not {x}, {scale} and {sums}",
                        "MLC0113")
        groups = terms // self.layout.group
        if x.shape[-1] != terms // 4 or not scale.shape == sums.shape == (*x.shape[:-1], groups):
            shapes = ", ".join(shape_text(v.shape) for v in (x, scale, sums))
            self.refuse(f"{shapes} are not rows of {terms // 4} quads and of {groups} groups", "MLC0115")
        return TensorType((*x.shape[:-1], w.shape[0]), f32)

    def iteration_domain(self) -> IterationDomain:
        shape = self.result.type.shape
        return IterationDomain((*shape, *self.scale.type.shape[-1:], self.layout.group // 4),
                               (len(shape), len(shape) + 1))

    def home(self, domain: IterationDomain) -> tuple[Dim, ...]:
        return tuple(domain.points[d] for d in domain.parallel)

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        if domain != self.iteration_domain():
            return (None,) * 4
        rows = tuple(0 if n == 1 else e for n, e in zip(self.x.type.shape[:-1], at))
        g, k = map(dim, domain.reduced)
        group = (*rows, g if self.scale.type.shape[-1] != 1 else 0)
        return ((*rows, g * (self.layout.group // 4) + k), group, group, (at[-1], None))

    def ref(self, x: Any, scale: Any, sums: Any, w: Any) -> Array:
        x = np.ascontiguousarray(x, "<i4")
        groups = x.view(np.int8).reshape(*np.shape(scale), self.layout.group)
        return dot_of_groups(groups, np.asarray(scale), np.asarray(sums), np.asarray(w), self.layout)

    def fold(self) -> Value | Array | None:
        arrays = self.constants()
        return None if arrays is None else self.ref(*arrays)

    def vjp(self, ct: Value) -> list[Value | None]:
        return [None] * 4

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        return with_own_matrix(self, batch_size, operands, batched)

    def in_lanes(self) -> Value:
        """The same with the products of pairs added in lanes, which threads of a GPU share (dot_blocks)."""
        *lead, count = self.x.type.shape
        apart = broadcast_to(reshape(self.x, (*lead, count, 1)), (*lead, count, 2))
        first = tensor.Shl(tensor.Iota(apart.type.shape, len(lead) + 1, i32).result, full(4, apart)).result

        def integer(above: int) -> Value:
            """An integer of each pair, whose bits have `above` more to the left in the last pair of a quad."""
            left = tensor.Shl(apart, full(16 + above, apart) - first).result
            return reshape(tensor.Shr(left, full(24, left)).result, (*lead, 2 * count))

        low, high = integer(8), integer(0)
        each = reshape(broadcast_to(reshape(self.scale, (*self.scale.type.shape, 1)),
                                    (*self.scale.type.shape, self.layout.group // 2)), (*lead, 2 * count))
        joined = tensor.Or(tensor.And(low, full(0xFFFF, low)).result, tensor.Shl(high, full(16, high)).result).result
        return DotBlocks(joined, each, each * cast(low + high, f32), self.w, self.encoding).result


def dot_of_pairs(x: Array, scale: Array, sums: Array, w: Array, layout: Encoding) -> Array:
    """The sums of `dot_blocks` of pairs x [.., n, 2]."""
    q, s, t = parts_of_rows(w, layout)
    lead, count = x.shape[:-2], x.shape[-2]
    rows = prod(lead)
    pairs = x.reshape(rows, count, 2).astype(np.int64)
    scale, sums = (v.reshape(rows, 1, count) for v in (scale, sums))
    each = np.arange(count) * 2 // GROUP
    lanes = layout.elements // 2
    total = np.zeros((len(pairs), len(q), lanes), np.float32)
    with np.errstate(all="ignore"):
        for p in range(0, count, lanes):
            here = slice(p, p + lanes)
            dots = (pairs[:, None, here] * q[None, :, here].astype(np.int64)).sum(-1).astype(np.int32)
            total = np.asarray(fma(dots.astype(np.float32), scale[:, :, here] * s[None, :, each[here]], total))
            if t is not None:
                total = np.asarray(fma(-t[None, :, each[here]], sums[:, :, here], total))
    return tree(total, np.add).reshape(*lead, len(q))


class DotBlocks(TensorOp, name="tensor.dot_blocks"):
    """result[.., n] = the sum over p of (l * l' + h * h') * scale[.., p] * s - sums[.., p] * t

    x[.., p] has a pair of integers l and h in its low and high 16 bits; l', h', s and t are the pair p of the row of
    blocks w[n], its scale and its minimum, if the encoding has any (encodings.py). Pairs are added in L lanes, as many as
    a block has pairs, from 0: total = fma(l * l' + h * h', scale * s, total), then total = fma(-t, sums, total); then a
    tree, as of lanes<L>.

        %r = tensor.dot_blocks %x, %s, %m, %w {encoding = "q8_0"} : (tensor<16xi32>, tensor<16xf32>, tensor<16xf32>, tensor<9x34xui8>) -> tensor<9xf32>
    """  # noqa: E501

    x: Value
    scale: Value
    sums: Value
    w: Value
    encoding: str
    format = "$x `,` $scale `,` $sums `,` $w attr-dict `:` functional-type"
    cost = Cost.EXPENSIVE
    iteration = Iteration.CONTRACT
    moves_elements = False
    checked_operand = None
    encoded_operand = 3

    def infer(self) -> TensorType:
        x, scale, sums, w = self.tensors()
        if (x.dtype, scale.dtype, sums.dtype) != (i32, f32, f32) or w.rank != 2 or not x.rank:
            self.refuse(f"takes pairs of i32, their scales and sums in f32 and a matrix of blocks, not {x}, {scale}, "
                        f"{sums} and {w}", "MLC0113")
        pairs = numbers_in_row(self, w, self.encoding) // 2
        if not x.shape == scale.shape == sums.shape or x.shape[-1] != pairs:
            shapes = ", ".join(shape_text(v.shape) for v in (x, scale, sums))
            self.refuse(f"{shapes} are not rows of {pairs} pairs", "MLC0115")
        return TensorType((*x.shape[:-1], w.shape[0]), f32)

    def iteration_domain(self) -> IterationDomain:
        shape = self.result.type.shape
        return IterationDomain((*shape, self.x.type.shape[-1]), (len(shape),))

    def home(self, domain: IterationDomain) -> tuple[Dim, ...]:
        return tuple(domain.points[d] for d in domain.parallel)

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        if domain != self.iteration_domain():
            return (None,) * 4
        rows = tuple(0 if n == 1 else e for n, e in zip(self.x.type.shape, (*at[:-1], dim(domain.reduced[0]))))
        return (rows, rows, rows, (at[-1], None))

    def ref(self, x: Any, scale: Any, sums: Any, w: Any) -> Array:
        x = np.ascontiguousarray(x)
        pairs = np.stack([x.astype(np.int16), (x >> 16).astype(np.int16)], -1)
        return dot_of_pairs(pairs, np.asarray(scale), np.asarray(sums), np.asarray(w), ENCODINGS[self.encoding])

    def fold(self) -> Value | Array | None:
        arrays = self.constants()
        return None if arrays is None else self.ref(*arrays)

    def vjp(self, ct: Value) -> list[Value | None]:
        return [None] * 4

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        return with_own_matrix(self, batch_size, operands, batched)


def with_own_matrix(op: DotGroups | DotBlocks, batch_size: Dim, operands: Sequence[Value],
                    batched: Sequence[bool]) -> Value:
    """A batch of products."""
    w, kind = operands[3], type(op)
    x, scale, sums = (v if own else broadcast_to(v, (batch_size, *v.type.shape))
                      for v, own in zip(operands[:3], batched))
    if not batched[3]:
        return kind(x, scale, sums, w, op.encoding).result
    return own_matrix(kind(x, scale, sums, all_rows(w), op.encoding).result, batch_size, w)


def all_rows(w: Value) -> Value:
    """The rows of the matrices of a batch, as one matrix."""
    batch_size, rows, size = w.type.shape
    return reshape(w, (batch_size * rows, size))


def own_matrix(products: Value, batch_size: Dim, w: Value) -> Value:
    """Of products [batch, .., batch * n] with the rows of all matrices of a batch, those with the own one."""
    batch, *lead, _ = products.type.shape
    shape = (batch, *lead, batch_size, w.type.shape[1])
    own = tensor.Compare("eq", tensor.Iota(shape, 0, i64).result, tensor.Iota(shape, len(shape) - 2, i64).result).result
    spread = reshape(products, shape)
    kept = tensor.Select(own, spread, full(0, spread)).result
    return tensor.ReduceSum(kept, (len(shape) - 2,)).result
