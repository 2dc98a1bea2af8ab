"""PyTorch's `torch.utils`, of which mlc has `data`, `checkpoint`, `benchmark`, `dlpack` and `tensorboard`.

`data` has datasets, samplers and loaders with worker processes; `checkpoint` recomputes values in the backward pass;
`benchmark` measures; `dlpack` exchanges tensors with other libraries; `tensorboard` writes what TensorBoard shows. All
but `data` are imported when they are first used.

Example:
    >>> dataset = mlc.utils.data.TensorDataset(mlc.arange(4))
    >>> [x.tolist() for x, in mlc.utils.data.DataLoader(dataset, batch_size=2)]
    [[0, 1], [2, 3]]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mlc.utils import data as data

if TYPE_CHECKING:
    from mlc.utils import benchmark as benchmark
    from mlc.utils import checkpoint as checkpoint
    from mlc.utils import dlpack as dlpack
    from mlc.utils import tensorboard as tensorboard

__all__ = ["benchmark", "checkpoint", "data", "dlpack", "tensorboard"]


def __getattr__(name: str) -> Any:
    if name in __all__:                                    # which need the compiler, unlike workers of a data loader
        return importlib.import_module("mlc.utils." + name)
    raise AttributeError(f"module 'mlc.utils' has no attribute {name!r}", name=name)
