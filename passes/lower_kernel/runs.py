"""Quotients of coordinates that all blocks of a run share: of terms, those of one row of an image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mlc.dialects.index_arithmetic import SizeBuilder
from mlc.ir import sizes
from mlc.ir.affine import AffineExpr, dims_of, step_along
from mlc.ir.core import Block, Value, before, builder
from mlc.ir.sizes import AffineDim, Dim, Quotient


@dataclass(frozen=True)
class Run:
    """A block of a dimension with blocks of its own, from a multiple of its size on: quotients by multiples of that are
    the same in all of them, and are built once for all, in the block of code around their loop.

    block    the code of the run
    numbers  the sizes that are built there
    """

    first: Dim
    size: int
    block: Block | None
    numbers: SizeBuilder
    built: dict[Quotient, Value] = field(default_factory=dict)

    def relative(self, expr: AffineExpr, d: int, here: Dim, named: Callable[[Value], Dim]) -> AffineExpr:
        """An expression at the point `here` of the run, along dimension d, with names for quotients of its first
        point in place of those that are the same here."""
        if not any(d in dims_of(q.num) for q in sizes.quotients(expr)):
            return expr
        if (step := step_along(expr, d, self.size)) is None:
            return expr
        first = sizes.substitute(expr, {AffineDim(d): self.first})
        names: dict[Quotient, Dim] = {}
        for q in sizes.quotients(first):
            if q not in names and not dims_of(q.num, q.den) and (
                    sizes.symbols(q.num, q.den) <= sizes.symbols(self.first)):
                names[q] = named(self._value(q))
        return sizes.substitute(first, names) + step * (here - self.first)

    def _value(self, q: Quotient) -> Value:
        """A quotient of the first point, built before the loop in which it is needed."""
        if q not in self.built:
            at = builder.block
            if at is self.block or self.block is None or at is None or at.parent_op is None:
                return self.numbers.value(sizes.of_atom(q))
            with before(self.block.ancestor_of(at.parent_op)):
                self.built[q] = self.numbers.value(sizes.of_atom(q))
        return self.built[q]
