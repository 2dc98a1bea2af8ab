"""shard, shift: blocks that go around a ring of ranks.

A program on whole tensors has `shard.roll`; in that of one rank it is upstream's `shard.shift`, of the rows that come
from other ranks. `shard.after` says when they may come, so that they are not all there at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlc.dialects.shard.collectives import Collective
from mlc.dialects.shard.mesh import Axes, Mesh
from mlc.dialects.tensor import parts
from mlc.dialects.tensor.base import Array, CopyOp
from mlc.dialects.tensor.sharding_rule import ShardingRule, by_axes, labelled
from mlc.dialects.tensor.slicing import Concat, Slice
from mlc.dialects.tensor.traits import Cost, Iteration
from mlc.ir.core import Value
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType


class Shift(Collective, name="shard.shift"):
    """result = x of the rank `offset` positions before, around the ring of the group

        %r = shard.shift %x {mesh = #shard.mesh<axes = ["d"], sizes = [3]>, axes = ["d"], offset = 1} : tensor<2xf32>
    """

    offset: int

    def infer(self) -> TensorType:
        return self._operand()

    def of_group(self, xs: Sequence[Array]) -> list[Array]:
        return [xs[(i - self.offset) % len(xs)] for i in range(len(xs))]

    def bytes_sent(self) -> int:
        return self.operand_bytes() * self.messages_sent()

    def messages_sent(self) -> int:
        return int(self.offset % self.group_size() != 0)


class Roll(CopyOp, name="shard.roll"):
    """result[i] = x[(i - offset) mod n] along an axis of n elements

        %r = shard.roll %x {axis = 0, offset = 1} : tensor<4x3xf32>

    Where the axis is divided among ranks, only rows that another rank has are sent; n slices that are joined would be
    gathered.
    """

    on_parts = parts.each_part
    x: Value
    axis: int
    offset: int
    cost = Cost.CHEAP
    iteration = Iteration.INDEXED
    moves_elements = True

    def infer(self) -> TensorType:
        x, = self.tensors()
        self.check_axis(self.axis, x.rank)
        if not isinstance(x.shape[self.axis], int):
            self.refuse(f"axis {self.axis} has a symbolic size", "MLC0962", hint="fix the size of what goes around")
        return x

    def sharding_rule(self) -> ShardingRule:
        return by_axes(self)

    def ref(self, x: Array) -> Array:
        return np.roll(x, self.offset, self.axis)

    def vjp(self, ct: Value) -> list[Value | None]:
        return [Roll(ct, self.axis, -self.offset).result]

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        return Roll(operands[0], self.axis + 1, self.offset).result

    def on_ranks(self, x: Value, mesh: Mesh | None, axes: Axes) -> Value:
        """The shard of the result, given that of x, whose axis is divided along some axes of a mesh."""
        n = x.type.shape[self.axis]
        ranks, over = divmod(self.offset % (n * (1 if mesh is None else mesh.size(axes))) if n else 0, max(1, n))
        whole = [(0, n)] if not over else [(n - over, n), (0, n - over)]
        parts = [self._moved(self._rows(x, start, stop), mesh, axes, ranks + bool(over and not i))
                 for i, (start, stop) in enumerate(whole)]
        return parts[0] if len(parts) == 1 else Concat(tuple(parts), self.axis).result

    def _rows(self, x: Value, start: int, stop: int) -> Value:
        shape = x.type.shape
        if (start, stop) == (0, shape[self.axis]):
            return x
        starts = tuple(start if axis == self.axis else 0 for axis in range(len(shape)))
        stops = tuple(stop if axis == self.axis else n for axis, n in enumerate(shape))
        return Slice(x, starts, stops, (1,) * len(shape)).result

    def _moved(self, x: Value, mesh: Mesh | None, axes: Axes, offset: int) -> Value:
        if mesh is None or not axes or offset % mesh.size(axes) == 0:
            return x
        return Shift(x, mesh, axes, offset).result


class After(CopyOp, name="shard.after"):
    """result = x, which nothing uses before another value has been computed

        %r = shard.after %x, %earlier : (tensor<4x3xf32>, tensor<2xf32>) -> tensor<4x3xf32>

    It is no operation of a segment, as a collective is none.
    """

    on_parts = parts.each_part
    x: Value
    earlier: Value
    format = "$x `,` $earlier attr-dict `:` functional-type"
    cost = Cost.CHEAP
    iteration = Iteration.INDEXED
    moves_elements = True

    def infer(self) -> TensorType:
        return self.tensors()[0]

    def fold(self) -> None:
        """It says something of a constant, too."""

    def sharding_rule(self) -> ShardingRule:
        """The other value may be divided in any way."""
        x, earlier = (range(v.type.rank) for v in self.operands)
        return labelled(self, [list(x), [None for _ in earlier]], list(x))

    def ref(self, x: Array, earlier: Array) -> Array:
        return x

    def vjp(self, ct: Value) -> list[Value | None]:
        return [ct, None]

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value | None:
        return After(operands[0], operands[1]).result if batched[0] else None
