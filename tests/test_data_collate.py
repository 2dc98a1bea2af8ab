"""Collation: the results of torch.utils.data, and errors that name the sample."""
from __future__ import annotations

import collections
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from torch.utils import data as torch_data

import mlc
from mlc.ir.diag import UserError, UserTypeError
from mlc.utils.data import default_collate, default_convert

Point = collections.namedtuple("Point", ["x", "y"])


def plain(x: Any) -> Any:
    """Tensors of both libraries as (dtype, elements)."""
    if isinstance(x, mlc.Tensor | torch.Tensor):
        return str(x.dtype).split(".")[1], x.tolist()
    if isinstance(x, dict | MappingProxyType | collections.UserDict):
        return type(x), {key: plain(value) for key, value in x.items()}
    if isinstance(x, list | tuple | collections.UserList):
        return type(x), [plain(value) for value in x]
    return type(x), x


SAMPLES: dict[str, Callable[[Any], list[Any]]] = {
    "tensors": lambda of: [of([1.0, 2.0]), of([3.0, 4.0])],
    "tensors of two dtypes": lambda of: [of([1.0, 2.0]), of([3, 4])],
    "arrays": lambda of: [np.arange(3, dtype=np.int16), np.ones(3, np.int16)],
    "arrays without dimensions": lambda of: [np.ones((), np.float32), np.zeros((), np.float32)],
    "numpy numbers": lambda of: [np.float32(1), np.float32(2)],
    "numpy bools": lambda of: [np.bool_(True), np.bool_(False)],
    "ints": lambda of: [1, -2],
    "floats": lambda of: [0.5, 1.5],
    "bools": lambda of: [True, False],
    "an int and a float": lambda of: [1, 2.5],
    "strings": lambda of: ["a", "b"],
    "bytes": lambda of: [b"a", b"b"],
    "numpy strings": lambda of: [np.str_("a"), np.str_("b")],
    "tuples": lambda of: [(1, "a", of([1.0])), (2, "b", of([2.0]))],
    "lists": lambda of: [[1, 0.5], [2, 1.5]],
    "empty lists": lambda of: [[], []],
    "named tuples": lambda of: [Point(1, of([1])), Point(2, of([2]))],
    "dicts": lambda of: [{"a": 1, "b": {"c": [2]}}, {"b": {"c": [3]}, "a": 4}],
    "other mappings": lambda of: [collections.OrderedDict(a=1), collections.OrderedDict(a=2)],
    "mappings that cannot change": lambda of: [MappingProxyType({"a": 1}), MappingProxyType({"a": 2})],
    "user lists": lambda of: [collections.UserList([1, 2]), collections.UserList([3, 4])],
    "ranges": lambda of: [range(2), range(2)],
}


@pytest.mark.parametrize("samples", SAMPLES.values(), ids=SAMPLES)
def test_batches_are_those_of_torch(samples: Callable[[Any], list[Any]]) -> None:
    ours = default_collate(samples(mlc.tensor))
    assert plain(ours) == plain(torch_data.default_collate(samples(torch.tensor)))


@pytest.mark.parametrize("sample", [
    1, "a", None, np.arange(3), np.float32(2), np.array(["a"]), (1, np.ones(2)), [np.ones(1), "a"],
    Point(np.ones(1), 2), {"a": np.ones(1)}, range(2)], ids=repr)
def test_conversion_is_that_of_torch(sample: Any) -> None:
    assert repr(plain(default_convert(sample))) == repr(plain(torch_data.default_convert(sample)))


def test_tensors_of_other_libraries_and_bfloat16() -> None:
    assert default_collate([torch.ones(2), torch.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    assert default_collate([np.ones(2, ml_dtypes.bfloat16)] * 2).dtype == mlc.bfloat16


@pytest.mark.parametrize("batch, message", [
    ([mlc.ones(3), mlc.ones(3), mlc.ones(4)], r"MLC0700.*samples 0 and 2 of the batch have shapes \[3\] and \[4\]\n"),
    ([{"x": (1, np.ones(2))}, {"x": (1, np.ones(3))}], r"have shapes \[2\] and \[3\] at sample\['x'\]\[1\]"),
    ([Point(1, np.ones(2)), Point(1, np.ones(3))], r"at sample\.y"),
    ([(1, 2), (1, 2, 3)], "samples 0 and 1 of the batch have lengths 2 and 3"),
    ([{"a": 1}, {"b": 2}], "sample 1 of the batch has no key 'a', which sample 0 has"),
    ([np.ones(1), "a"], "samples 0 and 1 of the batch are ndarray and str"),
    ([1, "a"], "are int and str"), ([0.5, None], "are float and NoneType"), ([[1], 1], "are list and int"),
    ([{"a": 1}, 2], "are dict and int"), ([], "no samples"),
])
def test_samples_that_differ(batch: list[Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        default_collate(batch)
    assert caught.value.code == "MLC0700" and caught.value.loc.file == __file__


@pytest.mark.parametrize("sample", [None, object(), 1j, {1}, np.array(["a"]), np.datetime64("2020")],
                         ids=lambda x: type(x).__name__)
def test_samples_that_are_no_data(sample: Any) -> None:
    with pytest.raises(UserTypeError, match=r"MLC0701.* at sample\[0\] cannot be collated"):
        default_collate([(sample,)])


def test_a_batch_has_the_history_of_its_samples() -> None:
    w = mlc.ones(2, requires_grad=True)
    batch = default_collate([w * 2, w])
    (batch * mlc.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [5, 8]
    with mlc.no_grad():
        assert not default_collate([w, w]).requires_grad
