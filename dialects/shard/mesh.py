"""shard, mesh: the grid of ranks, and how a tensor is divided among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from operator import index
from typing import Any, ClassVar

from mlc.ir.attributes import DialectAttribute
from mlc.ir.diag import UserError
from mlc.ir.sizes import Dim

Axes = tuple[str, ...]
"""Axes of a mesh, the major one first."""
STAGE = "stage"
"""The axis of a mesh along which ranks are stages of a pipeline."""


@dataclass(frozen=True, slots=True)
class Mesh(DialectAttribute):
    """`#shard.mesh<axes = ["data", "model"], sizes = [2, 4]>`: ranks in a grid, numbered in row-major order."""

    mnemonic: ClassVar[str] = "shard.mesh"
    axes: Axes
    sizes: tuple[int, ...]

    @staticmethod
    def of(axes: Any) -> Mesh:
        """A mesh with axes of these names and sizes, a mapping; UserError (MLC0960) unless there is a rank in it."""
        sizes = list(axes.values()) if isinstance(axes, Mapping) else []
        if not sizes or not all(type(a) is str for a in axes) or any(
                isinstance(n, bool) or not hasattr(n, "__index__") or n < 1 for n in sizes):
            raise UserError(f"{axes} is no mesh: each axis has a name and a positive number of ranks", code="MLC0960",
                            hint='for instance {"data": 4, "model": 2}')
        return Mesh(tuple(axes), tuple(map(index, sizes)))

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return prod(self.sizes)

    def size(self, axes: Sequence[str]) -> int:
        """The number of ranks along some axes."""
        return prod(self.sizes[self.index(axis)] for axis in axes)

    def index(self, axis: str) -> int:
        """The number of an axis; UserError (MLC0961) if the mesh has none of this name."""
        if axis not in self.axes:
            raise UserError(f"the mesh has no axis {axis!r}", code="MLC0961",
                            hint="it has " + ", ".join(map(repr, self.axes)))
        return self.axes.index(axis)

    def coordinates(self, rank: int) -> tuple[int, ...]:
        """The position of a rank along each axis."""
        out: list[int] = []
        for n in reversed(self.sizes):
            rank, position = divmod(rank, n)
            out.insert(0, position)
        return tuple(out)

    def position(self, rank: int, axes: Sequence[str]) -> int:
        """The position of a rank among those that differ from it along `axes` only; the last varies fastest."""
        at, out = self.coordinates(rank), 0
        for axis in axes:
            i = self.index(axis)
            out = out * self.sizes[i] + at[i]
        return out

    def group(self, rank: int, axes: Sequence[str]) -> tuple[int, ...]:
        """The ranks that differ from `rank` along `axes` only, by position."""
        groups = [at for at in range(self.ranks) if self._others(at, axes) == self._others(rank, axes)]
        return tuple(sorted(groups, key=lambda r: self.position(r, axes)))

    def _others(self, rank: int, axes: Sequence[str]) -> tuple[int, ...]:
        return tuple(c for c, axis in zip(self.coordinates(rank), self.axes) if axis not in axes)


@dataclass(frozen=True, slots=True)
class Sharding(DialectAttribute):
    """`#shard.sharding<dims = [["data"], []]>`: the axes of the mesh that divide each dimension of a tensor.

    A dimension without axes is whole on each rank. Along one with axes, the rank at position i has the i-th of equal
    blocks. A tensor at a stage of a pipeline is on the ranks at this position of the axis `stage` only.
    """

    mnemonic: ClassVar[str] = "shard.sharding"
    dims: tuple[Axes, ...]
    stage: int = -1

    @staticmethod
    def replicated(rank: int) -> Sharding:
        """That of a tensor of `rank` dimensions which is whole everywhere."""
        return Sharding(((),) * rank)

    @property
    def everywhere(self) -> Sharding:
        """The same at all stages."""
        return Sharding(self.dims)

    def is_on(self, mesh: Mesh, rank: int) -> bool:
        """Whether a rank has a shard."""
        return self.stage < 0 or mesh.position(rank, (STAGE,)) == self.stage

    @property
    def used(self) -> Axes:
        """The axes that divide some dimension."""
        return tuple(axis for axes in self.dims for axis in axes)

    @property
    def is_replicated(self) -> bool:
        """Whether each rank has the whole tensor."""
        return not any(self.dims)

    def problem(self, shape: Sequence[Dim], mesh: Mesh) -> str | None:
        """The reason why a tensor of this shape cannot lie so; None if it can."""
        if len(self.dims) != len(shape):
            return f"{len(self.dims)} dimensions are specified, and the tensor has {len(shape)}"
        if self.stage >= (mesh.size((STAGE,)) if STAGE in mesh.axes else 0):
            return f"there are no ranks at position {self.stage} of an axis {STAGE!r}"
        for axis in self.used:
            mesh.index(axis)
            if self.used.count(axis) > 1:
                return f"axis {axis!r} divides it twice"
        for d, (axes, n) in enumerate(zip(self.dims, shape)):
            if axes and (not isinstance(n, int) or n % mesh.size(axes)):
                return f"dimension {d}, of size {n}, is no multiple of {mesh.size(axes)} ({' x '.join(axes)})"
        return None

    def local(self, shape: Sequence[Dim], mesh: Mesh) -> tuple[Dim, ...]:
        """The shape of each rank's shard of a tensor."""
        return tuple(n // mesh.size(axes) if axes else n for n, axes in zip(shape, self.dims))

    def piece(self, shape: Sequence[int], mesh: Mesh, rank: int) -> tuple[slice, ...]:
        """The part of a tensor that a rank has."""
        return tuple(self._pieces(shape, mesh, rank))

    def _pieces(self, shape: Sequence[int], mesh: Mesh, rank: int) -> Iterator[slice]:
        for n, axes in zip(shape, self.dims):
            length = n // mesh.size(axes)
            start = mesh.position(rank, axes) * length
            yield slice(start, start + length)

    def __str__(self) -> str:
        dims = "(" + ", ".join("+".join(axes) or "-" for axes in self.dims) + ")"
        return dims if self.stage < 0 else f"{dims} at stage {self.stage}"
