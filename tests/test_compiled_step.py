"""Compiled functions that change what they reach: parameters, `grad`, optimizers, schedulers, generators.

Each program runs under PyTorch, eagerly and compiled, from the same parameters on the same data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import mlc
import mlc.nn
import mlc.optim
from mlc import UserError, nn
from mlc.frontend.tensor import Tensor
from tests.execution import NATIVE

pytestmark = pytest.mark.usefixtures("execution")

torch = pytest.importorskip("torch")


class Setting:
    """A library, its modules, and how functions are compiled."""

    def __init__(self, name: str, compile: Callable[[Any], Any]) -> None:
        self.lib: Any = import_module(name)
        self.nn, self.optim, self.autograd = (import_module(f"{name}.{part}") for part in ("nn", "optim", "autograd"))
        self.compile: Callable[[Callable[..., Any]], Callable[..., Any]] = compile
        self.random = np.random.default_rng(0)

    def data(self, *shape: int) -> Any:
        return self.lib.tensor(self.random.normal(size=shape).astype("f4"))

    def labels(self, n: int) -> Any:
        return self.lib.tensor(self.random.integers(0, 3, n))

    def leaf(self, *shape: int) -> Any:
        return self.data(*shape).requires_grad_()

    def model(self, *layers: Any) -> Any:
        """The layers with parameters that are the same under each library."""
        model = self.nn.Sequential(*layers)
        with self.lib.no_grad():
            for p in model.parameters():
                p.copy_(self.data(*p.shape) * 0.3)
        return model


def training(s: Setting, optimizer: str, **settings: Any) -> Iterator[Any]:
    """The step that everybody writes."""
    model = s.model(s.nn.Linear(4, 8), s.nn.ReLU(), s.nn.Linear(8, 3))
    opt = getattr(s.optim, optimizer)(model.parameters(), **settings)
    scheduler = s.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=6)

    @s.compile
    def step(x: Any, y: Any) -> Any:
        opt.zero_grad()
        loss = s.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        s.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        scheduler.step()
        return loss

    for _ in range(4):
        yield step(s.data(5, 4), s.labels(5))
        yield opt.param_groups[0]["lr"]
    yield from (p.grad for p in model.parameters())
    state = opt.state_dict()["state"]
    yield from (x for held in state.values() for x in held.values() if x is not None)


def batch_norm(s: Setting) -> Iterator[Any]:
    """Buffers of a module that the function reaches, with momentum and weight decay."""
    model = s.model(s.nn.Conv2d(1, 2, 3), s.nn.BatchNorm2d(2), s.nn.Flatten(), s.nn.Linear(2 * 9, 3))
    mean = model[1].running_mean
    opt = s.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3, nesterov=True)

    @s.compile
    def step(x: Any) -> Any:
        model.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        opt.step()
        return loss

    for _ in range(3):
        yield step(s.data(4, 1, 5, 5))
    yield from (mean, model[1].running_var, model[1].num_batches_tracked)


def accumulation(s: Setting) -> Iterator[Any]:
    """`grad` is there before some calls, and not before others."""
    w = s.leaf(3)

    @s.compile
    def step(x: Any) -> Any:
        loss = ((x * w) ** 2).sum()
        loss.backward()
        return loss

    for reset in (False, False, True, False):
        if reset:
            w.grad = None
        yield step(s.data(3))
        yield w.grad


def by_hand(s: Setting) -> Iterator[Any]:
    """Updates within no_grad and by `data`."""
    w, b = s.leaf(3), s.leaf(3)

    @s.compile
    def step(x: Any) -> Any:
        loss = ((x * w + b) ** 2).mean()
        loss.backward()
        with s.lib.no_grad():
            w.sub_(0.1 * w.grad)
        b.data.add_(b.grad, alpha=-0.1)
        for p in (w, b):
            p.grad.zero_()
        return loss

    for _ in range(3):
        yield step(s.data(3))
        yield from (w, b, b.grad)


def penalty(s: Setting) -> Iterator[Any]:
    """A gradient of a gradient, by a leaf that the function makes."""
    model = s.model(s.nn.Linear(3, 8), s.nn.Tanh(), s.nn.Linear(8, 1))
    opt = s.optim.Adam(model.parameters(), lr=1e-2)

    @s.compile
    def step(x: Any) -> Any:
        x = x.clone().requires_grad_()
        y = model(x).sum()
        slope, = s.autograd.grad(y, x, create_graph=True)
        loss = ((slope.norm(dim=1) - 1) ** 2).mean() + 0.1 * y
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss

    for _ in range(3):
        yield step(s.data(4, 3))


def adversaries(s: Setting) -> Iterator[Any]:
    """Two optimizers, and gradients that the other's step leaves behind."""
    maker, judge = s.model(s.nn.Linear(2, 3)), s.model(s.nn.Linear(3, 1))
    of_maker, of_judge = (s.optim.Adam(m.parameters(), lr=1e-2) for m in (maker, judge))
    softplus = s.nn.functional.softplus

    @s.compile
    def step(noise: Any, real: Any) -> Any:
        of_judge.zero_grad()
        fake = maker(noise)
        first = softplus(-judge(real)).mean() + softplus(judge(fake.detach())).mean()
        first.backward()
        of_judge.step()
        of_maker.zero_grad()
        second = softplus(-judge(fake)).mean()
        second.backward()
        of_maker.step()
        return first, second

    for _ in range(3):
        yield from step(s.data(4, 2), s.data(4, 3))
    yield from (p.grad for p in judge.parameters())


