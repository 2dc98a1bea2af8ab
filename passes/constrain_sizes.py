"""Write down what operations need of the sizes of arguments, before any of them is rewritten.

takes  any form of tensors
gives  the same form; public functions begin with a `tensor.constrain_size` for each condition on a call's sizes
why    a rewrite may take the operation away that had the condition, and leave what relied on it

`x[5:]` needs 5 elements. When `x[5:][-2:]` becomes `x[N - 2:N]`, or when only the shape of `x[5:]` is used, nothing is
left that would say so. The conditions of private functions become those of the public ones that call them, with the
sizes at the call. A constraint on a data-dependent size stays with its operation.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlc.dialects import func, tensor
from mlc.ir import sizes
from mlc.ir.core import Op, before, located
from mlc.ir.passes import Pass
from mlc.ir.types import TensorType, Type
from mlc.passes.analysis.size_constraints import Conditions, size_conditions


def run(module: Op) -> None:
    """Put the conditions of each public function at its beginning, where they replace those that stand there."""
    for table in [op for op in module.walk() if op.symbol_table]:
        known: dict[str, tuple[Sequence[Type], Conditions]] = {}
        for function in func.callees_first(table):
            if len(function.body.blocks) != 1:
                continue
            found = _of_arguments(function, size_conditions(function, known))
            known[function.sym_name] = [a.type for a in function.args], found
            for op in list(function.inside(tensor.ConstrainSize)):
                if op.size in found:
                    op.erase()
            first = function.block.first
            if not function.is_public or first is None:
                continue                         # whoever calls it has its conditions
            with before(first):
                for size, (message, loc) in found.items():
                    with located(loc):
                        tensor.ConstrainSize(size, message)


def _of_arguments(function: func.Func, conditions: Conditions) -> Conditions:
    """The size constraints over sizes that arguments bind."""
    types = [a.type for a in function.args if isinstance(a.type, TensorType)]
    bound = {name for t in types for d in t.shape if (name := sizes.symbol_name(d)) is not None}
    return {size: why for size, why in conditions.items() if sizes.symbols(size) <= bound}


PASS = Pass(run, whole=False)
