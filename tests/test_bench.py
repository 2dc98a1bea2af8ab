"""mlc bench: the same work for everybody, results compared, and files with the weights that they have."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc.tools.bench import roofline
from mlc.tools.bench.library import Library
from mlc.tools.bench.measuring import flops_of, measure
from mlc.tools.bench.networks import NETWORKS
from mlc.tools.bench.peers import Peer, Prepared
from mlc.tools.bench.rows import Row
from mlc.tools.bench.turns import computing
from mlc.tools.cli import main


@pytest.mark.parametrize("name", [n if n == "mlp" else pytest.param(n, marks=pytest.mark.slow)
                                  for n in NETWORKS])
def test_networks_are_the_same_in_both_libraries(name: str) -> None:
    found = []
    for library in ("torch", "mlc"):
        a = Library(library)
        model, data = NETWORKS[name].module(a).eval(), NETWORKS[name].data(a, NETWORKS[name].batch)
        with a.lib.no_grad():
            found.append((mlc.compile(model) if library == "mlc" else model)(*data).numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4, atol=1e-4 * np.abs(found[0]).max())


def row(**calls: Callable[[], Any]) -> Row:
    """A row that peers have these calls of."""
    return Row("a row", "rows", lambda peer, threads: Prepared(calls[peer.name]) if peer.name in calls else None)


def test_peers_whose_results_differ_have_no_time() -> None:
    def fails() -> Any:
        raise RuntimeError("no such operator\nmore")

    x = np.arange(4.0)
    found = measure(row(mlc=lambda: x, torch=lambda: x + 1e-5, numpy=lambda: x + 1, openvino=fails),
                    ["mlc", "torch", "numpy", "openvino", "onnxruntime"], 1, 1)
    assert found.seconds.keys() == found.first.keys() == {"mlc", "torch"}
    assert found.best is not None and found.best[0] == "torch" and found.ratio
    assert found.failed == {"numpy": "its results are 3.3e-01 apart from those of mlc",
                            "openvino": "RuntimeError: no such operator"}
    with pytest.raises(RuntimeError):
        measure(row(mlc=fails), ["mlc"], 1, 1)


def test_other_programs_compute_meanwhile_and_no_longer() -> None:
    with computing(2) as programs:
        end = time.monotonic() + 20
        while (idle := [p for p in programs if processor_time(p.pid) < 0.2]) and time.monotonic() < end:
            time.sleep(0.05)
        assert not idle
    assert None not in [program.poll() for program in programs]
    assert measure(row(mlc=lambda: np.arange(4.0)), ["mlc"], 1, 1, busy=1).seconds["mlc"] > 0


def test_other_programs_end_with_the_one_that_started_them() -> None:
    """However that ends; also if it is gone before they begin."""
    text = "import os\nfrom mlc.tools.bench.turns import computing\nwith computing(2) as started:\n" \
           "    print(*(program.pid for program in started), flush=True)\n    os._exit(1)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    pids = [int(word) for word in done.stdout.split()]
    end = time.monotonic() + 20
    while any(running(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.05)
    assert len(pids) == 2 and not any(running(pid) for pid in pids)


def running(pid: int) -> bool:
    """Whether a process is there, and not only its exit status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def processor_time(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(("row", "peer"), [("matmul 256", "numpy"),
                                             pytest.param("mlp", "torch", marks=pytest.mark.slow)])
def test_the_command_writes_figures(row: str, peer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                    capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(roofline, "copies", partial(roofline.copies, volume=1 << 20))
    chart = tmp_path / "chart.svg"
    assert main(["bench", row, f"--peers={peer}", "--rounds=1", "--threads=1", "--json=-", f"--plot={chart}"]) == 0
    out = json.loads(capfd.readouterr().out)
    found = out["rows"][0]
    assert found["row"].startswith(row) and found["seconds"].keys() == {"mlc", peer} and found["apart"][peer] < 1e-5
    assert out["threads"] == 1 and min(one for one, _ in out["limits"]["operations"].values()) > 0
    assert chart.read_text().startswith("<?xml")


def test_operations_of_a_network() -> None:
    assert flops_of("mlp") == 2 * 64 * (784 * 512 + 512 * 512 + 512 * 10)


def onnx_file(folder: Path) -> tuple[Path, Any, Any]:
    """A file of a model with a weight, an argument, and the result."""
    model = mlc.nn.Linear(3, 2)
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    mlc.onnx.export(model, [mlc.spec(4, 3)], folder / "f.onnx")
    np.save(folder / "x.npy", x)
    return folder / "f.onnx", x, model(mlc.tensor(x)).detach().numpy()


def test_files_run_with_the_weights_that_they_have(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path, _, result = onnx_file(tmp_path)
    out = tmp_path / "y.npy"
    for words in ([], ["--check"], ["--exec=interp"]):
        assert main(["run", str(path), f"--inputs={tmp_path / 'x.npy'}", f"--output={out}", *words]) == 0
        np.testing.assert_allclose(np.load(out), result, rtol=1e-5)
    np.savez(tmp_path / "all.npz", a=result, b=result)
    assert main(["run", str(path), f"--inputs={tmp_path / 'all.npz'}"]) == 2
    assert "takes 1" in capfd.readouterr().err
    assert main(["bench", str(path), "--peers=onnxruntime", "--rounds=1", "--threads=1"]) == 0
    assert "files: the best peer's time over mlc's" in capfd.readouterr().out


@pytest.mark.parametrize(("words", "reason"), [
    (["nothing"], "there is no row or file 'nothing'"), (["mlp", "--peers=tpu"], "no peer 'tpu'"),
    (["mlp", "--threads=0"], "--threads"), (["none.onnx"], "none.onnx")])
def test_mistakes(words: list[str], reason: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *words]) == 2
    assert reason in capfd.readouterr().err


def test_peers_that_are_not_installed_are_named(monkeypatch: pytest.MonkeyPatch,
                                                capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(Peer, "missing", lambda peer: "openvino" if peer.name == "openvino" else None)
    assert main(["bench", "mlp", "--peers=openvino"]) == 2
    assert "needs openvino, which is not installed" in capfd.readouterr().err
    assert main(["bench", "--list"]) == 0
    assert "openvino (needs openvino)" in capfd.readouterr().out
