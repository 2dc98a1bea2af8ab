"""Toolchain for meshes: from a recorded module to functions that all ranks call together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from mlc.backends.mesh.array import MeshMemory
from mlc.backends.mesh.executable import Executable, MeshImage
from mlc.backends.mesh.meshes import RankMesh, numbered
from mlc.backends.target import Target
from mlc.dialects.builtin import Module
from mlc.ir.diag import UserError
from mlc.ir.instrumentation import CHECKS, NONE, Instrumentation
from mlc.passes import pipeline


class Toolchain:
    """Toolchain of one mesh."""

    kind = "mesh"

    def __init__(self, mesh: RankMesh) -> None:
        self.mesh = mesh

    def key(self) -> Sequence[str]:
        return str(pipeline.DISTRIBUTED), str(self.mesh.topology), str(self.mesh.overlap), str(self.mesh.on_gpus)

    def load_context(self) -> RankMesh:
        return self.mesh

    def lower(self, module: Module) -> Module:
        """The module itself: how it is lowered depends on how its arguments are divided."""
        return module

    def compile(self, module: Module, cache: bool) -> MeshImage:
        return MeshImage.of(module, Target.default("cpu"))

    def load(self, image: MeshImage) -> Executable:
        return Executable(image, self.mesh)

    def lookup(self, key: str) -> None:
        """Nothing: the segments of the programs are cached as any code is."""

    def installed(self, text: str) -> None:
        """Nothing, as of `lookup`."""

    def store(self, key: str, made: MeshImage) -> None:
        """Nothing, as of `lookup`."""


def toolchain(device: str, target: Target | None = None, *, graph: bool = False, precision: str | None = None,
              added: Instrumentation = NONE, threads: int | None = None, here: bool = True) -> Toolchain:
    """The toolchain of `mesh:N`. Raises UserError if checked code is requested, or another target than this machine."""
    if not here:
        raise UserError("a saved model has no code for a mesh", code="MLC0482", hint="save what is on one device")
    if added is CHECKS or target is not None:
        raise UserError("code for a mesh is neither checked nor made for another machine", code="MLC0482",
                        hint="check the same function on one device")
    return Toolchain(numbered(int(device.partition(":")[2] or 0)))


def device_memory(number: int) -> MeshMemory:
    """The memory of `mesh:N`."""
    return MeshMemory(numbered(number))


def import_dlpack(x: Any) -> NoReturn:
    """UserError: no array of another library is on a mesh."""
    raise UserError("no array of another library is on a mesh", code="MLC0884",
                    hint="divide it among the ranks: mlc.distributed.shard(x, ..., mesh=mesh)")


def entry(images: Sequence[Any], memory: MeshMemory, name: str) -> NoReturn:
    """UserError: programs of a mesh are not saved."""
    raise UserError("a saved model has no code for a mesh", code="MLC0482", hint="compile the function on the mesh")
