"""The compile cache: equal programs are compiled once; damage, races and full disks cost a compilation."""
from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.backends import cache, compilation_units, compile_many, kernel_units, private, versions
from mlc.backends import cached_code as code
from mlc.backends.cache import Store
from mlc.backends.compilation_units import CompilationUnit
from mlc.backends.cpu import targets
from mlc.backends.cpu.targets import host
from mlc.ir.machine import x86_64
from mlc.passes import pipeline
from mlc.tools.cli import main
from tests.test_compile_many import functions

ROOT = Path(__file__).parent.parent
X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A cache folder of its own, empty in-process caches, and unchanged sources."""
    for name, value in (("MLC_CACHE_DIR", str(tmp_path / "cache")), ("MLC_CACHE", "1"), ("MLC_CACHE_SIZE", "")):
        monkeypatch.setenv(name, value)
    for module in (cache, versions):
        monkeypatch.setattr(module, "changed_since_start", lambda: False)
    monkeypatch.setattr(cache, "_warned", False)
    forget(monkeypatch)
    versions.versions.cache_clear()
    cache._store.cache_clear()
    found = cache.store()
    assert found is not None
    yield found
    cache._store.cache_clear()


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clear the in-process caches, as in a new process."""
    monkeypatch.setattr(code, "_cache", {})
    monkeypatch.setattr(compile_many, "_memory", {})


def forbid_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation_units, "compile_object", None)
    monkeypatch.setattr(kernel_units, "compile_object", None)


def program(x: Any) -> Any:
    return mlc.tanh(x) * 2.0 + mlc.sum(x, dim=1, keepdim=True)


def entries(store: Store, kind: str) -> list[Path]:
    return sorted(path for path, _ in store.entries() if path.name.startswith(kind))


# -- hits and misses --------------------------------------------------------------------------------------------------
def test_a_second_process_compiles_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    want = mlc.compile(program)(X).numpy()
    assert entries(store, "module")
    forget(monkeypatch)
    forbid_compiling(monkeypatch)
    monkeypatch.setattr(pipeline, "lower", None)
    got = mlc.compile(program)(X).numpy()
    assert np.array_equal(got, want)


