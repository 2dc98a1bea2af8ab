"""mlc.cond, while_loop, fori_loop, scan and map: eager, compiled, and against what they say in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mlc
from mlc.frontend import tree
from mlc.ir.diag import UserError, UserTypeError

pytestmark = pytest.mark.usefixtures("execution")

Array = np.ndarray[Any, Any]
X = np.arange(6, dtype=np.float32).reshape(3, 2)


def both(f: Callable[..., Any], *args: Any) -> Any:
    """f(*args), which is the same compiled."""
    plain, compiled = f(*args), mlc.compile(f)(*args)
    first, structure = tree.flatten(plain)
    for a, b in zip(first, tree.matching_leaves(structure, compiled)):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b), strict=True)
    return plain


def test_cond_runs_one_branch_and_passes_what_both_leave() -> None:
    def f(x: Any, i: Any) -> Any:
        return mlc.cond(i < 2, lambda x, i: {"a": x[i], "b": "same"}, lambda x, i: {"b": "same", "a": -x[0]}, x, i)

    for i in (0, 2, 7):                                    # x[7] would be an error
        found = both(f, mlc.tensor(X), np.int64(i))
        np.testing.assert_array_equal(np.asarray(found["a"]), X[i] if i < 2 else -X[0])
        assert found["b"] == "same"


def test_cond_on_a_python_value_records_one_branch() -> None:
    assert mlc.cond(True, lambda: "one", lambda: 2) == "one"
    assert mlc.compile(lambda x: mlc.cond(x.ndim == 2, lambda: x, lambda: x[0, 0, 0]))(X).shape == (3, 2)


def test_numbers_take_on_the_type_of_what_they_meet() -> None:
    def f(x: Any, n: Any) -> Any:
        return mlc.while_loop(lambda c: c["i"] < n, lambda c: {
            "i": c["i"] + 1, "sum": c["sum"] + x[c["i"]], "half": c["half"] / 2, "done": c["i"] > 1},
            {"i": 0, "sum": 0, "half": 1, "done": False})

    found = both(f, mlc.tensor(X)[:, 1], np.int64(3))
    assert [found[k].dtype for k in ("i", "sum", "half", "done")] == [mlc.int64, mlc.float32, mlc.float32, mlc.bool]
    assert (int(found["i"]), float(found["sum"]), float(found["half"]), bool(found["done"])) == (3, 9.0, 0.125, True)


@pytest.mark.parametrize("bounds", [(0, 4), (2, 5), (3, 3), (5, 1)])
def test_fori_loop_counts_like_range(bounds: tuple[int, int]) -> None:
    want = X
    for i in range(*bounds):
        want = want * 2 + i
    for kind in (int, np.int64, np.uint8):
        lower, upper = (kind(b) for b in bounds)
        found = both(lambda x, a, b: mlc.fori_loop(a, b, lambda i, x: x * 2 + i, x), X, lower, upper)
        np.testing.assert_array_equal(np.asarray(found), want)


@settings(max_examples=20, deadline=None)
@given(n=st.integers(0, 5), reverse=st.booleans(), symbolic=st.booleans())
def test_scan_and_map(n: int, reverse: bool, symbolic: bool) -> None:
    def f(x: Any) -> Any:
        return mlc.scan(lambda c, x: (c * 0.5 + x, {"y": c - x, "n": 1}), mlc.zeros(2), x, reverse=reverse)

    x = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
    carry, ys = mlc.compile(f, args=[mlc.spec("N", 2)])(x) if symbolic else both(f, x)
    c, want = np.zeros(2, np.float32), np.zeros((n, 2), np.float32)
    for i in reversed(range(n)) if reverse else range(n):
        c, want[i] = c * np.float32(0.5) + x[i], c - x[i]
    np.testing.assert_array_equal(np.asarray(carry), c)
    np.testing.assert_array_equal(np.asarray(ys["y"]), want)
    np.testing.assert_array_equal(np.asarray(ys["n"]), np.ones(n, np.int64))
    np.testing.assert_array_equal(np.asarray(mlc.map(lambda r: r.sum(), x)), x.sum(1))


def test_scan_without_arrays_takes_a_length() -> None:
    def f(x: Any) -> Any:
        return mlc.scan(lambda c, _: (c * 2, c), x, length=3)

    carry, ys = both(f, np.float32(1))
    assert float(carry) == 8 and np.asarray(ys).tolist() == [1, 2, 4]


def test_bodies_nest_and_see_what_stands_around() -> None:
    table = np.array([10, 20, 30], np.float32)                       # a constant, first met in an inner body

    def f(x: Any, n: Any) -> Any:
        def row(i: Any, total: Any) -> Any:
            def inner(j: Any, t: Any) -> Any:
                return t + mlc.cond(j % 2 == 0, lambda: x[i, j], lambda: mlc.tensor(0.0)) + mlc.tensor(table)[i]
            return mlc.fori_loop(0, 2, inner, total)
        return mlc.fori_loop(0, n, row, 0.0) + mlc.tensor(table)[0]

    assert float(both(f, mlc.tensor(X), np.int64(3))) == 6 + 120 + 10


def test_a_module_is_called_in_a_loop() -> None:
    class Net(mlc.nn.Module):
        def __init__(self) -> None:
            self.linear = mlc.nn.Linear(2, 2)

        def forward(self, x: Any, n: Any) -> Any:
            return mlc.fori_loop(0, n, lambda i, h: mlc.tanh(self.linear(h)), x)

    net = Net()
    want = mlc.tensor(X)
    for _ in range(3):
        want = mlc.tanh(net.linear(want))
    np.testing.assert_allclose(np.asarray(mlc.compile(net)(X, np.int64(3))), np.asarray(want), rtol=1e-6)


def refused(code: str, message: str, f: Callable[[], Any]) -> UserError:
    with pytest.raises(UserError, match=message) as info:
        f()
    assert info.value.code == code and info.value.loc.file == __file__
    return info.value


def test_carries_and_branches_that_differ_are_named() -> None:
    error = refused("MLC0601", r"carries init\['h'\]\[1\], which begins as tensor<2xf32> and is tensor<3xf32>",
                    lambda: mlc.while_loop(lambda c: c["i"] < 3, lambda c: {"i": c["i"] + 1, "h": [0, mlc.zeros(3)]},
                                           {"i": 0, "h": [0, mlc.zeros(2)]}))
    assert isinstance(error, UserTypeError)
    refused("MLC0601", "begins as tensor<i64> and is a Python float",
            lambda: mlc.fori_loop(0, 2, lambda i, x: 0.5, mlc.tensor(1)))
    refused("MLC0601", "carries init, which begins as a Python int and is a tuple",
            lambda: mlc.fori_loop(0, 2, lambda i, x: (x, x), 0))
    refused("MLC0603", r"the result\[0\] is tensor<f32> in one branch of mlc.cond and the str 'a' in the other",
            lambda: mlc.cond(mlc.tensor(True), lambda: [mlc.tensor(1.0)], lambda: ["a"]))
    refused("MLC0602", "the condition of mlc.while_loop is tensor<2xi1>",
            lambda: mlc.while_loop(lambda x: x > 0, lambda x: x - 1, mlc.ones(2)))
    refused("MLC0605", "a bound is tensor<2xi64>", lambda: mlc.fori_loop(0, mlc.tensor([1, 2]), lambda i, x: x, 0))


def test_scan_says_what_is_wrong_with_its_arguments() -> None:
    refused("MLC0606", r"xs\[1\] has length 2, others have 3",
            lambda: mlc.scan(lambda c, x: (c, x), 0, (mlc.zeros(3), mlc.zeros(2))))
    refused("MLC0606", "xs has length 3, length says 2", lambda: mlc.scan(lambda c, x: (c, x), 0, mlc.zeros(3), 2))
    refused("MLC0606", "the number of steps is not given", lambda: mlc.scan(lambda c, x: (c, x), 0))
    refused("MLC0606", "xs is tensor<f32>, which has no elements", lambda: mlc.map(lambda x: x, mlc.tensor(1.0)))
    refused("MLC0604", r"returned tensor<i64>, expected \(carry, y\)",
            lambda: mlc.scan(lambda c, x: c, 0, mlc.zeros(3)))


def test_what_a_body_computes_stays_in_it() -> None:
    def f(x: Any) -> Any:
        kept: list[Any] = []
        mlc.cond(x > 0, lambda: kept.append(x + 1), lambda: None)
        return kept[-1]

    refused("MLC0600", "computed inside of a loop or branch is used outside of it",
            lambda: mlc.compile(f)(np.float32(1)))


def test_what_branches_save_for_backward_is_told_apart() -> None:
    """Several values of one type, as many in one branch as in the other or more."""
    def f(x: Any) -> Any:
        return mlc.cond(x.sum() > 0, lambda x: (mlc.exp(x) * mlc.sin(x) * mlc.tanh(x * 2)).sum(),
                        lambda x: (mlc.exp(x) * x).sum(), x)

    for x in (np.array([0.5, 0.7]), np.array([-0.5, -0.7])):
        steps = 1e-6 * np.eye(2)
        want = [(f(mlc.tensor(x + h)) - f(mlc.tensor(x - h))).item() / 2e-6 for h in steps]
        np.testing.assert_allclose(mlc.compile(mlc.grad(f))(x).numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("run", [lambda f: f, mlc.compile], ids=["eager", "compiled"])
def test_bounds_of_uint64_are_not_negative(run: Any) -> None:
    f = run(lambda a, b: mlc.fori_loop(a, b, lambda i, c: c + 1, mlc.zeros(())))
    for a, trips in ((2**64 - 5, 0), (2**63, 0), (1, 2)):
        start, end = (mlc.tensor(n, dtype="uint64") for n in (a, 3))
        assert f(start, end).item() == trips
