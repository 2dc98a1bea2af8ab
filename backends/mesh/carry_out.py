"""Collectives of the dialect `shard`, carried out by a transport. The bits are those that `of_group` defines.

Where the blocks of an array along an axis are contiguous, they are sent from it and received into it, without a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlc.backends.mesh.meshes import RankMesh
from mlc.backends.transport import collectives
from mlc.backends.transport.collectives import divided
from mlc.backends.transport.transport import MESSAGE_TAGS, Request, wait_for
from mlc.dialects.shard.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    Collective,
    ReduceScatter,
    is_leading,
    sends_whole,
)
from mlc.dialects.shard.messages import Recv, Send
from mlc.dialects.shard.shift import Shift
from mlc.ir.types import to_numpy

Array = np.ndarray[Any, Any]


def begin(op: Collective, x: Array, mesh: RankMesh) -> Callable[[], Array]:
    """Send what this rank has; the function that waits for the others and gives the result of this rank."""
    group, transport = mesh.group(op.axes), mesh.transport
    match op:
        case AllReduce():
            return collectives.begin_all_reduce(transport, group, x, op.kind)
        case ReduceScatter():
            return collectives.begin_reduce_scatter(transport, group, divided(x, len(group), op.axis), op.kind)
        case Shift():
            return collectives.begin_shift(transport, group, x, op.offset)
        case AllGather():
            out, axis = np.empty(op.content.shape, x.dtype), op.axis
            into = _blocks(out, len(group), axis)
            finish = collectives.begin_all_gather(transport, group, x, into=into)
        case AllToAll():
            out, axis = np.empty(op.content.shape, x.dtype), op.concat
            into = _blocks(out, len(group), axis)
            finish = collectives.begin_all_to_all(transport, group, divided(x, len(group), op.split),
                                                  shapes=[_block_shape(out.shape, len(group), axis)] * len(group),
                                                  into=into)
        case _:
            raise AssertionError(f"{op.name} is no collective of segments")

    def joined() -> Array:
        parts = finish()
        return out if into is not None else np.concatenate(parts, axis, out)

    return joined


def start_sending(op: Send, x: Array, mesh: RankMesh) -> tuple[int, Request]:
    """Start to send a message; the rank that it goes to, and the request, which holds the array."""
    to, x = op.peer_of(mesh.rank), np.ascontiguousarray(x)
    mesh.transport.traffic.add("send", x.nbytes)
    return to, mesh.transport.send(to, MESSAGE_TAGS + op.tag, x)


def receive(op: Recv, mesh: RankMesh) -> Array:
    """The content of a message."""
    source, out = op.peer_of(mesh.rank), np.empty(op.content.shape, to_numpy(op.content.dtype))
    wait_for("shard.recv", source, mesh.transport.receive(source, MESSAGE_TAGS + op.tag, out),
             mesh.transport.deadline(None))
    return out


def scratch_bytes(op: Collective) -> int:
    """The bytes that it takes to carry one out, besides the operand and the result."""
    n, size, shape = op.group_size(), op.operand_bytes(), op.x.type.shape
    match op:
        case AllReduce() if sends_whole(n, size):          # the operands of the others
            return size * (n - 1)
        case AllReduce():                                  # uneven parts are received elsewhere than in the result
            return -(-size // n) if op.x.type.size % n else 0
        case ReduceScatter():                              # the parts of the others, and those for them
            return size * (n - 1) // n + (0 if is_leading(shape, op.axis) else size)
        case Shift():
            return 0
        case AllGather():
            return 0 if is_leading(op.content.shape, op.axis) else size * n
        case AllToAll():
            return size * ((not is_leading(shape, op.split)) + (not is_leading(op.content.shape, op.concat)))
        case _:
            raise AssertionError(f"{op.name} is no collective of segments")


def _blocks(x: Array, count: int, axis: int) -> list[Array] | None:
    """The blocks of an array along an axis, if each is contiguous."""
    return divided(x, count, axis) if is_leading(x.shape, axis) else None


def _block_shape(shape: Sequence[int], count: int, axis: int) -> tuple[int, ...]:
    return (*shape[:axis], shape[axis] // count, *shape[axis + 1:])
