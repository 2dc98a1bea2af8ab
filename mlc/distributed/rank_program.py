"""The program of one rank as text, and what it costs, known before anything runs.

Example:
    >>> mesh = mlc.distributed.mesh({"data": 4}, abstract=True)
    >>> w = mlc.distributed.shard(mlc.ones(8, 8), mesh=mesh)
    >>> x = mlc.distributed.shard(mlc.ones(16, 8), "data", mesh=mesh)
    >>> print(mlc.distributed.report(lambda w, x: (x @ w).sum(), w, x))
    4 ranks: data 4
    each rank: arguments 384 bytes, results 4 bytes, in between at most 144 bytes
    collectives: 1, each rank sends 12 bytes
      all_reduce over data: 1, 12 bytes sent
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from mlc.dialects.shard.ranks import program_names
from mlc.distributed.simulation import Communication, Waiting, Work, simulated
from mlc.distributed.time_model import Machine, Timing
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import as_backing_array
from mlc.ir.diag import UserError
from mlc.ir.printer import to_text
from mlc.passes.analysis.segment_cost import SegmentCost, bytes_of

Timer = Callable[[RankProgram], Mapping[str, float]]
"""A function that measures the segments of a program: their seconds, by name."""


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
class Report:
    """The costs of the program of one rank.

    Args:
        shape: Number of ranks along each axis of the mesh.
        arguments: Bytes of the shards of the arguments, and of what the function reaches, also if only other ranks use
            them.
        results: Bytes of the shards of the results that are no arguments.
        between: Bytes that are there at most besides these: other values, and scratch memory.
        collectives: The collectives, in order.
        segments: The arithmetic between them, and the bytes that it moves.
        positions: The costs at each position of a pipeline; the others are those of the rank that holds most.
        work: Segments, collectives and messages in their order; of a pipeline, each position has its own.
        arrays: Number of arrays that the function takes and gives, also those of other ranks.
        ranks: Numbers of the ranks that these are the costs of.

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
    positions: tuple[Report, ...] = ()
    work: tuple[Work, ...] = ()
    arrays: int = 0
    ranks: tuple[int, ...] = ()

    @property
    def held(self) -> int:
        """Bytes that a rank holds at most."""
        return self.arguments + self.results + self.between

    @property
    def sent(self) -> int:
        """Bytes that a rank sends, the most of all."""
        return max((p.sent for p in self.positions), default=sum(c.bytes for c in self.collectives))

    def time(self, machine: Machine) -> Timing:
        """The time of a call on a machine, predicted.

        Args:
            machine: Its speed.

        Returns:
            Seconds of segments and collectives, the mean of all ranks, and those in which they wait.

        Example:
            >>> machine = mlc.distributed.Machine(1e12, 1e11, 1e-6, 1e10, 1e-5)
            >>> mlc.distributed.Report({"data": 2}, 8, 4, 0, (), ()).time(machine).total
            0.0
        """
        machine = machine.placed(self.shape)
        agreed = machine.agreement(prod(self.shape.values())) if self.collectives else 0.0
        parts = self.positions or (self,)
        return simulated([p.work for p in parts], [agreed + machine.around(p.arrays) for p in parts], machine,
                         [p.ranks for p in parts])

    def __str__(self) -> str:
        if self.positions:
            return "\n".join([f"{prod(self.shape.values())} ranks: "
                              + ", ".join(f"{axis} {n}" for axis, n in self.shape.items()),
                              *(f"at stage {i}, {line}" if line.startswith("each") else f"  {line}"
                                for i, p in enumerate(self.positions) for line in str(p).splitlines()[1:])])
        groups: dict[tuple[str, tuple[str, ...]], list[int]] = {}
        for c in self.collectives:
            groups.setdefault((c.kind, c.axes), []).append(c.bytes)
        lines = [f"{prod(self.shape.values())} ranks: {', '.join(f'{axis} {n}' for axis, n in self.shape.items())}",
                 f"each rank: arguments {_bytes(self.arguments)}, results {_bytes(self.results)}, in between at most "
                 f"{_bytes(self.between)}",
                 f"collectives: {len(self.collectives)}, each rank sends {_bytes(self.sent)}"]
        hidden = [c.bytes for c in self.collectives if c.request >= 0]
        if hidden:
            lines.append(f"  on their way during segments: {len(hidden)}, {_bytes(sum(hidden))} sent")
        return "\n".join([*lines, *(f"  {kind} over {', '.join(axes)}: {len(sent)}, {_bytes(sum(sent))} sent"
                                    for (kind, axes), sent in groups.items())])


