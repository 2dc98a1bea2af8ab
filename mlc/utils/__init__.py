"""PyTorch's `torch.utils`, of which mlc has `mlc.utils.data` and `mlc.utils.checkpoint`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mlc.utils import data as data

if TYPE_CHECKING:
    from mlc.utils import checkpoint as checkpoint

__all__ = ["checkpoint", "data"]


def __getattr__(name: str) -> Any:
    if name == "checkpoint":                               # which needs the compiler, unlike workers of a data loader
        return importlib.import_module("mlc.utils.checkpoint")
    raise AttributeError(f"module 'mlc.utils' has no attribute {name!r}", name=name)
