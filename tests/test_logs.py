"""MLC_LOGS: what the compiler does, by the names of logs; and `mlc diff`."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mlc
from mlc.ir import logs
from mlc.ir.diag import UserError
from mlc.ir.difference import compared, folded
from mlc.tools import cli

STATE = {"scale": 2.0}


def lines_of(names: str, work: Any) -> list[dict[str, Any]]:
    stream = io.StringIO()
    with logs.written_to(stream, names, as_json=True):
        work()
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_each_recompilation_has_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    @mlc.compile
    def step(x: Any, mode: str = "a") -> Any:
        return x * STATE["scale"] if mode == "a" else x.exp()

    def work() -> None:
        step(mlc.ones(3, 4))
        step(mlc.ones(5, 4))
        step(mlc.ones(7, 4))                               # by the same code
        step(mlc.ones(5, 4, dtype=mlc.float64))
        step(mlc.ones(5, 4), mode="b")
        monkeypatch.setitem(STATE, "scale", 3.0)
        step(mlc.ones(3, 4))

    found = lines_of("recompiles", work)
    assert [f["count"] for f in found] == [2, 3, 4, 5] and {f["function"] for f in found} == {"step"}
    assert found[0]["line"] == step.compiled.signature.f.__code__.co_firstlineno and found[0]["file"] == __file__
    for f, reason in zip(found, ("x is tensor<(x_0)x4xf32>, before tensor<3x4xf32>; the new code is for all sizes",
                                 "f64>, before", "mode is 'b', before left out", "STATE['scale'] has changed")):
        assert reason in f["reason"], f["reason"]


def test_kernels_and_schedules_are_logged_with_their_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLC_CACHE", "0")

    def f(x: Any) -> Any:
        y = (x * 3.25).exp()
        return (y @ y).sum() + 0.125

    stream = io.StringIO()
    with logs.written_to(stream, "fusion,schedule,passes,cache,graph"):
        mlc.compile(f)(mlc.ones(17, 17))
    text = stream.getvalue()
    first = f.__code__.co_firstlineno
    fusion = [line for line in text.splitlines() if line.startswith("[fusion]")]
    assert any("apart: " in line for line in fusion) and any(f"{__file__}:{first + 1}" in line for line in fusion)
    assert any(re.search(r"together: \w+ reads mul at its own point: one loop over \[17, 17\]; together: kept in "
                         r"registers: mul", line) for line in fusion)
    assert any(line.startswith("[schedule]") and "over 17 x 17 x 17 (reduction): tile" in line and
               f"{__file__}:{first + 2}" in line for line in text.splitlines())
    assert re.search(r"\[passes\] \d+ fuse\b", text) and "tensor.exp" in text and "[cache] " in text


def test_nothing_is_logged_unasked(capsys: pytest.CaptureFixture[str]) -> None:
    mlc.compile(lambda x: x * 7.75)(mlc.ones(3))
    assert capsys.readouterr().err == "" and lines_of("", lambda: mlc.compile(lambda x: x - 7.5)(mlc.ones(3))) == []


def test_names_are_chosen_as_in_torch(capsys: pytest.CaptureFixture[str]) -> None:
    assert logs.parse("all,-graph") == {*logs.NAMES} - {"graph"} and logs.parse("+fusion, schedule") == {
        "fusion", "schedule"}
    with pytest.raises(UserError, match="no log 'fusoin'") as found:
        logs.parse("recompiles,fusoin")
    assert found.value.code == "MLC0692" and found.value.hint == "did you mean fusion?"
    assert logs.parse("help") == frozenset()
    assert all(name in capsys.readouterr().err for name in ["recompiles"])


def test_the_environment_chooses(tmp_path: Path) -> None:
    import os
    program = "import mlc; f = mlc.compile(lambda x: x + 1); f(mlc.ones(3)); f(mlc.ones(3, 3))"

    def run(**variables: str) -> tuple[int, str]:
        found = subprocess.run([sys.executable, "-c", program], env={**os.environ, **variables}, text=True,
                               capture_output=True, cwd=Path(__file__).parent.parent)
        return found.returncode, found.stderr

    out = tmp_path / "log.jsonl"
    assert run(MLC_LOGS="recompiles", MLC_LOGS_FORMAT="json", MLC_LOGS_OUT=str(out)) == (0, "")
    found, = map(json.loads, out.read_text().splitlines())
    assert found["log"] == "recompiles" and "x is tensor<3x3xf32>" in found["reason"]
    first, second = (run(MLC_LOGS="schedule", MLC_CACHE_DIR=str(tmp_path / "cache"))[1] for _ in range(2))
    assert "thread_dims" not in second and "over 3" in first and "goes through no passes" not in first
    assert re.search(r"\[schedule\] \w+ is in the .* and goes through no passes; MLC_CACHE=0 makes it anew", second)
    status, text = run(MLC_LOGS="recompile")
    assert status == 1 and "MLC0692" in text and "did you mean recompiles?" in text
    status, text = run(MLC_LOGS="recompiles", MLC_LOGS_OUT=str(tmp_path))
    assert status == 1 and f"MLC0692]: MLC_LOGS_OUT: cannot write {tmp_path}" in text
    assert run(MLC_LOGS="recompiles", MLC_LOGS_OUT="/dev/stdout") == (0, "")


# -- differences of modules -------------------------------------------------------------------------------------------
BEFORE = '''\
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor.exp %x : tensor<4xf32>
  %1 = tensor.tanh %0 : tensor<4xf32>
  %2 = tensor.add %1, %0 : tensor<4xf32>
  func.return %2 : tensor<4xf32>
}
'''


def test_names_are_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = tmp_path / "a.mlir", tmp_path / "b.mlir"
    a.write_text(BEFORE)
    b.write_text(BEFORE.replace("%0", "%e").replace("%x", "%input").replace("  ", "      "))
    assert cli.main(["diff", str(a), str(b)]) == 0 and "equal, up to" in capsys.readouterr().out
    b.write_text(BEFORE.replace("%1, %0", "%0, %1"))
    assert cli.main(["diff", str(a), str(b)]) == 1
    out = capsys.readouterr().out
    assert out.count("\n-") == out.count("\n+") == 1 and "tensor.add %0, %1" in out
    assert cli.main(["diff", str(a), str(b), "--json"]) == 1 and len(json.loads(capsys.readouterr().out)) == 2
    b.write_text(BEFORE)
    assert cli.main(["diff", str(a), str(b), "--locations"]) == 0


def test_lines_of_the_first_have_the_names_of_the_second() -> None:
    text = "func.func @f(%x: i64, %y: i64) -> i64 {\n  %0 = arith.subi %x, %y : i64\n}\n"
    swapped = text.replace("%x: i64, %y: i64", "%y: i64, %x: i64")
    assert [line.text.strip() for line in compared(text, swapped) if line.mark != " "] == [
        "%0 = arith.subi %y, %x : i64", "%0 = arith.subi %x, %y : i64"]


def test_an_operation_in_the_place_of_another_is_one_difference() -> None:
    after = BEFORE.replace("%0 = tensor.exp", "%0 = tensor.log").replace("%0", "%y")
    marks = [(line.mark, line.text.split()[2]) for line in compared(BEFORE, after) if line.mark != " "]
    assert marks == [("-", "tensor.exp"), ("+", "tensor.log")]
    below = BEFORE + BEFORE.replace("@f", "@g").replace("%0", "%a")        # names of another function are others
    assert not folded(compared(below, below.replace("%a", "%b")))


def test_names_of_a_removed_function_and_of_several_results() -> None:
    def removed(before: str, after: str) -> list[str]:
        return [line.text.strip() for line in compared(before, after) if line.mark == "-"]

    one = "func.func @f(%a: i64) {\n  func.return %a : i64\n}\n"
    two = one.replace("%a", "%x") + "func.func @g(%a: i64, %b: i64) {\n  %0 = arith.addi %a, %b : i64\n}\n"
    assert removed(two, one)[:2] == ["func.func @g(%a: i64, %b: i64) {", "%0 = arith.addi %a, %b : i64"]
    before = "%p:2 = \"a\"()\n%0:2 = \"z\"()\n\"keep\"(%0#0)\n\"gone\"(%p#1, %0#1)\n"
    assert removed(before, "%0:2 = \"a\"()\n%1:2 = \"z\"()\n\"keep\"(%1#0)\n") == ["\"gone\"(%0#1, %1#1)"]


def test_what_does_not_differ_is_folded() -> None:
    body = "".join(f"  %{i} = tensor.exp %{i - 1} : tensor<4xf32>\n" for i in range(3, 60))
    before = BEFORE.replace("  func.return", body + "  func.return")
    after = before.replace("tensor.exp %30", "tensor.tanh %30")
    text = folded(compared(before, after), 1)
    assert text.splitlines() == [
        " func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {", "   ... 30 lines",
        "   %30 = tensor.exp %29 : tensor<4xf32>", "-  %31 = tensor.exp %30 : tensor<4xf32>",
        "+  %31 = tensor.tanh %30 : tensor<4xf32>", "   %32 = tensor.exp %31 : tensor<4xf32>", "   ... 29 lines"]
    assert folded(compared(before, before)) == ""


def test_changes_of_passes_are_folded_to_what_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(BEFORE.replace("tensor.tanh %0", "tensor.neg %0").replace("%2 =", "%3 = tensor.neg %1 : "
                    "tensor<4xf32>\n  %2 =").replace("add %1", "add %3"))
    assert cli.main(["opt", str(path), "-p", "canonicalize,cse", "--print-ir-after-change"]) == 0
    err = capsys.readouterr().err
    assert "// ----- canonicalize -----\n module {\n   func.func @f" in err and "-    %1' = tensor.neg" in err
    assert "// ----- cse: no change" in err
