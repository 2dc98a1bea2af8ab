"""The compile cache: what has been compiled on this machine, in one folder that any number of processes share.

An entry is one sealed file (backends/sealed.py) named KIND-KEY, where KEY is the SHA-256 of everything that the entry
depends on. It appears whole: written under another name, synced, renamed. It is believed only when its checksum and
its key are right; anything else counts as absent and is deleted. Whatever fails, a folder that cannot be written or a
full disk, costs a compilation and nothing else.

    MLC_CACHE_DIR    the folder; without it $XDG_CACHE_HOME/mlc, or ~/.cache/mlc
    MLC_CACHE_SIZE   what it may hold, as in 500M or 2G (the default); the least recently used entries go
    MLC_CACHE=0      no cache
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from mlc.backends.sealed import Broken, Piece, seal, unseal, write_whole
from mlc.backends.versions import changed_since_start, versions

MAGIC = b"MLCCACHE"
DEFAULT_SIZE = 2 << 30
FRESH = 3600
"""Seconds: how exactly the time of last use is kept, and how long the files of a writer that died may lie about."""

_ENTRY = re.compile(r"[a-z]+-[0-9a-f]{64}")
_TEMPORARY = re.compile(r"\.[0-9a-f]+\.tmp")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def key_of(kind: str, parts: Sequence[str]) -> str:
    """The key of what depends on these texts and on the versions of everything that makes code."""
    digest = hashlib.sha256()
    for part in (kind, *(f"{name} {version}" for name, version in versions().items()), *parts):
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little"))      # so that no two lists of texts read alike
        digest.update(raw)
    return digest.hexdigest()


class Store:
    """The folder. Every method may be called by many threads and processes at once, and none of them raises."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        self.hits = self.misses = 0
        self._unseen = 0                                   # bytes written since the folder was last looked at

    def get(self, kind: str, key: str) -> tuple[dict[str, Any], dict[str, memoryview]] | None:
        """The head and the pieces of an entry, or None."""
        found = self._read(self.folder / f"{kind}-{key}") if self._trusted() else None
        if found is None:
            self.misses += 1
        else:
            self.hits += 1
        return found

    def put(self, kind: str, key: str, head: Mapping[str, Any], pieces: Mapping[str, Piece]) -> None:
        """Keep an entry, if that can be done."""
        if changed_since_start():                          # the code that made it is not what the key speaks of
            return
        parts = seal(MAGIC, {"kind": kind, "key": key, "versions": versions(), **head}, pieces)
        size = sum(map(len, parts))
        if size > self.limit // 4:
            return
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._trusted():
                write_whole(self.folder / f"{kind}-{key}", parts, 0o600)
                self._account(size)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                _warn(f"mlc keeps nothing of what it compiles: {error.strerror} in {self.folder}. MLC_CACHE=0 turns "
                      "the compile cache off, MLC_CACHE_DIR moves it")

    # -- one entry ------------------------------------------------------------------------------------------------
    def _read(self, path: Path) -> tuple[dict[str, Any], dict[str, memoryview]] | None:
        try:
            with open(path, "rb", opener=_open) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode) or _of_others(status):
                    return None
                data = file.read()
                if time.time() - status.st_mtime > FRESH:
                    _touch(file.fileno())
        except (OSError, MemoryError):
            return None
        try:
            return check(path.name, data)
        except Broken:
            _remove(path)
            return None

    # -- the folder -----------------------------------------------------------------------------------------------
    def problem(self) -> str | None:
        """Why entries of this folder are not to be believed; None for a sound one, and for one that is not there."""
        try:
            status = os.stat(self.folder)
            above = [(folder, os.stat(folder).st_mode) for folder in self.folder.parents]
        except OSError:
            return None
        if not stat.S_ISDIR(status.st_mode):
            return "it is no folder"
        if why := _of_others(status):
            return why
        for folder, mode in above:
            if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
                return f"others may replace it: they may write to {folder}"
        return None

    def _trusted(self) -> bool:
        if why := self.problem():
            _warn(f"mlc does not use the compile cache {self.folder}: {why}. A cached entry is code that will be run; "
                  f"chmod 700 it, or choose another folder with MLC_CACHE_DIR")
        return why is None

    def entries(self) -> Iterator[tuple[Path, os.stat_result]]:
        """Every entry, in no order."""
        yield from self._files(_ENTRY)

    def _files(self, pattern: re.Pattern[str]) -> Iterator[tuple[Path, os.stat_result]]:
        try:
            with os.scandir(self.folder) as listing:
                for item in listing:
                    try:
                        if pattern.fullmatch(item.name) and item.is_file(follow_symlinks=False):
                            yield Path(item.path), item.stat(follow_symlinks=False)
                    except OSError:                        # gone by now
                        continue
        except OSError:
            return

    def _account(self, size: int) -> None:
        """Look at the whole folder now and then: often enough for the limit, seldom enough to cost nothing."""
        self._unseen += size
        if self._unseen > self.limit // 32 or os.urandom(1) == b"\0":
            self._unseen = 0
            self.trim()

    def trim(self) -> None:
        """Delete the least recently used entries above the limit, and what dead writers left."""
        now = time.time()
        for path, status in self._files(_TEMPORARY):
            if now - status.st_mtime > FRESH:
                _remove(path)
        found = sorted((status.st_mtime, status.st_size, path) for path, status in self.entries())
        total = sum(size for _, size, _ in found)
        if total <= self.limit:
            return
        for _, size, path in found:
            if total <= self.limit * 9 // 10:
                break
            _remove(path)
            total -= size

    def clear(self) -> tuple[int, int]:
        """Delete every entry: how many, and how many bytes."""
        for path, _ in self._files(_TEMPORARY):
            _remove(path)
        gone = [status.st_size for path, status in self.entries() if _remove(path)]
        return len(gone), sum(gone)

    def verify(self) -> list[tuple[str, str]]:
        """Check every entry and delete those that are broken: (name, what is wrong) of each."""
        bad = []
        for path, _ in self.entries():
            try:
                check(path.name, path.read_bytes())
            except Broken as error:
                bad.append((path.name, str(error)))
                _remove(path)
            except OSError as error:
                if not isinstance(error, FileNotFoundError):
                    bad.append((path.name, f"it cannot be read: {error.strerror}"))
        return bad


