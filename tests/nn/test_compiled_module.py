"""`mlc.compile` of a module: a module, whose calls are compiled."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.norm = nn.BatchNorm1d(2)

    def forward(self, x: Any, scale: float = 1.0) -> Any:
        return self.norm(self.layer(x)) * scale


X = mlc.tensor(np.arange(12, dtype=np.float32).reshape(4, 3) % 5)


def test_it_is_used_as_the_module() -> None:
    net: Any = Net()
    before = {name: x.tolist() for name, x in net.state_dict().items()}
    compiled = mlc.compile(net)
    assert type(compiled) is not Net and isinstance(compiled, Net) and repr(compiled) == repr(net)
    assert [*compiled.state_dict()] == [*before] and [n for n, _ in compiled.named_parameters()] == [
        n for n, _ in net.named_parameters()]
    optimizer = mlc.optim.SGD(compiled.parameters(), lr=0.1)
    compiled(X, scale=2.0).pow(2).sum().backward()
    optimizer.step()
    assert net.layer.weight.tolist() != before["layer.weight"] and net.norm.num_batches_tracked.item() == 1
    compiled.eval().load_state_dict(Net().state_dict())
    assert not net.training and net.norm.num_batches_tracked.item() == 0
    compiled.layer = nn.Linear(3, 2)
    assert net.layer is compiled.layer and len(compiled.signatures) == 1
    np.testing.assert_allclose(compiled(X).tolist(), net(X).tolist(), rtol=1e-5)


def test_it_is_a_part_of_other_modules_and_functions() -> None:
    compiled = mlc.compile(Net()).eval()
    outer = nn.Sequential(compiled, nn.ReLU())
    want = mlc.relu(compiled(X)).tolist()
    assert len([*outer.parameters()]) == 4
    for f in (outer, mlc.compile(outer), mlc.compile(lambda x: outer(x)), mlc.compile(mlc.compile(outer))):
        np.testing.assert_allclose(f(X).tolist(), want, rtol=1e-6)
    gradient = mlc.grad(lambda m: m(X).sum())(compiled)
    assert gradient.layer.weight.shape == (2, 3)
    with pytest.raises(mlc.UserError, match="MLC0321"):
        compiled(X, 1, 2)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)),  # noqa: S301
                                    lambda m: mlc.tree.map(lambda x: x * 1, m)], ids=["deepcopy", "pickle", "map"])
def test_copies_are_compiled_with_what_is_theirs(copied: Any) -> None:
    compiled = mlc.compile(Net()).eval()
    other = copied(compiled)
    with mlc.no_grad():
        other.layer.weight.fill_(0)
        other.layer.bias.fill_(1)
    np.testing.assert_allclose(other(X).tolist(), np.ones((4, 2)), rtol=1e-4)
    assert compiled(X).tolist() != other(X).tolist()


def test_what_copies_are_asked_and_saved_is_theirs(tmp_path: Any) -> None:
    compiled: Any = mlc.compile(nn.Linear(3, 2))
    zero = mlc.tree.map(lambda x: x * 0, compiled)
    compiled(X), zero(X)
    mlc.save(zero, tmp_path / "zero.mlc")
    assert mlc.load(tmp_path / "zero.mlc")(X).tolist() == [[0, 0]] * 4
    assert len(zero.signatures) == len(compiled.signatures) == 1
    shallow: Any = copy.copy(compiled)
    shallow.weight = nn.Parameter(mlc.zeros(2, 3))
    assert compiled.weight is not shallow.weight
    np.testing.assert_allclose(shallow(X).tolist(), [compiled.bias.tolist()] * 4)


class Named(nn.Module):
    """A module with names of its own that the compiled one might use, and a list of its subclasses."""

    options, original, others, compiled, signatures = 3.0, 2.0, 5.0, True, "mine"
    classes: list[type] = []

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        Named.classes.append(cls)

    def forward(self, x: Any) -> Any:
        return x * self.options + self.original * self.others if self.compiled is True else None


def test_names_of_the_module_are_its_own() -> None:
    module: Any = Named()
    compiled: Any = mlc.compile(module)
    assert (compiled.options, compiled.signatures, Named.classes) == (3, "mine", [])
    assert mlc.compile(nn.Sequential(compiled))(X).tolist() == compiled(X).tolist() == module(X).tolist()
    module.others = 1.0
    assert compiled(X).tolist() == module(X).tolist()


def test_parametrizations_are_computed() -> None:
    compiled: Any = nn.utils.parametrizations.weight_norm(mlc.compile(nn.Linear(3, 2)))
    with mlc.no_grad():
        compiled.parametrizations.weight.original0.fill_(0)
    for module in (compiled, copy.deepcopy(compiled)):
        np.testing.assert_allclose(module(X).tolist(), [compiled.bias.tolist()] * 4)
