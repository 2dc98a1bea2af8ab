"""Eager calls that run natively: that they do, that they mean the same, and what has to take the general path."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import mlc
from mlc.backends.cpu import layout
from mlc.frontend import dispatch, eager
from mlc.frontend.trace import Trace
from mlc.frontend.tracer import Tracer
from mlc.ir.diag import UserError, UserIndexError

F = mlc.nn.functional
X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
Y = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "operator": lambda x, y: x * y,
    "number": lambda x, y: x * 2.5 + 3,
    "number first": lambda x, y: 1 - x,
    "constant": lambda x, y: x**2,
    "reduction": lambda x, y: x.sum(1, keepdim=True),
    "keyword": lambda x, y: x.add(y, alpha=0.5),
    "list": lambda x, y: mlc.cat([x, y, x], dim=1),
    "list, another dimension": lambda x, y: mlc.stack((x, y)),
    "several results": lambda x, y: mlc.std_mean(x)[0],
    "named results": lambda x, y: x.max(1).values + x.sort(1).values[:, 0],
    "product": lambda x, y: x @ y.t(),
    "scattered": lambda x, y: x[:, ::2] + y[:, 1::2],
    "broadcast": lambda x, y: x + y[0],
    "comparison": lambda x, y: (x > y) | (x == 0),
    "array": lambda x, y: x - np.float32(1) * Y,
    "function": lambda x, y: F.softmax(x, dim=1),
}


@pytest.fixture
def natively(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function after whose call the general path is an error."""
    def forbidden(call: eager.Call) -> Any:
        raise AssertionError(f"{call.op.name} took the general path")

    return lambda: monkeypatch.setattr(eager, "run", forbidden)


def test_a_call_with_a_tensor_of_another_library_does_not_keep_later_ones_from_native_code(
        natively: Callable[[], None]) -> None:
    x = mlc.tensor(np.arange(3.0))
    mlc.nextafter(x, torch.zeros(3, dtype=torch.float64))
    mlc.nextafter(x, x)
    natively()
    mlc.nextafter(x, x)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_seen_before_runs_natively(name: str, natively: Callable[[], None]) -> None:
    x, y = mlc.tensor(X), mlc.tensor(Y)
    first = CALLS[name](x, y).numpy()
    natively()
    np.testing.assert_array_equal(CALLS[name](x, y).numpy(), first)
    other = [np.resize(a, (5, 6)) for a in (X, Y)]         # other sizes, equal where they were equal
    if name != "array":
        found = CALLS[name](*map(mlc.tensor, other)).numpy()
        np.testing.assert_allclose(found, mlc.compile(CALLS[name])(*other).numpy(), rtol=1e-6)


def test_gradients_run_natively_and_agree_with_the_general_path(natively: Callable[[], None]) -> None:
    def gradients() -> list[Any]:
        w, b = mlc.tensor(X, requires_grad=True), mlc.tensor(Y[0], requires_grad=True)
        ((w * Y + b).tanh().view(12)[2:] * 2).sum().backward()
        return [np.asarray(w.grad), np.asarray(b.grad)]

    with dispatch.general_path():
        wanted = gradients()
    gradients()
    natively()
    np.testing.assert_array_equal(np.concatenate([g.ravel() for g in gradients()]),
                                  np.concatenate([g.ravel() for g in wanted]))


def test_a_call_with_a_gradient_has_a_node_unless_none_is_wanted() -> None:
    w, x = mlc.tensor(X, requires_grad=True), mlc.tensor(X)
    for _ in range(2):
        assert (w * x).grad_fn is not None and not (x * x).requires_grad and not (w > x).requires_grad
        with mlc.no_grad():
            assert not (w * x).requires_grad
    loss = (w * w * x).sum()
    first, = mlc.autograd.grad(loss, w, create_graph=True)
    second, = mlc.autograd.grad(first.sum(), w)
    np.testing.assert_allclose(second.numpy(), 2 * X)


def test_the_size_of_a_result_may_be_that_of_an_operand_by_chance() -> None:
    for n in (3, 2, 5, 2, 3):                              # mlc.stack of two has a dimension of size 2
        w, x = mlc.ones(n, 4, requires_grad=True), mlc.full((n, 4), 2.0)
        out = mlc.stack((w, x)) * mlc.cat([x, w]).sum() + mlc.stack((x, x))[0]
        out.sum().backward()
        np.testing.assert_allclose(np.asarray(w.grad), np.full((n, 4), 3.0 * n * 4 + 3.0 * n * 4))


def test_what_is_saved_is_what_the_operand_was() -> None:
    w, x = mlc.ones(3, requires_grad=True), mlc.tensor([1.0, 2.0, 3.0])
    for _ in range(3):
        w.grad = None
        x.copy_(mlc.tensor([1.0, 2.0, 3.0]))
        out = w * x
        x.mul_(10)
        x[0] = 7.0
        out.sum().backward()
        assert w.grad is not None and w.grad.tolist() == [1, 2, 3] and x.tolist() == [7, 20, 30]


@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((4, 4), (4, 4)), ((1, 4), (3, 4)), ((1, 1), (3, 4)),
                                    ((0, 4), (1, 4)), ((4,), (4, 4)), ((), (2, 3))], ids=str)
def test_sizes_that_coincide_broadcast_as_numpys(shapes: tuple[tuple[int, ...], ...]) -> None:
    a, b = (np.arange(np.prod(s), dtype=np.float32).reshape(s) for s in shapes)
    for _ in range(3):
        np.testing.assert_array_equal((mlc.tensor(a) + mlc.tensor(b)).numpy(), a + b)


