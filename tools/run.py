"""mlc run: a Python program, or an entry of a module at any level; `--check` checks every pass by execution."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from mlc.ir.core import Op
from mlc.ir.diag import UserError
from mlc.ir.parser import parse_module
from mlc.ir.passes import Pipeline, parse_pipeline, reproducer_pipeline
from mlc.ir.verify import verify
from mlc.passes import pipeline
from mlc.tools import files, report

EXAMPLES = """examples:
  mlc run model.mlir --seed 1
  mlc run model.mlir --entry main --args 'f32[4,16],f32[16,3]' --exec=interp
  mlc run model.mlir --check
  mlc run --check model.py
  mlc run --checked model.py
"""


def parser() -> argparse.ArgumentParser:
    p = report.Parser("run", "Run a Python program, or a function of a module at any level.", EXAMPLES)
    add = p.add_argument
    add("file", help="a .py program; a .mlc program; a .mlir file, or - for stdin")
    add("program_arguments", nargs="*", default=[], metavar="ARG", help="arguments of a Python program (after --)")
    add("--entry", metavar="NAME", help="the function to call (default: main, or the only one)")
    add("--args", metavar="TYPES", help="sizes of the arguments, as in 'f32[4,16],i64[4]'")
    add("--sizes", metavar="B=4,...", help="numbers for size symbols")
    add("--inputs", metavar="FILES", help="arrays: x.npy,rest.npz")
    add("--seed", type=seed, default=0, metavar="N", help="seed of random inputs (default 0)")
    add("--exec", choices=["native", "interp"], default="native", help="native code (the default) or the interpreter")
    add("--check", action="store_true", help="interpret after every pass and compare, down to native code")
    add("--checked", action="store_true", help="native code that reports accesses out of bounds, overflow of index "
        "arithmetic and use of what is not written, with the line")
    add("-p", "--pipeline", metavar="PASSES", help="run these passes first")
    add("-o", "--output", metavar="FILE", help="write the results as .npy or .npz instead of printing them")
    return p


def seed(text: str) -> int:
    """A whole number that is not negative, as numpy's generators want it."""
    if not text.isdecimal():
        raise ValueError
    return int(text)


def main(options: argparse.Namespace) -> int:
    files.find_modules_here()
    if options.checked and (options.check or options.exec == "interp"):
        other = "--check" if options.check else "--exec=interp"
        raise report.usage_error(f"--checked is about native code, {other} is not", f"leave {other} out", "MLC0482")
    if options.file.endswith(".py"):
        with all_code_checked() if options.checked else nullcontext():
            return program(options.file, options.program_arguments, options.check)
    from mlc.tools import inputs
    if options.file.endswith(".mlc"):
        module, held = of_program(options), None
    else:
        text, name = files.read_text(options.file)
        module = parse_module(text, name)
        verify(module)
        held = inputs.held_call(text)
    steps = parse_pipeline(options.pipeline or (reproducer_pipeline(text) or "" if held else ""))
    chosen = None if options.file.endswith(".mlc") else options.entry
    entry = inputs.choose_entry(module, chosen or (held[0] if held else None))
    type = inputs.entries(module)[entry]
    if options.inputs:
        arrays: list[Any] = inputs.load_arrays(options.inputs)
    elif held:
        arrays = list(held[1])
    else:
        given = inputs.parse_args(options.args) if options.args else []
        if given:
            inputs.check_given(given, type.inputs)
        arrays = inputs.random_arrays(type.inputs, options.seed, inputs.parse_sizes(options.sizes), given)
    if options.check:
        results = checked(module, entry, arrays, steps, held[2] if held else False, options, bool(held))
    else:
        Pipeline(steps).run(module)
        results = call(module, entry, arrays, options.exec, options.checked)
    if options.output and options.output != "-":
        inputs.save(options.output, results)
    else:
        files.write(None, inputs.show(results, type.results))
    return 0


def of_program(options: argparse.Namespace) -> Op:
    """The function --entry of a program in the text language, recorded: @main, or the only one, where none is named."""
    from mlc.frontend import language
    from mlc.tools import compile, inputs
    known = language.functions_of(language.load(options.file))
    name = options.entry or ("main" if "main" in known or len(known) != 1 else known[0])
    return compile.trace(options.file, name, inputs.parse_args(options.args) if options.args else None)


