"""tensor, traits: what is true of every operation of a class and passes ask about.

None of these facts has a default. A family states what holds for all its members, any other class its own, and
tests/test_registry.py holds every registered operation to it: a forgotten fact is an error and not a slow program.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from mlc.ir.core import Op


class Cost(Enum):
    """Cost of recomputing an element, compared with reading it from memory."""

    FREE = "free"                   # nothing: every reader gets a copy of the operation
    CHEAP = "cheap"                 # about as much
    EXPENSIVE = "expensive"         # more: it is computed once


class Iteration(Enum):
    """Which loops compute an operation, and what an iteration reads."""

    POINTWISE = "pointwise"         # element p of the result from element p of the operands, which broadcast
    INDEXED = "indexed"             # an element of the result from elements of the operands at other indices
    VIEW = "view"                   # none: it names memory that exists, unless it is free where it is read
    REDUCE = "reduce"               # loops over the reduced axes inside those over the result
    CONTRACT = "contract"           # the same of a product
    SCAN = "scan"                   # one loop, in order, that gives every partial result
    SCATTER = "scatter"             # one loop, in order, over the updates
    HOST = "host"                   # none: it stands between kernels, whatever its operands are
    COMPOSITE = "composite"         # none: it is decomposed before kernels are formed

    @property
    def iterator_type(self) -> str:
        """The iterator type of the dimensions that an operation with loops of its own goes along."""
        return {"reduce": "reduction", "contract": "reduction"}.get(self.value, self.value)

    @property
    def has_own_loops(self) -> bool:
        """Whether the loops are not just those over the elements of the result."""
        return self in (Iteration.REDUCE, Iteration.CONTRACT, Iteration.SCAN, Iteration.SCATTER)


class FusionInterface(Op):
    """Interface of an operation of the dialect for the passes that form kernels.

    moves_elements   each element of the result is one of the first operand, converted at most, or else a constant;
                     sizes alone say which
    checked_operand  the operand whose values are checked when the operation runs, by its position; None if none are
    """

    cost: ClassVar[Cost]
    iteration: ClassVar[Iteration]
    moves_elements: ClassVar[bool]
    checked_operand: ClassVar[int | None]


class HostOp(FusionInterface):
    """An operation between kernels: scalars, sizes, assertions, and kernels themselves."""

    cost = Cost.EXPENSIVE
    iteration = Iteration.HOST
    moves_elements = False
    checked_operand: ClassVar[int | None] = None


FACTS = ("cost", "iteration", "moves_elements", "checked_operand")
"""The facts that every operation of the dialect states, but for terminators."""


_FREE, _EXPENSIVE = Cost.FREE, Cost.EXPENSIVE        # looking up a member takes longer than the rest of a question
_POINTWISE, _VIEW, _HOST = Iteration.POINTWISE, Iteration.VIEW, Iteration.HOST


def is_free(op: Op) -> bool:
    """Whether an operation costs nothing where it is read, so that every reader gets a copy of its own."""
    return isinstance(op, FusionInterface) and op.cost is _FREE


def is_cheap(op: Op) -> bool:
    """Whether computing it again costs at most about as much as reading its result."""
    return isinstance(op, FusionInterface) and op.cost is not _EXPENSIVE


def is_pointwise(op: Op) -> bool:
    """Whether element p of the result depends on element p of the operands alone, which broadcast."""
    return isinstance(op, FusionInterface) and op.iteration is _POINTWISE


def moves_elements(op: Op) -> bool:
    """Whether an operation only moves elements, by an indexing map that depends on sizes alone."""
    return isinstance(op, FusionInterface) and op.moves_elements


def is_view(op: Op) -> bool:
    """Whether an operation names memory that exists: another shape of a buffer, a constant in the program's data."""
    return isinstance(op, FusionInterface) and op.iteration is _VIEW


def checked_operand(op: Op) -> int | None:
    """Which operand an operation checks when it runs, positions or a condition; None if it checks none."""
    return op.checked_operand if isinstance(op, FusionInterface) else None


def is_host(op: Op) -> bool:
    """Whether an operation stands between kernels whatever its operands are, as those of other dialects do."""
    return not isinstance(op, FusionInterface) or op.iteration is _HOST
