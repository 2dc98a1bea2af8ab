"""Files of torch.save: read as what they hold, and refused where they hold more than data."""

from __future__ import annotations

import io
import os
import pickle
import random
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import mlc
from mlc import nn
from mlc.ir.diag import UserError

pytestmark = pytest.mark.usefixtures("execution")

DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
          "float32", "float64")


def saved(x: Any, path: Path | None = None) -> Any:
    """The object that mlc.load makes of a file that PyTorch wrote."""
    if path is not None:
        torch.save(x, path)
        return mlc.load(path)
    file = io.BytesIO()
    torch.save(x, file)
    return mlc.load(io.BytesIO(file.getvalue()))


def archive(pickled: bytes, **records: bytes) -> io.BytesIO:
    """A zip file of a pickle, as PyTorch would write it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("x/data.pkl", pickled)
        for name, data in records.items():
            made.writestr(f"x/{name}", data)
    file.seek(0)
    return file


# -- reading ----------------------------------------------------------------------------------------------------------
def test_containers_and_plain_values_come_back() -> None:
    data = {"a": [1, 2.5, None, True, 2**70, b"\xff\0"], 3: ("x", {1, 2}), "o": OrderedDict(y=float("inf")),
            "counter": Counter({3: 2}), "z": (), "array": bytearray(b"ab"), "complex": 1 + 2j}
    found = saved(data)
    assert found == data and type(found["o"]) is OrderedDict and type(found["counter"]) is Counter
    found = saved({"dtype": torch.bfloat16, "device": torch.device("cpu"), "size": torch.Size([2, 3])})
    assert found == {"dtype": mlc.bfloat16, "device": "cpu", "size": (2, 3)} and type(found["size"]) is mlc.Size


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_all_dtypes(dtype: str, tmp_path: Path) -> None:
    x = torch.tensor([0, 1, 1, 5, 100, 1]).to(getattr(torch, dtype))
    found = saved([x, torch.zeros(0, 3, dtype=x.dtype), x[3]], tmp_path / "x.pt")
    assert found[0].dtype.name == dtype and found[0].tolist() == x.tolist() and found[2].tolist() == x[3].tolist()
    assert found[1].shape == (0, 3) and found[1].dtype.name == dtype


def test_tensors_that_share_a_storage_share_memory(tmp_path: Path) -> None:
    x = torch.arange(12.0).reshape(3, 4)
    whole, row, transposed, again, flat = saved([x, x[1], x.t(), x, x.view(-1)[2:5].detach()], tmp_path / "x.pth")
    assert transposed.tolist() == x.t().tolist() and transposed.stride() == (1, 4) and again is whole
    row[0] = 50.0
    assert whole[1, 0] == 50 and transposed[0, 1] == 50 and flat.tolist() == [2, 3, 50]
    assert (transposed @ whole).shape == (4, 4) and mlc.load(tmp_path / "x.pth")[0][1, 0] == 4    # the file stays
    wide, = saved([torch.ones(1, 3).expand(2, 3)])
    assert wide.tolist() == [[1] * 3] * 2
    with pytest.raises(UserError) as refused:
        wide.zero_()
    assert refused.value.code == "MLC0752"


def test_elements_that_torch_conjugates_or_negates_when_it_reads_them() -> None:
    z = torch.tensor([[1 + 2j, 3 - 4j], [5j, -6]])
    given = {"z": z, "conj": z.conj(), "row": z.conj()[1], "mH": z.mH, "repeated": z.conj()[0].expand(3, 2),
             "empty": z[:0].conj(), "parameter": torch.nn.Parameter(z.mH)}
    found = saved(given)
    for name, x in given.items():
        np.testing.assert_array_equal(found[name].detach().numpy(), x.detach().resolve_conj().numpy())
    np.testing.assert_array_equal(saved(z.conj().imag).numpy(), [[-2, 4], [-5, 0]])
    found["conj"][1, 0] = 7
    assert found["row"][0].item() == 7 and found["z"][1, 0].item() == 5j


@pytest.mark.parametrize("metadata", [{"conj": 1}, {"zero": True}, [1], "conj"], ids=str)
def test_other_metadata_is_refused(metadata: Any) -> None:
    class Stored:
        def __reduce__(self) -> Any:
            held = torch.storage.TypedStorage(wrap_storage=torch.ones(2).untyped_storage(), dtype=torch.float32,
                                              _internal=True)
            return torch._utils._rebuild_tensor_v2, (held, 0, (2,), (1,), False, OrderedDict(), metadata)
    with pytest.raises(UserError) as found:
        saved(Stored())
    assert found.value.code == "MLC0747"


def test_parameters_are_trained() -> None:
    w, b, x = saved([torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2), False),
                     torch.ones(2, requires_grad=True)])
    assert isinstance(w, nn.Parameter) and w.requires_grad and isinstance(b, nn.Parameter) and not b.requires_grad
    assert x.requires_grad and not isinstance(x, nn.Parameter)
    (w * x).sum().backward()
    assert mlc.equal(w.grad, mlc.ones(2))


@pytest.mark.parametrize("name, settings", [("SGD", {"momentum": 0.9}), ("AdamW", {"amsgrad": True}), ("RMSprop", {})])
def test_training_goes_on_with_the_numbers_of_torch(name: str, settings: dict[str, Any], tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.05, **settings)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4], gamma=0.5)
    x = torch.randn(8, 3)

    def train(model: Any, optimizer: Any, scheduler: Any, x: Any) -> list[float]:
        losses = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        return losses

    train(model, optimizer, scheduler, x)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3,
                "scheduler": scheduler.state_dict()}, tmp_path / "checkpoint.pt")
    found = mlc.load(tmp_path / "checkpoint.pt")
    ours = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    ours.load_state_dict(found["model"])
    our_optimizer = getattr(mlc.optim, name)(ours.parameters(), lr=1.0, **settings)
    our_scheduler = mlc.optim.lr_scheduler.MultiStepLR(our_optimizer, [2, 4], gamma=0.5)
    our_optimizer.load_state_dict(found["optimizer"])
    our_scheduler.load_state_dict(found["scheduler"])
    assert found["epoch"] == 3
    np.testing.assert_allclose(train(ours, our_optimizer, our_scheduler, mlc.tensor(x.numpy())),
                               train(model, optimizer, scheduler, x), rtol=2e-5)


def test_map_location_and_files_that_are_open() -> None:
    file = io.BytesIO()
    torch.save(torch.ones(2), file)
    file.seek(0)
    assert mlc.load(file, map_location="cpu", weights_only=True).tolist() == [1, 1]


# -- writing ----------------------------------------------------------------------------------------------------------
def for_torch(x: Any) -> Any:
    """The object that torch.load makes of a file for it, as data."""
    file = io.BytesIO()
    mlc.serialization.save_for_torch(x, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def test_torch_loads_what_is_written_for_it(tmp_path: Path) -> None:
    data = {"a": [1, -2.5, None, True, -2**70, "ä"], 3: ("x", {1, 2}), "o": OrderedDict(y=float("inf")), "z": (),
            "e": [], "dtype": mlc.bfloat16, "size": mlc.Size([2, 3])}
    assert for_torch(data) == {**data, "dtype": torch.bfloat16, "size": torch.Size([2, 3])}
    for dtype in DTYPES:
        x = mlc.tensor([[0, 1, 100], [1, 1, 0]]).to(dtype)
        found, same, flipped, empty = for_torch([x, x, x.t(), x[:0]])
        assert found.dtype is getattr(torch, dtype) and found.tolist() == x.tolist() and empty.shape == (0, 3)
        assert flipped.tolist() == x.t().tolist() and found.data_ptr() == same.data_ptr()
    w, x = for_torch([nn.Linear(2, 1).weight, mlc.ones(2, requires_grad=True)])
    assert isinstance(w, torch.nn.Parameter) and w.requires_grad and x.requires_grad
    mlc.serialization.save_for_torch(nn.Linear(2, 1).state_dict(), tmp_path / "x.pt")
    torch.nn.Linear(2, 1).load_state_dict(torch.load(tmp_path / "x.pt", weights_only=True, mmap=True))
    assert list(mlc.load(tmp_path / "x.pt")) == ["weight", "bias"]


def test_a_training_goes_on_in_torch() -> None:
    model = nn.Linear(3, 1)
    optimizer = mlc.optim.Adam(model.parameters(), lr=0.1)
    theirs = torch.nn.Linear(3, 1)
    their_optimizer = torch.optim.Adam(theirs.parameters(), lr=1.0)
    both: list[Any] = [(model, optimizer, mlc.ones(2, 3)), (theirs, their_optimizer, torch.ones(2, 3))]
    for step in range(4):
        for m, o, one in both[:1 + step // 2]:
            o.zero_grad()
            (m(one) ** 2).sum().backward()
            o.step()
        if step == 1:
            found = for_torch({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
            theirs.load_state_dict(found["model"])
            their_optimizer.load_state_dict(found["optimizer"])
    np.testing.assert_allclose(theirs.weight.detach().numpy(), model.weight.detach().numpy(), rtol=1e-5)


def test_what_torch_would_not_load_is_not_written() -> None:
    loop: list[Any] = []
    loop.append(loop)
    cases: list[tuple[Any, str]] = [(nn.Linear(2, 1), "Linear"), ({"f": print}, "builtin_function"),
                                    (loop, "list that contains itself")]
    for x, text in cases:
        with pytest.raises(UserError, match=text) as found:
            mlc.serialization.save_for_torch(x, io.BytesIO())
        assert found.value.code == "MLC0764"


# -- objects that are no data -------------------------------------------------------------------------------------
class Evil:
    """An object whose pickle calls a function."""

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> Any:
        return self.call[0], self.call[1:]


@pytest.mark.parametrize("evil, name", [
    (Evil(os.system, "touch pwned"), "posix.system"), (Evil(eval, "1"), "builtins.eval"),
    (Evil(getattr, 1, "real"), "builtins.getattr"), (torch.nn.Linear(2, 2), "torch.nn.modules.linear.Linear"),
    (np.float64(3), "numpy"), (torch.ones(2).to_sparse(), "torch._utils._rebuild_sparse_tensor"),
    (torch.ones(2, dtype=torch.float8_e5m2), "torch.float8_e5m2"), (Path("x"), "pathlib"),
])
def test_names_off_the_list_are_refused(evil: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"w": torch.ones(2), "evil": evil}, "model.pt")
    for weights_only in (None, True, False):
        with pytest.raises(UserError, match=rf"model\.pt names {name}.* at byte \d+ of its pickle") as found:
            mlc.load("model.pt", weights_only=weights_only)
        assert found.value.code == "MLC0747" and os.listdir() == ["model.pt"]


@pytest.mark.parametrize("pickled", [
    b"cos\nsystem\n.", b"c__builtin__\neval\n(S'1'\ntR.", b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
])
def test_a_name_is_refused_before_it_is_used(pickled: bytes) -> None:
    with pytest.raises(UserError) as found:
        mlc.load(archive(pickled))
    assert found.value.code == "MLC0747"


NESTED = b"\x80\x02)" + b"\x85" * 100_000
TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n((S'storage'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nK\x01tQ"


@pytest.mark.parametrize("pickled", [
    b"", b"\x80", b".", b"(", b"N", b"}Nb.", b"]}b.", b"}(K\x01s.", b"K\x01K\x02a.", b"h\x05.", b"(K\x01R.", b")R.",
    b"ccollections\nOrderedDict\n}R.", b"ccollections\nOrderedDict\n)R}S'f'\nNsb.", b"ios\nsystem\n.",
    b"(S'ls'\nios\nsystem\n.", b"}" + NESTED[2:] + b"Ns.", b"ctorch\nfloat32\n)R.", b"ctorch\nfloat32\n)\x81.",
    b"ccollections\nCounter\n(]tR.", b"\x8a\xff\x00", b"X\xff\xff\xff\xff.", b"\x82\x01.", b"NP0\n.", b"(NQ.",
    TENSOR + b"K\x00K\x02\x85K\x01\x85\x89)tR.", TENSOR + b"K\x00(K\x01\x8a\x09" + b"\xff" * 9 + b"tK\x01\x85\x89)tR.",
    TENSOR + b"J\xff\xff\xff\xffK\x01\x85K\x01\x85\x89)tR.", TENSOR + b"K\x00K\x01\x85)\x89)tR.",
    TENSOR + b"K\x00]]\x89)tR.", TENSOR + b"NNN\x89)tR.", b"ctorch._utils\n_rebuild_tensor_v2\n(NNNNNNtR.",
    b"ctorch\nSize\n(]tR.", b"ctorch\nSize\nK\x01\x85R.", b"cbuiltins\nset\n(]]atR.",
])
def test_pickles_that_make_no_sense_are_refused(pickled: bytes) -> None:
    with pytest.raises(UserError) as found:
        mlc.load(archive(pickled, **{"data/0": bytes(4)}))
    assert found.value.code in ("MLC0748", "MLC0747")


def test_mutated_pickles_are_read_or_refused() -> None:
    file, rng = io.BytesIO(), random.Random(0)
    model = torch.nn.Linear(2, 3)
    torch.save({"model": model.state_dict(), "p": model.weight, "u": torch.ones(2, dtype=torch.uint16), "s": {1},
                "c": Counter([1]), "d": torch.device("cpu"), "size": torch.Size([1]), "b": b"x"}, file)
    with zipfile.ZipFile(file) as made:
        records = {name.partition("/")[2]: made.read(name) for name in made.namelist()}
    whole = records.pop("data.pkl")
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 3))):
            at, other = rng.randrange(len(data)), rng.randrange(len(whole))
            data[at:at + rng.randrange(3)] = rng.choice((rng.randbytes(1), whole[other:other + rng.randrange(30)]))
        try:
            mlc.load(archive(bytes(data), **records))
        except UserError as error:
            assert error.code in ("MLC0747", "MLC0748", "MLC0337", "MLC0342")


def test_deep_data_is_no_end_of_the_process() -> None:
    found = mlc.load(archive(NESTED + b"."))
    for _ in range(100_000):
        found, = found
    assert found == ()


def test_a_tensor_of_too_many_elements_is_refused() -> None:
    with pytest.raises(UserError, match="more dimensions or elements"):
        mlc.load(archive(TENSOR + b"K\x00\x8a\x08" + b"\0" * 7 + b"\x10\x85K\x00\x85\x89)tR.", **{"data/0": bytes(4)}))


# -- damage and other formats -----------------------------------------------------------------------------------------
def test_damage_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    torch.save({"x": torch.arange(5), "n": [1, "two"]}, path)
    whole, rng = path.read_bytes(), random.Random(0)
    want = str(mlc.load(path))
    for at in [*range(4, len(whole), 97), *range(len(whole) - 30, len(whole))]:
        path.write_bytes(whole[:at])
        with pytest.raises(UserError) as found:
            mlc.load(path)
        assert found.value.code == "MLC0748"
    for _ in range(200):
        at = rng.randrange(len(whole))
        try:
            assert str(mlc.load(io.BytesIO(whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1:]))
                       ) == want                           # of padding, or of a record that nothing reads
        except UserError as error:
            assert error.code in ("MLC0748", "MLC0766")


def test_compressed_records_are_refused() -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("x/data.pkl", bytes(10**7))
    with pytest.raises(UserError, match="compressed") as found:
        mlc.load(io.BytesIO(bomb.getvalue()))
    assert found.value.code == "MLC0748"


def test_other_formats_are_named(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    torch.save(torch.ones(2), path, _use_new_zipfile_serialization=False)
    np.savez(tmp_path / "arrays.npz", x=np.ones(2))
    (tmp_path / "plain.pkl").write_bytes(pickle.dumps({"a": 1}))
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), tmp_path / "script.pt")
    for name, text in (("model.pt", "pickle.*before 1.6"), ("plain.pkl", "pickle"), ("arrays.npz", "np.load"),
                       ("script.pt", "TorchScript")):
        for weights_only in (None, True):
            with pytest.raises(UserError, match=text) as found:
                mlc.load(tmp_path / name, weights_only=weights_only)
            assert found.value.code == "MLC0748"
