"""mlc opt: run passes over a module and print it. Upstream's spellings are understood too."""

from __future__ import annotations

import argparse
import os
import pkgutil
import re
import sys
from collections.abc import Container, Sequence
from pathlib import Path

from mlc.ir import rewrite
from mlc.ir.diag import Error, InternalError
from mlc.ir.parser import parse_module
from mlc.ir.passes import Instruments, Pipeline, Step, parse_pipeline, reproducer_pipeline
from mlc.ir.printer import to_text
from mlc.ir.verify import verify
from mlc.tools import diagnostics, files, report

EXAMPLES = """examples:
  mlc opt model.mlir -p 'canonicalize,cse,fix-numerics,fuse{max_ops=3}'
  mlc opt model.mlir -p canonicalize --print-ir-after-change -o -
  cat model.mlir | mlc opt - --generic
  mlc opt model.mlir --pass-pipeline='builtin.module(func.func(cse,canonicalize))' --mlir-timing
  mlc opt model.mlir -canonicalize -cse
"""
SEPARATOR = re.compile(r"(?m)^[ \t]*// -----[ \t]*$")


def parser() -> argparse.ArgumentParser:
    p = _Parser("opt", "Run passes over a module and print it.", EXAMPLES)
    add = p.add_argument
    add("file", nargs="?", default="-", help="a .mlir file, or - for stdin (the default)")
    add("-p", "--pipeline", "--pass-pipeline", action="append", default=[], metavar="PASSES",
        help="PASS{option=value},PASS,...; a pass of your own is package.module (see mlc passes)")
    add("-o", "--output", type=report.Replacement, metavar="OUT", help="write here instead of stdout")
    add("--generic", "--mlir-print-op-generic", action="store_true", help="print what any MLIR tool reads")
    add("--locations", "--mlir-print-debuginfo", action="store_true", help="print where each operation came from")
    add("--print-ir-after-all", "--mlir-print-ir-after-all", action="store_true",
        help="print the module after each pass, on stderr")
    add("--print-ir-after-change", "--mlir-print-ir-after-change", action="store_true",
        help="print what each pass changed, on stderr")
    add("--timing", "--mlir-timing", action="store_true", help="print the seconds of each pass, on stderr")
    add("--rule-stats", "--mlir-pass-statistics", action="store_true", help="print how often each rewrite rule fired")
    add("--verify-each", nargs="?", const="true", default="true", choices=["true", "false", "1", "0"],
        metavar="BOOL", help="verify the module and its form after each pass (the default)")
    add("--no-verify-each", dest="verify_each", action="store_const", const="false", help=argparse.SUPPRESS)
    add("--dump-dir", "--mlir-print-ir-tree-dir", type=report.OutputFolder, metavar="D",
        help="write the module after each pass into this folder")
    add("--split-input-file", action="store_true", help="treat the parts between '// -----' lines as modules; with "
        "--dump-dir each has a folder of its own in it")
    add("--verify-diagnostics", action="store_true", help="check the errors against 'expected-error' comments")
    add("--run-reproducer", action="store_true", help="run the pipeline that the file holds")
    add("--allow-pass", action="append", default=[], metavar="PACKAGE.MODULE",
        help="import this pass of your own where the pipeline of the file asks for it")
    add("--crash-reproducer", "--mlir-pass-pipeline-crash-reproducer", type=report.Output, metavar="FILE",
        help="where a crash leaves what replays it (default: mlc-crash.mlir)")
    add("--mlir-disable-threading", action="store_true", help=argparse.SUPPRESS)
    return p


class _Parser(report.Parser):
    """Understands upstream's `-canonicalize` and `--fuse=max_ops=3` too."""

    def parse_args(self, args: Sequence[str], namespace: None = None) -> argparse.Namespace:  # type: ignore[override]
        return super().parse_args(short_passes(args, self._option_string_actions), namespace)


def short_passes(words: Sequence[str], options: Container[str] = ()) -> list[str]:
    """`-cse` and `--cse` as `-p cse`, where that is the name of a pass and of no option."""
    import mlc.passes
    known = {m.name for m in pkgutil.iter_modules(mlc.passes.__path__)}
    out = list[str]()
    for word in words:
        head, _, value = word.lstrip("-").partition("=")
        name = head.replace("-", "_")
        if word.startswith("-") and name in known and word.split("=")[0] not in options:
            out.append("--pipeline=" + (f"{name}{{{value.strip(chr(34)).strip(chr(39))}}}" if value else name))
        else:
            out.append(word)
    return out


