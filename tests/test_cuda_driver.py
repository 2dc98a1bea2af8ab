"""The driver's calls, through cuda-python's module on a fake device; and where there is no device."""
from __future__ import annotations

import gc
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.backends.cuda import devices, driver, foreign
from mlc.backends.cuda.device import Launch
from mlc.backends.cuda.memory import DeviceMemory
from mlc.ir.diag import BackendError
from mlc.tools import gpu_check
from tests.corpus import PROGRAMS
from tests.fake_cuda import Bindings
from tests.fake_device import FakeDevice
from tests.test_cuda import DONATED, entry, native, run, same


class Emulated(driver.Driver):
    """The driver's calls over a fake device, which loads text of the gpu dialect."""

    def assemble(self, module: Any, target: Any) -> bytes:
        return FakeDevice().assemble(module, target)


def emulated(cu: Bindings, ordinal: int = 0) -> Emulated:
    return Emulated(cu, ordinal)


@pytest.mark.usefixtures("one_graph")
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
            held.append(f.memory.storage(f.program.arena_bytes("main", [7] * len(f.interface.symbols))))
    assert {"cuLaunchKernel", "cuMemsetD32Async", "cuGraphLaunch", "cuGraphExecMemsetNodeSetParams"} <= {*cu.calls}
    assert device.attributes(None) == {"registers": 40, "local": 30, "shared": 10}


def test_marks_order_streams_and_are_destroyed() -> None:
    cu = Bindings()
    device = emulated(cu)
    stream, mark = device.new_stream(), device.mark(device.stream)
    device.hold(stream, mark)
    cu.event_status = driver.NOT_READY
    assert not device.reached(mark)
    cu.event_status, contexts = 0, list(cu.contexts)
    assert device.reached(mark) and cu.contexts == contexts
    cu.event_status = 700
    with pytest.raises(BackendError, match=r"MLC0587.*waiting for the device"):
        device.reached(mark)
    cu.calls.clear()
    del mark
    assert cu.calls == ["cuCtxPushCurrent", "cuEventDestroy", "cuCtxPopCurrent"]


def test_copies_longer_than_pinned_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "CHUNK", 1 << 12)
    memory = DeviceMemory(emulated(Bindings()))
    for n in (1, 1000, 4096, 4097, 50_000):
        x = np.random.default_rng(n).integers(0, 256, n).astype(np.uint8)
        y = memory.array(x)
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


def test_what_the_collector_does_leaves_a_thread_at_its_device(installed: Callable[[Any], None]) -> None:
    """It may come while a thread is about to ask something of another device."""
    cu = Bindings(count=2)
    installed(cu)
    module, args = PROGRAMS["symbolic_batch"]()
    second = emulated(cu, 1)
    f = entry(module, second)
    run(f, *args)
    assert len(cu.modules) == 1
    x = foreign.import_dlpack(f.call([f.memory.array(a) for a in args])[0], f.memory)
    devices.device(0).activate()
    assert cu.contexts == ["context 0"]
    del x, f
    gc.collect()
    assert cu.contexts == ["context 0"] and len(cu.modules) == 1
    second.activate()
    second.clear_away()                                    # as it does before it loads others
    assert not cu.modules


def test_graphs_that_nobody_holds_leave_with_the_next(installed: Callable[[Any], None]) -> None:
    cu = Bindings()
    installed(cu)
    device = emulated(cu)
    device.graph([])
    assert "cuGraphExecDestroy" not in cu.calls            # not as the graph goes: the collector may be at work
    device.graph([])
    assert cu.calls.count("cuGraphExecDestroy") == cu.calls.count("cuGraphDestroy") == 1


# -- which devices there are -------------------------------------------------------------------------------------------
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


def test_a_process_forked_from_one_that_counted_devices_has_none(installed: Callable[[Any], None],
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    """cuInit does not work twice, whatever it says to that."""
    installed(Bindings())
    assert mlc.cuda.is_available()
    monkeypatch.setattr(driver, "_process", os.getppid())
    with pytest.raises(BackendError, match="MLC0586"):
        mlc.ones(3).cuda()
    assert not mlc.cuda.is_available()


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


def test_asking_for_a_device_where_there_is_none(installed: Callable[[Any], None]) -> None:
    installed(NoLibrary())
    assert not mlc.cuda.is_available() and mlc.cuda.device_count() == 0
    assert "MLC0581" in str(mlc.cuda.why_not())
    for use in (lambda: mlc.ones(3).to("cuda"), lambda: mlc.zeros(3, device="cuda"), lambda: nn.Linear(2, 3).cuda(),
                lambda: mlc.compile(lambda x: x + 1, target="cuda")(np.zeros(3)), mlc.cuda.synchronize):
        with pytest.raises(BackendError, match=r"MLC0581.*no NVIDIA driver") as caught:
            use()
        assert caught.value.loc.file == __file__


def test_the_check_where_there_is_no_device(installed: Callable[[Any], None],
                                            capsys: pytest.CaptureFixture[str]) -> None:
    installed(NoLibrary())
    assert gpu_check.main([]) == 1
    assert "MLC0581" in capsys.readouterr().out
