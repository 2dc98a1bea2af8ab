"""Constant factors of matrix products, packed into panels of columns."""

from __future__ import annotations

from mlc.dialects import tensor
from mlc.dialects.func import Func
from mlc.dialects.tensor.packed import packed
from mlc.ir import sizes
from mlc.ir.changes import allowed
from mlc.ir.core import Value, before
from mlc.passes.analysis.accesses import RUN
from mlc.passes.analysis.constant_values import ROOM

NARROW, WIDE = RUN, 3 * RUN
"""Columns of a panel: as many as the longest vector has lanes, and as a register tile of many rows has."""
MANY, FEW = 32, 4
"""Rows from which on panels are wide; fewer than FEW read each column once, and do not gain by any layout."""


def pack_factors(function: Func, known: set[Value]) -> None:
    """Pack the factors in `known` of the products in a function, each once for all products of the same width."""
    made: dict[tuple[Value, int, int], Value] = {}
    for op in list(function.inside(tensor.DotGeneral)):
        width = panel_width(op)
        if not width or op.rhs not in known or not allowed("panels", op):
            continue
        axis, = op.free(1)
        key = op.rhs, axis, width
        if key not in made:
            with before(function.block.ancestor_of(op), op.loc.through("hoist_constants")):
                made[key] = packed(op.rhs, axis, width)
        with before(op, op.loc.through("hoist_constants")):
            op.set_operand(1, tensor.Unpack(made[key], axis, op.rhs.type.shape[axis]).result)


def panel_width(op: tensor.DotGeneral) -> int:
    """Width of the panels of the second factor of a product; 0 where it is not one of a matrix that many rows use."""
    if op.batch or op.rhs.type.rank != 2 or len(op.contract) != 1 or not op.rhs.type.is_static:
        return 0
    columns = op.rhs.type.shape[op.free(1)[0]]
    rows = sizes.product(op.lhs.type.shape[a] for a in op.free(0))
    if isinstance(rows, int) and rows < FEW:
        return 0
    widths = (NARROW,) if isinstance(rows, int) and rows < MANY else (WIDE, NARROW)
    return next((w for w in widths if w <= columns and -(-columns // w) * w <= ROOM * columns), 0)
