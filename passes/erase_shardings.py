"""Remove what a program says of how tensors are divided among ranks.

takes  any form
gives  the same form
why    code of one device has no ranks
"""

from __future__ import annotations

from mlc.dialects.shard.constraint import Shard
from mlc.dialects.shard.shift import After, Roll
from mlc.dialects.shard.stages import PipelineMark
from mlc.ir.core import Op, before
from mlc.ir.passes import Pass


def run(module: Op) -> None:
    """Replace each specification by its operand, and what goes around a ring by slices."""
    for op in list(module.walk()):
        if isinstance(op, Shard | PipelineMark | After):
            op.replace_by(op.x)
        elif isinstance(op, Roll):
            with before(op, op.loc):
                op.replace_by(op.on_ranks(op.x, None, ()))


PASS = Pass(run, whole=False)
