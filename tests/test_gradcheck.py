"""mlc.gradcheck and mlc.gradgradcheck: rules that are right pass, a wrong one is named with its element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.ir.diag import UserError

RNG = np.random.default_rng(0)
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