def test_values_of_other_types_are_other_calls() -> None:
    x = mlc.tensor([[1, 2], [3, 4]])
    for _ in range(2):
        assert (x * 2).dtype is mlc.int64 and (x * 2.0).dtype is mlc.float32 and (x * True).dtype is mlc.int64
        assert x.sum(1).shape == (2,) and x.sum((0, 1)).shape == () and x.sum([0]).shape == (2,)
        assert (mlc.tensor([1.0]) / 0.0).item() == np.inf and (mlc.tensor([1.0]) / -0.0).item() == -np.inf
        with pytest.raises(UserError, match="64 bits"):
            x * 2**70


def test_errors_of_later_calls_name_their_line() -> None:
    x, rows = mlc.tensor(X), mlc.tensor([0, 2])
    for _ in range(2):
        assert mlc.index_select(x, 0, rows).shape == (2, 4)
    with pytest.raises(UserIndexError, match="index 3 is out of range") as caught:
        mlc.index_select(x, 0, mlc.tensor([0, 3]))
    assert caught.value.loc.file == __file__
    with pytest.raises(UserError) as caught_shapes:
        x + mlc.ones(5)
    assert caught_shapes.value.loc.file == __file__


def test_nothing_runs_natively_while_a_function_is_recorded() -> None:
    x = mlc.tensor(X)
    x * x
    with Trace("main").recording():
        assert type(x * x) is Tracer


def test_observers_see_every_operation() -> None:
    x, seen = mlc.tensor(X), list[str]()
    x * x
    with eager.watched(lambda name, arrays, result: seen.append(name)):
        x * x
    assert seen == ["mul"]


def test_the_gate_opens_when_all_have_left() -> None:
    with dispatch.general_path(), dispatch.general_path():
        assert dispatch.GATE.cell_contents == 2
    assert dispatch.GATE.cell_contents is None


def test_a_donated_operand_is_refused() -> None:
    x = mlc.tensor(X)
    x * 2.0
    mlc.compile(lambda a: a + 1, donate="a")(x)
    with pytest.raises(UserError, match="donated"):
        x * 2.0


def test_threads_call_one_kernel_at_once() -> None:
    x = mlc.tensor(np.ones(100_000, np.float32))
    found = list[float]()

    def work(k: float) -> None:
        for _ in range(50):
            y = x * k + k
        found.append(y.sum().item())

    threads = [threading.Thread(target=work, args=(float(k),)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0, 200_000, 400_000, 600_000]


def test_calls_of_recorded_joins_are_native(natively: Callable[[], None]) -> None:
    """The sum of two sizes above 1 is above 1, so that gradients of all such joins have one pattern. A difference of
    sizes may be 1."""
    def gradient(rows: int) -> Any:
        x = mlc.ones(rows, 3).requires_grad_()
        (mlc.cat([x, x, mlc.ones(rows, 3)]) * mlc.arange(3.0)).sum().backward()
        return x.grad

    for rows in (4, 2, 5):
        assert [gradient(rows).tolist() for _ in range(2)] == [[[0, 2, 4]] * rows] * 2
    natively()
    for rows in (4, 2, 5):
        assert gradient(rows).tolist() == [[0, 2, 4]] * rows


def test_native_calls_hold_no_references() -> None:
    x, w = mlc.tensor(X), mlc.tensor(X, requires_grad=True)
    args: list[Any] = [x, x.t(), w]

    def calls() -> None:
        for _ in range(100):
            x * x + 2.5
            mlc.cat([x, x], dim=1)
            args[1] + args[1]
            (w * x).sum().backward()
        gc.collect()

    calls()
    before = [sys.getrefcount(a) for a in args], sys.getrefcount(x._array), len(gc.get_objects())
    calls()
    after = [sys.getrefcount(a) for a in args], sys.getrefcount(x._array), len(gc.get_objects())
    assert after[:2] == before[:2] and after[2] < before[2] + 50


def test_an_operation_has_a_limited_number_of_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    op = dispatch.DISPATCHERS["hypot"]
    monkeypatch.setattr(dispatch, "MAX_PATTERNS", op.patterns + 1)
    for _ in range(2):
        for dtype in (mlc.float32, mlc.float64):
            assert mlc.hypot(mlc.full((2,), 3.0, dtype=dtype), mlc.full((2,), 4.0, dtype=dtype)).tolist() == [5, 5]
    assert op.patterns == dispatch.MAX_PATTERNS


def test_calls_that_pass_many_patterns_take_little_of_the_stack() -> None:
    """Each pattern had 49 kB of it once: nested operations of 64 patterns each ended the process."""
    args = [[mlc.ones(*[2] * rank, dtype=dtype)] * 2 for rank in range(1, 9) for dtype in ("float32", "float64")]
    for x, y in args * 2:
        mlc.xlogy(x, y)
    assert dispatch.DISPATCHERS["xlogy"].patterns >= 16
    found = list[Any]()

    def call() -> None:
        with dispatch.general_path():
            found.append(mlc.xlogy(*args[0]).tolist())

    before = threading.stack_size(1 << 19)
    try:
        thread = threading.Thread(target=call)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert found == [[0.0, 0.0]]


def test_an_interpreter_that_lays_objects_out_differently_has_the_general_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "problem", lambda: "as a test wishes")
    op = dispatch.DISPATCHERS["logaddexp2"]
    for _ in range(2):
        assert mlc.logaddexp2(mlc.zeros(2), mlc.zeros(2)).tolist() == [1, 1]
    assert op.patterns == 0


def test_indices_run_natively_although_their_sizes_are_compared(natively: Callable[[], None]) -> None:
    x, at = mlc.tensor(X), mlc.tensor(np.array([[0, 1], [1, 0], [3, 2]]))
    first = mlc.take_along_dim(x, at, 1).numpy()
    natively()
    np.testing.assert_array_equal(mlc.take_along_dim(x, at, 1).numpy(), first)
