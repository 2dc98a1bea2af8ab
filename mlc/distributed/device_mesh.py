"""Tensors that are divided among the ranks of a mesh, and functions that compute with them.

A mesh is a device: `mesh:0` and so on. A tensor on it is one tensor, of which each rank holds a shard. What computes
with such tensors, eagerly or compiled, is divided among the ranks by passes over its IR, which insert the collectives;
`lower` shows the program of one rank, `report` what it sends. All ranks run the same Python program.

Example:
    >>> mesh = mlc.distributed.mesh({"data": 1})         # in a job of one rank
    >>> x = mlc.distributed.shard(mlc.ones(4, 2), "data", mesh=mesh)
    >>> x.device == mesh.device, mlc.distributed.placement(x), x.sum().item()
    (True, ('data', None), 8.0)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mlc.backends.cuda.memory import DeviceArray
from mlc.backends.mesh import meshes
from mlc.backends.mesh.array import MeshArray
from mlc.dialects.shard.constraint import Shard
from mlc.dialects.shard.mesh import Axes, Sharding
from mlc.dialects.shard.mesh import Mesh as Topology
from mlc.frontend.location import user_loc
from mlc.frontend.operands import tracer
from mlc.frontend.tensor import OPERATIONS, Tensor, as_array, wrap
from mlc.frontend.trace import emit, state
from mlc.ir.diag import Error, UserError, UserTypeError

Spec = str | Sequence[str] | None
"""The axes of the mesh that divide one dimension: a name, several (the major one first), or None."""


class DeviceMesh:
    """A grid of all ranks of the job, and the device on which tensors are divided among them.

    Args:
        axes: Name and number of ranks of each axis; ranks are numbered in row-major order.
        abstract: Whether the mesh is of no job: programs on it are lowered and reported, and not run. This process
            stands for rank 0.
        overlap: Whether functions compute while collectives are on their way, where the model of a network in the
            pass `overlap_collectives` says that this saves time; the bits are the same. By default they do if the ranks
            are on more hosts than one, since within a host, processors copy what is sent.
        device_type: Where the shards are: "cpu", or "cuda" for GPUs, of which each rank takes the one of its number on
            its host, or the only one that it sees. NCCL sends between them: it sums in an order of its own, and rounds
            sums of 16 bits each time.

    Attributes:
        device: Name of the device, such as "mesh:0".
        rank: Number of this rank.
        abstract: Whether the mesh is of no job.

    Raises:
        UserError: An axis has no rank (MLC0960), the job has another number of ranks, or there is no such type of
            device (MLC0969).
        BackendError: There is no such GPU (MLC0582), or NCCL is not installed (MLC0975).

    Example:
        >>> mesh = mlc.distributed.DeviceMesh({"data": 1, "model": 1})
        >>> mesh.shape, mesh.coordinates
        ({'data': 1, 'model': 1}, {'data': 0, 'model': 0})
    """

    def __init__(self, axes: Mapping[str, int], abstract: bool = False, overlap: bool | None = None,
                 device_type: str = "cpu") -> None:
        try:
            if device_type not in ("cpu", "cuda"):
                raise UserError(f"device_type = {device_type!r}", code="MLC0969",
                                hint='use "cpu", or "cuda" for a GPU of each rank')
            self._ranks = meshes.make(Topology.of(axes), abstract, overlap, device_type)
        except Error as error:
            error.loc = user_loc()
            raise
        self.device = self._ranks.device
        self.rank = self._ranks.rank
        self.abstract = abstract

    @property
    def shape(self) -> dict[str, int]:
        """The number of ranks along each axis, by its name.

        Example:
            >>> mlc.distributed.DeviceMesh({"data": 2, "model": 4}, abstract=True).shape
            {'data': 2, 'model': 4}
        """
        topology = self._ranks.topology
        return dict(zip(topology.axes, topology.sizes))

    @property
    def coordinates(self) -> dict[str, int]:
        """The position of this rank along each axis, by its name.

        Example:
            >>> mlc.distributed.DeviceMesh({"data": 2, "model": 4}, abstract=True).coordinates
            {'data': 0, 'model': 0}
        """
        topology = self._ranks.topology
        return dict(zip(topology.axes, topology.coordinates(self.rank)))

    def __repr__(self) -> str:
        return f"DeviceMesh({self.shape})"


def mesh(axes: Mapping[str, int], abstract: bool = False, overlap: bool | None = None,
         device_type: str = "cpu") -> DeviceMesh:
    """Make a mesh of all ranks of the job.

    Args:
        axes: Name and number of ranks of each axis, the major one first.
        abstract: Whether it is of no job, as of `DeviceMesh`.
        overlap: Whether collectives overlap with computation, as of `DeviceMesh`.
        device_type: Where the shards are, "cpu" or "cuda", as of `DeviceMesh`.

    Returns:
        The mesh.

    Raises:
        UserError: An axis has no rank (MLC0960), the job has another number of ranks, or there is no such type of
            device (MLC0969).
        BackendError: There is no such GPU (MLC0582), or NCCL is not installed (MLC0975).

    Example:
        >>> mlc.distributed.mesh({"data": 1})
        DeviceMesh({'data': 1})
    """
    return DeviceMesh(axes, abstract, overlap, device_type)


def shard(x: Any, *spec: Spec, mesh: DeviceMesh | None = None, used: Sequence[Spec] | None = None,
          stage: int | None = None) -> Tensor:
    """Divide a tensor among the ranks; in a function that is recorded, have it be divided so.

    Args:
        x: Tensor or array that every rank has, the same on each; or a tensor on a mesh.
        spec: For each dimension the axis of the mesh that divides it, several, or None; further ones are not divided.
        mesh: The mesh. In a function that is recorded it is that of the arguments, whichever is given.
        used: How it is divided where it is used, as `spec`, if not in the way that moves the fewest bytes: () for a
            tensor that is gathered, as the weights of a fully sharded model are.
        stage: Position along the axis `stage` of the ranks that have it, if not all do: stages of a pipeline.

    Returns:
        The tensor on the mesh.

    Raises:
        UserError: A dimension is no multiple of its number of ranks, or an axis is used twice (MLC0962), or there is no
            such axis (MLC0961), no mesh is given, or `used` or `stage` in a function that is recorded (MLC0969).

    Example:
        >>> mesh = mlc.distributed.mesh({"data": 1})
        >>> mlc.distributed.local(mlc.distributed.shard(mlc.arange(4), "data", mesh=mesh))
        tensor([0, 1, 2, 3], dtype=mlc.int64)
    """
    if state.trace is not None:
        if used is not None or stage is not None:
            raise UserError("shard is given used or stage in a function that is recorded, where it says how a value is "
                            "divided", code="MLC0969", loc=user_loc(),
                            hint="give them for the arguments; mlc.distributed.stage(module, number) has stages")
        traced = tracer(x)
        constrained: Tensor = emit(Shard, traced, _dims(spec, traced.type.rank))
        return constrained
    ranks, x = _mesh_of(x, mesh), _tensor(x)
    shape = tuple(x.shape)
    sharding = Sharding(_dims(spec, len(shape)), -1 if stage is None else stage)
    _check(sharding, shape, ranks.topology)
    where_used = None if used is None else Sharding(_dims(used, len(shape)), sharding.stage)
    if where_used is not None:
        _check(where_used, shape, ranks.topology)
    held = x.backing_array
    if isinstance(held, MeshArray) and held.mesh is ranks:
        return wrap(held.lying(sharding, where_used))
    array = as_array(x)
    ranks.agree_on(array, f"shard {sharding}")
    return wrap(MeshArray.of_whole(ranks, sharding, array, where_used))


def from_local(x: Any, *spec: Spec, mesh: DeviceMesh) -> Tensor:
    """The tensor of which each rank brings its own shard, as a data loader that reads a part does.

    Args:
        x: The shard of this rank; those of all ranks have one shape.
        spec: As of `shard`.
        mesh: The mesh.

    Returns:
        The tensor on the mesh.

    Raises:
        UserError: A dimension cannot be divided so (MLC0962), or there is no such axis (MLC0961).

    Example:
        >>> mesh = mlc.distributed.mesh({"data": 1})
        >>> mlc.distributed.from_local(mlc.ones(4, 2), "data", mesh=mesh).shape
        (4, 2)
    """
    ranks, held = _ranks_of(mesh), _tensor(x).backing_array
    there = isinstance(held, DeviceArray) and ranks.on_gpus and held.memory is ranks.memory
    shard: Any = held.copy() if there else np.array(as_array(_tensor(x)), order="C")
    sharding, topology = Sharding(_dims(spec, shard.ndim)), ranks.topology
    shape = tuple(n * topology.size(axes) for n, axes in zip(shard.shape, sharding.dims))
    _check(sharding, shape, topology)
    ranks.agree(f"from_local of a {shard.dtype.name}{list(shard.shape)} that lies {sharding}")
    return wrap(MeshArray(ranks, sharding, shape, shard))


def local(x: Tensor) -> Tensor:
    """The shard of a tensor that this rank has, without a copy.

    Args:
        x: A tensor on a mesh.

    Returns:
        A tensor on the CPU, or on the GPU of this rank.

    Raises:
        UserError: x is on no mesh (MLC0969).

    Example:
        >>> mesh = mlc.distributed.mesh({"data": 1})
        >>> mlc.distributed.local(mlc.distributed.shard(mlc.ones(2), mesh=mesh))
        tensor([1., 1.], dtype=mlc.float32)
    """
    return wrap(_array(x).local)


def placement(x: Tensor) -> tuple[Spec, ...]:
    """The axes of the mesh that divide each dimension of a tensor.

    Args:
        x: A tensor on a mesh.

    Returns:
        For each dimension a name, a tuple of several, or None.

    Raises:
        UserError: x is on no mesh (MLC0969).

    Example:
        >>> mesh = mlc.distributed.mesh({"data": 1})
        >>> mlc.distributed.placement(mlc.distributed.shard(mlc.ones(2, 3), None, "data", mesh=mesh))
        (None, 'data')
    """
    return tuple(None if not axes else axes[0] if len(axes) == 1 else axes for axes in _array(x).sharding.dims)


def _tensor(x: Any) -> Tensor:
    """The tensor of what has elements: a tensor, an array, or numbers in lists."""
    return x if isinstance(x, Tensor) else OPERATIONS["tensor"](x)


def _dims(spec: Sequence[Spec], rank: int) -> tuple[Axes, ...]:
    if any(isinstance(s, DeviceMesh) for s in spec):
        raise UserTypeError("the mesh is a keyword argument", code="MLC0962", loc=user_loc(), hint="write mesh=mesh")
    dims = tuple(() if s is None else (s,) if isinstance(s, str) else s for s in spec)
    if wrong := [s for s in dims if not isinstance(s, tuple | list) or not all(type(a) is str for a in s)]:
        raise UserTypeError(f"{wrong[0]!r} names no axis of a mesh", code="MLC0962", loc=user_loc(),
                            hint='for each dimension give a name such as "data", a tuple of names, or None')
    if len(spec) > rank:
        raise UserError(f"{len(spec)} dimensions are specified, and the tensor has {rank}", code="MLC0962",
                        loc=user_loc())
    return (*map(tuple, dims), *((),) * (rank - len(spec)))


def _check(sharding: Sharding, shape: Sequence[int], topology: Topology) -> None:
    problem = sharding.problem(shape, topology)
    if problem is not None:
        raise UserError(f"a tensor of shape {list(shape)} cannot be divided as {sharding}: {problem}", code="MLC0962",
                        loc=user_loc(), hint="divide another dimension, or make its size a multiple")


def _ranks_of(mesh: Any) -> meshes.RankMesh:
    if not isinstance(mesh, DeviceMesh):
        raise UserTypeError(f"{mesh!r} is no mesh", code="MLC0969", loc=user_loc(),
                            hint='pass mesh=mlc.distributed.mesh({"data": 2})')
    return mesh._ranks


def _mesh_of(x: Any, mesh: DeviceMesh | None) -> meshes.RankMesh:
    if mesh is None and isinstance(x, Tensor) and isinstance(x.backing_array, MeshArray):
        return x.backing_array.mesh
    if mesh is None:
        raise UserError("no mesh is given", code="MLC0969", loc=user_loc(),
                        hint='pass mesh=mlc.distributed.mesh({"data": 2})')
    return _ranks_of(mesh)


def _array(x: Any) -> MeshArray:
    array = x.backing_array if isinstance(x, Tensor) else None
    if not isinstance(array, MeshArray):
        where = f"the tensor is on {x.device}, and" if isinstance(x, Tensor) else f"a {type(x).__name__} is"
        raise UserError(f"{where} on no mesh", code="MLC0969", loc=user_loc(),
                        hint="divide it: mlc.distributed.shard(x, ..., mesh=mesh)")
    return array
