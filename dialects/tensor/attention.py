"""tensor, attention: scaled dot-product attention, as one composite, and its derivative, as another.

The pass `block_attention` makes loops over blocks of queries of either where sequences are long. The decompositions
compute the weights of all pairs of queries and keys that they are given at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects.tensor.base import (
    Array,
    accumulator,
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
        return _checked(self)

    def ref(self, q: Any, k: Any, v: Any, mask: Any = None) -> Array:
        weights, _, _, v = _weights_in_numpy(self, q, k, v, mask)
        with np.errstate(all="ignore"):
            return rounded(weights @ v, self.q.type.dtype)

    def decompose(self) -> Value:
        weights, v = _factor(self, _weights(self)), widened(self.v)
        last = weights.type.rank - 1
        return cast(DotGeneral(weights, v, _batch(self), ((last, v.type.rank - 2),)).result, self.q.type.dtype)

    def vjp(self, ct: Value) -> list[Value | None]:
        found = AttentionGrad(self.q, self.k, self.v, self.result, ct, self.mask, self.scale, self.causal).results
        return [*found, *[None] * (len(self.operands) - len(found))]

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        """The batch axis comes first; if only queries are batched, it is one of the axes that share keys and values."""
        rank, shared = len(scores_shape(self)) + 1, not any(batched[1:3])
        at = self.k.type.rank - 2 if shared else 0
        q, k, v = with_batch_axis(batch_size, operands[:3], [batched[0], *([True, True] if shared else batched[1:3])])
        masks = _masks_with_batch_axis(operands[3:], batched[3:], rank, at)
        return batch_axis_first(again(self, [batch_axis_at(q, at), k, v, *masks]), at)


class AttentionGrad(Composite, name="tensor.attention_grad"):
    """result = (dq, dk, dv), with a float mask also dmask: cotangents of the operands of attention, from ct, that of out

        w[b, f, i, j] = the weight of key j for query i
        s[b, f, i, j] = w[b, f, i, j] * (ct[b, f, i] . v[b, j] - ct[b, f, i] . out[b, f, i])
        dq[b, f, i] = scale * the sum over j of s[b, f, i, j] * k[b, j]
        dk[b, j] = scale * the sum over f and i of s[b, f, i, j] * q[b, f, i]
        dv[b, j] = the sum over f and i of w[b, f, i, j] * ct[b, f, i]
        dmask = s, summed where the mask broadcasts

    The weights are computed again, as in FlashAttention (Dao et al. 2022). With `wide`, results of narrow floats are
    left in the type in which they are added up, for a sum of several.

        %r:3 = tensor.attention_grad %q, %k, %v, %o, %c {scale = 0.5} : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>)
    """  # noqa: E501

    q: Value
    k: Value
    v: Value
    out: Value
    ct: Value
    mask: Value | None
    scale: float
    causal: bool = False
    wide: bool = False

    def infer(self) -> tuple[TensorType, ...]:
        out = _checked(self)
        for name, value in (("out", self.out), ("ct", self.ct)):
            if value.type != out:
                self.refuse(f"{name} is {value.type}, and the result of attention {out}", "MLC0115",
                            symbols=sizes.differing(value.type.shape, out.shape))
        return tuple(v.type.with_dtype(self._result_dtype()) for v in self._differentiated())

    def _differentiated(self) -> list[Value]:
        floats = [self.mask] if self.mask is not None and self.mask.type.dtype != i1 else []
        return [self.q, self.k, self.v, *floats]

    def _result_dtype(self) -> Any:
        dtype = self.q.type.dtype
        return accumulator(dtype) if self.wide else dtype

    def ref(self, q: Any, k: Any, v: Any, out: Any, ct: Any, mask: Any = None) -> Any:
        weights, q, k, v = _weights_in_numpy(self, q, k, v, mask)
        out, ct = (np.asarray(x).astype(np.float64) for x in (out, ct))
        with np.errstate(all="ignore"):
            of_scores = weights * (ct @ np.swapaxes(v, -1, -2) - (ct * out).sum(-1, keepdims=True))
            scaled, shared = of_scores * self.scale, tuple(range(self.k.type.rank - 2, self.q.type.rank - 2))
            found = [scaled @ k, (np.swapaxes(scaled, -1, -2) @ q).sum(shared),
                     (np.swapaxes(weights, -1, -2) @ ct).sum(shared)]
        if len(self.results) > 3:
            shape = [1] * (of_scores.ndim - mask.ndim) + list(mask.shape)
            stretched = tuple(a for a, n in enumerate(shape) if n == 1 and of_scores.shape[a] != 1)
            found.append(of_scores.sum(stretched).reshape(mask.shape))
        return tuple(rounded(x, self._result_dtype()) for x in found)

    def decompose(self) -> tuple[Value, ...]:
        weights, ct = _weights(self), widened(self.ct)
        q, k, v, batch = widened(self.q), widened(self.k), widened(self.v), _batch(self)
        last, shared = weights.type.rank - 1, _shared(self)
        dv = DotGeneral(_factor(self, weights), ct, batch, tuple((a, a) for a in shared)).result
        of_weights = DotGeneral(ct, v, batch, ((last, v.type.rank - 1),)).result
        of_scores = weights * (of_weights - sum_kept(ct * widened(self.out), (last,)))
        scaled = _factor(self, of_scores * full(self.scale, of_scores))
        dq = DotGeneral(scaled, k, batch, ((last, k.type.rank - 2),)).result
        dk = DotGeneral(scaled, q, batch, tuple((a, a) for a in shared)).result
        found: list[Value] = [dq, dk, dv]
        if len(self.results) > 3:
            assert self.mask is not None
            found.append(unbroadcast(of_scores, self.mask))
        return tuple(cast(d, self._result_dtype()) for d in found)

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Sequence[Value]:
        """The batch axis comes first; each of its elements has its own keys and values, since it has its own dk, dv."""
        given = with_batch_axis(batch_size, operands[:5], batched[:5])
        masks = _masks_with_batch_axis(operands[5:], batched[5:], len(scores_shape(self)) + 1, 0)
        if masks and len(self.results) > 3:                # its own dmask, too
            assert self.mask is not None
            masks = with_batch_axis(batch_size, [operands[5]], [batched[5]])
            masks = [lifted(m, len(scores_shape(self)) + 1) for m in masks]
        found = list(again(self, [*given, *masks]))
        if len(found) > 3:
            assert self.mask is not None
            found[3] = reshape(found[3], (batch_size, *self.mask.type.shape))
        return found


# -- what both are made of --------------------------------------------------------------------------------------------
def _checked(op: Attention | AttentionGrad) -> TensorType:
    """The type of attention's result; refuses operands that do not fit."""
    q: TensorType
    q, k, v = op.q.type, op.k.type, op.v.type
    floats = [v.type for v in op.operands if v.type.dtype != i1]
    for t in floats:
        if kind(t.dtype) != "float":
            op.refuse(f"does not work on {t.dtype}, only on float elements", "MLC0113")
    if {t.dtype for t in floats} != {q.dtype}:
        op.refuse(f"element types differ: {', '.join(str(t.dtype) for t in floats)}", "MLC0112")
    for t in (q, k, v):
        if t.rank < 2:
            op.refuse(f"takes matrices, found {t}", "MLC0115")
    batch = k.shape[:-2]
    if q.shape[: len(batch)] != batch or q.rank < k.rank or (
            q.shape[-1] != k.shape[-1] or v.shape[:-1] != k.shape[:-1]):
        shapes = ", ".join(shape_text(t.shape) for t in (q, k, v))
        op.refuse(f"queries, keys and values of shapes {shapes} do not fit", "MLC0115",
                  symbols=sizes.differing((*q.shape[: len(batch)], q.shape[-1], *v.shape[:-1]),
                                          (*batch, k.shape[-1], *k.shape[:-1])))
    if op.mask is not None:
        scores, mask = scores_shape(op), op.mask.type
        lead = len(scores) - mask.rank
        if lead < 0 or any(d not in (1, e) for d, e in zip(mask.shape, scores[lead:])):
            op.refuse(f"a mask of shape {shape_text(mask.shape)} does not broadcast to {shape_text(scores)}",
                      "MLC0111", symbols=sizes.differing(mask.shape, scores, stretch=True))
    return q.with_shape((*q.shape[:-1], v.shape[-1]))


