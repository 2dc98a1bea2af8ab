"""Replace composite operations by the primitives they stand for.

takes  DIFFERENTIATED
gives  DECOMPOSED: no operation is left that has a decomposition
why    everything below knows primitives only; a target that wants a composite whole claims it before

A composite's own `decompose` says what it is; what that emits may be composite again.
"""

from __future__ import annotations

from mlc.ir.core import Op, Value, before
from mlc.ir.passes import Pass
from mlc.passes.forms import DECOMPOSED, DIFFERENTIATED, is_composite


def run(module: Op) -> None:
    """Expand composites until none is left."""
    work = [op for op in module.walk() if is_composite(op)]
    while work:
        op = work.pop()
        previous = op.prev
        with before(op, op.loc.through("decompose")):
            value = op.decompose()  # type: ignore[attr-defined]
        made = op.prev
        while made is not None and made is not previous:
            work += [inner for inner in made.walk() if is_composite(inner)]
            made = made.prev
        op.replace_by(*((value,) if isinstance(value, Value) else value))


PASS = Pass(run, takes=DIFFERENTIATED, gives=DECOMPOSED)
