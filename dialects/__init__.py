"""Dialects of all levels: one module per dialect, or one per family if a dialect is large."""

from __future__ import annotations

import importlib
from functools import cache


@cache
def load_all() -> None:
    """Import every dialect, so that all operations and types are known to the parser."""
    import pkgutil

    for module in pkgutil.walk_packages(__path__, __name__ + "."):
        importlib.import_module(module.name)
