"""Where tiles are read from buffers and written to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlc.dialects import loop
from mlc.ir import sizes
from mlc.ir.affine import AffineExpr
from mlc.ir.core import Value
from mlc.ir.sizes import Leaf


@dataclass(frozen=True)
class Access:
    """Where tiles are read or written: an expression per dimension of a buffer, of which only part may be touched."""

    buffer: Value
    indices: tuple[AffineExpr, ...]
    tiles: Sequence[Value] = ()
    mask: Value | None = None
    bounded: bool = True                 # whether points outside of the domain are not to be touched

    @property
    def dims(self) -> set[int]:
        masked = self.mask.type.dims if self.mask is not None else ()
        return {*masked, *self.spanned}

    @property
    def spanned(self) -> tuple[int, ...]:
        """The dimensions that the place of an element depends on."""
        return loop.spanned(set[Leaf]().union(*map(sizes.leaves, self.indices)), self.tiles)
