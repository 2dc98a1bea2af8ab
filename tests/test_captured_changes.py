"""Fast paths of compiled functions that change what they reach, such as training steps: each behaves as Python does."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import mlc
import mlc.nn.functional as F
from mlc import nn
from mlc.ir.diag import UserAssertionError, UserError


class Training:
    """A small model with a step, compiled or not; each draws the same batches and random numbers."""

    def __init__(self, compiled: bool, optimizer: Any = mlc.optim.Adam, between: Sequence[Callable[[], nn.Module]] = (),
                 decay: bool = False, result: str = "loss") -> None:
        mlc.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(3, 4), *(make() for make in between), nn.Linear(4, 2))
        self.optimizer = optimizer(self.model.parameters(), lr=0.1)
        scheduler = mlc.optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5) if decay else None
        self.batches = 0

        def step(x: Any, y: Any) -> Any:
            self.optimizer.zero_grad()
            out = self.model(x)
            loss = F.mse_loss(out, y)
            loss.backward()
            self.optimizer.step()
            if scheduler is not None:
                scheduler.step()
            return {"loss": loss, "both": (loss, out), "none": None}[result]

        self.step: Any = mlc.compile(step) if compiled else step

    def run(self) -> list[Any]:
        """The results of a step, and the state after it."""
        self.batches += 1
        rng = np.random.default_rng(self.batches)
        mlc.manual_seed(self.batches)
        found = self.step(*(mlc.tensor(rng.normal(size=(5, n)).astype(np.float32)) for n in (3, 2)))
        results = found if isinstance(found, tuple) else [] if found is None else [found]
        with mlc.no_grad():
            return [r.requires_grad for r in results] + [(x + 0).numpy() for x in (
                *results, *self.model.parameters(), *self.model.buffers(),
                *(p.grad for p in self.model.parameters() if p.grad is not None))]

    @property
    def fast(self) -> int:
        """The number of steps without Python."""
        return sum(entry.fast_calls.value for entry in self.step.entries)


def pair(*args: Any, **keywords: Any) -> tuple[Training, Training]:
    return Training(False, *args, **keywords), Training(True, *args, **keywords)


def assert_same(eager: Training, compiled: Training, steps: int = 1) -> None:
    for _ in range(steps):
        for a, b in zip(eager.run(), compiled.run(), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind, keywords", [
    (mlc.optim.Adam, {"decay": True}), pytest.param(mlc.optim.SGD, {}, marks=pytest.mark.slow),
    pytest.param(mlc.optim.AdamW, {"result": "both"}, marks=pytest.mark.slow),
    pytest.param(mlc.optim.RMSprop, {"result": "none"}, marks=pytest.mark.slow)])
@pytest.mark.parametrize("between", [
    (), pytest.param((lambda: nn.BatchNorm1d(4), nn.Dropout), marks=pytest.mark.slow)], ids=["plain", "random"])
def test_steps_run_without_python(kind: Any, between: Any, keywords: dict[str, Any]) -> None:
    eager, compiled = pair(kind, between, **keywords)
    assert_same(eager, compiled, 2)
    before = compiled.fast
    assert_same(eager, compiled, 5)
    assert compiled.fast == before + 5


CHANGES: dict[str, Callable[[Training], Any]] = {
    "rate": lambda t: t.optimizer.param_groups[0].__setitem__("lr", 0.01),
    "data": lambda t: setattr(t.model[0].weight, "data", t.model[0].weight.data * 0.5),
    "write": lambda t: t.model[0].weight.data.mul_(0.5),
    "load": lambda t: t.model.load_state_dict({k: v * 1.5 for k, v in t.model.state_dict().items()}),
    "no gradient": lambda t: setattr(t.model[0].bias, "grad", None),
    "frozen": lambda t: t.model[0].weight.requires_grad_(False),
    "parameter": lambda t: setattr(t.model[0], "bias", nn.Parameter(mlc.ones(4))),
    "hook": lambda t: t.model[0].bias.register_hook(lambda g: g * 2),
    "array": lambda t: t.model[0].weight.detach().numpy(),
    "view": lambda t: t.model[0].weight.data[0],
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_seen(change: str) -> None:
    eager, compiled = pair()
    assert_same(eager, compiled)
    before = compiled.fast
    assert_same(eager, compiled, 2)
    assert compiled.fast == before + 2
    held = [CHANGES[change](t) for t in (eager, compiled)]
    assert_same(eager, compiled, 4)
    if change not in ("array", "view", "write", "parameter"):          # memory is shared, or a gradient accumulates
        before = compiled.fast
        assert_same(eager, compiled, 2)
        assert compiled.fast == before + 2
    if isinstance(held[0], np.ndarray | mlc.Tensor):       # who shares memory sees what is written
        np.testing.assert_array_equal(np.asarray(held[0]), np.asarray(held[1]))


def test_what_is_held_stays() -> None:
    eager, compiled = pair(mlc.optim.SGD)
    assert_same(eager, compiled, 3)
    bias = compiled.model[0].bias
    held: list[tuple[Any, Any]] = []
    for _ in range(4):
        before = compiled.fast
        assert_same(eager, compiled)
        assert compiled.fast == before + 1
        with mlc.no_grad():
            held.append((bias.grad, (bias.grad + 0).numpy()))
    assert len({id(g) for g, _ in held}) == 4
    assert all(np.array_equal(g.numpy(), elements) for g, elements in held)


def test_gradients_are_others_where_somebody_may_tell() -> None:
    compiled = Training(True, mlc.optim.SGD)
    for _ in range(3):
        compiled.run()
    seen = weakref.ref(compiled.model[0].bias.grad)
    compiled.run()
    gc.collect()
    assert seen() is None and compiled.model[0].bias.grad is not None


@pytest.mark.parametrize("check", [False, True])
def test_one_tensor_may_be_the_gradient_of_several(check: bool) -> None:
    """Those of an argument, and of a tensor that is given twice to `grad`, included."""
    p, q = (mlc.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))

    @mlc.compile(check=check)
    def step(r: mlc.Tensor) -> Any:
        p.grad = q.grad = r.grad = mlc.autograd.grad((p * p * r).sum(), p)[0]
        first, second = mlc.autograd.grad((p * q).sum(), [q, q])
        return p.grad, first, second

    for k in range(3):
        p.grad = q.grad = None
        r = mlc.tensor([3.0, 4.0 + k], requires_grad=True)
        out, first, second = step(r)
        assert p.grad is q.grad is r.grad is out and first is second and first.tolist() == [1, 2]
        q.grad.add_(1)
        assert p.grad.tolist() == [7, 17 + 4 * k]


def test_a_gradient_with_elements_of_another_shape_is_not_written_to() -> None:
    compiled = Training(True, mlc.optim.SGD)
    for _ in range(3):
        compiled.run()
    bias = compiled.model[0].bias
    for _ in range(20):                                    # the second array may be where that of the step was
        bias.grad.data = mlc.ones(3)
        bias.grad.data = mlc.ones(1)
        for _ in range(3):
            compiled.run()
            assert bias.grad.shape == (4,)


def test_nothing_is_allocated_and_nothing_leaks() -> None:
    compiled = Training(True, mlc.optim.SGD)
    x, y = mlc.ones(5, 3), mlc.ones(5, 2)
    for _ in range(4):
        compiled.step(x, y)
    weight, fast = compiled.model[0].weight, compiled.fast
    places = []
    for _ in range(6):                                     # each step writes over the elements that there are
        compiled.step(x, y)
        places.append(weight._array.ctypes.data)
    assert places == places[:1] * 6
    kept: list[Any] = [None, x, y, x._array, weight, weight._array.dtype, mlc.Tensor, compiled.optimizer]
    before = [sys.getrefcount(o) for o in kept]
    for _ in range(2000):
        compiled.step(x, y)
    assert compiled.fast == fast + 2006
    assert all(sys.getrefcount(o) < n + 200 for o, n in zip(kept, before))


def test_steps_of_two_models_take_turns() -> None:
    """As of a generator and a discriminator, each of which reads what the other one changes."""
    def make(compiled: bool) -> tuple[Any, Any, nn.Module, nn.Module]:
        mlc.manual_seed(1)
        one, two = nn.Linear(3, 3), nn.Linear(3, 3)
        optimizers = [mlc.optim.SGD(m.parameters(), lr=0.1) for m in (one, two)]

        def step(which: int) -> Callable[[Any], Any]:
            def run(x: Any) -> Any:
                optimizers[which].zero_grad()
                loss = (two(one(x)) ** 2).mean() * (1 - 2 * which) + (two(x) ** 2).mean()
                grads = mlc.autograd.grad(loss, [*(one, two)[which].parameters()])
                for p, g in zip((one, two)[which].parameters(), grads):
                    p.grad = g
                optimizers[which].step()
                return loss.detach()
            return mlc.compile(run) if compiled else run
        return step(0), step(1), one, two

    eager, compiled, x = make(False), make(True), mlc.randn(4, 3)
    for _ in range(6):
        for a, b in zip(eager[:2], compiled[:2]):
            assert mlc.equal(a(x), b(x))
    assert all(sum(e.fast_calls.value for e in f.entries) >= 3 for f in compiled[:2])
    for a, b in zip(eager[2:], compiled[2:]):
        assert all(mlc.equal(p, q) for p, q in zip(a.parameters(), b.parameters()))


def test_evaluation_between_steps() -> None:
    eager, compiled = pair()
    predict, x = mlc.compile(lambda x: compiled.model(x)), mlc.randn(5, 3)
    for _ in range(5):
        assert_same(eager, compiled)
        with mlc.no_grad():
            assert mlc.allclose(predict(x), eager.model(x))
    assert compiled.fast >= 3


def test_an_argument_that_is_changed_too_is_refused() -> None:
    count = mlc.zeros(2)

    @mlc.compile
    def f(x: Any) -> Any:
        count.add_(1)
        return x * 2

    for _ in range(3):
        f(mlc.ones(2))
    assert f.compiled.entries[0].fast_calls.value == 2
    with pytest.raises(UserError, match="MLC0759"):
        f(count)
    assert count.tolist() == [3, 3]


def test_a_call_that_fails_changes_nothing() -> None:
    total = mlc.zeros(3)

    @mlc.compile
    def f(x: Any) -> None:
        total.add_(x)
        assert x.sum() < 10

    for _ in range(3):
        f(mlc.ones(3))
    assert f.compiled.entries[0].fast_calls.value == 2
    with pytest.raises(UserAssertionError):
        f(mlc.ones(3) * 5)
    f(mlc.ones(3))
    assert total.tolist() == [4, 4, 4]


def test_threads_share_a_step() -> None:
    model = nn.Linear(64, 64)
    optimizer = mlc.optim.SGD(model.parameters(), lr=0.0)
    x, losses = mlc.randn(128, 64), set[float]()

    @mlc.compile
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    def run() -> None:
        losses.update(step(x).item() for _ in range(50))

    step(x)
    step(x)
    threads = [threading.Thread(target=run) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(losses) == 1 and sum(e.fast_calls.value for e in step.entries) > 50


def test_gradients_that_are_reset_outside_or_accumulate() -> None:
    def make(compiled: bool) -> tuple[Any, nn.Module]:
        mlc.manual_seed(2)
        model = nn.Linear(3, 2)

        def run(x: Any) -> Any:
            loss = (model(x) ** 2).mean()
            loss.backward()
            return loss
        return mlc.compile(run) if compiled else run, model

    (eager, one), (compiled, two), x = make(False), make(True), mlc.randn(4, 3)
    for i in range(9):
        if i < 6:
            one.zero_grad()
            two.zero_grad()
        assert eager(x).item() == compiled(x).item()
        assert all(mlc.equal(p.grad, q.grad) for p, q in zip(one.parameters(), two.parameters()))
    assert sum(e.fast_calls.value for e in compiled.entries) == 5


def test_a_profile_that_ends_in_another_mode() -> None:
    compiled = Training(True, mlc.optim.SGD)
    with mlc.no_grad(), mlc.profiler.profile():
        with mlc.enable_grad():
            compiled.run()
    with mlc.no_grad(), pytest.raises(UserError, match="MLC0720"):
        compiled.run()


def test_an_array_that_is_given_another_shape_in_place() -> None:
    table = np.arange(4.0).reshape(1, 4)
    f, x = mlc.compile(lambda x: x * table), np.ones((4, 4))
    for shape in ((1, 4), (4, 1), (1, 4)):
        table.shape = shape
        assert f(x).tolist() == (x * table).tolist()
