"""Lowering of attention, and of its derivative, block by block (tensor.flash_attention and what goes with it).

The dimensions of a kernel are those of the result, of which the last two are rows, that is queries or keys, and
features; then the rows of the other kind, which a loop goes through block by block, and the terms of a score, all of
which are one block.
"""

from __future__ import annotations

import math as numbers
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mlc.dialects import arith, loop, math
from mlc.dialects import tensor as tn
from mlc.dialects.loop import TileType
from mlc.ir.affine import AffineMap
from mlc.ir.core import Block, Region, Value, at_end, builder
from mlc.ir.sizes import Dim
from mlc.ir.types import f32, index

if TYPE_CHECKING:
    from mlc.passes.tensor_to_loop.evaluate import KernelBuilder


def flash_attention(kernel: KernelBuilder, op: tn.FlashAttention) -> Value:
    """The result of attention at a point."""
    return _Attention(kernel, op).result()


def attention_statistics(kernel: KernelBuilder, op: tn.AttentionStatistics) -> Value:
    """The numbers of a query from which its weights are computed again."""
    return _Statistics(kernel, op).result()


def flash_attention_grad(kernel: KernelBuilder, op: tn.FlashAttentionGrad) -> Value:
    """A cotangent at a point."""
    return _Gradient(kernel, op).result()


class _Blocks:
    """A kernel of attention or of its derivative."""

    def __init__(self, kernel: KernelBuilder,
                 op: tn.FlashAttention | tn.AttentionStatistics | tn.FlashAttentionGrad) -> None:
        self.kernel, self.node = kernel, op
        self.features = len(kernel.shape) - 1
        self.row, self.other, self.term = self.features - 1, self.features + 1, self.features + 2
        self.rows = tuple(d for d, n in enumerate(kernel.shape[: self.features]) if n != 1 or d == self.row)
        self.maps = op.operand_maps(op.home(kernel.domain), kernel.domain)

    def full(self, value: float, *more: int) -> Value:
        """A number for each row, and each point of some dimensions more."""
        return loop.Full(value, TileType((*self.rows, *more), f32)).result

    def operand(self, i: int, term: int | None = None) -> Value:
        """The tile of an operand, with another dimension for that of the terms of a score."""
        at = self.kernel.index_at(self.maps[i])
        if term is not None:
            at = (*at[:-1], loop.coordinate(term))
        return self.kernel.value(self.node.operands[i], at, None)

    def through(self, inits: Sequence[Value], block: Callable[[Sequence[Value]], Sequence[Value]],
                until: AffineMap | None = None) -> list[Value]:
        """Carry tiles through all blocks of the other rows."""
        return self.loop(self.term, inits, lambda carried: self.loop(self.other, carried, block, until))

    def loop(self, dim: int, inits: Sequence[Value], body: Callable[[Sequence[Value]], Sequence[Value]],
             until: AffineMap | None = None) -> list[Value]:
        """A loop over a dimension of terms that carries several tiles."""
        block = Block([v.type for v in inits])
        outer = dict(self.kernel.memo)
        with at_end(block, builder.loc):
            loop.Yield(tuple(body(block.args)))
        self.kernel.memo = outer
        return list(loop.For(tuple(inits), Region(block), dim=dim, until=until).results)

    def product(self, rows: Value, others: Value) -> Value:
        """A number for each row and each of the others: the product of their terms."""
        return loop.Mma(self.full(0.0, self.other), rows, others, dim=self.term).result

    def visible(self, scores: Value, count: Dim, key_is_row: bool = False) -> Value:
        """The scores of a block, -inf beyond the last of the other rows, and for keys later than a query."""
        op = self.node
        whole = isinstance(count, int) and count % op.block == 0
        if not whole:
            inside = loop.InBounds(dim=self.other).result
            scores = self.kernel.map([inside, scores], lambda c, s: arith.Select(
                c, s, arith.constant(-numbers.inf, f32)).result)
        if op.causal:
            key, query = (self.row, self.other) if key_is_row else (self.other, self.row)
            later = self.kernel.index(loop.coordinate(key) - loop.coordinate(query))

            def chosen(n: Value, s: Value) -> Value:
                out = arith.CmpI("sgt", n, arith.constant(0, index)).result
                return arith.Select(out, arith.constant(-numbers.inf, f32), s).result

            scores = self.kernel.map([later, scores], chosen)
        return scores

    def scaled(self, x: Value) -> Value:
        """A scalar times c."""
        return arith.MulF(x, arith.constant(self.node.factor, f32)).result

    def weight(self, s: Value, t: Value) -> Value:
        """2^((s - t) c) of scalars; s c - t c, one operation less, would have the rounding error of a large number."""
        return math.Exp2(self.scaled(arith.SubF(s, t).result)).result

    def narrow(self, tile: Value) -> Value:
        """A factor of a product on tensor cores."""
        dtype = self.node.q.type.dtype
        return self.kernel.map([tile], lambda x: arith.TruncF(x, dtype).result)

    def softmax(self, carried: Sequence[Value]) -> tuple[Value, Value, Value, Value]:
        """The largest score and the sum of weights after one more block of keys, the weights, and the rate by which
        former ones change."""
        op = self.node
        top, total = carried
        scores = self.visible(self.product(self.operand(0), self.operand(1)), op.k.type.shape[-2])
        higher = self.kernel.map([top, loop.Reduce(scores, dim=self.other, kind="maximumf").result],
                                 lambda a, b: arith.MaximumF(a, b).result)
        shift = self.kernel.map([higher], _finite)
        rate = self.kernel.map([top, shift], self.weight)
        weights = self.kernel.map([scores, shift], self.weight)
        added = loop.Reduce(weights, dim=self.other, kind="add").result
        return higher, self.kernel.map([total, rate, added], lambda a, r, b: math.Fma(a, r, b).result), weights, rate

    def last_key(self) -> AffineMap | None:
        """The number of keys that a query sees, if it does not see all."""
        if not self.node.causal:
            return None
        return AffineMap.get(self.kernel.dims, [loop.coordinate(self.row) + 1])


