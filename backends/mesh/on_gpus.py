"""Collectives and messages of programs on a mesh whose ranks have their shards on GPUs, carried out by NCCL.

The pass `nccl_collectives` has made every block lie in one piece. Sums are NCCL's: in an order of its own.

NCCL's messages have no tags: those of one rank arrive in the order in which it sends them, which its program says.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlc.backends.cuda.memory import DeviceArray, DeviceMemory
from mlc.backends.mesh.meshes import RankMesh
from mlc.backends.transport.gpu_messages import direction
from mlc.backends.transport.nccl import Communicator, Span, Submitted, Work, communicators
from mlc.backends.transport.pending import Handle
from mlc.dialects.shard.collectives import AllGather, AllReduce, AllToAll, Collective, ReduceScatter
from mlc.dialects.shard.messages import Recv, Send
from mlc.dialects.shard.shift import Shift
from mlc.ir.types import to_numpy


def begin(op: Collective, x: DeviceArray, mesh: RankMesh) -> Callable[[], DeviceArray]:
    """Submit a collective; the function after which what the device does sees its result."""
    transport, group, memory = mesh.transport, mesh.group(op.axes), x.memory
    communicator = communicators(transport).collective(group, memory)
    out = _empty(op, memory)
    work = _work(op, x, out, communicator)
    memory.device.activate()
    computed = memory.device.mark(memory.device.stream)
    submitted = transport.in_order(op.name, lambda: communicator.submit(op.name, work, [x, out], transport.timeout,
                                                                        computed))

    def finish() -> DeviceArray:
        submitted.join()
        return out

    return finish


def _work(op: Collective, x: DeviceArray, out: DeviceArray, communicator: Communicator) -> Work:
    n, me = len(communicator.group), communicator.position
    match op:
        case AllReduce():
            return communicator.all_reduce(x, out, op.kind)
        case ReduceScatter():
            return communicator.reduce_scatter(x, out, op.kind)
        case AllGather():
            return communicator.all_gather(x, out)
        case AllToAll():
            return communicator.exchange(_blocks(x, n), _blocks(out, n))
        case Shift():
            return communicator.exchange([((me + op.offset) % n, Span(x.address, x.nbytes))],
                                         [((me - op.offset) % n, Span(out.address, out.nbytes))])
        case _:
            raise AssertionError(f"{op.name} is no collective of segments")


def _empty(op: Collective | Send, memory: DeviceMemory) -> DeviceArray:
    """Memory for the result."""
    return memory.empty(tuple(map(int, op.content.shape)), to_numpy(op.content.dtype))


def _blocks(x: DeviceArray, count: int) -> list[tuple[int, Span]]:
    """The equal parts of an array, by position."""
    size = x.nbytes // count
    return [(p, Span(x.address + p * size, size)) for p in range(count)]


def start_sending(op: Send, x: DeviceArray, mesh: RankMesh) -> tuple[int, Handle[Submitted]]:
    """Start to send a message; the rank that it goes to, and what has ended once it is submitted."""
    to = op.peer_of(mesh.rank)
    way = direction(mesh.transport, (mesh.rank, to), x.memory.device)
    return to, way.start(x, op.name, mesh.transport.timeout)


class Arrivals:
    """The messages that a call of a program gets from other ranks, in the order in which each sends them.

    sent  those that have not come, by rank
    """

    def __init__(self, sent: Mapping[int, Sequence[Send]], mesh: RankMesh) -> None:
        self._sent, self._mesh = {rank: deque(ops) for rank, ops in sent.items()}, mesh
        self._come = dict[tuple[int, int], tuple[DeviceArray, Handle[Submitted]]]()

    def receive(self, op: Recv) -> DeviceArray:
        """The content of a message, which what the device does from now on sees."""
        mesh, source = self._mesh, op.peer_of(self._mesh.rank)
        way = direction(mesh.transport, (source, mesh.rank), mesh.memory.device)
        while (source, op.tag) not in self._come:
            earlier = self._sent[source].popleft()
            out = _empty(earlier, mesh.memory)
            self._come[source, earlier.tag] = out, way.start(out, op.name, mesh.transport.timeout)
        out, handle = self._come.pop((source, op.tag))
        handle.wait().join()
        return out


@dataclass
class Begun:
    """A collective that was submitted; `wait` has what the device does from then on see the result."""

    finish: Callable[[], Any]

    def wait(self) -> Any:
        return self.finish()
