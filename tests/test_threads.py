"""The thread pool, and compiled code that uses it: same bits, whoever computes what, and nobody hangs."""
from __future__ import annotations

import ctypes
import importlib
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.backends.cpu import threads
from mlc.backends.cpu.pool import MAX_THREADS
from mlc.backends.cpu.targets import host
from mlc.backends.executable import Entry, build
from mlc.backends.link import link
from mlc.backends.load import load
from mlc.backends.object_code import compile_object
from mlc.dialects import scf
from mlc.ir import abi
from mlc.ir.diag import UserError, UserIndexError
from mlc.ir.interp import run_function
from mlc.ir.parser import parse_module
from mlc.ir.passes import Pipeline, Step, find_pass
from mlc.passes import pipeline
from tests.low_programs import call_native, compiled, function_types, interpret, lowered, parsed

COUNTS = (1, 2, 3, 7)


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = mlc.get_num_threads()
    yield
    mlc.set_num_threads(before)


# -- the pool by itself -----------------------------------------------------------------------------------------------
PART = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class Pool:
    """A pool of a test's own, whose parts are Python functions of one iteration."""

    def __init__(self, count: int) -> None:
        self.library = threads.pool()
        self.set("threads", ctypes.c_int32, count)
        self._share = self.library.function("share", None, [PART, ctypes.c_void_p, ctypes.c_int64])

    def set(self, name: str, type: Any, value: int) -> None:
        type.from_address(self.library.address(name)).value = value

    def share(self, part: Callable[[int], Any], count: int) -> None:
        def each(_: Any, begin: int, end: int) -> None:
            for i in range(begin, end):
                part(i)
        self._share(PART(each), None, count)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("spin", [0, threads.SPIN_CYCLES])
def test_every_iteration_runs_once(count: int, spin: int) -> None:
    pool = Pool(count)
    pool.set("spin", ctypes.c_int64, spin)
    for n in (0, 1, 2, 5, 40, 1, 64):
        done: list[int] = []
        pool.share(done.append, n)
        assert sorted(done) == list(range(n))


def test_iterations_run_on_several_threads() -> None:
    pool, meeting = Pool(3), threading.Barrier(3, timeout=60)
    pool.share(lambda _: meeting.wait(), 3)                  # each waits for the two others


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_library_uses_no_more_threads_than_it_may(limit: int) -> None:
    mlc.set_num_threads(3)
    library = load(link(compile_object(f"@{abi.HOOK} = global ptr null", host(), 1), [abi.HOOK]))
    threads.attach(library, limit)
    hook = ctypes.c_void_p.from_address(library.address(abi.HOOK)).value
    if limit == 1:
        assert hook is None                                  # the code calls its parts by itself
        return
    meeting, seen = threading.Barrier(limit, timeout=60), set[int]()

    def part(_: Any, begin: int, end: int) -> None:
        if threading.get_ident() not in seen:
            seen.add(threading.get_ident())
            meeting.wait()

    ctypes.CFUNCTYPE(None, PART, ctypes.c_void_p, ctypes.c_int64)(hook or 0)(PART(part), None, 64)
    assert len(seen) == limit


def test_a_call_from_within_is_on_its_own() -> None:
    pool, seen = Pool(2), list[tuple[int, int]]()
    pool.share(lambda i: pool.share(lambda j: seen.append((i, j)), 3), 2)
    assert sorted(seen) == [(i, j) for i in range(2) for j in range(3)]


def test_a_call_beside_another_is_on_its_own() -> None:
    pool, inside, leave = Pool(2), threading.Event(), threading.Event()

    def stay(_: int) -> None:
        inside.set()
        leave.wait(60)

    first = threading.Thread(target=pool.share, args=(stay, 2))
    first.start()
    assert inside.wait(60)
    names = set[int]()
    pool.share(lambda _: names.add(threading.get_ident()), 10)
    leave.set()
    first.join()
    assert names == {threading.get_ident()}


def test_threads_take_no_signals() -> None:
    pool, meeting = Pool(2), threading.Barrier(2, timeout=60)
    blocked = dict[int, int]()

    def note(_: int) -> None:
        meeting.wait()
        status = Path(f"/proc/self/task/{threading.get_native_id()}/status").read_text(encoding="ascii")
        blocked[threading.get_native_id()] = int(status.split("SigBlk:")[1].split()[0], 16)

    pool.share(note, 2)
    mine = blocked.pop(threading.get_native_id())
    assert not mine & 1 << 1
    faults, library = (4, 5, 7, 8, 9, 11, 19), (32, 33)      # nobody can block 9 and 19
    assert [set(range(1, 65)) - {i for i in range(1, 65) if mask >> i - 1 & 1} for mask in blocked.values()] == [
        {*faults, *library}]


