"""mlc.compile(check=True): every call is compared with the function as plain Python."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import checked, checked_paths, nn
from mlc.call import Signature, record
from mlc.frontend import loop_carried
from mlc.frontend.script import runtime
from mlc.ir.diag import InternalError, UserError

V = np.array([1, 2, 3], np.float32)


def branches(v: Any) -> Any:
    y = v * 2
    if v.sum() > 3:
        y = y + 1
    return {"y": y * v, "n": 3}


def test_what_is_right_passes() -> None:
    f = mlc.compile(branches, check=True)
    for scale in (1, -1):
        want = branches(mlc.tensor(V * scale))
        found = f(V * scale)
        np.testing.assert_array_equal(found["y"].numpy(), want["y"].numpy())
        assert found["n"] == 3


@pytest.mark.slow
def test_a_training_step_with_state_passes() -> None:
    """The gradient of a bias before BatchNorm is rounding alone, of which Adam makes whole steps."""
    mlc.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    optimizer = mlc.optim.Adam(lr=1e-2)

    def step(model: Any, state: Any, x: Any) -> Any:
        value, gradients = mlc.value_and_grad(lambda m, x: (m(x) ** 2).mean())(model, x)
        return *optimizer.update(gradients, state, model), value

    train, state = mlc.compile(step, check=True), optimizer.init(model)
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal((8, 3)).astype(np.float32)
        model, state, value = train(model, state, x)
    assert float(value) > 0


def test_a_mistake_of_the_recorder_is_found_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    real = runtime.if_
    monkeypatch.setattr(runtime, "if_", lambda test, then, otherwise, *rest: real(test, otherwise, then, *rest))
    with pytest.raises(InternalError, match=r"result\['y'\] is 2.0 in place of 3.0 at \[0\]") as info:
        mlc.compile(branches, check=True)(V)
    line = branches.__code__.co_firstlineno + 3
    assert info.value.code == "MLC0903" and f"add at {__file__}:{line}:" in info.value.notes[0]


def test_errors_are_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(v: Any) -> Any:
        assert v.sum() < 0, "positive"
        return v

    with pytest.raises(UserError, match="positive"):
        mlc.compile(f, check=True)(V)
    monkeypatch.setattr(runtime, "assert_", lambda *args: None)
    with pytest.raises(InternalError, match="a result in place of AssertionError"):
        mlc.compile(f, check=True)(V)


def test_what_is_refused_is_no_difference() -> None:
    with pytest.raises(UserError, match="MLC0350"):
        mlc.compile(lambda v: v * int(v.sum().item()), check=True)(V)

    def write(v: Any) -> Any:
        shared = (v := v * 1).t().flatten()
        v.add_(1)
        return shared

    with pytest.raises(UserError, match="MLC0756"):
        mlc.compile(write, check=True)(np.ones((2, 3)))


def test_a_wrapper_that_does_not_look_at_strides_is_found() -> None:
    def careless(x: Any) -> Any:
        return mlc.from_numpy(np.lib.stride_tricks.as_strided(x, x.shape, (x.itemsize,)) * 2)

    with pytest.raises(InternalError, match=r"emitted wrapper, of strided arguments: result 0 is"):
        checked_paths.compare_wrappers("f", [careless], lambda: [V.copy()], mlc.from_numpy(V * 2))


def counting() -> tuple[Any, Any]:
    """A function that changes a tensor which it reaches, through views, compiled and called; and the tensor."""
    table = mlc.zeros(2, 3)

    def count(x: Any) -> Any:
        table.t()[0].add_(x[:2])
        table[1].mul_(2)
        return table.sum() + x

    f = mlc.compile(count, check=True)
    for _ in range(2):
        f(mlc.tensor(V))
    return f, table


def test_what_native_code_changes_is_compared() -> None:
    f, table = counting()
    assert len(f.compiled.reaching) == 1 and table.tolist() == [[2, 0, 0], [12, 0, 0]]


@pytest.mark.parametrize("careless, message", [
    (lambda path, x: path(x) * 2, "gives other bits by its emitted wrapper the first time"),
    (lambda path, x: mlc.tensor(V) + 31, "leaves other elements"),
    (lambda path, x: checked_paths.REFUSED, None),
])
def test_native_code_that_overlooks_what_it_reaches_is_found(careless: Any, message: str | None) -> None:
    f, _ = counting()
    (path, inputs), = f.compiled.reaching
    f.compiled.reaching[0] = lambda x: careless(path, x), inputs
    with pytest.raises(InternalError, match=message) if message is not None else nullcontext():
        f(mlc.tensor(V))


def test_one_array_given_twice_is_refused_where_it_is_donated() -> None:
    f, v = mlc.compile(lambda a, b: a + b, donate=("a",), check=True), mlc.tensor([1.0, 2.0])
    with pytest.raises(UserError, match="MLC0329"):
        f(v, v)


def test_a_scan_is_compared_with_a_loop_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    def sums(x: Any) -> Any:
        return mlc.scan(lambda total, row: (total + row, total * row), 0.0, x, reverse=True)

    x = np.arange(1.0, 4.0)
    mlc.compile(sums, check=True)(x)
    monkeypatch.setattr(loop_carried.StackedRows, "put", lambda self, block: [
        block.add_arg(t.type.with_shape((self.length, *t.shape))) for t in self.now])
    with pytest.raises(InternalError, match=r"result\[1\] is 0.0 in place of"):
        mlc.compile(sums, check=True)(x)


def test_another_element_type_is_no_rounding() -> None:
    """Of which the values of 1.5 and 3 say nothing."""
    runs = [checked.Run(result=mlc.tensor(np.array([1.5, 3.0], dtype))) for dtype in (np.float64, np.float32)]
    x = np.array([1, 2])
    with pytest.raises(InternalError, match=r"float32\[2\] in place of float64\[2\]"):
        checked.compare("f", runs[0], runs[1], (), lambda: (record(Signature(lambda x: x * 1.5).bind((x,), {})), [x]))


def test_a_defect_of_the_interpreter_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> Any:
        raise InternalError("the interpreter is wrong")

    monkeypatch.setattr("mlc.checked.Interpreter.call", broken)
    module = mlc.lower(lambda x: x + 1, args=[np.ones(2, np.float32)], level="trace").module
    with pytest.raises(InternalError, match="the interpreter is wrong"):
        checked.first_difference(checked.Run(), module, [np.ones(2, np.float32)])


def test_an_argument_that_requires_a_gradient_does_in_the_plain_run() -> None:
    w = mlc.ones(3, requires_grad=True)
    f = mlc.compile(lambda w: (w * w).sum().backward(), check=True)
    for _ in range(2):
        f(w)
    assert w.grad is not None and w.grad.tolist() == [4.0] * 3
    assert mlc.compile(lambda w: w * (2 if w.requires_grad else 3), check=True)(w).tolist() == [2.0] * 3


def doubled(w: Any) -> Any:
    """Differences of rounding alone, beside a gradient."""
    (w * w).sum().backward()
    x = w * 1e-7 + 1
    return (x - x.mean()) / x.std()


def test_gradients_of_arguments_are_compared_and_may_differ_by_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    w = mlc.tensor(np.random.default_rng(0).standard_normal(4000).astype(np.float32)).requires_grad_()
    w.register_hook(lambda gradient: gradient * 2)
    mlc.compile(doubled, check=True)(w)
    assert w.grad is not None and mlc.allclose(w.grad, 4 * w.detach())
    model = nn.Linear(3, 2)
    model.weight.grad = mlc.randn(3, 2).T
    step = mlc.compile(lambda m, x: m(x).sum().backward(), check=True)
    step(model, mlc.randn(5, 3))
    monkeypatch.setattr("mlc.execution.take_over", lambda *args: None)
    with pytest.raises(InternalError, match=r"the function reaches or was given\[\d\] is"):
        step(model, mlc.randn(5, 3))


def test_changed_arguments_are_compared_and_may_differ_by_rounding() -> None:
    def spread(x: Any) -> Any:
        x.add_(1)
        return (x - x.mean()) / x.std()

    f = mlc.compile(spread, check=True)
    f(mlc.tensor((np.random.default_rng(0).standard_normal(4000) * 1e-7).astype(np.float32)))
    with pytest.raises(UserError, match="MLC0758"):
        f(mlc.ones(3, requires_grad=True) * 2)
    with mlc.no_grad(), pytest.raises(UserError, match="MLC0720"):
        mlc.compile(lambda w: mlc.enable_grad()(lambda: (w * w).sum().backward())(), check=True)(
            mlc.ones(3, requires_grad=True))


def test_a_change_that_does_not_happen_is_found_beside_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(w: Any, x: Any) -> Any:
        x.add_(1)
        return w * 2

    x = mlc.ones(3)
    mlc.compile(f, check=True)(mlc.ones(3, requires_grad=True), x)
    assert x.tolist() == [2.0] * 3
    monkeypatch.setattr("mlc.execution._write", lambda *args: None)
    with pytest.raises(InternalError, match=r"was given\[1\] is 2.0 in place of 3.0"):
        mlc.compile(f, check=True)(mlc.ones(3, requires_grad=True), x)


def test_hooks_of_arguments_run_twice_and_change_things_once() -> None:
    w, calls = mlc.ones(3, requires_grad=True), mlc.zeros(())

    def hook(gradient: Any) -> Any:
        calls.add_(1)
        handle.remove()
        return gradient * 2

    handle = w.register_hook(hook)
    mlc.compile(lambda w: (w * w).sum().backward(), check=True)(w)
    assert w.grad is not None and w.grad.tolist() == [4.0] * 3 and calls.item() == 1
    assert not w.autograd_meta.hooks


def test_results_of_operations_gradients_without_need_and_shared_ones() -> None:
    f = mlc.compile(lambda y: y * (2 if y.requires_grad else 3), check=True)
    assert f(mlc.ones(3, requires_grad=True) * 2).tolist() == [4.0] * 3
    w = mlc.ones(2)
    w.grad = mlc.ones(2)
    mlc.compile(lambda w: w.grad.zero_(), check=True)(w)
    assert w.grad.tolist() == [0.0, 0.0]
    v, u = (mlc.ones(2, requires_grad=True) for _ in range(2))
    v.grad = u.grad = mlc.ones(2)
    with pytest.raises(UserError, match=r"MLC0759.*gradient of two"):
        mlc.compile(lambda v, u: (v * u).sum().backward())(v, u)
    with pytest.raises(UserError, match="MLC0434"):        # it is refused, and not another result
        mlc.compile(lambda v: v.requires_grad_(False) * 2, check=True)(v)
