"""Keys and values of what a model has seen: memory that compiled steps write in place.

A cache is one pair of tensors [sequences * capacity, kv heads, head size] per layer, the rows of the sequences one
after the other. A step writes the keys and values of its tokens at their rows, by a scatter, and attends to the first
rows of each sequence, by a slice; as the tensors are donated, nothing else of them is touched. How many rows are read
is the size of an argument without elements of its own (`window`), so that one compilation serves all lengths.
"""

from __future__ import annotations

from dataclasses import dataclass

import mlc
from mlc.frontend.tensor import Tensor

Cache = list[tuple[Tensor, Tensor]]
"""Keys and values of each layer."""

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
        """Whether a token sees a row: [batch, 1, n, size], at most `window` positions back, 0 for all."""
        rows, at = mlc.arange(self.size)[None, None, None, :], self.positions[:, None, :, None]
        mask = rows <= at
        return mask & (rows > at - window) if window else mask

    def store(self, cache: tuple[Tensor, Tensor] | None, k: Tensor, v: Tensor
              ) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor] | None]:
        """Keys and values [batch, kv heads, size, head size] to attend to, and the cache with those of the tokens.

        k, v: [batch, n, kv heads, head size].
        """
        if cache is None or self.slots is None:
            return k.transpose(1, 2), v.transpose(1, 2), None
        keys, values = (mlc.index_put(old, (self.slots,), new) for old, new in zip(cache, (k, v)))
        return self._read(keys), self._read(values), (keys, values)

    def _read(self, x: Tensor) -> Tensor:
        _, heads, size = x.shape
        if self.first is not None:
            read = mlc.dynamic_slice(x, (self.first, 0, 0), (self.size, heads, size))[None]
        else:
            read = x.reshape(-1, self.capacity, heads, size)[: self.positions.shape[0], : self.size]
        return read.transpose(1, 2)


def whole(tokens: Tensor) -> Seen:
    """The rows that tokens [batch, n] see that are whole sequences, without a cache."""
    batch, n = tokens.shape
    positions = mlc.arange(n)[None].expand(batch, n)
    return Seen(positions, positions[:, -1] + 1, n)