def test_programs_without_a_key_are_compiled_each_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules of other packages may change, even within a process."""
    from mlc.backends import fingerprint
    monkeypatch.setattr(fingerprint, "structural_text", lambda module: None)
    made = [mlc.compile(program) for _ in range(2)]
    assert np.array_equal(*(f(X).numpy() for f in made))
    assert made[0].entries[0].address != made[1].entries[0].address and not entries(store, "module")


def test_versions_are_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = cache.key_of("module", ["text"])
    assert before == cache.key_of("module", ["text"])
    assert before != cache.key_of("object", ["text"])
    assert cache.key_of("module", ["te", "xt"]) != before
    monkeypatch.setattr(cache, "versions", lambda: {**versions.versions(), "numpy": "1.0"})
    assert before != cache.key_of("module", ["text"])


def test_targets_are_part_of_the_key(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    known = host()
    for bits in (128, 256, 128):
        monkeypatch.setattr(targets, "host", lambda bits=bits: replace(known, machine=x86_64(bits)))
        mlc.compile(program)(X)
    assert len(entries(store, "module")) == 2


MOVED = '''
import warnings
warnings.simplefilter("error")
import numpy as np
import mlc
from mlc.backends import cache
{lines}
def pick(x, i):
    return mlc.take(x * 2, i)

f = mlc.compile(pick)
x = np.arange(5, dtype=np.float32)
assert f(x, np.array([1])).tolist() == [2.0]
try:
    f(x, np.array([9]))
except IndexError as error:
    print(error.loc.line, end=" ")
print(cache.store().misses)
'''


def run_program(folder: Path, text: str, **environment: str) -> str:
    path = folder / "program.py"
    path.write_text(text)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": str(ROOT), **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_moving_a_program_still_hits_and_errors_name_the_new_line(store: Store, tmp_path: Path) -> None:
    first = run_program(tmp_path, MOVED.format(lines="")).split()
    moved = run_program(tmp_path, MOVED.format(lines="\n" * 40)).split()
    assert int(moved[0]) == int(first[0]) + 40 == MOVED.format(lines="\n" * 40).splitlines().index(
        "    return mlc.take(x * 2, i)") + 1
    assert int(first[1]) > 0 and int(moved[1]) == 0


def test_equal_functions_share_code_but_not_locations(store: Store) -> None:
    def one(x: Any, i: Any) -> Any:
        return mlc.take(x, i)

    def two(y: Any, j: Any) -> Any:
        return mlc.take(y, j)

    lines = []
    for f in (mlc.compile(one), mlc.compile(two)):
        f(X[0], np.array([0]))
        with pytest.raises(IndexError) as caught:
            f(X[0], np.array([7]))
        lines.append(caught.value.loc.line)  # type: ignore[attr-defined]
        with pytest.raises(mlc.UserError):
            f(X[0], np.zeros((2, 2, 2), np.float64) + 0.5)
    assert lines[1] > lines[0] and len(entries(store, "module")) == 1


# -- damage -----------------------------------------------------------------------------------------------------------
def test_200_changes_and_200_truncations_are_all_found(store: Store) -> None:
    mlc.compile(program)(X)
    path, = entries(store, "module")
    whole, key = path.read_bytes(), path.name.partition("-")[2]
    draw = random.Random(0)
    for trial in range(400):
        damaged = bytearray(whole)
        if trial % 2:
            damaged[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        else:
            del damaged[draw.randrange(len(whole)):]
        path.write_bytes(damaged)
        assert store.get("module", key) is None and not path.exists()
    path.write_bytes(whole)
    assert store.get("module", key) is not None


@pytest.mark.parametrize("seed", range(6))
def test_a_damaged_cache_gives_right_results(store: Store, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    want = mlc.compile(program)(X).numpy()
    draw = random.Random(seed)
    for path, status in list(store.entries()):
        data = bytearray(path.read_bytes())
        if seed % 3 == 0:
            data[draw.randrange(status.st_size)] ^= 0xFF
        elif seed % 3 == 1:
            del data[draw.randrange(status.st_size):]
        else:
            data[:] = draw.randbytes(status.st_size)
        path.write_bytes(data)
    forget(monkeypatch)
    assert np.array_equal(mlc.compile(program)(X).numpy(), want)
    forget(monkeypatch)
    forbid_compiling(monkeypatch)          # what was bad has been made and kept anew
    assert np.array_equal(mlc.compile(program)(X).numpy(), want)


def test_an_entry_under_another_key_is_rejected(store: Store) -> None:
    store.put("module", "0" * 64, {}, {"code": b"x"})
    (store.folder / f"module-{'0' * 64}").rename(store.folder / f"module-{'1' * 64}")
    assert store.get("module", "1" * 64) is None and not entries(store, "module")


def test_an_intact_entry_with_invalid_contents_is_recompiled(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    want = mlc.compile(program)(X).numpy()
    path, = entries(store, "module")
    key = path.name.partition("-")[2]
    for head in ({}, {"interfaces": 3}, {"interfaces": [{}], "target": [], "undefined": 0, "shares": None}):
        store.put("module", key, head, {"code": b"no code"})
        forget(monkeypatch)
        assert np.array_equal(mlc.compile(program)(X).numpy(), want)


# -- folders ----------------------------------------------------------------------------------------------------------
def test_the_folder_is_private(store: Store) -> None:
    store.put("module", "0" * 64, {}, {})
    assert store.folder.stat().st_mode & 0o777 == 0o700
    assert entries(store, "module")[0].stat().st_mode & 0o777 == 0o600


def test_a_folder_that_others_may_write_to_is_refused(store: Store) -> None:
    store.put("module", "0" * 64, {}, {})
    store.folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="others may write to it"):
        assert store.get("module", "0" * 64) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")                                  # it is said once
        store.put("module", "1" * 64, {}, {})
    assert len(entries(store, "module")) == 1
    store.folder.chmod(0o700)
    assert store.get("module", "0" * 64) is not None


def test_entries_of_other_users_are_rejected(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be older than the folder's permissions."""
    store.put("module", "0" * 64, {}, {})
    path, = entries(store, "module")
    path.chmod(0o602)
    assert store.get("module", "0" * 64) is None
    path.chmod(0o600)
    assert store.get("module", "0" * 64) is not None
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    status = os.stat_result((0o100600, 0, 0, 1, os.getuid() + 2, 0, 0, 0, 0, 0))
    assert private.of_others(status) == f"it belongs to user {os.getuid() + 2}"


def test_a_folder_with_a_writable_parent_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "open" / "mine" / "cache"
    folder.mkdir(parents=True)
    (tmp_path / "open").chmod(0o777)
    assert f"they may write to {tmp_path}/open" in str(Store(folder, 1000, None).problem())
    (tmp_path / "open").chmod(0o1777)                                   # as /tmp is
    assert Store(folder, 1000, None).problem() is None


