"""`mlc.Size`: a shape, as a tuple that knows its number of elements."""

from __future__ import annotations

import math
from typing import Any

from mlc.frontend.location import user_loc
from mlc.ir.diag import UserTypeError


class Size(tuple[Any, ...]):
    """Shape of a tensor: a tuple of sizes. `Tensor.shape` is a plain tuple, which is equal to the Size of its numbers.

    Slices, sums and multiples of a Size are Sizes.

    Args:
        sizes: Iterable of integers.

    Raises:
        UserTypeError: `sizes` is no iterable, or a size is a float, a string or None (MLC0355).

    Example:
        >>> s = mlc.Size([2, 3, 4])
        >>> s.numel(), s == mlc.zeros(2, 3, 4).shape, s[1:].numel()
        (24, True, 12)
    """

    def __new__(cls, sizes: Any = ()) -> Size:
        try:
            out = tuple.__new__(cls, sizes)
        except TypeError:
            raise UserTypeError(f"the sizes are several integers, found {type(sizes).__name__}", code="MLC0355",
                                loc=user_loc()) from None
        if wrong := [n for n in out if isinstance(n, str | float | None)]:
            raise UserTypeError(f"a size is {wrong[0]!r}, expected an integer"[:200], code="MLC0355", loc=user_loc())
        return out

    def numel(self) -> int:
        """The number of elements of a tensor of this shape, the product of the sizes; 1 without any.

        Returns:
            An integer.

        Example:
            >>> mlc.Size([2, 3]).numel(), mlc.Size([]).numel()
            (6, 1)
        """
        return math.prod(self)

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return Size(found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Size:
        return Size(other + tuple(self))

    def __mul__(self, n: Any) -> Size:
        return Size(tuple.__mul__(self, n))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"mlc.Size({list(self)})"
