"""Attention in one operator, as PyTorch's kernels for CPUs have it."""

from __future__ import annotations

import math
from typing import Any

from mlc.frontend.fx.refusing import refuse
from mlc.frontend.fx.table import row
from mlc.frontend.tensor import OPERATIONS as O


@row("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(q: Any, k: Any, v: Any, dropout_p: float = 0.0, is_causal: bool = False, *, attn_mask: Any = None,
                    scale: float | None = None) -> Any:
    """The result, and the logarithms of the sums of exponentials of each row of scores."""
    if dropout_p:
        refuse("dropout within attention")
    out = O["scaled_dot_product_attention"](q, k, v, attn_mask, is_causal=is_causal, scale=scale)
    wide = q.dtype if str(q.dtype) == "mlc.float64" else "float32"
    scores = O["cast"](O["matmul"](q, O["transpose"](k, -2, -1)), wide) * (
        1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if attn_mask is not None:
        scores = scores + attn_mask
    if is_causal:
        allowed = O["tril"](O["ones"]((q.shape[-2], k.shape[-2]), dtype="bool"))
        scores = O["where"](allowed, scores, -math.inf)
    return out, O["logsumexp"](scores, -1)
