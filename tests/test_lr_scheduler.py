"""Learning-rate schedulers, compared with PyTorch's step by step."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import mlc
from mlc.ir.diag import UserError

O: Any = mlc.optim
S: Any = O.lr_scheduler
Make = Callable[[Any, Any], Any]

SCHEDULERS: dict[str, Make] = {
    "LambdaLR": lambda L, o: L.LambdaLR(o, lambda t: 0.9**t),
    "LambdaLR by groups": lambda L, o: L.LambdaLR(o, [lambda t: 1 / (1 + t), lambda t: t]),
    "MultiplicativeLR": lambda L, o: L.MultiplicativeLR(o, lambda t: 0.5 + 0.1 * t),
    "StepLR": lambda L, o: L.StepLR(o, 3, 0.3), "MultiStepLR": lambda L, o: L.MultiStepLR(o, [8, 2, 5, 5], 0.5),
    "ConstantLR": lambda L, o: L.ConstantLR(o, 0.2, 4), "LinearLR": lambda L, o: L.LinearLR(o, 0.1, 0.8, 7),
    "LinearLR to 0": lambda L, o: L.LinearLR(o, 1.0, 0.0, 4), "ExponentialLR": lambda L, o: L.ExponentialLR(o, 0.8),
    "PolynomialLR": lambda L, o: L.PolynomialLR(o, 6, 2.5), "PolynomialLR root": lambda L, o: L.PolynomialLR(o, 6, 0.5),
    "CosineAnnealingLR": lambda L, o: L.CosineAnnealingLR(o, 4, 0.01),
    "CosineAnnealingLR of 1": lambda L, o: L.CosineAnnealingLR(o, 1),
    "CosineAnnealingWarmRestarts": lambda L, o: L.CosineAnnealingWarmRestarts(o, 2, 2, 0.01),
    "CosineAnnealingWarmRestarts equal": lambda L, o: L.CosineAnnealingWarmRestarts(o, 3),
    "CyclicLR": lambda L, o: L.CyclicLR(o, 0.1, 0.7, 3), "CyclicLR 2": lambda L, o: L.CyclicLR(
        o, [0.1, 0.2], [0.5, 0.4], 2, 3, "triangular2", base_momentum=[0.5, 0.6], max_momentum=[0.7, 0.8]),
    "CyclicLR exp": lambda L, o: L.CyclicLR(o, 0.1, 0.7, 2, mode="exp_range", gamma=0.9, cycle_momentum=False),
    "CyclicLR function": lambda L, o: L.CyclicLR(o, 0.1, 0.7, 2, scale_fn=lambda n: 1 / n),
    "OneCycleLR": lambda L, o: L.OneCycleLR(o, 0.5, 12), "OneCycleLR linear": lambda L, o: L.OneCycleLR(
        o, [0.5, 0.2], epochs=3, steps_per_epoch=5, pct_start=0.5, anneal_strategy="linear", div_factor=5),
    "OneCycleLR in three": lambda L, o: L.OneCycleLR(o, 0.5, 14, three_phase=True, pct_start=0.4),
    "SequentialLR": lambda L, o: L.SequentialLR(
        o, [L.LinearLR(o, 0.1, 1.0, 3), L.CosineAnnealingLR(o, 5), L.StepLR(o, 2, 0.5)], [3, 8]),
    "SequentialLR restarts": lambda L, o: L.SequentialLR(
        o, [L.MultiplicativeLR(o, lambda t: 0.9), L.CosineAnnealingWarmRestarts(o, 3)], [4]),
    "ChainedScheduler": lambda L, o: L.ChainedScheduler(
        [L.ConstantLR(o, 0.1, 4), L.ExponentialLR(o, 0.9), L.CosineAnnealingLR(o, 20)]),
}
OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {"SGD": ("SGD", {"momentum": 0.9}), "Adam": ("Adam", {})}


def optimizer(space: Any, kind: str = "SGD") -> Any:
    """An optimizer of two groups, one of them with a rate of its own."""
    name, settings = OPTIMIZERS[kind]
    a, b = (space.ones(2, requires_grad=True) for _ in range(2))
    return getattr(space.optim, name)([{"params": [a]}, {"params": [b], "lr": 0.02}], lr=0.3, **settings)


def settings_of(opt: Any) -> list[float]:
    return [x for g in opt.param_groups
            for x in (g["lr"], g["initial_lr"], *(g["betas"] if "betas" in g else [g["momentum"]]))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("name", SCHEDULERS)
def test_rates_of_each_step(name: str, kind: str) -> None:
    """Those after a state was saved and loaded half-way too."""
    ours, theirs = optimizer(mlc, kind), optimizer(torch, kind)
    mine, other = SCHEDULERS[name](S, ours), SCHEDULERS[name](torch.optim.lr_scheduler, theirs)
    for step in range(12):
        assert settings_of(ours) == pytest.approx(settings_of(theirs), rel=1e-9, abs=1e-17)
        assert mine.get_last_lr() == [g["lr"] for g in ours.param_groups]
        assert mine.last_epoch == getattr(other, "last_epoch", step)
        if step == 5:
            again = optimizer(mlc, kind)
            fresh = SCHEDULERS[name](S, again)
            again.load_state_dict(ours.state_dict())
            fresh.load_state_dict(mine.state_dict())
            ours, mine = again, fresh
        mine.step()
        other.step()
    assert mine.base_lrs == pytest.approx(getattr(other, "base_lrs", [0.3, 0.02]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n in SCHEDULERS if not n.startswith(("Seq", "Chain", "Cyc", "One"))])
@pytest.mark.parametrize("last", [3, 4])
def test_going_on_from_an_epoch(name: str, last: int) -> None:
    """Rates of steps after `last_epoch`, and of an epoch that is named."""
    both = []
    for space, L in (mlc, S), (torch, torch.optim.lr_scheduler):
        opt = optimizer(space)
        for group in opt.param_groups:
            group["initial_lr"] = group["lr"] * 2
        make = SCHEDULERS[name]
        scheduler = make(_Resumed(L, last), opt)
        rates = [scheduler.get_last_lr()]
        for epoch in (None, None, 7, 2, None):
            scheduler.step(epoch)
            rates.append(scheduler.get_last_lr())
        both.append([x for row in rates for x in row] + [scheduler.last_epoch])
    if name != "CosineAnnealingWarmRestarts":
        assert both[0] == pytest.approx(both[1], rel=1e-9, abs=1e-17)
    else:                                                  # PyTorch's counts one restart at most before `last_epoch`
        assert both[0][6:] == pytest.approx(both[1][6:], rel=1e-9)


class _Resumed:
    """Schedulers that go on after an epoch."""

    def __init__(self, space: Any, last: int) -> None:
        self.space, self.last = space, last

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **keywords: getattr(self.space, name)(*args, **keywords, last_epoch=self.last)


LOSSES = [5.0, 4.0, 4.0, 3.99999, 4.1, 4.0, 3.0, math.nan, 3.0, 3.0, 3.0, 2.9, 2.95, 3.0, 3.0, 3.0]


@pytest.mark.parametrize("settings", [
    {"patience": 1}, {"mode": "max", "patience": 2, "factor": 0.5}, {"threshold_mode": "abs", "threshold": 0.05},
    {"mode": "max", "threshold_mode": "abs", "patience": 0}, {"patience": 0, "cooldown": 2, "min_lr": [0.01, 0.001]},
    {"patience": 0, "eps": 0.01}], ids=str)
def test_reduction_on_a_plateau(settings: dict[str, Any]) -> None:
    ours, theirs = optimizer(mlc), optimizer(torch)
    mine = S.ReduceLROnPlateau(ours, **settings)
    other = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **settings)
    for step, loss in enumerate(LOSSES):
        if step == 6:
            fresh = S.ReduceLROnPlateau(ours)
            fresh.load_state_dict(mine.state_dict())
            mine = fresh
        mine.step(mlc.tensor(loss, dtype=mlc.float64))
        other.step(loss)
        assert mine.get_last_lr() == pytest.approx(other.get_last_lr()) and mine.in_cooldown == other.in_cooldown
        assert (mine.best, mine.num_bad_epochs, mine.last_epoch) == (other.best, other.num_bad_epochs, other.last_epoch)


def test_objects_that_are_called_are_part_of_the_state() -> None:
    class Warm:
        def __init__(self, over: int) -> None:
            self.over = over

        def __call__(self, epoch: int) -> float:
            return min(1.0, epoch / self.over)

    saved = S.LambdaLR(optimizer(mlc), [Warm(4), abs]).state_dict()
    loaded = S.LambdaLR(optimizer(mlc), [Warm(2), abs])
    loaded.load_state_dict(saved)
    assert saved["lr_lambdas"] == [{"over": 4}, None] and loaded.lr_lambdas[0](2) == 0.5


def test_combined_schedulers_at_any_place_begin_at_epoch_0() -> None:
    """PyTorch's cannot be begun anew, and as the first one they decay at epoch 0."""
    opt = optimizer(mlc)
    first = S.ChainedScheduler([S.ConstantLR(opt, 0.1, 2), S.ExponentialLR(opt, 0.9)])
    assert S.SequentialLR(opt, [first, S.StepLR(opt, 2)], [5]).get_last_lr()[0] == pytest.approx(0.03)
    opt = optimizer(mlc)
    chained = S.ChainedScheduler([S.ConstantLR(opt, 0.5, 1), S.ExponentialLR(opt, 0.5)])
    nested = S.SequentialLR(opt, [S.ConstantLR(opt, 0.1, 9), S.ExponentialLR(opt, 0.1)], [2])
    scheduler = S.SequentialLR(opt, [S.ConstantLR(opt, 0.7, 9), chained, nested], [1, 3])
    rates = []
    for _ in range(7):
        rates.append(scheduler.get_last_lr()[0] / 0.3)
        scheduler.step()
    assert rates == pytest.approx([0.7, 0.5, 0.5, 0.1, 0.1, 1.0, 0.1])