class _Attention(_Blocks):
    def result(self) -> Value:
        start = [self.full(-numbers.inf), self.full(0.0), self.full(0.0, self.features)]
        _, total, sums = self.through(start, self.block, self.last_key())
        return self.narrow(self.kernel.map([sums, total], lambda o, l: arith.DivF(o, _or_one(l)).result))

    def block(self, carried: Sequence[Value]) -> list[Value]:
        *of_softmax, sums = carried
        top, total, weights, rate = self.softmax(of_softmax)
        sums = self.kernel.map([sums, rate], lambda o, r: arith.MulF(o, r).result)
        return [top, total, loop.Mma(sums, self.narrow(weights), self.operand(2), dim=self.other).result]


class _Statistics(_Blocks):
    def result(self) -> Value:
        top, total = self.through([self.full(-numbers.inf), self.full(0.0)], lambda carried: self.softmax(carried)[:2],
                                  self.last_key())
        place = self.kernel.index(loop.coordinate(self.features))

        def number(i: Value, m: Value, l: Value) -> Value:
            zero = arith.constant(0, index)
            odd = arith.CmpI("ne", arith.AndI(i, arith.constant(1, index)).result, zero).result
            none = arith.CmpF("oeq", l, arith.constant(0.0, f32)).result
            inverse = arith.DivF(arith.constant(1.0, f32), _or_one(l)).result
            inverse = arith.Select(none, arith.constant(0.0, f32), inverse).result
            return arith.Select(odd, inverse, _finite(m)).result

        return self.kernel.map([place, top, total], number)


class _Gradient(_Blocks):
    """Of queries, whose other rows are keys, or of keys or values, whose other rows are queries."""

    def result(self) -> Value:
        op: tn.FlashAttentionGrad = self.node  # type: ignore[assignment]
        until = self.last_key() if op.of == "q" else None
        sums, = self.through([self.full(0.0, self.features)], self.block, until)
        if op.of != "v":
            sums = self.kernel.map([sums], lambda x: arith.MulF(x, arith.constant(op.scale, f32)).result)
        return self.narrow(sums)

    def block(self, carried: Sequence[Value]) -> list[Value]:
        op: tn.FlashAttentionGrad = self.node  # type: ignore[assignment]
        by_query = op.of == "q"
        q, k, v, ct = (self.operand(i) for i in range(4))
        scores = self.product(q, k) if by_query else self.product(k, q)
        scores = self.visible(scores, (op.k if by_query else op.q).type.shape[-2], key_is_row=not by_query)
        shift, inverse = (self.statistic(i) for i in range(2))
        factor = self.kernel.map([scores, shift, inverse], lambda s, t, r: arith.MulF(self.weight(s, t), r).result)
        if op.of != "v":
            slopes = self.product(ct, v) if by_query else self.product(v, ct)
            factor = self.kernel.map([factor, slopes, self.operand(5)], lambda w, d, t: arith.MulF(
                w, arith.SubF(d, t).result).result)
        values = self.operand({"q": 1, "k": 0, "v": 3}[op.of], self.features)
        return [loop.Mma(carried[0], self.narrow(factor), values, dim=self.other).result]

    def statistic(self, number: int) -> Value:
        """One of the numbers of each query."""
        op: tn.FlashAttentionGrad = self.node  # type: ignore[assignment]
        at = self.kernel.index_at(self.maps[0])
        return self.kernel.value(op.statistics, (*at[:-1], number), None)


def _or_one(l: Value) -> Value:
    """A sum of weights, or 1 if there are none."""
    none = arith.CmpF("oeq", l, arith.constant(0.0, f32)).result
    return arith.Select(none, arith.constant(1.0, f32), l).result


def _finite(m: Value) -> Value:
    """The largest score, or 0 if there is none."""
    none = arith.CmpF("oeq", m, arith.constant(-numbers.inf, f32)).result
    return arith.Select(none, arith.constant(0.0, f32), m).result
