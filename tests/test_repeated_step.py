"""Steps of optimizers that hold parameters: those after the first are one call of their code, unless something changed.

What they compute is compared with steps that find out everything anew.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.ir.diag import UserError
from mlc.optim.repeated_step import RepeatedStep

O = mlc.optim
KINDS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda p: O.SGD(p, lr=0.1), "momentum": lambda p: O.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda p: O.Adam(p, lr=0.1), "amsgrad": lambda p: O.AdamW(p, lr=0.1, amsgrad=True),
    "rmsprop": lambda p: O.RMSprop(p, lr=0.1, centered=True, momentum=0.5)}


def parameters() -> list[mlc.Tensor]:
    rng = np.random.default_rng(0)
    return [mlc.tensor(rng.standard_normal(shape).astype(np.float32)).requires_grad_() for shape in ((2, 3), (3,))]


def give_gradients(params: Sequence[mlc.Tensor], seed: int) -> None:
    rng = np.random.default_rng(seed)
    for p in params:
        p.grad = mlc.tensor(rng.standard_normal(p.shape).astype(np.float32))


def bits(opt: Any, params: Sequence[mlc.Tensor]) -> list[bytes]:
    held = [x for s in opt.state_dict()["state"].values() for x in s.values()]
    return [np.asarray(x.detach() if isinstance(x, mlc.Tensor) else x).tobytes() for x in (*params, *held)]


class Steps:
    """An optimizer whose steps may be repeated beside one whose steps never are."""

    def __init__(self, kind: str) -> None:
        self.params, self.plain = parameters(), parameters()
        self.opt, self.anew = KINDS[kind](self.params), KINDS[kind](self.plain)
        self.repeated = list[bool]()

    def step(self, seed: int) -> None:
        give_gradients(self.params, seed)
        give_gradients(self.plain, seed)
        self.opt.step()
        self.anew._repeated.clear()
        self.anew.step()
        assert bits(self.opt, self.params) == bits(self.anew, self.plain)

    def both(self, change: Callable[[Any, Any], None]) -> None:
        change(self.opt, self.params)
        change(self.anew, self.plain)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each step that might be one call was."""
    found, run = list[bool](), RepeatedStep.run

    def noted(steps: RepeatedStep, *args: Any) -> bool:
        found.append(run(steps, *args))
        return found[-1]

    monkeypatch.setattr(RepeatedStep, "run", noted)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_steps_after_the_first_are_repeated(kind: str, ran: list[bool]) -> None:
    steps = Steps(kind)
    for seed in range(5):
        steps.step(seed)
    assert ran == [True] * 4


def load(opt: Any, params: Any) -> None:
    opt.load_state_dict(copy.deepcopy(opt.state_dict()))


CHANGES: dict[str, tuple[bool, Callable[[Any, Any], None]]] = {
    "learning rate": (True, lambda opt, params: opt.param_groups[0].update(lr=0.03)),
    "momentum": (False, lambda opt, params: opt.param_groups[0].update(betas=(0.8, 0.99))),
    "weight decay": (False, lambda opt, params: opt.param_groups[0].update(weight_decay=0.1)),
    "a view of a parameter": (True, lambda opt, params: opt.state[params[0]].update(view=params[0].detach())),
    "a loaded state": (False, load),
    "another slot": (False, lambda opt, params: opt.state[params[0]].update(exp_avg=mlc.zeros(2, 3))),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_between_steps_is_seen(what: str, ran: list[bool]) -> None:
    repeats, change = CHANGES[what]
    steps = Steps("adam")
    for seed in range(3):
        steps.step(seed)
    steps.both(change)
    ran.clear()
    steps.step(3)
    assert ran == [repeats]
    steps.step(4)


def test_parameters_without_a_gradient_stay(ran: list[bool]) -> None:
    steps = Steps("momentum")
    steps.step(0)
    steps.step(1)
    before = steps.params[1].detach().numpy().copy()
    for params, opt in ((steps.params, steps.opt), (steps.plain, steps.anew)):
        give_gradients(params, 2)
        params[1].grad = None
        opt.step()
    assert ran[-1] is False and np.array_equal(steps.params[1].detach(), before)
    assert bits(steps.opt, steps.params) == bits(steps.anew, steps.plain)


def test_elements_that_others_hold_are_not_overwritten(ran: list[bool]) -> None:
    params = parameters()
    opt = KINDS["adam"](params)
    held = []
    for seed in range(6):
        give_gradients(params, seed)
        opt.step()
        held += [(p._array, np.array(p._array)) for p in params]
    assert ran == [True] * 5 and all(np.array_equal(x, copied) for x, copied in held)


def test_a_bad_learning_rate_is_refused() -> None:
    steps = Steps("sgd")
    steps.step(0)
    steps.step(1)
    steps.opt.param_groups[0]["lr"] = -1.0
    give_gradients(steps.params, 2)
    with pytest.raises(UserError, match="lr"):
        steps.opt.step()


def test_a_compiled_step_leaves_the_repeated_steps_alone() -> None:
    """Optimisers that have taken no step, or an eager one, step within compiled functions as before."""
    for eager_steps in (0, 2):
        w = mlc.ones(3, requires_grad=True)
        optimizer = mlc.optim.SGD([w], lr=0.5)

        def step(w: Any = w, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()

        for run in [step] * eager_steps + [mlc.compile(step)] * 2:
            run()
        assert w.tolist() == [0.0] * 3
