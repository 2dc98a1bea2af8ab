"""Lazy import of llvmlite, which loads LLVM."""

from __future__ import annotations

from typing import Any

from mlc.ir.diag import BackendError


def binding() -> Any:
    """llvmlite's binding, imported on first use: it loads LLVM. It ships no types, hence Any."""
    try:
        import llvmlite.binding as llvm
    except OSError as error:                               # damaged, or out of memory
        raise BackendError(f"LLVM cannot be loaded: {str(error).partition(' from ')[0]}", code="MLC0452",
                           hint="install llvmlite again, or raise the limit on memory (ulimit -v)") from None
    return llvm
