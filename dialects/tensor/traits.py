"""tensor, traits: properties of operation classes that passes query.

No trait has a default. A family sets those that all its members share, a class the others, and tests/test_registry.py
checks every registered operation: a forgotten trait is an error and not a slow program.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from mlc.ir.core import Op


class Cost(Enum):
    """Cost of recomputing an element, compared with reading it from memory."""

    FREE = "free"                   # no cost: every reader gets a copy of the operation
    CHEAP = "cheap"                 # about the same
    EXPENSIVE = "expensive"         # higher: it is computed once


class Iteration(Enum):
    """Loop structure of an operation, and the elements that an iteration reads."""

    POINTWISE = "pointwise"         # element p of the result from element p of the operands, which broadcast
    INDEXED = "indexed"             # an element of the result from elements of the operands at other indices
    VIEW = "view"                   # no loops: an alias of existing memory, unless it is free for its readers
    REDUCE = "reduce"               # loops over the reduced axes inside those over the result
    CONTRACT = "contract"           # loops over the contracted axes inside those over the result
    SCAN = "scan"                   # one sequential loop that produces every partial result
    SCATTER = "scatter"             # one sequential loop over the updates
    HOST = "host"                   # no loops: a host-level op, outside of kernels
    COMPOSITE = "composite"         # no loops: it is decomposed before kernels are formed

    @property
    def iterator_type(self) -> str:
        """The iterator type of the dimensions of an operation's own loops."""
        return {"reduce": "reduction", "contract": "reduction"}.get(self.value, self.value)

    @property
    def has_own_loops(self) -> bool:
        """Whether there are loops other than those over the elements of the result."""
        return self in (Iteration.REDUCE, Iteration.CONTRACT, Iteration.SCAN, Iteration.SCATTER)


class FusionInterface(Op):
    """Interface of an operation of the dialect for the passes that form kernels.

    moves_elements   each element of the result is an element of the first operand, possibly converted, or a constant;
                     which one depends on sizes only
    checked_operand  index of the operand whose values are checked at run time; None if there is none
    encoded_operand  index of the operand whose blocks of bytes are read from memory as they lie, so that no kernel
                     that reads them can compute them; None if there is none
    """

    cost: ClassVar[Cost]
    iteration: ClassVar[Iteration]
    moves_elements: ClassVar[bool]
    checked_operand: ClassVar[int | None]
    encoded_operand: ClassVar[int | None] = None


class HostOp(FusionInterface):
    """A host-level operation, outside of kernels: scalars, sizes, assertions, and kernels themselves."""

    cost = Cost.EXPENSIVE
    iteration = Iteration.HOST
    moves_elements = False
    checked_operand: ClassVar[int | None] = None


FACTS = ("cost", "iteration", "moves_elements", "checked_operand")
"""The traits that every operation of the dialect sets, except terminators."""


_FREE, _EXPENSIVE = Cost.FREE, Cost.EXPENSIVE        # enum member lookup would dominate the cost of a query
_POINTWISE, _VIEW, _HOST = Iteration.POINTWISE, Iteration.VIEW, Iteration.HOST


def is_free(op: Op) -> bool:
    """Whether recomputing an operation costs nothing, so that every reader gets a copy of its own."""
    return isinstance(op, FusionInterface) and op.cost is _FREE


def is_read_as_it_lies(op: Op) -> bool:
    """Whether an operation reads the blocks of bytes that this one gives from memory."""
    return any(isinstance(user, FusionInterface) and user.encoded_operand is not None
               and user.operands[user.encoded_operand] is result for result in op.results for user in result.users)


def is_cheap(op: Op) -> bool:
    """Whether recomputing an operation costs at most about as much as reading its result."""
    return isinstance(op, FusionInterface) and op.cost is not _EXPENSIVE


def is_pointwise(op: Op) -> bool:
    """Whether element p of the result depends only on element p of the operands, which broadcast."""
    return isinstance(op, FusionInterface) and op.iteration is _POINTWISE


def moves_elements(op: Op) -> bool:
    """Whether an operation only moves elements, by an indexing map that depends on sizes only."""
    return isinstance(op, FusionInterface) and op.moves_elements


def is_view(op: Op) -> bool:
    """Whether an operation is an alias of existing memory: a reshaped buffer, or a constant in the program's data."""
    return isinstance(op, FusionInterface) and op.iteration is _VIEW


def checked_operand(op: Op) -> int | None:
    """Index of the operand that an operation checks at run time, indices or a condition; None if there is none."""
    return op.checked_operand if isinstance(op, FusionInterface) else None


def is_host(op: Op) -> bool:
    """Whether an operation is a host-level op, outside of kernels, as all those of other dialects are."""
    return not isinstance(op, FusionInterface) or op.iteration is _HOST
