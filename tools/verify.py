"""mlc verify: check that files of compiled code are intact and made for this machine, without running them."""

from __future__ import annotations

import argparse

from mlc.tools import report

EXAMPLES = """examples:
  mlc compile model.py:predict -o net.so
  mlc verify net.so
  mlc compile model.py:predict --target=aarch64 -o arm.so
  mlc verify net.so arm.so --elsewhere
"""


def parser() -> argparse.ArgumentParser:
    p = report.Parser("verify", "Check compiled modules (with weights beside them) and saved models.", EXAMPLES)
    p.add_argument("files", metavar="FILE", nargs="+", help="what mlc compile -o NAME.so or mlc.save wrote")
    p.add_argument("--elsewhere", action="store_true", help="files may be for other machines than this one")
    return p


def main(options: argparse.Namespace) -> int:
    from mlc import artifact
    for path in options.files:
        rows = artifact.describe(path)
        if not options.elsewhere:
            artifact.check_runs_here(path)
        print(f"{path}: whole")
        for name, text in rows:
            print(f"  {name:22}{text}")
    return 0
