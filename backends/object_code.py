"""LLVM IR text to machine code: parse, verify, optimise, emit one relocatable object (through llvmlite)."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from mlc.backends.available import check_memory
from mlc.backends.cpu.targets import TRIPLE
from mlc.backends.llvm import binding
from mlc.backends.target import Target
from mlc.ir.diag import BackendError

MAX_NESTING = 256
"""LLVM's parser recurses: 20,000 nested braces overflow its stack and kill the process."""

# Passes of each opt_level before code generation. Measured with llvmlite 0.50 (LLVM 22.1) on Zen 4; 36 kernels of
# explicit <16 x float> code (elementwise chain with exp, 4x32 matmul tile, softmax row; naive addresses) in one module:
#
#   passes                         passes + codegen     run time against the best
#   none                                   0 + 115 ms   matmul, chain 1.0; softmax 1.7 (accumulators stay in allocas)
#   _SHORT                                13 + 116 ms   1.0
#   _SHORT + new GVN                      24 + 113 ms   1.0
#   function simplification (LICM)        89 + 120 ms   1.0
#   LLVM's O1 / O2 / O3       185/204/259 + 225-260 ms 1.0 (unrolling doubles the code; vectorisers off)
#   LLVM's O2 without unrolling          156 + 114 ms   1.0
#
# Kernels arrive vectorised, unrolled and in SSA form, and code generation itself does CSE and hoists loop invariants.
# The one exception observed is an integer division in an inner loop (5x on a gather), so level 2 adds LICM if the
# text has one. LLVM's loop and SLP vectorisers run only at level 3, for code that mlc's passes left scalar.
#
# Without AVX-512 mask registers, levels 1 and 2 omit the pass that folds a select into a masked load: if the upper half
# of such a load is unused, LLVM 22.1 loads all of it and keeps the values (tests/test_object_code.py).
_SHORT = ("always_inliner", "global_dead_code_eliminate", "sroa", "simplify_cfg", "instruction_combine")
_DIVISION = re.compile(r"= [su](?:div|rem) [^,\n]*, %")

# AMX needs code generation level 1 or higher; level 1 once gave slower matmul tiles than 2 and saved no time.
_CODEGEN_LEVEL = {0: 1, 1: 2, 2: 2, 3: 3}

_STRING_OR_COMMENT = re.compile(r'"[^"]*"|;[^\n]*')
_OPENING = b"({[<"
_PAIR = re.compile(rb"\(\)|\{\}|\[\]|<>")
_NO_BRACKET = bytes(byte for byte in range(256) if byte not in b"(){}[]<>")


def compile_object(llvm_text: str, target: Target, opt_level: int = 2) -> bytes:
    """Compile `llvm_text` to a relocatable, position independent ELF object, deterministically.

    opt_level  0 no passes; 1 the passes that vectorised kernels need; 2 also hoists integer divisions out of loops;
               3 all of LLVM's O3 with its vectorisers, for scalar code
    The text must come from mlc's own emitter: LLVM aborts the process on some invalid programs.
    """
    module, machine = _optimized(llvm_text, target, opt_level)
    try:
        return bytes(machine.emit_object(module))
    except RuntimeError as error:
        raise BackendError(f"LLVM cannot generate code for {target}: {error}", code="MLC0512") from error


def assembly(llvm_text: str, target: Target, opt_level: int = 2) -> str:
    """The instructions of `compile_object` as assembly text."""
    module, machine = _optimized(llvm_text, target, opt_level)
    try:
        return str(machine.emit_assembly(module))
    except RuntimeError as error:
        raise BackendError(f"LLVM cannot generate code for {target}: {error}", code="MLC0512") from error


def optimized_ir(llvm_text: str, target: Target, opt_level: int = 2) -> str:
    """The LLVM IR that `compile_object` generates code from, after LLVM's passes."""
    module, _ = _optimized(llvm_text, target, opt_level)
    return str(module)