def check(name: str, data: bytes) -> tuple[dict[str, Any], dict[str, memoryview]]:
    """The head and the pieces of the entry of this name; Broken if these bytes are not that."""
    head, pieces = unseal(MAGIC, data)
    if f"{head.get('kind')}-{head.get('key')}" != name:
        raise Broken("it is another entry")
    return head, pieces


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)         # a pipe of that name keeps nobody waiting


def _of_others(status: os.stat_result) -> str | None:
    """Why what this file or folder holds may come from other users; None if it cannot."""
    if status.st_uid not in (os.geteuid(), 0):
        return f"it belongs to user {status.st_uid}"
    return "others may write to it" if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else None


def _touch(file: int) -> None:
    """Note that an entry has been used, where that can be written."""
    try:
        os.utime(file)
    except OSError:
        pass


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


# -- which folder -----------------------------------------------------------------------------------------------------
def store() -> Store | None:
    """The cache as the environment has it now; None where there is none."""
    get = os.environ.get
    if get("MLC_CACHE") == "0" or not versions():
        return None
    folder = get("MLC_CACHE_DIR") or _default(get("XDG_CACHE_HOME"), get("HOME"))
    return _store(folder, get("MLC_CACHE_SIZE", "")) if folder else None


def _default(cache_home: str | None, home: str | None) -> str | None:
    if cache_home and os.path.isabs(cache_home):           # a relative one is to be ignored, says its specification
        return os.path.join(cache_home, "mlc")
    return os.path.join(home, ".cache", "mlc") if home and os.path.isabs(home) else None


@cache
def _store(folder: str, size: str) -> Store:
    return Store(Path(os.path.realpath(folder)), _bytes(size))


def _bytes(text: str) -> int:
    """The number of bytes that `500M` or `2GiB` stands for."""
    if not text:
        return DEFAULT_SIZE
    found = re.fullmatch(r"\s*(\d+)\s*([KMGT]?)(i?B)?\s*", text, re.IGNORECASE)
    if found is None:
        _warn(f"MLC_CACHE_SIZE is {text!r}, which is no number of bytes such as 500M or 2G")
        return DEFAULT_SIZE
    return int(found[1]) * _UNITS[found[2].upper()]


_warned = False


def _warn(text: str) -> None:
    """Say once in a process what is wrong with the cache."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(text, RuntimeWarning, stacklevel=2)
