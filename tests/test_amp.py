"""Automatic mixed precision beside PyTorch's: dtypes in and out of recorded functions, and scaled gradients."""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import mlc
from mlc import nn
from mlc.frontend.autocast import process
from mlc.ir.diag import UserError
from tests.execution import NATIVE

pytestmark = pytest.mark.usefixtures("execution")

A: Any = mlc.amp
X = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)


def named(x: Any) -> str:
    return str(x.dtype).partition(".")[2]


def scopes(library: Any, x: Any) -> list[str]:
    """The dtypes of results in nested scopes."""
    found = []
    with library.autocast("cpu"):
        low = x @ x
        found += [low, x + x, library.cat([low, x]), library.nn.functional.mse_loss(low, low), low + x]
        with library.autocast("cpu", enabled=False):
            found += [x @ x, low @ low]
            with library.autocast("cpu", dtype=library.float16):
                found += [library.nn.functional.linear(x, x), library.prod(low)]
        found += [library.einsum("ij,jk", x, x), x.double() @ x.double()]
    return [*map(named, found), named(x @ x)]


def test_scopes_nest() -> None:
    assert scopes(mlc, mlc.tensor(X)) == scopes(torch, torch.tensor(X))


def test_scopes_within_a_recorded_function() -> None:
    assert mlc.compile(lambda x: scopes(mlc, x))(mlc.tensor(X)) == scopes(torch, torch.tensor(X))


@NATIVE
def test_a_recording_is_for_one_state() -> None:
    f, x = mlc.compile(lambda x: x @ x), mlc.tensor(X)
    for _ in range(2):
        assert f(x).dtype is mlc.float32
        for dtype in (mlc.bfloat16, mlc.float16):
            with mlc.autocast("cpu", dtype=dtype):
                assert f(x).dtype is dtype and f(x).dtype is dtype
    assert len(f.signatures) == 3


def test_a_recording_for_all_sizes_is_for_one_state() -> None:
    f = mlc.compile(lambda x: x @ x, dynamic=True)
    for n in (2, 3, 4):
        assert f(mlc.ones(n, n)).dtype is mlc.float32
        with mlc.autocast("cpu"):
            assert f(mlc.ones(n, n)).dtype is mlc.bfloat16


def test_each_thread_has_its_own_state() -> None:
    f, x, found = mlc.compile(lambda x: x @ x), mlc.tensor(X), []
    with mlc.autocast("cpu"):
        thread = threading.Thread(target=lambda: found.extend([f(x).dtype, (x @ x).dtype]))
        thread.start()
        thread.join()
        assert f(x).dtype is mlc.bfloat16
    assert found == [mlc.float32] * 2 and process["autocast"] is None


def test_gradients_have_the_dtype_of_parameters() -> None:
    found = []
    for library in (mlc, torch):
        w = library.tensor(X, requires_grad=True)

        @library.autocast("cpu")  # type: ignore[untyped-decorator]
        def loss(w: Any) -> Any:
            return (w @ w).sum()

        loss(w).backward()
        found.append(w.grad.numpy())
        assert named(w.grad) == "float32"
    np.testing.assert_allclose(found[0], found[1], rtol=1e-2)
    gradient = mlc.grad(lambda w: (w @ w).float().sum())
    with mlc.autocast("cpu"):
        assert gradient(mlc.tensor(X)).dtype is mlc.float32


def test_a_compiled_module_trains_in_either_state() -> None:
    layer: Any = nn.Linear(4, 2)
    f = mlc.compile(layer)
    with mlc.autocast("cpu"):
        low = f(mlc.tensor(X))
    assert low.dtype is mlc.bfloat16 and f(mlc.tensor(X)).dtype is mlc.float32
    low.sum().backward()
    assert layer.weight.grad.dtype is mlc.float32


def test_states_can_be_asked_for() -> None:
    assert not mlc.is_autocast_enabled("cpu") and mlc.get_autocast_dtype("cuda") is mlc.float16
    with mlc.cpu.amp.autocast(dtype=mlc.float16):
        assert mlc.is_autocast_enabled("cpu") and mlc.get_autocast_dtype("cpu") is mlc.float16
    assert mlc.get_autocast_dtype("cpu") is mlc.bfloat16
    with pytest.warns(UserWarning, match="not to mlc.float32"), mlc.autocast("cpu", dtype=mlc.float32):
        assert not mlc.is_autocast_enabled("cpu")


class Product(mlc.autograd.Function):
    """A function that computes in float32 in any scope."""

    @staticmethod
    @A.custom_fwd(device_type="cpu", cast_inputs=mlc.float32)  # type: ignore[untyped-decorator]
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x @ x

    @staticmethod
    @A.custom_bwd(device_type="cpu")  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Any) -> Any:
        x, = ctx.saved_tensors
        assert (x @ x).dtype is mlc.float32
        return gradient @ x.T + x.T @ gradient


