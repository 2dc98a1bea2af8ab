"""Have collectives be those of NCCL: of blocks that lie one after another, and of elements that it combines.

takes  PARTITIONED
gives  PARTITIONED, in which collectives divide and join tensors along their first dimension longer than 1, and combine
       numbers of 8, 32 and 64 bits and floats: their sums and products, and the extrema of integers
why    NCCL sends memory as it lies, its extrema ignore NaN, and it has no integers of 16 bits

A block along a later dimension is moved to the first one by a transposition, which is part of the segment before or
after the collective. Elements that NCCL combines otherwise than the dialects define are gathered, and combined in the
segment after it. For ranks on GPUs only: on CPUs, a block is copied when it is sent, and everything is combined.
"""

from __future__ import annotations

from mlc.dialects import shard, tensor
from mlc.dialects.func import Func
from mlc.dialects.shard.collectives import is_leading
from mlc.dialects.tensor.base import reshape
from mlc.dialects.tensor.shape import transpose
from mlc.ir.core import Op, Value, before
from mlc.ir.passes import Pass
from mlc.ir.types import FloatType, ScalarType
from mlc.passes.forms import PARTITIONED

Moving = shard.AllGather | shard.ReduceScatter | shard.AllToAll
_REDUCTIONS = {"add": tensor.ReduceSum, "mul": tensor.ReduceProd, "max": tensor.ReduceMax, "min": tensor.ReduceMin}


def run(module: Op) -> None:
    """Rewrite the collectives of the programs of ranks."""
    for function in list(module.inside(Func)):
        if "partitioned" in function.attrs:
            for op in list(function.block):
                if isinstance(op, shard.AllReduce | shard.ReduceScatter) and not combines(op.kind, op.x.type.dtype):
                    _combine_here(op)
                elif isinstance(op, shard.AllGather | shard.ReduceScatter | shard.AllToAll):
                    _rewrite(op)


def combines(kind: str, dtype: ScalarType) -> bool:
    """Whether NCCL combines elements as the dialects define, but for the order and the rounding of sums."""
    return kind not in ("max", "min") if isinstance(dtype, FloatType) else dtype.width != 16


def _combine_here(op: shard.AllReduce | shard.ReduceScatter) -> None:
    """Gather the operands of all ranks, and combine them."""
    with before(op, op.loc):
        if isinstance(op, shard.AllReduce):
            found = shard.AllGather(reshape(op.x, (1, *op.x.type.shape)), op.mesh, op.axes, 0).result
        else:
            found = shard.AllToAll(_divided(op.x, op.group_size(), op.axis), op.mesh, op.axes, 0, 0).result
        op.replace_by(_REDUCTIONS[op.kind](found, (0,)).result)


def _rewrite(op: Moving) -> None:
    taken, given = _axes(op)
    if all(axis is None or is_leading(shape, axis) for shape, axis in ((op.x.type.shape, taken),
                                                                       (op.result.type.shape, given))):
        return
    n = op.group_size()
    with before(op, op.loc):
        blocks = reshape(op.x, (1, *op.x.type.shape)) if taken is None else _divided(op.x, n, taken)
        along = {name: 0 for name in ("axis", "split", "concat") if hasattr(op, name)}
        found: Value = op.with_operands([blocks], **along).results[0]
        if given is not None:
            found = transpose(found, (*range(1, given + 1), 0, *range(given + 1, found.type.rank)))
        op.replace_by(reshape(found, op.result.type.shape))


def _axes(op: Moving) -> tuple[int | None, int | None]:
    """The dimensions along which the operand is divided, and the result joined, if they are."""
    match op:
        case shard.AllGather():
            return None, op.axis
        case shard.ReduceScatter():
            return op.axis, None
        case _:
            return op.split, op.concat


def _divided(x: Value, n: int, axis: int) -> Value:
    """The n blocks of a tensor along a dimension, one after another."""
    shape = x.type.shape
    parts = reshape(x, (*shape[:axis], n, shape[axis] // n, *shape[axis + 1:]))
    return transpose(parts, (axis, *range(axis), *range(axis + 1, parts.type.rank)))


PASS = Pass(run, takes=PARTITIONED, gives=PARTITIONED, whole=False)
