"""Datasets and samplers, beside those of torch.utils.data."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils import data as torch_data

import mlc
from mlc.ir.diag import UserError
from mlc.utils import data


class Stream(data.IterableDataset[int]):
    def __iter__(self) -> Any:
        return iter(range(3))

    def __len__(self) -> int:
        return 3


# -- datasets ---------------------------------------------------------------------------------------------------------
def test_tensors_by_rows() -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    ours, theirs = data.TensorDataset(x, mlc.tensor([5, 6, 7])), torch_data.TensorDataset(
        torch.tensor(x), torch.tensor([5, 6, 7]))
    for index in (0, -1, slice(1, 3), [2, 0]):
        assert [t.tolist() for t in ours[index]] == [t.tolist() for t in theirs[index]]
    assert len(ours) == len(theirs)


def test_datasets_of_datasets() -> None:
    both = data.ConcatDataset[int]([range(3), range(10, 12)])
    assert [both[i] for i in range(-5, 5)] == [0, 1, 2, 10, 11] * 2
    assert (data.Subset(both, [4, 0])[0], data.Subset(both, [4, 0]).__getitems__([1, 0])) == (11, [0, 11])
    assert data.StackDataset(range(3), "abc").__getitems__([2, 0]) == [(2, "c"), (0, "a")]
    assert data.StackDataset(a=range(3), b="abc")[1] == {"a": 1, "b": "b"}
    assert list(data.ChainDataset([Stream(), Stream()])) == [0, 1, 2] * 2 and len(data.ChainDataset([Stream()])) == 3
    assert isinstance(Stream() + Stream(), data.ChainDataset) and len(both + both) == 10  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:.*split.* (is empty|is 0)")
@pytest.mark.parametrize("lengths", [[6, 4], [0.5, 0.5], [0.3, 0.3, 0.4], [0.25, 0.7, 0.05], [10, 0]], ids=str)
def test_random_splits_have_torchs_lengths(lengths: list[float]) -> None:
    ours, theirs = data.random_split(range(10), lengths), torch_data.random_split(range(10), lengths)
    assert [len(s) for s in ours] == [len(s) for s in theirs]
    assert sorted(x for s in ours for x in (s[i] for i in range(len(s)))) == list(range(10))


# -- samplers ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [0, 1, 7, 8])
@pytest.mark.parametrize("drop_last", [False, True])
def test_sequential_samplers_are_those_of_torch(size: int, drop_last: bool) -> None:
    ours = data.BatchSampler(data.SequentialSampler(range(size)), 4, drop_last)
    theirs = torch_data.BatchSampler(torch_data.SequentialSampler(range(size)), 4, drop_last)
    assert list(ours) == list(theirs) and len(ours) == len(theirs)
    for count in (1, 2, 3) if size else ():
        for rank in range(count):
            mine = data.DistributedSampler(range(size), count, rank, shuffle=False, drop_last=drop_last)
            assert list(mine) == list(torch_data.DistributedSampler(
                range(size), count, rank, shuffle=False, drop_last=drop_last))


def test_replicas_share_one_order() -> None:
    def parts(epoch: int) -> list[int]:
        samplers = [data.DistributedSampler(range(12), 3, rank, seed=5) for rank in range(3)]
        for sampler in samplers:
            sampler.set_epoch(epoch)
        return [i for sampler in samplers for i in sampler]

    assert sorted(parts(0)) == list(range(12)) and parts(0) == parts(0) != parts(1)


def test_random_samplers_draw_what_they_should() -> None:
    sampler = data.RandomSampler(range(100), generator=0)
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(100)) and first != second
    assert sorted(data.RandomSampler(range(4), num_samples=8)) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert set(data.RandomSampler(range(3), replacement=True, num_samples=99, generator=1)) == {0, 1, 2}
    for replacement in (False, True):                      # more than memory holds
        assert next(iter(data.RandomSampler(range(1), replacement, num_samples=10**10))) == 0
    counts = np.bincount(list(data.WeightedRandomSampler([1, 0, 3], 4000, generator=2)))
    assert counts[1] == 0 and abs(counts[2] / counts[0] - 3) < 0.5
    assert sorted(data.WeightedRandomSampler([1, 0, 3, 2], 3, replacement=False)) == [0, 2, 3]


MAKERS: dict[str, Callable[[Any], Any]] = {
    "RandomSampler": lambda generator: data.RandomSampler(range(50), generator=generator),
    "SubsetRandomSampler": lambda generator: data.SubsetRandomSampler(range(50), generator),
    "WeightedRandomSampler": lambda generator: data.WeightedRandomSampler(range(50), 40, generator=generator),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_seed_a_generator_and_manual_seed_make_orders_reproducible(make: Callable[[Any], Any]) -> None:
    assert list(make(3)) == list(make(3)) == list(make(mlc.Generator().manual_seed(3))) != list(make(4))
    sampler, orders = make(None), []
    for seed in (0, 0, 1):
        mlc.manual_seed(seed)
        orders.append([list(sampler), list(sampler)])
    assert orders[0] == orders[1] != orders[2] and orders[0][0] != orders[0][1]
    state, following = sampler.state_dict(), list(sampler)
    sampler.load_state_dict(state)
    assert list(sampler) == following


# -- errors -----------------------------------------------------------------------------------------------------------
ANY: Any = data
"""The module without the types of its parameters."""


@pytest.mark.parametrize("wrong, code", [
    (lambda: data.TensorDataset(mlc.ones(3), mlc.ones(2)), "MLC0705"), (lambda: data.TensorDataset(), "MLC0705"),
    (lambda: data.TensorDataset(mlc.tensor(1.0)), "MLC0705"),
    (lambda: data.StackDataset(range(3), range(2)), "MLC0705"), (lambda: data.StackDataset(), "MLC0705"),
    (lambda: data.StackDataset([1], a=[1]), "MLC0702"), (lambda: data.ConcatDataset([]), "MLC0705"),
    (lambda: ANY.ConcatDataset(3), "MLC0421"), (lambda: ANY.default_collate(3), "MLC0421"),
    (lambda: data.ConcatDataset([Stream()]), "MLC0711"), (lambda: list(data.ChainDataset([[1]])), "MLC0711"),
    (lambda: data.ConcatDataset([[1, 2]])[2], "MLC0356"), (lambda: data.ConcatDataset([[1, 2]])[-3], "MLC0356"),
    (lambda: data.Dataset()[0], "MLC0711"), (lambda: iter(data.IterableDataset()), "MLC0711"),
    (lambda: iter(data.Sampler()), "MLC0711"),
    (lambda: type("Own", (data.Subset,), {"__getitem__": lambda self, i: i})([1], [0]), "MLC0711"),
    (lambda: data.random_split(range(5), [2, 2]), "MLC0705"), (lambda: data.random_split(range(5), [6, -1]), "MLC0705"),
    (lambda: data.random_split(range(5), [0.5, 0.4]), "MLC0705"),
    (lambda: data.random_split(range(5), [2.5, 2.5]), "MLC0705"), (lambda: data.random_split(Stream(), [3]), "MLC0711"),
    (lambda: data.RandomSampler([]), "MLC0704"), (lambda: data.RandomSampler([1], num_samples=0), "MLC0704"),
    (lambda: ANY.RandomSampler([1], generator=1.5), "MLC0713"),
    (lambda: data.RandomSampler([1], generator=-1), "MLC0360"),
    (lambda: data.RandomSampler([1], generator=torch.Generator()), "MLC0713"),
    (lambda: ANY.RandomSampler([1], num_samples=1.5), "MLC0355"), (lambda: ANY.RandomSampler(3), "MLC0421"),
    (lambda: data.WeightedRandomSampler([1, -1], 1), "MLC0704"),
    (lambda: data.WeightedRandomSampler([0, 0], 1), "MLC0704"),
    (lambda: ANY.WeightedRandomSampler([[1]], 1), "MLC0704"),
    (lambda: data.WeightedRandomSampler([1, 0], 2, replacement=False), "MLC0704"),
    (lambda: data.BatchSampler([1], 0, False), "MLC0704"),
    (lambda: data.DistributedSampler([1], 2, 2), "MLC0704"), (lambda: data.DistributedSampler([1]), "MLC0704"),
    (lambda: data.DistributedSampler([1], 1, 0).load_state_dict({}), "MLC0709"),
    (lambda: ANY.DistributedSampler([1], 1, 0).set_epoch("1"), "MLC0355"),
    (lambda: data.RandomSampler([1]).load_state_dict({}), "MLC0709"),
    (lambda: data.BatchSampler(data.RandomSampler([1]), 1, False).load_state_dict({}), "MLC0709"),
    (lambda: ANY.BatchSampler(data.RandomSampler([1]), 1, False).load_state_dict(3), "MLC0709"),
])
def test_errors(wrong: Callable[[], Any], code: str) -> None:
    with pytest.raises(UserError) as caught:
        wrong()
    assert caught.value.code == code and caught.value.loc.file == __file__


def test_samples_of_tensors_are_views() -> None:
    """A write to a sample is one to the dataset, as in PyTorch; an index that selects copies."""
    for make, module in ((mlc.zeros, data), (torch.zeros, torch_data)):
        dataset: Any = module.TensorDataset(make(3, 2))
        for index in (0, np.int64(1), [2]):
            sample, = dataset[index]
            sample += 1
        assert dataset.tensors[0].tolist() == [[1, 1], [1, 1], [0, 0]]


@pytest.mark.parametrize("index", [10, -4, 1.5, "a"])
def test_what_is_no_index_of_a_tensor_dataset_is_refused(index: Any) -> None:
    with pytest.raises(UserError) as found:
        data.TensorDataset(mlc.zeros(3, 2))[index]
    assert str(found.value.code).startswith("MLC")
