"""Optimisers, schedules, clipping, accumulation and averages, against PyTorch where it has them."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.frontend import tree
from mlc.ir.diag import UserError
from tests.public_case import thinned_by

pytestmark = pytest.mark.usefixtures("execution")

torch = pytest.importorskip("torch")
O = mlc.optim
S = mlc.optim.schedules
SHAPES = {"a": (3, 4), "b": (5,), "c": ()}


def random_tree(rng: np.random.Generator) -> dict[str, Any]:
    return {n: mlc.tensor(rng.normal(size=s).astype(np.float32)) for n, s in SHAPES.items()}


OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9}), ("SGD", {"lr": 0.05, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.8, "dampening": 0.3, "maximize": True}),
    ("Adam", {}), ("Adam", {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True}), ("Adam", {"maximize": True}),
    ("AdamW", {"lr": 1e-2}), ("AdamW", {"lr": 3e-3, "betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.2}),
    ("AdamW", {"amsgrad": True}), ("Adamax", {}), ("Adamax", {"weight_decay": 0.1}), ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "momentum_decay": 0.01}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}), ("RAdam", {"lr": 0.01}),
    ("RAdam", {"lr": 0.01, "betas": (0.9, 0.9), "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RMSprop", {}), ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1}), ("RMSprop", {"alpha": 0.9}),
    ("Adagrad", {}), ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adadelta", {}), ("Adadelta", {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1}),
]


@pytest.mark.parametrize("case", thinned_by(lambda case: case[0], OPTIMIZERS, 3), ids=str)
def test_twenty_steps_on_random_gradients(case: tuple[str, dict[str, Any]]) -> None:
    name, settings = case
    rng = np.random.default_rng(0)
    params = random_tree(rng)
    theirs = {n: torch.nn.Parameter(torch.from_numpy(p.numpy().copy())) for n, p in params.items()}
    other = getattr(torch.optim, name)(theirs.values(), **settings)
    opt = getattr(O, name)(**settings)
    state = opt.init(params)
    step = mlc.compile(opt.update, donate=("state", "params"))
    for _ in range(20):
        grads = random_tree(rng)
        for n, p in theirs.items():
            p.grad = torch.from_numpy(grads[n].numpy().copy())
        other.step()
        params, state = step(grads, state, params)
    assert state["step"].item() == 20
    for n, p in theirs.items():
        torch.testing.assert_close(torch.from_numpy(params[n].numpy()), p.detach(), rtol=2e-5, atol=1e-6)


def test_lion() -> None:
    """Against its definition in numpy."""
    rng = np.random.default_rng(1)
    p: Any = rng.normal(size=6).astype(np.float32)
    m: Any = np.zeros(6, np.float32)
    params, opt = mlc.tensor(p), O.Lion(lr=0.01, weight_decay=0.1)
    state = opt.init(params)
    for _ in range(5):
        g = rng.normal(size=6).astype(np.float32)
        p = p * np.float32(1 - 0.001) - np.float32(0.01) * np.sign(np.float32(0.9) * m + np.float32(0.1) * g)
        m = np.float32(0.99) * m + np.float32(0.01) * g
        params, state = opt.update(mlc.tensor(g), state, params)
    np.testing.assert_allclose(params.numpy(), p, rtol=1e-5)


def test_groups_by_name() -> None:
    """Biases without weight decay and at another rate, as torch's parameter groups."""
    model = nn.Linear(3, 2)
    theirs = torch.nn.Linear(3, 2)
    theirs.load_state_dict({n: torch.from_numpy(p.numpy().copy()) for n, p in model.state_dict().items()})
    other = torch.optim.AdamW([{"params": [theirs.weight]}, {"params": [theirs.bias], "weight_decay": 0.0,
                                                             "lr": 0.1}], lr=0.01, weight_decay=0.5)
    opt = O.AdamW(lr=0.01, weight_decay=0.5, groups=[(lambda n: n.endswith("bias"), {"weight_decay": 0.0, "lr": 0.1})])
    state = opt.init(model)
    for _ in range(3):
        for p in theirs.parameters():
            p.grad = torch.ones_like(p)
        other.step()
        model, state = opt.update(tree.map(mlc.ones_like, model), state, model)
    for a, b in zip(model.parameters(), theirs.parameters()):
        torch.testing.assert_close(torch.from_numpy(a.numpy()), b.detach())
    moved, _ = opt.update(tree.map(mlc.ones_like, model), opt.init(model), model, lr=0.02)
    assert (model.bias - moved.bias).numpy() == pytest.approx(0.2, rel=1e-4)


