"""The speed of this machine, and the time of a rank's segments on it, measured.

Ranks on one host send by copying: what a message takes is processor time of its sender and its receiver. All ranks
measure together; where they outnumber the processors, messages take longer by so much, which is taken out again.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mlc.api import Compiled
from mlc.backends.cpu.threads import get_num_threads
from mlc.backends.mesh.meshes import RankMesh
from mlc.backends.mesh.program import RankProgram
from mlc.backends.transport import collectives
from mlc.backends.transport.transport import Transport
from mlc.dialects import func
from mlc.distributed import device_mesh
from mlc.distributed.device_mesh import DeviceMesh
from mlc.distributed.rank_program import Report, reported
from mlc.distributed.time_model import Machine
from mlc.frontend.autograd.grad_mode import GradMode
from mlc.frontend.tensor import wrap
from mlc.ir.core import Value
from mlc.ir.types import to_numpy

_LONG, _SHORT = 30, 300
"""Times that what takes milliseconds is measured, and what takes less."""
_MANY = 32
"""Arrays of a call that has many."""


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
        UserError: No argument, and nothing that f reaches, is on a mesh (MLC0969).

    Example:
        >>> mesh = mlc.distributed.mesh({"data": 2}, abstract=True)
        >>> x = mlc.distributed.shard(mlc.ones(4, 3), "data", mesh=mesh)
        >>> mlc.distributed.measured_report(lambda x: x.sum(0), x).segments[0].seconds > 0
        True
    """
    return reported(f, args, keywords, _segment_seconds)


def _segment_seconds(program: RankProgram) -> dict[str, float]:
    """The processor seconds of the segments of a program, by name, as they follow each other in it."""
    now = _clock()
    found: dict[str, list[float]] = {}
    for _ in range(_LONG):
        values: list[Any] = [_zeros(value) for value in program.function.args] + [None] * program.slots
        for step in program.steps:
            if not isinstance(step.op, func.Call):
                for slot, result in zip(step.gives, step.op.results):
                    values[slot] = _zeros(result)
            else:
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
    return np.zeros(value.type.shape, to_numpy(value.type.dtype))


def measured_machine(mesh: DeviceMesh) -> Machine:
    """The speed of the ranks of a mesh, while all of them work; all ranks call this together.

    Args:
        mesh: The mesh, which is not abstract.

    Returns:
        The machine, as this rank sees it.

    Raises:
        UserError: The mesh is abstract (MLC0969).

    Example:
        >>> machine = mlc.distributed.measured_machine(mlc.distributed.mesh({"data": 1}))
        >>> machine.flops > 1e6 and machine.call < 1
        True
    """
    transport, n = mesh._ranks.transport, 512
    group, share = tuple(range(transport.size)), _share(mesh._ranks)
    rng = np.random.default_rng(0)
    square, long = (wrap(rng.standard_normal(shape).astype(np.float32)) for shape in ((n, n), (1 << 21,)))
    empty = wrap(np.zeros(1, np.float32))
    add: Any = Compiled(lambda x: x + 1)
    product: Any = Compiled(lambda x: x @ x)

    def gather(size: int) -> Callable[[], Any]:
        x = np.zeros(size, np.uint8)
        return lambda: collectives.all_gather(transport, group, x, name="agreement")

    call, others, size = _busy(lambda: add(empty)), max(1, len(group) - 1), 1 << 18
    short = share * _together(transport, gather(1), _SHORT)
    long_one = share * _together(transport, gather(size), _LONG)
    message, byte = short / others, max(1e-15, long_one - short) / (size * others)
    near = _on_host(mesh._ranks) == len(group)             # else a network is between them
    few, many = (_busy(update) - cost for update, cost in (_updates(mesh, 1), _updates(mesh, _MANY)))
    array = max(0.0, many - few) / (2 * (_MANY - 1))
    return Machine(2 * n**3 / max(1e-9, _busy(lambda: product(square)) - call),
                   2 * long.nbytes / max(1e-9, _busy(lambda: add(long)) - call),
                   0.0 if near else message, math.inf if near else 1 / byte, call, message / 2 if near else 0.0,
                   1 / byte if near else math.inf, max(0.0, few - 2 * array), array, share)


def _busy(act: Callable[[], Any]) -> float:
    """The processor seconds of a call, which waits for nobody."""
    now, found = _clock(), list[float]()
    for _ in range(_LONG):
        start = now()
        act()
        found.append(now() - start)
    return statistics.median(found)


def _together(transport: Transport, act: Callable[[], Any], count: int) -> float:
    """The seconds of a call that all ranks make together, of so many one after the other."""
    act()
    transport.barrier()
    found = list[float]()
    for _ in range(count):
        start = time.perf_counter()
        act()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def _clock() -> Callable[[], float]:
    """The processor time of this rank; that of a clock if its code has several threads, and so its processors."""
    return time.thread_time if get_num_threads() == 1 else time.perf_counter


def _updates(mesh: DeviceMesh, count: int) -> tuple[Callable[[], Any], float]:
    """A call that changes so many tensors of a mesh, and the processor seconds of its segments."""
    tensors = [device_mesh.shard(np.zeros(8, np.float32), mesh=mesh) for _ in range(count)]

    def update() -> None:
        with GradMode(False):
            for x in tensors:
                x.add_(1)

    compiled: Any = Compiled(update)
    return compiled, sum(s.seconds or 0.0 for s in measured_report(compiled).segments)


def _on_host(mesh: RankMesh) -> int:
    """The number of ranks on the host of this one."""
    return mesh.transport.size if mesh.transport.backend == "threads" else len(mesh.neighbours)


def _share(mesh: RankMesh) -> float:
    """The processors that there are for each rank of this host, at most one."""
    return min(1.0, len(os.sched_getaffinity(0)) / _on_host(mesh))
