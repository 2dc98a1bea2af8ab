"""Multi-head attention as a function of its weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mlc.frontend.arguments import coded
from mlc.frontend.functions import contract, create, neural, normalization
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions import reduce as R
from mlc.frontend.functions import shape as S
from mlc.frontend.generator import drawing
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Operand, Tensor
from mlc.ir.diag import UserError


@drawing(lambda given: given["training"] and given["dropout_p"], "dropout_key")
@coded
def multi_head_attention_forward(
        query: Operand, key: Operand, value: Operand, embed_dim_to_check: int, num_heads: int,
        in_proj_weight: Operand, in_proj_bias: Operand, bias_k: Operand, bias_v: Operand, add_zero_attn: bool,
        dropout_p: float, out_proj_weight: Operand, out_proj_bias: Operand, training: bool = True,
        key_padding_mask: Operand = None, need_weights: bool = True, attn_mask: Operand = None,
        use_separate_proj_weight: bool = False, q_proj_weight: Operand = None, k_proj_weight: Operand = None,
        v_proj_weight: Operand = None, static_k: Operand = None, static_v: Operand = None,
        average_attn_weights: bool = True, is_causal: bool = False, *, batch_first: bool = False,
        dropout_key: Operand = None) -> tuple[Tensor, Tensor | None]:
    """Multi-head attention: the affine map of the concatenation of softmax(q_i @ k_i.T / sqrt(d) + mask) @ v_i.

    `nn.MultiheadAttention` holds the weights. Boolean masks are True where attention is forbidden; masks of floats are
    added to the scores. (Vaswani et al. 2017, "Attention Is All You Need".)

    Args:
        query: Tensor [lq, n, embed_dim], or without n.
        key: Tensor [lk, n, kdim], likewise.
        value: Tensor [lk, n, vdim], likewise.
        embed_dim_to_check: The features that queries must have.
        num_heads: Number of heads.
        in_proj_weight: Tensor [3 * embed_dim, embed_dim] that makes q, k and v.
        in_proj_bias: Tensor [3 * embed_dim]; None for 0.
        bias_k: Tensor [1, 1, embed_dim], a key to add to those given; None for none.
        bias_v: The value that goes with it.
        add_zero_attn: Whether a key and a value of zeros are added.
        dropout_p: Probability in training that a weight is dropped.
        out_proj_weight: Tensor [embed_dim, embed_dim] of the last affine map.
        out_proj_bias: Tensor [embed_dim]; None for 0.
        training: Whether weights are dropped.
        key_padding_mask: Mask [n, lk] of keys that nothing attends to.
        need_weights: Whether the weights are returned; without them fused attention is used.
        attn_mask: Mask [lq, lk] or [n * num_heads, lq, lk].
        use_separate_proj_weight: Whether the three weights below are taken in place of `in_proj_weight`.
        q_proj_weight: Tensor [embed_dim, embed_dim] that makes q.
        k_proj_weight: Tensor [embed_dim, kdim] that makes k.
        v_proj_weight: Tensor [embed_dim, vdim] that makes v.
        static_k: Tensor [n * num_heads, lk, d] in place of k; None to compute it.
        static_v: Tensor [n * num_heads, lk, d] in place of v; None to compute it.
        average_attn_weights: Whether the weights are averaged over the heads.
        is_causal: Forbid attention to later keys; if `attn_mask` is given, it alone counts.
        batch_first: Whether n is dimension 0 of the tensors rather than 1.
        dropout_key: Key to draw with; None for one of the default generator.

    Returns:
        The result, and the weights [n, lq, lk] ([n, num_heads, lq, lk] if not averaged) or None.

    Raises:
        UserError: The inputs have the wrong number of dimensions (MLC0364) or features, or a mask or a tensor the wrong
            shape (MLC0367), or the heads do not divide the features (MLC0358).

    Example:
        >>> x, w = mlc.ones(3, 1, 4), mlc.ones(4, 4)
        >>> nn.functional.multi_head_attention_forward(
        ...     x, x, x, 4, 2, mlc.ones(12, 4), None, None, None, False, 0.0, w, None)[0].shape
        (3, 1, 4)
    """
    query, key, value = by_identity(lambda x: x if isinstance(x, Tensor) else create.asarray(x), query, key, value)
    key_padding_mask, attn_mask = (None if x is None else create.asarray(x) for x in (key_padding_mask, attn_mask))
    _check(query, key, value, embed_dim_to_check, num_heads)
    batched = query.ndim == 3
    query, key, value = by_identity(lambda x: _batch(x, batch_first), query, key, value)
    if key_padding_mask is not None and not batched:
        key_padding_mask = key_padding_mask.unsqueeze(0)
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = _projected(query, key, value, in_proj_weight, weights, in_proj_bias)
    q, k, v, extra = _by_head(q, k, v, num_heads, bias_k, bias_v, add_zero_attn, static_k, static_v)
    mask = _mask(q, k, key_padding_mask, attn_mask, is_causal, extra)
    mixed, found = _mixed(q, k, v, mask, need_weights, dropout_p if training else 0.0, dropout_key)
    out: Tensor = neural.linear(S.flatten(S.transpose(mixed, 1, 2), 2), out_proj_weight, out_proj_bias)
    if found is not None and average_attn_weights:
        found = R.mean(found, 1)
    if not batched:
        return out.squeeze(0), None if found is None else found.squeeze(0)
    return out if batch_first else S.transpose(out, 0, 1), found


def _check(query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_heads: int) -> None:
    """UserError for operands of other numbers of dimensions, and for heads that do not divide the features."""
    if not query.ndim == key.ndim == value.ndim or query.ndim not in (2, 3):
        raise UserError(f"query, key and value have {query.ndim}, {key.ndim} and {value.ndim} dimensions, expected "
                        "3 each, or 2 without a batch", code="MLC0364", loc=user_loc())
    if num_heads < 1 or embed_dim % num_heads:
        raise UserError(f"embed_dim = {embed_dim} is not divisible by num_heads = {num_heads}",
                        code="MLC0358", loc=user_loc())


def _batch(x: Tensor, batch_first: bool) -> Tensor:
    """The operand as [batch, length, features]."""
    if x.ndim == 2:
        return x.unsqueeze(0)
    return x if batch_first else S.transpose(x, 0, 1)


def by_identity(f: Callable[[Any], Tensor], query: Any, key: Any, value: Any) -> tuple[Tensor, ...]:
    """Apply f to each tensor, once for identical ones."""
    q = f(query)
    k = q if key is query else f(key)
    return q, k, k if value is key else f(value)


def _projected(query: Operand, key: Operand, value: Operand, weight: Operand, weights: Sequence[Any] | None,
               bias: Operand) -> tuple[Tensor, ...]:
    biases = (None, None, None) if bias is None else S.chunk(bias, 3)
    if weights is None:
        if query is key and key is value:
            return tuple(S.chunk(neural.linear(query, weight, bias), 3, -1))
        weights = S.chunk(weight, 3)
    return tuple(neural.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))


def _by_head(q: Tensor, k: Tensor, v: Tensor, heads: int, bias_k: Operand, bias_v: Operand, add_zero_attn: bool,
             static_k: Operand, static_v: Operand) -> tuple[Tensor, Tensor, Tensor, int]:
    """q, k and v as [batch, heads, length, d], with what is added to the keys, and how many that are."""
    n, extra = q.shape[0], 0
    if bias_k is not None and bias_v is not None:
        extra = 1
        k = S.cat([k, S.expand(bias_k, (n, 1, k.shape[2]))], 1)
        v = S.cat([v, S.expand(bias_v, (n, 1, v.shape[2]))], 1)

    def split(x: Tensor, given: Operand = None) -> Tensor:
        if given is not None:
            return create.asarray(given).reshape(n, heads, *given.shape[1:])
        return S.transpose(x.reshape(*x.shape[:2], heads, x.shape[2] // heads), 1, 2)

    q, k, v = split(q), split(k, static_k), split(v, static_v)
    if add_zero_attn:
        k, v = (S.pad(x, (0, 0, 0, 1)) for x in (k, v))
        extra += 1
    return q, k, v, extra


def _mask(q: Tensor, k: Tensor, padding: Operand, mask: Operand, is_causal: bool, extra: int) -> Tensor | None:
    """Additive mask of the scores [batch, heads, queries, keys], of which the last `extra` keys are allowed."""
    n, heads, queries, keys = *q.shape[:3], k.shape[2] - extra
    if is_causal and mask is None:
        mask = create.arange(queries).unsqueeze(1) < create.arange(keys)
    found: Tensor | None = None
    for x, shape in ((mask, None), (padding, (n, 1, 1, keys))):
        if x is None:
            continue
        given = (n, keys) if x is padding else (queries, keys) if x.ndim == 2 else (n * heads, queries, keys)
        if x.shape != given:
            name = "key_padding_mask" if x is padding else "attn_mask"
            raise UserError(f"{name} has shape [{', '.join(map(str, x.shape))}], expected "
                            f"[{', '.join(map(str, given))}]", code="MLC0367", loc=user_loc())
        x = E.where(x, -math.inf, create.zeros(dtype=q.dtype)) if not x.dtype.is_floating_point else x
        if shape is None and x.ndim == 3:
            shape = (n, heads, queries, keys)
        x = x if shape is None else x.reshape(shape)
        found = x if found is None else found + x
    return found if found is None or not extra else S.pad(found, (0, extra))


def _mixed(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, need_weights: bool, drops: float,
           key: Operand) -> tuple[Tensor, Tensor | None]:
    """The values mixed by attention, and its weights if they are wanted."""
    if not need_weights:
        fused = normalization.scaled_dot_product_attention(q, k, v, mask, drops, dropout_key=key if drops else None)
        return fused, None
    scores = contract.matmul(q * (1 / math.sqrt(q.shape[3])), S.transpose(k, 2, 3))
    weights = neural.softmax(scores if mask is None else scores + mask, -1)
    if drops:
        weights = neural.dropout(weights, drops, key=key)
    return contract.matmul(weights, v), weights
