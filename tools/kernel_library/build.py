"""Compilation of the kernel library: what the programs ask to be compiled is compiled for each level."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from multiprocessing.pool import Pool
from pathlib import Path

import mlc
from mlc.backends import fingerprint, kernel_library
from mlc.backends.cached_code import image_of
from mlc.backends.cpu import runtime
from mlc.backends.cpu.targets import host
from mlc.backends.cpu.toolchain import Toolchain
from mlc.backends.fingerprint import LocationTable
from mlc.backends.kernel_library import Entry
from mlc.backends.target import Target
from mlc.dialects.builtin import Module
from mlc.frontend import compiler
from mlc.frontend.devices import CPU
from mlc.frontend.eager import compiled_by
from mlc.tools.fuzzing.interpreted import Interpreted
from mlc.tools.kernel_library.programs import PROGRAMS


def build(folder: Path, levels: Sequence[Target]) -> Iterator[tuple[Path, int, float]]:
    """Write the library of each level; yields its path, the number of its entries and the seconds that it took."""
    modules = [*collected(PROGRAMS).values()]
    for level in levels:
        start = time.perf_counter()
        entries = [*compiled(modules, level), *runtime_of(level)]
        yield kernel_library.write(folder, level, entries), len(entries), time.perf_counter() - start


def warm() -> int:
    """Compile for this machine, into its compile cache, what is not there yet; returns the number of modules."""
    modules = [*collected(PROGRAMS).values()]
    with _pool() as pool:
        pool.map(partial(_cached, modules), range(len(modules)), chunksize=1)
    runtime_of(host())
    return len(modules)


def _cached(modules: Sequence[Module], number: int) -> None:
    image_of(modules[number], Toolchain())


def _pool() -> Pool:
    return multiprocessing.get_context("fork").Pool(len(os.sched_getaffinity(0)))


def collected(programs: Iterable[str]) -> dict[str, Module]:
    """The modules that programs compile, by their texts. They run in the interpreter meanwhile."""
    found: dict[str, Module] = {}

    def compile(module: Module, device: str) -> compiler.Entry:
        text = fingerprint.structural_text(module)
        if text is not None and device == CPU:
            copy = module.clone()
            assert isinstance(copy, Module)
            found.setdefault(text, copy)
        entry: compiler.Entry = Interpreted(module).entry("main")
        return entry

    with compiled_by(compile):
        for name in programs:
            PROGRAMS[name]()
    return found


def compiled(modules: Sequence[Module], level: Target) -> list[Entry]:
    """The code of modules for a level, made by as many processes as there are processors."""
    with _pool() as pool:
        return pool.map(partial(_numbered, modules, level), range(len(modules)), chunksize=1)


def _numbered(modules: Sequence[Module], level: Target, number: int) -> Entry:
    return entry(modules[number], level)


def entry(module: Module, level: Target) -> Entry:
    """The code of a module, which is lowered, for a level."""
    chain, text = Toolchain(level), fingerprint.structural_text(module)
    assert text is not None
    with LocationTable(module).numbered():
        image = chain.compile(chain.lower(module), cache=True)
    return Entry("module", chain.library_key(text), image.head(), image.code)


def runtime_of(level: Target) -> list[Entry]:
    """The code that all programs share: what eager and compiled calls here have asked for."""
    x = mlc.ones(2, 3)
    for _ in range(3):
        mlc.compile(lambda x: x + 1)(x + x)
    return [Entry("runtime", [what], {}, request.compile(level)) for what, request in runtime.REQUESTS.items()]
