"""Fetching: from the indices of a batch, or the next samples of a stream, to the collated batch."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlc.utils.data.dataset import samples

EXHAUSTED = object()
"""In place of a batch: an iterable-style dataset has no more samples."""


@dataclass(frozen=True)
class Fetching:
    """How batches are made, in this process or in a worker.

    batch_size   that of an iterable-style dataset; None if samples are not batched
    batched      whether an index of a map-style dataset is a list of indices
    """

    dataset: Any
    collate_fn: Callable[[Any], Any]
    iterable: bool
    batched: bool
    batch_size: int | None
    drop_last: bool

    def start(self) -> Callable[[Any], Any]:
        """The function from an index to a batch, for one pass over the dataset."""
        return self._from_stream() if self.iterable else self._at

    def _at(self, index: Any) -> Any:
        return self.collate_fn(samples(self.dataset, index) if self.batched else self.dataset[index])

    def _from_stream(self) -> Callable[[Any], Any]:
        stream = iter(self.dataset)

        def following(index: Any) -> Any:
            if self.batch_size is None:
                sample = next(stream, EXHAUSTED)
                return EXHAUSTED if sample is EXHAUSTED else self.collate_fn(sample)
            batch = list(itertools.islice(stream, self.batch_size))
            whole = len(batch) == self.batch_size
            return self.collate_fn(batch) if whole or (batch and not self.drop_last) else EXHAUSTED
        return following
