"""mlc.detect_anomaly: the line at which a NaN or an infinity is born, eager, compiled and in derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc.ir.diag import InternalError, UserError

X = np.array([4.0, 0.0, 1.0], np.float32)


def loss(x: Any) -> Any:
    y = x * 2
    z = mlc.log(y)
    return (z - z.max()).sum()


def slope_of_a_root(x: Any) -> Any:
    y = mlc.sqrt(x)
    return y.sum()


def masked(x: Any) -> Any:
    return mlc.where(x > 0, mlc.log(x), 0.0)


def line(f: Any, offset: int) -> str:
    return f"{__file__}:{f.__code__.co_firstlineno + offset}:"


@pytest.mark.parametrize("compiled", [False, True])
def test_the_operation_and_its_line(compiled: bool) -> None:
    f: Any = mlc.compile(loss) if compiled else loss
    x = mlc.tensor(X)
    with pytest.raises(UserError, match="log makes infinity of finite operands") as info, mlc.detect_anomaly():
        f(x)
    assert info.value.code == "MLC0672" and str(info.value.loc).startswith(line(loss, 2)[:-1])
    assert "from 0.0 to 8.0" in info.value.notes[0]


def test_in_a_derivative_it_is_the_line_that_is_differentiated() -> None:
    f = mlc.compile(mlc.grad(slope_of_a_root))
    f(X)
    with pytest.raises(UserError, match="in the derivative of this line") as info, mlc.detect_anomaly():
        f(X)
    assert str(info.value.loc).startswith(line(slope_of_a_root, 1)[:-1])


def test_what_is_looked_for_and_what_is_not() -> None:
    f = mlc.compile(masked)
    before = f(X)
    with mlc.detect_anomaly():
        np.testing.assert_array_equal(f(X).numpy(), before.numpy())       # nothing of it leaves the function
    with mlc.detect_anomaly(check_inf=False):
        assert np.isinf(mlc.log(mlc.tensor(X)).numpy()).any()
    with mlc.detect_anomaly():
        assert np.isnan((mlc.tensor([np.nan]) * 2).numpy()).all()         # it was there before


def test_an_infinite_argument_hides_nothing() -> None:
    f = mlc.compile(lambda x, mask: (mlc.sqrt(x), mask + 1))
    with pytest.raises(UserError, match="sqrt makes NaN"), mlc.detect_anomaly():
        f(-X - 1, np.array([-np.inf], np.float32))


def test_calls_are_fast_again_afterwards() -> None:
    f: Any = mlc.compile(lambda x: x * 2)
    f(X)
    entry, = f.compiled.entries
    before = entry.calls
    with mlc.detect_anomaly():
        f(X)
    f(X)
    assert f.fast_path == "yes" and entry.calls == before + 2


def test_a_defect_of_the_interpreter_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> Any:
        raise InternalError("the interpreter is wrong")

    monkeypatch.setattr("mlc.anomaly._Watched.call", broken)
    with pytest.raises(InternalError, match="the interpreter is wrong"), mlc.detect_anomaly():
        mlc.compile(loss)(mlc.tensor(X))


# -- of backward ------------------------------------------------------------------------------------------------------
def masked_root(x: Any) -> Any:
    y = mlc.sqrt(x)
    return mlc.where(x > 0, y, 0.0).sum()


def gradient_of_zero(f: Any) -> Any:
    x = mlc.tensor([0.0, 1.0], requires_grad=True)
    f(x).backward()
    return x.grad


@pytest.mark.parametrize("mode", [mlc.autograd.detect_anomaly, mlc.detect_anomaly,
                                  lambda: mlc.autograd.set_detect_anomaly(True)])
def test_both_lines_are_named(mode: Any) -> None:
    with pytest.raises(UserError, match="SqrtBackward gives NaN as the gradient of its input 0") as info, mode():
        gradient_of_zero(masked_root)
    assert info.value.code == "MLC0672" and str(info.value.loc).startswith(line(gradient_of_zero, 2)[:-1])
    assert f"SqrtBackward is the gradient of {line(masked_root, 1)}" in info.value.notes[-1]
    assert np.isnan(gradient_of_zero(masked_root).numpy()).any()          # the mode is off again


def test_the_line_within_a_compiled_function() -> None:
    with pytest.raises(UserError, match="FunctionBackward gives NaN") as info, mlc.autograd.detect_anomaly():
        gradient_of_zero(mlc.compile(masked_root))
    assert line(masked_root, 1) in info.value.notes[0] and line(gradient_of_zero, 2) in info.value.notes[1]


def test_backward_alone_is_checked_and_for_nan_alone() -> None:
    with mlc.autograd.detect_anomaly():
        assert np.isinf(mlc.log(mlc.tensor(X)).numpy()).any()             # of forward
        x = mlc.tensor(X, requires_grad=True)
        mlc.sqrt(x).sum().backward()
        assert x.grad is not None and np.isinf(x.grad.numpy()).any()
    with pytest.raises(UserError, match="SqrtBackward gives infinity"), mlc.detect_anomaly():
        mlc.sqrt(mlc.tensor(X, requires_grad=True)).sum().backward()
    with mlc.autograd.detect_anomaly(check_nan=False):
        assert np.isnan(gradient_of_zero(masked_root).numpy()).any()


def test_other_errors_of_backward_name_the_line_too() -> None:
    class Wrong(mlc.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient, gradient

    mlc.autograd.set_detect_anomaly(True)
    try:
        y = Wrong.apply(mlc.tensor(X, requires_grad=True)).sum()
        with pytest.raises(UserError, match="MLC0726") as info:
            y.backward()
    finally:
        mlc.autograd.set_detect_anomaly(False)
    this = test_other_errors_of_backward_name_the_line_too
    assert f"WrongBackward is the gradient of {line(this, 12)}" in info.value.notes[-1]
