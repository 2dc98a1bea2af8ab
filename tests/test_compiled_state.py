"""State that compiled functions reach and change besides tensors and optimizers: modes, flags, states of modules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from tests.execution import NATIVE

pytestmark = pytest.mark.usefixtures("execution")


def test_the_grad_mode_is_that_of_the_call() -> None:
    w = mlc.ones(2, requires_grad=True)

    @mlc.compile
    def f(x: Tensor) -> Any:
        with mlc.enable_grad():
            inside = mlc.is_grad_enabled()
        return x * (2 if mlc.is_grad_enabled() else 3), inside, (x * w).requires_grad

    for _ in range(2):
        doubled, *flags = f(mlc.ones(2))
        assert doubled.tolist() == [2, 2] and flags == [True, True]
        with mlc.no_grad():
            tripled, *flags = f(mlc.ones(2))
        assert tripled.tolist() == [3, 3] and flags == [True, False]


@NATIVE
def test_an_argument_requires_a_gradient_from_then_on() -> None:
    @mlc.compile
    def f(x: Tensor) -> Any:
        x.requires_grad_()
        return x * x

    x: Any = mlc.ones(2)
    y = f(x)
    assert x.requires_grad and y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_flags_of_captured_tensors_are_not_changed() -> None:
    w = mlc.ones(2)
    with pytest.raises(UserError, match="MLC0434"):
        mlc.compile(lambda x: w.requires_grad_() * x)(mlc.ones(2))
    assert not w.requires_grad


def test_leaves_of_plain_data_and_tensors_that_retain_gradients() -> None:
    @mlc.compile
    def f(x: Tensor) -> Any:
        w = mlc.tensor([1.0, 2.0], requires_grad=True)
        h = w * x
        h.retain_grad()
        (h * h).sum().backward()
        return w.grad, h.grad, h.retains_grad

    of_w, of_h, retains = f(mlc.tensor([3.0, 1.0]))
    assert of_w.tolist() == [18, 4] and of_h.tolist() == [6, 4] and retains


def test_gradients_that_are_returned_are_those_of_the_tensors() -> None:
    w: Any = mlc.ones(2, requires_grad=True)

    @mlc.compile
    def f(x: Tensor) -> Any:
        (w * x).sum().backward()
        return w.grad, w.grad[1:]

    grad, part = f(mlc.ones(2))
    assert grad is w.grad
    f(mlc.ones(2))
    assert grad is w.grad and grad.tolist() == [2, 2] and part.tolist() == [2]


class Force(nn.Module):
    """The negative gradient of an energy, which is computed in a module of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.energy = nn.Linear(2, 1, bias=False)
        with mlc.no_grad():
            self.energy.weight.fill_(0.5)

    def forward(self, x: Any) -> Any:
        found, = mlc.autograd.grad((self.energy(x) ** 3).sum(), x, create_graph=True)
        return -found


def test_modules_take_gradients_in_their_forward() -> None:
    eager, model = Force(), Force()
    compiled = mlc.compile(model)
    for f, module in ((eager, eager), (compiled, model)):
        x: Any = mlc.ones(1, 2, requires_grad=True)
        out = f(x)
        out.sum().backward()
        assert out.tolist() == [[-1.5, -1.5]] and x.grad.tolist() == [[-3, -3]]
        of_weight: Any = module.energy.weight.grad
        assert of_weight.tolist() == [[-9, -9]]


def test_gradients_that_go_through_the_caller_are_refused() -> None:
    class Inner(nn.Module):
        def forward(self, x: Any, h: Any) -> Any:
            return mlc.autograd.grad((h * x).sum(), x)[0]

    inner = Inner()
    with pytest.raises(UserError, match="MLC0720"):
        mlc.compile(lambda x: inner(x, x * x))(mlc.ones(2, requires_grad=True))


def test_states_of_modules_are_read_written_and_loaded() -> None:
    a, b = nn.Linear(2, 1), nn.Linear(2, 1)
    with mlc.no_grad():
        a.weight.fill_(1)
        b.weight.fill_(2)

    @mlc.compile
    def average() -> None:
        own = a.state_dict()
        for name, x in b.state_dict().items():
            x.mul_(0.5).add_(own[name], alpha=0.5)

    average()
    average()
    assert b.weight.tolist() == [[1.25, 1.25]]
    saved = b.state_dict()
    mlc.compile(lambda: [b.load_state_dict(a.state_dict()), None][1])()
    assert b.weight.tolist() == [[1, 1]] == saved["weight"].tolist() and b.weight is not a.weight


