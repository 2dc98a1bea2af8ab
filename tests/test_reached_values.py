"""Kinds of values that a compiled function reaches, each of which may change: a call then gives what Python gives."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import mlc
from mlc.models.layers import RMSNorm
from mlc.models.parameters import Drawn, Place

X = np.arange(1, 5, dtype=np.float32).reshape(2, 2)
RATE = 2.0


@pytest.fixture(autouse=True)
def _same_rate() -> Iterator[None]:
    before = dict(globals())
    yield
    for name in globals().keys() - before.keys():
        del globals()[name]
    globals().update(before)


def check(f: Callable[..., Any], change: Callable[[], Any], *given: Any) -> None:
    """Compiled before a change, a function gives after it what it gives as Python, which is something else."""
    compiled, x = mlc.compile(f), mlc.tensor(X)
    first = compiled(x, *given).numpy()
    np.testing.assert_array_equal(first, f(x, *given).numpy())
    change()
    for _ in range(2):
        np.testing.assert_allclose(compiled(x, *given).numpy(), f(x, *given).numpy(), rtol=1e-6)
    assert not np.array_equal(compiled(x, *given).numpy(), first)


def sets(name: str, value: Any) -> Callable[[], None]:
    """A change of a global."""
    return lambda: globals().__setitem__(name, value)


# -- objects of this package ------------------------------------------------------------------------------------------
def test_a_layer_of_a_language_model() -> None:
    norm = RMSNorm(Place(Drawn(0, trained=False)), 2, 0.0)
    check(lambda x: norm(x), lambda: setattr(norm, "epsilon", 100.0))
    check(lambda x: norm(x), lambda: setattr(norm, "weight", mlc.full((2,), 9.0)))


def test_a_distribution() -> None:
    normal = mlc.distributions.Normal(mlc.tensor(0.0), mlc.tensor(1.0))
    check(lambda x: normal.log_prob(x), lambda: setattr(normal, "loc", mlc.tensor(5.0)))


@pytest.mark.parametrize("change", [
    lambda s: s.zero_(), lambda s: s.mul_(2.0),
    lambda s: s.copy_(mlc.tensor([[5.0, 0.0], [0.0, 7.0]]).to_sparse())])
def test_a_sparse_tensor(change: Callable[[Any], Any]) -> None:
    s = mlc.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
    check(lambda x: mlc.sparse.mm(s, x), lambda: change(s))


# -- classes ----------------------------------------------------------------------------------------------------------
@dataclasses.dataclass
class Data:
    x: Any
    factor = 3.0

    def scaled(self) -> Any:
        return self.x * RATE

    def by_class(self) -> Any:
        return self.x * self.factor


class Named(NamedTuple):
    x: Any

    @property
    def rate(self) -> Any:
        return RATE


class Table(dict[str, Any]):
    def scaled(self) -> Any:
        return self["x"] * RATE


def test_what_the_classes_of_arguments_read(monkeypatch: pytest.MonkeyPatch) -> None:
    x = mlc.tensor(X)
    check(lambda _, d: d.scaled(), sets("RATE", 7.0), Data(x))
    check(lambda y, d: y * d.rate, sets("RATE", 8.0), Named(x))
    check(lambda _, d: d.scaled(), sets("RATE", 9.0), Table(x=x))
    check(lambda _, d: d.by_class(), lambda: monkeypatch.setattr(Data, "factor", 5.0), Data(x))
    check(lambda _, d: d.scaled(), lambda: monkeypatch.setattr(Data, "scaled", lambda self: self.x - 100.0), Data(x))
