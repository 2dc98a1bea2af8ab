"""Samplers: iterables of the indices of samples, or of batches of them, in the order in which they are loaded.

Random samplers have `state_dict` and `load_state_dict`, by which a `DataLoader` repeats the order of an epoch. A
sampler of one's own needs these methods only if its order changes from one iteration to the next.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import numpy as np

from mlc.frontend.arguments import coded_methods
from mlc.frontend.axes import plain_int
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError, UserTypeError
from mlc.utils.data.generator import GeneratorLike, GeneratorSource, State

T_co = TypeVar("T_co", covariant=True)


def part(state: Any, name: str) -> Any:
    """A part of the state of a sampler; UserError where it has none."""
    if not isinstance(state, dict) or name not in state:
        raise UserError(f"the state of the sampler has no {name!r}", code="MLC0709", loc=user_loc(),
                        hint="load what state_dict of a sampler of the same kind returned")
    return state[name]


class Sampler(Generic[T_co]):
    """Base of samplers: iterables of indices of samples, or of lists of them, in the order in which they are loaded.

    A subclass defines `__iter__`, and `__len__` if the length of a loader is asked for. One whose order changes
    from one iteration to the next also has `state_dict` and `load_state_dict`, by which a loader repeats the order of
    an epoch.

    Raises:
        UserTypeError: It is iterated, and the subclass does not define `__iter__` (MLC0711).

    Example:
        >>> class Backwards(mlc.utils.data.Sampler):
        ...     def __iter__(self):
        ...         return iter([2, 1, 0])
        >>> list(mlc.utils.data.DataLoader("abc", sampler=Backwards()))
        [['c'], ['b'], ['a']]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise UserTypeError(f"{type(self).__name__} does not define __iter__", code="MLC0711", loc=user_loc())


class _RandomSampler(Sampler[int]):
    """A sampler with a generator, the state of which determines its next iteration."""

    def __init__(self, generator: GeneratorLike | GeneratorSource) -> None:
        self._source = generator if isinstance(generator, GeneratorSource) else GeneratorSource(generator)

    def state_dict(self) -> State:
        """State from which the next iteration gives the same indices: that of the generator.

        Returns:
            Dict of lists of numbers.

        Example:
            >>> sampler = mlc.utils.data.RandomSampler("abcd")
            >>> state = sampler.state_dict()
            >>> first = list(sampler)
            >>> sampler.load_state_dict(state)
            >>> list(sampler) == first
            True
        """
        return {"generator": self._source.state_dict()}

    def load_state_dict(self, state: State) -> None:
        """Continue from a state that `state_dict` returned.

        Args:
            state: State of a sampler of the same kind.

        Raises:
            UserError: It is that of another kind (MLC0709).
        """
        self._source.load_state_dict(part(state, "generator"))


