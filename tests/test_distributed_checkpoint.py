"""Checkpoints that every rank writes a part of, and that any number of ranks reads."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mlc
from mlc import distributed as dist
from mlc.backends.transport import threads
from mlc.distributed import checkpoint
from mlc.ir import files

pytestmark = pytest.mark.usefixtures("execution")


def state(scale: float) -> dict[str, Any]:
    return {"model": {"w": mlc.ones(4, 5) * scale, "b": mlc.ones(3, dtype=mlc.bfloat16) * scale, "n": mlc.tensor(7)},
            "history": [0.5 * scale, {"lr": (mlc.zeros(2) + scale, "cosine")}], "step": int(scale)}


def save(size: int, folder: Path, scale: float = 3.0) -> None:
    def write(rank: int) -> None:
        dist.init_process_group(timeout=20)
        checkpoint.save(state(scale), folder)
    threads.run(size, write)


@pytest.mark.parametrize("writers", [1, 2, 5])
def test_it_is_read_on_another_number_of_ranks(writers: int, tmp_path: Path) -> None:
    save(writers, tmp_path / "step-3")
    assert sorted(p.name for p in (tmp_path / "step-3").iterdir()) == [
        "manifest.json", *(f"rank-{i}.mlc" for i in range(writers))]

    def read(rank: int) -> Any:
        dist.init_process_group()
        mine = state(0.0)
        w = mine["model"]["w"]
        found = checkpoint.load(mine, tmp_path / "step-3")
        assert found["model"]["w"] is w and w.tolist() == [[3.0] * 5] * 4
        assert found["model"]["b"].tolist() == [3.0] * 3 and found["history"][1]["lr"][0].tolist() == [3.0, 3.0]
        return found["step"], found["history"][0], found["history"][1]["lr"][1]

    assert threads.run(3, read) == [(3, 1.5, "cosine")] * 3


def test_the_last_whole_one_is_found(tmp_path: Path) -> None:
    assert checkpoint.latest(tmp_path / "none") is None
    for step in (9, 10):
        checkpoint.save(state(step), tmp_path / f"step-{step}")
    (tmp_path / "step-11").mkdir()                          # without a manifest
    assert checkpoint.latest(tmp_path) == tmp_path / "step-10"


def test_a_writer_that_fails_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = files.write_whole

    def full(path: Any, *args: Any) -> None:
        if Path(path).name == "rank-1.mlc":
            raise OSError(28, "No space left on device")
        written(path, *args)

    monkeypatch.setattr(checkpoint, "write_whole", full)
    with pytest.raises(dist.RankError, match=r"rank 1 cannot write .*: .*No space left on device") as caught:
        save(2, tmp_path / "step-1")
    assert isinstance(caught.value.__cause__, dist.RankError) and caught.value.__cause__.code == "MLC0977"
    assert not list(tmp_path.iterdir())


def test_an_existing_folder_is_kept(tmp_path: Path) -> None:
    save(2, tmp_path / "step-1")
    with pytest.raises(dist.RankError, match=r"cannot write .*step-1: it exists"):
        save(2, tmp_path / "step-1")
    assert checkpoint.latest(tmp_path) == tmp_path / "step-1" and len(list(tmp_path.iterdir())) == 1


def damage(folder: Path, kind: str) -> dict[str, Any]:
    if kind == "manifest":
        (folder / "manifest.json").write_text("{")
    elif kind == "bit":
        data = bytearray((folder / "rank-1.mlc").read_bytes())
        data[-1] ^= 1
        (folder / "rank-1.mlc").write_bytes(data)
    elif kind == "file":
        (folder / "rank-0.mlc").unlink()
    elif kind == "folder":
        (folder / "manifest.json").unlink()
    states: dict[str, dict[str, Any]] = {"other": {"more": mlc.ones(2)}, "shape": {"model": {"w": mlc.ones(4, 6)}}}
    return states.get(kind, state(0.0))


@pytest.mark.parametrize("kind", ["manifest", "bit", "file", "folder", "other", "shape"])
def test_what_cannot_be_read_is_an_error_and_changes_nothing(kind: str, tmp_path: Path) -> None:
    save(2, tmp_path / "step-1")
    mine = damage(tmp_path / "step-1", kind)
    with pytest.raises(dist.RankError) as caught:
        checkpoint.load(mine, tmp_path / "step-1")
    assert caught.value.code == "MLC0977"
    assert kind == "other" or float(mine["model"]["w"].sum()) in (0.0, 24.0)
