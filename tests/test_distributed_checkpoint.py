"""Checkpoints that every rank writes a part of, and that any number of ranks reads."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import mlc
from mlc import distributed as dist
from mlc.backends.mesh.array import MeshArray
from mlc.backends.transport import threads
from mlc.distributed import checkpoint, checkpoint_pieces
from mlc.ir import files
from mlc.ir.diag import UserError

pytestmark = pytest.mark.usefixtures("execution")


class Pair(NamedTuple):
    weight: mlc.Tensor
    steps: int


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


def test_a_folder_that_cannot_be_published_is_an_error_on_all_ranks(tmp_path: Path,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    def work(rank: int) -> None:
        dist.init_process_group(timeout=10)
        with pytest.raises(UserError, match=r"MLC0393.*No space left"):
            checkpoint.save({"w": mlc.ones(2)}, tmp_path / "step-1")
        dist.barrier()                                     # the ranks go on together

    monkeypatch.setattr(checkpoint, "publish_folder", full)
    threads.run(2, work)
    assert list(tmp_path.iterdir()) == []


def test_named_tuples_are_read_as_such(tmp_path: Path) -> None:
    checkpoint.save({"s": Pair(mlc.ones(2), 3)}, tmp_path / "step-1")
    found = checkpoint.load({"s": Pair(mlc.zeros(2), 0)}, tmp_path / "step-1")["s"]
    assert isinstance(found, Pair) and found.steps == 3 and found.weight.tolist() == [1.0, 1.0]


def test_there_is_no_checkpoint_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert checkpoint.latest(tmp_path / "file") is None


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


def placed(axes: dict[str, int], *spec: Any, values: Any = None) -> dict[str, Any]:
    """A state with a tensor on a mesh, another that all ranks have, and a number."""
    mesh = dist.mesh(axes)
    whole = np.arange(48, dtype=np.float32).reshape(8, 6)
    return {"w": dist.shard(whole if values is None else values, *spec, mesh=mesh),
            "b": dist.shard(mlc.ones(3, dtype=mlc.bfloat16) * 2, mesh=mesh), "step": 4, "s": mlc.tensor(1.5)}


@pytest.mark.parametrize(("ranks", "axes", "spec"), [
    (2, {"a": 2}, ("a",)), (2, {"a": 2}, (None, "a")), (4, {"a": 2, "b": 2}, ("b", "a")),
    (4, {"a": 2, "b": 2}, (("a", "b"),)), (1, {"a": 1}, ()), (6, {"a": 2, "b": 3}, ("a", "b"))])
def test_shards_are_written_and_read_on_another_mesh(ranks: int, axes: dict[str, int], spec: Any, tmp_path: Path,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_pieces, "BLOCK", 40)    # so that shards are several pieces

    def write(rank: int) -> None:
        dist.init_process_group(timeout=20)
        state = placed({"a": 2, "b": 2}, "a", "b")
        checkpoint.save(state, tmp_path / "step-4")

    def read(rank: int) -> Any:
        dist.init_process_group(timeout=20)
        state = placed(axes, *spec, values=np.zeros((8, 6), np.float32))
        w = state["w"]
        found = checkpoint.load(state, tmp_path / "step-4")
        assert found["w"] is w and found["step"] == 4 and found["s"].item() == 1.5
        return dist.placement(w)[:len(spec)], w.cpu().numpy(), found["b"].cpu().tolist()

    with monkeypatch.context() as patch:
        patch.delattr(MeshArray, "numpy")                  # nothing is gathered
        threads.run(4, write)
    assert sum(p.suffix == ".safetensors" for p in (tmp_path / "step-4").iterdir()) == 4
    for placement, whole, b in threads.run(ranks, read):
        assert placement == spec and np.array_equal(whole.ravel(), np.arange(48)) and b == [2.0] * 3


def test_a_rank_reads_only_what_overlaps_its_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: dict[int, list[str]] = {}
    whole = checkpoint_pieces._bytes_of

    def noted(folder: Path, piece: Any, size: int) -> Any:
        opened.setdefault(dist.get_rank(), []).append(piece["file"])
        return whole(folder, piece, size)

    def act(rank: int) -> None:
        dist.init_process_group(timeout=20)
        mesh = dist.mesh({"a": 4})
        checkpoint.save({"w": dist.shard(mlc.ones(8), "a", mesh=mesh)}, tmp_path / "step-1")
        checkpoint.load({"w": dist.shard(mlc.zeros(8), "a", mesh=mesh)}, tmp_path / "step-1")

    monkeypatch.setattr(checkpoint_pieces, "_bytes_of", noted)
    threads.run(4, act)
    assert opened == {rank: [f"rank-{rank}.safetensors"] for rank in range(4)}


def changed(manifest: dict[str, Any], kind: str) -> None:
    entry = manifest["sharded"]['["w"]']
    piece = entry["pieces"][0]
    piece.update({"offset": {"offset": 3}, "file": {"file": "../../secret"}, "start": {"start": [1, 0]},
                  "length": {"shape": [4]}, "text": {"shape": "x"}, "sum": {"sha256": "0"},
                  "beyond words": {"shape": [2 ** 70, 6]}, "beyond memory": {"shape": [2 ** 50, 6]},
                  "beyond files": {"offset": 2 ** 70}}.get(kind, {}))
    entry.update({"dtype": {"dtype": "float64"}, "shape": {"shape": [8, 7]}, "none": {"pieces": []},
                  "list": {"pieces": 3}, "twice": {"pieces": entry["pieces"] * 2},
                  "one for another": {"pieces": entry["pieces"][:1] * len(entry["pieces"])}}.get(kind, {}))
    whole: dict[str, dict[str, Any]] = {
        "sharded list": {"sharded": []}, "files 3": {"files": 3}, "files [3]": {"files": [3]},
        "no name": {"files": [{**manifest["files"][0], "file": "\0"}]}}
    manifest.update(whole.get(kind, {}))
    if kind == "no files":
        del manifest["files"]


@pytest.mark.parametrize("kind", ["offset", "file", "start", "length", "text", "sum", "dtype", "shape", "none", "list",
                                  "twice", "bytes", "state", "beyond words", "beyond memory", "beyond files",
                                  "one for another", "sharded list", "files 3", "files [3]", "no name", "no files"])
def test_pieces_that_cannot_be_read_are_an_error(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_pieces, "BLOCK", 96)    # two pieces of four rows
    folder = tmp_path / "step-4"
    checkpoint.save(placed({"a": 1}, "a"), folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    changed(manifest, kind)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    if kind == "bytes":
        data = (folder / "rank-0.safetensors").read_bytes()
        (folder / "rank-0.safetensors").write_bytes(data[:-1])
    state = placed({"a": 1}, "a", values=np.ones((8, 6), np.float32))
    with pytest.raises(dist.RankError) as caught:
        checkpoint.load({**state, "w": 3} if kind == "state" else state, folder)
    assert caught.value.code == "MLC0977" and state["w"].cpu().numpy().sum() == 48


def test_tensors_of_a_mesh_are_written_by_all_of_its_ranks(tmp_path: Path) -> None:
    def write(rank: int) -> None:
        checkpoint.save({"w": dist.shard(mlc.ones(4), "a", mesh=dist.mesh({"a": 2}))}, tmp_path / "step-1")

    with pytest.raises(dist.RankError, match="written by all of them, and there is no job") as caught:
        threads.run(2, write)
    assert isinstance(caught.value.__cause__, UserError) and caught.value.__cause__.code == "MLC0980"


def test_ranks_write_each_tensor_once_whatever_their_order(tmp_path: Path) -> None:
    def write(rank: int) -> None:
        dist.init_process_group(timeout=20)
        mesh = dist.mesh({"a": 2})
        state = {key: dist.shard(mlc.arange(6.0) + i, mesh=mesh) for i, key in enumerate("xy")}
        checkpoint.save(dict(reversed(state.items())) if rank else state, tmp_path / "step-1")

    threads.run(2, write)
    found = checkpoint.load({"x": mlc.zeros(6), "y": mlc.zeros(6)}, tmp_path / "step-1")
    assert found["x"].tolist() == [0, 1, 2, 3, 4, 5] and found["y"].tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(("kind", "message", "ranks"), [
    ("lacks", r'rank 1 has no tensor \["w"\] on a mesh, and rank 0 has', (1,)),
    ("plain", r'rank 1 has no tensor \["w"\] on a mesh, and rank 0 has', (1,)),
    ("whole", r'\["w"\] has pieces that do not cover it: it is divided otherwise', ()),
    ("shape", r'\["w"\] is float32\[8\] on rank 1, and float32\[4\] on rank 0', (1,)),
    ("lacks plain", r'rank 1 has no tensor \["b"\], and rank 0 has', (1,)),
    ("size", r'\["b"\] is written by 2 ranks', ())])
def test_ranks_with_different_states_write_none(kind: str, message: str, ranks: tuple[int, ...],
                                                tmp_path: Path) -> None:
    def write(rank: int) -> dist.RankError:
        dist.init_process_group(timeout=20)
        mesh = dist.mesh({"a": 2})
        state = {"w": dist.shard(mlc.ones(4), "a", mesh=mesh), "b": mlc.ones(3), "c": mlc.ones(2)}
        other: dict[str, Any] = {"plain": {"w": mlc.ones(4)}, "whole": {"w": dist.shard(mlc.ones(4), mesh=mesh)},
                                 "shape": {"w": dist.shard(mlc.ones(8), "a", mesh=mesh)}, "size": {"b": mlc.ones(1)}}
        if rank:
            state |= other.get(kind, {})
            if kind.startswith("lacks"):
                del state["b" if kind == "lacks plain" else "w"]
        with pytest.raises(dist.RankError, match=message) as caught:
            checkpoint.save(state, tmp_path / "step-1")
        return caught.value

    for error in threads.run(2, write):                    # the same on both
        assert error.code == "MLC0977" and error.ranks == ranks
    assert not list(tmp_path.iterdir())
