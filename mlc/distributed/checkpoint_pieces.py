"""The pieces of tensors on a mesh in a checkpoint: each is written by one of the ranks that have it, and read by those
that need a part of it.

A rank writes its pieces as one safetensors file. The manifest says where in which file each piece is, which part of its
tensor, and its checksum: so a rank reads only the pieces that overlap its shard.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from mlc.backends.mesh.array import MeshArray
from mlc.backends.transport.errors import ranks_text
from mlc.distributed.groups import ProcessGroup
from mlc.frontend.dtypes import as_dtype
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor, wrap
from mlc.ir.diag import Error, UserError
from mlc.weights import to_bytes

Array = np.ndarray[Any, Any]
BLOCK = 4 << 20
"""Bytes of a piece, about: larger shards are written as several, so that other shards overlap few of them."""
Part = tuple[slice, ...]


class BadPiece(ValueError):
    """A manifest or a file does not say what was written."""


class DifferentStates(ValueError):
    """Ranks write other tensors than each other, so that their files are no checkpoint.

    Args:
        message: What is different, with the tensor and the ranks.
        ranks: The ranks that are not as the others; none if that cannot be said.
    """

    def __init__(self, message: str, ranks: Iterable[int] = ()) -> None:
        super().__init__(message)
        self.ranks = tuple(ranks)


@dataclass(frozen=True)
class Writing:
    """The share of a rank of what is written of tensors on a mesh.

    arrays   its pieces by name
    tensors  for each tensor of the state its dtype, its shape, and the parts of it that this rank writes, by name
    """

    arrays: dict[str, Array] = field(default_factory=dict)
    tensors: dict[str, dict[str, Any]] = field(default_factory=dict)

    @staticmethod
    def of(leaves: Mapping[str, Any], group: ProcessGroup | None) -> Writing:
        """The share of this rank of the tensors on a mesh among some values, whatever the order they are in."""
        out, load = Writing(), dict[int, int]()
        for key in sorted(leaves):                         # who owns what follows from the loads so far
            array = mesh_array(leaves[key])
            if array is None:
                continue
            _check_group(array, group)
            part = array.sharding.piece(array.shape, array.mesh.topology, array.mesh.rank)
            size = prod(array.sharding.local(array.shape, array.mesh.topology)) * array.dtype.itemsize
            for held, owners in _replicas(array):
                owner = min(owners, key=lambda rank: (load.get(rank, 0), rank))
                load[owner] = load.get(owner, 0) + size
                if held == part and owner == array.mesh.rank:
                    out._add(key, array, part)
            out.tensors.setdefault(key, _description(array, []))
        return out

    def _add(self, key: str, array: MeshArray, part: Part) -> None:
        made = self.tensors.setdefault(key, _description(array, []))["pieces"]
        held = array.on_host()
        for inner in _blocks(held):
            start = [at.start + more.start for at, more in zip(part, inner)]
            name, piece = f"{key}@{json.dumps(start)}", held[inner]
            self.arrays[name] = np.ascontiguousarray(piece).reshape(piece.shape)
            made.append({"name": name, "start": start, "shape": list(piece.shape)})

    def file(self, name: str) -> bytes:
        """The bytes of this rank's file of this name, whose places and checksums are added to the pieces."""
        data = to_bytes(self.arrays)
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8:8 + size])
        for piece in (p for entry in self.tensors.values() for p in entry["pieces"]):
            begin, end = (8 + size + n for n in header[piece.pop("name")]["data_offsets"])
            piece |= {"file": name, "offset": begin, "sha256": hashlib.sha256(data[begin:end]).hexdigest()}
        return data


def mesh_array(x: Any) -> MeshArray | None:
    """The array of a tensor on a mesh; None of anything else."""
    array = x.backing_array if isinstance(x, Tensor) else None
    return array if isinstance(array, MeshArray) else None


