"""Calling compiled functions with care: what is accepted, copied, refused by name, reported, and counted."""
from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.backends import cached_code as code
from mlc.backends import executable
from mlc.backends.cpu.targets import host
from mlc.backends.target import Target
from mlc.ir import abi
from mlc.ir.abi import Interface
from mlc.ir.diag import BackendError, UserError, UserIndexError, UserTypeError
from mlc.ir.machine import CPU
from mlc.ir.parser import Parser, parse_module
from mlc.ir.types import to_numpy
from tests import native
from tests.arrays import Array


def call(name: str, *arrays: Any, **sizes: int) -> list[Array]:
    return native.executable().entry(name).call(arrays, sizes or None)


def ramp(n: int, dtype: Any = np.float32) -> Array:
    return np.arange(n, dtype=dtype)


# -- what comes back --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [0, 1, 7, 1000, 70_001])
def test_symbolic_size(n: int) -> None:
    (y,) = call("add", ramp(n), ramp(n) * 2)
    assert y.dtype == np.float32 and y.shape == (n,) and (y == ramp(n) * 3).all()
    assert y.flags.writeable and y.flags.c_contiguous
    assert y.nbytes < abi.BIG_RESULT or y.__array_interface__["data"][0] % abi.RESULT_ALIGN == 0


def test_static_scalar_and_bool() -> None:
    x = ramp(6).reshape(2, 3)
    assert (call("fixed", x)[0] == 2 * x).all()
    (y,) = call("scalar", np.array(2.5))
    assert y.shape == () and y.dtype == np.float64 and y == -2.5
    (b,) = call("logical_not", np.array([True, False, True]))
    assert b.dtype == np.bool_ and b.tolist() == [False, True, False]


def test_bfloat16() -> None:
    from mlc.ir.types import bf16
    x = np.array([1.5, -2.0, 0.0]).astype(to_numpy(bf16))
    (y,) = call("half", x)
    assert y.dtype == x.dtype and y.tolist() == [-1.5, 2.0, 0.0]


def test_no_arguments() -> None:
    assert call("constant")[0].tolist() == [5, 7]


def test_sizes_of_results_are_computed() -> None:
    assert call("outer", ramp(3), np.zeros(4, np.int8))[0].tolist() == [3.0] * 13
    a, b = call("quarter", ramp(9), ramp(18))
    assert a.tolist() == [1.0, 1.0] and b.shape == (1,)
    assert call("quarter", ramp(1), ramp(2))[1].shape == (2,)          # (1 - 2) mod 3


def test_a_size_that_no_argument_tells() -> None:
    assert call("sized", N=3)[0].tolist() == [1, 1, 1]
    with pytest.raises(UserError, match=r"MLC0327.*no argument binds size N"):
        call("sized")
    with pytest.raises(UserError, match=r"MLC0323.*argument x has size 3 on axis 0, expected B = 4"):
        call("add", ramp(3), ramp(3), B=4)


def test_donated_buffer_becomes_the_result() -> None:
    p, g = ramp(5), ramp(5)
    (q,) = call("update", p, g)
    assert q is p and p.tolist() == [0, 2, 4, 6, 8] and g.tolist() == [0, 1, 2, 3, 4]
    first, second = call("both", p, g)
    assert second is g and first.tolist() == g.tolist() == [0, 3, 6, 9, 12] and first is not p


def test_arena_grows_and_is_reused() -> None:
    entry = native.executable().entry("arena")
    for n in (0, 3, 1000, 10, 100_000, 5):
        assert (entry.call([ramp(n)])[0] == 2 * ramp(n)).all()
    assert len(entry._free) == 1 and entry._free[0].context.capacity == 400_000


# -- layouts ----------------------------------------------------------------------------------------------------------
def misaligned(x: Array) -> Array:
    memory = np.zeros(x.nbytes + 1, np.uint8)
    out: Array = np.ndarray(x.shape, x.dtype, memory, 1)
    out[...] = x
    assert not out.flags.aligned
    return out


