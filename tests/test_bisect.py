"""mlc bisect: the changes at fault are found, and no others; keys stay the same when other changes are left out."""
from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from mlc.dialects import arith, tensor
from mlc.dialects.math import Fma
from mlc.dialects.tensor.kernel import Kernel
from mlc.ir import changes
from mlc.ir.changes import Choice
from mlc.ir.core import Value
from mlc.ir.diag import UserError
from mlc.ir.machine import x86_64
from mlc.ir.parser import parse_module
from mlc.ir.printer import to_text
from mlc.ir.rewrite import RULES, rewrite
from mlc.passes import pipeline
from mlc.tools import cli, trials
from mlc.tools.bisect import Search
from mlc.tools.trials import Call, Times

MODEL = """func.func @main(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = tensor.sinh %x : tensor<8x8xf32>
  %1 = tensor.sinh %y : tensor<8x8xf32>
  %2 = tensor.neg %1 : tensor<8x8xf32>
  %3 = tensor.add %0, %2 : tensor<8x8xf32>
  %4 = tensor.neg %3 : tensor<8x8xf32>
  %5 = tensor.neg %4 : tensor<8x8xf32>
  %6 = tensor.softmax %5 {axis = 1} : tensor<8x8xf32>
  %7 = tensor.maximum %0, %1 : tensor<8x8xf32>
  %8 = tensor.add %6, %7 : tensor<8x8xf32>
  func.return %8 : tensor<8x8xf32>
}
"""
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Runs a command line where MODEL stands in model.mlir; rules that are registered are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLC_CACHE", "0")
    Path("model.mlir").write_text(MODEL)
    x = np.random.default_rng(0).uniform(0.5, 2, (8, 8)).astype(np.float32)
    np.savez("same.npz", x=x, y=x)
    rules = {cls: list(some) for cls, some in RULES.items()}

    def call(*words: str) -> tuple[int, str, str]:
        status = cli.main(words)
        return status, *capsys.readouterr()
    yield call
    RULES.clear()
    RULES.update(rules)