def test_links_to_the_folder_are_followed_once(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "there")
    monkeypatch.setenv("MLC_CACHE_DIR", str(tmp_path / "link"))
    assert cache.store().folder == tmp_path / "there"  # type: ignore[union-attr]


def test_a_folder_that_cannot_be_written_is_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container image: entries are old, and the time of their use cannot be recorded."""
    store.put("module", "0" * 64, {}, {})
    path, = entries(store, "module")
    os.utime(path, (1000, 1000))

    def fail(*args: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "utime", fail)
    assert store.get("module", "0" * 64) is not None


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_entries_that_are_not_regular_files_are_ignored(store: Store, make: Any) -> None:
    store.folder.mkdir(mode=0o700)
    make(store.folder / f"module-{'0' * 64}")
    files = len(os.listdir("/proc/self/fd"))
    assert store.get("module", "0" * 64) is None
    assert len(os.listdir("/proc/self/fd")) == files


def test_without_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MLC_CACHE_DIR")
    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    assert cache.store() is None
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.store().folder == tmp_path / ".cache" / "mlc"  # type: ignore[union-attr]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache.store().folder == tmp_path / "x" / "mlc"  # type: ignore[union-attr]
    monkeypatch.setenv("MLC_CACHE", "0")
    assert cache.store() is None


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("call", ["open", "fsync", "replace"])
def test_a_folder_that_cannot_be_written(store: Store, monkeypatch: pytest.MonkeyPatch, number: int,
                                         call: str) -> None:
    real = getattr(os, call)

    def fail(*args: Any, **keywords: Any) -> Any:
        if call != "open" or args[1] & os.O_CREAT:
            raise OSError(number, os.strerror(number))
        return real(*args, **keywords)

    monkeypatch.setattr(os, call, fail)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert np.allclose(mlc.compile(program)(X).numpy(), np.tanh(X) * 2 + X.sum(1, keepdims=True))
    assert len(said) == (number in (errno.ENOSPC, errno.EDQUOT))
    assert not list(store.folder.glob("*")) and not list(store.folder.glob(".*"))


def test_a_file_in_place_of_the_folder(store: Store) -> None:
    store.folder.write_text("no folder")
    with pytest.warns(RuntimeWarning, match="not a folder"):
        assert mlc.compile(program)(X).shape == (3, 4)


def test_full_disk(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on the file size simulates a full disk: the write fails in the middle."""
    resource = pytest.importorskip("resource")
    real = vars(cache)["replace"]

    def limited(*args: Any) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1500, hard))
        try:
            real(*args)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    monkeypatch.setattr(cache, "replace", limited)
    with pytest.warns(RuntimeWarning, match="cannot cache compiled code"):
        assert np.allclose(mlc.compile(program)(X).numpy(), np.tanh(X) * 2 + X.sum(1, keepdims=True))
    assert not entries(store, "module") and not list(store.folder.glob(".*"))
    assert store.verify() == []


# -- limits -----------------------------------------------------------------------------------------------------------
def test_the_least_recently_used_entries_are_evicted(store: Store) -> None:
    store.limit = 100_000
    for i in range(20):
        store.put("module", f"{i:064x}", {}, {"code": bytes(10_000)})
        os.utime(store.folder / f"module-{i:064x}", (1000 + i, 1000 + i))
    assert store.get("module", f"{15:064x}") is not None                # now it is the last
    store.trim()
    left = [int(path.name.partition("-")[2], 16) for path in entries(store, "module")]
    assert 15 in left and 19 in left and 0 not in left
    assert sum(status.st_size for _, status in store.entries()) <= 100_000


def test_an_entry_that_is_too_large_is_not_stored(store: Store) -> None:
    store.limit = 1000
    store.put("module", "0" * 64, {}, {"code": bytes(10_000)})
    assert not list(store.entries())


@pytest.mark.parametrize("text, size", [("", cache.DEFAULT_SIZE), ("500M", 500 << 20), ("2GiB", 2 << 30), ("3kb", 3072),
                                        ("1234", 1234)])
def test_sizes(text: str, size: int) -> None:
    assert cache._bytes(text) == size


def test_an_invalid_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_warned", False)
    with pytest.warns(RuntimeWarning, match="MLC_CACHE_SIZE"):
        assert cache._bytes("much") == cache.DEFAULT_SIZE


# -- many processes ---------------------------------------------------------------------------------------------------
MANY = '''
import sys, time, numpy as np, mlc
order = list(range(int(sys.argv[1])))
np.random.default_rng(int(sys.argv[2])).shuffle(order)
x = np.arange(8, dtype=np.float32)
out = {}
for i in order:
    out[i] = float(mlc.compile(lambda x: mlc.sum(mlc.tanh(x) * float(i) + mlc.exp(-x)))(x))
print([out[i] for i in sorted(out)])
'''


