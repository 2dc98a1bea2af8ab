"""mlc info: versions, target and limits, for people and for bug reports; or what a saved model is."""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import sys

from mlc.ir.diag import BackendError
from mlc.tools import layout, report
from mlc.tools.cli import version

EXAMPLES = """examples:
  mlc info
  mlc info --target x86-64-v3
"""
PACKAGES = ("numpy", "llvmlite", "ml_dtypes", "safetensors")


def parser() -> argparse.ArgumentParser:
    p = report.Parser("info", "Show versions, the target and what compiled code may use, or what a saved model is.",
                      EXAMPLES)
    p.add_argument("file", nargs="?", help="a file of mlc.save: it is checked, and its code is not run")
    p.add_argument("--target", help="host (the default), x86-64-v2, x86-64-v3 or x86-64-v4")
    return p


def main(options: argparse.Namespace) -> int:
    if options.file:
        report.refuse(options, ("target",), "a saved model has the targets that it was made for", "leave it out")
    show(about(options.file) if options.file else versions(options.target or "host"))
    return 0


def versions(target_name: str) -> list[tuple[str, str]]:
    """Versions of mlc and its dependencies on this machine, and the properties of the target."""
    from mlc.backends import cache
    from mlc.backends.cpu import threads
    from mlc.backends.target import Target
    from mlc.ir.abi import ALLOWED_EXTERNALS
    rows = [("mlc", version()), ("python", f"{platform.python_version()} ({platform.python_implementation()})"),
            ("system", f"{platform.system()} {platform.release()} {platform.machine()}")]
    rows += [(name, _version(name)) for name in PACKAGES]
    rows.append(("LLVM", _llvm_version()))
    try:
        target = Target.parse(target_name)
        rows += [("target", f"{target.name}: {target.triple}, scheduled for {target.cpu}"),
                 ("machine model", ", ".join(f"{name} {value}" for name, value in target.machine.figures().items())),
                 ("features", " ".join(sorted(f[1:] for f in target.features if f.startswith("+"))))]
    except BackendError as error:
        if error.code != "MLC0502":              # an unknown name is the user's mistake
            raise
        rows.append(("target", error.message))
    rows.append(("threads", str(threads.get_num_threads())))
    rows.append(("GPU", _gpu()))
    store = cache.store()
    rows += [("compile cache", str(store.folder) if store is not None else "off"),
             ("symbols that compiled code may leave to the system", ", ".join(sorted(ALLOWED_EXTERNALS)) or "none")]
    return rows


def about(path: str) -> list[tuple[str, str]]:
    """Description of a saved model, as recorded in its file."""
    from mlc.artifact import describe
    return describe(path)


def show(rows: list[tuple[str, str]]) -> None:
    """Rows in two columns, but for long names."""
    width = max(len(k) for k, _ in rows if len(k) < 30)
    columns = layout.page_width()
    for key, value in rows:
        first, *more = layout.wrapped(value, columns - width - 2) or [""]
        print(*([f"{key:{width}}  {first}"] if len(key) <= width else [f"{key}:", f"{'':{width}}  {first}"]),
              *(f"{'':{width}}  {line}" for line in more), sep="\n")
    sys.stdout.flush()


def _gpu() -> str:
    """The first GPU of this machine, or why there is none."""
    from mlc import cuda
    from mlc.backends.cuda.devices import device
    try:
        major, minor = cuda.get_device_capability()
        return f"{device().name}, compute capability {major}.{minor}"
    except BackendError as error:
        return error.message


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