def test_a_changing_momentum_compiles_once() -> None:
    for kind in OPTIMIZERS:
        opt = optimizer(mlc, kind)
        scheduler = S.OneCycleLR(opt, 0.1, 6)
        momenta = set()
        for _ in range(5):
            for p in (p for group in opt.param_groups for p in group["params"]):
                p.grad = mlc.ones(2)
            opt.step()
            scheduler.step()
            momenta.add(str(settings_of(opt)))
        update, = opt._updates.values()
        assert len(momenta) == 5 and len(update.compiled.entries) == 1


@pytest.mark.parametrize("code, mistake", [
    ("MLC0440", lambda o: S.StepLR(O.SGD(0.1), 3)), ("MLC0440", lambda o: S.StepLR(3, 3)),
    ("MLC0440", lambda o: S.CyclicLR(O.SGD([mlc.ones(1)], lr=lambda step: 0.1), 0.1, 0.2)),
    ("MLC0441", lambda o: S.StepLR(o, 0)), ("MLC0441", lambda o: S.LambdaLR(o, [abs])),
    ("MLC0441", lambda o: S.MultiplicativeLR(o, 3)), ("MLC0441", lambda o: S.LinearLR(o, 0.0)),
    ("MLC0441", lambda o: S.OneCycleLR(o, 0.1, 5, div_factor=0.0)), ("MLC0441", lambda o: S.ConstantLR(o, 2.0)),
    ("MLC0441", lambda o: S.OneCycleLR(o, 0.1, epochs=3)), ("MLC0441", lambda o: S.OneCycleLR(o, [0.1, 0.1, 0.1], 5)),
    ("MLC0441", lambda o: S.CyclicLR(o, 0.1, 1, mode="a")),
    ("MLC0441", lambda o: S.CyclicLR(O.Adadelta([mlc.ones(1)]), 0.1, 1)),
    ("MLC0441", lambda o: S.CosineAnnealingWarmRestarts(o, 2).step(-1)),
    ("MLC0441", lambda o: S.SequentialLR(o, [S.StepLR(o, 2)], [3])), ("MLC0441", lambda o: S.ChainedScheduler([])),
    ("MLC0441", lambda o: S.ChainedScheduler([S.ReduceLROnPlateau(o), S.StepLR(o, 3)])),
    ("MLC0441", lambda o: S.ChainedScheduler([S.StepLR(o, 3), S.StepLR(optimizer(mlc), 3)])),
    ("MLC0441", lambda o: S.ReduceLROnPlateau(o, mode="least")), ("MLC0421", lambda o: S.StepLR(o, "3")),
    ("MLC0421", lambda o: S.ReduceLROnPlateau(o).step("loss")),
    ("MLC0421", lambda o: S.ReduceLROnPlateau(o).step(None)),
    ("MLC0321", lambda o: S.ReduceLROnPlateau(o).step()), ("MLC0442", lambda o: S.StepLR(o, 3, last_epoch=2)),
    ("MLC0443", lambda o: [s.step() for s in [S.OneCycleLR(o, 0.1, 2)] * 3]),
    ("MLC0444", lambda o: S.StepLR(o, 3).load_state_dict(S.ExponentialLR(o, 0.5).state_dict())),
    ("MLC0444", lambda o: S.StepLR(o, 3).load_state_dict(
        S.StepLR(O.SGD([mlc.ones(1)], lr=0.1), 3).state_dict())), ("MLC0448", lambda o: S.LRScheduler(o))])
