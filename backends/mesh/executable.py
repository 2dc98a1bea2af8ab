"""Callable functions on a mesh: each way in which arguments are divided has a program of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from mlc.backends.argument_checks import ArgumentChecks
from mlc.backends.mesh.array import MeshArray, placement_of
from mlc.backends.mesh.meshes import RankMesh
from mlc.backends.mesh.program import Placement, RankProgram, partitioned
from mlc.backends.target import Target
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func
from mlc.ir.abi import Interface
from mlc.ir.compilation_lock import compiling
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.sizes import symbols
from mlc.ir.types import to_numpy

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class MeshImage:
    """A recorded module, which is partitioned when the shardings of the arguments are known."""

    module: Module
    interfaces: dict[str, Interface]
    target: Target

    @staticmethod
    def of(module: Module, target: Target) -> MeshImage:
        """The image of a module of the tensor level."""
        public = [f for f in module.inside(Func) if f.is_public]
        return MeshImage(module, {f.sym_name: _interface(f) for f in public}, target)

    def head(self) -> NoReturn:
        """UserError: programs of a mesh are not saved."""
        raise UserError("a saved model has no code for a mesh", code="MLC0482", hint="save what is on one device")

    def at(self, interface: Callable[[Interface], Interface]) -> MeshImage:
        """The same under mapped interfaces: other names and locations."""
        return replace(self, interfaces={name: interface(i) for name, i in self.interfaces.items()})


def _interface(function: Func) -> Interface:
    type = function.function_type
    shapes = [t.shape for t in (*type.inputs, *type.results)]  # type: ignore[attr-defined]
    return Interface(function.sym_name, type, tuple(sorted(set().union(*(symbols(*shape) for shape in shapes)))),
                     (-1,) * len(type.results), arg_names=function.attrs.get("arg_names", ()))


class Executable:
    """Functions on a mesh."""

    def __init__(self, linked: MeshImage, mesh: RankMesh) -> None:
        self.linked, self.mesh, self.target = linked, mesh, linked.target
        self.entries = {name: Entry(self, interface) for name, interface in linked.interfaces.items()}

    def at(self, interface: Callable[[Interface], Interface]) -> Executable:
        """The same functions under mapped interfaces."""
        return Executable(self.linked.at(interface), self.mesh)

    def entry(self, name: str) -> Entry:
        """The function with a name."""
        return self.entries[name]

    @property
    def calls(self) -> int:
        """The number of calls of functions."""
        return sum(entry.calls for entry in self.entries.values())


class Entry(ArgumentChecks):
    """One function on a mesh; all ranks call it together.

    programs  by the shardings of the arguments and the sizes
    """

    def __init__(self, executable: Executable, interface: Interface) -> None:
        super().__init__(interface)
        self.executable, self.mesh = executable, executable.mesh
        self.programs: dict[Any, RankProgram] = {}
        self.calls = 0
        self._lock = threading.Lock()

    def call(self, arrays: Sequence[Any], sizes: Mapping[str, int] | None = None) -> list[MeshArray]:
        """Call the function on arrays of the mesh, and arrays that are the same on every rank."""
        self._check_count(arrays)
        for i, array in enumerate(arrays):
            self._check_argument(i, array)
        env = self._bind(arrays, sizes or {})
        program = self.program([placement_of(x) for x in arrays], env)
        self.calls += 1
        shards = program.run([x.local if isinstance(x, MeshArray) else x for x in arrays],
                             [x for x in arrays if not isinstance(x, MeshArray)])
        types: Any = self.interface.type.results
        held = [np.empty(0, to_numpy(type.dtype)) if x is None else x for x, type in zip(shards, types)]
        shapes = self._result_shapes(env) if env else self._static_shapes
        return [MeshArray(self.mesh, placed.sharding, shape, x, placed.used)
                for placed, shape, x in zip(program.placed, shapes, held)]

    @cached_property
    def _static_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the results, if there are no symbols."""
        return self._result_shapes({})

    def program(self, args: Sequence[Placement], env: Mapping[str, int]) -> RankProgram:
        """The program for arguments that are divided in this way."""
        key = tuple(args), tuple(sorted(env.items()))
        with self._lock:
            if key not in self.programs:
                name = self.interface.name
                with self.mesh.compiling_once(), compiling:
                    module = partitioned(self.executable.linked.module, name, self.mesh.topology, args, env,
                                         self.mesh.overlap, self.mesh.on_gpus)
                    self.programs[key] = RankProgram(module, name, self.mesh, args)
            return self.programs[key]

    def _check_argument(self, i: int, array: Any) -> None:
        if not isinstance(array, MeshArray | np.ndarray):
            raise UserTypeError(f"{self.interface.argument(i)} is a {array.__class__.__name__}, expected an array",
                                code="MLC0324")
        self._check_type(i, array)
        if isinstance(array, MeshArray) and array.mesh is not self.mesh:
            raise UserError(f"{self.interface.argument(i)} is on {array.device}, and this runs on {self.mesh.device}",
                            code="MLC0339", hint="divide it among the ranks of that mesh")
