"""TensorBoard's files, benchmarks, hubs of local folders, and summaries of models."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.ir.diag import UserError
from mlc.utils import benchmark


# -- TensorBoard ------------------------------------------------------------------------------------------------------
def events(folder: Path) -> list[Any]:
    """The entries of the file of events in a folder."""
    event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2")
    data, = (path.read_bytes() for path in folder.glob("events*"))
    found = []
    while data:
        length, = struct.unpack("<Q", data[:8])
        found.append(event_pb2.Event.FromString(data[12:12 + length]))
        data = data[16 + length:]
    return found


def test_tensors_are_written_for_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    with mlc.utils.tensorboard.SummaryWriter(str(tmp_path / "run")) as writer:
        writer.add_scalar("loss", mlc.tensor(0.5, requires_grad=True) * 1, 3)
        writer.add_scalars("both", {"a": mlc.tensor(1.0)}, global_step=4)
        writer.add_histogram("w", mlc.arange(10.0), 1)
        writer.add_image("x", mlc.zeros(3, 2, 2), 1)
        writer.flush()
        with pytest.raises(AttributeError, match="graphs") as found:
            writer.add_graph(nn.Linear(2, 2))
        with pytest.raises(AttributeError, match="add_nothing"):
            writer.add_nothing("x")
    assert getattr(found.value, "code", "") == "MLC0338"
    first, *rest = (e for e in events(tmp_path / "run") if e.HasField("summary"))
    assert (first.step, first.summary.value[0].tag, first.summary.value[0].simple_value) == (3, "loss", 0.5)
    assert {v.WhichOneof("value") for e in rest for v in e.summary.value} >= {"histo", "image"}


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(UserError, match=r"pip install .*mlc\[tensorboard\]") as found:
        mlc.utils.tensorboard.SummaryWriter()
    assert found.value.code == "MLC0793" and found.value.loc.file == __file__


# -- benchmarks -------------------------------------------------------------------------------------------------------
def test_a_statement_is_timed_in_blocks() -> None:
    calls: list[int] = []
    timer = benchmark.Timer("f()", "f = g", globals={"g": lambda: calls.append(1)}, label="call", num_threads=1)
    threads = mlc.get_num_threads()
    found = timer.blocked_autorange(min_run_time=0.01)
    assert sum(found.raw_times) >= 0.01 and len(calls) >= len(found.raw_times) * found.number_per_run
    assert 0 < found.median < 1e-3 and found.title == "call" and mlc.get_num_threads() == threads
    assert timer.timeit(7).number_per_run == 7 and len(timer.repeat(3, 2)) == 3
    assert len(timer.adaptive_autorange(max_run_time=0.02).times) >= 1


def test_the_statistics_of_a_measurement() -> None:
    torch = pytest.importorskip("torch.utils.benchmark")
    times = [float(t) for t in np.random.default_rng(0).normal(1e-3, 1e-4, 41)]
    ours = benchmark.Measurement(10, times, benchmark.TaskSpec("x", "pass", label="l", sub_label="s"))
    theirs = torch.Measurement(10, times, torch.TaskSpec("x", "pass", label="l", sub_label="s"))
    for name in ("median", "mean", "iqr", "has_warnings", "title", "as_row_name", "significant_figures", "num_threads"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name)), name
    merged, = benchmark.Measurement.merge([ours, ours])
    assert len(merged.times) == 82 and "41 measurements, 10 runs per measurement, 1 thread" in repr(ours)


def test_measurements_are_compared_in_a_table() -> None:
    rows = [benchmark.Measurement(1, [t, t, t, t * spread], benchmark.TaskSpec("x", "", label="add", sub_label=row,
                                                                              description=column))
            for row, column, t, spread in (("a", "ours", 1e-6, 1), ("a", "theirs", 2.345e-6, 1),
                                           ("b", "ours", 4e-5, 9))]
    table = benchmark.Compare(rows)
    table.colorize(); table.highlight_warnings(); table.trim_significant_figures()
    lines = str(table).splitlines()
    assert [line.split() for line in lines[2:5]] == [["ours", "theirs"], ["a", "*1.00", "2.35"],
                                                     ["b", "*40", "(!", "200%)"]]


@pytest.mark.parametrize("mistake", [
    lambda: benchmark.Timer("x +"), lambda: benchmark.Timer(language="c++"), lambda: benchmark.Compare([3]),  # type: ignore[list-item]
    lambda: benchmark.Timer().autorange()])
def test_mistakes_with_benchmarks(mistake: Any) -> None:
    with pytest.raises(UserError) as found:
        mistake()
    assert found.value.code == "MLC0795" and found.value.loc.file == __file__


# -- hubs -------------------------------------------------------------------------------------------------------------
HUBCONF = '''
dependencies = ["numpy"]
import beside
from mlc import nn

def small(n=2, **settings):
    """A small layer."""
    return beside.make(nn, n, **settings)

def _own(): ...
'''


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    (tmp_path / "hubconf.py").write_text(HUBCONF)
    (tmp_path / "beside.py").write_text("def make(nn, n, **settings): return nn.Linear(n, n, **settings)")
    return tmp_path


def test_a_local_folder_is_a_hub(hub: Path) -> None:
    path = list(sys.path)
    layer = mlc.hub.load(str(hub), "small", 3, source="local", bias=False)
    assert layer(mlc.ones(1, 3)).shape == (1, 3) and layer.bias is None
    assert mlc.hub.list(hub) == ["small"] and mlc.hub.help(hub, "small") == "A small layer." and sys.path == path


def test_what_is_no_hub(hub: Path, tmp_path: Path) -> None:
    cases: list[tuple[Any, str]] = [
        (lambda: mlc.hub.load("pytorch/vision", "resnet18"), "source = 'github'.*downloads nothing"),
        (lambda: mlc.hub.load(hub / "none", "small", source="local"), r"no folder with a hubconf\.py"),
        (lambda: mlc.hub.load(hub, "large", source="local"), "no entry point 'large'.*it has small"),
        (lambda: mlc.hub.load_state_dict_from_url("https://example.org/x.pth"), "downloads nothing")]
    for mistake, text in cases:
        with pytest.raises(UserError, match=f"(?s){text}") as found:
            mistake()
        assert found.value.code == "MLC0794" and found.value.loc.file == __file__
    (hub / "hubconf.py").write_text("dependencies = ['not_there_at_all']")
    with pytest.raises(UserError, match=r"(?s)needs the package not_there_at_all.*pip install"):
        mlc.hub.list(hub)


# -- summaries --------------------------------------------------------------------------------------------------------
def test_a_summary_counts_and_leaves_the_model_as_it_was() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Sequential(nn.ReLU(), nn.Linear(8, 4)))
    model[2][1].weight.requires_grad_(False)
    before = {name: x.tolist() for name, x in model.state_dict().items()}
    found = mlc.summary(model, mlc.ones(5, 4))
    assert found.total == 40 + 16 + 36 and found.trained == found.total - 32
    assert [(r.name, r.kind, r.depth, r.shapes, r.parameters) for r in found.rows[-2:]] == [
        ("0", "ReLU", 2, ((5, 8),), 0), ("1", "Linear", 2, ((5, 4),), 36)]
    assert {name: x.tolist() for name, x in model.state_dict().items()} == before and model.training
    assert mlc.summary(model).rows[0].shapes is None and "92 parameters, 60 of them trained" in str(found)
    lstm = mlc.summary(nn.LSTM(2, 3), mlc.ones(4, 1, 2))
    assert lstm.rows[0].shapes == ((4, 1, 3), (1, 1, 3), (1, 1, 3))


def test_a_summary_of_no_module() -> None:
    with pytest.raises(UserError) as found:
        mlc.summary(mlc.ones(2))  # type: ignore[arg-type]
    assert found.value.code == "MLC0797"
