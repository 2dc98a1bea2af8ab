"""The compile cache: compiled code in a folder shared by all processes on this machine.

An entry is a container (backends/checksummed.py) named KIND-KEY; KEY is the SHA-256 of everything that the entry
depends on. It is created atomically: written under another name, synced, renamed. Since it is code that will be run, it
is trusted only if it is authenticated with the user's secret (backends/private.py), is in a folder that only the user
can write to and has the right name; any other entry counts as absent and is deleted. A failure, such as a read-only
folder or a full disk, costs a compilation and nothing else.

    MLC_CACHE_DIR    the folder; without it $XDG_CACHE_HOME/mlc, or ~/.cache/mlc
    MLC_CACHE_KEY    the file of the secret; without it $XDG_CONFIG_HOME/mlc/cache-key, or ~/.config/mlc/cache-key
    MLC_CACHE_SIZE   its maximum size, as in 500M or 2G (the default); the least recently used entries are evicted
    MLC_CACHE=0      disables the cache
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

from mlc.backends.checksummed import CorruptFile, Piece, pack, unpack
from mlc.backends.private import Exposed, exposed, make_folder, of_others, secret
from mlc.backends.versions import changed_since_start, versions
from mlc.ir.files import remove_leftovers, replace

MAGIC = b"MLCCACHE"
DEFAULT_SIZE = 2 << 30
FRESH = 3600
"""Resolution of the time of last use, in seconds."""

_ENTRY = re.compile(r"[a-z]+-[0-9a-f]{64}")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def key_of(kind: str, parts: Sequence[str]) -> str:
    """The key of an entry that depends on these texts and on the versions of the code generator."""
    return digest_of([kind, *(f"{name} {version}" for name, version in versions().items()), *parts])


def digest_of(parts: Sequence[str]) -> str:
    """The SHA-256 of some texts."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little"))      # keeps the concatenation unambiguous
        digest.update(raw)
    return digest.hexdigest()


class Store:
    """The cache folder. Its methods are safe for concurrent threads and processes, and never raise."""

    def __init__(self, folder: Path, limit: int, secret_file: Path | None) -> None:
        self.named = folder                                # may be a symbolic link
        self.folder = Path(os.path.realpath(folder))
        self.limit = limit
        self.secret_file = secret_file
        self.hits = self.misses = 0
        self._secret = b""
        self._unseen = 0                                   # bytes written since the last scan of the folder
        self._cleaned = False                              # whether this process has deleted stale temporary files

    def get(self, kind: str, key: str) -> tuple[dict[str, Any], dict[str, memoryview]] | None:
        """Header and pieces of an entry, or None; also where the path to the folder may not be searched."""
        found = self._read(self.folder / f"{kind}-{key}") if os.path.exists(self.folder) and self._trusted() else None
        if found is None:
            self.misses += 1
        else:
            self.hits += 1
        return found

    def put(self, kind: str, key: str, head: Mapping[str, Any], pieces: Mapping[str, Piece]) -> None:
        """Store an entry, if possible."""
        if changed_since_start():                          # the key does not describe the code that is running
            return
        if sum(map(len, pieces.values())) > self.limit // 4:
            return
        try:
            make_folder(self.folder)
            if self._trusted():
                parts = pack(MAGIC, {"kind": kind, "key": key, "versions": versions(), **head}, pieces, self._secret)
                replace(self.folder / f"{kind}-{key}", parts, 0o600)
                self._account(sum(map(len, parts)))
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                _warn(f"mlc cannot cache compiled code: {error.strerror} in {self.folder}. MLC_CACHE=0 turns "
                      "the compile cache off, MLC_CACHE_DIR moves it")

    # -- one entry ------------------------------------------------------------------------------------------------
    def _read(self, path: Path) -> tuple[dict[str, Any], dict[str, memoryview]] | None:
        try:
            with open(path, "rb", opener=_open) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode) or of_others(status) or status.st_size > self.limit:
                    return None
                data = file.read(status.st_size)
                if time.time() - status.st_mtime > FRESH:
                    _touch(file.fileno())
        except (OSError, MemoryError):
            return None
        try:
            return check(path.name, data, self._secret)
        except CorruptFile:
            _remove(path)
            return None

    # -- the folder -----------------------------------------------------------------------------------------------
    def problem(self) -> str | None:
        """Why entries of this folder are not trusted; None if they are, or if it does not exist."""
        return exposed(self.named)

    def _trusted(self) -> bool:
        """Whether entries can be authenticated; loads the secret."""
        if why := self.problem():
            _warn(f"mlc does not use the compile cache {self.folder}: {why}. Cached entries are executed; "
                  f"chmod 700 it, or choose another folder with MLC_CACHE_DIR")
            return False
        try:
            if not self._secret:
                self._secret = secret(self._secret_path())
        except (Exposed, OSError) as error:
            reason = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else error
            _warn(f"mlc does not use the compile cache {self.folder}, whose entries are authenticated with a key of "
                  f"yours: {reason}. MLC_CACHE_KEY names another file for the key")
            return False
        return True

    def _secret_path(self) -> Path:
        if self.secret_file is None:
            raise Exposed("there is no folder for it, HOME is not set")
        return self.secret_file

    def entries(self) -> Iterator[tuple[Path, os.stat_result]]:
        """All entries, in arbitrary order."""
        try:
            with os.scandir(self.folder) as listing:
                for item in listing:
                    try:
                        if _ENTRY.fullmatch(item.name) and item.is_file(follow_symlinks=False):
                            yield Path(item.path), item.stat(follow_symlinks=False)
                    except OSError:                        # deleted concurrently
                        continue
        except OSError:
            return

    def _account(self, size: int) -> None:
        """Scan the folder from time to time: often enough to keep the limit, seldom enough to cost little."""
        self._unseen += size
        if not self._cleaned:
            self._cleaned = True
            remove_leftovers(self.folder)
        if self._unseen > self.limit // 32 or os.urandom(1) == b"\0":
            self._unseen = 0
            self.trim()

    def trim(self) -> None:
        """Evict the least recently used entries above the limit, and delete stale temporary files."""
        remove_leftovers(self.folder)
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
        """Delete all entries; returns their number and total bytes."""
        remove_leftovers(self.folder)
        gone = [status.st_size for path, status in self.entries() if _remove(path)]
        return len(gone), sum(gone)

    def verify(self) -> list[tuple[str, str]]:
        """Check every entry and delete the corrupt ones; returns (name, reason) of each."""
        bad = list[tuple[str, str]]()
        remove_leftovers(self.folder)
        if not os.path.exists(self.folder) or not self._trusted():
            return bad
        for path, _ in self.entries():
            try:
                check(path.name, path.read_bytes(), self._secret)
            except CorruptFile as error:
                bad.append((path.name, str(error)))
                _remove(path)
            except OSError as error:
                if not isinstance(error, FileNotFoundError):
                    bad.append((path.name, f"it cannot be read: {error.strerror}"))
        return bad


