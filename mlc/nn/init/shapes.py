"""Shapes of parameters, tensors of a shape and dtype, and the context that leaves initial values out."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from mlc.frontend.arguments import coded
from mlc.frontend.axes import plain_int
from mlc.frontend.dtypes import as_dtype
from mlc.frontend.tensor import DTypeLike, Tensor
from mlc.ir.bounds import MAX_ELEMENTS
from mlc.ir.diag import UserError, UserMemoryError, UserTypeError

Shape = Sequence[int]


class _State(threading.local):
    shapes_only = False


state = _State()


@contextmanager
def shapes_only() -> Iterator[None]:
    """Context in which parameters have shapes and dtypes, but all elements are one 0 that takes no memory.

    It makes large models quickly, to count their parameters or to load a state into them.

    Returns:
        A context manager.

    Example:
        >>> with nn.init.shapes_only():
        ...     model = nn.Linear(10**5, 10**5)
        >>> model.num_parameters()
        10000100000
    """
    saved, state.shapes_only = state.shapes_only, True
    try:
        yield
    finally:
        state.shapes_only = saved


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
        raise UserMemoryError(f"shape {list(out)} is beyond all memory", code="MLC0328")
    return out


def zeros_of(shape: Shape, dtype: DTypeLike) -> Tensor:
    """Tensor of zeros that takes no memory: all elements are one."""
    return Tensor(np.broadcast_to(np.zeros((), as_dtype(dtype).dtype), sizes(shape)))


def as_tensor(array: Any, dtype: DTypeLike) -> Tensor:
    """Tensor of the numbers of an array, rounded to this dtype."""
    return Tensor(np.asarray(array).astype(as_dtype(dtype).dtype))
