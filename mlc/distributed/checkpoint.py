"""Checkpoints of a job: a folder to which every rank writes its part, and that any number of ranks reads.

The tensors of a state that all ranks have are divided among the ranks by their sizes. Of tensors on a mesh each rank
writes its shards, and reads what overlaps its shard, however they lay when they were written: nothing is gathered. A
manifest lists the files with their checksums, and which tensor is where. All is written to a temporary folder, synced,
and renamed when it is whole: whoever is killed meanwhile leaves the checkpoint before.

    for step in range(start, steps):
        ...
        if step % 100 == 0:
            checkpoint.save({"model": model.state_dict(), "step": step}, f"checkpoints/step-{step}")

    if (path := checkpoint.latest("checkpoints")) is not None:
        state = checkpoint.load({"model": model.state_dict(), "step": 0}, path)

Example:
    >>> import tempfile
    >>> state, folder = {"w": mlc.arange(3.0), "step": 7}, tempfile.mkdtemp() + "/step-7"
    >>> mlc.distributed.checkpoint.save(state, folder)
    >>> mlc.distributed.checkpoint.load({"w": mlc.zeros(3), "step": 0}, folder)
    {'w': tensor([0., 1., 2.], dtype=mlc.float32), 'step': 7}
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mlc import serialization
from mlc.backends.transport.errors import RankError, ranks_text
from mlc.distributed import checkpoint_pieces
from mlc.distributed.checkpoint_pieces import BadPiece, DifferentStates
from mlc.distributed.groups import ProcessGroup, resolved, world
from mlc.distributed.objects import all_gather_object, broadcast_object_list
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.device import CPU
from mlc.frontend.location import user_loc
from mlc.frontend.output_files import not_written
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.ir.files import publish_folder, write_whole
from mlc.weights import Unreadable

__all__ = ["latest", "load", "save"]

MANIFEST, FORMAT = "manifest.json", 2
READABLE = (1, FORMAT)
"""Formats of manifests; 1 has no tensors on meshes."""
_STEP = re.compile(r"step-(\d+)")


def save(state_dict: Mapping[str, Any], checkpoint_id: str | os.PathLike[str], process_group: Any = None) -> None:
    """Write a state that all ranks have, each rank a part of it; without a job, all of it.

    Args:
        state_dict: Nested dicts, lists and tuples of tensors and of what `mlc.save` takes. The tensors are equal on all
            ranks, or on a mesh; of anything else, rank 0's value is written.
        checkpoint_id: Path of a folder that does not exist, on a file system that all ranks share.
        process_group: The group; None for all ranks.

    Raises:
        UserError: It cannot be written (MLC0393), or holds what a file cannot have (MLC0764), or a tensor on a mesh of
            other ranks than the group (MLC0980).
        RankError: A rank cannot write its part, or the ranks have different tensors (MLC0977), or collectives fail.

    Example:
        >>> import os, tempfile
        >>> from mlc.backends.transport import threads
        >>> folder = tempfile.mkdtemp() + "/step-1"
        >>> def write(rank):
        ...     mlc.distributed.init_process_group()
        ...     mlc.distributed.checkpoint.save({"w": mlc.ones(2), "b": mlc.ones(1)}, folder)
        >>> _ = threads.run(2, write)
        >>> sorted(os.listdir(folder))
        ['manifest.json', 'rank-0.mlc', 'rank-1.mlc']
    """
    group, target = _group(process_group), Path(checkpoint_id)
    rank, size = (group.rank(), group.size()) if group is not None else (0, 1)
    every = dict(_leaves(state_dict))
    shards = checkpoint_pieces.Writing.of(every, group)
    leaves = {key: x.cpu() if isinstance(x, Tensor) and x.device != CPU else x for key, x in every.items()
              if key not in shards.tensors}
    owners = _owners(leaves, size)
    temporary = _started(target, group)
    mine = {key: x for key, x in leaves.items() if owners[key] == rank}
    found, wrong = {}, ""
    try:
        found = _written(temporary, rank, mine)
        if shards.arrays:
            name = f"rank-{rank}.safetensors"
            write_whole(temporary / name, [shards.file(name)])
    except (OSError, UserError, Unreadable) as error:
        wrong = getattr(error, "message", None) or str(error)
    share = (found, shards.tensors, wrong, [key for key, x in leaves.items() if isinstance(x, Tensor)])
    parts: list[Any] = [share] * size
    if group is not None:
        all_gather_object(parts, share, group)
    failed: list[Any] = [None]
    try:
        manifest = _joined(parts, target)
        if rank == 0:
            write_whole(temporary / MANIFEST, [json.dumps(manifest, indent=1).encode()])
            publish_folder(temporary, target)
    except OSError as error:
        failed = [(error.errno, error.strerror)]
    finally:
        if rank == 0:
            shutil.rmtree(temporary, ignore_errors=True)   # there only if it could not be published
    if group is not None:
        broadcast_object_list(failed, group=group, group_src=0)      # whoever goes on finds it
    if failed[0] is not None:
        raise not_written(target, OSError(*failed[0])) from None


def _joined(parts: list[Any], target: Path) -> dict[str, Any]:
    """The manifest of what all ranks have written; the same error on each of them if it is no checkpoint."""
    files, tensors, wrong, names = zip(*parts)
    if failed := [i for i, text in enumerate(wrong) if text]:
        raise RankError(f"{ranks_text(failed)} cannot write {target}: {wrong[failed[0]]}", code="MLC0977",
                        ranks=failed, loc=user_loc())
    try:
        sharded = checkpoint_pieces.joined(tensors)
        checkpoint_pieces.check_same_names(names)
        written = Counter(key for part in files for key in part["tensors"])
        if bad := sorted(key for key in names[0] if written[key] != 1):
            raise DifferentStates(f"{bad[0]} is written by {written[bad[0]]} ranks: some tensors have another size on "
                                  "some ranks")
    except DifferentStates as error:
        raise RankError(f"cannot write {target}: {error}", code="MLC0977", ranks=error.ranks, loc=user_loc(),
                        hint="give the same state on all ranks") from None
    return {"format": FORMAT, "ranks": len(parts), "files": list(files), "sharded": sharded}


def _written(folder: Path, rank: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """Write the values of a rank that are on no mesh; what the manifest says of the file."""
    name, data = f"rank-{rank}.mlc", io.BytesIO()
    serialization.write(dict(values), data)
    write_whole(folder / name, [data.getbuffer()])
    return {"file": name, "sha256": hashlib.sha256(data.getbuffer()).hexdigest(), "tensors": list(values)}


def load(state_dict: Mapping[str, Any], checkpoint_id: str | os.PathLike[str]) -> Any:
    """Read a checkpoint, whatever the number of ranks that wrote it, into the tensors of a state.

    A module on a mesh has other tensors than its `state_dict`: it takes the state that is returned, by
    `load_state_dict`.

    Args:
        state_dict: State of the same structure: its tensors are overwritten.
        checkpoint_id: Path of the folder.

    Returns:
        The state, with the values of the checkpoint in place of those that are no tensors.

    Raises:
        RankError: There is no checkpoint, it is damaged, or lacks a name of the state, or its tensor has another shape
            (MLC0977). What the state does not name is not read.

    Example:
        >>> import tempfile
        >>> folder, model = tempfile.mkdtemp() + "/step-1", nn.Linear(2, 1)
        >>> mlc.distributed.checkpoint.save(model.state_dict(), folder)
        >>> other = nn.Linear(2, 1)
        >>> _ = mlc.distributed.checkpoint.load(other.state_dict(), folder)
        >>> bool((other.weight == model.weight).all())
        True
    """
    folder, found, wanted = Path(checkpoint_id), dict[str, Any](), dict(_leaves(state_dict))
    manifest = _manifest(folder)
    for part in manifest["files"]:
        if wanted.keys().isdisjoint(part["tensors"]):
            continue
        try:
            data = (folder / os.path.basename(part["file"])).read_bytes()
        except (OSError, ValueError) as error:             # ValueError: a name that no file can have
            raise _damaged(folder, f"{part['file']}: {getattr(error, 'strerror', error)}") from None
        if hashlib.sha256(data).hexdigest() != part["sha256"]:
            raise _damaged(folder, f"{part['file']} is not the file that was written")
        found |= serialization.read(data)
    for key in wanted.keys() & manifest.get("sharded", {}).keys():
        found[key] = _put_together(folder, key, manifest["sharded"][key], wanted[key])
    if missing := sorted(wanted.keys() - found.keys()):
        raise _damaged(folder, f"it has no {', '.join(missing[:3])}" + ", ..." * (len(missing) > 3))
    for key, x in wanted.items():
        if isinstance(x, Tensor):
            new = found[key]
            if not isinstance(new, Tensor) or new.shape != x.shape or new.dtype is not x.dtype:
                kind = f"{new.dtype.name}{list(new.shape)}" if isinstance(new, Tensor) else type(new).__name__
                raise _damaged(folder, f"{key} is {kind}, and {x.dtype.name}{list(x.shape)} in the state")
    with GradMode(False):
        for key, x in wanted.items():
            if isinstance(x, Tensor):
                x.copy_(found[key])
                found[key] = x
    return _filled(state_dict, found, ())


def latest(folder: str | os.PathLike[str]) -> Path | None:
    """The whole checkpoint of the last step, among the folders `step-120` of a folder.

    Args:
        folder: Path of the folder; it need not exist.

    Returns:
        Its path; None if there is no checkpoint.

    Raises:
        RankError: The folder cannot be read (MLC0977).

    Example:
        >>> import tempfile
        >>> mlc.distributed.checkpoint.latest(tempfile.mkdtemp()) is None
        True
    """
    try:
        steps = [(int(match[1]), path) for path in Path(folder).iterdir()
                 if (match := _STEP.fullmatch(path.name)) and (path / MANIFEST).is_file()]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise RankError(f"{folder} cannot be read: {error.strerror}", code="MLC0977", loc=user_loc()) from None
    return max(steps)[1] if steps else None


def _put_together(folder: Path, key: str, entry: Any, like: Any) -> Tensor:
    """The tensor of which ranks have written pieces, as the one of the state lies."""
    if not isinstance(like, Tensor):
        raise _damaged(folder, f"{key} is a tensor, and a {type(like).__name__} in the state")
    try:
        return checkpoint_pieces.read(folder, entry, like)
    except (BadPiece, OSError) as error:
        raise _damaged(folder, f"{key} {error}") from None


def _group(process_group: Any) -> ProcessGroup | None:
    return resolved(process_group) if process_group is not None or world() is not None else None


def _started(target: Path, group: ProcessGroup | None) -> Path:
    """A temporary folder beside the target, made by the first rank; each rank gets the same error if it cannot be."""
    answer: list[Any] = [None, ""]
    if group is None or group.rank() == 0:
        temporary = target.parent / f".{target.name}.{secrets.token_hex(8)}.tmp"
        try:
            if target.exists():
                raise FileExistsError(17, "it exists", str(target))
            temporary.mkdir(parents=True)
            answer[0] = str(temporary)
        except OSError as error:
            answer[1] = error.strerror or str(error)
    if group is not None:
        broadcast_object_list(answer, group=group, group_src=0)
    if answer[0] is None:
        raise UserError(f"cannot write {target}: {answer[1]}", code="MLC0393", loc=user_loc(),
                        hint="give each checkpoint a folder of its own, such as step-120")
    return Path(answer[0])


def _leaves(x: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[str, Any]]:
    """The values in nested dicts, lists and tuples, by path."""
    children = x.items() if isinstance(x, Mapping) else enumerate(x) if isinstance(x, list | tuple) else None
    if children is None:
        yield _key(path), x
        return
    for key, child in children:
        yield from _leaves(child, (*path, key))


def _key(path: tuple[Any, ...]) -> str:
    return json.dumps(path)


def _owners(leaves: Mapping[str, Any], size: int) -> dict[str, int]:
    """The rank that writes each value: tensors so that all write about as much, anything else the first one."""
    owners, load = dict.fromkeys(leaves, 0), [0] * size
    tensors = [(-x.nbytes, key) for key, x in leaves.items() if isinstance(x, Tensor)]
    for size_below_0, key in sorted(tensors):
        owners[key] = load.index(min(load))
        load[owners[key]] -= size_below_0
    return owners


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_bytes())
        assert_format = manifest["format"]
    except OSError as error:
        raise RankError(f"there is no checkpoint in {folder}: {error.strerror}", code="MLC0977", loc=user_loc(),
                        hint="mlc.distributed.checkpoint.latest finds the last whole one") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _damaged(folder, f"{MANIFEST} is no manifest") from None
    if assert_format not in READABLE:
        raise _damaged(folder, f"its format is {assert_format}, and this version reads {FORMAT}")
    files = manifest.get("files")
    if not isinstance(files, list) or not all(map(_is_file, files)):
        raise _damaged(folder, f"{MANIFEST} does not list the files of the ranks")
    if not isinstance(manifest.get("sharded", {}), dict):
        raise _damaged(folder, f"{MANIFEST} does not list the tensors on a mesh")
    return manifest


def _is_file(part: Any) -> bool:
    """Whether an element of a manifest describes a file as `_written` does."""
    return (isinstance(part, dict) and isinstance(part.get("file"), str) and isinstance(part.get("sha256"), str)
            and isinstance(part.get("tensors"), list) and all(isinstance(key, str) for key in part["tensors"]))


def _damaged(folder: Path, what: str) -> RankError:
    return RankError(f"the checkpoint {folder} cannot be read: {what}", code="MLC0977", loc=user_loc(),
                     hint="read another one, or give the state that was saved")


def _filled(x: Any, found: Mapping[str, Any], path: tuple[Any, ...]) -> Any:
    """The nested containers with the values of the checkpoint."""
    if isinstance(x, Mapping):
        return {key: _filled(child, found, (*path, key)) for key, child in x.items()}
    if isinstance(x, list | tuple):
        children = [_filled(child, found, (*path, i)) for i, child in enumerate(x)]
        return type(x)(*children) if hasattr(x, "_fields") else type(x)(children)
    return found[_key(path)]
