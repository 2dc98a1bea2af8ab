"""The arithmetic of a segment of a rank's program and the bytes that it moves, counted before anything is fused.

It is an estimate: an elementary function counts as `ELEMENTARY` operations, a loop as one iteration, and of results
only those are written to memory that have loops of their own, or leave the segment.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mlc.dialects.func import Func
from mlc.dialects.tensor.base import TensorOp
from mlc.dialects.tensor.traits import Cost, Iteration
from mlc.ir.core import Value
from mlc.ir.sizes import Dim
from mlc.ir.types import FloatType, TensorType

ELEMENTARY = 16
"""Operations of an elementary function, such as exp, about."""


@dataclass(frozen=True)
class SegmentCost:
    """The work of a segment.

    operations  of floats; a multiplication and an addition are two
    moved       bytes that are read and written
    seconds     the processor time that was measured; None if it was not
    """

    operations: int
    moved: int
    seconds: float | None = None

    @staticmethod
    def of(function: Func) -> SegmentCost:
        """The cost of a segment of static shapes."""
        ops = [op for op in function.walk() if isinstance(op, TensorOp)]
        kept = [v for op in ops if op.iteration.has_own_loops for v in op.results]
        moved = sum(map(bytes_of, (*function.args, *function.block.terminator.operands, *kept, *kept)))
        return SegmentCost(sum(map(operations, ops)), moved)


def operations(op: TensorOp) -> int:
    """The operations of floats that an operation takes."""
    if not op.results or not isinstance(op.results[0].type, TensorType):
        return 0
    if not isinstance(op.results[0].type.dtype, FloatType) or op.moves_elements or op.iteration in (
            Iteration.HOST, Iteration.VIEW, Iteration.COMPOSITE):
        return 0
    points = _number(op.iteration_domain().shape)
    if op.iteration is Iteration.CONTRACT:
        return 2 * points
    return points * (ELEMENTARY if op.cost is Cost.EXPENSIVE and not op.iteration.has_own_loops else 1)


def bytes_of(value: Value) -> int:
    """The bytes of a tensor; 0 of a scalar."""
    type = value.type
    return _number(type.shape) * int(type.dtype.itemsize) if isinstance(type, TensorType) else 0


def _number(shape: tuple[Dim, ...]) -> int:
    assert all(isinstance(n, int) for n in shape), "shards have static shapes"
    return int(prod(shape))
