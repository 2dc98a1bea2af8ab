"""Calls of compiled functions that native code serves although they are recorded for backward."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import mlc
from mlc import nn
from tests.test_captured_inputs import fast_calls

MODELS: dict[str, Callable[[], nn.Module]] = {
    "deep": lambda: nn.Sequential(*(m for _ in range(4) for m in (nn.Linear(3, 3), nn.Tanh()))),
    "running statistics": lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)),
    "statistics of evaluation": lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).eval(),
    "two uses of a weight": lambda: nn.Sequential(layer := nn.Linear(3, 3), nn.ReLU(), layer),
}


def pair(name: str) -> tuple[nn.Module, nn.Module]:
    """Two models of the same weights."""
    mlc.manual_seed(0)
    one = MODELS[name]()
    two = MODELS[name]()
    two.load_state_dict({k: v.clone() for k, v in one.state_dict().items()})
    return one, two.train(one.training)


def gradients(m: nn.Module) -> list[Any]:
    return [p.grad for p in m.parameters()]


def alike(m: nn.Module, other: nn.Module) -> None:
    """Both have the same weights, buffers and gradients."""
    for a, b in zip([*m.state_dict().values(), *gradients(m)], [*other.state_dict().values(), *gradients(other)]):
        assert (a is None and b is None) or mlc.allclose(a, b, atol=1e-6)


@pytest.mark.usefixtures("execution")
@pytest.mark.parametrize("name", MODELS)
def test_steps_are_those_of_the_module(name: str) -> None:
    plain, m = pair(name)
    compiled = mlc.compile(m)
    for model, f in ((plain, plain), (m, compiled)):
        optimizer = mlc.optim.SGD(model.parameters(), lr=0.1)
        for i in range(5):
            optimizer.zero_grad()
            (f(mlc.sin(mlc.arange(12.0) + i).reshape(4, 3)) ** 2).sum().backward()
            optimizer.step()
    alike(plain, m)


def test_such_calls_take_the_fast_path() -> None:
    m = mlc.compile(pair("running statistics")[0])
    for _ in range(2):
        m(mlc.ones(4, 3)).sum().backward()
    before = fast_calls(m)
    for _ in range(3):
        m(mlc.ones(4, 3)).sum().backward()
    assert fast_calls(m) >= before + 3


def test_random_numbers_are_those_of_the_call() -> None:
    m = nn.Dropout(0.5)
    scale = nn.Parameter(mlc.ones(64))
    f = mlc.compile(lambda x: m(x * scale))
    outs = [f(mlc.ones(64)) for _ in range(4)]
    for out in outs[::-1]:                                 # each with the mask that its call has drawn
        scale.grad = None
        out.sum().backward()
        assert mlc.equal(scale.grad, out.detach())


def test_what_changes_after_a_call_does_not_change_its_gradient() -> None:
    m = nn.Linear(2, 2)
    f = mlc.compile(lambda x: (m(x) ** 2).sum())
    x = mlc.ones(1, 2)
    for _ in range(3):
        weight, out = m.weight.detach().clone(), f(x)
        with mlc.no_grad():
            m.weight.mul_(3)
        m.zero_grad()
        out.backward()
        assert mlc.allclose(m.weight.grad, (2 * (x @ weight.T + m.bias).T @ x).detach())


def test_whether_a_parameter_requires_a_gradient_may_change() -> None:
    m = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    f = mlc.compile(m)
    for frozen in (False, True, False, True):
        m[0].requires_grad_(not frozen)
        for _ in range(3):
            m.zero_grad()
            f(mlc.ones(1, 2)).sum().backward()
            assert (m[0].weight.grad is None) == frozen and m[1].weight.grad is not None
    m.requires_grad_(False)
    assert not any(f(mlc.ones(1, 2)).requires_grad for _ in range(3))


def test_arguments_with_a_history_get_gradients() -> None:
    m, frozen = nn.Linear(2, 1), nn.Linear(2, 1).requires_grad_(False)
    for layer in (m, frozen):
        f = mlc.compile(layer)
        for requires in (False, True, True, False, True):
            y = mlc.ones(1, 2).requires_grad_(requires)
            out, before = f(y * 2), fast_calls(f)
            if out.requires_grad:
                out.sum().backward()
            assert (None if y.grad is None else y.grad.tolist()) == (
                (2 * layer.weight.detach()).tolist() if requires else None)
            assert out.requires_grad == (requires or layer is m)
        f(y * 2)
        assert fast_calls(f) == before + 1


def test_functions_that_reach_no_tensors_are_recorded_natively() -> None:
    f = mlc.compile(lambda x, y: x * x * y)
    x, y = mlc.tensor([3.0], requires_grad=True), mlc.tensor([5.0])
    for _ in range(3):
        assert not f(y, y).requires_grad
        first, = mlc.autograd.grad(f(x, y), x)
        assert first.tolist() == [30.0]
    before = fast_calls(f)
    f(x, y), f(y, y)
    assert fast_calls(f) == before + 2


def test_results_have_the_history_of_what_they_depend_on() -> None:
    w = mlc.tensor([2.0], requires_grad=True)
    f = mlc.compile(lambda x, y: (x * 2, y * w, x + y))
    for wanted in ((False, False), (True, False), (False, True), (True, True)) * 2:
        x, y = (mlc.ones(1).requires_grad_(flag) for flag in wanted)
        assert [t.requires_grad for t in f(x, y)] == [wanted[0], True, any(wanted)]


def test_second_derivatives() -> None:
    w = mlc.tensor(2.0, requires_grad=True)
    f = mlc.compile(lambda x: x * w ** 3)
    for _ in range(3):
        out = f(mlc.tensor(5.0))
    first, = mlc.autograd.grad(out, w, create_graph=True)
    second, = mlc.autograd.grad(first, w)
    assert (first.item(), second.item()) == (60.0, 60.0)


def test_saved_tensor_hooks_see_the_operands() -> None:
    w = mlc.tensor([2.0, 3.0], requires_grad=True)
    f = mlc.compile(lambda x: (x * w).sum())
    for _ in range(3):
        f(mlc.ones(2))
    packed: list[Any] = []

    def pack(x: mlc.Tensor) -> mlc.Tensor:
        packed.append(x.tolist())
        return x

    with mlc.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        out = f(mlc.tensor([5.0, 7.0]))
    gradient, = mlc.autograd.grad(out, w)
    assert sorted(packed) == [[2.0, 3.0], [5.0, 7.0]] and gradient.tolist() == [5.0, 7.0]


def test_an_array_that_is_written_to_later_is_kept() -> None:
    w = mlc.tensor([1.0, 1.0], requires_grad=True)
    f, x = mlc.compile(lambda x: (x * w).sum()), mlc.ones(2).numpy().copy()
    for _ in range(3):
        out = f(x)
    x[:] = 9
    gradient, = mlc.autograd.grad(out, w)
    assert gradient.tolist() == [1.0, 1.0]


def test_threads_have_gradients_of_their_own_calls() -> None:
    m = nn.BatchNorm1d(2)
    f, weight = mlc.compile(m), m.weight
    assert weight is not None
    f(mlc.ones(3, 2))
    wrong: list[Any] = []

    def calls(i: int) -> None:
        x = mlc.sin(mlc.arange(6.0) * i).reshape(3, 2)
        for _ in range(20):
            found, = mlc.autograd.grad((f(x) * x).sum(), weight)
            expected = ((x - x.mean(0)) / (x.var(0, correction=0) + m.eps).sqrt() * x).sum(0)
            wrong.extend([] if mlc.allclose(found, expected, atol=1e-4) else [(found, expected)])

    threads = [threading.Thread(target=calls, args=(i,)) for i in (1, 2, 3)]
    before = fast_calls(f)
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and fast_calls(f) > before
