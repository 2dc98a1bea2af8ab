"""SECURITY.md: each promise names the tests that hold mlc to it, and what no other test says."""
from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import artifact, nn
from mlc.frontend import language
from mlc.ir import parser
from mlc.ir.diag import Error, UserError
from mlc.ir.passes import allowances, parse_pipeline, write_reproducer
from mlc.tools import cli
from tests.samples import MODEL_MLIR

ROOT = Path(__file__).parent.parent
TEST = re.compile(r"`(test_\w+\.py)::(test_\w+)`")
STOPS = "import os\nos._exit(7)\n"


def test_every_promise_has_its_tests() -> None:
    """Each point of the lists of promises ends with the tests of it, and all of them exist."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    promises = re.findall(r"(?ms)^\* (.*?)(?=^\* |^#|^$)", text.split("## What is not promised")[0])
    assert len(promises) > 15
    assert [p for p in promises if not TEST.search(p)] == []
    for file, name in TEST.findall(text):
        tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
        assert any(isinstance(node, ast.FunctionDef) and node.name == name for node in tree.body), f"{file}::{name}"


# -- files that ask for modules of Python -----------------------------------------------------------------------------
@pytest.fixture
def folder(sample_folder: Path) -> Path:
    """The current folder, as somebody may have sent it: modules that end the process, and a file that names one."""
    for name in ("evil", "cuda", "mlc_passes", "rich"):
        (sample_folder / name).mkdir()
        (sample_folder / name / "__init__.py").write_text(STOPS)
        (sample_folder / name / "own.py").write_text(STOPS)
    write_reproducer(sample_folder / "sent.mlir", MODEL_MLIR, "canonicalize,evil.own")
    return sample_folder


@pytest.mark.parametrize("words", ["opt sent.mlir --run-reproducer", "run model.mlir", *(
    pytest.param(more, marks=pytest.mark.slow) for more in ("run sent.mlir", "info", "verify sent.mlir",
                                                            "compile model.mlir --emit=tensor"))])
def test_modules_of_the_current_folder_are_not_imported(words: str, folder: Path) -> None:
    run = subprocess.run([sys.executable, "-P", "-m", "mlc.tools.cli", *words.split()], cwd=folder, text=True,
                         capture_output=True, env={"PYTHONPATH": str(ROOT), "MLC_CACHE": "0", "PATH": ""})
    assert run.returncode != 7, run.stderr
    assert ("MLC0454" in run.stderr) == ("--run-reproducer" in words)


def test_a_pass_that_a_file_asks_for_is_allowed_by_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "ours").mkdir()
    (folder / "ours" / "nothing.py").write_text(
        "from mlc.ir.passes import Pass\ndef run(module): pass\nPASS = Pass(run)\n")
    write_reproducer(folder / "kept.mlir", MODEL_MLIR, "ours.nothing,cse")
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert cli.main(["opt", "kept.mlir", "--run-reproducer", "-o", "out.mlir"]) == 1
    assert cli.main(["opt", "kept.mlir", "--run-reproducer", "-o", "out.mlir", "--allow-pass", "ours.nothing"]) == 0
    with pytest.raises(UserError, match=r"(?s)MLC0454.*--allow-pass ours\.nothing"):
        parse_pipeline("builtin.module(ours.nothing)", ())
    assert allowances(parse_pipeline("cse,ours.nothing,ours.nothing")) == " --allow-pass ours.nothing"


# -- arrays and devices -----------------------------------------------------------------------------------------------
def test_arrays_are_not_unpickled(sample_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return os._exit, (7,)

    np.save(sample_folder / "x.npy", np.array([Evil()], object), allow_pickle=True)
    assert cli.main(["run", "model.mlir", "--inputs", "x.npy"]) == 1
    assert "MLC0387" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["/dev/zero", "pipe"])
def test_what_never_ends_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    for read in (mlc.load, nn.load_safetensors, artifact.describe, language.load):
        with pytest.raises(Error, match=r"MLC0392|MLC0645"):
            read(name)
    if name != "pipe":
        monkeypatch.setattr(parser, "MAX_TEXT", 1000)
        with pytest.raises(Error, match=r"MLC0201.*File too large"):
            parser.parse_file(name)
