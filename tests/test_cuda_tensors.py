"""The public interface of a GPU: tensors, modules and functions on a fake device, and tensors of other libraries."""
from __future__ import annotations

import copy
import gc
import pickle
from typing import Any

import numpy as np
import pytest
import torch

import mlc
from mlc import nn
from mlc.backends.cuda import dlpack
from mlc.ir.diag import BackendError, UserError, UserIndexError, UserTypeError
from mlc.tools import gpu_check
from tests.fake_device import FakeDevice

X = np.arange(12, dtype="f4").reshape(3, 4)


def test_tensors_move(device: FakeDevice) -> None:
    x = mlc.tensor(X).to("cuda")
    assert (x.device, x.is_cuda, x.shape, x.dtype, x.numel(), x.nbytes) == ("cuda:0", True, (3, 4), mlc.float32, 12, 48)
    assert x.cuda() is x and x.to("cuda:0") is x and x.cpu().device == "cpu" and x.to("cpu", mlc.int64).tolist() == (
        X.astype(int).tolist())
    assert (x.numpy() == X).all() and (np.asarray(x) == X).all() and mlc.ones(2).cuda()[1].item() == 1
    assert repr(mlc.zeros(1, device="cuda")) == "tensor([0.], dtype=mlc.float32, device='cuda:0')"
    assert mlc.zeros_like(x).device == x.clone().device == mlc.tensor(x).device == x.new_ones(2).device == "cuda:0"
    assert x.contiguous() is x and mlc.asarray(x) is x and mlc.tensor([1, 2], device="cuda").to(mlc.ones(1)).device == (
        "cpu")


def test_operations_run_where_tensors_are(device: FakeDevice) -> None:
    x = mlc.tensor(X).cuda()
    y = (x * 2 + 1.0) @ mlc.tensor(X).to(x).T
    assert y.device == "cuda:0" and (y.numpy() == (X * 2 + 1) @ X.T).all()
    assert (x + X).device == (x + mlc.tensor(1.0)).device == x[1:, 0].device == mlc.softmax(x, 1).device == "cuda:0"
    assert (x[1:, 0].numpy() == X[1:, 0]).all() and mlc.argmax(x).item() == 11
    launched = len(device.launches)
    assert (x * 2).shape == (3, 4) and len(device.launches) == launched + 1
    with pytest.raises(UserError, match=r"MLC0339.*mul: operand 0 is on cuda:0, operand 1 on cpu") as caught:
        x * mlc.tensor(X)
    assert caught.value.loc.file == __file__
    with pytest.raises(UserIndexError, match=r"MLC0340.*axis 0 of size 3"):
        mlc.index_select(x, 0, np.array([5]))


def test_parameters_are_trained_where_they_are(device: FakeDevice) -> None:
    found = []
    for where in ("cpu", "cuda:0"):
        w: Any = mlc.tensor(X, device=where).requires_grad_()
        optimizer: Any = mlc.optim.NAdam([w], lr=0.1)
        scheduler = mlc.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 4)
        for _ in range(3):
            optimizer.zero_grad()
            (w * w).sum().backward()
            nn.utils.clip_grad_norm_([w], 1.0)
            optimizer.step()
            scheduler.step()
        nn.utils.vector_to_parameters(nn.utils.parameters_to_vector([w]) * 2, [w])
        assert w.device == w.grad.device == optimizer.state[w]["exp_avg"].device == where
        found.append(w.detach().numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)


def test_functions_compiled_for_a_device(device: FakeDevice) -> None:
    f = mlc.compile(lambda a, b: (mlc.exp(a) + b, a), target="cuda")
    y, a = f(X, 2.0)
    assert y.device == a.device == "cuda:0" and device.uploads == 2
    assert (y.numpy() == (mlc.exp(mlc.tensor(X)) + 2.0).numpy()).all() and (a.numpy() == X).all()
    f(y, mlc.tensor(2.0).cuda())
    assert len(f.entries) == 2                             # a number is no tensor; where either is does not matter
    f(X, mlc.tensor(3.0))
    assert len(f.entries) == 2
    g = mlc.compile(lambda a: a * 2)
    assert g(X).device == "cpu" and g(y).device == "cuda:0" and len(g.entries) == 2
    assert mlc.compile(lambda a: a * 2, target="host")(y).device == "cpu"
    assert "gpu.launch_func" in str(f.lower(X, 1.0, level="low")) and "gpu" not in str(g.lower(X, level="low"))
    assert mlc.compile(lambda a: a - 1, target="cuda:sm_80")(X).tolist() == (X - 1).tolist()
    with pytest.raises(BackendError, match=r"MLC0588.*cuda:sm_100"):
        mlc.compile(lambda a: a - 1, target="cuda:sm_100")(X)


