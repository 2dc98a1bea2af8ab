"""The emitted wrapper: which calls take its fast path, that others give the same results, no leaks, no crashes."""
from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.backends import executable
from mlc.backends.cpu import checked_call, layout, support, wrapper
from mlc.backends.cpu.callable import make_callable
from mlc.backends.cpu.targets import host
from mlc.backends.executable import Entry
from mlc.ir import abi
from mlc.ir.abi import Interface
from mlc.ir.diag import UserError, UserIndexError
from mlc.ir.parser import Parser, parse_module
from mlc.ir.printer import to_text
from mlc.ir.types import bf16, to_numpy
from mlc.ir.verify import verify
from tests import native
from tests.arrays import Array
from tests.test_executable import LAYOUTS, ramp, without_numpy

pytestmark = pytest.mark.skipif(layout.problem() is not None, reason=str(layout.problem()))


class Tensor:
    """Tensor of a frontend as the wrapper sees it: a class with a slot."""

    __slots__ = ("__weakref__", "_array", "_autograd")
    _array: Any

    def __init__(self, array: Array) -> None:
        self._array = array


class Consumed:
    """In place of a donated tensor's array."""


GONE = Consumed()


class Function:
    """A compiled function as a front end makes one; counts the calls that take the slow path."""

    def __init__(self, name: str, result: str = "ndarray", tensors: bool = True) -> None:
        self.entry: Entry = native.executable().entry(name)
        self.result = result
        self.slow = 0
        self.call = make_callable(self.entry, self.slow_path, result, Tensor if tensors else None, consumed=GONE)
        assert self.call.fast_path == "yes"

    def slow_path(self, *args: Any, **keywords: Any) -> Any:
        self.slow += 1
        flat = [leaf for a in (*args, *keywords.values()) for leaf in (a if isinstance(a, (list, tuple)) else [a])]
        if any(leaf._array is GONE for leaf in flat if isinstance(leaf, Tensor)):
            raise UserError("this tensor was donated", code="MLC0343")
        out: list[Any] = self.entry.call([leaf._array if isinstance(leaf, Tensor) else leaf for leaf in flat])
        if self.result == "tensor":
            out = [Tensor(a) for a in out]
        return out[0] if len(out) == 1 else tuple(out)

    def report(self) -> str:
        return "a report"

    def fast(self, *args: Any) -> Any:
        """Call, and check that the fast path did it."""
        before, native_before = self.slow, self.entry.fast_calls.value
        out = self.call(*args)
        assert self.slow == before and self.entry.fast_calls.value == native_before + 1
        return out

    def slowly(self, *args: Any, **keywords: Any) -> Any:
        """Call, and check that the slow path did it."""
        before = self.slow
        out = self.call(*args, **keywords)
        assert self.slow == before + 1
        return out


# -- the fast path ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [0, 1, 7, 1000, 5000, 70_001])
def test_symbolic_size(n: int) -> None:
    y = Function("add").fast(ramp(n), ramp(n) * 2)
    assert type(y) is np.ndarray and y.dtype == np.float32 and y.shape == (n,) and (y == ramp(n) * 3).all()
    assert y.flags.writeable and y.flags.c_contiguous and y.flags.aligned
    if y.nbytes >= abi.BIG_RESULT:
        assert y.__array_interface__["data"][0] % 64 == 0


def test_static_scalar_bool_and_none() -> None:
    x = ramp(6).reshape(2, 3)
    assert (Function("fixed").fast(x) == 2 * x).all()
    y = Function("scalar").fast(np.array(2.5))
    assert type(y) is np.ndarray and y.shape == () and y == -2.5
    b = Function("logical_not").fast(np.array([True, False]))
    assert b.dtype == np.bool_ and b.tolist() == [False, True]
    assert Function("constant").fast().tolist() == [5, 7]
    h = Function("half").fast(np.array([1.5, -2.0]).astype(to_numpy(bf16)))
    assert h.dtype == to_numpy(bf16) and h.tolist() == [-1.5, 2.0]