def test_functions_with_a_backward_of_their_own() -> None:
    x = mlc.tensor(X).to(mlc.bfloat16).requires_grad_()
    with mlc.autocast("cpu"):
        y = Product.apply(x)
        assert y.dtype is mlc.float32
        y.sum().backward()
    assert x.grad.dtype is mlc.bfloat16 and Product.apply(x).dtype is mlc.bfloat16


def scaled(library: Any) -> list[Any]:
    """Scales and parameters over steps, some with gradients that are not finite."""
    w = library.tensor([1.0, -2.0], requires_grad=True)
    optimizer = library.optim.SGD([w], lr=0.1)
    scaler, found = library.amp.GradScaler("cpu", init_scale=16.0, growth_interval=2), []
    for factor in (1.0, 2.0, math.inf, 3.0, 4.0, 1.0, math.nan):
        optimizer.zero_grad()
        scaler.scale((w * factor).sum()).backward()
        if factor == 3.0:
            scaler.unscale_(optimizer)
            found.append(w.grad.tolist())
        scaler.step(optimizer)
        scaler.update()
        found += [scaler.get_scale(), w.tolist(), scaler.state_dict()]
    return found


def test_steps_that_are_not_finite_are_skipped() -> None:
    found, wanted = scaled(mlc), scaled(torch)
    for a, b in zip(found, wanted, strict=True):
        assert a == (pytest.approx(b) if not isinstance(b, dict) else b)


def test_a_scaler_is_saved_and_copied() -> None:
    scaler = A.GradScaler("cpu", init_scale=4.0)
    other = A.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == copy.deepcopy(scaler).get_scale() == 4.0
    disabled, w = A.GradScaler("cpu", enabled=False), mlc.ones(1, requires_grad=True)
    assert disabled.scale(w) is w and disabled.state_dict() == {}


@pytest.mark.parametrize("code, mistake", [
    ("MLC0782", lambda s, o: mlc.autocast("tpu")), ("MLC0782", lambda s, o: mlc.set_autocast_dtype("cpu", mlc.int8)),
    ("MLC0783", lambda s, o: s.update()), ("MLC0783", lambda s, o: (s.unscale_(o), s.unscale_(o))),
    ("MLC0783", lambda s, o: (s.step(o), s.step(o))), ("MLC0783", lambda s, o: s.step(o, closure=print)),
    ("MLC0783", lambda s, o: s.scale("loss")), ("MLC0783", lambda s, o: A.GradScaler("cpu", growth_factor=0.5)),
    ("MLC0783", lambda s, o: s.load_state_dict({})), ("MLC0783", lambda s, o: s.load_state_dict({"scale": 2.0})),
    ("MLC0783", lambda s, o: s.set_growth_factor(1.0)), ("MLC0783", lambda s, o: s.set_backoff_factor(1.0)),
    ("MLC0421", lambda s, o: s.set_growth_factor("2"))])
def test_mistakes(code: str, mistake: Callable[[Any, Any], Any]) -> None:
    w = mlc.ones(2, requires_grad=True)
    w.sum().backward()
    with pytest.raises(UserError, match=code):
        mistake(A.GradScaler("cpu"), mlc.optim.SGD([w], lr=0.1))


@pytest.mark.parametrize("compiled", [lambda f: f, mlc.compile])
def test_a_scaler_within_a_step(compiled: Any) -> None:
    w = mlc.nn.Parameter(mlc.ones(2))
    optimizer, scaler = mlc.optim.SGD([w], lr=0.5), mlc.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)

    def step(x: Any) -> None:
        optimizer.zero_grad()
        scaler.scale((w * x).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    f = compiled(step)
    seen = []
    for number in (1.0, float("inf"), 1.0, 1.0):
        f(mlc.full((2,), number))
        seen.append((w.tolist()[0], scaler.get_scale()))
    assert seen == [(0.5, 8), (0.5, 4), (0, 4), (-0.5, 8)]


def test_settings_of_a_scaler_are_seen_by_a_compiled_step() -> None:
    def scales(compile: Any) -> list[float]:
        w, scaler = nn.Parameter(mlc.ones(2)), mlc.amp.GradScaler("cpu", init_scale=8.0, growth_interval=1)
        optimizer = mlc.optim.SGD([w], lr=0.1)

        def train() -> None:
            optimizer.zero_grad()
            scaler.scale((w * w).sum()).backward()
            scaler.step(optimizer)
            scaler.update()

        step = compile(train)
        found: list[float] = []
        change: Any
        for change in (lambda: None, lambda: scaler.set_growth_factor(4.0), lambda: scaler.set_growth_interval(9)):
            for _ in range(2):
                step()
                found.append(scaler.get_scale())
            change()
        return found

    assert scales(mlc.compile) == scales(lambda f: f)