def report(f: Callable[..., Any], *args: Any, **keywords: Any) -> Report:
    """The costs of a function whose arguments are on a mesh: bytes per collective, and memory per rank.

    Nothing runs; the segments are compiled, and their memory plan says what is in between: for the GPU of this rank if
    its shards are there, for this processor otherwise, and on abstract meshes.

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
    return prepared(f, args, keywords)(lambda program: {})


def prepared(f: Callable[..., Any], args: Sequence[Any], keywords: dict[str, Any]) -> Callable[[Timer], Report]:
    """A function that reports the costs of `f`, compiled once, with the times of segments by the timer it is given."""
    module, mesh, arrays = _partitioned(f, args, keywords)
    placed, names = [placement_of(x) for x in arrays], program_names(module, "main", mesh.topology)
    alike = [tuple(rank for rank, other in enumerate(names) if other == name) for name in dict.fromkeys(names)]
    programs = [RankProgram(module, "main", mesh, placed, ranks[0]) for ranks in alike]
    messages = [[step.op for step in p.steps if isinstance(step.op, shard.Message)] for p in programs]

    def reported(timer: Timer) -> Report:
        found = [replace(_report(program, _held(arrays, placed, mesh, ranks[0]), messages, timer(program)), ranks=ranks)
                 for program, ranks in zip(programs, alike)]
        if len(found) == 1:
            return found[0]
        return replace(max(found, key=lambda r: r.held), positions=tuple(found), work=(), ranks=())

    return reported


def _held(arrays: Sequence[Any], placed: Sequence[Placement], mesh: RankMesh, rank: int) -> int:
    """The bytes of arguments on a rank; at a stage of a pipeline, also of those that only other stages use."""
    return sum(prod(map(int, p.sharding.local(x.shape, mesh.topology))) * x.dtype.itemsize
               for x, p in zip(arrays, placed) if p.sharding.is_on(mesh.topology, rank))


def _report(program: RankProgram, arguments: int, messages: Sequence[Sequence[shard.Message]],
            seconds: Mapping[str, float]) -> Report:
    """The costs of the program of one rank, which holds so many bytes of arguments.

    messages  those of the ranks at each position of a pipeline, in their order
    seconds   of segments, by name, if they were measured
    """
    main, topology = program.function, program.mesh.topology
    made = dict.fromkeys(v for v in main.block.terminator.operands if v not in set(main.args))
    work: list[Work] = []
    for step in program.steps:
        op = step.op
        if isinstance(op, func.Call):
            cost = SegmentCost.of(function_of(program.module, op.callee))
            work.append(replace(cost, seconds=seconds.get(op.callee)))
        elif isinstance(op, shard.Collective):
            kind = op.name.removeprefix("shard.")
            work.append(Communication(kind.removesuffix("_start"), op.axes, op.bytes_sent(), op.loc, op.group_size(),
                                      messages=op.messages_sent(),
                                      request=step.gives[0] if isinstance(op, shard.Start) else -1))
        elif isinstance(op, shard.Wait):
            work.append(Waiting(step.takes[0]))
        elif isinstance(op, shard.Send):
            work.append(Communication("send", op.axes, op.bytes_sent(), op.loc, 2, op.tag))
        elif isinstance(op, shard.Recv):
            work.append(Communication("recv", op.axes, 0, op.loc, 2, op.tag))
    return Report(dict(zip(topology.axes, topology.sizes)), arguments, sum(map(bytes_of, made)),
                  _between(program, messages),
                  tuple(w for w in work if isinstance(w, Communication) and w.kind != "recv"),
                  tuple(w for w in work if isinstance(w, SegmentCost)), work=tuple(work),
                  arrays=program.arrays)


def _partitioned(f: Callable[..., Any], args: Sequence[Any], keywords: dict[str, Any]
                 ) -> tuple[Module, RankMesh, list[Any]]:
    """The program of one rank of a function, its mesh, and the arrays that it takes."""
    call = (compiled_function(f) or Compiled(f)).signature.bind(tuple(args), keywords)
    recorded = record(call)
    arrays: list[Any] = [*call.arrays, *map(as_backing_array, recorded.captured_operands(call.given))]
    mesh = next((x.mesh for x in arrays if isinstance(x, MeshArray)), None)
    if mesh is None:
        raise UserError("no argument, and nothing that the function reaches, is on a mesh", code="MLC0969",
                        loc=user_loc(), hint="divide one: mlc.distributed.shard(x, ..., mesh=mesh)")
    recorded.mark_results()
    placed = [placement_of(x) for x in arrays]
    return partitioned(recorded.trace.module, "main", mesh.topology, placed, overlap=mesh.overlap,
                       on_gpus=mesh.on_gpus), mesh, arrays


def _between(program: RankProgram, messages: Sequence[Sequence[shard.Message]]) -> int:
    """The most bytes that are there at once, less those of the arguments and the results.

    What is sent may stay until there is a message that its receiver sends later.
    """
    sizes: dict[int, int] = {}
    most = now = scratch = 0
    on_the_way: dict[int, int] = {}
    for step in program.steps:
        op = step.op
        if isinstance(op, shard.Wait):                     # what its request holds becomes the result
            now -= sizes.pop(step.takes[0])
        sizes |= {slot: bytes_of(v) for slot, v in zip(step.gives, op.results)}
        if isinstance(op, shard.After):                    # the same array
            sizes[step.gives[0]] = sizes.pop(step.takes[0], 0) if step.takes[0] in step.last else 0
            now -= sizes[step.gives[0]]
        if isinstance(op, shard.Start):
            sizes[step.gives[0]] = op.result_bytes() + scratch_bytes(op)
        now += sum(sizes[slot] for slot in step.gives)
        scratch += scratch_bytes(op) if isinstance(op, shard.Collective) and not isinstance(op, shard.Start) else 0
        most = max(most, now + scratch)
        scratch = scratch if step.with_next else 0
        freed = sum(sizes.pop(slot, 0) for slot in step.last)
        if isinstance(op, shard.Start):                    # it holds the operand
            sizes[step.gives[0]] += freed
            freed = 0
        if isinstance(op, shard.Send):
            on_the_way[op.tag] = freed
            freed = 0
        elif isinstance(op, shard.Recv):
            freed += sum(on_the_way.pop(tag, 0) for tag in _received_before(op, messages[op.peer]))
        now -= freed
    now -= sum(on_the_way.values())
    arena = max((step.entry.scratch_bytes for step in program.steps if step.entry is not None), default=0)
    return most - now + arena


def _received_before(op: shard.Recv, messages: Sequence[shard.Message]) -> list[int]:
    """The tags of what a rank with these messages has received when it sends what another receives."""
    sent = next(i for i, m in enumerate(messages) if isinstance(m, shard.Send) and m.tag == op.tag)
    return [m.tag for m in messages[:sent] if isinstance(m, shard.Recv)]


def _bytes(n: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if n < 10_000 or unit == "GB":
            return f"{n:.0f} {unit}"
        n /= 1000
    raise AssertionError
