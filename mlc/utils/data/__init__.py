"""Data loading with the names, arguments and results of `torch.utils.data`: datasets, samplers and `DataLoader`.

    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=4)
    for x, y in loader:
        ...

Example:
    >>> dataset = mlc.utils.data.TensorDataset(mlc.arange(3), mlc.tensor([0.0, 1.0, 4.0]))
    >>> for x, y in mlc.utils.data.DataLoader(dataset, batch_size=2):
    ...     print(x, y)
    tensor([0, 1], dtype=mlc.int64) tensor([0., 1.], dtype=mlc.float32)
    tensor([2], dtype=mlc.int64) tensor([4.], dtype=mlc.float32)
"""

from mlc.utils.data import dataloader as dataloader
from mlc.utils.data.collate import default_collate, default_convert
from mlc.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from mlc.utils.data.loader import DataLoader
from mlc.utils.data.sampler import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from mlc.utils.data.worker import get_worker_info

__all__ = ["BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler",
           "IterableDataset", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset",
           "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "default_collate", "default_convert",
           "get_worker_info", "random_split"]
