"""Add up what ranks combine before they do.

takes  PARTITIONED
gives  PARTITIONED, with fewer collectives
why    gradients of microbatches are sent once, after all of them; and so is any sum of what is combined alike

all_reduce(x) + all_reduce(y) = all_reduce(x + y), and the same of reduce_scatter. The order of the sum changes: first
that of each rank, then that of the ranks.
"""

from __future__ import annotations

from mlc.dialects import shard, tensor
from mlc.dialects.func import Func
from mlc.dialects.shard.collectives import Collective
from mlc.ir.changes import allowed
from mlc.ir.core import Op, Value, before
from mlc.ir.passes import Pass
from mlc.passes.forms import PARTITIONED


def run(module: Op) -> None:
    """Replace sums of combined values by combinations of sums, in all partitioned functions."""
    for function in module.inside(Func):
        if "partitioned" in function.attrs and "position" not in function.attrs:
            for op in list(function.block):                # a sum of several is one after the other
                if isinstance(op, tensor.Add) and _is_combined_alike(*op.operands) and allowed("reduction", op):
                    _defer(op)


def _is_combined_alike(a: Value, b: Value) -> bool:
    """Whether both are sums over the same ranks, of tensors of the same type, that nothing else uses."""
    x, y = a.op, b.op
    return (isinstance(x, shard.AllReduce | shard.ReduceScatter) and isinstance(y, type(x)) and x is not y
            and x.attrs == y.attrs and x.kind == "add" and x.x.type == y.x.type and len(a.uses) == len(b.uses) == 1)


def _defer(op: tensor.Add) -> None:
    first, second = (v.op for v in op.operands)
    assert isinstance(first, Collective) and isinstance(second, Collective)
    with before(op, op.loc):
        op.replace_by(first.with_operands([tensor.Add(first.x, second.x).result]).results[0])
    for old in (first, second):
        old.erase()


PASS = Pass(run, takes=PARTITIONED, gives=PARTITIONED, whole=False)
