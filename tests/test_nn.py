"""Modules: trees of parameters, names, buffers, training and evaluation, freezing, containers."""
from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.frontend import tree
from mlc.ir.diag import UserError

pytestmark = pytest.mark.usefixtures("execution")


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))


class Statistics(nn.Module):
    """x * weight, minus a running mean that training moves; it counts its calls in training."""

    mean: mlc.Tensor
    calls: mlc.Tensor

    def __init__(self) -> None:
        self.weight = nn.Parameter(mlc.ones(3))
        self.register_buffer("mean", mlc.zeros(3))
        self.register_buffer("calls", mlc.tensor(0), persistent=False)

    def forward(self, x: mlc.Tensor) -> mlc.Tensor:
        if self.training:
            self.mean = 0.5 * self.mean + 0.5 * x.mean(0)
            self.calls = self.calls + 1
        return x * self.weight - self.mean


def test_a_module_is_a_tree() -> None:
    m = net()
    assert [n for n, _ in m.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert m.num_parameters() == 5 * 8 + 8 + 8 * 3 + 3
    doubled = tree.map(lambda p: p * 2, m)
    np.testing.assert_array_equal(doubled[0].weight.numpy(), 2 * m[0].weight.numpy())
    assert isinstance(doubled, nn.Sequential) and isinstance(doubled[1], nn.Tanh)
    assert "(0): Linear(in_features=5, out_features=8, bias=True)" in repr(m)


def test_names() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            self.layers = [nn.Linear(1, 1, bias=False), {"deep": nn.Sequential(nn.Linear(1, 1, bias=False))}]
            self.scale = nn.Parameter(mlc.ones(1))
            self.tables = (nn.Parameter(mlc.zeros(1)), nn.Parameter(mlc.zeros(1)))

    m = Model()
    assert set(m.state_dict()) == {"layers.0.weight", "layers.1.deep.0.weight", "scale", "tables.0", "tables.1"}
    assert set(m.state_dict()) == set(tree.names(m))
    assert [n for n, _ in m.named_modules()] == ["", "layers.0", "layers.1.deep", "layers.1.deep.0"]
    assert [n for n, _ in m.named_children()] == ["layers.0", "layers.1.deep"]
    assert m.get_submodule("layers.1.deep.0") is m.layers[1]["deep"][0]  # type: ignore[index]
    with pytest.raises(UserError, match=r"MLC0385.*layers\.2"):
        m.get_submodule("layers.2")
    m.load_state_dict({n: np.full(x.shape, i, np.float32) for i, (n, x) in enumerate(m.state_dict().items())})
    assert [x.numpy().ravel()[0] for x in m.state_dict().values()] == [0, 1, 2, 3, 4]


def test_apply_reaches_every_module_children_first() -> None:
    seen: list[str] = []
    net().apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "Tanh", "Linear", "Sequential"]


