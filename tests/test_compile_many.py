"""Several processes compile to what one does, whatever becomes of them."""
from __future__ import annotations

import io
import os
import signal
import time
from collections import deque
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

import mlc
from mlc.backends import compile_many, compile_worker
from mlc.backends.compilation_units import CompilationUnit
from mlc.backends.cpu.targets import host
from mlc.backends.object_code import compile_object
from mlc.ir.diag import BackendError
from mlc.passes import pipeline


def units(count: int, body: int = 0) -> list[CompilationUnit]:
    return [CompilationUnit(text, True) for text in functions(count, body)]


def functions(count: int, body: int = 0) -> list[str]:
    target = host()
    work = "".join(f"  %a{i} = fadd float %a{i - 1}, %x\n" for i in range(1, body + 1))
    return [f'define float @f{n}(float %x) #0 {{\n  %a0 = fadd float %x, {n}.0\n{work}  ret float %a{body}\n}}\n'
            f'attributes #0 = {{ nounwind "target-cpu"="{target.cpu}" "target-features"="{target.feature_string}" }}\n'
            for n in range(count)]


def test_processes_give_the_same_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_many, "LONG", 1e-3)
    monkeypatch.setenv("MLC_COMPILE_JOBS", "3")
    given = units(9, 200)
    assert compile_many._helpers(given) == 2
    alone = [unit.compile(host(), 2) for unit in given]
    before = children()
    assert compile_many._compile(given, host(), 2) == alone
    assert children() == before, "a process is left over"


def children() -> set[str]:
    """The processes that this one has started, as Linux lists them."""
    running = [path / "status" for path in Path("/proc").iterdir() if path.name.isdigit()]
    return {path.parent.name for path in running
            if path.exists() and f"\nPPid:\t{os.getpid()}\n" in path.read_text(errors="replace")}


def test_a_process_that_dies_is_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_many, "LONG", 1e-3)
    monkeypatch.setenv("MLC_COMPILE_JOBS", "3")
    monkeypatch.setattr(compile_worker, "__name__", "mlc.backends.there_is_no_such_module")
    given = units(5, 50)
    assert compile_many._compile(given, host(), 2) == [unit.compile(host(), 2) for unit in given]


def test_modules_of_the_current_folder_stay_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "struct.py").write_text("open('was here', 'w')\nraise ImportError\n")
    monkeypatch.chdir(tmp_path)
    done: dict[int, bytes] = {}
    worker = compile_many._Worker(units(1), host(), 2, deque([0]), done)
    worker.finish()
    assert done == {0: compile_object(functions(1)[0], host(), 2)} and not (tmp_path / "was here").exists()


def test_a_worker_ends_although_this_process_has_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child holds the other end of the worker's input, which therefore never ends."""
    worker = compile_many._Worker(units(1), host(), 2, deque(), {})
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    try:
        start = time.monotonic()
        worker.finish()
        assert time.monotonic() - start < 30 and worker.process.returncode is not None
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_what_is_no_answer_is_refused() -> None:
    with pytest.raises(ValueError, match="malformed answer"):
        compile_worker.ask(io.BytesIO(), io.BytesIO(b"hello from sitecustomize"), host(), 2, "llvm", "text", "")


def test_what_llvm_refuses_is_an_error_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_many, "LONG", 1e-3)
    monkeypatch.setenv("MLC_COMPILE_JOBS", "3")
    wrong = [CompilationUnit(text, True) for text in ("define nonsense", "define nonsense too")]
    with pytest.raises(BackendError, match="MLC0511"):
        compile_many._compile([*units(4, 50), *wrong], host(), 2)


def test_little_work_starts_no_process() -> None:
    assert compile_many._helpers(units(3)) == 0
    assert compile_many._helpers([CompilationUnit(" " * 10_000_000, True)]) == 0


def test_a_worker_is_started_before_the_passes_of_a_large_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLC_COMPILE_JOBS", "2")
    monkeypatch.setattr(compile_many, "LONG", 1e-3)
    alone, given = children(), units(5, 50)
    compile_many.start_ahead(compile_many.LARGE - 1)
    assert children() == alone, "a small program is compiled by one process"
    compile_many.start_ahead(compile_many.LARGE)
    started = children() - alone
    used = []
    monkeypatch.setattr(compile_many._Worker, "run", lambda worker: used.append(str(worker.process.pid)))
    compile_many._compile(given, host(), 2)
    assert used == [*started] and children() == alone


def test_a_worker_without_work_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """... where all kernels are known, or a pass fails."""
    monkeypatch.setenv("MLC_COMPILE_JOBS", "2")
    monkeypatch.setattr(compile_many, "LARGE", 1)
    before, x = children(), np.ones(3, np.float32)
    for _ in range(2):
        mlc.compile(lambda x: mlc.tanh(x) * 3.5)(x)
        assert children() == before and not compile_many._ahead
    monkeypatch.setattr(pipeline, "lower", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        mlc.compile(lambda x: mlc.tanh(x) * 4.5)(x)
    assert children() == before and not compile_many._ahead
