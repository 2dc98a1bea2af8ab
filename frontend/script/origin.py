"""Whose code it is: the program's, this package's, or that of an installed one."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator
from pathlib import Path

from mlc.frontend.location import is_ours


def codes_of(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and those of the functions and classes nested in it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from codes_of(inner)


def is_foreign(module: str) -> bool:
    """Whether a module belongs neither to this package, nor numpy, nor the standard library."""
    root = module.partition(".")[0]
    return root == "__main__" or not (is_ours(module) or root in sys.stdlib_module_names or root == "numpy")


@functools.lru_cache(maxsize=4096)
def is_programs(module: str, file: str) -> bool:
    """Whether a module is part of the program, not of an installed package."""
    return is_foreign(module) and not {"site-packages", "dist-packages"}.intersection(Path(file).parts)


def file_of(module: str) -> str:
    """The file of a module, which is not asked for by a `__getattr__` of the module."""
    return str(getattr(sys.modules.get(module), "__dict__", {}).get("__file__") or "")
