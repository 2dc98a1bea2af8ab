"""The choice of a kernel's stages: what is computed in which, and what is materialized for later ones.

What is cheap is computed again in each stage that needs it; what is not is materialized, if there is a place for it.
Written on the kernel: `stage` on each reduction, `stage` and `materialize` on what is materialized, and the stage of
each result. dialects/tensor/stages.py reads it.
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
"""How many slices across memory a scratch buffer holds at a time."""


def plan(body: Block, domain: IterationDomain, maps: tuple[tuple[Dim, ...], ...],
         machine: Machine) -> Stages:
    """Choose the stages of a kernel's body, and write on its operations what is chosen of them."""
    known: dict[Value, int] = dict.fromkeys(body.args, 0)
    for op in body:
        first = max((known[v] for v in op.operands), default=0)
        if isinstance(op, Reduce):
            op.attrs["stage"] = first
        known.update(dict.fromkeys(op.results, first + isinstance(op, Reduce)))
    outputs = body.terminator.operands
    at_points = [known[v] for v in outputs if domain.has_all_points(v.type.shape)]
    count = 1 + max([*(op.attrs["stage"] for op in body if isinstance(op, Reduce)), *at_points], default=0)
    stages = Stages(body, domain, maps, count, tuple(
        known[v] if domain.has_all_points(v.type.shape) else count for v in outputs))
    if count > 1:
        _materialize(stages, machine)
    return stages


def _materialize(stages: Stages, machine: Machine) -> None:
    """Choose, from the last value to the first: what is materialized needs nothing again that it is computed from."""
    claimed: set[int] = set()
    points, in_slice = stages.domain.points, stages.domain.in_slice
    for op in reversed(list(stages.body)):
        if op.terminator or is_cheap(op) or isinstance(op, Reduce):
            continue
        v = op.results[0]
        needed = {(s, at) for s in range(stages.count + 1) for value, at in stages.evaluated(s) if value is v}
        if len({s for s, _ in needed}) < 2 or any(at not in (points, in_slice) for _, at in needed):
            continue
        place = _memory(stages, v, max(s for s, _ in needed), claimed, in_slice in {at for _, at in needed}, machine)
        if place is not None:
            if place >= 0 and stages.outputs[place] is not v:
                claimed.add(place)
            op.attrs["stage"] = min(s for s, _ in needed)
            op.attrs["materialize"] = place if place >= 0 else "scratch"
            stages.materialized[v] = Materialized(op.attrs["stage"], place if place >= 0 else None)


def _memory(stages: Stages, v: Value, last: int, claimed: set[int], anywhere: bool,
            machine: Machine) -> int | None:
    """The result whose buffer holds `v` up to the stage `last`; -1 for a scratch, None if there is no place."""
    for i, (out, until) in enumerate(zip(stages.outputs, stages.stores)):
        if out is v or (until < stages.count and out.type == v.type and until >= last and i not in claimed):
            return i
    along = len(stages.domain.shape) - 1 in stages.domain.reduced
    scratches = sum(i is None for _, i in stages.materialized.values())
    most = machine.scratch_elements // (1 if along else BLOCK)
    fits = isinstance(stages.length, int) and stages.length <= most and scratches < machine.scratches
    return -1 if fits and v.type.dtype != i1 and not anywhere else None
