"""Files that commands read and write: from the folder that they start in, in the form of their suffix, none lost."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests.samples import Run


def test_files_are_those_of_the_folder_that_the_command_starts_in(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path.cwd())
    here = Path.cwd()
    (here / "elsewhere").mkdir()
    np.save("x.npy", np.ones(3, np.float32))
    Path("moves.py").write_text(f"import os\nimport mlc\nos.chdir({str(here / 'elsewhere')!r})\n"
                                "def f(x: mlc.spec(3)): return x * 2\n")
    for words in ("run moves.py:f --inputs x.npy", "compile moves.py:f --emit=tensor,loop -o both",
                  "compile moves.py:f --emit=loop -o l.mlir --dump-dir dumps"):
        status, _, err = run(*words.split())
        assert status == 0, err
        os.chdir(here)
    assert (here / "both").is_dir() and (here / "dumps").is_dir() and not list((here / "elsewhere").iterdir())


def test_the_suffix_of_a_file_says_what_is_written(run: Run) -> None:
    for name, start in (("f.ll", b"target"), ("f.loop.mlir", b"module {"), ("f.o", b"\x7fELF")):
        assert run("compile", "model.mlir", "-o", name)[0] == 0
        assert Path(name).read_bytes().startswith(start), name


def test_arrays_of_other_types_are_refused_before_anything_runs(run: Run) -> None:
    np.save("x.npy", np.ones((2, 16)))
    np.save("w.npy", np.ones((16, 3), np.float32))
    for how in ("--check", "--exec=interp", "--exec=native"):
        status, out, err = run("run", "model.mlir", "--inputs", "x.npy,w.npy", how)
        assert (status, out) == (1, "") and "[MLC0325]: argument 0 of --inputs has dtype float64" in err


def test_results_in_bfloat16_can_be_read_again(run: Run) -> None:
    Path("b.mlir").write_text("func.func @main(%x: tensor<3xbf16>) -> tensor<3xbf16> {\n"
                              "  %0 = tensor.add %x, %x : tensor<3xbf16>\n  func.return %0 : tensor<3xbf16>\n}\n")
    assert run("run", "b.mlir", "-o", "y.npy")[0] == 0
    assert run("run", "b.mlir", "--inputs", "y.npy")[0] == 0


def test_the_only_function_of_a_file_is_debugged(run: Run) -> None:
    Path("one.py").write_text("import mlc\ndef f(x: mlc.spec(3)): return x * 2\n")
    for words in (["one.py"], ["one.py", "--entry", "f"]):
        status, out, err = run("debug", *words, "-x", "c")
        assert status == 0 and "result 0" in out, err


@pytest.mark.parametrize(("words", "message"), [
    ("explain program.py:f -o program.py", "--output would replace program.py, which is read"),
    ("explain program.py -o ./program.py", "--output would replace program.py, which is read"),
    ("compile program.py:f -o program.py", "--output would replace program.py, which is read"),
    ("explain model.mlir -o model.mlir", "--output would replace model.mlir, which is read"),
    ("run model.mlir:main -o model.mlir", "--output would replace model.mlir, which is read"),
    ("run program.py:f -o program.py", "--output would replace program.py, which is read"),
    ("profile program.py -o x.json --flame ./x.json", "--trace and --flame both write ./x.json"),
    ("profile program.py --flame -", "--flame writes a file"), ("profile program.py -o -", "--trace writes a file")])
def test_outputs_replace_neither_the_program_nor_each_other(words: str, message: str, run: Run) -> None:
    Path("program.py").write_text("raise SystemExit('it has run')\n")
    status, _, err = run(*words.split())
    assert status == 2 and f"error[MLC0391]: {message}" in err and "it has run" not in err
    assert Path("program.py").read_text() == "raise SystemExit('it has run')\n"
