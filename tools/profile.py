"""mlc profile: run a program or a function, and show where its time and its memory go, kernel by kernel."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import nullcontext, redirect_stdout
from typing import TYPE_CHECKING

from mlc.ir.diag import UserError
from mlc.tools import files, report, run

if TYPE_CHECKING:
    from mlc.hardware_counters import HardwareCounters
    from mlc.profiler import profile

EXAMPLES = """examples:
  mlc profile model.py
  mlc profile model.py --trace trace.json.gz --flame flame.svg --no-roofline
  mlc profile model.py:predict --sizes B=64 --repeat 100 --sort mean --no-roofline
  mlc profile model.mlir --memory --counters --json figures.json --no-roofline

The first runs a program, with all that it compiles and runs at once. The trace is for https://ui.perfetto.dev, the
flame graph for any browser. Times are those of the thread that calls a kernel.

In the tables, roof is the part of what the machine could do that a kernel reaches, threads the most that took part,
even the work of the mean thread by that of the busiest; line +1 says that one more line is in the kernel. A narrow
terminal has fewer columns.
"""
OF_FUNCTIONS = ("entry", "args", "sizes", "inputs", "seed", "repeat")


def parser() -> argparse.ArgumentParser:
    from mlc.profile_kernels import SORTS
    p = report.Parser("profile", "Show the kernels of a program, or of a function of a file on random arguments, with "
                      "their lines and modules.", EXAMPLES)
    add = p.add_argument
    add("file", metavar="FILE[:FUNCTION]", help="a .py program, or a function as of mlc run")
    add("program_arguments", nargs="*", default=[], metavar="ARG", help="arguments of a Python program (after --)")
    add("--entry", metavar="NAME", help="the function to call, as FILE:NAME")
    add("--args", metavar="TYPES", help="sizes of its arguments, as in 'f32[4,16],i64[4]'")
    add("--sizes", metavar="B=4,...", help="numbers for size symbols")
    add("--inputs", metavar="FILES", help="arrays: x.npy,rest.npz")
    add("--seed", type=report.integer(0), metavar="N", help="seed of random inputs (default 0)")
    add("--repeat", type=report.integer(1), metavar="N", help="calls of the function (default 10)")
    add("-o", "--trace", type=report.Output, metavar="FILE",
        help="write a trace for Perfetto, compressed if it ends with .gz")
    add("--flame", type=report.Output, metavar="FILE", help="write a flame graph (.svg): module, line, kernel")
    add("--sort", choices=SORTS, default="total", help="order of the kernels (default total)")
    add("--rows", type=report.integer(-1, ", where -1 is for all"), default=20, metavar="N",
        help="rows of each table; -1 for all (default 20)")
    add("--memory", action="store_true", help="the owners of all bytes at the peak")
    add("--counters", action="store_true", help="hardware counters: instructions, cache misses")
    add("--no-roofline", action="store_true", help="do not measure the limits of the machine, which takes two seconds")
    add("--json", type=report.Output, metavar="FILE", help="write all figures as JSON, - for stdout")
    return p


def main(options: argparse.Namespace) -> int:
    import mlc
    from mlc.hardware_counters import HardwareCounters
    _refuse_stdout(options)
    path, name = run.named(options)
    p = mlc.profiler.profile(kernels=True, profile_memory=bool(options.memory or options.trace or options.json))
    counted = HardwareCounters()
    stop: SystemExit | None = None
    if path.endswith(".py") and name is None:
        report.refuse(options, OF_FUNCTIONS, "a Python program says itself what it calls",
                   f"mlc profile {path}:FUNCTION calls one function")
        try:
            apart = redirect_stdout(sys.stderr) if options.json == "-" else nullcontext()
            with apart, counted if options.counters else nullcontext(), p:
                run.program(path, options.program_arguments, False)
        except SystemExit as ended:                        # as most programs that have a `main` do
            stop = ended
        except BaseException:                              # an error, or Ctrl-C: what has been measured is shown
            if p.kernels().rows:
                _show(p, options, counted)
            raise
    else:
        if options.program_arguments:
            raise report.usage_error(f"{options.program_arguments[0]!r}: only a Python program takes arguments",
                                     "give types with --args, or arrays with --inputs", "MLC0391")
        with counted if options.counters else nullcontext():
            said = _function(path, name, options, p)
        print(said, file=sys.stderr if options.json == "-" else sys.stdout)
    _show(p, options, counted)
    return 0 if stop is None else report.exit_status(stop)


def _function(path: str, name: str | None, options: argparse.Namespace, p: profile) -> str:
    """Call a function of a file again and again, and say how often, and with which sizes."""
    from mlc.backends.cpu.targets import host
    from mlc.backends.image import compile_image
    from mlc.backends.timed import TimedExecutable
    from mlc.ir.instrumentation import TIMES
    from mlc.ir.profiling import timed
    from mlc.passes import pipeline
    from mlc.tools import inputs
    found = run.call_in_file(path, name, argparse.Namespace(**vars(options), pipeline=None, allow_pass=[]))
    if not inputs.has_interface(found.module, found.entry):
        raise run.no_interface(found.entry, inputs.entries(found.module)[found.entry])
    types, machine = inputs.entries(found.module)[found.entry].inputs, host().machine
    pipeline.resume(found.module, "llvm", machine, added=TIMES)
    entry = TimedExecutable(compile_image(found.module, host())).entry(found.entry)
    if not entry.interface.kernels:
        raise UserError(f"{path} is at a level below kernels, which are timed by a pass above", code="MLC0335",
                        hint="start from an earlier dump")
    entry.call(found.arrays)                               # its pages are mapped, and its data in the caches
    count = options.repeat or 10
    with p:
        for _ in range(count):
            timed("compiled function", found.entry, lambda: entry.call(found.arrays), found.arrays)
    chosen = [f"{symbol} = {n}" for symbol, n in inputs.sizes_of(types, found.arrays).items()]
    return f"{count} call{'s' * (count != 1)} of {name or found.entry}" + (
        f" with {', '.join(chosen)} (--sizes)" if chosen else "") + "\n"


def _refuse_stdout(options: argparse.Namespace) -> None:
    """Raise UserError where what only a file can have is to go to stdout."""
    for name in ("trace", "flame"):
        if getattr(options, name) == "-":
            raise report.usage_error(f"--{name} writes a file", "give its name", "MLC0391")


def _show(p: profile, options: argparse.Namespace, counted: HardwareCounters) -> None:
    """Print the tables, and write the files that are asked for."""
    from mlc.api import get_num_threads
    from mlc.tools.bench import roofline
    kernels = p.kernels(None if options.no_roofline else roofline.limits(get_num_threads()))
    if not kernels.rows:
        raise UserError("the program ran no kernel, so there is nothing to show", code="MLC0796",
                        hint="it calls no operation or compiled function of mlc, or all in other processes; "
                        f"mlc profile {options.file}:FUNCTION calls one function of it")
    stream = sys.stderr if options.json == "-" else sys.stdout
    print(kernels.table(options.sort, options.rows), file=stream)
    if options.counters:
        print(counted.text(), file=stream)
    if options.memory:
        print("\n" + p.memory().table(options.rows), file=stream)
    if options.trace:
        p.export_chrome_trace(files.placed(options.trace))
    if options.flame:
        p.export_flame_graph(files.placed(options.flame), f"mlc profile {options.file}")
    if options.json:
        content = {**kernels.to_json(), "memory": p.memory().to_json()}
        if options.counters:
            content["counters"] = counted.counts
            content["counters_missing"] = counted.reason   # why there are none; "" if there are
        files.write(options.json, json.dumps(content, indent=1) + "\n")