def model_as_argument(s: Setting) -> Iterator[Any]:
    model = s.model(s.nn.Linear(3, 2))
    opt = s.optim.AdamW(model.parameters(), lr=1e-2)

    @s.compile
    def step(model: Any, x: Any) -> Any:
        loss = (model(x) ** 2).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss

    for _ in range(3):
        yield step(model, s.data(4, 3))
    yield from (p.grad for p in model.parameters())


def moving_average(s: Setting) -> Iterator[Any]:
    """A second model follows the first; the result is differentiated outside of the function."""
    model, average, last = s.model(s.nn.Linear(3, 2)), s.model(s.nn.Linear(3, 2)), s.lib.zeros(2)

    @s.compile
    def forward(x: Any) -> Any:
        with s.lib.no_grad():
            for a, p in zip(average.parameters(), model.parameters()):
                a.mul_(0.9).add_(p, alpha=0.1)
        y = model(x)
        last.copy_(y.detach().mean(0))
        return last, y

    for _ in range(2):
        kept, y = forward(s.data(4, 3))
        assert kept is last
        model.zero_grad()
        y.sum().backward()
        yield from (kept, y, average[0].weight, model[0].weight.grad)


def read_as_numbers(s: Setting) -> Iterator[Any]:
    """A number that is read from a tensor is part of what is compiled."""
    scale = s.lib.tensor(2.0)
    f = s.compile(lambda x: x * float(scale) + scale)
    for value in (2.0, 3.0):
        scale.fill_(value)
        yield f(s.data(2))


def unused(s: Setting) -> Iterator[Any]:
    """A parameter behind detach, and one that is not used, have no gradient."""
    used, detached, idle = s.leaf(2), s.leaf(2), s.leaf(2)
    opt = s.optim.SGD([used, detached, idle], lr=0.1, weight_decay=0.5)

    @s.compile
    def step(x: Any) -> Any:
        opt.zero_grad()
        loss = (x * used * detached.detach()).sum()
        loss.backward()
        opt.step()
        return loss

    yield step(s.data(2))
    assert detached.grad is None and idle.grad is None
    yield from (used, detached, idle)


PROGRAMS = [
    lambda s: training(s, "SGD", lr=0.1, momentum=0.9), lambda s: training(s, "Adam", lr=0.1),
    lambda s: training(s, "AdamW", lr=0.1, amsgrad=True), lambda s: training(s, "RMSprop", lr=0.01, momentum=0.5),
    batch_norm, accumulation, by_hand, penalty, adversaries, model_as_argument, moving_average, read_as_numbers, unused]


def numbers(x: Any) -> Any:
    return np.array(x.detach().numpy() if hasattr(x, "detach") else x)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_compiled_function_changes_what_pytorch_changes(program: Callable[[Setting], Iterator[Any]]) -> None:
    theirs = [numbers(x) for x in program(Setting("torch", lambda f: f))]
    eager = [numbers(x) for x in program(Setting("mlc", lambda f: f))]
    compiled = [numbers(x) for x in program(Setting("mlc", mlc.compile))]
    assert len(theirs) == len(eager) == len(compiled)
    for a, b, c in zip(theirs, eager, compiled):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(c, a, rtol=1e-4, atol=1e-5)


