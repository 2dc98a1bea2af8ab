"""Reading and writing for commands: `-` is stdin or stdout, and files are written atomically.

A file that a command writes is named from the folder that the command is started in, wherever the program that it runs
goes meanwhile. Whether it can be written is known before that program runs.
"""

from __future__ import annotations

import errno
import linecache
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mlc.ir.diag import ParseError, UserError
from mlc.ir.files import check_folder, read_at_most, write_whole
from mlc.ir.lexer import MAX_TEXT

STDIN = "<stdin>"


class _Start:
    """The folder that the command is started in; "" if it is no more."""

    folder = ""


@contextmanager
def started_here() -> Iterator[None]:
    """Context of a command, for which the current folder is the one that it is started in."""
    saved = _Start.folder
    try:
        _Start.folder = os.getcwd()
    except FileNotFoundError:
        _Start.folder = ""
    try:
        yield
    finally:
        _Start.folder = saved


def placed(path: str) -> str:
    """Where a file is that a command writes."""
    return os.path.join(_Start.folder, path)


def check_output(path: str) -> None:
    """Raise UserError (MLC0393) if a file that is to be written later cannot be."""
    if path == "-":
        return
    try:
        _check_place(Path(placed(path)))
    except (OSError, ValueError) as error:
        raise _not_written(path, error) from None


def check_output_folder(path: str) -> None:
    """Raise UserError (MLC0393) if files cannot be written to a folder, which is made later if it is missing."""
    try:
        check_folder(placed(path))
    except (OSError, ValueError) as error:
        if os.path.isfile(placed(path)):
            raise UserError(f"cannot write to {path}: it is a file", code="MLC0393",
                            hint="give the name of a folder, which is made if it is missing") from None
        raise _not_written(path, error) from None


def _check_place(target: Path) -> None:
    """Raise OSError or ValueError as `write_whole` would."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        os.stat(target.parent)                             # which says that the folder is missing
    else:
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):                         # a device or pipe, which is written directly
            return
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _not_written(path: str, error: OSError | ValueError) -> UserError:
    from mlc.frontend.output_files import HINTS
    if isinstance(error, OSError):
        return UserError(f"cannot write {path}: {error.strerror}", code="MLC0393", hint=HINTS.get(error.errno or 0))
    return UserError(f"cannot write {path!r}: {error}", code="MLC0393")


def read_text(path: str) -> tuple[str, str]:
    """(text, name for messages) of a file, or of stdin where the path is `-`."""
    name = STDIN if path == "-" else path
    try:                                         # of a text that is too long, the parser refuses the last byte
        data = sys.stdin.buffer.read(MAX_TEXT + 1) if path == "-" else read_at_most(path, MAX_TEXT)
    except OSError as error:
        raise ParseError(f"cannot read {name}: {error.strerror}", code="MLC0201") from None
    except ValueError as error:                  # a path with a NUL in it
        raise ParseError(f"cannot read {name!r}: {error}", code="MLC0201") from None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ParseError(f"{name} is not UTF-8: byte {data[error.start]:#04x} at offset {error.start}",
                         code="MLC0202") from None
    remember_source(name, text)
    return text, name


def read_ir(path: str) -> tuple[str, str]:
    """`read_text` of a .mlir file; a program is refused."""
    if path.endswith((".py", ".mlc")):
        raise UserError(f"{path} is no .mlir file", code="MLC0392",
                        hint=f"mlc compile {path}:FUNCTION --emit=tensor -o FILE.mlir makes one")
    return read_text(path)


def remember_source(name: str, text: str) -> None:
    """Register a text that is not a file, so that messages can quote its lines."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)


def write(path: str | None, data: str | bytes) -> None:
    """Write to a file atomically; None and `-` are stdout."""
    if path is None or path == "-":
        if isinstance(data, bytes):
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            sys.stdout.write(data)
            sys.stdout.flush()
        return
    try:
        write_whole(placed(path), [data.encode() if isinstance(data, str) else data])
    except (OSError, ValueError) as error:
        raise _not_written(path, error) from None


def scratch_file(name: str) -> Path:
    """A path for an unnamed output file: in the current folder, or the temporary folder if that is not writable."""
    folder = Path.cwd() if os.access(Path.cwd(), os.W_OK) else Path(tempfile.gettempdir())
    stem, suffix = os.path.splitext(name)
    number = 0
    while (path := folder / f"{stem}{f'-{number}' if number else ''}{suffix}").exists():
        number += 1
    return Path(os.path.relpath(path)) if folder == Path.cwd() else path


def find_modules_here(*pipelines: str) -> None:
    """Add the current folder to the import path, if a pass of the user's own is requested by its module's name.

    Otherwise nothing is imported from there: it may be a folder that somebody sent.
    """
    if any("." in pipeline for pipeline in pipelines) and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
