"""`mlc.Size`: a shape, as a tuple that knows its number of elements."""

from __future__ import annotations

import math
from typing import Any


class Size(tuple[Any, ...]):
    """Shape of a tensor: a tuple of sizes. `Tensor.shape` is a plain tuple, which is equal to the Size of its numbers.

    Args:
        sizes: Iterable of integers.

    Example:
        >>> s = mlc.Size([2, 3, 4])
        >>> s.numel(), s == mlc.zeros(2, 3, 4).shape, s[1:].numel()
        (24, True, 12)
    """

    def __new__(cls, sizes: Any = ()) -> Size:
        return tuple.__new__(cls, sizes)

    def numel(self) -> int:
        """The number of elements of a tensor of this shape.

        Returns:
            An integer.
        """
        return math.prod(self)

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return Size(found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, other))

    def __repr__(self) -> str:
        return f"mlc.Size({list(self)})"
