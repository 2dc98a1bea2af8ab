"""mlc replay: run a reproducer again: the passes that failed, or the check that found a difference."""

from __future__ import annotations

import argparse
import importlib

from mlc.ir.passes import reproducer_pipeline
from mlc.tools import files, inputs, report

EXAMPLES = """examples:
  mlc replay crash.mlir
  mlc replay crash.mlir --allow-pass mine.swap
"""


def parser() -> argparse.ArgumentParser:
    p = report.Parser("replay", "Run a file again that mlc left when something failed.", EXAMPLES)
    p.add_argument("file", help="mlc-crash.mlir, or mlc-wrong-PASS.mlir of mlc run --check")
    p.add_argument("--allow-pass", action="append", default=[], metavar="PACKAGE.MODULE",
                   help="import this pass of your own where the file asks for it")
    return p


def main(options: argparse.Namespace) -> int:
    text, name = files.read_text(options.file)
    if reproducer_pipeline(text) is None:
        raise report.usage_error(f"{name} holds no pipeline", "only reproducers do: mlc opt and mlc run take "
                                 "other files", "MLC0394")
    command, words = ("run", ["--check"]) if inputs.held_call(text) else ("opt", ["--run-reproducer"])
    words += [word for allowed in options.allow_pass for word in ("--allow-pass", allowed)]
    module = importlib.import_module(f"mlc.tools.{command}")
    return int(module.main(module.parser().parse_args([options.file, *words])))
