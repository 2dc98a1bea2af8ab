"""mlc reduce and mlc replay: the smallest module that fails in the same way, and files that fail again."""
from __future__ import annotations

from pathlib import Path

import pytest

from mlc.dialects import tensor as tn
from mlc.dialects.func import Call, Func
from mlc.ir.core import Op
from mlc.ir.diag import IRError
from mlc.ir.parser import parse_module
from mlc.ir.verify import verify
from mlc.tools.cli import main
from mlc.tools.reduce import Reduction, failure, parts, size

PROGRAM = """
func.func private @g(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = tensor.tanh %x : tensor<3xf32>
  func.return %0 : tensor<3xf32>
}
func.func private @unused(%x: tensor<Nxi1>) -> tensor<Nxi1> {
  func.return %x : tensor<Nxi1>
}
func.func @main(%x: tensor<3xf32>, %y: tensor<3xf32>, %n: tensor<3xi32>) -> (tensor<3xf32>, tensor<3xi32>) {
  %0 = tensor.sin %y : tensor<3xf32>
  %1 = tensor.mul %0, %x : tensor<3xf32>
  %2 = func.call @g(%1) : (tensor<3xf32>) -> tensor<3xf32>
  %3 = tensor.exp %2 : tensor<3xf32>
  %4 = tensor.add %3, %0 : tensor<3xf32>
  %5 = tensor.add %n, %n : tensor<3xi32>
  func.return %4, %5 : tensor<3xf32>, tensor<3xi32>
}
"""
CRASH = """import os
from mlc.dialects import tensor
from mlc.ir.passes import Pass
def run(module):
    if list(module.inside(tensor.Exp)): os.abort()
PASS = Pass(run)
"""


def test_parts() -> None:
    assert [chosen for chosen, _ in parts(3)] == [range(3), range(2, 3), range(1, 2), range(1)]
    assert list(parts(0)) == []


def test_a_success_is_gone_on_from() -> None:
    """Of ten things, two that have been removed together leave eight; those before them come next, then all again."""
    (_, place), = [found for found in parts(10) if found[0] == range(4, 6)]
    one_by_one = [range(i, i + 1) for i in reversed(range(8))]
    assert [chosen for chosen, _ in parts(8, place)] == [range(2, 4), range(2), *one_by_one]


def test_what_does_not_matter_goes() -> None:
    def fails(module: Op) -> str | None:
        try:
            verify(module)
        except IRError as error:
            assert error.code in ("MLC0106", "MLC0120")    # a function that is called was left out, or gives less
            return error.code
        ops = list(module.walk())
        return "both" if any(isinstance(op, tn.Exp) for op in ops) and any(isinstance(op, Call) for op in ops) else None

    search = Reduction(fails, 1000)
    small = search.reduce(parse_module(PROGRAM), "both")
    assert {op.name for op in small.walk()} == {
        "builtin.module", "func.func", "func.return", "func.call", "tensor.exp"} | {
            op.name for op in small.walk() if isinstance(op, tn.Full)}
    assert len(list(small.inside(Func))) == 2 and size(small) <= 7 and search.tries < 200
    main_function = list(small.inside(Func))[-1]
    assert len(main_function.function_type.results) == 0


def test_the_search_ends_after_so_many_tries() -> None:
    search = Reduction(lambda module: "always", 5)
    search.reduce(parse_module(PROGRAM), "always")
    assert search.tries <= 6


@pytest.mark.slow
def test_a_failure_keeps_its_code(sample_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reduce", "bad.mlir", "-o", "small.mlir", "--tries", "5"]) == 0
    assert "MLC0106: 5 operations became" in capsys.readouterr().err
    assert main(["opt", "small.mlir"]) == 1 and "MLC0106" in capsys.readouterr().err
    assert main(["reduce", "model.mlir"]) == 2
    assert "MLC0391" in capsys.readouterr().err


def test_a_wrong_answer_stays_one(sample_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that holds the arguments of a call fails by its answer."""
    assert main(["reduce", "wrong.mlir", "--allow-pass", "mine.swap", "-o", "small.mlir", "--tries", "4"]) == 0
    assert "MLC0901 of pass mine.swap: 5 operations became" in (err := capsys.readouterr().err), err


def test_a_signal_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "abort.py").write_text(CRASH)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path)
    command = ["opt", "-p", "mine.abort"]
    assert failure(PROGRAM, command, tmp_path / "work", 60) == "signal SIGABRT"
    assert failure(PROGRAM.replace("tensor.exp", "tensor.cos"), command, tmp_path / "work", 60) is None
    assert failure(PROGRAM, command, tmp_path / "work", 0) == "no end within 0 s"


def test_replay(sample_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "crash.mlir"]) == 0
    assert "tensor.exp" in capsys.readouterr().out
    assert main(["replay", "model.mlir"]) == 2
    assert "MLC0394" in capsys.readouterr().err
