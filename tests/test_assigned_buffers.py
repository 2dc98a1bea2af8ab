"""Buffers of modules that a compiled function reaches by itself and assigns: each call puts new tensors there."""

from __future__ import annotations

import gc
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import mlc
from mlc import nn


class Stateful(nn.Module):
    w: nn.Parameter

    def __init__(self, run: Callable[..., Any]) -> None:
        super().__init__()
        self.w = nn.Parameter(mlc.ones(2))
        self.run = run

    def forward(self, x: Any) -> Any:
        return self.run(self, x)


def make(forward: Callable[..., Any], **buffers: Any) -> nn.Module:
    out = Stateful(forward)
    for name, x in buffers.items():
        out.register_buffer(name, x)
    return out


def add(m: Any, x: Any) -> Any:
    m.a = m.a + x
    return m.a * m.w


@pytest.mark.parametrize("compiled", [lambda m: mlc.compile(m), lambda m: mlc.compile(lambda x: m(x)),
                                      lambda m: mlc.compile(m, check=True)])
def test_each_call_assigns_another_tensor(compiled: Any) -> None:
    m = make(add, a=mlc.zeros(2))
    f, held = compiled(m), [m.a]
    for step in (1, 2, 3):
        f(mlc.ones(2) * step)
        held.append(m.a)
    assert [x.tolist() for x in held] == [[0, 0], [1, 1], [3, 3], [6, 6]]
    m.a = mlc.zeros(2) + 10                                # by the program itself
    assert f(mlc.ones(2)).tolist() == [11, 11]
    if isinstance(f, mlc.compiled.CompiledFunction):
        assert len(f.reports) == 1                         # none of that was compiled anew


def test_it_is_assigned_in_branches_and_in_modules_within_modules() -> None:
    def sometimes(m: Any, x: Any) -> Any:
        if x.sum() > 3:
            m.a = m.a + x
        return m.a * 1

    inner = make(sometimes, a=mlc.zeros(2))
    f = mlc.compile(nn.Sequential(inner, nn.ReLU()))
    assert [f(mlc.ones(2) * i).tolist() for i in (1, 2, 3, 1)] == [[0, 0], [2, 2], [5, 5], [5, 5]]


def test_what_is_returned_is_the_buffer_itself() -> None:
    def forward(m: Any, x: Any) -> Any:
        m.a = m.a + x
        return m.a, m.a[:1]

    m = make(forward, a=mlc.zeros(2))
    f = mlc.compile(m)
    for _ in range(3):
        out, part = f(mlc.ones(2))
    part.zero_()
    assert out is m.a and m.a.tolist() == [0, 3]


def test_a_training_step_goes_on_with_what_the_step_before_assigned() -> None:
    def forward(m: Any, x: Any) -> Any:
        with mlc.no_grad():
            m.a = 0.5 * m.a + x * m.w
        return (x * m.w * m.a).sum()

    plain, fast = make(forward, a=mlc.zeros(2)), make(forward, a=mlc.zeros(2))
    found = []
    for m, f in ((plain, plain), (fast, mlc.compile(fast))):
        opt = mlc.optim.SGD(m.parameters(), lr=0.1)
        for step in range(4):
            opt.zero_grad()
            f(mlc.ones(2) * step).backward()
            opt.step()
        found.append([*m.a.tolist(), *m.w.tolist()])
    assert found[0] == pytest.approx(found[1])


def give_old(m: Any, x: Any) -> Any:
    old = m.a
    m.a = old + x
    return old


@pytest.mark.parametrize(("forward", "buffers", "why"), [
    (lambda m, x: setattr(m, "a", x), {"a": mlc.zeros(2)}, "of outside"),
    (lambda m, x: setattr(m, "a", m.b), {"a": mlc.zeros(2), "b": mlc.ones(2)}, "no result of an operation"),
    (lambda m, x: setattr(m, "a", m.a[None] + x), {"a": mlc.zeros(2)}, "tensor<1x2xf32>"),
    (lambda m, x: setattr(m, "a", m.a + x), dict.fromkeys("ab", mlc.zeros(2)), "held elsewhere"),
    (lambda m, x: setattr(m, "a", m.a + m.w), {"a": mlc.zeros(2)}, "a history"),
    (give_old, {"a": mlc.zeros(2)}, "is returned")])
def test_what_calls_cannot_repeat_is_refused(forward: Any, buffers: dict[str, Any], why: str) -> None:
    m = make(forward, **buffers)
    before = dict(m.named_buffers(remove_duplicate=False))
    with pytest.raises(mlc.UserError, match=why) as error:
        mlc.compile(m)(mlc.ones(2))
    assert error.value.code == "MLC0615" and "copy_" in str(error.value)
    assert all(getattr(m, name) is x for name, x in before.items())


