"""A file that cannot be written or read is one clear error, and the one that was there stays."""

from __future__ import annotations

import io
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import mlc
from mlc import nn
from mlc.ir.diag import UserError
from mlc.ir.files import check_folder
from mlc.ir.parser import parse_module
from mlc.ir.passes import Instruments, Pipeline
from mlc.passes import pipeline

SIZE = 1 << 19
DOUBLE = mlc.compile(lambda x: x * 2, args=[mlc.spec(2)])
WRITERS: dict[str, tuple[Callable[[Any, Any], None], Callable[[Any], Any]]] = {
    "data": (mlc.save, mlc.load),
    "safetensors": (lambda x, path: nn.save_safetensors(path, {"x": x}), lambda path: nn.load_safetensors(path)["x"]),
    "model": (lambda x, path: mlc.save(mlc.compile(nn.Bilinear(1, 1, x.numel())), path,
                                       args=[mlc.spec(1, 1), mlc.spec(1, 1)]),
              lambda path: mlc.load(path)(mlc.ones(1, 1), mlc.ones(1, 1))[0]),
}


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Context in which the system refuses to make files larger, as on a disk without space."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def nobody() -> Iterator[None]:
    """Context in which the process has the rights of nobody, if it may give up its own."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_write_that_fails_leaves_the_last_good_file(kind: str, tmp_path: Path) -> None:
    write, read = WRITERS[kind]
    path = tmp_path / "file"
    write(mlc.ones(4), path)
    good = path.read_bytes()
    with files_of_at_most(SIZE), pytest.raises(UserError, match=r"cannot write .*file: File too large") as full:
        write(mlc.zeros(SIZE), path)
    tmp_path.chmod(0o555)
    with nobody(), pytest.raises(UserError, match=r"cannot write .*file: Permission denied") as refused:
        write(mlc.zeros(4), path)
    tmp_path.chmod(0o755)
    assert full.value.code == refused.value.code == "MLC0393"
    assert "free some space" in str(full.value) and "folder" in str(refused.value)
    assert os.listdir(tmp_path) == ["file"] and path.read_bytes() == good and read(path).shape == (4,)


@pytest.mark.parametrize("kind", WRITERS)
def test_paths_that_name_no_file(kind: str, tmp_path: Path) -> None:
    write, _ = WRITERS[kind]
    for path, text in ((tmp_path, "Is a directory"), (tmp_path / "no" / "file", "No such file"),
                       ("a\0b", "null (byte|char)"), ("/dev/full", "No space left")):
        with pytest.raises(UserError, match=text) as found:
            write(mlc.ones(2), path)
        assert found.value.code == "MLC0393" and str(found.value.loc.file) == __file__
    assert not os.listdir(tmp_path)


def test_an_open_file_that_fails() -> None:
    with open("/dev/full", "wb", buffering=0) as file, pytest.raises(UserError, match="No space left") as found:
        mlc.save({"x": mlc.ones(2)}, file)
    assert found.value.code == "MLC0393"


@pytest.mark.parametrize("kind", WRITERS)
def test_truncated_files_are_refused(kind: str, tmp_path: Path) -> None:
    write, read = WRITERS[kind]
    path = tmp_path / "file"
    write(mlc.ones(4), path)
    whole = path.read_bytes()
    for size in (0, 4, 9, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(UserError) as found:
            read(path)
        assert found.value.code in ("MLC0766", "MLC0571", "MLC0387")
    with pytest.raises(UserError, match="No such file"):
        read(tmp_path / "missing")


def test_what_is_in_memory_is_not_touched_by_a_write() -> None:
    x, file = mlc.ones(3), io.BytesIO()
    mlc.save(x, file)
    assert mlc.load(io.BytesIO(file.getvalue())).tolist() == x.tolist()


def test_whether_a_folder_can_be_written_to_is_known_before(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(mode=0o500)
    (tmp_path / "file").touch()
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    check_folder(tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()
    for name, error in {"file": NotADirectoryError, "file/x": NotADirectoryError, "nowhere": FileNotFoundError,
                        "nowhere/x": FileNotFoundError, "\0": ValueError}.items():
        with pytest.raises(error):
            check_folder(tmp_path / name)
    with nobody(), pytest.raises(PermissionError):
        check_folder(tmp_path / "mine")


def test_a_folder_for_perf_is_looked_at_before_passes_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MLC_PERF", str(tmp_path / "file"))
    monkeypatch.setattr(pipeline, "lower", lambda *_, **__: pytest.fail("passes have run"))
    with pytest.raises(UserError, match=r"cannot write .*file: Not a directory") as found:
        mlc.compile(lambda x: x * 3 - 17)(mlc.ones(7))
    assert found.value.code == "MLC0393" and "MLC_PERF" in (found.value.hint or "")


def test_a_dump_that_cannot_be_written_is_a_coded_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    module = parse_module("func.func @f() {\n  func.return\n}\n")
    with pytest.raises(UserError, match=r"cannot write .*00_input.mlir: File exists") as found:
        Pipeline([]).run(module, Instruments(dump_dir=tmp_path / "file"))
    assert found.value.code == "MLC0393"
