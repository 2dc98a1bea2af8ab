"""Compiled functions of arguments whose elements do not lie in memory in order: what is a copy is one, and no view."""

from __future__ import annotations

from typing import Any

import pytest

import mlc

VIEWS = {"in order": lambda x: x, "transposed": lambda x: x.t(), "columns": lambda x: x[:, 1:3]}


def write(x: Any) -> Any:
    y = x.contiguous()
    y.add_(100)
    return y


def write_to_base(x: Any) -> Any:
    y = x.contiguous()
    x.add_(100)
    return y


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("f", [
    lambda x: x.contiguous(), lambda x: x.contiguous().view(-1), lambda x: x.contiguous()[0], lambda x: x.reshape(-1),
    lambda x: x.flatten(), write, write_to_base])
def test_results_share_memory_as_in_eager_execution(f: Any, view: str) -> None:
    found = []
    for run in (f, mlc.compile(f)):
        base = mlc.arange(12.0).reshape(3, 4)
        y = run(VIEWS[view](base))
        found.append([y.tolist(), base.tolist()])
        y.mul_(0)
        found[-1].append(base.tolist())
    assert found[0] == found[1]


def test_writes_to_what_may_be_a_copy_are_refused() -> None:
    f = mlc.compile(lambda x: x.reshape(-1).add_(1))
    x = mlc.zeros(2, 3)
    f(x)
    assert x.sum() == 6
    with pytest.raises(mlc.UserError) as error:
        f(mlc.zeros(3, 2).t())
    assert error.value.code == "MLC0756"


def test_code_is_chosen_by_the_order_of_elements_once_it_matters() -> None:
    f = mlc.compile(lambda x: x.contiguous().view(-1))
    x = mlc.arange(4.0).reshape(2, 2)
    for _ in range(3):
        assert f(x).tolist() == [0, 1, 2, 3] and f(x.t()).tolist() == [0, 2, 1, 3]
    assert len(f.reports) == 2
    first = mlc.compile(lambda x: x.contiguous().view(-1))
    assert first(x.t()).tolist() == [0, 2, 1, 3]           # whose code is none for the others
    first(x).mul_(0)
    assert x.sum() == 0
    x = mlc.arange(4.0).reshape(2, 2)
    plain = mlc.compile(lambda x: x + 1)
    plain(x), plain(x.t())
    assert len(plain.reports) == 1


def test_code_for_many_sizes_is_for_one_order() -> None:
    f = mlc.compile(write)
    for n in (2, 3, 4, 5):
        x = mlc.zeros(n, n)
        assert f(x.t()).sum() == 100 * n * n and x.sum() == 0
        assert f(x).sum() == x.sum() == 100 * n * n
    assert len(f.reports) <= 5


def test_a_captured_tensor_in_another_order_is_found() -> None:
    held = [mlc.arange(4.0).reshape(2, 2)]
    f = mlc.compile(lambda x: x + held[0].contiguous().view(-1))
    assert f(mlc.zeros(4)).tolist() == [0, 1, 2, 3]
    held[0] = held[0].t()
    assert f(mlc.zeros(4)).tolist() == [0, 2, 1, 3]


def test_a_captured_tensor_may_get_elements_in_another_order() -> None:
    t = mlc.arange(4.0).reshape(2, 2)

    @mlc.compile
    def f() -> Any:
        y = t.contiguous()
        y.add_(100)
        return t * 1, t.is_contiguous()

    assert f()[0].tolist() == [[100, 101], [102, 103]]
    t.data = mlc.arange(4.0).reshape(2, 2).t()
    found, ordered = f()
    assert found.tolist() == t.tolist() == [[0, 2], [1, 3]] and not ordered
