"""The mlc command: an option that would do nothing is a usage error, and no option is silently ignored."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mlc.tools import cli

Run = Callable[[str], tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command line in a folder with a program: (exit status, stderr)."""
    monkeypatch.chdir(tmp_path)
    Path("f.mlc").write_text("def f(x: f32[4]) -> f32[4] = x + 1\n")
    Path("p.py").write_text("import mlc\nprint(mlc.zeros(2))\n")

    def call(words: str) -> tuple[int, str]:
        capsys.readouterr()
        status = cli.main(words.split())
        return status, capsys.readouterr().err
    return call


def refused(run: Run, words: str, option: str, code: str = "MLC0391") -> None:
    status, err = run(words)
    assert status == 2, f"mlc {words}: {option} is ignored: {err}"
    assert code in err and option in err and "help: " in err, err


@pytest.mark.parametrize("words, option", [
    ("--emit=llvm-ir --cpu x86-64-v3", "--cpu"), ("--emit=obj --weights inside", "--weights"),
    ("--emit=stablehlo --checked", "--checked"), ("--emit=tensor,loop --checked -o out", "--checked"),
    ("--emit=stablehlo --target cuda:sm_90", "--target"), ("--emit=trace,tensor --target x86-64-v3 -o out", "--target"),
    ("--emit=llvm-ir --generic", "--generic"), ("--emit=onnx --locations", "--locations"),
    ("--emit=tensor -O 3", "--opt-level"), ("--emit=llvm-ir -O 2", "--opt-level"),
    ("--emit=llvm-ir --matmul-precision tf32", "--matmul-precision"),
    ("--emit=tensor --matmul-precision tf32 --target=cuda:sm_90", "--target"),
    ("--emit=stablehlo --dump-dir dumps", "--dump-dir"), ("--emit=trace --dump-dir dumps", "--dump-dir"),
    ("-o m.so --matmul-precision tf32", "--matmul-precision"), ("-o m.so --dump-dir dumps", "--dump-dir"),
    ("-o m.so --generic", "--generic"), ("-o m.so --locations", "--locations"),
    ("--emit=stub --weights beside", "--weights"), ("--emit=header --cpu x86-64-v3", "--cpu"),
    ("--emit=stub -O 3", "--opt-level"), ("--emit=header,stub --target x86-64-v3", "--target"),
])
def test_options_of_compile_fit_its_outputs(words: str, option: str, run: Run) -> None:
    refused(run, f"compile f.mlc:f {words}", option)
    assert not Path("dumps").exists()


@pytest.mark.parametrize("words", [
    "--emit=low,llvm-ir --generic --locations --checked -o out", "--emit=stablehlo,tensor --generic -o out",
    "--emit=asm -O 0 --target x86-64-v2 --dump-dir dumps", "--emit=loop --target x86-64-v2",
    "--emit=low --target=cuda:sm_90 --matmul-precision tf32", "-o m.so -O 1 --cpu x86-64-v3 --weights beside",
])
def test_options_of_compile_that_do_something(words: str, run: Run) -> None:
    assert run(f"compile f.mlc:f {words}")[0] == 0


def test_types_of_a_module_are_in_its_file(run: Run) -> None:
    assert run("compile f.mlc:f --emit=tensor -o t.mlir")[0] == 0
    refused(run, "compile t.mlir --emit=loop --args f32[4]", "--args")


def test_options_of_run(run: Run) -> None:
    refused(run, "run --allow-pass no.such.module p.py", "--allow-pass")
    refused(run, "run --allow-pass no.such.module f.mlc:f", "--allow-pass")


def test_models_of_other_programs_have_no_functions_with_names(run: Run) -> None:
    pytest.importorskip("onnx")
    assert run("compile f.mlc:f --emit=onnx -o f.onnx")[0] == 0
    for words in ("run f.onnx --entry nonsense", "run f.onnx:nonsense", "compile f.onnx:nonsense --emit=tensor",
                  "explain f.onnx:nonsense", "debug f.onnx:nonsense -x quit", "profile f.onnx:nonsense"):
        refused(run, words, "nonsense", "MLC0399")
    assert run("run f.onnx")[0] == run("compile f.onnx --emit=tensor")[0] == 0
    assert run("compile f.onnx:chosen --emit=stub -o m.pyi")[0] == 0
    assert "def chosen(" in Path("m.pyi").read_text()


def test_options_of_other_commands(run: Run) -> None:
    run("compile f.mlc:f --emit=tensor -o t.mlir")
    refused(run, "diff --json -U 7 t.mlir t.mlir", "--unified")
    assert run("diff -U 7 t.mlir t.mlir")[0] == run("diff --json t.mlir t.mlir")[0] == 0
    refused(run, "fmt --check --kind mlir f.mlc", "--kind")
    refused(run, "quantize nothing -o x.gguf --tokens=0 --perplexity text", "--perplexity")