def many(folder: Path, functions: int, seed: int) -> subprocess.Popen[str]:
    path = folder / "many.py"
    if not path.exists():                                  # others may be reading it
        path.write_text(MANY)
    return subprocess.Popen([sys.executable, str(path), str(functions), str(seed)], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)})


@pytest.mark.parametrize("processes, functions", [(3, 4), pytest.param(16, 50, marks=pytest.mark.slow)])
def test_concurrent_compilation_of_one_function(store: Store, tmp_path: Path, processes: int, functions: int) -> None:
    running = [many(tmp_path, functions, seed) for seed in range(processes)]
    outputs = set()
    for process in running:
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0 and not err, err
        outputs.add(out)
    assert len(outputs) == 1
    assert store.verify() == [] and not list(store.folder.glob(".*"))


@pytest.mark.parametrize("processes", [2, pytest.param(64, marks=pytest.mark.slow)])
def test_killed_processes_leave_no_corrupt_entries(store: Store, tmp_path: Path, processes: int) -> None:
    """Processes are killed at random moments: the folder has only intact entries, and the others get right results."""
    draw = random.Random(processes)
    running = [many(tmp_path, 6, seed) for seed in range(processes)]
    doomed = running[::2]
    while doomed:
        time.sleep(draw.uniform(0.2, 0.8))
        doomed.pop(draw.randrange(len(doomed))).send_signal(signal.SIGKILL)
        assert store.verify() == []
    x = np.arange(8, dtype=np.float32)
    for number, process in enumerate(running):
        out, err = process.communicate(timeout=600)
        if number % 2:
            assert process.returncode == 0 and not err, err
            assert np.allclose(eval_list(out), [np.sum(np.tanh(x) * i + np.exp(-x)) for i in range(6)], rtol=1e-5)
    assert store.verify() == [] and not list(store.folder.glob(".*"))


def eval_list(text: str) -> list[float]:
    return [float(part) for part in text.strip().strip("[]").split(",")]


# -- kernels that several programs have ------------------------------------------------------------------------------
def test_shared_units_are_compiled_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, real = list[str](), vars(compilation_units)["compile_object"]

    def counted(text: str, *more: Any) -> bytes:
        compiled.append(text)
        return bytes(real(text, *more))

    monkeypatch.setattr(compilation_units, "compile_object", counted)
    shared, own = (CompilationUnit(text, i == 0) for i, text in enumerate(functions(2)))
    first = compile_many.objects([shared, own], host(), 2)
    assert len(compiled) == 2 and compile_many.objects([shared, own], host(), 2) == first and len(compiled) == 3
    forget(monkeypatch)
    assert compile_many.objects([shared], host(), 2) == first[:1] and len(compiled) == 3
    assert len(entries(store, "object")) == 1


# -- the command ------------------------------------------------------------------------------------------------------
def test_the_command(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "info"]) == 0
    assert "not there yet" in capsys.readouterr().out
    mlc.compile(program)(X)
    assert main(["cache", "info"]) == 0
    out = capsys.readouterr().out
    assert str(store.folder) in out and "1 compiled functions" in out and os.environ["MLC_CACHE_KEY"] in out
    assert main(["cache", "verify"]) == 0
    assert "all sound" in capsys.readouterr().out
    path, = entries(store, "module")
    path.write_bytes(path.read_bytes()[:-1])
    assert main(["cache", "verify"]) == 1
    out = capsys.readouterr().out
    assert path.name in out and "1 bad and deleted" in out and not path.exists()
    assert main(["cache", "verify"]) == 0
    assert main(["cache", "clear"]) == 0
    assert not list(store.entries())


def test_the_command_without_a_cache(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MLC_CACHE", "0")
    assert [main(["cache", action]) for action in ("info", "clear", "verify")] == [0, 0, 0]
    assert "MLC_CACHE is 0" in capsys.readouterr().out


def test_the_host_processor_is_detected_without_llvm(store: Store) -> None:
    from mlc.backends.cpu import targets as target
    detected = target._detected()
    assert detected == target._ask_llvm() and len(entries(store, "host")) == 1
    hits = store.hits
    assert target._detected() == detected and store.hits == hits + 1


def test_sources_that_change_are_not_cached(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may run other code than its files contain now."""
    monkeypatch.setattr(cache, "changed_since_start", lambda: True)
    mlc.compile(program)(X)
    assert not list(store.entries())
