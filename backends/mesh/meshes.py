"""The meshes of this process: a grid of ranks, and the transport that carries their messages."""

from __future__ import annotations

import hashlib
import os
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.backends.transport import collectives, current
from mlc.backends.transport.errors import RankError
from mlc.backends.transport.mailbox import Mailbox
from mlc.backends.transport.nccl import communicators
from mlc.backends.transport.threads import ThreadTransport
from mlc.backends.transport.transport import Array, Transport
from mlc.dialects.shard.mesh import Axes, Mesh
from mlc.ir.diag import BackendError, UserError

if TYPE_CHECKING:
    from mlc.backends.cuda.memory import DeviceMemory

DESCRIBED = 256
"""Bytes of a message that says what a rank does."""
_alone = ThreadTransport([Mailbox(0)], 0)
"""The transport of a process without a job."""
_made: list[RankMesh] = []
_making = threading.Lock()


@dataclass(frozen=True, eq=False)
class RankMesh:
    """A mesh as one of its ranks sees it.

    topology   the axes and their sizes
    carrier    the transport of its messages; None for an abstract mesh, on which nothing runs
    number     N of its device `mesh:N`
    neighbours the ranks that are processes of this host, in order, with this one
    overlap    whether collectives are on their way while segments run
    asked      what was asked for: None if nothing was
    place      the device of this rank's shards: cpu, or cuda:0 and so on
    groups     those that were asked for, by axes
    """

    topology: Mesh
    carrier: Transport | None = field(repr=False)
    number: int = 0
    neighbours: tuple[int, ...] = (0,)
    overlap: bool = False
    asked: bool | None = None
    place: str = "cpu"
    groups: dict[Axes, tuple[int, ...]] = field(default_factory=dict, repr=False)

    @property
    def device(self) -> str:
        """The name of the device."""
        return f"mesh:{self.number}"

    @property
    def on_gpus(self) -> bool:
        """Whether the shards are on GPUs, and NCCL sends them."""
        return self.place != "cpu"

    @property
    def code_for(self) -> str:
        """The device that segments are compiled for: on an abstract mesh, which may have none, this processor."""
        return "cpu" if self.carrier is None else self.place

    @cached_property
    def memory(self) -> DeviceMemory:
        """The memory of this rank's GPU."""
        from mlc.backends.cuda.executable import device_memory
        return device_memory(int(self.place.partition(":")[2]))

    def placed(self, array: Any) -> Any:
        """An array where the shards are; the caller gives it away. On an abstract mesh there is no such place."""
        stays = not self.on_gpus or self.carrier is None or not isinstance(array, np.ndarray)
        return array if stays else self.memory.array(array)

    @property
    def rank(self) -> int:
        """The number of this rank; 0 on an abstract mesh."""
        return 0 if self.carrier is None else self.carrier.rank

    @property
    def transport(self) -> Transport:
        """The transport of messages; UserError (MLC0969) on an abstract mesh."""
        if self.carrier is None:
            raise UserError("the mesh is abstract: programs on it are lowered and reported, and not run",
                            code="MLC0969", hint="leave out abstract=True, in a job of as many ranks")
        return self.carrier

    @contextmanager
    def compiling_once(self) -> Iterator[None]:
        """Context in which the first process of each host compiles, and the others after it, from the cache."""
        together, first = len(self.neighbours) > 1, self.rank == self.neighbours[0]
        if together and not first:
            self.transport.barrier(group=self.neighbours)
        try:
            yield
        finally:                                           # others wait for it, also where it is refused
            if together and first:
                self.transport.barrier(group=self.neighbours)

    def agree(self, what: str, *parts: bytes) -> None:
        """RankError (MLC0972) unless all ranks do the same: call this with equal texts and bytes."""
        self.begin_agreement(what, *parts)()

    def begin_agreement(self, what: str, *parts: bytes) -> Callable[[], None]:
        """Tell the other ranks what this one does; the function that waits for theirs, and raises as `agree` does."""
        if self.topology.ranks == 1:
            return lambda: None
        digest = hashlib.sha256(what.encode())
        for part in parts:
            digest.update(len(part).to_bytes(8, "little") + part)
        mine = np.frombuffer((digest.digest() + what.encode())[:DESCRIBED].ljust(DESCRIBED, b"\0"), np.uint8)
        finish = collectives.begin_all_gather(self.transport, tuple(range(self.topology.ranks)), mine,
                                              name="agreement")
        return lambda: self._check_agreement(what, mine, finish())

    def _check_agreement(self, what: str, mine: Array, found: Sequence[Array]) -> None:
        """RankError (MLC0972) unless all ranks have sent the same message."""
        other = next((rank for rank, x in enumerate(found) if not np.array_equal(x, mine)), None)
        if other is None:
            return
        theirs = found[other].tobytes()[32:].rstrip(b"\0").decode("utf-8", "replace")
        if theirs != what[:len(theirs)] or not theirs:
            raise RankError(f"rank {self.rank} runs {what} on {self.device}, and rank {other} {theirs}", code="MLC0972",
                            ranks=[other], hint="all ranks do the same with tensors on a mesh, in the same order")
        raise RankError(f"rank {other} has other values in {what} than rank {self.rank}: what is not divided is the "
                        "same on every rank", code="MLC0972", ranks=[other],
                        hint="seed all ranks alike (mlc.manual_seed), or load the same data")

    def agree_on(self, array: Array, what: str) -> None:
        """RankError (MLC0972) unless all ranks have the same array; nothing on an abstract mesh."""
        if self.carrier is not None:
            checksum = zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
            self.agree(f"{what} of a {array.dtype.name}{list(array.shape)}", checksum.to_bytes(4, "little"))

    def group(self, axes: Axes) -> tuple[int, ...]:
        """The ranks that differ from this one along some axes only, by position."""
        if axes not in self.groups:
            self.groups[axes] = self.topology.group(self.rank, axes)
        return self.groups[axes]


