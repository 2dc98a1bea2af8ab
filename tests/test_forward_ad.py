"""mlc.autograd.forward_ad: eager operations on dual tensors have the tangents that PyTorch's have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.autograd import forward_ad as duals
from mlc.ir.diag import UserError
from tests.execution import NATIVE

pytestmark = pytest.mark.usefixtures("execution")

X, V = mlc.tensor([0.5, -1.0, 2.0]), mlc.tensor([1.0, 10.0, 100.0])


def close(found: Any, wanted: Any) -> None:
    assert found is not None
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-5, atol=1e-6)


def tangent(x: Any) -> Any:
    return duals.unpack_dual(x).tangent


def dual(x: Any = X, v: Any = V) -> Any:
    return duals.make_dual(x, v.clone())


def test_arithmetic_and_modes() -> None:
    with duals.dual_level() as level:
        x = duals.make_dual(X, V, level=level)
        assert tangent(x) is V and tangent(X) is None and tangent(duals.unpack_dual(x).primal) is None
        close(tangent(x * x + mlc.sin(x)), V * (2 * X + X.cos()))
        close(tangent(x[x > 0]), V[X > 0])
        assert tangent(x > 0) is None and tangent(x.detach()) is None and tangent(x.long()) is None
        with mlc.no_grad():
            close(tangent(x * 2), V * 2)
        with duals.set_fwd_grad_enabled(False):
            assert tangent(x * 2) is None and tangent(x[0]) is None
        with mlc.inference_mode():
            assert tangent(x * 2) is None
        assert tangent(mlc.inference_mode()(lambda: x * 2)()) is None and duals.is_fwd_grad_enabled()
        y = x * 2
    assert tangent(x) is None and tangent(y) is None


def test_views_and_writes_in_place_share_the_tangent() -> None:
    with duals.dual_level():
        x = dual(X.clone())
        first, rows = x[0], x.view(3, 1)
        x.mul_(2)
        close(tangent(first), 2 * V[0])
        rows[1:] = 0
        close(tangent(x), V * mlc.tensor([2.0, 0.0, 0.0]))
        base = mlc.zeros(2, 3)
        before, row = base.T, base[1]
        row.copy_(dual())
        close(tangent(base), mlc.stack([mlc.zeros(3), V]))
        close(tangent(before), mlc.stack([mlc.zeros(3), V]).T)
        base[:, mlc.tensor([0, 2])] = 1
        close(tangent(row), V * mlc.tensor([0.0, 1.0, 0.0]))
        base.zero_()
        close(tangent(base), mlc.zeros(2, 3))
        spread = dual(mlc.ones(2, 3).T, mlc.arange(6.0).view(3, 2))
        close(tangent(spread.reshape(-1) * 2), 2 * mlc.arange(6.0))
        with pytest.raises(UserError, match="dual"):
            mlc.sin(x, out=mlc.zeros(3))  # type: ignore[call-arg]


def test_parameters_of_modules() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    named = {name: p.detach() for name, p in model.named_parameters()}
    moving = {name: mlc.randn(p.shape) for name, p in named.items()}
    wanted = mlc.func.jvp(lambda p: mlc.func.functional_call(model, p, (X,)), (named,), (moving,))[1]
    with duals.dual_level():
        given = {name: dual(p, moving[name]) for name, p in named.items()}
        close(tangent(mlc.func.functional_call(model, given, (X,))), wanted)
        for layer, at in ((model[0], "0"), (model[2], "2")):
            for name, p in list(layer.named_parameters()):
                if at == "0":                              # else the dual tensor takes its place
                    delattr(layer, name)
                setattr(layer, name, dual(p, moving[f"{at}.{name}"]))
        assert not list(model[0].named_parameters())
        close(tangent(model(X)), wanted)


def test_forward_over_reverse_and_reverse_over_forward() -> None:
    w = X.clone().requires_grad_()
    with duals.dual_level():
        x = dual(w)
        y = x[:2].clone()
        y *= x[1:]
        (gradient,) = mlc.autograd.grad((x**3).sum() + y.exp().sum(), w)
        wanted = mlc.hvp(lambda x: (x**3).sum() + (x[:2] * x[1:]).exp().sum(), (X,), (V,))[0]
        close(tangent(gradient), wanted)
        (twice,) = mlc.autograd.grad(tangent(x**3).sum(), w)
        close(twice, 6 * X * V)
        x[0].sin().backward()
        assert w.grad is not None and tangent(w.grad) is None


@NATIVE
def test_compiled_functions_and_transformations() -> None:
    compiled = mlc.compile(lambda x: (x * x, x.sum()))
    compiled(X)
    w = X.clone().requires_grad_()
    with duals.dual_level():
        square, total = compiled(dual())
        close(tangent(square), 2 * X * V)
        close(tangent(total), V.sum())
        close(tangent(mlc.grad(lambda x: (x**3).sum())(dual())), 6 * X * V)
        (gradient,) = mlc.autograd.grad(compiled(dual(w))[0].sum(), w)
        close(tangent(gradient), 2 * V)
        with pytest.raises(UserError, match="MLC0839"):
            mlc.compile(lambda x: x.mul_(2))(dual(X.clone()))
    with pytest.raises(UserError, match="MLC0839"):
        mlc.compile(lambda x: tangent(x))(X)


class Exp(mlc.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, factor: float) -> Any:
        out = factor * mlc.exp(x)
        ctx.save_for_backward(out)
        ctx.save_for_forward(out, y)
        return out, y.long()

    @staticmethod
    def backward(ctx: Any, gradient: Any, _: Any) -> Any:
        return gradient * ctx.saved_tensors[0], None, None

    @staticmethod
    def jvp(ctx: Any, of_x: Any, of_y: Any, of_factor: Any) -> Any:
        assert of_y is None and of_factor is None and len(ctx.saved_tensors) == 2
        return of_x * ctx.saved_tensors[0], None


def test_custom_functions() -> None:
    class Bent(Exp):
        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            return tangents[0][:2], None

    class Without(mlc.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

    w = X.clone().requires_grad_()
    with duals.dual_level():
        out, _ = Exp.apply(dual(w), X, 3.0)
        close(tangent(out), 3 * X.exp() * V)
        (gradient,) = mlc.autograd.grad(out.sum(), w)
        close(tangent(gradient), 3 * X.exp() * V)
        with pytest.raises(UserError, match="MLC0726"):
            Bent.apply(dual(), X, 3.0)
        with pytest.raises(UserError, match="MLC0731"):
            Without.apply(dual())


def test_errors() -> None:
    with pytest.raises(UserError, match="MLC0836"):
        duals.make_dual(X, V)
    with pytest.raises(UserError, match="MLC0836"):
        duals.exit_dual_level()
    with duals.dual_level():
        for primal, moved in ((X, V[:2]), (X, V.double()), (mlc.arange(3), V), (X, 1.0), (dual(), V), (X, dual())):
            with pytest.raises(UserError, match="MLC0838"):
                duals.make_dual(primal, moved)
        with pytest.raises(UserError, match="MLC0837"), duals.dual_level():
            pass
        with pytest.raises(UserError, match="MLC0836"):
            duals.unpack_dual(X, level=1)
    assert duals.enter_dual_level() == 0
    duals.exit_dual_level(level=0)


def test_a_loop_that_replaces_what_it_carries() -> None:
    """By what does not depend on it: the tangent is 0 then, and not that of before."""
    def f(x: Any) -> Any:
        a, b = mlc.fori_loop(0, 3, lambda i, c: (c[0] + c[1], mlc.ones_like(c[1])), (x * 2, x))
        return a.sum() + b.sum()

    x = np.array([1.0, 2.0])
    assert mlc.jvp(f, (x,), (np.ones(2),))[1].item() == 6 and mlc.grad(f)(x).tolist() == [3, 3]