@NATIVE
def test_a_step_is_recorded_once() -> None:
    w = mlc.ones(2, requires_grad=True)
    opt = mlc.optim.Adam([w], lr=0.1)
    scheduler = mlc.optim.lr_scheduler.ExponentialLR(opt, 0.5)

    @mlc.compile
    def step(x: Tensor) -> None:
        opt.zero_grad()
        (x * w).sum().backward()
        opt.step()
        scheduler.step()

    for _ in range(4):
        step(mlc.ones(2))
    opt.param_groups[0]["lr"] = 0.7
    step(mlc.ones(2))
    assert len(step.signatures) == 1 and scheduler.last_epoch == 5


def test_settings_that_the_program_reads_are_guarded() -> None:
    w = mlc.ones(1, requires_grad=True)
    opt = mlc.optim.SGD([w], lr=1.0)
    scheduler = mlc.optim.lr_scheduler.ExponentialLR(opt, 0.5)

    @mlc.compile
    def step(x: Tensor) -> Any:
        opt.zero_grad()
        (x * w).sum().backward()
        opt.step()
        return x * opt.param_groups[0]["lr"] + float(scheduler.last_epoch)

    found = []
    for _ in range(3):
        found.append(step(mlc.ones(1)).item())
        scheduler.step()
    assert found == [1.0, 1.5, 2.25]

    @mlc.compile
    def reads(x: Tensor) -> Any:
        scheduler.step()
        return x * opt.param_groups[0]["lr"]

    with pytest.raises(UserError, match="MLC0722"):
        reads(mlc.ones(1))


def draws(x: Tensor) -> Any:
    noise = mlc.randn(3) + mlc.rand_like(x) + mlc.randint(0, 9, (3,)) + mlc.normal(x, x) + mlc.bernoulli(x * 0.5)
    chosen = mlc.multinomial(x, 2), mlc.multinomial(mlc.stack([x, x * 2]), 4, True).sum(), mlc.randperm(5)[0]
    return noise + x.clone().normal_() + mlc.nn.functional.dropout(x, 0.3) + sum(t.sum() for t in chosen)


def test_draws_are_those_of_eager_code() -> None:
    results = []
    for f in (draws, mlc.compile(draws)):
        f(mlc.ones(3))
        mlc.manual_seed(0)
        results.append([f(mlc.ones(3)).tolist() for _ in range(3)])
    assert results[0] == results[1] and results[1][0] != results[1][1]


def in_a_loop(w: Tensor, x: Tensor) -> None:
    while x.sum() < 10:
        x = x + 1
        (w * x).sum().backward()


def in_a_function_of_its_own(w: Tensor, x: Tensor) -> Any:
    return mlc.grad(lambda y: [(w * y).sum().backward(), y.sum()][1])(x)


def of_nothing(w: Tensor, x: Tensor) -> None:
    x.sum().backward()


