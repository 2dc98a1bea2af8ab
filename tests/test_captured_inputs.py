"""Fast paths of compiled functions that reach tensors by themselves, which are taken while nothing has changed."""

from __future__ import annotations

import copy
import gc
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.utils.data import default_collate
from tests.execution import NATIVE

pytestmark = pytest.mark.usefixtures("execution")


def fast_calls(f: Any) -> int:
    """The number of calls of a compiled function that its fast paths have served."""
    return sum(entry.fast_calls.value for entry in {*f.entries})


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Dropout(0.5)).eval()


@NATIVE
def test_calls_take_the_fast_path() -> None:
    m, x = network(), mlc.randn(5, 2)
    f = mlc.compile(lambda x: m(x))
    with mlc.no_grad():
        f(x)
        before = fast_calls(f)
        results = [f(x) for _ in range(3)]
        assert fast_calls(f) == before + 3
        assert all(mlc.equal(y, results[0]) for y in results) and mlc.allclose(results[0], m(x))


def test_changes_are_seen() -> None:
    m, x = network(), mlc.randn(5, 2)
    f = mlc.compile(lambda x: m(x))
    changes: list[Callable[[], Any]] = [
        lambda: m[0].weight.mul_(2), lambda: m.train(), lambda: m.eval(),
        lambda: setattr(m[0].weight, "data", mlc.randn(2, 2)),
        lambda: setattr(m[0], "weight", nn.Parameter(mlc.randn(2, 2))),
        lambda: m.load_state_dict({k: v * 2 for k, v in m.state_dict().items()}),
        lambda: m.__setitem__(2, nn.ReLU()), lambda: m[0].register_forward_hook(lambda _, args, out: out + 1),
        lambda: m[1].running_mean.copy_(mlc.ones(2))]
    with mlc.no_grad():
        f(x)
        for change in changes:
            change()
            if not m.training:
                for _ in range(3):
                    assert mlc.allclose(f(x), m(x))
        m.train()
        mean = m[1].running_mean.clone()
        f(x)
        assert not mlc.equal(mean, m[1].running_mean)


