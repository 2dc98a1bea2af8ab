"""Seeded faults: each is a replacement that can be made, no two of a list are one; tests that run its lines."""

from __future__ import annotations

import ast
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from mlc.tools.mutants import FAULTS, UNSEEN, generated
from mlc.tools.mutants.__main__ import named_pass
from mlc.tools.mutants.fault import Fault
from mlc.tools.mutants.lines_run import TABLE, Index

ROOT = Path(__file__).parents[1]


def test_the_list_is_not_stale() -> None:
    texts: dict[str, str] = {}
    for fault in (*FAULTS, *UNSEEN):
        text = texts.setdefault(fault.file, (ROOT / fault.file).read_text(encoding="utf-8"))
        assert fault.applied(text) != text
    assert len(FAULTS) >= 150 and len(UNSEEN) >= 40
    assert all(len({f.name for f in some}) == len(some) for some in (FAULTS, UNSEEN))


def test_a_stale_fault_is_an_error() -> None:
    with pytest.raises(ValueError, match="2 times, not once"):
        Fault("rule", "a.py", "x", "y").applied("x x")


@pytest.mark.parametrize("blame, message, named", [
    ("canonicalize", "error[MLC0901]: pass canonicalize changes the answer", True),
    ("canonicalize", "error[MLC0901]: pass cse changes the answer", False),
    ("", "error[MLC0903]: compiled f is not what Python gives", True),
    ("", "error[MLC0901]: pass cse changes the answer", False),
])
def test_who_is_blamed(blame: str, message: str, named: bool) -> None:
    assert named_pass(Fault("", "", "a", "b", blame), message) is named


def test_tests_called_like_a_file_come_first(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "index")) as base, base:
        base.execute(TABLE)
        base.executemany("INSERT INTO run VALUES (?, ?, ?, ?)", [
            ("passes/dce.py", name, 1.0, b"\x02") for name in ("tests/test_a.py::f", "tests/cases/dce/a.mlir::run")])
    index = Index(tmp_path / "index")
    assert index.tests("passes/dce.py", 1, 1, 1) == ["tests/cases/dce/a.mlir::run"]


def test_of_each_test_function_the_quickest_comes_first(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "index")) as base, base:
        base.execute(TABLE)
        base.executemany("INSERT INTO run VALUES (?, ?, ?, ?)", [
            ("a.py", "t.py::f[1]", 2.0, b"\x06"), ("a.py", "t.py::f[2]", 1.0, b"\x02"),
            ("a.py", "t.py::g", 3.0, b"\x02"), ("a.py", "t.py::h", 0.0, b"\x08"), ("b.py", "t.py::h", 0.0, b"\x02")])
    index = Index(tmp_path / "index")
    assert index.lines("a.py") == 0b1110 and index.lines("c.py") == 0
    assert index.tests("a.py", 1, 1, 10) == ["t.py::f[2]", "t.py::g", "t.py::f[1]"]
    assert index.tests("a.py", 1, 1, 5) == ["t.py::f[2]", "t.py::g"]
    assert index.tests("a.py", 2, 2, 10) == ["t.py::f[1]"]
    assert len(index.tests("a.py", 7, 9, 10)) == 4                # none runs these: all of the file


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in Python 3.12")
def test_the_lines_that_a_test_runs_are_recorded(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "mlc.tools.mutants.lines_run", "--lines-run",
                    str(tmp_path / "index"), "tests/test_mutants.py::test_who_is_blamed"], cwd=ROOT, check=True)
    index = Index(tmp_path / "index")
    source = (ROOT / "tools/mutants/__main__.py").read_text(encoding="utf-8")
    line = source.partition("return fault.blame in")[0].count("\n")
    assert len(index.tests("tools/mutants/__main__.py", line + 1, line + 1, 60)) == 2


@pytest.mark.parametrize("source, faults", [
    ("x = a < b", ["x = (a <= b)"]),
    ("x = a + 'b'", []),
    ("x = a and b and c", ["x = (b and c)", "x = (a and c)", "x = (a and b)"]),
    ("if c: pass", ["if (False): pass"]),
    ("f(a, k=True)", ["pass", "(f(a))", "f(a, k=(False))"]),
    ("f(a, b)", ["pass", "(f(b, a))"]),
    ("x = min(a, 1)", ["x = (max)(a, 1)", "x = min(a, (2))"]),
    ("x: int = 3", ["x: int = (4)"]),
    ("raise E(3)", []),
])
def test_faults_made_by_rule(source: str, faults: list[str]) -> None:
    made = generated.edits(ast.parse(source))
    assert [generated.fault("a.py", source, node, new).applied(source) for node, new in made] == faults


def test_a_fault_is_told_from_the_same_line_elsewhere() -> None:
    source = "def f():\n    return 1\ndef g():\n    return 1\n"
    made = [generated.fault("a.py", source, node, new) for node, new in generated.edits(ast.parse(source))]
    assert [f.applied(source) for f in made] == [source.replace("1", "(2)", 1), source[:-2] + "(2)\n"]
