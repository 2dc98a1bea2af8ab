"""tensor, the derivative of attention a block of queries or keys at a time (flash.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects import tensor
from mlc.dialects.tensor.base import (
    Array,
    cast,
    compare,
    full,
    reshape,
    rounded,
    select,
    shape_text,
)
from mlc.dialects.tensor.composite import max_kept, sum_kept, widened
from mlc.dialects.tensor.flash import Blockwise, exp2, tree
from mlc.dialects.tensor.iteration import IndexingMap, IterationDomain
from mlc.dialects.tensor.orders import mma
from mlc.ir import sizes
from mlc.ir.core import Value
from mlc.ir.exact import fma
from mlc.ir.types import TensorType, bf16, f16, f32, i64

COPIES = 8
"""The last axis of statistics: pairs, one for each of the four threads that share a row."""


class AttentionStatistics(Blockwise, name="tensor.attention_statistics"):
    """result[b, i, 2 n] = t and result[b, i, 2 n + 1] = 1 / l for n < 4, as flash_attention has them at last

    t is the largest score of query i, or 0 if that is -inf, l the sum of the weights, and 1 / l is 0 if l is. They are
    what the derivative needs to compute the weights again, and as each pair is there four times, each of the threads
    that share a row stores one.

        %r = tensor.attention_statistics %q, %k {scale = 0.5} : (tensor<2x4xbf16>, tensor<3x4xbf16>) -> tensor<2x8xf32>
    """

    q: Value
    k: Value
    scale: float
    causal: bool = False
    block: int = 64
    format = "$q `,` $k attr-dict `:` functional-type"
    copied = 2

    def infer(self) -> TensorType:
        q, k = (x.type for x in self.operands)
        if q.dtype != k.dtype or q.dtype not in (bf16, f16) or min(q.rank, k.rank) < 2:
            self.refuse(f"takes matrices of bf16 or f16, not {q} and {k}", "MLC0113")
        if (*q.shape[:-2], q.shape[-1]) != (*k.shape[:-2], k.shape[-1]):
            self.refuse(f"queries and keys of shapes {shape_text(q.shape)} and {shape_text(k.shape)} do not fit",
                        "MLC0115", symbols=sizes.differing(q.shape, k.shape))
        self.check_blocks()
        return TensorType((*q.shape[:-1], COPIES), f32)

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        if domain != self.iteration_domain():
            return (None,) * 2
        key, term = (domain.points[d] for d in domain.reduced)
        return (*at[:-1], term), (*at[:-2], key, term)

    def ref(self, q: Any, k: Any) -> Array:
        rows, c = np.asarray(q).shape[:-1], np.float32(self.factor)
        top, total = np.full((*rows, 1), -np.inf, np.float32), np.zeros((*rows, 1), np.float32)
        with np.errstate(all="ignore"):
            for start in range(0, k.shape[-2], self.block):
                scores = scores_of(np.asarray(q), np.asarray(k), start, self.block, self.causal)
                higher = np.maximum(top, scores.max(-1, keepdims=True))
                shift = np.where(higher == -np.inf, np.float32(0), higher)
                weights = exp2((scores - shift) * c)
                total = fma(total, exp2((top - shift) * c), tree(weights))
                top = higher
            inverse = np.where(total == 0, np.float32(0), np.float32(1) / total)
            pair = np.concatenate([np.where(top == -np.inf, np.float32(0), top), inverse], -1)
        return np.tile(pair, COPIES // 2)

    def composite(self) -> Value:
        scores = masked(self, dot(widened(self.q), widened(self.k)))
        last = (scores.type.rank - 1,)
        top = max_kept(scores, last)
        top = select(compare("eq", top, full(-math.inf, top)), full(0, top), top)
        c = full(self.factor, scores)
        total = sum_kept(tensor.Exp2((scores - top) * c).result, last)
        none = compare("eq", total, full(0, total))
        inverse = select(none, total, full(1, total) / select(none, full(1, total), total))
        return tensor.Concat((top, inverse) * (COPIES // 2), axis=last[0]).result

    def vjp(self, ct: Value) -> list[Value | None]:
        return [None, None]


class FlashAttentionGrad(Blockwise, name="tensor.flash_attention_grad"):
    """result = the cotangent of q, k or v, `of` which says, from ct, that of the result of attention

    With w[i, j] = 2^((s[i, j] - statistics[i, 0]) * c) * statistics[i, 1], and 0 if `causal` and j > i, and
    d[i, j] = w[i, j] * (ct[i] . v[j] - delta[i]), for each b, w and d rounded to the type of q:

        dq[i] = scale * the sum over j of d[i, j] * k[j]
        dk[j] = scale * the sum over i of d[i, j] * q[i]
        dv[j] = the sum over i of w[i, j] * ct[i]

    delta[i] = ct[i] . out[i]. Terms are added `block` at a time, by tensor cores (FlashAttention-2, Dao 2023); each of
    the three computes the weights again.

        %r = tensor.flash_attention_grad %q, %k, %v, %c, %s, %d {of = "v", scale = 0.5} : (tensor<2x4xbf16>, tensor<3x4xbf16>, tensor<3x4xbf16>, tensor<2x4xbf16>, tensor<2x8xf32>, tensor<2xf32>) -> tensor<3x4xbf16>
    """  # noqa: E501

    q: Value
    k: Value
    v: Value
    ct: Value
    statistics: Value
    delta: Value
    of: str
    scale: float
    causal: bool = False
    block: int = 64
    format = "$q `,` $k `,` $v `,` $ct `,` $statistics `,` $delta attr-dict `:` functional-type"
    copied = 4
    enums = {"of": ("q", "k", "v")}

    def infer(self) -> TensorType:
        q, k, v, ct, statistics, delta = (x.type for x in self.operands)
        if not q.dtype == k.dtype == v.dtype == ct.dtype or q.dtype not in (bf16, f16) or q.rank < 2:
            self.refuse(f"takes matrices of bf16 or f16, not {q}, {k}, {v} and {ct}", "MLC0113")
        if not q.shape == ct.shape or k.shape != v.shape or (*q.shape[:-2], q.shape[-1]) != (
                *k.shape[:-2], *k.shape[-1:]) or statistics != TensorType((*q.shape[:-1], COPIES), f32) or (
                delta != TensorType(q.shape[:-1], f32)):
            shapes = ", ".join(str(x.type) for x in self.operands)
            self.refuse(f"operands of {shapes} do not fit", "MLC0115", symbols=sizes.differing(q.shape, k.shape))
        self.check_blocks()
        return q if self.of == "q" else k  # type: ignore[no-any-return]

    @property
    def others(self) -> Value:
        return self.k if self.of == "q" else self.q

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        """Those of scores; values that are added up are read at the features of the result, too."""
        if domain != self.iteration_domain():
            return (None,) * 6
        other, term = (domain.points[d] for d in domain.reduced)
        query, key = (at[-2], other) if self.of == "q" else (other, at[-2])
        batch = at[:-2]
        rows, columns = (*batch, query, term), (*batch, key, term)
        return rows, columns, columns, rows, None, (*batch, query)

    def ref(self, q: Any, k: Any, v: Any, ct: Any, statistics: Any, delta: Any) -> Array:
        q, k, v, ct = (np.asarray(x) for x in (q, k, v, ct))
        top, inverse = statistics[..., 0], statistics[..., 1]
        by_query = self.of == "q"
        c, count = np.float32(self.factor), (k if by_query else q).shape[-2]
        total = np.zeros((q if by_query else k).shape, np.float32)
        with np.errstate(all="ignore"):
            for start in range(0, count, self.block):
                here = slice(start, min(start + self.block, count))
                keys, queries = (here, slice(None)) if by_query else (slice(None), here)
                scores = _product(q[..., queries, :], k[..., keys, :])
                if self.causal:
                    later = np.arange(k.shape[-2])[keys] > np.arange(q.shape[-2])[queries, None]
                    scores = np.where(later, np.float32(-np.inf), scores)
                shift, rate, part = (x[..., queries, None] for x in (top, inverse, delta))
                weights = exp2((scores - shift) * c) * rate
                slopes = weights * (_product(ct[..., queries, :], v[..., keys, :]) - part)
                narrow = rounded(weights if self.of == "v" else slopes, self.q.type.dtype)
                values = k[..., keys, :] if by_query else (ct if self.of == "v" else q)[..., queries, :]
                narrow = narrow if by_query else np.swapaxes(narrow, -1, -2)
                total = mma(total, narrow[..., None, :], np.swapaxes(values, -1, -2)[..., None, :, :])
            scaled = total if self.of == "v" else total * np.float32(self.scale)
        return rounded(scaled, self.q.type.dtype)

    def composite(self) -> Value:
        q, k, v, ct = (widened(x) for x in (self.q, self.k, self.v, self.ct))
        shape = self.statistics.type.shape
        shift, rate = (tensor.Slice(self.statistics, (*[0] * (len(shape) - 1), i), (*shape[:-1], i + 1),
                                    (1,) * len(shape)).result for i in range(2))
        scores = masked(self, dot(q, k))
        weights = tensor.Exp2((scores - shift) * full(self.factor, scores)).result * rate
        slopes = weights * (dot(ct, v) - reshape(self.delta, (*shape[:-1], 1)))
        narrow = widened(cast(weights if self.of == "v" else slopes, self.q.type.dtype))
        found = dot(narrow, k, 1, 0) if self.of == "q" else dot(narrow, ct if self.of == "v" else q, 0, 0)
        scaled = found if self.of == "v" else found * full(self.scale, found)
        return cast(scaled, self.q.type.dtype)

    def vjp(self, ct: Value) -> list[Value | None]:
        return [None] * 6


def dot(a: Value, b: Value, left: int = 1, right: int = 1) -> Value:
    """The products of matrices, along the axis of each that is numbered from the last but one on."""
    first = a.type.rank - 2
    return tensor.DotGeneral(a, b, tuple((i, i) for i in range(first)), ((first + left, first + right),)).result


def masked(op: AttentionStatistics | FlashAttentionGrad, scores: Value) -> Value:
    """The scores, -inf for a key that is later than a query if the operation is causal."""
    if not op.causal:
        return scores
    *lead, queries, keys = scores.type.shape
    rows, columns = (tensor.Iota((*(1 for _ in lead), *pair), len(lead) + axis, i64).result
                     for axis, pair in enumerate(((queries, 1), (1, keys))))
    return select(compare("ge", rows, columns), scores, full(-math.inf, scores))


def scores_of(q: Array, k: Array, start: int, count: int, causal: bool) -> Array:
    """The scores of a block of keys, -inf for those that are beyond the last one, or later than a query."""
    keys = k[..., start: start + count, :]
    scores = np.full((*q.shape[:-1], count), -np.inf, np.float32)
    scores[..., : keys.shape[-2]] = _product(q, keys)
    if causal:
        later = np.arange(start, start + count) > np.arange(q.shape[-2])[:, None]
        scores = np.where(later, np.float32(-np.inf), scores)
    return scores


def _product(a: Array, b: Array) -> Array:
    """a[.., i] . b[.., j], a sum in f64 rounded to f32 once."""
    zero = np.zeros((*a.shape[:-1], b.shape[-2]), np.float32)
    return mma(zero, a[..., :, None, :], b[..., None, :, :])
