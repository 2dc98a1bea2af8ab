"""The addresses at which tiles are loaded from buffers and stored to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlc.dialects import loop
from mlc.ir import sizes
from mlc.ir.affine import AffineExpr
from mlc.ir.core import Value
from mlc.ir.sizes import Leaf


@dataclass(frozen=True)
class Access:
    """The location of a tile in a buffer: one expression per dimension, and the condition for touching an element."""

    buffer: Value
    indices: tuple[AffineExpr, ...]
    tiles: Sequence[Value] = ()
    mask: Value | None = None
    bounded: bool = True                 # whether accesses outside of the domain are masked

    def unmasked(self) -> Access:
        """The same access without its condition."""
        return replace(self, mask=None)

    @property
    def dims(self) -> set[int]:
        masked = self.mask.type.dims if self.mask is not None else ()
        return {*masked, *self.spanned}

    @property
    def spanned(self) -> tuple[int, ...]:
        """The dimensions that the address of an element depends on."""
        return loop.spanned(set[Leaf]().union(*map(sizes.leaves, self.indices)), self.tiles)
