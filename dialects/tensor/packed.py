"""tensor, packed: an axis in panels, the layout in which a product of matrices reads a factor once and in order.

These operations only move elements, as `linalg.pack` and `linalg.unpack` do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.dialects.tensor import parts
from mlc.dialects.tensor.base import Array, CopyOp, SizedOp, less, with_batch_axis
from mlc.dialects.tensor.compare import Cast
from mlc.dialects.tensor.iteration import IndexingMap, IterationDomain
from mlc.dialects.tensor.shape import BroadcastTo
from mlc.dialects.tensor.sharding_rule import Label, ShardingRule, labelled
from mlc.dialects.tensor.slicing import pad
from mlc.dialects.tensor.traits import Cost
from mlc.ir import sizes
from mlc.ir.core import Op, Value
from mlc.ir.sizes import Dim
from mlc.ir.types import TensorType


class _Panels(SizedOp, CopyOp):
    """Panel t of an axis has the elements from t * width on; panels are numbered along axis `outer` of the packed
    tensor, and the elements of a panel are along its last axis, with `reverse` from the last one on."""

    on_parts = parts.each_part
    x: Value
    axis: int
    cost = Cost.CHEAP
    moves_elements = True

    @property
    def place(self) -> int:
        """The axis of the packed tensor along which panels are numbered."""
        return self.attrs["outer"]  # type: ignore[no-any-return]

    def within(self, j: Dim, width: int) -> Dim:
        """Where element j of a panel of this width is in it, and vice versa."""
        return width - 1 - j if self.attrs["reverse"] else j

    def check_places(self, rank: int) -> None:
        """Refuse an axis, or a place of the panels, that a tensor of this rank, not packed, does not have."""
        self.check_axis(self.axis, rank)
        self.check_axis(self.place, rank)

    def vmap(self, batch_size: Dim, operands: Sequence[Value], batched: Sequence[bool]) -> Value:
        x, = with_batch_axis(batch_size, operands, batched)
        made: Op = self.with_operands([x], axis=self.axis + 1, outer=self.place + 1)
        return made.results[0]

    def labels(self, rank: int) -> tuple[list[Label], list[Label]]:
        """Labels of the axes of the tensor and of the packed one: all but the axis in panels may be divided."""
        others: list[Label] = [a for a in range(rank) if a != self.axis]
        return ([*others[: self.axis], None, *others[self.axis:]],
                [*others[: self.place], None, *others[self.place:], None])


class Pack(_Panels, name="tensor.pack"):
    """result[a, t, b, j] = x[c], where c is (a, b) with t * width + j inserted at `axis`; t is axis `outer`

    With `reverse`, width - 1 - j takes the place of j. The axis consists of whole panels: pad it before.

        %r = tensor.pack %x {axis = 1, width = 4} : (tensor<3x8xf32>) -> tensor<2x3x4xf32>
    """

    x: Value
    axis: int
    width: int
    outer: int = 0
    reverse: bool = False

    def infer(self) -> TensorType:
        x, = self.tensors()
        self.check_places(x.rank)
        if self.width < 1:
            self.refuse(f"the width {self.width} is not positive", "MLC0116")
        n = x.shape[self.axis]
        if sizes.modulo(n, self.width) != 0:
            self.refuse(f"axis {self.axis} of size {n} has no whole number of panels of {self.width}", "MLC0115",
                        hint="pad it with zeros", symbols=sizes.symbols(n))
        others, panels = [n for a, n in enumerate(x.shape) if a != self.axis], sizes.divide(n, self.width)
        return x.with_shape((*others[: self.outer], panels, *others[self.outer:], self.width))

    def compute(self, size: Any, x: Any) -> Array:
        count = size(self.result.type.shape[self.outer])
        split = np.reshape(x, (*x.shape[: self.axis], count, self.width, *x.shape[self.axis + 1:]))
        panels = np.moveaxis(split, (self.axis, self.axis + 1), (self.outer, -1))
        return np.flip(panels, -1) if self.reverse else panels

    def vjp(self, ct: Value) -> list[Value | None]:
        return [Unpack(ct, self.axis, self.x.type.shape[self.axis], self.outer, self.reverse).result]

    def sharding_rule(self) -> ShardingRule:
        own, packed = self.labels(self.x.type.rank)
        return labelled(self, [own], packed)

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        panel, j = at[self.outer], at[-1]
        others = [*at[: self.outer], *at[self.outer + 1: -1]]
        here = None if panel is None or j is None else panel * self.width + self.within(j, self.width)
        return [(*others[: self.axis], here, *others[self.axis:])]


class Unpack(_Panels, name="tensor.unpack"):
    """result[c] = x[a, t, b, j], where c is (a, b) with t * width + j < size inserted at `axis`; t is axis `outer`

    With `reverse`, width - 1 - j takes the place of j. It is the inverse of `tensor.pack`, without what was padded.

        %r = tensor.unpack %x {axis = 1, size = 6} : (tensor<2x3x4xf32>) -> tensor<3x6xf32>
    """

    x: Value
    axis: int
    size: Dim
    outer: int = 0
    reverse: bool = False

    @property
    def width(self) -> int:
        """The elements of a panel."""
        return self.x.type.shape[-1]  # type: ignore[no-any-return]

    def infer(self) -> TensorType:
        x, = self.tensors()
        if x.rank < 2:
            self.refuse(f"{x} has no axis of panels and one of their elements", "MLC0114")
        self.check_places(x.rank - 1)
        if not isinstance(x.shape[-1], int) or self.width < 1:
            self.refuse(f"the width of a panel is {self.width}, and not a positive number", "MLC0116")
        if less(self.size, 0) or x.shape[self.outer] != sizes.divide(self.size + self.width - 1, self.width):
            self.refuse(f"{x.shape[self.outer]} panels of {self.width} are not those of {self.size} elements",
                        "MLC0115", symbols=sizes.symbols(x.shape[self.outer], self.size))
        others = [n for a, n in enumerate(x.shape[:-1]) if a != self.outer]
        return x.with_shape((*others[: self.axis], self.size, *others[self.axis:]))

    def compute(self, size: Any, x: Any) -> Array:
        split = np.moveaxis(np.flip(x, -1) if self.reverse else x, (self.outer, -1), (self.axis, self.axis + 1))
        n = split.shape[self.axis] * self.width
        whole = split.reshape(*split.shape[: self.axis], n, *split.shape[self.axis + 2:])
        return np.take(whole, range(size(self.size)), self.axis)

    def vjp(self, ct: Value) -> list[Value | None]:
        return [packed(ct, self.axis, self.width, self.outer, self.reverse)]

    def sharding_rule(self) -> ShardingRule:
        own, packed = self.labels(self.x.type.rank - 1)
        return labelled(self, [packed], own)

    def operand_maps(self, at: IndexingMap, domain: IterationDomain) -> Sequence[IndexingMap | None]:
        here, others = at[self.axis], [*at[: self.axis], *at[self.axis + 1:]]
        panel, j = (None, None) if here is None else (
            sizes.divide(here, self.width), self.within(sizes.modulo(here, self.width), self.width))
        return [(*others[: self.outer], panel, *others[self.outer:], j)]


def panels_of(factor: Value, widened: bool = False) -> Unpack | None:
    """The operation by which a factor of a product, broadcast or not, is read from panels; None if it is not. With
    `widened`, its elements may be of a narrower type there."""
    source = factor.op
    if widened and isinstance(source, Cast):
        source = source.x.op
    if isinstance(source, BroadcastTo):
        source = source.x.op
    return source if isinstance(source, Unpack) else None


def packed(x: Value, axis: int, width: int, outer: int = 0, reverse: bool = False) -> Value:
    """x in panels, the last one padded with zeros."""
    none, n = (0,) * x.type.rank, x.type.shape[axis]
    rest = sizes.divide(n + width - 1, width) * width - n
    whole = pad(x, none, tuple(rest if a == axis else 0 for a in range(x.type.rank)), none)
    return Pack(whole, axis, width, outer, reverse).result
