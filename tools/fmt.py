"""mlc fmt: lay out `.mlc` and `.mlir` files: spaces, indentation, empty lines; the meaning stays."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from mlc.tools import files, report
from mlc.tools.exit_status import OK, WRONG_INPUT

EXAMPLES = """examples:
  mlc fmt model.mlir
  mlc fmt .
  mlc fmt --check model.mlir
  cat model.mlir | mlc fmt - --kind mlir

Comments and line breaks are kept; lines of .mlc files that have more than 120 columns are broken in brackets.
A file with errors is left as it is, and its errors are shown.
exit status: 1 with --check if a file is not in its layout, and where a file has errors
"""
KINDS = ("mlc", "mlir")


def parser() -> argparse.ArgumentParser:
    p = report.Parser("fmt", "Lay out .mlc and .mlir files.", EXAMPLES)
    p.add_argument("files", nargs="+", metavar="FILE", help="files, or folders with such files in them; - is stdin, "
                   "and its result goes to stdout")
    p.add_argument("--check", action="store_true", help="write nothing; say which files would change")
    p.add_argument("--diff", action="store_true", help="write nothing; show what would change")
    p.add_argument("--kind", choices=KINDS, help="the language of stdin (default mlir)")
    return p


def main(options: argparse.Namespace) -> int:
    from mlc.ir.diag import Error, InternalError
    if "-" not in options.files:
        report.refuse(options, ("kind",), "files have endings that tell their language", "leave it out, or give - for "
                      "stdin")
    status, count, changed = OK, 0, 0
    for path in chosen(options.files):
        kind = options.kind or "mlir" if path == "-" else path.rpartition(".")[2]
        try:
            text, name = files.read_text(path)
            new = formatted(text, kind, name)
        except InternalError:
            raise
        except Error as error:
            report.message(str(error))
            if path == "-" and options.kind is None:
                report.message("  help: it is read as a .mlir file; for the other language give --kind mlc")
            status = max(status, report.status_of(error))
            continue
        if options.diff:
            sys.stdout.writelines(difflib.unified_diff(
                text.splitlines(keepends=True), new.splitlines(keepends=True), name, name))
        count, changed = count + 1, changed + (new != text)
        if options.check and new != text:
            print(f"{name} is not in its layout")
            status = max(status, WRONG_INPUT)
        if not (options.check or options.diff) and (path == "-" or new != text):
            files.write(path if path == "-" else os.path.realpath(path), new)      # a link stays one
    if options.files != ["-"] and not options.diff:
        print(f"{count} file{'s' * (count != 1)}, {changed} {'to change' if options.check else 'changed'}")
    return status


def formatted(text: str, kind: str, name: str = "<text>") -> str:
    """A text of one of the languages in its layout; its errors are raised."""
    if kind == "mlc":
        from mlc.tools.formatting import program
        return program.formatted(text, name)
    from mlc.tools.formatting import ir
    return ir.formatted(text, name)


def chosen(paths: list[str]) -> Iterator[str]:
    """The files of the command line: those of a folder are all with our endings, but for hidden folders such as .venv.
    """
    for path in paths:
        if path != "-" and Path(path).is_dir():
            found = (p for kind in KINDS for p in Path(path).rglob(f"*.{kind}"))
            yield from sorted(str(p) for p in found if not any(
                part.startswith(".") for part in p.relative_to(path).parts))
        elif path == "-" or path.rpartition(".")[2] in KINDS:
            yield path
        elif not Path(path).exists():
            raise report.usage_error(f"cannot read {path}: No such file or directory", "give files, or folders with "
                                     "such files in them", "MLC0392")
        else:
            raise report.usage_error(f"{path} is no .mlc or .mlir file", "give files of these endings, or --kind and -",
                                     "MLC0392")
