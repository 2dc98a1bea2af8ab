"""Comparison of native code with the interpreter, in a child process, which it may crash, and in guarded memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from mlc.backends.cpu import threads
from mlc.backends.cpu.targets import host
from mlc.backends.executable import Entry, build
from mlc.backends.target import Target
from mlc.ir.core import Op
from mlc.ir.diag import UserError
from mlc.tools.child import Child
from mlc.tools.outcome import FAILURES, Array, Outcome
from mlc.tools.redzones import FencedEntry, Memory, Pages


class Call(Protocol):
    """A call of one entry, and what it has to give."""

    entry: str
    arrays: list[Array]
    outcome: Outcome


DIES, HANGS = " ends the process by ", " does not end within "
PATIENCE_SECONDS = 60
"""For one call of native code, whose arrays are such that the interpreter could work on them."""


def wrong_natively(module: Op, runs: Sequence[Call], target: Target | None = None) -> tuple[int, str] | None:
    """(number of the run, description of how it was run and how it failed) of the first failing call of native code.

    All are made in a process of their own, which the code may end. Without a target also once as programs call it.
    """
    used = target or host()
    entry = build(module, used).entry(runs[0].entry)
    width = f" with {used.vector_bits}-bit vectors and "
    ways: list[tuple[str, int | None, Callable[[], Memory | None]]] = [
        ("", None, lambda: None), (f"{width}1 thread", 1, Memory), (f"{width}2 threads", 2, Memory),
        (f"{width}1 thread, its memory at the end of a page", 1, lambda: Pages(True)),
        (f"{width}1 thread, its memory at the begin of a page", 1, lambda: Pages(False))]
    last: tuple[int, int, str | None] = (0, 0, None)

    def work(tell: Callable[[Any], None]) -> None:
        for number, run in enumerate(runs):
            for k, (_, count, memory) in enumerate(ways):
                if (k == 0 and target is not None) or (k > 2 and number):
                    continue
                tell((number, k, None))
                if (message := wrong_with(entry, run, count, memory())) is not None:
                    return tell((number, k, message))
        return tell((-1, 0, None))

    child = Child(work)
    try:
        for answer in child.answers(PATIENCE_SECONDS):
            last = answer
        died = child.end()
        message = last[2] or (f"{DIES}{died}" if died else f"{DIES}an exception" if last[0] >= 0 else None)
    except TimeoutError:
        child.end(kill=True)
        message = f"{HANGS}{PATIENCE_SECONDS} s"
    return (last[0], ways[last[1]][0] + message) if message is not None else None


def wrong_with(entry: Entry, call: Call, count: int | None, memory: Memory | None) -> str | None:
    """Describe the fault in a call of native code with this number of threads and memory; None if there is none."""
    called = entry if memory is None else FencedEntry(entry, memory)
    threads.set_num_threads(count or threads.get_num_threads())
    found = Outcome()
    try:
        found.results = called.call([a.copy() for a in call.arrays])
    except UserError as error:
        found.error = error
    except FAILURES as error:
        return f" fails: {type(error).__name__}: {error}"
    if broken := found.difference(call.outcome, True):
        return f" differs from its meaning: {broken}"
    damage = called.damage if isinstance(called, FencedEntry) else None
    return f" leaves its memory: {damage}" if damage else None
