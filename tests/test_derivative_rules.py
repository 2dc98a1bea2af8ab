"""Functions that bring their own derivative, and those that are run again: in every mode, and under vmap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc

pytestmark = pytest.mark.usefixtures("interpreted")
X = np.array([0.5, 0.7, -1.2])
MANY = np.stack([X, 2 * X])


@mlc.custom_vjp
def squares(x: Any, scale: Any) -> Any:
    return (x * x).sum() * scale


squares.defvjp(lambda x, scale: (squares(x, scale), (x, scale)),
               lambda kept, ct: (200.0 * kept[0] * kept[1] * ct, None))        # a hundred times too much, to tell


@mlc.custom_jvp
def cubes(x: Any) -> Any:
    return x * x * x


@cubes.defjvp
def cubes_rule(primals: Any, tangents: Any) -> Any:
    return cubes(primals[0]), 300.0 * primals[0] * primals[0] * tangents[0]


def same(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-12)


def test_a_rule_for_cotangents_serves_every_mode() -> None:
    same(squares(X, 2.0), (X * X).sum() * 2)
    same(mlc.grad(squares)(X, 2.0), 400 * X)
    same(mlc.grad(squares, argnums=1)(X, 2.0), 0.0)
    same(mlc.jvp(squares, (X, 2.0), (np.ones(3), None))[1], (400 * X).sum())
    same(mlc.grad(lambda x: mlc.grad(squares)(x, 2.0).sum())(X), np.full(3, 400.0))
    same(mlc.jvp(mlc.grad(squares), (X, 2.0), (X, None))[1], 400 * X)


def test_a_rule_for_tangents_serves_every_mode() -> None:
    same(cubes(X), X**3)
    same(mlc.jvp(cubes, (X,), (np.ones(3),))[1], 300 * X * X)
    same(mlc.grad(lambda x: cubes(x).sum())(X), 300 * X * X)
    same(mlc.grad(lambda x: mlc.grad(lambda y: cubes(y).sum())(x).sum())(X), 600 * X)


def test_rules_hold_for_batches() -> None:
    many = mlc.vmap(squares, in_dims=(0, None))
    same(many(MANY, 2.0), [(X * X).sum() * 2, (X * X).sum() * 8])
    same(mlc.grad(lambda x: many(x, 2.0).sum())(MANY), 400 * MANY)
    same(mlc.vmap(mlc.grad(squares), in_dims=(0, None))(MANY, 2.0), 400 * MANY)
    same(mlc.grad(lambda x: mlc.vmap(squares, in_dims=(None, 0))(x, np.array([1.0, 2.0])).sum())(X), 600 * X)
    same(mlc.grad(lambda x: mlc.vmap(cubes)(x).sum())(MANY), 300 * MANY * MANY)
    same(mlc.vmap(lambda x: mlc.jvp(cubes, (x,), (x,))[1])(MANY), 300 * MANY**3)


def test_rules_hold_in_loops_whose_lanes_stop_one_by_one() -> None:
    def f(x: Any) -> Any:
        return mlc.while_loop(lambda c: c < 50.0, lambda c: cubes(c) + 1.0, x)

    starts = np.array([1.5, 2.5, 60.0])
    alone = [float(mlc.grad(f)(v)) for v in starts]
    same(mlc.grad(lambda x: mlc.vmap(f)(x).sum())(starts), alone)
    same(mlc.vmap(mlc.grad(f))(starts), alone)


def test_a_rule_reads_values_from_outside() -> None:
    def outer(x: Any, k: Any) -> Any:
        @mlc.custom_vjp
        def f(x: Any) -> Any:
            return (x * k).sum()
        f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * k * 10.0,))
        return f(x)

    k = np.array([3.0, 4.0, 5.0])
    same(mlc.grad(outer)(X, k), 10 * k)
    same(mlc.vmap(mlc.grad(outer), in_dims=(None, 0))(X, np.stack([k, -k])), 10 * np.stack([k, -k]))


def test_checkpoint_saves_what_goes_in_and_nothing_else() -> None:
    def deep(x: Any) -> Any:
        for _ in range(4):
            x = mlc.sin(mlc.exp(x))
        return x

    plain, again = (lambda x: deep(deep(x)).sum()), (lambda x: mlc.checkpoint(deep)(mlc.checkpoint(deep)(x)).sum())
    same(mlc.grad(again)(X), mlc.grad(plain)(X).numpy())
    same(mlc.grad(lambda x: mlc.grad(again)(x).sum())(X), mlc.grad(lambda x: mlc.grad(plain)(x).sum())(X).numpy())
    big = mlc.spec(1000, dtype="float64")
    assert mlc.saved_bytes(again, big) == 8 * 1000              # what the second one is given; x itself is there anyway
    assert mlc.saved_bytes(plain, big) >= 8 * 8 * 1000
    assert str(mlc.saved_bytes(again, mlc.spec("N", dtype="float64"))) == "8*N"


@pytest.mark.parametrize("rule", [lambda x: squares(x), lambda x: mlc.custom_vjp(lambda x: x)(x)])
def test_what_is_missing_is_said(rule: Any) -> None:
    with pytest.raises(mlc.UserError, match=r"scale|has no rule"):
        mlc.grad(lambda x: rule(x).sum())(X)
