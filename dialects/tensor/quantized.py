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
from mlc.dialects.tensor.encodings import ENCODINGS, GROUP, Encoding, decode, parts_of_rows
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
    integer times d. Integers are multiplied exactly, and the scales after that (dot_blocks). The cotangent of x is that
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
            pairs = q.reshape(*x.shape[:-1], x.shape[-1] // 2, 2)
            spread = np.broadcast_to(scale, (*blocks.shape[:-1], GROUP)).reshape(pairs.shape[:-1])
            sums = spread * pairs.sum(-1).astype(np.float32)
        return dot_of_pairs(pairs, spread, sums, np.asarray(w), layout)

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
        low, high = self._pairs(q, (*lead, terms // 2))
        packed = tensor.Or(tensor.And(low, full(0xFFFF, low)).result, tensor.Shl(high, full(16, high)).result).result
        each = reshape(broadcast_to(reshape(scale, (*shape[:-1], 1)), (*shape[:-1], GROUP)), (*lead, terms // 2))
        sums = each * cast(low + high, f32)
        return DotBlocks(packed, each, sums, self.w, self.encoding).result

    def _pairs(self, q: Value, shape: tuple[Dim, ...]) -> tuple[Value, Value]:
        """The first and the second integers of pairs, of integers in blocks [.., 32]."""
        *lead, _ = q.type.shape
        split = reshape(q, (*lead, GROUP, 2))
        axis = len(lead) + 1
        out = []
        for i in (0, 1):
            starts = [i if a == axis else 0 for a in range(split.type.rank)]
            stops = [i + 1 if a == axis else n for a, n in enumerate(split.type.shape)]
            out.append(reshape(tensor.Slice(split, tuple(starts), tuple(stops), (1,) * split.type.rank).result, shape))
        return out[0], out[1]

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
        w = operands[3]
        x, scale, sums = (v if own else broadcast_to(v, (batch_size, *v.type.shape))
                          for v, own in zip(operands[:3], batched))
        if not batched[3]:
            return DotBlocks(x, scale, sums, w, self.encoding).result
        return own_matrix(DotBlocks(x, scale, sums, all_rows(w), self.encoding).result, batch_size, w)


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
