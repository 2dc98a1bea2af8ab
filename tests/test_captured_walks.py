"""Random walks of a compiled training step beside the same step run by Python: whatever happens between two calls."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
import mlc.nn.functional as F
from mlc import nn
from mlc.ir.diag import Error

Action = Callable[["Training", int], Any]
OPTIMIZERS: tuple[Callable[[Any], Any], ...] = (
    lambda p: mlc.optim.AdamW(p, lr=0.05), lambda p: mlc.optim.SGD(p, lr=0.1, momentum=0.9),
    lambda p: mlc.optim.Adam(p, lr=0.05, amsgrad=True), lambda p: mlc.optim.RMSprop(p, lr=0.01))


class Training:
    """A model with a step that also changes a table through views; arrays and views that somebody holds."""

    def __init__(self, compiled: bool, rng: random.Random) -> None:
        mlc.manual_seed(0)
        norm = [nn.BatchNorm1d(5)] if rng.random() < 0.4 else []
        drop = [nn.Dropout(0.3)] if rng.random() < 0.4 else []
        self.model = nn.Sequential(nn.Linear(3, 5), *norm, nn.Tanh(), *drop, nn.Linear(5, 2))
        self.optimizer = rng.choice(OPTIMIZERS)(self.model.parameters())
        self.table, self.held, self.views = mlc.zeros(2, 3), list[Any](), list[Any]()

        def step(x: Any, y: Any) -> Any:
            self.optimizer.zero_grad()
            out = self.model(x)
            loss = F.mse_loss(out, y)
            loss.backward()
            self.optimizer.step()
            self.table.add_(x[:2])
            self.table[0].mul_(0.5)
            return loss, out

        self.step: Any = mlc.compile(step) if compiled else step

    def parameter(self, number: int) -> Any:
        return list(self.model.parameters())[number % 4]

    def run(self, number: int) -> list[Any]:
        rng = np.random.default_rng(number)
        mlc.manual_seed(number)
        return [*self.step(*(mlc.tensor(rng.normal(size=(6, n)).astype(np.float32)) for n in (3, 2)))]

    def values(self) -> list[Any]:
        """Copies, which share no memory with what they are of: that would be another reason for a slow call."""
        floats = [x for x in (*self.model.parameters(), *self.model.buffers(), self.table, *self.views)
                  if x.dtype.is_floating_point]
        with mlc.no_grad():
            gradients = [None if p.grad is None else (p.grad + 0).numpy() for p in self.model.parameters()]
            return [*((x + 0).numpy() for x in floats), *gradients, *(x.copy() for x in self.held)]

    def set(self, name: str, value: Any) -> None:
        if name in self.optimizer.param_groups[0]:
            self.optimizer.param_groups[0][name] = value

    def drop(self) -> None:
        self.held.clear()
        self.views.clear()
        gc.collect()


def _data(t: Training, n: int) -> None:
    t.parameter(n).data = t.parameter(n).data * 0.5


ACTIONS: tuple[Action, ...] = (
    lambda t, n: t.set("lr", (0.01, 0.2, 1, 0)[n % 4]), lambda t, n: t.set("weight_decay", (0.0, 0.1)[n % 2]),
    lambda t, n: t.set("betas", ((0.8, 0.9), (0.5, 0.99))[n % 2]), lambda t, n: setattr(t.parameter(n), "grad", None),
    lambda t, n: t.parameter(n).grad is not None and t.parameter(n).grad.mul_(3), lambda t, n: t.parameter(n).mul_(0.9),
    _data, lambda t, n: t.held.append(t.parameter(n).detach().numpy()), lambda t, n: t.held.append(t.table.numpy()),
    lambda t, n: t.views.append(t.table[0]), lambda t, n: t.views.append(t.parameter(n).detach()),
    lambda t, n: t.views and t.views[-1].mul_(1.5), lambda t, n: t.drop(), lambda t, n: t.table.copy_(mlc.ones(2, 3)),
    lambda t, n: t.views.extend([] if (g := t.parameter(n).grad) is None else [g]),
    lambda t, n: t.parameter(n).requires_grad_(n % 3 > 0), lambda t, n: t.model.train(n % 2 > 0),
    lambda t, n: t.model.load_state_dict({k: v * 0.9 if v.dtype.is_floating_point else v
                                          for k, v in t.model.state_dict().items()}))


def taken(training: Training, action: Action | None, number: int) -> Any:
    """The results of a step, or of an action; the class of an error."""
    try:
        if action is None:
            return training.run(number)
        with mlc.no_grad():
            action(training, number)
        return []
    except Error as error:
        return type(error)


@pytest.mark.parametrize("seed", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in range(4, 40))])
def test_whatever_happens_between_two_steps(seed: int) -> None:
    sides = [Training(compiled, random.Random(seed)) for compiled in (False, True)]
    rng = random.Random(seed)
    for k in range(30):
        action, number = None if k < 3 or rng.random() < 0.4 else rng.choice(ACTIONS), rng.randrange(99)
        results = [taken(side, action, number) for side in sides]
        if isinstance(results[0], type):
            assert results[0] is results[1]
            break
        plain, compiled = ([*side.values(), *(x.detach().numpy() for x in found)]
                           for side, found in zip(sides, results))
        for i, (a, b) in enumerate(zip(plain, compiled, strict=True)):
            assert (a is None) == (b is None), (k, i)
            if a is not None:
                np.testing.assert_allclose(b, a, rtol=2e-3, atol=2e-4, err_msg=f"{k} {i}")
    assert seed != 3 or sum(entry.fast_calls.value for entry in sides[1].step.entries) > 0
