"""Kernels as compilation units: the same code as within their module, one object for all programs that have them."""
from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.backends import cached_code as code
from mlc.backends import compile_many
from mlc.backends.cpu.targets import host
from mlc.backends.executable import Executable
from mlc.backends.image import compile_image, compile_kernels
from mlc.backends.kernel_units import KernelUnit, split_kernels
from mlc.dialects.func import functions
from mlc.ir import changes
from mlc.ir.core import Op
from mlc.ir.passes import Pipeline
from mlc.passes import pipeline

X, W = mlc.spec(40, 30), mlc.spec(30, 20)


def row(x: Any, w: Any) -> Any:
    return mlc.softmax(x @ w, 1)


def row_and_more(x: Any, w: Any) -> Any:
    return row(x, w).cumsum(0)


def outlined(f: Callable[..., Any], *args: Any) -> Op:
    return mlc.lower(f, [*args], level="loop").module


def arrays() -> list[np.ndarray[Any, Any]]:
    draw = np.random.default_rng(0)
    return [draw.standard_normal(spec.shape, np.float32) for spec in (X, W)]


def test_results_are_those_of_the_module_as_a_whole() -> None:
    whole, parts = (outlined(row_and_more, X, W) for _ in range(2))
    Pipeline(pipeline.below_loop(host().machine)).run(whole)
    images = compile_image(whole, host()), compile_kernels(parts, host())
    (a,), (b,) = (Executable(image).entry("main").call(arrays()) for image in images)
    assert np.array_equal(a, b)


def test_the_rest_only_declares_kernels() -> None:
    module = outlined(row_and_more, X, W)
    units = split_kernels(module, host())
    declared = [f for f in functions(module) if f.is_declaration]
    assert len(units) == len(declared) > 1
    assert {f.sym_name for f in declared} == {unit.linker_name(host()) for unit in units}


def test_a_kernel_that_another_program_has_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLC_CACHE", "0")
    monkeypatch.setattr(compile_many, "_memory", {})
    monkeypatch.setattr(code, "_cache", {})
    compiled, real = list[str](), KernelUnit.compile

    def counted(unit: KernelUnit, *more: Any) -> bytes:
        compiled.append(unit.text)
        return real(unit, *more)

    monkeypatch.setattr(KernelUnit, "compile", counted)
    mlc.compile(row)(*arrays())
    first = list(compiled)
    mlc.compile(row_and_more)(*arrays())
    assert first and compiled[: len(first)] == first and not {*compiled[len(first):]} & {*first}


def test_what_a_worker_compiles_from_text_is_the_same_object() -> None:
    module = outlined(row, X, W)
    for unit in split_kernels(module, host()):
        assert KernelUnit(unit.text).compile(host(), 2) == unit.compile(host(), 2)


def test_workers_lower_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_many, "LONG", 1e-3)
    monkeypatch.setenv("MLC_COMPILE_JOBS", "2")
    units = split_kernels(outlined(row_and_more, X, W), host())
    done: dict[int, bytes] = {}
    worker = compile_many._Worker(units, host(), 2, deque(range(len(units))), done)
    worker.finish()
    assert len(done) == len(units) > 1 and [done[i] for i in range(len(units))] == [
        unit.compile(host(), 2) for unit in units]


def test_no_worker_lowers_by_sources_that_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_many, "LONG", 1e-3)
    monkeypatch.setenv("MLC_COMPILE_JOBS", "2")
    units = split_kernels(outlined(row_and_more, X, W), host())
    assert compile_many._helpers(units) == 1
    monkeypatch.setattr(compile_many, "versions", dict)
    assert compile_many._helpers(units) == 0
    monkeypatch.setattr(compile_many, "versions", lambda: {"mlc": "others"})
    done: dict[int, bytes] = {}
    worker = compile_many._Worker(units, host(), 2, deque(range(len(units))), done)
    worker.finish()
    assert not done


def test_names_and_labels_make_no_difference() -> None:
    def same(data: Any, weight: Any) -> Any:
        return mlc.softmax(data @ weight, 1)

    texts = [{unit.text for unit in split_kernels(outlined(f, X, W), host())} for f in (row, same)]
    assert texts[0] == texts[1]


def test_changes_that_are_chosen_one_by_one_are_made_in_the_whole_module() -> None:
    module = outlined(row, X, W)
    with changes.chosen(changes.parse("none", None)):
        assert split_kernels(module, host()) == []
