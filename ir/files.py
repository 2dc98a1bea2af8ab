"""Atomic file writes, safe against crashes and concurrent writers; and reads of bounded size.

A write goes to a temporary file in the same folder, which is synced and renamed over the target. The temporary file has
a random, unused name (O_EXCL), links are not followed, and its writer holds a lock on it: so the next writer in the
folder recognizes the files of writers that were killed, and deletes them.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

_TEMPORARY = re.compile(r"\.mlc-[0-9a-f]{16}\.tmp")
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
"""Error numbers of file systems that support no locks or no syncing of folders."""


def write_whole(path: str | os.PathLike[str], parts: Iterable[bytes | memoryview], mode: int = 0o666) -> None:
    """Write a file that a user named; OSError or ValueError if that cannot be done.

    An existing file keeps its permissions, a new one gets `mode` less the umask. A device or pipe is written directly.
    """
    target = Path(path)
    try:
        found = target.stat()
    except FileNotFoundError:
        remove_leftovers(target.parent)
        replace(target, parts, mode)
    else:
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
        if not stat.S_ISREG(found.st_mode):
            with open(target, "wb") as file:
                file.writelines(parts)
            return
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
        remove_leftovers(target.parent)
        replace(target, parts, 0o600, stat.S_IMODE(found.st_mode))
    _sync_folder(target.parent)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """`write_whole` for a text, in UTF-8."""
    write_whole(path, [text.encode()])


def check_folder(path: str | os.PathLike[str]) -> None:
    """OSError or ValueError if files cannot be written to a folder; it and those above it are made where missing."""
    at = Path(path).absolute()
    while True:
        try:
            mode = at.stat().st_mode
            break
        except FileNotFoundError:
            if at.is_symlink() or at == at.parent:         # a link to nothing, where no folder can be made
                raise
            at = at.parent
    if not stat.S_ISDIR(mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(at))
    if not os.access(at, os.W_OK | os.X_OK, effective_ids=True):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(at))


def append_line(path: str | os.PathLike[str], text: str) -> None:
    """Append a line to a file, created if missing; other processes may append concurrently. A link, such as
    /dev/stdout, is followed: the user names the file, and nothing that is in it goes."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        os.write(fd, f"{text}\n".encode())                  # one call: lines of two writers do not interleave
    finally:
        os.close(fd)


def replace(path: Path, parts: Iterable[bytes | memoryview], mode: int, exact: int | None = None) -> None:
    """Atomically replace a file, with `mode` less the umask or with an `exact` mode."""
    temporary, descriptor = _locked(path.parent, mode)
    with open(descriptor, "wb") as file:
        try:
            file.writelines(parts)
            if exact is not None:
                os.fchmod(descriptor, exact)
            file.flush()
            os.fsync(descriptor)
            os.replace(temporary, path)
        except BaseException:                              # interruptions too
            temporary.unlink(missing_ok=True)
            raise


def publish_folder(temporary: Path, target: Path) -> None:
    """Give a folder, whose files are written and synced, the name that others look for; it must not exist."""
    _sync_folder(temporary)
    if target.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    os.rename(temporary, target)
    _sync_folder(target.parent)


def read_at_most(path: str | os.PathLike[str], most: int) -> bytes:
    """Read at most `most` bytes of a file, a pipe or a device; OSError if there are more."""
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return data


def at_once(path: str, flags: int) -> int:
    """Open a file without blocking, even if it is a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def read_starting(path: str | os.PathLike[str], start: bytes) -> bytes:
    """Read a regular file, or only its first bytes if these are not `start`; OSError for other kinds of files."""
    with open(path, "rb", opener=at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        first = file.read(len(start))
        return first + file.read() if first == start else first


def remove_leftovers(folder: Path) -> int:
    """Delete the temporary files of writers that were killed; returns their number."""
    try:
        with os.scandir(folder) as listing:
            found = [item.path for item in listing if _TEMPORARY.fullmatch(item.name)]
    except OSError:
        return 0
    return sum(map(_remove_if_left, found))


def _locked(folder: Path, mode: int) -> tuple[Path, int]:
    """A new temporary file, locked so that no other writer removes it as a leftover."""
    while True:
        path = folder / f".mlc-{os.urandom(8).hex()}.tmp"
        descriptor = os.open(path, _NEW, mode)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in _NO_LOCKS:               # without locks, nobody deletes it either
                os.close(descriptor)
                path.unlink(missing_ok=True)
                raise
        if os.fstat(descriptor).st_nlink:
            return path, descriptor
        os.close(descriptor)                               # another writer removed it between the two calls


def _remove_if_left(path: str) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)         # fails while its writer is alive
        os.unlink(path)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power failure, if the file system supports that."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:                                # the folder is writable but not readable
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    finally:
        os.close(descriptor)
