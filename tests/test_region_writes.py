"""Writes to tensors of outside in loops and branches that depend on tensors: all that share the memory see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mlc
from mlc.frontend import loop_carried, tree
from mlc.ir.diag import UserError

pytestmark = pytest.mark.usefixtures("execution")


def in_a_branch(x: Any) -> Any:
    y = z = x + 0
    view = y[1:]
    if x.sum() > 0:
        y += 1
        if x[0] > 1:
            view *= 3
    else:
        view.zero_()
    return y, z, view


def an_argument(x: Any) -> Any:
    if x.sum() > 0:
        x[0] = 7
    return x * 1


def in_a_loop(x: Any) -> Any:
    y = z = x + 0
    total = mlc.zeros(())
    while y.sum() < 20:
        y += 1
        total += z.sum()
    return y, z, total


def views_of_one(x: Any) -> Any:
    y = x.repeat(4)
    a, b = y[:4], y[4:]
    while a.sum() < 30:
        a += b
        b += 1
    return y, a, b


def filled(x: Any) -> Any:
    out, h = mlc.zeros(5, 2), x
    for i in range(x.abs().sum().int()):
        h = h * 2
        out[i] = h
        out[i, 0] += 1
    return out


def rows(x: Any) -> Any:
    y = x.repeat(3, 1)
    for row in y:
        row += 1
        row *= row.sum()
    return y


def picked(x: Any) -> Any:
    x[x.argmax()] += 1
    x[x.argmax()].mul_(2)
    return x


def nested(x: Any) -> Any:
    total, count = mlc.zeros(2), mlc.zeros(())
    for _ in range(x.abs().sum().int()):
        j = mlc.zeros(())
        while j < 3:
            total += x
            if total[0] > 5:
                total -= 2
                count += 1
            j += 1
    return total, count


def until(x: Any) -> Any:
    y = x + 0
    for _ in range(10):
        y += 1
        if y.sum() > 12:
            break
    return y


def by_a_function(x: Any) -> Any:
    def change(a: Any) -> Any:
        a += 5
        return a * 2

    y = x + 0
    doubled = change(y) if x.sum() > 0 else y
    return y, doubled


def of_its_own(x: Any) -> Any:
    y = x + 0
    while y.sum() < 20:
        y += 1
        y = y * 2
    return y


@pytest.mark.parametrize("f", [
    in_a_branch, an_argument, in_a_loop, views_of_one, filled, rows, picked, nested, until, by_a_function, of_its_own],
    ids=lambda f: f.__name__)
@pytest.mark.usefixtures("interpreted")
def test_recorded_as_in_eager_execution(f: Callable[[Any], Any]) -> None:
    compiled = mlc.compile(f)
    for start in ([1.0, 2.0], [2.0, -1.0], [-1.0, 0.5]):
        x, same = mlc.tensor(start), mlc.tensor(start)
        expected, found = tree.leaves(f(x)), tree.leaves(compiled(same))
        assert [a.tolist() for a in found] == [a.tolist() for a in expected] and same.tolist() == x.tolist()


def test_functions_for_control_flow_take_functions_that_write() -> None:
    @mlc.compile
    def f(x: Any) -> Any:
        y = x + 0
        mlc.cond(x.sum() > 0, lambda: y.add_(1), lambda: y.mul_(2))
        mlc.fori_loop(0, 3, lambda i, c: (y.add_(c), c + 1)[1], 0)
        return y

    assert f(mlc.ones(2)).tolist() == [5, 5]


def test_captured_tensors_change_in_branches() -> None:
    weight, count = mlc.ones(2, requires_grad=True), mlc.zeros(())
    optimizer = mlc.optim.Adam([weight], lr=0.5)

    @mlc.compile
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        (weight * x).sum().backward()
        norm = mlc.nn.utils.clip_grad_norm_([weight], 1.0)
        if norm.isfinite():
            optimizer.step()
        else:
            count.add_(1)
        return norm

    step(mlc.ones(2))
    before = weight.tolist()
    step(mlc.tensor([float("inf"), 1.0]))
    assert before == pytest.approx([0.5, 0.5]) and weight.tolist() == before and count.item() == 1


def double_one_of(x: Any, y: Any) -> Any:
    z = x if x.sum() > 0 else y
    z *= 2
    return x


@pytest.mark.parametrize(("f", "code"), [
    (lambda x: double_one_of(x, x + 1), "MLC0756"),
    (lambda x: mlc.while_loop(lambda y: x.add_(1).sum() < 9, lambda y: y + 1, x), "MLC0608"),
    (lambda x: mlc.cond(x.sum() > 0, lambda: setattr(x, "grad", x * 1), lambda: None), "MLC0720")])
def test_what_is_not_recorded_is_refused(f: Callable[[Any], Any], code: str) -> None:
    with pytest.raises(UserError, match=code):
        mlc.compile(f)(mlc.ones(2, requires_grad=True).detach())


def test_loops_within_loops_are_not_recorded_anew_for_each_around_them(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded, condition = [], loop_carried.condition

    def counting(*args: Any) -> Any:
        recorded.append(args)
        return condition(*args)

    monkeypatch.setattr(loop_carried, "condition", counting)

    def f(x: Any, y: Any) -> Any:
        while x.sum() < 100:
            y[0] += 1
            while x.sum() < 90:
                if x.max() > 40:
                    return x
                while x.sum() < 80:
                    y[1] += 1
                    while x.sum() < 70:
                        y[2] += 1
                        x = x + 1
                    x = x + 2
                x = x + 3
            x = x + 4
        return x

    y = mlc.zeros(3)
    assert mlc.compile(f)(mlc.zeros(2), y).tolist() == [44, 44] and y.tolist() == [1, 3, 35]
    assert len(recorded) < 50
