"""Jobs of several processes: `mlc run --ranks`, mpiexec and torchrun; ranks that fail, are killed, and start again."""
from __future__ import annotations

import os
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import mlc
from mlc import distributed as dist
from mlc.backends.transport import gloo, launchers, threads
from mlc.tools import ranks
from mlc.tools.cli import main
from tests.test_examples import example

ROOT = Path(__file__).parent.parent
MPI = pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is not installed")
PROGRAM = """
import os, sys, time
import mlc
from mlc import distributed as dist
how = sys.argv[1] if os.environ.get("MLC_RESTART_COUNT", "0") == "0" else ""
dist.init_process_group(timeout=5)
rank, x = dist.get_rank(), mlc.ones(3)
dist.all_reduce(x)
if rank == 1 and how == "raise": raise ValueError("bad data")
if rank == 1 and how == "kill": os.kill(os.getpid(), 9)
if rank == 1 and how == "status": os._exit(4)
if rank == 1 and how == "late": time.sleep(60)
if rank == 1 and how == "other": dist.barrier()
if how == "leave": sys.exit(3) if rank == 1 else time.sleep(60)
dist.all_reduce(x)
sys.stdout.write(f"{dist.get_backend()} {x.tolist()}\\n")    # in one piece: ranks write to one file
if rank == 1 and how == "last": time.sleep(2.4)            # the other ends Python meanwhile, which waited for 2 s once
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def command(*words: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, "-m", *map(str, words)], capture_output=True, text=True, cwd=ROOT,
                          env=environment, timeout=240)


def test_the_example_learns(interpreted: None) -> None:
    def work(rank: int) -> tuple[float, list[float]]:
        dist.init_process_group(timeout=60)
        mlc.manual_seed(0)
        accuracy, losses = example("digits_ddp").train(1, 512)
        return float(accuracy), losses

    first, second = threads.run(2, work)
    assert first == second and first[1][0] < 2.4


@pytest.mark.parametrize("words, wanted", [
    ("run --ranks 2 {0}.mlir", "ranks are processes of a Python program"),
    ("run --ranks 2 --check {0}.py", "processes, which --check and --checked do not see into"),
    ("run --max-restarts 2 {0}.py", "--max-restarts has no meaning here: there is one process"),
    ("run --ranks 2 {0}/nothing.py", "cannot read")])
def test_wrong_options(words: str, wanted: str, program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (program.parent / "program.mlir").write_text("func.func @main() { func.return }")
    assert main(words.format(program.with_suffix("")).split()) == 2
    assert wanted in capsys.readouterr().err


def test_without_mpi4py(program: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlc.backends.transport.launchers.find_spec", lambda name: None)
    assert main(["run", "--ranks", "2", str(program)]) == 1
    assert "error[MLC0975]: the backend 'mpi' needs mpi4py, which is not installed" in capsys.readouterr().err


@pytest.mark.parametrize("files, wanted", [
    ([("1.error", "ValueError: bad\nmodel.py:3:1\n"), ("0.error", "RankError: rank 1 has failed\n\n")],
     "rank 1 of 3 has failed: ValueError: bad"),
    ([("0.error", "RankError: rank 2 is unreachable\n\n"), ("2.died", "-9"), ("1.died", "-15")],
     "rank 2 of 3 was killed by SIGKILL"),
    ([("2.died", "4"), ("1.died", "-15")], "rank 2 of 3 has ended with status 4"),
    ([], "the job has ended with status 7")])
def test_the_rank_that_failed_first_is_named(files: list[tuple[str, str]], wanted: str, tmp_path: Path) -> None:
    for second, (name, text) in enumerate(files):
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, (second, second))
    assert ranks.failure(tmp_path, 3, 7).message == wanted


# -- processes --------------------------------------------------------------------------------------------------------
@MPI
@pytest.mark.slow
@pytest.mark.parametrize("how, wanted", [
    ("", ""), ("raise", "error[MLC0978]: rank 1 of 3 has failed: ValueError: bad data"),
    ("kill", "error[MLC0978]: rank 1 of 3 was killed by SIGKILL"),
    ("status", "error[MLC0978]: rank 1 of 3 has ended with status 4"),
    ("late", "all_reduce(SUM, float32[3]): rank 1 has not made this call within 5 s"),
    ("other", "ranks 0, 2 call all_reduce(SUM, float32[3]), rank 1 calls barrier()")])
def test_a_job(how: str, wanted: str, program: Path) -> None:
    done = command("mlc.tools.cli", "run", "--ranks", 3, program, "--", how)
    assert wanted in done.stderr and done.returncode == bool(how), done.stderr
    assert how or done.stdout.count("mpi [9.0, 9.0, 9.0]") == 3


@MPI
@pytest.mark.slow
def test_anomalies_in_a_job(tmp_path: Path) -> None:
    path = tmp_path / "anomaly.py"
    path.write_text("import mlc\nfrom mlc import distributed as dist\ndist.init_process_group(timeout=5)\n"
                    "print(mlc.log(mlc.zeros(2) - 1).tolist())\n")
    for words, status in (((), 0), (("--detect-anomaly",), 1)):
        done = command("mlc.tools.cli", "run", "--ranks", 2, *words, path)
        assert done.returncode == status and ("log makes NaN of finite operands" in done.stderr) == bool(status)


@MPI
@pytest.mark.slow
def test_a_job_starts_again(program: Path) -> None:
    done = command("mlc.tools.cli", "run", "--ranks", 2, "--max-restarts", 1, program, "--", "kill")
    assert done.returncode == 0 and done.stdout.count("mpi [4.0, 4.0, 4.0]") == 2, done.stderr
    assert "rank 1 of 2 was killed by SIGKILL; restart 1 of 1" in done.stderr


@MPI
@pytest.mark.slow
def test_the_example_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    whole, first, second = (
        command("mlc.tools.cli", "run", "--ranks", count, "examples/digits_ddp.py", "--", "--epochs", epochs,
                "--checkpoints", tmp_path / folder).stdout
        for count, epochs, folder in ((2, 4, "a"), (2, 2, "b"), (2, 4, "b")))
    assert whole.startswith("2 ranks by mpi: accuracy 9") and first != second
    assert second.split("accuracy")[1].split(",")[0] == whole.split("accuracy")[1].split(",")[0]


@pytest.mark.slow
@pytest.mark.parametrize(("how", "wanted"), [
    ("", ""), ("last", ""), ("leave", "exitcode  : 3"), ("raise", "rank 1 has failed: ValueError: bad data"),
    ("late", "rank 1 has not made this call within 5 s")])
def test_torchrun(how: str, wanted: str, program: Path) -> None:
    pytest.importorskip("torch")
    done = command("torch.distributed.run", "--standalone", "--nproc-per-node", 2, program, how)
    assert done.returncode == bool(wanted), done.stderr
    assert done.stdout.count("gloo [4.0, 4.0, 4.0]") == 2 * (not wanted)
    assert wanted in done.stderr and "terminate called" not in done.stderr


@pytest.mark.slow
def test_a_send_to_a_rank_that_is_stopped_has_a_time_out(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    program = tmp_path / "stopped.py"
    program.write_text("import os, signal\nimport mlc\nfrom mlc import distributed as dist\n"
                       "dist.init_process_group('gloo', timeout=2)\nrank = dist.get_rank()\n"
                       "if rank: os.kill(os.getpid(), signal.SIGSTOP)\n"
                       "dist.send(mlc.zeros(1 << 24), 1)\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    other, sender = (subprocess.Popen(
        [sys.executable, program], cwd=ROOT, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
             "MASTER_PORT": str(port)}) for rank in (1, 0))
    try:
        _, said = sender.communicate(timeout=60)
    finally:
        other.kill()
    assert "error[MLC0971]: send: rank 1 has not answered in time" in said, said


@pytest.mark.parametrize("size", [1 << 16, 7, 1])
def test_output_around_the_launchers_own_words(size: int, tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    """However reads divide it, but for the empty line before those words."""
    line, read = "=" * 83, os.read
    monkeypatch.setattr(os, "read", lambda file, most: read(file, min(most, size)))
    (tmp_path / "printed").write_text(
        f"== epoch 1 ==\n=\n====\nbefore\n\n{line}\n"
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 7 RUNNING AT host\n"
        f"=   EXIT CODE: 9\n=   CLEANING UP REMAINING PROCESSES\n=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES\n"
        f"{line}\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n"
        "This typically refers to a problem with your application.\n"
        "Please see the FAQ page for debugging suggestions\n== epoch 2 ==\n\nsaved \N{SNOWMAN}", encoding="utf-8")
    with open(tmp_path / "printed", "rb") as printed:
        ranks._forward(printed)
    out = capsys.readouterr().out.replace("before\n\n", "before\n")
    assert out == "== epoch 1 ==\n=\n====\nbefore\n== epoch 2 ==\n\nsaved \N{SNOWMAN}"


@pytest.mark.parametrize("end", ["==", "=" * 83 + "\n", "=" * 83 + "\n=  "])
def test_output_that_ends_like_the_beginning_of_the_launchers_words(end: str, tmp_path: Path,
                                                                    capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "printed").write_text(f"a\n{end}")
    with open(tmp_path / "printed", "rb") as printed:
        ranks._forward(printed)
    assert capsys.readouterr().out == f"a\n{end}"


def test_characters_that_reads_divide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "a" + "é" * 40000 + "\n"
    (tmp_path / "printed").write_text(text, encoding="utf-8")
    with open(tmp_path / "printed", "rb") as printed:
        ranks._forward(printed)
    assert capsys.readouterr().out == text


def test_torchrun_that_another_launcher_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PMI_RANK": "0", "RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "localhost",
                        "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(launchers, "check_installed", lambda backend: None)
    monkeypatch.setattr(gloo, "GlooTransport", lambda timeout, **given: "gloo")
    found: object = launchers.join(None, 1.0)
    assert found == "gloo"
