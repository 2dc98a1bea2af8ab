"""Outline what depends on constant arguments alone into functions that run once.

takes  FIXED
gives  FIXED; where arguments of @f are `constants`, it calls @f_constants and @f_with_constants
why    the weights of a model do not change from call to call; what is computed of them need not be computed again

@f_constants takes the constant arguments and returns what @f_with_constants needs of them besides. A caller who keeps
its results calls @f_with_constants alone; the attribute `sources` of both says where their arguments come from. What
private functions compute of constants is outlined into functions of its own, which are called where they are.

With `panels`, a constant factor of a matrix product is packed into panels (panels.py). It is then read in order, by
aligned vectors, and packed once and not in each call. With `pairs`, so is one of bf16 that is widened where it is read,
and with `quads` one of bytes, for processors whose instructions multiply two, or four, such numbers at a time.

The weights of convolutions on tiles that are no constants are packed, too, in each call.
"""

from __future__ import annotations

from mlc.dialects import func
from mlc.dialects.func import CONSTANTS, Func
from mlc.ir.core import Op, Value
from mlc.ir.passes import Pass
from mlc.ir.types import ScalarType, bf16, i8, ui8
from mlc.passes.analysis.constant_values import ConstantValues
from mlc.passes.forms import FIXED
from mlc.passes.hoist_constants.outlining import outline
from mlc.passes.hoist_constants.panels import pack_factors, pack_weights


def run(module: Op, panels: bool = False, pairs: bool = False, quads: bool = False) -> None:
    """Outline the constants of all functions that are called with any, and pack factors; the options as above."""
    narrow = frozenset((bf16,) * pairs + (i8, ui8) * quads)
    if any(CONSTANTS in function.attrs for function in func.functions(module)):
        outline_constants(module, panels, narrow)
    for function in func.functions(module) if panels and narrow else ():
        pack_weights(function, narrow)


def outline_constants(module: Op, panels: bool, narrow: frozenset[ScalarType]) -> None:
    """Outline what constant arguments alone are needed for, and pack the factors of products among it."""
    values = ConstantValues(module)
    for function in values.arguments:
        if values.arguments[function]:
            lift(function, values)
            if panels:
                pack_factors(function, values.of(function), narrow)
    for function in func.callees_first(module):
        if values.arguments.get(function):
            outline(function, values)


def lift(function: Func, values: ConstantValues) -> None:
    """Move constants out of loops and branches, to the place before them."""
    moved = True
    while moved:
        moved, known = False, values.of(function)
        for outer in list(function.block):
            for op in [op for region in outer.regions for block in region.blocks for op in block]:
                moved |= _lift(op, outer, values, known)


def _lift(op: Op, outer: Op, values: ConstantValues, known: set[Value]) -> bool:
    """Move an operation, and those inside it, before `outer` if they are constants; returns whether any was."""
    if values.is_constant(op, known):
        for literal in {v.op for v in op.operands if v not in known}:
            assert literal is not None
            if literal.parent is not outer.parent:         # it is inside, too
                literal.move_before(outer)
        op.move_before(outer)
        known.update(op.results)
        return True
    moved = False
    for inner in [o for region in op.regions for block in region.blocks for o in block]:
        moved |= _lift(inner, outer, values, known)
    return moved


PASS = Pass(run, takes=FIXED, gives=FIXED)
