"""Kernels of a profile: their times within compiled code, their lines and modules, memory and its owners."""

from __future__ import annotations

import ctypes
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import api, hardware_counters, nn
from mlc.backends import timed
from mlc.backends.cpu import threads
from mlc.backends.cpu.targets import host
from mlc.backends.cpu.toolchain import Toolchain
from mlc.backends.fingerprint import LocationTable
from mlc.dialects.builtin import Module
from mlc.dialects.loop import Kernel
from mlc.flame_graph import flame_graph
from mlc.frontend import eager
from mlc.hardware_counters import HardwareCounters
from mlc.ir.diag import Loc, UserError, called_scope
from mlc.ir.instrumentation import NONE, TIMES
from mlc.ir.kernel_sites import KernelSite, SourceLine
from mlc.ir.parser import parse_module
from mlc.ir.profiling import state
from mlc.passes import pipeline
from mlc.passes.analysis import kernel_cost
from mlc.profile_kernels import KernelRow, Kernels, roof_text
from mlc.profiler import profile
from mlc.roofline import Level, Limits
from mlc.tools import cli
from mlc.tools.bench import roofline

THIS = Path(__file__).name
WIDE = 512


class Layer(nn.Module):
    def __init__(self) -> None:
        self.attn, self.mlp = nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, x: Any) -> Any:
        return x + self.mlp(nn.functional.relu(self.attn(x)))


class Net(nn.Module):
    def __init__(self) -> None:
        self.layers = nn.ModuleList([Layer() for _ in range(4)])

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


def line_of(f: Callable[..., Any], text: str) -> str:
    """The line of a function that has a text, as tables show it."""
    import inspect
    lines, first = inspect.getsourcelines(f)
    return f"{THIS}:{first + next(i for i, line in enumerate(lines) if text in line)}"


def slow(x: Any, w: Any) -> Any:
    y = x + 1.0
    z = (w @ w).sum()                      # slow on purpose
    return (y * 2.0).sum() + z


def test_a_line_that_is_slow_on_purpose_is_the_slowest() -> None:
    f, x, w = mlc.compile(slow), mlc.ones(8, 8), mlc.ones(WIDE, WIDE)
    with profile(kernels=True) as p:
        for _ in range(3):
            f(x, w)
    found = p.kernels()
    assert Path(found.by_line()[0].line).name == line_of(slow, "on purpose") == Path(found[0].line).name
    assert found[0].calls == 3 and found[0].flops >= 3 * 2 * WIDE ** 3
    calls = sum(e.duration for e in p.events() if e.kind == "compiled function")
    assert found.wall == pytest.approx(calls / 1e9, rel=0.5) and 0 < found.seconds <= found.wall
    assert sum(row.calls for row in found) == sum(e.kind == "kernel" for e in p.events())
    assert state.recorder is None and not state.kernels


@pytest.mark.parametrize("compiled", [True, False])
def test_kernels_have_the_paths_of_modules(compiled: bool) -> None:
    net, x = Net(), mlc.ones(4, 32)
    call = mlc.compile(net) if compiled else net
    with profile(kernels=True) as p:
        call(x)
    modules = {row.module for row in p.kernels().by_module_path}
    assert {f"Net.layers.{i}.{name}" for i in range(4) for name in ("attn", "mlp")} <= modules
    assert any(row.module == "Net.layers.*.attn" and row.calls == 4 for row in p.kernels())
    tree = [row.module for row in p.kernels().by_module()]
    assert tree[0] == "Net" and tree.index("Net.layers.2") < tree.index("Net.layers.2.mlp")
    assert next(row for row in p.kernels().by_module() if row.module == "Net").seconds == pytest.approx(
        p.kernels().seconds)


def test_kernels_of_gradients_have_the_modules_of_what_is_differentiated() -> None:
    net, x = Net(), mlc.ones(4, 32)

    @mlc.compile
    def step(x: Any) -> Any:
        loss = net(x).square().mean()
        loss.backward()
        return loss

    with profile(kernels=True) as p:
        step(x)
    calls = {i: sum(r.calls for r in p.kernels().by_module_path if f"layers.{i}." in r.module) for i in range(4)}
    assert all(count >= 6 for count in calls.values())     # two products forward, four backward


