"""Keys and values of what a model has seen: memory that compiled steps write in place.

A cache is one pair of tensors [pages * PAGE, kv heads, head size] per layer. The rows of a sequence are in pages of its
own, or shared with others (pages.py), whose numbers are its page table. A step writes the keys and values of its tokens
at their rows, by a scatter, and attends to the pages of each sequence, by a gather; as the tensors are donated, nothing
else of them is touched. How many pages are read is the width of the table, so that one compilation serves all lengths.

A cache of int8 has a fourth of the size, and 4 bytes per head and row for a scale: each head of each row is rounded to
255 steps of its greatest magnitude / 127, so that no number is off by more than that magnitude / 254.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import mlc
from mlc.frontend.tensor import Tensor
from mlc.models.layers import attend

LayerCache = tuple[Tensor, ...]
"""Keys and values of a layer, [rows, kv heads, head size]; in int8, and their scales behind, [rows, kv heads]."""
Cache = list[LayerCache]
Array = np.ndarray[Any, Any]
CacheType = Literal["float32", "int8"]

PAGE = 64
"""Tokens of a page. Sums over all rows that are read are then the same whatever is beyond what is seen: each of their
lanes ends at a multiple of this (dialects/tensor/orders.py), and what is not seen adds zeros."""


@dataclass(frozen=True)
class Seen:
    """The rows that the tokens of a call see: tensors that are computed once for all layers.

    positions  of the tokens in their sequences [batch, n]
    lengths    of the sequences, these tokens included [batch]
    size       number of rows that are read per sequence
    table      the numbers of the pages that these rows are in [batch, size / PAGE]; None without a cache
    """

    positions: Tensor
    lengths: Tensor
    size: int
    table: Tensor | None = None

    def mask(self, window: int) -> Tensor:
        """The attention mask [batch, 1, n, size]: a token sees rows up to its own, the last `window` or, for 0, all."""
        rows, at = mlc.arange(self.size)[None, None, None, :], self.positions[:, None, :, None]
        mask = rows <= at
        return mask & (rows > at - window) if window else mask

    def attend(self, cache: LayerCache | None, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float,
               cap: float | None = None) -> tuple[Tensor, LayerCache | None]:
        """Attention of the tokens [batch, n, heads * head size] to what they see, and the cache with what is theirs.

        A row that is not finite is zeros in the cache, so that it makes nothing of what others compute NaN: what is
        masked is multiplied by zero. The attention of its token is NaN, and so are the scores behind it.

        q     [batch, heads, n, head size]
        k, v  [batch, n, kv heads, head size]
        """
        if cache is None or self.table is None:
            return attend(q, k.transpose(1, 2), v.transpose(1, 2), mask, scale, cap), None
        sound = (mlc.isfinite(k) & mlc.isfinite(v)).flatten(2).all(-1)
        k, v = (mlc.where(sound[..., None, None], x, 0.0) for x in (k, v))
        keys, values, cache = self._store(cache, k, v, self.table)
        return mlc.where(sound[..., None], attend(q, keys, values, mask, scale, cap), float("nan")), cache

    def _store(self, cache: LayerCache, k: Tensor, v: Tensor, table: Tensor) -> tuple[Tensor, Tensor, LayerCache]:
        """Keys and values [batch, kv heads, size, head size] to attend to, and the cache with those of the tokens."""
        plain = len(cache) == 2
        new = (k, v) if plain else rounded(k, v)
        rows = mlc.gather(table, 1, self.positions // PAGE) * PAGE + self.positions % PAGE
        written = tuple(mlc.index_put(old, (rows,), x) for old, x in zip(cache, new))
        keys, values, *scales = (x.unflatten(0, (-1, PAGE))[table].flatten(1, 2) for x in written)
        if not plain:
            keys, values = (x.float() * scale[..., None] for x, scale in zip((keys, values), scales))
        return keys.transpose(1, 2), values.transpose(1, 2), written


def rounded(*numbers: Tensor) -> tuple[Tensor, ...]:
    """Numbers [..., size] in int8, each one's, and then their scales [...]."""
    scales = [x.abs().amax(-1) / 127 for x in numbers]
    return (*(mlc.round(x / mlc.where(s == 0, 1.0, s)[..., None]).to("int8") for x, s in zip(numbers, scales)), *scales)


def shapes(pages: int | str, kv_heads: int, head_size: int, dtype: CacheType) -> list[tuple[tuple[Any, ...], str]]:
    """The shapes and types of the tensors of a layer for a number of pages, or for the name of one."""
    rows = PAGE * pages if isinstance(pages, int) else f"{PAGE}*{pages}"
    whole = ((rows, kv_heads, head_size), dtype)
    return [whole, whole, *([((rows, kv_heads), "float32")] * 2 if dtype == "int8" else [])]


def pages_for(length: int) -> int:
    """How many pages the rows of a text take."""
    return -(-length // PAGE)


def table_of(length: int, *pages: Sequence[int]) -> Array:
    """The page table of a call whose sequences have these pages, for texts of at most a length.

    Page 0 is in the place of those that a sequence does not have.
    """
    width = pages_for(length)
    return np.array([[*own[:width], *[0] * (width - len(own))] for own in pages], np.int64)


def whole(tokens: Tensor) -> Seen:
    """The rows that tokens [batch, n] see that are whole sequences, without a cache."""
    batch, n = tokens.shape
    positions = mlc.arange(n)[None].expand(batch, n)
    return Seen(positions, positions[:, -1] + 1, n)
