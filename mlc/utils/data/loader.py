"""`DataLoader`: batches of a dataset, in the order of a sampler, by workers or in this process."""

from __future__ import annotations

import itertools
import math
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Mapping
from multiprocessing.context import BaseContext
from typing import Any, Generic, TypeVar

from mlc.frontend.arguments import coded_methods, described
from mlc.frontend.axes import plain_int
from mlc.frontend.location import user_loc
from mlc.ir.diag import UserError, UserTypeError
from mlc.utils.data.collate import default_collate, default_convert
from mlc.utils.data.dataset import IterableDataset
from mlc.utils.data.fetch import Fetching
from mlc.utils.data.generator import GeneratorLike, GeneratorSource, State
from mlc.utils.data.iteration import ByWorkers, InThisProcess, Progress
from mlc.utils.data.pool import Pool
from mlc.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    load_sampler_state,
    positive,
    sampler_state,
)

T_co = TypeVar("T_co", covariant=True)
FIXED = frozenset({"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"})
"""Attributes that other attributes were made from."""


class Unnumbered(Sampler[None]):
    """The sampler of a stream, whose samples have no indices: None for each, without end."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader(Generic[T_co]):
    """Batches of the samples of a dataset: an iterable, each iteration over which is one pass, or epoch.

    A map-style dataset is loaded in the order of a sampler, an iterable-style one in its own. The order of
    `shuffle=True` and the seeds of workers come from `generator`.

    With `num_workers` the dataset runs in processes, which are forked and begin with a copy of it. Each worker draws
    other numbers from `random`, `numpy.random` and the generator of `mlc.manual_seed`; its seed is that of the epoch
    plus its number. An exception in a worker is raised here, with the worker's traceback in its text. Workers end with
    the iteration, at the latest when its iterator is deleted, unless they are persistent.

    `state_dict` tells the position; a loader that loads it continues with the batches that would have come.

    Args:
        dataset: Object with `__getitem__`, and `__len__` for the samplers that need it, or an `IterableDataset`.
        batch_size: Number of samples of a batch; None for single samples, to which `collate_fn` is applied.
        shuffle: Whether the order is random, a new one for each pass.
        sampler: Iterable of indices.
        batch_sampler: Iterable of lists of indices, in place of `batch_size`, `shuffle`, `sampler` and `drop_last`.
        num_workers: Number of processes; with 0 batches are made in this process, when they are asked for.
        collate_fn: Function from a list of samples to a batch; `default_collate`, or for single samples
            `default_convert`, by default.
        pin_memory: Accepted for PyTorch's sake: copies to a GPU go through page-locked memory in any case.
        drop_last: Whether a last batch that has fewer samples is left out.
        timeout: Seconds to wait for a batch of the workers; 0 for any time.
        worker_init_fn: Function of the worker's number, called in each worker before it loads anything.
        multiprocessing_context: Start method, such as "spawn", or a context of `multiprocessing`; "fork" by default.
        generator: Seed or mlc.Generator; None for one that `mlc.manual_seed` seeds.
        prefetch_factor: Number of batches per worker that are made ahead; 2 by default.
        persistent_workers: Whether the workers stay for the next pass.
        pin_memory_device: Accepted for PyTorch's sake.
        in_order: Whether batches come in the order of the sampler; otherwise as the workers finish them.

    Raises:
        UserError: Arguments exclude each other (MLC0702) or need workers (MLC0703), or a number is out of range
            (MLC0704). While iterating: samples do not form a batch (MLC0700), a worker has ended (MLC0706), or no batch
            came in time (MLC0707).
        UserTypeError: The dataset has neither `__getitem__` nor `__iter__` of an IterableDataset (MLC0711), or
            `generator` is something else (MLC0713).

    Example:
        >>> data = mlc.utils.data.TensorDataset(mlc.arange(5), mlc.zeros(5, 2))
        >>> for x, y in mlc.utils.data.DataLoader(data, batch_size=2):
        ...     print(x, y.shape)
        tensor([0, 1], dtype=mlc.int64) (2, 2)
        tensor([2, 3], dtype=mlc.int64) (2, 2)
        tensor([4], dtype=mlc.int64) (1, 2)
    """

    def __init__(self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None,
                 sampler: Iterable[Any] | None = None, batch_sampler: Iterable[Any] | None = None,
                 num_workers: int = 0, collate_fn: Callable[[Any], Any] | None = None, pin_memory: bool = False,
                 drop_last: bool = False, timeout: float = 0, worker_init_fn: Callable[[int], Any] | None = None,
                 multiprocessing_context: str | BaseContext | None = None, generator: GeneratorLike = None, *,
                 prefetch_factor: int | None = None, persistent_workers: bool = False, pin_memory_device: str = "",
                 in_order: bool = True) -> None:
        self._iterable = isinstance(dataset, IterableDataset)
        if not self._iterable and not hasattr(dataset, "__getitem__"):
            raise UserTypeError(f"a {type(dataset).__name__} is no dataset: it has no __getitem__", code="MLC0711",
                                loc=user_loc(), hint="what can only be iterated derives from "
                                                     "mlc.utils.data.IterableDataset")
        for name, f in (("collate_fn", collate_fn), ("worker_init_fn", worker_init_fn)):
            if f is not None and not callable(f):
                raise UserTypeError(f"DataLoader: {name} is {described(f)}, expected a function", code="MLC0421",
                                    loc=user_loc())
        _check_order(self._iterable, batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.dataset = dataset
        self.num_workers = _check_workers(num_workers, timeout, prefetch_factor, persistent_workers,
                                          multiprocessing_context)
        self.prefetch_factor = positive(prefetch_factor, "prefetch_factor") if prefetch_factor is not None \
            else 2 if num_workers else None
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = _context(multiprocessing_context)
        self.in_order = in_order
        self.persistent_workers = persistent_workers
        self.generator = generator
        self._source = GeneratorSource(generator)
        if sampler is None and self._iterable:
            sampler = Unnumbered()
        elif sampler is None:
            sampler = RandomSampler(dataset, generator=self._source) if shuffle else SequentialSampler(dataset)
        if batch_sampler is not None:
            batch_size = None
        elif batch_size is not None:
            batch_size = positive(batch_size, "batch_size")
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        single = batch_size is None and batch_sampler is None
        self.collate_fn = collate_fn or (default_convert if single else default_collate)
        self._pool: Pool | None = None
        self._progress: Progress | None = None
        self._loaded = False

    def __setattr__(self, name: str, value: Any) -> None:
        if name in FIXED and "_loaded" in vars(self):
            raise UserError(f"{name} of a data loader cannot be assigned: it has made its samplers and workers from it",
                            code="MLC0712", loc=user_loc(), hint="make another DataLoader")
        super().__setattr__(name, value)

    def __len__(self) -> int:
        """The number of batches; for an iterable-style dataset that which its own length amounts to."""
        if not self._iterable:
            return len(self._order)  # type: ignore[arg-type]
        count = len(self.dataset)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else math.ceil(count / self.batch_size)

    @property
    def _order(self) -> Iterable[Any]:
        """An index for each batch, or each sample where there are no batches; a stream needs no list of them."""
        if self._iterable:
            return itertools.repeat(None)
        return self.batch_sampler if self.batch_sampler is not None else self.sampler

    def __iter__(self) -> Iterator[T_co]:
        skipped = 0
        if self._loaded and self._progress is not None:
            self._set_state(self._progress.start)
            skipped = self._progress.batches
        progress = Progress(self._state(), 0 if self._iterable else skipped)
        seed, indices = self._source.draw_seed(), iter(self._order)
        if not self._iterable:
            indices = itertools.islice(indices, skipped, None)
        batches = self._by_workers(seed, indices, progress) if self.num_workers \
            else InThisProcess(self._fetching, indices, progress)
        if self._iterable:                                 # a stream has to be read again
            for _ in range(skipped):
                next(batches, None)
        self._progress, self._loaded = progress, False
        return batches

    @property
    def _fetching(self) -> Fetching:
        return Fetching(self.dataset, self.collate_fn, self._iterable, self.batch_sampler is not None, self.batch_size,
                        self.drop_last)

    def _by_workers(self, seed: int, indices: Iterator[Any], progress: Progress) -> ByWorkers:
        pool = self._pool
        if pool is None or not pool.usable:
            jobs = [{"id": i, "num_workers": self.num_workers, "seed": seed, "fetching": self._fetching,
                     "init": self.worker_init_fn} for i in range(self.num_workers)]
            pool = Pool(self.multiprocessing_context, jobs, self.prefetch_factor or 2)
            self._pool = pool if self.persistent_workers else None
        return ByWorkers(pool, indices, progress, in_order=self.in_order, timeout=self.timeout,
                         keep=self.persistent_workers)

    # -- position -----------------------------------------------------------------------------------------------------
    def state_dict(self) -> State:
        """Position of the last iteration, from which another loader can continue: a dict of numbers and names.

        It does not have the state of the dataset: a random transform in it draws other numbers after the position is
        loaded, and an iterable-style dataset is read again up to the position.

        Raises:
            UserError: Batches are given out as they come (MLC0710).

        Example:
            >>> loader = mlc.utils.data.DataLoader(range(6), batch_size=2, shuffle=True, generator=0)
            >>> batches = iter(loader)
            >>> _, state = next(batches), loader.state_dict()
            >>> other = mlc.utils.data.DataLoader(range(6), batch_size=2, shuffle=True)
            >>> other.load_state_dict(state)
            >>> [x.tolist() for x in other] == [x.tolist() for x in batches]
            True
        """
        progress = self._progress
        if progress is None or progress.finished:
            progress = Progress(self._state())
        if progress.batches and self.num_workers and not self.in_order:
            raise UserError("a data loader with in_order=False has no position: its batches come as workers finish "
                            "them", code="MLC0710", loc=user_loc(), hint="use in_order=True")
        return {"batches": progress.batches, "batch_size": self.batch_size, "num_workers": self.num_workers,
                **progress.start}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Let the next iteration begin at a position that `state_dict` returned.

        Args:
            state: The position, of a loader with the same dataset, sampler and batch size.

        Raises:
            UserError: It is the position of a loader of another kind (MLC0709).

        Example:
            >>> loader = mlc.utils.data.DataLoader(range(6), batch_size=2)
            >>> batches = iter(loader)
            >>> _ = next(batches)
            >>> state = loader.state_dict()
            >>> other = mlc.utils.data.DataLoader(range(6), batch_size=2)
            >>> other.load_state_dict(state)
            >>> next(iter(other))
            tensor([2, 3], dtype=mlc.int64)
        """
        same = ["batch_size"] + ["num_workers"] * self._iterable
        if missing := [name for name in ("batches", "generator", "sampler", *same) if name not in state]:
            raise UserError(f"the state of the data loader has no {missing[0]!r}", code="MLC0709", loc=user_loc())
        if not isinstance(count := state["batches"], int) or count < 0 or not isinstance(state["generator"], dict):
            raise UserError("the state of the data loader is damaged", code="MLC0709", loc=user_loc(),
                            hint="load one that state_dict returned")
        for name in same:
            if state[name] != (own := getattr(self, name)):
                raise UserError(f"the state is of a data loader with {name} = {state[name]}, this one has {own}",
                                code="MLC0709", loc=user_loc(), hint="make the loader with the same arguments")
        start = {"generator": state["generator"], "sampler": state["sampler"]}
        self._set_state(start)
        self._progress, self._loaded = Progress(start, count), True

    def _state(self) -> State:
        return {"generator": self._source.state_dict(), "sampler": sampler_state(self._order)}

    def _set_state(self, state: State) -> None:
        self._source.load_state_dict(state["generator"])
        load_sampler_state(self._order, state["sampler"])


