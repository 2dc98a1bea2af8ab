"""Datasets: the base classes, datasets made of tensors or other datasets, and splits."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
from mlc.frontend.arguments import coded, coded_methods
from mlc.frontend.functions.create import asarray
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError, UserIndexError, UserTypeError
from mlc.utils.data.generator import GeneratorLike, GeneratorSource

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Base of map-style datasets, which give a sample for each index or key.

    A subclass defines `__getitem__`, and for the samplers that need it `__len__`. With `__getitems__`, which takes a
    list of indices and returns a list of samples, whole batches are loaded at once. Any other object with these methods
    can be given to a `DataLoader` as well.

    Example:
        >>> class Squares(mlc.utils.data.Dataset):
        ...     def __getitem__(self, index):
        ...         return index ** 2
        ...     def __len__(self):
        ...         return 4
        >>> [Squares()[i] for i in range(len(Squares()))]
        [0, 1, 4, 9]
    """

    def __getitem__(self, index: Any) -> T_co:
        raise _undefined(self, "__getitem__")

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Base of iterable-style datasets, such as streams, whose order is their own.

    A subclass defines `__iter__`. Each worker of a `DataLoader` iterates over a copy of the dataset, so `__iter__` or
    `worker_init_fn` has to select the worker's part; `get_worker_info` says which worker it is.

    Example:
        >>> class Numbers(mlc.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         info = mlc.utils.data.get_worker_info()
        ...         return iter(range(4)) if info is None else iter(range(info.id, 4, info.num_workers))
        >>> list(mlc.utils.data.DataLoader(Numbers(), batch_size=2))
        [tensor([0, 1], dtype=mlc.int64), tensor([2, 3], dtype=mlc.int64)]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise _undefined(self, "__iter__")

    def __add__(self, other: Dataset[Any]) -> ChainDataset:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Dataset whose sample i is the tuple of the i-th elements of some tensors, along their first dimension.

    The usual dataset of features and labels that fit into memory: one tensor of inputs and one of targets. The elements
    of a sample are views of the tensors.

    Args:
        *tensors: Tensors or numpy arrays of the same first size.

    Raises:
        UserError: The first sizes differ, or there is no tensor (MLC0705).

    Example:
        >>> data = mlc.utils.data.TensorDataset(mlc.ones(3, 2), mlc.tensor([0, 1, 0]))
        >>> len(data), data[1]
        (3, (tensor([1., 1.], dtype=mlc.float32), tensor(1, dtype=mlc.int64)))
    """

    def __init__(self, *tensors: Any) -> None:
        self.tensors = tuple(asarray(tensor) for tensor in tensors)
        shapes = [list(tensor.shape) for tensor in self.tensors]
        if not shapes or not all(shapes) or any(shape[0] != shapes[0][0] for shape in shapes):
            found = ", ".join(map(str, shapes)) or "none"
            raise UserError(f"TensorDataset: the tensors have to have one first size, found shapes {found}",
                            code="MLC0705", loc=user_loc())

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset[Any]):
    """Dataset whose sample i is the tuple, or the dict, of the samples i of some datasets.

    Args:
        *args: Datasets of one length, for tuples.
        **kwargs: Datasets of one length by name, for dicts.

    Raises:
        UserError: The lengths differ, or there is no dataset (MLC0705), or some have names and others have none
            (MLC0702).

    Example:
        >>> mlc.utils.data.StackDataset(image=[10, 20], label=[0, 1])[1]
        {'image': 20, 'label': 1}
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise UserError("StackDataset takes datasets with names or datasets without, not both", code="MLC0702",
                            loc=user_loc())
        self.datasets = kwargs or args
        lengths = [_length(dataset, "StackDataset") for dataset in self._parts()]
        if not lengths or len(set(lengths)) > 1:
            raise UserError("StackDataset: the datasets have to have one length, found "
                            f"{', '.join(map(str, lengths)) or 'none'}", code="MLC0705", loc=user_loc())
        self._size = lengths[0]

    def _parts(self) -> list[Any]:
        return list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)

    def _sample(self, values: Sequence[Any]) -> Any:
        return dict(zip(self.datasets, values)) if isinstance(self.datasets, dict) else tuple(values)

    def __getitem__(self, index: Any) -> Any:
        return self._sample([dataset[index] for dataset in self._parts()])

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        return [self._sample(values) for values in zip(*(samples(part, indices) for part in self._parts()))]

    def __len__(self) -> int:
        return self._size


