"""Nested lists of numbers, as arrays are made of."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserTypeError

LISTS = (list, tuple, range, deque)
"""Kinds of nested lists."""


def elements(x: Any, depth: int = 0) -> Iterator[Any]:
    """Iterate over the elements of nested lists; UserTypeError beyond as many dimensions as an array has."""
    if not isinstance(x, LISTS):
        yield x
        return
    if depth >= MAX_RANK:
        raise UserTypeError(f"lists are nested more than {MAX_RANK} deep", code="MLC0345", loc=user_loc(),
                            hint="does one contain itself?")
    for v in x:
        yield from elements(v, depth + 1)


MAX_RANK = 64
"""Largest number of dimensions of a numpy array."""
