"""mlc run: a Python program, or an entry of a module at any level; `--check` checks every pass by execution."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from mlc.ir import changes
from mlc.ir.core import Op
from mlc.ir.diag import Error, InternalError, UserError
from mlc.ir.parser import parse_module
from mlc.ir.passes import Instruments, Pipeline, Step, parse_pipeline, reproducer_pipeline
from mlc.ir.types import MemRefType
from mlc.ir.verify import verify
from mlc.passes import pipeline
from mlc.tools import files, formats, report, sources
from mlc.tools.checked_executable import CheckedEntry, CheckedExecutable
from mlc.tools.child import asked
from mlc.tools.exit_status import is_read

EXAMPLES = """examples:
  mlc run model.mlir --seed 1
  mlc run model.py:predict --sizes B=4
  mlc run model.mlir --entry main --args 'f32[4,16],f32[16,3]' --exec=interp
  mlc run model.mlir --check
  mlc run --check model.py
  mlc run --checked model.py
  mlc run --ranks 4 train.py -- --epochs 2
  mlc run --detect-anomaly model.py
"""
OF_FUNCTIONS = ("entry", "args", "sizes", "inputs", "seed", "exec", "pipeline", "output")
"""Options about the call of one function, which do not apply to a Python program."""
SECONDS_APART = 60
"""Timeout of the calls of the wrappers of one function."""
OF_RANDOM_ARRAYS = ("args", "sizes", "seed")


def parser() -> argparse.ArgumentParser:
    p = report.Parser("run", "Run a Python program, or a function of a file on random arguments.", EXAMPLES)
    add = p.add_argument
    add("file", metavar="FILE[:FUNCTION]", help="a .py program; a function of a .py, .mlc or .mlir file; a "
        + " or ".join(formats.ENDINGS) + " file; - is stdin")
    add("program_arguments", nargs="*", default=[], metavar="ARG", help="arguments of a Python program (after --)")
    add("--entry", metavar="NAME", help="the function to call, as FILE:NAME (default: main, or the only one)")
    add("--args", metavar="TYPES", help="sizes of the arguments, as in 'f32[4,16],i64[4]'")
    add("--sizes", metavar="B=4,...", help="numbers for size symbols")
    add("--inputs", metavar="FILES", help="arrays: x.npy,rest.npz")
    add("--seed", type=report.integer(0), metavar="N", help="seed of random inputs (default 0)")
    add("--exec", choices=["native", "interp"], help="native code (the default) or the interpreter")
    add("--check", action="store_true", help="interpret after every pass and compare, down to native code")
    add("--checked", action="store_true", help="native code that reports accesses out of bounds, overflow of index "
        "arithmetic and use of what is not written, with the line")
    add("--detect-anomaly", action="store_true", help="of a program: stop at the first operation that makes a NaN or "
        "an infinity of finite numbers, with its line and module")
    add("-p", "--pipeline", metavar="PASSES", help="run these passes first")
    add("--allow-pass", action="append", default=[], metavar="PACKAGE.MODULE",
        help="import this pass of your own where a reproducer asks for it")
    add("--ranks", type=report.integer(1, most=4096), metavar="N", help="run a Python program as N processes that "
        "communicate by MPI: mlc.distributed")
    add("--max-restarts", type=report.integer(0), metavar="N", help="with --ranks: start again "
        "after a rank has failed, at most so often")
    add("-o", "--output", type=report.Output, metavar="FILE",
        help="write the results as .npy or .npz instead of printing them")
    return p


def main(options: argparse.Namespace) -> int:
    files.find_modules_here(options.pipeline or "", *options.allow_pass)
    if options.checked and (options.check or options.exec == "interp"):
        other = "--check" if options.check else "--exec=interp"
        raise report.usage_error(f"--checked is about native code, {other} is not", f"leave {other} out", "MLC0482")
    path, name = named(options)
    if path.endswith(".py") and name is None:
        if options.ranks is None:
            report.refuse(options, ("max_restarts",), "there is one process", "give --ranks, too")
        report.refuse(options, OF_FUNCTIONS, "a Python program says itself what it calls",
               f"mlc run {path}:FUNCTION runs one function")
        report.refuse(options, ("allow_pass",), "it is about reproducers", "import the pass in the program")
        if options.ranks is not None:
            return launch(path, options)
        with all_code_checked() if options.checked else nullcontext(), anomalies(options.detect_anomaly):
            return program(path, options.program_arguments, options.check)
    report.refuse(options, ("ranks", "max_restarts"), "ranks are processes of a Python program", "give a .py file")
    if options.detect_anomaly:
        raise report.usage_error("--detect-anomaly is about the calls of a Python program", "leave it out", "MLC0391")
    if path.endswith(sources.FUNCTIONS):
        report.refuse(options, ("allow_pass",), "it is about reproducers", "leave it out; -p names passes to run")
    if options.program_arguments:
        raise report.usage_error(f"{options.program_arguments[0]!r}: only a Python program takes arguments",
                                 "give types with --args, or arrays with --inputs", "MLC0391")
    from mlc.tools import inputs
    found = call_in_file(path, name, options)
    type = inputs.entries(found.module)[found.entry]
    if options.check:
        results = checked(found, options)
    else:
        Pipeline(found.steps).run(found.module)
        results = call(found.module, found.entry, found.arrays, options.exec or "native", options.checked)
    if options.output and options.output != "-":
        inputs.save(options.output, results)
    else:
        files.write(None, inputs.show(results, type.results))
    return 0


@dataclass(frozen=True)
class CallInFile:
    """A call of a function of a file.

    module   the module it is in
    entry    its name there
    weights  its first arguments, which are in the file: the arrays of a model
    given    the other ones
    steps    passes to run first
    held     contents of a reproducer: the entry, its arrays, whether results are compared exactly
    """

    module: Op
    entry: str
    weights: list[Any]
    given: list[Any]
    steps: list[Step]
    held: tuple[str, list[Any], bool] | None

    @property
    def arrays(self) -> list[Any]:
        """All arguments."""
        return [*self.weights, *self.given]


def call_in_file(path: str, name: str | None, options: argparse.Namespace) -> CallInFile:
    """A call of a function of a file, with the arguments that the options give, or random ones."""
    from mlc.tools import inputs
    module, text, weights = module_of(path, name, options)
    held = inputs.held_call(text) if text else None
    steps = parse_pipeline(options.pipeline) if options.pipeline else \
        parse_pipeline(reproducer_pipeline(text) or "" if held else "", options.allow_pass)
    recorded = path.endswith(sources.FUNCTIONS)                  # as the only function, whatever its name was
    entry = inputs.choose_entry(module, None if recorded else name or (held[0] if held else None))
    types = inputs.entries(module)[entry].inputs[len(weights):]
    if options.inputs:
        report.refuse(options, OF_RANDOM_ARRAYS, "--inputs gives the arrays", "leave one of them out")
        arrays: list[Any] = inputs.load_arrays(options.inputs)
        if weights and len(arrays) != len(types):
            raise report.usage_error(f"--inputs has {len(arrays)} arrays, and {path} takes {len(types)}",
                                     "give one for each input; mlc import lists them", "MLC0397")
        arrays = inputs.in_types(arrays, types)
    elif held:
        report.refuse(options, OF_RANDOM_ARRAYS, "the file holds the arrays", "leave it out, or give --inputs")
        arrays = list(held[1])
    else:
        given = inputs.parse_args(options.args) if options.args else []
        if given:
            inputs.check_given(given, types)
        arrays = inputs.random_arrays(types, options.seed or 0, inputs.parse_sizes(options.sizes), given)
    return CallInFile(module, entry, weights, arrays, steps, held)


def named(options: argparse.Namespace) -> tuple[str, str | None]:
    """The file, and the function requested by FILE:FUNCTION or --entry."""
    path, colon, name = options.file.rpartition(":")
    if not colon or os.path.exists(options.file) or not path.endswith((*sources.FUNCTIONS, ".mlir")):
        return options.file, None if options.file.endswith(".py") else options.entry
    if options.entry is not None and options.entry.removeprefix("@") != name:
        raise report.usage_error(f"{options.file} and --entry {options.entry} are two functions",
                                 "leave one of them out", "MLC0391")
    return path, name


def module_of(path: str, name: str | None, options: argparse.Namespace) -> tuple[Op, str, list[Any]]:
    """The module of the function, its text if it was parsed, and its first arguments if it is a model with weights."""
    if not path.endswith(sources.FUNCTIONS):
        text, shown = files.read_text(path)
        module = parse_module(text, shown)
        verify(module)
        return module, text, []
    from mlc.tools import compile, inputs
    if name is None and formats.format_of(path) is None:
        name = sources.name_of_only(path)
    given = inputs.parse_args(options.args) if options.args else None
    module, weights = compile.trace_with_weights(path, name or "", given)
    return module, "", weights


def checked(found: CallInFile, options: argparse.Namespace) -> list[Any]:
    """Run with every pass checked, and report on stderr."""
    from mlc.tools import check, inputs
    module, entry, steps = found.module, found.entry, found.steps
    native = options.exec != "interp" and not (found.held and steps) and inputs.has_interface(module, entry)

    def say(text: str) -> None:
        print(text, file=sys.stderr)

    say(f"checking @{entry}")
    type = inputs.entries(module)[entry]
    closed = len(type.results) == 1 and not any(isinstance(t, MemRefType) for t in type.inputs)
    if closed and not (native or steps or found.held or options.exec):
        from mlc.backends.cpu.targets import host
        steps = pipeline.remaining(module, "llvm", host().machine)     # nobody calls it, and it has a way to go
    exact = found.held is not None and found.held[2]
    return check.check(module, entry, found.arrays, steps, exact, native, say, keep=not found.held)


def call(module: Op, entry: str, arrays: Sequence[Any], how: str, checked: bool = False) -> list[Any]:
    """The results of an entry of a module at any level."""
    from mlc.ir.interp import run_function
    from mlc.tools import inputs
    if how == "interp":
        return run_function(module, entry, arrays)
    if not inputs.has_interface(module, entry):
        raise no_interface(entry, inputs.entries(module)[entry])
    from mlc.backends.cpu.targets import host
    from mlc.backends.executable import build
    from mlc.ir.instrumentation import CHECKS, NONE
    target = host()
    pipeline.resume(module, "llvm", target.machine, added=CHECKS if checked else NONE)
    return build(module, target).entry(entry).call(arrays)


def no_interface(entry: str, type: Any) -> UserError:
    """The error of a function that is native code's, and that no arrays enter."""
    return UserError(f"@{entry} takes {', '.join(map(str, type.inputs))}: native code is entered with arrays, by a "
                     "function of tensors or its `interface`", code="MLC0389",
                     hint="mlc run --exec=interp runs it in the interpreter")