def test_tensor_cores_multiply_unless_numbers_shall_be_those_of_the_cpu(device: FakeDevice) -> None:
    rng = np.random.default_rng(0)
    x, y = (mlc.tensor(rng.standard_normal((48, 48), np.float32)).bfloat16() for _ in range(2))

    def multiply(x: Any, y: Any) -> Any:
        return (x @ y).float()

    wanted, exact = mlc.compile(multiply)(x, y).numpy(), x.numpy().astype("f8") @ y.numpy().astype("f8")
    found = {}
    for target, precision, is_mma in (("cuda", None, True), ("cuda", "ieee", False), ("cuda:sm_75", None, False)):
        f = mlc.compile(multiply, target=target, matmul_precision=precision)
        assert ("nvgpu.mma.sync" in str(f.lower(x, y, level="low"))) is is_mma
        found[target, precision] = f(x, y).numpy()
        assert np.abs(found[target, precision] - exact).max() < 2 ** -7 * np.abs(exact).max()
    assert (found["cuda", "ieee"] == wanted).all() and (found["cuda:sm_75", None] == wanted).all()
    x, y = x.float(), y.float()
    for precision, word in ((None, "mma"), ("tf32", "tf32Enabled")):
        f = mlc.compile(multiply, target="cuda", matmul_precision=precision)
        assert (word in str(f.lower(x, y, level="low"))) is (precision == "tf32")
        assert np.abs(f(x, y).numpy() - exact).max() < (2 ** -8 if precision else 1e-6) * np.abs(exact).max()
    assert mlc.compile(multiply, matmul_precision="tf32")(x, y).tolist() == multiply(x, y).tolist()    # on a CPU
    with pytest.raises(UserError, match=r"(?s)MLC0380.*matmul_precision is 'fast'.*ieee"):
        mlc.compile(multiply, matmul_precision="fast")


@pytest.mark.parametrize("target, code", [("x86-64-v2", "MLC0501"), ("cuda:sm_12", "MLC0501"), ("tpu", "MLC0501")])
def test_targets_that_are_none(target: str, code: str) -> None:
    with pytest.raises(UserError, match=code) as caught:
        mlc.compile(lambda a: a, target=target)
    assert caught.value.loc.file == __file__


def test_graphs_of_functions(device: FakeDevice) -> None:
    f, g = (mlc.compile(lambda x: mlc.softmax(x @ x.T, 1).sum(), target="cuda", graph=graph) for graph in (True, False))
    x = [mlc.tensor(X + i).cuda() for i in range(3)]
    assert [f(a).item() for a in x] == [g(a).item() for a in x]
    assert (device.graphs, device.replays) == (3, 3)       # each of the arguments has a graph


def test_training_on_a_device(device: FakeDevice) -> None:
    model, optimizer = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)), mlc.optim.AdamW(0.1)
    labels = np.array([0, 1, 1])

    def step(model: Any, state: Any, x: Any) -> Any:
        value, gradients = mlc.value_and_grad(lambda m: nn.functional.cross_entropy(m(x), labels))(model)
        return *optimizer.update(gradients, state, model), value

    def losses(target: str, model: Any) -> list[float]:
        train, state, out = mlc.compile(step, donate=("model", "state"), target=target), optimizer.init(model), []
        for _ in range(4):
            model, state, value = train(model, state, X)
            out.append(value.item())
        assert model[0].weight.is_cuda is (target == "cuda")
        return out

    wanted = losses("host", copy.deepcopy(model))
    assert losses("cuda", model) == wanted and wanted[3] < wanted[0]
    assert mlc.cuda.memory_allocated() < 10_000


