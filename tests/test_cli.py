"""The mlc command: what it prints, where, with which exit status, and what it leaves behind."""
from __future__ import annotations

import os
import re
import shlex
import signal
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mlc.backends.cuda import ptxas
from mlc.ir.parser import parse_module
from mlc.ir.printer import to_text
from mlc.passes import pipeline
from mlc.tools import bench, cli, files, inputs, opt, report
from tests.samples import MODEL_MLIR, Run

ROOT = Path(__file__).parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}

def process(words: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "mlc", *words], cwd=folder, env=ENVIRONMENT, text=True,
                          capture_output=True, timeout=120)


# -- help -------------------------------------------------------------------------------------------------------------
def examples_of(text: str) -> list[str]:
    return re.findall(r"(?m)^  ((?:mlc|cat) .*)$", text.split("examples:\n")[1])


LONG = ("bench", "chat", "explain", "fuzz", "generate", "import", "quantize", "run")
"""Commands whose examples take seconds; each has other tests, of its own or of the README."""


@pytest.mark.parametrize("command", [pytest.param(command, marks=[pytest.mark.slow] * (command in LONG))
                                     for command in cli.COMMANDS if command not in ("lsp", "serve")])    # they wait
def test_examples_of_the_help_run(command: str, run: Run) -> None:
    if command == "import":
        torch = pytest.importorskip("torch")
        torch.export.save(torch.export.export(torch.nn.Linear(2, 3), (torch.ones(1, 2),)), "model.pt2")
    if command == "run":
        Path("train.py").write_text("import mlc.distributed as dist\ndist.init_process_group()\n")
    if command in ("chat", "generate", "quantize"):
        Path("text.txt").write_text("mlc is a")
        Path("examples").symlink_to(ROOT / "examples")
        Path("models").mkdir()
        for name in ("qwen", "gpt2"):
            Path("models", name).symlink_to(ROOT / "examples" / "assistant")
    status, text, err = run(command, "--help")
    assert status == 0 and not err
    examples = [line for line in examples_of(text) if line != "mlc cache warm"]      # minutes; test_kernel_library
    assert len(examples) >= 2
    for line in examples:
        stdin = "What is mlc?\n" if command == "chat" else ""
        if line.startswith("cat "):
            source, line = line.removeprefix("cat ").split(" | ")
            stdin = Path(source).read_text()
        elif " < " in line:
            line, source = line.split(" < ")
            stdin = Path(source).read_text()
        status, out, err = run(*shlex.split(line)[1:], stdin=stdin)
        assert status == 0, f"{line}\n{err}"
        assert out or "-o" in line or "--ranks" in line, f"{line} prints nothing"      # as ranks print by themselves


def test_options_of_the_examples_of_bench() -> None:
    """Which run for a minute; the default run takes one row, in tests/test_bench.py."""
    for line in examples_of(bench.EXAMPLES):
        bench.parser().parse_args(shlex.split(line)[2:])


def test_examples_of_the_main_help_run(run: Run) -> None:
    status, text, _ = run("--help")
    assert status == 0 and all(command in text for command in cli.COMMANDS)
    for line in examples_of(text):
        assert run(*shlex.split(line)[1:])[0] == 0, line


