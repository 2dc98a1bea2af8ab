"""mlc compile: lower a function of a Python, .mlc or .mlir file to any level."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlc.ir.core import Op, Symbol
from mlc.ir.diag import UserError
from mlc.ir.instrumentation import CHECKS, NONE
from mlc.ir.parser import parse_module
from mlc.ir.passes import Instruments, Pipeline
from mlc.ir.printer import to_text
from mlc.ir.verify import verify
from mlc.passes import pipeline
from mlc.tools import files, formats, report, sources

EXAMPLES = """examples:
  mlc compile model.py:predict --emit=loop
  mlc compile model.py:scale --args 'f32[B,16]' --emit=tensor,asm,obj -o build
  mlc compile model.mlir:main --emit=obj -o model.o --target x86-64-v3
  mlc compile model.py:predict --emit=low --generic -o -
  mlc compile model.py:predict --target=cuda:sm_90 --emit=ptx
  mlc compile model.py:predict -o net.so
  mlc compile model.py:predict --emit=onnx -o net.onnx
  mlc compile net.onnx --emit=stablehlo
"""
SUFFIXES = {"trace": ".trace.mlir", "tensor": ".tensor.mlir", "loop": ".loop.mlir", "low": ".low.mlir",
            "llvm": ".llvm.mlir", "llvm-ir": ".ll", "asm": ".s", "obj": ".o", "resources": ".resources.txt",
            "ptx": ".ptx", "stablehlo": ".stablehlo.mlir", "onnx": ".onnx"}
"""The kinds of output that can be emitted, in the order in which they are produced, and the file suffix of each."""
BINARY = ("obj", "onnx")
"""Kinds of output that are written to a file unless another place is asked for."""
MODELS = ("stablehlo", "onnx")
"""Languages of other programs that tensor operations are written in."""
BELOW = ("memref", "loop", "llvm", "vector", "gpu", "nvgpu", "nvvm", "x86vector", "amx")
"""Dialects of the levels below tensor operations."""
EXTENSION = ("ext", "header", "stub")
"""Further kinds of output: a module that Python imports, its C header, its stub."""
CODE = {"cpu": ("llvm-ir", "asm", "obj"), "gpu": ("llvm-ir", "resources", "ptx")}
"""Forms that the llvm dialect is translated to for each kind of machine; the last one is the default."""


def parser() -> argparse.ArgumentParser:
    p = report.Parser("compile", "Compile a function down to any level.", EXAMPLES)
    add = p.add_argument
    add("function", metavar="FILE:FUNCTION", help="a function of a .py, .mlc or .mlir file; without "
        ":FUNCTION all of a .mlir, or a model that another program wrote: " + ", ".join(formats.ENDINGS))
    add("--emit", metavar="LEVEL,...",
        help="what to write: " + ", ".join(SUFFIXES) + " (default: as the suffix of OUT "
        "says, such as .ll or .onnx, else obj, or ptx for a GPU; resources, by ptxas: registers and shared memory of "
        "each kernel; stablehlo and onnx, for other programs, are made of tensor operations), or of a module that "
        "Python imports: " + ", ".join(EXTENSION) + " (default ext,stub if OUT ends in .so)")
    add("-o", "--output", metavar="OUT", help="file, - for stdout, or the folder for several (default: stdout, and "
        "FUNCTION.o for obj, FUNCTION.onnx for onnx); NAME.so is a module that Python imports as NAME")
    add("--args", metavar="TYPES", help="types of the arguments, as in 'f32[B,16],f32[16,4]', where annotations "
        "(x: mlc.spec(\"B\", 16)) do not tell")
    add("--target", help="host (the default), x86-64-v2, x86-64-v3, x86-64-v4, cascadelake, cooperlake, "
        "sapphirerapids, aarch64, or a GPU: cuda:sm_75 to cuda:sm_120")
    add("--cpu", metavar="LEVEL,...", help="of a module: the processors it has code for; the best that fits is chosen "
        "when it is imported (default x86-64-v3,x86-64-v4)")
    add("--weights", choices=["inside", "beside"], help="of a module: whether its arrays are in the "
        "file (the default) or beside it in NAME.safetensors, whose checksum it has")
    add("--matmul-precision", choices=["ieee", "tf32"], metavar="P", help="on a GPU with tensor cores, which otherwise "
        "multiply 16-bit floats: ieee for none, tf32 for 32-bit floats too")
    add("-O", "--opt-level", type=int, choices=[0, 1, 2, 3], help="effort of LLVM (default 2)")
    add("--checked", action="store_true", help="code that reports accesses out of bounds, overflow of index arithmetic "
        "and use of what is not written, with the line")
    add("--generic", action="store_true", help="print levels as any MLIR tool reads them")
    add("--locations", action="store_true", help="print where each operation came from")
    add("--dump-dir", type=report.OutputFolder, metavar="D", help="write the module after each pass into this folder")
    return p


def main(options: argparse.Namespace) -> int:
    from mlc.backends.target import Target
    report.keep_input(options.function, "output", options.output or "-")
    if kinds := extension_kinds(options):
        from mlc.tools import extension
        return extension.main(options, kinds)
    target = Target.parse(options.target or "host")
    asked = options.emit if options.emit is not None else kind_of(options.output) or CODE[target.machine.order][-1]
    wanted = levels(asked, target.machine.order)
    check_options(options, wanted, target)
    check_place(wanted, options.output)
    path, _, name = options.function.rpartition(":") if ":" in options.function else (options.function, "", "")
    given = None
    if options.args is not None:
        from mlc.tools import inputs
        given = inputs.parse_args(options.args)
    if path.endswith(sources.FUNCTIONS):
        module = trace(path, name, given)
    else:
        report.refuse(options, ("args",), "the file has the types", "leave it out")
        module = from_text(path, name)
    models = as_models(module, [w for w in wanted if w in MODELS], path, name, given)
    kind = formats.format_of(path)
    outputs = emit(module, [w for w in wanted if w not in MODELS], target, options)
    ending = kind.ending if kind else Path(path).suffix
    store({**outputs, **models}, options.output, name or Path(path).name.removesuffix(ending))
    return 0


def kind_of(output: str | None) -> str | None:
    """The kind of output that the name of a file stands for, if it is one of `SUFFIXES`."""
    found = next((kind for kind, suffix in SUFFIXES.items() if output and output.endswith(suffix)), None)
    if found is None and output and output.endswith(".mlir"):
        raise report.usage_error(f"{output} may be any level", "say which: --emit=" + ", ".join(pipeline.LEVELS),
                                 "MLC0391")
    return found


def extension_kinds(options: argparse.Namespace) -> list[str]:
    """The kinds of output requested for a module that Python imports; empty if a level is requested."""
    named = options.emit is not None and any(word.strip() in EXTENSION for word in options.emit.split(","))
    if not named and (options.emit is not None or not (options.output or "").endswith(".so")):
        return []
    from mlc.tools import extension
    return extension.wanted(options)


def levels(text: str, machine: str) -> list[str]:
    """`tensor,asm` as names of what to emit, in the order of making."""
    asked = [w.strip() for w in text.split(",") if w.strip()]
    for word in asked:
        if word not in SUFFIXES:
            from difflib import get_close_matches
            near = get_close_matches(word, SUFFIXES, 1)
            raise report.usage_error(f"--emit: there is no {word!r}", f"did you mean {near[0]}?" if near else
                                     "one of " + ", ".join(SUFFIXES), "MLC0391")
    if not asked:
        raise report.usage_error("--emit: nothing to emit", "one of " + ", ".join(SUFFIXES), "MLC0391")
    codes = {code for group in CODE.values() for code in group}
    for word in asked:
        if word in codes and word not in CODE[machine]:
            raise report.usage_error(f"--emit: there is no {word} for a {machine.upper()}",
                                     "ask for " + " or ".join(CODE[machine]), "MLC0391")
    return [level for level in SUFFIXES if level in asked]


def check_options(options: argparse.Namespace, wanted: Sequence[str], target: Any) -> None:
    """Usage error for an option that nothing of what is wanted depends on."""
    codes = {code for group in CODE.values() for code in group}
    report.refuse(options, ("cpu", "weights"), "it is about a module that Python imports", "make one with -o NAME.so")
    if not target.is_gpu:
        report.refuse(options, ("matmul_precision",), "it is about GPUs", "leave it out, or give a --target")
    for names, dependent, why, other in (
            (("generic", "locations"), ("trace", *pipeline.LEVELS), "it is about how levels are printed", "low"),
            (("dump_dir",), (*pipeline.LEVELS, *codes), "no pass runs", "low"),
            (("target", "matmul_precision"), (*pipeline.LEVELS[1:], *codes), "it is made for all machines", "loop"),
            (("checked",), (*pipeline.LEVELS[2:], *codes), "it is about accesses to memory", "low"),
            (("opt_level",), {*codes} - {"llvm-ir"}, "what is made is not optimized by LLVM", "asm")):
        if not {*dependent} & {*wanted}:
            report.refuse(options, names, why, f"leave it out, or ask for --emit={other}")


# -- where the module comes from --------------------------------------------------------------------------------------
def trace(path: str, name: str, given: Sequence[Any] | None) -> Op:
    """The function of a Python file, recorded."""
    return trace_with_weights(path, name, given)[0]


def trace_with_weights(path: str, name: str, given: Sequence[Any] | None) -> tuple[Op, list[Any]]:
    """The function of a file, recorded, and its first arguments: the arrays of the module that it is."""
    if not name and formats.format_of(path) is None:
        name = sources.name_of_only(path)
    function = sources.load(path, name)
    import mlc.api as api
    specs = [api.Spec(t) for t in given] if given is not None else sources.annotated(function, f"{path}:{name}")
    if given is not None:
        sources.check_count(function, specs, f"{path}:{name}")
    try:
        compiled = api.compiled_function(function)
        weights = compiled.signature.bound_arrays() if compiled is not None else []
        return api.lower(function, specs, level="trace").module, weights
    except Exception as error:
        raise report.users_fault(error) from error


def from_text(path: str, name: str) -> Op:
    """A module of a .mlir file, with nothing in it but one function and what it needs."""
    text, file = files.read_text(path)
    module = parse_module(text, file)
    verify(module)
    if name:
        from mlc.tools import inputs
        keep_only(module, inputs.choose_entry(module, name))
    return module


def keep_only(module: Op, name: str) -> None:
    """Remove functions and globals that @name does not need."""
    table = {str(op.attrs["sym_name"]): op for op in module.regions[0].block if op.attrs.get("sym_name")}
    work = [n for n in (name, f"{name}_entry", f"{name}_arena_bytes") if n in table]
    needed = set(work)
    while work:
        for op in table[work.pop()].walk():
            for value in op.attrs.values():
                if isinstance(value, Symbol) and value in table and value not in needed:
                    needed.add(value)
                    work.append(value)
    for other, op in table.items():
        if other not in needed:
            op.erase()


# -- what is made of it -----------------------------------------------------------------------------------------------
def emit(module: Op, wanted: Sequence[str], target: Any, options: argparse.Namespace) -> dict[str, str | bytes]:
    """Everything that is wanted, by name, made in one way down."""
    out = dict[str, str | bytes]()
    if "trace" in wanted:
        out["trace"] = to_text(module, options.generic, options.locations)
    last = next((level for level in reversed(pipeline.LEVELS) if level in wanted), None)
    codes = {*wanted} & {*CODE[target.machine.order]}
    if codes:
        last = "llvm"
    if last is None:
        return out
    products = target.products(options.matmul_precision)
    added = CHECKS if options.checked else NONE
    ways = {level: pipeline.remaining(module, level, target.machine, products, added)
            for level in pipeline.LEVELS if level in wanted or level == last}
    instruments = Instruments(dump_dir=Path(files.placed(options.dump_dir)) if options.dump_dir else None,
                              reproducer=files.scratch_file("mlc-crash.mlir"))
    done = 0
    for level, steps in ways.items():
        Pipeline(steps[done:]).run(module, instruments)
        done = len(steps)
        if level in wanted:
            out[level] = to_text(module, options.generic, options.locations)
    if codes:
        effort = 2 if options.opt_level is None else options.opt_level
        out |= (for_gpu if target.is_gpu else native)(module, wanted, target, effort)
    return out


def as_models(module: Op, wanted: Sequence[str], path: str, name: str,
              given: Sequence[Any] | None) -> dict[str, str | bytes]:
    """A module of tensor operations in the languages of other programs; in ONNX with the weights of a function."""
    out = dict[str, str | bytes]()
    if not wanted:
        return out
    if low := next((op for op in module.walk() if op.name.partition(".")[0] in BELOW or op.name == "tensor.kernel"),
                   None):
        raise UserError(f"{path} has {low.name}, which is below the level tensor; {' and '.join(wanted)} are made of "
                        "tensor operations", code="MLC0867", loc=low.loc, hint="give the module at the level tensor")
    if "stablehlo" in wanted:
        from mlc.stablehlo.writing import module_text
        out["stablehlo"] = module_text(_with_main(module.clone(), name))
    if "onnx" in wanted:
        from mlc.onnx import exporting
        if path.endswith(sources.FUNCTIONS):
            import mlc.api as api
            function = sources.load(path, name)
            specs = [api.Spec(t) for t in given] if given is not None else sources.annotated(function, f"{path}:{name}")
            out["onnx"] = exporting.export(function, specs).SerializeToString()
        else:
            out["onnx"] = exporting.module_model(_with_main(module.clone(), name)).SerializeToString()
    return out


def _with_main(module: Op, name: str) -> Op:
    """A module whose function of a name is main."""
    functions = [f for f in module.regions[0].block if f.name == "func.func"]
    if not any(str(f.attrs["sym_name"]) == "main" for f in functions):
        chosen = [f for f in functions if str(f.attrs["sym_name"]) == name] or \
            [f for f in functions if f.is_public]  # type: ignore[attr-defined]
        if len(chosen) != 1:
            raise report.usage_error("the module has no function main", "write FILE:FUNCTION", "MLC0399")
        chosen[0].sym_name = Symbol("main")  # type: ignore[attr-defined]
    return module


def for_gpu(module: Op, wanted: Sequence[str], target: Any, opt_level: int) -> dict[str, str | bytes]:
    """LLVM IR and PTX of the kernels of a module, and what they need of the machine."""
    from mlc.backends.cuda import ptxas
    from mlc.backends.cuda.ptx import kernels, llvm_ir, ptx
    holder = kernels(module)
    out = dict[str, str | bytes]()
    if "llvm-ir" in wanted:
        out["llvm-ir"] = llvm_ir(holder, target)
    text = ptx(holder, target, opt_level) if {"ptx", "resources"} & {*wanted} else ""
    if "resources" in wanted:
        out["resources"] = ptxas.table(holder, ptxas.resources(text, target))
    if "ptx" in wanted:
        out["ptx"] = text
    return out


def native(module: Op, wanted: Sequence[str], target: Any, opt_level: int) -> dict[str, str | bytes]:
    """LLVM IR, assembly and object code of a module of the llvm dialect."""
    from mlc.backends import object_code
    from mlc.backends.emit_llvm import emit as emit_llvm
    text = emit_llvm(module, target)
    out = dict[str, str | bytes]()
    if "llvm-ir" in wanted:
        out["llvm-ir"] = text
    if "asm" in wanted:
        out["asm"] = object_code.assembly(text, target, opt_level)
    if "obj" in wanted:
        out["obj"] = object_code.compile_object(text, target, opt_level)
    return out


def check_place(wanted: Sequence[str], where: str | None) -> None:
    """Raise UserError if `store` could not write what is to be emitted."""
    if len(wanted) > 1 and (where is None or where == "-"):
        raise report.usage_error(f"{len(wanted)} outputs need a folder", "give one with -o DIR", "MLC0391")
    if where is not None and (len(wanted) > 1 or os.path.isdir(where)):
        files.check_output_folder(where)
    elif where is not None:
        files.check_output(where)


def store(outputs: dict[str, str | bytes], where: str | None, name: str) -> None:
    """One output to a file or stdout, several to a folder."""
    if len(outputs) == 1 and not (where and where != "-" and os.path.isdir(files.placed(where))):
        (kind, data), = outputs.items()
        if kind in BINARY and (where is None or (where == "-" and sys.stdout.isatty())):
            where = name + SUFFIXES[kind]        # no binary on a terminal
        files.write(where, data)
        return
    assert where is not None                               # as `check_place` has seen
    try:
        os.makedirs(files.placed(where), exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write {where}: {error.strerror}", code="MLC0393") from None
    for kind, data in outputs.items():
        files.write(os.path.join(where, name + SUFFIXES[kind]), data)