def again(out: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """Outcomes of the command lines of a report: with its changes, and with one left out."""
    found = list[tuple[int, str]]()
    for keys, line in re.findall(r"(?:again|without): +MLC_CHANGES=(\S+) mlc (.*)", out):
        with monkeypatch.context() as patch, changes.chosen(changes.parse(keys)):
            patch.setenv("MLC_CHANGES", keys)
            status, _, err = run(*shlex.split(line))
            found.append((status, err))
    return found


# -- the mechanism ----------------------------------------------------------------------------------------------------
def made(only: list[str] | None = None) -> dict[str, changes.Change]:
    choice = Choice(only)
    with changes.chosen(choice):
        pipeline.lower(parse_module(MODEL, "model.mlir"), "llvm", x86_64(256))
    return choice.made


def test_keys_stay_what_they_are() -> None:
    everything = made()
    assert made() == everything and made([]) == {}
    assert {c.step.split()[1] for c in everything.values()} >= {
        "canonicalize", "cse", "dead_argument_elimination", "fuse", "vectorize", "outline", "dce"}
    names = [step.transform.name for step in pipeline.steps()]
    for key, change in everything.items():
        if int(change.step.split()[0]) <= names.index("bufferize"):    # what comes later depends on what was fused
            assert key in made([k for k, c in everything.items() if c.step < change.step] + [key]), change
    folded = [k for k, c in everything.items() if c.rule == "add_of_neg"]
    assert list(made(folded)) == folded


def test_a_module_is_the_same_without_a_choice() -> None:
    text = to_text(pipeline.lower(parse_module(MODEL), "loop", x86_64(256)), locations=True)
    with changes.chosen(Choice()):
        chosen = to_text(pipeline.lower(parse_module(MODEL), "loop", x86_64(256)))
    assert "#" not in text.replace("#loop.schedule", "")
    assert to_text(pipeline.lower(parse_module(MODEL), "loop", x86_64(256))) == chosen


@pytest.mark.parametrize("text", ["canonicalize", "0123456789,-0123456789", "@missing", "0123"])
def test_a_choice_is_ill_formed(text: str) -> None:
    with pytest.raises(UserError) as caught:
        changes.parse(text)
    assert caught.value.code == "MLC0680"


def test_the_environment_chooses(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes._Chosen, "read", False)
    monkeypatch.setenv("MLC_CHANGES", "none")
    assert "tensor.neg" in run("opt", "model.mlir", "-canonicalize")[1]
    monkeypatch.setattr(changes._Chosen, "read", False)
    monkeypatch.setenv("MLC_CHANGES", "oops")
    status, _, err = run("opt", "model.mlir", "-canonicalize")
    assert status == 2 and "MLC0680" in err
    monkeypatch.setattr(changes._Chosen, "read", False)
    monkeypatch.delenv("MLC_CHANGES")
    assert "tensor.neg" not in run("opt", "model.mlir", "-canonicalize")[1]


def test_a_log_that_cannot_be_written(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes._Chosen, "choice", None)
    monkeypatch.setattr(changes._Chosen, "read", False)
    monkeypatch.setenv("MLC_CHANGES_LOG", "no folder/log")
    status, _, err = run("opt", "model.mlir", "-canonicalize")
    assert status == 2 and "MLC0680" in err and "cannot write" in err


@pytest.mark.parametrize("guilty", [{"c"}, {"a", "h"}, {"b", "c", "g"}])
def test_the_search_finds_what_is_needed(guilty: set[str]) -> None:
    search = Search(lambda keys: guilty <= keys, 100)
    assert set(search.smallest("abcdefgh")) == guilty and search.tries < 30 and not search.ended
    short = Search(lambda keys: guilty <= keys, 2)
    assert guilty <= set(short.smallest("abcdefgh")) and short.ended


# -- what goes wrong --------------------------------------------------------------------------------------------------
def test_one_firing_of_many(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    @rewrite(tensor.Sinh)
    def sinh_is_sin(op: tensor.Sinh) -> Value | None:
        """sinh(x) == sin(x), which is wrong"""
        return tensor.Sin(op.x).result if op.loc.line == 3 else None

    status, out, err = run("bisect", "model.mlir")
    assert status == 0, err
    assert "@main: wrong answer: result 0 is " in out and "this one suffices" in out
    assert re.search(r"canonicalize: rule sinh_is_sin: sinh\(x\) == sin\(x\).*\n  tensor.sinh at model.mlir:3:3", out)
    assert re.search(r"    - %\d = tensor.sinh %y .*\n    \+ %\d = tensor.sin %y", out)
    (status, message), (good, _) = again(out, run, monkeypatch)
    assert status == 101 and "rule sinh_is_sin at model.mlir:3:3 does it: firing 1" in message and good == 0


@pytest.mark.slow
def test_two_that_fail_only_together(run: Run) -> None:
    @rewrite(tensor.Sinh)
    def sinh_is_sin(op: tensor.Sinh) -> Value | None:
        """sinh(x) == sin(x), which is wrong, but the larger of two is taken"""
        return tensor.Sin(op.x).result

    Path("model.mlir").write_text(MODEL.replace("softmax %5", "softmax %x"))
    status, out, err = run("bisect", "model.mlir", "--inputs", "same.npz")
    assert status == 0, err
    assert "these 2 suffice, and no fewer of them" in out
    assert re.findall(r"tensor.sinh at model.mlir:(\d)", out) == ["2", "3"]


def test_a_crash_of_a_rule(run: Run) -> None:
    @rewrite(tensor.Sinh)
    def sinh_aborts(op: tensor.Sinh) -> Value | None:
        """ends the process at one place"""
        if op.loc.line == 3:
            os.abort()
        return None

    status, out, err = run("bisect", "model.mlir")
    assert status == 0, err
    assert "@main: the process ended with SIGABRT" in out and "this one suffices" in out
    assert re.search(r"rule sinh_aborts: .*\n  tensor.sinh at model.mlir:3:3", out)


@pytest.mark.slow
def test_a_result_in_the_wrong_place(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kernel, "may_overwrite", lambda self, operand, result: True)
    Path("model.mlir").write_text("""func.func @main(%x: tensor<40x40xf32>) -> tensor<40x40xf32> {
  %0 = tensor.sinh %x : tensor<40x40xf32>
  %1 = tensor.transpose %0 {perm = [1, 0]} : tensor<40x40xf32>
  %2 = tensor.add %0, %1 : tensor<40x40xf32>
  %3 = tensor.dot_general %2, %x {batch = [], contract = [[1, 0]]}
       : (tensor<40x40xf32>, tensor<40x40xf32>) -> tensor<40x40xf32>
  func.return %3 : tensor<40x40xf32>
}
""")
    status, out, err = run("bisect", "model.mlir")
    assert status == 0, out + err
    assert "bufferize: in place" in out.split("this one suffices")[-1], out


@pytest.mark.slow
def test_bits_below_the_pass_that_fixes_them(run: Run) -> None:
    @rewrite(Fma)
    def fma_rounds_twice(op: Fma) -> Value | None:
        """fma(a, b, c) == a * b + c, up to rounding"""
        return arith.AddF(arith.MulF(op.a, op.b).result, op.c).result

    Path("model.mlir").write_text("""func.func @main(%x: tensor<40x40xf32>) -> tensor<40x40xf32> {
  %0 = tensor.exp %x : tensor<40x40xf32>
  func.return %0 : tensor<40x40xf32>
}
""")
    status, out, err = run("bisect", "model.mlir")
    assert status == 0, err
    assert "in bits that no pass after fix_numerics may change" in out and "rule fma_rounds_twice" in out


def test_what_has_to_run_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor.Softmax, "decompose", lambda self: tensor.Exp(self.x).result)
    status, _, err = run("bisect", "model.mlir")
    assert status == 1 and "MLC0681" in err and "note: pass decompose: tensor.softmax becomes" in err


def test_nothing_goes_wrong(run: Run) -> None:
    status, out, err = run("bisect", "model.mlir")
    assert status == 1 and not out and "MLC0682" in err


@pytest.mark.slow
def test_calls_of_a_program(run: Run) -> None:
    @rewrite(tensor.Sinh)
    def sinh_is_sin(op: tensor.Sinh) -> Value | None:
        """sinh(x) == sin(x), which is wrong"""
        return tensor.Sin(op.x).result

    Path("program.py").write_text("""import mlc

@mlc.compile
def right(x):
    return x + 1

@mlc.compile
def wrong(x):
    for _ in range(3):
        x = mlc.tanh(x) * 1.0
    return mlc.sinh(x)

right(mlc.ones(4))
wrong(mlc.ones(4))
assert False, "what is wrong is found all the same"
""")
    status, out, err = run("bisect", "program.py")
    assert status == 0, err
    assert re.search(r"rule sinh_is_sin: .*\n  tensor.sinh at program.py:11:\d+\n      return mlc.sinh\(x\)", out), out


# -- time, which no test measures -------------------------------------------------------------------------------------
def counted(call: Call, choice: Choice, other: Choice) -> Times:
    """Times by the number of products."""
    first, second = (float(sum(op.name == "llvm.fmul" for op in call.lowered(c).walk())) for c in (choice, other))
    return Times(first, second, first / second, first / second)


@pytest.mark.slow
def test_a_rule_that_adds_work(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    @rewrite(tensor.Sinh)
    def sinh_the_long_way(op: tensor.Sinh) -> Value | None:
        """sinh(x) == (exp(x) - exp(-x)) / 2 + 0 * x * x * ..."""
        if op.loc.line != 3:
            return None
        more = op.x
        for _ in range(24):
            more = more * op.x
        half = tensor.Full(0.5, op.x.type.shape, op.x.type.dtype).result
        both = tensor.Exp(op.x).result - tensor.Exp(tensor.Neg(op.x).result).result
        return both * half + more * 0.0

    monkeypatch.setattr(trials, "compile_times", counted)
    Path("model.mlir").write_text(MODEL.replace("softmax %5 {axis = 1}", "abs %5"))
    status, out, err = run("bisect", "model.mlir", "--slow-compile", "--ratio", "1.3")
    assert status == 0, err
    assert "with these changes, of those without any" in out and "this one suffices" in out
    assert re.search(r"rule sinh_the_long_way: .*\n  tensor.sinh at model.mlir:3:3", out)


@pytest.mark.slow
def test_a_change_without_which_it_is_faster(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def times(call: Call, choice: Choice, other: Choice) -> Times:
        """Vectors make it fast, and one firing of a rule makes it slow."""
        def seconds(chosen: Choice) -> float:
            chosen = Choice(chosen.only, chosen.without)
            call.lowered(chosen)
            done = {c.rule for c in chosen.made.values()}
            return 10.0 - 8 * ("schedule" in done) + 3 * ("add_of_neg" in done)
        first, second = seconds(choice), seconds(other)
        return Times(first, second, first / second, first / second)

    monkeypatch.setattr(trials, "call_times", times)
    status, out, err = run("bisect", "model.mlir", "--slow")
    assert status == 0, err
    assert "with all changes, of those without these" in out and "this one suffices" in out and "add_of_neg" in out
    monkeypatch.setattr(trials, "call_times", lambda *given: Times(1.0, 1.0, 1.0, 1.0))
    status, _, err = run("bisect", "model.mlir", "--slow", "--tries", "3")
    assert status == 1 and "MLC0683" in err


def test_times_that_vary_say_nothing() -> None:
    assert Times(1.3, 1.0, 1.3, 1.25).slower(1.2) and not Times(1.3, 1.0, 1.3, 0.9).slower(1.2)
    assert not Times(1.1, 1.0, 1.1, 1.1).slower(1.2)


# -- commands ---------------------------------------------------------------------------------------------------------
SCRIPT = """import sys
from mlc.dialects import tensor
from mlc.ir.rewrite import rewrite
from mlc.tools.cli import main

@rewrite(tensor.Sinh)
def sinh_is_sin(op):
    return tensor.Sin(op.x).result

sys.exit(main(["run", "model.mlir", "--exec", "interp", "--check", "-p", "canonicalize"]) == 101 and {!r} in sys.argv)
"""


@pytest.mark.slow
def test_a_command(run: Run) -> None:
    Path("script.py").write_text(SCRIPT.format("fail"))
    Path("model.mlir").write_text(MODEL.replace("sinh %x", "cosh %x"))
    command = [sys.executable, "script.py"]
    status, out, err = run("bisect", "--", *command, "fail")
    assert status == 0, err
    assert "exit status 1" in out and "this one suffices" in out
    assert "canonicalize: sinh_is_sin\n  tensor.sinh at model.mlir:3:3" in out
    status, _, err = run("bisect", "--", *command)
    assert status == 1 and "MLC0682" in err
    status, _, err = run("bisect", "--", "false")
    assert status == 1 and "MLC0681" in err


@pytest.mark.parametrize("words", ["", "model.mlir -- false", "--slow -- false", "model.mlir --slow --slow-compile",
                                   "model.mlir --ratio 1", "-- no-such-command"])
def test_mistakes(words: str, run: Run) -> None:
    status, _, err = run("bisect", *words.split())
    assert status == 2 and "MLC0391" in err


def test_it_changes_during_the_bisection(run: Run) -> None:
    Path("count.py").write_text("""import sys, pathlib
runs = pathlib.Path("runs")
runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
sys.exit(runs.read_text() == "x")
""")
    status, _, err = run("bisect", "--", sys.executable, "count.py")
    assert status == 1 and "MLC0684" in err