def test_only_parameters_are_trained_and_saved() -> None:
    """As in PyTorch: an array and a tensor are what they are; a parameter counts once, also in a list."""
    class Model(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(2, 2)
            self.table, self.mask = np.ones(2, np.float32), mlc.ones(2)
            self.scale, self.fixed = nn.Parameter(np.ones(2, np.float32)), nn.Parameter(mlc.ones(2), False)
            self.tied = self.layer.weight
            self.several = [nn.Parameter(mlc.ones(1)), nn.Parameter(mlc.ones(1))]
            self.register_parameter("last", None)

        def forward(self, x: Any) -> Any:
            return self.layer(x) * self.table * self.mask * self.scale * self.fixed * self.several[0]

    def loss(m: Model, x: Any) -> Any:
        return m(x).sum()

    model, x = Model(), mlc.ones(3, 2)
    names = {"scale", "fixed", "several.0", "several.1", "tied", "layer.weight", "layer.bias"}
    assert set(model.state_dict()) == names == {n for n, _ in model.named_parameters()} | {"layer.weight"}
    gradient = mlc.grad(loss)(model, x)
    assert gradient.table is gradient.mask is gradient.fixed is None
    assert gradient.layer.weight is not None and gradient.scale is not None
    optimizer = mlc.optim.SGD(0.5)

    @mlc.compile
    def step(m: Model, state: Any, x: Any) -> Any:
        return optimizer.update(mlc.grad(loss)(m, x), state, m)

    new, _ = step(model, optimizer.init(model), x)
    assert set(new.state_dict()) == names and new.tied is new.layer.weight
    for name, moved in (("table", False), ("mask", False), ("fixed", False), ("scale", True)):
        assert (np.array(getattr(new, name)) != 1).all() == moved, name
    new.last = mlc.ones(1)
    assert "last" in new.state_dict()


# -- states -----------------------------------------------------------------------------------------------------------
def test_state_dict_round_trip() -> None:
    a, b = net(), net()
    inner = b[0]
    assert tuple(b.load_state_dict(a.state_dict())) == ([], [])
    for x, y in zip(a.parameters(), b.parameters()):
        np.testing.assert_array_equal(x.numpy(), y.numpy())
        assert x.numpy() is not y.numpy()
    assert b[0] is inner                                   # the module itself has changed
    with pytest.raises(UserError, match=r'(?s)Missing key.*"0\.bias".*Unexpected key.*"0\.biases"'):
        b.load_state_dict({n.replace("0.bias", "0.biases"): p for n, p in a.state_dict().items()})
    with pytest.raises(UserError, match=r"size mismatch for 0\.bias: .*\[9\] from checkpoint.*model is \[8\]"):
        b.load_state_dict(a.state_dict() | {"0.bias": np.zeros(9, np.float32)})
    with pytest.raises(UserError, match=r"0\.bias is mlc\.int64\[8\]"):
        b.load_state_dict(a.state_dict() | {"0.bias": np.zeros(8, np.int64)})


def test_a_state_that_fits_in_part() -> None:
    m = net()
    found = m.load_state_dict({"0.bias": np.ones(8, np.float16), "other": np.zeros(1)}, strict=False)
    assert found.missing_keys == ["0.weight", "2.weight", "2.bias"] and found.unexpected_keys == ["other"]
    assert m[0].bias.dtype is mlc.float32 and m[0].bias.tolist() == [1.0] * 8


def test_to_another_element_type() -> None:
    m = nn.Sequential(nn.Linear(2, 2), Statistics()).to("bfloat16")
    assert {str(x.dtype) for x in m.state_dict().values()} == {"mlc.bfloat16"}
    assert m[1].calls.dtype is mlc.int64


# -- buffers ----------------------------------------------------------------------------------------------------------
def test_buffers_are_no_parameters() -> None:
    m = nn.Sequential(Statistics())
    assert [n for n, _ in m.named_parameters()] == ["0.weight"]
    assert [n for n, _ in m.named_buffers()] == ["0.mean", "0.calls"]
    assert list(m.state_dict()) == ["0.weight", "0.mean"]
    gradients = mlc.grad(lambda m, x: m(x).sum())(m, mlc.ones(2, 3))
    assert gradients[0].mean is None and gradients[0].weight.tolist() == [2, 2, 2]


def loss(m: Any, x: mlc.Tensor) -> Any:
    return (m(x) ** 2).sum()


RUNS: dict[str, Any] = {
    "plain": loss, "compiled": mlc.compile(loss), "gradient": mlc.grad(loss),
    "compiled gradient": mlc.compile(mlc.value_and_grad(loss)), "vjp": lambda m, x: mlc.vjp(loss, m, x),
    "through a compiled function": mlc.compile(lambda m, x: mlc.compile(loss)(m, x))}


@pytest.mark.parametrize("how", RUNS)
def test_an_assigned_buffer_reaches_the_caller(how: str) -> None:
    m = nn.Sequential(Statistics(), nn.Sequential(Statistics()))
    x = mlc.tensor(np.full((2, 3), 4, np.float32))
    for calls in (1, 2):
        RUNS[how](m, x)
        assert m[0].calls.item() == m[1][0].calls.item() == calls
    assert m[0].mean.tolist() == [3, 3, 3]
    RUNS[how](m.eval(), x)
    assert m[0].calls.item() == 2


def test_the_returned_model_carries_the_buffers() -> None:
    """A step that takes the memory of the model over, and gives back another one."""
    def step(m: Any, x: mlc.Tensor) -> Any:
        value, gradients = mlc.value_and_grad(loss)(m, x)
        return tree.map(lambda p: p, m), value, gradients

    m, x = nn.Sequential(Statistics()), mlc.ones(2, 3)
    compiled = mlc.compile(step, donate="m")
    for calls in (1, 2, 3):
        m, _, _ = compiled(m, x)
        assert m[0].calls.item() == calls
    assert len(compiled.entries) == 1


def test_a_pullback_sees_the_buffers_of_the_call() -> None:
    m, x = Statistics(), mlc.ones(1, 3)
    _, pull = mlc.vjp(lambda m: m(x).sum(), m)
    assert m.calls.item() == 1
    for _ in range(2):
        gradients, = pull(1.0)
        assert gradients.weight.tolist() == [1, 1, 1] and gradients.mean is None
    assert m.calls.item() == 1


def test_a_module_that_is_no_argument_may_change() -> None:
    m = nn.Sequential(Statistics())
    with pytest.raises(UserError, match=r"MLC0384.*Statistics\.mean"):
        mlc.grad(lambda x: m(x).sum())(mlc.ones(2, 3))
    assert m[0].mean.tolist() == [0, 0, 0]
    mean = m[0].mean
    mlc.compile(lambda x: m(x))(mlc.ones(2, 3))
    assert m[0].mean.tolist() != mean.tolist() == [0, 0, 0]
    m[0].mean.zero_()
    m.eval()
    assert mlc.compile(lambda x: m(x))(mlc.ones(2, 3)).tolist() == [[1] * 3] * 2


# -- training and freezing --------------------------------------------------------------------------------------------
def test_training_is_part_of_what_is_compiled() -> None:
    m = nn.Sequential(Statistics())
    f = mlc.compile(m)
    for _ in range(2):
        m.train()
        f(mlc.ones(2, 3))
        m.eval()
        f(mlc.ones(2, 3))
    assert len(f.entries) == 2 and m[0].calls.item() == 2 and not m[0].training and m.train()[0].training


def test_freezing() -> None:
    m = net().freeze(lambda name: name.endswith("bias"))
    assert m.num_parameters(trained=True) == 5 * 8 + 8 * 3 and m.num_parameters() == 75
    gradients = mlc.compile(mlc.grad(loss))(m, mlc.ones(1, 5))
    assert gradients[0].bias is None and gradients[0].weight.shape == (8, 5)
    assert list(m.state_dict()) == list(net().state_dict())
    m[0].unfreeze()
    gradients = mlc.grad(loss)(m, mlc.ones(1, 5))
    assert gradients[0].bias.shape == (8,) and gradients[2].bias is None
    assert repr(m.unfreeze()) == repr(net())


# -- containers -------------------------------------------------------------------------------------------------------
def test_sequential_with_names() -> None:
    m = nn.Sequential({"first": nn.Linear(2, 3), "act": mlc.relu, "last": nn.Linear(3, 1)})
    assert list(m.state_dict()) == ["first.weight", "first.bias", "last.weight", "last.bias"]
    x = mlc.ones(4, 2)
    np.testing.assert_array_equal(mlc.compile(m)(x).numpy(), m(x).numpy())
    assert [n for n, _ in m[:2].named_parameters()] == ["first.weight", "first.bias"] and len(m[:2]) == 2
    rebuilt = tree.map(lambda p: p, m)
    np.testing.assert_array_equal(rebuilt(x).numpy(), m(x).numpy())


def test_module_list() -> None:
    m = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    m.append(nn.Linear(1, 1))
    m.insert(1, nn.Linear(2, 2))
    assert [type(x).__name__ for x in m] == ["ReLU", "Linear", "Tanh", "Linear"] and len(m) == 4
    assert set(m.state_dict()) == {"1.weight", "1.bias", "3.weight", "3.bias"}
    m[0] = nn.SiLU()
    assert isinstance(m[0], nn.SiLU) and isinstance(m[-1], nn.Linear) and len(m[1:3]) == 2
    with pytest.raises(IndexError, match="MLC0366"):
        m[4]


def test_module_dict() -> None:
    m = nn.ModuleDict({"a": nn.Linear(1, 1), "b": nn.ReLU()})
    m["c"] = nn.Linear(1, 1)
    del m["a"]
    assert list(m) == ["b", "c"] and "a" not in m and set(m.state_dict()) == {"c.weight", "c.bias"}
    assert [n for n, _ in m.items()] == m.keys() and len(m.values()) == len(m)
    for name in ("forward", "", "a.b", "items"):
        with pytest.raises(UserError, match="MLC0386"):
            m[name] = nn.ReLU()
    with pytest.raises(UserError, match="MLC0386"):
        m["a"]


def test_parameter_list() -> None:
    m = nn.ParameterList([mlc.ones(2), mlc.zeros(3)])
    assert [n for n, _ in m.named_parameters()] == ["0", "1"] and m[1].shape == (3,)


def test_lists_and_dicts_of_parts_are_those_of_pytorch() -> None:
    layers = nn.Sequential(nn.Linear(2, 2), nn.ReLU()) * 2
    assert len(layers) == 4 and layers[0] is layers[2] and layers(mlc.ones(1, 2)).shape == (1, 2)
    layers *= 2
    assert len(layers) == 8 == len(2 * nn.Sequential(*layers[:4]))
    assert [len(c(None)) for c in (nn.ModuleList, nn.ParameterList, nn.ModuleDict, nn.ParameterDict)] == [0] * 4
    scales = nn.ParameterDict({"a": mlc.ones(1)})
    assert scales.get("b") is None and scales.get("a") is scales["a"]
    assert scales.setdefault("b", mlc.zeros(2)) is scales["b"] and [*reversed(scales)] == ["b", "a"]
    assert (scales | nn.ParameterDict({"c": mlc.ones(1)})).keys() == ["a", "b", "c"]
    assert scales.copy()["a"] is scales["a"] and scales.popitem()[0] == "b" and scales.keys() == ["a"]
    with pytest.raises(KeyError, match="MLC0386"):
        nn.ModuleDict({"a": nn.ReLU()})["b"]


def test_tables_that_exist() -> None:
    rows = mlc.tensor([[3.0, 4.0], [1.0, 0.0]])
    assert nn.Embedding.from_pretrained(rows.clone(), max_norm=1.0)(mlc.tensor([0])).norm().item() < 1.001
    bag = nn.EmbeddingBag.from_pretrained(rows, mode="sum")
    assert bag(mlc.tensor([[0, 1]])).tolist() == [[4.0, 4.0]] and not bag.weight.requires_grad


@pytest.mark.parametrize("size", [9, 10, (1, 1, 10, 9)])
def test_the_size_of_a_transposed_convolution(size: Any) -> None:
    layer, x = nn.ConvTranspose2d(1, 1, 3, stride=2), mlc.ones(1, 1, 4, 4)
    wanted = size if isinstance(size, tuple) else (size, size)
    assert layer(x, output_size=wanted).shape[2:] == wanted[-2:]
    with pytest.raises(UserError, match="MLC0360"):
        layer(x, output_size=(11, 9))
    for image in (1.0, mlc.ones(4, 4)):
        with pytest.raises(UserError, match=f"MLC0364.*input has {getattr(image, 'ndim', 0)} dimensions"):
            layer(image, output_size=(9, 9))


class Fixed(nn.BatchNorm1d):
    """A norm that stays in evaluation, whatever holds it."""

    def train(self, mode: bool = True) -> Any:
        return super().train(False)


def test_modules_inside_are_trained_in_their_own_way() -> None:
    m = nn.Sequential(Fixed(2), nn.Sequential(nn.Dropout(0.5))).train()
    assert [m.training, m[0].training, m[1].training, m[1][0].training] == [True, False, True, True]
    assert not any(x.training for x in m.eval().modules())


@pytest.mark.parametrize("make", [
    lambda: nn.Linear(3, 2), lambda: nn.Bilinear(2, 3, 2), lambda: nn.Conv2d(2, 4, 3), lambda: nn.LayerNorm(3),
    lambda: nn.ConvTranspose1d(2, 4, 3), lambda: nn.BatchNorm1d(2), lambda: nn.InstanceNorm2d(2, affine=True),
    lambda: nn.RMSNorm(3), lambda: nn.GroupNorm(1, 2), lambda: nn.Embedding(4, 2, padding_idx=1),
    lambda: nn.EmbeddingBag(3, 2), lambda: nn.PReLU(2), lambda: nn.LSTM(2, 3)])
def test_parameters_begin_anew(make: Any) -> None:
    """Within the bounds of those of another new layer."""
    layer, other = make(), make()
    for x in layer.state_dict().values():
        x.fill_(100)
    layer.reset_parameters()
    for name, x in layer.state_dict().items():
        fresh = other.state_dict()[name]
        assert x.abs().max().item() < 10 and bool((fresh == 0).all().item()) == bool((x == 0).all().item())
    if isinstance(layer, nn.Embedding):
        assert layer.weight[1].tolist() == [0.0, 0.0]


def test_a_copy_of_a_model_has_no_gradients() -> None:
    m = nn.Linear(2, 1, bias=False)
    m(mlc.ones(1, 2)).sum().backward()
    copied = copy.deepcopy(m)
    assert copied.weight.grad is None and m.weight.grad is not None
    x = mlc.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    kept = copy.deepcopy(x).grad
    assert kept is not None and kept.tolist() == [2.0, 2.0]


def test_initial_values_are_written_into_the_memory_of_a_tensor() -> None:
    m = nn.Linear(2, 3)
    shared, whole = m.weight.detach(), m.state_dict()["weight"]
    nn.init.constant_(m.weight.data, 3.0)
    nn.init.zeros_(m.weight[1])
    assert m.weight.tolist() == shared.tolist() == whole.tolist() == [[3.0, 3.0], [0.0, 0.0], [3.0, 3.0]]
    nn.init.eye_(m.weight)
    assert shared[0].tolist() == [1.0, 0.0] and m.weight.requires_grad and m.weight.is_leaf
    with nn.init.shapes_only():
        nn.init.zeros_(nn.Linear(10**5, 10**5).weight)


@pytest.mark.parametrize("kind", [nn.BatchNorm1d, nn.InstanceNorm1d])
def test_statistics_that_are_no_longer_tracked(kind: Any) -> None:
    m = kind(2, track_running_stats=True)
    m.track_running_stats = False
    m(mlc.tensor([[[1.0, 2.0], [3.0, 6.0]]] * 2))
    assert m.running_mean.tolist() == [0.0, 0.0] and m.num_batches_tracked.item() == 0


# -- seeds ------------------------------------------------------------------------------------------------------------
def test_seeds() -> None:
    mlc.manual_seed(7)
    a = net()
    mlc.manual_seed(7)
    b = net()
    for x, y in zip(a.parameters(), b.parameters()):
        np.testing.assert_array_equal(x.numpy(), y.numpy())


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self) -> None:
        self.inner = nn.Linear(4, 4, bias=False)
        self.out = nn.Linear(4, 4, bias=False)
        self.out.weight = self.inner.weight

    def forward(self, x: Any) -> Any:
        return self.out(mlc.tanh(self.inner(x)))


