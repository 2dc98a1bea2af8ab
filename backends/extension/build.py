"""Builds the file of an extension module from compiled functions: code for each processor level, glue code, weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mlc.backends import compile_many
from mlc.backends.combine import combined, exportable, holding, localized
from mlc.backends.compilation_units import compilation_units
from mlc.backends.cpu.targets import TRIPLE
from mlc.backends.elf import ObjectFile
from mlc.backends.emit_llvm import emit
from mlc.backends.extension import processor, python, threads
from mlc.backends.extension.call import symbol
from mlc.backends.extension.container import Description, pack
from mlc.backends.extension.module import WEIGHTS, code_symbol, glue, use_weights_symbol
from mlc.backends.extension.signature import Function
from mlc.backends.extension.stub import signature
from mlc.backends.extension.weights import Weights
from mlc.backends.link import link_file, read_objects
from mlc.backends.object_code import compile_object
from mlc.backends.target import Target
from mlc.ir import abi
from mlc.ir.abi import HOOK
from mlc.ir.core import Op
from mlc.ir.machine import x86_64

SYSTEM = frozenset({"syscall", "pthread_create", "getenv"})
"""C library functions that a module imports in addition to those allowed for all code."""


class Source(Protocol):
    """A function to build."""

    @property
    def function(self) -> Function: ...

    def lowered(self, target: Target) -> Op:
        """Its module in the llvm dialect for a target: one function, @main, whose leading arguments are weights."""


def build(name: str, sources: Sequence[Source], targets: Sequence[Target], weights: Weights,
          opt_level: int = 2) -> bytes:
    """The file of module `name`; targets are of one architecture, in ascending order of requirements."""
    base = baseline(targets[0])
    functions = [s.function for s in sources]
    objects, hooks = list[ObjectFile](), list[str]()
    for source in sources:
        for level, target in enumerate(targets):
            compiled, hook = _code(source, target, level, opt_level)
            objects.append(compiled)
            hooks += hook
    emitted, tables = glue(name, functions, [t.name for t in targets], weights)
    texts = [emit(emitted, base), f'target triple = "{base.triple}"\n{tables}',
             processor.chooser(targets, [threads.START] if hooks else []) if base.triple == TRIPLE else
             processor.only_one(base)]
    texts.append(threads.pool(name, hooks) if hooks else threads.none(name, base))
    objects += [read_objects(compile_object(text, base, 1)) for text in texts]
    exports = [f"PyInit_{name}", *(symbol(f.name) for f in functions), threads.set_threads_symbol(name)]
    if weights.beside:
        exports.append(use_weights_symbol(name))
    if weights.content and not weights.beside:
        objects.append(holding(".mlc_weights", WEIGHTS, weights.content, objects[0].machine))
    code = link_file(combined(objects), exports, abi.ALLOWED_EXTERNALS | SYSTEM, f"{name}.so", python.EXTERNALS)
    says = Description(name, tuple(signature(f) for f in functions), tuple(targets), len(weights.content),
                       weights.beside, weights.digest if weights.beside else "")
    return pack(code, says)


def baseline(target: Target) -> Target:
    """The baseline target of the architecture, for the code that detects the processor."""
    if target.triple != TRIPLE:
        return target
    features = ("+cmov", "+cx8", "+fxsr", "+mmx", "+sse", "+sse2")
    return Target("x86-64", TRIPLE, "x86-64", features, x86_64(128))


def _code(source: Source, target: Target, level: int, opt_level: int) -> tuple[ObjectFile, list[str]]:
    """The code of one function for one level; only its entry and, if present, its hook are public."""
    module = source.lowered(target)
    linked = read_objects(compile_many.objects(compilation_units(module, target), target, opt_level))
    name = code_symbol(source.function, level)
    hook = [f"{name}_{HOOK}"] if HOOK in exportable(linked) and target.triple == TRIPLE else []
    public = {f"main{abi.ENTRY_SUFFIX}": name} | ({HOOK: hook[0]} if hook else {})
    return localized(linked, public), hook
