"""mlc.save and mlc.load: round trips, and corrupt files, of which no code is loaded."""
from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mlc
from mlc import artifact, saved_function
from mlc.backends import load as loader
from mlc.backends.checksummed import pack, unpack
from mlc.tools.cli import main
from mlc.weights import Unreadable, from_bytes, to_bytes

ROOT = Path(__file__).parent.parent
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


class Net(mlc.nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        self.hidden = mlc.nn.Linear(4, 8)
        self.out = mlc.nn.Linear(8, 2)

    def forward(self, x: Any, scale: Any = None) -> Any:
        out = self.out(mlc.tanh(self.hidden(x)))
        return out if scale is None else out * scale


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.mlc"


def test_a_function(path: Path) -> None:
    f = mlc.compile(lambda x: mlc.softmax(x, dim=1))
    want = f(X)
    mlc.save(f, path)
    g = mlc.load(path)
    assert np.array_equal(g(X).numpy(), want.numpy())
    assert g.signature == "(tensor<3x4xf32>) -> tensor<3x4xf32>"


def test_a_module_with_its_weights(path: Path) -> None:
    net = Net()
    f = mlc.compile(net)
    want = f(X).numpy()
    mlc.save(f, path, args=[mlc.spec("B", 4)])
    g = mlc.load(path)
    assert list(g.weights) == list(net.state_dict())
    assert np.array_equal(g(X).numpy(), want)
    assert np.array_equal(g(X[:1]).numpy(), want[:1])
    assert "Net" in repr(g)


def test_specifications_say_what_is_saved_and_targets_for_which_processors(path: Path) -> None:
    f = mlc.compile(Net(), args=[mlc.spec("B", 4)])
    mlc.save(f, path)
    assert mlc.load(path).signature.startswith("(") and "Bx4" in mlc.load(path).signature
    mlc.save(f, path, targets=["x86-64-v2"])
    assert np.array_equal(mlc.load(path)(X).numpy(), f(X).numpy())
    with pytest.raises(mlc.UserError, match="one kind of processor"):
        mlc.save(f, path, targets=["x86-64-v2", "host"])


def test_in_a_process_without_the_model(path: Path) -> None:
    net = Net()
    mlc.save(mlc.compile(net), path, args=[mlc.spec("B", 4)])
    code = ("import sys, numpy as np, mlc\n"
            "print(mlc.load(sys.argv[1])(np.linspace(-1, 1, 12, dtype='f4').reshape(3, 4)).tolist())\n"
            "assert 'llvmlite.binding' not in sys.modules, 'nothing is compiled'\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for _ in range(2):                                     # the first may have to ask LLVM for the processor
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, env=environment)
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(mlc.compile(net)(X).tolist())


def test_trees_in_and_out(path: Path) -> None:
    def f(pair: Any, table: Any, *, mode: Any = "add", factor: Any = 2.0) -> Any:
        x, (y,) = pair
        out = x + y if mode == "add" else x - y
        return {"out": [out * factor, table["k"]], 7: (None, "text", 1.5, True)}

    compiled = mlc.compile(f)
    args: tuple[Any, ...] = ((X, [X + 1]), {"k": X[0]})
    want = compiled(*args, mode="sub")
    compiled(*args, mode="add")
    mlc.save(compiled, path)
    g = mlc.load(path)
    got = g(*args, mode="sub")
    assert list(got) == ["out", 7] and got[7] == (None, "text", 1.5, True) and type(got[7]) is tuple
    assert np.array_equal(got["out"][0].numpy(), want["out"][0].numpy())
    assert np.allclose(g(*args, mode="add")["out"][0].numpy(), (2 * X + 1) * 2)
    with pytest.raises(mlc.UserError, match="MLC0572"):
        g(*args, mode="other")
    with pytest.raises(TypeError, match="MLC0572"):
        g((X, X), {"k": X[0]}, mode="sub")


def test_several_signatures(path: Path) -> None:
    f = mlc.compile(lambda x: x * 2)
    f(X)
    f(X[0])
    f(X.astype(np.float64))
    mlc.save(f, path)
    g = mlc.load(path)
    assert len(g.signatures) == 3
    for x in (X, X[0], X.astype(np.float64)):
        got = g(x).numpy()
        assert got.dtype == x.dtype and np.array_equal(got, x * 2)
    with pytest.raises(mlc.UserError, match="MLC0572"):
        g(X[:2])


@pytest.mark.parametrize("wrong, said", [
    (X.astype(np.float64), r"argument x has dtype float64, expected float32"),
    (X[0], r"argument x has 1 dimensions"),
    (X[:, :3], r"argument x has size 3 on axis 1, expected 4"),
])
def test_arguments_that_do_not_fit_are_named(path: Path, wrong: Any, said: str) -> None:
    mlc.save(mlc.compile(Net()), path, args=[mlc.spec("B", 4)])
    with pytest.raises(mlc.UserError, match=said) as caught:
        mlc.load(path)(wrong)
    assert caught.value.loc.file == __file__


def test_donated_arguments(path: Path) -> None:
    f = mlc.compile(lambda x, y: x + y, donate="x")
    mlc.save(f, path, args=[X, X])
    g = mlc.load(path)
    x = mlc.tensor(X)
    assert np.array_equal(g(x, X).numpy(), X + X)
    with pytest.raises(mlc.UserError, match="donated"):
        x.numpy()


def test_a_training_step(path: Path) -> None:
    opt = mlc.optim.AdamW(lr=1e-2)
    params = {"w": X.T.copy(), "b": np.zeros(3, np.float32)}

    def step(params: Any, state: Any, x: Any) -> Any:
        loss, grads = mlc.value_and_grad(lambda p: mlc.mean((x @ p["w"] + p["b"]) ** 2))(params)
        params, state = opt.update(grads, state, params)
        return params, state, loss

    state = opt.init(params)
    try:
        mlc.save(mlc.compile(step), path, args=[params, state, X])
    except mlc.UserError as error:                         # an optimiser whose state is no plain container
        pytest.fail(str(error))
    g = mlc.load(path)
    losses = []
    for _ in range(5):
        params, state, loss = g(params, state, X)
        losses.append(float(loss))
    assert losses == sorted(losses, reverse=True)


class Counter(mlc.nn.Module):
    """A module whose buffer a call assigns."""

    def __init__(self) -> None:
        self.scale = mlc.nn.Parameter(mlc.ones(4))
        self.register_buffer("seen", mlc.zeros(4))

    def forward(self, x: Any) -> Any:
        self.seen: Any = self.seen + mlc.sum(x, dim=0)
        return x * self.scale + self.seen


def test_buffers_that_a_call_assigns(path: Path) -> None:
    net = Counter()
    mlc.save(mlc.compile(net), path, args=[mlc.spec("B", 4)])
    g = mlc.load(path)
    for calls in (1, 2):
        assert np.allclose(g(X).numpy(), X + X.sum(0) * calls, atol=1e-6)
        assert np.allclose(g.weights["seen"].numpy(), X.sum(0) * calls, atol=1e-6)
    assert not net.seen.numpy().any()


class Twins(mlc.nn.Module):
    """A module two of whose buffers are one tensor at first."""

    def __init__(self) -> None:
        start = mlc.zeros(4)
        self.register_buffer("a", start)
        self.register_buffer("b", start)

    def forward(self, x: Any) -> Any:
        self.a: Any = self.a + 1.0
        self.b: Any = self.b + 2.0
        return x + self.a


def test_buffers_that_start_as_one_tensor(path: Path) -> None:
    mlc.save(mlc.compile(Twins()), path, args=[X])
    g = mlc.load(path)
    for calls in (1, 2):
        assert np.array_equal(g(X).numpy(), X + calls)
    assert {name: w.tolist() for name, w in g.weights.items()} == {"a": [2.0] * 4, "b": [4.0] * 4}


class Scaled(mlc.nn.Module):
    """A module that does something else in training."""

    def __init__(self) -> None:
        self.scale = mlc.nn.Parameter(mlc.ones(4))

    def forward(self, x: Any) -> Any:
        return x * self.scale * (100.0 if self.training else 1.0)


def test_save_takes_the_code_of_the_current_training_mode(path: Path) -> None:
    net = Scaled()
    f = mlc.compile(net)
    f(X)
    net.eval()
    with pytest.raises(mlc.UserError, match="nothing has been compiled"):
        mlc.save(f, path)
    f(X)
    mlc.save(f, path)
    assert np.array_equal(mlc.load(path)(X).numpy(), X)
    net.train()
    mlc.save(f, path)
    assert np.array_equal(mlc.load(path)(X).numpy(), net(X).numpy())


@pytest.mark.parametrize("module", [True, False])
def test_save_takes_the_code_of_the_current_autocast_state(path: Path, module: bool) -> None:
    f, x = mlc.compile(mlc.nn.Linear(64, 64) if module else lambda x: x @ x), mlc.randn(64, 64)
    with mlc.no_grad():
        with mlc.autocast("cpu"):
            low = f(x)
        high = f(x)
    mlc.save(f, path)
    assert np.array_equal(mlc.load(path)(x).numpy(), high.detach().numpy())
    with mlc.autocast("cpu"):
        mlc.save(f, path)
    assert mlc.load(path)(x).dtype is low.dtype is mlc.bfloat16


def test_numbers_and_arrays_of_one_element_differ(path: Path) -> None:
    f = mlc.compile(lambda x, s: x * s)
    counts = np.arange(3)
    scales = (2.0, np.float64(2), 2, np.int64(2))
    want = [f(counts, s).dtype for s in scales]
    mlc.save(f, path)
    g = mlc.load(path)
    assert [g(counts, s).dtype for s in scales] == want and len(set(want)) > 2


def test_numbers_where_arrays_are_specified(path: Path) -> None:
    mlc.save(mlc.compile(lambda x, s, n: x * s + n), path,
             args=[mlc.spec("B", 4), mlc.spec(), mlc.spec(dtype="int64")])
    g = mlc.load(path)
    assert np.array_equal(g(X, 2.0, 3).numpy(), X * 2 + 3) and np.array_equal(g(X, 2, np.int64(3)).numpy(), X * 2 + 3)
    with pytest.raises(TypeError, match=r"2\.5 is no int64"):
        g(X, 2.0, 2.5)


class Lazy(mlc.nn.Module):
    """A module with a buffer that the first call makes."""

    def __init__(self) -> None:
        self.register_buffer("total", None)

    def forward(self, x: Any) -> Any:
        self.total: Any = x.sum() if self.total is None else self.total + x.sum()
        return x + self.total


def test_buffers_without_a_value(path: Path) -> None:
    net = Lazy()
    f = mlc.compile(net)
    with pytest.raises(mlc.UserError, match=r"MLC0570.*total, which is None"):
        mlc.save(f, path, args=[X])
    f(X)
    mlc.save(f, path, args=[X])
    np.testing.assert_allclose(mlc.load(path)(X), X + 2 * X.sum(), atol=1e-5)


def test_unsupported_functions_are_refused(path: Path) -> None:
    with pytest.raises(TypeError, match="MLC0570"):
        mlc.save(lambda x: x, path)
    with pytest.raises(mlc.UserError, match="nothing has been compiled"):
        mlc.save(mlc.compile(lambda x: x), path)
    net = Net()
    with pytest.raises(TypeError, match="an argument is a Net"):
        mlc.save(mlc.compile(lambda net, x: net(x)), path, args=[net, X])
    with pytest.raises(TypeError, match="a result is a Net"):
        mlc.save(mlc.compile(lambda x: net), path, args=[X])
    with pytest.raises(mlc.UserError, match="cannot write"):
        mlc.save(mlc.compile(lambda x: x + 1), path / "not" / "there", args=[X])
    assert not path.exists() and not list(path.parent.glob(".*"))


def test_index_errors_name_the_location(path: Path) -> None:
    mlc.save(mlc.compile(lambda x, i: mlc.take(x, i)), path, args=[X[0], np.array([1])])
    with pytest.raises(IndexError) as caught:
        mlc.load(path)(X[0], np.array([9]))
    assert caught.value.loc.file == __file__  # type: ignore[attr-defined]


def test_equal_files_for_equal_models(path: Path) -> None:
    net = Net()
    for file in (path, path.with_suffix(".again")):
        mlc.save(mlc.compile(net), file, args=[mlc.spec("B", 4)])
    assert path.read_bytes() == path.with_suffix(".again").read_bytes()


# -- damage -----------------------------------------------------------------------------------------------------------
def test_damaged_files(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No part of a file is loaded before the whole file is verified."""
    mlc.save(mlc.compile(Net()), path, args=[mlc.spec("B", 4)])
    whole, draw = path.read_bytes(), random.Random(0)
    monkeypatch.setattr(saved_function, "Executable", None)
    for trial in range(100):
        data = bytearray(whole)
        if trial % 2:
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        else:
            del data[draw.randrange(len(data)):]
        path.write_bytes(data)
        with pytest.raises(mlc.UserError, match="MLC0571"):
            mlc.load(path)


def test_foreign_and_missing_files(path: Path) -> None:
    path.write_bytes(b"\x7fELF" + bytes(1000))
    with pytest.raises(mlc.UserError, match=r"MLC0571.*does not end as mlc compile writes a module"):
        mlc.load(path)
    path.write_bytes(b"MLCMODE" + bytes(1000))
    with pytest.raises(mlc.UserError, match=r"MLC0571.*does not start as one"):
        mlc.load(path)
    with pytest.raises(mlc.UserError, match="MLC0392"):
        mlc.load(path.with_suffix(".missing"))
    with pytest.raises(mlc.UserError, match="MLC0392"):
        mlc.load(path.parent)


def edited(path: Path, change: Any) -> None:
    """The file with another head, and a right checksum."""
    head, pieces = unpack(artifact.MAGIC, path.read_bytes())
    change(head)
    path.write_bytes(b"".join(pack(artifact.MAGIC, head, {name: bytes(piece) for name, piece in pieces.items()})))


@pytest.mark.parametrize("change", [
    lambda h: h.pop("signatures"), lambda h: h.pop("name"), lambda h: h.update(signatures=[3]),
    lambda h: h["signatures"][0].update(arguments=[["dict", 5]]), lambda h: h["signatures"][0].update(arguments=[]),
    lambda h: h["signatures"][0].update(arguments=[["os.system", 1], 0]),
    lambda h: h["signatures"][0].update(arguments=[["list", -1]]),
    lambda h: h["signatures"][0]["image"].pop("interfaces"),
    lambda h: h["signatures"][0]["image"]["interfaces"][0].update(type={"type": "tensor<"}),
    lambda h: h["signatures"][0]["image"]["interfaces"][0].update(aliases=[99]),
    lambda h: h["signatures"][0].update(outputs=[["result"]]), lambda h: h["signatures"][0].update(assigned=[[0]]),
])
def test_ill_formed_headers_are_refused(path: Path, change: Any) -> None:
    mlc.save(mlc.compile(Net()), path, args=[mlc.spec("B", 4)])
    edited(path, change)
    with pytest.raises(mlc.UserError, match="MLC0571"):
        mlc.load(path)


def test_code_for_another_machine_is_not_mapped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlc.save(mlc.compile(lambda x: x + 1), path, args=[X])
    edited(path, lambda h: h["signatures"][0]["image"]["target"]["features"].append("+imaginary"))
    monkeypatch.setattr(loader, "load", None)
    with pytest.raises(mlc.Error, match="MLC0562"):
        mlc.load(path)


def test_info(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mlc.save(mlc.compile(Net()), path, args=[mlc.spec("B", 4)])
    assert main(["info", str(path)]) == 0
    out = capsys.readouterr().out
    assert "Net" in out and "58 in 4 arrays" in out and "tensor<Bx4xf32>" in out and "runs on this machine" in out
    path.write_bytes(b"nonsense")
    assert main(["info", str(path)]) == 1
    assert "MLC0571" in capsys.readouterr().err


# -- weights ----------------------------------------------------------------------------------------------------------
def test_weights_of_every_type() -> None:
    arrays = {str(np.dtype(t)): np.ones((2, 3), t) for t in (
        np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float16,
        ml_dtypes.bfloat16, np.float32, np.float64, np.complex64)} | {
            "none": np.zeros((0, 4), np.float32), "one": np.full((), 2.0)}
    got = from_bytes(to_bytes(arrays))
    assert got.keys() == arrays.keys()
    for name, array in arrays.items():
        assert got[name].dtype == array.dtype and got[name].shape == array.shape
        assert got[name].tobytes() == array.tobytes() and got[name].flags.aligned and got[name].flags.writeable


def test_invalid_weights_are_refused() -> None:
    with pytest.raises(Unreadable, match="complex128"):
        to_bytes({"x": np.zeros(2, np.complex128)})
    for data in (b"", b"\xff" * 8, (1 << 62).to_bytes(8, "little") + b"{}", b"\x02" + bytes(7) + b"{]"):
        with pytest.raises(Unreadable):
            from_bytes(data)
