"""Collectives of the dialect `shard`, carried out by a transport. The bits are those that `of_group` defines."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.backends.mesh.meshes import RankMesh
from mlc.backends.transport import collectives
from mlc.dialects.shard.collectives import AllGather, AllReduce, AllToAll, Collective, ReduceScatter

Array = np.ndarray[Any, Any]


def carry_out(op: Collective, x: Array, mesh: RankMesh) -> Array:
    """The result of this rank."""
    group, transport = mesh.group(op.axes), mesh.transport
    match op:
        case AllReduce():
            return collectives.all_reduce(transport, group, x, op.kind)
        case ReduceScatter():
            return collectives.reduce_scatter(transport, group, np.split(x, len(group), op.axis), op.kind)
        case AllGather():
            return np.concatenate(collectives.all_gather(transport, group, x), op.axis)
        case AllToAll():
            return np.concatenate(collectives.all_to_all(transport, group, np.split(x, len(group), op.split)),
                                  op.concat)
        case _:
            raise AssertionError(f"{op.name} is no collective of segments")