@NATIVE
def test_gradients_are_recorded_by_the_mode_of_the_thread() -> None:
    m, x, wrong = network(), mlc.randn(5, 2), list[str]()
    f = mlc.compile(lambda x: m(x))

    def calls() -> None:
        for _ in range(20):
            with mlc.no_grad():
                wrong.extend(["recorded"] if f(x).requires_grad else [])
            wrong.extend([] if f(x).requires_grad else ["not recorded"])

    threads = [threading.Thread(target=calls) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    m.requires_grad_(False)
    assert not f(x).requires_grad and not f(x).requires_grad
    m[0].weight.requires_grad_()
    assert f(x).requires_grad


def test_calls_within_a_recording_are_recorded() -> None:
    w, c, x = mlc.ones(3), mlc.ones(3), mlc.ones(3)
    doubled, twice = mlc.compile(lambda: w * 2), mlc.compile(lambda x: x * 2)
    doubled(), doubled(), twice(c), twice(c)

    @mlc.compile
    def step(x: mlc.Tensor) -> Any:
        w.add_(x)
        c.add_(x)
        return doubled(), twice(c)

    for expected in (4, 6):
        assert all(np.array_equal(y.numpy(), np.full(3, expected)) for y in step(x))


def test_variables_and_views() -> None:
    w = mlc.zeros(2, 3)
    f = mlc.compile(lambda: w.t() + w[0, 0])
    assert f().shape == f().shape == (3, 2)
    w[0, 0] = 1.0
    assert f()[0, 0].item() == 2
    w = mlc.ones(1, 1)
    assert f().tolist() == f().tolist() == [[2.0]]


@NATIVE
def test_the_fast_path_of_a_state_takes_the_place_of_the_oldest() -> None:
    weights = [mlc.full((2,), float(i)) for i in range(12)]
    f: Any = mlc.compile(lambda: weights[0] * 2)
    for _ in range(2 * len(weights)):
        f()
        before = fast_calls(f)
        assert f().tolist() == [2 * weights[0][0].item()] * 2 and fast_calls(f) == before + 1
        weights.append(weights.pop(0))


@pytest.mark.parametrize("read", [
    copy.deepcopy, copy.copy, lambda t: t.item(), lambda t: t.tolist(), lambda t: int(t),
    lambda t: 1.0 if t > 1.5 else 0.0, lambda t: float(f"{t:.3f}"), lambda t: default_collate([t, t])[0],
    lambda t: mlc.tensor([t, t])[0], lambda t: mlc.full((), t), lambda t: len(range(int(t)))])
def test_elements_that_a_recording_reads_are_guarded(read: Callable[[mlc.Tensor], Any]) -> None:
    t, x = mlc.tensor(1.0), mlc.ones(2)
    f = mlc.compile(lambda x: x * read(t))
    f(x), f(x)
    t.add_(1)
    for _ in range(2):
        assert mlc.equal(f(x), x * read(t))


def test_modes_alternate_without_another_recording() -> None:
    m, x = network(), mlc.randn(5, 2)
    f = mlc.compile(m)
    with mlc.no_grad():
        for _ in range(3):                                 # training counts batches, which evaluation does not read
            m.train()
            f(x)
            m.eval()
            f(x)
    assert f.report().startswith("Sequential: 2 specialisations")


@NATIVE
def test_compiled_modules_take_the_fast_path() -> None:
    m, x = network(), mlc.randn(5, 2)
    f: Any = mlc.compile(m)
    with mlc.no_grad():
        f(x)
        before = fast_calls(f)
        f(x)
    assert fast_calls(f) == before + 1


def test_a_module_whose_arrays_are_replaced_all_the_time_is_not_recorded_for_each() -> None:
    m, x = nn.Linear(2, 2), mlc.ones(1, 2)
    f: Any = mlc.compile(m)
    with mlc.no_grad():
        for i in range(20):
            m.weight = nn.Parameter(mlc.full((2, 2), float(i)))
            assert mlc.allclose(f(x), m(x))
    assert len(f.report().splitlines()) < 40


def test_what_one_recording_has_read_is_guarded_after_another() -> None:
    t = mlc.tensor(2.0)
    f = mlc.compile(lambda x: x * t.item() if x.ndim == 1 else x + 0)
    f(mlc.ones(2)), f(mlc.ones(2, 2))
    t.add_(1)
    assert f(mlc.ones(2)).tolist() == [3, 3]


def test_fast_paths_of_former_states_keep_no_tensors() -> None:
    w = mlc.zeros(3)
    f = mlc.compile(lambda x: x + w)
    alive = []
    for i in range(40):
        w = mlc.full((3,), float(i))
        alive.append(weakref.ref(w))
        assert f(mlc.zeros(3)).tolist() == [i] * 3
    gc.collect()
    assert sum(r() is not None for r in alive) < 20


@NATIVE
def test_methods_of_modules_are_compiled() -> None:
    m, x = nn.Linear(2, 2), mlc.ones(1, 2)
    f: Any = mlc.compile(m.__call__)
    assert mlc.allclose(f(x), m(x)) and f.peak_bytes() > 0


def test_attribute_has_the_name_of_a_global_that_changes() -> None:
    """An attribute is no global: what a global of its name is does not matter."""
    scope: dict[str, Any] = {"mlc": mlc, "t": 0.0, "size": 1}
    exec("f = mlc.compile(lambda x: x.t() * x.size(0))", scope)            # noqa: S102
    f, x = scope["f"], mlc.tensor([[1.0, 2.0]])
    for t in range(3):
        scope["t"] = scope["size"] = t
        assert f(x).tolist() == [[1.0], [2.0]]
    assert len(f.entries) == 1


@pytest.mark.parametrize("way", ["sys.modules[__name__].scale", "__import__(__name__).scale", "own.module.scale"])
def test_a_global_that_is_read_from_a_module(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module is its globals, however it is reached."""
    module: Any = types.ModuleType("own_module")
    monkeypatch.setitem(sys.modules, "own_module", module)
    text = f"import sys, mlc, types\nscale = 1.0\nown = types.SimpleNamespace()\nf = mlc.compile(lambda x: x * {way})"
    exec(text, vars(module))  # noqa: S102
    module.own.module = module
    assert module.f(mlc.ones(1)).item() == 1.0
    module.scale = 2.0
    assert module.f(mlc.ones(1)).item() == 2.0
