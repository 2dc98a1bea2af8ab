"""Compiled functions as Python objects: attributes, life and death, and what is done where there is no fast path."""
from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.backends.cpu import callable as compiled
from mlc.backends.cpu import layout
from mlc.backends.cpu.callable import SlowCallable, add_fast_path, make_callable, make_dispatcher
from mlc.backends.load import Library
from mlc.ir.abi import Interface
from mlc.ir.diag import UserError
from mlc.ir.parser import Parser
from tests import native
from tests.test_executable import ramp
from tests.test_wrapper import Function

pytestmark = pytest.mark.skipif(layout.problem() is not None, reason=str(layout.problem()))


def test_attributes_are_the_slow_paths() -> None:
    class Compiled:
        """Stand-in for the function that a frontend attaches."""

        def __call__(self, *args: Any) -> Any:
            return "slow"

        def report(self) -> str:
            return "a report"

    slow = Compiled()
    f = make_callable(native.executable().entry("add"), slow, "ndarray")
    assert f.report() == "a report" and f.slow_path is slow and callable(f) and f(1) == "slow"
    assert repr(f) == "<compiled add>" and f.fast_path == "yes" and f.__call__(1) == "slow"
    with pytest.raises(AttributeError, match="'Compiled' object has no attribute 'nothing'"):
        f.nothing  # noqa: B018
    with pytest.raises(TypeError):
        type(f)()
    with pytest.raises(AttributeError):
        f.slow_path = 1


def test_the_slow_callable_looks_the_same() -> None:
    f = make_callable(native.executable().entry("sized"), Function("add").slow_path, "ndarray")
    assert type(f) is SlowCallable and f.fast_path == "no argument binds size N" and repr(f) == "<compiled sized>"
    x = ramp(3)
    assert f(x, x).tolist() == [0, 2, 4] and f(x=x, y=x).tolist() == [0, 2, 4]


def test_a_tensor_type_without_the_slot() -> None:
    class Other:
        pass

    f = make_callable(native.executable().entry("add"), print, "ndarray", Other)
    assert "has no slot _array" in f.fast_path
    with pytest.raises(ValueError, match="tensor_type"):
        make_callable(native.executable().entry("add"), print)


def test_unknown_layout_means_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "problem", lambda: "numpy changed")
    f = make_callable(native.executable().entry("add"), lambda *args: "slow", "ndarray")
    assert f.fast_path == "numpy changed" and f(1) == "slow"


def test_dispatcher_learns_signatures() -> None:
    calls = []

    def slow(*args: Any, **keywords: Any) -> str:
        """The function of the user."""
        calls.append(args)
        return "slow"

    f, x = make_dispatcher(slow), ramp(3)
    assert f(x, x) == "slow" and f(a=1) == "slow" and f.__name__ == "slow" and f.__doc__ == "The function of the user."
    add, fixed = native.executable().entry("add"), native.executable().entry("fixed")
    assert add_fast_path(f, add, "ndarray") == "yes" and add_fast_path(f, fixed, "ndarray") == "yes"
    calls.clear()
    assert f(x, x).tolist() == [0, 2, 4] and f(np.ones((2, 3), np.float32)).tolist() == [[2] * 3] * 2 and not calls
    assert f(x) == "slow" and f(x, x.astype(int)) == "slow" and len(calls) == 2 and f.__name__ == "slow"
    for _ in range(compiled.MAX_FAST_PATHS - 2):
        assert add_fast_path(f, add, "ndarray") == "yes"
    assert "8 signatures" in add_fast_path(f, add, "ndarray") and f(x, x).tolist() == [0, 2, 4]
    assert "no argument binds" in add_fast_path(make_dispatcher(slow), native.executable().entry("sized"), "ndarray")


def test_dispatchers_die() -> None:
    class Slow:
        compiled: Any

        def __call__(self, *args: Any) -> Any:
            return args

    slow = Slow()
    slow.compiled = make_dispatcher(slow)
    add_fast_path(slow.compiled, native.executable().entry("add"), "ndarray")
    watch, watch_compiled = weakref.ref(slow), weakref.ref(slow.compiled)
    assert slow.compiled(1) == (1,)
    del slow
    gc.collect()
    assert watch() is None and watch_compiled() is None


def test_many_arguments_have_no_wrapper() -> None:
    types = ", ".join(["tensor<f32>"] * compiled.MAX_VALUES)
    wide = Interface("wide", Parser(f"({types}) -> tensor<f32>", "").type(), (), (-1,))  # type: ignore[arg-type]
    assert compiled._unsuited(wide) == "257 arguments and results are more than 256"


def test_callables_die() -> None:
    class Slow:
        def __call__(self, *args: Any) -> Any:
            return args

    slow = Slow()
    watch_slow = weakref.ref(slow)
    f = make_callable(native.executable().entry("arena"), slow, "ndarray")
    f(ramp(1000))
    watch = weakref.ref(f)
    assert watch() is f and gc.is_tracked(f)
    del f, slow
    assert watch() is None and watch_slow() is None


def test_cycles_through_the_slow_path_are_collected() -> None:
    class Slow:
        compiled: Any

        def __call__(self, *args: Any) -> Any:
            return args

    slow = Slow()
    slow.compiled = make_callable(native.executable().entry("add"), slow, "ndarray")
    watch = weakref.ref(slow)
    del slow
    gc.collect()
    assert watch() is None


def test_wrappers_are_shared_by_signature() -> None:
    first, second = (make_callable(native.executable().entry("add"), print, "ndarray") for _ in range(2))
    assert first.keep[-1] is second.keep[-1] and isinstance(first.keep[-1], Library)


def test_methods_bind() -> None:
    class Model:
        step = make_callable(native.executable().entry("add"), lambda *args: args, "ndarray")
        slow = make_callable(native.executable().entry("sized"), lambda *args: args, "ndarray")

    model = Model()
    assert model.step(1) == (model, 1) and model.slow(1) == (model, 1)
    assert Model.step(1) == (1,) and Model.slow(1) == (1,)


def test_copies() -> None:
    for name in ("sized", "add"):
        f = make_callable(native.executable().entry(name), len, "ndarray")
        assert copy.copy(f) is f and copy.deepcopy([f]) == [f]


@mlc.compile
def doubled(x: Any) -> Any:
    return x * 2


def test_functions_are_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps(doubled)) is doubled  # noqa: S301
    with pytest.raises(UserError, match="MLC0799"):
        pickle.dumps(mlc.compile(lambda x: x))