MODES = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define void @modes(ptr %env, i64 %begin, i64 %end) {
  %at = getelementptr i32, ptr %env, i64 %begin
  call void @llvm.x86.sse.stmxcsr(ptr %at)
  ret void
}
define void @under(ptr %share, ptr %env, i64 %count, i32 %modes) {
  %old = alloca i32
  %new = alloca i32
  store i32 %modes, ptr %new
  call void @llvm.x86.sse.stmxcsr(ptr %old)
  call void @llvm.x86.sse.ldmxcsr(ptr %new)
  call void %share(ptr @modes, ptr %env, i64 %count)
  call void @llvm.x86.sse.ldmxcsr(ptr %old)
  ret void
}
"""


def test_threads_round_as_the_caller_does() -> None:
    pool = Pool(4)
    library = load(link(compile_object(MODES, host(), 1), ["modes", "under"]))
    under = library.function("under", None, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32])
    for modes in (0x1F80, 0x9FC0, 0x7F80):                   # as usual; flushing to zero; rounding to zero
        found = np.zeros(400, np.uint32)
        under(pool.library.address("share"), found.ctypes.data, found.size, modes)
        assert set(found & 0xFFC0) == {modes & 0xFFC0}


# -- how many ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2", MAX_THREADS + 1])
def test_what_is_no_number_of_threads(count: Any) -> None:
    with pytest.raises(UserError, match=r"the number of threads is .*, expected an integer from 1 to 1024"):
        mlc.set_num_threads(count)


def count_in(**variables: str) -> str:
    """Number of threads of a new process, or its error."""
    done = subprocess.run([sys.executable, "-c", "import mlc; print(mlc.get_num_threads())"], capture_output=True,
                          text=True, env={**os.environ, **variables}, timeout=120)
    return (done.stdout or done.stderr).strip()


def test_the_environment_says_how_many() -> None:
    assert count_in(MLC_NUM_THREADS="3") == "3"
    assert count_in(MLC_NUM_THREADS="") == str(threads.processors())
    for wrong in ("0", "many", "99999"):
        assert "MLC_NUM_THREADS is " in count_in(MLC_NUM_THREADS=wrong)


@pytest.mark.parametrize(("limits", "expected"), [
    ({"": "max 100000"}, []), ({"": "300000 100000", "a/b": "150000 100000"}, [1, 3]), ({"a": "50000 100000"}, [0]),
    ({"a/b": "nonsense", "a": "400000 100000"}, [4])])
def test_quotas_of_control_groups(tmp_path: Path, limits: dict[str, str], expected: list[int]) -> None:
    for folder, text in limits.items():
        (tmp_path / "root" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / folder / "cpu.max").write_text(text)
    (tmp_path / "own").write_text("1:cpu:/x\n0::/a/b\n")
    assert threads._quotas(tmp_path / "own", tmp_path / "root") == expected
    assert threads._quotas(tmp_path / "none", tmp_path / "root") == []


# -- compiled code ----------------------------------------------------------------------------------------------------
PROGRAMS: dict[str, tuple[str, list[tuple[int, ...]]]] = {
    "chain": ("""
func.func @f(%x: tensor<777xf32>, %y: tensor<777xf32>) -> tensor<777xf32> {
  %0 = tensor.mul %x, %y : tensor<777xf32>
  %1 = tensor.exp %0 : tensor<777xf32>
  func.return %1 : tensor<777xf32>
}""", [(777,), (777,)]),
    "layer": ("""
func.func @f(%x: tensor<BxKxf32>, %w: tensor<KxNxf32>, %b: tensor<Nxf32>) -> tensor<BxNxf32> {
  %0 = tensor.dot_general %x, %w {batch = [], contract = [[1, 0]]}
      : (tensor<BxKxf32>, tensor<KxNxf32>) -> tensor<BxNxf32>
  %1 = tensor.add %0, %b : (tensor<BxNxf32>, tensor<Nxf32>) -> tensor<BxNxf32>
  func.return %1 : tensor<BxNxf32>
}""", [(37, 19), (19, 203), (203,)]),
    "rows": ("""
