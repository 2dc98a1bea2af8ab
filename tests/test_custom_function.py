"""Function, hooks and checkpoints where PyTorch is no judge: within recorded functions, and in mistakes."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.autograd import Function
from mlc.autograd.function import once_differentiable
from mlc.autograd.graph import disable_saved_tensors_hooks, register_multi_grad_hook, saved_tensors_hooks
from mlc.ir.diag import UserError
from mlc.utils.checkpoint import checkpoint, checkpoint_sequential

pytestmark = pytest.mark.usefixtures("execution")

X = np.array([0.5, 1.0, 2.0], np.float32)


class Twice(Function):
    """An exponential function whose backward is deliberately another: all derivatives have a factor of 2."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        y, = ctx.saved_tensors
        return 2 * gradient * y


class Scaled(Function):
    """A result with a gradient, one without, and one that is no tensor."""

    @staticmethod
    def forward(x: Any, k: float) -> Any:
        return (x * k if k > 1 else x / k), x.sin(), k

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.k = inputs[1]
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, gradient: Any, nothing: Any, k: Any) -> Any:
        return gradient * (10 * ctx.k), None


def leaf(x: Any = X) -> Any:
    return mlc.tensor(x, requires_grad=True)


def made(forward: Any = lambda ctx, x: x * 2, **methods: Any) -> Any:
    """A function of these methods."""
    return type("Made", (Function,), {name: staticmethod(f) for name, f in {"forward": forward, **methods}.items()})


# -- in recorded functions --------------------------------------------------------------------------------------------
def derivative(order: int) -> Callable[[Any], Any]:
    f: Callable[[Any], Any] = Twice.apply
    for _ in range(order):
        f = mlc.grad(lambda x, inner=f: inner(x).sum())
    return f


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_recorded_functions_are_those_of_backward(order: int) -> None:
    np.testing.assert_allclose(derivative(order)(X).numpy(), 2**order * np.exp(X), rtol=1e-5)


def test_a_derivative_that_is_not_known_is_an_error() -> None:
    with pytest.raises(UserError, match="a derivative of Twice of an order above 3 is not known"):
        derivative(4)(X)


def test_transforms_compose() -> None:
    def f(x: Any) -> Any:
        y, constant, k = Scaled.apply(x, 3.0)
        return (y * constant).sum() * k

    wanted = 3 * 30 * np.sin(X)
    np.testing.assert_allclose(mlc.grad(f)(X).numpy(), wanted, rtol=1e-5)
    np.testing.assert_allclose(mlc.compile(mlc.grad(f))(X).numpy(), wanted, rtol=1e-5)
    np.testing.assert_allclose(mlc.vmap(mlc.grad(f))(np.stack([X, X])).numpy(), [wanted, wanted], rtol=1e-5)
    assert mlc.jvp(f, (X,), (X,))[1].item() == pytest.approx(wanted @ X, rel=1e-5)
    x = leaf()
    mlc.compile(f)(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=1e-5)


@pytest.mark.parametrize("run", [lambda f: f, mlc.compile], ids=["eager", "compiled"])
def test_nothing_is_recorded_within_no_grad(run: Any) -> None:
    def f(x: Any) -> Any:
        with mlc.no_grad():
            y = Twice.apply(x)
        return (x * y).sum()

    x = leaf()
    run(f)(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(X), rtol=1e-5)
    np.testing.assert_allclose(mlc.grad(f)(X).numpy(), np.exp(X), rtol=1e-5)


def test_a_custom_rule_plays_no_part_within_no_grad() -> None:
    square = mlc.custom_vjp(lambda x: x * x)
    square.defvjp(lambda x: (square(x), x), lambda x, ct: (2 * x * ct,))

    def f(x: Any) -> Any:
        with mlc.no_grad():
            y = square(x)
        return (x * y).sum()

    assert mlc.grad(f)(X).tolist() == (X * X).tolist()


def test_within_a_module_that_is_compiled() -> None:
    class Layer(nn.Module):
        def __init__(self) -> None:
            self.weight = nn.Parameter(mlc.tensor(X))

        def forward(self, x: Any) -> Any:
            return Twice.apply(self.weight * x)

    layer, x = Layer(), mlc.tensor(X)
    found = mlc.compile(mlc.grad(lambda m, x: m(x).sum()))(layer, x).weight.numpy()
    layer(x).sum().backward()
    np.testing.assert_allclose(np.asarray(layer.weight.grad), found, rtol=1e-5)
    np.testing.assert_allclose(found, 2 * X * np.exp(X * X), rtol=1e-5)


