"""Materialize the size constraints of public functions, before operations are rewritten.

takes  any form of tensors
gives  the same form; public functions begin with a `tensor.constrain_size` for each constraint on a call's sizes
why    a rewrite may remove the operation that implies a constraint, but not the operations that rely on it

`x[5:]` needs 5 elements. If `x[5:][-2:]` becomes `x[N - 2:N]`, or only the shape of `x[5:]` is used, no operation
implies this any more. Constraints of private functions are propagated to their public callers, with the sizes at the
call. A constraint on a data-dependent size stays with its operation.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlc.dialects import func, tensor
from mlc.ir import sizes
from mlc.ir.core import Op, before, located
from mlc.ir.passes import Pass
from mlc.ir.types import TensorType, Type
from mlc.passes.analysis.size_constraints import SizeConstraints, size_constraints


def run(module: Op) -> None:
    """Insert the constraints of each public function at its start, replacing existing ones."""
    for table in [op for op in module.walk() if op.symbol_table]:
        done: dict[str, tuple[Sequence[Type], SizeConstraints]] = {}
        for function in func.callees_first(table):
            if len(function.body.blocks) != 1:
                continue
            constraints = _of_arguments(function, size_constraints(function, done))
            done[function.sym_name] = [a.type for a in function.args], constraints
            for op in list(function.inside(tensor.ConstrainSize)):
                if op.size in constraints:
                    op.erase()
            first = function.block.first
            if not function.is_public or first is None:
                continue                         # its constraints are propagated to its callers
            with before(first):
                for size, (message, loc) in constraints.items():
                    with located(loc):
                        tensor.ConstrainSize(size, message)


def _of_arguments(function: func.Func, constraints: SizeConstraints) -> SizeConstraints:
    """The size constraints over sizes that arguments bind."""
    types = [a.type for a in function.args if isinstance(a.type, TensorType)]
    bound = {name for t in types for d in t.shape if (name := sizes.symbol_name(d)) is not None}
    return {size: why for size, why in constraints.items() if sizes.symbols(size) <= bound}


PASS = Pass(run, whole=False)
