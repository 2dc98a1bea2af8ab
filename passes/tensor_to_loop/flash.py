"""Lowering of attention that takes a block of keys at a time (tensor.flash_attention)."""

from __future__ import annotations

import math as numbers
from collections.abc import Sequence
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
    """A loop over the terms of scores, all of which are one block, and in it the loop over blocks of keys."""
    return _Attention(kernel, op).result()


class _Attention:
    """The dimensions of a kernel: those of the result, of which the last two are queries and features of values, then
    keys and terms of a score."""

    def __init__(self, kernel: KernelBuilder, op: tn.FlashAttention) -> None:
        self.kernel, self.op = kernel, op
        self.features = len(kernel.shape) - 1
        self.query, self.key, self.term = self.features - 1, self.features + 1, self.features + 2
        rows = (d for d, n in enumerate(kernel.shape[: self.features]) if n != 1 or d == self.query)
        self.rows = tuple(rows)
        self.maps = op.operand_maps(op.home(kernel.domain), kernel.domain)

    def result(self) -> Value:
        start = [loop.Full(value, TileType(dims, f32)).result for value, dims in (
            (-numbers.inf, self.rows), (0.0, self.rows), (0.0, (*self.rows, self.features)))]
        _, total, sums = self.loop(self.term, start, lambda carried: self.loop(
            self.key, carried, self.block, self.last_key() if self.op.causal else None))

        def quotient(o: Value, l: Value) -> Value:
            zero, one = arith.constant(0.0, f32), arith.constant(1.0, f32)
            none = arith.CmpF("oeq", l, zero).result
            return arith.DivF(o, arith.Select(none, one, l).result).result

        value = self.kernel.map([sums, total], quotient)
        dtype = self.op.result.type.dtype
        return self.kernel.map([value], lambda x: arith.TruncF(x, dtype).result)

    def loop(self, dim: int, inits: Sequence[Value], body: object, until: AffineMap | None = None) -> list[Value]:
        """A loop over a dimension of terms that carries several tiles."""
        block = Block([v.type for v in inits])
        outer = dict(self.kernel.memo)
        with at_end(block, builder.loc):
            loop.Yield(tuple(body(block.args)))  # type: ignore[operator]
        self.kernel.memo = outer
        return list(loop.For(tuple(inits), Region(block), dim=dim, until=until).results)

    def last_key(self) -> AffineMap:
        """The number of keys that a query sees."""
        return AffineMap.get(self.kernel.dims, [loop.coordinate(self.query) + 1])

    def block(self, carried: Sequence[Value]) -> list[Value]:
        """The largest score of each query, the sum of its weights and that of values, after one more block of keys."""
        top, total, sums = carried
        q, k, v = (self.kernel.value(x, self.kernel.index_at(at), None) for x, at in zip(self.op.operands, self.maps))
        zero = loop.Full(0.0, TileType((*self.rows, self.key), f32)).result
        scores: Value = loop.Mma(zero, q, k, dim=self.term).result
        for beyond in self.beyond():
            scores = self.without(scores, beyond)
        factor = self.op.factor
        higher = self.kernel.map([top, loop.Reduce(scores, dim=self.key, kind="maximumf").result],
                                 lambda a, b: arith.MaximumF(a, b).result)

        def shift_of(m: Value) -> Value:
            none = arith.CmpF("oeq", m, arith.constant(-numbers.inf, f32)).result
            return arith.Select(none, arith.constant(0.0, f32), m).result

        def rate_of(m: Value, t: Value) -> Value:
            return math.Exp2(scaled(arith.SubF(m, t).result)).result

        def scaled(x: Value) -> Value:
            return arith.MulF(x, arith.constant(factor, f32)).result

        def weight_of(s: Value, t: Value) -> Value:
            return math.Exp2(math.Fma(s, arith.constant(factor, f32), t).result).result

        shift = self.kernel.map([higher], shift_of)
        rate = self.kernel.map([top, shift], rate_of)
        exponent = self.kernel.map([shift], lambda t: arith.NegF(scaled(t)).result)
        weights = self.kernel.map([scores, exponent], weight_of)
        added = loop.Reduce(weights, dim=self.key, kind="add").result
        total = self.kernel.map([total, rate, added], lambda a, r, b: math.Fma(a, r, b).result)
        narrow = self.kernel.map([weights], lambda x: arith.TruncF(x, self.op.v.type.dtype).result)
        sums = self.kernel.map([sums, rate], lambda o, r: arith.MulF(o, r).result)
        return [higher, total, loop.Mma(sums, narrow, v, dim=self.key).result]

    def beyond(self) -> list[Dim]:
        """Numbers that are positive for the keys that a query does not see."""
        key, count = loop.coordinate(self.key), self.op.k.type.shape[-2]
        whole = isinstance(count, int) and count % self.op.keys == 0
        return [*([] if whole else [key - (count - 1)]), *([key - loop.coordinate(self.query)] * self.op.causal)]

    def without(self, scores: Value, beyond: Dim) -> Value:
        """The scores, -inf where a number is positive."""
        def chosen(n: Value, s: Value) -> Value:
            out = arith.CmpI("sgt", n, arith.constant(0, index)).result
            return arith.Select(out, arith.constant(-numbers.inf, f32), s).result

        return self.kernel.map([self.kernel.index(beyond), scores], chosen)
