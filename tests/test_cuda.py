"""The run time of GPUs on a device that is none: programs, memory, errors, the driver's calls, and what users see."""
from __future__ import annotations

import copy
import gc
import pickle
import re
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import mlc
from mlc import nn
from mlc.api import run_module
from mlc.backends.cuda import device as devices
from mlc.backends.cuda import dlpack, driver, image
from mlc.backends.cuda.device import Launch
from mlc.backends.cuda.executable import Entry, Executable
from mlc.backends.cuda.memory import Allocator, Place, size_class
from mlc.backends.cuda.ptx import assemble
from mlc.backends.executable import build
from mlc.backends.target import GPUS, host
from mlc.dialects import gpu
from mlc.dialects.builtin import Module
from mlc.frontend import eager
from mlc.ir.diag import BackendError, UserError, UserIndexError, UserTypeError
from mlc.ir.parser import parse_module
from mlc.passes import pipeline
from mlc.tools import gpu_check
from tests.corpus import PROGRAMS
from tests.fake_cuda import Bindings
from tests.fake_device import FakeDevice

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
    where = Place(device or FakeDevice())
    made = parse_module(module, "m.mlir") if isinstance(module, str) else module
    out = Executable(image.compile_image(made, TARGET, where.device.assemble), where).entry("main")
    out.poison = True
    return out


def fake(of: Entry) -> FakeDevice:
    assert isinstance(of.place.device, FakeDevice)
    return of.place.device


def run(f: Entry, *args: Any) -> list[Array]:
    return [r.numpy() for r in f.call(args)]


@cache
def native(name: str) -> Callable[..., list[Array]]:
    """A program on the CPU."""
    module = pipeline.lower(PROGRAMS[name]()[0], "llvm", host().vector_bits)
    made = build(module).entry("main")
    return lambda *args: made.call(args)


def same(found: list[Array], wanted: list[Array]) -> None:
    assert [(a.dtype, a.shape, a.tobytes()) for a in found] == [(b.dtype, b.shape, b.tobytes()) for b in wanted]


# -- programs ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_the_bits_of_the_cpu(name: str) -> None:
    module, args = PROGRAMS[name]()
    wanted, f = native(name)(*args), entry(module)
    same(run(f, *args), wanted)
    f.program.graphs = True
    same(run(f, *args), wanted)
    assert f.calls == 2
    assert (f.program.interpretations, fake(f).graphs, fake(f).replays) == (
        (2, 0, 0) if name == "loop_while_something_is_large" else (1, 1, 1))