def main(options: argparse.Namespace) -> int:
    files.find_modules_here(*options.pipeline, *options.allow_pass)
    text, name = files.read_ir(options.file)
    parts = split(text) if options.split_input_file else [text]
    outputs, failures = list[str](), list[Error]()
    checker = diagnostics.Checker(name) if options.verify_diagnostics else None
    dumps = options.dump_dir
    for number, part in enumerate(parts):
        if dumps and len(parts) > 1:
            options.dump_dir = os.path.join(dumps, f"{number:02d}")
        if checker is not None:
            checker.expect(part)
        try:
            outputs.append(transform(part, name, options))
        except InternalError:
            raise
        except Error as error:
            if checker is not None:
                checker.report(error)
            elif len(parts) == 1:
                raise
            else:
                failures.append(error)
    if checker is not None:
        return checker.finish()
    for failure in failures:
        report.message(str(failure))
    if failures:
        return max(map(report.status_of, failures))
    files.write(options.output, "// -----\n".join(outputs))
    return 0


def split(text: str) -> list[str]:
    """The parts between `// -----` lines, each after so many empty lines that its line numbers are the file's."""
    out, line = list[str](), 0
    for part in SEPARATOR.split(text):
        out.append("\n" * line + part)
        line += part.count("\n")
    return out


def transform(text: str, name: str, options: argparse.Namespace) -> str:
    """One module's text after the passes."""
    steps = list[Step]()
    if options.run_reproducer:
        held = reproducer_pipeline(text)
        if held is None:
            raise report.usage_error(f"{name} holds no pipeline", "only reproducers do; give one with -p", "MLC0394")
        steps += parse_pipeline(held, options.allow_pass)
    steps += [step for pipeline in options.pipeline for step in parse_pipeline(pipeline)]
    pipeline = Pipeline(steps)
    module = parse_module(text, name)
    verify(module)
    instruments = Instruments(
        verify_each=options.verify_each in ("true", "1"), generic=options.generic,
        print_after_all=sys.stderr if options.print_ir_after_all else None,
        print_after_change=sys.stderr if options.print_ir_after_change else None,
        dump_dir=Path(files.placed(options.dump_dir)) if options.dump_dir else None,
        reproducer=Path(options.crash_reproducer) if options.crash_reproducer else files.scratch_file("mlc-crash.mlir"))
    fired = {id(rule): (rule.tried, rule.fired, rule.seconds) for rule in all_rules()}
    try:
        pipeline.run(module, instruments)
    finally:
        if options.timing:
            print(timing(instruments.seconds), file=sys.stderr)
        if options.rule_stats:
            print(rule_stats(fired, instruments), file=sys.stderr)
    if instruments.verify_each:
        verify(module)
    return to_text(module, options.generic, options.locations)


def timing(seconds: dict[str, float]) -> str:
    """Seconds and share of each pass."""
    total = sum(seconds.values()) or 1e-9
    lines = [f"{t:10.4f} s {100 * t / total:5.1f} %  {name}" for name, t in seconds.items()]
    return "\n".join([*lines, f"{total:10.4f} s 100.0 %  all passes"])


def all_rules() -> list[rewrite.Rule]:
    return [rule for rules in rewrite.RULES.values() for rule in rules]


def rule_stats(earlier: dict[int, tuple[int, int, float]], instruments: Instruments) -> str:
    """Statistics of the rewrite rules since `earlier`, by descending number of firings; then the firings per pass."""
    rows = list[tuple[int, int, float, str]]()
    for rule in all_rules():
        tried, fired, seconds = earlier.get(id(rule), (0, 0, 0.0))
        if rule.tried > tried:
            rows.append((rule.fired - fired, rule.tried - tried, rule.seconds - seconds,
                         f"{rule.name} of {rule.target.name or rule.target.__name__}: {rule.equation}"))
    lines = ["   fired     tried     ms  rule"]
    lines += [f"{f:8d}  {t:8d} {s * 1e3:6.1f}  {what}" for f, t, s, what in sorted(rows, key=lambda r: (-r[0], -r[1]))]
    for step, counts in instruments.rules.items():
        lines.append(f"{step}: " + ", ".join(f"{name} {n}" for name, n in sorted(counts.items(), key=lambda c: -c[1])))
    return "\n".join(lines)