class Subclass(np.ndarray[Any, Any]):
    pass


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "byte-swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "not contiguous": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "reversed": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "Fortran": np.asfortranarray,
    "misaligned": misaligned,
}


@pytest.mark.parametrize("layout", [*LAYOUTS, "read-only", "subclass", "broadcast"])
def test_any_layout_is_taken(layout: str) -> None:
    x = ramp(6).reshape(2, 3)
    if layout == "read-only":
        y = x.copy()
        y.flags.writeable = False
    elif layout == "broadcast":
        x = np.broadcast_to(np.float32(3), (2, 3))
        y = x
    else:
        y = x.view(Subclass) if layout == "subclass" else LAYOUTS[layout](x)
    out = call("fixed", y)[0]
    assert type(out) is np.ndarray and (out == 2 * x).all()


@pytest.mark.parametrize("layout, why", [
    ("byte-swapped", "byte-swapped"), ("not contiguous", "not contiguous"), ("reversed", "not contiguous"),
    ("misaligned", "not aligned"),
])
def test_donated_memory_must_fit(layout: str, why: str) -> None:
    x = ramp(6)
    with pytest.raises(UserError, match=rf"MLC0326.*argument params is donated, but its memory is {why}"):
        call("update", LAYOUTS[layout](x), x)


def test_donated_memory_must_be_writable() -> None:
    x = ramp(6)
    x.flags.writeable = False
    with pytest.raises(UserError, match=r"MLC0326.*argument params is donated, but its memory is read-only"):
        call("update", x, ramp(6))
    assert call("update", ramp(6), x)[0].tolist() == (2 * x).tolist()


def test_donated_memory_is_not_shared() -> None:
    x = ramp(12)
    for p, g in ((x, x), (x[:6], x[3:9]), (x[3:9], x[:6]), (x[5:6], x[5:6])):
        with pytest.raises(UserError, match=r"MLC0329.*argument params is donated, but shares memory with "
                                            r"argument grads"):
            call("update", p, g)
    assert (x == ramp(12)).all()
    assert (call("update", x[:6], x[6:])[0] == ramp(6) + ramp(12)[6:]).all()       # neighbours do not overlap
    call("update", x[:0], x[:0])
    assert (call("add", x, x)[0] == 2 * x).all()                                  # nothing is donated


# -- what is refused --------------------------------------------------------------------------------------------------
def test_wrong_arguments_are_named() -> None:
    x = ramp(3)
    with pytest.raises(UserTypeError, match=r"MLC0321.*add takes 2 arguments, got 1"):
        call("add", x)
    with pytest.raises(UserTypeError, match=r"MLC0324.*argument y is a list, expected an array"):
        call("add", x, [1, 2, 3])
    with pytest.raises(UserTypeError, match=r"MLC0325.*argument y has dtype float64, expected float32"):
        call("add", x, x.astype(np.float64))
    with pytest.raises(UserTypeError, match=r"MLC0325.*argument x has dtype object"):
        call("add", x.astype(object), x)
    with pytest.raises(UserTypeError, match=r"MLC0322.*argument y has 2 dimensions, its type tensor<Bxf32> has"):
        call("add", x, x[None])
    with pytest.raises(UserError, match=r"MLC0323.*argument y has size 4 on axis 0, expected B = 3"):
        call("add", x, ramp(4))
    with pytest.raises(UserError, match=r"MLC0323.*argument 0 has size 3 on axis 0, expected 2"):
        call("fixed", np.zeros((3, 3), np.float32))
    with pytest.raises(UserError, match=r"MLC0323.*argument 1 has size 3 on axis 0, expected 2\*B = 6"):
        call("quarter", x, x)


def test_impossible_results_are_refused() -> None:
    with pytest.raises(UserError, match=r"MLC0328.*result 0 would have shape \[-1\]"):
        call("shrink", ramp(0))
    with pytest.raises(UserError, match=r"MLC0328.*the size N = 2305843009213693952 is too large"):
        call("sized", N=2**61)
    with pytest.raises(UserError, match=r"MLC0328.*do not fit in memory: the call needs") as caught:
        call("sized", N=2**47)
    assert str(caught.value).count("error[") == 1