def make(topology: Mesh, abstract: bool = False, overlap: bool | None = None, device_type: str = "cpu") -> RankMesh:
    """The mesh of all ranks of this thread's job with these axes, one for equal ones; UserError (MLC0969) if the job
    has not as many ranks, unless it is abstract.

    overlap      whether collectives overlap with computation; None if they do between hosts, where networks carry
                 messages
    device_type  where the shards are; of `cuda` each rank takes the GPU of its number on the host
    """
    transport = None if abstract else current.transport() or _alone
    if transport is not None and transport.size != topology.ranks:
        raise UserError(f"a mesh of {' x '.join(map(str, topology.sizes))} needs {topology.ranks} ranks, and there "
                        f"{'is' if transport.size == 1 else 'are'} {transport.size}", code="MLC0969",
                        hint="start as many (mpiexec -n N, torchrun, mlc run --ranks N), and call "
                             "mlc.distributed.init_process_group()")
    if (known := _known(topology, transport, overlap, device_type)) is not None:
        return known
    neighbours = (0,) if transport is None else _neighbours(transport)
    place = device_type if device_type == "cpu" or transport is None else _gpu(transport, neighbours)
    with _making:                                          # another thread may have made it in the meantime
        known = _known(topology, transport, overlap, device_type)
        if known is None:
            known = RankMesh(topology, transport, len(_made), neighbours,
                             _has_network(transport, neighbours) if overlap is None else overlap, overlap, place)
            _made.append(known)
        return known


def _has_network(transport: Transport | None, neighbours: Sequence[int]) -> bool:
    """Whether a network carries some of the messages; within a host, processors copy them."""
    return transport is not None and transport.backend != "threads" and len(neighbours) < transport.size


def _known(topology: Mesh, transport: Transport | None, overlap: bool | None, device_type: str) -> RankMesh | None:
    """The mesh with these axes that has been made before."""
    return next((m for m in list(_made) if m.topology == topology and m.carrier is transport and m.asked == overlap
                 and m.on_gpus == (device_type != "cpu")), None)


def _gpu(transport: Transport, neighbours: Sequence[int]) -> str:
    """The GPU of this rank: that of its number on the host, or the only one that it sees. Raises what others would
    wait for: there is none, or NCCL is not installed."""
    from mlc.backends.cuda import devices
    communicators(transport)
    number = transport.rank if transport.backend == "threads" else neighbours.index(transport.rank)
    return f"cuda:{devices.device(0 if devices.count() == 1 else number).ordinal}"


def _neighbours(transport: Transport) -> tuple[int, ...]:
    """The ranks that are processes of this host; all ranks call this together."""
    if transport.size == 1 or transport.backend == "threads":
        return (transport.rank,)
    name = np.zeros(64, np.uint8)
    host = os.fsencode(os.uname().nodename)[:64]
    name[:len(host)] = np.frombuffer(host, np.uint8)
    names = collectives.all_gather(transport, tuple(range(transport.size)), name)
    return tuple(rank for rank, other in enumerate(names) if np.array_equal(other, name))


def numbered(number: int) -> RankMesh:
    """The mesh of the device `mesh:N`; BackendError (MLC0969) if there is none."""
    if number >= len(_made):
        raise BackendError(f"there is no mesh:{number}", code="MLC0969",
                           hint='mlc.distributed.mesh({"data": 2}) makes one')
    return _made[number]
