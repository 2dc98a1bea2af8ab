"""Tensors in device memory: writes are never lost in copies that nobody sees, and work is done where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.ir.diag import UserError
from tests.fake_device import FakeDevice

KEYS: tuple[tuple[Any, Any], ...] = (
    (0, 5), ((0, 1), 7), (slice(None), np.ones(3, np.float32)), ((slice(None), slice(None, None, 2)), 2.5),
    ((slice(None), np.array([0, 2])), np.ones((2, 2), np.float32)), ((..., None, 1), np.ones((2, 1), np.float32)))


@pytest.mark.parametrize(("key", "value"), KEYS, ids=str)
def test_a_subscript_is_written_on_a_device(device: FakeDevice, key: Any, value: Any) -> None:
    want = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = mlc.tensor(want).to("cuda")
    x[key] = value
    want[key] = value
    assert np.array_equal(x.numpy(), want)


def test_a_mask_is_written_and_differentiated_on_a_device(device: FakeDevice) -> None:
    w = mlc.ones(3, device="cuda", requires_grad=True)
    z = w * mlc.tensor([1.0, 2.0, 3.0]).to("cuda")
    z[z > 2] = w[0] * 5
    z.sum().backward()
    assert w.grad is not None and w.grad.tolist() == [6.0, 2.0, 0.0]


@pytest.mark.parametrize("write", [lambda x: x[0].add_(1), lambda x: x.T.mul_(2), lambda x: x[:, 1:].zero_()])
def test_a_write_to_a_view_is_refused_on_a_device(device: FakeDevice, write: Callable[[Any], Any]) -> None:
    with pytest.raises(UserError, match="a view on a device is a copy"):
        write(mlc.ones(2, 3).to("cuda"))


def test_dropout_draws_where_the_tensor_is(device: FakeDevice) -> None:
    mlc.manual_seed(3)
    here = mlc.nn.functional.dropout(mlc.ones(8), 0.5)
    mlc.manual_seed(3)
    assert np.array_equal(mlc.nn.functional.dropout(mlc.ones(8).to("cuda"), 0.5).numpy(), here.numpy())


def test_a_compiled_function_runs_where_the_tensors_are_that_it_reaches(device: FakeDevice) -> None:
    w = mlc.tensor([1.0, 2.0]).to("cuda")
    doubled = mlc.compile(lambda: w * 2)()
    assert doubled.device == "cuda:0" and doubled.tolist() == [2.0, 4.0]
    assert mlc.compile(lambda x: w * x)(np.float32(3)).tolist() == [3.0, 6.0]