def scores_shape(op: Attention | AttentionGrad) -> tuple[Dim, ...]:
    """The sizes of the axes b, f, i and j."""
    return (*op.q.type.shape[:-1], op.k.type.shape[-2])


def _factor(op: Attention | AttentionGrad, x: Value) -> Value:
    """A factor of a product, rounded to the type of the others, as in PyTorch: tensor cores take one type."""
    return widened(cast(x, op.q.type.dtype))


def _batch(op: Attention | AttentionGrad) -> tuple[tuple[int, int], ...]:
    return tuple((a, a) for a in range(op.k.type.rank - 2))


def _shared(op: Attention | AttentionGrad) -> list[int]:
    """The axes of q that k lacks, and that of the queries."""
    return list(range(op.k.type.rank - 2, op.q.type.rank - 1))


def _weights(op: Attention | AttentionGrad) -> Value:
    """The attention weight of each key j for each query i: [b, f, i, j]."""
    q, k = widened(op.q), widened(op.k)
    scores: Value = DotGeneral(q, k, _batch(op), ((q.type.rank - 1, k.type.rank - 1),)).result
    scores = scores * full(op.scale, scores)
    nothing = full(-math.inf, scores)
    if op.mask is not None and op.mask.type.dtype == i1:
        scores = select(op.mask, scores, nothing)
    elif op.mask is not None:
        scores = scores + widened(op.mask)
    if op.causal:
        scores = select(_up_to_the_query(op), scores, nothing)
    last = (scores.type.rank - 1,)
    top = max_kept(scores, last)
    e = exp(scores - select(compare("eq", top, nothing), full(0, top), top))
    total = sum_kept(e, last)
    return e / select(compare("eq", total, full(0, total)), full(1, total), total)


