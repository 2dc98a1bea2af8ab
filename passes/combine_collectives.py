"""Combine small collectives into few large ones.

takes  PARTITIONED
gives  PARTITIONED, with fewer collectives
why    a message costs microseconds, however short; the gradients of a step are one message, not hundreds

Collectives of one kind and group that are between the same segments are carried out on one tensor, put together from
their operands; each result is a part of its. Their bits are the same: elements of different tensors do not combine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.dialects import shard, tensor
from mlc.dialects.func import Func
from mlc.dialects.shard.collectives import Collective
from mlc.dialects.tensor.base import reshape
from mlc.ir.changes import allowed
from mlc.ir.core import Op, before
from mlc.ir.passes import Pass
from mlc.passes.analysis.dependence_order import restore_dominance
from mlc.passes.analysis.segments import Segments
from mlc.passes.forms import PARTITIONED

SMALL = 1 << 20
"""Most bytes of an operand that is combined with others: copying a larger one takes longer than a message."""
BUCKET = 16 << 20
"""Most bytes of a combined operand."""


def run(module: Op, small: int = SMALL, bucket: int = BUCKET) -> None:
    """Combine collectives whose operands have at most `small` bytes, up to `bucket` bytes together."""
    for function in list(module.inside(Func)):
        if "partitioned" in function.attrs and "position" not in function.attrs:
            order = {op: i for i, op in enumerate(function.block)}
            for ops in _buckets(function, small, bucket):
                _combine(ops, max(ops, key=order.__getitem__))
            restore_dominance(function.block)


def _buckets(function: Func, small: int, bucket: int) -> list[list[Collective]]:
    """The collectives that are combined, in order."""
    ready = Segments.of(function).ready
    depth: dict[Op, int] = {}                # collectives of collectives: combined in another order they would wait
    open_: dict[Any, list[Collective]] = {}
    out: list[list[Collective]] = []
    for op in list(function.block):
        if isinstance(op, Collective | shard.After):
            depth[op] = (depth.get(op.x.op, -1) if op.x.op is not None else -1) + isinstance(op, Collective)
        kinds = shard.AllReduce | shard.AllGather | shard.ReduceScatter | shard.Shift
        if not isinstance(op, kinds) or op.operand_bytes() > small:
            continue
        if getattr(op, "axis", 0) != 0 or not op.operand_bytes() or not allowed("collective", op):
            continue
        how = getattr(op, "kind", ""), getattr(op, "offset", 0)
        key = type(op), op.mesh, op.axes, how, op.x.type.dtype, ready[op.result], depth[op]
        group = open_.get(key)
        if group is None or sum(o.operand_bytes() for o in (*group, op)) > bucket:
            group = open_[key] = []
            out.append(group)
        group.append(op)
    return [group for group in out if len(group) > 1]


def _combine(ops: Sequence[Collective], last: Collective) -> None:
    """Replace some collectives by one on the rows of their operands, next to each other, in place of the last of them.

    What uses the results of the others may come before it: dominance is restored afterwards.
    """
    first, n = ops[0], ops[0].group_size()
    rows = n if isinstance(first, shard.ReduceScatter) else 1
    with before(last, first.loc):
        parts = [reshape(op.x, (rows, op.x.type.size // rows)) for op in ops]
        widths = [part.type.shape[1] for part in parts]
        together = first.with_operands([tensor.Concat(tuple(parts), 1).result]).results[0]
        start = 0
        for op, width in zip(ops, widths):
            height = together.type.shape[0]
            part = tensor.Slice(together, (0, start), (height, start + width), (1, 1)).result
            new = reshape(part, op.result.type.shape)
            start += width
            for user, i in list(op.result.uses):
                user.set_operand(i, new)
    for op in ops:
        op.erase()


PASS = Pass(run, takes=PARTITIONED, gives=PARTITIONED, whole=False)
