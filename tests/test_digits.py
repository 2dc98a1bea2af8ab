"""The main job: one native entry a step, memory that is taken over and does not grow, nothing from outside."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
import pytest

import mlc
from mlc.frontend import tree

EXAMPLE = Path(__file__).parent.parent / "examples" / "digits.py"


@pytest.fixture(scope="module")
def digits() -> ModuleType:
    spec = importlib.util.spec_from_file_location("digits", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def addresses(*trees: Any) -> list[int]:
    """Where the arrays of containers lie in memory."""
    return [x.array.__array_interface__["data"][0] for t in trees for x in tree.leaves(t)
            if isinstance(x, mlc.Tensor)]


def resident() -> int:
    """Bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_learns(digits: ModuleType) -> None:
    """A few epochs are enough to see that it learns; the accuracy promised is that of 60 (slow, below)."""
    seen: list[float] = []
    digits.fit(0, 8, digits.load(), lambda epoch, loss, accuracy: seen.append(accuracy))
    assert seen[-1] > 0.93


@pytest.mark.slow
def test_accuracy_over_five_seeds(digits: ModuleType) -> None:
    last: list[float] = []
    for seed in range(5):
        seen: list[float] = []
        digits.fit(seed, 60, digits.load(), lambda epoch, loss, accuracy, seen=seen: seen.append(accuracy))
        last.append(seen[-1])
    assert np.mean(last) >= 0.97


def started(digits: ModuleType) -> tuple[Any, Any, Any, Any]:
    """A model and optimiser state after two steps, and a batch."""
    images, labels, _, _ = digits.load()
    model = digits.Classifier()
    state = digits.optimizer.init(model)
    batch = images[:64], labels[:64]
    for _ in range(2):
        model, state, _ = digits.train(model, state, *batch)
    return model, state, *batch


def test_a_step_is_one_entry_and_writes_where_its_arguments_were(digits: ModuleType) -> None:
    model, state, *batch = started(digits)
    before = addresses(model, state)
    entries = mlc.native_entries()
    model, state, _ = digits.train(model, state, *batch)
    assert mlc.native_entries() == entries + 1
    assert addresses(model, state) == before and len(before) > 18


def test_memory_is_flat(digits: ModuleType) -> None:
    model, state, *batch = started(digits)

    def run(steps: int) -> None:
        nonlocal model, state
        for _ in range(steps):
            model, state, value = digits.train(model, state, *batch)
            value.item()

    run(200)
    before = resident()
    run(1000)
    assert resident() - before < 1 << 20


def test_compiles_and_runs_with_nothing_from_outside(digits: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """No network and no process from recording to the result, unless a long compilation may share its work."""
    monkeypatch.setenv("MLC_COMPILE_JOBS", "1")

    def forbidden(*args: Any, **keywords: Any) -> NoReturn:
        raise AssertionError("nothing outside this process is needed")

    for holder, names in ((subprocess, ("Popen",)), (os, ("fork", "posix_spawn", "system", "execve")),
                          (socket, ("socket", "create_connection"))):
        for name in names:
            monkeypatch.setattr(holder, name, forbidden)
    images, labels, _, _ = digits.load()
    fresh = mlc.compile(digits.training_step)
    model = digits.Classifier()
    _, _, value = fresh(model, digits.optimizer.init(model), images[:32], labels[:32])
    assert 1.5 < value.item() < 3.5


def test_compiled_code_calls_nothing_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once compiled, a function works with every function of numpy replaced by one that raises."""
    @mlc.compile
    def f(x: Any, y: Any) -> Any:
        return mlc.softmax(mlc.tanh(x) @ y, dim=1)

    x, y = np.ones((4, 8), np.float32), np.ones((8, 3), np.float32)
    wanted = f(x, y).numpy().copy()
    f(x=x, y=y)                              # keywords are another signature

    def forbidden(*args: Any, **keywords: Any) -> NoReturn:
        raise AssertionError("numpy was called")

    with monkeypatch.context() as patch:
        for name, found in list(vars(np).items()):
            if callable(found) and not isinstance(found, type) and not name.startswith("_"):
                patch.setattr(np, name, forbidden)
        fast, careful = f(x, y), f(x=x, y=y)
    assert (fast.numpy() == wanted).all() and (careful.numpy() == wanted).all()