@pytest.mark.parametrize("name", ["gathers", "loop_that_carries_two", "many_results_in_one_kernel"])
@pytest.mark.parametrize("graphs", [False, True])
def test_addresses_change_from_call_to_call(name: str, graphs: bool) -> None:
    module, args = PROGRAMS[name]()
    wanted, f, held = native(name)(*args), entry(module), list[Any]()
    f.program.graphs = graphs
    for _ in range(3):
        held += [f.place.array(a) for a in args], f.place.storage(f.program.arena_bytes("main", [7] * len(
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


def test_a_donated_array_becomes_the_result() -> None:
    f = entry(DONATED)
    x = f.place.array(np.arange(5, dtype="f4"))
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
    (lambda p: [Place(FakeDevice(1)).array(np.zeros(3, "f4")), np.zeros(3, "f4")], UserError,
     "MLC0339.*argument 0 is on cuda:1"),
])
def test_arguments_that_do_not_fit(args: Callable[[Place], list[Any]], error: type[Exception], message: str) -> None:
    f = entry(DONATED)
    with pytest.raises(error, match=message):
        f.call(args(f.place))
    assert not fake(f).launches


def test_arguments_are_taken_as_they_lie() -> None:
    f, x = entry(DONATED), np.arange(12, dtype=">f4")
    assert run(f, x[::2], x[::-2])[0].tolist() == [11, 11, 11, 11, 11, 11]


def test_code_for_newer_devices_is_refused() -> None:
    old = Place(FakeDevice(architecture=80))
    made = image.compile_image(parse_module(DONATED, "m.mlir"), TARGET, old.device.assemble)
    with pytest.raises(BackendError, match=r"MLC0588.*sm_80.*cuda:sm_90"):
        Executable(made, old)
    assert [devices.target_for(FakeDevice(architecture=n)).cpu for n in (75, 87, 90, 103, 130)] == [
        "sm_75", "sm_86", "sm_90", "sm_100", "sm_120"]
    with pytest.raises(BackendError, match=r"MLC0588.*compute capability 7\.0"):
        devices.target_for(FakeDevice(architecture=70))


def test_a_grid_beyond_the_device_is_refused() -> None:
    f = entry(DONATED)
    with pytest.raises(BackendError, match=r"MLC0589.*has \[2147483647"):
        f.program.run("main", [1 << 50], [0] * 4, [(1 << 50,), (1 << 50,), (0,), (1,)])


# -- memory -----------------------------------------------------------------------------------------------------------
def test_size_classes_waste_little() -> None:
    sizes = [*range(1, 5000), *(int(1.07 ** k) for k in range(120, 400)), (1 << 30) + 1]
    for n in sizes:
        assert n <= size_class(n) <= max(512, n + n // 7 + 512) and size_class(n) % 512 == 0
        assert size_class(size_class(n)) == size_class(n) <= size_class(n + 1)
    assert len({size_class(n) for n in range(1 << 20, 1 << 21, 999)}) <= 10


def test_memory_is_used_again() -> None:
    where = Place(FakeDevice())
    x = where.empty((1000,), np.dtype("f4"))
    first = x.address
    y = where.empty((1000,), np.dtype("f4"))
    assert y.address != first and where.allocator.in_use() == 2 * 4096
    del x
    gc.collect()
    assert where.empty((990,), np.dtype("f4")).address == first
    known = where.allocator.statistics
    assert (known.held, known.peak, known.requests, known.allocations) == (8192, 8192, 3, 2)
    other = where.allocator.allocate(4000, stream=99)
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


def test_several_threads_call_one_function() -> None:
    """Each with arguments of its own, in memory of its own."""
    f, found = entry(PROGRAMS["symbolic_rows_and_columns"]()[0]), dict[int, list[Array]]()

    def work(i: int) -> None:
        for _ in range(5):
            found[i] = run(f, np.full((7, 37), i, "f4"), np.full(37, 2, "f4"))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert all((found[i][0] == i + 2).all() and (found[i][1] == i * 74).all() for i in range(4))
    assert f.program.interpretations <= 4


# -- code -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["loop_that_carries_two", "gathers", "narrow_floats", "integers"])
def test_kernels_take_what_they_are_passed(name: str) -> None:
    """PTX has a parameter for each word that a launch passes, none of them wider."""
    module = pipeline.lower(PROGRAMS[name]()[0], "low", machine="gpu")
    words = {str(k.sym_name): FakeDevice().words(k) for k in module.walk() if isinstance(k, gpu.Func)}
    text = assemble(module, TARGET).decode()
    entries = dict(re.findall(r"\.visible \.entry (\w+)\((.*?)\)", text, re.DOTALL))
    assert {name: parameters.count(".param") for name, parameters in entries.items()} == words
    assert not re.search(r"\.param \.(v\d|align)|\.param .*\[", "".join(entries.values()))


# -- what the cache keeps ---------------------------------------------------------------------------------------------
def test_an_image_comes_back_from_the_cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("mlc.backends.cache.changed_since_start", lambda: False)
    where = Place(FakeDevice())
    for name in ("constants", "gathers", "symbolic_rows_and_columns"):
        module, args = PROGRAMS[name]()
        made = image.compile_image(module, TARGET, where.device.assemble)
        key = f"{len(name):064x}"
        image.keep(key, made)
        found = image.recall(key)
        assert found is not None and (found.code, found.host, found.interfaces) == (
            made.code, made.host, made.interfaces)
        same(run(Executable(found, where).entry("main"), *args), run(Executable(made, where).entry("main"), *args))
    assert image.recall("0" * 64) is None


# -- the driver -------------------------------------------------------------------------------------------------------
class Emulated(driver.Driver):
    """The driver's calls over a fake device, which loads text of the gpu dialect."""

    def assemble(self, module: Any, target: Any) -> bytes:
        return FakeDevice().assemble(module, target)


def emulated(cu: Bindings) -> Emulated:
    return Emulated(cu, 0)


def test_programs_through_the_driver() -> None:
    cu = Bindings()
    device = emulated(cu)
    assert (device.name, device.architecture, device.stream) == ("a fake GPU", 90, 7)
    for name in ("symbolic_rows_and_columns", "loop_that_carries_two", "loop_while_something_is_large"):
        module, args = PROGRAMS[name]()
        wanted, f = native(name)(*args), entry(module, device)
        held = []
        for graphs in (False, True, True):
            f.program.graphs = graphs
            same(run(f, *args), wanted)
            held.append(f.place.storage(f.program.arena_bytes("main", [7] * len(f.interface.symbols))))
    assert {"cuLaunchKernel", "cuMemsetD32Async", "cuGraphLaunch", "cuGraphExecMemsetNodeSetParams"} <= {*cu.calls}
    assert device.attributes(None) == {"registers": 40, "local": 30, "shared": 10}


def test_copies_longer_than_pinned_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "CHUNK", 1 << 12)
    where = Place(emulated(Bindings()))
    for n in (1, 1000, 4096, 4097, 50_000):
        x = np.random.default_rng(n).integers(0, 256, n).astype(np.uint8)
        y = where.array(x)
        assert (y.numpy() == x).all() and (y.copy().numpy() == x).all()


def test_shared_memory_beyond_the_usual_is_asked_for() -> None:
    cu = Bindings()
    device = emulated(cu)
    step = Launch("kernel", "k", (1, 1, 1), (32, 1, 1), 100_000, 0)
    device.prepare(step)
    assert cu.shared == [100_000]
    with pytest.raises(BackendError, match=r"MLC0588.*k needs 300000 bytes of shared memory.*200000"):
        device.prepare(Launch("kernel", "k", (1, 1, 1), (32, 1, 1), 300_000, 0))


@pytest.mark.parametrize("call, status, code", [
    ("cuMemAlloc", 1, "MLC0583.*allocating 512 bytes: CUDA_ERROR_INVALID_VALUE .what the driver says"),
    ("cuLaunchKernel", 1, r"MLC0583.*launching add with \(1, 1, 1\) blocks"),
    ("cuLaunchKernel", 700, "MLC0587.*CUDA_ERROR_ILLEGAL_ADDRESS.*must start anew"),
    ("cuMemcpyHtoDAsync", 1, "MLC0583.*copying to the device"),
    ("cuStreamSynchronize", 700, "MLC0587.*a kernel went wrong"),
    ("cuModuleLoadDataEx", 2, "MLC0583.*CUDA_ERROR_OUT_OF_MEMORY"),
])
def test_a_call_that_fails(call: str, status: int, code: str) -> None:
    cu = Bindings()
    device = emulated(cu)
    cu.fail[call] = status
    with pytest.raises(BackendError, match=f"(?s){code}"):
        run(entry(DONATED, device), np.zeros(4, "f4"), np.zeros(4, "f4"))


def test_ptx_that_is_refused() -> None:
    with pytest.raises(BackendError, match=r"(?s)MLC0584.*CUDA_ERROR_INVALID_PTX.*input, line 3; fatal"):
        emulated(Bindings()).load(b".version 8.0")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], None]]:
    """Have some object in place of cuda-python's module of the driver."""
    def install(cu: Any) -> None:
        package = type(sys)("cuda")
        package.bindings = type(sys)("cuda.bindings")  # type: ignore[attr-defined]
        if cu is not None:
            package.bindings.driver = cu
        for name, module in (("cuda", package), ("cuda.bindings", package.bindings)):
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.delitem(sys.modules, "cuda.bindings.driver", raising=False)
    yield install
    devices.substitute(None)