# -- one call ---------------------------------------------------------------------------------------------------------
def test_what_was_saved_is_dropped_and_the_graph_is_freed() -> None:
    x = leaf()
    y = Twice.apply(x)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    with pytest.raises(UserError, match="backward goes through TwiceBackward a second time") as caught:
        y.sum().backward()
    assert caught.value.code == "MLC0431"
    node = weakref.ref(Twice.apply(x).grad_fn)
    gc.disable()
    try:
        assert node() is None                              # not even a cycle is left
    finally:
        gc.enable()


def test_gradients_of_the_gradient_need_no_graph_that_is_not_asked_for() -> None:
    x = leaf()
    y = made(backward=once_differentiable(lambda ctx, g: g * 2)).apply(x)
    first, = mlc.autograd.grad(y.sum(), x, create_graph=True)
    assert not first.requires_grad                         # it depends on nothing
    with pytest.raises(UserError, match="MLC0730"):
        first, = mlc.autograd.grad((y * y).sum(), x, create_graph=True)
        first.sum().backward()


@pytest.mark.parametrize("code, words, function", [
    ("MLC0726", "returned 1 gradient for the 2 arguments", made(lambda ctx, x, k=1: x * k, backward=lambda ctx, g: g)),
    ("MLC0726", "returned 2 gradients for the 1 argument", made(backward=lambda ctx, g: (g, g))),
    ("MLC0726", r"gradient of shape \[2\] for argument 0, of shape \[3\]", made(backward=lambda ctx, g: g[1:])),
    ("MLC0726", "returned a float as gradient 0", made(backward=lambda ctx, g: 1.0)),
    ("MLC0726", "returned a list as gradient 0", made(backward=lambda ctx, g: [g])),
    ("MLC0726", "as gradient 1, for an argument that is no tensor",
     made(lambda ctx, x, k=1: x * k, backward=lambda ctx, g: (g, g))),
    ("MLC0731", "has no backward", made()),
    ("MLC0731", "has both backward and vjp", made(backward=lambda ctx, g: g, vjp=lambda ctx, g: 2 * g)),
    ("MLC0726", "save_for_backward takes tensors, and argument 0 is a int",
     made(lambda ctx, x: ctx.save_for_backward(3))),
    ("MLC0729", "changed in place", made(lambda ctx, x: ctx.mark_dirty(x)))])
@pytest.mark.parametrize("recorded", [False, True])
def test_mistakes_in_its_methods(code: str, words: str, function: Any, recorded: bool) -> None:
    args = (1,) if "k" in getattr(function.forward, "__code__").co_varnames else ()  # noqa: B009
    with pytest.raises(UserError, match=words) as caught:
        if recorded:
            mlc.grad(lambda x: function.apply(x, *args).sum())(X)
        else:
            function.apply(leaf(), *args).sum().backward()
    assert caught.value.code == code and caught.value.loc.file == __file__ and caught.value.hint


def test_the_line_of_backward_and_of_its_caller_are_named() -> None:
    function = made(backward=lambda ctx, g: (g, g))
    with pytest.raises(UserError) as caught:
        function.apply(leaf()).sum().backward()
    assert caught.value.loc.line == function.backward.__code__.co_firstlineno
    assert f"{__file__}:{caught.value.loc.line + 2}:" in caught.value.notes[0]


def test_it_is_called_by_apply() -> None:
    with pytest.raises(UserError, match=r"its methods are static: Twice.apply\(...\)"):
        Twice()(leaf())


# -- hooks ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("code, mistake", [
    ("MLC0727", lambda x: with_hooks(x, 3, lambda t: t)),
    ("MLC0727", lambda x: with_hooks(x, lambda t: t, lambda t: 3)),
    ("MLC0727", lambda x: with_hooks(x, lambda t: t, lambda t: t[1:])),
    ("MLC0727", lambda x: with_hooks(x, lambda t: t, lambda t: t.double())),
    ("MLC0728", lambda x: disable_saved_tensors_hooks("no")(lambda: with_hooks(x, print, print))()),
    ("MLC0728", lambda x: disabled_within_hooks()),
    ("MLC0732", lambda x: register_multi_grad_hook([x], print, mode="some")),
    ("MLC0430", lambda x: register_multi_grad_hook([x.detach()], print)),
    ("MLC0436", lambda x: ((y := x * 2).grad_fn.register_hook(lambda i, o: (1, 2)), y.sum().backward())),
    ("MLC0436", lambda x: ((y := x * 2).grad_fn.register_prehook(lambda o: (o[0].sum(),)), y.sum().backward()))])
