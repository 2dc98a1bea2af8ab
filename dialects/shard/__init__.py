"""shard: meshes of ranks, shardings of tensors over them, and the collectives of a program of one rank.

The names are those of upstream's `shard` dialect (`mesh` before LLVM 21). A program on whole tensors has
`shard.shard`, which says how a tensor is to lie; `propagate_shardings` decides the rest, and `partition` makes the
program of one rank, in which tensors are shards and communication is explicit.
"""

from mlc.dialects.shard.collectives import (
    AllGather,
    AllReduce,
    AllSlice,
    AllToAll,
    Collective,
    ProcessIndex,
    ReduceScatter,
)
from mlc.dialects.shard.constraint import Shard
from mlc.dialects.shard.mesh import Axes, Mesh, Sharding
from mlc.dialects.shard.messages import Message, Recv, Send
from mlc.dialects.shard.requests import (
    AllGatherStart,
    AllReduceStart,
    AllToAllStart,
    ReduceScatterStart,
    RequestType,
    ShiftStart,
    Start,
    Wait,
)
from mlc.dialects.shard.shift import After, Roll, Shift
from mlc.dialects.shard.stages import Microbatch, PipelineMark, Stage, StageLike

__all__ = [
    "After", "AllGather", "AllGatherStart", "AllReduce", "AllReduceStart", "AllSlice", "AllToAll", "AllToAllStart",
    "Axes", "Collective", "Mesh", "Message", "Microbatch", "PipelineMark", "ProcessIndex", "Recv", "ReduceScatter",
    "ReduceScatterStart", "RequestType", "Roll", "Send", "Shard", "Sharding", "Shift", "ShiftStart", "Stage",
    "StageLike", "Start", "Wait",
]
