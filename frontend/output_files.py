"""Writing files that users name: whole or not at all, and one error where that cannot be done."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import IO

from mlc.frontend.location import user_loc
from mlc.ir.diag import Error, UserError
from mlc.ir.files import write_whole

HINTS = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "free some space, or write elsewhere"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "write to a folder that you may write to"),
    errno.EISDIR: "give the name of a file", errno.ENOTDIR: "part of the path is a file",
    errno.ENOENT: "make the folder first",
}


def write_file(path: str | os.PathLike[str], parts: Iterable[bytes | memoryview]) -> None:
    """Replace a file, or make it.

    Args:
        path: Name of the file.
        parts: Its content.

    Raises:
        UserError: It cannot be written (MLC0393); a file that was there is as before.
    """
    try:
        write_whole(path, parts)
    except Error:                                          # of what makes the content
        raise
    except (OSError, ValueError) as error:
        raise not_written(path, error) from None


def write_open_file(file: IO[bytes], parts: Iterable[bytes | memoryview]) -> None:
    """Write to a file that the program has opened; UserError (MLC0393) if that fails, after a part of it."""
    try:
        file.writelines(parts)
    except (OSError, ValueError) as error:
        raise not_written(getattr(file, "name", type(file).__name__), error) from None


def not_written(path: object, error: OSError | ValueError) -> UserError:
    """The error of a file that cannot be written."""
    reason = error.strerror or error if isinstance(error, OSError) else error
    hint = HINTS.get(error.errno or 0, "") if isinstance(error, OSError) else ""
    return UserError(f"cannot write {path}: {reason}", code="MLC0393", loc=user_loc(), hint=hint)
