"""The comparison with PyTorch's database of operators tells right from wrong."""
from __future__ import annotations

import copy
import importlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mlc

pytest.importorskip("torch")
pytest.importorskip("expecttest")
if TYPE_CHECKING:
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    from tests.peers import modules, mutated_files, opinfo, opinfo_names, torch_backend, torch_judging

ENTRIES = dict[str, Any]()
LAYERS = dict[str, Any]()


@pytest.fixture(autouse=True, scope="module")
def database() -> None:
    """Imports PyTorch's databases, which takes as long as it takes to collect a third of all tests."""
    internal = "torch.testing._internal"
    ops, layers = (importlib.import_module(f"{internal}.{name}") for name in ("common_methods_invocations",
                                                                              "common_modules"))
    ENTRIES.update({entry.formatted_name: entry for entry in ops.op_db})
    LAYERS.update({entry.name: entry for entry in layers.module_db})
    globals().update(op_db=ops.op_db, torch=importlib.import_module("torch"), **{
        name: importlib.import_module(f"tests.peers.{name}")
        for name in ("modules", "mutated_files", "opinfo", "opinfo_names", "torch_backend", "torch_judging")})


def _refuses(*args: Any, **keywords: Any) -> Any:
    raise mlc.UserError("not today", code="MLC0360")


def _crashes(*args: Any) -> Any:
    raise ZeroDivisionError


def _exhausts(*args: Any) -> Any:
    raise MemoryError


def _rambles(*args: Any) -> Any:
    raise mlc.UserError("one line\nand another", code="MLC0360")


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("f", "verdict"), [
    (mlc.hypot, "pass"), (None, "missing"), (_refuses, "refused"), (mlc.sub, "wrong value"),
    (lambda x, y: mlc.hypot(x, y).double(), "wrong dtype"), (lambda x, y: mlc.hypot(x, y)[None], "wrong shape"),
    (lambda x, y: mlc.hypot(x, y) * 1.0001, "wrong value"), (_crashes, "crash")])
def test_verdicts(f: Callable[..., Any] | None, verdict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opinfo, "ours", lambda entry: f)
    line = opinfo.judge(ENTRIES["hypot"], "forward", 1, "eager")
    assert line["verdict"] == verdict
    assert verdict in opinfo.summary([line])


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("f", "verdict"), [(mlc.hypot, "pass"), (lambda x, y: mlc.hypot(x, mlc.detach(y)),
                                                                  "wrong value")])
def test_gradients(f: Callable[..., Any], verdict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opinfo, "ours", lambda entry: f)
    assert opinfo.judge(ENTRIES["hypot"], "grad", 1, "eager")["verdict"] == verdict


def test_names_that_are_elsewhere_are_in_the_database() -> None:
    known = {name for entry in op_db for name in (entry.name, entry.formatted_name)}
    assert not set(opinfo_names.ELSEWHERE) - known
    assert not opinfo_names.UNDETERMINED - known


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("f", "verdict"), [(_refuses, "pass"), (lambda *args, **keywords: mlc.ones(1), "accepted"),
                                            (lambda *args, **keywords: _crashes(), "crash")])
def test_calls_that_pytorch_rejects(f: Callable[..., Any], verdict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opinfo, "ours", lambda entry: f)
    assert opinfo.judge(ENTRIES["roll"], "error", 9, "eager")["verdict"] == verdict


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("change", "verdict"), [
    (lambda f: f, "pass"), (lambda f: None, "missing"), (lambda f: lambda *args, **keywords: _crashes(), "crash"),
    (lambda f: type("Linear", (f,), {"forward": lambda self, input: f.forward(self, input) * 1.01}), "wrong value"),
    (lambda f: type("Linear", (f,), {"forward": lambda self, input: f.forward(self, input.detach())}), "wrong value"),
    (lambda f: type("Linear", (f,), {"extra_repr": lambda self: "?"}), "wrong value")])
def test_verdicts_of_layers(change: Callable[..., Any], verdict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = modules.layer
    monkeypatch.setattr(modules, "layer", lambda name: change(own(name)))
    line = modules.judge(LAYERS["nn.Linear"], 2)
    assert line["verdict"] == verdict and verdict in modules.summary([line])


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("name", ["nn.LazyConv1d", "nn.BatchNorm1d", "nn.CTCLoss", "nn.FractionalMaxPool2d"])
def test_layers_pass(name: str) -> None:
    assert modules.judge(LAYERS[name], 2)["verdict"] == "pass"


NET = b"""func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %x, %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}"""


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("f", "verdict"), [
    (None, "loads"), (_refuses, "refused"), (_crashes, "traceback"), (_exhausts, "memory"), (_rambles, "unclear")])
def test_verdicts_on_files(f: Callable[..., Any] | None, verdict: str, monkeypatch: pytest.MonkeyPatch,
                           tmp_path: Path) -> None:
    path = tmp_path / "f.stablehlo.mlir"
    path.write_bytes(NET)
    if f is not None:
        monkeypatch.setattr(mlc.stablehlo, "load", f)
        monkeypatch.setattr("mlc.stablehlo.description.program_of", f)
    assert mutated_files.load(path, "stablehlo")[0] == verdict
    assert mutated_files.imported(path)[0] == verdict


def test_processes_that_end_or_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for f, seconds, verdict in ((lambda *args: os._exit(3), 60.0, "crash"),
                                (lambda *args: time.sleep(60), 0.5, "timeout")):
        monkeypatch.setattr(mutated_files, "load", f)
        worker = mutated_files.Worker(seconds, 1 << 30, str(tmp_path))
        assert worker.verdict("stablehlo", NET, False)[0] == verdict
        worker.stop()


def test_a_seed_makes_the_same_file_again() -> None:
    made = [mutated_files.file_of("stablehlo", [("net", NET)], seed) for seed in (0, 1, 0)]
    assert made[0] == made[2] != made[1]


@pytest.mark.slow
def test_models_may_differ_by_what_pytorch_differs_from_itself() -> None:
    """Statistics of two nearly equal rows make the first gradient of little worth; an error of one percent in a second
    one, which is well-conditioned, is found."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4, eps=1e-9), torch.nn.Linear(4, 2))
    args = (torch.ones(2, 4) + torch.tensor([[0.0], [1e-3]]),)
    theirs = torch_judging.training(copy.deepcopy(model), torch_judging.as_it_is, args, {})
    ours = torch_judging.training(torch_judging.moved(model, 7, 1e-7), torch_judging.as_it_is, args, {})
    assert torch_backend.compared(ours, theirs) is not None
    assert torch_judging.verdict_on(ours, theirs, torch_judging.training, model, args, {})[0] == "pass"

    def mistaken(model: Any, compiled: Callable[[Any], Any], args: Any, keywords: Any) -> list[Any]:
        out = torch_judging.training(model, torch_judging.as_it_is, args, keywords)
        out[-1] *= 1.01 if compiled is torch_judging.by_mlc else 1.0
        return out

    ours[-1] = ours[-1] * 1.01
    verdict, why = torch_judging.verdict_on(ours, theirs, mistaken, model, args, {})
    assert verdict == "wrong" and f"result {len(ours) - 1} of {len(ours)}" in why
