"""New elements that are written over the old ones: who keeps a tensor's memory, and what a failing call leaves."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.anomaly import AnomalyError
from mlc.ir.diag import UserIndexError

CALLS = 4
"""The first call records and compiles, the second takes the slow path, the others the fast one."""


BIG = 1 << 14
"""Elements of an array that lies in a larger one, so that it begins at a cache line."""


def address(x: mlc.Tensor) -> int:
    return int(x._array.__array_interface__["data"][0])


def counter() -> tuple[mlc.Tensor, Callable[..., Any]]:
    w = mlc.zeros(BIG)

    @mlc.compile
    def step() -> mlc.Tensor:
        w.add_(1)
        return w.sum()

    return w, step


def test_new_elements_are_written_over_the_old_ones() -> None:
    w, step = counter()
    step()
    before = address(w)
    for n in range(2, 2 + CALLS):
        assert float(step()) == n * BIG
        assert address(w) == before


def test_elements_that_somebody_holds_stay() -> None:
    w, step = counter()
    kept = []
    for n in range(2 * CALLS):
        kept.append((n, w._array[:3] if n % 2 else w._array))
        step()
    assert all((array == n).all() for n, array in kept)


def test_views_see_new_elements() -> None:
    w, step = counter()
    step()
    view = w[:5]
    for n in range(2, 2 + CALLS):
        step()
        assert (view.numpy() == n).all()


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("wrong", range(CALLS))
def test_a_step_that_fails_changes_nothing(wrong: int, checked: bool) -> None:
    w, table = mlc.ones(64, requires_grad=True), mlc.arange(5.0)

    def step(i: mlc.Tensor) -> None:
        w.grad = None
        factor = table[i].sum()
        (w * factor).sum().backward()
        with mlc.no_grad():
            w.mul_(factor)

    run = mlc.compile(step, checked=checked)
    kept: list[Any] = []
    for n in range(CALLS + 2):
        before, gradient = w._array.copy(), None if w.grad is None else w.grad._array.copy()
        if n == wrong:
            with pytest.raises(UserIndexError):
                run(mlc.tensor([1, 9]))
            assert (w._array == before).all()
            assert gradient is None if w.grad is None else (w.grad._array == gradient).all()
            kept = [w._array]
        run(mlc.tensor([2, 1]))
        np.testing.assert_array_equal(w._array, before * 3)
        assert w.grad is not None and (w.grad._array == 3).all()
    assert (kept[0] == 3.0 ** wrong).all()


def test_an_anomaly_is_found_in_the_elements_before() -> None:
    w = mlc.full((64,), 4.0)

    @mlc.compile
    def step() -> None:
        w.sub_(3)
        w.copy_(w.sqrt())

    step()
    with mlc.detect_anomaly(), pytest.raises(AnomalyError, match="sqrt"):
        step()
    assert (w._array == 1).all()


def test_a_piece_that_is_turned_round_is_read_before_it_is_written_over() -> None:
    start = np.arange(4096, dtype=np.float32)
    w = mlc.tensor(start)

    @mlc.compile
    def step(i: mlc.Tensor) -> None:
        w.copy_(mlc.dynamic_update_slice(w, mlc.dynamic_slice(w, (i,), (1024,)).flip(0), (i,)))

    for n in range(CALLS):
        step(mlc.tensor(100))
        expected = start.copy()
        expected[100:1124] = start[100:1124][::1 if n % 2 else -1]
        np.testing.assert_array_equal(w._array, expected)


def test_steps_that_are_recorded_for_backward_keep_what_it_needs() -> None:
    w, x = mlc.ones(64), mlc.full((64,), 2.0, requires_grad=True)

    @mlc.compile
    def step(x: mlc.Tensor) -> mlc.Tensor:
        out = (x * w).sum()
        with mlc.no_grad():
            w.add_(1)
        return out

    outs = [step(x) for _ in range(CALLS)]
    for n, out in enumerate(outs):
        x.grad = None
        out.backward()
        assert x.grad is not None and (x.grad.numpy() == n + 1).all()


@pytest.mark.parametrize("compiled", [False, True])
def test_an_optimizer_writes_over_parameters_and_state(compiled: bool) -> None:
    p = mlc.ones(4096, requires_grad=True)
    other = mlc.ones(4096, requires_grad=True)
    opt, reference = (mlc.optim.Adam([x], lr=0.1) for x in (p, other))

    def step() -> None:
        opt.zero_grad()
        (p * p).sum().backward()
        opt.step()

    run = mlc.compile(step) if compiled else step
    places = []
    for _ in range(6 + CALLS):
        gc.collect()
        run()
        reference.zero_grad()
        (other * other).sum().backward()
        kept = other._array                                # so that these are never written over
        reference.step()
        assert other._array is not kept
        slots = [address(x) for name, x in sorted(opt.state[p].items()) if name != "step"]
        places.append((address(p), *slots))
    assert len(set(places[-CALLS:])) == 1, places
    np.testing.assert_array_equal(p._array, other._array)


def test_all_parameters_and_state_of_a_step_may_be_written_over() -> None:
    net = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
    opt = mlc.optim.Adam(net.parameters())
    x, y = mlc.randn(16, 256), mlc.arange(16) % 10

    @mlc.compile
    def step() -> mlc.Tensor:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        return loss

    over = str(mlc.lower(step, level="low")).split("overwrites = [")[1].split("]")[0]
    assert sum(int(n) >= 0 for n in over.split(",")) == 3 * len(list(net.parameters())) + 1


def test_gradients_are_written_over_unless_somebody_has_them() -> None:
    w, x = mlc.ones(512, requires_grad=True), mlc.arange(512.0)

    @mlc.compile
    def step(scale: mlc.Tensor) -> None:
        w.grad = None
        (w * x).sum().mul(scale).backward()

    kept: list[tuple[int, Any]] = []
    places = []
    for n in range(1, 16):
        step(mlc.tensor(float(n)))
        assert w.grad is not None and (w.grad._array == n * x._array).all()
        places.append(address(w.grad))
        kept += [(n, w.grad._array)] * (n == 5) + [(n, w.grad._array[:3])] * (n == 8) + [(n, w.grad)] * (n == 11)
    assert len(set(places[2:5])) == len(set(places[5:8])) == len(set(places[11:])) == 1
    assert len(set(places[2:])) == 4
    assert all((mlc.tensor(g).numpy() == n * x._array[:len(g)]).all() for n, g in kept)