def test_unknown_function() -> None:
    with pytest.raises(UserError, match=r"MLC0320.*no function @nothing"):
        native.executable().entry("nothing")


# -- errors inside compiled code --------------------------------------------------------------------------------------
def test_error_record_names_the_line() -> None:
    with pytest.raises(UserIndexError) as caught:
        call("checked", np.array([1, 2, 30, 40]))
    assert isinstance(caught.value, IndexError)
    assert str(caught.value).startswith("model.py:12:9: error[MLC0340]: take: index out of range (element 2")
    assert (caught.value.loc.file, caught.value.loc.line, caught.value.loc.col) == ("model.py", 12, 9)
    assert call("checked", np.array([1, 2, 3]))[0].tolist() == [1, 2, 3]


def test_impossible_status() -> None:
    with pytest.raises(BackendError, match=r"MLC0563.*status 7"):
        call("strange", np.array(1, np.float32))
    with pytest.raises(BackendError, match=r"MLC0563.*status 1"):
        call("always_small", np.array(1, np.float32))


def test_interfaces_are_checked() -> None:
    def interface(type: str, **more: Any) -> Interface:
        return Interface("f", Parser(type, "<test>").type(), **more)  # type: ignore[arg-type]

    for type, more, message in (
            ("(i32) -> tensor<2xf32>", {"aliases": (-1,)}, "not a function of tensors"),
            ("(tensor<2xf32>) -> tensor<2xf32>", {}, "0 aliases for 1 results"),
            ("(tensor<2xf32>) -> tensor<2xf32>", {"aliases": (1,)}, "aliases"),
            ("(tensor<2xf32>) -> tensor<3xf32>", {"aliases": (0,)}, "takes the buffer"),
            ("(tensor<Bxf32>) -> tensor<2xf32>", {"aliases": (-1,)}, "size B is not among"),
    ):
        with pytest.raises(BackendError, match=f"MLC0560.*{message}"):
            interface(type, **more)
    f = interface("() -> tensor<f32>", aliases=(-1,), error_sites=("m.py:3: no",))
    assert f.error_site(0) == "m.py:3: no"
    with pytest.raises(BackendError, match="MLC0561"):
        f.error_site(2)


# -- many callers -----------------------------------------------------------------------------------------------------
def test_a_call_leaves_nothing_to_the_garbage_collector() -> None:
    entry, x = native.executable().entry("add"), ramp(3)
    entry.call([x, x])
    gc.collect()
    gc.disable()
    try:
        entry.call([x, x])
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_counts_entries() -> None:
    entry, x = native.executable().entry("add"), ramp(3)
    own, all_own, everywhere = entry.calls, native.executable().calls, executable.native_entries()
    for _ in range(3):
        entry.call([x, x])
    with pytest.raises(UserError):
        entry.call([x])
    assert (entry.calls - own, native.executable().calls - all_own) == (3, 3)
    assert executable.native_entries() - everywhere == 3


def test_eight_threads() -> None:
    names = ("add", "arena")
    entries = [native.executable().entry(name) for name in names]
    before, wrong = sum(e.calls for e in entries), []

    def work(seed: int) -> None:
        x = ramp(100 + seed) + seed
        for i in range(1000):
            (y,) = entries[i % 2].call([x, x] if i % 2 == 0 else [x])
            if not (y == 2 * x).all():
                wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert sum(e.calls for e in entries) - before == 8000
    assert 1 <= len(entries[1]._free) <= 8


def test_after_fork() -> None:
    x = ramp(1000)
    call("arena", x)
    child = os.fork()
    if child == 0:
        ok = (call("arena", x)[0] == 2 * x).all() and (call("add", x, x)[0] == 2 * x).all()
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (call("arena", x)[0] == 2 * x).all()


def test_works_without_numpys_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    x, swapped = ramp(10), LAYOUTS["byte-swapped"](ramp(10))
    expected = (2 * x).tolist()
    without_numpy(monkeypatch)
    assert call("add", x, swapped[::-1][::-1])[0].tolist() == expected
    assert call("arena", x)[0].tolist() == expected
    assert call("update", x, swapped)[0] is x


