"""Outline kernels into private functions; equal kernels share a function.

takes  LOOP
gives  LOOP, in which each kernel is in a private function of its own and called
why    equal kernels are lowered and compiled once, and compiled kernels are shared with other programs

The arguments of the function are the sizes of the kernel, then its buffers in order of use. Constants are cloned into
it; views stay at the call. Kernels are compared up to value names and labels.
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
    by_key: dict[Hashable, Func] = {}
    names = {str(op.attrs["sym_name"]) for op in module.body.block if "sym_name" in op.attrs}
    for kernel in list(module.inside(Kernel)):
        if _is_alone(kernel) or not allowed("kernel", kernel):
            continue
        used = free_values(kernel)
        captured = [v for v in used if not isinstance(v.op, arith.Constant)]
        outlined = function("", [v.type for v in captured], [v.name for v in captured], private=True)
        outlined.loc = kernel.loc
        with before(kernel, kernel.loc):
            call = Call(Symbol(""), tuple(captured), ())
        _fill(outlined, kernel, captured, used)
        same = by_key.setdefault(_key(outlined, kernel), outlined)
        if same is outlined:
            outlined.sym_name = _fresh(kernel.label, names)
            module.body.block.insert(outlined)
        call.callee = same.sym_name


def _is_alone(kernel: Kernel) -> bool:
    """Whether a kernel is the only operation of a private function, except constants."""
    holder = kernel.parent_op
    return isinstance(holder, Func) and not holder.is_public and all(
        op is kernel or op.terminator or isinstance(op, arith.Constant) for op in holder.block)


def _fill(function: Func, kernel: Kernel, captured: list[Value], used: list[Value]) -> None:
    """Move a kernel into a function with the parameters `captured`."""
    here: dict[Value, Value] = dict(zip(captured, function.args))
    kernel.detach()
    with at_end(function.block, kernel.loc):
        for v in used:
            if isinstance(v.op, arith.Constant):
                here[v] = v.op.insert_clone({}).results[0]
        function.block.insert(kernel)
        Return(())
    for op in kernel.walk():
        for i, v in enumerate(op.operands):
            if v in here:
                op.set_operand(i, here[v])


def _key(function: Func, kernel: Kernel) -> Hashable:
    """Structural key of a function, without the labels of kernels."""
    label, kernel.label = kernel.label, ""
    key = region_key(function.body)
    kernel.label = label
    return key


def _fresh(label: str, names: set[str]) -> Symbol:
    """A fresh function name."""
    base = "kernel_" + re.sub(r"\W+", "_", label) if label else "kernel"
    name = next(n for i in itertools.count() if (n := f"{base}_{i}" if i else base) not in names)
    names.add(name)
    return Symbol(name)


PASS = Pass(run, takes=LOOP, gives=LOOP, whole=False)
