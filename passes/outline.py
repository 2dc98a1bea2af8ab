"""Outline kernels into private functions, one for equal kernels.

takes  LOOP
gives  LOOP, in which each kernel stands alone in a function and is called
why    equal kernels are lowered and compiled once, and compiled kernels are shared with other programs

The arguments of the function are the sizes of the kernel, then its buffers in order of use. Constants are cloned into
it; views stay at the call. Kernels are equal up to the names of values and their label.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Hashable

from mlc.dialects import arith
from mlc.dialects.builtin import Module
from mlc.dialects.func import Call, Func, Return, function
from mlc.dialects.loop import Kernel
from mlc.ir.changes import allowed
from mlc.ir.core import Symbol, Value, at_end, before
from mlc.ir.passes import Pass
from mlc.passes.analysis.free_values import free_values
from mlc.passes.analysis.structural_key import region_key
from mlc.passes.forms import LOOP


def run(module: Module) -> None:
    """Outline every kernel of `module` that is not yet in a private function of its own."""
    known: dict[Hashable, Func] = {}
    names = {str(op.attrs["sym_name"]) for op in module.body.block if "sym_name" in op.attrs}
    for kernel in list(module.inside(Kernel)):
        if _is_alone(kernel) or not allowed("kernel", kernel):
            continue
        used = free_values(kernel)
        given = [v for v in used if not isinstance(v.op, arith.Constant)]
        made = function("", [v.type for v in given], [v.name for v in given], private=True)
        made.loc = kernel.loc
        with before(kernel, kernel.loc):
            call = Call(Symbol(""), tuple(given), ())
        _fill(made, kernel, given, used)
        same = known.setdefault(_key(made, kernel), made)
        if same is made:
            made.sym_name = _fresh(kernel.label, names)
            module.body.block.insert(made)
        call.callee = same.sym_name


def _is_alone(kernel: Kernel) -> bool:
    """Whether a kernel is the only operation of a private function, but for constants."""
    holder = kernel.parent_op
    return isinstance(holder, Func) and not holder.is_public and all(
        op is kernel or op.terminator or isinstance(op, arith.Constant) for op in holder.block)


def _fill(made: Func, kernel: Kernel, given: list[Value], used: list[Value]) -> None:
    """Move a kernel into a function that takes `given`."""
    here: dict[Value, Value] = dict(zip(given, made.args))
    kernel.detach()
    with at_end(made.block, kernel.loc):
        for v in used:
            if isinstance(v.op, arith.Constant):
                here[v] = v.op.insert_clone({}).results[0]
        made.block.insert(kernel)
        Return(())
    for op in kernel.walk():
        for i, v in enumerate(op.operands):
            if v in here:
                op.set_operand(i, here[v])


def _key(made: Func, kernel: Kernel) -> Hashable:
    """Structural key of a function, without the labels of kernels."""
    label, kernel.label = kernel.label, ""
    key = region_key(made.body)
    kernel.label = label
    return key


def _fresh(label: str, names: set[str]) -> Symbol:
    """A name for a function, which no other symbol has."""
    base = "kernel_" + re.sub(r"\W+", "_", label) if label else "kernel"
    name = next(n for i in itertools.count() if (n := f"{base}_{i}" if i else base) not in names)
    names.add(name)
    return Symbol(name)


PASS = Pass(run, takes=LOOP, gives=LOOP, whole=False)