class SequentialSampler(Sampler[int]):
    """Indices of a dataset in order.

    0, 1, ..., len(data_source) - 1, the same in every epoch. It is what `DataLoader` uses without `shuffle`.

    Args:
        data_source: Object with a length.

    Example:
        >>> list(mlc.utils.data.SequentialSampler("abc"))
        [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


_BLOCK = 1 << 16
"""Number of indices that are drawn at once: programs ask for more samples than memory holds, and take a few."""


class RandomSampler(_RandomSampler):
    """Indices of a dataset in random order, a new one for each iteration.

    Without replacement it is a permutation, so that an epoch visits every sample once. `DataLoader(shuffle=True)` makes
    one.

    Args:
        data_source: Object with a length.
        replacement: Whether indices are drawn independently, so that some may come several times.
        num_samples: Number of indices; by default the length. Without replacement a larger number continues with
            another order of all indices.
        generator: Seed or mlc.Generator; None for one that `mlc.manual_seed` seeds.

    Raises:
        UserError: `num_samples` is not positive, there is nothing to draw from (MLC0704), or `generator` is negative
            (MLC0360).
        UserTypeError: `generator` is something else (MLC0713).

    Example:
        >>> sorted(mlc.utils.data.RandomSampler("abcd", generator=0))
        [0, 1, 2, 3]
    """

    def __init__(self, data_source: Sized, replacement: bool = False, num_samples: int | None = None,
                 generator: GeneratorLike | GeneratorSource = None) -> None:
        super().__init__(generator)
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = None if num_samples is None else positive(num_samples, "num_samples")
        self.generator = generator
        if not len(data_source):
            raise UserError("RandomSampler: there is nothing to draw from, the dataset is empty", code="MLC0704",
                            loc=user_loc())

    @property
    def num_samples(self) -> int:
        """The number of indices of an iteration: that given, or the length of the dataset.

        Example:
            >>> mlc.utils.data.RandomSampler("abcd").num_samples
            4
        """
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        draw, count, size = self._source.numpy(), self.num_samples, len(self.data_source)
        if self.replacement:
            blocks = (min(_BLOCK, count - first) for first in range(0, count, _BLOCK))
            return itertools.chain.from_iterable(draw.integers(size, size=n).tolist() for n in blocks)
        orders = (draw.permutation(size) for _ in range(math.ceil(count / max(size, 1))))
        return itertools.islice(itertools.chain.from_iterable(order.tolist() for order in orders), count)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(_RandomSampler):
    """Given indices in random order, a new one for each iteration.

    Args:
        indices: The indices.
        generator: Seed or mlc.Generator; None for one that `mlc.manual_seed` seeds.

    Raises:
        UserError: `generator` is negative (MLC0360).
        UserTypeError: `generator` is something else (MLC0713).

    Example:
        >>> sorted(mlc.utils.data.SubsetRandomSampler([3, 5, 7], generator=0))
        [3, 5, 7]
    """

    def __init__(self, indices: Sequence[int], generator: GeneratorLike = None) -> None:
        super().__init__(generator)
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        order = self._source.numpy().permutation(len(self.indices)).tolist()
        return (self.indices[i] for i in order)

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(_RandomSampler):
    """Indices drawn with probabilities that are proportional to weights.

    Args:
        weights: Non-negative weight of each index.
        num_samples: Number of indices of an iteration.
        replacement: Whether they are drawn independently; otherwise none comes twice.
        generator: Seed or mlc.Generator; None for one that `mlc.manual_seed` seeds.

    Raises:
        UserError: `num_samples` is not positive, the weights are no probabilities, or without replacement fewer than
            `num_samples` are positive (MLC0704).
        UserTypeError: `generator` is something else (MLC0713).

    Example:
        >>> list(mlc.utils.data.WeightedRandomSampler([0.0, 2.0, 0.0], 4))
        [1, 1, 1, 1]
    """

    def __init__(self, weights: Sequence[float], num_samples: int, replacement: bool = True,
                 generator: GeneratorLike = None) -> None:
        super().__init__(generator)
        self.weights = np.asarray(weights, np.float64)
        self.num_samples = positive(num_samples, "num_samples")
        self.replacement = replacement
        self.generator = generator
        if self.weights.ndim != 1 or not np.isfinite(self.weights).all() or (self.weights < 0).any() \
                or not self.weights.any():
            raise UserError("WeightedRandomSampler: the weights have to be a vector of numbers of at least 0 that are "
                            "not all 0", code="MLC0704", loc=user_loc())
        if not replacement and (chosen := int(np.count_nonzero(self.weights))) < self.num_samples:
            raise UserError(f"WeightedRandomSampler: {self.num_samples} different indices, where {chosen} weights are "
                            "positive", code="MLC0704", loc=user_loc(), hint="draw fewer, or with replacement=True")

    def __iter__(self) -> Iterator[int]:
        probabilities = self.weights / self.weights.sum()
        return iter(self._source.numpy().choice(len(self.weights), self.num_samples, self.replacement,
                                                  probabilities).tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Batches of the indices of another sampler.

    Lists of `batch_size` indices in the order of the sampler: ceil(n / batch_size) of them, or floor with `drop_last`.
    Given to `DataLoader` as `batch_sampler`, it decides which samples make a batch.

    Args:
        sampler: Iterable of indices.
        batch_size: Number of indices of a batch.
        drop_last: Whether a last batch that has fewer is left out.

    Raises:
        UserError: `batch_size` is not positive (MLC0704).

    Example:
        >>> list(mlc.utils.data.BatchSampler(range(5), 2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        self.sampler = sampler
        self.batch_size = positive(batch_size, "batch_size")
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else math.ceil(count / self.batch_size)

    def state_dict(self) -> State:
        """State from which the next iteration gives the same batches: that of the sampler.

        Returns:
            Dict of the state; None stands for that of a sampler without `state_dict`.

        Example:
            >>> mlc.utils.data.BatchSampler(range(4), 2, drop_last=False).state_dict()
            {'sampler': None}
        """
        return {"sampler": sampler_state(self.sampler)}

    def load_state_dict(self, state: State) -> None:
        """Continue from a state that `state_dict` returned.

        Args:
            state: State of a sampler of the same kind.

        Raises:
            UserError: It is that of another kind (MLC0709).
        """
        load_sampler_state(self.sampler, part(state, "sampler"))


class DistributedSampler(Sampler[int]):
    """The part of a dataset's indices that one of several training processes loads.

    All processes have parts of one length: some indices come twice, or with `drop_last` some are left out. Call
    `set_epoch` before each epoch, or each has the same order.

    Args:
        dataset: Dataset with a length.
        num_replicas: Number of processes; None for that of the ranks of the job.
        rank: Number of this process, from 0; None for its rank.
        shuffle: Whether the order is random; it is the same in all processes.
        seed: Seed of the order, to which the epoch is added.
        drop_last: Whether indices that remain are left out.

    Raises:
        UserError: `num_replicas` or `rank` is not given, and there is no process group, or `rank` is out of range
            (MLC0704).

    Example:
        >>> sampler = mlc.utils.data.DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False)
        >>> list(sampler)
        [1, 3, 0]
    """

    def __init__(self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
                 seed: int = 0, drop_last: bool = False) -> None:
        if num_replicas is None or rank is None:
            from mlc import distributed
            if not distributed.is_initialized():
                raise UserError("DistributedSampler: num_replicas and rank have to be given where there is no process "
                                "group", code="MLC0704", loc=user_loc(),
                                hint="call mlc.distributed.init_process_group() first")
            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        self.dataset = dataset
        self.num_replicas = positive(num_replicas, "num_replicas")
        self.rank = plain_int(rank, "rank")
        if not 0 <= self.rank < self.num_replicas:
            raise UserError(f"DistributedSampler: rank = {rank}, expected 0 to {self.num_replicas - 1}",
                            code="MLC0704", loc=user_loc())
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.epoch = 0
        share = len(dataset) / self.num_replicas
        self.num_samples = math.floor(share) if drop_last else math.ceil(share)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        order = np.random.default_rng(self.seed + self.epoch).permutation(size) if self.shuffle else np.arange(size)
        mine = range(self.rank, self.total_size, self.num_replicas)
        return iter([int(order[i % size]) for i in mine])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch, which is added to the seed of the order.

        Args:
            epoch: An integer.

        Raises:
            UserTypeError: It is none (MLC0355).

        Example:
            >>> sampler = mlc.utils.data.DistributedSampler(range(100), num_replicas=2, rank=0)
            >>> first = list(sampler)
            >>> sampler.set_epoch(1)
            >>> list(sampler) == first
            False
        """
        self.epoch = plain_int(epoch, "epoch")

    def state_dict(self) -> State:
        """State from which the next iteration gives the same indices: the epoch.

        Returns:
            Dict of the number.

        Example:
            >>> mlc.utils.data.DistributedSampler(range(5), num_replicas=2, rank=1).state_dict()
            {'epoch': 0}
        """
        return {"epoch": self.epoch}

    def load_state_dict(self, state: State) -> None:
        """Continue from a state that `state_dict` returned.

        Args:
            state: State of a sampler of the same kind.

        Raises:
            UserError: It is that of another kind (MLC0709).
        """
        self.set_epoch(part(state, "epoch"))


for _class in (SequentialSampler, RandomSampler, SubsetRandomSampler, WeightedRandomSampler, BatchSampler,
               DistributedSampler):
    coded_methods(_class, ("__init__", "load_state_dict", "set_epoch"))


def sampler_state(sampler: Any) -> Any:
    """State of a sampler; None if it has none."""
    return sampler.state_dict() if hasattr(sampler, "state_dict") else None


def load_sampler_state(sampler: Any, state: Any) -> None:
    """Load what `sampler_state` returned; refuse it if the sampler has a state where the other had none."""
    if hasattr(sampler, "load_state_dict") != (state is not None):
        found, expected = ("no", "one") if state is None else ("a", "none")
        raise UserError(f"there is {found} state of a sampler, and {type(sampler).__name__} has {expected}",
                        code="MLC0709", loc=user_loc(), hint="make the loader with the sampler that it had")
    if state is not None:
        sampler.load_state_dict(state)


def positive(x: Any, name: str) -> int:
    """A parameter as an integer of at least 1."""
    if (value := plain_int(x, name)) < 1:
        raise UserError(f"{name} = {value}, expected at least 1", code="MLC0704", loc=user_loc())
    return value
