"""shard, collectives: operations in which all ranks along some axes of the mesh take part.

They are defined by `of_group`, from the operands of all members of a group to their results, in the order of their
positions. Reductions combine in this order, in the accumulator type, so that their bits depend on nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects.combining import CombiningKind
from mlc.dialects.shard.mesh import Axes, Mesh
from mlc.dialects.tensor.base import Array, TensorOp, accumulator, kind, rounded
from mlc.dialects.tensor.traits import HostOp
from mlc.ir.core import Op, Value
from mlc.ir.diag import IRError
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType, i64, to_numpy

if TYPE_CHECKING:
    from mlc.ir.interp import Frame, Ranks


WHOLE, MORE = 1 << 18, 64
"""Most bytes of an operand that every rank sends to each other to have it reduced, and of what that is more than parts
of it and of the result."""


class Collective(HostOp, TensorOp, pure=True):
    """An operation of all ranks along `axes` of a mesh.

    It is pure, since all ranks have the same program: one that is removed or merged is so everywhere.
    """

    x: Value
    mesh: Mesh
    axes: Axes

    def group_size(self) -> int:
        """The number of ranks that take part together."""
        return self.mesh.size(self.axes)

    @property
    def content(self) -> TensorType:
        """The type of what it gives."""
        type = self.result.type
        assert isinstance(type, TensorType)
        return type

    def of_group(self, xs: Sequence[Array]) -> list[Array]:
        """The results of all members of a group, given their operands, by position."""
        raise NotImplementedError

    def bytes_sent(self) -> int:
        """The most bytes that a rank sends, by the algorithms of `backends/transport`: the least that suffice."""
        raise NotImplementedError

    def messages_sent(self) -> int:
        """The number of messages that a rank sends, by these algorithms: one to each other, in each phase."""
        return self.group_size() - 1

    def interpret(self, frame: Frame) -> Any:
        return ranks_of(self, frame).collective(self, frame[self.x])

    def _operand(self) -> TensorType:
        x, = self.tensors()
        if len(set(self.axes)) < len(self.axes):
            self.refuse(f"axes {list(self.axes)} are not distinct", "MLC0962")
        self.group_size()
        return x

    def operand_bytes(self) -> int:
        """The bytes of the operand of a rank."""
        return _bytes(self.x.type)

    def result_bytes(self) -> int:
        """The bytes of the result of a rank."""
        return _bytes(self.content)

    def _divided(self, x: TensorType, axis: int) -> TensorType:
        """A type with one dimension divided among the group."""
        n, count = x.shape[axis], self.group_size()
        if not isinstance(n, int) or n % count:
            self.refuse(f"dimension {axis}, of size {n}, is no multiple of {count}", "MLC0962")
        return x.with_shape((*x.shape[:axis], n // count, *x.shape[axis + 1:]))

    def _joined(self, x: TensorType, axis: int) -> TensorType:
        """A type with one dimension as long as those of the group together."""
        n: Dim = x.shape[axis] * self.group_size()
        return x.with_shape((*x.shape[:axis], n, *x.shape[axis + 1:]))


class AllReduce(Collective, name="shard.all_reduce"):
    """result = the combination of x of all ranks

        %r = shard.all_reduce %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"]} : tensor<3xf32>
    """

    kind: str = "add"

    def infer(self) -> TensorType:
        x = self._operand()
        return x

    def of_group(self, xs: Sequence[Array]) -> list[Array]:
        return [combined(xs, self.kind, self.x.type)] * len(xs)

    def bytes_sent(self) -> int:
        n, elements = self.group_size(), self.operand_bytes() // self.x.type.dtype.itemsize
        if sends_whole(n, self.operand_bytes()):
            return self.operand_bytes() * (n - 1)
        largest = -(-elements // n)                        # of the parts; that of the last rank
        return int((elements - largest + largest * (n - 1)) * self.x.type.dtype.itemsize)

    def messages_sent(self) -> int:
        n = self.group_size()
        return (n - 1) * (1 if sends_whole(n, self.operand_bytes()) else 2)


class _Dividing(Collective):
    """A collective that gives each rank a block along `axis`."""

    axis: int
    format = "$x attr-dict `:` functional-type"

    def infer(self) -> TensorType:
        x = self._operand()
        self.check_axis(self.axis, x.rank)
        return self._divided(x, self.axis)


class ReduceScatter(_Dividing, name="shard.reduce_scatter"):
    """result = the block at the rank's position, along `axis`, of the combination of x of all ranks

        %r = shard.reduce_scatter %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 0} :
            (tensor<4xf32>) -> tensor<2xf32>
    """

    kind: str = "add"

    def of_group(self, xs: Sequence[Array]) -> list[Array]:
        return np.split(combined(xs, self.kind, self.x.type), len(xs), self.axis)

    def bytes_sent(self) -> int:
        n = self.group_size()
        return self.operand_bytes() * (n - 1) // n


class AllGather(Collective, name="shard.all_gather"):
    """result = the blocks x of all ranks, one after the other along `axis`

        %r = shard.all_gather %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 0} :
            (tensor<2xf32>) -> tensor<4xf32>
    """

    axis: int
    format = "$x attr-dict `:` functional-type"

    def infer(self) -> TensorType:
        x = self._operand()
        self.check_axis(self.axis, x.rank)
        return self._joined(x, self.axis)

    def of_group(self, xs: Sequence[Array]) -> list[Array]:
        return [np.concatenate(list(xs), self.axis)] * len(xs)

    def bytes_sent(self) -> int:
        return self.operand_bytes() * (self.group_size() - 1)


class AllToAll(Collective, name="shard.all_to_all"):
    """result = the blocks for this rank, along `split`, of x of all ranks, one after the other along `concat`

        %r = shard.all_to_all %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], split = 1, concat = 0} :
            (tensor<2x4xf32>) -> tensor<4x2xf32>
    """

    split: int
    concat: int
    format = "$x attr-dict `:` functional-type"

    def infer(self) -> TensorType:
        x = self._operand()
        self.check_axis(self.split, x.rank)
        self.check_axis(self.concat, x.rank)
        return self._joined(self._divided(x, self.split), self.concat)

    def of_group(self, xs: Sequence[Array]) -> list[Array]:
        pieces = [np.split(x, len(xs), self.split) for x in xs]
        return [np.concatenate([p[i] for p in pieces], self.concat) for i in range(len(xs))]

    def bytes_sent(self) -> int:
        n = self.group_size()
        return self.operand_bytes() * (n - 1) // n


class AllSlice(_Dividing, name="shard.all_slice"):
    """result = the block at the rank's position, along `axis`, of x, which all ranks have

        %r = shard.all_slice %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"], axis = 0} :
            (tensor<4xf32>) -> tensor<2xf32>
    """

    def of_group(self, xs: Sequence[Array]) -> list[Array]:
        return [np.split(x, len(xs), self.axis)[i] for i, x in enumerate(xs)]

    def bytes_sent(self) -> int:
        return 0


class ProcessIndex(HostOp, name="shard.process_index", pure=True):
    """result[] = the position of the rank along some axes of the mesh

        %r = shard.process_index {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"]} : () -> tensor<i64>
    """

    mesh: Mesh
    axes: Axes
    format = "attr-dict `:` functional-type"

    def infer(self) -> TensorType:
        self.mesh.size(self.axes)
        return TensorType((), i64)

    def interpret(self, frame: Frame) -> Any:
        return np.int64(self.mesh.position(ranks_of(self, frame).rank, self.axes))


def sends_whole(ranks: int, size: int) -> bool:
    """Whether an all-reduce of operands of so many bytes sends them whole, and each rank combines them all.

    That is one phase of messages and not two; between two ranks it sends no more bytes.
    """
    return ranks > 1 and size <= WHOLE and (ranks - 1) * (ranks - 2) * size <= MORE * ranks


def is_leading(shape: Sequence[Dim], axis: int) -> bool:
    """Whether the blocks of a tensor along a dimension lie one after another."""
    return prod(shape[:axis]) == 1


def _bytes(type: TensorType) -> int:
    assert isinstance(type.size, int), "shards have static shapes"
    return type.size * int(type.dtype.itemsize)


def ranks_of(op: Op, frame: Frame) -> Ranks:
    """The ranks that an operation is interpreted with."""
    if frame.interpreter.ranks is None:
        raise IRError(f"{op.name} needs all ranks of the mesh", code="MLC0963", loc=op.loc,
                      hint="interpret all of them: mlc.dialects.shard.ranks")
    return frame.interpreter.ranks


def combined(xs: Sequence[Array], name: str, type: TensorType) -> Array:
    """The combination of arrays in their order; floats are combined in the accumulator type and rounded at the end."""
    combining = CombiningKind.of(name, type.dtype)
    wide = to_numpy(accumulator(type.dtype)) if kind(type.dtype) == "float" else xs[0].dtype
    out = np.asarray(xs[0], wide)
    with np.errstate(all="ignore"):
        for x in xs[1:]:
            out = np.asarray(combining.combine(out, np.asarray(x, wide)))
    return rounded(out, type.dtype)
