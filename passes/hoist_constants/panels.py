"""Constant factors of products of matrices and of convolutions, packed into panels of columns.

The columns of a convolution are its output channels: its weights are packed, and the elements of an image are read one
by one, each for a whole vector of channels. Those of a convolution of each channel by itself are one panel.

Where an instruction multiplies several terms at a time, those of a column that share a word lie side by side, in the
order in which it reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from mlc.dialects import tensor
from mlc.dialects.func import Func
from mlc.dialects.tensor.base import broadcast_to, cast, reshape
from mlc.dialects.tensor.orders import terms_of_tiles
from mlc.dialects.tensor.packed import packed
from mlc.ir import sizes
from mlc.ir.changes import allowed
from mlc.ir.core import Op, Value, before
from mlc.ir.types import ScalarType, bf16, f16, i8, i32, ui8
from mlc.passes.analysis.accesses import RUN
from mlc.passes.analysis.constant_values import ROOM

NARROW, WIDE, CHANNELS = RUN, 3 * RUN, 2 * RUN
"""Columns of a panel: as many as the longest vector has lanes, as a register tile of many rows has, and as one of the
points of an image has."""
MANY, FEW = 32, 4
"""Rows from which on panels are wide; fewer than FEW read each column once, and do not gain by any layout."""
SIXTEEN_BITS = frozenset({bf16, f16})


_MOVES = tensor.Cast | tensor.Reshape | tensor.Transpose | tensor.Reverse | tensor.Pad


@dataclass(frozen=True)
class Columns:
    """A factor that is packed: the operand of the product, the tensor that it broadcasts and widens, the axis of
    columns, and that along which terms share words, or -1; and whether those of a word are in the opposite order."""

    side: int
    x: Value
    axis: int
    width: int
    terms: int = -1
    reversed: bool = False

    @property
    def run(self) -> int:
        """How many terms share a word of 32 bits."""
        return int(i32.width // self.x.type.dtype.width)


def pack_factors(function: Func, known: set[Value], narrow: frozenset[ScalarType] = frozenset()) -> None:
    """Pack the factors in `known` of the products in a function, each once for all products of the same width; those
    that are widened from `narrow` types as they are stored."""
    made: dict[Columns, Value] = {}
    for op in list(function.inside(tensor.DotGeneral)):
        if (of_columns := without_columns(op, known, narrow)) is not None:
            op = of_columns
        columns = columns_of(op, known, narrow)
        if columns is not None and allowed("panels", op):
            _read_panels(op, columns, made)
    for sum in list(function.inside(tensor.ReduceFma)):
        _pack_window(sum, known, made)


def pack_weights(function: Func, narrow: frozenset[ScalarType]) -> None:
    """Pack the weights of the convolutions in a function that tiles of a matrix unit multiply: in each call, as they
    are no constants, but once for all pixels. The result, and so the next image, then has its channels last."""
    views, made = set[Value](function.args), dict[Columns, Value]()
    for op in function.block:
        if isinstance(op, tensor.DotGeneral) and is_on_tiles(op) and len(op.free(1)) > 1:
            columns = columns_of(op, views - {op.rhs}, narrow)
            if columns is not None and columns.side == 0 and allowed("panels", op):
                _read_panels(op, columns, made)
        elif isinstance(op, _MOVES) and op.x in views:
            views.add(op.result)


def _read_panels(op: tensor.DotGeneral, columns: Columns, made: dict[Columns, Value]) -> None:
    """Have a product read a factor from its panels."""
    x, wide = _from_panels(op, columns, made), op.operands[columns.side].type
    with before(op, op.loc.through("hoist_constants")):
        op.set_operand(columns.side, cast(broadcast_to(x, wide.shape), wide.dtype))


def _pack_window(op: tensor.ReduceFma, known: set[Value], made: dict[Columns, Value]) -> None:
    """Pack the weights of each channel that windows of an image are multiplied with into one panel of all channels, so
    that vectors of channels read them in order."""
    image, view = (_as_stored(_spread(v), SIXTEEN_BITS).op for v in (op.x, op.y))
    if not isinstance(image, tensor.Windows) or not isinstance(view, tensor.Reshape) or (
            not view.moves_elements or view.x not in known or view.x.type.rank < 3):
        return
    channels = view.x.type.shape[0]
    width = -(-channels // NARROW) * NARROW
    if width <= ROOM * channels and sizes.product(view.x.type.shape[1:]) > 1 and allowed("panels", op):
        x = _from_panels(op, Columns(1, view.x, 0, width), made)
        with before(op, op.loc.through("hoist_constants")):
            x = cast(reshape(x, view.result.type.shape), op.y.type.dtype)
            op.set_operand(1, broadcast_to(x, op.y.type.shape))


def _spread(x: Value) -> Value:
    """The tensor that x broadcasts, or x."""
    return x.op.x if isinstance(x.op, tensor.BroadcastTo) else x


def _from_panels(op: Op, columns: Columns, made: dict[Columns, Value]) -> Value:
    """A factor as an operation reads it from its panels, which are made at its first use."""
    x, axis, terms, key = columns.x, columns.axis, columns.terms, replace(columns, side=0)
    place, within = x.type.rank - 1, terms + (terms < axis)     # the axes of words, and of terms in a panel
    if key not in made:
        with before(op.enclosing(Func).block.ancestor_of(op), op.loc.through("hoist_constants")):
            panels = packed(x, axis, columns.width)
            made[key] = (panels if terms < 0 else
                         tensor.Pack(panels, within, columns.run, place, columns.reversed).result)
    with before(op, op.loc.through("hoist_constants")):
        panels = made[key]
        if terms >= 0:
            panels = tensor.Unpack(panels, within, x.type.shape[terms], place, columns.reversed).result
        return tensor.Unpack(panels, axis, x.type.shape[axis]).result


def axis_of_words(op: tensor.DotGeneral, side: int, x: Value, lead: int, narrow: frozenset[ScalarType]) -> int:
    """The axis of a constant factor x along which its terms share words, if an instruction multiplies these with words
    of many rows of the other factor: the last axis of terms. -1 if there is none."""
    other = _as_stored(op.operands[1 - side], narrow)
    axes = [pair[side] - lead for pair in op.contract]
    types = {x.type.dtype, other.type.dtype}
    if not (types in ({bf16}, {i8, ui8}) or (is_on_tiles(op) and types <= {i8, ui8})) or (
            other is op.operands[1 - side] or not axes or min(axes) < 0):
        return -1
    rows = sizes.product(op.operands[1 - side].type.shape[a] for a in op.free(1 - side))
    whole = x.type.shape[axes[-1]] % (i32.width // x.type.dtype.width) == 0
    many = is_on_tiles(op) or (isinstance(rows, int) and rows >= MANY)
    return axes[-1] if whole and many else -1


def is_on_tiles(op: tensor.DotGeneral) -> bool:
    """Whether tiles of a matrix unit multiply, which read words for any number of rows."""
    return op.order is not None and terms_of_tiles(op.order) is not None


def multiplies_last_first(op: tensor.DotGeneral, x: Value) -> bool:
    """Whether an instruction multiplies the second one of two terms that share a word first: that of AVX512_BF16."""
    return x.type.dtype == bf16 and not is_on_tiles(op)


def columns_of(op: tensor.DotGeneral, known: set[Value], narrow: frozenset[ScalarType]) -> Columns | None:
    """The factor in `known` of a product that is packed, if there is any: many rows of the other use its columns."""
    for side in (1, 0):
        x = _as_stored(op.operands[side], narrow)
        spread = x.op if isinstance(x.op, tensor.BroadcastTo) else None
        lead = x.type.rank - spread.x.type.rank if spread is not None else 0
        if spread is not None and spread.x.type.shape == x.type.shape[lead:]:
            x = spread.x
        else:
            lead = 0
        own = [axes[side] for axes in op.batch]
        if x not in known or op.operands[1 - side] in known or not x.type.is_static or len(op.free(side)) != 1 or any(
                axis >= lead for axis in own):
            continue
        axis, = op.free(side)
        if axis >= lead and (width := panel_width(op, side, x.type.shape[axis - lead])):
            words = axis_of_words(op, side, x, lead, narrow)
            return Columns(side, x, axis - lead, width, words, words >= 0 and multiplies_last_first(op, x))
    return None


def panel_width(op: tensor.DotGeneral, side: int, columns: int) -> int:
    """Width of the panels of a factor; 0 if so few rows use it, or so few columns are in it, that it is not packed."""
    other: Value = op.operands[1 - side]
    rows = sizes.product(other.type.shape[a] for a in (*(pair[1 - side] for pair in op.batch), *op.free(1 - side)))
    if isinstance(rows, int) and rows < FEW:
        return 0
    widths = [WIDE, NARROW] if side == 1 and not is_on_tiles(op) else [CHANNELS, NARROW]
    if side == 1 and isinstance(rows, int) and rows < MANY and not is_on_tiles(op):
        widths = [NARROW]
    if side == 0 and not op.batch and len(op.free(1)) < 2:
        widths = []                           # the channels of an image may be its last axis, the rows of a matrix not
    return width_that_fits(columns, widths)


def width_that_fits(columns: int, widths: Sequence[int]) -> int:
    """The first of some widths in whose panels columns do not take much more memory; 0 if there is none."""
    return next((w for w in widths if w <= columns and -(-columns // w) * w <= ROOM * columns), 0)


def _as_stored(factor: Value, narrow: frozenset[ScalarType]) -> Value:
    """A factor, or the numbers of a narrow type that it is, extended."""
    op = factor.op
    return op.x if isinstance(op, tensor.Cast) and op.x.type.dtype in narrow else factor


def without_columns(op: tensor.DotGeneral, known: set[Value],
                    narrow: frozenset[ScalarType]) -> tensor.DotGeneral | None:
    """The same product of constant weights and an image, if `op` is one with the image as a matrix of columns.

    An image of few points is such a matrix, whose long rows fill vectors; vectors of channels need no copy of it.
    """
    view, constant = _as_stored(op.rhs, narrow).op, _as_stored(op.lhs, narrow)
    if constant not in known or not isinstance(view, tensor.Reshape) or view.moves_elements or op.batch or (
            op.contract != ((1, 0),) or op.lhs.type.rank != 2 or op.rhs.type.rank != 2 or not view.x.type.is_static):
        return None
    image = tuple(n for n in view.x.type.shape if n != 1)
    terms = next((i for i in range(len(image)) if prod(image[:i]) == op.rhs.type.shape[0]), 0)
    if not terms or len(image) - terms < 2 or not width_that_fits(op.lhs.type.shape[0], [CHANNELS, NARROW]) or (
            not allowed("columns", op)):
        return None
    function = op.enclosing(Func)
    with before(function.block.ancestor_of(op), op.loc.through("hoist_constants")):
        weights = reshape(constant.op.x if isinstance(constant.op, tensor.Reshape) else constant,
                          (op.lhs.type.shape[0], *image[:terms]))
    known.add(weights)
    dtype = op.lhs.type.dtype
    with before(op, op.loc.through("hoist_constants")):
        made = tensor.DotGeneral(cast(weights, dtype), cast(reshape(view.x, image), dtype), (),
                                 tuple((i + 1, i) for i in range(terms)), op.order)
    for user in list(op.result.users):
        if isinstance(user, tensor.Reshape):
            with before(user, user.loc):
                user.replace_by(reshape(made.result, user.shape))
    if op.result.uses:
        with before(op, op.loc):
            op.replace_by(reshape(made.result, op.result.type.shape))
    else:
        op.erase()
    return made
