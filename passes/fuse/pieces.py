"""Operands of attention, which are read as they are in memory: rows are copied to shared memory in pieces."""

from __future__ import annotations

from mlc.dialects import tensor as tn
from mlc.dialects.tensor.iteration import IndexingMap, linear
from mlc.dialects.tensor.traits import moves_elements
from mlc.ir import sizes
from mlc.ir.affine import dims_of, is_multiple_of, step_along
from mlc.ir.core import Op, Value
from mlc.ir.sizes import AffineDim

PIECE = 16
"""Bytes that are copied to shared memory at once."""


def moved_in_pieces(op: tn.Blockwise, i: int) -> tuple[list[Op], Value]:
    """The operations before an operand, the last one first, that the copies to shared memory do, and the value that
    they read: it has an element for each row and each term, and pieces of its rows are contiguous and aligned."""
    domain = op.iteration_domain()
    at = op.operand_maps(op.home(domain), domain)[i]
    assert at is not None and at[-1] is not None
    (last,), needed = dims_of(at[-1]), dims_of(*_known(at[-2:]))
    chain, value = list[Op](), op.operands[i]
    while (source := value.op) is not None and source.parent is op.parent and moves_elements(source) and isinstance(
            source, tn.Transpose | tn.Slice | tn.Reshape | tn.BroadcastTo):
        at, = source.operand_maps(at, domain)
        known = _known(at)
        if at is None or len(known) != len(at) or not needed <= dims_of(*known):
            break
        place, moved = linear(known, source.x.type.shape), source.x
        start = sizes.substitute(place, {AffineDim(last): 0})
        if step_along(place, last) != 1 or not is_multiple_of(start, PIECE // moved.type.dtype.itemsize):
            break
        chain.append(source)
        value = moved
    return chain, value


def _known(at: IndexingMap | None) -> list[sizes.Dim]:
    return [e for e in at or () if e is not None]
