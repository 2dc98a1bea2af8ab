"""Dependencies of compiled code other than the program: the versions of mlc, LLVM, numpy, ml_dtypes and Python.

mlc's version is the SHA-256 of its sources, so that a change of sources invalidates cached code. LLVM's is that of
llvmlite and its library, determined without loading it; ml_dtypes, which computes bfloat16 constants, is identified by
its file for the same reason.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np

FOLDERS = ("ir", "dialects", "passes", "backends")
"""The folders of this package that affect the code generated from a module of the tensor level; code.py does too."""

PACKAGE = Path(__file__).parents[1]

UNCHANGED_FOR = 0.1
"""Seconds for which sources that have not changed are not looked at again: less than it takes to edit a file and have
this process import and use it."""
_unchanged_at = float("-inf")


@cache
def versions() -> dict[str, str]:
    """The versions by name; empty if unknown, as without sources or if these have just changed."""
    sources, llvm = source_digest(), llvm_version()
    if not sources or not llvm or changed_since_start():
        return {}
    return {"mlc": sources, "llvmlite": llvm, "numpy": np.__version__, "ml_dtypes": _installed("ml_dtypes"),
            "python": f"{sys.implementation.cache_tag} {sys.abiflags}"}


def source_digest() -> str:
    """SHA-256 of the sources, or "" if they are missing."""
    digest = hashlib.sha256()
    try:
        for name, path in _sources():
            content = Path(path).read_bytes()
            digest.update(f"{name} {len(content)}\n".encode() + content)
    except OSError:
        return ""
    return digest.hexdigest()


@cache
def _sources() -> list[tuple[str, str]]:
    """(name within the package, path) of every source file, by name."""
    found = [("code.py", str(PACKAGE / "code.py"))]
    for folder in FOLDERS:
        for path, _, files in os.walk(PACKAGE / folder):
            inside = os.path.relpath(path, PACKAGE)
            found += [(f"{inside}/{name}", f"{path}/{name}") for name in files if name.endswith(".py")]
    return sorted(found)


def llvm_version() -> str:
    """Version of llvmlite and identity of its library's build; "" if it is missing."""
    spec = importlib.util.find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return ""
    import llvmlite  # its binding alone loads LLVM

    try:
        library = os.stat(Path(spec.origin).parent / "binding" / "libllvmlite.so")
    except OSError:                                        # elsewhere, as distributions may have it
        return str(llvmlite.__version__)
    return f"{llvmlite.__version__} {library.st_size} {library.st_mtime_ns}"


def _installed(package: str) -> str:
    """Identify the version of an installed package, without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return ""
    status = os.stat(spec.origin)
    return f"{status.st_size} {status.st_mtime_ns}"


def changed_since_start() -> bool:
    """Whether a source file is newer than this process, which may then run other code than the files contain.

    Every kernel that is stored asks for it, and there are hundreds of files: no change holds for some time.
    """
    global _unchanged_at
    now = time.monotonic()
    if now - _unchanged_at < UNCHANGED_FOR:
        return False
    try:                                                   # the time of change: installing may keep older ones
        if any(os.stat(path).st_ctime >= _STARTED for _, path in _sources()):
            return True
    except OSError:
        return True
    _unchanged_at = now
    return False


def _started() -> float:
    """The start time of this process, in seconds since the epoch."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        age = time.process_time()
    return time.time() - age


_STARTED = _started()
