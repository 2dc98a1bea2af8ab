"""Inline function calls.

takes  any form
gives  the same form
why    simplification and fusion work within a function

Private functions are inlined if they are small, become about one kernel, or have a single call; with `all`, wherever
possible. Callees are processed before callers, so that one walk suffices. Size symbols of a body are replaced by the
sizes at the call. Recursive functions and bodies of several blocks are not inlined.
"""

from __future__ import annotations

from mlc.dialects import func, tensor
from mlc.dialects.autodiff import RECOMPUTE
from mlc.dialects.func import Func
from mlc.dialects.tensor.traits import FusionInterface, Iteration
from mlc.ir.changes import allowed
from mlc.ir.core import Op, Symbol, before
from mlc.ir.passes import Pass

INLINE_THRESHOLD = 8
"""Largest body, in operations, that is inlined at every call."""

KERNEL_THRESHOLD = 64
"""Largest body that is inlined at every call as it becomes about one kernel."""

_FUSED = (Iteration.POINTWISE, Iteration.INDEXED, Iteration.VIEW, Iteration.REDUCE)
_ALONE = (Iteration.CONTRACT, Iteration.COMPOSITE)


def run(module: Op, all: bool = False, small: int = INLINE_THRESHOLD) -> None:
    """Inline calls, and remove private functions that become unused."""
    for table in [op for op in module.walk() if op.symbol_table]:
        _module(table, all, small)


def _module(module: Op, everything: bool, small: int) -> None:
    uses: dict[str, int] = {}
    for op in module.walk():
        if isinstance(op, func.Call):
            uses[op.callee] = uses.get(op.callee, 0) + 1
    done: dict[str, Func] = {}                   # functions whose calls have been inlined
    inlined: set[str] = set()
    for function in func.callees_first(module):
        for call in list(function.inside(func.Call)):
            callee = done.get(call.callee)
            if callee is None or len(callee.body.blocks) != 1:
                continue
            if callee.attrs.get(RECOMPUTE) or any(
                    isinstance(v.op, tensor.BindSize) and v.op.bound is None for v in call.args):
                continue                         # rematerialisation, and data-dependent sizes
            once = not callee.is_public and uses[call.callee] == 1
            if (everything or once or len(callee.block) <= small or _is_one_kernel(callee)) and allowed("call", call):
                _inline(call, callee)
                inlined.add(callee.sym_name)
        done[function.sym_name] = function
    still = {v for op in module.walk() if not isinstance(op, Func) for v in op.attrs.values() if isinstance(v, Symbol)}
    for name in inlined:
        if not done[name].is_public and name not in still:
            done[name].erase()


def _is_one_kernel(function: Func) -> bool:
    """Whether a body becomes about one kernel: elementwise operations, views and reductions around at most one
    contraction or composite. Inlined, it fuses with its neighbours (a convolution with the norm and the activation
    behind it); kernels that turn out equal share their code all the same."""
    if len(function.block) > KERNEL_THRESHOLD:
        return False
    apart = [op for op in function.block if not op.terminator and not (
        isinstance(op, FusionInterface) and op.iteration in _FUSED)]
    return len(apart) <= 1 and all(isinstance(op, FusionInterface) and op.iteration in _ALONE for op in apart)


def _inline(call: func.Call, callee: Func) -> None:
    """Replace one call by a copy of the body."""
    assert call.parent is not None
    last = call.prev
    with before(call):
        results = func.splice(callee, call.operands)
    op = last.next if last is not None else call.parent.first
    while op is not call:
        assert op is not None
        for inner in op.walk():
            inner.loc = inner.loc.called(callee.loc, call.loc).through("inline")
        op = op.next
    call.replace_by(*results)


PASS = Pass(run, whole=False)
