"""Keys and values of what a model has seen: memory that compiled steps write in place.

A cache is one pair of tensors [sequences * capacity, kv heads, head size] per layer, the rows of the sequences one
after the other. A step writes the keys and values of its tokens at their rows, by a scatter, and attends to the first
rows of each sequence, by a slice; as the tensors are donated, nothing else of them is touched. How many rows are read
is the size of an argument without elements of its own (`window`), so that one compilation serves all lengths.

A cache of int8 has a fourth of the size, and 4 bytes per head and row for a scale: each head of each row is rounded to
255 steps of its greatest magnitude / 127, so that no number is off by more than that magnitude / 254.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import mlc
from mlc.frontend.tensor import Tensor

LayerCache = tuple[Tensor, ...]
"""Keys and values of a layer, [rows, kv heads, head size]; in int8, and their scales behind, [rows, kv heads]."""
Cache = list[LayerCache]
CacheType = Literal["float32", "int8"]

STEP = 64
"""Windows are multiples of this. Sums over a window are then the same whatever it is beyond what is seen: each of their
lanes ends at a multiple of it (dialects/tensor/orders.py), and what is not seen adds zeros."""


@dataclass(frozen=True)
class Seen:
    """The rows that the tokens of a call see: tensors that are computed once for all layers.

    positions  of the tokens in their sequences [batch, n]
    lengths    of the sequences, these tokens included [batch]
    size       number of rows that are read per sequence
    slots      rows of the cache that the tokens write [batch, n]; None without a cache
    first      row at which the only sequence of the call begins; None if the call has the first sequences
    capacity   rows of the cache for each sequence, where the call has several: its first ones
    """

    positions: Tensor
    lengths: Tensor
    size: int
    slots: Tensor | None = None
    first: Tensor | None = None
    capacity: int = 0

    def mask(self, window: int) -> Tensor:
        """The attention mask [batch, 1, n, size]: a token sees rows up to its own, the last `window` or, for 0, all."""
        rows, at = mlc.arange(self.size)[None, None, None, :], self.positions[:, None, :, None]
        mask = rows <= at
        return mask & (rows > at - window) if window else mask

    def store(self, cache: LayerCache | None, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, LayerCache | None]:
        """Keys and values [batch, kv heads, size, head size] to attend to, and the cache with those of the tokens.

        k, v: [batch, n, kv heads, head size].
        """
        if cache is None or self.slots is None:
            return k.transpose(1, 2), v.transpose(1, 2), None
        plain = len(cache) == 2
        new = (k, v) if plain else rounded(k, v)
        written = tuple(mlc.index_put(old, (self.slots,), x) for old, x in zip(cache, new))
        keys, values, *scales = (self._read(x) for x in written)
        if not plain:
            keys, values = (x.float() * scale[..., None] for x, scale in zip((keys, values), scales))
        return keys.transpose(1, 2), values.transpose(1, 2), written

    def _read(self, x: Tensor) -> Tensor:
        """The rows that are seen [batch, size, kv heads, ...]."""
        rest = x.shape[1:]
        if self.first is not None:
            out: Tensor = mlc.dynamic_slice(x, (self.first, *[0] * len(rest)), (self.size, *rest))[None]
            return out
        return x.reshape(-1, self.capacity, *rest)[: self.positions.shape[0], : self.size]


def rounded(*numbers: Tensor) -> tuple[Tensor, ...]:
    """Numbers [..., size] in int8, each one's, and then their scales [...]."""
    scales = [x.abs().amax(-1) / 127 for x in numbers]
    return (*(mlc.round(x / mlc.where(s == 0, 1.0, s)[..., None]).to("int8") for x, s in zip(numbers, scales)), *scales)


def shapes(rows: Any, kv_heads: int, head_size: int, dtype: CacheType) -> list[tuple[tuple[Any, ...], str]]:
    """The shapes and types of the tensors of a layer for a number of rows."""
    whole = ((rows, kv_heads, head_size), dtype)
    return [whole, whole, *([((rows, kv_heads), "float32")] * 2 if dtype == "int8" else [])]


def whole(tokens: Tensor) -> Seen:
    """The rows that tokens [batch, n] see that are whole sequences, without a cache."""
    batch, n = tokens.shape
    positions = mlc.arange(n)[None].expand(batch, n)
    return Seen(positions, positions[:, -1] + 1, n)
