"""The run time of GPUs on a device that is none: programs, arguments, memory, and what the cache keeps."""
from __future__ import annotations

import gc
import re
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from mlc.api import run_module
from mlc.backends.cpu.targets import host
from mlc.backends.cuda import devices, image, launch_plan
from mlc.backends.cuda.device import Launch
from mlc.backends.cuda.executable import Entry, Executable
from mlc.backends.cuda.memory import Allocator, DeviceMemory, size_class
from mlc.backends.cuda.ptx import assemble
from mlc.backends.cuda.targets import TARGETS as GPUS
from mlc.backends.executable import build
from mlc.dialects import gpu
from mlc.dialects.builtin import Module
from mlc.ir.diag import BackendError, UserError, UserIndexError, UserTypeError
from mlc.ir.machine import GPU
from mlc.ir.parser import parse_module
from mlc.ir.types import bf16, to_numpy
from mlc.passes import pipeline
from tests.corpus import PROGRAMS
from tests.fake_device import FakeDevice, FakeGraph
from tests.public_case import thinned

Array = np.ndarray[Any, Any]
TARGET = GPUS["cuda:sm_90"]
TAKE = """func.func @main(%x: tensor<5xf32>, %i: tensor<Nxi64>) -> tensor<Nxf32> {
  %0 = tensor.take %x, %i {axis = 0} : (tensor<5xf32>, tensor<Nxi64>) -> tensor<Nxf32>
  func.return %0 : tensor<Nxf32>
}"""
DONATED = """func.func @main(%x: tensor<Nxf32>, %y: tensor<Nxf32>) -> tensor<Nxf32> attributes {donate = [0]} {
  %0 = tensor.add %x, %y : (tensor<Nxf32>, tensor<Nxf32>) -> tensor<Nxf32>
  func.return %0 : tensor<Nxf32>
}"""


def entry(module: Module | str, device: Any = None) -> Entry:
    """The function @main of a program, loaded on a fake device; what it does not write shows."""
    memory = DeviceMemory(device or FakeDevice())
    made = parse_module(module, "m.mlir") if isinstance(module, str) else module
    out = Executable(image.compile_image(made, TARGET, memory.device.assemble), memory).entry("main")
    out.poison = True
    return out


def fake(of: Entry) -> FakeDevice:
    assert isinstance(of.memory.device, FakeDevice)
    return of.memory.device


def run(f: Entry, *args: Any) -> list[Array]:
    return [r.numpy() for r in f.call(args)]


@cache
def native(name: str) -> Callable[..., list[Array]]:
    """A program on the CPU."""
    module = pipeline.lower(PROGRAMS[name]()[0], "llvm", host().machine)
    made = build(module).entry("main")
    return lambda *args: made.call(args)


def same(found: list[Array], wanted: list[Array]) -> None:
    assert [(a.dtype, a.shape, a.tobytes()) for a in found] == [(b.dtype, b.shape, b.tobytes()) for b in wanted]


# -- programs ---------------------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("one_graph")
@pytest.mark.parametrize("name", thinned(PROGRAMS, 2))
def test_programs_give_the_bits_of_the_cpu(name: str) -> None:
    module, args = PROGRAMS[name]()
    wanted, f = native(name)(*args), entry(module)
    same(run(f, *args), wanted)
    f.program.graphs = True
    same(run(f, *args), wanted)
    assert f.calls == 2
    assert (f.program.interpretations, fake(f).graphs, fake(f).replays) == (
        (2, 0, 0) if name == "loop_while_something_is_large" else (1, 1, 1))


@pytest.mark.usefixtures("one_graph")
@pytest.mark.parametrize("name", ["gathers", "loop_that_carries_two", "many_results_in_one_kernel"])
@pytest.mark.parametrize("graphs", [False, True])
def test_addresses_change_from_call_to_call(name: str, graphs: bool) -> None:
    module, args = PROGRAMS[name]()
    wanted, f, held = native(name)(*args), entry(module), list[Any]()
    f.program.graphs = graphs
    for _ in range(3):
        held += [f.memory.array(a) for a in args], f.memory.storage(f.program.arena_bytes("main", [7] * len(
            f.interface.symbols)))
        same(run(f, *held[-2]), wanted)
    assert f.program.interpretations == 1 and (fake(f).graphs, fake(f).replays) == ((1, 3) if graphs else (0, 0))
    assert not graphs or fake(f).updates


@pytest.mark.parametrize("name", ["symbolic_rows_and_columns", "loop_that_carries_two"])
def test_sizes_are_interpreted_once(name: str) -> None:
    module, args = PROGRAMS[name]()
    f = entry(module)
    for n in (7, 1, 60, 7, 1):
        other = [np.resize(a, (n, *a.shape[1:])) if a.shape and a.shape[0] == 7 else a for a in args]
        same(run(f, *other), native(name)(*other))
    assert f.program.interpretations == 3


