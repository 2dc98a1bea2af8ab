"""mlc import: what a program of PyTorch's takes and consists of, and all of it that mlc does not support."""

from __future__ import annotations

import argparse

from mlc.tools import report
from mlc.tools.exit_status import OK, WRONG_INPUT

EXAMPLES = """examples:
  mlc import model.pt2
  mlc compile model.pt2 --emit=tensor
"""


def parser() -> argparse.ArgumentParser:
    p = report.Parser("import", "Show inputs, outputs, parameters and operations of a program of torch.export, and "
                      "what mlc does not support; the exit status is 1 if there is any.", EXAMPLES)
    p.add_argument("file", metavar="FILE", help="what torch.export.save wrote; PyTorch reads it: trust it, or do not")
    return p


def main(options: argparse.Namespace) -> int:
    from mlc.torch.description import Description
    described = Description(options.file)
    print("\n".join(described.lines))
    return OK if described.supported else WRONG_INPUT