def test_a_profile_leaves_no_trace_in_other_code() -> None:
    f, x = mlc.compile(slow), mlc.ones(8, 8)
    w = mlc.ones(64, 64)
    f(x, w)
    before = f.compiled.entries
    with profile(kernels=True):
        f(x, w)
        grown = mlc.ones(3, requires_grad=True)
        (grown.sin() * 2).sum().backward()
    assert f.compiled.entries == before and not before[0].interface.kernels
    count = before[0].fast_calls.value
    f(x, w)
    assert before[0].fast_calls.value == count + 1         # its own native path, as before
    assert len(f.compiled.reports) == 1

    def code(timed: bool) -> bytes:
        chain = Toolchain(added=TIMES if timed else NONE)
        module = mlc.lower(slow, [mlc.spec(8, 8), mlc.spec(64, 64)], level="tensor").module
        assert isinstance(module, Module)
        return bytes(chain.compile(chain.lower(module), cache=True).code)

    assert code(False) == code(False) != code(True)
    assert Toolchain().key() != Toolchain(added=TIMES).key()
    assert "time_kernels" not in str(pipeline.order(host().machine))


def test_what_another_thread_compiles_while_a_profile_begins_or_ends_is_timed_as_a_whole_or_not_at_all(
        monkeypatch: pytest.MonkeyPatch) -> None:
    p, x = profile(kernels=True), mlc.ones(5, 5)
    record, build = api.record, eager._build          # type: ignore[attr-defined]

    def begins(*args: Any, **keywords: Any) -> Any:
        p.start()
        return record(*args, **keywords)

    def ends(*args: Any, **keywords: Any) -> Any:
        p.stop()
        return record(*args, **keywords)

    f = mlc.compile(lambda x: x @ x)
    monkeypatch.setattr(api, "record", begins)
    f(x)
    assert [bool(e.interface.kernels) for e in f.compiled.entries] == []                   # those of the profile
    monkeypatch.setattr(api, "record", ends)
    g = mlc.compile(lambda x: x @ x + 1)
    g(x)
    monkeypatch.setattr(api, "record", record)
    g(x)
    assert [[bool(e.interface.kernels) for e in h.compiled.entries] for h in (f, g)] == [[False], [False]]

    def builds(*args: Any) -> Any:
        thread = threading.Thread(target=p.start)
        thread.start()
        waiting.append(thread)
        thread.join(0.05)
        assert state.recorder is None                      # it waits for the compilation
        return build(*args)

    waiting: list[threading.Thread] = []
    monkeypatch.setattr(eager, "_build", builds)
    mlc.kron(x, x)
    monkeypatch.setattr(eager, "_build", build)
    waiting[0].join()
    p.stop()
    kernels = [k for k in eager._kernels.values() if isinstance(k, eager.EagerKernel) and k.entry is not None]
    assert kernels and not any(k.is_timed for k in kernels)


def test_backward_of_a_compiled_function_has_its_name() -> None:
    @mlc.compile
    def cubes(x: Any) -> Any:
        return (x * x * x).sum()

    x = mlc.ones(4, requires_grad=True)
    with profile(kernels=True) as p:
        cubes(x).backward()
        mlc.grad(lambda x: cubes(x))(x)
    assert {row.function for row in p.kernels()} >= {"cubes", "cubes_backward"}
    assert "main" not in {row.function for row in p.kernels()}


def test_the_path_of_a_module_does_not_depend_on_what_its_class_defines_anew() -> None:
    class Odd(Layer):
        def named_modules(self, *args: Any, **keywords: Any) -> Any:
            raise AssertionError("called to find a location")

    with profile(kernels=True) as p:
        Odd()(mlc.ones(4, 32))
    assert {"Odd.attn", "Odd.mlp"} <= {row.module for row in p.kernels().by_module_path}


def test_what_is_saved_or_checked_within_a_profile_is_not_timed(tmp_path: Path) -> None:
    x = np.ones((4, 4), np.float32)
    g = mlc.compile(lambda x: mlc.softmax(x @ x, 1))
    checked = mlc.compile(lambda x: (x @ x).sum(), checked=True)
    with profile(kernels=True):
        mlc.save(g, tmp_path / "model.mlc", args=[mlc.spec("B", "B")])
        assert checked(x).item() == 64
    loaded = mlc.load(tmp_path / "model.mlc")
    assert np.array_equal(loaded(x).numpy(), g(x).numpy())