def test_a_shared_weight_is_one_parameter() -> None:
    m = Tied()
    assert list(m.state_dict()) == ["inner.weight", "out.weight"]
    assert [name for name, _ in m.named_parameters()] == ["inner.weight"] and m.num_parameters() == 16
    for other in (copy.deepcopy(m), m.double(), m.float()):
        assert other.out.weight is other.inner.weight
    m.freeze(lambda name: name.startswith("out"))
    assert m.num_parameters(trained=True) == 0 and mlc.grad(lambda m: m(mlc.ones(4)).sum())(m).inner.weight is None


def test_states_of_a_shared_weight() -> None:
    m, new = Tied(), np.ones((4, 4), np.float32)
    m.load_state_dict({name: x.numpy() for name, x in m.state_dict().items()})
    assert m.out.weight is m.inner.weight
    m.load_state_dict({"out.weight": new}, strict=False)
    assert m.out.weight is m.inner.weight and m.inner.weight.numpy().all()
    with pytest.raises(UserError, match=r"(?s)MLC0382.*inner\.weight and out\.weight are one parameter, and differ"):
        m.load_state_dict({"inner.weight": new, "out.weight": 2 * new})


@pytest.mark.parametrize("compiled", [False, True])
def test_training_a_shared_weight(compiled: bool) -> None:
    torch = pytest.importorskip("torch")
    m, x, opt = Tied(), np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), mlc.optim.AdamW(1e-2)
    w = torch.nn.Parameter(torch.tensor(m.inner.weight.numpy()))
    theirs = torch.optim.AdamW([w], lr=1e-2)

    def step(m: Tied, state: Any, x: Any) -> Any:
        return opt.update(mlc.grad(lambda m: m(x).sum())(m), state, m)

    run, state = mlc.compile(step, donate="state") if compiled else step, opt.init(m)
    for _ in range(3):
        theirs.zero_grad()
        (torch.tanh(torch.tensor(x) @ w.T) @ w.T).sum().backward()
        theirs.step()
        m, state = run(m, state, x)
        assert m.out.weight is m.inner.weight
    np.testing.assert_allclose(m.inner.weight, w.detach(), atol=1e-6)


