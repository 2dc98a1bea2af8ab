"""Scatters and windows where the registry's tests do not reach: indices and sizes that are wrong only in a call."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc.ir.diag import Error, UserIndexError
from mlc.ir.interp import run_function
from mlc.ir.parser import parse_module
from tests.execution import NATIVE
from tests.public_case import thinned

pytestmark = pytest.mark.usefixtures("execution")

F = mlc.nn.functional


@NATIVE
def test_an_update_out_of_range_is_named() -> None:
    module = parse_module("""func.func @f(%x: tensor<3xf32>, %i: tensor<2xi64>, %u: tensor<2xf32>) -> tensor<3xf32> {
      %0 = tensor.scatter %x, %i, %u {axis = 0} : (tensor<3xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<3xf32>
      func.return %0 : tensor<3xf32>
    }""")
    args = [np.zeros(3, "f4"), np.array([0, 3]), np.ones(2, "f4")]
    with pytest.raises(UserIndexError, match=r"tensor.scatter: index 3 at \[1\] is out of range for size 3 of axis 0"):
        run_function(module, "f", args)
    with pytest.raises(UserIndexError, match="out of range for axis 0 of size 3"):
        mlc.index_add(mlc.zeros(3), 0, mlc.tensor([0, 3]), mlc.ones(2))
    with pytest.raises(UserIndexError, match="out of range"):
        mlc.scatter_add(mlc.zeros(2, 3), 1, mlc.tensor([[0], [-4]]), mlc.ones(2, 1))


def test_updates_count_in_order() -> None:
    """The sum of 2^24, 1 and -2^24 in float32 depends on the order."""
    big = 2.0 ** 24
    updates = mlc.tensor([big, 1.0, -big, 1.0])
    assert mlc.index_add(mlc.zeros(2), 0, mlc.tensor([1, 1, 1, 1]), updates).tolist() == [0.0, 1.0]
    assert mlc.index_copy(mlc.zeros(2), 0, mlc.tensor([1, 1, 1, 0]), updates).tolist() == [1.0, -big]


def test_sums_of_narrow_floats_are_rounded_at_the_end() -> None:
    ones = mlc.ones(3000, dtype="float16")
    index = mlc.zeros(3000, dtype="int64")
    assert mlc.index_add(mlc.zeros(1, dtype="float16"), 0, index, ones).tolist() == [3000.0]
    assert mlc.cumsum(ones, 0)[-1].item() == 3000.0


SYMBOLIC: list[Any] = [
    lambda x, w: F.conv2d(x, w, padding=1), lambda x, w: F.conv2d(x, w, stride=2, padding=1),
    lambda x, w: F.conv2d(x, w, padding="same", dilation=2), lambda x, w: F.conv_transpose2d(x, w, stride=2),
    lambda x, w: F.max_pool2d(x, 2), lambda x, w: F.max_pool2d(x, 3, 2, 1), lambda x, w: F.avg_pool2d(x, 3, 2, 1),
    lambda x, w: F.adaptive_avg_pool2d(x, 1), lambda x, w: F.adaptive_max_pool2d(x, 1), lambda x, w: F.unfold(x, 2),
    lambda x, w: mlc.cumsum(x, 2), lambda x, w: mlc.cummax(x, 0).values, lambda x, w: mlc.logcumsumexp(x, 3)]


@pytest.mark.parametrize("f", thinned(SYMBOLIC, 2), ids=range(len(SYMBOLIC)))
def test_symbolic_sizes(f: Any) -> None:
    """One compiled function for all sizes, with its gradient."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=(3, 3, 3, 3)).astype("f4")

    def loss(x: Any, w: Any) -> Any:
        return (f(x, w) * f(x, w)).sum()

    args = [mlc.spec("B", 3, "H", "W"), mlc.spec(3, 3, 3, 3)]
    fixed, grown = mlc.compile(f, args=args), mlc.compile(mlc.grad(loss, (0, 1)), args=args)
    for b, h, width in ((2, 6, 5), (1, 7, 9)):
        x = rng.normal(size=(b, 3, h, width)).astype("f4")
        np.testing.assert_allclose(fixed(x, w), f(mlc.tensor(x), mlc.tensor(w)), rtol=1e-5, atol=1e-5)
        for a, c in zip(grown(x, w), mlc.grad(loss, (0, 1))(mlc.tensor(x), mlc.tensor(w))):
            np.testing.assert_allclose(a, c, rtol=1e-4, atol=1e-4)


@NATIVE
@pytest.mark.parametrize("norm_type, size, code", [(0, 2, "MLC0360"), (float("inf"), 2, "MLC0360"), (2, 9, "MLC0367")])
def test_a_power_mean_that_is_not_defined(norm_type: float, size: int, code: str) -> None:
    with pytest.raises(mlc.UserError, match=code):
        F.lp_pool1d(mlc.ones(1, 4), norm_type, size)


@NATIVE
def test_a_window_that_does_not_fit_is_found_before_anything_runs() -> None:
    pool = mlc.compile(lambda x: F.max_pool1d(x, 5, 1), args=[mlc.spec(1, 1, "N")])
    assert pool(np.arange(6, dtype="f4").reshape(1, 1, 6)).tolist() == [[[4.0, 5.0]]]
    with pytest.raises(Error, match="negative"):
        pool(np.zeros((1, 1, 3), "f4"))


@NATIVE
@pytest.mark.parametrize("pool", [F.max_pool1d, F.avg_pool1d, lambda x, k: F.lp_pool1d(x, 2, k)])
def test_no_pool_takes_windows_larger_than_the_image(pool: Any) -> None:
    with pytest.raises(Error, match="MLC0367"):
        pool(mlc.ones(1, 1, 3), 5)


@NATIVE
def test_an_update_is_written_in_place() -> None:
    def f(x: Any, u: Any, i: Any) -> Any:
        return mlc.dynamic_update_slice(x * 2.0, u, (i, 0))

    update = mlc.compile(f, donate="x")
    x = np.arange(12, dtype="f4").reshape(4, 3)
    want = x * 2
    want[2] = 9
    out = update(x, np.full((1, 3), 9, "f4"), np.int64(2)).array
    assert np.shares_memory(out, x) and (out == want).all()