class ConcatDataset(Dataset[T_co]):
    """Dataset that has the samples of several map-style datasets, one after the other.

    Args:
        datasets: Datasets with a length.

    Raises:
        UserError: There is no dataset (MLC0705), or one has no length (MLC0711).

    Example:
        >>> data = mlc.utils.data.ConcatDataset([[1, 2], [3]])
        >>> len(data), data[2], data[-1]
        (3, 3, 3)
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise UserError("ConcatDataset: there is no dataset to concatenate", code="MLC0705", loc=user_loc())
        self.cumulative_sizes = list(itertools.accumulate(_length(d, "ConcatDataset") for d in self.datasets))

    def __getitem__(self, index: Any) -> T_co:
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise UserIndexError(f"index {index} is out of range for a dataset of {len(self)} samples", code="MLC0356",
                                 loc=user_loc())
        at = bisect.bisect_right(self.cumulative_sizes, position)
        return self.datasets[at][position - (self.cumulative_sizes[at - 1] if at else 0)]  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset[Any]):
    """Dataset that iterates over several iterable-style datasets, one after the other.

    Args:
        datasets: Instances of `IterableDataset`; the iterable is iterated anew each time.

    Raises:
        UserTypeError: While iterating: one of them is no IterableDataset (MLC0711).

    Example:
        >>> class Numbers(mlc.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         return iter(range(2))
        >>> list(mlc.utils.data.ChainDataset([Numbers(), Numbers()]))
        [0, 1, 0, 1]
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def _checked(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise UserTypeError(f"ChainDataset: {type(dataset).__name__} is no IterableDataset", code="MLC0711",
                                    loc=user_loc(), hint="ConcatDataset is for map-style datasets")
            yield dataset

    def __iter__(self) -> Iterator[Any]:
        for dataset in self._checked():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._checked())


class Subset(Dataset[T_co]):
    """Dataset of the samples at some indices of another one.

    Sample i is dataset[indices[i]], read when it is asked for; nothing is copied. Indices may repeat and come in any
    order. `mlc.utils.data.random_split` makes subsets for training and validation.

    Args:
        dataset: The whole dataset.
        indices: Indices into it.

    Raises:
        UserTypeError: A subclass defines `__getitem__` alone, which batches would pass by (MLC0711).

    Example:
        >>> data = mlc.utils.data.Subset("abcdef", [0, 2, 4])
        >>> len(data), data[1]
        (3, 'c')
    """

    def __init__(self, dataset: Any, indices: Sequence[Any]) -> None:
        own = type(self)
        if own.__getitem__ is not Subset.__getitem__ and own.__getitems__ is Subset.__getitems__:
            raise UserTypeError(f"{own.__name__} overrides __getitem__ of Subset, but not __getitems__, which loads "
                                "batches", code="MLC0711", loc=user_loc(),
                                hint="def __getitems__(self, indices): return [self[i] for i in indices]")
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]  # type: ignore[no-any-return]
        return self.dataset[self.indices[index]]  # type: ignore[no-any-return]

    def __getitems__(self, indices: list[Any]) -> list[T_co]:
        return samples(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def samples(dataset: Any, indices: Sequence[Any]) -> list[Any]:
    """The samples of a map-style dataset at some indices: by `__getitems__`, if it has that."""
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[i] for i in indices]
    found: list[Any] = dataset.__getitems__(indices)
    if len(found) != len(indices):
        raise UserError(f"{type(dataset).__name__}.__getitems__ returned {len(found)} samples for {len(indices)} "
                        "indices", code="MLC0705", loc=user_loc())
    return found


for _class in (TensorDataset, StackDataset, ConcatDataset, ChainDataset, Subset):
    coded_methods(_class, ("__init__",))


@coded
def random_split(dataset: Any, lengths: Sequence[float], generator: GeneratorLike = None) -> list[Subset[Any]]:
    """Split a dataset at random into datasets of given lengths that have no sample in common.

    Fractions are of the dataset's length, rounded down; samples that remain go to the first splits, one each.

    Args:
        dataset: Map-style dataset with a length.
        lengths: Lengths whose sum is the dataset's length, or fractions whose sum is 1.
        generator: Seed or mlc.Generator; None for one that `mlc.manual_seed` seeds.

    Returns:
        List of a `Subset` for each length.

    Raises:
        UserError: The lengths do not add up to that of the dataset, a length or fraction is negative (MLC0705), or
            `generator` is negative (MLC0360).
        UserTypeError: `generator` is something else (MLC0713), or the dataset has no length (MLC0711).

    Example:
        >>> train, test = mlc.utils.data.random_split(range(10), [0.75, 0.25], generator=0)
        >>> len(train), len(test), sorted([*train, *test]) == list(range(10))
        (8, 2, True)
    """
    total, given = _length(dataset, "random_split"), list(lengths)
    if any(length < 0 for length in given):
        raise UserError(f"random_split: lengths = {given}, none may be negative", code="MLC0705", loc=user_loc())
    if math.isclose(sum(given), 1) and sum(given) <= 1:
        sizes = [math.floor(total * fraction) for fraction in given]
        for i in range(total - sum(sizes)):
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if size == 0:
                warnings.warn(f"random_split: split {i} of a dataset of {total} samples is empty", stacklevel=2)
    elif sum(given) == total and all(length == int(length) for length in given):
        sizes = [int(length) for length in given]
    else:
        raise UserError(f"random_split: the lengths {given} add up to {sum(given)}, the dataset has {total} samples",
                        code="MLC0705", loc=user_loc(),
                        hint="give lengths whose sum is the dataset's, or fractions whose sum is 1")
    order = GeneratorSource(generator).numpy().permutation(total).tolist()
    ends = [0, *itertools.accumulate(sizes)]
    return [Subset(dataset, order[a:b]) for a, b in itertools.pairwise(ends)]


def _length(dataset: Any, user: str) -> int:
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
        raise UserTypeError(f"{user}: {type(dataset).__name__} is no map-style dataset with a length", code="MLC0711",
                            loc=user_loc(), hint="give it __getitem__ and __len__; ChainDataset joins iterable-style "
                                                 "datasets")
    return len(dataset)


def _undefined(of: Any, method: str) -> UserTypeError:
    return UserTypeError(f"{type(of).__name__} does not define {method}", code="MLC0711", loc=user_loc())
