"""The types of tiles and scratch memory, and which dimensions access maps span."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from mlc.ir import affine
from mlc.ir.core import Value
from mlc.ir.sizes import AffineDim, IndexTile, Leaf, Size
from mlc.ir.types import TYPE_READERS, ScalarType, Type

if TYPE_CHECKING:
    from mlc.ir.parser import Parser


@dataclass(frozen=True, slots=True)
class TileType(Type):
    """`!loop.tile<d0xd2xf32>`: one element per point of the block of dimensions 0 and 2 of the kernel."""

    dims: tuple[int, ...]
    dtype: ScalarType
    dialect: ClassVar[str] = "loop"

    def text(self, generic: bool = False) -> str:
        return _text("tile", self, generic)


@dataclass(frozen=True, slots=True)
class ScratchType(Type):
    """`!loop.scratch<d2xd0xf32>`: memory for one element per point of the named dimensions; the last is contiguous.

    It spans the current block of a dimension that has a coordinate at its allocation, and the whole of any other.
    """

    dims: tuple[int, ...]
    dtype: ScalarType
    dialect: ClassVar[str] = "loop"

    def text(self, generic: bool = False) -> str:
        return _text("scratch", self, generic)


def _text(word: str, type: TileType | ScratchType, generic: bool) -> str:
    return f"!{'mlc.' if generic else ''}loop.{word}<{''.join(f'd{d}x' for d in type.dims)}{type.dtype}>"


def _read_tile(parser: Parser) -> Type:
    return TileType(*_read_dims(parser, ascending=True))


def _read_scratch(parser: Parser) -> Type:
    return ScratchType(*_read_dims(parser, ascending=False))


def _read_dims(parser: Parser, ascending: bool) -> tuple[tuple[int, ...], ScalarType]:
    from mlc.ir.types import SCALARS
    parser.expect("<")
    token = parser.kind("word", "dimensions and an element type such as d0xf32")
    m = re.fullmatch(r"((?:d\d{1,2}x)*)(\w+)", token.text)
    if m is None or m[2] not in SCALARS:
        parser.fail(f"bad tile {token.text!r}; write d0xd1xf32", "MLC0206", token)
    parser.expect(">")
    dims = tuple(int(d[1:]) for d in m[1].split("x") if d)
    if len({*dims}) != len(dims) or (ascending and list(dims) != sorted(dims)):
        parser.fail("the dimensions of a tile ascend" if ascending else "a dimension is named twice", "MLC0206", token)
    return dims, SCALARS[m[2]]


TYPE_READERS["loop.tile"] = _read_tile
TYPE_READERS["loop.scratch"] = _read_scratch


def coordinate(d: int) -> Size:
    """The coordinate of dimension `d` in access maps."""
    return affine.dim(d)


def spanned(leaves: Iterable[Leaf], tiles: Sequence[Value] = ()) -> tuple[int, ...]:
    """The dimensions among the leaves of expressions, and those that the index tiles among them span."""
    dims: set[int] = set()
    for leaf in leaves:
        if isinstance(leaf, AffineDim):
            dims.add(leaf.position)
        elif isinstance(leaf, IndexTile):
            dims |= set(tiles[leaf.position].type.dims)
    return tuple(sorted(dims))


def union(values: Sequence[Value]) -> tuple[int, ...]:
    """The dimensions that a pointwise combination of tiles spans."""
    return tuple(sorted({d for v in values for d in v.type.dims}))
