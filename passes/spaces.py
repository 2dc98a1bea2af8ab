"""The space of a kernel, and how the values in it walk along its axes.

A kernel visits the points of one shape; if it reduces, some axes of that shape are reduced, and the points that differ
in those alone are a row. The walk of a value says for each of its axes which axis of the space it goes along. So two
operations may run in one loop if what one reads of the other walks as the other does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from mlc.dialects import tensor as tn
from mlc.dialects.tensor.base import long_axes
from mlc.dialects.tensor.reduce import Reduce
from mlc.dialects.tensor.scatter import Scattering
from mlc.dialects.tensor.traits import is_free, is_pointwise
from mlc.ir.core import Op, Value
from mlc.ir.sizes import Dim

ANYWHERE = -1
"""Stands in a walk for any element along the reduced axes of a row."""
Walk = tuple[int | None, ...]
"""For each axis of a value the axis of the space that it goes along, or None where it has one element."""


@dataclass(frozen=True)
class Space:
    """The points of a kernel: a shape, of which `axes` are reduced."""

    shape: tuple[Dim, ...]
    axes: tuple[int, ...] = ()

    @cached_property
    def kept(self) -> tuple[int, ...]:
        return tuple(a for a in range(len(self.shape)) if a not in self.axes)

    @cached_property
    def rows(self) -> tuple[Dim, ...]:
        """The shape without the reduced axes."""
        return tuple(self.shape[a] for a in self.kept)

    @cached_property
    def points(self) -> Walk:
        """The walk of a value with one element per point."""
        return tuple(None if n == 1 else a for a, n in enumerate(self.shape))

    @cached_property
    def long(self) -> list[Dim]:
        """The sizes that are not 1."""
        return long_axes(self.shape)

    def walk(self, shape: Sequence[Dim]) -> Walk | None:
        """The walk of a value of this shape that has an element per point or one per row; None if it has neither."""
        everywhere = self.has_all_points(shape)
        if not everywhere and long_axes(shape) != long_axes(self.rows):
            return None
        along = range(len(self.shape)) if everywhere else self.kept
        axes = (a for a in along if self.shape[a] != 1)
        return tuple(None if n == 1 else next(axes) for n in shape)

    def has_all_points(self, shape: Sequence[Dim]) -> bool:
        """Whether a value of this shape has an element per point, with or without axes of size 1."""
        return shape == self.shape or long_axes(shape) == self.long

    def in_row(self) -> Walk:
        """The walk of a value with one element per point that is read anywhere in the same row."""
        return tuple(ANYWHERE if a in self.axes else a for a in self.points)

    def is_row(self, walk: Walk | None) -> bool:
        """Whether what walks so has one element for all points of a row."""
        return walk is not None and not any(a == ANYWHERE or a in self.axes for a in walk)


def space_of(op: Op) -> Space:
    """The space of a kernel that holds `op` alone."""
    if isinstance(op, Reduce):
        return Space(op.x.type.shape, op.axes)
    return Space(op.results[0].type.shape, (op.axis,) if isinstance(op, tn.Cumulative) else ())


def operand_walks(op: Op, walk: Walk | None, space: Space) -> Iterator[tuple[Value, Walk | None]]:
    """The operands of `op`, and how each is walked along if the result is by `walk`; None: in any other way."""
    if walk is None:
        for v in op.operands:
            yield v, None
    elif is_pointwise(op) or isinstance(op, tn.BroadcastTo):
        for v in op.operands:
            yield v, _aligned(v.type.shape, walk)
    elif isinstance(op, tn.Reshape) and is_free(op):
        axes = (a for a, n in zip(walk, op.shape) if n != 1)
        yield op.x, tuple(None if n == 1 else next(axes) for n in op.x.type.shape)
    elif isinstance(op, Reduce) and (op.x.type.shape, op.axes) == (space.shape, space.axes):
        yield op.x, space.points
    elif isinstance(op, tn.Cumulative) and space == space_of(op) and walk == space.points:
        yield op.x, walk
    elif isinstance(op, tn.DynamicUpdateSlice):
        yield op.x, walk
        for v in (op.update, *op.starts):
            yield v, None
    elif isinstance(op, Scattering) and walk == space.points:
        for i, v in enumerate(op.operands):
            yield v, walk if i == 0 else None
    elif picks_in_row(op, space) and walk == space.walk(op.results[0].type.shape):
        yield op.operands[0], space.in_row()
        yield op.operands[1], _aligned(op.operands[1].type.shape, walk)
    else:
        for v in op.operands:
            yield v, None


def picks_in_row(op: Op, space: Space) -> bool:
    """Whether an operation picks one element of each row by an index."""
    return isinstance(op, tn.TakeAlong) and (op.x.type.shape, (op.axis,)) == (space.shape, space.axes) and (
        op.indices.type.shape[op.axis] == 1 and space.shape[op.axis] != 1)


def _aligned(shape: Sequence[Dim], walk: Walk) -> Walk:
    """The walk of a value of `shape` that is broadcast to one walked along by `walk`."""
    return tuple(None if n == 1 else a for n, a in zip(shape, walk[len(walk) - len(shape):]))
