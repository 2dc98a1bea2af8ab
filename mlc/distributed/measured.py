"""The speed of this machine, and the time of a rank's segments on it, measured.

Ranks on one host send by copying: what a message takes is processor time of its sender and its receiver. All ranks
measure together; where they outnumber the processors, messages take longer by so much, which is taken out again.

What a collective takes is the difference of programs with one and with several of them: of all ranks and of pairs, with
few and with many bytes, with little and with much memory that is read between them.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mlc.api import Compiled
from mlc.backends.cpu.threads import get_num_threads
from mlc.backends.mesh.meshes import RankMesh
from mlc.backends.mesh.program import RankProgram, function_of
from mlc.backends.transport.transport import Transport
from mlc.dialects import func
from mlc.dialects.shard import RequestType
from mlc.distributed import device_mesh
from mlc.distributed.device_mesh import DeviceMesh
from mlc.distributed.rank_program import Report, prepared
from mlc.distributed.time_model import Machine
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import wrap
from mlc.ir.core import Value
from mlc.ir.diag import UserError
from mlc.ir.types import to_numpy
from mlc.nn.parameter import Parameter
from mlc.optim import SGD
from mlc.passes.analysis.segment_cost import SegmentCost

_LONG, _SHORT, _ROUNDS = 10, 50, 5
"""Times that what takes milliseconds is measured, and what takes less, in so many rounds."""
_READ = 1 << 20
"""Bytes that are read between two segments, and evict some of what they use from the processor's own caches, besides
those that segments of other ranks on the same one move meanwhile."""
_CACHE = 1 << 22
"""Bytes that, once read, leave nothing of what was there before in a processor's own caches: twice as many as these
have, 2 MiB at most so far."""
_elsewhere = np.ones(_CACHE, np.uint8)                     # zeros that nobody has written are all one page of memory
_LATE = 1e-3
"""Seconds by which a rank is late to see what waiting takes: about as long as in a step."""
_MANY, _CHAIN = 16, 8
"""Parameters of a step of training that has many, and collectives that follow another one."""


def measured_report(f: Callable[..., Any], *args: Any, **keywords: Any) -> Report:
    """The costs of a function whose arguments are on a mesh, with the times of its segments on this processor.

    The segments run on zeros, and nothing is sent. So `report.time` predicts what a call takes on ranks of this kind.

    Args:
        f: Function, or result of `mlc.compile`.
        args: Its arguments: tensors on a mesh, which may be abstract.
        keywords: Its keyword arguments.

    Returns:
        The report.

    Raises:
        UserError: No argument, and nothing that f reaches, is on a mesh, or it is one of GPUs (MLC0969).

    Example:
        >>> mesh = mlc.distributed.mesh({"data": 2}, abstract=True)
        >>> x = mlc.distributed.shard(mlc.ones(4, 3), "data", mesh=mesh)
        >>> mlc.distributed.measured_report(lambda x: x.sum(0), x).segments[0].seconds > 0
        True
    """
    return report_meter(f, *args, **keywords)()


def report_meter(f: Callable[..., Any], *args: Any, **keywords: Any) -> Callable[[], Report]:
    """A function that measures a report, again at each call: everything is compiled before."""
    return partial(prepared(f, args, keywords), _segment_seconds)


def _segment_seconds(program: RankProgram, evict: bool = True) -> dict[str, float]:
    """The processor seconds of the segments of a program, by name, as they follow each other in it.

    evict  whether something else is read between them
    """
    _check_on_cpu(program.mesh)
    now = _clock()
    others = _crowd(program.mesh) - 1
    moved = {name: SegmentCost.of(function_of(program.module, name)).moved
             for name in {s.op.callee for s in program.steps if isinstance(s.op, func.Call)}}
    found: dict[str, list[float]] = {}
    for _ in range(_LONG):
        values: list[Any] = [_zeros(value) for value in program.function.args] + [None] * program.slots
        between = 0
        for step in program.steps:
            if not isinstance(step.op, func.Call):
                if evict:
                    _elsewhere[:_READ + others * between].sum()
                between = 0
                for slot, result in zip(step.gives, step.op.results):
                    values[slot] = None if isinstance(result.type, RequestType) else _zeros(result)
            else:
                between += moved[step.op.callee]
                taken = [values[slot] for slot in step.takes]
                start = now()
                given = step.entry.call(taken)
                found.setdefault(step.op.callee, []).append(now() - start)
                for slot, x in zip(step.gives, given):
                    values[slot] = x
            for slot in step.last:
                values[slot] = None
    return {name: statistics.median(seconds) for name, seconds in found.items()}


def _zeros(value: Value) -> Any:
    x = np.empty(value.type.shape, to_numpy(value.type.dtype))
    x.fill(0)                                              # in memory of their own, as of `_elsewhere`
    return x


def measured_machine(mesh: DeviceMesh) -> Machine:
    """The speed of the ranks of a mesh, while all of them work; all ranks call this together.

    Args:
        mesh: The mesh, which is not abstract.

    Returns:
        The machine, as this rank sees it.

    Raises:
        UserError: The mesh is abstract, or its shards are on GPUs (MLC0969).

    Example:
        >>> machine = mlc.distributed.measured_machine(mlc.distributed.mesh({"data": 1}))
        >>> machine.flops > 1e6 and machine.call < 1
        True
    """
    return machine_meter(mesh)()


def _check_on_cpu(mesh: RankMesh) -> None:
    if mesh.code_for != "cpu":
        raise UserError("times are measured of ranks on CPUs", code="MLC0969", loc=user_loc(),
                        hint="describe GPUs by an mlc.distributed.Machine, and measure the program itself there")


def machine_meter(mesh: DeviceMesh) -> Callable[[], Machine]:
    """A function that measures the ranks of a mesh, again at each call: everything is compiled before."""
    _check_on_cpu(mesh._ranks)
    transport, host, n = mesh._ranks.transport, _on_host(mesh._ranks), 512
    share = 1 / _crowd(mesh._ranks)
    rng = np.random.default_rng(0)
    square, long = (wrap(rng.standard_normal(shape).astype(np.float32)) for shape in ((n, n), (1 << 21,)))
    empty = wrap(np.zeros(1, np.float32))
    add: Any = Compiled(lambda x: x + 1)
    product: Any = Compiled(lambda x: x @ x)
    near = host == transport.size                          # else a network is between them
    around, collectives = _around(device_mesh.mesh({"rank": transport.size})), _collectives(mesh._ranks, share, near)

    def measured() -> Machine:
        call, (begin, array), (sent, refill) = _busy(lambda: add(empty)), around(), collectives()
        return Machine(2 * n**3 / max(1e-9, _busy(lambda: product(square)) - call),
                       2 * long.nbytes / max(1e-9, _busy(lambda: add(long)) - call),
                       0.0 if near else sent.message, math.inf if near else 1 / sent.byte, call,
                       sent.message / 2 if near else 0.0, 1 / sent.byte if near else math.inf, begin, array,
                       _polling(mesh._ranks, share), refill, _CACHE, sent.setup, host, transport.processors)

    return measured


def _around(mesh: DeviceMesh) -> Callable[[], tuple[float, float]]:
    """A function that measures the processor seconds of a call, and of each array that it takes or gives, besides its
    program: of training."""
    updates = [_updating(mesh, count) for count in (2, _MANY)]
    reports = [report_meter(update) for update in updates]

    def measured() -> tuple[float, float]:
        (few, short), (many, long) = ((report.arrays, _busy(update) - _computing(report)) for update, report
                                      in zip(updates, (report() for report in reports)))
        array = max(0.0, long - short) / (many - few)
        return max(0.0, short - few * array), array

    return measured


def _updating(mesh: DeviceMesh, count: int) -> Any:
    """A step of training of so many parameters, which all ranks have: they send nothing."""
    parameters = [Parameter(device_mesh.shard(np.ones(8, np.float32), mesh=mesh)) for _ in range(count)]
    optimizer = SGD(parameters, lr=1e-3, momentum=0.9)

    def update() -> None:
        optimizer.zero_grad()
        for p in parameters:
            (p * p).sum().backward()
        optimizer.step()

    compiled: Any = Compiled(update)
    compiled()                                             # after which there is the state of the optimiser
    return compiled


@dataclass(frozen=True)
class Sent:
    """A collective that was measured: its seconds, and the messages and bytes that a rank sends."""

    seconds: float
    messages: int
    bytes: int = 0


@dataclass(frozen=True)
class Collective:
    """The seconds that a collective takes by itself, for each message and each byte."""

    setup: float
    message: float
    byte: float

    @staticmethod
    def of(short: Sent, long: Sent, pair: Sent | None) -> Collective:
        """That which fits a collective of few bytes, one of many, and if there is one of pairs of ranks, also that."""
        more = short.messages - pair.messages if pair is not None else 0
        message = short.seconds / short.messages
        if pair is not None and more > 0:
            message = min(message, max(0.0, (short.seconds - pair.seconds) / more))
        setup = short.seconds - message * short.messages
        return Collective(setup, message, max(1e-15, (long.seconds - setup - message * long.messages) / long.bytes))


def _collectives(mesh: RankMesh, share: float, near: bool) -> Callable[[], tuple[Collective, float]]:
    """A function that measures the collectives of a program, and how much longer one takes where segments have evicted
    what it uses."""
    n = mesh.transport.size
    if n == 1:
        return lambda: (Collective(0.0, 0.0, 1e-15), 0.0)
    kinds = [(n, 1, 1), (n, 1 << 16, 1), (n, 1, _CACHE // 4)] + [(2, 1, 1)] * (near and n > 2 and n % 2 == 0)
    chains = [[_Chain(mesh, *kind, count) for count in (1, _CHAIN + 1)] for kind in kinds]

    def measured() -> tuple[Collective, float]:
        found = []
        for single, many in chains:
            one = single.reports(lambda program: {}).collectives[0]
            found.append(Sent((many.seconds(share) - single.seconds(share)) / _CHAIN, one.messages, one.bytes))
        short, long, cold, *pairs = found
        return Collective.of(short, long, pairs[0] if pairs else None), max(0.0, cold.seconds - short.seconds)

    return measured


def _computing(report: Report) -> float:
    """The seconds of the segments of a report."""
    return sum(s.seconds or 0.0 for s in report.segments)


def _polling(mesh: RankMesh, share: float) -> float:
    """The part of a processor that a rank takes while it waits, not for long, for another one that computes on the same
    one."""
    found = list[float]()
    for late in range(mesh.transport.size):
        mesh.transport.barrier()
        start, used = time.perf_counter(), time.thread_time()
        while mesh.transport.rank == late and time.perf_counter() < start + _LATE:
            _elsewhere[:_READ].sum()
        mesh.transport.barrier()
        if mesh.transport.rank != late:
            found.append((time.thread_time() - used) / (time.perf_counter() - start))
    return min(*found, share / 2) if found and share < 1 else 0.0    # the least is of those on the same processor


class _Chain:
    """A program with so many collectives one after the other, and a segment between them that reads memory.

    ranks              number of ranks that take part in each collective
    size, read, count  numbers of each collective, numbers that are read between them, and collectives
    """

    def __init__(self, mesh: RankMesh, ranks: int, size: int, read: int, count: int) -> None:
        groups = device_mesh.mesh({"group": mesh.transport.size // ranks, "rank": ranks})
        self._mesh = mesh
        self._args = (device_mesh.shard(np.zeros((ranks, size), np.float32), "rank", mesh=groups),
                      device_mesh.shard(np.ones(read, np.float32), mesh=groups))

        def chain(x: Any, read: Any) -> Any:
            y = x.sum(0)
            for _ in range(count - 1):
                y = (x + (read * y[0]).max()).sum(0)
            return y

        self._call: Any = Compiled(chain)
        self.reports = prepared(self._call, self._args, {})
        assert len(self.reports(lambda program: {}).collectives) == count, "no collective is merged"

    def seconds(self, share: float) -> float:
        """The seconds of a call, of which this rank has such a share, less those of its segments."""
        return share * _together(self._mesh.transport, partial(self._call, *self._args), _SHORT) - _computing(
            self.reports(partial(_segment_seconds, evict=False)))


def _busy(act: Callable[[], Any]) -> float:
    """The processor seconds of a call, which waits for nobody."""
    now, found = _clock(), list[float]()
    for _ in range(_LONG):
        start = now()
        act()
        found.append(now() - start)
    return statistics.median(found)


def _together(transport: Transport, act: Callable[[], Any], count: int) -> float:
    """The seconds of a call that all ranks make together: of so many in rounds, the least median of a round."""
    act()
    best = math.inf
    for _ in range(_ROUNDS):                               # other programs can only make it longer
        transport.barrier()
        found = list[float]()
        for _ in range(count // _ROUNDS):
            start = time.perf_counter()
            act()
            found.append(time.perf_counter() - start)
        best = min(best, statistics.median(found))
    return best


def _clock() -> Callable[[], float]:
    """The processor time of this rank; that of a clock if its code has several threads, and so its processors."""
    return time.thread_time if get_num_threads() == 1 else time.perf_counter


def _on_host(mesh: RankMesh) -> int:
    """The number of ranks on the host of this one."""
    return mesh.transport.size if mesh.transport.backend == "threads" else len(mesh.neighbours)


def _crowd(mesh: RankMesh) -> int:
    """The number of ranks on a processor, where most are."""
    return 1 if mesh.carrier is None else -(-_on_host(mesh) // mesh.transport.processors)
