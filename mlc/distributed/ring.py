"""Attention over sequences that are divided among ranks, whose keys and values go around a ring.

    out_i = sum_j exp(s_ij - m_i) v_j / l_i,   s_ij = scale q_i . k_j,   m_i = max_j s_ij,   l_i = sum_j exp(s_ij - m_i)

A rank has a block of the queries, and at each of n steps another block of the keys and values, of which it brings
maxima and sums up to date (Liu et al. 2023, with the online softmax of Milakov and Gimelshein 2018). So it never holds
more than two blocks, where `scaled_dot_product_attention` on a mesh gathers all of them. Backward sends keys and values
around once more, with their gradients, in place of keeping them: a rank sends 6 n - 4 blocks in a step and not 4 n - 4.
By `report`, of 8 heads of 4,096 rows of 64 numbers on 8 ranks, each holds 27 MB in forward and 75 MB with backward, and
95 and 415 MB where all are gathered; it sends 15 and 46 MB, and 15 and 96 MB, since that backward exchanges dimensions.

Example:
    >>> mesh = mlc.distributed.mesh({"sequence": 4}, abstract=True)
    >>> x = mlc.distributed.shard(mlc.ones(1, 64, 8), None, "sequence", mesh=mesh)
    >>> whole = lambda x: nn.functional.scaled_dot_product_attention(x, x, x)
    >>> ring = lambda x: mlc.distributed.ring_attention(x, x, x, 4)
    >>> [c.kind for c in mlc.distributed.report(ring, x).collectives]
    ['shift', 'shift', 'shift']
    >>> mlc.distributed.report(ring, x).sent == mlc.distributed.report(whole, x).sent
    True
"""

from __future__ import annotations

import math
from typing import Any

from mlc.autograd import Function
from mlc.dialects.shard.shift import After, Roll
from mlc.frontend.location import user_loc
from mlc.frontend.operands import tracer
from mlc.frontend.tensor import OPERATIONS, Tensor
from mlc.frontend.trace import emit, state
from mlc.ir.diag import UserError

_LENGTH, _BLOCKS = -2, -3
"""The dimension of sequences, and that of their blocks once they are divided."""


def ring_attention(query: Tensor, key: Tensor, value: Tensor, blocks: int, is_causal: bool = False,
                   scale: float | None = None) -> Tensor:
    """softmax(scale * query @ key.T + mask) @ value, of keys and values in blocks that go around a ring of ranks.

    On a mesh, the dimension of the sequence is divided along an axis of as many ranks as there are blocks. Everywhere
    else it is the same function, computed block by block. With `is_causal`, ranks compute products with later keys too,
    whose weights are 0: all take as long as the last.

    Args:
        query: Tensor of floats of shape (..., l, e), in whose type sums are added.
        key: Tensor of shape (..., l, e).
        value: Tensor of shape (..., l, v).
        blocks: Number of blocks of a sequence, a divisor of l.
        is_causal: Whether query i attends to keys up to i only.
        scale: Factor of the products; 1 / sqrt(e) by default.

    Returns:
        Tensor of shape (..., l, v).

    Raises:
        UserError: The sequences differ in length, or are not divided into so many blocks (MLC0962).

    Example:
        >>> x = mlc.arange(8.0).reshape(4, 2)
        >>> whole = nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
        >>> mlc.allclose(mlc.distributed.ring_attention(x, x, x, 2, is_causal=True), whole)
        True
    """
    lengths = {int(x.shape[_LENGTH]) for x in (query, key, value)}
    length = min(lengths)
    if len(lengths) > 1 or blocks < 1 or length < 1 or length % blocks:
        raise UserError(f"sequences of {' and '.join(map(str, sorted(lengths)))} are not divided into {blocks} blocks "
                        "of one length", code="MLC0962", loc=user_loc(),
                        hint="queries, keys and values have one length, a positive multiple of the number of blocks")
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
    divided = [x.reshape(*x.shape[:_LENGTH], blocks, length // blocks, x.shape[-1]) for x in (query, key, value)]
    out, _ = _Ring.apply(*divided, factor, is_causal)
    joined: Tensor = out.reshape(*out.shape[:_BLOCKS], length, out.shape[-1])
    return joined


class _Ring(Function):
    """The attention of blocks of queries to all keys, which go around, and the logarithms of the sums of weights.

    A block comes when the one before the last has been used, so that a rank has two.
    """

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, scale: float, causal: bool) -> Any:
        ctx.scale, ctx.causal = scale, causal
        around, used = (k, v), None
        most: Any = None
        total: Any = None
        out: Any = None
        for step in range(q.shape[_BLOCKS]):
            if step:
                k, v, used = _next(k, used), _next(v, used), out
            scores = _scores(q, k, scale, causal, step)
            here = scores.amax(-1, keepdim=True)
            new = here if most is None else OPERATIONS["maximum"](most, here)
            weights = (scores - new).exp()
            if most is None:
                total, out = weights.sum(-1, keepdim=True), weights @ v
            else:
                kept = (most - new).exp()
                total, out = total * kept + weights.sum(-1, keepdim=True), out * kept + weights @ v
            most = new
        out, normalizer = out / total, most + total.log()
        ctx.save_for_backward(q, *around, out, normalizer)
        return out, normalizer

    @staticmethod
    def backward(ctx: Any, gradient: Any, of_normalizer: Any) -> Any:
        q, k, v, out, normalizer = ctx.saved_tensors
        mean = (gradient * out).sum(-1, keepdim=True) - of_normalizer
        dq, dk, dv, used = 0.0, 0.0, 0.0, mean
        for step in range(q.shape[_BLOCKS]):
            if step:
                k, v, dk, dv, used = _next(k, used), _next(v, used), _next(dk), _next(dv), dq
            weights = (_scores(q, k, ctx.scale, ctx.causal, step) - normalizer).exp()
            ds = weights * (gradient @ v.mT - mean) * ctx.scale
            dq, dk, dv = dq + ds @ k, dk + ds.mT @ q, dv + weights.mT @ gradient
        return dq, _next(dk), _next(dv), None, None


def _scores(q: Any, k: Any, scale: float, causal: bool, step: int) -> Any:
    """The products of queries with the keys that are here at a step, -inf where a query does not attend to one."""
    scores = q @ k.mT * scale
    if not causal:
        return scores
    blocks, rows = q.shape[_BLOCKS:-1]
    arange = OPERATIONS["arange"]
    if step:                                               # keys of the blocks before this one, or of later ones
        mask = (arange(blocks) >= step).reshape(blocks, 1, 1)
    else:
        mask = arange(rows).reshape(rows, 1) >= arange(rows)
    return OPERATIONS["where"](mask, scores, -math.inf)


def _next(x: Any, used: Any = None) -> Any:
    """Blocks one rank on, not before a value is there."""
    if state.trace is None:
        return OPERATIONS["roll"](x, 1, _BLOCKS)
    held = x if used is None else emit(After, tracer(x), tracer(used))
    return emit(Roll, tracer(held), x.ndim + _BLOCKS, 1)
