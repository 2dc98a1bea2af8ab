"""mlc diff: compare two modules up to the names of values and blocks."""

from __future__ import annotations

import argparse
import json

from mlc.ir.difference import compared, folded
from mlc.ir.parser import parse_module
from mlc.ir.printer import quote, to_text
from mlc.tools import files, report
from mlc.tools.exit_status import OK, WRONG_INPUT

EXAMPLES = """examples:
  mlc diff model.mlir model.mlir
  cat model.mlir | mlc diff model.mlir -
  mlc diff --json model.mlir model.mlir

exit status: 1 if the modules differ. Both are parsed and printed first, so layout and comments do not count. Lines of
the first have the names of the second; %0' is a value of the first where %0 is another one of the second.
"""


def parser() -> argparse.ArgumentParser:
    p = report.Parser("diff", "Compare two modules up to the names of values and blocks.", EXAMPLES)
    add = p.add_argument
    add("before", help="a .mlir file, or - for stdin")
    add("after", help="another one")
    add("-U", "--unified", type=report.integer(0), metavar="N", help="lines around a difference (default 3)")
    add("--locations", action="store_true", help="compare the source locations of operations, too")
    add("--json", action="store_true", help="print the lines that differ as JSON: [mark, text]")
    return p


def main(options: argparse.Namespace) -> int:
    if options.before == options.after == "-":
        raise report.usage_error("both modules are stdin", "give one of them as a file", "MLC0391")
    if options.json:
        report.refuse(options, ("unified",), "--json has the lines that differ, and none around them", "leave one out")
    texts = []
    for path in (options.before, options.after):
        text, name = files.read_ir(path)
        own = quote(name) + ":"                              # where operations without a location are from
        texts.append(to_text(parse_module(text, name), locations=options.locations).replace(own, '"-":'))
    lines = compared(*texts)
    count = sum(line.mark != " " for line in lines)
    if options.json:
        print(json.dumps([[line.mark, line.text] for line in lines if line.mark != " "]))
    elif count:
        print(folded(lines, 3 if options.unified is None else options.unified), end="")
    else:
        print("the modules are equal, up to the names of values")
    return WRONG_INPUT if count else OK
