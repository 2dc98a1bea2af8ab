"""DataLoader: batches, orders and positions, the same with and without workers."""
from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch.utils import data as torch_data

import mlc
from mlc.ir.diag import UserError
from mlc.utils import data
from mlc.utils.data import DataLoader
from tests.public_case import thinned

Loader = DataLoader[Any]


class Samples(data.Dataset[Any]):
    """Samples of several kinds; one array is large enough for shared memory."""

    def __len__(self) -> int:
        return 11

    def __getitem__(self, index: int) -> Any:
        return np.full((2, 1000), index, np.float32), {"index": index, "name": str(index)}


class Draws(data.Dataset[Any]):
    """Random numbers of the worker, and its seed."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        info = data.get_worker_info()
        assert info is not None and info.dataset is not None and info.num_workers == 2
        return info.id, info.seed, random.random(), np.random.rand(), nn_random()


def nn_random() -> float:
    return mlc.rand(()).item()  # type: ignore[no-any-return]


def stream(base: Any, worker_info: Callable[[], Any]) -> Any:
    class Numbers(base):  # type: ignore[misc]
        """Worker 1 has fewer than half of the numbers."""

        def __iter__(self) -> Any:
            info = worker_info()
            return iter(range(13)) if info is None else iter(range(5 * info.id, 13, info.num_workers))

        def __len__(self) -> int:
            return 13
    return Numbers()


def plain(x: Any) -> Any:
    if hasattr(x, "numpy"):
        return str(x.dtype).split(".")[1], x.numpy().tolist()
    if isinstance(x, dict):
        return {key: plain(value) for key, value in x.items()}
    return [plain(value) for value in x] if isinstance(x, list | tuple) else x


# -- batches ----------------------------------------------------------------------------------------------------------
BATCHES: list[dict[str, Any]] = [
    {"batch_size": 3, "prefetch_factor": 3}, {}, {"batch_size": 4}, {"batch_size": 4, "drop_last": True},
    {"batch_size": None}, {"sampler": [3, 1, 2], "batch_size": 2}, {"batch_sampler": [[0], [10, 5, 5]]},
    {"batch_size": 3, "collate_fn": len}]


@pytest.mark.parametrize("case", [*((s, 0) for s in BATCHES), *thinned([(s, 2) for s in BATCHES], 4)],
                         ids=str)
def test_batches_are_those_of_torch(case: tuple[dict[str, Any], int]) -> None:
    settings, workers = case
    if not workers:
        settings = {**settings, "prefetch_factor": None}
    for ours, theirs in ((Samples(), Samples()), (stream(data.IterableDataset, data.get_worker_info),
                                                  stream(torch_data.IterableDataset, torch_data.get_worker_info))):
        if isinstance(ours, data.IterableDataset) and not {"sampler", "batch_sampler"}.isdisjoint(settings):
            continue
        mine = Loader(ours, num_workers=workers, **settings)
        expected = torch_data.DataLoader(theirs, num_workers=workers, **settings)
        assert plain(list(mine)) == plain(list(expected)) and len(mine) == len(expected)


def test_iterating_again_and_at_the_same_time() -> None:
    loader = Loader(range(6), 3, num_workers=1)
    assert [x.tolist() for x in loader] == [x.tolist() for x in loader] == [[0, 1, 2], [3, 4, 5]]
    assert len([(x, y) for x in loader for y in loader]) == 4


def test_what_a_batch_holds_stays() -> None:
    """The memory that a worker writes to again is not the batch's, which a compiled function may take over."""
    batches = list(Loader(Samples(), 1, num_workers=1))
    assert [x.numpy().max() for x, _ in batches] == list(range(11))
    step = mlc.compile(lambda x: x * 2, donate=("x",))
    assert step(batches[3][0]).numpy().max() == 6


# -- orders -----------------------------------------------------------------------------------------------------------
def order(loader: DataLoader[Any]) -> list[list[int]]:
    return [x.tolist() for x in loader]