def test_a_tensor_of_another_shape_is_compiled_for() -> None:
    m = make(lambda m, x: add(m, x).sum(), a=mlc.zeros(2))
    f = mlc.compile(m)
    f(mlc.ones(2))
    m.a, m.w = mlc.zeros(3), nn.Parameter(mlc.ones(3))
    assert f(mlc.ones(3)).item() == 3 and m.a.tolist() == [1, 1, 1]
    m.a = mlc.zeros(3, dtype=mlc.float64)
    f(mlc.ones(3))
    assert m.a.dtype is mlc.float64


def test_other_shapes_and_other_functions_take_what_was_assigned_last() -> None:
    """And are compiled once: the buffer is any tensor to them."""
    m: Any = make(lambda m, x: add(m, x.sum(0)), a=mlc.zeros(2))
    f, reader = mlc.compile(lambda x: m(x)), mlc.compile(lambda x: x + m.a)
    for rows in (1, 1, 2, 1, 2, 3):
        f(mlc.ones(rows, 2))
        assert reader(mlc.zeros(2)).tolist() == m.a.tolist()
    assert m.a.tolist() == [10, 10] and len(f.reports) <= 3 and len(reader.reports) == 1


def test_modules_and_buffers_that_are_replaced_are_given_up() -> None:
    holder, gone = types.SimpleNamespace(), []
    f = mlc.compile(lambda x: holder.m(x))
    for _ in range(20):
        holder.m = make(add, a=mlc.zeros(2))
        gone += [weakref.ref(holder.m)]
        f(mlc.ones(2))
    first = weakref.ref(holder.m.a)
    f(mlc.ones(2))
    gc.collect()
    assert sum(m() is not None for m in gone) < 10 and first() is None


@pytest.mark.parametrize("transform", [
    lambda m: lambda x: mlc.grad(lambda x: m(x).sum())(x), mlc.vmap, lambda m: lambda x: mlc.jvp(m, (x,), (x,))])
def test_transformed_functions_assign_nothing(transform: Any) -> None:
    m = make(add, a=mlc.zeros(2))
    for run in (transform(m), mlc.compile(transform(m))):
        with pytest.raises(mlc.UserError, match="MLC0384"):
            run(mlc.ones(2))
    assert m.a.tolist() == [0, 0]


def test_a_compiled_module_within_a_compiled_function() -> None:
    inner = make(add, a=mlc.zeros(2))
    compiled = mlc.compile(inner)
    f = mlc.compile(lambda x: inner(x) + compiled(x))
    assert [f(mlc.ones(2)).tolist() for _ in range(3)] == [[3, 3], [7, 7], [11, 11]]
    assert len(f.reports) == 1


def test_a_buffer_that_becomes_a_tensor_that_is_changed_in_place() -> None:
    total = mlc.zeros(2)

    def forward(m: Any, x: Any) -> Any:
        total.add_(x)
        m.a = m.a + 1
        return m.a * 1

    m: Any = make(forward, a=mlc.zeros(2))
    f = mlc.compile(m)
    assert f(mlc.ones(2)).tolist() == [1, 1]
    m.a = total
    with pytest.raises(mlc.UserError, match="MLC0759"):
        f(mlc.ones(2))


@pytest.mark.parametrize("new", [lambda: mlc.ones(2, requires_grad=True), lambda: mlc.ones(2, dtype=mlc.float64),
                                 lambda: mlc.ones(2)])
def test_a_reader_takes_whatever_the_program_assigns(new: Any) -> None:
    m: Any = make(add, a=mlc.zeros(2))
    f, reader = mlc.compile(lambda x: m(x)), mlc.compile(lambda x: (x * m.a).sum())
    f(mlc.ones(2))
    reader(mlc.ones(2))
    m.a = new()
    for _ in range(2):
        y = reader(mlc.ones(2))
        assert y.item() == 2 and y.dtype is m.a.dtype
        if m.a.requires_grad:
            y.backward()
    m.a = mlc.zeros(2)
    f(mlc.ones(2))
    assert reader(mlc.ones(2)).item() == 2


def test_a_buffer_whose_new_value_is_the_result() -> None:
    def f(module: Any, x: Any) -> Any:
        module.seen = module.seen + x
        return module.seen

    module = mlc.nn.Module()
    module.register_buffer("seen", mlc.zeros(()))
    compiled = mlc.compile(f)
    found = [compiled(module, mlc.tensor(n)).item() for n in (1.0, 2.0)]
    assert found == [1.0, 3.0] and module.seen.item() == 3.0
