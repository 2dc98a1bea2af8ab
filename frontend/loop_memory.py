"""Memory of what loops carry, while the bodies around them are recorded again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlc.frontend.abstract_values import AbstractTrees
    from mlc.frontend.tracer import Tracer
    from mlc.ir.diag import Loc


class LoopMemory:
    """Memory of what a loop was found to carry, for when the body of the loop around it is recorded again.

    Otherwise each of these recordings would find out anew, and their number grow with the power of the depth.

    loc       where the loop is
    which     the buffers that it assigns, by their numbers
    bases     the tensors of outside that it changes in place
    same      the variables that are one tensor throughout, by the numbers of their leaves
    given_up  those that become other tensors, while the former is changed in place
    abstract  the abstract values that it carries
    inner     the loops within, in their order
    """

    def __init__(self, loc: Loc | None = None) -> None:
        self.loc = loc
        self.which: list[int] = []
        self.bases: list[Tracer] = []
        self.same: list[int] = []
        self.given_up: list[int] = []
        self.abstract: AbstractTrees = []
        self.inner: list[LoopMemory] = []
        self._position = 0

    def of_next(self, loc: Loc) -> LoopMemory:
        """The memory of the next loop within, which is at `loc`."""
        known = self.inner[self._position:self._position + 1]
        if not known or known[0].loc != loc:
            self.inner[self._position:] = known = [LoopMemory(loc)]
        self._position += 1
        return known[0]

    def begin(self) -> None:
        """Note that the body is recorded from its beginning."""
        self._position = 0
