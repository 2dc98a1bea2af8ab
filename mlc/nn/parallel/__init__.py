"""PyTorch's `torch.nn.parallel`: models whose batches are divided among processes.

`DistributedDataParallel` averages the gradients of the ranks of a job. `data_parallel` calls a module on the one device
of its parameters, with the result that several devices would give.

Example:
    >>> nn.parallel.data_parallel(nn.Linear(2, 1), mlc.ones(3, 2)).shape
    (3, 1)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mlc.nn.parallel.data_parallel import data_parallel

if TYPE_CHECKING:
    from mlc.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DistributedDataParallel", "data_parallel"]


def __getattr__(name: str) -> Any:
    """`DistributedDataParallel` is built on mlc.distributed, which few programs need."""
    if name == "DistributedDataParallel":
        return importlib.import_module("mlc.nn.parallel.distributed").DistributedDataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
