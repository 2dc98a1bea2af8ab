"""Optimizers of PyTorch's kind, compared with the same classes of PyTorch: parameters and a dict handed on, a `step` of
their own; and hooks on steps."""

from __future__ import annotations

import copy
import io
import math
from typing import Any

import numpy as np
import pytest
import torch

import mlc
from mlc.ir.diag import UserError

X = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)


def descent(lib: Any) -> Any:
    """An optimizer with momentum and a count of its steps, of either library."""
    class Descent(lib.optim.Optimizer):  # type: ignore[misc]
        def __init__(self, params: Any, lr: float = 0.1, decay: float = 0.5) -> None:
            super().__init__(params, {"lr": lr, "decay": decay})

        @lib.no_grad()  # type: ignore[untyped-decorator]
        def step(self, closure: Any = None) -> Any:
            loss = closure() if closure is not None else None
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state = self.state[p]
                    if len(state) == 0:
                        state["step"] = 0
                        state["mean"] = lib.zeros_like(p)
                    state["step"] += 1
                    state["mean"].mul_(group["decay"]).add_(p.grad, alpha=1 - group["decay"])
                    p.data.add_(state["mean"] / (1 - group["decay"] ** state["step"]), alpha=-group["lr"])
            return loss

    return Descent


def functional(lib: Any) -> Any:
    """An optimizer whose step puts other values into the state, in place of changing them."""
    class Functional(lib.optim.Optimizer):  # type: ignore[misc]
        def __init__(self, params: Any, lr: float = 0.1, decay: float = 0.5) -> None:
            super().__init__(params, {"lr": lr, "decay": decay})

        @lib.no_grad()  # type: ignore[untyped-decorator]
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    if not state:
                        state.update(step=0, mean=lib.zeros_like(p), last=lib.zeros_like(p))
                    state["step"] = state["step"] + 1
                    state["mean"] = 0.5 * state["mean"] + 0.5 * p.grad + 0.1 * state["last"]
                    state["last"] = p.grad.clone()
                    p.sub_(state["mean"] / (1 - 0.5 ** state["step"]), alpha=group["lr"])
            if "all" not in self.state:
                self.state["all"] = {"steps": 3}

    return Functional


def trained(lib: Any, compile: Any = None, cls: Any = None) -> tuple[Any, Any, Any]:
    """The optimizer, its parameter, and a function that makes a step, after three steps under a scheduler."""
    w = lib.ones(3).requires_grad_()
    opt = (cls or descent(lib))([{"params": [w], "decay": 0.75}], lr=0.2)
    scheduler = lib.optim.lr_scheduler.StepLR(opt, 2)
    x = lib.from_numpy(X)

    def step() -> Any:
        opt.zero_grad()
        loss = ((x @ w - 1) ** 2).mean()
        loss.backward()
        opt.step()
        return loss

    step = compile(step) if compile is not None else step
    for _ in range(3):
        step()
        scheduler.step()
    return opt, w, step


@pytest.mark.parametrize("compile", [None, mlc.compile])
def test_a_step_of_its_own(compile: Any) -> None:
    opt, w, _ = trained(mlc, compile)
    expected, v, _ = trained(torch)
    np.testing.assert_allclose(w.detach().numpy(), v.detach().numpy(), rtol=1e-5)
    assert int(opt.state[w]["step"]) == 3 and opt.param_groups[0]["lr"] == expected.param_groups[0]["lr"]
    assert opt.defaults == expected.defaults and set(opt.state_dict()["state"][0]) == {"step", "mean"}
    assert isinstance(opt, mlc.optim.Optimizer)
    assert repr(opt).startswith("Descent (\nParameter Group 0\n    decay: 0.75")


def test_the_state_is_saved_and_loaded() -> None:
    opt, w, step = trained(mlc)
    file = io.BytesIO()
    mlc.save(opt.state_dict(), file)
    file.seek(0)
    other = descent(mlc)([v := w.detach().clone().requires_grad_()])
    other.load_state_dict(mlc.load(file))
    step()
    v.grad = w.grad
    other.step()
    assert w.tolist() == v.tolist() and other.param_groups[0]["decay"] == 0.75
    copied = copy.deepcopy(opt)
    assert copied.state[copied.param_groups[0]["params"][0]]["step"] == 4