def test_devices_that_are_there(installed: Callable[[Any], None]) -> None:
    installed(Bindings(count=2))
    assert devices.count() == 2 and devices.device(1) is devices.device(1)
    with pytest.raises(BackendError, match=r"MLC0582.*no device cuda:2, of 2"):
        devices.device(2)


def test_a_forked_process_has_no_device(device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_forked", False)
    devices._after_fork()
    with pytest.raises(BackendError, match=r"(?s)MLC0586.*spawn"):
        mlc.ones(3).cuda()


class NoLibrary:
    """cuda-python where there is no libcuda."""

    @staticmethod
    def cuInit(flags: int) -> Any:
        raise RuntimeError("Failed to dlopen libcuda.so.1\nand more")


def failing(status: int) -> Bindings:
    cu = Bindings()
    cu.fail["cuInit"] = status
    return cu


@pytest.mark.parametrize("cu, message", [
    (None, "MLC0580.*cuda-python is not installed.*pip install"),
    (NoLibrary(), "MLC0581.*no NVIDIA driver.*dlopen"),
    (failing(803), "MLC0581.*does not start: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
    (failing(100), "MLC0582.*no NVIDIA GPU"), (Bindings(count=0), "MLC0582.*no NVIDIA GPU.*CUDA_VISIBLE_DEVICES"),
])
def test_where_there_is_no_device(installed: Callable[[Any], None], cu: Any, message: str) -> None:
    installed(cu)
    with pytest.raises(BackendError, match=f"(?s){message}"):
        devices.device()


# -- what users see ---------------------------------------------------------------------------------------------------
@pytest.fixture
def device() -> Iterator[FakeDevice]:
    """Have a fake device as cuda:0."""
    made = FakeDevice()
    devices.substitute({0: made})
    yield made
    devices.substitute(None)
    eager._kernels.clear()                                 # of a device that is no more
    eager._by_shape.clear()


X = np.arange(12, dtype="f4").reshape(3, 4)


def test_tensors_move(device: FakeDevice) -> None:
    x = mlc.tensor(X).to("cuda")
    assert (x.device, x.is_cuda, x.shape, x.dtype, x.numel(), x.nbytes) == ("cuda:0", True, (3, 4), mlc.float32, 12, 48)
    assert x.cuda() is x and x.to("cuda:0") is x and x.cpu().device == "cpu" and x.to("cpu", mlc.int64).tolist() == (
        X.astype(int).tolist())
    assert (x.numpy() == X).all() and (np.asarray(x) == X).all() and mlc.ones(2).cuda()[1].item() == 1
    assert repr(mlc.zeros(1, device="cuda")) == "tensor([0.], dtype=mlc.float32, device='cuda:0')"
    assert mlc.zeros_like(x).device == x.clone().device == mlc.tensor(x).device == x.new_ones(2).device == "cuda:0"
    assert x.contiguous() is x and mlc.asarray(x) is x and mlc.tensor([1, 2], device="cuda").to(mlc.ones(1)).device == (
        "cpu")


def test_operations_run_where_tensors_are(device: FakeDevice) -> None:
    x = mlc.tensor(X).cuda()
    y = (x * 2 + 1.0) @ mlc.tensor(X).to(x).T
    assert y.device == "cuda:0" and (y.numpy() == (X * 2 + 1) @ X.T).all()
    assert (x + X).device == (x + mlc.tensor(1.0)).device == x[1:, 0].device == mlc.softmax(x, 1).device == "cuda:0"
    assert (x[1:, 0].numpy() == X[1:, 0]).all() and mlc.argmax(x).item() == 11
    launched = len(device.launches)
    assert (x * 2).shape == (3, 4) and len(device.launches) == launched + 1
    with pytest.raises(UserError, match=r"MLC0339.*mul: operand 0 is on cuda:0, operand 1 on cpu") as caught:
        x * mlc.tensor(X)
    assert caught.value.loc.file == __file__
    with pytest.raises(UserIndexError, match=r"MLC0340.*axis 0 of size 3"):
        mlc.index_select(x, 0, np.array([5]))


def test_functions_compiled_for_a_device(device: FakeDevice) -> None:
    f = mlc.compile(lambda a, b: (mlc.exp(a) + b, a), target="cuda")
    y, a = f(X, 2.0)
    assert y.device == a.device == "cuda:0" and device.uploads == 2
    assert (y.numpy() == (mlc.exp(mlc.tensor(X)) + 2.0).numpy()).all() and (a.numpy() == X).all()
    f(y, mlc.tensor(2.0).cuda())
    assert len(f.entries) == 2                             # a number is no tensor; where either is does not matter
    f(X, mlc.tensor(3.0))
    assert len(f.entries) == 2
    g = mlc.compile(lambda a: a * 2)
    assert g(X).device == "cpu" and g(y).device == "cuda:0" and len(g.entries) == 2
    assert mlc.compile(lambda a: a * 2, target="host")(y).device == "cpu"
    assert "gpu.launch_func" in str(f.lower(X, 1.0, level="low")) and "gpu" not in str(g.lower(X, level="low"))
    assert mlc.compile(lambda a: a - 1, target="cuda:sm_80")(X).tolist() == (X - 1).tolist()
    with pytest.raises(BackendError, match=r"MLC0588.*cuda:sm_100"):
        mlc.compile(lambda a: a - 1, target="cuda:sm_100")(X)


@pytest.mark.parametrize("target, code", [("x86-64-v2", "MLC0501"), ("cuda:sm_12", "MLC0501"), ("tpu", "MLC0501")])
def test_targets_that_are_none(target: str, code: str) -> None:
    with pytest.raises(UserError, match=code) as caught:
        mlc.compile(lambda a: a, target=target)
    assert caught.value.loc.file == __file__


def test_graphs_of_functions(device: FakeDevice) -> None:
    f, g = (mlc.compile(lambda x: mlc.softmax(x @ x.T, 1).sum(), target="cuda", graph=graph) for graph in (True, False))
    x = [mlc.tensor(X + i).cuda() for i in range(3)]
    assert [f(a).item() for a in x] == [g(a).item() for a in x]
    assert (device.graphs, device.replays) == (1, 3) and device.updates


def test_training_on_a_device(device: FakeDevice) -> None:
    model, optimizer = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)), mlc.optim.AdamW(0.1)
    labels = np.array([0, 1, 1])

    def step(model: Any, state: Any, x: Any) -> Any:
        value, gradients = mlc.value_and_grad(lambda m: nn.functional.cross_entropy(m(x), labels))(model)
        return *optimizer.update(gradients, state, model), value

    def losses(target: str, model: Any) -> list[float]:
        train, state, out = mlc.compile(step, donate=("model", "state"), target=target), optimizer.init(model), []
        for _ in range(4):
            model, state, value = train(model, state, X)
            out.append(value.item())
        assert model[0].weight.is_cuda is (target == "cuda")
        return out

    wanted = losses("host", copy.deepcopy(model))
    assert losses("cuda", model) == wanted and wanted[3] < wanted[0]
    assert mlc.cuda.memory_allocated() < 10_000


