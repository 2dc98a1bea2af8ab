"""tensor, iteration: the iteration domain of a kernel, and the indexing maps of the values in its body.

A kernel visits the points of its iteration domain. Some of its dimensions may be reduced (or scanned); the points that
differ only in those form a reduction slice. An indexing map gives the element of a value that belongs to a point: for
each axis of the value an expression over the coordinates of the point, or None for an axis along which any element may
be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from mlc.ir import sizes
from mlc.ir.affine import AffineMap, dim, dims_of
from mlc.ir.core import Op, Value
from mlc.ir.sizes import Dim

IndexingMap = tuple[Dim | None, ...]
E = TypeVar("E", Dim, Dim | None)


def long_axes(shape: Sequence[Dim]) -> list[Dim]:
    """The sizes that are not 1."""
    return [d for d in shape if d != 1]


@dataclass(frozen=True)
class IterationDomain:
    """The points that a kernel visits: `shape` has the extent of each dimension, `reduced` are the reduced ones."""

    shape: tuple[Dim, ...]
    reduced: tuple[int, ...] = ()

    @cached_property
    def parallel(self) -> tuple[int, ...]:
        """The dimensions that are not reduced."""
        return tuple(d for d in range(len(self.shape)) if d not in self.reduced)

    @cached_property
    def slices(self) -> tuple[Dim, ...]:
        """The extents of the parallel dimensions: each of their points has a reduction slice."""
        return tuple(self.shape[d] for d in self.parallel)

    @cached_property
    def points(self) -> tuple[Dim, ...]:
        """The indexing map of a value with one element per point; 0 along an axis of size 1."""
        return tuple(0 if n == 1 else dim(d) for d, n in enumerate(self.shape))

    @cached_property
    def in_slice(self) -> IndexingMap:
        """The map of a value with one element per point that is read at any point of the reduction slice."""
        return tuple(None if d in self.reduced and e != 0 else e for d, e in enumerate(self.points))

    @cached_property
    def _long(self) -> list[Dim]:
        return long_axes(self.shape)

    @cached_property
    def _long_points(self) -> list[Dim]:
        return [e for e in self.points if e != 0]

    def map_of(self, shape: Sequence[Dim]) -> IndexingMap | None:
        """The map of a value of this shape with one element per point, or one per slice; None if it has neither."""
        long = long_axes(shape)
        if long == self._long:
            coordinates = iter(self._long_points)
        elif long == long_axes(self.slices):
            coordinates = iter([e for d in self.parallel if (e := self.points[d]) != 0])
        else:
            return None
        return tuple([0 if n == 1 else next(coordinates) for n in shape])

    def result_map(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        """The map of a result of a kernel with this domain."""
        map = self.map_of(shape)
        assert map is not None and None not in map, "a result has an element for each point or slice"
        return map  # type: ignore[return-value]

    def has_all_points(self, shape: Sequence[Dim]) -> bool:
        """Whether a value of this shape has an element per point, with or without axes of size 1."""
        return shape == self.shape or long_axes(shape) == self._long

    def is_of_slice(self, map: IndexingMap | None) -> bool:
        """Whether all points of a slice read the same element of a value."""
        return map is not None and all(e is not None and self._reduced.isdisjoint(dims_of(e)) for e in map)

    @cached_property
    def _reduced(self) -> frozenset[int]:
        return frozenset(self.reduced)


def aligned(shape: Sequence[Dim], at: tuple[E, ...]) -> tuple[E, ...]:
    """The map by which a broadcast value of `shape` is read, for a result that is evaluated at `at`."""
    return tuple(0 if n == 1 else e for n, e in zip(shape, at[len(at) - len(shape):]))


def linear(index: Sequence[Dim], shape: Sequence[Dim]) -> Dim:
    """The row-major position of an index; that of `delinear(p)`, joined, is p."""
    position: Dim = 0
    for i, n in zip(index, shape):
        position = position * n + i
    return position


def delinear(position: Dim, shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """The index at a row-major position of a shape; arbitrary for an empty shape."""
    out: list[Dim] = []
    first = next((axis for axis, n in enumerate(shape) if n != 1), 0)      # there the quotient is within bounds
    for axis, n in reversed(list(enumerate(shape))):
        out.insert(0, position if axis == first else 0 if n in (0, 1) else sizes.modulo(position, n))
        position = sizes.divide(position, n) if n != 0 else 0
    return tuple(out)


def moved(e: Dim | None, factor: Dim, offset: Dim) -> Dim | None:
    """e * factor + offset, for an entry of an indexing map."""
    return None if e is None else e * factor + offset


def operand_maps(op: Op, at: IndexingMap | None, domain: IterationDomain) -> Iterator[tuple[Value, IndexingMap | None]]:
    """The operands of an operation whose result is read by the map `at`, and the maps by which they are read."""
    maps = (None,) * len(op.operands) if at is None else op.operand_maps(at, domain)  # type: ignore[attr-defined]
    return zip(op.operands, maps)


def single(maps: set[IndexingMap | None], domain: IterationDomain) -> AffineMap:
    """The only map by which a value is read; without results if there are several, or one that is not affine."""
    map, *others = maps or {None}
    results = () if others or map is None or None in map else map
    return AffineMap.get(len(domain.shape), results)  # type: ignore[arg-type]