def test_nothing_is_launched_for_nothing() -> None:
    f = entry(PROGRAMS["symbolic_batch"]()[0])
    out, = run(f, np.zeros((0, 40), "f4"), np.zeros(40, "f4"))
    assert out.shape == (0, 40) and not fake(f).launches


def test_a_loop_that_ends_by_what_it_computes_waits_for_it() -> None:
    module, (x, n) = PROGRAMS["loop_while_something_is_large"]()
    f = entry(module)
    for factor in (1, 100, 1):
        same(run(f, x * np.float32(factor), n), native("loop_while_something_is_large")(x * np.float32(factor), n))
    assert f.program.interpretations == 3 and fake(f).downloads > 6


@pytest.mark.usefixtures("one_graph")
def test_a_graph_that_could_not_be_changed_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of its steps have the addresses of the failed call, the others those before."""
    module, args = PROGRAMS["many_results_in_one_kernel"]()
    f, wanted = entry(module), native("many_results_in_one_kernel")(*args)
    f.program.graphs = True
    same(run(f, *args), wanted)
    held = [f.memory.array(a) for a in args]
    with monkeypatch.context() as patch:
        patch.setattr(FakeGraph, "update", lambda graph, number: (_ for _ in ()).throw(BackendError("no memory")))
        with pytest.raises(BackendError, match="no memory"):
            f.call(held)
    same(run(f, *held), wanted)


def test_a_loop_of_calls_changes_no_graph() -> None:
    """The memory of the last result but one is that of the next, so the addresses are those of that call."""
    module, args = PROGRAMS["loop_that_carries_two"]()
    f, wanted = entry(module), native("loop_that_carries_two")(*args)
    f.poison, f.program.graphs = False, True
    held = [f.memory.array(a) for a in args]
    for _ in range(9):
        found = f.call(held)
        same([x.numpy() for x in found], wanted)
    assert fake(f).graphs <= 3 and fake(f).replays == 9 and not fake(f).updates
    kept = [f.call(held) for _ in range(9)]                # each in memory of its own
    assert len({x.address for call in kept for x in call}) == 9 * len(wanted)
    assert fake(f).graphs == launch_plan.MOST_GRAPHS and fake(f).replays == 18 and fake(f).updates
    for found in kept:
        same([x.numpy() for x in found], wanted)


def test_a_few_launches_are_no_graph() -> None:
    module, args = PROGRAMS["elementwise_chain"]()
    f = entry(module)
    f.program.graphs = True
    same(run(f, *args), native("elementwise_chain")(*args))
    assert (fake(f).graphs, fake(f).replays, len(fake(f).launches)) == (0, 0, 1)


@pytest.mark.parametrize("graphs", [False, True])
def test_calls_with_other_addresses_are_planned(graphs: bool) -> None:
    """All else is checked of them, too."""
    f = entry(DONATED)
    f.poison, f.program.graphs = False, graphs
    y = f.memory.array(np.ones(5, "f4"))
    for _ in range(3):
        x = f.memory.array(np.arange(5, dtype="f4"))
        found, = f.call([x, y])
        assert found.storage is x.storage and found.numpy().tolist() == [1, 2, 3, 4, 5]
    assert [*f.planned] == [((5,), (5,))] and f.calls == 3
    with pytest.raises(UserError, match=r"MLC0329.*argument 0"):
        f.call([y, y])
    x.storage.writable = False
    with pytest.raises(UserError, match="MLC0326"):
        f.call([x, y])
    with pytest.raises(UserTypeError, match=r"MLC0325.*int32"):
        f.call([f.memory.array(np.zeros(5, "i4")), y])
    with pytest.raises(UserError, match="MLC0339"):
        f.call([DeviceMemory(FakeDevice(1)).array(np.zeros(5, "f4")), y])
    with pytest.raises(UserError, match=r"MLC0323.*N = 5"):
        f.call([f.memory.array(np.zeros(5, "f4")), f.memory.array(np.zeros(6, "f4"))])
    z = f.memory.array(np.zeros(6, "f4"))
    assert f.call([z, f.memory.array(np.ones(6, "f4"))])[0].numpy().tolist() == [1] * 6 and len(f.planned) == 2


def test_a_planned_call_that_fails_leaves_its_error_to_whoever_waits() -> None:
    f = entry(TAKE)
    f.poison = False
    f.call([np.zeros(5, "f4"), np.zeros(3, np.int64)])
    assert f.planned
    result, = f.call([np.zeros(5, "f4"), np.array([0, 9, 0])])
    with pytest.raises(UserIndexError, match="MLC0340"):
        result.numpy()


def test_a_launch_asks_for_much_shared_memory() -> None:
    f = entry("""func.func @main(%x: tensor<1024x16xbf16>, %y: tensor<16x1152xbf16>) -> tensor<1024x1152xbf16> {
      %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]}
        : (tensor<1024x16xbf16>, tensor<16x1152xbf16>) -> tensor<1024x1152xbf16>
      func.return %0 : tensor<1024x1152xbf16>
    }""")
    x, y = (np.random.default_rng(0).integers(-9, 9, s).astype(to_numpy(bf16)) for s in ((1024, 16), (16, 1152)))
    found, = run(f, x, y)
    assert (found == (x.astype("f4") @ y.astype("f4")).astype(found.dtype)).all()
    plan, = f.program._plans.values()
    assert any(isinstance(step, Launch) and step.shared > 48 << 10 for step in plan.steps)


def test_a_donated_array_becomes_the_result() -> None:
    f = entry(DONATED)
    x = f.memory.array(np.arange(5, dtype="f4"))
    y, = f.call([x, np.ones(5, "f4")])
    assert y.address == x.address and y.storage is x.storage and y.numpy().tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(UserError, match=r"MLC0329.*argument 0"):
        f.call([y, y])


def test_an_index_out_of_range_is_reported_as_on_a_cpu() -> None:
    f, i = entry(TAKE), np.zeros(300, np.int64)
    assert run(f, np.arange(5, dtype="f4"), i + 3)[0].tolist() == [3] * 300
    i[[290, 17]] = 5
    with pytest.raises(UserIndexError) as caught:
        f.call([np.zeros(5, "f4"), i])
    with pytest.raises(UserIndexError) as wanted:
        run_module(parse_module(TAKE, "m.mlir"), "main", [np.zeros(5, "f4"), i])
    assert str(caught.value) == str(wanted.value) and "m.mlir:2" in str(caught.value)


@pytest.mark.parametrize("args, error, message", [
    (lambda p: [np.zeros(3, "f4")], UserTypeError, "MLC0321.*2 arguments, got 1"),
    (lambda p: [np.zeros(3, "f4"), [1, 2, 3]], UserTypeError, "MLC0324.*argument 1 is a list"),
    (lambda p: [np.zeros(3, "f8"), np.zeros(3, "f4")], UserTypeError, "MLC0325.*argument 0 has dtype float64"),
    (lambda p: [p.array(np.zeros(3, "i4")), np.zeros(3, "f4")], UserTypeError, "MLC0325.*argument 0 has dtype int32"),
    (lambda p: [np.zeros((3, 1), "f4"), np.zeros(3, "f4")], UserTypeError, "MLC0322.*2 dimensions"),
    (lambda p: [np.zeros(3, "f4"), p.array(np.zeros(4, "f4"))], UserError, "MLC0323.*argument 1 has size 4.*N = 3"),
    (lambda p: [DeviceMemory(FakeDevice(1)).array(np.zeros(3, "f4")), np.zeros(3, "f4")], UserError,
     "MLC0339.*argument 0 is on cuda:1"),
])
def test_arguments_that_do_not_fit(args: Callable[[DeviceMemory], list[Any]], error: type[Exception],
                                   message: str) -> None:
    f = entry(DONATED)
    with pytest.raises(error, match=message):
        f.call(args(f.memory))
    assert not fake(f).launches


def test_arguments_are_taken_as_they_lie() -> None:
    f, x = entry(DONATED), np.arange(12, dtype=">f4")
    assert run(f, x[::2], x[::-2])[0].tolist() == [11, 11, 11, 11, 11, 11]


def test_code_for_newer_devices_is_refused() -> None:
    old = DeviceMemory(FakeDevice(architecture=80))
    made = image.compile_image(parse_module(DONATED, "m.mlir"), TARGET, old.device.assemble)
    with pytest.raises(BackendError, match=r"MLC0588.*sm_80.*cuda:sm_90"):
        Executable(made, old)
    assert [devices.target_for(FakeDevice(architecture=n)).cpu for n in (75, 87, 90, 103, 130)] == [
        "sm_75", "sm_86", "sm_90a", "sm_100", "sm_120"]
    with pytest.raises(BackendError, match=r"MLC0588.*compute capability 7\.0"):
        devices.target_for(FakeDevice(architecture=70))


def test_a_grid_beyond_the_device_is_refused() -> None:
    f = entry(DONATED)
    with pytest.raises(BackendError, match=r"MLC0589.*has at most \[2147483647"):
        f.program.run("main", [1 << 50], [0] * 4, [(1 << 50,), (1 << 50,), (0,), (1,)])


# -- memory -----------------------------------------------------------------------------------------------------------
def test_size_classes_waste_little() -> None:
    sizes = [*range(1, 5000), *(int(1.07 ** k) for k in range(120, 400)), (1 << 30) + 1]
    for n in sizes:
        assert n <= size_class(n) <= max(512, n + n // 7 + 512) and size_class(n) % 512 == 0
        assert size_class(size_class(n)) == size_class(n) <= size_class(n + 1)
    assert len({size_class(n) for n in range(1 << 20, 1 << 21, 999)}) <= 10


def test_memory_is_used_again() -> None:
    memory = DeviceMemory(FakeDevice())
    x = memory.empty((1000,), np.dtype("f4"))
    first = x.address
    y = memory.empty((1000,), np.dtype("f4"))
    assert y.address != first and memory.allocator.in_use() == 2 * 4096
    del x
    gc.collect()
    assert memory.empty((990,), np.dtype("f4")).address == first
    known = memory.allocator.statistics
    assert (known.held, known.peak, known.requests, known.allocations) == (8192, 8192, 3, 2)
    other = memory.allocator.allocate(4000, stream=99)
    assert other.address not in (first, y.address)         # that of one stream is not for another


def test_memory_that_is_kept_goes_before_there_is_none() -> None:
    device = FakeDevice(capacity=10_000)
    allocator = Allocator(device)
    blocks = [allocator.allocate(4096), allocator.allocate(4096)]
    with pytest.raises(BackendError, match=r"MLC0585.*no 4096 bytes left: of 10000, 1808 are free.*holds 8192"):
        allocator.allocate(4000)
    for block in blocks:
        allocator.give_back(block)
    assert allocator.allocate(8000).size == 8192 and device.taken == 8192 and allocator.statistics.held == 8192
    allocator.release()
    assert device.taken == 8192


def test_memory_that_others_use_is_waited_for() -> None:
    device = FakeDevice()
    allocator = Allocator(device)
    block = allocator.allocate(100)
    allocator.give_back(block)
    assert allocator.allocate(100) is block and device.waits == 0
    block.shared = True
    allocator.give_back(block)
    assert allocator.allocate(100) is block and device.waits == 1 and not block.shared


@pytest.mark.parametrize("planned", [False, True])
def test_several_threads_call_one_function(planned: bool) -> None:
    """Each with arguments of its own, in memory of its own."""
    f, found = entry(PROGRAMS["symbolic_rows_and_columns"]()[0]), dict[int, list[Array]]()
    f.poison = not planned

    def work(i: int) -> None:
        args = [np.full((7, 37), i, "f4"), np.full(37, 2, "f4")]
        held = [f.memory.array(a) for a in args] if planned else args
        for _ in range(5):
            found[i] = run(f, *held)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert all((found[i][0] == i + 2).all() and (found[i][1] == i * 74).all() for i in range(4))
    assert f.program.interpretations <= 4


# -- code -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["loop_that_carries_two", "gathers", "narrow_floats", "integers"])
def test_kernels_take_what_they_are_passed(name: str) -> None:
    """PTX has a parameter for each word that a launch passes, none of them wider."""
    module = pipeline.lower(PROGRAMS[name]()[0], "low", machine=GPU)
    words = {str(k.sym_name): FakeDevice().words(k) for k in module.walk() if isinstance(k, gpu.Func)}
    text = assemble(module, TARGET).decode()
    entries = dict(re.findall(r"\.visible \.entry (\w+)\((.*?)\)", text, re.DOTALL))
    assert {name: parameters.count(".param") for name, parameters in entries.items()} == words
    assert not re.search(r"\.param \.(v\d|align)|\.param .*\[", "".join(entries.values()))


# -- what the cache keeps ---------------------------------------------------------------------------------------------
def test_an_image_comes_back_from_the_cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("mlc.backends.cache.changed_since_start", lambda: False)
    memory = DeviceMemory(FakeDevice())
    for name in ("constants", "gathers", "symbolic_rows_and_columns"):
        module, args = PROGRAMS[name]()
        made = image.compile_image(module, TARGET, memory.device.assemble)
        key = f"{len(name):064x}"
        image.store(key, made)
        found = image.lookup(key)
        assert found is not None and (found.code, found.host, found.interfaces) == (
            made.code, made.host, made.interfaces)
        same(run(Executable(found, memory).entry("main"), *args), run(Executable(made, memory).entry("main"), *args))
    assert image.lookup("0" * 64) is None