def test_loops_and_results_of_timed_code_are_the_same() -> None:
    @mlc.compile
    def newton(a: Any) -> Any:
        x = 1.0
        while mlc.abs(a * x + x ** 3 - 1) > 1e-6:
            x = x - (a * x + x ** 3 - 1) / (a + 3 * x ** 2)
        return x

    wanted = newton(mlc.tensor(2.0)).item()
    with profile(kernels=True) as p:
        assert newton(mlc.tensor(2.0)).item() == wanted
    assert max(row.calls for row in p.kernels()) > 2       # one kernel of the loop, each time around


def test_symbolic_sizes_count_their_own_operations() -> None:
    f = mlc.compile(lambda x: x @ x.t(), dynamic=True)
    with profile(kernels=True) as p:
        f(mlc.ones(8, 16))
        f(mlc.ones(24, 16))
    product = max(p.kernels(), key=lambda row: row.flops)
    elements = 8 * 8 + 24 * 24                             # which a loop of unknown length adds to zeros
    assert product.flops == 2 * 16 * elements + elements and product.calls == 2
    assert product.bytes >= 4 * (8 * 16 + 8 * 8 + 24 * 16 + 24 * 24)


def test_costs_are_counted_from_the_ir() -> None:
    module = mlc.lower(lambda x, w: x @ w, [mlc.spec(6, 10), mlc.spec(10, 4)], level="tensor").module
    pipeline.lower(module, "loop", host().machine)
    kernel, = module.inside(Kernel)
    assert kernel_cost.flops(kernel) == 2 * 6 * 10 * 4
    assert kernel_cost.moved(kernel) == 4 * (60 + 40 + 24)


@pytest.mark.parametrize("size", [256, "N"])
def test_a_sum_counts_its_terms_and_lanes_once(size: int | str) -> None:
    module = mlc.lower(lambda x: x.sum(), [mlc.spec(64, size)], level="tensor").module
    pipeline.lower(module, "loop", host().machine)
    kernel, = module.inside(Kernel)
    assert kernel_cost.about(kernel_cost.flops(kernel)) == 64 * (256 if size == 256 else kernel_cost.ABOUT) + (
        kernel.schedule.tile[-1])


def test_sums_of_many_calls_take_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    f, x, w = mlc.compile(slow), mlc.ones(8, 8), mlc.ones(16, 16)
    monkeypatch.setattr("mlc.profiler.MOST_WORDS", 200)
    with profile(kernels=True, profile_memory=True) as p:
        started = time.perf_counter()
        for _ in range(50):
            f(x, w)
        elapsed = time.perf_counter() - started
    found = p.kernels()
    assert len(p._timed) < 10 and {row.calls for row in found} == {50}
    assert 0 < found.seconds < found.wall < elapsed        # kernels are within calls, and each call counts once
    assert sum(e.kind == "kernel" for e in p.events()) < 50 and p.memory().where == "slow"


# -- memory -----------------------------------------------------------------------------------------------------------
def greedy(x: Any) -> Any:
    y = x * 2.0
    big = (mlc.flip(y, (0,)).reshape(-1, 1) * y.reshape(1, -1)).cumsum(0)          # the peak
    return big.cumsum(1).sum() + y.sum()


def test_the_owner_of_a_peak_is_named() -> None:
    f, x = mlc.compile(greedy), mlc.ones(300)
    with profile(kernels=True, profile_memory=True) as p:
        f(x)
    peak = p.memory()
    owners = {Path(o.line).name: o.bytes for o in peak.owners if o.kind == "value"}
    assert peak.where == "greedy" and owners[line_of(greedy, "the peak")] == 300 * 300 * 4
    assert peak.bytes == sum(o.bytes for o in peak.owners) >= 300 * 300 * 4 + 300 * 4
    assert "more, " in peak.table(row_limit=1, width=100)
    assert max(map(len, peak.table(width=90).splitlines())) <= 90


def test_tensors_of_operations_are_owners_too() -> None:
    with profile(kernels=True, profile_memory=True) as p:
        x = mlc.ones(50, 50) + 1
        y = x * 2
        del x
    assert y.shape == (50, 50)
    assert [(o.kind, o.bytes) for o in p.memory().owners] == [("tensor", 10000)] * 2


