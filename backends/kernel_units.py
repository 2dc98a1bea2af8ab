"""Kernels as compilation units of their own, lowered from level `loop` and compiled one by one.

After `outline` each kernel is the only operation of a private function, and the passes below work within functions. So
a kernel is compiled once for all programs, by the text of its function, before any of the work below that level; and
several kernels are lowered and compiled at the same time, in several processes (compile_many.py). The rest of the
module only declares the functions. The linker name of a kernel is a hash of its text and of the target.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from mlc.backends import fingerprint
from mlc.backends.emit_llvm import Part, emit_part
from mlc.backends.object_code import compile_object
from mlc.backends.target import Target
from mlc.dialects import arith, builtin, llvm
from mlc.dialects.func import Func, declaration, functions
from mlc.dialects.loop import Kernel
from mlc.ir import changes
from mlc.ir.core import Op, Symbol
from mlc.ir.parser import parse_module
from mlc.ir.passes import Pipeline, no_collection
from mlc.passes import pipeline

NAME = "kernel"
"""The name of the function in the text of a unit."""


@dataclass(frozen=True)
class KernelUnit:
    """The function of a kernel at level `loop`.

    text      a module that has only this function, in generic form
    function  the function, detached; None: that of the text
    label     its name in its module, for people
    """

    text: str
    function: Func | None = field(default=None, compare=False)
    label: str = field(default=NAME, compare=False)
    kind = "loop"
    shared = True

    @property
    def seconds(self) -> float:
        """Predicted time of `compile`: 190 kernels of ResNet-50's training step took 15 s on Zen 3."""
        return 5e-3 + len(self.text) * 1.6e-5

    def linker_name(self, target: Target) -> str:
        return "k" + hashlib.sha256(f"{target!r}\n{self.text}".encode()).hexdigest()[:40]

    def names(self, target: Target) -> dict[str, str]:
        """The names for people of the functions of the object."""
        return {self.linker_name(target): self.label, f"{NAME}_part": f"{self.label}_part"}

    def compile(self, target: Target, opt_level: int) -> bytes:
        """The object that defines the function under its linker name."""
        with no_collection():
            text = self.llvm_ir(target)
        return compile_object(text, target, opt_level)

    def llvm_ir(self, target: Target) -> str:
        """Lower the function, which is consumed, and emit it."""
        module: Op
        if self.function is None:
            module = parse_module(self.text)
        else:
            module = builtin.module()
            self.function.sym_name = Symbol(NAME)
            module.regions[0].block.insert(self.function)
        Pipeline(pipeline.below_loop(target.machine)).run(module)
        ops = list(module.regions[0].block)
        hooks = [op for op in ops if isinstance(op, llvm.Global) and op.linkage == "external"]
        own = [op for op in ops if op not in hooks]
        return emit_part(own, target, Part({NAME: self.linker_name(target)}, (NAME,), hooks, hints=False))


def split_kernels(module: Op, target: Target) -> list[KernelUnit]:
    """Replace the functions of kernels in a module at level `loop` by declarations; returns them as units.

    None are, if changes are chosen one by one (`mlc bisect`) or there are rewrite rules of others. Functions whose text
    is not all of them, since they hold arrays, stay.
    """
    if changes.choice() or fingerprint.has_foreign_rules():
        return []
    units: dict[str, KernelUnit] = {}
    names: dict[str, Symbol] = {}
    for function in functions(module):
        if not _is_kernel(function):
            continue
        function.sym_visibility = None                     # nothing in its own module calls it
        if (text := fingerprint.whole_text(function, NAME)) is None:
            function.sym_visibility = "private"
            continue
        unit = KernelUnit(text, function, str(function.sym_name))
        name = names[str(function.sym_name)] = Symbol(unit.linker_name(target))
        assert function.parent is not None
        if name not in units:
            units[name] = unit
            function.parent.insert(declaration(name, function.function_type), function)
        function.detach()
    for op in module.walk():
        for key, value in op.attrs.items():
            if isinstance(value, Symbol) and value in names:
                op.attrs[key] = names[value]
    return list(units.values())


def _is_kernel(function: Func) -> bool:
    """Whether a function is private and consists of a kernel and constants."""
    if function.is_public or function.is_declaration:
        return False
    first, *others = [op for op in function.block if not isinstance(op, arith.Constant)]
    return isinstance(first, Kernel) and all(op.terminator for op in others)
