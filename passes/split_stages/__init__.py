"""Make the programs of the ranks of a pipeline, which differ in their stages.

takes  PARTITIONED, where `shard.stage` and `shard.microbatch` may say where values are computed
gives  PARTITIONED, with a function @main_position_N for the ranks at each position of the axis `stage`, in place of
       @main; it has messages, and calls of functions of its tasks, such as @main_forward_0
why    the order of the work, and what is sent, are explicit: printed, counted, and interpreted with all ranks at once

Each operation is at the stage of its operands (placement.py); what follows from arguments alone is computed wherever it
is used. Forward and backward of a microbatch at a stage are a task, and schedules.py orders the tasks of a rank. A
value is sent when the task that computes it has ended, and received before the first task that uses it. What the
forward part computes for backward alone is computed there. After all tasks comes what needs all microbatches: the
update of weights.

On a mesh without an axis for stages, each rank has all of them, and works on the microbatches in their order.
"""

from __future__ import annotations

from mlc.dialects import shard
from mlc.dialects.func import Func
from mlc.dialects.shard.mesh import STAGE, Mesh
from mlc.dialects.shard.stages import NOWHERE
from mlc.ir.core import Op
from mlc.ir.diag import IRError
from mlc.ir.passes import Pass
from mlc.passes.forms import PARTITIONED
from mlc.passes.split_stages import schedules
from mlc.passes.split_stages.placement import Placement
from mlc.passes.split_stages.programs import write
from mlc.passes.split_stages.tasks import Tasks


def run(module: Op) -> None:
    """Split every partitioned function that has stages, or arguments at one."""
    for function in list(module.inside(Func)):
        if "partitioned" in function.attrs and "position" not in function.attrs:
            marks = list(function.inside(shard.PipelineMark))
            held = any(s.stage >= 0 for s in function.attrs["arg_shardings"])
            if held or (marks and STAGE in function.attrs["mesh"].axes):
                split(function)
            else:
                for op in marks:
                    op.replace_by(op.x)


def split(function: Func) -> None:
    """Replace a function by those of all positions."""
    mesh: Mesh = function.attrs["mesh"]
    _check_axis(function)
    placement = Placement.of_function(function)
    ranks = mesh.size((STAGE,))
    schedule = placement.schedule or (schedules.DEFAULT if placement.stages <= ranks else "interleaved")
    if placement.stages:
        problem = schedules.problem(schedule, ranks, placement.stages, placement.microbatches)
        if problem is not None:
            raise IRError(f"@{function.sym_name}: {problem}", code="MLC0983", loc=function.loc,
                          hint=f'the mesh has an axis "{STAGE}" of at most as many ranks as there are stages; '
                               "interleaved stages are a multiple of that")
        if schedule != "interleaved" and placement.stages > ranks:
            for op in function.inside(shard.Stage):
                op.attrs["stage"] = schedules.position(schedule, op.stage, ranks, placement.stages)
            placement = Placement.of_function(function)
            _check_arguments(function, placement, schedule)
    write(function, Tasks.of(function, placement, schedule, ranks), mesh)


def _check_arguments(function: Func, placement: Placement, schedule: str) -> None:
    """The weights of stages that are one are where that one is."""
    names = function.attrs.get("arg_names", ())
    for i, (arg, sharding) in enumerate(zip(function.args, function.attrs["arg_shardings"])):
        at = {place.stage for op in arg.users if not op.terminator and not (place := placement.place_of(op)).backward}
        if sharding.stage >= 0 and at - {NOWHERE} and sharding.stage not in at:
            name = f" {names[i]}" if i < len(names) else ""
            raise IRError(f"@{function.sym_name}: argument{name} is on the ranks at position {sharding.stage}, and "
                          f"schedule {schedule} uses it at position {max(at)}", code="MLC0987", loc=function.loc,
                          hint="mlc.distributed.distribute(model, mesh, plan, schedule) puts it there")


def _check_axis(function: Func) -> None:
    """The axis of stages divides no tensor: ranks along it have other work, and no collectives together."""
    shardings = [*function.attrs["arg_shardings"], *function.attrs["result_shardings"]]
    at = next((op.loc for op in function.inside(shard.Collective) if STAGE in op.axes), function.loc)
    if any(STAGE in s.used for s in shardings) or at is not function.loc:
        raise IRError(f"a tensor is divided along axis {STAGE!r}, which has the stages of a pipeline", code="MLC0962",
                      loc=at, hint="divide it along another axis of the mesh")


PASS = Pass(run, takes=PARTITIONED, gives=PARTITIONED, whole=False)