def test_a_group_cannot_need_another_state() -> None:
    with pytest.raises(UserError, match="MLC0383"):
        O.SGD(lr=0.1, groups=[(lambda n: True, {"momentum": 0.9})])
    with pytest.raises(UserError, match="has no setting beta"):
        O.SGD(lr=0.1, groups=[(lambda n: True, {"beta": 0.9})])


def test_frozen_parameters_stay() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).freeze(lambda n: n.startswith("0."))
    opt = O.AdamW(lr=0.1)
    state = opt.init(model)
    assert len(tree.leaves(state["exp_avg"])) == 2
    gradients = mlc.grad(lambda m, x: m(x).sum())(model, mlc.ones(1, 2))
    assert gradients[0].weight is None and gradients[1].weight.shape == (2, 2)
    moved, state = opt.update(gradients, state, model)
    assert (moved[0].weight.numpy() == model[0].weight.numpy()).all()
    assert (moved[1].weight.numpy() != model[1].weight.numpy()).all()
    assert moved.unfreeze().num_parameters(trained=True) == 12


# -- schedules --------------------------------------------------------------------------------------------------------
def torch_rates(make: Callable[[Any], Any], lr: float, steps: int) -> list[float]:
    opt = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    schedule = make(opt)
    rates = []
    for _ in range(steps):
        rates.append(opt.param_groups[0]["lr"])
        opt.step()
        schedule.step()
    return rates


L = torch.optim.lr_scheduler
SCHEDULES: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "constant": (S.constant(0.5), lambda o: L.ConstantLR(o, factor=1.0)),
    "linear": (S.linear(0.5 * 0.1, 0.5, 10), lambda o: L.LinearLR(o, 0.1, 1.0, 10)),
    "cosine": (S.cosine(0.5, 20, 0.1), lambda o: L.CosineAnnealingLR(o, 20, 0.1)),
    "cosine_restarts": (S.cosine_restarts(0.5, 7), lambda o: L.CosineAnnealingWarmRestarts(o, 7)),
    "polynomial": (S.polynomial(0.5, 12, 2.0), lambda o: L.PolynomialLR(o, 12, 2.0)),
    "step_decay": (S.step_decay(0.5, 3, 0.5), lambda o: L.StepLR(o, 3, 0.5)),
    "multistep": (S.multistep(0.5, (2, 9)), lambda o: L.MultiStepLR(o, [2, 9])),
    "exponential": (S.exponential(0.5, 0.9), lambda o: L.ExponentialLR(o, 0.9)),
    "one_cycle": (S.one_cycle(0.5, 20), lambda o: L.OneCycleLR(o, 0.5, 20, cycle_momentum=False)),
    "one_cycle linear": (S.one_cycle(0.5, 20, 0.4, "linear", 10, 100), lambda o: L.OneCycleLR(
        o, 0.5, 20, pct_start=0.4, anneal_strategy="linear", div_factor=10, final_div_factor=100,
        cycle_momentum=False)),
    "one_cycle in three": (S.one_cycle(0.5, 20, three_phase=True), lambda o: L.OneCycleLR(
        o, 0.5, 20, three_phase=True, cycle_momentum=False)),
    "sequential": (S.sequential([S.linear(0.05, 0.5, 5), S.cosine(0.5, 10)], [5]), lambda o: L.SequentialLR(
        o, [L.LinearLR(o, 0.1, 1.0, 5), L.CosineAnnealingLR(o, 10)], [5])),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_against_torch(name: str) -> None:
    ours, theirs = SCHEDULES[name]
    steps = 15 if name == "sequential" else 20
    rate = mlc.compile(ours)
    found = [rate(mlc.tensor(i)).item() for i in range(steps)]
    np.testing.assert_allclose(found, torch_rates(theirs, 0.5, steps), rtol=1e-6, atol=1e-12)
    assert ours(3).item() == found[3] and len(rate.entries) == 1


def test_warmup() -> None:
    rate = S.warmup(S.cosine(1.0, 100), 10, 0.2)
    assert rate(0).item() == pytest.approx(0.2) and rate(10).item() == S.cosine(1.0, 100)(10).item()
    assert S.warmup(0.5, 2)(1).item() == 0.25


