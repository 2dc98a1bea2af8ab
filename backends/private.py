"""Files private to a user: folders that others can neither write to nor replace, and a key that others cannot read."""

from __future__ import annotations

import fcntl
import grp
import hashlib
import os
import pwd
import stat
from pathlib import Path

KEY_BYTES = 32


class Exposed(Exception):
    """Other users may have access to a file or folder; the message gives the reason."""


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents with access for the owner only, regardless of the umask."""
    for missing in reversed([p for p in (folder, *folder.parents) if not p.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def exposed(folder: Path) -> str | None:
    """How other users could change the contents of a folder; None if they cannot, or if it does not exist."""
    try:
        status = os.stat(folder)
        above = [(p, os.stat(p)) for p in Path(os.path.realpath(folder)).parents]
        links = [(p, os.lstat(p).st_uid) for p in (folder, *folder.parents) if p.is_symlink()]
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return "it is not a folder"
    if why := of_others(status):
        return why
    for link, owner in links:
        if owner not in (os.geteuid(), 0):
            return f"{link} is a link of user {owner}"
    for place, status in above:
        if not status.st_mode & stat.S_ISVTX and _others_may_write(status):
            return f"others may replace it: they may write to {place}"
    return None


def of_others(status: os.stat_result) -> str | None:
    """Why the contents of a file or folder may come from other users; None if they cannot."""
    if status.st_uid not in (os.geteuid(), 0):
        return f"it belongs to user {status.st_uid}"
    return "others may write to it" if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else None


def _others_may_write(status: os.stat_result) -> bool:
    return bool(status.st_mode & stat.S_IWOTH
                or (status.st_mode & stat.S_IWGRP and not _is_own_group(status.st_gid)))


def _is_own_group(gid: int) -> bool:
    """Whether a group is the user's private group, as many systems create one per user."""
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return user.pw_gid == gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


def secret(path: Path) -> bytes:
    """The key stored in a file, generated on first use. Raises Exposed if others may know it, and OSError.

    The file holds the key and its SHA-256, so that an incomplete file is detected and written again.
    """
    if why := exposed(path.parent):
        raise Exposed(f"{path.parent}: {why}")
    try:
        if (key := _key_in(path, os.O_RDONLY)) is not None:
            return key
    except FileNotFoundError:
        make_folder(path.parent)
    key = _key_in(path, os.O_RDWR | os.O_CREAT)
    assert key is not None
    return key


def _key_in(path: Path, flags: int) -> bytes | None:
    """The key in a file. If the file is opened for writing and has no key, one is generated, under a lock."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Exposed(f"{path}: it is not a regular file")
        if status.st_uid != os.geteuid():
            raise Exposed(f"{path}: it belongs to user {status.st_uid}")
        if status.st_mode & 0o077:
            raise Exposed(f"{path}: others may read it; chmod 600 it if nobody has, or delete it")
        if flags & os.O_RDWR:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        held = os.pread(descriptor, 2 * KEY_BYTES + 1, 0)
        key = held[:KEY_BYTES]
        if held == key + hashlib.sha256(key).digest():
            return key
        if not flags & os.O_RDWR:
            return None
        key = os.urandom(KEY_BYTES)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, key + hashlib.sha256(key).digest(), 0)
        os.fsync(descriptor)
        return key
    finally:
        os.close(descriptor)
