"""Assignment of the operations of a kernel to stages, and of values to be materialized for later stages.

Cheap values are recomputed in each stage that uses them; others are materialized if memory permits. The choice is
recorded on the kernel: `stage` on each reduction, `stage` and `materialize` on materialized values, and the stage of
each result. dialects/tensor/stages.py interprets it.
"""

from __future__ import annotations

from mlc.dialects.tensor.iteration import IterationDomain
from mlc.dialects.tensor.reduce import Reduce
from mlc.dialects.tensor.stages import Materialized, Stages
from mlc.dialects.tensor.traits import is_cheap
from mlc.ir.core import Block, Value
from mlc.ir.machine import Machine
from mlc.ir.sizes import Dim
from mlc.ir.types import i1

BLOCK = 64
"""Number of strided slices that a scratch buffer holds at a time."""
SEVERAL = 16384
"""Most elements of a slice of which there are several scratch buffers: a machine may have room for a longer one."""


def plan(body: Block, domain: IterationDomain, maps: tuple[tuple[Dim, ...], ...],
         machine: Machine) -> Stages:
    """Assign stages to the operations of a kernel's body, recorded as attributes."""
    stage_of: dict[Value, int] = dict.fromkeys(body.args, 0)
    for op in body:
        first = max((stage_of[v] for v in op.operands), default=0)
        if isinstance(op, Reduce):
            op.attrs["stage"] = first
        stage_of.update(dict.fromkeys(op.results, first + isinstance(op, Reduce)))
    outputs = body.terminator.operands
    at_points = [stage_of[v] for v in outputs if domain.has_all_points(v.type.shape)]
    count = 1 + max([*(op.attrs["stage"] for op in body if isinstance(op, Reduce)), *at_points], default=0)
    stages = Stages(body, domain, maps, count, tuple(
        stage_of[v] if domain.has_all_points(v.type.shape) else count for v in outputs))
    if count > 1:
        _materialize(stages, machine)
    return stages


def _materialize(stages: Stages, machine: Machine) -> None:
    """Choose values in reverse order: the operands of a materialized value need not be recomputed for it."""
    claimed: set[int] = set()
    points, in_slice = stages.domain.points, stages.domain.in_slice
    for op in reversed(list(stages.body)):
        if op.terminator or is_cheap(op) or isinstance(op, Reduce):
            continue
        v = op.results[0]
        needed = {(s, at) for s in range(stages.count + 1) for value, at in stages.evaluated(s) if value is v}
        if len({s for s, _ in needed}) < 2 or any(at not in (points, in_slice) for _, at in needed):
            continue
        slot = _memory(stages, v, max(s for s, _ in needed), claimed, in_slice in {at for _, at in needed}, machine)
        if slot is not None:
            if slot >= 0 and stages.outputs[slot] is not v:
                claimed.add(slot)
            op.attrs["stage"] = min(s for s, _ in needed)
            op.attrs["materialize"] = slot if slot >= 0 else "scratch"
            stages.materialized[v] = Materialized(op.attrs["stage"], slot if slot >= 0 else None)


def _memory(stages: Stages, v: Value, last: int, claimed: set[int], anywhere: bool,
            machine: Machine) -> int | None:
    """Memory for `v` up to stage `last`: the index of a result, -1 for a scratch buffer, None if there is none."""
    for i, (out, until) in enumerate(zip(stages.outputs, stages.stores)):
        if out is v or (until < stages.count and out.type == v.type and until >= last and i not in claimed):
            return i
    along = len(stages.domain.shape) - 1 in stages.domain.reduced
    scratches = sum(i is None for _, i in stages.materialized.values())
    several = min(SEVERAL, machine.scratch_elements)
    most = several // BLOCK if not along else several if scratches else machine.scratch_elements
    fits = isinstance(stages.length, int) and stages.length <= most and scratches < machine.scratches
    return -1 if fits and v.type.dtype != i1 and not anywhere else None
