"""mlc explain: what the compiler did with a function, as a page, as text about one line, or as JSON.

`subjects` finds what to explain, `collect` compiles it and takes note of it, as plain data (`explanation`); `page`,
`report_text` and `as_json` only render those.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from contextlib import nullcontext, redirect_stdout
from typing import TYPE_CHECKING

from mlc.ir.passes import no_collection
from mlc.tools import files, formats, report

if TYPE_CHECKING:
    from mlc.tools.explain.collect import Subject

EXAMPLES = """examples:
  mlc explain model.py:predict -o report.html
  mlc explain model.py:predict --line model.py:5
  mlc explain model.py -o report.html
  mlc explain model.py:scale --args 'f32[B,16]' --sizes B=64 --json -o scale.json
  mlc explain model.py:predict --target=cuda:sm_90 -o report.html
  mlc explain model.py:predict --measure
"""


def parser() -> argparse.ArgumentParser:
    p = report.Parser("explain", "Show what the compiler made of each line: a page that works offline, text, or JSON.",
                      EXAMPLES)
    add = p.add_argument
    add("file", metavar="FILE[:FUNCTION]", help="a function of a .py, .mlc or .mlir file; a .py program, which is run "
        "and whose largest compilation is explained; a " + " or ".join(formats.ENDINGS) + " file")
    add("program_arguments", nargs="*", default=[], metavar="ARG", help="arguments of a Python program (after --)")
    add("-o", "--output", type=report.Output, metavar="OUT",
        help="write the page (or with --json the data) to this file; - is stdout "
        "(default: a summary on the terminal)")
    add("--line", metavar="[FILE:]LINE", help="text: one line of the source through all levels")
    add("--all", action="store_true", help="with --line: all lines of each level, however many")
    add("--json", action="store_true", help="write the data of the page; tools/explain/schema.json describes them")
    add("--args", metavar="TYPES", help="types of the arguments, as in 'f32[B,16],f32[16,4]', where annotations do not "
        "tell")
    add("--sizes", metavar="B=4,...", help="numbers for size symbols, for flops and bytes (default 32 for each)")
    add("--target", help="host (the default), x86-64-v2, x86-64-v3, x86-64-v4, cascadelake, cooperlake, "
        "sapphirerapids, aarch64, or a GPU: cuda:sm_75 to cuda:sm_120")
    add("--matmul-precision", choices=["ieee", "tf32"], metavar="P", help="on a GPU with tensor cores: ieee or tf32")
    add("--roofline", action="store_true", help="measure what this machine can do, which takes seconds: the least "
        "time that it needs for each kernel")
    add("--measure", action="store_true", help="run the code on random arguments, and say how long each kernel takes")
    return p


def main(options: argparse.Namespace) -> int:
    if options.json and options.line:
        raise report.usage_error("--json and --line are two forms", "leave one of them out", "MLC0391")
    if options.all and not options.line:
        raise report.usage_error("--all is about --line", "say which line of the source", "MLC0391")
    if options.line and options.output and options.output.endswith((".html", ".htm")):
        raise report.usage_error("--line writes text, and a page shows all lines", "leave one of them out", "MLC0391")
    from mlc.tools.explain import as_json, collect, page, report_text
    if options.line:
        report_text.parse_line(options.line)     # before anything is compiled
    subject = _subject(options)
    for option in ("roofline", "measure"):
        if getattr(options, option) and subject.target.name != "host":
            raise report.usage_error(f"--{option} measures this machine, and --target is {subject.target.name}",
                                     "leave one of them out", "MLC0391")
    subject.measure = options.measure
    with no_collection():                        # hundreds of thousands of objects, all of which live to the end
        found = collect.explain(subject)
        if options.roofline:
            from mlc.api import get_num_threads
            from mlc.tools.bench import roofline
            found.limits = roofline.limits(get_num_threads())
        if options.line:
            text = report_text.line(found, options.line, options.all)
        elif options.json:
            text = as_json.text(found)
        else:
            text = page.render(found) if options.output else report_text.summary(found)
        gc.freeze()                              # nor at the end, where they would be searched for cycles for a second
    files.write(options.output, text)
    if options.output not in (None, "-"):
        print(f"{options.output}: {os.path.getsize(files.placed(options.output)) / 1e6:.1f} MB", file=sys.stderr)
    return subject.status


def _subject(options: argparse.Namespace) -> Subject:
    from mlc.backends.target import Target
    from mlc.tools import inputs, run, sources
    from mlc.tools.explain import subjects
    target = Target.parse(options.target or "host")
    path, name = run.named(argparse.Namespace(file=options.file, entry=None))
    given = inputs.parse_args(options.args) if options.args is not None else None
    if path.endswith(".py") and name is None:
        report.refuse(options, ("args",), "a Python program says itself what it calls", f"explain {path}:FUNCTION")
        apart = options.json and options.output in (None, "-")       # what the program prints is no part of the data
        with redirect_stdout(sys.stderr) if apart else nullcontext():
            found = subjects.of_program(path, options.program_arguments, target, options.matmul_precision)
    elif options.program_arguments:
        raise report.usage_error(f"{options.program_arguments[0]!r}: only a Python program takes arguments",
                                 "give types with --args", "MLC0391")
    elif path.endswith(sources.FUNCTIONS):
        found = subjects.of_function(path, name or "", given, target, options.matmul_precision)
    else:
        report.refuse(options, ("args",), "the file has the types", "leave it out")
        found = subjects.of_text(path, name or "", target)
    return subjects.specialise(found, options.sizes)