def test_mistakes(code: str, mistake: Callable[[Any], Any]) -> None:
    with pytest.raises(UserError, match=code) as caught:
        mistake(optimizer(mlc))
    assert caught.value.loc.file == __file__ and (caught.value.hint or len(str(caught.value)) > 40)


def rates_of_swa(T: Any, averaged_first: bool) -> list[float]:
    """Rates of a SequentialLR of two schedules, of which one is that of averaged models."""
    opt = T.optim.SGD([T.nn.Parameter(T.ones(2))], lr=0.4)
    parts = [T.optim.lr_scheduler.ExponentialLR(opt, gamma=0.9),
             T.optim.swa_utils.SWALR(opt, swa_lr=0.05, anneal_epochs=4, anneal_strategy="linear")]
    schedule = T.optim.lr_scheduler.SequentialLR(opt, parts[::-1] if averaged_first else parts, milestones=[2])
    rates = [schedule.get_last_lr()[0]]
    for _ in range(6):
        opt.step()
        schedule.step()
        rates.append(schedule.get_last_lr()[0])
    return rates


@pytest.mark.parametrize("averaged_first", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_schedules_of_averaged_models_count_their_own_steps(averaged_first: bool) -> None:
    assert rates_of_swa(mlc, averaged_first) == pytest.approx(rates_of_swa(torch, averaged_first))


def test_a_second_schedule_has_its_own_momentum() -> None:
    opt = mlc.optim.SGD([mlc.nn.Parameter(mlc.ones(2))], lr=0.1, momentum=0.9)
    for momentum in (0.95, 0.7):
        mlc.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.5, total_steps=10, max_momentum=momentum, base_momentum=0.5)
        assert opt.param_groups[0]["momentum"] == momentum
