"""The time of a rank's program, predicted from what a report counts and from the speed of a machine.

A segment takes the time of its arithmetic and that of the bytes that it moves, since its kernels run one after the
other and few are bound by both; a collective takes a latency for each message and the time of its bytes (the alpha-beta
model), with the messages of `backends/transport`.

Example:
    >>> mesh = mlc.distributed.mesh({"data": 1024}, abstract=True)
    >>> w = mlc.distributed.shard(mlc.ones(64, 64), mesh=mesh)
    >>> x = mlc.distributed.shard(mlc.ones(4096, 64), "data", mesh=mesh)
    >>> report = mlc.distributed.report(lambda w, x: (x @ w).sum(0), w, x)
    >>> machine = mlc.distributed.Machine(flops=1e12, memory=1e11, latency=1e-6, network=1e10, call=1e-5)
    >>> report.time(machine).communication > report.time(machine).compute
    True
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlc.api import Compiled
from mlc.backends.mesh.meshes import DESCRIBED
from mlc.backends.transport import collectives
from mlc.distributed.device_mesh import DeviceMesh
from mlc.frontend.tensor import wrap

PHASES = {"all_reduce": 2}
"""Times that each rank of a group sends to each other, if not once."""
_REPEATS = 7


@dataclass(frozen=True)
class Timing:
    """A predicted time of one call.

    Args:
        compute: Seconds of the segments.
        communication: Seconds of the collectives, and of the agreement of the ranks on what they call.
        waiting: Seconds in which a rank of a pipeline waits for messages: its bubble. Like the others, the mean of all.

    Example:
        >>> mlc.distributed.Timing(0.5, 0.25).total
        0.75
    """

    compute: float
    communication: float
    waiting: float = 0.0

    @property
    def total(self) -> float:
        """Seconds in all: collectives do not overlap with segments."""
        return self.compute + self.communication + self.waiting


@dataclass(frozen=True)
class Machine:
    """The speed of a rank and of what connects it with others.

    Args:
        flops: Floating-point operations in a second.
        memory: Bytes that are read and written in a second.
        latency: Seconds of a message without content.
        network: Bytes that a rank sends in a second.
        call: Seconds that a segment takes to be called.

    Example:
        >>> mlc.distributed.Machine(1e12, 1e11, 1e-6, 1e10, 1e-5).collective("all_reduce", 4, 60000)
        1.2e-05
    """

    flops: float
    memory: float
    latency: float
    network: float
    call: float

    def segment(self, operations: int, moved: int) -> float:
        """The seconds of a segment.

        Args:
            operations: Its floating-point operations.
            moved: The bytes that it reads and writes.

        Returns:
            Seconds.

        Example:
            >>> mlc.distributed.Machine(1e12, 1e11, 1e-6, 1e10, 1e-5).segment(10**9, 10**6)
            0.00102
        """
        return self.call + operations / self.flops + moved / self.memory

    def collective(self, kind: str, ranks: int, sent: int) -> float:
        """The seconds of a collective.

        Args:
            kind: Name of the collective, such as "all_reduce".
            ranks: Number of ranks that take part together.
            sent: Bytes that a rank sends.

        Returns:
            Seconds.

        Example:
            >>> mlc.distributed.Machine(1e12, 1e11, 1e-6, 1e10, 1e-5).collective("all_gather", 4, 30000)
            6e-06
        """
        return self.latency * PHASES.get(kind, 1) * (ranks - 1) + sent / self.network

    def agreement(self, ranks: int) -> float:
        """The seconds in which ranks agree on a call.

        Args:
            ranks: Number of ranks of the mesh.

        Returns:
            Seconds.

        Example:
            >>> mlc.distributed.Machine(1e12, 1e11, 1e-6, 1e10, 1e-5).agreement(1)
            0.0
        """
        return self.collective("all_gather", ranks, DESCRIBED * (ranks - 1))

    @staticmethod
    def measured(mesh: DeviceMesh) -> Machine:
        """The speed of the ranks of a mesh, while all of them work; all ranks call this together.

        Args:
            mesh: The mesh, which is not abstract.

        Returns:
            The machine, as this rank sees it.

        Raises:
            UserError: The mesh is abstract (MLC0969).

        Example:
            >>> machine = mlc.distributed.Machine.measured(mlc.distributed.mesh({"data": 1}))
            >>> machine.flops > 1e6 and machine.call < 1
            True
        """
        transport, n = mesh._ranks.transport, 1024
        group, rng = tuple(range(transport.size)), np.random.default_rng(0)
        square, long = (wrap(rng.standard_normal(shape).astype(np.float32)) for shape in ((n, n), (1 << 21,)))
        empty = wrap(np.zeros(1, np.float32))
        add: Any = Compiled(lambda x: x + 1)
        product: Any = Compiled(lambda x: x @ x)

        def gather(size: int) -> Callable[[], Any]:
            x = np.zeros(size, np.uint8)
            return lambda: collectives.all_gather(transport, group, x, name="agreement")

        def seconds(act: Callable[[], Any]) -> float:
            act()
            found = []
            for _ in range(_REPEATS):
                transport.barrier()
                start = time.perf_counter()
                act()
                found.append(time.perf_counter() - start)
            return min(found)

        call, others = seconds(lambda: add(empty)), max(1, len(group) - 1)
        short, size = seconds(gather(1)), 1 << 20
        return Machine(2 * n**3 / max(1e-9, seconds(lambda: product(square)) - call),
                       2 * long.nbytes / max(1e-9, seconds(lambda: add(long)) - call), short / others,
                       size * others / max(1e-9, seconds(gather(size)) - short), call)