@pytest.mark.parametrize("workers", [0, 2])
def test_shuffled_orders_are_reproducible(workers: int) -> None:
    def orders(generator: Any) -> list[list[list[int]]]:
        loader = Loader(range(20), 5, shuffle=True, num_workers=workers, generator=generator)
        return [order(loader), order(loader)]

    assert orders(7) == orders(7) == orders(mlc.Generator().manual_seed(7)) != orders(8)
    mlc.manual_seed(0)
    first = orders(None)
    mlc.manual_seed(0)
    assert orders(None) == first and first[0] != first[1]
    assert sorted(itertools.chain(*first[0])) == list(range(20))


def test_workers_draw_different_numbers() -> None:
    mlc.manual_seed(0)
    first, second = (list(Loader(Draws(), 3, num_workers=2)) for _ in range(2))
    mlc.manual_seed(0)
    assert plain(first) == plain(list(Loader(Draws(), 3, num_workers=2))) != plain(second)
    (ids, seeds, *draws), (other_ids, other_seeds, *other_draws) = first
    assert set(ids.tolist() + other_ids.tolist()) == {0, 1}
    assert other_seeds.tolist()[0] - seeds.tolist()[0] == 1
    assert all(not set(a.tolist()) & set(b.tolist()) for a, b in zip(draws, other_draws))


# -- positions --------------------------------------------------------------------------------------------------------
LOADERS: dict[str, Callable[..., DataLoader[Any]]] = {
    "shuffle": lambda **k: Loader(range(11), 2, shuffle=True, **k),
    "seed": lambda **k: Loader(range(11), 2, shuffle=True, generator=3, **k),
    "samples": lambda **k: Loader(range(11), None, shuffle=True, **k),
    "weights": lambda **k: Loader(range(11), 2, sampler=data.WeightedRandomSampler(range(11), 9), **k),
    "batches": lambda **k: Loader(range(11), batch_sampler=data.BatchSampler(
        data.SubsetRandomSampler(range(11)), 2, True), **k),
    "replica": lambda **k: Loader(range(11), 2, sampler=data.DistributedSampler(range(11), 2, 0), **k),
    "in order": lambda **k: Loader(range(11), 2, **k),
    "stream": lambda **k: Loader(stream(data.IterableDataset, data.get_worker_info), 2, **k),
}


@pytest.mark.parametrize("make", LOADERS.values(), ids=LOADERS)
@pytest.mark.parametrize("workers, after", [(0, 0), (0, 2), pytest.param(2, 0, marks=pytest.mark.slow), (2, 2)])
def test_a_loaded_position_is_continued(make: Callable[..., DataLoader[Any]], workers: int, after: int) -> None:
    loader = make(num_workers=workers, persistent_workers=workers > 0)
    list(loader)
    batches = iter(loader)
    list(itertools.islice(batches, after))
    state = json.loads(json.dumps(loader.state_dict()))
    other = make(num_workers=workers)
    other.load_state_dict(state)
    assert other.state_dict() == state
    expected = [plain(list(batches)), plain(list(loader))]
    assert [plain(list(other)), plain(list(other))] == expected


def test_a_position_of_no_iteration_begins_with_the_next() -> None:
    loader, other = (Loader(range(9), 2, shuffle=True) for _ in range(2))
    list(loader)
    other.load_state_dict(loader.state_dict())
    assert order(other) == order(loader)


@pytest.mark.parametrize("other, change", [
    (lambda: Loader(range(8), 3, shuffle=True), {}), (lambda: Loader(range(8), 2), {}),
    (lambda: Loader(range(8), 2, shuffle=True), {"batches": None}),
    (lambda: Loader(range(8), 2, shuffle=True), {"generator": 3}),
    (lambda: Loader(range(8), 2, shuffle=True), {"generator": {"generator": [1, 2]}}),
])
def test_positions_of_other_loaders_are_refused(other: Callable[[], DataLoader[Any]], change: dict[str, Any]) -> None:
    state = Loader(range(8), 2, shuffle=True).state_dict()
    with pytest.raises(UserError, match="MLC0709"):
        other().load_state_dict({**state, **change})
    with pytest.raises(UserError, match=r"MLC0709.*has no 'generator'"):
        other().load_state_dict({"batches": 1})
    with pytest.raises(UserError, match="MLC0421"):
        other().load_state_dict(3)  # type: ignore[arg-type]


