"""Collation: from a list of samples to a batch of tensors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from functools import reduce
from typing import Any

import numpy as np

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
from mlc.dialects.tensor.promotion import promote
from mlc.frontend.arguments import coded
from mlc.frontend.autograd.grad_mode import mode
from mlc.frontend.functions.create import asarray, tensor
from mlc.frontend.functions.shape import stack
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.frontend.trace import state
from mlc.frontend.tree import is_data
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.types import from_numpy, to_numpy


@coded
def default_collate(batch: Sequence[Any]) -> Any:
    """Collate samples into a batch, whose tensors have the samples along a new first dimension.

    Tensors and numpy arrays are stacked; ints become int64, bools bool, and floats float64, as in PyTorch. Strings and
    bytes stay as they are, in a list or tuple. Dicts, lists and named tuples of these become dicts, lists and named
    tuples of batches; tuples become lists.

    Args:
        batch: Samples of the same structure and, in corresponding places, of the same shape.

    Returns:
        A tensor, or a list, dict or named tuple like a sample.

    Raises:
        UserError: Shapes, lengths or keys of two samples differ (MLC0700).
        UserTypeError: A sample has something else in it, such as None (MLC0701).

    Example:
        >>> mlc.utils.data.default_collate([{"x": 1, "name": "a"}, {"x": 2, "name": "b"}])
        {'x': tensor([1, 2], dtype=mlc.int64), 'name': ['a', 'b']}
        >>> mlc.utils.data.default_collate([(mlc.ones(2), 0.5), (mlc.zeros(2), 1.5)])
        [tensor([[1., 1.],
                [0., 0.]], dtype=mlc.float32), tensor([0.5, 1.5], dtype=mlc.float64)]
    """
    if len(batch) == 0:
        raise UserError("default_collate: the batch has no samples", code="MLC0700", loc=user_loc())
    return _collate(batch, "")


@coded
def default_convert(data: Any) -> Any:
    """Convert the numpy arrays and numbers in a sample into tensors, and leave everything else as it is.

    A `DataLoader` without batches does this with each sample. Tuples become lists.

    Args:
        data: Sample: any nesting of dicts, lists, tuples and named tuples.

    Returns:
        The sample with tensors.

    Example:
        >>> mlc.utils.data.default_convert({"x": np.arange(3), "name": "a", "y": 1})
        {'x': tensor([0, 1, 2], dtype=mlc.int64), 'name': 'a', 'y': 1}
    """
    if isinstance(data, np.ndarray | np.generic) and data.dtype.kind in "SUO":
        return data
    if is_data(data) or isinstance(data, np.generic):
        return asarray(data)
    if isinstance(data, str | bytes) or not isinstance(data, Mapping | Sequence):
        return data
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(data[key]) for key in data})
    return _like(data, [default_convert(x) for x in data])


def _collate(batch: Sequence[Any], path: str) -> Any:
    """The batch of these parts of samples; `path` is the expression for the part."""
    first = batch[0]
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, np.ndarray | np.generic) and first.dtype.kind not in "biufV":
        raise _unknown(f"an array of {first.dtype}", path)
    if is_data(first):
        return _stacked(batch, path)
    if isinstance(first, np.generic):
        return _number(lambda: tensor(np.asarray(batch)), batch, path)
    if isinstance(first, float):
        return _number(lambda: tensor(np.array(batch, np.float64)), batch, path)
    if isinstance(first, int):
        return _number(lambda: tensor(batch), batch, path)
    if isinstance(first, Mapping):
        return _mapping(batch, path)
    if isinstance(first, Sequence):
        return _sequence(batch, path)
    raise _unknown(type(first).__name__, path)


def _stacked(batch: Sequence[Any], path: str) -> Tensor:
    arrays: list[Any] = [x.backing_array if type(x) is Tensor else x for x in batch]
    first = arrays[0]
    for i, x in enumerate(arrays):
        if type(x) is not np.ndarray and not (is_data(batch[i]) or isinstance(x, np.generic)):
            raise _differs("are", (type(batch[0]).__name__, type(x).__name__), i, path)
        if x.shape != first.shape:
            raise _differs("have shapes", (list(first.shape), list(x.shape)), i, path)
    if state.trace is not None or (mode.enabled and any(type(x) is Tensor and x.requires_grad for x in batch)):
        return stack(batch)                                # recorded, for other elements in each call or for backward
    if not all(type(x) is np.ndarray and x.dtype == first.dtype for x in arrays):
        tensors = [asarray(x) for x in batch]
        if any(x.device != "cpu" for x in tensors):
            return stack(tensors)
        common = to_numpy(reduce(promote, {from_numpy(x.array.dtype): None for x in tensors}))
        arrays = [x.array.astype(common, copy=False) for x in tensors]
    return asarray(np.stack(arrays))                       # mlc.stack is compiled for each number of samples


def _number(make: Callable[[], Tensor], batch: Sequence[Any], path: str) -> Tensor:
    for i, x in enumerate(batch):
        if not isinstance(x, int | float | np.generic):
            raise _differs("are", (type(batch[0]).__name__, type(x).__name__), i, path)
    return make()


def _mapping(batch: Sequence[Any], path: str) -> Any:
    first = batch[0]
    for i, x in enumerate(batch):
        if not isinstance(x, Mapping):
            raise _differs("are", (type(first).__name__, type(x).__name__), i, path)
        if missing := [key for key in first if key not in x]:
            raise UserError(f"default_collate: sample {i} of the batch has no key {missing[0]!r}{_at(path)}, which "
                            "sample 0 has", code="MLC0700", loc=user_loc())
    return _like(first, {key: _collate([x[key] for x in batch], f"{path}[{key!r}]") for key in first})


def _sequence(batch: Sequence[Any], path: str) -> Any:
    first = batch[0]
    for i, x in enumerate(batch):
        if not isinstance(x, Sequence) or isinstance(x, str | bytes):
            raise _differs("are", (type(first).__name__, type(x).__name__), i, path)
        if len(x) != len(first):
            raise _differs("have lengths", (len(first), len(x)), i, path)
    names = getattr(first, "_fields", None)
    places = [f".{name}" for name in names] if names else [f"[{i}]" for i in range(len(first))]
    return _like(first, [_collate(parts, path + place) for place, parts in zip(places, zip(*batch))])


def _like(container: Any, new: Any) -> Any:
    """A container of the type of `container` with other contents, or where that cannot be made a dict or list.

    Mutable ones are copied, since they may have attributes of their own; tuples become lists, as in PyTorch.
    """
    if isinstance(container, tuple):
        return type(container)(*new) if hasattr(container, "_fields") else new
    if type(container) in (dict, list):
        return new
    try:
        if isinstance(container, MutableMapping):
            out = copy.copy(container)
            out.update(new)
            return out
        if isinstance(container, MutableSequence):
            items = copy.copy(container)
            for i, x in enumerate(new):
                items[i] = x
            return items
        return type(container)(new)
    except TypeError:                                      # its constructor takes something else, as that of range
        return new


def _at(path: str) -> str:
    return f" at sample{path}" if path else ""


def _differs(verb: str, found: tuple[Any, Any], i: int, path: str) -> UserError:
    return UserError(f"default_collate: samples 0 and {i} of the batch {verb} {found[0]} and {found[1]}{_at(path)}",
                     code="MLC0700", loc=user_loc(),
                     hint="make them alike in the dataset, or pad them in a collate_fn of your own")


def _unknown(what: str, path: str) -> UserTypeError:
    return UserTypeError(f"default_collate: {what}{_at(path)} cannot be collated", code="MLC0701", loc=user_loc(),
                         hint="samples are tensors, numpy arrays, numbers, strings, and dicts, lists and tuples of "
                              "these; for others give a collate_fn")
