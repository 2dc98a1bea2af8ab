"""Define-by-run differentiation, compared with PyTorch's: recording, backward, hooks, modes, parameters."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import mlc
from mlc import nn
from mlc.frontend import tree
from mlc.frontend.autograd.differentiable import Differentiable
from mlc.ir.diag import UserAttributeError, UserError
from tests.execution import NATIVE

pytestmark = pytest.mark.usefixtures("execution")

W = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
X = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)

PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "product": lambda F, w, x: (w @ x).sum(),
    "number": lambda F, w, x: (2.5 * w - 1).abs().mean(),
    "both operands": lambda F, w, x: (w * w.exp()).sum(),
    "broadcast": lambda F, w, x: (w[0] + w).pow(2).sum(),
    "subscript": lambda F, w, x: (w[1:, ::2] * w[[0, 2], 1:3]).sum(),
    "new dimension": lambda F, w, x: (w[None, 1, ..., 0:2] ** 3).sum(),
    "mask": lambda F, w, x: (w[w > 0] ** 2).sum(),
    "some of several results": lambda F, w, x: F.topk(w, 2)[0].sum() + w.max(1)[0].prod(),
    "parts": lambda F, w, x: F.cat([p * i for i, p in enumerate(w.split(1, 0))]).sum() + F.stack([w, w]).std(),
    "choice": lambda F, w, x: F.where(w > x.T, w, 0.5 * w).sum(),
    "clone": lambda F, w, x: (w.clone() * w.reshape(3, 4).contiguous()).sum(),
    "dtype": lambda F, w, x: (w.double() ** 2).sum(),
    "python's own control flow": lambda F, w, x: sum(row.sum() * (2 if row.sum() > 0 else 3) for row in w),
    "a value used late": lambda F, w, x: ((a := w.sin()) @ x).tanh().sum() + (a * a).mean(),
    "scan": lambda F, w, x: w.cumsum(0).logsumexp(1).sum(),
}


def close(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(np.asarray(ours), theirs.detach().numpy(), rtol=2e-5, atol=1e-6)
    assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_gradients_of_both_orders(program: Callable[[Any, Any, Any], Any]) -> None:
    ours, theirs = mlc.tensor(W, requires_grad=True), torch.tensor(W, requires_grad=True)
    wanted, = torch.autograd.grad(program(torch, theirs, torch.tensor(X)), theirs, create_graph=True)
    loss = program(mlc, ours, mlc.tensor(X))
    found, = mlc.autograd.grad(loss, ours, create_graph=True)
    assert loss.requires_grad and found.requires_grad == wanted.requires_grad
    close(found, wanted)
    if wanted.requires_grad:
        (wanted * torch.tensor(W)).sum().backward()
        (found * W).sum().backward()
        close(ours.grad, theirs.grad + 0)                  # PyTorch's zeros may have no memory


def leaf(*shape: int) -> Any:
    return mlc.ones(shape, requires_grad=True)


def test_gradients_accumulate_and_are_reset() -> None:
    w: Any = mlc.tensor(2.0, requires_grad=True)
    for wanted in (12, 24):
        (w**3).backward()
        assert w.grad is not None and w.grad.item() == wanted and not w.grad.requires_grad
    w.grad = None
    loss = w * w
    loss.backward(retain_graph=True)
    loss.backward()
    assert w.grad.item() == 8


def test_a_cotangent_is_taken_for_several_elements() -> None:
    w = leaf(3)
    (w * mlc.arange(3.0)).backward(mlc.tensor([1.0, 10.0, 100.0]))
    assert w.grad.tolist() == [0, 10, 200]
    first, second = leaf(2), leaf(2)
    mlc.autograd.backward([first.sum(), second * 2], [None, np.ones(2, np.float32)], inputs=second)
    assert first.grad is None and second.grad.tolist() == [2, 2]


def test_results_keep_their_gradient_on_demand_only() -> None:
    x = leaf(2)
    y, z = x * 2, x * 3
    y.retain_grad()
    assert y.retains_grad and not z.retains_grad and not y.is_leaf and x.is_leaf
    (y * z).sum().backward()
    assert y.grad.tolist() == [3, 3] and z.grad is None and x.grad.tolist() == [12, 12]


def test_hooks_of_a_node_run_in_the_order_in_which_they_came() -> None:
    x = leaf(2)
    y = x * 2
    node: Any = y.grad_fn
    for before, after in ((lambda g: g * 10, lambda g: g + 1), (lambda g: g + 3, lambda g: g * 2)):
        node.register_prehook(lambda outputs, f=before: (f(outputs[0]),))
        node.register_hook(lambda inputs, outputs, f=after: (f(inputs[0]), *inputs[1:]))
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [((1 * 10 + 3) * 2 + 1) * 2] * 2


def test_hooks_see_whole_gradients_and_may_change_them() -> None:
    x, seen = leaf(2), list[Any]()
    y = x * 2
    y.register_hook(lambda g: seen.append(g.tolist()))
    handle = y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    (y.sum() + y.sum()).backward()
    handle.remove()
    (y * 1).sum()
    assert seen == [[2, 2], [41, 41]]


def test_gradients_by_inputs_that_are_not_used() -> None:
    x, y = leaf(2), leaf(2)
    with pytest.raises(UserError, match="MLC0437"):
        mlc.autograd.grad((x * x).sum(), [x, y])
    assert mlc.autograd.grad((x * x).sum(), [x, y], allow_unused=True)[1] is None
    assert mlc.autograd.grad((x * x).sum(), y, materialize_grads=True)[0].tolist() == [0, 0]
    middle = x * 2
    assert mlc.autograd.grad((middle**2).sum(), middle)[0].tolist() == [4, 4] and x.grad is None


def test_modes() -> None:
    w = leaf(1)
    without_parentheses: Any = mlc.no_grad

    @mlc.no_grad()
    def constant() -> Any:
        return w * 2

    @without_parentheses  # type: ignore[untyped-decorator]
    def generated() -> Iterator[Any]:
        yield w * 2
        yield w * 2

    with mlc.inference_mode(), mlc.enable_grad():
        assert (w * 2).requires_grad
    assert not constant().requires_grad and not any(x.requires_grad or not mlc.is_grad_enabled() for x in generated())
    mlc.set_grad_enabled(False)
    assert not (w * 2).requires_grad
    with mlc.set_grad_enabled(True):
        assert (w * 2).requires_grad
    assert not mlc.is_grad_enabled()
    mlc.set_grad_enabled(True)
    assert not (w.detach() * 2).requires_grad and not (w > 0).requires_grad and not w.argmax().requires_grad


# -- compiled functions and transforms --------------------------------------------------------------------------------
def test_calls_of_compiled_functions_are_recorded() -> None:
    def f(w: Any, x: Any, scale: float) -> Any:
        return mlc.tanh(w @ x) * scale

    compiled, gradients = mlc.compile(f), []
    for function in (f, compiled, compiled):
        w: Any = mlc.tensor(W, requires_grad=True)
        first, = mlc.autograd.grad(function(w, X, 3.0).sum(), w, create_graph=True)
        (first * first).sum().backward()
        gradients.append([first.numpy(), w.grad.numpy()])
    np.testing.assert_array_equal(gradients[0], gradients[1])
    np.testing.assert_array_equal(gradients[1], gradients[2])
    with mlc.no_grad():
        assert not compiled(w, X, 3.0).requires_grad


@NATIVE
def test_a_function_compiled_without_gradients_is_recorded_at_every_size() -> None:
    f = mlc.compile(lambda w: (w * w).sum(), dynamic=True)
    with mlc.no_grad():
        f(mlc.ones(5))
    for n in (4, 6):
        w: Any = mlc.arange(float(n), requires_grad=True)
        f(w).backward()
        assert w.grad.tolist() == [2.0 * i for i in range(n)]


def test_loops_and_conditions_that_are_functions() -> None:
    w, around = leaf(2), leaf()
    _, rows = mlc.scan(lambda c, x: (c * around, c * x), mlc.tensor(1.0), w)
    (rows.sum() + mlc.cond(w[0] > 0, lambda x: x * 5, lambda x: x, w).sum()).backward()
    assert w.grad.tolist() == [6, 6] and around.grad.item() == 1


W1 = mlc.tensor(2.0, requires_grad=True)


def test_calls_that_are_not_recorded_say_so() -> None:
    """They would be silently constant."""
    def call() -> Any:
        return mlc.compile(lambda w: w * 2, donate="w")(mlc.ones(1, requires_grad=True))

    with pytest.raises(UserError, match="MLC0438") as caught:
        (call().sum() + W1).backward()
    assert caught.value.loc.file == __file__
    with mlc.no_grad():
        assert not call().requires_grad


@pytest.mark.parametrize("gradient", [mlc.grad(lambda w: w * w * w), mlc.compile(mlc.grad(lambda w: w * w * w))])
def test_derivatives_of_functions_are_differentiated(gradient: Callable[[Any], Any]) -> None:
    w: Any = mlc.tensor(2.0, requires_grad=True)
    gradient(w).backward(create_graph=True)
    second = w.grad
    w.grad = None
    second.backward()
    assert second.item() == 12 and w.grad.item() == 6


def test_a_compiled_function_sees_what_is_replaced_in_place() -> None:
    w = mlc.ones(2)
    f = mlc.compile(lambda: w * 1)
    assert f().tolist() == f().tolist() == [1, 1]
    w.replace_elements(mlc.zeros(2))
    assert f().tolist() == f().tolist() == [0, 0]


def test_rules_of_the_program_are_followed() -> None:
    rounded = mlc.custom_vjp(lambda x: mlc.round(x))
    rounded.defvjp(lambda x: (mlc.round(x), None), lambda _, ct: (ct,))
    x = leaf(2)
    (rounded(1.4 * x) + mlc.checkpoint(mlc.exp)(0 * x)).sum().backward()
    assert x.grad.tolist() == pytest.approx([1.4, 1.4])


@pytest.mark.parametrize("run", [lambda f: f, mlc.compile], ids=["eager", "compiled"])
def test_no_grad_within_a_function(run: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        with mlc.no_grad():
            y = x * x
            z = x.clone()
        return (x * y + z).sum()

    x = mlc.tensor([1.0, 2.0], requires_grad=True)
    run(f)(x).backward()
    assert x.grad is not None and x.grad.tolist() == [1, 4]
    with mlc.no_grad():
        assert run(mlc.grad(f))(x.detach()).tolist() == [1, 4]


def test_a_captured_tensor_that_requires_a_gradient_later() -> None:
    w = mlc.tensor([2.0])
    f = mlc.compile(lambda x: x * w)
    f(mlc.ones(1)), f(mlc.ones(1))
    w.requires_grad_()
    (f(mlc.ones(1)) + w).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [2]


# -- what the program changes between a call and backward --------------------------------------------------------------
def test_lists_that_are_used_again() -> None:
    w, outs, sums, dims = leaf(2), list[Any](), list[Any](), [0]
    for i in range(3):
        outs.append(w * (i + 1))
        sums.append(mlc.cat(outs).sum())
    y = mlc.flip(mlc.stack([w, 2 * w]), dims)
    dims[0] = 1
    (sums[0] + sums[1] + sums[2] + (y * mlc.tensor([[1.0, 10.0], [100.0, 1000.0]])).sum()).backward()
    assert w.grad.tolist() == [10 + 2 * 1 + 100, 10 + 2 * 10 + 1000]


@pytest.mark.parametrize("run", [lambda f: f, mlc.compile], ids=["eager", "compiled"])
def test_operands_are_kept_as_they_were(run: Callable[..., Any]) -> None:
    w, m = mlc.tensor([1.0, 2.0], requires_grad=True), np.array([3.0, 4.0], np.float32)
    y = run(lambda w, m: (w * w * m).sum())(w, m)
    with mlc.no_grad():
        w -= 1
    m[:] = 9
    y.backward()
    assert w.grad is not None and w.grad.tolist() == [6, 16]


def test_the_gradient_that_backward_is_given_stays_as_it_is() -> None:
    """Of a leaf, to which it is added twice, and of a tensor that is written to."""
    x, g = leaf(3), mlc.ones(3)
    x.backward(g)
    x.backward(g)
    y = x * 2
    y[0] = 5.0
    y.backward(g)
    assert g.tolist() == [1, 1, 1] and x.grad is not None and x.grad.tolist() == [2, 4, 4]


def test_backward_again_where_nothing_was_saved() -> None:
    w = leaf(17)
    for _ in range(2):
        y = w + 1
        y.sum().backward()
        (y + w).sum().backward()
    assert w.grad.tolist() == [6] * 17


def test_subscripts_by_as_many_tensors_as_a_call_has_arguments() -> None:
    x, i, j = mlc.ones(2, 3, requires_grad=True), mlc.tensor([0, 1]), mlc.tensor([2, 0])
    for _ in range(2):                                     # the second time by native code
        x[i, j].sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[0, 0, 2], [2, 0, 0]]


def test_threads_share_a_leaf() -> None:
    w = leaf(2)
    threads = [threading.Thread(target=lambda: [(w * w).sum().backward() for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert w.grad.tolist() == [160, 160]


def test_hooks_run_on_the_way_to_what_is_asked_for() -> None:
    w, v, seen = leaf(1), leaf(1), list[str]()
    w.register_hook(lambda g: seen.append("w"))
    y = v * 2
    y.retain_grad()
    mlc.autograd.grad((w * y).sum(), v)
    assert not seen and y.grad.tolist() == [1]


# -- modules and optimizers -------------------------------------------------------------------------------------------
def test_parameters_are_leaves_that_are_marked() -> None:
    layer, plain = nn.Linear(2, 2), mlc.ones(2)
    assert all(isinstance(p, nn.Parameter) and p.requires_grad and p.is_leaf for p in layer.parameters())
    assert not isinstance(plain, nn.Parameter) and isinstance(nn.Parameter(plain), mlc.Tensor)
    assert not plain.requires_grad and nn.Parameter(plain, False).frozen
    layer.weight = layer.weight * 2
    assert layer.weight.is_leaf and isinstance(layer.weight, nn.Parameter)


def test_a_parameter_says_itself_whether_it_is_trained() -> None:
    layer = nn.Linear(2, 2)
    layer.weight.requires_grad = False
    gradient = mlc.grad(lambda m: m(mlc.ones(1, 2)).sum())(layer)
    assert gradient.weight is None and gradient.bias.tolist() == [1, 1] and layer.num_parameters(trained=True) == 2
    layer.requires_grad_()
    assert layer.weight.requires_grad and mlc.grad(lambda m: m(mlc.ones(1, 2)).sum())(layer).weight is not None
    layer(mlc.ones(1, 2)).sum().backward()
    assert layer.freeze().weight.frozen and layer.weight.grad is not None
    layer.zero_grad()
    assert layer.weight.grad is None


def test_an_optimizer_holds_the_parameters_that_are_loaded_and_converted() -> None:
    model: Any = nn.Linear(2, 1)
    optimizer, held = mlc.optim.SGD(model.parameters(), lr=1.0), list(model.parameters())
    model.load_state_dict({"weight": np.ones((1, 2), np.float32), "bias": np.zeros(1, np.float32)})
    model(mlc.ones(1, 2)).sum().backward()
    model.double()
    assert [p is q for p, q in zip(held, model.parameters())] == [True, True]
    assert all(p.grad is not None and p.grad.dtype is p.dtype is mlc.float64 for p in model.parameters())
    optimizer.step()
    assert model.weight.tolist() == [[0, 0]] and model.bias.tolist() == [-1]


def test_what_a_functional_update_returns_has_no_history() -> None:
    """Each model would hold on to all before it."""
    model, optimizer = nn.Linear(2, 1), mlc.optim.SGD(0.1, momentum=0.9)
    state = optimizer.init(model)
    for _ in range(2):
        model, state = optimizer.update(mlc.grad(lambda m: m(mlc.ones(3, 2)).sum())(model), state, model)
        assert all(isinstance(p, nn.Parameter) and p.requires_grad and p.is_leaf for p in model.parameters())
        assert not any(x.requires_grad for x in tree.leaves(state))
    step = mlc.compile(lambda m, s, x: optimizer.update(mlc.grad(lambda m: m(x).sum())(m), s, m))
    model, state = step(model, state, mlc.ones(3, 2))
    assert all(p.is_leaf for p in model.parameters())
    assert not any(x.requires_grad for x in model.state_dict().values())


def test_optimizers_are_copied_and_pickled() -> None:
    w = nn.Parameter(mlc.ones(2))
    optimizer = mlc.optim.Adam([w], lr=0.5)
    (w * w).sum().backward()
    optimizer.step()
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):  # noqa: S301
        p, = other.param_groups[0]["params"]
        p.grad = mlc.ones(2)
        other.step()
        assert other.state[p]["step"] == 2 and p.tolist() != w.tolist() == [0.5, 0.5]


def test_parameters_are_updated_in_place_within_no_grad() -> None:
    w = alias = leaf(2)
    for _ in range(2):
        ((w - 3) ** 2).sum().backward()
        with mlc.no_grad():
            w -= 0.25 * w.grad
            w.grad = None
    assert w is alias and w.requires_grad and w.tolist() == [2.5, 2.5]
    average = nn.Parameter(mlc.zeros(2), requires_grad=False)
    for p in [average]:
        p *= 0.5
        p += 0.5 * w.detach()
    assert average.tolist() == [1.25, 1.25]
    w = w.detach()
    w += 1                                                 # of the same memory
    assert w.tolist() == alias.tolist() == [3.5, 3.5]


# -- memory and limits ------------------------------------------------------------------------------------------------
@NATIVE
def test_a_graph_is_freed_with_its_last_result() -> None:
    def square(x: mlc.Tensor) -> mlc.Tensor:
        return x * x

    w = leaf(2)
    for _ in range(2):                                     # recording and compiling make cycles
        square(w * 2).sum().backward()
    y = w * 2
    z = square(y)
    alive = weakref.ref(y.autograd_meta)
    gc.collect()
    gc.disable()
    try:
        del y
        z.sum().backward()
        del z
        assert alive() is None
    finally:
        gc.enable()


def test_what_backward_needs_of_a_donated_tensor_is_kept() -> None:
    double = mlc.compile(lambda x: x * 2, donate="x")
    for _ in range(3):                                     # also once there is a fast path, which refuses such a call
        w, x = leaf(4), mlc.full((4,), 3.0)
        total = (w * x).sum()
        assert double(x).tolist() == [6.0] * 4
        total.backward()
        assert w.grad.tolist() == [3.0] * 4


def test_gradients_of_views_that_only_move_elements() -> None:
    factor = mlc.arange(24.0)
    for _ in range(2):                                     # known views the second time
        x = mlc.arange(24.0).reshape(2, 3, 4).requires_grad_()
        y = x.view(6, 4).t().reshape(2, 2, 6).permute(1, 2, 0).unsqueeze(0)
        (y * factor.reshape(2, 6, 2)).sum().backward()
        moved = mlc.arange(24.0).reshape(2, 3, 4).view(6, 4).t().reshape(2, 2, 6).permute(1, 2, 0).flatten()
        assert x.grad.flatten()[moved.long()].tolist() == factor.tolist() and x.grad.is_contiguous()


def test_operands_that_the_gradient_does_not_depend_on_are_not_kept() -> None:
    """That is known from the first gradient on."""
    w = leaf(13)
    for _ in range(2):
        total, product = w + 2 * w, w * w
        (total * product).sum().backward()
    assert w.grad.tolist() == [18] * 13
    total, product = w + 2 * w, w * w
    assert [any(x.strides) for node in (total.grad_fn, product.grad_fn) for x in node.operands] == [
        False, False, True, True]


def test_long_chains() -> None:
    w = leaf(1)
    y = w
    for _ in range(5000):
        y = y + w
    y.sum().backward()
    assert w.grad.item() == 5001


def test_copies() -> None:
    w: Any = nn.Parameter(mlc.ones(2))
    w.grad = mlc.zeros(2)
    for other in (copy.deepcopy(w), pickle.loads(pickle.dumps(w))):  # noqa: S301
        assert isinstance(other, nn.Parameter) and other.requires_grad and other.tolist() == [1, 1]
    assert copy.deepcopy(w).grad is None                  # as in PyTorch: a copied model begins without
    with pytest.raises(UserError, match="MLC0434"):
        copy.deepcopy(w * 2)


def test_a_shallow_copy_shares_memory() -> None:
    x = mlc.arange(4.0)
    y = copy.copy(x)
    x.add_(1)
    assert y is not x and y.tolist() == [1, 2, 3, 4]
    w = nn.Parameter(mlc.ones(2))
    for z in (copy.copy(w), copy.copy(w * 1)):
        assert z.requires_grad and z.is_leaf and z.grad is None
    assert isinstance(copy.copy(w), nn.Parameter) and not isinstance(copy.copy(w * 1), nn.Parameter)


def test_printing() -> None:
    w = leaf(1)
    assert repr(w) == "tensor([1.], dtype=mlc.float32, requires_grad=True)"
    assert repr(w * 2) == "tensor([2.], dtype=mlc.float32, grad_fn=<MulBackward>)"
    assert repr((w * 2).detach()) == "tensor([2.], dtype=mlc.float32)"


# -- mistakes ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("code, mistake", [
    ("MLC0430", lambda w: w.detach().sum().backward()), ("MLC0430", lambda w: w.detach().retain_grad()),
    ("MLC0430", lambda w: mlc.autograd.grad(w.sum(), mlc.ones(1))), ("MLC0430", lambda w: mlc.autograd.backward(3)),
    ("MLC0431", lambda w: [loss.backward() for loss in [(w * w).sum()] * 2]),
    ("MLC0432", lambda w: (w * 2).backward()), ("MLC0432", lambda w: (w * 2).backward(mlc.ones(5))),
    ("MLC0432", lambda w: mlc.autograd.backward([w.sum(), w.sum()], [None])),
    ("MLC0433", lambda w: mlc.arange(3).requires_grad_()), ("MLC0433", lambda w: mlc.zeros(3, dtype="bool",
                                                                                         requires_grad=True)),
    ("MLC0434", lambda w: setattr(w * 2, "requires_grad", False)),
    ("MLC0434", lambda w: (w * 2).register_post_accumulate_grad_hook(print)),
    ("MLC0435", lambda w: setattr(w, "grad", mlc.ones(5))), ("MLC0435", lambda w: setattr(w, "grad", 3)),
    ("MLC0435", lambda w: w.sum().backward(1.0)),
    ("MLC0436", lambda w: (w.register_hook(lambda g: g.sum()), (w * 2).sum().backward())),
    ("MLC0436", lambda w: (w.register_hook(lambda g: 3), (w * 2).sum().backward())),
    ("MLC0439", lambda w: w.__isub__(1)), ("MLC0439", lambda w: mlc.no_grad()(w.__imul__)(mlc.ones(2, 3)))])
def test_mistakes(code: str, mistake: Callable[[Any], Any]) -> None:
    with pytest.raises(UserError, match=code) as caught:
        mistake(leaf(3))
    assert caught.value.loc.file == __file__ and (caught.value.hint or len(str(caught.value)) > 60)


def test_what_a_recorded_tensor_does_not_have() -> None:
    own = {"autograd_meta", "data", "frozen", "backward", "grad", "is_leaf", "requires_grad", "requires_grad_",
           "retain_grad", "retains_grad"}
    for name in [n for n in vars(Differentiable) if not n.startswith("_") and n not in own]:
        with pytest.raises(UserAttributeError, match="MLC0338"):
            mlc.compile(lambda x, name=name: getattr(x * 2, name))(mlc.ones(3))
