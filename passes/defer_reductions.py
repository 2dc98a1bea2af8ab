"""Add up what ranks combine before they do.

takes  PARTITIONED
gives  PARTITIONED, with fewer collectives
why    gradients of microbatches are sent once, after all of them; and so is any sum of what is combined alike

all_reduce(x) + all_reduce(y) = all_reduce(x + y), and the same of reduce_scatter. The order of the sum changes: first
that of each rank, then that of the ranks. Those of float16 stay apart: x + y of one rank soon is more than the type
holds, where the sum of all ranks may be small.
"""

from __future__ import annotations

from mlc.dialects import shard, tensor
from mlc.dialects.func import Func
from mlc.ir.changes import allowed
from mlc.ir.core import Op, before
from mlc.ir.passes import Pass
from mlc.ir.types import f16
from mlc.passes.forms import PARTITIONED


def run(module: Op) -> None:
    """Replace sums of combined values by combinations of sums, in all partitioned functions."""
    for function in module.inside(Func):
        if "partitioned" in function.attrs and "position" not in function.attrs:
            for op in list(function.block):                # a sum of several is one after the other
                if isinstance(op, tensor.Add):
                    _defer(op)


def _defer(op: tensor.Add) -> None:
    """Add before the sum over ranks, if both operands are one, over the same ranks and of tensors of the same type, and
    nothing else uses them."""
    a, b = op.operands
    x, y = a.op, b.op
    if (isinstance(x, shard.AllReduce | shard.ReduceScatter) and isinstance(y, type(x)) and x is not y
            and x.attrs == y.attrs and x.kind == "add" and x.x.type == y.x.type and x.x.type.dtype != f16
            and len(a.uses) == len(b.uses) == 1 and allowed("reduction", op)):
        with before(op, op.loc):
            op.replace_by(x.with_operands([tensor.Add(x.x, y.x).result]).results[0])
        for old in (x, y):
            old.erase()


PASS = Pass(run, takes=PARTITIONED, gives=PARTITIONED, whole=False)
