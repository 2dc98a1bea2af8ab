"""mlc.gradcheck and mlc.gradgradcheck: rules that are right pass, a wrong one is named with its element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.ir.diag import UserError

RNG = np.random.default_rng(0)
NOISE: Any = np.random.default_rng(1)
X, W = RNG.standard_normal((2, 3)), RNG.standard_normal((3, 4))


def test_functions_of_arrays_trees_and_models() -> None:
    assert mlc.gradcheck(lambda x, w: mlc.tanh(x @ w), (X, W))
    assert mlc.gradcheck(lambda d: (d["x"] ** 2, d["n"], d["x"].sum() * d["s"]), {"x": X, "n": np.arange(3), "s": 0.5})
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    assert mlc.gradcheck(lambda m, x: m(x), (model, X.astype(np.float32)))
    assert mlc.gradgradcheck(lambda x: mlc.softmax(x, 1), X)


def wrong(x: Any) -> Any:
    square = mlc.custom_vjp(lambda x: x * x)
    square.defvjp(lambda x: (square(x), x), lambda x, ct: (mlc.where(x > 1, x, 2 * x) * ct,))
    return square(x)


def test_a_wrong_rule_is_named_with_its_element() -> None:
    x = np.array([0.5, 3.0])
    with pytest.raises(UserError, match=r"reverse mode the derivative of result 0\[1\] by inputs\[0\]\[1\] is 3, "
                                        r"differences give 6 ") as info:
        mlc.gradcheck(wrong, x)
    assert info.value.code == "MLC0670"
    assert not mlc.gradcheck(wrong, x, raise_exception=False)
    assert mlc.gradcheck(wrong, x[:1])
    cube = mlc.custom_vjp(lambda x: x * x * x)
    cube.defvjp(lambda x: (cube(x), x), lambda x, ct: (3 * wrong(x) * ct,))
    assert mlc.gradcheck(cube, x)
    with pytest.raises(UserError, match=r"by inputs\[0\]\[1\] is"):       # its derivative's rule is wrong
        mlc.gradgradcheck(cube, x)


def test_nothing_to_differentiate() -> None:
    for f, x in ((lambda n: n * 2, np.arange(3)), (lambda x: x > 0, X)):
        with pytest.raises(UserError, match="MLC0671"):
            mlc.gradcheck(f, x)


# -- of backward ------------------------------------------------------------------------------------------------------
def leaf(x: Any) -> Any:
    return mlc.tensor(x, requires_grad=True)


def made(forward: Any, backward: Any) -> Any:
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    made: Any = type("Made", (mlc.autograd.Function,), methods)
    return made.apply


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
def test_functions_that_run_operation_by_operation() -> None:
    x, w = leaf(X), leaf(W)
    calls = list[Any]()

    def f(x: Any, w: Any) -> Any:
        calls.append(x.sum().item() > 0)                   # what cannot be recorded
        return mlc.tanh(x @ w), (x * x).sum()

    assert mlc.autograd.gradcheck(f, [x, w]) and mlc.autograd.gradgradcheck(f, (x, w)) and calls
    assert mlc.autograd.gradcheck(f, (x, mlc.tensor(W))) and mlc.autograd.gradcheck(f, (x, w), fast_mode=True)
    every: Any = dict.fromkeys(("check_forward_ad", "check_batched_grad", "check_batched_forward_grad",
                                "check_grad_dtypes"), True)
    assert mlc.autograd.gradcheck(lambda x, w: (mlc.tanh(x @ w), x.sin()), (x, w), **every)
    with pytest.raises(UserError, match="MLC0732"):
        mlc.autograd.gradgradcheck(f, (x, w), check_batched_grad=True)


@pytest.mark.parametrize("backward, options, words", [
    (lambda ctx, g, h: 3 * g + 3 * h, {}, r"result 0\[0\] by inputs\[0\]\[0\] is 3, differences give 2 \(3 of 9"),
    (lambda ctx, g, h: 3 * g + 3 * h, {"fast_mode": True}, "the Jacobian between two random vectors"),
    (lambda ctx, g, h: 2 * g + 3 * h + NOISE.standard_normal(), {"atol": 10.0},
     "is not deterministic")])
def test_a_wrong_backward_is_named(backward: Any, options: dict[str, Any], words: str) -> None:
    f = made(lambda ctx, x: (2 * x, 3 * x), backward)
    with pytest.raises(UserError, match=words) as info:
        mlc.autograd.gradcheck(f, leaf(X[0]), **options)
    assert info.value.code == "MLC0670"


def test_a_result_without_a_cotangent_is_like_one_with_zeros() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return 2 * x, 3 * x

    f = made(forward, lambda ctx, g, h: (0 if g is None else 2 * g) + (1e-3 if h is None else 3 * h))
    with pytest.raises(UserError, match="without a cotangent of result 1, the derivative by inputs"):
        mlc.autograd.gradcheck(f, leaf(X[0]), atol=0.01)
    assert mlc.autograd.gradcheck(f, leaf(X[0]), atol=0.01, check_undefined_grad=False)