@pytest.mark.parametrize("losses", [[1.0, 0.9, 0.9, 0.95, 0.9, 0.9, 0.2, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3],
                                    [float("nan")] * 5, [-1.0] * 5], ids=["falls", "nan", "negative"])
def test_plateau(losses: list[float]) -> None:
    opt = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    theirs = L.ReduceLROnPlateau(opt, patience=2, factor=0.5, cooldown=1)
    ours = S.Plateau(0.5, patience=2, factor=0.5, cooldown=1)
    for loss in losses:
        theirs.step(loss)
        assert ours.step(loss) == opt.param_groups[0]["lr"]


def test_a_schedule_in_a_compiled_step() -> None:
    """One compilation for all steps, with the rates that torch's scheduler sets from outside."""
    opt = O.SGD(lr=S.step_decay(0.5, 2, 0.1))
    step = mlc.compile(opt.update)
    p, state = mlc.ones(1), opt.init(mlc.ones(1))
    for rate in (0.5, 0.5, 0.05, 0.05, 0.005):
        before = p
        p, state = step(mlc.ones(1), state, p)
        assert (before - p).item() == pytest.approx(rate, rel=1e-4)
    assert len(step.entries) == 1


def test_a_learning_rate_can_be_passed() -> None:
    opt = O.SGD(lr=1.0)
    state = opt.init(mlc.ones(3))
    step = mlc.compile(lambda p, g, lr: opt.update(g, state, p, lr=lr)[0])
    for lr in (0.5, 0.25):
        assert step(mlc.ones(3), mlc.ones(3), lr).tolist() == [1 - lr] * 3
    assert len(step.entries) == 1


@pytest.mark.parametrize("make", [
    lambda: O.SGD(lr=-1), lambda: O.AdamW(betas=(1.0, 0.9)), lambda: O.SGD(nesterov=True),
    lambda: O.RMSprop(alpha=-1), lambda: S.cosine(1.0, 0), lambda: S.sequential([S.constant(1.0)], [3]),
    lambda: S.one_cycle(1.0, 10, div_factor=0.0), lambda: O.Accumulated(O.SGD(), 0)])
def test_settings_are_checked(make: Callable[[], Any]) -> None:
    with pytest.raises(UserError, match="MLC0383"):
        make()


# -- gradients and averages -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_clipping(limit: float) -> None:
    grads = random_tree(np.random.default_rng(2))
    theirs = [torch.nn.Parameter(torch.zeros(s)) for s in SHAPES.values()]
    for p, g in zip(theirs, grads.values()):
        p.grad = torch.from_numpy(g.numpy().copy())
    expected = torch.nn.utils.clip_grad_norm_(theirs, limit)
    clipped, norm = mlc.compile(lambda g: O.clip_by_global_norm(g, limit))(grads)
    assert norm.item() == pytest.approx(expected.item(), rel=1e-6)
    for p, g in zip(theirs, clipped.values()):
        torch.testing.assert_close(torch.from_numpy(g.numpy()), p.grad)
    assert max(abs(x).max() for x in (g.numpy() for g in O.clip_by_value(grads, 0.1).values())) == np.float32(0.1)


def test_accumulation_is_one_step_on_the_mean() -> None:
    rng = np.random.default_rng(3)
    params = random_tree(rng)
    grads = [random_tree(rng) for _ in range(6)]
    plain, many = O.AdamW(lr=0.1), O.Accumulated(O.AdamW(lr=0.1), 3)
    a, state_a = params, plain.init(params)
    for i in (0, 3):
        mean = tree.map(lambda x, y, z: (x + y + z) / 3, *grads[i: i + 3])
        a, state_a = plain.update(mean, state_a, a)
    b, state_b = params, many.init(params)
    step = mlc.compile(many.update)
    for i, g in enumerate(grads):
        b, state_b = step(g, state_b, b)
        assert i >= 2 or all((b[n].numpy() == params[n].numpy()).all() for n in b)
    for n in a:
        np.testing.assert_allclose(a[n].numpy(), b[n].numpy(), rtol=1e-6)


def test_moving_average() -> None:
    model = nn.Linear(2, 2)
    average = O.MovingAverage(0.9)
    smooth = average.init(model)
    moved = tree.map(lambda p: p + 1, model)
    smooth = mlc.compile(average.update)(smooth, moved)
    for p, q in zip(smooth.parameters(), model.parameters()):
        np.testing.assert_allclose(p.numpy(), q.numpy() + 0.1, rtol=1e-5)
    assert math.isclose(average.decay, 0.9)
