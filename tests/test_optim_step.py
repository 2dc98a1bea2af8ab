"""Optimizers that hold parameters, compared with PyTorch's: `backward()` and `step()`."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import mlc
from mlc import nn
from mlc.ir.diag import UserAttributeError, UserError
from tests.execution import NATIVE

pytestmark = pytest.mark.usefixtures("execution")

O: Any = mlc.optim
U: Any = nn.utils
X = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)

OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.8, "nesterov": True}), ("SGD", {"lr": 0.1, "momentum": 0.8, "dampening": 0.3}),
    ("Adam", {"weight_decay": 0.1, "amsgrad": True, "maximize": True}), ("AdamW", {"lr": 0.1}),
    ("AdamW", {"betas": (0.8, 0.95), "weight_decay": 0.3, "maximize": True}), ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "maximize": True}), ("RAdam", {"weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("Adadelta", {"weight_decay": 0.1, "maximize": True}), ("Adafactor", {"weight_decay": 0.1, "maximize": True}),
    ("ASGD", {"t0": 2.0, "weight_decay": 0.1, "maximize": True}), ("Rprop", {"lr": 0.1, "maximize": True}),
]


def models() -> tuple[Any, Any]:
    """The same small model twice."""
    ours = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    theirs.load_state_dict({n: torch.tensor(p.numpy()) for n, p in ours.state_dict().items()})
    return ours, theirs


def step(model: Any, optimizer: Any, x: Any) -> None:
    optimizer.zero_grad()
    (model(x) ** 2).mean().backward()
    optimizer.step()


def both(pairs: list[tuple[Any, Any]], count: int = 5) -> None:
    """Make steps with two models and their optimizers, after which the parameters have to agree."""
    ours, theirs = pairs
    for _ in range(count):
        step(*ours, mlc.tensor(X))
        step(*theirs, torch.tensor(X))
    for p, q in zip(ours[0].parameters(), theirs[0].parameters(), strict=True):
        np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name, settings", OPTIMIZERS, ids=str)
def test_five_steps(name: str, settings: dict[str, Any]) -> None:
    ours, theirs = models()
    both([(ours, getattr(O, name)(ours.parameters(), **settings)),
          (theirs, getattr(torch.optim, name)(theirs.parameters(), **settings))])


@NATIVE
@pytest.mark.parametrize("compiled", [lambda f: f, mlc.compile])
def test_averages_of_several_parameters(compiled: Any) -> None:
    """The parameters share the weight of the average, which is one result for all."""
    def train(module: Any, compiled: Any) -> list[Any]:
        params = [module.nn.Parameter(module.tensor(np.full(shape, 0.5, np.float32)))
                  for shape in ((4, 8), (8,), (8, 3), (3,))]
        opt = module.optim.ASGD(params, lr=0.1, t0=2, lambd=0.01, weight_decay=0.1)

        def step() -> None:
            opt.zero_grad()
            sum((p * p).sum() for p in params).backward()
            opt.step()

        run = compiled(step)
        for _ in range(5):
            run()
        return [x.detach().numpy() for p in params for x in (p, opt.state[p]["ax"])]

    for theirs, ours in zip(train(torch, lambda f: f), train(mlc, compiled)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_lion_is_its_functional_update() -> None:
    """PyTorch has none."""
    ours, _ = models()
    optimizer, other = O.Lion(ours.parameters(), lr=0.01, weight_decay=0.1), O.Lion(0.01, weight_decay=0.1)
    held = copy.deepcopy(ours)
    state = other.init(held)
    for _ in range(3):
        step(ours, optimizer, mlc.tensor(X))
        held, state = other.update(mlc.grad(lambda m: (m(mlc.tensor(X)) ** 2).mean())(held), state, held)
    for p, q in zip(ours.parameters(), held.parameters(), strict=True):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-5, atol=1e-7)


# -- groups -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name, first, second", [
    ("SGD", {"momentum": 0.9}, {"lr": 0.01, "nesterov": True, "momentum": 0.5}), ("SGD", {}, {"momentum": 0.9}),
    ("SGD", {"momentum": 0.0, "weight_decay": 0.1}, {"maximize": True}),
    ("AdamW", {"betas": (0.5, 0.9), "lr": 0.02}, {"weight_decay": 0.0, "amsgrad": True}),
    ("RMSprop", {"centered": True}, {"momentum": 0.5, "alpha": 0.5})], ids=str)
def test_groups_have_settings_of_their_own(name: str, first: dict[str, Any], second: dict[str, Any]) -> None:
    """Also those that decide what the state is."""
    pairs = []
    for model, space in zip(models(), (O, torch.optim)):
        optimizer = getattr(space, name)([{"params": model[0].parameters(), **first}], lr=0.05)
        optimizer.add_param_group({"params": model[2].parameters(), **second})
        pairs.append((model, optimizer))
    both(pairs)


def test_settings_may_change_between_steps() -> None:
    pairs = [(model, space.SGD(model.parameters(), lr=0.1, momentum=0.9)) for model, space in
             zip(models(), (O, torch.optim))]
    for changed in ({"lr": 0.02}, {"momentum": 0.5, "weight_decay": 0.1}, {"momentum": 0.0}, {"nesterov": True,
                                                                                         "momentum": 0.7}):
        both(pairs, count=2)
        for _, optimizer in pairs:
            optimizer.param_groups[0].update(changed)
    both(pairs, count=2)
    pairs[0][1].param_groups[0]["lr"] = -1.0
    with pytest.raises(UserError, match="MLC0383"):
        pairs[0][1].step()


def test_the_state_that_a_new_setting_needs_is_made() -> None:
    pairs = [(model, space.SGD(model.parameters(), lr=0.1)) for model, space in zip(models(), (O, torch.optim))]
    both(pairs, count=2)
    for _, optimizer in pairs:
        optimizer.param_groups[0]["momentum"] = 0.9
    both(pairs)


def test_a_rate_may_be_a_tensor_or_a_schedule() -> None:
    for lr, rates in (mlc.tensor(0.5), [0.5, 0.5]), (lambda step: 0.5 / (1 + step), [0.5, 0.25]):
        w: Any = mlc.zeros(1, requires_grad=True)
        optimizer = O.SGD([w], lr=lr)
        for _ in rates:
            w.grad = mlc.ones(1)
            optimizer.step()
        assert w.item() == -sum(rates)


# -- what is not updated ----------------------------------------------------------------------------------------------
def test_parameters_without_a_gradient_stay() -> None:
    """They are not decayed either, and their updates are counted from their first gradient on."""
    found = []
    for space in (mlc, torch):
        a, b = (space.ones(2, requires_grad=True) for _ in range(2))
        optimizer = space.optim.Adam([a, b], lr=0.1, weight_decay=0.1)
        for i in range(4):
            optimizer.zero_grad()
            ((a * a).sum() + ((b * b).sum() if i % 2 else 0)).backward()
            assert (b.grad is None) == (i % 2 == 0)
            optimizer.step()
        found.append([a.detach().numpy(), b.detach().numpy()])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def test_gradients_are_reset_to_none_or_zeros() -> None:
    w, b = (mlc.ones(2, requires_grad=True) for _ in range(2))
    optimizer = O.SGD([w, b], lr=0.1)
    w.grad = mlc.ones(2)
    optimizer.zero_grad(set_to_none=False)
    assert (w.grad == 0).all() and b.grad is None
    optimizer.zero_grad()
    assert w.grad is None


def test_a_closure_computes_the_loss_anew() -> None:
    pairs = [(model, space.Adam(model.parameters(), lr=0.1), x) for model, space, x in
             zip(models(), (O, torch.optim), (mlc.tensor(X), torch.tensor(X)))]
    losses = []
    for model, optimizer, x in pairs:
        def closure(model: Any = model, optimizer: Any = optimizer, x: Any = x) -> Any:
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            return loss

        with mlc.no_grad(), torch.no_grad():
            losses.append([optimizer.step(closure).item() for _ in range(4)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4) and len(set(losses[0])) == 4


# -- states -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name, settings", [
    ("SGD", {"momentum": 0.9}), ("Adam", {"amsgrad": True}), ("NAdam", {}), ("RMSprop", {"centered": True}),
    ("Adagrad", {"initial_accumulator_value": 0.5}), ("Adadelta", {}), ("Lion", {})], ids=str)
def test_a_state_that_is_saved_and_loaded_goes_on_bit_for_bit(name: str, settings: dict[str, Any]) -> None:
    model, _ = models()
    optimizer = getattr(O, name)([{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 0.02}],
                                 **settings)
    for _ in range(2):
        step(model, optimizer, mlc.tensor(X))
    saved, again = copy.deepcopy(optimizer.state_dict()), copy.deepcopy(model)
    other = getattr(O, name)([{"params": again[0].parameters()}, {"params": again[2].parameters()}])
    other.load_state_dict(saved)
    assert other.param_groups[1]["lr"] == 0.02
    for _ in range(3):
        step(model, optimizer, mlc.tensor(X))
        step(again, other, mlc.tensor(X))
    for p, q in zip(model.parameters(), again.parameters(), strict=True):
        np.testing.assert_array_equal(p.numpy(), q.numpy())


def test_a_state_is_numbered_as_that_of_pytorch() -> None:
    found = []
    for model, space, x in zip(models(), (O, torch.optim), (mlc.tensor(X), torch.tensor(X))):
        optimizer = space.Adam([{"params": model[2].parameters()}, {"params": model[0].parameters()}])
        step(model, optimizer, x)
        state = optimizer.state_dict()
        found.append(([g["params"] for g in state["param_groups"]],
                      {n: sorted((name, tuple(getattr(v, "shape", ()))) for name, v in s.items())
                       for n, s in state["state"].items()}))
    assert found[0] == found[1]


def test_a_state_shares_memory_with_the_optimizer_and_not_with_those_that_load_it() -> None:
    w: Any = mlc.ones(2, requires_grad=True)
    optimizer = O.SGD([w], lr=0.1, momentum=0.5)
    w.grad = mlc.ones(2)
    optimizer.step()
    saved = optimizer.state_dict()
    other = O.SGD([w], lr=0.1, momentum=0.5)
    other.load_state_dict(saved)
    other.step()
    assert saved["state"][0]["momentum_buffer"].tolist() == [1, 1]
    optimizer.step()
    assert saved["state"][0]["momentum_buffer"].tolist() == [1.5, 1.5]


def test_an_iterator_of_named_parameters_is_taken() -> None:
    model, _ = models()
    optimizer = O.SGD(model.named_parameters(), lr=0.1)
    assert [id(p) for p in optimizer.param_groups[0]["params"]] == [id(p) for p in model.parameters()]
    assert O.SGD(params=model.parameters(), lr=0.1).param_groups[0]["lr"] == O.SGD(model.parameters(), 0.1).lr


def test_entries_of_groups_that_are_no_settings_are_kept() -> None:
    w: Any = mlc.ones(2, requires_grad=True)
    optimizer = O.AdamW([{"params": [w], "lr_scale": 0.5}], fused=True)
    assert optimizer.state_dict()["param_groups"][0]["lr_scale"] == 0.5 and optimizer.param_groups[0]["fused"]
    with pytest.raises(UserError, match="either all parameters have names or none"):
        optimizer.add_param_group({"params": [("b", mlc.ones(1, requires_grad=True))]})


def test_an_optimizer_prints_as_that_of_pytorch() -> None:
    printed = [repr(library.optim.Adagrad([library.ones(1, requires_grad=True)], lr=library.tensor(0.25)))
               for library in (mlc, torch)]
    assert printed[0] == printed[1] and f"{mlc.tensor(0.25)}" == "0.25"


def test_muon_trains_matrices() -> None:
    ours, theirs = (library.tensor(X, requires_grad=True) for library in (mlc, torch))
    for library, w in ((mlc, ours), (torch, theirs)):
        optimizer = library.optim.Muon([w], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (w ** 2).sum().backward()
            optimizer.step()
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), atol=5e-3)
    with pytest.raises(UserError, match="trains matrices"):
        O.Muon([mlc.ones(2, requires_grad=True)])


# -- gradients in place -----------------------------------------------------------------------------------------------
def gradients(dtype: str = "float32") -> list[tuple[Any, Any]]:
    """The same parameters and gradients for both; the last has none."""
    out = []
    for shape in ((3, 4), (5,), (), (2,)):
        g = np.asarray(np.random.default_rng(len(shape)).standard_normal(shape), np.float32)
        p = mlc.tensor(g, requires_grad=True).detach().to(getattr(mlc, dtype)).requires_grad_()
        q = torch.tensor(g).to(getattr(torch, dtype)).requires_grad_()
        if shape != (2,):
            p.grad, q.grad = p.detach() * 3, q.detach() * 3
        out.append((p, q))
    return out


def same(pairs: list[tuple[Any, Any]], rtol: float = 1e-5) -> None:
    for p, q in pairs:
        assert (p.grad is None) == (q.grad is None)
        if p.grad is not None:
            assert p.grad.dtype is p.dtype
            np.testing.assert_allclose(p.grad.float().numpy(), q.grad.float().numpy(), rtol=rtol)


@pytest.mark.parametrize("norm_type, max_norm", [(2.0, 0.5), (2.0, 1e3), (1, 0.5), (3.5, 0.5), (math.inf, 0.5),
                                                 (-math.inf, 0.01), (0.0, 0.5)])
def test_gradients_are_clipped_by_their_norm(norm_type: float, max_norm: float) -> None:
    pairs = gradients()
    held = pairs[0][0].grad
    ours, theirs = zip(*pairs)
    total = U.get_total_norm((p.grad for p in ours[:3]), norm_type)
    found = U.clip_grad_norm_(iter(ours), max_norm, norm_type)
    wanted = torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type)
    assert found.item() == total.item() == pytest.approx(wanted.item(), rel=1e-5) and pairs[0][0].grad is held
    same(pairs)


def test_gradients_are_clipped_by_a_norm_that_is_known_and_by_value() -> None:
    pairs = gradients()
    ours, theirs = zip(*pairs)
    for space, parameters, total in (U, ours, mlc.tensor(7.0)), (torch.nn.utils, theirs, torch.tensor(7.0)):
        space.clip_grads_with_norm_(parameters, 2.0, total)
        space.clip_grad_value_(parameters, 0.1)
        space.clip_grad_value_(parameters[1], 0.05)
        assert space.clip_grad_norm_(parameters[3], 1.0).item() == 0
    same(pairs)


def test_gradients_that_are_not_finite_stay() -> None:
    w: Any = mlc.ones(2, requires_grad=True)
    w.grad = mlc.tensor([math.inf, 1.0])
    with pytest.raises(UserError, match="MLC0445"):
        U.clip_grad_norm_(w, 1.0, error_if_nonfinite=True)
    assert w.grad.tolist() == [math.inf, 1]
    assert U.clip_grad_norm_(w, 1.0).item() == math.inf and math.isnan(w.grad[0].item())


def test_halves_are_summed_in_float32() -> None:
    pairs = gradients("float16")
    ours, theirs = zip(*pairs)
    total = U.clip_grad_norm_(ours, 0.5)
    assert total.dtype is mlc.float32
    assert total.item() == pytest.approx(torch.nn.utils.clip_grad_norm_(theirs, 0.5).item(), rel=1e-3)
    same(pairs, 2e-3)


def test_clipped_gradients_are_what_a_step_uses() -> None:
    w: Any = mlc.tensor([3.0, 4.0], requires_grad=True)
    optimizer = O.SGD([w], lr=1.0)
    (w * w / 2).sum().backward()
    U.clip_grad_norm_([w], 5e-6)
    optimizer.step()
    np.testing.assert_allclose(w.numpy(), [3, 4], rtol=2e-6)


def test_parameters_are_a_vector_and_back() -> None:
    model, theirs = models()
    vector = U.parameters_to_vector(model.parameters())
    wanted = torch.nn.utils.parameters_to_vector(theirs.parameters())
    np.testing.assert_array_equal(vector.detach().numpy(), wanted.detach().numpy())
    (vector * vector).sum().backward()
    assert all((p.grad == 2 * p.detach()).all() for p in model.parameters())
    first = model[0].weight
    U.vector_to_parameters(mlc.arange(float(len(wanted))), model.parameters())
    torch.nn.utils.vector_to_parameters(torch.arange(float(len(wanted))), theirs.parameters())
    assert model[0].weight is first
    for p, q in zip(model.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_array_equal(p.numpy(), q.detach().numpy())
    both([(model, O.SGD(model.parameters())), (theirs, torch.optim.SGD(theirs.parameters()))], count=1)


@pytest.mark.parametrize("name, settings", [
    ("Adam", {"amsgrad": True, "weight_decay": 0.1}), ("AdamW", {}), ("Adamax", {}), ("RAdam", {}), ("Adadelta", {}),
    ("RMSprop", {"centered": True, "momentum": 0.5})])
def test_complex_parameters_are_trained_as_their_parts(name: str, settings: dict[str, Any]) -> None:
    start = (X[:, :2] + 1j * X[:, 1:]).astype(np.complex64)
    found = []
    for lib in (mlc, torch):
        w: Any = lib.from_numpy(start.copy()).requires_grad_()
        real: Any = lib.ones(2).requires_grad_()
        opt = getattr(lib.optim, name)([w, real], lr=0.1, **settings)
        for _ in range(4):
            opt.zero_grad()
            ((w * w).abs().sum() + w.real.sum() + real.sum() ** 2).backward()
            opt.step()
        found.append((w.detach().numpy(), real.detach().numpy(), {n: tuple(x.shape) for n, x in opt.state[w].items()
                                                                   if n != "step"}))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-4)
    assert found[0][2] == found[1][2]


# -- mistakes ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("code, mistake", [
    ("MLC0780", lambda w: O.SGD([w], differentiable=True)),
    ("MLC0780", lambda w: O.Adam([w], foreach=True, fused=True)),
    ("MLC0383", lambda w: O.SGD(w)), ("MLC0383", lambda w: O.SGD([w], lr=mlc.ones(2))),
    ("MLC0383", lambda w: O.Adafactor([w], d=0.5)), ("MLC0383", lambda w: O.Rprop([w], etas=(1.0, 0.5))),
    ("MLC0383", lambda w: O.Muon([w], adjust_lr_fn="other")),
    ("MLC0378", lambda w: O.SGD([], lr=0.1)), ("MLC0378", lambda w: O.SGD([w, w], lr=0.1)),
    ("MLC0378", lambda w: O.SGD([w], lr=0.1).add_param_group({"params": w})), ("MLC0378", lambda w: O.SGD([w * 2])),
    ("MLC0378", lambda w: O.SGD([3.0])), ("MLC0378", lambda w: O.SGD([{"lr": 0.1}])),
    ("MLC0378", lambda w: O.SGD([w]).add_param_group([w])), ("MLC0378", lambda w: O.SGD([w]).add_param_group(
        {"params": 3})), ("MLC0383", lambda w: O.Adam([{"params": w, "beta": (0.9, 0.9)}])),
    ("MLC0383", lambda w: O.Adam([{"params": w, "betas": (0.9, 1.0)}])), ("MLC0383", lambda w: O.Adam([w], lr=-1)),
    ("MLC0383", lambda w: O.SGD([w], groups=[(lambda n: True, {"lr": 0.1})])),
    ("MLC0321", lambda w: O.SGD([w], speed=3)), ("MLC0383", lambda w: O.SGD(w.tolist, lr="fast")),
    ("MLC0377", lambda w: O.SGD([w]).load_state_dict(O.SGD([mlc.ones(1), mlc.ones(2)]).state_dict())),
    ("MLC0377", lambda w: O.SGD([w], momentum=0.9).load_state_dict({"state": {0: {"step": 1, "momentum_buffer":
        mlc.ones(5)}}, "param_groups": O.SGD([w], momentum=0.9).state_dict()["param_groups"]})),
    ("MLC0377", lambda w: O.SGD([w]).load_state_dict({"state": {}})),
    ("MLC0338", lambda w: O.SGD(0.1).step()),
    ("MLC0421", lambda w: O.SGD([w]).load_state_dict(3)),
    ("MLC0445", lambda w: U.get_total_norm(w * math.nan, error_if_nonfinite=True)),
    ("MLC0446", lambda w: U.clip_grad_value_([3], 1.0)),
    ("MLC0446", lambda w: U.get_total_norm(3.0)), ("MLC0447", lambda w: U.parameters_to_vector([])),
    ("MLC0446", lambda w: U.vector_to_parameters([1.0], [w])),
    ("MLC0447", lambda w: U.vector_to_parameters(mlc.ones(4), [w]))])
def test_mistakes(code: str, mistake: Callable[[Any], Any]) -> None:
    with pytest.raises((UserError, UserAttributeError), match=code) as caught:
        mistake(mlc.ones(3, requires_grad=True))
    assert caught.value.loc.file == __file__