func.func @f(%x: tensor<BxNxf32>) -> tensor<BxNxf32> {
  %0 = tensor.softmax %x {axis = 1} : tensor<BxNxf32>
  func.return %0 : tensor<BxNxf32>
}""", [(53, 71)]),
}


def steps(level: str) -> list[Step]:
    """The passes down to a level, but that every block that can be is shared out, however small."""
    return [Step(s.transform, (("worth", 0),)) if s.transform is find_pass("parallelize") else s
            for s in pipeline.steps(level, host().machine)]


@cache
def shared(name: str) -> Entry:
    return build(Pipeline(steps("llvm")).run(parse_module(PROGRAMS[name][0]))).entry("f")


@cache
def arguments(name: str) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(1)
    return [rng.standard_normal(shape).astype(np.float32) for shape in PROGRAMS[name][1]]


@cache
def alone(name: str) -> bytes:
    """The bits that one thread computes."""
    mlc.set_num_threads(1)
    return shared(name).call(arguments(name))[0].tobytes()


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_bits_on_any_number_of_threads(name: str) -> None:
    assert shared(name).library.exports(abi.HOOK)
    want = alone(name)
    for count in COUNTS:
        mlc.set_num_threads(count)
        for _ in range(100):
            assert shared(name).call(arguments(name))[0].tobytes() == want, count


@pytest.mark.parametrize(("b", "k", "n"), [(0, 3, 5), (4, 3, 0), (0, 0, 0), (2, 0, 3), (1, 1, 1), (1, 2, 64)])
def test_sizes_that_leave_nothing_to_share(b: int, k: int, n: int) -> None:
    mlc.set_num_threads(3)
    x, w, bias = np.ones((b, k), np.float32), np.ones((k, n), np.float32), np.ones(n, np.float32)
    np.testing.assert_array_equal(shared("layer").call([x, w, bias])[0], x @ w + bias)
    rows = np.ones((b, n), np.float32)
    assert shared("rows").call([rows])[0].shape == (b, n)


@pytest.mark.parametrize("name", ["chain", "rows"])
def test_the_order_of_parts_does_not_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = Pipeline(steps("low")).run(parse_module(PROGRAMS[name][0]))
    assert any(op.name == "scf.parallel" for op in module.walk())
    forwards = run_function(module, "f", arguments(name))[0]

    def backwards(*ranges: range) -> list[tuple[int, ...]]:
        return [*itertools.product(*ranges)][::-1]

    monkeypatch.setattr(scf, "itertools", SimpleNamespace(product=backwards))
    assert run_function(module, "f", arguments(name))[0].tobytes() == forwards.tobytes() == alone(name)


@pytest.mark.parametrize("length", [1, 4, 7, 59])
def test_parts_begin_anywhere_in_three_dimensions(length: int) -> None:
    text = """