def test_gradients_of_a_shared_weight_are_one_tensor() -> None:
    m, opt = Tied(), mlc.optim.SGD(0.1)
    apart = Tied()
    apart.out.weight = mlc.ones(4, 4)
    with pytest.raises(TypeError, match=r"MLC0377.*at tree\.out\.weight: what is one tensor"):
        opt.update(apart, opt.init(m), m)


def test_a_model_in_half_precision_within_a_recorded_step() -> None:
    m, x = nn.Linear(4, 2), np.ones((3, 4), np.float32)

    def loss(m: nn.Linear, x: mlc.Tensor) -> mlc.Tensor:
        half = copy.deepcopy(m).to(mlc.bfloat16)
        return mlc.mean(half(x.to(mlc.bfloat16)).float())

    value, gradients = mlc.compile(mlc.value_and_grad(loss))(m, x)
    assert value.dtype == mlc.float32 and gradients.weight.dtype == mlc.float32
    np.testing.assert_array_equal(gradients.weight.numpy(), np.full((2, 4), 0.5, np.float32))
    assert m.weight.dtype == mlc.float32


def test_a_buffer_can_be_registered_again() -> None:
    m = Statistics()
    m.register_buffer("mean", mlc.ones(3), persistent=False)
    assert m._buffers.count("mean") == 1 and "mean" not in m.state_dict()


