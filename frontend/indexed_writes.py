"""Writes to elements that a subscript picks: x[i] = y."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.autograd.graph import Node, kept
from mlc.frontend.autograd.tangents import NoTangents, active
from mlc.frontend.in_place import as_real, check_number, check_real, check_writable, continue_history, converted, store
from mlc.frontend.methods import OPERATIONS
from mlc.frontend.operands import cast, tracer
from mlc.frontend.storage import storage_of
from mlc.frontend.tensor import Tensor, as_backing_array, wrap
from mlc.frontend.trace import as_tracer, state
from mlc.frontend.tracer import Tracer


def put_number(x: Tensor, key: Any, value: int | float) -> bool:
    """x[key] = value for a key of integers, None and slices, where no history has to be continued, x has all of its
    memory, and the number fits; False if the general path has to look."""
    storage = x._storage
    if (storage is None or state.trace is not None or x._view is not None or x._autograd is not None
            or active() is not None or not storage.is_whole(x) or not _fits(value, x._array.dtype)):
        return False
    assert storage.memory is not None
    try:
        storage.memory[key] = value
    except (IndexError, OverflowError):
        return False
    storage.touch()
    return True


_FLOAT32, _FLOAT64, _INT64 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)


def _fits(value: int | float, dtype: np.dtype[Any]) -> bool:
    """Whether a number is known to fit in a dtype."""
    if dtype is _FLOAT32:
        return -3e38 < value < 3e38
    return (dtype is _FLOAT64 and type(value) is float) or (dtype is _INT64 and type(value) is int
                                                            and -2**63 <= value < 2**63)


class PutNode(Node):
    """A recorded write to the elements that arrays of indices or masks pick.

    key  the subscript; slices stand for dimensions that are whole
    """

    __slots__ = ("key", "of_source", "of_target")

    def __init__(self, target: Tensor, source: Tensor, new: Tensor, key: tuple[Any, ...]) -> None:
        self.key = tuple(kept(k) for k in key)
        self.of_target, self.of_source = target.requires_grad, source.requires_grad
        super().__init__([x for x in (target, source) if x.requires_grad], [new])

    def name(self) -> str:
        return "IndexPutBackward"

    def pull(self, cotangents: Any) -> Any:
        cotangent, = cotangents
        if cotangent is None:
            return [None] * len(self.edges)
        found = []
        if self.of_target:
            rest = cotangent.clone()
            rest[self.key] = 0
            found.append(rest)
        return [*found, cotangent[self.key]] if self.of_source else found

    def check_saved(self) -> None:
        """Nothing is saved."""


def put(x: Tensor, key: tuple[Any, ...], value: Any) -> None:
    """x[key] = value, for a key of index arrays, masks, and slices of whole dimensions."""
    check_writable(x)
    value = as_real(value, x)
    if state.trace is not None:
        check_number(value, x)
        store(x, _with_put(as_tracer(x), key, value))
        return
    arrays = tuple(k.array if type(k) is Tensor else k for k in key)
    if type(value) in (bool, int, float, complex):
        source = wrap(np.asarray(converted(value, x)))    # which has all digits of a float
    else:
        source = value if type(value) is Tensor else wrap(np.asarray(as_backing_array(value)))
        check_real(source, x)
        source = source.to(x.dtype)
    picked = x._array[arrays].shape
    source = OPERATIONS["broadcast_to"](without_leading_ones(source, len(picked)), picked)
    elements = source._array
    storage = storage_of(x)
    storage.writable(x)[arrays] = elements
    storage.touch()
    base = x if x._view is None else x._view.base
    if mode.enabled and (source.requires_grad or base.requires_grad):
        new = wrap(x._array)
        PutNode(x, source, new, key)
        continue_history(x, new)
    if (level := active()) is not None and not (level.get(x) is None and level.get(source) is None):
        tangent = level.get(source)
        with NoTangents():
            put(level.writable(x), key, 0 if tangent is None else tangent)


def _with_put(x: Tracer, key: tuple[Any, ...], value: Any) -> Tensor:
    """x while it is recorded, after x[key] = value."""
    f, arrays, dims, at = OPERATIONS, [k for k in key if not isinstance(k, slice)], list[int](), 0
    for k in key:
        covers = 1 if isinstance(k, slice) or "bool" not in str(k.dtype) else k.ndim
        dims += [] if isinstance(k, slice) else range(at, at + covers)
        at += covers
    if len(arrays) == 1 and "bool" in str(arrays[0].dtype) and all(d == 1 for d in getattr(value, "shape", ())):
        shape = [1] * dims[0] + list(arrays[0].shape) + [1] * (x.ndim - dims[-1] - 1)
        value = f["reshape"](value, ()) if hasattr(value, "shape") else value
        value = cast(tracer(value), x.type.dtype)
        return f["masked_fill"](x, f["reshape"](arrays[0], shape), value)  # type: ignore[no-any-return]
    if len(arrays) == 1 and "bool" in str(arrays[0].dtype) and len(dims) == x.ndim and getattr(value, "ndim", 0) == 1:
        return f["masked_scatter"](x, arrays[0], cast(tracer(value), x.type.dtype))  # type: ignore[no-any-return]
    picked = f["getitem"](x, key)
    value = f["broadcast_to"](without_leading_ones(value, picked.ndim), picked.shape)
    count, lead = picked.ndim - (x.ndim - len(dims)), dims[0]
    if dims[-1] - lead == len(dims) - 1:                   # else the indexed dimensions come first
        value = f["movedim"](value, list(range(lead, lead + count)), list(range(count)))
    leading = list(range(len(dims)))
    new = f["index_put"](f["movedim"](x, dims, leading), arrays, value)
    return f["movedim"](new, leading, dims)  # type: ignore[no-any-return]


def without_leading_ones(x: Any, rank: int) -> Any:
    """A value to assign, without those leading dimensions of size 1 that exceed `rank`."""
    while getattr(x, "ndim", 0) > rank and x.shape[0] == 1:
        x = x[0]
    return x