def test_gradients_are_zeroed_in_place() -> None:
    w: Any = mlc.ones(2, requires_grad=True)
    w.sum().backward()
    grad = w.grad
    mlc.optim.SGD([w], lr=0.1).zero_grad(set_to_none=False)
    assert grad is w.grad and grad.tolist() == [0, 0]


def test_a_clone_of_a_leaf_is_no_leaf() -> None:
    w: Any = mlc.ones(3, requires_grad=True)

    @mlc.compile
    def f() -> Any:
        y = w.clone()
        y.mul_(2)
        return (y * y).sum()

    f().backward()
    assert w.grad.tolist() == [8, 8, 8] and w.tolist() == [1, 1, 1]


class Averaging(nn.Module):
    """Keeps the mean of its results, where they are positive in place."""

    mean: Any

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.register_buffer("mean", mlc.ones(2))

    def forward(self, x: Any) -> Any:
        y = self.layer(x)
        with mlc.no_grad():
            if y.sum() > 0:
                self.mean.mul_(0.5).add_(y.mean(0))
            else:
                self.mean = self.mean - 1
        return y * self.mean


@pytest.mark.parametrize("compiled", [lambda m: m, mlc.compile, lambda m: mlc.compile(lambda x: m(x))])
def test_buffers_are_changed_and_gradients_taken(compiled: Any) -> None:
    model: Any = Averaging()
    with mlc.no_grad():
        model.layer.weight.fill_(1)
        model.layer.bias.fill_(0)
    before, f = model.mean, compiled(model)
    y = f(mlc.ones(1, 2))
    y.sum().backward()
    assert model.mean.tolist() == before.tolist() == [2.5, 2.5] and y.tolist() == [[5, 5]]
    assert model.layer.bias.grad.tolist() == [2.5, 2.5]
    f(-mlc.ones(1, 2))
    assert model.mean.tolist() == [1.5, 1.5]


def test_running_statistics_are_those_of_a_state_that_was_taken_before() -> None:
    norm: Any = nn.BatchNorm1d(1)
    state: Any = norm.state_dict()
    mlc.compile(norm)(mlc.tensor([[1.0], [3.0]]))
    assert state["running_mean"].tolist() == norm.running_mean.tolist() == [pytest.approx(0.2)]


def test_results_of_leaves_that_were_changed_have_no_gradient_and_are_refused() -> None:
    w: Any = mlc.ones(2, requires_grad=True)

    @mlc.compile
    def f(x: Any) -> Any:
        with mlc.no_grad():
            w.mul_(0.5)
        return (w * x).sum()

    with pytest.raises(UserError, match="MLC0758"):
        f(mlc.ones(2))
    assert w.tolist() == [1, 1]
    with mlc.no_grad():
        assert f(mlc.ones(2)).item() == 1


@pytest.mark.parametrize("compiled", [lambda f: f, mlc.compile])
def test_data_is_assigned(compiled: Any) -> None:
    w, average = mlc.ones(2, requires_grad=True), mlc.zeros(2, requires_grad=True)

    def step(x: Any) -> Any:
        loss = (w * x).sum()
        loss.backward()
        average.data = 0.5 * average.data + w.data
        x.data[0] = 5
        return loss

    f, x = compiled(step), mlc.ones(2)
    assert [f(x).item(), f(x).item()] == [2, 6] and average.tolist() == [1.5, 1.5] and x.tolist() == [5, 1]
    assert average.requires_grad


@pytest.mark.parametrize("compiled", [lambda f: f, mlc.compile])
def test_data_is_updated(compiled: Any) -> None:
    w: Any = mlc.ones(2, requires_grad=True)

    def step(x: Any) -> None:
        (w * x).sum().backward()
        w.data -= 0.5 * w.grad
        w.grad = None
        x.data *= 2

    f, x = compiled(step), mlc.ones(2)
    f(x)
    f(x)
    assert w.tolist() == [-0.5, -0.5] and x.tolist() == [4, 4]


def test_a_module_that_is_converted_is_recorded_anew() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    f, x = mlc.compile(lambda x: model(x)), mlc.ones(1, 2)
    for dtype in (mlc.float32, mlc.float64, mlc.bfloat16, mlc.float32):
        model.to(dtype)
        assert f(x.to(dtype)).dtype is dtype


def test_data_of_another_tensor_is_refused() -> None:
    a, b = mlc.ones(2), mlc.zeros(2)

    def swap(x: Any) -> None:
        kept = a.data
        a.data = b.data
        b.data = kept

    for f in (swap, lambda x: setattr(a, "data", b), lambda x: setattr(a, "data", x)):
        with pytest.raises(UserError, match="MLC0756"):
            mlc.compile(f)(mlc.ones(2))
    for new in (lambda: mlc.randn(2), lambda: mlc.tensor([1.0, 2.0]), lambda: b.data.clone()):
        mlc.compile(lambda: setattr(a, "data", new()))()  # noqa: B023
    assert a.tolist() == b.tolist() == [0, 0]


