"""The program of one rank: compiled segments, and the collectives between them."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlc.backends.cached_code import loaded
from mlc.backends.executable import Arena
from mlc.backends.mesh.carry_out import carry_out
from mlc.backends.mesh.meshes import RankMesh
from mlc.backends.toolchain import Toolchain, toolchain_for
from mlc.dialects import func, shard
from mlc.dialects.builtin import Module
from mlc.dialects.builtin import module as empty_module
from mlc.dialects.func import Func
from mlc.dialects.shard.mesh import Mesh, Sharding
from mlc.dialects.tensor.control import BindSize
from mlc.ir.compilation_lock import compiling
from mlc.ir.core import Op, Symbol, Value, before
from mlc.ir.diag import UserError
from mlc.ir.passes import Pipeline, parse_pipeline
from mlc.ir.printer import to_text
from mlc.ir.sizes import Dim
from mlc.ir.types import ComplexType, TensorType
from mlc.passes import pipeline

Array = np.ndarray[Any, Any]
_scratch: deque[Arena] = deque()
"""Scratch memory of segments, of which a rank runs one at a time."""


@dataclass(frozen=True)
class Placement:
    """How an argument is divided, and how where it is used, if otherwise."""

    sharding: Sharding
    used: Sharding | None = None


def partitioned(module: Op, name: str, topology: Mesh, args: Sequence[Placement],
                sizes: Mapping[str, Dim] | None = None) -> Module:
    """A copy of a recorded module in which function `name` is the program of one rank, of segments and collectives.

    args   how each argument is divided
    sizes  numbers for the size symbols
    """
    copy = module.clone(env=dict(sizes) if sizes else None)
    assert isinstance(copy, Module)
    function = function_of(copy, name)
    function.attrs.pop("donate", None)
    _check(copy)
    function.attrs["mesh"] = topology
    function.attrs["arg_shardings"] = tuple(a.sharding for a in args)
    like, gradients = dict(function.attrs.get("like_inputs", ())), dict(function.attrs.pop("gradients", ()))
    function.attrs["result_shardings"] = tuple(args[of].sharding if (of := (like | gradients).get(i)) is not None
                                               else None for i in range(len(function.function_type.results)))
    function.attrs["open_results"] = tuple(gradients)      # a gradient is used where the state of an optimiser lies
    _gather_where_used(function, args)
    Pipeline([step for _, text, _ in pipeline.DISTRIBUTED for step in parse_pipeline(text)]).run(copy)
    return copy


def _gather_where_used(function: Func, args: Sequence[Placement]) -> None:
    """Have arguments be divided otherwise where they are used."""
    first = next(iter(function.block))
    for value, placed in zip(function.args, args):
        if placed.used is not None:
            users = list(value.uses)
            with before(first, first.loc):
                gathered = shard.Shard(value, placed.used.dims).result
            for user, i in users:
                if not user.terminator:
                    user.set_operand(i, gathered)


def _check(module: Op) -> None:
    """Refuse what is not divided among ranks; UserError MLC0967."""
    for op in module.walk():
        if isinstance(op, BindSize):
            raise UserError("a size that depends on data is not the same on every rank, and not divided",
                            code="MLC0967", loc=op.loc, hint="compute it outside of the mesh, on x.cpu()")
        if any(isinstance(v.type, TensorType) and isinstance(v.type.dtype, ComplexType)
               for v in (*op.operands, *op.results)):
            raise UserError("complex tensors are not divided among ranks", code="MLC0967", loc=op.loc,
                            hint="compute with the real and the imaginary part, or outside of the mesh, on x.cpu()")


def function_of(module: Op, name: str) -> Func:
    """The function of a module with a name."""
    return next(op for op in module.inside(Func) if op.sym_name == name)


@dataclass
class _Step:
    """A call of a segment (`entry`), or an operation between segments, from and to numbered slots."""

    op: Op
    entry: Any
    takes: list[int]
    gives: list[int]
    last: list[int]                          # slots that no later step takes


class RankProgram:
    """A partitioned function, loaded: its segments are compiled for this processor.

    module     the partitioned module
    placed     how each result is divided
    """

    def __init__(self, module: Module, name: str, mesh: RankMesh, args: Sequence[Placement]) -> None:
        self.module, self.mesh = module, mesh
        function = function_of(module, name)
        like = dict(function.attrs.get("like_inputs", ()))
        self.placed = [Placement(sharding, args[like[i]].used if i in like else None)
                       for i, sharding in enumerate(function.attrs["result_shardings"])]
        slots: dict[Value, int] = {a: i for i, a in enumerate(function.args)}
        host = toolchain_for("cpu")
        self.steps: list[_Step] = []
        for op in function.block:
            slots |= {r: len(slots) + i for i, r in enumerate(op.results)}
            if not op.terminator:
                entry = _compiled(module, op.callee, host) if isinstance(op, func.Call) else None
                self.steps.append(_Step(op, entry, [slots[v] for v in op.operands], [slots[r] for r in op.results], []))
        self.name = f"{name} of {function.loc}" if function.loc.file else name
        self.digest = hashlib.sha256(to_text(module).encode()).digest()
        self.communicates = any(isinstance(step.op, shard.Collective) for step in self.steps)
        self.results = [slots[v] for v in function.block.terminator.operands]
        self.slots = len(slots)
        kept = set(self.results)
        for step in reversed(self.steps):
            step.last = [slot for slot in {*step.takes, *step.gives} if slot not in kept]
            kept |= {*step.takes, *step.gives}

    def run(self, args: Sequence[Array], alike: Sequence[Array]) -> list[Array]:
        """The shards of the results, given those of the arguments; `alike` are arguments that every rank brings."""
        _ = self.mesh.transport                            # refuses an abstract mesh
        if self.communicates or alike:
            self.mesh.agree(self.name, self.digest, *(np.ascontiguousarray(x).tobytes() for x in alike))
        values: list[Any] = [*args, *[None] * (self.slots - len(args))]
        for step in self.steps:
            self._take(step, values)
        return [values[slot] for slot in self.results]

    def _take(self, step: _Step, values: list[Any]) -> None:
        """Run a step; what no later one takes is freed."""
        taken = [values[slot] for slot in step.takes]
        if step.entry is not None:
            given = step.entry.call(taken)
        elif isinstance(step.op, shard.ProcessIndex):
            given = [np.array(self.mesh.topology.position(self.mesh.rank, step.op.axes))]
        else:
            assert isinstance(step.op, shard.Collective)
            given = [carry_out(step.op, taken[0], self.mesh)]
        for slot, x in zip(step.gives, given):
            values[slot] = x
        for slot in step.last:
            values[slot] = None


def _compiled(module: Module, name: str, host: Toolchain) -> Any:
    """The entry of a segment, compiled by itself."""
    with compiling:
        alone = empty_module()
        segment = function_of(module, name).clone()
        segment.attrs["sym_name"] = Symbol("main")
        alone.body.block.insert(segment)

        def image(module: Module) -> Any:
            return host.compile(host.lower(module), True)

        entry = loaded(alone, host, image).entry("main")
        entry.share_scratch(_scratch)
        return entry
