"""Outline kernels into private functions; equal kernels share a function.

takes  LOOP
gives  LOOP, in which each kernel is in a private function of its own and called
why    equal kernels are lowered and compiled once, and compiled kernels are shared with other programs

The arguments of the function are the sizes of the kernel, then its buffers in order of use. Constants are cloned into
it; views stay at the call. Kernels are compared up to value names and labels, and up to constant indices: where equal
kernels work on different rows, as in the steps of a loop that was written out, these are arguments.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Hashable, Sequence

from mlc.dialects import arith
from mlc.dialects.builtin import Module
from mlc.dialects.func import Call, Func, Return, function
from mlc.dialects.loop import Kernel, Load, Store
from mlc.ir.affine import AffineMap
from mlc.ir.changes import allowed
from mlc.ir.core import Symbol, Value, at_end, before
from mlc.ir.passes import Pass
from mlc.ir.sizes import Dim, sym
from mlc.ir.types import index
from mlc.passes.analysis.free_values import free_values
from mlc.passes.analysis.structural_key import region_key
from mlc.passes.forms import LOOP


def run(module: Module) -> None:
    """Outline every kernel of `module` that is not yet in a private function of its own."""
    groups: dict[Hashable, list[_Outlined]] = {}
    names = {str(op.attrs["sym_name"]) for op in module.body.block if "sym_name" in op.attrs}
    for kernel in list(module.inside(Kernel)):
        if _is_alone(kernel) or not allowed("kernel", kernel):
            continue
        found = _Outlined(kernel)
        groups.setdefault(found.key, []).append(found)
    for first, *others in groups.values():
        first.function.sym_name = _fresh(first.kernel.label, names)
        module.body.block.insert(first.function)
        _pass_indices(first, others)
        for found in others:
            first.function.fuse_locations(found.function)
        for found in (first, *others):
            found.call.callee = first.function.sym_name


class _Outlined:
    """A kernel in a function of its own.

    call     the call in its place
    places   its accesses with constant indices, and which of their map's results these are
    indices  the constants
    key      the structure of the function but for these
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        used = free_values(kernel)
        captured = [v for v in used if not isinstance(v.op, arith.Constant)]
        self.function = function("", [v.type for v in captured], [v.name for v in captured], private=True)
        self.function.loc = kernel.loc
        with before(kernel, kernel.loc):
            self.call = Call(Symbol(""), tuple(captured), ())
        _fill(self.function, kernel, captured, used)
        self.places = [(op, i) for op in kernel.walk() if isinstance(op, Load | Store)
                       for i, e in enumerate(op.map.results) if isinstance(e, int)]
        self.indices = [op.map.results[i] for op, i in self.places]
        self.put([0] * len(self.places))
        self.key = _key(self.function, kernel)
        self.put(self.indices)

    def put(self, indices: Sequence[Dim]) -> None:
        """Have the accesses be at these indices."""
        for (op, i), at in zip(self.places, indices):
            results = (*op.map.results[:i], at, *op.map.results[i + 1:])
            op.map = AffineMap.get(op.map.dims, results, op.map.tiles)


def _pass_indices(first: _Outlined, others: Sequence[_Outlined]) -> None:
    """Pass the indices in which kernels differ, which is the only way in which they do, as arguments."""
    differ = [i for i, at in enumerate(first.indices) if any(x.indices[i] != at for x in others)]
    if not differ:
        return
    kernel, taken = first.kernel, {*first.kernel.symbols}
    symbols = list(itertools.islice((n for i in itertools.count() if (n := f"at{i}") not in taken), len(differ)))
    args = [first.function.block.add_arg(index, name) for name in symbols]
    kernel.symbols = (*kernel.symbols, *symbols)
    kernel.set_operands([*kernel.operands, *args])
    first.function.update_type()
    first.put([sym(symbols[differ.index(i)]) if i in differ else e for i, e in enumerate(first.indices)])
    for found in (first, *others):
        with before(found.call, found.call.loc):
            numbers = [arith.constant(found.indices[i], index) for i in differ]
        found.call.set_operands([*found.call.operands, *numbers])


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