def test_help_imports_nothing_heavy() -> None:
    code = ("import sys; from mlc.tools.cli import main; main(['--help']); "
            "sys.exit([m for m in ('numpy', 'llvmlite', 'typing', 'argparse', 'mlc.ir') if m in sys.modules] or 0)")
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("width", [80, 60])
def test_tables_and_help_fit_the_terminal(width: int, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    if width != 80:                                        # which is that of pipes
        monkeypatch.setenv("COLUMNS", str(width))
    for words in ("passes", "info", *["--help"] * (width == 80)):
        assert not [line for line in run(words)[1].splitlines() if len(line) > width and " " in line.strip()]
    for command in cli.COMMANDS if width == 80 else ():
        lines = run(command, "--help")[1].splitlines()
        assert not [x for x in lines if len(x) > width and not x.lstrip().startswith((
            "mlc ", "curl ", "MLC_", "["))], command                   # but for what is to be copied, and a choice


def test_without_a_command(run: Run) -> None:
    assert run()[0] == 2
    assert run("help", "opt")[1].startswith("usage: mlc opt")
    assert run("--version")[1].startswith("mlc ")


# -- mistakes: one coded message, the right status, a suggestion, no traceback ----------------------------------------
@pytest.mark.parametrize("words, status, wanted", [
    ("optt model.mlir", 2, "MLC0390.*did you mean mlc opt"),
    ("--hepl", 2, "MLC0390"),
    ("opt model.mlir --genric", 2, "MLC0391.*did you mean --generic"),
    ("opt model.mlir -p canonicalise", 2, "MLC0330.*did you mean canonicalize"),
    ("opt model.mlir -p fuse{max=3}", 2, "MLC0333.*max_ops"),
    ("opt model.mlir -p fuse{max_ops=many}", 2, "MLC0333.*a whole number"),
    ("opt model.mlir -p canonicalize{fast=2}", 2, "MLC0333.*true or false"),
    ("opt model.mlir -p canonicalize{limit=abc}", 2, "MLC0333.*limit = 'abc' is not a whole number or none"),
    ("opt model.mlir -p canonicalize{limit=-1}", 2, "MLC0333.*limit = -1 is negative"),
    ("opt model.mlir -p fix_numerics{products}", 2, "MLC0333.*products needs a value"),
    ("opt model.mlir -p fuse{", 2, "MLC0332"),
    ("opt model.mlir -p bufferize,fix_numerics", 2, "MLC0331"),
    ("opt missing.mlir", 2, "MLC0201.*missing.mlir"),
    ("opt .", 2, "MLC0201"),
    ("opt model.mlir -o missing/out.mlir", 2, "MLC0393.*missing/out.mlir"),
    ("opt model.mlir -o .", 2, "MLC0393"),
    ("opt model.mlir --dump-dir model.py", 2, "MLC039"),
    ("accuracy expp", 2, "MLC0410.*no elementary function"),
    ("accuracy floordiv", 2, "MLC0410.*in steps, each of which is rounded.*within 0.5 units"),
    ("ops tensor.epx", 2, "MLC0395.*did you mean tensor.exp"),
    ("ops exp", 2, r"MLC0395.*did you mean \w+.exp"),
    ("passes canonicalise", 2, "MLC0330.*did you mean canonicalize"),
    ("explain-error MLC9999", 2, "MLC0396"),
    ("info --target pentium", 2, "MLC0501.*x86-64-v3"),
    ("info model.mlir --target x86-64-v3", 2, "MLC0391.*--target has no meaning here"),
    ("bench --list --json list.json", 2, "MLC0391.*--json has no meaning here"),
    ("bisect -o replay.mlir -- true", 2, "MLC0391.*--output has no meaning here"),
    ("bisect --ratio 2 -- true", 2, "MLC0391.*--ratio has no meaning here"),
    ("compile model.mlir -o out.mlir", 2, "MLC0391.*out.mlir may be any level.*--emit=tensor, loop"),
    ("compile model.mlir -o out.ptx", 2, "MLC0391.*there is no ptx for a CPU"),
    ("compile model.py", 2, "MLC0399.*model.py:FUNCTION.*it has predict"),
    ("debug model.py", 2, "MLC0399.*model.py:FUNCTION.*it has predict"),
    ("explain missing.py", 2, "MLC0392.*missing.py"),
    ("profile model.mlir --target=cuda", 2, "MLC0391.*see mlc profile --help"),
    ("fmt missing", 2, "MLC0392.*missing: No such file"),
    ("compile model.py:predikt", 2, "MLC0399.*did you mean model.py:predict"),
    ("compile model.py:scale", 2, "MLC0388.*--args"),
    ("compile model.py:predict --emit=assm", 2, "MLC0391.*did you mean asm"),
    ("compile model.py:predict --emit=asm,obj", 2, "MLC0391.*-o DIR"),
    ("compile missing.py:f", 2, "MLC0392.*missing.py"),
    ("compile model.mlir:other", 2, "MLC0399.*@main"),
    ("compile model.mlir:main -o net.so", 2, "MLC0399.*model.mlir is no source of a module.*object file"),
    ("bench model.mlir --plot chart.bogus", 2, "MLC0391.*chart.bogus is no kind of chart.*.svg"),
    ("run model.mlir --args float[3]", 2, "MLC0397.*f32"),
    ("run model.mlir --sizes B", 2, "MLC0397"),
    ("run model.mlir --sizes Q=3", 2, "MLC0391.*there is no size Q"),
    ("run model.mlir --sizes B=3,B=4", 2, "MLC0397.*B is 3 and 4"),
    ("run model.mlir --args f32[2,16],f32[16,3] --sizes B=3", 2, "MLC0397.*size 0 of argument 0 is 2, where B is 3"),
    ("run model.mlir --inputs missing.npy", 2, "MLC0392"),
    ("run model.mlir --inputs model.py", 1, "MLC0387"),
    ("run model.mlir --entry mian", 2, "MLC0399.*did you mean @main"),
    ("run scalars.mlir", 1, "MLC0389.*--exec=interp"),
    ("run fails.py", 1, "fails.py:2: error.MLC0398.: ZeroDivisionError.*1 / 0"),
    ("run missing.py", 2, "MLC0392"),
    ("run missing.py:f", 2, "MLC0392.*missing.py"),
])
def test_usage_errors_have_a_code_and_a_hint(words: str, status: int, wanted: str, run: Run) -> None:
    before = {p: p.read_bytes() for p in Path().iterdir() if p.is_file()}
    found, out, err = run(*words.split())
    assert found == status, err
    assert re.search(wanted, err, re.S), err
    assert err.count("error[") == 1 and "Traceback" not in err
    assert not out or words == "run fails.py"
    assert {p: p.read_bytes() for p in Path().iterdir() if p.is_file()} == before, "something was left behind"


@pytest.mark.parametrize(("words", "closed", "status", "wanted"), [
    ("opt model.mlir", ">&-", 2, "error[MLC0392]: cannot use stdout"), ("--help", ">&-", 2, "error[MLC0392]"),
    ("passes", ">/dev/full", 2, "error[MLC0392]: cannot use"), ("--version", ">/dev/full", 2, "error[MLC0392]"),
    ("opt -", "<&-", 2, "error[MLC0201]: cannot read <stdin>"), ("optt", "2>&-", 2, "")])
def test_streams_that_are_closed_or_full(words: str, closed: str, status: int, wanted: str,
                                         sample_folder: Path) -> None:
    command = f"{sys.executable} -m mlc.tools.cli {words} {closed}"
    done = subprocess.run(["sh", "-c", command], cwd=sample_folder, env=ENVIRONMENT, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == status and not done.stdout and wanted in done.stderr
    assert done.stderr.count("error[") == bool(wanted) and "Traceback" not in done.stderr


def test_files_that_end_themselves_or_change_the_folder(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path.cwd())
    Path("ends.py").write_text("import sys\nif True:\n    sys.exit('set DATA first')\ndef f(x): return x\n")
    assert run("run", "ends.py:f")[::2] == (1, "set DATA first\n")
    Path("moves.py").write_text("import os\nimport mlc\nos.chdir('/')\nif True:\n"
                                "    def f(x: mlc.spec('B')): return x * 2\n")
    status, out, _ = run("compile", "moves.py:f", "--emit=trace", "--locations")
    assert status == 0 and 'moves.py":5:0)' in out


@pytest.mark.parametrize("text, wanted", [
    (MODEL_MLIR[:150], "MLC02"),
    ("module {" * 20_000, "MLC0204"),
    ("{" * 20_000, "MLC0203"),
    ("func.func @f(%x: " + "tensor<" * 20_000, "MLC02"),
    ("func.func @f(%x: tensor<99999999999999999999xf32>) { func.return }", "MLC0204"),
    ("func.func @f(%x: f33) { func.return }", "MLC0206"),
    ("func.func @f() attributes {a = " + "[" * 20_000, "MLC0204"),
    ("\x00", "MLC0203"),
    (b"module {\xff\xfe}", "MLC0202"),
])
def test_bad_input(text: str | bytes, wanted: str, run: Run) -> None:
    status, out, err = run("opt", "-", stdin=text)
    assert status == 1 and not out
    assert wanted in err and err.count("error[") == 1 and "Traceback" not in err and len(err) < 2000


@pytest.mark.parametrize("words", ["explain", "profile", "run", "debug"])
@pytest.mark.parametrize(("text", "line", "reason"), [
    ("x = 1\n\0", 2, "cannot contain null bytes"), ("x = 1\n\ndef f(:\n", 3, "invalid syntax")])
def test_a_file_that_python_cannot_read_is_named(words: str, text: str, line: int, reason: str, run: Run) -> None:
    Path("faulty.py").write_text(text)
    for file in ["faulty.py"] * (words != "debug") + ["faulty.py:f"]:
        status, _, err = run(words, file)
        assert status == 1 and err.startswith(f"faulty.py:{line}:") and reason in err


def test_debug_shows_the_traceback(run: Run) -> None:
    assert "Traceback" in run("run", "fails.py", "--debug")[2]


def test_the_users_line_is_named(run: Run) -> None:
    Path("bad.py").write_text('import mlc\n\ndef f(x: mlc.spec("B", 16), w: mlc.spec(15, 3)):\n    return x @ w\n')
    status, _, err = run("compile", "bad.py:f", "--emit=trace")
    assert status == 1 and "bad.py:4:" in err and "inner sizes differ: 16 and 15" in err and "return x @ w" in err


def test_defects_say_how_to_replay(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opt, "to_text", lambda *args: 1 // 0)
    status, _, err = run("opt", "model.mlir")
    assert status == 101 and "MLC0900" in err and "replay it with: mlc opt model.mlir --debug" in err
    assert "Traceback" not in err


# -- colour -----------------------------------------------------------------------------------------------------------
def test_colour(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\033[" not in run("opt", "missing.mlir")[2]
    assert "\033[1;31merror[MLC0201]:\033[0m" in run("opt", "missing.mlir", "--color=always")[2]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert report.wants_color("auto")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not report.wants_color("auto")


# -- files ------------------------------------------------------------------------------------------------------------
def test_output_files_are_written_atomically(sample_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = Path("out.txt")
    files.write("out.txt", "old")
    target.chmod(0o640)
    files.write("out.txt", "new")
    assert target.read_text() == "new" and stat.S_IMODE(target.stat().st_mode) == 0o640

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        files.write("out.txt", "newer")
    assert target.read_text() == "new" and not list(Path().glob(".out*"))
    files.write(os.devnull, "a device is written to, not replaced")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.parametrize(("words", "path", "reason", "hint"), [
    ("profile {} -o {}", "no/t.json", "No such file or directory", "make the folder first"),
    ("profile {} --flame {}", "folder", "Is a directory", "give the name of a file"),
    ("profile {} --json {}", "file/k.json", "Not a directory", "part of the path is a file"),
    ("explain {} -o {}", "no/x.html", "No such file or directory", "make the folder first"),
    ("run {}:main -o {}", "no/x.npz", "No such file or directory", "make the folder first"),
    ("compile {}:main -o {}", "no/x.o", "No such file or directory", "make the folder first"),
    ("compile {}:main -o {}", "no/x.so", "No such file or directory", "make the folder first"),
    ("compile {}:main --emit=loop,asm -o {}", "file/out", "Not a directory", "part of the path is a file"),
    ("compile {}:main --dump-dir {}", "file/out", "Not a directory", "part of the path is a file"),
    ("opt {} --dump-dir {}", "file/out", "Not a directory", "part of the path is a file"),
    ("opt {} --crash-reproducer {}", "no/crash.mlir", "No such file or directory", "make the folder first"),
    ("fuzz --log {1}", "no/log", "No such file or directory", "make the folder first"),
    ("fuzz -o {1}", "file/found", "Not a directory", "part of the path is a file")])
def test_what_cannot_be_written_is_said_before_the_program_runs(
        words: str, path: str, reason: str, hint: str, run: Run, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("raise SystemExit('it has run')\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    status, out, err = run(*words.format(program, tmp_path / path).split())
    assert (status, out) == (2, "") and "it has run" not in err
    assert f"[MLC0393]: cannot write {tmp_path / path}: {reason}" in err and hint in err


@pytest.mark.parametrize(("module", "option", "place"), [
    ("site", "-o", "file/site"), ("gpu_check", "--out", "file/found"), ("mutants", "--log", "no/log")])
def test_programs_say_before_their_work_what_cannot_be_written(module: str, option: str, place: str,
                                                               tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = subprocess.run([sys.executable, "-m", f"mlc.tools.{module}", option, place], cwd=tmp_path, env=ENVIRONMENT,
                          capture_output=True, text=True)
    assert done.returncode == 2 and f"[MLC0393]: cannot write {place}: " in done.stderr, done.stderr


@pytest.mark.parametrize("words", ["compile {}:main --emit=loop,asm -o {}", "compile {}:main --dump-dir {}",
                                   "opt {} --dump-dir {}", "fuzz -o {1}"])
def test_a_file_in_place_of_a_folder_is_said_before_the_program_runs(words: str, run: Run, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("raise SystemExit('it has run')\n")
    (tmp_path / "file").write_text("as it was")
    status, out, err = run(*words.format(program, tmp_path / "file").split())
    assert (status, out) == (2, "") and "it has run" not in err and (tmp_path / "file").read_text() == "as it was"
    assert f"[MLC0393]: cannot write to {tmp_path / 'file'}: it is a file" in err and "name of a folder" in err


def test_several_outputs_need_a_folder_before_the_program_runs(run: Run, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("raise SystemExit('it has run')\n")
    status, out, err = run("compile", f"{program}:main", "--emit=loop,asm")
    assert (status, out) == (2, "") and "it has run" not in err and "[MLC0391]: 2 outputs need a folder" in err


def test_files_are_named_from_where_the_command_is_started(run: Run, tmp_path: Path,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    program, elsewhere = tmp_path / "program.py", tmp_path / "elsewhere"
    elsewhere.mkdir()
    program.write_text(f"import os, mlc\nos.chdir({str(elsewhere)!r})\nmlc.compile(lambda x: x + 1)(mlc.ones(3))\n")
    monkeypatch.chdir(tmp_path)
    assert run("profile", "program.py", "-o", "t.json", "--flame", "f.svg", "--json", "k.json", "--no-roofline")[0] == 0
    monkeypatch.chdir(tmp_path)
    assert run("explain", "program.py", "-o", "x.html")[0] == 0
    assert {p.name for p in tmp_path.iterdir()} >= {"t.json", "f.svg", "k.json", "x.html"}
    assert not list(elsewhere.iterdir())
    monkeypatch.setenv("MLC_LOGS_OUT", "log.txt")
    monkeypatch.chdir(tmp_path)
    code = f"import os, mlc\nos.chdir({str(elsewhere)!r})\nmlc.compile(lambda x: x + 1)(mlc.ones(3))"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "MLC_LOGS": "all", "MLC_CACHE": "0"}, check=True)
    assert (tmp_path / "log.txt").exists() and not list(elsewhere.iterdir())


def test_stdin_and_stdout(run: Run) -> None:
    status, out, err = run("opt", "-", "-o", "-", stdin=MODEL_MLIR)
    assert status == 0 and out == to_text(parse_module(MODEL_MLIR)) and not err
    assert run("opt", "-o", "out.mlir", stdin=MODEL_MLIR)[1] == ""
    assert Path("out.mlir").read_text() == out


# -- opt --------------------------------------------------------------------------------------------------------------
def test_opt_print_options(run: Run) -> None:
    _, out, err = run("opt", "model.mlir", "-p", "canonicalize,cse", "--print-ir-after-all", "--timing", "--rule-stats")
    assert err.count("// ----- after") == 2 and "100.0 %  all passes" in err and "tried" in err
    assert out.startswith("module {")
    _, _, err = run("opt", "model.mlir", "-p", "canonicalize,fix_numerics", "--print-ir-after-change")
    assert "canonicalize: no change" in err and "+    %2 = tensor.map" in err
    assert '"mlc.tensor.exp"' in run("opt", "model.mlir", "--generic")[1]
    assert "model.mlir" in run("opt", "model.mlir", "--locations")[1]


def test_opt_dumps_every_pass(run: Run) -> None:
    run("opt", "model.mlir", "-p", "canonicalize,fix_numerics,fuse", "--dump-dir", "dumps")
    assert sorted(os.listdir("dumps")) == ["00_input.mlir", "01_canonicalize.mlir", "02_fix_numerics.mlir",
                                           "03_fuse.mlir"]


@pytest.mark.parametrize("words", ["opt model.py", "diff model.mlir model.py", "reduce model.py --check"])
def test_a_program_is_no_module(words: str, run: Run) -> None:
    status, _, err = run(*words.split())
    assert status == 2 and "MLC0392]: model.py is no .mlir file" in err and "mlc compile model.py:FUNCTION" in err


def test_opt_dumps_each_part_of_a_file_into_its_own_folder(run: Run) -> None:
    Path("parts.mlir").write_text("func.func @f() {\n  func.return\n}\n// -----\nfunc.func @g() {\n  func.return\n}\n")
    assert run("opt", "parts.mlir", "--split-input-file", "-p", "cse", "--dump-dir", "dumps")[0] == 0
    for folder, name in (("00", "@f"), ("01", "@g")):
        assert sorted(os.listdir(f"dumps/{folder}")) == ["00_input.mlir", "01_cse.mlir"]
        assert name in Path(f"dumps/{folder}/01_cse.mlir").read_text()


def test_dumps_of_several_levels_are_those_of_one_way_down(run: Run) -> None:
    run("compile", "model.py:predict", "--emit=low", "-o", os.devnull, "--dump-dir", "one")
    assert run("compile", "model.py:predict", "--emit=trace,tensor,loop,low", "-o", "out", "--dump-dir", "more")[0] == 0
    assert sorted(os.listdir("more")) == sorted(os.listdir("one"))
    assert all(Path("more", name).read_text() == Path("one", name).read_text() for name in os.listdir("one"))


@pytest.mark.parametrize("words, same_as", [
    ("--pass-pipeline=builtin.module(func.func(cse,canonicalize))", "-p cse,canonicalize"),
    ("-cse -canonicalize", "-p cse,canonicalize"),
    ("--cse --fix-numerics --fuse=max_ops=3", "-p cse,fix_numerics,fuse{max_ops=3}"),
    ("--mlir-print-op-generic --mlir-disable-threading", "--generic"),
    ("--mlir-print-debuginfo", "--locations"),
    ("--verify-each=false -canonicalize", "-p canonicalize"),
])
def test_upstream_spellings(words: str, same_as: str, run: Run) -> None:
    got, want = run("opt", "model.mlir", *words.split()), run("opt", "model.mlir", *same_as.split())
    assert got == want and got[0] == 0


def test_upstream_spellings_of_printing(run: Run) -> None:
    _, _, err = run("opt", "model.mlir", "-cse", "--mlir-print-ir-after-all", "--mlir-timing")
    assert "// ----- after cse" in err and "all passes" in err


def test_split_input_file(run: Run) -> None:
    text = "module {\n}\n// -----\nfunc.func @f() {\n  func.return\n}\n"
    status, out, _ = run("opt", "--split-input-file", stdin=text)
    assert status == 0 and out.count("// -----") == 1 and out.count("module {") == 2
    status, out, err = run("opt", "--split-input-file", stdin=text + "// -----\nfoo.bar\n")
    assert status == 1 and not out and "<stdin>:8:1: error[MLC0211]" in err


DIAGNOSED = """module {}
// -----
// expected-error@+1 {{unknown operation foo.bar}}
foo.bar
// -----
// expected-error-re@below {{@f .* twice}}
func.func @f() { func.return } func.func @f() { func.return }
"""


def test_verify_diagnostics(run: Run) -> None:
    assert run("opt", "--split-input-file", "--verify-diagnostics", stdin=DIAGNOSED)[0] == 0
    status, _, err = run("opt", "--split-input-file", "--verify-diagnostics", stdin=DIAGNOSED.replace("foo.bar}", "x}"))
    assert status == 1 and "unexpected error: unknown operation foo.bar" in err and "was not produced" in err


CRASHING_PASS = '''"""A pass that fails where there is an exp."""
from mlc.dialects import tensor
from mlc.ir.passes import Pass


def run(module):
    """Fail."""
    assert not list(module.inside(tensor.Exp)), "an exp"


PASS = Pass(run)
'''


def test_a_crash_leaves_a_reproducer(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("crashing_pass_package").mkdir()
    Path("crashing_pass_package/crash.py").write_text(CRASHING_PASS)
    monkeypatch.setattr(sys, "path", list(sys.path))
    status, out, err = run("opt", "model.mlir", "-p", "canonicalize,crashing_pass_package.crash,cse")
    assert status == 101 and not out and "an exp" in err
    line = re.search(r"replay it with: (mlc .*)", err)
    assert line and '"builtin.module(crashing_pass_package.crash,cse)"' in Path("mlc-crash.mlir").read_text()
    again = run(*shlex.split(line[1])[1:], "--crash-reproducer", "again.mlir")
    assert again[0] == 101 and "an exp" in again[2]
    assert Path("again.mlir").read_text() == Path("mlc-crash.mlir").read_text()


def test_a_failure_is_shown_where_no_file_can_hold_its_reproducer(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("unwritable_package").mkdir()
    Path("unwritable_package/crash.py").write_text(CRASHING_PASS)
    Path("full").symlink_to("/dev/full")
    monkeypatch.setattr(sys, "path", list(sys.path))
    status, _, err = run("opt", "model.mlir", "-p", "unwritable_package.crash", "--crash-reproducer", "full")
    assert status == 101 and "failed: AssertionError: an exp" in err
    assert "note: no file replays it: cannot write full: No space left on device" in err and "replay it with" not in err


@pytest.mark.parametrize(("text", "place", "wanted"), [
    ("def run(module:\n", "{}:1:8", "SyntaxError: '(' was never closed"),
    ("\nimport there_is_none\n", "{}:2", "ModuleNotFoundError: No module named 'there_is_none'")])
def test_a_pass_that_cannot_be_imported(text: str, place: str, wanted: str, run: Run,
                                        monkeypatch: pytest.MonkeyPatch) -> None:
    Path("faulty_pass_package").mkdir()
    file = Path("faulty_pass_package/own.py").absolute()
    file.write_text(text)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "faulty_pass_package", raising=False)
    status, _, err = run("opt", "model.mlir", "-p", "faulty_pass_package.own")
    assert status == 1 and f"{place.format(file)}: error[MLC0398]: the pass faulty_pass_package.own" in err
    assert wanted in err and err.count("error[") == 1


def test_a_reproducer_of_a_fixed_fault_passes(run: Run) -> None:
    from mlc.ir.passes import write_reproducer
    write_reproducer(Path("r.mlir"), MODEL_MLIR, "fix_numerics,fuse{max_ops=3}")
    assert run("opt", "r.mlir", "--run-reproducer") == run("opt", "model.mlir", "-p", "fix_numerics,fuse{max_ops=3}")


# -- listings ---------------------------------------------------------------------------------------------------------
def test_passes_lists_the_order_with_its_reasons(run: Run) -> None:
    _, out, _ = run("passes")
    for _, text, why in (*pipeline.ORDERS["cpu"], *pipeline.ORDERS["gpu"]):
        assert f"{text} {why}" in re.sub(r"\s+", " ", out)
    assert "option max_ops = " in run("passes", "fuse")[1]


def test_ops(run: Run) -> None:
    from mlc.ir.core import REGISTRY
    _, out, _ = run("ops")
    assert all(re.search(rf"(?m)^{re.escape(name)} ", out) for name in REGISTRY)
    _, out, _ = run("ops", "tensor.reduce_sum")
    assert "axes: tuple[int, ...]" in out and "traits: pure" in out and "vjp" in out and "rule sum_of_zeros" in out
    assert {line.split(".")[0] for line in run("ops", "arith")[1].splitlines()[1:]} == {"arith"}
    for name, rule in (("silu", "Silu.partial"), ("mul", "Mul.partials")):
        place = re.search(rf"vjp +{rule} +(dialects/tensor/\w+.py):(\d+)", run("ops", f"tensor.{name}")[1])
        assert place and f"def {rule.split('.')[1]}(" in (
            Path(__file__).parents[1] / place[1]).read_text(encoding="utf-8").splitlines()[int(place[2]) - 1]


@pytest.mark.parametrize("width", [80, 120])
def test_lists_fit_the_terminal(width: int, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for words in (["ops"], ["ops", "nvvm"]):
        out = run(*words)[1]
        assert max(map(len, out.splitlines())) <= width and "meaning" in out
    monkeypatch.delenv("COLUMNS")
    assert max(map(len, run("ops")[1].splitlines())) > 200              # a line for each where nobody says how wide


def test_info(run: Run) -> None:
    _, out, _ = run("info")
    for word in ("numpy", "llvmlite", "LLVM", "vector_bits", "features", "memcpy"):
        assert word in out


# -- compile ----------------------------------------------------------------------------------------------------------
def test_compile_to_every_level(run: Run) -> None:
    from mlc.tools.compile import SUFFIXES
    wanted = [level for level in SUFFIXES if level not in ("ptx", "resources")]
    status, out, err = run("compile", "model.py:predict", "--emit=" + ",".join(wanted), "-o", "build")
    assert status == 0 and not out and not err
    assert sorted(os.listdir("build")) == sorted("predict" + SUFFIXES[level] for level in wanted)
    assert Path("build/predict.o").read_bytes().startswith(b"\x7fELF")
    assert "define i32 @main_entry" in Path("build/predict.ll").read_text()
    assert "main_entry:" in Path("build/predict.s").read_text()


def test_compile_for_a_gpu(run: Run) -> None:
    status, ptx, err = run("compile", "model.py:predict", "--target=cuda:sm_90")
    assert status == 0 and not err and ".target sm_90" in ptx and ".visible .entry dot_general" in ptx
    for level, word in (("loop", "tiles_per_cta = 256"), ("low", "gpu.launch_func"), ("llvm", "nvvm.kernel"),
                        ("llvm-ir", "define ptx_kernel void @dot_general")):
        assert word in run("compile", "model.py:predict", "--target=cuda:sm_90", f"--emit={level}")[1]
    assert run("compile", "model.py:predict", "--target=cuda:sm_90", "--emit=obj") == (
        2, "", "error[MLC0391]: --emit: there is no obj for a GPU\n  help: ask for llvm-ir or resources or ptx\n")
    run("compile", "model.py:predict", "--target=cuda:sm_90", "--emit=low", "-o", "gpu.mlir")
    assert run("compile", "gpu.mlir", "--target=cuda:sm_90")[1] == ptx


def test_compile_without_tensor_cores(run: Run) -> None:
    Path("product.mlir").write_text("""func.func @f(%x: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
      %0 = tensor.dot_general %x, %x {batch = [], contract = [[1, 0]]}
        : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
      func.return %0 : tensor<64x64xbf16>
    }""")
    words = "compile", "product.mlir:f", "--target=cuda:sm_80"
    assert "mma.sync" in run(*words)[1] and "mma.sync" not in run(*words, "--matmul-precision=ieee")[1]


@pytest.mark.skipif(ptxas.find() is None, reason="ptxas is not installed")
def test_compile_reports_the_resources_of_kernels(run: Run) -> None:
    status, out, err = run("compile", "model.py:predict", "--target=cuda:sm_90", "--emit=resources")
    heads, *rows = (line.split() for line in out.splitlines())
    assert status == 0 and not err and heads[:3] == ["kernel", "threads", "registers"]
    for _, *numbers in rows:
        threads, registers, shared, spilled = map(int, numbers)
        assert 32 <= threads <= 1024 and 8 <= registers <= 255 and 0 <= shared <= 48 << 10 and spilled == 0
    assert any(name.startswith("dot_general") for name, *_ in rows)


def test_ptxas_reports_the_resources_of_kernels(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptxas, "find", lambda: None)
    status, out, err = run("compile", "model.py:predict", "--target=cuda:sm_90", "--emit=resources")
    assert status == 1 and not out and "error[MLC0590]" in err and "nvidia-cuda-nvcc" in err


def test_every_level_gives_the_same_numbers(run: Run) -> None:
    run("compile", "model.py:predict", "--emit=trace,tensor,loop,low,llvm", "-o", "build")
    results = {run("run", f"build/predict.{level}.mlir")[1] for level in ("trace", "tensor", "loop", "low", "llvm")}
    results |= {run("run", f"build/predict.{level}.mlir", "--exec=interp")[1] for level in ("loop", "low", "llvm")}
    assert len(results) == 1 and "f32[3, 3]" in results.pop()


def test_compile_part_of_a_module(run: Run) -> None:
    Path("two.mlir").write_text("func.func private @h(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                                "  %0 = tensor.exp %x : tensor<2xf32>\n  func.return %0 : tensor<2xf32>\n}\n"
                                "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                                "  %0 = func.call @h(%x) : (tensor<2xf32>) -> tensor<2xf32>\n"
                                "  func.return %0 : tensor<2xf32>\n}\n"
                                "func.func @g(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                                "  func.return %x : tensor<2xf32>\n}\n")
    _, out, _ = run("compile", "two.mlir:f", "--emit=trace")
    assert "@f" in out and "@h" in out and "@g" not in out
    run("compile", "two.mlir", "--emit=low", "-o", "two.low.mlir")
    _, out, _ = run("compile", "two.low.mlir:f", "--emit=llvm-ir")
    assert "@f_entry" in out and "@g_entry" not in out
    status, _, err = run("compile", "two.low.mlir:f", "--emit=loop")
    assert status == 2 and "MLC0335" in err


def test_the_same_input_gives_the_same_object(run: Run) -> None:
    for name in ("a.o", "b.o"):
        run("compile", "model.py:predict", "--emit=obj", "-o", name, "--target", "x86-64-v3")
    assert Path("a.o").read_bytes() == Path("b.o").read_bytes()


# -- run --------------------------------------------------------------------------------------------------------------
def test_run_takes_inputs_and_gives_outputs(run: Run) -> None:
    x, w = np.ones((2, 16), np.float32), np.full((16, 3), 0.125, np.float32)
    np.save("x.npy", x)
    np.savez("rest.npz", w=w)
    assert run("run", "model.mlir", "--inputs", "x.npy,rest.npz", "-o", "y.npy")[1] == ""
    assert np.allclose(np.load("y.npy"), np.exp(2 * (x @ w)), rtol=1e-5)
    _, out, _ = run("run", "model.mlir", "--args", "f32[7,16],f32[16,3]", "--exec=interp")
    assert out.startswith("result 0: f32[7, 3]\n")
    assert run("run", "model.mlir", "--sizes", "B=4")[1].startswith("result 0: f32[4, 3]\n")
    assert run("run", "model.mlir", "--seed", "1")[1] != run("run", "model.mlir", "--seed", "2")[1]


def test_run_takes_functions(run: Run) -> None:
    """As compile does, with random arguments as for a module."""
    _, text, _ = run("compile", "model.py:predict", "--emit=tensor")
    Path("predict.mlir").write_text(text)
    status, wanted, _ = run("run", "predict.mlir", "--sizes", "B=4", "--seed", "3")
    assert status == 0 and "f32[4, 3]" in wanted
    assert run("run", "model.py:predict", "--sizes", "B=4", "--seed", "3")[:2] == (0, wanted)
    assert run("run", "model.mlir:main", "--seed", "1")[1] == run("run", "model.mlir", "--seed", "1")[1]
    status, _, err = run("run", "model.py:scale", "--args", "f32[3]", "--check")
    assert status == 0 and "checking @main" in err


def test_run_scalars_in_the_interpreter(run: Run) -> None:
    assert run("run", "scalars.mlir", "--exec=interp")[0] == 0


def test_a_program_gets_its_arguments_and_status(run: Run) -> None:
    Path("program.py").write_text("import sys\nprint(__name__, sys.argv)\nsys.exit(3)\n")
    status, out, _ = run("run", "program.py", "--", "-x", "--debug")
    assert status == 3 and out == "__main__ ['program.py', '-x', '--debug']\n"


def test_mistakes_in_programs(run: Run) -> None:
    Path("wrong.py").write_text("import mlc\nx = mlc.zeros(2, 3)\ny = mlc.zeros(4)\nprint(x + y)\n")
    status, _, err = run("run", "wrong.py")
    assert status == 1 and "wrong.py:4:" in err and "MLC0111" in err and "Traceback" not in err
    Path("syntax.py").write_text("def f(:\n")
    status, _, err = run("run", "syntax.py")
    assert status == 1 and "syntax.py:1:" in err and "SyntaxError" in err


def test_an_internal_error_in_a_program_is_reported_as_a_defect(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlc.backends import cached_code as code
    monkeypatch.setattr(code, "_cache", None)
    status, _, err = run("run", "model.py")
    assert status == 101 and "model.py:13: error[MLC0900]: " in err and "a defect of mlc" in err


# -- signals and pipes ------------------------------------------------------------------------------------------------
def test_interrupt(sample_folder: Path) -> None:
    Path("loop.py").write_text("print('started', flush=True)\nwhile True: pass\n")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)      # what runs in the background ignores it
    try:
        running = subprocess.Popen([sys.executable, "-m", "mlc.tools.cli", "run", "loop.py"], cwd=sample_folder,
                                   text=True, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGINT, before)
    with running:
        try:
            assert running.stdout is not None and running.stderr is not None
            assert running.stdout.readline() == "started\n"
            running.send_signal(signal.SIGINT)
            assert running.wait(30) == 130
            assert running.stderr.read() == "interrupted\n"
        finally:
            running.kill()


def test_a_closed_pipe_is_quiet(sample_folder: Path) -> None:
    with subprocess.Popen([sys.executable, "-m", "mlc.tools.cli", "ops"], cwd=sample_folder, env=ENVIRONMENT,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.close()
        assert running.wait(60) == 0
        assert running.stderr.read() == b""


def test_a_full_disk_is_a_message(sample_folder: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    done = process(["opt", "model.mlir", "-o", "/dev/full"], sample_folder)
    assert done.returncode == 2 and "MLC0393" in done.stderr and "No space left" in done.stderr
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "mlc.tools.cli", "opt", "model.mlir"], cwd=sample_folder,
                              env=ENVIRONMENT, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and "error[MLC039" in done.stderr and "Traceback" not in done.stderr


# -- entering anywhere ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_every_dump_is_valid_input(every: int, run: Run) -> None:
    run("compile", "model.py:predict", "--emit=llvm", "-o", os.devnull, "--dump-dir", "dumps")
    stages, results = list[int](), set[str]()
    for name in sorted(os.listdir("dumps"))[::-every][::-1]:
        stages.append(pipeline.stage(parse_module(Path("dumps", name).read_text())))
        results.add(run("run", f"dumps/{name}")[1])
        generic = run("opt", f"dumps/{name}", "--generic")[1]
        Path("generic.mlir").write_text(generic)
        assert run("opt", "generic.mlir", "--generic")[1] == generic
        results.add(run("run", "generic.mlir")[1])
    assert stages == sorted(stages) and stages[-1] == len(pipeline.ORDER)
    assert len(results) == 1


@pytest.mark.parametrize("text, types", [
    ("f32[B,16],i64[2*B],f64", ["tensor<Bx16xf32>", "tensor<(2*B)xi64>", "tensor<f64>"]),
    ("f32[],bf16[0]", ["tensor<f32>", "tensor<0xbf16>"]),
    ("", []),
])
def test_argument_types(text: str, types: list[str]) -> None:
    assert [str(t) for t in inputs.parse_args(text)] == types


@pytest.mark.parametrize(("text", "words", "status", "said"), [
    ("def main(): return 3\nimport sys\nsys.exit(main())", ["--check"], 1, "MLC0453"),
    ("import sys\nsys.exit(ValueError('bad config'))", [], 1, "bad config"),
    ("raise BrokenPipeError(32, 'Broken pipe')", [], 1, "BrokenPipeError")])
def test_programs_that_end_otherwise(text: str, words: list[str], status: int, said: str, tmp_path: Path,
                                     capsys: pytest.CaptureFixture[str]) -> None:
    from mlc.tools.cli import main
    (tmp_path / "p.py").write_text(text)
    assert main(["run", *words, str(tmp_path / "p.py")]) == status
    assert said in capsys.readouterr().err