def without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every function in numpy's namespaces raise."""
    def gone(*args: Any, **keywords: Any) -> Any:
        raise AssertionError("a numpy function was called")

    for namespace in (np, np._core.multiarray, np._core.numeric, np._core.fromnumeric, np._core.umath):  # type: ignore[attr-defined]
        for name, value in list(vars(namespace).items()):
            if callable(value) and not isinstance(value, type):
                monkeypatch.setattr(namespace, name, gone)


def test_report() -> None:
    report = native.executable().report()
    assert "external symbols: memcpy" in report and "@add: (tensor<Bxf32>, tensor<Bxf32>) -> tensor<Bxf32>" in report
    assert native.executable().undefined == ["memcpy"]


MODULE = """
module {
  llvm.func internal @double(%x: !llvm.ptr, %y: !llvm.ptr, %n: i64) {
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    llvm.br ^head(%zero : i64)
  ^head(%i: i64):
    %more = llvm.icmp slt %i, %n : i64
    llvm.cond_br %more, ^body, ^done
  ^body:
    %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %v = llvm.load %p : !llvm.ptr -> f32
    %w = llvm.fadd %v, %v : f32
    %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %w, %q : f32, !llvm.ptr
    %j = llvm.add %i, %one : i64
    llvm.br ^head(%j : i64)
  ^done:
    llvm.return
  }
  llvm.func @twice_entry(%ctx: !llvm.ptr, %args: !llvm.ptr, %sizes: !llvm.ptr, %results: !llvm.ptr) -> i32
      attributes {interface = "(tensor<Bxf32>) -> tensor<Bxf32>", symbols = ["B"], aliases = [-1], arg_names = ["x"]} {
    %ok = llvm.mlir.constant(0 : i32) : i32
    %x = llvm.load %args : !llvm.ptr -> !llvm.ptr
    %y = llvm.load %results : !llvm.ptr -> !llvm.ptr
    %n = llvm.load %sizes : !llvm.ptr -> i64
    llvm.call @double(%x, %y, %n) : (!llvm.ptr, !llvm.ptr, i64) -> ()
    llvm.return %ok : i32
  }
}
"""


@pytest.mark.parametrize("target", ["host", "x86-64-v2", "x86-64-v3"])
def test_build_from_the_llvm_dialect(target: str) -> None:
    built = executable.build(parse_module(MODULE), Target.parse(target))
    assert list(built.entries) == ["twice"] and built.undefined == []
    assert built.entry("twice").call([ramp(5)])[0].tolist() == [0, 2, 4, 6, 8]
    with pytest.raises(UserTypeError, match=r"argument x has dtype float64"):
        built.entry("twice").call([np.zeros(3)])


def test_code_for_a_better_machine_is_refused() -> None:
    better = Target("better", host().triple, "x86-64", ("+amx-imaginary",), CPU)
    with pytest.raises(BackendError, match=r"MLC0562.*this machine cannot run code made for better"):
        executable.load_object(b"", {}, better)


def mapped() -> int:
    return sum("memfd:mlc" in line for line in Path("/proc/self/maps").read_text().splitlines())


def test_code_is_unmapped_when_nobody_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process can map some 65,000 pieces of memory: one that compiles for days must not run out of them."""
    monkeypatch.setattr(code, "_cache", {})
    monkeypatch.setattr(code, "RECENT", 3)
    before = None
    for i in range(6):                                       # each has a signature of its own, so a wrapper, too
        f, x = mlc.compile(lambda x, i=i: x * i), np.ones((300, 300 + i), np.float32)
        np.testing.assert_array_equal(f(x).numpy(), x * i)
        gc.collect()
        if i == 4:
            before = mapped()
    assert mapped() == before and len(code._cache) == 3
    mlc.set_num_threads(mlc.get_num_threads())               # tells only libraries that are still there
    assert f(x).numpy().tobytes() == f(x).numpy().tobytes()