def check_nesting(llvm_text: str) -> None:
    """Reject text whose brackets nest deeper than MAX_NESTING (counting unclosed ones)."""
    brackets = _STRING_OR_COMMENT.sub("", llvm_text).encode("utf-8", "replace").translate(None, _NO_BRACKET)
    depth = 0
    while brackets and depth <= MAX_NESTING:  # each round removes the innermost level
        brackets, removed = _PAIR.subn(b"", brackets)
        if not removed:
            break
        depth += 1
    if depth + sum(brackets.count(opening) for opening in _OPENING) > MAX_NESTING:
        raise BackendError(f"LLVM text nests deeper than {MAX_NESTING} brackets", code="MLC0510")


@cache
def _llvm() -> Any:
    """llvmlite's binding, imported and initialised on first use."""
    llvm = binding()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()  # for inline assembly
    return llvm


def _optimized(llvm_text: str, target: Target, opt_level: int) -> tuple[Any, Any]:
    """The parsed, verified and optimised module, and its target machine."""
    if opt_level not in _CODEGEN_LEVEL:
        raise BackendError(f"opt_level must be 0, 1, 2 or 3, got {opt_level}", code="MLC0512")
    machine = _target_machine(target, _CODEGEN_LEVEL[opt_level])
    module = _parse(llvm_text)
    module.triple = target.triple
    module.data_layout = str(machine.target_data)  # the default layout has other alignments than code generation
    combine = target.vector_bits >= 512 or "@llvm.masked.load" not in llvm_text
    if opt_level in (1, 2):
        _run_short(module, machine, combine)
    if opt_level == 2 and combine and _DIVISION.search(llvm_text):
        _run_function_simplification(module, machine)
    if opt_level == 3:
        _run_o3(module, machine)
    return module, machine


@cache
def _know_others() -> None:
    """Initialise all LLVM targets, not only the native one."""
    _llvm().initialize_all_targets()
    _llvm().initialize_all_asmprinters()


def _target_machine(target: Target, level: int) -> Any:
    kind = {} if target.is_gpu else {"reloc": "pic", "codemodel": "small"}
    if target.triple != TRIPLE:
        _know_others()
    try:
        machine = _llvm().Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=target.feature_string, opt=level, **kind)
    except RuntimeError as error:
        raise BackendError(f"LLVM does not know target {target.triple}: {error}", code="MLC0512") from error
    if machine is None:
        raise BackendError(f"LLVM has no code generator for {target}", code="MLC0512")
    return machine


def _parse(llvm_text: str) -> Any:
    check_nesting(llvm_text)
    check_memory(len(llvm_text))
    if "\0" in llvm_text:
        raise BackendError("LLVM text contains a NUL character", code="MLC0511")
    try:
        module = _llvm().parse_assembly(llvm_text)
        module.verify()
    except (RuntimeError, UnicodeError) as error:
        raise BackendError(f"LLVM rejects the IR: {error}", code="MLC0511") from error
    return module


def _run_short(module: Any, machine: Any, combine: bool) -> None:
    passes = _llvm().create_new_module_pass_manager()
    for name in _SHORT:
        if combine or name != "instruction_combine":
            getattr(passes, f"add_{name}_pass")()
    passes.run(module, _pass_builder(machine, 1, vectorize=False))


def _run_function_simplification(module: Any, machine: Any) -> None:
    """LLVM's function simplification of O1, which includes LICM (llvmlite does not expose LICM alone)."""
    builder = _pass_builder(machine, 1, vectorize=False)
    passes = builder.getFunctionPassManager()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)


def _run_o3(module: Any, machine: Any) -> None:
    builder = _pass_builder(machine, 3, vectorize=True)
    builder.getModulePassManager().run(module, builder)


def _pass_builder(machine: Any, level: int, *, vectorize: bool) -> Any:
    options = _llvm().create_pipeline_tuning_options(level)
    options.loop_vectorization = options.slp_vectorization = options.loop_interleaving = vectorize
    options.loop_unrolling = vectorize  # mlc's passes unroll; LLVM's unrolling doubled code generation time
    return _llvm().create_pass_builder(machine, options)
