"""shard, stages: at which stage of a pipeline, and for which microbatch, operations of a program are computed.

A program on whole tensors says so of some values; the pass `split_stages` decides the rest. Everywhere else these
operations are identities. An operation is at the stage of its operands, and a value is moved where a module of a later
stage takes it, or an operation at one (`mark_stages`). The cotangent of a value that has been moved is moved back, so
that backward runs at the stage of its forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.dialects.tensor import parts
from mlc.dialects.tensor.base import CopyOp
from mlc.dialects.tensor.sharding_rule import ShardingRule, by_axes, labelled
from mlc.dialects.tensor.traits import Cost, Iteration
from mlc.ir.core import Value
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType

NOWHERE = -1
"""The stage of values that follow from arguments alone: they are computed wherever they are used."""


class PipelineMark(CopyOp):
    """An identity that says where x is computed, or what of it follows."""

    on_parts = parts.each_part
    x: Value
    cost = Cost.FREE
    iteration = Iteration.POINTWISE
    moves_elements = True

    def fold(self) -> None:
        """It says something of a constant, too."""

    def sharding_rule(self) -> ShardingRule:
        return by_axes(self)

    def ref(self, x: Any, *others: Any) -> Any:
        return x


class Stage(PipelineMark, name="shard.stage"):
    """result = x, which is used at a stage of the pipeline

        %r = shard.stage %x {stage = 1} : tensor<8x3xf32>
    """

    x: Value
    stage: int

    def infer(self) -> TensorType:
        x, = self.tensors()
        if self.stage < 0:
            self.refuse(f"there is no stage {self.stage}", "MLC0986", hint="stages are numbered from 0")
        return x

    def vjp(self, ct: Value) -> list[Value | None]:
        return [StageLike(ct, self.x).result]

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        return Stage(operands[0], self.stage).result


class Microbatch(PipelineMark, name="shard.microbatch"):
    """result = x, which is of a microbatch, and so is what is computed of it

        %r = shard.microbatch %x {number = 0, schedule = "1f1b"} : tensor<8x3xf32>

    The cotangent of the loss of a microbatch is where its backward begins. The schedule is the order in which ranks
    work on microbatches, one for the whole program.
    """

    x: Value
    number: int
    schedule: str = ""

    def infer(self) -> TensorType:
        x, = self.tensors()
        if self.number < 0:
            self.refuse(f"there is no microbatch {self.number}", "MLC0986", hint="microbatches are numbered from 0")
        return x

    def vjp(self, ct: Value) -> list[Value | None]:
        return [StageLike(ct, self.x).result]

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        return Microbatch(operands[0], self.number, self.schedule).result


class StageLike(PipelineMark, name="shard.stage_like"):
    """result = x, a cotangent, which is used at the stage of another value, and for its microbatch

        %r = shard.stage_like %x, %like : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<8x3xf32>
    """

    x: Value
    like: Value
    format = "$x `,` $like attr-dict `:` functional-type"

    def infer(self) -> TensorType:
        return self.tensors()[0]

    def sharding_rule(self) -> ShardingRule:
        """Of the other value nothing but its stage counts, however it is divided."""
        x, like = (range(v.type.rank) for v in self.operands)
        return labelled(self, [list(x), [None for _ in like]], list(x))

    def vjp(self, ct: Value) -> list[Value | None]:
        return [StageLike(ct, self.x).result, None]

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        return StageLike(operands[0], operands[1]).result


def is_number(value: Value) -> bool:
    """Whether a value is one number, with or without dimensions."""
    return not isinstance(value.type, TensorType) or all(n == 1 for n in value.type.shape)
