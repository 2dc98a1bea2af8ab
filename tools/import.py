"""mlc import: what a model that another program wrote consists of, and all of it that mlc does not support."""

from __future__ import annotations

import argparse
import os

from mlc.tools import files, formats, report
from mlc.tools.exit_status import OK, WRONG_INPUT

EXAMPLES = """examples:
  mlc import model.pt2
  mlc import model.pt2 -o model.mlir
  mlc compile model.pt2 --emit=tensor
"""


def parser() -> argparse.ArgumentParser:
    p = report.Parser("import", "Show inputs, outputs, parameters and operations of a model that another program "
                      "wrote, and what mlc does not support; the exit status is 1 if there is any.", EXAMPLES)
    written = ", ".join(f"{f.ending} ({f.writer})" for f in formats.FORMATS)
    p.add_argument("file", metavar="FILE", help=f"{written}; PyTorch reads a .pt2: trust it, or do not")
    p.add_argument("-o", "--output", type=report.Output, metavar="OUT",
                   help="write the model as a module of the tensor dialect, too")
    return p


def main(options: argparse.Namespace) -> int:
    kind = formats.format_of(options.file)
    if kind is None:
        raise report.usage_error(f"{options.file} is no model of a format that mlc imports",
                                 "its name ends in " + " or ".join(formats.ENDINGS), "MLC0399")
    if not os.path.isfile(options.file):
        raise report.usage_error(f"cannot read {options.file}: no such file", "give the path of a model", "MLC0392")
    described = kind.describe(options.file)
    print(described.text())
    if described.unsupported:
        return WRONG_INPUT
    if options.output is not None:
        from mlc.ir.printer import to_text
        from mlc.tools import compile
        files.write(options.output, to_text(compile.trace(options.file, "", None)))
    return OK
