"""Compilation of many units: from memory, from the cache, or by LLVM, in several processes if that pays off.

Measured on two cores with 30 kernels of 1 MB of LLVM IR in total: one process 1.6 s, two threads 1.6 s (llvmlite holds
a lock), this process and a worker 0.9 s. A worker takes 70 ms to start, so workers are started for large batches only,
and end with the batch, even if this process dies. MLC_COMPILE_JOBS sets the maximum number of processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence

from mlc.backends import cache, compile_worker
from mlc.backends.compilation_units import CompilationUnit
from mlc.backends.object_code import compile_object
from mlc.backends.target import Target

SECONDS_PER_CHARACTER, SECONDS_PER_UNIT = 1.6e-6, 2e-3
"""Approximate compile time of LLVM, measured over kernels of 5,000 to 80,000 characters."""
LONG = 0.5
"""Predicted seconds of work from which workers are started."""
MAX_MEMORY = 64 << 20
"""Maximum bytes of objects kept in memory."""

_memory: dict[str, bytes] = {}
"""Objects of shared units by their key."""
_memory_lock = threading.Lock()
os.register_at_fork(after_in_child=_memory_lock._at_fork_reinit)  # type: ignore[attr-defined]


def objects(units: Sequence[CompilationUnit], target: Target, opt_level: int) -> list[bytes]:
    """Object code of each unit; shared units are compiled once per process, and once per machine with the cache."""
    keys = [_key(unit, target, opt_level) for unit in units]
    found = [_lookup(unit, key) for unit, key in zip(units, keys)]
    missing = [i for i, obj in enumerate(found) if obj is None]
    for i, obj in zip(missing, _compile([units[i].text for i in missing], target, opt_level)):
        found[i] = obj
        if units[i].shared:
            _remember(keys[i], obj)
            if (store := cache.store()) is not None:
                store.put("object", keys[i], {}, {"object": obj})
    return [obj for obj in found if obj is not None]


def _key(unit: CompilationUnit, target: Target, opt_level: int) -> str:
    return cache.key_of("object", [unit.text, repr(target), str(opt_level)])


def _lookup(unit: CompilationUnit, key: str) -> bytes | None:
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
def _compile(texts: Sequence[str], target: Target, opt_level: int) -> list[bytes]:
    """The object of each text."""
    work = deque(sorted(range(len(texts)), key=lambda i: -len(texts[i])))       # the longest first
    done: dict[int, bytes] = {}
    workers: list[_Worker] = []
    try:
        for _ in range(_helpers(texts)):
            try:
                workers.append(_Worker(texts, target, opt_level, work, done))
            except (OSError, RuntimeError):                # limit of processes or threads reached
                break
        while work:
            try:
                i = work.popleft()
            except IndexError:                             # a worker was faster
                break
            done[i] = compile_object(texts[i], target, opt_level)
    except BaseException:
        for worker in workers:
            worker.process.kill()
        raise
    finally:
        for worker in workers:
            worker.finish()
    # this process compiles what a worker could not, or raises the error
    return [done[i] if i in done else compile_object(text, target, opt_level) for i, text in enumerate(texts)]


def _helpers(texts: Sequence[str]) -> int:
    """The number of workers to start."""
    if len(texts) < 2 or not _may_start():
        return 0
    seconds = sum(SECONDS_PER_UNIT + len(text) * SECONDS_PER_CHARACTER for text in texts)
    jobs = os.environ.get("MLC_COMPILE_JOBS", "")
    available = int(jobs) if jobs.isdecimal() else len(os.sched_getaffinity(0))
    return max(0, min(available, len(texts), int(seconds / LONG) + 1) - 1) if seconds > LONG else 0


def _may_start() -> bool:
    """Whether this process may start workers: it runs a regular interpreter and is not a worker itself."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and multiprocessing.current_process().daemon:
        return False
    return os.path.basename(sys.executable or "").startswith(("python", "pypy"))


class _Worker:
    """A worker process, and the thread that feeds it until no work is left."""

    def __init__(self, texts: Sequence[str], target: Target, opt_level: int, work: deque[int],
                 done: dict[int, bytes]) -> None:
        self.texts, self.target, self.opt_level, self.work, self.done = texts, target, opt_level, work, done
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", compile_worker.__name__],     # -P: modules of the current folder stay out
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True)                        # Ctrl-C must not reach the worker
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
                obj = compile_worker.ask(sink, source, self.target, self.opt_level, self.texts[i])
            except (OSError, EOFError, ValueError):        # the worker has died
                return
            if obj is not None:
                self.done[i] = obj

    def finish(self) -> None:
        """Wait for its last answer and terminate it; closing its input would not do if this process has forked."""
        self.thread.join()
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except OSError:
                pass
        self.process.wait()
