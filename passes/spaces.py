"""The space of a kernel, and how the values in it walk along its axes.

A kernel visits the points of one shape; if it reduces, some axes of that shape are reduced, and the points that differ
in those alone are a row. The walk of a value says for each of its axes which axis of the space it goes along. So two
operations may run in one loop if what one reads of the other walks as the other does.
"""

from __future__ import annotations

from mlc.dialects import tensor as tn
from mlc.dialects.tensor.elementwise import Elementwise
from mlc.dialects.tensor.reduce import Reduce
from mlc.ir.core import Op
from mlc.ir.types import FloatType

ANYWHERE = -1
"""Stands in a walk for any element along the reduced axes of a row."""
Walk = tuple[int | None, ...]
"""For each axis of a value the axis of the space that it goes along, or None where it has one element."""

POINTWISE = (Elementwise, tn.Select, tn.Cast, tn.Map)
"""Operations whose result element p depends on element p of their (broadcast) operands alone."""
_CHEAP = frozenset(f"tensor.{n}" for n in (
    "add", "sub", "mul", "neg", "abs", "compare", "select", "cast", "maximum", "minimum", "and", "or", "xor", "shl",
    "shr", "logical_not", "sign", "transpose", "slice", "pad", "concat", "reverse", "take", "take_along", "full",
    "iota", "broadcast_to", "reshape", "size", "constant", "windows", "place", "pick",
    "dynamic_slice", "dynamic_update_slice"))

_MOVING = frozenset(f"tensor.{n}" for n in (
    "transpose", "slice", "pad", "concat", "reverse", "windows", "place", "pick", "cast"))


def is_cheap(op: Op) -> bool:
    """Whether computing it again costs about as little as reading what it gave."""
    return op.name in _CHEAP


def is_moving(op: Op) -> bool:
    """Whether elements of the result are elements of the operands, converted at most, wherever they lie."""
    return op.name in _MOVING


def is_exact(op: Reduce) -> bool:
    """Whether a reduction gives the same in every order."""
    return not isinstance(op.x.type.dtype, FloatType) or isinstance(op, tn.ReduceMax | tn.ReduceMin)


def is_free(op: Op) -> bool:
    """Costs nothing where it is read, so every reader gets its own copy."""
    if isinstance(op, tn.Reshape):
        return op.only_unit_axes
    if isinstance(op, tn.Constant):
        return not op.result.type.shape
    return isinstance(op, tn.Full | tn.Iota | tn.Size | tn.BroadcastTo)
