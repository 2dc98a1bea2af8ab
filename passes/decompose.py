"""Replace composite operations by the primitives they stand for.

takes  DIFFERENTIATED
gives  DECOMPOSED: no composite is left
why    the passes below handle primitives only; a target that supports a composite lowers it earlier

The `decompose` of a composite emits its definition, which may contain composites in turn.
"""

from __future__ import annotations

from collections.abc import Callable

from mlc.dialects.shard.constraint import Shard
from mlc.dialects.tensor.flash import Blockwise
from mlc.ir.core import Op, Value, before
from mlc.ir.passes import Pass
from mlc.passes.forms import DECOMPOSED, DIFFERENTIATED, is_composite


def run(module: Op, shardings: bool = False, kernels: bool = False) -> None:
    """Expand composites until none is left; with `shardings`, but those that say how tensors are divided.

    Without `kernels`, attention that takes a block of keys at a time is expanded too: only GPUs with tensor cores have
    a kernel for it.
    """
    if not kernels:
        for op in [op for op in module.walk() if isinstance(op, Blockwise)]:
            with before(op, op.loc.through("decompose")):
                op.replace_by(op.composite())
    expand(module, lambda op: shardings and isinstance(op, Shard))


def expand(module: Op, keeps: Callable[[Op], bool]) -> None:
    """Expand composites but those that a target keeps, which it lowers itself."""
    def expands(op: Op) -> bool:
        return is_composite(op) and not keeps(op)

    work = [op for op in module.walk() if expands(op)]
    while work:
        op = work.pop()
        previous = op.prev
        with before(op, op.loc.through("decompose")):
            value = op.decompose()  # type: ignore[attr-defined]
        made = op.prev
        while made is not None and made is not previous:
            work += [inner for inner in made.walk() if expands(inner)]
            made = made.prev
        op.replace_by(*((value,) if isinstance(value, Value) else value))


PASS = Pass(run, takes=DIFFERENTIATED, gives=DECOMPOSED)