def test_what_creation_functions_make_has_an_owner() -> None:
    with profile(kernels=True, profile_memory=True) as p:
        kept = [mlc.ones(100), mlc.zeros(200), mlc.randn(300), mlc.tensor([0.5] * 400), mlc.ones(500).clone()]
        mlc.ones(10) + 1
    owners = {o.bytes // 4: (o.kind, o.name, Path(o.line).name) for o in p.memory().owners}
    here = Path(line_of(test_what_creation_functions_make_has_an_owner, "kept = [")).name
    assert owners.keys() >= {100, 200, 300, 400, 500} and len(kept) == 5
    assert {owners[n] for n in (100, 200, 400, 500)} == {
        ("tensor", "ones", here), ("tensor", "zeros", here), ("tensor", "tensor", here), ("tensor", "clone", here)}
    assert owners[300][2] == here


def test_what_a_compiled_step_reaches_is_named() -> None:
    net, beside = mlc.nn.Sequential(mlc.nn.Linear(30, 40), mlc.nn.Linear(40, 1)), []
    opt = mlc.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    @mlc.compile
    def step(x: Any) -> Any:
        opt.zero_grad()
        loss = net(x).sum()
        loss.backward()
        opt.step()
        return loss

    with profile(kernels=True, profile_memory=True) as p:
        beside.append(mlc.ones(777))
        x = mlc.ones(8, 30)                                            # made here
        for _ in range(4):
            step(x)
    owners = p.memory().owners
    named = {(o.kind, o.name) for o in owners}
    slot = "opt.state[net.0.weight].momentum_buffer"
    assert named >= {("argument", "net.0.weight"), ("result", "net.0.weight"), ("argument", slot), ("result", slot),
                     ("argument", "opt.param_groups[0]['lr']"), ("result", "net.0.weight.grad"), ("tensor", "ones")}
    assert sum(o.name == "net.0.weight" for o in owners) == 2          # the old and the new elements, and no more
    assert Path(next(o.line for o in owners if o.name == "x")).name == Path(line_of(
        test_what_a_compiled_step_reaches_is_named, "made here")).name
    assert sum(o.bytes == 777 * 4 for o in owners) == 1


# -- output -----------------------------------------------------------------------------------------------------------
def test_the_trace_has_kernels_within_calls_and_memory(tmp_path: Path) -> None:
    f, x = mlc.compile(greedy), mlc.ones(100)
    with profile(kernels=True, profile_memory=True) as p:
        f(x)
    p.export_chrome_trace(str(tmp_path / "t.json"))
    rows = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    call, = (r for r in rows if r.get("cat") == "compiled function")
    kernels = [r for r in rows if r.get("cat") == "kernel" and r["tid"] == call["tid"]]
    assert kernels and all(call["ts"] <= r["ts"] and r["ts"] + r["dur"] <= call["ts"] + call["dur"] for r in kernels)
    counters = [r["args"] for r in rows if r["ph"] == "C" and r["name"] == "memory of greedy"]
    assert max(c["values"] for c in counters) >= 100 * 100 * 4 and counters[-1]["values"] == 0
    assert any(r["name"] == "thread_name" for r in rows)


def rows() -> Iterator[KernelRow]:
    yield KernelRow("dot", "step", ("a.py:1", "a.py:2"), "Net.layers.0.attn", True, 2, 3.0, 6_000_000_000, 9_000)
    yield KernelRow("dot", "step", ("a.py:1", "a.py:2"), "Net.layers.1.attn", True, 2, 1.0, 6_000_000_000, 9_000)
    yield KernelRow("<add & sub>", "step", ("b.py:7",), "", False, 1, 0.5, 0, 4_000_000_000)


def test_tables_fit_the_terminal() -> None:
    limits = Limits({"f32": (4e9, 8e9)}, (Level("L2", 1 << 20, (1e10, 2e10)), Level("memory", 1 << 28, (8e9, 1e10))))
    found = list(rows())
    for row in found:
        row.limit = row.least(limits)
    assert [row.roofline for row in found] == pytest.approx([0.25, 0.75, 1.0])
    kernels = Kernels(found, 5.0, found)
    for width in (60, 80, 100, 160):
        text = kernels.table(width=width)
        assert max(map(len, text.splitlines())) <= width, text
        assert "a.py:1 +1" in text and ("GB/s" in text.partition("lines")[0]) == (width > 80)   # names before figures
    narrow = KernelRow("dot", "step", ("network/layers.py:12",), "Net.layers.0.attn", True, 2, 3.0, 6, 9, workers=2)
    for width in (60, 80):
        assert max(map(len, Kernels([narrow], 5.0, found).table(width=width).splitlines())) <= width
    assert str(kernels) == kernels.table()
    assert "4.5 s in kernels of 5 s in calls of compiled code (90.0%)" in text
    assert [row.line for row in kernels.by_line()] == ["a.py:1", "b.py:7"]
    assert kernels.sorted_by("bytes")[0].kernel == "<add & sub>" and kernels.to_json()["coverage"] == 0.9
    with pytest.raises(UserError, match="total, calls"):
        kernels.table("speed")


def test_flame_graphs_are_one_file() -> None:
    from xml.etree import ElementTree
    text = flame_graph(rows(), 'a "title" <&>')
    root = ElementTree.fromstring(text)
    boxes = {g.get("data-n"): float(g.get("data-w", 0)) for g in root.iter() if g.get("data-n")}
    assert {"all", "step", "Net", "layers", "0", "attn", "a.py:1", "dot", "<add & sub>"} <= boxes.keys()
    assert boxes["<add & sub>"] == pytest.approx(boxes["all"] / 9, abs=0.01) and "http" not in text.replace(
        "http://www.w3.org/2000/svg", "")


def test_a_kernel_is_compared_with_the_cache_that_has_room_for_its_bytes() -> None:
    levels = Level("L2", 1000, (100.0, 400.0)), Level("memory", 10_000, (10.0, 40.0))
    one = Limits({"f32": (1e9, 4e9)}, levels, threads=4)

    def least(bytes: int, threads: bool) -> float:
        return KernelRow("copy", "f", ("a.py:1",), "", threads, 2, 1.0, 0, 2 * bytes).least(one) / 2

    assert least(2000, False) == 20 and least(2001, False) == pytest.approx(200.1)
    assert least(8000, True) == 20 and least(8001, True) == pytest.approx(200.025)   # a quarter for each thread
    assert [roof_text(x) for x in (0.5, 1.004, 1.3)] == ["50%", "100%", ">100%"]


def test_a_smaller_cache_is_no_slower_than_a_larger_one(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = {"L2": (1.0, 20.0), "L3": (1.0, 30.0), "memory": (1.0, 5.0)}
    monkeypatch.setattr(roofline, "copies", lambda threads: measured)
    monkeypatch.setattr(roofline, "multiply_adds", lambda threads: {"f32": (1e9, 2e9)})
    found = roofline.limits(2)
    assert [found.level(n).rates[1] for n in (1 << 19, 1 << 20, 1 << 30)] == [30.0, 30.0, 5.0]


def test_the_command_profiles_programs_and_functions(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text("import sys\nimport mlc\n\n\ndef f(x):\n    return (x @ x).exp()\n\n\n"
                                         "print(mlc.compile(f)(mlc.ones(8, 8)).shape)\nsys.exit(3)\n")
    assert cli.main(["profile", "program.py", "-o", "t.json", "--flame", "f.svg", "--json", "k.json", "--memory",
                     "--counters", "--no-roofline"]) == 3
    out, err = capsys.readouterr()
    assert out.startswith("(8, 8)\nkernels (") and "program.py:6" in out and "memory at the peak" in out and not err
    assert re.search("(?m)^hardware counters: ", out)
    figures = json.loads((tmp_path / "k.json").read_text())
    assert figures["kernels"][0]["calls"] == 1 and bool(figures["counters"]) != bool(figures["counters_missing"])
    assert (tmp_path / "t.json").exists() and (tmp_path / "f.svg").read_text().startswith("<svg")
    for words, code in ((["nothing.py"], "MLC0392"), (["program.py", "--sizes", "B=2"], "MLC0391"),
                        (["program.py", "--sort", "speed"], "MLC0391"), (["program.py:f", "x"], "MLC0391"),
                        (["program.py:f", "--repeat", "0"], "'0' is no integer of at least 1"),
                        (["program.py", "--rows", "-7"], "'-7' is no integer of at least -1, where -1 is for all")):
        assert cli.main(["profile", *words]) == 2 and code in capsys.readouterr().err
    (tmp_path / "idle.py").write_text("print('idle')\n")
    assert cli.main(["profile", "idle.py", "--no-roofline"]) == 1
    assert re.search("ran no kernel(?s:.*)mlc profile idle.py:FUNCTION", capsys.readouterr().err)


def test_the_sizes_of_a_call_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "f.mlc"
    file.write_text("def f(x: f32[N, N + 1]) -> f32[N, N + 1] = exp(x)\n")
    assert cli.main(["profile", str(file), "--sizes", "N=7", "--repeat", "2", "--no-roofline"]) == 0
    assert capsys.readouterr().out.startswith("2 calls of main with N = 7 (--sizes)\n\nkernels (1):")


def test_a_program_may_open_a_profile_of_its_own_under_the_command(tmp_path: Path,
                                                                   capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "own.py"
    path.write_text("import mlc\nx = mlc.ones(3, 3) * 2\nwith mlc.profiler.profile(kernels=True) as p:\n    x.exp()\n"
                    "print([row.kernel for row in p.kernels()])\n")
    assert cli.main(["profile", str(path), "--no-roofline"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("['exp/map']\n") and "own.py:2" in out and "own.py:4" in out and not err


# -- locations --------------------------------------------------------------------------------------------------------
def test_the_command_shows_what_a_program_did_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "fails.py"
    path.write_text("import mlc\nx = mlc.ones(3, 3) * 2\nraise ValueError('boom')\n")
    assert cli.main(["profile", str(path), "--no-roofline"]) == 1
    out, err = capsys.readouterr()
    assert "fails.py:2" in out and "boom" in err


def test_the_module_of_a_location_moves_with_calls() -> None:
    assert called_scope("Net.0.linear", "Net.0", "Net.1") == "Net.1.linear"
    assert called_scope("Net.0", "Net.0", "Net.1") == "Net.1" and called_scope("Net.01", "Net.0", "Net.1") == "Net.01"
    assert Loc("a.py", 1, scope="Net.0.x").called(Loc("a.py", 1, scope="Net.0"), Loc("a.py", 1, scope="")).scope == "x"
    assert Loc("a.py", 1, scope="Net.0").through("pass").scope == "Net.0"
    shared, first, second = (Loc("a.py", line, scope=scope) for line, scope in ((3, "N.0"), (3, "N.0"), (9, "N.1")))
    assert (shared.called(first, second).line, shared.called(first, second).scope) == (9, "N.1")
    assert Loc("a.py", 4, scope="N.0").called(first, second).line == 4               # of the body of the layer itself


def test_numbered_locations_find_their_lines_and_modules() -> None:
    module = parse_module('func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {\n'
                          '  %0 = tensor.exp %x : tensor<3xf32> loc("module N.0"("m.py":3:7))\n'
                          '  %1 = tensor.exp %0 : tensor<3xf32> loc("module N.0"("m.py":3:7))\n'
                          '  %2 = tensor.exp %1 : tensor<3xf32> loc("module N.1"("m.py":9:7))\n'
                          '  func.return %2 : tensor<3xf32>\n}')
    table = LocationTable(module)
    inner, callee, call = (i for i, loc in enumerate(table.locs) if loc.scope)
    with table.numbered():
        loc = table.ops[inner].loc.called(table.ops[callee].loc, table.ops[call].loc)
        site = KernelSite("exp", tuple(SourceLine(x.file, x.line, x.scope) for x in (loc, table.ops[inner].loc)))
    assert KernelSite.parse(table.kernel(site.text())).lines == (SourceLine("m.py", 9, "N.1"),
                                                                 SourceLine("m.py", 3, "N.0"))


class Twice(nn.Module):
    def __init__(self) -> None:
        self.first, self.second = nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, x: Any) -> Any:
        x = self.first(x).sin()
        for _ in range(6):
            x = self.second(x).sin()       # six times as slow
        return x


@pytest.mark.parametrize("gradient", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_layers_that_share_a_function_have_their_own_lines(gradient: bool) -> None:
    net, x = Twice(), mlc.ones(32, 32)
    f = mlc.compile(lambda net, x: mlc.grad(lambda net: net(x).sum())(net) if gradient else net(x))
    with profile(kernels=True) as p:
        f(net, x)
    products = [row for row in p.kernels().by_module_path if "dot_general" in row.kernel]
    counts = {line: sum(row.calls for row in products if row.line.endswith(line))
              for line in (line_of(Twice.forward, "self.first"), line_of(Twice.forward, "six times"))}
    first, second = counts.values()
    assert second >= 6 * first > 0 and first + second == sum(row.calls for row in products)
    assert {"Twice.first", "Twice.second"} <= {row.module for row in products} <= {
        "Twice.first", "Twice.second", "Twice"}            # a sine that is fused may have more operations


# -- other tools ------------------------------------------------------------------------------------------------------
def test_counters_of_the_kernel_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware_counters, "COUNTERS", {"nanoseconds": (1, 1)})      # a counter of Linux itself
    with HardwareCounters() as counted:
        np.ones(1000).sum()
    if counted.reason:                                     # the kernel does not allow it
        assert not counted.counts and counted.reason in counted.text()
    else:
        assert counted.counts["nanoseconds"] > 0 and "nanoseconds" in counted.text()
    assert counted.text().startswith("hardware counters: ") and "\n" not in counted.text()


def test_code_for_perf_and_gdb_names_its_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = Toolchain().key()
    monkeypatch.setenv("MLC_PERF", str(tmp_path / "code"))
    chain = Toolchain()
    module = mlc.lower(lambda x: (x @ x).exp(), [mlc.spec(64, 64)], level="tensor").module
    assert isinstance(module, Module) and chain.key() != key
    executable = chain.load(chain.compile(chain.lower(module), cache=True))
    file, = (tmp_path / "code").glob("mlc-*.so")
    assert file.read_bytes() == executable.image and b"\0kernel_dot_general" in executable.image
    assert executable.entry("main").call([np.zeros((64, 64), np.float32)])[0].sum() == 64 * 64
    monkeypatch.setenv("MLC_PERF", str(file))              # which is no folder
    with pytest.raises(UserError) as found:
        chain.load(executable.linked)
    assert found.value.code == "MLC0393"


# -- threads ----------------------------------------------------------------------------------------------------------
@pytest.fixture
def two_threads() -> Iterator[None]:
    before = mlc.get_num_threads()
    mlc.set_num_threads(2)
    yield
    mlc.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_kernels_say_what_each_thread_did() -> None:
    f, x = mlc.compile(lambda x: mlc.exp(x @ x)), mlc.randn(256, 256)
    with profile(kernels=True) as p:
        for _ in range(5):
            f(x)
    row, = (row for row in p.kernels().rows if row.kernel.startswith("dot_general"))
    assert row.workers in (1, 2) and 0 < row.longest <= row.busy <= 2 * row.longest
    assert row.longest <= row.shared <= row.seconds and 0.5 <= (row.balance or 1) <= 1
    assert (row.workers == 2) == ("threads  even" in p.kernels().table())


class Hooked:
    """A library with parallel work: a variable for the address that it calls."""

    def __init__(self) -> None:
        self.hook = ctypes.c_void_p()

    def address(self, name: str) -> int:
        return ctypes.addressof(self.hook)


@pytest.mark.usefixtures("two_threads")
def test_an_imbalance_is_seen() -> None:
    library: Any = Hooked()
    threads.attach(library, timed=True)
    part_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    part = part_type(lambda env, begin, end: time.sleep(sum(0.01 if i else 0.3 for i in range(begin, end))))
    regions = threads.regions(library)
    assert regions is not None
    before = regions.count
    ctypes.CFUNCTYPE(None, part_type, ctypes.c_void_p, ctypes.c_int64)(library.hook.value)(part, None, 2)
    row, = regions.since(before, threading.get_native_id())
    _, start, stop, busy, longest, count = row
    assert count in (1, 2) and longest <= busy and stop - start >= longest
    assert count == 1 or busy < 1.6 * longest              # the thread with the long iteration has most of the time


def test_regions_belong_to_the_kernels_that_they_are_within() -> None:
    events = np.array([[1, 100, 200], [0, 300, 400], [1, 500, 900]])
    regions = np.array([[7, 310, 390, 150, 80, 2], [7, 510, 600, 90, 90, 1], [7, 610, 890, 500, 260, 3],
                        [7, 450, 480, 9, 9, 9]])
    assert timed.shares_of(2, events, regions).tolist() == [[80, 150, 80, 2], [370, 590, 350, 3]]
    assert not timed.shares_of(2, events, None).any() and not timed.shares_of(2, events[:0], regions).any()