def test_hooks_of_what_is_loaded_come_from_the_inside() -> None:
    m, order = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.Linear(1, 1))), list[str]()
    for name, module in m.named_modules():
        module.register_load_state_dict_post_hook(lambda module, keys, name=name: order.append(name))
    m.load_state_dict(m.state_dict())
    assert order == ["0", "1.0", "1", ""]


@pytest.mark.parametrize("loss", [nn.functional.huber_loss, nn.functional.smooth_l1_loss])
def test_losses_of_infinite_differences_have_derivatives(loss: Any) -> None:
    x = mlc.tensor([float("inf"), 0.5], requires_grad=True)
    loss(x, mlc.zeros(2), reduction="sum").backward()
    assert x.grad is not None and x.grad.tolist() == [1.0, 0.5]


def test_the_first_of_equal_rows_of_a_bag_has_the_gradient() -> None:
    w = mlc.tensor([[1.0, 5.0], [1.0, 2.0], [1.0, 5.0]], requires_grad=True)
    nn.functional.embedding_bag(mlc.tensor([[0, 1, 2]]), w, mode="max").sum().backward()
    assert w.grad is not None and w.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]


def test_samples_of_tensors_keep_their_history() -> None:
    x = mlc.ones(3, 2, requires_grad=True)
    assert mlc.utils.data.TensorDataset(x * 2)[1][0].requires_grad


def test_the_order_of_a_norm_may_be_text() -> None:
    """As in PyTorch, which reads the order with float()."""
    w: Any = nn.Parameter(mlc.ones(2))
    w.grad = mlc.tensor([3.0, -4.0])
    assert nn.utils.get_total_norm([w.grad], "inf").item() == 4.0  # type: ignore[arg-type]
    nn.utils.clip_grad_norm_([w], 1.0, norm_type="inf")  # type: ignore[arg-type]
    assert w.grad.abs().max().item() == pytest.approx(1.0, abs=1e-5)


def test_a_buffer_that_becomes_a_parameter_is_no_buffer() -> None:
    model: Any = nn.Module()
    model.register_buffer("x", mlc.ones(2))
    model.x = nn.Parameter(mlc.zeros(2))
    assert [n for n, _ in model.named_parameters()] == ["x"] and not list(model.named_buffers())
