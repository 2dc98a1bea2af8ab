"""Operators of PyTorch's compiler and engine that mlc has no names for, as what they are in its functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlc

F = mlc.nn.functional
WHY = "it has no name in mlc, and is a composition"


def _softmax_gradient(grad: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    _, pullback = mlc.vjp(lambda x: F.softmax(x, dim), mlc.log(output))
    return pullback(grad)[0].to(input_dtype)


def _safe_softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    empty = mlc.all(x == float("-inf"), dim, True)
    return mlc.where(empty, 0, F.softmax(mlc.where(empty, 0, x), dim, dtype=dtype))


def _within(x: Any, indices: Any) -> tuple[Any, ...]:
    """Indices of all dimensions of x, those of masked elements among them, as indices that are not out of range."""
    return tuple(slice(None) if i is None else mlc.clamp(i, -n, n - 1) for i, n in zip(indices, x.shape))


def _masked_index(x: Any, mask: Any, indices: Any, fill: Any) -> Any:
    return mlc.where(mask, x[_within(x, indices)], fill)


def _masked_index_put(x: Any, mask: Any, indices: Any, values: Any) -> Any:
    return mlc.index_put(x, _within(x, indices), mlc.where(mask, values, 0), accumulate=True)


def _chunk_cat(tensors: Any, dim: int, num_chunks: int) -> Any:
    def in_chunks(x: Any) -> Any:
        missing = -x.shape[dim] % num_chunks
        rows = mlc.movedim(F.pad(mlc.movedim(x, dim, -1), (0, missing)), -1, dim)
        return rows.reshape(*x.shape[:dim], num_chunks, -1)

    return mlc.cat([in_chunks(x) for x in tensors], -1)


def _batch_norm_with_update(x: Any, weight: Any, bias: Any, mean: Any, var: Any, momentum: float, eps: float) -> Any:
    return *mlc.native_batch_norm(x, weight, bias, mean, var, True, momentum, eps), mlc.zeros(0, dtype=mlc.uint8)


COMPOSITIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "_softmax_backward_data": (_softmax_gradient, WHY),
    "native_dropout_backward": (lambda grad, mask, scale: grad * mask * scale, WHY),
    "torch.ops.aten._safe_softmax.default": (_safe_softmax, WHY),
    "_unsafe_masked_index": (_masked_index, WHY),
    "_unsafe_masked_index_put_accumulate": (_masked_index_put, WHY),
    "_chunk_cat": (_chunk_cat, WHY),
    "_batch_norm_with_update": (_batch_norm_with_update, WHY)}
"""By the name of an entry: a function with the entry's arguments, and the reason."""
