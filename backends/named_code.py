"""Compiled code for `perf` and `gdb`: with MLC_PERF=FOLDER it is loaded from files there that name all functions, and
say which line of the program each instruction is of.

Each module is then compiled as one object with its locations, which no other lines share. The files stay when the
process ends, as `perf report` reads them. Other code has the names of its entry points only, and is loaded from memory
that has no name.
"""

from __future__ import annotations

import itertools
import os
from functools import cache

from mlc.ir.diag import UserError
from mlc.ir.files import check_folder, write_whole

VARIABLE = "MLC_PERF"
_files = itertools.count()


def folder() -> str:
    """The folder that the user asks for; "" for none. UserError if it cannot be written to, before code is made."""
    named = os.environ.get(VARIABLE, "")
    return _checked(named) if named else ""


@cache
def _checked(path: str) -> str:
    try:
        check_folder(path)
    except (OSError, ValueError) as error:
        raise _not_written(path, error) from None
    return path


def _not_written(path: str, error: OSError | ValueError) -> UserError:
    reason = error.strerror if isinstance(error, OSError) else error
    return UserError(f"cannot write {path}: {reason}", code="MLC0393",
                     hint=f"{VARIABLE} names a folder for compiled code")


def stored(code: bytes) -> str:
    """The path of a file with a shared object that is to be loaded; UserError if it cannot be written."""
    path = os.path.join(os.path.abspath(folder()), f"mlc-{os.getpid()}-{next(_files)}.so")
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_whole(path, [code])
    except OSError as error:
        raise _not_written(path, error) from None
    return path
