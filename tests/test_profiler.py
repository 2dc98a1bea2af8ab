"""Profiles: which calls, at which line, how long, and the files that they are written to."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.ir.diag import UserError
from mlc.ir.profiling import state
from mlc.profile_kernels import time_text
from mlc.profile_results import Event, averages, nested
from mlc.profile_schedule import ProfilerAction, schedule
from mlc.profiler import ProfilerActivity, profile, record_function
from mlc.utils.data import DataLoader, TensorDataset

THIS = Path(__file__).name


def named(p: profile, name: str) -> list[Event]:
    return [e for e in p.events() if e.name == name and e.kind != "compilation"]


def test_calls_are_events_with_their_lines() -> None:
    x = mlc.ones(4, 5)
    _ = x @ x.t(), (x + 1).exp()                           # these have native paths, which a profile closes
    w = mlc.ones(5, requires_grad=True)
    with profile(record_shapes=True) as p:
        y = x @ w
        y.exp().sum().backward()
    product, = named(p, "matmul")
    assert product.kind == "operation" and product.shapes == ((4, 5), (5,)) and product.line.endswith(
        f"{THIS}:{test_calls_are_events_with_their_lines.__code__.co_firstlineno + 5}")
    assert [e.name for e in p.events() if e.kind == "operation"][:2] == ["matmul", "exp"]
    assert any(e.name.endswith("_backward") for e in p.events())
    assert all(e.duration >= 0 and e.start >= 0 for e in p.events()) and state.recorder is None


def test_nothing_is_recorded_before_and_after() -> None:
    x = mlc.ones(3)
    with profile() as p:
        _ = x + 1
    _ = x * 2
    assert named(p, "add") and not named(p, "mul")
    with pytest.raises(ZeroDivisionError), profile() as broken:
        _ = x + 1 / 0
    assert state.recorder is None and not named(broken, "add")


def test_compiled_functions_are_events_as_a_whole() -> None:
    old = mlc.compile(lambda x: (x * 2).exp())
    x = mlc.ones(3)
    for _ in range(3):
        old(x)

    @mlc.compile
    def new(x: Any) -> Any:
        return x.sin() + 1

    with profile() as p:
        for _ in range(3):
            old(x)
            new(x)
    assert len(named(p, "new")) == 3 and not named(p, "sin")
    assert [e.kind for e in p.events() if e.name == "new"].count("compilation") == 1
    assert sum(e.kind == "compiled function" for e in p.events()) == 6
    assert new.compiled.entries[0].fast_calls.value == 0
    new(x)
    assert new.compiled.entries[0].fast_calls.value == 1


def test_labels_and_loaders_enclose_what_happens_in_them() -> None:
    loader: DataLoader[Any] = DataLoader(TensorDataset(mlc.ones(4, 2)), batch_size=2)

    @record_function("step")
    def step(x: Any) -> Any:
        return x.exp()

    with profile() as p:
        for (x,) in loader:
            step(x)
    assert len(named(p, "DataLoader")) == 2 and len(named(p, "step")) == 2
    label, exp = named(p, "step")[1], named(p, "exp")[1]
    assert label.start <= exp.start and exp.end <= label.end and label.children >= exp.duration


def test_self_time_is_that_without_the_events_within() -> None:
    events = nested([Event("inner", "operation", "a:2", 1, 20, 30), Event("outer", "label", "a:1", 1, 0, 100),
                     Event("inner", "operation", "a:3", 1, 60, 20), Event("other", "operation", "a:4", 2, 10, 1000)])
    rows = {r.key: r for r in averages(events, False, False, False)}
    assert (rows["outer"].self_cpu_time_total, rows["outer"].cpu_time_total) == (0.05, 0.1)
    assert (rows["inner"].count, rows["inner"].cpu_time, rows["other"].self_cpu_time_total) == (2, 0.025, 1.0)
    found = averages(events, True, False, False)
    assert len(found) == 4 and found.total_average().cpu_time_total == pytest.approx(1.1)
    lines = found.table(sort_by="count", row_limit=2).splitlines()
    assert lines[1].split()[:2] == ["Name", "Kind"] and len(lines) == 7 and "a:" in lines[3]
    with pytest.raises(UserError, match="there are cpu_time") as wrong:
        found.table(sort_by="cuda_time")
    assert wrong.value.code == "MLC0796"


def test_bytes_of_results_are_counted_until_they_are_freed(tmp_path: Path) -> None:
    big = mlc.ones(400, 1000)
    with profile(profile_memory=True) as p:
        big.relu()
        big.clone().relu_()
    rows = [r for r in p.key_averages() if r.key == "relu"]           # the compilation has one of its own
    assert sum(r.cpu_memory_usage for r in rows) >= 1_600_000
    assert max(count for _, count in p.memory_timeline()) <= 2 * 1_600_000 and p.memory_timeline()[-1][1] == 0
    x = mlc.ones(256)
    with profile(profile_memory=True) as p:
        y = x + 1
        z = y * 2
        view = z[3:]
        del y
        z2 = z + 1
        del z, z2, view
    counts = [count for _, count in p.memory_timeline()]
    assert max(counts) == 2048 and counts[:2] == [1024, 2048] and counts[-1] == 0
    assert sum(r.cpu_memory_usage for r in p.key_averages()) == 3072 and "CPU Mem" in p.key_averages().table()
    p.export_memory_timeline(str(tmp_path / "memory.json"))
    assert json.loads((tmp_path / "memory.json").read_text())["bytes"] == counts


def test_traces_are_for_chrome_and_perfetto(tmp_path: Path) -> None:
    def elsewhere() -> None:
        mlc.ones(2) + 2

    with profile(record_shapes=True) as p:
        mlc.ones(2) + 1
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    for name, opened in (("trace.json", open), ("trace.json.gz", gzip.open)):
        p.export_chrome_trace(str(tmp_path / name))
        with opened(tmp_path / name, "rt") as file:
            rows = json.load(file)["traceEvents"]
        first, second = (r for r in rows if r["name"] == "add" and r["cat"] == "operation")
        assert first["ph"] == "X" and first["args"]["Input Dims"][0] == [2] and THIS in first["args"]["line"]
        assert first["tid"] != second["tid"] and first["ts"] + first["dur"] <= second["ts"]


def test_a_schedule_records_cycles(tmp_path: Path) -> None:
    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    assert [plan(i).value for i in range(10)] == [0, 0, 1, 2, 3, 0, 1, 2, 3, 0]
    ready = []

    def on_ready(p: profile) -> None:
        ready.append([len(named(p, "add")), p.step_num])
        mlc.profiler.tensorboard_trace_handler(str(tmp_path / "runs"), "worker")(p)

    with profile(schedule=plan, on_trace_ready=on_ready) as p:
        for _ in range(12):
            mlc.ones(2) + 1
            p.step()
    assert ready == [[2, 4], [2, 8]] and len(list((tmp_path / "runs").glob("worker.*.pt.trace.json"))) == 2
    assert plan(3) is ProfilerAction.RECORD


def test_a_profile_of_nothing_takes_no_time() -> None:
    with profile() as p:
        pass
    assert str(p.key_averages()).endswith("Self CPU time total: 0.000us")


def test_what_is_not_measured_is_refused() -> None:
    mistakes: list[Any] = [
        lambda: profile(with_flops=True), lambda: profile().kernels(),
        lambda: schedule(wait=0, warmup=0, active=0), lambda: profile().key_averages(group_by_input_shape=True),
        lambda: profile().export_memory_timeline("x")]
    for mistake in mistakes:
        with pytest.raises(UserError) as found:
            mistake()
        assert found.value.code == "MLC0796" and found.value.loc.file == __file__
    with profile() as p, pytest.raises(UserError, match="on already"):
        p.start()
    with pytest.warns(UserWarning, match="nothing on devices"):
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])


def test_a_profile_within_a_profile_has_its_own_part() -> None:
    x = mlc.ones(3)
    with profile(profile_memory=True) as outer:
        _ = x + 1
        with profile() as inner:
            _ = x * 2
        _ = x - 3
    assert [e.name for e in outer.events() if e.kind == "operation"] == ["add", "mul", "sub"]
    assert [e.name for e in inner.events() if e.kind == "operation"] == ["mul"] and state.recorder is None
    first, second = profile(kernels=True), profile(kernels=True)
    first.start()
    _ = x + 1
    second.start()
    _ = x * 2
    first.stop()                                           # before the one that began later
    _ = x - 3
    second.stop()
    assert {row.kernel.split("/")[0] for row in first.kernels()} == {"add", "mul"}
    assert {row.kernel.split("/")[0] for row in second.kernels()} == {"mul", "sub"}
    assert (state.recorder, state.kernels) == (None, False)


@pytest.mark.parametrize(("seconds", "text"), [
    (0, "0 ns"), (999.4e-9, "999 ns"), (999.6e-6, "1 ms"), (0.0123456, "12.3 ms"), (1234, "1234 s")])
def test_times_have_three_digits(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


def test_memory_that_derivatives_keep_is_counted() -> None:
    x = mlc.ones(100, 100, requires_grad=True)
    with profile(kernels=True, profile_memory=True) as p:
        mlc.tanh(mlc.sin(mlc.exp(x * 2))).sum().backward()
    assert p.memory().bytes >= 4 * x.numel() * 4                # three results and a gradient, at least


def test_memory_whose_storage_moves_is_counted_while_its_tensor_lives() -> None:
    x = mlc.ones(1000)
    with profile(kernels=True, profile_memory=True) as p:
        a = mlc.exp(x)
        np.from_dlpack(a)
        mlc.exp(x)
    assert p.memory().bytes >= 8000 and a.shape == (1000,)


def test_a_profile_that_is_on_at_the_end_of_the_program() -> None:
    done = subprocess.run([sys.executable, "-c", "import mlc; f = mlc.compile(lambda x: x + 1); f(mlc.ones(3)); "
                           "p = mlc.profiler.profile(); p.start(); f(mlc.ones(3))"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_memory_is_counted_in_a_time_proportional_to_its_tensors() -> None:
    x = mlc.ones(3)

    def steps(count: int) -> int:
        """Calls of functions, and resumptions of generators, that a profile of so many tensors takes."""
        calls, alive = [0], []
        _ = x + 1
        with profile(profile_memory=True) as p:
            sys.setprofile(lambda frame, event, arg: calls.__setitem__(0, calls[0] + 1))
            try:
                for _ in range(count):
                    alive.append(x + 1)
            finally:
                sys.setprofile(None)
        assert max(n for _, n in p.memory_timeline()) == 12 * count
        return calls[0]

    assert steps(400) < 2.5 * steps(200)


def test_training_in_a_profile_gives_the_same_numbers() -> None:
    def trained() -> list[float]:
        mlc.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = mlc.optim.SGD(model.parameters(), lr=0.1)
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = (model(mlc.ones(4, 3)) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    plain = trained()
    with profile():
        assert trained() == plain


def test_operands_of_a_first_call_are_freed_at_once() -> None:
    """Finding out how a call is done natively leaves no cycle that keeps its arrays until the next collection."""
    gc.disable()
    try:
        x = mlc.full((3, 5, 7), 2.0)
        array = weakref.ref(x._array)
        mlc.lerp(x, x + 1, x)
        mlc.lerp(x, x + 1, x)
        del x
        assert array() is None
    finally:
        gc.enable()


def test_a_step_after_the_end_is_none_and_decorators_keep_signatures() -> None:
    profile = mlc.profiler.profile(schedule=mlc.profiler.schedule(wait=0, warmup=0, active=1, repeat=0))
    profile.start()
    _ = mlc.ones(3).sum()
    profile.stop()
    before = len(profile.events())
    profile.step()
    _ = mlc.ones(3).sum()
    assert len(profile.events()) == before

    @mlc.profiler.record_function("f")
    def f(x: int) -> int:
        return x
    assert f.__wrapped__(2) == f(2) == 2  # type: ignore[attr-defined]


def test_the_peak_of_memory_is_of_the_largest_call() -> None:
    f = mlc.compile(lambda x: ((mlc.exp(x) @ x.T) @ (x @ x.T)).sum(), dynamic=True)

    def peak(*rows: int) -> int:
        with profile(kernels=True, profile_memory=True) as p:
            for n in rows:
                f(mlc.ones(n, 4))
        return p.memory().bytes

    assert peak(100, 3) == peak(100) > 3 * 100 * 100 * 4


def test_threads_may_make_tensors_while_memory_is_counted() -> None:
    failed = list[BaseException]()

    def work() -> None:
        try:
            for _ in range(1000):
                _ = mlc.ones(10) * 2.0 + 1.0
        except BaseException as error:
            failed.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with profile(kernels=True, profile_memory=True):
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failed


def test_a_label_keeps_the_times_of_each_thread() -> None:
    label, inside, begun, ended = record_function("part"), *(threading.Event() for _ in range(3))

    def longer() -> None:
        with label:
            time.sleep(0.02)
            inside.set()
            begun.wait()
        ended.set()

    with profile() as p:
        thread = threading.Thread(target=longer)
        thread.start()
        inside.wait()
        with label:
            begun.set()
            ended.wait()
        thread.join()
    first, second = p.events()
    assert first.duration >= 20_000_000 and second.thread == threading.get_native_id() != first.thread


def test_labels_of_generators_and_coroutines_last_to_their_ends() -> None:
    @record_function("generator")
    def numbers() -> Iterator[int]:
        for i in range(2):
            time.sleep(0.01)
            yield i

    @record_function("coroutine")
    async def wait() -> None:
        await asyncio.sleep(0.02)

    with profile() as p:
        assert list(numbers()) == [0, 1]
        asyncio.run(wait())
    assert [event.duration >= 20_000_000 for event in p.events()] == [True, True]


def test_a_folder_of_traces_that_cannot_be_made_is_an_error_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    handler = mlc.profiler.tensorboard_trace_handler(str(tmp_path / "file"))
    with pytest.raises(UserError, match="cannot write") as info, profile(on_trace_ready=handler):
        pass
    assert info.value.code == "MLC0393"
