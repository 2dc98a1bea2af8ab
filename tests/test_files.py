"""Files are there whole or not at all, whoever is killed, interrupted or writing to the same name."""
from __future__ import annotations

import os
import random
import signal
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.ir import files
from mlc.ir.files import remove_leftovers, write_whole

BIG = 1 << 20


# -- one writer -------------------------------------------------------------------------------------------------------
def test_an_interruption_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_whole(path, [b"one", b"two"])
    assert path.read_bytes() == b"onetwo" and path.stat().st_mode & 0o111 == 0

    def stop(*args: object) -> None:
        raise KeyboardInterrupt

    for call in ("replace", "fsync"):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(os, call, stop)
            write_whole(path, [b"three"])
        assert os.listdir(tmp_path) == ["file"] and path.read_bytes() == b"onetwo"


def test_permissions(tmp_path: Path) -> None:
    path = tmp_path / "file"
    mask = os.umask(0o027)
    try:
        write_whole(path, [b"one"])
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        write_whole(path, [b"two"])
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
    finally:
        os.umask(mask)


def test_links_are_replaced_and_devices_are_written_to(tmp_path: Path) -> None:
    kept, link = tmp_path / "kept", tmp_path / "link"
    kept.write_bytes(b"kept")
    link.symlink_to(kept)
    write_whole(link, [b"new"])
    assert kept.read_bytes() == b"kept" and not link.is_symlink() and link.read_bytes() == b"new"
    write_whole(os.devnull, [b"x"])
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path, [b"x"])


def test_a_name_that_is_taken_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever guesses the temporary name gets nothing written through a link of that name."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"kept")
    (tmp_path / f".mlc-{'00' * 8}.tmp").symlink_to(victim)
    monkeypatch.setattr(os, "urandom", lambda n: bytes(n))
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "file", [b"x"])
    assert victim.read_bytes() == b"kept"


# -- writers that were killed -----------------------------------------------------------------------------------------
def child(work: Callable[[], object]) -> int:
    """The id of a process that does something again and again, until it is killed."""
    if (process := os.fork()) == 0:
        try:
            while True:
                work()
        finally:
            os._exit(1)
    return process


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)
    assert os.waitpid(process, 0)[1] == signal.SIGKILL


def test_leftovers_go_with_the_next_write_and_live_writers_keep_their_files(tmp_path: Path) -> None:
    dead = os.fork()
    if dead == 0:
        files._locked(tmp_path, 0o600)
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(dead, 0)[1] == signal.SIGKILL and len(os.listdir(tmp_path)) == 1
    path, descriptor = files._locked(tmp_path, 0o600)                   # a writer that is at work
    write_whole(tmp_path / "file", [b"x"])
    assert sorted(os.listdir(tmp_path)) == [path.name, "file"]
    os.close(descriptor)
    assert remove_leftovers(tmp_path) == 1 and os.listdir(tmp_path) == ["file"]


def killed(path: Path, write: Callable[[int], object], same: Callable[[int], bool], kills: int) -> None:
    """Kill a process that writes 0, 1, 0, 1 ... at random moments; each time one of them is there, whole."""
    draw = random.Random(kills)
    write(0)
    for _ in range(kills):
        turn = iter(range(1, 1 << 30))
        process = child(lambda: write(next(turn) % 2))      # noqa: B023 (called at once, in the child)
        time.sleep(draw.uniform(0, 0.02))
        kill(process)
        assert same(0) or same(1)
    write(0)
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("kills", [30, pytest.param(1000, marks=pytest.mark.slow)])
def test_kills_leave_the_old_file_or_the_new(tmp_path: Path, kills: int) -> None:
    path = tmp_path / "file"
    contents = [bytes(BIG), b"\1" * (BIG // 2)]
    killed(path, lambda i: write_whole(path, [contents[i]]), lambda i: path.read_bytes() == contents[i], kills)


@pytest.mark.slow
def test_1000_kills_of_save(tmp_path: Path) -> None:
    path = tmp_path / "model.mlc"
    models = [mlc.compile(nn.Linear(4, 3)) for _ in range(2)]
    x = np.ones((2, 4), np.float32)
    wanted = [model(x).numpy() for model in models]
    killed(path, lambda i: mlc.save(models[i], path), lambda i: np.array_equal(mlc.load(path)(x).numpy(), wanted[i]),
           1000)


# -- several writers --------------------------------------------------------------------------------------------------
def test_a_reader_never_sees_a_part(tmp_path: Path) -> None:
    """Two threads save to one name: what is loaded meanwhile is what one of them wrote."""
    path, stop, seen = tmp_path / "weights.safetensors", threading.Event(), set[float]()
    states = [{"w": np.full(BIG // 4, i, np.float32)} for i in range(2)]
    nn.save_safetensors(path, states[0])

    def write(state: Any) -> None:
        while not stop.is_set():
            nn.save_safetensors(path, state)

    writers = [threading.Thread(target=write, args=(state,)) for state in states]
    for writer in writers:
        writer.start()
    try:
        end = time.monotonic() + 1
        while time.monotonic() < end:
            w = nn.load_safetensors(path)["w"].numpy()
            assert w[0] == w[-1] and len(w) == BIG // 4
            seen.add(float(w[0]))
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert seen == {0.0, 1.0} and os.listdir(tmp_path) == [path.name]
