"""Remove what a program says of how tensors are divided among ranks.

takes  any form
gives  the same form
why    code of one device has no ranks
"""

from __future__ import annotations

from mlc.dialects.shard.constraint import Shard
from mlc.dialects.shard.stages import PipelineMark
from mlc.ir.core import Op
from mlc.ir.passes import Pass


def run(module: Op) -> None:
    """Replace each specification by its operand."""
    for op in list(module.walk()):
        if isinstance(op, Shard | PipelineMark):
            op.replace_by(op.x)


PASS = Pass(run, whole=False)
