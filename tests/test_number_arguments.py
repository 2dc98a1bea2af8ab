"""Python numbers as arguments of compiled functions: numbers to the program, or refused by name."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mlc
from mlc import specialize
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


TABLE = mlc.arange(12).reshape(3, 4).float()


@pytest.mark.parametrize("use", [
    lambda x, n: x * {1: 10}.get(n, 0), lambda x, n: x * {1: 10, 2: 3}[n], lambda x, n: x * len({n, 1}),
    lambda x, n: x * (2 if n in {1} else 3), lambda x, n: x * (2 if n in (2, 3) else 3), lambda x, n: x[n:],
    lambda x, n: x[:, : n + 1], lambda x, n: x.sum(n - 1), lambda x, n: x.narrow(0, n, 1), lambda x, n: x.topk(n)[0],
    lambda x, n: x.chunk(n)[0], lambda x, n: x.transpose(0, n - 1), lambda x, n: mlc.cat(n * [x]),
    lambda x, n: mlc.stack([x * i for i in range(n)]), lambda x, n: x + [1, 2, 3][n],
    lambda x, n: x + mlc.zeros(n, 1, 4), lambda x, n: mlc.cat([x] * n),
    lambda x, n: F.layer_norm(x, (4,), eps=n), lambda x, n: F.elu(x, n), lambda x, n: x * float(f"{n}")])
def test_numbers_that_have_to_be_known_are(use: Callable[[Any, Any], Any]) -> None:
    f = mlc.compile(use)
    for n in (1, 2, 1):
        assert f(TABLE, n).tolist() == use(TABLE, n).tolist()
        assert f(TABLE + 1, n).tolist() == use(TABLE + 1, n).tolist()


def test_parameters_of_several_numbers_and_of_modules() -> None:
    class Picked(mlc.nn.Module):
        def forward(self, x: Any, start: int = 0, *, shape: tuple[int, ...] = (-1,)) -> Any:
            return x[start:].reshape(shape)

    module, compiled = Picked(), mlc.compile(Picked())
    for arguments in ({}, {"start": 1}, {"start": 1, "shape": (2, 2, 2)}, {"shape": (4, 3)}):
        assert compiled(TABLE, **arguments).tolist() == module(TABLE, **arguments).tolist()


def test_numbers_that_nobody_asks_for_are_arguments() -> None:
    f = mlc.compile(lambda x, n, k: x[n:] * k)
    for k in range(5):
        f(TABLE, 1, k)
    assert len(f.entries) == 1


@pytest.mark.parametrize("f, argument", [
    (lambda x, n: x[n:], mlc.tensor(1)), (lambda x, n: x[n["a"]:], {"a": 1}),
    (lambda x, n: x[n[0]:] + n[1], (1, TABLE[0])), (lambda x, n: x[n + (x > 100).sum():], 1)],
    ids=["tensor", "dict", "tensor beside", "computed from a tensor"])
def test_numbers_that_are_not_known(f: Callable[[Any, Any], Any], argument: Any) -> None:
    with pytest.raises(mlc.UserError, match="MLC0350"):
        mlc.compile(f)(TABLE, argument)


def test_many_numbers_that_have_to_be_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialize, "MOST_NUMBERS", 2)
    f = mlc.compile(lambda x, n: x[:, n:])
    with pytest.warns(UserWarning, match="compiled for 2 numbers, as n has to be known"):
        found = [f(TABLE, n) for n in range(4)]
    assert [x.tolist() for x in found] == [TABLE[:, n:].tolist() for n in range(4)]


def test_tensors_stay_arguments_where_numbers_have_to_be_known() -> None:
    f = mlc.compile(lambda x, n: x.sum(n) if isinstance(n, int) else x * n)
    assert f(TABLE, 0).tolist() == TABLE.sum(0).tolist()
    for i in range(4):
        assert f(TABLE, mlc.tensor(float(i))).tolist() == (TABLE * i).tolist()
    assert len(f.entries) == 2

    @mlc.compile
    def of_many_sizes(x: Any, dim: int) -> Any:
        return x.sum(dim)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(1, 80):
            of_many_sizes(mlc.ones(n, 2), 0)
        assert of_many_sizes(mlc.ones(3, 2), 1).tolist() == [2, 2, 2]


def factorial(k: int) -> int:
    return 1 if k <= 1 else k * factorial(k - 1)


def appended(x: Any, n: int) -> Any:
    out = []
    for i in range(n):
        out.append(x * i)
    return out


def matched(x: Any, n: int) -> Any:
    match n:
        case 1:
            return x
        case int(k) if k > 2:
            return x * k
    return -x


def scheduled(x: Any, step: int) -> Any:
    if step < 2:
        return step / 10
    if step < 3:
        return "warm"
    return 0.5 * (1 + math.cos(math.pi * step / 100))


@pytest.mark.parametrize("use", [
    lambda x, n: (n * 0.5, n + 1, -n, n / 3, n // 2, n % 3, n**2, n**-1, 2**n, abs(n), n * 1j, [n], {"a": n}),
    lambda x, n: (n > 1, 0 < n < 2, n != 3, not n, (n > 1) + (n > 2), -(n > 1), ~(n > 1), (n > 1) & (n < 2)),
    lambda x, n: (round(n), math.floor(n), math.ceil(n), math.trunc(n), divmod(n, 2), divmod(7, n), n.bit_length()),
    lambda x, n: (1 << n, 64 >> n, n << 2, n & 3, pow(n, 2, 5), mlc.is_tensor(n)),
    lambda x, n: (int(n), float(n), bool(n), x.sum() > n, mlc.full((2,), n), mlc.exp(n), mlc.add(n, 1)),
    lambda x, n: bool(x.sum() > n), lambda x, n: not x.any(), lambda x, n: math.sqrt(n) * x, lambda x, n: factorial(n),
    lambda x, n: (mlc.tensor(n / 2), mlc.asarray(n), mlc.zeros_like(n / 2), mlc.clone(n), mlc.tensor([n, 1.5])),
    appended, matched, scheduled, lambda x, n: mlc.allclose(x, x * n), lambda x, n: x.equal(x)])
def test_results_that_are_numbers_are_those_of_python(use: Callable[[Any, Any], Any]) -> None:
    f = mlc.compile(use)
    for n in (1, 2, 3):
        found, wanted = f(X, n), use(X, n)
        assert str(found) == str(wanted)
        assert [type(x) for x in mlc.tree.leaves(found)] == [type(x) for x in mlc.tree.leaves(wanted)]


def test_steps_of_training_that_a_number_decides() -> None:
    found, ways = [], list[Any]([lambda f: f, mlc.compile])
    for compiled in ways:
        w: Any = mlc.nn.Parameter(mlc.ones(2))
        opt = mlc.optim.SGD([w], lr=0.1)

        def step(x: Any, i: int, w: Any = w, opt: Any = opt) -> Any:
            loss = (w * x).sum()
            loss.backward()
            if i % 2:
                opt.step()
                opt.zero_grad()
            return loss

        run = compiled(step)
        found.append([run(X, i).item() for i in range(6)])
    assert found[0] == pytest.approx(found[1])


def test_a_number_that_does_not_help_stays_an_argument() -> None:
    def f(x: Any, n: int) -> Any:
        return x * float(x.sum().item()) if n else x

    plain, g = mlc.compile(f, fallback=True), mlc.compile(f)
    for n in range(1, 4):
        assert plain(X, n).tolist() == f(X, n).tolist()
        with pytest.raises(mlc.UserError, match="MLC0350"):
            g(X, n)
    assert len(plain.reports) == 1 and not plain.signature.static and not g.signature.static


def test_floats_have_all_their_digits() -> None:
    f = mlc.compile(lambda x, n: (x, n + 1, n * 0.1, [n], n == 3.1))
    assert f(X, 3.1)[1:] == (4.1, 3.1 * 0.1, [3.1], True)


def test_numbers_of_a_saved_function(tmp_path: Path) -> None:
    f = mlc.compile(lambda x, n: (x * n, n * 0.5, n > 1))
    f(X, 3)
    mlc.save(f, tmp_path / "f.mlc")
    assert mlc.load(tmp_path / "f.mlc")(X, 4)[1:] == (2.0, True)


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


def test_numbers_do_not_have_what_tensors_have() -> None:
    def f(x: Any, k: Any) -> Any:
        if hasattr(k, "shape") or hasattr(k, "__iter__") or getattr(k, "ndim", None) is not None:
            return x + k.sum()
        return x * k if getattr(k, "__class__") in (int, float) else x - k  # noqa: B009

    x = mlc.tensor([1.0, 2.0])
    for k in (3, 2.5, mlc.tensor(2.0)):
        assert mlc.compile(f)(x, k).tolist() == f(x, k).tolist()
    sized = mlc.compile(lambda x: x * getattr(x, "shape")[0], dynamic=True)  # noqa: B009
    assert sized(x).tolist() == [2.0, 4.0] and sized(mlc.ones(3)).tolist() == [3.0] * 3
