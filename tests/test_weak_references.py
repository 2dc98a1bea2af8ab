"""Finalization runs no Python code: a pending Ctrl-C would be lost in it."""
from __future__ import annotations

import ast
import ctypes
import gc
import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.backends import load
from mlc.backends.cuda import devices
from mlc.frontend.location import is_ours
from mlc.ir.weak_references import FinalizationQueue, WeakList, WeakTable
from tests.fake_device import FakeDevice
from tests.test_layering import name, product

FINALIZERS = {"backends/cuda/foreign.py": "another library gets its memory back at once",
              "mlc/utils/data/pool.py": "a loop that is left early leaves no processes behind"}
WORDS = re.compile(r"weakref|__del__")


class Thing:
    pass


def test_values_are_there_as_long_as_somebody_holds_them() -> None:
    table, kept = WeakTable[int, Thing](), Thing()
    table.put(1, kept)
    for i in range(2, 500):
        table.put(i, Thing())
    assert table.get(1) is kept and table.get(2) is None and table.get(1000) is None
    assert table.values() == [kept] and len(table._refs) < 200


def test_lists_keep_the_order() -> None:
    things, found = [Thing() for _ in range(300)], WeakList[Thing]()
    for thing in things:
        found.add(thing)
        found.add(Thing())
    assert found.values() == things


def test_finalized_values_are_drained_once() -> None:
    queue, first, second = FinalizationQueue[str](), Thing(), Thing()
    queue.register(first, "first")
    queue.register(second, "second")
    assert not list(queue.drain())
    del first
    assert list(queue.drain()) == ["first"] and not list(queue.drain())
    del second
    assert list(queue.drain()) == ["second"] and not queue._pending


@pytest.fixture
def on_a_gpu() -> Iterator[None]:
    devices.substitute({0: FakeDevice()})
    yield
    devices.substitute(None)


@pytest.mark.usefixtures("on_a_gpu")
@pytest.mark.parametrize("target", ["host", "cuda"])
def test_collecting_compiled_functions_runs_no_python(target: str) -> None:
    def used() -> None:
        f = mlc.compile(lambda x: mlc.exp(x) * 41.0, target=target)
        cycle: list[Any] = [f, f(np.ones(3, np.float32))]
        cycle.append(cycle)

    used()                                                 # whatever is compiled for the first time
    gc.collect()
    used()
    called = list[str]()

    def seen(frame: Any, event: str, _: Any) -> None:
        if event == "call" and is_ours(frame.f_globals.get("__name__", "")):
            called.append(f"{frame.f_code.co_filename}: {frame.f_code.co_name}")

    sys.setprofile(seen)
    try:
        gc.collect()
    finally:
        sys.setprofile(None)
    assert not called


def test_libraries_are_unloaded_by_the_next_load() -> None:
    load.unload()
    library = load.Library(ctypes.CDLL(None))
    before = len(load._loaded)
    del library
    assert len(load._gone) == 1 and len(load._loaded) == before
    load.unload()
    assert not load._gone and len(load._loaded) == before - 1


def finalizers() -> Iterator[str]:
    for path, node in product(WORDS):
        if name(path) in FINALIZERS:
            continue
        match node:
            case ast.FunctionDef(name="__del__") | ast.Attribute(
                    attr="finalize" | "WeakSet" | "WeakValueDictionary" | "WeakKeyDictionary" | "WeakMethod",
                    value=ast.Name(id="weakref")):
                yield f"{name(path)}:{node.lineno}"


def test_nothing_else_runs_python_when_it_goes() -> None:
    assert not list(finalizers())
