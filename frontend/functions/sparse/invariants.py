"""Checks of the indices of sparse tensors."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlc.frontend.arguments import coded_methods
from mlc.frontend.operands import fail_unless
from mlc.frontend.sparse.layout import layout as Layout
from mlc.frontend.tensor import Tensor
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserError


class _State(threading.local):
    enabled = True


_state = _State()


class check_sparse_tensor_invariants:
    """Context manager or decorator that says whether the indices of sparse tensors are checked as they are created,
    unless a call says so by `check_invariants`. Unlike in PyTorch, they are by default.

    Args:
        enable: Whether they are.

    Example:
        >>> with mlc.sparse.check_sparse_tensor_invariants(False):
        ...     mlc.sparse.check_sparse_tensor_invariants.is_enabled()
        False
    """

    def __init__(self, enable: bool = True) -> None:
        self._wanted, self._before = enable, list[bool]()

    @staticmethod
    def is_enabled() -> bool:
        """Whether indices are checked in this thread.

        Returns:
            A bool; True at first.

        Example:
            >>> mlc.sparse.check_sparse_tensor_invariants.is_enabled()
            True
        """
        return _state.enabled

    @staticmethod
    def enable() -> None:
        """Have indices be checked from now on, in this thread.

        Example:
            >>> with mlc.sparse.check_sparse_tensor_invariants():
            ...     mlc.sparse.check_sparse_tensor_invariants.enable()
            ...     mlc.sparse.check_sparse_tensor_invariants.is_enabled()
            True
        """
        _state.enabled = True

    @staticmethod
    def disable() -> None:
        """Have indices not be checked from now on, in this thread.

        Example:
            >>> with mlc.sparse.check_sparse_tensor_invariants():
            ...     mlc.sparse.check_sparse_tensor_invariants.disable()
            ...     mlc.sparse.check_sparse_tensor_invariants.is_enabled()
            False
        """
        _state.enabled = False

    def __enter__(self) -> None:
        self._before.append(_state.enabled)
        _state.enabled = self._wanted

    def __exit__(self, *_: object) -> None:
        _state.enabled = self._before.pop()

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(f)
        def wrapped(*args: Any, **keywords: Any) -> Any:
            with type(self)(self._wanted):
                return f(*args, **keywords)

        return wrapped


coded_methods(check_sparse_tensor_invariants, ("__init__",))


def checking(wanted: bool | None) -> bool:
    """Whether to check the indices of a tensor, by the argument of the call."""
    return _state.enabled if wanted is None else wanted


def check_coo(indices: Tensor, shape: Sequence[Any], coalesced: bool) -> None:
    """UserError if a column of indices is out of range, or they are not in order although they are said to be; in a
    compiled function a UserAssertionError when it runs, and only of the range."""
    if isinstance(indices, Tracer):
        for d, n in enumerate(shape[: indices.shape[0]]):
            row = indices[d]
            fail_unless((row >= 0) & (row < n), f"an index is out of range for a dimension of size {n}")
        return
    if not indices.shape[1]:
        return
    array = indices.array
    for row, n in zip(array, shape):
        if row.min() < 0 or row.max() >= n:
            wrong = int(row.min()) if row.min() < 0 else int(row.max())
            raise UserError(f"index {wrong} is out of range for a dimension of size {n}", code="MLC0774",
                            hint="pass a greater size, or mend the index")
    if coalesced:
        place = np.ravel_multi_index(tuple(array), tuple(shape[: len(array)])) if len(array) else np.zeros(1, int)
        if (np.diff(place) <= 0).any():
            raise UserError("the indices are not in order and different, as is_coalesced says", code="MLC0774")


def check_compressed(outer: Tensor, inner: Tensor, shape: Sequence[Any], layout: Layout,
                     block: Sequence[int]) -> None:
    """UserError if compressed or plain indices are not those of a tensor of this shape."""
    if isinstance(outer, Tracer) or isinstance(inner, Tracer):
        return
    batch = outer.ndim - 1
    sizes = [n // max(b, 1) for n, b in zip(shape[batch: batch + 2], block)]
    count, other = sizes if layout.compressed == 0 else sizes[::-1]
    batches = math.prod(shape[:batch])
    ends, places = outer.array.reshape(batches, outer.shape[-1]), inner.array.reshape(batches, inner.shape[-1])
    if ends.shape[1] != count + 1:
        raise UserError(f"{ends.shape[1]} compressed indices, expected {count + 1}", code="MLC0774")
    for line, within in zip(ends, places):
        if line[0] != 0 or line[-1] != within.size or (np.diff(line) < 0).any():
            raise UserError(f"compressed indices are to go from 0 to {within.size} in ascending order", code="MLC0774")
        if within.size and (within.min() < 0 or within.max() >= other):
            raise UserError(f"a plain index is out of range for a dimension of size {other}", code="MLC0774")
        starts = np.zeros(within.size, bool)
        starts[line[:-1][line[:-1] < within.size]] = True
        if (~starts[1:] & (np.diff(within) <= 0)).any():
            raise UserError("plain indices are to be in ascending order, and different, between two compressed indices",
                            code="MLC0774")
