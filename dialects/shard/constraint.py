"""shard, constraint: how a tensor is to be divided, said in a program on whole tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.dialects.shard.mesh import Axes
from mlc.dialects.tensor import parts
from mlc.dialects.tensor.base import CopyOp
from mlc.dialects.tensor.sharding_rule import ShardingRule, by_axes
from mlc.dialects.tensor.traits import Cost, Iteration
from mlc.ir.core import Value
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType


class Shard(CopyOp, name="shard.shard"):
    """result = x, divided among the ranks along `dims`, the axes of the mesh for each dimension

        %r = shard.shard %x {dims = [["data"], []]} : tensor<8x3xf32>

    A program that is not partitioned has no ranks; there the pass `erase_shardings` replaces it by x. Its cotangent is
    not constrained.
    """

    on_parts = parts.each_part
    x: Value
    dims: tuple[Axes, ...]
    cost = Cost.FREE
    iteration = Iteration.POINTWISE
    moves_elements = True

    def infer(self) -> TensorType:
        x, = self.tensors()
        if len(self.dims) != x.rank:
            self.refuse(f"{len(self.dims)} dimensions are specified, and x has {x.rank}", "MLC0962",
                        hint="give the axes of each dimension, () for one that is not divided")
        return x

    def sharding_rule(self) -> ShardingRule:
        return by_axes(self)

    def fold(self) -> None:
        """It says something of a constant, too."""

    def ref(self, x: Any) -> Any:
        return x

    def vjp(self, ct: Value) -> list[Value | None]:
        return [ct]

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        return Shard(operands[0], ((), *self.dims)).result
