"""The time of a rank's program, predicted from what a report counts and from the speed of a machine.

A segment takes the time of its arithmetic and that of the bytes that it moves, since its kernels run one after the
other and few are bound by both, or the time that was measured. A collective takes a latency for each message and the
time of its bytes (the alpha-beta model), with the messages of `backends/transport`, and so much of the processors at
both ends (as in the model LogGP), besides what it takes by itself, and the longer the more segments before it have
evicted from caches. Between a start and its wait, it takes the longer of its time on the network and that of the
segments; the processors' part is not hidden. Where the ranks of a host outnumber its processors, each has one that it
shares with others (`mlc/distributed/simulation.py`).

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

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlc.backends.mesh.meshes import DESCRIBED
from mlc.backends.transport.transport import of_host
from mlc.passes.analysis.segment_cost import SegmentCost

if TYPE_CHECKING:
    from mlc.distributed.simulation import Communication


@dataclass(frozen=True)
class Timing:
    """A predicted time of one call.

    Args:
        compute: Seconds of the segments.
        communication: Seconds of the collectives, and of the agreement of the ranks on what they call.
        waiting: Seconds in which a rank of a pipeline waits for messages: its bubble. Like the others, the mean of all.
        hidden: Seconds of collectives that are on their way while segments run; they are in none of the others.

    Example:
        >>> mlc.distributed.Timing(0.5, 0.25).total
        0.75
    """

    compute: float
    communication: float
    waiting: float = 0.0
    hidden: float = 0.0

    @property
    def total(self) -> float:
        """Seconds in all: of collectives that overlap with segments, the part in which a rank waits for them."""
        return self.compute + self.communication + self.waiting


@dataclass(frozen=True)
class Machine:
    """The speed of a rank and of what connects it with others.

    Args:
        flops: Floating-point operations in a second.
        memory: Bytes that are read and written in a second.
        latency: Seconds that a message without content is on its way.
        network: Bytes that a rank sends in a second; inf if processors copy them.
        call: Seconds that a segment takes to be called.
        overhead: Seconds in which the processor of a rank is busy with a message, at each of its ends.
        copying: Bytes in a second that processors copy to and from messages; inf if the network does that.
        begin: Seconds of a call of a function besides its program.
        array: Seconds of each array that it takes or gives, besides its program.
        polling: Part of a processor that a rank takes while it waits for another one on the same processor.
        refill: Seconds in which a processor fetches again what it needs to communicate, after segments that moved
            `cache` bytes.
        cache: Bytes that evict all of that from the caches of a processor.
        setup: Seconds in which the processor of a rank is busy with a collective, besides its messages; with a message
            of a pipeline half as long, at each end.
        host: Ranks of a host; consecutive ones are on one.
        processors: Processors of a host, if its ranks outnumber them: consecutive ranks have one. All other numbers are
            those of a rank with a processor of its own; 0 if all have.

    Example:
        >>> mlc.distributed.Machine(1e12, 1e11, 1e-6, 1e10, 1e-5).collective(6, 60000)
        1.2e-05
    """

    flops: float
    memory: float
    latency: float
    network: float
    call: float
    overhead: float = 0.0
    copying: float = math.inf
    begin: float = 0.0
    array: float = 0.0
    polling: float = 0.0
    refill: float = 0.0
    cache: float = math.inf
    setup: float = 0.0
    host: int = 1
    processors: int = 0

    def processor(self, rank: int) -> int:
        """The processor of a rank, by its number among those of all hosts.

        Args:
            rank: Number of the rank.

        Returns:
            Number of the processor.

        Example:
            >>> crowded = mlc.distributed.Machine(1e12, 1e11, 1e-6, 1e10, 1e-5, host=4, processors=2)
            >>> [crowded.processor(rank) for rank in range(8)]
            [0, 0, 1, 1, 2, 2, 3, 3]
        """
        if not 0 < self.processors < self.host:
            return rank
        return rank // self.host * self.processors + of_host(rank % self.host, self.host, self.processors)

    def segment(self, cost: SegmentCost) -> float:
        """The processor seconds of a segment.

        Args:
            cost: Its work; if its time was measured, that is the time.

        Returns:
            Seconds.

        Example:
            >>> from mlc.passes.analysis.segment_cost import SegmentCost
            >>> mlc.distributed.Machine(1e12, 1e11, 1e-6, 1e10, 1e-5).segment(SegmentCost(10**9, 10**6))
            0.00102
        """
        if cost.seconds is not None:
            return cost.seconds
        return self.call + cost.operations / self.flops + cost.moved / self.memory

    def handling(self, messages: int, sent: int) -> float:
        """The processor seconds of a collective: of its rank, and at both ends of the messages that the rank sends.

        Args:
            messages: Number of messages.
            sent: Their bytes.

        Returns:
            Seconds.

        Example:
            >>> mlc.distributed.Machine(1e12, 1e11, 1e-6, 1e10, 1e-5, overhead=1e-6).handling(3, 100)
            6e-06
            >>> mlc.distributed.Machine(1e12, 1e11, 1e-6, 1e10, 1e-5, overhead=1e-6, setup=2e-6).handling(3, 100)
            8e-06
        """
        return (self.setup if messages else 0.0) + 2 * self.overhead * messages + sent / self.copying

    def refilled(self, moved: int) -> float:
        """The processor seconds that it takes longer to begin, or to wait for, what is communicated after segments.

        Args:
            moved: Bytes that they have moved.

        Returns:
            Seconds.

        Example:
            >>> mlc.distributed.Machine(1e12, 1e11, 1e-6, 1e10, 1e-5, refill=4e-5, cache=4e6).refilled(1000000)
            1e-05
        """
        return self.refill * min(1.0, moved / self.cache)

    def collective(self, messages: int, sent: int) -> float:
        """The seconds of a collective.

        Args:
            messages: Number of messages that a rank sends, one after the other.
            sent: Bytes that a rank sends.

        Returns:
            Seconds.

        Example:
            >>> mlc.distributed.Machine(1e12, 1e11, 1e-6, 1e10, 1e-5).collective(3, 30000)
            6e-06
        """
        return self.latency * messages + sent / self.network + self.handling(messages, sent)

    def communication(self, step: Communication) -> float:
        """The seconds of a collective of a program.

        Args:
            step: The collective.

        Returns:
            Seconds.

        Example:
            >>> step = mlc.distributed.Communication("all_reduce", ("data",), 30000, None, 4, messages=3)
            >>> mlc.distributed.Machine(1e12, 1e11, 1e-6, 1e10, 1e-5).communication(step)
            6e-06
        """
        return self.collective(step.messages, step.bytes)

    def link(self, step: Communication) -> tuple[float, float]:
        """The latency, and the bytes in a second, of a message of a pipeline.

        Args:
            step: The message.

        Returns:
            Seconds, and bytes in a second.

        Example:
            >>> step = mlc.distributed.Communication("send", ("stage",), 8, None, 2, 0)
            >>> mlc.distributed.Machine(1e12, 1e11, 1e-6, 1e10, 1e-5).link(step)
            (1e-06, 10000000000.0)
        """
        return self.latency, self.network

    def placed(self, shape: Mapping[str, int]) -> Machine:
        """The machine with a mesh on it: the same, where all ranks are equally far from each other.

        Args:
            shape: Number of ranks along each axis.

        Returns:
            The machine.

        Example:
            >>> machine = mlc.distributed.Machine(1e12, 1e11, 1e-6, 1e10, 1e-5)
            >>> machine.placed({"data": 2}) is machine
            True
        """
        return self

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
        return self.collective(ranks - 1, DESCRIBED * (ranks - 1))

    def around(self, arrays: int) -> float:
        """The processor seconds of a call besides its program.

        Args:
            arrays: Number of arrays that it takes and gives.

        Returns:
            Seconds.

        Example:
            >>> mlc.distributed.Machine(1e12, 1e11, 1e-6, 1e10, 1e-5, begin=1e-4, array=1e-6).around(10)
            0.00011
        """
        return self.begin + self.array * arrays
