"""PyTorch's `torch.utils`, of which mlc has `data`, `checkpoint`, `benchmark` and `tensorboard`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mlc.utils import data as data

if TYPE_CHECKING:
    from mlc.utils import benchmark as benchmark
    from mlc.utils import checkpoint as checkpoint
    from mlc.utils import tensorboard as tensorboard

__all__ = ["benchmark", "checkpoint", "data", "tensorboard"]


def __getattr__(name: str) -> Any:
    if name in __all__:                                    # which need the compiler, unlike workers of a data loader
        return importlib.import_module("mlc.utils." + name)
    raise AttributeError(f"module 'mlc.utils' has no attribute {name!r}", name=name)