def test_modules_move(device: FakeDevice) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.BatchNorm1d(4))
    assert model.to("cuda") is model and {x.device for x in model.state_dict().values()} == {"cuda:0"}
    y = model(mlc.tensor(X).cuda())
    assert y.device == "cuda:0" and model.double()[0].weight.device == "cuda:0"
    model.float().load_state_dict({n: x.numpy() for n, x in model.state_dict().items()})
    other = copy.deepcopy(model)
    assert other[0].weight.device == "cuda:0" and (other[0].weight.numpy() == model[0].weight.numpy()).all()
    with pytest.raises(UserTypeError, match="MLC0346"):
        pickle.dumps(model[0].weight.held)
    assert model[0].weight.device == "cuda:0" and model.cpu()[0].weight.device == "cpu"
    gradient = mlc.grad(lambda w: (w * w).sum())(mlc.tensor(X).cuda())
    assert gradient.device == "cuda:0" and (gradient.numpy() == 2 * X).all()


def test_donated_tensors_are_gone(device: FakeDevice) -> None:
    f, x = mlc.compile(lambda x: x + 1, donate="x", target="cuda"), mlc.tensor(X).cuda()
    before = mlc.cuda.memory_allocated()
    y = f(x)
    assert mlc.cuda.memory_allocated() == before and (y.numpy() == X + 1).all()
    with pytest.raises(UserError, match="MLC0343"):
        x.numpy()


