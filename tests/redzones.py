"""Native code in memory with red zones: every buffer against a page that may not be touched, in a process of its own.

A read outside of a buffer changes no result and is seen by no comparison; here it ends the process.
"""
from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Callable, Iterator, Sequence

import numpy as np

import mlc
from mlc.backends.cpu.targets import LEVELS, host
from mlc.backends.executable import Entry, build
from mlc.backends.target import Target
from mlc.dialects.builtin import Module
from mlc.ir.diag import UserError
from mlc.passes import pipeline
from mlc.tools.redzones import FencedEntry, Memory, Pages
from tests.arrays import Array, difference

WIDTHS: list[Target] = [t for t in LEVELS.values() if host().runs(t)]
THREADS = (1, 2, 3, 7)
MEMORIES: dict[str, Callable[[], Memory]] = {
    "pages behind": lambda: Pages(True), "pages before": lambda: Pages(False), "bytes around": Memory}


def compiled(make: Callable[[], Module], target: Target) -> Entry:
    """The entry @main of a module, for a machine."""
    module = pipeline.lower(make(), "llvm", target.machine)
    return build(module, target).entry("main")


def check(make: Callable[[], Module], calls: Sequence[Sequence[Array]], widths: Sequence[Target],
          threads: Sequence[int]) -> None:
    """AssertionError where code for one of `widths`, on one of `threads`, leaves its memory or gives other bits."""
    entries = {str(t): compiled(make, t) for t in widths}
    if message := in_a_child(lambda: differences(entries, calls, threads)):
        raise AssertionError(message)


def differences(entries: dict[str, Entry], calls: Sequence[Sequence[Array]], threads: Sequence[int]) -> Iterator[str]:
    """Description of each trial, followed by its fault after `!`."""
    first = next(iter(entries.values()))
    for number, arrays in enumerate(calls):
        wanted = _results(first, arrays)
        for target, entry in entries.items():
            for count in threads:
                mlc.set_num_threads(count)
                for place, memory in MEMORIES.items():
                    what = f"{target}, {count} threads, {place}, arguments {number}"
                    yield what
                    fenced = FencedEntry(entry, memory())
                    results = _results(fenced, arrays)
                    if fenced.damage:
                        yield f"!{what}: {fenced.damage}"
                    yield from _unlike(what, results, wanted)
            for how, others in layouts(arrays):
                yield (what := f"{target}, {how}, arguments {number}")
                yield from _unlike(what, _results(entry, others), wanted)


def _results(entry: Entry, arrays: Sequence[Array]) -> list[Array] | str:
    """Results of a call, or the message of its error."""
    try:
        return entry.call([a.copy() if a.flags.c_contiguous and a.flags.aligned else a for a in arrays])
    except UserError as error:
        return error.message


def _unlike(what: str, got: list[Array] | str, want: list[Array] | str) -> Iterator[str]:
    if isinstance(got, str) or isinstance(want, str):
        if got != want:
            yield f"!{what}: {got} in place of {want}"
        return
    for i, (a, b) in enumerate(zip(got, want)):
        if message := difference(a, b, "bits"):
            yield f"!{what}, result {i}: {message}"


def layouts(arrays: Sequence[Array]) -> Iterator[tuple[str, list[Array]]]:
    """The same numbers in other memory: strided, between elements, and all in one."""
    yield "strided", [_strided(a) for a in arrays]
    yield "unaligned", [_unaligned(a) for a in arrays]
    shared: list[Array] = []
    for a in arrays:
        shared.append(next((b for b in shared if b.dtype == a.dtype and b.shape == a.shape and
                            b.tobytes() == a.tobytes()), a))
    yield "shared", shared


def _strided(a: Array) -> Array:
    storage = np.zeros((*a.shape, 3), a.dtype)
    storage[..., 1] = a
    return storage[..., 1]


def _unaligned(a: Array) -> Array:
    storage = np.zeros(a.nbytes + 1, np.uint8)
    out = np.ndarray(a.shape, a.dtype, storage.data, 1)
    out[...] = a
    return out


def in_a_child(steps: Callable[[], Iterator[str]]) -> str | None:
    """Run a generator in a forked process: its first message after `!`, or the one during which the process ended."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        status = 1
        faulthandler.disable()                             # what ends the child is told by its parent
        try:
            for step in steps():
                os.write(writer, step.encode() + b"\n")
                if step.startswith("!"):
                    break
            status = 0
        except BaseException as error:
            os.write(writer, f"!{type(error).__name__}: {error}".encode())
        finally:
            os._exit(status)
    os.close(writer)
    with open(reader, encoding="utf-8", errors="replace") as pipe:
        said = pipe.read().splitlines()
    _, code = os.waitpid(child, 0)
    wrong = [line[1:] for line in said if line.startswith("!")]
    if wrong:
        return wrong[0]
    if os.WIFSIGNALED(code):
        return f"{signal.Signals(os.WTERMSIG(code)).name} at: {said[-1] if said else 'the start'}"
    return None if code == 0 else f"the child ended with {code}"
