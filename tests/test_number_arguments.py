"""Python numbers as arguments of compiled functions: numbers to the program, or refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mlc
from mlc.nn import functional as F

X = mlc.tensor([1.0, 2.0])


@pytest.mark.parametrize("asked", [
    lambda k: isinstance(k, int), lambda k: isinstance(k, float), lambda k: isinstance(k, (int, float)),
    lambda k: isinstance(k, bool), lambda k: isinstance(k, mlc.Tensor), lambda k: type(k) is int,
    lambda k: type(k) is float, lambda k: isinstance(k + 1, int), lambda k: isinstance(k / 2, float)])
@pytest.mark.parametrize("number", [3, 2.5, mlc.tensor(3)], ids=["int", "float", "tensor"])
def test_the_class_of_a_number(asked: Callable[[Any], bool], number: Any) -> None:
    def f(x: Any, k: Any) -> Any:
        return x * 2 if asked(k) else x * 3

    assert mlc.compile(f)(X, number).tolist() == f(X, number).tolist()


@pytest.mark.parametrize("use", [
    lambda x, n: x * {1: 10}.get(n, 0), lambda x, n: x * {1: 10}[n], lambda x, n: x * len({n, 1}),
    lambda x, n: x * (2 if n in {1} else 3), lambda x, n: F.layer_norm(x, (2,), eps=n)])
def test_numbers_that_have_to_be_known(use: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(mlc.UserError, match=r"MLC0350(.|\n)*static="):
        mlc.compile(use)(X, 1)
    assert mlc.compile(use, static="n")(X, 1).tolist() == use(X, 1).tolist()


def test_limits_and_padding() -> None:
    nan = float("nan")
    limits: list[Callable[[Any], Any]] = [
        lambda x: x.clamp(min=nan), lambda x: x.clamp(max=nan), lambda x: x.clamp(0.0, nan)]
    for f in limits:
        assert mlc.compile(f)(X).isnan().all().item() and f(X).isnan().all().item()
    assert mlc.compile(lambda x, v: F.pad(x, (1, 1), value=v))(X, 0.5).tolist() == [0.5, 1, 2, 0.5]
    assert mlc.compile(lambda x, v: F.pad(x, (1, 0), value=v))(X, 3).tolist() == [3, 1, 2]


@pytest.mark.parametrize("returned", [
    lambda w, x, loss: w.grad.clone(), lambda w, x, loss: w.grad, lambda w, x, loss: loss,
    lambda w, x, loss: loss.detach(), lambda w, x, loss: x * 2, lambda w, x, loss: w * 2])
def test_what_has_a_history_beside_a_backward(returned: Any) -> None:
    def f(x: Any) -> Any:
        loss = ((w * x) ** 2).sum()
        loss.backward()
        return returned(w, x, loss)

    w = mlc.ones(2, requires_grad=True)
    wanted = f(X).requires_grad
    w.grad = None
    assert mlc.compile(f)(X).requires_grad is wanted