coded_methods(DataLoader, ("__init__", "load_state_dict"))


# -- arguments --------------------------------------------------------------------------------------------------------
def _check_order(iterable: bool, batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any,
                 drop_last: bool) -> None:
    """Refuse arguments that contradict each other about the order and the batches."""
    for name, x in (("sampler", sampler), ("batch_sampler", batch_sampler)):
        if x is not None and not hasattr(x, "__iter__") and not hasattr(x, "__getitem__"):
            raise UserTypeError(f"DataLoader: {name} is {described(x)}, expected an iterable of indices",
                                code="MLC0711", loc=user_loc())
    given = [name for name, there in (("batch_size", batch_size != 1), ("shuffle", shuffle), ("sampler", sampler),
                                      ("drop_last", drop_last)) if there is not None and there is not False]
    conflict = None
    if iterable and (shuffle or sampler is not None or batch_sampler is not None):
        name = "shuffle" if shuffle else "sampler" if sampler is not None else "batch_sampler"
        conflict = f"the order of an IterableDataset is its own, so {name} cannot be given"
    elif batch_sampler is not None and given:
        conflict = f"batch_sampler makes the batches, so {given[0]} cannot be given"
    elif sampler is not None and shuffle:
        conflict = "sampler makes the order, so shuffle cannot be given"
    elif batch_size is None and drop_last:
        conflict = "batch_size=None makes no batches, so drop_last cannot be given"
    if conflict:
        raise UserError(f"DataLoader: {conflict}", code="MLC0702", loc=user_loc())


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool,
                   context: Any) -> int:
    """Refuse numbers below 0, and arguments about workers where there are none; returns the number of workers."""
    count = plain_int(num_workers, "num_workers")
    for name, value in (("num_workers", count), ("timeout", timeout)):
        if value < 0:
            raise UserError(f"{name} = {value}, expected at least 0", code="MLC0704", loc=user_loc())
    for name, there in (("prefetch_factor", prefetch_factor is not None), ("persistent_workers", persistent_workers),
                        ("multiprocessing_context", context is not None)):
        if there and not count:
            raise UserError(f"DataLoader: {name} is about workers, and num_workers is 0", code="MLC0703",
                            loc=user_loc(), hint=f"leave {name} out, or give num_workers")
    if count and multiprocessing.current_process().daemon:
        raise UserError("DataLoader: a worker cannot have workers of its own", code="MLC0703", loc=user_loc(),
                        hint="use num_workers=0 for a loader within a dataset")
    return count


def _context(context: Any) -> BaseContext:
    methods = multiprocessing.get_all_start_methods()
    if context is None or (isinstance(context, str) and context in methods):
        return multiprocessing.get_context(context or "fork")
    if isinstance(context, BaseContext):
        return context
    raise UserError(f"multiprocessing_context = {context!r}, expected one of {', '.join(methods)}, or a context of "
                    "multiprocessing", code="MLC0704", loc=user_loc())