def launch(path: str, options: argparse.Namespace) -> int:
    """Run a Python program as several ranks."""
    from mlc.tools import ranks
    if options.check or options.checked:
        raise report.usage_error("--ranks starts processes, which --check and --checked do not see into",
                                 "check the program on one rank: leave --ranks out", "MLC0391")
    readable(path)
    return ranks.launch(path, options.program_arguments, options.ranks, options.max_restarts or 0,
                        options.detect_anomaly)


def readable(path: str) -> None:
    """Usage error unless the path is that of a file."""
    if not os.path.isfile(path):
        raise report.usage_error(f"cannot read {path}: No such file" if not os.path.exists(path) else
                                 f"cannot read {path}: not a file", "give the path of a .py file", "MLC0392")


# -- Python programs --------------------------------------------------------------------------------------------------
def program(path: str, arguments: Sequence[str], check: bool) -> int:
    """Run a Python file as a program, with its own arguments and folder."""
    readable(path)
    saved = sys.argv, list(sys.path)
    sys.argv = [path, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        if check:
            from mlc.checks import Checks
            with checking() as made:
                try:
                    stop = _to_its_end(path)
                    if Checks.found is not None:           # and the program has caught it
                        raise Checks.found
                except InternalError as error:
                    check_latest_call(error)
                    raise
                print(what_was_checked(made, path), file=sys.stderr)
                if stop is not None:
                    raise stop
        else:
            runpy.run_path(path, run_name="__main__")
    except (SystemExit, KeyboardInterrupt):
        raise
    except Exception as error:
        if isinstance(error, BrokenPipeError) and not is_read():
            raise                                          # nobody reads what it prints, as in `| head`
        raise report.users_fault(error, path) from error
    finally:
        sys.argv, sys.path[:] = saved
    return 0


def _to_its_end(path: str) -> SystemExit | None:
    """Run a Python file as a program; the exit that it ends with, if it does."""
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as stop:
        return stop
    return None


def anomalies(wanted: bool) -> AbstractContextManager[None]:
    """Context in which the first NaN or infinity is an error, if that is wanted."""
    if not wanted:
        return nullcontext()
    from mlc.anomaly import detect_anomaly
    return detect_anomaly()


@contextmanager
def all_code_checked() -> Iterator[None]:
    """Context in which mlc compiles checked code."""
    from mlc.code import Checked
    Checked.always = True
    try:
        yield
    finally:
        Checked.always = False


@contextmanager
def checking() -> Iterator[list[CheckedExecutable]]:
    """Context in which each compiled function is checked on the arrays of its first call, and each call against plain
    Python; the yielded list grows meanwhile."""
    from mlc import api
    from mlc.checks import Checks
    from mlc.frontend.devices import CPU
    from mlc.tools.outcome import FAILURES
    made, texts = list[CheckedExecutable](), dict[Any, str]()
    original = api.native_code

    def native_code(module: Any, placement: Any) -> Any:
        if placement.device != CPU:
            return original(module, placement)
        given = module.clone()
        key_is_sound(given, texts)
        try:
            native = original(module, placement)
        except UserError:
            raise
        except FAILURES:
            name_the_pass(given.clone())
            raise
        made.append(CheckedExecutable(given, native))
        return made[-1]

    api.native_code = native_code
    saved, Checks.apart = Checks.apart, staticmethod(apart)
    Checks.every_call, Checks.found = True, None
    try:
        yield made
    finally:
        api.native_code = original
        Checks.apart, CheckedEntry.latest = saved, None
        Checks.every_call, Checks.found = False, None


def apart(work: Callable[[], None]) -> None:
    """Run `work`, for its exceptions only, in a child process; InternalError if it crashes that."""
    from mlc.frontend.location import user_loc

    def question() -> tuple[str, str | None]:
        try:
            work()
        except InternalError as error:
            return error.message, error.code
        return "", None

    answer, died = asked(question, SECONDS_APART)
    if answer is None:
        raise InternalError(f"an emitted wrapper ends its process: {died or 'an exception'}", code="MLC0905",
                            loc=user_loc())
    if answer[1] is not None:
        raise InternalError(answer[0], code=answer[1], loc=user_loc())


def key_is_sound(module: Any, texts: dict[Any, str]) -> None:
    """InternalError if the cache keys of two different modules are equal.

    texts  of the modules that were seen before, by that
    """
    from mlc.backends.fingerprint import structural_text
    from mlc.dialects import func
    from mlc.ir.printer import nameless_text
    plain = module.clone()
    for function in func.functions(plain):
        function.attrs.pop("arg_names", None)              # for messages only
    text = nameless_text(plain)
    if (key := structural_text(module)) is not None and texts.setdefault(key, text) != text:
        raise InternalError(f"code of another function would be taken for @main at {func.functions(plain)[0].loc}: the "
                            "two modules differ, and have one key", code="MLC0904")


def name_the_pass(module: Any) -> None:
    """InternalError for a module that cannot be compiled: about the first pass after which it is ill-formed, if any, or
    about fuse, if a later pass rejects a kernel that fuse chose to build."""
    from mlc.backends.cpu.targets import host
    from mlc.tools.check import DECIDE
    from mlc.tools.outcome import FAILURES
    given = module.clone()
    try:
        pipeline.lower(module, "llvm", host().machine, Instruments(verify_each=True))
    except InternalError as error:
        try:
            for number, step in enumerate(pipeline.steps("llvm", host().machine), 1):
                with changes.chosen(changes.Choice(()) if step.transform.name == "fuse" else changes.choice()):
                    step.apply(given, number)
        except (Error, *FAILURES):
            raise error from None
        raise InternalError(f"pass fuse makes what another one refuses: {error.message}", code="MLC0901",
                            loc=error.loc, notes=(f"all is well where fuse {DECIDE['fuse']}",)) from error


def check_latest_call(found: InternalError) -> None:
    """InternalError that names the pass, where what differs from Python is a call after the first one of a function: in
    code for all sizes, a fault may show at some of them only."""
    if found.code == "MLC0903" and CheckedEntry.latest is not None:
        from mlc.tools import check
        entry, arrays = CheckedEntry.latest
        check.check(entry.module.clone(), entry.name, arrays)


def what_was_checked(made: Sequence[CheckedExecutable], path: str) -> str:
    """Summary of the check; UserError if nothing was checked."""
    entries = [entry for one in made for entry in one.checked.values()]
    count = sum(entry.done for entry in entries)
    if not count:
        raise UserError("nothing was checked: the program called no compiled function", code="MLC0453",
                        hint="call one in it, or check one function on random arguments: "
                             f"mlc run --check {path}:FUNCTION")
    return f"checked {count} of {len(entries)} compiled functions, every pass: no difference"