func.func @f(%t: memref<3x4x9xindex>, %zero: index, %one: index, %two: index, %m: index, %n: index, %k: index) {
  scf.parallel (%i, %j, %l) = (%zero, %one, %zero) to (%m, %n, %k) step (%one, %one, %two) {
    %a = arith.muli %i, %n : index
    %b = arith.addi %a, %j : index
    %c = arith.muli %b, %k : index
    %d = arith.addi %c, %l : index
    memref.store %d, %t[%i, %j, %l] : memref<3x4x9xindex>
    scf.reduce
  }
  func.return
}"""
    module = parsed(text)
    library = compiled(lowered(module), ["f", abi.HOOK], host())

    def in_parts(part: Any, env: int, count: int) -> None:
        for begin in range(0, count, length):
            part(env, begin, min(begin + length, count))

    hook = ctypes.CFUNCTYPE(None, PART, ctypes.c_void_p, ctypes.c_int64)(in_parts)
    ctypes.c_void_p.from_address(library.address(abi.HOOK)).value = ctypes.cast(hook, ctypes.c_void_p).value
    found, wanted = np.zeros((2, 3, 4, 9), np.int64)
    arguments = (0, 1, 2, 3, 4, 9)
    call_native(library, "f", function_types(module, "f"), (found, *arguments))
    interpret(module, "f", [wanted, *arguments])
    assert found.tolist() == wanted.tolist()


def test_a_row_alone_and_among_others() -> None:
    f = mlc.compile(lambda x, w: mlc.softmax(mlc.tanh(x @ w), dim=1))
    rng = np.random.default_rng(2)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((64, 300), (300, 500)))
    mlc.set_num_threads(3)
    together = np.asarray(f(x, w))
    for i in range(64):
        assert np.asarray(f(x[i: i + 1], w)).tobytes() == together[i].tobytes()


def hammer(seconds: float, count: int, failures: list[str]) -> list[threading.Thread]:
    """Threads of Python that call compiled code for a while and note wrong results."""
    stop = threading.Event()
    threading.Timer(seconds, stop.set).start()

    def work(k: int) -> None:
        names = list(PROGRAMS)
        while not stop.is_set():
            name = names[k % len(names)]
            if shared(name).call(arguments(name))[0].tobytes() != alone(name):
                failures.append(name)
            k += 1

    running = [threading.Thread(target=work, args=(k,)) for k in range(count)]
    for thread in running:
        thread.start()
    return running


def test_eight_threads_of_python_call_at_once() -> None:
    failures = list[str]()
    for name in PROGRAMS:
        alone(name)
    mlc.set_num_threads(3)
    for thread in hammer(1.0, 8, failures):
        thread.join(60)
        assert not thread.is_alive()
    assert not failures


def test_the_number_changes_while_code_runs() -> None:
    failures = list[str]()
    for name in PROGRAMS:
        alone(name)
    running = hammer(1.0, 2, failures)
    while any(thread.is_alive() for thread in running):
        for count in (1, 4, 2, 7):
            mlc.set_num_threads(count)
            running[0].join(0.01)
    assert not failures


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_makes_its_own_threads() -> None:
    want = alone("layer")
    mlc.set_num_threads(3)
    for _ in range(5):
        assert shared("layer").call(arguments("layer"))[0].tobytes() == want
        child = os.fork()
        if child == 0:
            same = [shared("layer").call(arguments("layer"))[0].tobytes() == want for _ in range(20)]
            os._exit(0 if all(same) and len(os.listdir("/proc/self/task")) == 3 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_error_leaves_the_pool_usable() -> None:
    f = mlc.compile(lambda x, i: mlc.exp(x * 2)[i])
    x = np.linspace(-1, 1, 200_000, dtype=np.float32)
    mlc.set_num_threads(2)
    for _ in range(3):
        with pytest.raises(UserIndexError):
            f(x, np.array([1, 300_000]))
        assert np.asarray(f(x, np.array([5, 7]))).shape == (2,)
    assert shared("chain").call(arguments("chain"))[0].tobytes() == alone("chain")


OVERSUBSCRIBED = """
import numpy as np, mlc
f = mlc.compile(lambda x: mlc.tanh(x * 2))
x = np.linspace(-1, 1, 300_000, dtype=np.float32)
results = {np.asarray(f(x)).tobytes() for _ in range(300)}
assert len(results) == 1
print(mlc.get_num_threads())
"""


@pytest.mark.parametrize("count", [4, 32])
def test_more_threads_than_processors(count: int) -> None:
    """Neither a hang at the end of the process nor one on the way; alone it takes a tenth of a second."""
    done = subprocess.run([sys.executable, "-c", OVERSUBSCRIBED], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "MLC_NUM_THREADS": str(count * threads.processors())})
    assert done.stdout.split() == [str(count * threads.processors())], done.stderr


def test_nothing_starts_before_it_is_wanted() -> None:
    code = ("import os, numpy as np, mlc\n"
            "x = np.ones(10, np.float32)\n"
            "mlc.compile(lambda x: x + 1)(x)\n"
            "print(len(os.listdir('/proc/self/task')), mlc.backends.cpu.threads._pool)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "MLC_NUM_THREADS": "4"})
    assert done.stdout.split()[1:] == ["None"], done.stderr


def test_a_library_without_a_pool_runs_alone() -> None:
    """Null in the hook: one call does it all."""
    entry = shared("chain")
    hook = ctypes.c_void_p.from_address(entry.library.address(abi.HOOK))
    mlc.set_num_threads(2)
    before, hook.value = hook.value, None
    assert before and entry.call(arguments("chain"))[0].tobytes() == alone("chain")
    hook.value = before


def test_a_pass_that_another_thread_imports_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it is executed, a module is in sys.modules without its names."""
    whole = find_pass("cse")
    monkeypatch.setitem(sys.modules, "mlc.passes.cse", ModuleType("mlc.passes.cse"))
    monkeypatch.setattr(importlib, "import_module", lambda path: {"mlc.passes.cse": SimpleNamespace(PASS=whole)}[path])
    assert find_pass("cse") is whole
