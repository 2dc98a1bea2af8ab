"""Shapes of parameters, and tensors of a shape and dtype."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.frontend.arguments import coded
from mlc.frontend.axes import plain_int
from mlc.frontend.dtypes import as_dtype
from mlc.frontend.operands import MAX_ELEMENTS
from mlc.frontend.tensor import DTypeLike, Tensor
from mlc.ir.diag import UserError, UserTypeError

Shape = Sequence[int]


@coded
def sizes(shape: Shape) -> tuple[int, ...]:
    """Check the shape of a parameter.

    Args:
        shape: Integers.

    Returns:
        The tuple of Python integers.

    Raises:
        UserError: A size is negative (MLC0358), or the shape is too large (MLC0328).
        UserTypeError: The shape is no tuple or list, or a size is no integer (MLC0355).

    Example:
        >>> nn.init.sizes([2, 3])
        (2, 3)
    """
    given: object = shape
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise UserTypeError(f"{shape!r} is no shape, which is a tuple or list of integers", code="MLC0355")
    out = tuple(plain_int(n, "size") for n in shape)
    if any(n < 0 for n in out):
        raise UserError(f"{list(out)} is no shape: sizes are not negative", code="MLC0358")
    if math.prod(n for n in out if n) >= MAX_ELEMENTS:
        raise UserError(f"shape {list(out)} is beyond all memory", code="MLC0328")
    return out


def zeros_of(shape: Shape, dtype: DTypeLike) -> Tensor:
    """Tensor of zeros that takes no memory: all elements are one."""
    return Tensor(np.broadcast_to(np.zeros((), as_dtype(dtype).dtype), sizes(shape)))


def as_tensor(array: Any, dtype: DTypeLike) -> Tensor:
    """Tensor of the numbers of an array, rounded to this dtype."""
    return Tensor(np.asarray(array).astype(as_dtype(dtype).dtype))
