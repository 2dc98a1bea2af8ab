"""safetensors: files from and for PyTorch, every element type, and files that are none."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn

torch = pytest.importorskip("torch")
files: Any = pytest.importorskip("safetensors.torch")


def test_a_file_from_torch_loads_by_name(tmp_path: Path) -> None:
    theirs = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16, 2))
    files.save_file(theirs.state_dict(), tmp_path / "model.safetensors")
    ours = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2))
    assert str(ours.load_state_dict(nn.load_safetensors(tmp_path / "model.safetensors"))).startswith("<All keys")
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 4)).astype(np.float32)
    torch.testing.assert_close(torch.from_numpy(ours(mlc.tensor(x)).numpy()), theirs(torch.from_numpy(x)).detach())


def test_every_element_type_goes_both_ways(tmp_path: Path) -> None:
    state = {"half": torch.randn(3, 2).half(), "bfloat": torch.randn(5).bfloat16(), "float": torch.randn(2, 3),
             "double": torch.randn(1).double(), "bool": torch.tensor([True, False]), "scalar": torch.tensor(3),
             "small": torch.tensor([1, 2, 255], dtype=torch.uint8), "int": torch.tensor([-1], dtype=torch.int32),
             "nothing": torch.zeros(0, 4)}
    files.save_file(state, tmp_path / "in")
    held = nn.load_safetensors(tmp_path / "in")
    assert held["bfloat"].dtype is mlc.bfloat16 and held["nothing"].shape == (0, 4)
    nn.save_safetensors(tmp_path / "out", held)
    back = files.load_file(tmp_path / "out")
    assert back.keys() == state.keys()
    for name, x in state.items():
        assert back[name].dtype is x.dtype and torch.equal(back[name], x)


def test_what_is_loaded_can_be_donated(tmp_path: Path) -> None:
    """The file does not change when the memory is taken over."""
    nn.save_safetensors(tmp_path / "x", {"x": mlc.zeros(1000)})
    x = nn.load_safetensors(tmp_path / "x")["x"]
    assert mlc.compile(lambda x: x + 1, donate="x")(x).sum().item() == 1000
    assert nn.load_safetensors(tmp_path / "x")["x"].sum().item() == 0


LONG = b'{"a":{"dtype":"F32","shape":[1000000],"data_offsets":[0,4000000]}}'


@pytest.mark.parametrize("content", [
    b"", b"\x05", b"\x02\0\0\0\0\0\0\0{}x", b"\xff" * 16, b"\x10\0\0\0\0\0\0\0not json at all.",
    len(LONG).to_bytes(8, "little") + LONG + bytes(4)])
def test_what_is_no_such_file(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "bad.safetensors"
    file.write_bytes(content)
    with pytest.raises(mlc.UserError, match="MLC0387"):
        nn.load_safetensors(file)


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(mlc.UserError, match="MLC0392"):
        nn.load_safetensors(tmp_path / "missing")
    with pytest.raises(mlc.UserError, match="MLC0393"):
        nn.save_safetensors(tmp_path / "no" / "folder", {})
    assert not list(tmp_path.iterdir())


def test_attributes_of_users_do_not_hide_what_modules_need() -> None:
    class Own(mlc.nn.Sequential):
        def __init__(self) -> None:
            super().__init__(mlc.nn.Linear(2, 2), mlc.nn.BatchNorm1d(2))
            for name in ("frozen", "hooks", "state", "tensors", "children", "names", "loaded", "held", "named", "ties"):
                setattr(self, f"_{name}", [name])

    module = Own()
    module.register_forward_hook(lambda module, args, out: out * 0)
    module.load_state_dict(module.state_dict())
    assert module.eval().requires_grad_(False).double()(mlc.ones(3, 2, dtype=mlc.float64)).tolist() == [[0.0, 0.0]] * 3
    assert len(list(module.parameters())) == 4 and module._frozen == ["frozen"]
