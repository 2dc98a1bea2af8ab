"""mlc.debug.print and breakpoint: eager, compiled, in loops, under transforms."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.ir.diag import UserError
from mlc.ir.parser import parse_module
from mlc.ir.verify import verify


def halves(x: Any) -> Any:
    while x.sum() > 1:
        x = x / 2
        mlc.debug.print("x is {}, its sum {s:.2f}", x, s=x.sum())
    return x


@pytest.mark.parametrize("compiled", [False, True])
def test_loops_print_as_often_as_they_run(compiled: bool, capsys: pytest.CaptureFixture[str]) -> None:
    f = mlc.compile(halves) if compiled else halves
    for _ in range(2):                                     # a repeated call takes no path without it
        assert f(mlc.tensor([2.0, 1.0])).tolist() == [0.5, 0.25]
        assert capsys.readouterr().out == "x is [1.  0.5], its sum 1.50\nx is [0.5  0.25], its sum 0.75\n"


def test_branches_print_where_they_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    @mlc.compile
    def f(x: Any) -> Any:
        if x.sum() > 0:
            mlc.debug.print("positive")
            y = x * 2
        else:
            mlc.debug.print("negative {}", x)
            y = -x
        return y

    assert f(mlc.ones(2)).tolist() == [2, 2] and capsys.readouterr().out == "positive\n"
    assert f(-mlc.ones(2)).tolist() == [1, 1] and capsys.readouterr().out == "negative [-1. -1.]\n"


def square(x: Any) -> Any:
    y = x * x
    mlc.debug.print("y is {}", y)
    return y.sum()


def test_derivatives_print_once(capsys: pytest.CaptureFixture[str]) -> None:
    x: Any = mlc.tensor([1.0, 3.0], requires_grad=True)
    mlc.compile(square)(x).backward()
    assert x.grad.tolist() == [2, 6] and capsys.readouterr().out == "y is [1. 9.]\n"
    assert mlc.grad(square)(x.detach()).tolist() == [2, 6] and capsys.readouterr().out == "y is [1. 9.]\n"
    assert mlc.compile(mlc.grad(square))(x.detach()).tolist() == [2, 6]
    assert capsys.readouterr().out == "y is [1. 9.]\n"


def test_each_element_of_a_batch_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    assert mlc.compile(mlc.vmap(square))(x).tolist() == [1, 13]
    assert capsys.readouterr().out == "y is [0. 1.]\ny is [4. 9.]\n"


def test_results_are_those_of_the_code_without_it() -> None:
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)

    def f(x: Any, shows: bool = False) -> Any:
        y = mlc.softmax(x @ x, 1)
        if shows:
            mlc.debug.print("{}", y[0, 0])
        return (y @ x).sum(0)

    plain, shown = mlc.compile(f)(x), mlc.compile(f, static="shows")(x, shows=True)
    assert np.array_equal(plain.numpy(), shown.numpy())    # to the bit: the results are the code's


def test_a_breakpoint_has_the_arrays(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: seen.append(sys._getframe(1).f_locals["values"]))

    @mlc.compile
    def f(x: Any) -> Any:
        for _ in range(2):
            x = x + 1
            mlc.debug.breakpoint(x=x, total=x.sum())
        return x

    f(mlc.zeros(3))
    assert [v["x"].tolist() for v in seen] == [[1, 1, 1], [2, 2, 2]] and [v["total"] for v in seen] == [3, 6]
    assert f"stopped at {__file__}:" in capsys.readouterr().out


def test_a_breakpoint_is_at_the_line_with_the_values_under_their_names(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import mlc\n\n@mlc.compile\ndef f(x):\n    y = x + 1\n    mlc.debug.breakpoint(y=y)\n"
                       "    return y\n\nf(mlc.zeros(2))\n")
    done = subprocess.run([sys.executable, str(program)], input="p y + 1\np values['y']\nlist\nc\n", text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    assert "[2., 2.]" in done.stdout and "[1., 1.]" in done.stdout
    assert f"> {program}(6)" in done.stdout and "6  ->\t    mlc.debug.breakpoint(y=y)" in done.stdout


@pytest.mark.parametrize(("message", "args", "reason"), [
    ("{x.shape}", [], "the field {x.shape}"), ("{} {}", [1], "more fields than the 1 values"), ("{", [], "ill-formed"),
    ("{y}", [], "the field {y}"), ("no fields", [1, 2], "2 values, and the message has no fields")])
def test_messages_fit_their_values(message: str, args: list[Any], reason: str) -> None:
    with pytest.raises(UserError) as found:
        mlc.debug.print(message, *args, x=mlc.ones(2)) if "x" in message else mlc.debug.print(message, *args)
    assert found.value.code == "MLC0695" and reason in found.value.message and found.value.loc.file == __file__


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("message", "dtype"), [("{x:d}", "float32"), ("{s:x}", "float32"), ("{n:.2q}", "int64")])
def test_formats_fit_their_values(message: str, dtype: str, compiled: bool) -> None:
    def f(x: Any, n: Any) -> Any:
        mlc.debug.print(message, **{message[1]: {"x": x, "s": x.sum(), "n": n}[message[1]]})
        return x

    with pytest.raises(UserError) as found:
        (mlc.compile(f) if compiled else f)(mlc.ones(2), mlc.tensor([1, 2]))
    assert found.value.code == "MLC0695" and found.value.loc.line == f.__code__.co_firstlineno + 1
    spec = message[3:-1]
    assert f"the format {spec!r} is none for a value of {dtype}" in found.value.message and found.value.hint


def test_formats_of_numbers_fit_them() -> None:
    with pytest.raises(UserError, match="the format 'd' is none for a value of float64"):
        mlc.debug.print("{:d}", 1.5)


def test_code_for_files_has_no_such_operation(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="made for something else") as found:
        mlc.save(mlc.compile(square), tmp_path / "square.mlc", args=[mlc.spec(3)])
    assert found.value.code == "MLC0695" and found.value.loc.line == square.__code__.co_firstlineno + 2
    assert "tensor.debug" in mlc.lower(square, [mlc.spec(3)], level="tensor").to_text()


def test_a_module_cannot_ask_for_attributes() -> None:
    text = 'func.func @f(%x: f32) {{\n  tensor.debug %x {{message = "{}", names = ["x"]}} : f32\n  func.return\n}}\n'
    verify(parse_module(text.format("{x:.2f}")))
    with pytest.raises(Exception, match=r"field \{x\.__class__\}"):
        parse_module(text.format("{x.__class__}"))
