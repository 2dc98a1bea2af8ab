"""{grad, jvp, vmap} of {grad, jvp, vmap} of functions with every kind of control flow, compiled.

The functions take a 2x2 matrix and give a number; how often they loop and which branch they take depends on it. So do
their transforms: a gradient and a tangent are weighted and summed, a batch has three matrices made from the one. A cell
`a(b(f))` is right if b(f) agrees with finite differences, or a loop over the batch, of f in plain numpy, and a(b(f))
with those of b(f).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mlc

pytestmark = pytest.mark.usefixtures("interpreted")

Function = Callable[[Any], Any]
WEIGHTS = np.array([[0.3, -1.1], [0.7, 0.9]])
DIRECTION = np.array([[1.0, -0.4], [0.2, 0.6]])
ELEMENT_WEIGHTS = np.array([1.0, 0.5, -0.8])


# -- the functions, with mlc and in plain numpy ------------------------------------------------------------------------
def straight(x: Any) -> Any:
    return mlc.sin(x @ x).sum() + (x * x).mean()


def straight_np(x: Any) -> Any:
    return np.sin(x @ x).sum() + (x * x).mean()


def branch(x: Any) -> Any:
    return mlc.cond(x.sum() > 0, lambda: mlc.sin(x @ x).sum(), lambda: (x * mlc.exp(x)).sum())


def branch_np(x: Any) -> Any:
    return np.sin(x @ x).sum() if x.sum() > 0 else (x * np.exp(x)).sum()


def counted(x: Any) -> Any:
    iterations = mlc.cast(mlc.abs(x).sum(), mlc.int64) + 1
    return mlc.fori_loop(0, iterations, lambda i, c: mlc.sin(c @ x) + 0.1 * i, x).sum()


def counted_np(x: Any) -> Any:
    c = x
    for i in range(int(np.abs(x).sum()) + 1):
        c = np.sin(c @ x) + 0.1 * i
    return c.sum()


def repeated(x: Any) -> Any:
    return mlc.while_loop(lambda c: (c[0] * c[0]).sum() < 9.0,
                          lambda c: (c[0] * 1.5 + mlc.cos(c[0] + x), c[1] + 0.5), (x, 0.0))[0].sum()


def repeated_np(x: Any) -> Any:
    c = x
    while (c * c).sum() < 9.0:
        c = c * 1.5 + np.cos(c + x)
    return c.sum()


def scanned(x: Any) -> Any:
    total, rows = mlc.scan(lambda c, row: (mlc.tanh(c @ x + row), (c * row).sum()), x, mlc.stack([x[0], x[1], x[0]]))
    return total.sum() + (rows * rows).sum()


def scanned_np(x: Any) -> Any:
    c, out = x, 0.0
    for row in (x[0], x[1], x[0]):
        out += (c * row).sum() ** 2
        c = np.tanh(c @ x + row)
    return c.sum() + out


def nested(x: Any) -> Any:
    def turn(c: Any) -> Any:
        c, n = c
        return mlc.cond(c.sum() > 1.0, lambda: (c * 1.4, n + 1), lambda: (mlc.cos(c) + 0.3 * x, n + 1))
    return mlc.while_loop(lambda c: ((c[0] * c[0]).sum() < 6.0) & (c[1] < 6), turn, (x, 0))[0].sum()


def nested_np(x: Any) -> Any:
    c, n = x, 0
    while (c * c).sum() < 6.0 and n < 6:
        c, n = (c * 1.4 if c.sum() > 1.0 else np.cos(c) + 0.3 * x), n + 1
    return c.sum()


FUNCTIONS = {"none": (straight, straight_np), "if": (branch, branch_np), "for": (counted, counted_np),
             "while": (repeated, repeated_np), "scan": (scanned, scanned_np), "if in while": (nested, nested_np)}


# -- the transforms, by mlc and by definition --------------------------------------------------------------------------
def gradient(f: Function) -> Function:
    return lambda x: (mlc.grad(f)(x) * WEIGHTS).sum()


def tangent(f: Function) -> Function:
    return lambda x: mlc.jvp(f, (x,), (DIRECTION,))[1]


def batched(f: Function) -> Function:
    return lambda x: (mlc.vmap(f)(mlc.stack([x, 0.6 * x + 0.2, -x])) * ELEMENT_WEIGHTS).sum()


def along(f: Function, x: Any, direction: Any, step: float = 1e-5) -> Any:
    """The derivative in a direction, by differences of fourth order."""
    at = [float(f(x + k * step * direction)) for k in (-2, -1, 1, 2)]
    return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * step)


def gradient_np(f: Function) -> Function:
    return lambda x: sum(WEIGHTS[i] * along(f, x, unit(i)) for i in np.ndindex(2, 2))


def unit(i: tuple[int, ...]) -> Any:
    out = np.zeros((2, 2))
    out[i] = 1.0
    return out


def tangent_np(f: Function) -> Function:
    return lambda x: along(f, x, DIRECTION)


def batched_np(f: Function) -> Function:
    return lambda x: sum(w * float(f(element)) for w, element in zip(ELEMENT_WEIGHTS, (x, 0.6 * x + 0.2, -x)))


TRANSFORMS = {"grad": (gradient, gradient_np), "jvp": (tangent, tangent_np), "vmap": (batched, batched_np)}
PASSED: set[tuple[str, str, str]] = set()


@pytest.fixture(scope="module", autouse=True)
def table() -> Iterator[None]:
    yield
    print("\n" + " " * 14 + "".join(f"{kind:>14}" for kind in FUNCTIONS))
    for outer in TRANSFORMS:
        for inner in TRANSFORMS:
            cells = ("passed" if (outer, inner, kind) in PASSED else "-" for kind in FUNCTIONS)
            print(f"{outer + ' of ' + inner:<14}" + "".join(f"{cell:>14}" for cell in cells))


def is_smooth(f: Function, x: Any) -> bool:
    """Whether f is smooth enough for finite differences near x and the other batch elements."""
    for element in (x, 0.6 * x + 0.2, -x):
        for direction in (DIRECTION, *(unit(i) for i in np.ndindex(2, 2))):
            before, here, after = (along(f, element + k * 2e-4 * direction, direction) for k in (-1, 0, 1))
            if not max(abs(before - here), abs(after - here)) <= 0.02 * (1 + abs(here)):
                return False
    return True


def cells() -> Iterator[Any]:
    """All cells; in the default run a third, in which every two of outer, inner and kind meet."""
    transforms, kinds = list(TRANSFORMS), list(FUNCTIONS)
    for i, j, k in itertools.product(range(3), range(3), range(len(kinds))):
        yield pytest.param(transforms[i], transforms[j], kinds[k], marks=[pytest.mark.slow] if (i + j + k) % 3 else [])


@pytest.mark.parametrize(("outer", "inner", "kind"), cells())
def test_every_pair_of_transforms_compiled(outer: str, inner: str, kind: str) -> None:
    f, f_np = FUNCTIONS[kind]
    (first, first_np), (second, second_np) = TRANSFORMS[inner], TRANSFORMS[outer]
    once, twice = mlc.compile(first(f)), mlc.compile(second(first(f)))
    random = np.random.default_rng(0)
    smooth = (x for _ in range(100) if is_smooth(f_np, x := random.uniform(-1.2, 1.2, (2, 2))))
    for x in (next(smooth), next(smooth)):
        np.testing.assert_allclose(float(once(x)), first_np(f_np)(x), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(float(twice(x)), second_np(once)(x), rtol=1e-6, atol=1e-6)
    PASSED.add((outer, inner, kind))


def test_a_lane_that_stops_where_the_derivative_is_infinite() -> None:
    """1 - sqrt(1) = 0 ends the first element, where the derivative of the square root is infinite; the others go on."""
    def f(x: Any) -> Any:
        return mlc.while_loop(lambda c: c > 0.0, lambda c: c - mlc.sqrt(c), x)

    x = np.array([1.0, 4.0, 2.5])
    alone = [float(mlc.grad(f)(v)) for v in x]
    assert np.isfinite(alone).all()
    np.testing.assert_allclose(mlc.compile(mlc.vmap(mlc.grad(f)))(x).numpy(), alone, rtol=1e-12)
    np.testing.assert_allclose(mlc.compile(mlc.grad(lambda x: mlc.vmap(f)(x).sum()))(x).numpy(), alone, rtol=1e-12)
    moved = mlc.compile(lambda x: mlc.jvp(mlc.vmap(f), (x,), (np.ones(3),))[1])(x).numpy()
    np.testing.assert_allclose(moved, alone, rtol=1e-12)


# -- loops and branches whose parts differ ----------------------------------------------------------------------------
def chained(a: Any, b: Any, c: Any, d: Any, loop: Callable[..., Any]) -> Any:
    """The first number reaches the last by three iterations, and none before."""
    return loop(0, 3, lambda i, s: (s[0] * 2, s[1] + s[0], s[2] * 3 + s[1], s[3] + s[2]), (a, b, c, d))[3]


def in_python(lower: int, upper: int, body: Callable[..., Any], state: Any) -> Any:
    for i in range(lower, upper):
        state = body(i, state)
    return state


@pytest.mark.parametrize("transform", [
    lambda f: mlc.grad(f, argnums=(0, 1, 2, 3)), lambda f: mlc.grad(f, argnums=0), lambda f: mlc.grad(f, argnums=2),
    lambda f: lambda *xs: mlc.jvp(f, xs, (1.0, 10.0, 100.0, 1000.0))], ids=["all", "first", "third", "jvp"])
def test_numbers_that_reach_others_by_several_iterations(transform: Any) -> None:
    given = [mlc.tensor(x) for x in (1.0, 2.0, 3.0, 4.0)]
    f, g = (transform(functools.partial(chained, loop=loop)) for loop in (mlc.fori_loop, in_python))
    assert mlc.compile(f)(*given) == g(*given)


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("branches", [
    (lambda x: x * x, lambda x: mlc.tensor(3.0)), (lambda x: mlc.tensor(3.0), lambda x: x * x)],
    ids=["first", "second"])
def test_branches_of_which_one_has_a_derivative(branches: Any, positive: bool) -> None:
    x = mlc.tensor(2.0 if positive else -2.0)
    f: Any = mlc.compile(lambda x: mlc.jvp(lambda x: mlc.cond(x > 0, *branches, x), (x,), (mlc.tensor(1.0),))[1])
    wanted = 2 * x.item() if branches[not positive](mlc.tensor(5.0)) == 25.0 else 0
    assert f(x).item() == wanted
    assert mlc.compile(mlc.grad(lambda x: mlc.cond(x > 0, *branches, x)))(x).item() == wanted


def test_a_loop_that_some_of_a_batch_never_enter_and_that_makes_a_constant() -> None:
    def f(x: Any, n: Any) -> Any:
        return mlc.while_loop(lambda c: c[1] < n, lambda c: (mlc.floor(c[0]), c[1] + 1), (2 * x, 0))[0]

    x, n = mlc.tensor([1.2, 1.3, 1.4]), mlc.tensor([0, 1, 2])
    f_and_tangent = mlc.compile(lambda x: mlc.jvp(lambda x: mlc.vmap(f)(x, n), (x,), (mlc.ones(3),)))
    values, tangents = f_and_tangent(x)
    np.testing.assert_allclose(values.numpy(), [2.4, 2, 2], rtol=1e-6)
    assert tangents.tolist() == [2, 0, 0]
    assert mlc.compile(mlc.grad(lambda x: mlc.vmap(f)(x, n).sum()))(x).tolist() == [2, 0, 0]