# -- errors -----------------------------------------------------------------------------------------------------------
STREAM: Any = data.IterableDataset()


@pytest.mark.parametrize("arguments, code", [
    ({"batch_sampler": [[0]], "batch_size": 2}, "MLC0702"), ({"batch_sampler": [[0]], "shuffle": True}, "MLC0702"),
    ({"batch_sampler": [[0]], "sampler": [0]}, "MLC0702"), ({"batch_sampler": [[0]], "drop_last": True}, "MLC0702"),
    ({"sampler": [0], "shuffle": True}, "MLC0702"), ({"batch_size": None, "drop_last": True}, "MLC0702"),
    ({"dataset": STREAM, "shuffle": True}, "MLC0702"), ({"dataset": STREAM, "sampler": [0]}, "MLC0702"),
    ({"dataset": STREAM, "batch_sampler": [[0]]}, "MLC0702"),
    ({"prefetch_factor": 2}, "MLC0703"), ({"persistent_workers": True}, "MLC0703"),
    ({"multiprocessing_context": "fork"}, "MLC0703"), ({"num_workers": -1}, "MLC0704"), ({"timeout": -1}, "MLC0704"),
    ({"num_workers": 1, "prefetch_factor": 0}, "MLC0704"), ({"batch_size": 0}, "MLC0704"),
    ({"num_workers": 1, "multiprocessing_context": "thread"}, "MLC0704"), ({"dataset": [], "shuffle": True}, "MLC0704"),
    ({"dataset": iter([1])}, "MLC0711"), ({"generator": "a"}, "MLC0713"), ({"num_workers": 1.5}, "MLC0355"),
    ({"sampler": 3}, "MLC0711"), ({"collate_fn": "pad"}, "MLC0421"), ({"timeout": "long"}, "MLC0421"),
    ({"batchsize": 3}, "MLC0321"),
], ids=lambda x: x if isinstance(x, str) else "-".join(x))
def test_arguments_are_refused(arguments: dict[str, Any], code: str) -> None:
    with pytest.raises(UserError) as caught:
        DataLoader(**{"dataset": [1, 2, 3], **arguments})
    assert caught.value.code == code and caught.value.loc.file == __file__


def test_attributes_are_fixed() -> None:
    loader = Loader([1])
    with pytest.raises(UserError, match="MLC0712"):
        loader.dataset = [2]
    loader.timeout = 3.0


def test_the_iteration_goes_on_after_an_error_of_the_dataset() -> None:
    class Broken(data.Dataset[int]):
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> int:
            return [0, 1, 2][index] if index != 1 else next(iter([]))

    for workers in (0, 1):
        batches = iter(Loader(Broken(), num_workers=workers))
        assert next(batches).tolist() == [0]
        with pytest.raises(mlc.Error, match="MLC0708"):
            next(batches)
        assert [x.tolist() for x in batches] == [[2]]


@pytest.mark.parametrize("batch_size", [2, None])
def test_a_loader_of_a_stream_has_samplers(batch_size: int | None) -> None:
    """Programs ask them for the size of batches, as `loader.batch_sampler.batch_size`."""
    found: list[Any] = []
    for module, worker_info in ((data, data.get_worker_info), (torch_data, torch_data.get_worker_info)):
        own: Any = module
        loader = own.DataLoader(stream(own.IterableDataset, worker_info), batch_size=batch_size)
        batches = loader.batch_sampler
        found.append((list(itertools.islice(loader.sampler, 3)), batches is not None and batches.batch_size,
                      [x.tolist() if hasattr(x, "tolist") else x for x in loader]))
    assert found[0] == found[1]