def test_modules_move(device: FakeDevice) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.BatchNorm1d(4))
    assert model.to("cuda") is model and {x.device for x in model.state_dict().values()} == {"cuda:0"}
    y = model(mlc.tensor(X).cuda())
    assert y.device == "cuda:0" and model.double()[0].weight.device == "cuda:0"
    model.float().load_state_dict({n: x.numpy() for n, x in model.state_dict().items()})
    other = copy.deepcopy(model)
    assert other[0].weight.device == "cuda:0" and (other[0].weight.numpy() == model[0].weight.numpy()).all()
    with pytest.raises(UserTypeError, match="MLC0346"):
        pickle.dumps(model[0].weight.backing_array)
    assert model[0].weight.device == "cuda:0" and model.cpu()[0].weight.device == "cpu"
    gradient = mlc.grad(lambda w: (w * w).sum())(mlc.tensor(X).cuda())
    assert gradient.device == "cuda:0" and (gradient.numpy() == 2 * X).all()


def test_donated_tensors_are_gone(device: FakeDevice) -> None:
    f, x = mlc.compile(lambda x: x + 1, donate="x", target="cuda"), mlc.tensor(X).cuda()
    before = mlc.cuda.memory_allocated()
    y = f(x)
    assert mlc.cuda.memory_allocated() == before and (y.numpy() == X + 1).all()
    with pytest.raises(UserError, match="MLC0343"):
        x.numpy()


def test_what_is_said_of_devices(device: FakeDevice) -> None:
    assert mlc.cuda.is_available() and mlc.cuda.device_count() == 1 and mlc.cuda.why_not() is None
    assert mlc.cuda.get_device_name() == "a fake device" and mlc.cuda.get_device_capability(0) == (9, 0)
    x = mlc.ones(1000).cuda()
    assert mlc.cuda.memory_allocated() == 4096 == mlc.cuda.memory_reserved("cuda:0")
    del x
    gc.collect()
    assert mlc.cuda.memory_allocated() == 0 and mlc.cuda.max_memory_allocated() == 4096
    mlc.cuda.empty_cache()
    mlc.cuda.synchronize()
    assert mlc.cuda.memory_reserved() == 0 == device.taken
    with pytest.raises(UserError, match="MLC0337"):
        mlc.cuda.synchronize("cpu")


# -- DLPack -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("writable", [False, True])
def test_what_may_not_be_written_to_is_not_donated(device: FakeDevice, writable: bool) -> None:
    """Capsules of DLPack's first version do not say so; newer ones do, to whoever asks for them."""
    theirs = torch.arange(6, dtype=torch.float32)

    class Tensor:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

        def __dlpack__(self, stream: Any = None, max_version: Any = None) -> Any:
            assert stream == device.stream and max_version == (1, 0)
            capsule = theirs.__dlpack__(max_version=max_version)
            record = dlpack.DLManagedTensorVersioned.from_address(dlpack.capsule_pointer(capsule, dlpack.VERSIONED))
            record.flags |= 0 if writable else dlpack.READ_ONLY
            return capsule

    f = mlc.compile(lambda x: x.sum() + x, donate="x", target="cuda")
    x = mlc.from_dlpack(Tensor())
    held: Any = x.backing_array
    assert held.address == theirs.data_ptr() and held.storage.writable is writable
    if not writable:
        with pytest.raises(UserError, match=r"MLC0326.*donated, but its memory is read-only"):
            f(x)
    del x, held
    gc.collect()
    assert device.waits == 1                               # before its owner hears that it is done with


class Foreign:
    """Another library's tensor on the device."""

    def __init__(self, capsule: Any) -> None:
        self.capsule, self.stream = capsule, None

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, stream: Any = None) -> Any:
        self.stream = stream
        return self.capsule


@pytest.mark.parametrize("dtype", ["float32", "bool", "int64", "uint8", "bfloat16"])
def test_tensors_go_round_by_dlpack(device: FakeDevice, dtype: str) -> None:
    x = mlc.tensor(X).to(dtype).cuda()
    assert x.__dlpack_device__() == (2, 0)
    foreign = Foreign(x.__dlpack__())
    y = mlc.from_dlpack(foreign)
    assert foreign.stream == device.stream and device.ordered == [("publish", 1)]
    assert y.dtype is x.dtype and y.tolist() == x.tolist() and y.backing_array.address == x.backing_array.address
    used = mlc.cuda.memory_allocated()
    del x
    gc.collect()
    assert mlc.cuda.memory_allocated() == used and y.shape == (3, 4)       # the capsule's taker keeps it
    del y, foreign
    gc.collect()
    assert mlc.cuda.memory_allocated() == 0


