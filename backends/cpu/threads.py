"""The number of threads of compiled code, and the thread pool of the process.

The pool is created lazily: its code (pool.py) is compiled when a library with parallel work is loaded and more than one
thread is allowed, and its threads are created when that work is called. All libraries share the pool. Results do not
depend on the number of threads: each iteration is computed as in a sequential run.
"""

from __future__ import annotations

import ctypes
import os
import threading
from functools import cache
from typing import TYPE_CHECKING

from mlc.backends.cpu.pool import CODE, LIMITED, MAX_THREADS
from mlc.backends.load import Library
from mlc.ir.abi import HOOK
from mlc.ir.diag import UserError
from mlc.ir.insertion import caller_loc
from mlc.ir.weak_references import WeakList

if TYPE_CHECKING:
    from pathlib import Path

    from mlc.backends.cpu.shares import Regions

SPIN_CYCLES = 150_000
"""Cycles that an idle thread spins before it sleeps: about 50 us, while waking one takes 5 to 50 us, or on a virtual
machine milliseconds. A caller that waits for the others spins CALLER_SPINS times as long (pool.py)."""

_EXTERNALS = frozenset({"pthread_create", "syscall"})
_lock = threading.RLock()
_sharing = WeakList[Library]()
"""All loaded libraries with parallel work."""
_limits = dict[int, Library]()
"""`share` for libraries that may use fewer threads than the process, by their number."""
_timed = dict[int | None, "Regions"]()
"""The layer between the pool and timed libraries, by their limits."""
_count: int | None = None
_pool: Library | None = None


def get_num_threads() -> int:
    """Number of threads that compiled code may use at once, the one that calls it among them.

    Returns:
        An integer; at first MLC_NUM_THREADS, else the number of processors that this process may use.

    Example:
        >>> mlc.get_num_threads() >= 1
        True
    """
    global _count
    with _lock:
        if _count is None:
            _count = _default()
        return _count


def set_num_threads(count: int) -> None:
    """Set the number of threads of compiled code, also of what is compiled already; results keep their bits.

    Args:
        count: Integer from 1 to 1024.

    Raises:
        UserError: `count` is no such integer (MLC0379).

    Example:
        >>> before = mlc.get_num_threads()
        >>> mlc.set_num_threads(1)
        >>> mlc.get_num_threads()
        1
        >>> mlc.set_num_threads(before)
    """
    global _count
    with _lock:
        _count = checked(count, "the number of threads")
        _apply()


def attach(library: Library, limit: int | None = None, timed: bool = False) -> None:
    """Connect a library that exports HOOK to the thread pool, of which it uses at most `limit` threads at once.

    timed  whether what each thread does is measured (shares.py)
    """
    with _lock:
        library.max_threads, library.timed = limit, timed
        if limit != 1:                                     # one thread needs no pool
            _sharing.add(library)
            _apply()


def _apply() -> None:
    """Set the number of threads of the pool, and connect all libraries to it once it is needed."""
    global _pool
    count = get_num_threads()
    if _pool is None and (count == 1 or not _sharing.values()):
        return
    if _pool is None:
        _pool = pool()
    ctypes.c_int32.from_address(_pool.address("threads")).value = count
    ctypes.c_int64.from_address(_pool.address("spin")).value = SPIN_CYCLES if count <= processors() else 0
    for library in _sharing.values():
        ctypes.c_void_p.from_address(library.address(HOOK)).value = _hook(_pool, library)


def _hook(pool: Library, library: Library) -> int:
    """The address of what a library calls."""
    share = _share(pool, library.max_threads)
    if not library.timed:
        return share
    if library.max_threads not in _timed:
        from mlc.backends.cpu.shares import TIMED, Regions
        made = _made("threads, timed", TIMED, ["share", "pool", "count", "regions"])
        ctypes.c_void_p.from_address(made.address("pool")).value = share
        _timed[library.max_threads] = Regions(made)
    return _timed[library.max_threads].library.address("share")


def regions(library: Library) -> Regions | None:
    """The measurements of the threads of a timed library; None if it has no parallel work, or one thread."""
    return _timed.get(library.max_threads) if library.timed else None


def _share(pool: Library, limit: int | None) -> int:
    """The address of what a library with this limit calls."""
    if limit is None:
        return pool.address("share")
    if limit not in _limits:
        _limits[limit] = made = _made(f"threads, at most {limit}", LIMITED.format(limit=limit), ["share", "pool"])
        ctypes.c_void_p.from_address(made.address("pool")).value = pool.address("share_up_to")
    return _limits[limit].address("share")


def pool() -> Library:
    """A new pool."""
    return _made("threads", CODE, ["share", "share_up_to", "reset", "threads", "spin"])


def _made(what: str, code: str, exports: list[str]) -> Library:
    """Code of the pool, loaded for the rest of the process."""
    from mlc.backends.cpu import runtime
    made = runtime.library(what, lambda target: code, exports, _EXTERNALS)
    made.stay()
    return made


def _after_fork() -> None:
    """A forked child has one thread; the pool creates new ones on demand."""
    _lock._at_fork_reinit()  # type: ignore[attr-defined]
    if _pool is not None:
        _pool.function("reset", None, [])()


os.register_at_fork(after_in_child=_after_fork)


# -- how many ---------------------------------------------------------------------------------------------------------
def _default() -> int:
    text = os.environ.get("MLC_NUM_THREADS", "").strip()
    if not text:
        return min(processors(), MAX_THREADS)
    return checked(int(text) if text.isdecimal() and text.isascii() else text, "MLC_NUM_THREADS")


def checked(count: object, what: str) -> int:
    """A number of threads; UserError MLC0379 if it is none."""
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MAX_THREADS:
        raise UserError(f"{what} is {count!r}, expected an integer from 1 to {MAX_THREADS}", code="MLC0379",
                        loc=caller_loc())
    return count


@cache
def processors() -> int:
    """The number of processors available to this process: its affinity mask, limited by the quota of its cgroup."""
    from pathlib import Path  # 4 ms, and most programs ask later than at their start

    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([allowed, *_quotas(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))]))


def _quotas(groups: Path, root: Path) -> list[int]:
    """Processor quotas of the cgroup (version 2) of this process and its ancestors, in whole processors."""
    try:
        lines = groups.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
    own = next((line[3:].strip("/") for line in lines if line.startswith("0::")), None)
    found = list[int]()
    for folder in () if own is None else (root / own, *(root / own).parents):
        if root != folder and root not in folder.parents:
            break
        try:
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
        except (OSError, ValueError):
            continue
        if quota.isdecimal() and period.isdecimal() and int(period):
            found.append(int(quota) // int(period))
    return found
