"""Have collectives exchange blocks that lie one after another.

takes  PARTITIONED
gives  PARTITIONED, in which collectives divide and join tensors along their first dimension longer than 1
why    NCCL sends memory as it lies; blocks along another dimension are pieces of rows, which kernels put together

A block along a later dimension is moved there by a transposition, which is part of the segment before or after the
collective. For ranks on GPUs only: on CPUs, a block is copied when it is sent, whatever its shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlc.dialects import shard
from mlc.dialects.func import Func
from mlc.dialects.tensor.base import reshape
from mlc.dialects.tensor.shape import transpose
from mlc.ir.core import Op, Value, before
from mlc.ir.passes import Pass
from mlc.ir.sizes import Dim
from mlc.passes.forms import PARTITIONED


def run(module: Op) -> None:
    """Rewrite the collectives of the programs of ranks."""
    for function in list(module.inside(Func)):
        if "partitioned" in function.attrs:
            for op in list(function.block):
                if isinstance(op, shard.AllGather | shard.ReduceScatter | shard.AllToAll):
                    _rewrite(op)


def _rewrite(op: shard.AllGather | shard.ReduceScatter | shard.AllToAll) -> None:
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


def _axes(op: shard.AllGather | shard.ReduceScatter | shard.AllToAll) -> tuple[int | None, int | None]:
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


def is_leading(shape: Sequence[Dim], axis: int) -> bool:
    """Whether the blocks of a tensor along a dimension lie one after another."""
    return prod(shape[:axis]) == 1


PASS = Pass(run, takes=PARTITIONED, gives=PARTITIONED, whole=False)
