"""`mlc.compile(f, freeze=True)`: constants of the code, which is split in what runs once and what runs in each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn


class Small(nn.Module):
    """Products of weights in panels and not, normalization, and a tied weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(20, 64), nn.BatchNorm1d(64), nn.Linear(64, 20)
        self.scale = nn.Parameter(mlc.ones(20))

    def forward(self, x: Any) -> Any:
        y = mlc.relu(self.norm(self.first(x)))
        return (self.second(y) * mlc.exp(self.scale)) @ self.first.weight.T


def agrees(frozen: Callable[..., Any], f: Callable[..., Any], *args: Any) -> bool:
    """Whether a frozen function gives the bits of another one."""
    with mlc.no_grad():
        return np.array_equal(frozen(*args).numpy(), f(*args).numpy())


@pytest.mark.parametrize("rows", [1, 3, 5, 40])
def test_results_have_the_same_bits(rows: int) -> None:
    model = Small().eval()
    frozen: Any = mlc.compile(model, freeze=True)
    assert agrees(frozen, mlc.compile(model), mlc.randn(rows, 20))
    assert [e.interface.name for e in frozen.entries] == ["main_with_constants"]


def test_code_for_all_sizes() -> None:
    model = Small().eval()
    frozen: Any = mlc.compile(model, freeze=True, dynamic=True)
    plain = mlc.compile(model, dynamic=True)
    for rows in (1, 2, 40):
        assert agrees(frozen, plain, mlc.randn(rows, 20))
    assert len(frozen.entries) == 1


def _write(model: Small) -> None:
    with mlc.no_grad():
        model.first.weight[3, 4] = 7.0


def _replace(model: Small) -> None:
    model.second.weight = nn.Parameter(mlc.randn(20, 64))


def _load(model: Small) -> None:
    model.load_state_dict(Small().state_dict())


def _train(model: Small) -> None:
    optimizer = mlc.optim.SGD(model.parameters(), lr=0.1)
    model(mlc.randn(4, 20)).sum().backward()
    optimizer.step()


def _write_outside(model: Small) -> None:
    model.scale.detach().numpy()[2] = 3.0


@pytest.mark.parametrize("change", [_write, _replace, _load, _train, _write_outside])
def test_changes_of_constants_are_seen(change: Callable[[Small], None]) -> None:
    model, x = Small().eval(), mlc.randn(8, 20)
    frozen = mlc.compile(model, freeze=True)
    for _ in range(3):                                     # the third call takes the fast path
        before = frozen(x)
    change(model)
    assert agrees(frozen, model, x)
    assert not np.array_equal(frozen(x).numpy(), before.numpy())


def test_calls_take_the_fast_path_in_any_grad_mode() -> None:
    x = mlc.randn(8, 20)
    frozen: Any = mlc.compile(Small().eval(), freeze=True)
    first = frozen(x)
    entry, = frozen.entries
    before = entry.fast_calls.value
    assert not first.requires_grad and not frozen(x).requires_grad
    with mlc.no_grad():
        frozen(x)
    assert entry.fast_calls.value == before + 2


def test_there_are_no_derivatives() -> None:
    frozen, x = mlc.compile(Small().eval(), freeze=True), mlc.randn(8, 20, requires_grad=True)
    with pytest.raises(mlc.UserError, match=r"MLC0438.*freeze=True"):
        frozen(x).sum().backward()


def test_what_changes_constants_is_refused() -> None:
    with pytest.raises(mlc.UserError, match=r"MLC0995.*freeze"):
        mlc.compile(Small(), freeze=True)(mlc.randn(8, 20))
    with pytest.raises(mlc.UserError, match=r"MLC0380.*freeze"):
        mlc.compile(lambda x: x, freeze=True, donate="x")


def test_functions_without_constants_and_closures() -> None:
    weight = mlc.randn(16, 16)
    frozen = mlc.compile(lambda x: (x @ mlc.exp(weight), x), freeze=True)
    x = mlc.randn(5, 16)
    assert np.array_equal(frozen(x)[0].numpy(), (x @ mlc.exp(weight)).numpy())
    assert mlc.compile(lambda x: x + 1, freeze=True)(mlc.ones(2)).tolist() == [2.0, 2.0]


def test_constants_of_loops() -> None:
    weight = mlc.randn(16, 16) * 0.1

    @mlc.compile(freeze=True)
    def repeated(x: Any, n: Any) -> Any:
        while n > 0:
            x, n = mlc.tanh(x @ mlc.exp(weight)), n - 1
        return x

    x = y = mlc.randn(5, 16)
    for _ in range(3):
        y = mlc.tanh(y @ mlc.exp(weight))
    assert np.array_equal(repeated(x, mlc.tensor(3)).numpy(), y.numpy())


def test_anomalies_and_profiles_see_the_function_as_it_was_recorded() -> None:
    frozen, x = mlc.compile(Small().eval(), freeze=True), mlc.randn(8, 20)
    expected = frozen(x)
    with mlc.autograd.detect_anomaly():
        assert np.array_equal(frozen(x).numpy(), expected.numpy())
    with mlc.profiler.profile(kernels=True) as profile:
        assert np.array_equal(frozen(x).numpy(), expected.numpy())
    assert any("unpack" in row.kernel for row in profile.kernels().rows)
