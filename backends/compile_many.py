"""Compilation of many units: from memory, from the cache, or anew, in several processes if that pays off.

Measured on two cores with 30 kernels of 1 MB of LLVM IR in total: one process 1.6 s, two threads 1.6 s (llvmlite holds
a lock), this process and a worker 0.9 s. A worker takes 70 ms to start and 250 ms to import what lowers kernels, so
workers are started for large batches only; for a large program one is started before its passes, and has imported it
by then (`start_ahead`). They end with the batch, even if this process dies. MLC_COMPILE_JOBS sets the maximum number of
processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from mlc.backends import cache, compile_worker
from mlc.backends.target import Target
from mlc.backends.versions import versions

LONG = 0.5
"""Predicted seconds of work from which workers are started."""
LARGE = 150
"""Operations of a program from which a worker is started ahead: networks of 500 to 1,000 have kernels for 2 to 5 s, a
step of a small language model of 200 for 0.6 s, and is compiled in 1.15 instead of 1.25 s."""
MAX_MEMORY = 64 << 20
"""Maximum bytes of objects kept in memory."""


class Unit(Protocol):
    """Code that is compiled to one object.

    kind    "llvm": LLVM IR; "loop": a kernel at level `loop`
    shared  whether equal units of other modules share the object
    """

    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def shared(self) -> bool: ...
    @property
    def seconds(self) -> float:
        """Predicted time of `compile`."""
    def compile(self, target: Target, opt_level: int) -> bytes: ...


_memory: dict[str, bytes] = {}
"""Objects of shared units by their key."""
_memory_lock = threading.Lock()
os.register_at_fork(after_in_child=_memory_lock._at_fork_reinit)  # type: ignore[attr-defined]


def objects(units: Sequence[Unit], target: Target, opt_level: int) -> list[bytes]:
    """Object code of each unit; shared units are compiled once per process, and once per machine with the cache."""
    keys = [_key(unit, target, opt_level) for unit in units]
    found = [_lookup(unit, key) for unit, key in zip(units, keys)]
    missing = [i for i, obj in enumerate(found) if obj is None]
    for i, obj in zip(missing, _compile([units[i] for i in missing], target, opt_level)):
        found[i] = obj
        if units[i].shared:
            _remember(keys[i], obj)
            if (store := cache.store()) is not None:
                store.put("object", keys[i], {}, {"object": obj})
    return [obj for obj in found if obj is not None]


def _key(unit: Unit, target: Target, opt_level: int) -> str:
    return cache.key_of("object", [unit.kind, unit.text, repr(target), str(opt_level)])


def _lookup(unit: Unit, key: str) -> bytes | None:
    if not unit.shared:
        return None
    if (obj := _memory.get(key)) is not None:
        return obj
    store = cache.store()
    if store is None or (found := store.get("object", key)) is None or "object" not in found[1]:
        return None
    obj = bytes(found[1]["object"])
    _remember(key, obj)
    return obj


def _remember(key: str, obj: bytes) -> None:
    with _memory_lock:
        _memory[key] = obj
        while len(_memory) > 1 and sum(map(len, _memory.values())) > MAX_MEMORY:
            _memory.pop(next(iter(_memory)))


# -- several processes ------------------------------------------------------------------------------------------------
def _compile(units: Sequence[Unit], target: Target, opt_level: int) -> list[bytes]:
    """The object of each unit."""
    work = deque(sorted(range(len(units)), key=lambda i: -units[i].seconds))    # the longest first
    done: dict[int, bytes] = {}
    workers: list[_Worker] = []
    try:
        for _ in range(_helpers(units)):
            try:
                workers.append(_Worker(units, target, opt_level, work, done))
            except (OSError, RuntimeError):                # limit of processes or threads reached
                break
        while work:
            try:
                i = work.popleft()
            except IndexError:                             # a worker was faster
                break
            done[i] = units[i].compile(target, opt_level)
    except BaseException:
        for worker in workers:
            worker.process.kill()
        raise
    finally:
        for worker in workers:
            worker.finish()
    # this process compiles what a worker could not, or raises the error
    return [done[i] if i in done else unit.compile(target, opt_level) for i, unit in enumerate(units)]


_ahead: list[subprocess.Popen[bytes]] = []
"""Workers that have been started before there is work for them."""
os.register_at_fork(after_in_child=_ahead.clear)           # they are its parent's


def start_ahead(operations: int) -> None:
    """Start a worker if the kernels of a program of so many operations will be worth one; `dismiss` ends it."""
    if operations >= LARGE and not _ahead and _processes() > 1 and _may_start() and versions():
        try:
            _ahead.append(_start())
        except OSError:                                    # limit of processes reached
            pass


def dismiss() -> None:
    """End the workers for which there was no work."""
    while _ahead:
        _end(_ahead.pop())


def _helpers(units: Sequence[Unit]) -> int:
    """The number of workers to start."""
    if len(units) < 2 or not _may_start():
        return 0
    if not versions() and any(unit.kind == "loop" for unit in units):
        return 0                                           # a worker would lower by other sources than this process
    seconds = sum(unit.seconds for unit in units)
    return max(0, min(_processes(), len(units), int(seconds / LONG) + 1) - 1) if seconds > LONG else 0


def _processes() -> int:
    """The number of processes that may compile at the same time."""
    jobs = os.environ.get("MLC_COMPILE_JOBS", "")
    return int(jobs) if jobs.isdecimal() else len(os.sched_getaffinity(0))


def _may_start() -> bool:
    """Whether this process may start workers: it runs a regular interpreter and is not a worker itself."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and multiprocessing.current_process().daemon:
        return False
    return os.path.basename(sys.executable or "").startswith(("python", "pypy"))


def _start() -> subprocess.Popen[bytes]:
    """Start a worker, which imports what it needs and waits for requests."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", compile_worker.__name__],         # -P: modules of the current folder stay out
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True)                            # Ctrl-C must not reach the worker


def _end(process: subprocess.Popen[bytes]) -> None:
    """Terminate a worker; closing its input would not do if this process has forked."""
    process.kill()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        try:
            pipe.close()
        except OSError:
            pass
    process.wait()


class _Worker:
    """A worker process, and the thread that feeds it until no work is left."""

    def __init__(self, units: Sequence[Unit], target: Target, opt_level: int, work: deque[int],
                 done: dict[int, bytes]) -> None:
        self.units, self.target, self.opt_level, self.work, self.done = units, target, opt_level, work, done
        self.process = _ahead.pop() if _ahead else _start()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        sink, source = self.process.stdin, self.process.stdout
        assert sink is not None and source is not None
        while True:
            try:
                i = self.work.popleft()
            except IndexError:
                return
            try:
                unit = self.units[i]
                obj = compile_worker.ask(sink, source, self.target, self.opt_level, unit.kind, unit.text,
                                         versions().get("mlc", ""))
            except (OSError, EOFError, ValueError):        # the worker has died
                return
            if obj is not None:
                self.done[i] = obj

    def finish(self) -> None:
        """Wait for its last answer and terminate it."""
        self.thread.join()
        _end(self.process)