def test_a_capsule_that_nobody_takes(device: FakeDevice) -> None:
    x = mlc.tensor(X).cuda()
    capsule = x.__dlpack__(stream=-1)
    assert not device.ordered
    del x, capsule
    gc.collect()
    assert mlc.cuda.memory_allocated() == 0
    with pytest.raises(BufferError):
        mlc.ones(2).cuda().__dlpack__(dl_device=(1, 0))


def test_capsules_are_as_pytorch_has_them(device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake device's memory is the CPU's, so PyTorch reads it if the capsule says so."""
    monkeypatch.setattr(dlpack, "CUDA", 1)
    for dtype in ("float32", "bfloat16", "int64", "bool"):
        x = mlc.tensor(X).to(dtype).cuda()
        held: Any = x.backing_array
        theirs = torch.utils.dlpack.from_dlpack(held.__dlpack__(stream=-1))
        assert str(theirs.dtype) == f"torch.{dtype}" and theirs.tolist() == x.tolist()
        assert theirs.data_ptr() == held.address
        del x, held
        gc.collect()
        assert mlc.cuda.memory_allocated() == 512
        back: Any = mlc.from_dlpack(Foreign(theirs.__dlpack__())).backing_array
        assert (back.address, back.shape, back.dtype.name) == (theirs.data_ptr(), (3, 4), dtype)
        del theirs
        gc.collect()
        assert mlc.cuda.memory_allocated() == 512
        del back
        gc.collect()
        assert mlc.cuda.memory_allocated() == 0
    transposed = torch.arange(12.0).reshape(3, 4).T
    with pytest.raises(UserTypeError, match=r"MLC0346.*row-major"):
        mlc.from_dlpack(Foreign(transposed.__dlpack__()))


def test_tensors_of_others_are_operands(device: FakeDevice) -> None:
    x = mlc.tensor(X).cuda()
    assert (mlc.exp(Foreign(x.__dlpack__())).device, (x + Foreign(x.__dlpack__())).tolist()) == (
        "cuda:0", (X + X).tolist())
    assert mlc.compile(lambda a: a * 2, target="cuda")(Foreign(x.__dlpack__())).tolist() == (2 * X).tolist()


# -- devices -----------------------------------------------------------------------------------------------------------
def test_the_check_of_a_device(device: FakeDevice, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--small", "--only", "copies,products,attention,speed", "--out", str(tmp_path), "--seed", "3"]
    assert gpu_check.main(words) == 0
    said = capsys.readouterr().out
    assert "copies      6 bits" in said and "products    12 close" in said
    assert "attention   4 close" in said and said.splitlines()[-1].startswith("31 checks, 0 bad")
    launched = len(device.launches)
    assert gpu_check.main([*words, "--resume"]) == 0 and len(device.launches) == launched
    row = gpu_check.compared("s", "n", [np.array([1, 2, 4], "f4")], [np.array([1, 2, 3], "f4")])
    assert row.bad and "at (2,): 4.0, not 3.0; 1 of 3 differ" in row.detail
    assert gpu_check.compared("s", "n", [np.array([3 + 3e-7], "f4")], [np.array([3], "f4")]).result == "close"


@pytest.mark.skipif(not mlc.cuda.is_available(), reason="this machine has no NVIDIA GPU that mlc can use")
def test_a_device_that_is_there() -> None:
    """All else is checked by python -m mlc.tools.gpu_check."""
    x = mlc.tensor(X).cuda()
    assert (mlc.compile(lambda x: x @ x.T + 1, target="cuda")(x).numpy() == X @ X.T + 1).all()


def test_the_gradient_of_a_loop_whose_turns_only_the_data_count(device: FakeDevice) -> None:
    """Its tapes are as long as the loop ran: memory of the device that the call itself asks for."""
    def f(x: Any) -> Any:
        return mlc.while_loop(lambda c: (c * c).sum() < 9.0, lambda c: c * 1.5 + mlc.cos(c), x).sum()

    x = np.array([0.3, -0.2], np.float32)
    here, there = mlc.compile(mlc.grad(f)), mlc.compile(mlc.grad(f), target="cuda")
    for scale in (1, 2, 9):
        np.testing.assert_array_equal(there(scale * x).numpy(), here(scale * x).numpy())
