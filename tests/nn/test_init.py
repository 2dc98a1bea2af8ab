"""Initial values: distributions and structure by PyTorch's formulas."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.nn import init

torch = pytest.importorskip("torch")
SHAPE = (60, 50, 3)


@pytest.mark.parametrize("name, param", [("linear", None), ("conv2d", None), ("sigmoid", None), ("tanh", None),
                                         ("relu", None), ("leaky_relu", None), ("leaky_relu", 0.2), ("selu", None)])
def test_gains(name: str, param: float | None) -> None:
    assert init.calculate_gain(name, param) == torch.nn.init.calculate_gain(name, param)


@pytest.mark.parametrize("mode", ["fan_in", "fan_out"])
@pytest.mark.parametrize("nonlinearity", ["leaky_relu", "relu", "tanh"])
def test_kaiming(mode: str, nonlinearity: str) -> None:
    theirs = torch.nn.init.kaiming_uniform_(torch.empty(SHAPE), 0.1, mode, nonlinearity)
    ours = init.kaiming_uniform(SHAPE, 0.1, mode, nonlinearity).numpy()
    assert abs(ours).max() == pytest.approx(theirs.abs().max().item(), rel=0.01)
    theirs = torch.nn.init.kaiming_normal_(torch.empty(SHAPE), 0.1, mode, nonlinearity)
    ours = init.kaiming_normal(SHAPE, 0.1, mode, nonlinearity).numpy()
    assert ours.std() == pytest.approx(theirs.std().item(), rel=0.05)


def test_xavier() -> None:
    bound = 2 * math.sqrt(6 / (60 * 3 + 50 * 3))
    w = init.xavier_uniform(SHAPE, gain=2).numpy()
    assert 0.99 * bound < abs(w).max() <= bound
    assert init.xavier_normal(SHAPE, gain=2).numpy().std() == pytest.approx(bound / math.sqrt(3), rel=0.05)


def test_truncated() -> None:
    w = init.trunc_normal((10000,), 1.0, 2.0, -1.0, 2.0).numpy()
    assert -1 <= w.min() < -0.99 and 1.99 < w.max() <= 2
    theirs = torch.nn.init.trunc_normal_(torch.empty(10000), 1.0, 2.0, -1.0, 2.0)
    assert w.mean() == pytest.approx(theirs.mean().item(), abs=0.05)


@pytest.mark.parametrize("shape", [(5, 8), (8, 5), (4, 2, 3)])
def test_orthogonal(shape: tuple[int, ...]) -> None:
    w = init.orthogonal(shape, gain=3, dtype="float64").numpy().reshape(shape[0], -1) / 3
    product = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-12)


@pytest.mark.parametrize("shape, groups", [((4, 4, 3), 1), ((6, 2, 3, 2), 1), ((6, 2, 3, 3), 3), ((4, 2, 1, 2, 3), 2)])
def test_dirac(shape: tuple[int, ...], groups: int) -> None:
    theirs = torch.nn.init.dirac_(torch.empty(shape), groups)
    np.testing.assert_array_equal(init.dirac(shape, groups).numpy(), theirs.numpy())


def test_eye_constant_and_sparse() -> None:
    assert init.eye((2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert init.constant((2,), 0.5, "float64").tolist() == [0.5, 0.5] and init.ones((1,)).item() == 1
    w = init.sparse((10, 7), 0.25, std=2.0).numpy()
    assert ((w == 0).sum(0) == 3).all()


@pytest.mark.parametrize("make", [
    lambda: init.calculate_gain("gelu"), lambda: init.kaiming_uniform((3,)),
    lambda: init.kaiming_normal((3, 4), mode="in"), lambda: init.trunc_normal((2,), a=2, b=1),
    lambda: init.trunc_normal((2,), a=8, b=9), lambda: init.trunc_normal((-1,)), lambda: init.sparse((4, 2), 2.0),
    lambda: mlc.manual_seed(1 << 64), lambda: init.dirac((5, 2, 3), 2), lambda: init.eye((2, 2, 2)),
    lambda: init.dirac((4, 2, 3), 0), lambda: init.normal((2,), std=-1.0), lambda: init.normal_(mlc.ones(2), 0.0, -1.0),
    lambda: init.uniform((2,), 1.0, 0.0), lambda: init.uniform((2,), 0.0, math.nan),
    lambda: init.sparse((4, 2), 0.5, -1.0), lambda: init.trunc_normal((2,), std=0.0),
    lambda: init.xavier_uniform((2, 2), -1.0),
    lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2], div_value=0.0), lambda: nn.MultiheadAttention(0, 1)])
def test_what_makes_no_sense(make: Callable[[], Any]) -> None:
    with pytest.raises(mlc.UserError, match="MLC03"):
        make()


@pytest.mark.parametrize("name, args", [
    ("Linear", (100, 400)), ("Conv2d", (16, 32, 3)), ("ConvTranspose2d", (16, 32, 3)), ("Bilinear", (20, 30, 40)),
    ("Embedding", (50, 60)), ("MultiheadAttention", (64, 4)), ("Conv1d", (8, 16, 5, 1, 0, 1, 4))])
def test_layers_begin_with_the_values_of_torch(name: str, args: tuple[Any, ...]) -> None:
    """The same names, shapes, and spread of every parameter."""
    mlc.manual_seed(0)
    torch.manual_seed(0)
    ours = dict(getattr(nn, name)(*args).named_parameters())
    theirs = dict(getattr(torch.nn, name)(*args).named_parameters())
    assert ours.keys() == theirs.keys()
    for n, p in theirs.items():
        assert ours[n].shape == tuple(p.shape)
        assert ours[n].numpy().std() == pytest.approx(p.std().item(), rel=0.1 + 2 / p.numel() ** 0.5, abs=1e-9)
        assert abs(ours[n].numpy()).max() == pytest.approx(p.abs().max().item(), rel=0.25, abs=1e-9)


def test_a_generator_of_its_own() -> None:
    a, b = (nn.Linear(3, 3, generator=mlc.Generator().manual_seed(5)) for _ in range(2))
    np.testing.assert_array_equal(a.weight.numpy(), b.weight.numpy())


def test_no_numbers_are_drawn_where_only_shapes_count() -> None:
    state = mlc.get_rng_state()
    with init.shapes_only():
        made = (init.normal((4, 3)), init.trunc_normal((4, 3)), init.orthogonal((4, 3)), init.sparse((4, 3), 0.5))
    assert all(w.shape == (4, 3) and not w.any() for w in made) and mlc.equal(mlc.get_rng_state(), state)
