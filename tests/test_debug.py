"""mlc debug: steps, breakpoints, watched values, at every level."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest

from mlc.tools import cli
from mlc.tools.stepping import shown

MODULE = '''\
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = tensor.softmax %x {axis = 1} : tensor<2x3xf32>
  %1 = func.call @g(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = tensor.neg %1 : tensor<2x3xf32>
  func.return %2 : tensor<2x3xf32>
}
func.func @g(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %e = tensor.exp %x : tensor<2x3xf32> loc("model.py":12:3)
  %l = tensor.log %e : tensor<2x3xf32>
  func.return %l : tensor<2x3xf32>
}
'''


class Run:
    """Runs mlc debug on the module, and reads what it prints."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path, self.capsys = folder / "m.mlir", capsys
        self.path.write_text(MODULE)

    def __call__(self, commands: str, *options: str) -> str:
        assert cli.main(["debug", str(self.path), "-x", commands, *options]) == 0
        return self.capsys.readouterr().out

    def stops(self, commands: str, *options: str) -> list[str]:
        """The operations at which it stops."""
        return [line.split("=", 1)[-1].split()[0] for line in self(commands, *options).splitlines()
                if line.startswith("->")]


@pytest.fixture
def debug(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(tmp_path, capsys)


def test_next_passes_over_calls_and_into_enters_them(debug: Run) -> None:
    assert debug.stops("n; n; n") == ["tensor.softmax", "func.call", "tensor.neg"]
    assert debug.stops("n; s; s; s; s") == ["tensor.softmax", "func.call", "tensor.exp", "tensor.log", "tensor.neg"]
    assert debug.stops("n; s; f; c") == ["tensor.softmax", "func.call", "tensor.exp", "tensor.neg"]


@pytest.mark.parametrize("place", ["tensor.exp", "exp", "%e", "model.py:12", "9"])
def test_breakpoints_are_operations_values_and_lines(debug: Run, place: str) -> None:
    out = debug(f"b {place}; c; where; c")
    assert out.count("breakpoint 1: ") == 2 and "(model.py:12:3)" in out and "func.func @g" in out


def test_a_line_of_the_program_is_one_stop_each_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.mlir"
    path.write_text('''func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = tensor.exp %x : tensor<3xf32> loc("model.py":3:3)
  %1 = tensor.log %0 : tensor<3xf32> loc("model.py":3:7)
  %2 = func.call @g(%1) : (tensor<3xf32>) -> tensor<3xf32> loc("model.py":3:9)
  %3 = tensor.neg %2 : tensor<3xf32> loc("model.py":3:1)
  %4 = tensor.sin %3 : tensor<3xf32> loc("model.py":4:1)
  %5 = tensor.cos %4 : tensor<3xf32> loc("model.py":3:5)
  func.return %5 : tensor<3xf32> loc("model.py":5:1)
}
func.func @g(%x: tensor<3xf32>) -> tensor<3xf32> {
  %e = tensor.abs %x : tensor<3xf32> loc("model.py":12:3)
  func.return %e : tensor<3xf32> loc("model.py":13:3)
}
''')

    def stops(commands: str) -> list[str]:
        assert cli.main(["debug", str(path), "-x", commands]) == 0
        return [line.split("=", 1)[-1].split()[0] for line in capsys.readouterr().out.splitlines()
                if line.startswith("->")][1:]

    assert stops("b model.py:3; n; c; c; c") == ["tensor.log", "tensor.cos"]     # it began there
    assert stops("b model.py:12; b model.py:4; c; c; c") == ["tensor.abs", "tensor.sin"]
    assert stops("b 4; c; c") == ["tensor.log"]                        # line 4 of the listing


def test_breakpoints_say_which_line_is_meant(debug: Run) -> None:
    assert "breakpoint 1: 3 of the listing\n" in debug("b 3")
    text = " ".join(debug("h").split())
    assert "stop at model.py:3, a line of the program; at 3, a line of this listing; at" in text


def test_breakpoints_are_listed_and_deleted(debug: Run) -> None:
    assert debug.stops("b exp; b neg; d 1; c; c") == ["tensor.softmax", "tensor.neg"]
    assert "breakpoint 2: neg\n" in debug("b exp; b neg; d 1; b")


def test_values_are_arrays(debug: Run, tmp_path: Path) -> None:
    x = np.array([[0, 0, 0], [1, 2, 3]], np.float32)
    np.save(tmp_path / "x.npy", x)
    given = ["--inputs", str(tmp_path / "x.npy")]
    out = debug(f"n; p %0[0, 1:]; p %x[..., -1]; save %0 {tmp_path / 'y.npy'}; locals; q", *given)
    assert "%0[0, 1:] = float32[2] (from 0.333333 to 0.333333) [0.33333334 0.33333334]" in out
    assert "%x[..., -1] = float32[2]" in out and "%x : tensor<2x3xf32> = float32[2, 3]" in out and "result" not in out
    np.testing.assert_allclose(np.load(tmp_path / "y.npy").sum(1), 1, rtol=1e-6)


def test_the_list_of_commands_fits_the_terminal(debug: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    listed = [line for line in debug("h; q").splitlines() if not line.startswith("->")]
    assert max(map(len, listed)) <= 60 and "  where" in "\n".join(listed)


def test_breakpoints_that_are_none_take_no_number(debug: Run) -> None:
    assert "breakpoint 1: %e" in debug("b tensor.expp; b %e; q")


def test_watched_values_are_shown_when_they_change(debug: Run) -> None:
    out = debug("w e; c")                                  # the % may be left out
    assert "%e is watched" in out and "watched %e is float32[2, 3]" in out
    out = debug("b scf.for; c; c", "--level", "low")       # loops run at every level
    assert out.count("scf.for") >= 4 and "result 0: float32[2, 3]" in out


@pytest.mark.parametrize("level", ["tensor", "loop", "low", "llvm"])
def test_every_level_gives_the_result(debug: Run, level: str) -> None:
    wanted, found = ([float(x) for x in re.findall(r"-?\d+\.\d+", out.partition("result 0")[2])][-6:]
                     for out in (debug("c"), debug("c", "--level", level)))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_commands_come_from_standard_input(debug: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("next\nprint %0\n\nhelp\nquit\n"))
    assert cli.main(["debug", str(debug.path)]) == 0
    out = debug.capsys.readouterr().out
    assert "%0 = float32[2, 3]" in out and "stop at model.py:3" in out and "result" not in out


@pytest.mark.parametrize(("command", "message"), [
    ("b tensor.expp", "nothing is at tensor.expp"), ("p %9", "%9 has no value here"), ("go", "no command 'go'"),
    ("w %nope", "no operation computes %nope"), ("d 7", "no breakpoint 7"),
    ("n; p %0[a]", "error[MLC0694]: 'a' is no index"), ("p", "takes the name of a value; p %0"), ("w", "; w %0"),
    ("save %x", "takes the name of a value; save %0 x.npy"), ("d", "d takes the number of a breakpoint"),
    ("n; p %0[99]", "index 99 is out of bounds"), ("n; p %0[0", "no closing bracket")])
def test_mistakes_are_named_and_the_session_goes_on(debug: Run, command: str, message: str) -> None:
    out = debug(f"{command}; c")
    assert "error[MLC0694]: " in out and message in out and "result 0" in out


def test_a_program_needs_the_name_of_a_function(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.py").write_text("x = 1\n")
    assert cli.main(["debug", str(tmp_path / "model.py")]) == 2 and "which function?" in capsys.readouterr().err


def test_what_is_not_finite_is_counted() -> None:
    assert shown(np.array([1, np.nan, np.inf, 2], np.float32)) == (
        "float32[4] (1 NaN, 1 infinite, from 1 to 2) [ 1. nan inf  2.]")
    assert shown(7) == "7" and shown(np.float32(2)) == "float32[] 2."