def check(name: str, data: bytes, secret: bytes) -> tuple[dict[str, Any], dict[str, memoryview]]:
    """Header and pieces of the entry `name`; raises CorruptFile if `data` is not that entry."""
    head, pieces = unpack(MAGIC, data, secret)
    if f"{head.pop('kind', None)}-{head.pop('key', None)}" != name:
        raise CorruptFile("it is another entry")
    head.pop("versions", None)                             # informative only
    return head, pieces


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)         # O_NONBLOCK: do not wait on a pipe


def _touch(file: int) -> None:
    """Update an entry's time of last use, if possible."""
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
    """The cache configured by the environment; None if it is disabled."""
    get = os.environ.get
    if get("MLC_CACHE", "").lower() in ("0", "off", "false", "no") or not versions():
        return None
    folder = get("MLC_CACHE_DIR") or _default("XDG_CACHE_HOME", ".cache", "mlc")
    secret_file = get("MLC_CACHE_KEY") or _default("XDG_CONFIG_HOME", ".config", "mlc/cache-key")
    return _store(os.path.abspath(folder), get("MLC_CACHE_SIZE", ""), secret_file) if folder else None


def _default(variable: str, folder: str, name: str) -> str | None:
    """The path of a file by the XDG base directory specification."""
    base, home = os.environ.get(variable), os.environ.get("HOME")
    if base and os.path.isabs(base):                       # the specification says to ignore relative ones
        return os.path.join(base, name)
    return os.path.join(home, folder, name) if home and os.path.isabs(home) else None


@cache
def _store(folder: str, size: str, secret_file: str | None) -> Store:
    return Store(Path(folder), _bytes(size), Path(os.path.abspath(secret_file)) if secret_file else None)


def _bytes(text: str) -> int:
    """Parse a number of bytes such as `500M` or `2GiB`."""
    if not text:
        return DEFAULT_SIZE
    found = re.fullmatch(r"\s*(\d+)\s*([KMGT]?)(i?B)?\s*", text, re.IGNORECASE)
    if found is None:
        _warn(f"MLC_CACHE_SIZE is {text!r}, which is no number of bytes such as 500M or 2G")
        return DEFAULT_SIZE
    return int(found[1]) * _UNITS[found[2].upper()]


_warned = False


def _warn(text: str) -> None:
    """Warn about the cache, once per process."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(text, RuntimeWarning, stacklevel=2)
