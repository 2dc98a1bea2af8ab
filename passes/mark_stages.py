"""Say where values go that an operation takes from an earlier stage of a pipeline, such as a residual.

takes  any form, where `shard.stage` may say at which stage the arguments of modules are used
gives  the same form, with `shard.stage` also where an operation takes values of several stages: it is at the last
why    the cotangent of what is moved is moved back, as that of the argument of a module: before derivatives are taken

A value goes from its stage to each stage that uses it, in one message: what is used twice there has one mark, and its
cotangents are added there. Functions are looked at with the stages of their arguments; where calls differ in what they
need, nothing is said, and `split_stages` refuses the operation. Numbers, such as losses, go wherever they are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mlc.dialects import autodiff, func, shard
from mlc.dialects.func import Func
from mlc.dialects.shard.stages import NOWHERE, is_number
from mlc.ir.core import Op, Value, before
from mlc.ir.passes import Pass

Stages = tuple[int, ...]
Moves = tuple[tuple[int, int], ...]
"""The operands of an operation that have to be moved, by number, and the stages that they go to."""


def run(module: Op) -> None:
    """Mark what goes from stage to stage in the functions of a module that has stages."""
    if next(module.inside(shard.Stage), None) is None:
        return
    functions = {str(f.sym_name): f for f in module.inside(Func)}
    stages = _Stages(functions)
    for function in functions.values():
        if function.is_public:
            stages.of_results(function, (NOWHERE,) * len(function.args))
    moves = {op: moves for op, found in stages.moves.items() if len(found) == 1 for moves in found}
    for function in functions.values():
        _mark(function, moves)


@dataclass
class _Stages:
    """The stages of values, and what has to be moved.

    moves  for each operation what it needs moved, in all calls of its function
    """

    functions: dict[str, Func]
    results: dict[tuple[str, Stages], Stages] = field(default_factory=dict)
    moves: dict[Op, set[Moves]] = field(default_factory=dict)

    def of_results(self, function: Func, args: Stages) -> Stages:
        """The stages of the results of a function, whose arguments are at these."""
        key = str(function.sym_name), args
        if key not in self.results:
            self.results[key] = (NOWHERE,) * len(function.block.terminator.operands)     # in a recursion
            at: dict[Value, int] = dict(zip(function.args, args))
            for op in function.block:
                if op.terminator:
                    self.results[key] = tuple(at.get(v, NOWHERE) for v in op.operands)
                else:
                    at |= zip(op.results, self._of(op, [at.get(v, NOWHERE) for v in op.operands]))
        return self.results[key]

    def _of(self, op: Op, operands: Sequence[int]) -> Stages:
        """The stages of the results of an operation."""
        if isinstance(op, func.Call) and op.callee in self.functions:
            return self.of_results(self.functions[op.callee], tuple(operands))
        if isinstance(op, shard.Stage):
            return (op.stage,)
        if isinstance(op, autodiff.Backward):
            return (NOWHERE,) * len(op.results)
        large = [s for v, s in zip(op.operands, operands) if not is_number(v)]
        stage = max(large, default=NOWHERE)
        self.moves.setdefault(op, set()).add(tuple(
            (i, stage) for i, (v, s) in enumerate(zip(op.operands, operands))
            if not is_number(v) and NOWHERE < s < stage))
        return (max(operands, default=NOWHERE) if stage == NOWHERE else stage,) * len(op.results)


def _mark(function: Func, moves: dict[Op, Moves]) -> None:
    made: dict[tuple[Value, int], Value] = {}
    for op in list(function.block):
        for i, stage in moves.get(op, ()):
            value = op.operands[i]
            if (value, stage) not in made:
                with before(op, op.loc):
                    made[value, stage] = shard.Stage(value, stage).result
            op.set_operand(i, made[value, stage])
        if isinstance(op, shard.Stage):
            made.setdefault((op.x, op.stage), op.result)


PASS = Pass(run, whole=False)
