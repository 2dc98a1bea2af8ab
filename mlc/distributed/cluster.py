"""A model of many hosts: links of two kinds, ranks of uneven speed, and failures.

Collectives are those of NCCL and of MPI's libraries for many ranks: within each host first, then between the hosts,
where each rank has its part of the content, and within the host again; each by halving and doubling, so that p ranks
take log2(p) messages one after the other. (The transport of mlc itself sends to each rank directly: p - 1 messages.)

Example:
    >>> mesh = mlc.distributed.mesh({"data": 100_000}, abstract=True)
    >>> w = mlc.distributed.shard(mlc.ones(64, 64), mesh=mesh)
    >>> x = mlc.distributed.shard(mlc.ones(100_000, 64), "data", mesh=mesh)
    >>> report = mlc.distributed.report(lambda w, x: (x @ w).sum(0), w, x)
    >>> cluster = mlc.distributed.Cluster(1e12, 1e11, 1e-6, 1e10, 1e-5, host=8, near_latency=1e-7, near_network=1e11)
    >>> report.time(cluster).total < report.time(mlc.distributed.Machine(1e12, 1e11, 1e-6, 1e10, 1e-5)).total
    True
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING

from mlc.backends.mesh.meshes import DESCRIBED
from mlc.distributed.time_model import Machine
from mlc.passes.analysis.segment_cost import SegmentCost

if TYPE_CHECKING:
    from mlc.distributed.simulation import Communication


@dataclass(frozen=True)
class Cluster(Machine):
    """The speed of the ranks of many hosts, of the links between them, and how reliable they are.

    Args:
        flops: As of `Machine`.
        memory: As of `Machine`.
        latency: Seconds that a message without content is on its way between hosts.
        network: Bytes that a rank sends to other hosts in a second.
        call: As of `Machine`.
        overhead: As of `Machine`, of messages of a pipeline; of collectives, it is a part of what they take.
        copying: As of `Machine`, likewise.
        begin: As of `Machine`.
        array: As of `Machine`.
        polling: As of `Machine`.
        refill: As of `Machine`.
        cache: As of `Machine`.
        setup: As of `Machine`, likewise.
        host: As of `Machine`.
        processors: As of `Machine`.
        near_latency: Seconds that a message is on its way between ranks of a host.
        near_network: Bytes that a rank sends to others of its host in a second.
        jitter: Standard deviation of the time of a segment among ranks, in proportion. All wait for the slowest, which
            of n ranks takes 1 + jitter z as long as the mean, where a normal variable is less than z in n of n + 1
            cases.
        straggler: How many times as long as others a rank computes, for which all wait.
        failures: Failures of a rank in a second; each ends the job.
        checkpoint: Seconds in which the state is written.
        restart: Seconds from a failure until the last checkpoint is read.
        axes: Names and sizes of the axes of the mesh, which `placed` fills in.

    Example:
        >>> cluster = mlc.distributed.Cluster(1e12, 1e11, 1e-6, 1e10, 1e-5, jitter=0.05)
        >>> cluster.placed({"data": 1000}).slowest > cluster.placed({"data": 10}).slowest > 1
        True
    """

    near_latency: float = 0.0
    near_network: float = math.inf
    jitter: float = 0.0
    straggler: float = 1.0
    failures: float = 0.0
    checkpoint: float = 0.0
    restart: float = 0.0
    axes: tuple[tuple[str, int], ...] = ()

    def placed(self, shape: Mapping[str, int]) -> Cluster:
        """The cluster with a mesh on it.

        Args:
            shape: Number of ranks along each axis, the major one first.

        Returns:
            The cluster.

        Example:
            >>> mlc.distributed.Cluster(1e12, 1e11, 1e-6, 1e10, 1e-5).placed({"data": 4}).axes
            (('data', 4),)
        """
        return replace(self, axes=tuple(shape.items()))

    @property
    def slowest(self) -> float:
        """How many times as long as the mean of ranks the slowest one computes."""
        n = math.prod(size for _, size in self.axes)
        return max(self.straggler, 1 + self.jitter * NormalDist().inv_cdf(n / (n + 1)))

    def segment(self, cost: SegmentCost) -> float:
        """The seconds of a segment on the slowest rank.

        Args:
            cost: Its work.

        Returns:
            Seconds.

        Example:
            >>> from mlc.passes.analysis.segment_cost import SegmentCost
            >>> mlc.distributed.Cluster(1e12, 1e11, 1e-6, 1e10, 1e-5, straggler=2.0).segment(SegmentCost(10**9, 10**6))
            0.00204
        """
        return super().segment(cost) * self.slowest

    def communication(self, step: Communication) -> float:
        """The seconds of a collective.

        Args:
            step: The collective.

        Returns:
            Seconds.

        Example:
            >>> cluster = mlc.distributed.Cluster(1e12, 1e11, 1e-6, 1e10, 1e-5, host=4, near_latency=1e-7)
            >>> step = mlc.distributed.Communication("all_gather", ("model",), 0, None, 4)
            >>> cluster.placed({"data": 2, "model": 4}).communication(step)
            2e-07
        """
        if step.kind == "shift":                           # as long as the slowest link of the ring takes
            latency, network = self.link(step)
            return latency + step.bytes / network
        return self._exchange(step.ranks, self.near(step.axes), step.bytes, 2 if step.kind == "all_reduce" else 1,
                              step.kind == "all_to_all")

    def link(self, step: Communication) -> tuple[float, float]:
        """The latency, and the bytes in a second, of a message of a pipeline.

        Args:
            step: The message.

        Returns:
            Seconds, and bytes in a second.

        Example:
            >>> step = mlc.distributed.Communication("send", ("stage",), 8, None, 2, 0)
            >>> mlc.distributed.Cluster(1e12, 1e11, 1e-6, 1e10, 1e-5).placed({"stage": 2}).link(step)
            (1e-06, 10000000000.0)
        """
        whole = self.near(step.axes) >= math.prod(dict(self.axes)[axis] for axis in step.axes)
        return (self.near_latency, self.near_network) if whole else (self.latency, self.network)

    def agreement(self, ranks: int) -> float:
        """The seconds in which ranks agree on a call: those of an all_gather of a short message.

        Args:
            ranks: Number of ranks of the mesh.

        Returns:
            Seconds.

        Example:
            >>> mlc.distributed.Cluster(1e12, 1e11, 1e-6, 1e10, 1e-5).agreement(1)
            0.0
        """
        return self._exchange(ranks, min(self.host, ranks), DESCRIBED * (ranks - 1), 1, False)

    def near(self, axes: tuple[str, ...]) -> int:
        """The number of ranks of a group that are on one host.

        Args:
            axes: The axes of the mesh along which they differ.

        Returns:
            An integer from 1.

        Example:
            >>> cluster = mlc.distributed.Cluster(1e12, 1e11, 1e-6, 1e10, 1e-5, host=8).placed({"data": 8, "model": 4})
            >>> cluster.near(("data",)), cluster.near(("model",))
            (2, 4)
        """
        out = stride = 1
        for axis, size in reversed(self.axes):
            out *= max(1, min(size, self.host // stride)) if axis in axes else 1
            stride *= size
        return out

    def useful(self, ranks: int) -> float:
        """The part of the time that goes into steps that count, where checkpoints are as often as pays best.

        Of n ranks with f failures in a second each, one fails every M = 1 / (n f) seconds. Checkpoints of c seconds
        every t = sqrt(2 c M) seconds (Young's formula) leave t / (t + c) of the time, and each failure costs half of t
        and the restart r: useful = t / (t + c) (1 - (t / 2 + r) / M), or nothing if that is less.

        Args:
            ranks: Number of ranks.

        Returns:
            A number from 0 to 1.

        Example:
            >>> rare = {"failures": 1e-8, "checkpoint": 20.0, "restart": 60.0}
            >>> cluster = mlc.distributed.Cluster(1e12, 1e11, 1e-6, 1e10, 1e-5, **rare)
            >>> cluster.useful(1) > 0.99 > cluster.useful(4096) > 0.9
            True
        """
        if not self.failures:
            return 1.0
        between = 1 / (ranks * self.failures)
        interval = math.sqrt(2 * self.checkpoint * between)
        kept = interval / (interval + self.checkpoint) if interval else 1.0
        return kept * max(0.0, 1 - (interval / 2 + self.restart) / between)

    def _exchange(self, ranks: int, near: int, sent: float, phases: int, scattered: bool) -> float:
        """The seconds of a collective in which each rank sends so many bytes, in one phase or two.

        scattered  whether content for other hosts goes through no rank of this one
        """
        if ranks == 1:
            return 0.0
        hosts = -(-ranks // near)
        whole = sent * ranks / (phases * (ranks - 1))      # what each rank has in the end, or had at first
        inside, outside = whole * (near - 1) / near, whole * (hosts - 1) / hosts / near
        if scattered:
            inside, outside = sent * (near - 1) / (ranks - 1), sent * (ranks - near) / (ranks - 1)
        steps = [math.ceil(math.log2(n)) for n in (near, hosts)]
        return phases * (steps[0] * self.near_latency + inside / self.near_network
                         + steps[1] * self.latency + outside / self.network)