def joined(tensors: Sequence[Mapping[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """The descriptions of tensors, with the pieces of all ranks, which cover each tensor exactly once.

    DifferentStates if they do not: every rank gets the same one, since each has the descriptions of all.
    """
    check_same_names([list(of_rank) for of_rank in tensors], " on a mesh")
    out = {}
    for key in sorted(tensors[0]) if tensors else ():
        first = tensors[0][key]
        for rank, entry in enumerate(of_rank[key] for of_rank in tensors):
            if (entry["dtype"], entry["shape"]) != (first["dtype"], first["shape"]):
                raise DifferentStates(f"{key} is {entry['dtype']}{entry['shape']} on rank {rank}, and "
                                      f"{first['dtype']}{first['shape']} on rank 0", [rank])
        pieces = [piece for of_rank in tensors for piece in of_rank[key]["pieces"]]
        try:
            _check_cover([_held(piece, first["shape"]) for piece in pieces], _whole(first["shape"]))
        except BadPiece as error:
            raise DifferentStates(f"{key} {error}: it is divided otherwise on some ranks") from None
        out[key] = {**first, "pieces": pieces}
    return out


def check_same_names(names: Sequence[Sequence[str]], kind: str = "") -> None:
    """DifferentStates if a rank lacks a tensor that another one has; `kind` says which kind of tensors they are."""
    have = [set(of_rank) for of_rank in names]
    for key in sorted(set[str]().union(*have)):
        if lacking := [rank for rank, keys in enumerate(have) if key not in keys]:
            having = next(rank for rank, keys in enumerate(have) if key in keys)
            raise DifferentStates(f"{ranks_text(lacking)} {'has' if len(lacking) == 1 else 'have'} no tensor "
                                  f"{key}{kind}, and rank {having} has", lacking)


def read(folder: Path, entry: Any, like: Tensor) -> Tensor:
    """The tensor of a description that lies as another one; BadPiece or OSError if it cannot be read."""
    array = mesh_array(like)
    try:
        shape, dtype = tuple(entry["shape"]), as_dtype(entry["dtype"])
        if shape != tuple(like.shape) or dtype is not like.dtype:
            raise BadPiece(f"is {dtype.name}{list(shape)}, and {like.dtype.name}{list(like.shape)} in the state")
        wanted = _whole(shape) if array is None else array.sharding.piece(shape, array.mesh.topology, array.mesh.rank)
        if array is not None and not array.is_here:
            wanted = (slice(0, 0),) * len(shape)
        out = _gathered(folder, entry["pieces"], shape, wanted, np.dtype(like.dtype))
    except BadPiece:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, Error) as error:
        raise BadPiece(f"is not described as it was written: {error!r}") from None
    return wrap(out if array is None else MeshArray(array.mesh, array.sharding, shape, out, array.used))


def _gathered(folder: Path, pieces: Sequence[Any], shape: Sequence[int], wanted: Part, dtype: np.dtype[Any]) -> Array:
    """A part of a tensor, from the pieces that overlap it."""
    needed = []
    for piece in pieces:
        held = _held(piece, shape)
        common = tuple(slice(max(a.start, b.start), min(a.stop, b.stop)) for a, b in zip(held, wanted, strict=True))
        if all(s.start < s.stop for s in common):
            needed.append((piece, held, common))
    _check_cover([common for _, _, common in needed], wanted)
    out = np.empty([s.stop - s.start for s in wanted], dtype)
    for piece, held, common in needed:
        array = _bytes_of(folder, piece, prod(s.stop - s.start for s in held) * dtype.itemsize)
        array = array.view(dtype).reshape([s.stop - s.start for s in held])
        out[_within(common, wanted)] = array[_within(common, held)]
    return out


def _whole(shape: Sequence[int]) -> Part:
    return tuple(slice(0, n) for n in shape)


def _held(piece: Any, shape: Sequence[int]) -> Part:
    """The part of a tensor of this shape that a piece is; BadPiece if it is not within it."""
    held = tuple(slice(index(a), index(a) + index(n)) for a, n in zip(piece["start"], piece["shape"], strict=True))
    if not all(0 <= s.start <= s.stop <= n for s, n in zip(held, shape, strict=True)):
        raise BadPiece("has a piece that is not within it")
    return held


def _check_cover(parts: Sequence[Part], whole: Part) -> None:
    """BadPiece unless the parts, none of them empty, cover the whole exactly once.

    The bounds of all parts divide it into cells, each of which is in a part or not. Parts that are written so are
    cells themselves; there are never more cells than elements.
    """
    bounds = [sorted({s.start, s.stop}.union(*({p[axis].start, p[axis].stop} for p in parts)))
              for axis, s in enumerate(whole)]
    places = [{bound: i for i, bound in enumerate(of_axis)} for of_axis in bounds]
    covered = np.zeros([len(of_axis) - 1 for of_axis in bounds], bool)
    for part in parts:
        cells = tuple(slice(at[s.start], at[s.stop]) for at, s in zip(places, part))
        if covered[cells].any():
            raise BadPiece("has pieces that overlap")
        covered[cells] = True
    if not covered.all():
        raise BadPiece("has pieces that do not cover it")


def _bytes_of(folder: Path, piece: Any, size: int) -> Array:
    with open(folder / Path(piece["file"]).name, "rb") as file:
        start, end = index(piece["offset"]), os.fstat(file.fileno()).st_size
        data = b""
        if 0 <= start <= end - size:                       # a read takes the memory before it finds the end
            file.seek(start)
            data = file.read(size)
    if len(data) != size or hashlib.sha256(data).hexdigest() != piece["sha256"]:
        raise BadPiece(f"has another piece in {Path(piece['file']).name} than was written")
    return np.frombuffer(data, np.uint8)


def _within(part: Part, outer: Part) -> Part:
    return tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(part, outer))


def _replicas(array: MeshArray) -> Iterator[tuple[Part, list[int]]]:
    """The different shards of a tensor, as parts of it, each with the ranks that have it."""
    ranks: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for rank in (r for r in range(array.mesh.topology.ranks) if array.sharding.is_on(array.mesh.topology, r)):
        part = array.sharding.piece(array.shape, array.mesh.topology, rank)
        ranks.setdefault(tuple((s.start, s.stop) for s in part), []).append(rank)
    for bounds, owners in ranks.items():
        yield tuple(slice(*b) for b in bounds), owners


def _blocks(x: Array) -> Iterator[Part]:
    """Parts of an array of about BLOCK bytes: as many indices of the last axes as fit."""
    sizes = list(x.shape)
    for axis in range(x.ndim):
        others = prod(sizes) // max(1, sizes[axis]) * x.dtype.itemsize
        sizes[axis] = max(1, min(sizes[axis], BLOCK // max(1, others)))
    starts = [range(0, n, size) for n, size in zip(x.shape, sizes)] if x.size else []
    for start in itertools.product(*starts) if x.size else ():
        yield tuple(slice(a, min(a + size, n)) for a, size, n in zip(start, sizes, x.shape))


def _description(array: MeshArray, pieces: list[Any]) -> dict[str, Any]:
    return {"dtype": as_dtype(array.dtype).name, "shape": list(array.shape), "pieces": pieces}


def _check_group(array: MeshArray, group: ProcessGroup | None) -> None:
    ranks = array.mesh.topology.ranks
    _ = array.mesh.transport                               # refuses an abstract mesh
    if (1 if group is None else group.size()) != ranks:
        raise UserError(f"a tensor on a mesh of {ranks} ranks is written by all of them, and "
                        f"{'there is no job' if group is None else f'the group has {group.size()}'}", code="MLC0980",
                        loc=user_loc(), hint="call mlc.distributed.init_process_group(), and give no other group")