def test_the_first_step_of_a_compiled_function_runs_as_python() -> None:
    w = mlc.ones(3, requires_grad=True)
    opt = descent(mlc)([w])

    def step() -> None:
        (w * w).sum().backward()
        opt.step()

    with pytest.raises(UserError, match=r"MLC0996.*the first step of Descent"):
        mlc.lower(step)
    compiled = mlc.compile(step)
    compiled()
    assert not compiled.compiled.entries and type(opt.state[w]["step"]) is int
    compiled()
    compiled()
    assert len(compiled.compiled.entries) == 1 and opt.state[w]["step"].item() == 3


def test_a_subclass_of_an_optimizer_takes_parameters_as_it_does() -> None:
    def decoupled(lib: Any) -> Any:
        class Decoupled(lib.optim.AdamW):  # type: ignore[misc]
            def __init__(self, params: Any, lr: float = 1e-2, **settings: Any) -> None:
                super().__init__(params, lr=lr, weight_decay=0.1, foreach=False, **settings)
                self.steps = 0

            def step(self, closure: Any = None) -> Any:
                self.steps += 1
                return super().step(closure)

        return lambda params, lr: Decoupled([p for group in params for p in group["params"]], lr)

    opt, w, _ = trained(mlc, None, decoupled(mlc))
    _, v, _ = trained(torch, None, decoupled(torch))
    np.testing.assert_allclose(w.detach().numpy(), v.detach().numpy(), rtol=1e-5)
    assert opt.steps == 3 and opt.param_groups[0]["foreach"] is False


def test_an_optimizer_without_a_step() -> None:
    class Nothing(mlc.optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {})  # type: ignore[arg-type]

    with pytest.raises(NotImplementedError, match="Nothing has no step"):
        Nothing([mlc.ones(2, requires_grad=True)]).step()


@pytest.mark.parametrize("make", [lambda lib, w: lib.optim.SGD([w], 0.5), lambda lib, w: descent(lib)([w], 0.5)])
def test_hooks_on_steps(make: Any) -> None:
    found = []
    for lib in (mlc, torch):
        w, seen = lib.ones(2).requires_grad_(), list[Any]()
        opt = make(lib, w)

        def before(optimizer: Any, args: Any, keywords: Any, w: Any = w, seen: Any = seen) -> None:
            seen.append(("before", w.tolist(), len(args), len(keywords)))

        def after(optimizer: Any, args: Any, keywords: Any, w: Any = w, seen: Any = seen, opt: Any = opt) -> None:
            seen.append(("after", w.tolist(), optimizer is opt))

        first, second = opt.register_step_pre_hook(before), opt.register_step_post_hook(after)
        for _ in range(2):
            opt.zero_grad()
            w.sum().backward()
            opt.step()
            first.remove()
        second.remove()
        found.append(seen)
        assert len(seen) == 3 and math.isclose(seen[1][1][0], 0.5)
    assert found[0] == found[1]


def test_a_step_may_put_other_values_into_the_state() -> None:
    wanted, w, _ = trained(torch, cls=functional(torch))
    for compile in (None, mlc.compile):
        opt, ours, _ = trained(mlc, compile, functional(mlc))
        np.testing.assert_allclose(ours.detach().numpy(), w.detach().numpy(), rtol=1e-5)
        for name in ("mean", "last"):
            np.testing.assert_allclose(opt.state[ours][name].numpy(), wanted.state[w][name].numpy(), rtol=1e-4)
        assert opt.state_dict()["state"]["all"] == {"steps": 3}


def test_hooks_on_a_step_that_calls_that_of_its_base_run_once() -> None:
    class Own(mlc.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    w = mlc.ones(1).requires_grad_()
    opt, calls = Own([w], lr=0.1), list[int]()
    opt.register_step_post_hook(lambda *_: calls.append(1))
    w.sum().backward()
    opt.step()
    assert calls == [1]
