"""tensor, stages: the passes of a kernel over its reduction slices, with the computations and stores of each.

A reduction runs in the first stage in which all its operands are available: softmax computes its maximum in stage 0
and its sum in stage 1. A value with one element per point is stored in the first stage in which it is available, values
with one element per slice after the last stage. A value that a later stage needs is recomputed, or materialized: in its
own result, in a result of the same type that is stored later, or in a scratch buffer.

The pass fuse decides this (passes/fuse/stages.py) and records it on the kernel, where `Stages` reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from mlc.dialects.tensor.base import TensorOp
from mlc.dialects.tensor.iteration import IndexingMap, IterationDomain, operand_maps
from mlc.dialects.tensor.traits import Iteration
from mlc.ir import sizes
from mlc.ir.core import Block, Value
from mlc.ir.sizes import Dim


class Materialized(NamedTuple):
    """Where a value is materialized: the stage, and the result whose buffer holds it, or None for a scratch buffer."""

    stage: int
    result: int | None


class Stages:
    """The stages of a kernel's body; stage `count` is the epilogue after all of them.

    count    number of stages
    stores   the stage in which each result is stored
    """

    def __init__(self, body: Block, domain: IterationDomain, maps: tuple[tuple[Dim, ...], ...], count: int,
                 stores: tuple[int, ...]) -> None:
        self.body, self.domain, self.maps, self.count, self.stores = body, domain, maps, count, stores
        self.outputs = body.terminator.operands
        ops = [op for op in body if isinstance(op, TensorOp)]
        self.reduces: list[Any] = [op for op in ops if op.iteration is Iteration.REDUCE]
        self.scans: list[Any] = [op for op in ops if op.iteration is Iteration.SCAN]
        self.materialized: dict[Value, Materialized] = {}
        for op in reversed(list(body)):
            if (place := op.attrs.get("materialize")) is not None:
                self.materialized[op.results[0]] = Materialized(op.attrs["stage"],
                                                                None if place == "scratch" else place)

    @property
    def length(self) -> Dim:
        """Number of points of a reduction slice."""
        return sizes.product(self.domain.shape[d] for d in self.domain.reduced)

    def reduced(self, stage: int) -> list[Any]:
        """The reductions of a stage."""
        return [op for op in self.reduces if op.attrs.get("stage") == stage]

    def scanned(self, stage: int) -> list[Any]:
        """The scans that a stage needs, in topological order."""
        return [v.op for v, _ in self.evaluated(stage) if v.op in self.scans]

    def stored_for_later(self, stage: int) -> list[Value]:
        """The values materialized in a stage outside of their own result."""
        return [v for v, (when, i) in self.materialized.items()
                if when == stage and (i is None or self.outputs[i] is not v)]

    def roots(self, stage: int) -> Iterator[tuple[Value, IndexingMap]]:
        """The operands of reductions and the results that a stage evaluates, with the maps."""
        for op in self.reduced(stage):
            yield from ((v, self.domain.points) for v in op.operands)
        for v, map, when in zip(self.outputs, self.maps, self.stores):
            if when == stage:
                yield v, map

    def evaluated(self, stage: int) -> dict[tuple[Value, IndexingMap | None], None]:
        """Every value that a stage evaluates or reads, with its map, in topological order."""
        out: dict[tuple[Value, IndexingMap | None], None] = {}
        later = ((v, self.domain.points) for v in self.stored_for_later(stage))
        work: list[tuple[Value, IndexingMap | None, bool]] = [(v, at, False) for v, at in (*self.roots(stage), *later)]
        while work:
            v, at, done = work.pop()
            if done:
                out[v, at] = None
            elif (v, at) not in out:
                work.append((v, at, True))
                if v.op is not None and v.op not in self.reduces and not self.is_read_back(v, stage):
                    work += [(operand, e, False) for operand, e in operand_maps(v.op, at, self.domain)]
        return out

    def is_read_back(self, v: Value, stage: int) -> bool:
        """Whether a stage reads a value that an earlier one has materialized."""
        return v in self.materialized and self.materialized[v].stage < stage

    def reads(self) -> dict[Value, list[tuple[int, IndexingMap | None]]]:
        """For each argument of the body, the stages and maps that read it."""
        out: dict[Value, list[tuple[int, IndexingMap | None]]] = {v: [] for v in self.body.args}
        for stage in range(self.count + 1):
            for v, at in self.evaluated(stage):
                if v in out:
                    out[v].append((stage, at))
        return out