def test_data_of_another_shape_or_with_views_is_refused() -> None:
    w = mlc.ones(2, requires_grad=True)

    def keeping() -> Any:
        before = w.data
        w.data = mlc.zeros(2)
        return before * 1

    with pytest.raises(UserError, match="MLC0756"):
        mlc.compile(keeping)()
    with pytest.raises(UserError, match="MLC0756"):
        mlc.compile(lambda: setattr(w, "data", mlc.ones(3)))()


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("again", [lambda y: y.clone(), lambda y: y.view(2), lambda y: y[...], lambda y: y.flip(())])
def test_the_gradient_by_a_copy_or_view_of_a_leaf_is_not_that_by_the_leaf(again: Any) -> None:
    def f(x: Any) -> Any:
        y = x.detach().requires_grad_()
        z = again(y)
        return mlc.autograd.grad((y * y * z).sum(), [z, y])

    assert [g.tolist() for g in mlc.compile(f)(mlc.tensor([2.0, 3.0]))] == [[4, 9], [12, 27]]


@pytest.mark.usefixtures("interpreted")
def test_a_copy_of_a_leaf_is_changed_in_place() -> None:
    def f(x: Any) -> Any:
        y = x.detach().requires_grad_()
        z = y.clone()
        z.mul_(3.0)
        return mlc.autograd.grad(z.sum(), y)[0]

    assert mlc.compile(f)(mlc.ones(2)).tolist() == [3, 3]


def test_captured_tensors_that_are_copied_for_a_call_are_read_in_each() -> None:
    w = mlc.zeros(3, 4)
    elements = np.zeros((3, 4), np.float32)
    transposed, foreign = w.t(), mlc.from_numpy(elements).t()
    f = mlc.compile(lambda x: x + transposed + foreign)
    x = mlc.zeros(4, 3)
    assert f(x).sum().item() == f(x).sum().item() == 0
    w[0, 0] = 1.0
    assert f(x).sum().item() == 1
    w[0, 0] = 2.0
    elements[:] = 1
    assert f(x).sum().item() == 14


class Recorder(nn.Module):
    """Layers whose forward keeps a tensor besides its result."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.held: dict[str, Any] = {}

    def forward(self, x: Tensor) -> Any:
        h = self.inner(x)
        return h, mlc.distributions.Normal(h.T, h.T.exp())


def test_layers_return_tensors_in_objects_that_are_no_trees() -> None:
    model = Recorder()

    @mlc.compile
    def f(x: Tensor) -> Any:
        h, normal = model(x)
        return h.sum() + normal.mean.sum() + normal.stddev.log().sum()

    x = mlc.tensor([[1.0, 2.0]])
    assert mlc.allclose(f(x), 3 * model.inner(x).sum())


@pytest.mark.parametrize("detached", [False, True])
def test_a_layer_keeps_its_result_which_is_changed_later(detached: bool) -> None:
    class Keeping(nn.Module):
        def forward(self, x: Tensor, kept: list[Any]) -> Any:
            y = x * 2
            kept.append(y.detach() if detached else y)
            return y

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.keeping = Keeping()

        def forward(self, x: Tensor, kept: list[Any]) -> Any:
            return self.keeping(x, kept).relu_() + 1

    outer = Outer()

    def f(x: Tensor) -> Any:
        kept: list[Any] = []
        return outer(x, kept), kept[0]

    x = mlc.tensor([[1.0, -2.0]])
    for found, expected in zip(mlc.compile(f)(x), f(x)):
        assert mlc.allclose(found, expected)


def test_an_inner_layer_keeps_a_tensor_and_the_loss_uses_it() -> None:
    class Gate(nn.Module):
        def forward(self, x: Tensor, held: dict[str, Any]) -> Tensor:
            held["penalty"] = (x * x).mean()
            held["part"] = x.transpose(0, 1)[0]
            return x.transpose(0, 1).reshape(-1) * 2

    gate, linear = Gate(), nn.Linear(2, 2)

    def loss(x: Tensor) -> Any:
        held: dict[str, Any] = {}
        out = nn.Sequential(linear)(x)
        return gate(out, held).sum() + held["penalty"] * held["part"].sum()

    x = mlc.tensor([[1.0, -2.0], [0.5, 3.0]])
    assert mlc.allclose(mlc.compile(loss)(x), loss(x))
    found = mlc.compile(mlc.grad(lambda x: loss(x)))(x)
    assert mlc.allclose(found, mlc.grad(loss)(x))
