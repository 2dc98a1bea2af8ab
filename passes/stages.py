"""The stages of a kernel: how often it goes through its reduction slices, and what it computes and stores each time.

A reduction runs in the first stage in which all that it reads is known: softmax takes its maximum in stage 0 and its
sum in stage 1. A value with one element per point is stored in the first stage in which it is known, values with one
element per slice after the last stage. What a later stage needs again is computed again if that is cheap. What is not
is materialized: in its own result, in a result of the same type that is stored later, or in a scratch buffer.

`plan` decides this, for the pass fuse, and writes it on the kernel: `stage` on each reduction, `stage` and
`materialize` on what is materialized, and the stage of each result. `Stages` reads it there, for all passes below.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mlc.dialects import tensor as tn
from mlc.dialects.tensor.iteration import IndexingMap, IterationDomain, operand_maps
from mlc.dialects.tensor.kernel import Kernel
from mlc.dialects.tensor.reduce import Reduce
from mlc.ir import sizes
from mlc.ir.core import Block, Value
from mlc.ir.sizes import Dim
from mlc.ir.types import i1
from mlc.passes.spaces import is_cheap

SCRATCH, SCRATCHES, BLOCK = 16384, 4, 64
"""The elements of a scratch buffer, how many there may be, and how many slices across memory one holds at a time."""


class Materialized(NamedTuple):
    """Where a value is stored for later stages: in which stage, and in the buffer of which result; None: a scratch."""

    stage: int
    result: int | None


class Stages:
    """The stages of one kernel's body; stage `count` stands for what comes after all of them.

    count    how many there are
    stores   the stage in which each result is stored
    """

    def __init__(self, body: Block, domain: IterationDomain, maps: tuple[IndexingMap, ...], count: int,
                 stores: tuple[int, ...]) -> None:
        self.body, self.domain, self.maps, self.count, self.stores = body, domain, maps, count, stores
        self.outputs = body.terminator.operands
        self.reduces = [op for op in body if isinstance(op, Reduce)]
        self.scans = [op for op in body if isinstance(op, tn.Cumulative)]
        self.materialized: dict[Value, Materialized] = {}
        for op in reversed(list(body)):
            if (place := op.attrs.get("materialize")) is not None:
                self.materialized[op.results[0]] = Materialized(op.attrs["stage"],
                                                                None if place == "scratch" else place)

    @classmethod
    def of(cls, kernel: Kernel) -> Stages:
        """What stands on a kernel."""
        return cls(kernel.body.block, kernel.iteration_domain(), kernel.result_maps, kernel.stages,
                   kernel.stores or (0,) * len(kernel.result_maps))

    @property
    def length(self) -> Dim:
        """How many points a reduction slice has."""
        return sizes.product(self.domain.shape[d] for d in self.domain.reduced)

    def reduced(self, stage: int) -> list[Reduce]:
        """The reductions of a stage."""
        return [op for op in self.reduces if op.attrs["stage"] == stage]

    def scanned(self, stage: int) -> list[tn.Cumulative]:
        """The cumulative operations that a stage needs, each after those that it reads."""
        return [v.op for v, _ in self.evaluated(stage) if isinstance(v.op, tn.Cumulative)]

    def stored_for_later(self, stage: int) -> list[Value]:
        """The values materialized in a stage in other memory than that of their own result."""
        return [v for v, (when, i) in self.materialized.items()
                if when == stage and (i is None or self.outputs[i] is not v)]

    def roots(self, stage: int) -> Iterator[tuple[Value, IndexingMap]]:
        """The operands of reductions and the results that a stage evaluates, with their maps."""
        for op in self.reduced(stage):
            yield op.x, self.domain.points
        for v, map, when in zip(self.outputs, self.maps, self.stores):
            if when == stage:
                yield v, map

    def evaluated(self, stage: int) -> dict[tuple[Value, IndexingMap | None], None]:
        """Every value that a stage evaluates or reads, with its map, after those that it is computed from."""
        out: dict[tuple[Value, IndexingMap | None], None] = {}
        later = ((v, self.domain.points) for v in self.stored_for_later(stage))
        work: list[tuple[Value, IndexingMap | None, bool]] = [(v, at, False) for v, at in (*self.roots(stage), *later)]
        while work:
            v, at, done = work.pop()
            if done:
                out[v, at] = None
            elif (v, at) not in out:
                work.append((v, at, True))
                if v.op is not None and not isinstance(v.op, Reduce) and not self.is_read_back(v, stage):
                    work += [(operand, e, False) for operand, e in operand_maps(v.op, at, self.domain)]
        return out

    def is_read_back(self, v: Value, stage: int) -> bool:
        """Whether a stage reads a value that an earlier one has materialized."""
        return v in self.materialized and self.materialized[v].stage < stage

    def reads(self) -> dict[Value, list[tuple[int, IndexingMap | None]]]:
        """For each argument of the body the stages that read it, and by which maps."""
        out: dict[Value, list[tuple[int, IndexingMap | None]]] = {v: [] for v in self.body.args}
        for stage in range(self.count + 1):
            for v, at in self.evaluated(stage):
                if v in out:
                    out[v].append((stage, at))
        return out


# -- the plan ---------------------------------------------------------------------------------------------------------
def plan(body: Block, domain: IterationDomain, maps: tuple[IndexingMap, ...]) -> Stages:
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
        _materialize(stages)
    return stages


def _materialize(stages: Stages) -> None:
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
        place = _memory(stages, v, max(s for s, _ in needed), claimed, in_slice in {at for _, at in needed})
        if place is not None:
            if place >= 0 and stages.outputs[place] is not v:
                claimed.add(place)
            op.attrs["stage"] = min(s for s, _ in needed)
            op.attrs["materialize"] = place if place >= 0 else "scratch"
            stages.materialized[v] = Materialized(op.attrs["stage"], place if place >= 0 else None)


def _memory(stages: Stages, v: Value, last: int, claimed: set[int], anywhere: bool) -> int | None:
    """The result whose buffer holds `v` up to the stage `last`; -1 for a scratch, None if there is no place."""
    for i, (out, until) in enumerate(zip(stages.outputs, stages.stores)):
        if out is v or (until < stages.count and out.type == v.type and until >= last and i not in claimed):
            return i
    along = len(stages.domain.shape) - 1 in stages.domain.reduced
    scratches = sum(i is None for _, i in stages.materialized.values())
    fits = isinstance(stages.length, int) and stages.length <= (SCRATCH if along else SCRATCH // BLOCK) and (
        scratches < SCRATCHES)
    return -1 if fits and v.type.dtype != i1 and not anywhere else None