def test_computed_sizes() -> None:
    assert Function("outer").fast(ramp(3), np.zeros(4, np.int8)).tolist() == [3.0] * 13
    f = Function("quarter")
    for n in range(12):
        a, b = f.fast(ramp(n), ramp(2 * n))
        assert a.tolist() == [1.0] * (n // 4) and b.shape == ((n - 2) % 3,)
    with pytest.raises(UserError, match="MLC0323"):
        f.slowly(ramp(3), ramp(3))


def test_tensors_in_and_out() -> None:
    f = Function("add", "tensor")
    x, y = Tensor(ramp(3)), ramp(3)
    for args in ((x, x), (x, y), (y, x), (y, y)):
        out = f.fast(*args)
        assert type(out) is Tensor and out._array.tolist() == [0, 2, 4]
    assert Function("add", "ndarray").fast(x, x).tolist() == [0, 2, 4]
    assert Function("add", tensors=False).slowly(x, y).tolist() == [0, 2, 4]


def test_several_results_are_a_tuple() -> None:
    a, b = ramp(3), ramp(3)
    out = Function("both").fast(a, b)
    assert type(out) is tuple and out[1] is b and out[0].tolist() == b.tolist() == [0, 2, 4]
    first, second = Function("both", "tensor").fast(Tensor(a), b)
    assert first._array.tolist() == [0, 3, 6] and second._array is b


def test_donated_buffer_becomes_the_result() -> None:
    p, g = ramp(5), ramp(5)
    assert Function("update").fast(p, g) is p and p.tolist() == [0, 2, 4, 6, 8]
    f, t = Function("update", "tensor"), Tensor(ramp(5))
    address = t._array.ctypes.data
    out = f.fast(t, g)
    assert out._array.ctypes.data == address and t._array is GONE and out._array.tolist() == [0, 2, 4, 6, 8]
    with pytest.raises(UserError, match="MLC0343"):
        f.slowly(t, g)
    assert f.fast(out._array, Tensor(g))._array is out._array


def test_a_donated_buffer_that_somebody_else_has_takes_the_slow_path() -> None:
    f, g = Function("update", "tensor"), ramp(5)
    for start in (None, 1):
        t = Tensor(ramp(5))
        held = t._array if start is None else t._array[start:]
        f.slowly(t, g)
        del held
    f.fast(Tensor(ramp(5)), g)


def test_arena_grows_in_place() -> None:
    f = Function("arena")
    for n in (0, 3, 1000, 10, 100_000, 5):
        before = f.slow
        assert (f.call(ramp(n)) == 2 * ramp(n)).all() and f.slow == before


def test_error_record_raises_without_a_second_run() -> None:
    f = Function("checked")
    for bad in (np.array([1, 2, 30, 40]), np.array([1, 2, 30, -1])):
        with pytest.raises(UserIndexError, match=r"^model.py:12:9: error\[MLC0340\]: take: .* \(element 2"):
            f.fast(bad)
    assert f.fast(np.array([1, 2])).tolist() == [1, 2]
    # In place, a second run would find nothing wrong: the entry has overwritten what it complained about.
    t = Tensor(np.array([1, 20]))
    with pytest.raises(UserIndexError):
        Function("checked_in_place", "tensor").fast(t)
    assert t._array is GONE


# -- the slow path ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", LAYOUTS.values(), ids=LAYOUTS)
def test_other_layouts_give_the_same_results(make: Callable[[Array], Array]) -> None:
    x = ramp(6).reshape(2, 3)
    assert (Function("fixed").slowly(make(x)) == 2 * x).all()
    with pytest.raises(UserError, match=r"MLC0326.*donated"):
        Function("transform").slowly(make(x))


def test_read_only_memory() -> None:
    x = ramp(6)
    x.flags.writeable = False
    assert Function("update").fast(ramp(6), x).tolist() == (2 * x).tolist()
    with pytest.raises(UserError, match=r"MLC0326.*read-only"):
        Function("update").slowly(x, ramp(6))


def test_shared_donated_memory() -> None:
    f, x = Function("update"), ramp(12)
    for p, g in ((x, x), (x[:6], x[3:9]), (x[3:9], x[:6])):
        with pytest.raises(UserError, match="MLC0329"):
            f.slowly(p, g)
    f.fast(x[:6], x[6:])
    f.fast(x[6:], x[:6])
    assert Function("add").fast(x, x).tolist() == (2 * x).tolist()


def test_wrong_arguments_are_named() -> None:
    f, x = Function("add"), ramp(3)
    for args, code in (((x,), "MLC0321"), ((x, x, x), "MLC0321"), ((x, [1, 2, 3, 4]), "MLC0321"), ((x, 3), "MLC0324"),
                       ((x, x.astype(np.float64)), "MLC0325"), ((x[None], x), "MLC0322"), ((x, ramp(4)), "MLC0323"),
                       ((np.zeros(3, ">f4"), x[None]), "MLC0322"), ((), "MLC0321")):
        with pytest.raises(UserError, match=code):
            f.slowly(*args)
    with pytest.raises(UserError, match="MLC0328"):
        Function("shrink").slowly(ramp(0))


def test_keywords_and_trees_take_the_slow_path() -> None:
    f, x = Function("add"), ramp(3)
    for out in (f.slowly(x, y=x), f.slowly(x=x, y=x), f.slowly([x, x]), f.slowly((x,), x), f.slowly(x, x, z=())):
        assert out.tolist() == [0, 2, 4]
    assert f.fast(*[x, x]).tolist() == [0, 2, 4]


def test_other_types_take_the_slow_path() -> None:
    class Special(Tensor):
        __slots__ = ()

    class View(np.ndarray[Any, Any]):
        pass

    f, x = Function("add"), ramp(3)
    for other in (Special(x), x.view(View), Tensor(x.view(View)), x.astype(x.dtype.newbyteorder())):
        assert f.slowly(x, other).tolist() == [0, 2, 4]
    longs = np.array([1, 2], np.longlong if np.dtype(np.longlong) is not np.dtype(np.int64) else np.long)
    assert Function("checked").slowly(longs).tolist() == [1, 2]            # equal to int64, yet another type
    with pytest.raises(AttributeError):
        f.slowly(x, Tensor.__new__(Tensor))                                # its slot is empty


def test_entry_that_refuses() -> None:
    f = Function("always_small")
    with pytest.raises(Exception, match=r"MLC0563.*status 1"):
        f.slowly(np.array(1, np.float32))
    with pytest.raises(Exception, match=r"MLC0563.*status 7"):
        Function("strange").slowly(np.array(1, np.float32))


def test_huge_sizes_of_empty_arrays() -> None:
    f = Function("outer")
    b = np.zeros((2**40, 0), np.float32)
    assert f.entry.interface.binders == {"B": (0, 0), "C": (1, 0)}
    g = Function("fixed")
    with pytest.raises(UserError, match="MLC0322"):
        f.slowly(b, np.zeros(3, np.int8))
    with pytest.raises(UserError, match="MLC0323"):
        g.slowly(b)


def test_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    interface = Interface("outer", Parser("(tensor<Bx0xf32>, tensor<Cx0xi8>) -> tensor<(B*C)xf32>", "").type(),  # type: ignore[arg-type]
                          ("B", "C"), (-1,))
    f = Function("outer")
    monkeypatch.setattr(f.entry, "interface", interface)
    g = make_callable(f.entry, lambda *args: "slow", "ndarray")
    big, bigger = np.zeros((2**25, 0), np.float32), np.zeros((2**31, 0), np.float32)
    with pytest.raises(MemoryError):
        g(big, np.zeros((2**25, 0), np.int8))
    assert g(bigger, np.zeros((2**31, 0), np.int8)) == "slow"              # 2**64 bytes


# -- what stays behind -------------------------------------------------------------------------------------------------
def references(objects: list[Any]) -> list[int]:
    return [sys.getrefcount(o) for o in objects]


@pytest.mark.parametrize("result", ["ndarray", "tensor"])
def test_references_are_steady(result: str) -> None:
    f32, u8 = np.dtype(np.float32), np.dtype(np.uint8)
    x, y, big = ramp(5), Tensor(ramp(5)), ramp(100_000)
    add, both, update, checked = (Function(name, result) for name in ("add", "both", "update", "checked"))
    kind = type(add.call)
    watched = [x, y, y._array, big, f32, u8, add.call, kind, Tensor, np.ndarray, GONE, add.entry, None]

    def everything() -> None:
        add.call(x, y)
        add.call(big, big)
        add.call(x, y=y)
        both.call(x, ramp(5))
        update.call(ramp(5), y)
        update.call(Tensor(ramp(5)), y)
        for bad in ((x,), (x, 1), (x, big), ()):
            with pytest.raises(UserError):
                add.call(*bad)
        with pytest.raises(UserIndexError):
            checked.call(np.array([10**6]))
        make_callable(add.entry, print, result, Tensor)

    for _ in range(3):
        everything()
    gc.collect()
    before = references(watched)
    for _ in range(50):
        everything()
    gc.collect()
    assert all(abs(a - b) <= 2 for a, b in zip(before, references(watched)))


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_memory_is_flat() -> None:
    f, g = Function("both", "tensor"), Function("arena", "tensor")
    x, y, big = Tensor(ramp(100)), ramp(100), ramp(20_000)

    def run(count: int) -> None:
        for _ in range(count):
            f.call(x, y)
            g.call(x)
        for _ in range(count // 100):
            g.call(big)
            make_callable(f.entry, print, "ndarray")(y, x._array[::-1][::-1].copy())

    def growth() -> int:
        gc.collect()
        before = resident()
        run(20_000)
        gc.collect()
        return resident() - before

    run(5_000)
    assert min(growth() for _ in range(4)) < 1 << 19       # a leak grows each time, other parts of the process do not


# -- many callers -----------------------------------------------------------------------------------------------------
def test_counts_entries() -> None:
    f, x = Function("add"), ramp(3)
    own, everywhere = f.entry.calls, executable.native_entries()
    for _ in range(5):
        f.call(x, x)
    f.call(x, y=x)
    assert f.entry.calls - own == 6 and executable.native_entries() - everywhere == 6


def test_eight_threads() -> None:
    add, arena = Function("add"), Function("arena", "tensor")
    wrong = []

    def work(seed: int) -> None:
        x = ramp(20_000 * (seed % 2) + seed)                # half of them release the lock while they run
        for i in range(1000):
            y = add.call(x, x) if i % 2 == 0 else arena.call(x)._array
            if not (y[-3:] == 2 * x[-3:]).all():
                wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and add.slow == arena.slow == 0


def test_long_calls_release_the_gil() -> None:
    f, ticks, stop = Function("count"), 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not stop.is_set():
            ticks += 1
            time.sleep(0.001)

    other = threading.Thread(target=tick)
    other.start()
    start = time.perf_counter()
    f.fast(np.array(100_000_000))
    during, seconds = ticks, time.perf_counter() - start
    stop.set()
    other.join()
    assert seconds < 0.02 or during > 5


def test_after_fork() -> None:
    f, x = Function("arena"), ramp(50_000)
    f.fast(x)
    child = os.fork()
    if child == 0:
        ok = (f.call(x) == 2 * x).all() and (f.call(x[::-1]) == 2 * x[::-1]).all()
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (f.fast(x) == 2 * x).all()


def test_works_without_numpys_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    x, expected = ramp(10), (2 * ramp(10)).tolist()
    f, g = Function("add"), Function("arena", "tensor")
    without_numpy(monkeypatch)
    assert f.fast(x, x).tolist() == expected and g.fast(x)._array.tolist() == expected
    assert f.slowly(x, y=x).tolist() == expected


# -- the code ---------------------------------------------------------------------------------------------------------
def test_code_names_no_address() -> None:
    """Externals are symbols of the list; the text is the same whatever the process."""
    from mlc.backends import link, object_code
    from mlc.backends.emit_llvm import emit
    interface = native.executable().entry("both").interface
    made = wrapper.wrapper_module(interface, True, True)
    verify(made)
    for generic in (False, True):
        assert to_text(parse_module(to_text(made, generic)), generic) == to_text(made, generic)
    text = emit(wrapper.wrapper_module(interface, True, True), host())
    assert "inttoptr" not in text and text == emit(wrapper.wrapper_module(interface, True, True), host())
    undefined = set(link.undefined_symbols(object_code.compile_object(text, host(), 1)))
    assert undefined <= support.EXTERNALS and "PyObject_Vectorcall" in undefined


def testlargest_symbol() -> None:
    from mlc.ir.sizes import sym
    b, c = sym("B"), sym("C")
    assert checked_call.largest_symbol([3, b]) == 1 << 62
    assert checked_call.largest_symbol([b * c + 1]) == 1 << 30
    assert checked_call.largest_symbol([b * b * c]) == 1 << 20


def test_what_a_function_that_writes_to_its_argument_returns() -> None:
    """It alone, in every call, however this is made."""
    def f(x: Any) -> Any:
        x.add_(1)
        return x * 2

    compiled, x = mlc.compile(f), mlc.zeros(3)
    for i in range(1, 5):
        assert compiled(x).tolist() == [2.0 * i] * 3 and x.tolist() == [1.0 * i] * 3