def test_what_is_said_of_devices(device: FakeDevice) -> None:
    assert mlc.cuda.is_available() and mlc.cuda.device_count() == 1 and mlc.cuda.why_not() is None
    assert mlc.cuda.get_device_name() == "a fake device" and mlc.cuda.get_device_capability(0) == (9, 0)
    x = mlc.ones(1000).cuda()
    assert mlc.cuda.memory_allocated() == 4096 == mlc.cuda.memory_reserved("cuda:0")
    del x
    gc.collect()
    assert mlc.cuda.memory_allocated() == 0 and mlc.cuda.max_memory_allocated() == 4096
    mlc.cuda.empty_cache()
    mlc.cuda.synchronize()
    assert mlc.cuda.memory_reserved() == 0 == device.taken
    with pytest.raises(UserError, match="MLC0337"):
        mlc.cuda.synchronize("cpu")


# -- DLPack -----------------------------------------------------------------------------------------------------------
class Foreign:
    """Another library's tensor on the device."""

    def __init__(self, capsule: Any) -> None:
        self.capsule, self.stream = capsule, None

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, stream: Any = None) -> Any:
        self.stream = stream
        return self.capsule


@pytest.mark.parametrize("dtype", ["float32", "bool", "int64", "uint8", "bfloat16"])
def test_tensors_go_round_by_dlpack(device: FakeDevice, dtype: str) -> None:
    x = mlc.tensor(X).to(dtype).cuda()
    assert x.__dlpack_device__() == (2, 0)
    foreign = Foreign(x.__dlpack__())
    y = mlc.from_dlpack(foreign)
    assert foreign.stream == device.stream and device.ordered == [("publish", 1)]
    assert y.dtype is x.dtype and y.tolist() == x.tolist() and y.held.address == x.held.address
    used = mlc.cuda.memory_allocated()
    del x
    gc.collect()
    assert mlc.cuda.memory_allocated() == used and y.shape == (3, 4)       # the capsule's taker keeps it
    del y, foreign
    gc.collect()
    assert mlc.cuda.memory_allocated() == 0