def checked(module: Op, entry: str, arrays: Sequence[Any], steps: Sequence[Any], exact: bool,
            options: argparse.Namespace, held: bool) -> list[Any]:
    """Run with every pass checked, and report on stderr."""
    from mlc.tools import check, inputs
    native = options.exec == "native" and not (held and steps) and inputs.has_interface(module, entry)

    def say(text: str) -> None:
        print(text, file=sys.stderr)

    say(f"checking @{entry}")
    return check.check(module, entry, arrays, steps, exact, native, say, keep=not held)


def call(module: Op, entry: str, arrays: Sequence[Any], how: str, checked: bool = False) -> list[Any]:
    """The results of an entry of a module at any level."""
    from mlc.ir.interp import run_function
    from mlc.tools import inputs
    if how == "interp":
        return run_function(module, entry, arrays)
    if not inputs.has_interface(module, entry):
        raise UserError(f"@{entry} takes {', '.join(map(str, inputs.entries(module)[entry].inputs))}: native code is "
                        "entered with arrays, by a function of tensors or its `interface`", code="MLC0389",
                        hint="--exec=interp runs it in the interpreter")
    from mlc.backends.executable import build
    from mlc.backends.target import host
    target = host()
    pipeline.resume(module, "llvm", target.vector_bits, checked=checked)
    return build(module, target).entry(entry).call(arrays)


# -- Python programs --------------------------------------------------------------------------------------------------
def program(path: str, arguments: Sequence[str], check: bool) -> int:
    """Run a Python file as a program, with its own arguments and folder."""
    if not os.path.isfile(path):
        raise report.usage_error(f"cannot read {path}: No such file" if not os.path.exists(path) else
                                 f"cannot read {path}: not a file", "give the path of a .py file", "MLC0392")
    saved = sys.argv, list(sys.path)
    sys.argv = [path, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        if check:
            with checking() as report_line:
                runpy.run_path(path, run_name="__main__")
                print(report_line(), file=sys.stderr)
        else:
            runpy.run_path(path, run_name="__main__")
    except (SystemExit, KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as error:
        raise report.users_fault(error) from error
    finally:
        sys.argv, sys.path[:] = saved
    return 0


@contextmanager
def all_code_checked() -> Iterator[None]:
    """Within, whatever mlc compiles is checked code."""
    from mlc.code import Checked
    Checked.always = True
    try:
        yield
    finally:
        Checked.always = False


@contextmanager
def checking() -> Iterator[Any]:
    """Within, whatever mlc compiles is checked on the arrays of its first call, and each call against plain Python."""
    from mlc import code
    from mlc.api import Checks
    made = list[CheckedExecutable]()
    original = code.executable

    def executable(module: Any, checked: bool = False) -> Any:
        made.append(CheckedExecutable(module.clone(), original(module, checked)))
        return made[-1]

    code.executable = executable
    Checks.every_call = True

    def line() -> str:
        entries = [entry for one in made for entry in one.checked.values()]
        if not entries:
            return "nothing was checked: the program called no compiled function"
        return f"checked {sum(e.done for e in entries)} of {len(entries)} compiled functions, every pass: no difference"

    try:
        yield line
    finally:
        code.executable = original
        Checks.every_call = False


class CheckedExecutable:
    """Native code whose entries are checked when they are first called."""

    def __init__(self, module: Op, native: Any) -> None:
        self.module = module
        self.native = native
        self.checked: dict[str, CheckedEntry] = {}

    def entry(self, name: str) -> CheckedEntry:
        if name not in self.checked:
            self.checked[name] = CheckedEntry(self.module, name, self.native.entry(name))
        return self.checked[name]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.native, name)


class CheckedEntry:
    """A compiled function. The first call checks all passes on its arguments; then it is what it stands for."""

    def __init__(self, module: Op, name: str, native: Any) -> None:
        self.module = module
        self.name = name
        self.native = native
        self.done = False

    def call(self, arrays: Sequence[Any], sizes: Any = None) -> Any:
        if not self.done:
            from mlc.tools import check
            self.done = True
            where = next((str(op.loc) for op in self.module.walk() if op.attrs.get("sym_name") == self.name), "")
            print(f"checking what is compiled at {where}", file=sys.stderr)
            check.check(self.module.clone(), self.name, arrays)
        return self.native.call(arrays, sizes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.native, name)