def _up_to_the_query(op: Attention | AttentionGrad) -> Value:
    shape = scores_shape(op)
    row, column = ((*(1 for _ in shape[:-2]), *pair) for pair in ((shape[-2], 1), (1, shape[-1])))
    return compare("ge", Iota(row, len(shape) - 2, i64).result, Iota(column, len(shape) - 1, i64).result)


def _weights_in_numpy(op: Attention | AttentionGrad, q: Any, k: Any, v: Any, mask: Any
                      ) -> tuple[Array, Array, Array, Array]:
    """The weights, and q, k and v with the axes of q, in float64."""
    q, k, v = (np.asarray(x).astype(np.float64) for x in (q, k, v))
    extra = (slice(None),) * (k.ndim - 2) + (None,) * (q.ndim - k.ndim)
    k, v = k[extra], v[extra]
    with np.errstate(all="ignore"):
        scores = q @ np.swapaxes(k, -1, -2) * op.scale
        if mask is not None and mask.dtype == bool:
            scores = np.where(mask, scores, -np.inf)
        elif mask is not None:
            scores = scores + np.asarray(mask).astype(np.float64)
        if op.causal:
            scores = np.where(np.tri(*scores.shape[-2:]) == 1, scores, -np.inf)
        top = scores.max(-1, keepdims=True, initial=-np.inf)
        e = np.exp(scores - np.where(top == -np.inf, 0, top))
        total = e.sum(-1, keepdims=True)
        return e / np.where(total == 0, 1, total), q, k, v


def _masks_with_batch_axis(masks: Sequence[Value], batched: Sequence[bool], rank: int, at: int) -> list[Value]:
    """A mask, if there is one, that broadcasts to scores of this rank, whose batch axis is in this place."""
    return [batch_axis_at(lifted(m, rank) if own else reshape(m, (*[1] * (rank - m.type.rank), *m.type.shape)), at)
            for m, own in zip(masks, batched)]