class Pair(nn.Module):
    """A layer that returns what it has computed on the way, too."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        inner = x * 3
        return inner, (inner * inner).sum()


def by_what_a_layer_has_computed(w: Tensor, x: Tensor) -> None:
    inner, total = PAIR(w * x)
    mlc.autograd.grad(total, inner)


def by_what_a_layer_has_computed_and_retains(w: Tensor, x: Tensor) -> None:
    inner, total = PAIR(w * x)
    inner.retain_grad()
    total.backward()


def of_a_leaf_in_grad_mode(w: Tensor, x: Tensor) -> None:
    w.add_(x)


def of_history(w: Tensor, x: Tensor) -> None:
    (2 * w * x).sum().backward()
    OUTSIDE.copy_(w * x)


def rate_after_step(w: Tensor, x: Tensor) -> None:
    (w * x).sum().backward()
    SCHEDULER.step()
    OPTIMIZER.step()


PAIR = Pair()
OUTSIDE, W = mlc.zeros(2), mlc.ones(2, requires_grad=True)
OPTIMIZER = mlc.optim.SGD([W], lr=0.1)
SCHEDULER = mlc.optim.lr_scheduler.ExponentialLR(OPTIMIZER, 0.5)


@pytest.mark.parametrize(("f", "code"), [
    (in_a_loop, "MLC0720"), (in_a_function_of_its_own, "MLC0720"), (of_nothing, "MLC0430"),
    (by_what_a_layer_has_computed, "MLC0720"), (by_what_a_layer_has_computed_and_retains, "MLC0720"),
    (of_a_leaf_in_grad_mode, "MLC0439"), (of_history, "MLC0758"), (rate_after_step, "MLC0722")])
def test_what_cannot_be_recorded_is_refused(f: Callable[..., Any], code: str) -> None:
    with pytest.raises(UserError, match=code):
        mlc.compile(lambda x: f(W, x))(mlc.ones(2))
    assert W.tolist() == [1, 1] and W.grad is None and OUTSIDE.tolist() == [0, 0] and SCHEDULER.last_epoch == 0


# -- what is guarded, and whose memory is used again -------------------------------------------------------------------
class Layer(mlc.nn.Module):
    """A module with state of many kinds, which `change` changes."""

    scale = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.weight = mlc.nn.Parameter(mlc.ones(2))
        self.power, self.factors, self.settings = 1, [1.0, 2.0], {"shift": 0.0}

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x * self.weight**self.power * self.factors[1] * self.scale
        return (out + self.settings["shift"]) * FACTOR


FACTOR = 1.0


def other_class(layer: Any) -> None:
    layer.__class__ = type("Other", (Layer,), {"scale": 3.0})


def other_attributes(layer: Any) -> None:
    layer.__dict__ = {**vars(layer), "power": 0}


def other_global(layer: Any) -> None:
    global FACTOR
    FACTOR += 1


CHANGES: list[Callable[[Any], Any]] = [
    lambda layer: setattr(layer, "power", 2), lambda layer: layer.factors.__setitem__(1, 5.0),
    lambda layer: layer.settings.update(shift=1.0), lambda layer: layer.factors.insert(0, 7.0),
    lambda layer: setattr(layer, "factors", [0.0, 4.0]), lambda layer: setattr(layer, "weight", mlc.nn.Parameter(
        mlc.full((2,), 9.0))), other_class, other_attributes, other_global]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_between_calls_is_seen(change: Callable[[Any], Any]) -> None:
    """However often the function has been called, and whatever has changed before."""
    layer, unrelated, x = Layer(), [0], mlc.ones(2)
    f = mlc.compile(lambda x: layer(x) + 0 * len(unrelated))
    for _ in range(3):
        f(x)
    layer.power = 1                                        # the same again
    f(x)
    change(layer)
    for _ in range(2):
        assert f(x).tolist() == layer(x).tolist()
    with mlc.no_grad():
        layer.weight.mul_(2)
    assert f(x).tolist() == layer(x).tolist()


def test_results_have_gradients_by_what_they_depend_on() -> None:
    a, b = mlc.ones(2, requires_grad=True), mlc.ones(2, requires_grad=True)
    f = mlc.compile(lambda x: (x * a, x * b, (x * a).detach(), x + 1))
    of_a, of_b, detached, plain = f(mlc.ones(2))
    assert [t.requires_grad for t in (of_a, of_b, detached, plain)] == [True, True, False, False]
    of_a.sum().backward()
    assert a.grad is not None and b.grad is None


def test_subscripts_write_to_what_is_reached() -> None:
    def change(x: Tensor) -> Tensor:
        cache[1], cache[2:] = x, 2 * x
        cache[cache > 5] += 1
        cache[0].add_(x)
        view = cache[1:]
        view += x
        return cache * 2

    cache = mlc.zeros(4)
    eager = change(mlc.tensor(3.0)).tolist(), cache.tolist()
    cache.zero_()
    assert (mlc.compile(change)(mlc.tensor(3.0)).tolist(), cache.tolist()) == eager


W2 = mlc.ones(2, requires_grad=True)


@pytest.mark.parametrize("between", [lambda w: None, lambda w: setattr(w, "grad", None), lambda w: w.grad.zero_()])
def test_gradients_of_arguments_accumulate(between: Callable[[Any], Any]) -> None:
    found = []
    def step(x: Tensor) -> None:
        (x**3).sum().backward()

    ways: list[Any] = [step, mlc.compile(step)]
    for f in ways:
        w: Any = mlc.ones(2, requires_grad=True)
        for _ in range(3):
            f(w)
            between(w)
        f(w)
        found.append(w.grad.tolist())
    assert found[0] == found[1]


def test_memory_that_captured_tensors_share_is_refused_where_one_is_changed() -> None:
    base, other = mlc.zeros(4), mlc.zeros(4)
    view = base[1:3]
    with pytest.raises(UserError, match=r"MLC075[69]"):
        mlc.compile(lambda x: (view.add_(x), base * 2)[1])(mlc.ones(2))
    f = mlc.compile(lambda x: (other.add_(x), base * 2)[1])
    f(mlc.ones(4))
    base.data = other.data
    with pytest.raises(UserError, match="MLC0759"):
        f(mlc.ones(4))
    with pytest.raises(UserError, match="MLC0759"):
        mlc.compile(lambda x, y: (x * y * y).sum().backward())(W2, W2)
    with pytest.raises(UserError, match="MLC0759"):
        mlc.compile(lambda x, y: (y.requires_grad_(), (x * y).sum().backward()))(other, other)


def test_a_captured_tensor_may_become_another_type() -> None:
    w = mlc.ones(2)
    f = mlc.compile(lambda: w * 2)
    assert f().tolist() == f().tolist() == [2, 2]
    for other in (mlc.ones(3), mlc.ones(3, dtype="float64"), mlc.ones(1, 2)):
        w.data = other
        assert f().shape == other.shape and f().dtype is other.dtype


def test_memory_that_somebody_holds_is_not_used_again() -> None:
    model = mlc.nn.Linear(3, 2)
    opt = mlc.optim.Adam(model.parameters(), lr=0.1)

    @mlc.compile
    def step(x: Tensor) -> Any:
        opt.zero_grad()
        loss = (model(x) ** 2).sum()
        loss.backward()
        opt.step()
        return loss

    held = []
    for i in range(8):
        step(mlc.ones(4, 3))
        grad: Any = model.weight.grad
        kept: list[Any] = [grad, opt.state[model.weight]["exp_avg"].clone()]
        kept += [grad[0], model.weight.clone()] if i % 2 else [(model.weight * 1).detach()]
        held.append((kept, [x.tolist() for x in kept]))
    for kept, elements in held:
        assert [x.tolist() for x in kept] == elements


def test_a_parameter_that_forward_changes_has_its_gradient_or_is_refused() -> None:
    class Halved(nn.Module):
        def __init__(self, after: bool) -> None:
            super().__init__()
            self.weight, self.after = nn.Parameter(mlc.tensor([1.0, 2.0])), after

        def forward(self, x: Any) -> Any:
            y = self.weight * x
            with mlc.no_grad():
                self.weight.mul_(0.5)
            return y if self.after else self.weight * x

    def step(model: Any, other: Any) -> Any:
        loss = (model(mlc.tensor([3.0, 5.0])) * other).sum()
        loss.backward()
        return loss

    for after in (True, False):
        model, other = Halved(after), mlc.ones(2, requires_grad=True)
        compiled = mlc.compile(lambda: step(model, other))  # noqa: B023
        if after:
            assert compiled().item() == 13 and model.weight.tolist() == [0.5, 1.0]
            assert model.weight.grad is not None and model.weight.grad.tolist() == [3.0, 5.0]
        else:
            with pytest.raises(mlc.UserError, match="MLC0756"):
                compiled()


@pytest.mark.parametrize("kind", ["Embedding", "EmbeddingBag"])
@pytest.mark.parametrize("sparse", [False, True])
def test_rows_are_bounded_within_their_table_as_in_pytorch(kind: str, sparse: bool) -> None:
    start = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32) * 2

    def run(m: Any, compiled: bool) -> Any:
        table = getattr(m.nn, kind)(6, 3, max_norm=1.0, sparse=sparse)
        with m.no_grad():
            table.weight.copy_(m.tensor(start))
        optimizer = m.optim.SGD(table.parameters(), lr=0.5)

        def step(index: Any) -> Any:
            optimizer.zero_grad()
            loss = (table(index) ** 3).sum()
            loss.backward()
            optimizer.step()
            return loss

        f = m.compile(step) if compiled else step
        return [f(m.tensor([[0, 1, 1], [3, 3, 5]])).item() for _ in range(3)], table.weight.detach().numpy()

    wanted = run(torch, False)
    for compiled in (False, True)[:2 if kind == "Embedding" and not sparse else 1]:
        for x, y in zip(run(mlc, compiled), wanted):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [mlc.optim.SGD, mlc.optim.RMSprop])
def test_settings_that_a_step_was_not_recorded_for_are_refused(kind: Any) -> None:
    w = nn.Parameter(mlc.tensor([1.0, -2.0]))
    optimizer = kind([w], lr=0.1, momentum=0.9)

    @mlc.compile
    def step() -> None:
        (w * w).sum().backward()
        optimizer.step()

    group: dict[str, Any] = optimizer.param_groups[0]
    step()                                                 # which makes the state, so that the next call is recorded
    for _ in range(2):                                     # and the one after it runs native code
        step()
        for name, value in (("momentum", 0.0), ("lr", -1.0), ("lr", None), ("momentum", -0.5)):
            kept, before = w.tolist(), group[name]
            group[name] = value
            with pytest.raises(UserError, match="MLC0383"):
                step()
            group[name] = before
            assert w.tolist() == kept
        group["momentum"] = 0.5
