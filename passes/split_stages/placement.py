"""Where the operations of a program are computed: at which stage, for which microbatch, forward or backward."""

from __future__ import annotations

from dataclasses import dataclass, field

from mlc.dialects import shard, tensor
from mlc.dialects.func import Func
from mlc.dialects.shard.stages import NOWHERE, is_number
from mlc.ir.core import Op, Value
from mlc.ir.diag import IRError
from mlc.passes.analysis.free_values import free_values


@dataclass(frozen=True)
class Place:
    """Where a value is computed.

    stage         the number of the stage, or NOWHERE
    microbatches  those that it depends on
    backward      whether it depends on a cotangent
    """

    stage: int = NOWHERE
    microbatches: frozenset[int] = frozenset()
    backward: bool = False


@dataclass
class Placement:
    """The places of the values of a function, and of its operations.

    stages        the number of stages
    microbatches  the number of microbatches
    schedule      what the program says of the order of microbatches; "" if nothing
    """

    of: dict[Value, Place] = field(default_factory=dict)
    ops: dict[Op, Place] = field(default_factory=dict)
    stages: int = 0
    microbatches: int = 1
    schedule: str = ""

    @staticmethod
    def of_function(function: Func) -> Placement:
        """The places of all values, which follow from those that are given; IRError if they do not."""
        out = Placement()
        for op in function.block:
            if not op.terminator:
                out.ops[op] = place = out._place(op)
                out.of |= dict.fromkeys(op.results, place)
        out._check_stages(function)
        return out

    def at(self, value: Value) -> Place:
        """The place of a value; arguments are at none."""
        return self.of.get(value, Place())

    def place_of(self, op: Op) -> Place:
        """The place of an operation of the function."""
        return self.ops[op]

    @property
    def backward(self) -> bool:
        """Whether there is a backward part."""
        return any(place.backward for place in self.of.values())

    def _place(self, op: Op) -> Place:
        taken = [self.at(v) for v in free_values(op)]
        numbers = frozenset().union(*(p.microbatches for p in taken))
        backward = any(p.backward for p in taken)
        match op:
            case shard.Stage():
                self.stages = max(self.stages, op.stage + 1)
                before = self.at(op.x).stage
                if before > op.stage and not backward:
                    op.fail(f"stage {op.stage} takes a value of stage {before}", code="MLC0982",
                            hint="number the stages in the order in which they are computed")
                return Place(op.stage, numbers, backward)
            case shard.Microbatch():
                self._schedule(op)
                self.microbatches = max(self.microbatches, op.number + 1)
                return Place(self.at(op.x).stage, numbers | {op.number}, backward)
            case shard.StageLike():
                like, x = self.at(op.like), self.at(op.x)
                return Place(x.stage if like.stage == NOWHERE else like.stage, numbers, True)
        return Place(self._common(op, backward), numbers, backward)

    def _schedule(self, op: shard.Microbatch) -> None:
        if op.schedule and self.schedule not in ("", op.schedule):
            op.fail(f"microbatches have the schedules {self.schedule} and {op.schedule}", code="MLC0984",
                    hint="call mlc.distributed.pipeline once in a compiled function")
        self.schedule = op.schedule or self.schedule

    def _common(self, op: Op, backward: bool) -> int:
        """The stage of the operands of an operation; numbers, such as losses and norms, are sent to where the rest is.
        """
        placed = [v for v in free_values(op) if self.at(v).stage != NOWHERE]
        at = {self.at(v).stage: v for v in placed if not is_number(v)}
        if len(at) == 1:
            return next(iter(at))
        if not at:
            stages = [self.at(v).stage for v in placed]
            return (min if backward else max)(stages, default=NOWHERE)
        if backward and isinstance(op, tensor.Add):
            return min(at)                                 # the gradient of what several stages use
        notes = tuple(f"stage {stage}: {v.op.name} ({v.op.loc})" for stage, v in sorted(at.items()) if v.op is not None)
        raise IRError(f"{op.name} takes values of stages {', '.join(map(str, sorted(at)))}", code="MLC0981", loc=op.loc,
                      notes=notes, hint="compute it in a module that mlc.distributed.stage puts at a stage, and "
                                        "pass all of its operands to it")

    def _check_stages(self, function: Func) -> None:
        used = {place.stage for place in self.of.values()}
        missing = [stage for stage in range(self.stages) if stage not in used]
        if missing:
            raise IRError(f"@{function.sym_name} has {self.stages} stages, and nothing is at stage {missing[0]}",
                          code="MLC0983", loc=function.loc, hint="number the stages from 0, without a gap")
        if self.schedule and not self.stages:
            raise IRError(f"@{function.sym_name} has microbatches, and no stages", code="MLC0983", loc=function.loc,
                          hint="mark the modules of each: mlc.distributed.stage(module, 0)")
