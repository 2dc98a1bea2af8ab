"""The program of one rank as text, and what it costs, known before anything runs.

Example:
    >>> mesh = mlc.distributed.mesh({"data": 4}, abstract=True)
    >>> w = mlc.distributed.shard(mlc.ones(8, 8), mesh=mesh)
    >>> x = mlc.distributed.shard(mlc.ones(16, 8), "data", mesh=mesh)
    >>> print(mlc.distributed.report(lambda w, x: (x @ w).sum(), w, x))
    4 ranks: data 4
    each rank: arguments 384 bytes, results 4 bytes, in between at most 133 bytes
    collectives: 1, each rank sends 12 bytes
      all_reduce over data: 1, 12 bytes sent
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from mlc.api import Compiled, compiled_function
from mlc.backends.mesh.array import MeshArray, placement_of
from mlc.backends.mesh.carry_out import scratch_bytes
from mlc.backends.mesh.meshes import RankMesh
from mlc.backends.mesh.program import Placement, RankProgram, function_of, partitioned
from mlc.call import record
from mlc.dialects import func, shard
from mlc.dialects.builtin import Module
from mlc.distributed.time_model import Machine, Timing
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import as_backing_array
from mlc.ir.diag import Loc, UserError
from mlc.ir.printer import to_text
from mlc.passes.analysis.segment_cost import SegmentCost, bytes_of


def lower(f: Callable[..., Any], *args: Any, **keywords: Any) -> str:
    """The program of one rank of a function whose arguments are on a mesh, as text.

    Args:
        f: Function, or result of `mlc.compile`.
        args: Its arguments: tensors on a mesh, which may be abstract.
        keywords: Its keyword arguments.

    Returns:
        The module, in which `@main` has the collectives, between calls of segments.

    Raises:
        UserError: No argument, and nothing that f reaches, is on a mesh (MLC0969).

    Example:
        >>> mesh = mlc.distributed.mesh({"data": 2}, abstract=True)
        >>> x = mlc.distributed.shard(mlc.ones(4), "data", mesh=mesh)
        >>> "shard.all_reduce" in mlc.distributed.lower(lambda x: x.sum(), x)
        True
    """
    return to_text(_partitioned(f, args, keywords)[0])


@dataclass(frozen=True)
class Communication:
    """One collective of the program of a rank.

    Args:
        kind: Name of the operation, such as "all_reduce".
        axes: Axes of the mesh whose ranks take part.
        bytes: Bytes that a rank sends, the most of all where parts are uneven.
        place: Line of the program that it comes from.
        ranks: Number of ranks that take part together.

    Example:
        >>> mlc.distributed.Communication("all_reduce", ("data",), 96, None, 4).bytes
        96
    """

    kind: str
    axes: tuple[str, ...]
    bytes: int
    place: Loc | None
    ranks: int


@dataclass(frozen=True)
class Report:
    """The costs of the program of one rank.

    Args:
        shape: Number of ranks along each axis of the mesh.
        arguments: Bytes of the shards of the arguments, and of what the function reaches.
        results: Bytes of the shards of the results that are no arguments.
        between: Bytes that are there at most besides these: other values, and scratch memory.
        collectives: The collectives, in order.
        segments: The arithmetic between them, and the bytes that it moves.

    Example:
        >>> mlc.distributed.Report({"data": 2}, 8, 4, 0, (), ()).sent
        0
    """

    shape: dict[str, int]
    arguments: int
    results: int
    between: int
    collectives: tuple[Communication, ...]
    segments: tuple[SegmentCost, ...]

    @property
    def sent(self) -> int:
        """Bytes that a rank sends, the most of all."""
        return sum(c.bytes for c in self.collectives)

    def time(self, machine: Machine) -> Timing:
        """The time of a call on a machine, predicted.

        Args:
            machine: Its speed.

        Returns:
            Seconds of segments and collectives.

        Example:
            >>> machine = mlc.distributed.Machine(1e12, 1e11, 1e-6, 1e10, 1e-5)
            >>> mlc.distributed.Report({"data": 2}, 8, 4, 0, (), ()).time(machine).total
            0.0
        """
        sent = sum(machine.collective(c.kind, c.ranks, c.bytes) for c in self.collectives)
        agreed = machine.agreement(prod(self.shape.values())) if self.collectives else 0.0
        return Timing(sum(machine.segment(s.operations, s.moved) for s in self.segments), sent + agreed)

    def __str__(self) -> str:
        groups: dict[tuple[str, tuple[str, ...]], list[int]] = {}
        for c in self.collectives:
            groups.setdefault((c.kind, c.axes), []).append(c.bytes)
        lines = [f"{prod(self.shape.values())} ranks: {', '.join(f'{axis} {n}' for axis, n in self.shape.items())}",
                 f"each rank: arguments {_bytes(self.arguments)}, results {_bytes(self.results)}, in between at most "
                 f"{_bytes(self.between)}",
                 f"collectives: {len(self.collectives)}, each rank sends {_bytes(self.sent)}"]
        return "\n".join([*lines, *(f"  {kind} over {', '.join(axes)}: {len(sent)}, {_bytes(sum(sent))} sent"
                                    for (kind, axes), sent in groups.items())])


def report(f: Callable[..., Any], *args: Any, **keywords: Any) -> Report:
    """The costs of a function whose arguments are on a mesh: bytes per collective, and memory per rank.

    Nothing runs; the segments are compiled for this processor, whose memory plan says what is in between.

    Args:
        f: Function, or result of `mlc.compile`.
        args: Its arguments: tensors on a mesh, which may be abstract.
        keywords: Its keyword arguments.

    Returns:
        The report, which prints as a table.

    Raises:
        UserError: No argument, and nothing that f reaches, is on a mesh (MLC0969).

    Example:
        >>> mesh = mlc.distributed.mesh({"data": 2}, abstract=True)
        >>> x = mlc.distributed.shard(mlc.ones(4, 3), "data", mesh=mesh)
        >>> mlc.distributed.report(lambda x: x.sum(0), x).sent
        12
    """
    module, mesh, placed = _partitioned(f, args, keywords)
    main = function_of(module, "main")
    program = RankProgram(module, "main", mesh, placed)
    collectives = tuple(
        Communication(op.name.removeprefix("shard."), op.axes, op.bytes_sent(), op.loc, op.group_size())
        for op in main.block if isinstance(op, shard.Collective))
    topology = mesh.topology
    made = dict.fromkeys(v for v in main.block.terminator.operands if v not in set(main.args))
    return Report(dict(zip(topology.axes, topology.sizes)), sum(map(bytes_of, main.args)), sum(map(bytes_of, made)),
                  _between(program), collectives, tuple(
                      SegmentCost.of(function_of(module, op.callee)) for op in main.block if isinstance(op, func.Call)))


def _partitioned(f: Callable[..., Any], args: Sequence[Any], keywords: dict[str, Any]
                 ) -> tuple[Module, RankMesh, list[Placement]]:
    """The program of one rank of a function, its mesh, and how its inputs are divided."""
    call = (compiled_function(f) or Compiled(f)).signature.bind(tuple(args), keywords)
    recorded = record(call)
    arrays: list[Any] = [*call.arrays, *map(as_backing_array, recorded.captured_operands(call.given))]
    mesh = next((x.mesh for x in arrays if isinstance(x, MeshArray)), None)
    if mesh is None:
        raise UserError("no argument, and nothing that the function reaches, is on a mesh", code="MLC0969",
                        loc=user_loc(), hint="divide one: mlc.distributed.shard(x, ..., mesh=mesh)")
    recorded.mark_results()
    placed = [placement_of(x) for x in arrays]
    return partitioned(recorded.trace.module, "main", mesh.topology, placed), mesh, placed


def _between(program: RankProgram) -> int:
    """The most bytes that are there at once, less those of the arguments and the results."""
    sizes: dict[int, int] = {}
    most = now = 0
    for step in program.steps:
        sizes |= {slot: bytes_of(v) for slot, v in zip(step.gives, step.op.results)}
        now += sum(sizes[slot] for slot in step.gives)
        most = max(most, now + (scratch_bytes(step.op) if isinstance(step.op, shard.Collective) else 0))
        now -= sum(sizes.pop(slot, 0) for slot in step.last)
    scratch = max((int(step.entry.interface.arena) for step in program.steps if step.entry is not None), default=0)
    return most - now + scratch


def _bytes(n: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if n < 10_000 or unit == "GB":
            return f"{n:.0f} {unit}"
        n /= 1000
    raise AssertionError
