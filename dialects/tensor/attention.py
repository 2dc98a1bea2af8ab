"""tensor, attention: scaled dot-product attention, as one composite."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects.tensor.base import (
    Array,
    again,
    batch_axis_at,
    batch_axis_first,
    cast,
    compare,
    full,
    kind,
    lifted,
    reshape,
    rounded,
    select,
    shape_text,
    unbroadcast,
    with_batch_axis,
)
from mlc.dialects.tensor.composite import Composite, exp, max_kept, sum_kept, widened
from mlc.dialects.tensor.contract import DotGeneral
from mlc.dialects.tensor.source import Iota
from mlc.ir import sizes
from mlc.ir.core import Value
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType, i1, i64


class Attention(Composite, name="tensor.attention"):
    """result[b, f, i] = the sum over j of softmax over j (scale * q[b, f, i] . k[b, j] + mask[b, f, i, j]) * v[b, j]

    b are the axes of k before its last two, f the additional axes of q: heads that share keys and values. An i1 mask is
    true for each j that takes part, a float mask is added to the scores; it broadcasts to [b, f, i, j]. With `causal`,
    only j <= i take part. The result is 0 if no j does.

        %r = tensor.attention %q, %k, %v {scale = 0.5} : tensor<2x3x4xf32>
    """

    q: Value
    k: Value
    v: Value
    mask: Value | None
    scale: float
    causal: bool = False

    def infer(self) -> TensorType:
        types = self.tensors()
        q, k, v = types[:3]
        for t in types[:3]:
            if kind(t.dtype) != "float":
                self.refuse(f"does not work on {t.dtype}, only on float elements", "MLC0113")
        if {t.dtype for t in types if t.dtype != i1} != {q.dtype}:
            self.refuse(f"element types differ: {', '.join(str(t.dtype) for t in types)}", "MLC0112")
        for t in types[:3]:
            if t.rank < 2:
                self.refuse(f"takes matrices, found {t}", "MLC0115")
        batch = k.shape[:-2]
        if q.shape[: len(batch)] != batch or q.rank < k.rank or (
                q.shape[-1] != k.shape[-1] or v.shape[:-1] != k.shape[:-1]):
            shapes = ", ".join(shape_text(t.shape) for t in (q, k, v))
            self.refuse(f"queries, keys and values of shapes {shapes} do not fit", "MLC0115",
                        symbols=sizes.differing((*q.shape[: len(batch)], q.shape[-1], *v.shape[:-1]),
                                               (*batch, k.shape[-1], *k.shape[:-1])))
        scores = self.scores_shape()
        for t in types[3:]:
            lead = len(scores) - t.rank
            if lead < 0 or any(d not in (1, e) for d, e in zip(t.shape, scores[lead:])):
                self.refuse(f"a mask of shape {shape_text(t.shape)} does not broadcast to {shape_text(scores)}",
                            "MLC0111", symbols=sizes.differing(t.shape, scores, stretch=True))
        return q.with_shape((*q.shape[:-1], v.shape[-1]))

    def scores_shape(self) -> tuple[Dim, ...]:
        return (*self.q.type.shape[:-1], self.k.type.shape[-2])

    def ref(self, q: Any, k: Any, v: Any, mask: Any = None) -> Array:
        q, k, v = (np.asarray(x).astype(np.float64) for x in (q, k, v))
        extra = (slice(None),) * (k.ndim - 2) + (None,) * (q.ndim - k.ndim)
        k, v = k[extra], v[extra]
        with np.errstate(all="ignore"):
            scores = q @ np.swapaxes(k, -1, -2) * self.scale
            if mask is not None and mask.dtype == bool:
                scores = np.where(mask, scores, -np.inf)
            elif mask is not None:
                scores = scores + np.asarray(mask).astype(np.float64)
            if self.causal:
                scores = np.where(np.tri(*scores.shape[-2:]) == 1, scores, -np.inf)
            top = scores.max(-1, keepdims=True, initial=-np.inf)
            e = np.exp(scores - np.where(top == -np.inf, 0, top))
            total = e.sum(-1, keepdims=True)
            return rounded(e / np.where(total == 0, 1, total) @ v, self.q.type.dtype)

    def decompose(self) -> Value:
        weights, v = self._factor(self.weights()), widened(self.v)
        last = weights.type.rank - 1
        return cast(DotGeneral(weights, v, self._batch(), ((last, v.type.rank - 2),)).result, self.q.type.dtype)

    def _factor(self, x: Value) -> Value:
        """A factor of a product, rounded to the type of the others, as in PyTorch: tensor cores take one type."""
        return widened(cast(x, self.q.type.dtype))

    def _batch(self) -> tuple[tuple[int, int], ...]:
        return tuple((a, a) for a in range(self.k.type.rank - 2))

    def _shared(self) -> list[int]:
        """The axes of q that k lacks, and that of the queries."""
        return list(range(self.k.type.rank - 2, self.q.type.rank - 1))

    def weights(self) -> Value:
        """The attention weight of each key j for each query i: [b, f, i, j]."""
        q, k = widened(self.q), widened(self.k)
        scores: Value = DotGeneral(q, k, self._batch(), ((q.type.rank - 1, k.type.rank - 1),)).result
        scores = scores * full(self.scale, scores)
        nothing = full(-math.inf, scores)
        if self.mask is not None and self.mask.type.dtype == i1:
            scores = select(self.mask, scores, nothing)
        elif self.mask is not None:
            scores = scores + widened(self.mask)
        if self.causal:
            scores = select(self._up_to_the_query(), scores, nothing)
        last = (scores.type.rank - 1,)
        top = max_kept(scores, last)
        e = exp(scores - select(compare("eq", top, nothing), full(0, top), top))
        total = sum_kept(e, last)
        return e / select(compare("eq", total, full(0, total)), full(1, total), total)

    def _up_to_the_query(self) -> Value:
        shape = self.scores_shape()
        row, column = ((*(1 for _ in shape[:-2]), *pair) for pair in ((shape[-2], 1), (1, shape[-1])))
        return compare("ge", Iota(row, len(shape) - 2, i64).result, Iota(column, len(shape) - 1, i64).result)

    def vjp(self, ct: Value) -> list[Value | None]:
        """Recomputes the weights; the row sum in the derivative of softmax is the sum of ct * result."""
        weights, ct = self.weights(), widened(ct)
        q, k, v, batch = widened(self.q), widened(self.k), widened(self.v), self._batch()
        last, shared = weights.type.rank - 1, self._shared()
        dv = DotGeneral(self._factor(weights), ct, batch, tuple((a, a) for a in shared)).result
        of_weights = DotGeneral(ct, v, batch, ((last, v.type.rank - 1),)).result
        of_scores = weights * (of_weights - sum_kept(ct * widened(self.result), (last,)))
        scaled = self._factor(of_scores * full(self.scale, of_scores))
        dq = DotGeneral(scaled, k, batch, ((last, k.type.rank - 2),)).result
        dk = DotGeneral(scaled, q, batch, tuple((a, a) for a in shared)).result
        out: list[Value | None] = [cast(d, self.q.type.dtype) for d in (dq, dk, dv)]
        if self.mask is not None:
            floats = self.mask.type.dtype != i1
            out.append(cast(unbroadcast(of_scores, self.mask), self.mask.type.dtype) if floats else None)
        return out

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        """The batch axis comes first; if only queries are batched, it is one of the axes that share keys and values."""
        rank, shared = len(self.scores_shape()) + 1, not any(batched[1:3])
        at = self.k.type.rank - 2 if shared else 0
        q, k, v = with_batch_axis(batch_size, operands[:3], [batched[0], *([True, True] if shared else batched[1:3])])
        masks = [batch_axis_at(lifted(m, rank) if own else reshape(m, (*[1] * (rank - m.type.rank), *m.type.shape)), at)
                 for m, own in zip(operands[3:], batched[3:])]
        return batch_axis_first(again(self, [batch_axis_at(q, at), k, v, *masks]), at)