def test_mistakes_with_hooks(code: str, mistake: Any) -> None:
    with pytest.raises(UserError, match=code) as caught:
        mistake(leaf())
    assert caught.value.loc.file == __file__


def with_hooks(x: Any, pack: Any, unpack: Any) -> None:
    with saved_tensors_hooks(pack, unpack):
        y = (x * x).sum()
    y.backward()


def disabled_within_hooks() -> None:
    with saved_tensors_hooks(print, print), disable_saved_tensors_hooks("not within"):
        pass


def test_hooks_on_several_gradients_are_called_for_what_is_asked_for() -> None:
    x, y = leaf(), leaf()
    product, seen = x * y, list[Any]()
    register_multi_grad_hook([x, y, product], seen.append)
    mlc.autograd.grad(product.sum(), [x], retain_graph=True)
    assert [g is None for g in seen.pop()] == [False, True, False]
    product.sum().backward()
    assert [g.tolist() for g in seen.pop()] == [X.tolist(), X.tolist(), [1, 1, 1]] and not seen


# -- checkpoints ------------------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("interpreted")
def test_random_numbers_and_statistics_are_those_of_the_call() -> None:
    mlc.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    other, x = copy.deepcopy(net), mlc.tensor(np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32))
    for seed in range(2):
        mlc.manual_seed(seed)
        net(x).pow(2).sum().backward()
        net(x)
        mlc.manual_seed(seed)
        checkpoint_sequential(other, 1, checkpoint(lambda x: x, x)).pow(2).sum().backward()
        checkpoint(lambda: other(x).sum() * 0).backward()
    for (name, a), b in zip(net.state_dict().items(), other.state_dict().values()):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6, err_msg=name)
    whole = copy.deepcopy(net)
    net.zero_grad()
    whole.zero_grad()
    mlc.manual_seed(2)
    net(x).pow(2).sum().backward()
    mlc.manual_seed(2)
    checkpoint(whole, x, use_reentrant=False).pow(2).sum().backward()
    for p, q in zip(net.parameters(), whole.parameters()):
        np.testing.assert_allclose(np.asarray(p.grad), np.asarray(q.grad), rtol=1e-5, atol=1e-6)


def test_intermediate_results_are_not_kept() -> None:
    x, seen = leaf(), list[Any]()

    def block(x: Any) -> Any:
        y = x.sin()
        seen.append(weakref.ref(y.autograd_meta))
        return y.exp() * y

    y = checkpoint(block, x, use_reentrant=False)
    saved = [operand for node, _ in y.grad_fn.next_functions for operand in node.operands]
    assert saved and not any(isinstance(operand, mlc.Tensor) for operand in saved)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.cos(X) * np.exp(np.sin(X)) * (1 + np.sin(X)), rtol=1e-5)
    assert len(seen) == 2


@pytest.mark.parametrize("later, words", [
    (lambda x: x.sin(), "it records 2 operations, and 1 when it is repeated"),
    (lambda x: x[1:].sin().sin(), "has shape"), (lambda x: x.double().sin().sin(), "has shape|dtype|operations")])
def test_a_function_that_does_something_else_later(later: Any, words: str) -> None:
    calls = list[Any]()

    def f(x: Any) -> Any:
        calls.append(x)
        return x.sin().sin() if len(calls) == 1 else later(x)

    y = checkpoint(f, leaf()).sum()
    with pytest.raises(UserError, match=words) as caught:
        y.backward()
    assert caught.value.code == "MLC0733" and caught.value.loc.file == __file__


def test_within_a_compiled_function() -> None:
    def f(x: Any) -> Any:
        return checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False).sum()

    np.testing.assert_allclose(mlc.grad(f)(X).numpy(), np.cos(X) * np.exp(np.sin(X)), rtol=1e-5)
    assert mlc.saved_bytes(f, X) == 0


@pytest.mark.parametrize("mistake", [
    lambda x: checkpoint(mlc.sin, x, determinism_check="some"), lambda x: checkpoint_sequential([mlc.sin], 2, x),
    lambda x: checkpoint_sequential([mlc.sin], 0, x)])
def test_mistakes_with_checkpoints(mistake: Any) -> None:
    with pytest.raises(UserError, match="MLC0732") as caught:
        mistake(leaf())
    assert caught.value.loc.file == __file__


