"""Several ranks: tensors that are divided among them, and process groups with the names of `torch.distributed`.

A mesh is a device of all ranks. Functions of tensors on it, eager or compiled, are divided by passes, which insert the
communication; `report` says before anything runs what is sent and held:

    mesh = mlc.distributed.mesh({"data": 2, "model": 2})
    model = mlc.distributed.distribute(model, mesh, mlc.distributed.FullySharded("data"))
    x = mlc.distributed.shard(x, "data", mesh=mesh)

A program for several ranks is started by `mlc run --ranks 4 train.py`, by `mpiexec -n 4 python train.py`, or by
`torchrun --nproc-per-node 4 train.py`, and begins with `init_process_group()`. Collectives take tensors in the CPU's
memory. Results are the same bits on all ranks, with all backends. A rank that fails, does not answer, or makes another
call than the others is an error on each that names the rank, the calls and their lines; nothing waits for ever.

Without a mesh, programs call collectives themselves, as in PyTorch:

    mlc.distributed.init_process_group()
    model = mlc.nn.parallel.DistributedDataParallel(model)

Example:
    >>> from mlc.backends.transport import threads
    >>> def mean(rank):
    ...     mlc.distributed.init_process_group()
    ...     x = mlc.tensor([float(rank)])
    ...     mlc.distributed.all_reduce(x, mlc.distributed.ReduceOp.AVG)
    ...     return x.item()
    >>> threads.run(4, mean)
    [1.5, 1.5, 1.5, 1.5]
"""

from __future__ import annotations

from typing import Any

from mlc.backends.transport.errors import RankError
from mlc.distributed import checkpoint
from mlc.distributed.cluster import Cluster
from mlc.distributed.collectives import (
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    monitored_barrier,
    reduce_scatter,
    reduce_scatter_tensor,
)
from mlc.distributed.device_mesh import DeviceMesh, from_local, local, mesh, placement, shard
from mlc.distributed.groups import (
    GroupMember,
    ProcessGroup,
    SpecialGroups,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    new_group,
)
from mlc.distributed.job import (
    destroy_process_group,
    get_node_local_rank,
    init_process_group,
    is_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
)
from mlc.distributed.measured import measured_machine, measured_report
from mlc.distributed.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from mlc.distributed.pipelines import pipeline, stage
from mlc.distributed.plans import ByName, FullySharded, distribute, replicated, shard_optimizer
from mlc.distributed.point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send
from mlc.distributed.rank_program import Report, lower, report
from mlc.distributed.reduction import ReduceOp
from mlc.distributed.ring import ring_attention
from mlc.distributed.rooted import broadcast, gather, reduce, scatter
from mlc.distributed.simulation import Communication
from mlc.distributed.time_model import Machine, Timing
from mlc.distributed.transformer_plans import PlanCost, Plans, Transformer, TransformerPlan, plan_transformer
from mlc.distributed.work import Work
from mlc.frontend import unsupported_api

__all__ = [
    "ByName", "Cluster", "Communication", "DeviceMesh", "FullySharded", "GroupMember", "Machine", "P2POp", "PlanCost",
    "Plans", "ProcessGroup", "RankError", "ReduceOp", "Report", "Timing", "Transformer", "TransformerPlan", "Work",
    "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single",
    "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list", "checkpoint", "destroy_process_group",
    "distribute", "from_local", "gather", "gather_object", "get_backend", "get_global_rank", "get_group_rank",
    "get_node_local_rank", "get_process_group_ranks", "get_rank", "get_world_size", "group", "init_process_group",
    "irecv", "is_available", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "isend", "local", "lower", "measured_machine", "measured_report", "mesh",
    "monitored_barrier", "new_group", "pipeline", "placement", "plan_transformer", "recv", "recv_object_list", "reduce",
    "reduce_scatter", "reduce_scatter_tensor", "replicated", "report", "ring_attention", "scatter",
    "scatter_object_list", "send", "send_object_list", "shard", "shard_optimizer", "stage",
]
_STORE = ("gloo's stores are torch.distributed's, and MPI has none", "mlc.distributed.broadcast_object_list")
_WHY = {
    **dict.fromkeys("Store TCPStore FileStore HashStore PrefixStore rendezvous".split(), _STORE),
    "rpc": ("a rank calls no functions of another one", "mlc.distributed.send_object_list"),
    "reduce_op": ("PyTorch replaced it", "mlc.distributed.ReduceOp"),
}


class group(metaclass=SpecialGroups):
    """PyTorch's class of special groups: `group.WORLD` is the default one.

    `group.WORLD` is None before `init_process_group`, and may be given wherever a group may.

    Returns:
        Nothing: it has no instances.

    Example:
        >>> mlc.distributed.group.WORLD is None
        True
    """


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'mlc.distributed' has no attribute {name!r}", name=name)
    raise unsupported_api.error("mlc.distributed", name, _WHY.get(name, ("mlc has not got it", "the names in __all__")))
