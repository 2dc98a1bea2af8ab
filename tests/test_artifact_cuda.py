"""Saved models that hold code for GPUs: made anywhere, run where there is such a device."""
from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import artifact, nn
from mlc.backends.checksummed import unpack
from mlc.backends.cuda import devices
from mlc.ir.diag import BackendError, UserError
from tests.fake_device import FakeDevice
from tests.test_cuda_driver import NoLibrary

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
BATCH = [mlc.spec("B", 4)]


class Net(nn.Module):
    """A layer, and a buffer that counts calls."""

    def __init__(self) -> None:
        self.layer = nn.Linear(4, 5)
        self.calls: Any
        self.register_buffer("calls", mlc.zeros(1))

    def forward(self, x: Any) -> Any:
        self.calls = self.calls + 1
        return mlc.tanh(self.layer(x)) * mlc.tensor([1.0, 2, 3, 4, 5])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.mlc"


@pytest.mark.parametrize("how", ["called", "args", "targets"])
def test_code_for_a_device_comes_back(device: FakeDevice, path: Path, how: str) -> None:
    net = Net()
    wanted = mlc.compile(net)(X).numpy()
    f = mlc.compile(net, target=None if how == "targets" else "cuda")
    if how == "called":
        f(X)
    mlc.save(f, path, args=None if how == "called" else BATCH, targets=["cuda:sm_80"] if how == "targets" else ())
    g = mlc.load(path)
    assert not device.launches or how == "called"
    before = g.weights["calls"].item()
    for _ in range(2):
        y = g(X)
        assert y.device == "cuda:0" and (y.numpy() == wanted).all()
    assert g.weights["calls"].item() == before + 2 and {w.device for w in g.weights.values()} == {"cuda:0"}


def test_a_file_for_both_machines_runs_where_tensors_are(device: FakeDevice, path: Path) -> None:
    mlc.save(mlc.compile(lambda x: (x * 2, x.sum())), path, args=BATCH, targets=["host", "cuda:sm_80", "cuda:sm_90"])
    g = mlc.load(path)
    for x, where in ((X, "cpu"), (mlc.tensor(X).cuda(), "cuda:0"), (X[:1], "cpu")):
        y, total = g(x)
        assert y.device == total.device == where and (y.numpy() == 2 * np.asarray(x)).all()
    assert len(device.launches) == 2 and g.signatures == ["(tensor<Bx4xf32>) -> (tensor<Bx4xf32>, tensor<f32>)"]
    assert dict(artifact.describe(path))["runs on this machine"] == "yes"
    with pytest.raises(UserError, match=r"MLC0323"):
        g(mlc.tensor(X[:, :3]).cuda())


@pytest.mark.parametrize("architecture, code", [(80, "cuda:sm_80"), (89, "cuda:sm_80"), (100, "cuda:sm_90"),
                                                (75, None)])
def test_the_newest_code_that_a_device_can_run(path: Path, architecture: int, code: str | None,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    devices.substitute({0: FakeDevice(architecture=architecture)})
    try:
        mlc.save(mlc.compile(lambda x: x + 1), path, args=[X], targets=["cuda:sm_90", "cuda:sm_80"])
        g = mlc.load(path)
        if code is None:
            with pytest.raises(BackendError, match=r"MLC0588.*sm_75.*cannot run code made for cuda:sm_90") as caught:
                g(X)
            assert caught.value.loc.file == __file__
            return
        assert (g(X).numpy() == X + 1).all()
        entry, = g._on_device.values()
        assert entry.executable.target.name == code
    finally:
        devices.substitute(None)


def test_ptx_is_saved_and_loaded_without_a_device(path: Path, installed: Callable[[Any], None]) -> None:
    installed(NoLibrary())
    mlc.save(mlc.compile(Net()), path, args=BATCH, targets=["host", "cuda:sm_90"])
    _, pieces = unpack(artifact.MAGIC, path.read_bytes())
    ptx = bytes(pieces["gpu 0 cuda:sm_90 code"])
    assert b".target sm_90" in ptx and b".visible .entry" in ptx
    assert mlc.load(path)(X).device == "cpu"
    mlc.save(mlc.compile(Net(), target="cuda:sm_90"), path, args=BATCH)
    g = mlc.load(path)
    assert dict(artifact.describe(path))["target"] == "cuda:sm_90: nvptx64-nvidia-cuda"
    for _ in range(2):
        with pytest.raises(BackendError, match="MLC0581") as caught:
            g(X)
        assert caught.value.loc.file == __file__
    with pytest.raises(BackendError, match="MLC0581"):     # which architecture, only a device could tell
        mlc.save(mlc.compile(Net(), target="cuda"), path, args=BATCH)
    with pytest.raises(UserError, match=r"MLC0570.*targets from arguments"):
        mlc.save(mlc.compile(Net()), path, targets=["cuda:sm_90"])


def test_equal_files_for_equal_models(path: Path) -> None:
    net = Net()
    for file in (path, path.with_suffix(".again")):
        mlc.save(mlc.compile(net), file, args=BATCH, targets=["host", "cuda:sm_90"])
    assert path.read_bytes() == path.with_suffix(".again").read_bytes()


def test_damaged_files(path: Path, device: FakeDevice) -> None:
    """Nothing of a file is run before all of it is found right."""
    mlc.save(mlc.compile(Net(), target="cuda"), path, args=BATCH)
    whole, draw = path.read_bytes(), random.Random(0)
    for trial in range(60):
        data = bytearray(whole)
        if trial % 2:
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        else:
            del data[draw.randrange(len(data)):]
        path.write_bytes(data)
        with pytest.raises(UserError, match="MLC0571"):
            mlc.load(path)
    assert not device.launches