# -- derivatives of functions -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("code, mistake", [
    ("MLC0732", lambda F, x: F.jacobian(mlc.sin, x, strategy="forward-mode")),
    ("MLC0732", lambda F, x: F.jacobian(mlc.sin, x, strategy="sideways")),
    ("MLC0732", lambda F, x: F.hessian(mlc.sum, x, vectorize=True, strict=True)),
    ("MLC0734", lambda F, x: F.jacobian(lambda x, y: x * 2, (x, x), strict=True)),
    ("MLC0734", lambda F, x: F.hessian(lambda x: (2 * x).sum(), x, strict=True)),
    ("MLC0734", lambda F, x: F.vjp(lambda x: x.detach().sum(), x, strict=True)),
    ("MLC0735", lambda F, x: F.hessian(mlc.sin, x)), ("MLC0735", lambda F, x: F.hvp(mlc.sin, x, x)),
    ("MLC0735", lambda F, x: F.vjp(mlc.sin, x)), ("MLC0735", lambda F, x: F.vjp(mlc.sin, x, x[1:])),
    ("MLC0735", lambda F, x: F.jvp(mlc.sin, x, (x, x))), ("MLC0735", lambda F, x: F.jacobian(lambda x: 3, x)),
    ("MLC0735", lambda F, x: F.jacobian(mlc.sin, {"x": x}))])
def test_mistakes_with_functionals(code: str, mistake: Any) -> None:
    with pytest.raises(UserError, match=code) as caught:
        mistake(mlc.autograd.functional, mlc.tensor(X))
    assert caught.value.loc.file == __file__


@pytest.mark.parametrize("code, mistake", [
    ("MLC0382", lambda m, x: mlc.func.functional_call(m, {"other": x}, x)),
    ("MLC0382", lambda m, x: mlc.func.functional_call(m, {"bias": x}, x, strict=True)),
    ("MLC0382", lambda m, x: mlc.func.functional_call(m, [{"bias": x}, {"bias": x}], x)),
    ("MLC0382", lambda m, x: mlc.func.stack_module_state([])),
    ("MLC0382", lambda m, x: mlc.func.stack_module_state([m, nn.Linear(3, 3, bias=False)])),
    ("MLC0400", lambda m, x: mlc.vmap(m, randomness="different")),
    ("MLC0400", lambda m, x: mlc.vmap(m, randomness="some")), ("MLC0400", lambda m, x: mlc.vmap(m, chunk_size=0)),
    ("MLC0374", lambda m, x: mlc.func.jacrev(mlc.sin, has_aux=True)(x)),
    ("MLC0374", lambda m, x: mlc.func.vjp(mlc.sin, x, has_aux=True))])
def test_mistakes_with_transforms(code: str, mistake: Any) -> None:
    with pytest.raises(UserError, match=code) as caught:
        mistake(nn.Linear(3, 3), mlc.tensor(X))
    assert caught.value.loc.file == __file__


def test_a_module_is_called_with_other_tensors_and_then_as_it_was() -> None:
    first, second = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
    second.weight = first.weight
    net, twice = nn.Sequential(first, second), mlc.tensor(2 * np.eye(3, dtype=np.float32))
    x = mlc.tensor(X)
    assert mlc.func.functional_call(net, {"0.weight": twice}, x).tolist() == (4 * X).tolist()
    np.testing.assert_allclose(mlc.func.functional_call(net, {"0.weight": twice}, x, tie_weights=False).numpy(),
                               second(2 * x).detach().numpy(), rtol=1e-6)
    with pytest.raises(UserError):
        mlc.func.functional_call(net, {"0.weight": twice}, x[1:])
    assert net[0].weight is net[1].weight and first.weight is not twice


def test_checkpoint_draws_the_same_numbers_again() -> None:
    def f(x: Any) -> Any:
        y = mlc.nn.functional.dropout(x * 2, 0.5)
        z = y.clone()
        y += 100                                           # what was saved of it stays as it was
        return z * z

    mlc.manual_seed(0)
    x = mlc.ones(64, requires_grad=True)
    out = mlc.utils.checkpoint.checkpoint(f, x, use_reentrant=False)
    state = mlc.get_rng_state()
    out.sum().backward()
    assert x.grad is not None and mlc.equal(x.grad, 2 * out.detach()) and 0 < (x.grad == 0).sum() < 64
    assert mlc.equal(mlc.get_rng_state(), state)