def test_a_capsule_that_nobody_takes(device: FakeDevice) -> None:
    x = mlc.tensor(X).cuda()
    capsule = x.__dlpack__(stream=-1)
    assert not device.ordered
    del x, capsule
    gc.collect()
    assert mlc.cuda.memory_allocated() == 0
    with pytest.raises(BufferError):
        mlc.ones(2).cuda().__dlpack__(dl_device=(1, 0))


def test_capsules_are_as_pytorch_has_them(device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake device's memory is the CPU's, so PyTorch reads it if the capsule says so."""
    monkeypatch.setattr(dlpack, "CUDA", 1)
    for dtype in ("float32", "bfloat16", "int64", "bool"):
        x = mlc.tensor(X).to(dtype).cuda()
        held: Any = x.held
        theirs = torch.utils.dlpack.from_dlpack(held.__dlpack__(stream=-1))
        assert str(theirs.dtype) == f"torch.{dtype}" and theirs.tolist() == x.tolist()
        assert theirs.data_ptr() == held.address
        del x, held
        gc.collect()
        assert mlc.cuda.memory_allocated() == 512
        back: Any = mlc.from_dlpack(Foreign(theirs.__dlpack__())).held
        assert (back.address, back.shape, back.dtype.name) == (theirs.data_ptr(), (3, 4), dtype)
        del theirs
        gc.collect()
        assert mlc.cuda.memory_allocated() == 512
        del back
        gc.collect()
        assert mlc.cuda.memory_allocated() == 0
    turned = torch.arange(12.0).reshape(3, 4).T
    with pytest.raises(UserTypeError, match=r"MLC0346.*row-major"):
        mlc.from_dlpack(Foreign(turned.__dlpack__()))


def test_tensors_of_others_are_operands(device: FakeDevice) -> None:
    x = mlc.tensor(X).cuda()
    assert (mlc.exp(Foreign(x.__dlpack__())).device, (x + Foreign(x.__dlpack__())).tolist()) == (
        "cuda:0", (X + X).tolist())
    assert mlc.compile(lambda a: a * 2, target="cuda")(Foreign(x.__dlpack__())).tolist() == (2 * X).tolist()


# -- without a device -------------------------------------------------------------------------------------------------
def test_asking_for_a_device_where_there_is_none(installed: Callable[[Any], None]) -> None:
    installed(NoLibrary())
    assert not mlc.cuda.is_available() and mlc.cuda.device_count() == 0
    assert "MLC0581" in str(mlc.cuda.why_not())
    for use in (lambda: mlc.ones(3).to("cuda"), lambda: mlc.zeros(3, device="cuda"), lambda: nn.Linear(2, 3).cuda(),
                lambda: mlc.compile(lambda x: x + 1, target="cuda")(X), mlc.cuda.synchronize):
        with pytest.raises(BackendError, match=r"MLC0581.*no NVIDIA driver") as caught:
            use()
        assert caught.value.loc.file == __file__


def test_the_check_of_a_device(device: FakeDevice, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--small", "--only", "copies,speed", "--out", str(tmp_path), "--seed", "3"]
    assert gpu_check.main(words) == 0
    said = capsys.readouterr().out
    assert "copies      6 bits" in said and said.splitlines()[-1].startswith("11 checks, 0 bad")
    launched = len(device.launches)
    assert gpu_check.main([*words, "--resume"]) == 0 and len(device.launches) == launched
    row = gpu_check.compared("s", "n", [np.array([1, 2, 4], "f4")], [np.array([1, 2, 3], "f4")])
    assert row.bad and "at (2,): 4.0, not 3.0; 1 of 3 differ" in row.detail
    assert gpu_check.compared("s", "n", [np.array([3 + 3e-7], "f4")], [np.array([3], "f4")]).result == "close"


def test_the_check_where_there_is_no_device(installed: Callable[[Any], None],
                                            capsys: pytest.CaptureFixture[str]) -> None:
    installed(NoLibrary())
    assert gpu_check.main([]) == 1
    assert "MLC0581" in capsys.readouterr().out


@pytest.mark.skipif(not mlc.cuda.is_available(), reason="this machine has no NVIDIA GPU that mlc can use")
def test_a_device_that_is_there() -> None:
    """All else is checked by python -m mlc.tools.gpu_check."""
    x = mlc.tensor(X).cuda()
    assert (mlc.compile(lambda x: x @ x.T + 1, target="cuda")(x).numpy() == X @ X.T + 1).all()
