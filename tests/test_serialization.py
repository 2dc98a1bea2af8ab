"""Data in files: mlc.save and mlc.load of anything but compiled functions."""

from __future__ import annotations

import io
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn, serialization
from mlc.backends.checksummed import pack, unpack
from mlc.ir.diag import UserError, UserTypeError

pytestmark = pytest.mark.usefixtures("execution")


class Tied(nn.Module):
    """Two layers of one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.register_buffer("scale", mlc.ones(3))

    def forward(self, x: Any) -> Any:
        return self.second(nn.functional.relu(self.first(x))) * self.scale


def saved(x: Any, **keywords: Any) -> Any:
    file = io.BytesIO()
    mlc.save(x, file)
    file.seek(0)
    return mlc.load(file, **keywords)


def test_containers_come_back_as_they_were() -> None:
    data = {"a": [1, 2.5, None, "x", True], 3: (mlc.float32, {1, 2}), "o": OrderedDict(y=float("inf")), "z": ()}
    found = saved(data)
    assert found == data and type(found["o"]) is OrderedDict


def test_tensors_keep_dtypes_and_gradients_and_what_is_one_stays_one(tmp_path: Path) -> None:
    x = mlc.tensor([1.5, 2.5], dtype=mlc.bfloat16, requires_grad=True)
    mlc.save({"x": x, "again": x, "i": np.arange(3)}, tmp_path / "x.pt")
    found = mlc.load(str(tmp_path / "x.pt"), map_location=mlc.device("cpu"))
    assert found["x"] is found["again"] and found["x"].requires_grad
    assert found["x"].dtype == mlc.bfloat16 and found["x"].tolist() == [1.5, 2.5]
    assert type(found["i"]) is np.ndarray and found["i"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("for_torch", [False, True])
def test_tensors_that_share_memory_share_it_again(for_torch: bool) -> None:
    x = mlc.arange(6.0)
    data = [x, x[1:3], x.view(2, 3).T, nn.Parameter(x[4:]), mlc.arange(8)[2:4]]
    file = io.BytesIO()
    mlc.serialization.save_for_torch(data, file) if for_torch else mlc.save(data, file)
    assert len(file.getvalue()) < 3000
    found = mlc.load(io.BytesIO(file.getvalue()))
    found[0].fill_(7)
    assert [t.tolist() for t in found[:4]] == [[7] * 6, [7] * 2, [[7] * 2] * 3, [7] * 2]
    assert isinstance(found[3], nn.Parameter) and found[4].tolist() == [2, 3] and x.tolist() == [0, 1, 2, 3, 4, 5]
    if for_torch:
        torch = pytest.importorskip("torch")
        found = torch.load(io.BytesIO(file.getvalue()), weights_only=True)
        found[1].fill_(9)
        assert found[0].tolist() == [0, 9, 9, 3, 4, 5] and found[2].tolist() == [[0, 3], [9, 4], [9, 5]]


def test_a_view_alone_does_not_take_its_memory_along() -> None:
    file = io.BytesIO()
    mlc.save(mlc.zeros(100_000)[:2], file)
    assert len(file.getvalue()) < 1000


@pytest.mark.parametrize("change", [{"offset": 6}, {"stride": [2]}, {"size": [7]}, {"offset": -1}, {"size": ["a"]}])
def test_views_beyond_their_memory_are_refused(change: dict[str, Any]) -> None:
    file, x = io.BytesIO(), mlc.arange(6.0)
    mlc.save([x, x[1:]], file)
    head, pieces = unpack(serialization.MAGIC, file.getvalue())
    view = dict(zip(("size", "stride", "offset"), head["objects"][1][-3:])) | change
    head["objects"][1][-3:] = view.values()
    changed = b"".join(bytes(part) for part in pack(serialization.MAGIC, head, pieces))
    with pytest.raises(UserError, match="MLC0766"):
        mlc.load(io.BytesIO(changed))


def test_complex_tensors_and_numbers_of_numpy() -> None:
    z = np.array([[1 + 2j, complex("nan+1j")]])
    found = saved({"z": mlc.tensor(z), "a": z, "n": np.float64(2.5), "i": np.int32(7), np.int64(3): np.array(1j)})
    np.testing.assert_array_equal(found["z"].numpy(), z)
    assert found["z"].dtype is mlc.complex128 and found["a"].shape == (1, 2) and found[3].shape == ()
    assert type(found["n"]) is np.float64 and type(found["i"]) is np.int32


def test_states_of_models_and_optimizers_are_loaded() -> None:
    model = nn.Linear(2, 2)
    optimizer = mlc.optim.Adam(model.parameters(), lr=0.1)
    model(mlc.ones(1, 2)).sum().backward()
    optimizer.step()
    other = nn.Linear(2, 2)
    other.load_state_dict(saved(model.state_dict()))
    assert mlc.equal(other.weight, model.weight)
    found = saved(optimizer.state_dict())
    mlc.optim.Adam(other.parameters()).load_state_dict(found)
    assert found["state"][0]["step"] == 1 and found["param_groups"][0]["lr"] == 0.1


def test_a_checkpoint_of_the_usual_form_continues_a_training(tmp_path: Path) -> None:
    def made(seed: int) -> tuple[nn.Module, Any, Any]:
        mlc.manual_seed(seed)
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        optimizer = mlc.optim.AdamW(model.parameters(), lr=0.1)
        return model, optimizer, mlc.optim.lr_scheduler.StepLR(optimizer, 2)

    def train(model: nn.Module, optimizer: Any, scheduler: Any) -> list[float]:
        losses = []
        for _ in range(3):
            loss = (model(mlc.randn(8, 3)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        return losses

    model, optimizer, scheduler = made(0)
    train(model, optimizer, scheduler)
    mlc.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(),
              "epoch": 3, "rng": mlc.get_rng_state()}, tmp_path / "checkpoint")
    losses = train(model, optimizer, scheduler)
    model, optimizer, scheduler = made(1)
    found = mlc.load(tmp_path / "checkpoint", weights_only=True)
    for x, name in ((model, "model"), (optimizer, "optimizer"), (scheduler, "scheduler")):
        x.load_state_dict(found[name])
    mlc.set_rng_state(found["rng"])
    assert train(model, optimizer, scheduler) == losses and found["epoch"] == 3


def test_modules_are_made_again_of_classes_that_the_program_allows() -> None:
    model, x = Tied().eval(), mlc.randn(2, 3)
    with pytest.raises(UserError, match="Tied, which is not allowed") as refused:
        saved(model)
    assert refused.value.code == "MLC0765"
    with mlc.serialization.safe_globals([Tied]):
        found = saved(model)
    assert mlc.serialization.get_safe_globals() == []
    assert mlc.equal(found(x), model(x)) and not found.training
    assert found.second.weight is found.first.weight and isinstance(found.first.weight, nn.Parameter)
    assert mlc.equal(saved(model, weights_only=False)(x), model(x))
    layer = nn.TransformerEncoderLayer(4, 2, 8, activation="gelu").eval()
    assert mlc.equal(saved(layer)(mlc.ones(3, 2, 4)), layer(mlc.ones(3, 2, 4)))


def test_a_model_with_code_is_no_data(tmp_path: Path) -> None:
    path = tmp_path / "double.mlc"
    mlc.save(mlc.compile(lambda x: x * 2), path, args=[mlc.spec(2)])
    assert mlc.load(path)(mlc.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(UserError) as found:
        mlc.load(path, weights_only=True)
    assert found.value.code == "MLC0766"


def test_what_is_no_data_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    cases: tuple[Any, ...] = ({"f": iter([])}, loop, {"o": object()}, np.array([object()]))
    for x in cases:
        with pytest.raises(UserError) as found:
            mlc.save(x, io.BytesIO())
        assert found.value.code == "MLC0764", x


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    mlc.save({"x": mlc.ones(5)}, path)
    whole = path.read_bytes()
    for at in range(8, len(whole), 7):
        with pytest.raises(UserError) as found:
            mlc.load(io.BytesIO(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:]))
        assert found.value.code == "MLC0766"
        with pytest.raises(UserError):
            mlc.load(io.BytesIO(whole[:at]))


def test_what_is_nested_without_end_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(UserTypeError, match=r"MLC0764.*nested too deeply"):
        mlc.save(deep, io.BytesIO())
