"""mlc info: versions, target and limits, for people and for bug reports."""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import sys

from mlc.ir.diag import BackendError
from mlc.tools import report
from mlc.tools.cli import version

EXAMPLES = """examples:
  mlc info
  mlc info --target x86-64-v3
"""
PACKAGES = ("numpy", "llvmlite", "ml_dtypes")


def parser() -> argparse.ArgumentParser:
    p = report.Parser("info", "Show versions, the target, and what compiled code may use.", EXAMPLES)
    p.add_argument("--target", default="host", help="host (the default), x86-64-v2, x86-64-v3 or x86-64-v4")
    return p


def main(options: argparse.Namespace) -> int:
    from mlc.backends.link import ALLOWED_EXTERNALS
    from mlc.backends.target import Target
    rows = [("mlc", version()), ("python", f"{platform.python_version()} ({platform.python_implementation()})"),
            ("system", f"{platform.system()} {platform.release()} {platform.machine()}")]
    rows += [(name, _version(name)) for name in PACKAGES]
    rows.append(("LLVM", _llvm_version()))
    try:
        target = Target.parse(options.target)
        rows += [("target", f"{target.name}: {target.triple}, scheduled for {target.cpu}"),
                 ("vector bits", str(target.vector_bits)),
                 ("features", " ".join(sorted(f[1:] for f in target.features if f.startswith("+"))))]
    except BackendError as error:
        if error.code != "MLC0502":              # an unknown name is the user's mistake
            raise
        rows.append(("target", error.message))
    rows += [("compile cache", "none yet"),
             ("symbols that compiled code may leave to the system", ", ".join(sorted(ALLOWED_EXTERNALS)) or "none")]
    width = max(len(k) for k, _ in rows[:-1])
    for key, value in rows:
        print(f"{key:{width}}  {value}" if len(key) <= width else f"{key}: {value}")
    sys.stdout.flush()
    return 0


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _llvm_version() -> str:
    try:
        import llvmlite.binding as llvm
    except ImportError:
        return "not installed"
    return ".".join(map(str, llvm.llvm_version_info))
