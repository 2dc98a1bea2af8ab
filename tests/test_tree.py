"""mlc.tree: maps over nested containers and modules."""

from __future__ import annotations

import dataclasses
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import pytest

import mlc
from mlc import nn
from mlc.frontend import tree
from mlc.ir.diag import UserTypeError


def test_modules_are_trees() -> None:
    layer = nn.Linear(2, 1)
    zeros = mlc.tree.map(mlc.zeros_like, layer)
    assert isinstance(zeros, nn.Linear) and zeros.weight.tolist() == [[0, 0]] and zeros.weight is not layer.weight
    assert [path for path, _ in mlc.tree.leaves_with_path(layer)] == [".weight", ".bias"]
    assert mlc.tree.map_with_path(lambda path, x: path + str(x), {"a": (1,)}) == {"a": ("['a'][0]1",)}
    assert mlc.tree.reduce(lambda n, x: n + x.numel(), layer, 0) == 3
    step = mlc.compile(lambda m, g: mlc.tree.map(lambda w, d: w - d, m, g))
    assert step(zeros, zeros).weight.tolist() == [[0, 0]]


def test_modules_that_share_a_setting_are_known_by_its_value() -> None:
    def pair(first: list[int], second: list[int]) -> nn.Sequential:
        layers = nn.Sequential(nn.ReLU(), nn.ReLU())
        layers[0].sizes, layers[1].sizes = first, second
        return layers

    shared = [1, 2]
    whole, apart, other = (tree.flatten(pair(*sizes))[1] for sizes in (
        (shared, shared), ([1, 2], [1, 2]), ([1, 2], [1, 3])))
    assert whole == apart and hash(whole) == hash(apart) and whole != other
    shared.append(3)
    assert tree.flatten(pair(shared, shared))[1] != whole


@pytest.mark.parametrize(("call", "code"), [
    (lambda: mlc.tree.map(max, [1, 2], [1]), "MLC0377"), (lambda: mlc.tree.reduce(max, [None]), "MLC0798"),
    (lambda: mlc.tree.unflatten(mlc.tree.structure([1, 2]), [1]), "MLC0798")])
def test_trees_that_do_not_fit(call: Callable[[], Any], code: str) -> None:
    with pytest.raises(UserTypeError, match=code):
        call()


@pytest.mark.parametrize("made", [lambda: OrderedDict(b=mlc.ones(2), a=mlc.zeros(2)), lambda: Counter("aab"),
                                  lambda: defaultdict[str, Any](list, a=mlc.ones(2))])
def test_dicts_of_the_collections_module_stay_what_they_are(made: Any) -> None:
    x = made()
    for y in (mlc.tree.map(lambda v: v, x), mlc.compile(lambda m: m)(x), mlc.compile(lambda m: m.copy())(x)):
        assert type(y) is type(x) and list(y) == list(x)
        assert getattr(y, "default_factory", None) is getattr(x, "default_factory", None)
    f = mlc.compile(lambda m: type(m).__name__)
    assert [f(x), f(dict(x))] == [type(x).__name__, "dict"]


class Named(dict[str, Any]):
    """A dict with attributes of its own, whose entries are attributes, too."""

    def __init__(self, rate: float, **entries: Any) -> None:
        super().__init__(entries)
        self.rate = rate

    def __getattr__(self, name: str) -> Any:
        return self[name]


def test_dicts_of_a_program_stay_what_they_are() -> None:
    f = mlc.compile(lambda m: Named(3.0, y=m.x * m.rate))
    for rate in (2.0, 5.0):
        out = f(Named(rate, x=mlc.ones(2)))
        assert type(out) is Named and out.rate == 3.0 and out.y.tolist() == [rate, rate]


@dataclasses.dataclass
class Measured:
    x: Any
    scale: float = 2.0

    def __post_init__(self) -> None:
        self.total, self.name = self.x.sum(), "measured"


def test_a_dataclass_has_attributes_that_are_no_fields() -> None:
    f = mlc.compile(lambda m: Measured(m.x / m.total if m.name == "measured" else m.x))
    assert f(Measured(mlc.tensor([1.0, 3.0]))).total.item() == 1 and f(Measured(mlc.ones(4))).x.tolist() == [0.25] * 4


def test_dicts_of_all_classes_match() -> None:
    assert mlc.tree.map(lambda a, b: a + b, OrderedDict(a=1, b=2), {"b": 10, "a": 20}) == {"a": 21, "b": 12}
