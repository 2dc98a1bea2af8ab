"""Arrays that are divided among the ranks of a mesh."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.backends.mesh.meshes import RankMesh
from mlc.backends.mesh.program import Placement
from mlc.backends.transport import collectives
from mlc.dialects.shard.mesh import STAGE, Sharding
from mlc.ir.diag import UserError, UserTypeError

Array = np.ndarray[Any, Any]


class MeshArray:
    """An array of which each rank has a shard, contiguous in row-major order.

    mesh      the mesh, as this rank sees it
    sharding  the axes of the mesh along each dimension
    shape     the shape of the whole array
    local     the shard of this rank, where its mesh has shards; without elements on a rank that has none
    used      how it is divided where it is used, if otherwise: it is gathered there
    """

    __slots__ = ("dtype", "local", "mesh", "shape", "sharding", "used")

    def __init__(self, mesh: RankMesh, sharding: Sharding, shape: tuple[int, ...], local: Any,
                 used: Sharding | None = None) -> None:
        expected = sharding.local(shape, mesh.topology)
        if not sharding.is_on(mesh.topology, mesh.rank):
            local, expected = _absent(shape, local.dtype), (0,) * len(shape)
        assert local.shape == expected, f"the shard of {shape} is {expected}, not {local.shape}"
        self.mesh, self.sharding, self.shape, self.local = mesh, sharding, shape, mesh.placed(local)
        self.dtype, self.used = local.dtype, used

    @staticmethod
    def of_whole(mesh: RankMesh, sharding: Sharding, array: Array, used: Sharding | None = None) -> MeshArray:
        """The array of which every rank has all elements; no message is sent."""
        shard = array[sharding.piece(array.shape, mesh.topology, mesh.rank)]
        return MeshArray(mesh, sharding, array.shape, np.array(shard, order="C"), used)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of the whole array."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """The bytes of this rank's shard."""
        return int(self.local.nbytes)

    def on_host(self) -> Array:
        """The shard of this rank in host memory, which nobody writes to."""
        return self.local if isinstance(self.local, np.ndarray) else self.local.numpy()

    @property
    def device(self) -> str:
        """The name of the device, such as mesh:0."""
        return self.mesh.device

    def numpy(self) -> Array:
        """The whole array, gathered from all ranks, which have to call this together."""
        if self.sharding.used or self.sharding.stage >= 0:
            self.mesh.agree(f"the gathering of a {self.dtype.name}{list(self.shape)} that lies {self.sharding}")
        out = self.on_host()
        for dim, axes in enumerate(self.sharding.dims):
            if axes:
                group = self.mesh.group(axes)
                out = np.concatenate(collectives.all_gather(self.mesh.transport, group, out), dim)
        if self.sharding.stage >= 0:
            out = self._from_stage(out)
        return np.array(out) if out is self.local else out

    def _from_stage(self, out: Array) -> Array:
        """The whole array, from a rank that has it."""
        group = self.mesh.group((STAGE,))
        if not self.is_here:
            out = np.empty(self.shape, self.dtype)
        return collectives.broadcast(self.mesh.transport, group, out, self.sharding.stage)

    @property
    def is_here(self) -> bool:
        """Whether this rank has a shard."""
        return self.sharding.is_on(self.mesh.topology, self.mesh.rank)

    def first(self, shape: tuple[int, ...]) -> MeshArray:
        """The leading elements along each axis, on every rank."""
        return MeshArray.of_whole(self.mesh, Sharding.replicated(len(shape)),
                                  self.numpy()[tuple(map(slice, shape))])

    def copy(self) -> MeshArray:
        """A copy in new memory."""
        return MeshArray(self.mesh, self.sharding, self.shape, self.local.copy(), self.used)

    def placed_like(self, other: Any) -> MeshArray:
        """The array divided as another one of its shape; all ranks call this together if it is divided otherwise."""
        same = self.sharding == other.sharding and self.used == other.used
        return self if same else self.lying(other.sharding, other.used)

    def lying(self, sharding: Sharding, used: Sharding | None = None) -> MeshArray:
        """The array divided otherwise; all ranks call this together, unless it is only divided along further axes."""
        if self.sharding == sharding:
            return MeshArray(self.mesh, sharding, self.shape, self.local, used)
        prefixed = all(new[:len(old)] == old for old, new in zip(self.sharding.dims, sharding.dims))
        if prefixed and self.sharding.stage in (-1, sharding.stage):
            further = Sharding(tuple(new[len(old):] for old, new in zip(self.sharding.dims, sharding.dims)))
            piece = further.piece(self.local.shape, self.mesh.topology, self.mesh.rank)
            local = np.array(self.on_host()[piece], order="C") if self.is_here else self.local
            return MeshArray(self.mesh, sharding, self.shape, local, used)
        return MeshArray.of_whole(self.mesh, sharding, self.numpy(), used)

    def __deepcopy__(self, memo: Any) -> MeshArray:
        return self.copy()

    def __reduce__(self) -> Any:
        raise UserTypeError(f"an array on {self.device} cannot be pickled", code="MLC0346", hint="gather it: x.cpu()")

    def __dlpack_device__(self) -> tuple[int, int]:
        raise UserError(f"an array on {self.device} is in several memories, and DLPack has none", code="MLC0884",
                        hint="gather it (x.cpu()), or take this rank's shard (mlc.distributed.local(x))")

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.__dlpack_device__()


def _absent(shape: tuple[int, ...], dtype: Any) -> Array:
    """The shard of a rank that has none; a number is there nevertheless."""
    return np.zeros((0,) * len(shape), dtype)


def placement_of(array: Array | MeshArray) -> Placement:
    """How an argument is divided; an array in host memory is the same on every rank."""
    if isinstance(array, MeshArray):
        return Placement(array.sharding, array.used)
    return Placement(Sharding.replicated(array.ndim))


class MeshMemory:
    """Makes arrays on a mesh."""

    def __init__(self, mesh: RankMesh) -> None:
        self.mesh = mesh

    def array(self, array: Array) -> MeshArray:
        """An array of which every rank has, and keeps, all elements; RankError (MLC0972) if they differ."""
        self.mesh.agree_on(array, "a copy to the mesh")
        return MeshArray.of_whole(self.mesh, Sharding.replicated(array.ndim), array)
