"""Layers against torch.nn: the same arguments and state give the same values and gradients."""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.frontend import tree
from tests.nn.both import same
from tests.public_case import thinned

torch = pytest.importorskip("torch")
Array = np.ndarray[Any, Any]


@dataclass
class Case:
    """nn.NAME(*args, **keywords) on inputs: shapes of normal floats, or arrays."""

    name: str
    args: tuple[Any, ...] = ()
    inputs: tuple[Any, ...] = ((3, 4),)
    keywords: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        shown = [*map(str, self.args), *(f"{k}={v}" for k, v in self.keywords.items())]
        return f"{self.name}({', '.join(shown)})"

    def arrays(self) -> list[Array]:
        rng = np.random.default_rng(len(str(self)))
        return [rng.normal(size=x).astype(np.float32) if isinstance(x, tuple) else x for x in self.inputs]


def C(name: str, *args: Any, on: Any = ((3, 4),), **keywords: Any) -> Case:
    return Case(name, args, on, keywords)


INDEX = np.array([[0, 2, 1], [2, 2, 4]])
LABELS = np.array([1, 0, 3])
SIGNS = np.array([1, -1, 1], np.float32)
ZERO_ONE = np.array([[0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]], np.float32)
UNIT = np.random.default_rng(0).uniform(0.1, 0.9, (3, 4)).astype(np.float32)
LOGS = np.log(UNIT / UNIT.sum(1, keepdims=True))
IMAGE, LINE, VOLUME = (2, 4, 7, 6), (2, 4, 9), (2, 4, 5, 4, 6)
CASES = [
    C("Linear", 4, 3), C("Linear", 4, 3, bias=False, on=((2, 3, 4),)), C("Identity", 1, x=2),
    C("Bilinear", 4, 5, 3, on=((2, 3, 4), (2, 3, 5))), C("Embedding", 5, 4, on=(INDEX,)),
    C("Embedding", 5, 4, 2, on=(INDEX,)), C("Embedding", 5, 4, -3, on=(INDEX,)),
    *(C("EmbeddingBag", 5, 4, mode=m, on=(INDEX,)) for m in ("sum", "mean", "max")),
    *(C("EmbeddingBag", 5, 4, mode=m, padding_idx=2, on=(INDEX,)) for m in ("sum", "mean", "max")),
    # activations
    *(C(n) for n in ("ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "Softplus", "Sigmoid",
                     "LogSigmoid", "Tanh", "Tanhshrink", "Softsign", "Softshrink", "Hardshrink", "Hardtanh",
                     "Hardsigmoid", "Hardswish", "GLU", "PReLU")),
    C("ReLU", inplace=False), C("LeakyReLU", 0.2), C("ELU", 0.5), C("CELU", 0.5), C("GELU", approximate="tanh"),
    C("Softplus", 2.0, 1.0), C("Softshrink", 0.2), C("Hardshrink", 0.2), C("Hardtanh", -0.5, 2.0),
    C("Threshold", 0.1, 20.0), C("GLU", 0, on=((4, 3),)), C("PReLU", 4, 0.1), C("Softmax", 1), C("Softmax", dim=0),
    C("LogSoftmax", 1), C("Softmin", 1), C("Softmax2d", on=(IMAGE,)),
    # norms
    C("LayerNorm", 4), C("LayerNorm", (3, 4), eps=1e-3, on=((2, 3, 4),)), C("LayerNorm", 4, elementwise_affine=False),
    C("LayerNorm", 4, bias=False), C("RMSNorm", 4), C("RMSNorm", 4, eps=1e-3, elementwise_affine=False),
    C("GroupNorm", 2, 4, on=(IMAGE,)), C("SyncBatchNorm", 4, on=(IMAGE,)),
    C("GroupNorm", 4, 4, affine=False, on=(LINE,)),
    C("LocalResponseNorm", 3, on=(IMAGE,)), C("BatchNorm1d", 4), C("BatchNorm1d", 4, affine=False, on=(LINE,)),
    C("BatchNorm2d", 4, on=(IMAGE,)), C("BatchNorm2d", 4, track_running_stats=False, on=(IMAGE,)),
    C("BatchNorm3d", 4, eps=1e-3, on=(VOLUME,)), C("InstanceNorm1d", 4, on=(LINE,)),
    C("InstanceNorm2d", 4, affine=True, on=(IMAGE,)), C("InstanceNorm2d", 4, track_running_stats=True, on=(IMAGE,)),
    C("InstanceNorm2d", 4, on=((4, 3, 5),)), C("InstanceNorm3d", 4, on=(VOLUME,)),
    # shapes
    C("Flatten", on=((2, 3, 4),)), C("Flatten", 0, 1, on=((2, 3, 4),)), C("Unflatten", 1, (2, 2)),
    C("PixelShuffle", 2, on=(IMAGE,)), C("PixelUnshuffle", 2, on=((1, 3, 4, 6),)), C("ChannelShuffle", 2, on=(IMAGE,)),
    C("Upsample", scale_factor=2, on=(IMAGE,)), C("Upsample", (9, 11), mode="bilinear", on=(IMAGE,)),
    C("Upsample", scale_factor=2, mode="bilinear", align_corners=True, on=(IMAGE,)),
    C("Unfold", (2, 3), padding=1, on=(IMAGE,)), C("Fold", (4, 5), (2, 2), on=((2, 8, 12),)),
    *(C(f"{kind}Pad{n}d", 1, *[2.0] * (kind == "Constant"), on=(x,)) for n, x in ((1, LINE), (2, IMAGE), (3, VOLUME))
      for kind in ("Constant", "Zero", "Reflection", "Replication", "Circular")),
    C("ReflectionPad2d", (1, 2, 0, 3), on=(IMAGE,)), C("ZeroPad2d", (-1, 2, 0, 3), on=(IMAGE,)),
    C("UpsamplingNearest2d", scale_factor=2, on=(IMAGE,)), C("UpsamplingBilinear2d", (9, 3), on=(IMAGE,)),
    # convolutions
    C("Conv1d", 4, 6, 3, on=(LINE,)), C("Conv1d", 4, 6, 3, stride=2, padding=1, groups=2, on=(LINE,)),
    C("Conv2d", 4, 6, 3, padding=1, on=(IMAGE,)),
    C("Conv2d", 4, 6, (3, 2), stride=(2, 1), dilation=(1, 2), on=(IMAGE,)),
    C("Conv2d", 4, 4, 3, padding="same", groups=4, bias=False, on=(IMAGE,)), C("Conv3d", 4, 3, 2, on=(VOLUME,)),
    C("ConvTranspose1d", 4, 6, 3, stride=2, on=(LINE,)), C("ConvTranspose2d", 4, 6, 3, stride=2, padding=1,
                                                          output_padding=1, groups=2, on=(IMAGE,)),
    C("ConvTranspose3d", 4, 3, 2, bias=False, on=(VOLUME,)),
    # pooling
    C("MaxPool1d", 2, on=(LINE,)), C("MaxPool2d", 3, 2, 1, on=(IMAGE,)), C("MaxPool3d", 2, on=(VOLUME,)),
    C("AvgPool1d", 3, 1, 1, on=(LINE,)), C("AvgPool2d", (3, 2), 2, (1, 0), count_include_pad=False, on=(IMAGE,)),
    C("AvgPool3d", 2, on=(VOLUME,)), C("LPPool2d", 2, 2, on=((2, 3, 4, 4),)), C("AdaptiveAvgPool1d", 3, on=(LINE,)),
    C("AdaptiveAvgPool2d", (1, 1), on=(IMAGE,)), C("AdaptiveAvgPool2d", (3, 2), on=(IMAGE,)),
    C("AdaptiveAvgPool3d", 2, on=(VOLUME,)), C("AdaptiveMaxPool1d", 3, on=(LINE,)),
    C("AdaptiveMaxPool2d", (2, 2), on=(IMAGE,)), C("AdaptiveMaxPool3d", 1, on=(VOLUME,)),
    # losses
    *(C(n, reduction=r, on=((3, 4), (3, 4))) for n in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss")
      for r in ("mean", "sum", "none")),
    C("CrossEntropyLoss", on=((3, 4), LABELS)), C("CrossEntropyLoss", ignore_index=0, label_smoothing=0.1,
                                                  reduction="sum", on=((3, 4), LABELS)),
    C("NLLLoss", on=((3, 4), LABELS)), C("BCELoss", on=(UNIT, ZERO_ONE)), C("BCEWithLogitsLoss", on=((3, 4), ZERO_ONE)),
    C("MultiLabelSoftMarginLoss", on=((3, 4), ZERO_ONE)), C("MultiMarginLoss", on=((3, 4), LABELS)),
    C("MultiMarginLoss", 2, 0.5, reduction="none", on=((3, 4), LABELS)),
    C("MultiLabelMarginLoss", on=((3, 4), np.array([[3, 0, -1, 1], [-1, 0, 1, 2], [2, 1, 0, 3]]))),
    C("MultiLabelMarginLoss", on=((4,), np.array([3, 0, -1, 1]))), C("SmoothL1Loss", beta=0.3, on=((3, 4), (3, 4))),
    C("HuberLoss", delta=0.3, on=((3, 4), (3, 4))), C("KLDivLoss", reduction="batchmean", on=(LOGS, np.exp(LOGS))),
    C("PoissonNLLLoss", on=((3, 4), UNIT)), C("GaussianNLLLoss", full=True, on=((3, 4), (3, 4), UNIT)),
    C("HingeEmbeddingLoss", on=((3,), SIGNS)), C("SoftMarginLoss", on=((3,), SIGNS)),
    C("MarginRankingLoss", 0.1, on=((3,), (3,), SIGNS)), C("CosineEmbeddingLoss", on=((3, 4), (3, 4), SIGNS)),
    C("CosineSimilarity", on=((3, 4), (3, 4))), C("PairwiseDistance", 1.0, on=((3, 4), (3, 4))),
    C("NLLLoss2d", on=((2, 4, 2, 3), LABELS[:2, None, None] + np.zeros((2, 2, 3), int))),
    C("TripletMarginWithDistanceLoss", margin=0.5, on=((3, 4), (3, 4), (3, 4))),
    C("LinearCrossEntropyLoss", 4, 5, bias=True, on=((3, 4), LABELS)),
    C("TripletMarginLoss", on=((3, 4), (3, 4), (3, 4))), C("TripletMarginLoss", swap=True, on=((3, 4), (3, 4), (3, 4))),
]


def pair(case: Case) -> tuple[Any, Any]:
    """Our layer and theirs, in the same state."""
    theirs = getattr(torch.nn, case.name)(*case.args, **case.keywords)
    ours = getattr(nn, case.name)(*case.args, **case.keywords)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def close(ours: Any, theirs: Any) -> None:
    torch.testing.assert_close(torch.from_numpy(np.array(ours)), theirs.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.usefixtures("interpreted")
def test_values_and_gradients(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", thinned(CASES, 16), ids=str)
def test_values_and_gradients_in_native_code(case: Case) -> None:
    check(case)


def check(case: Case) -> None:
    """The value of a layer, and the gradients of its parameters and first input, are PyTorch's."""
    ours, theirs = pair(case)
    arrays = case.arrays()
    inputs = [torch.from_numpy(a.copy()) for a in arrays]
    floats = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"][:1]
    for i in floats:
        inputs[i].requires_grad_()
    out = theirs(*inputs)
    close(ours(*map(mlc.tensor, arrays)), out)

    weight = np.random.default_rng(1).normal(size=tuple(out.shape)).astype(np.float32)

    def weighted(layer: Any, xs: Any) -> mlc.Tensor:
        given = [xs[str(i)] if str(i) in xs else mlc.tensor(a) for i, a in enumerate(arrays)]
        y: mlc.Tensor = (layer(*given) * mlc.tensor(weight)).sum()
        return y

    gradient = mlc.compile(mlc.grad(weighted, argnums=(0, 1)))
    of_layer, of_inputs = gradient(ours, {str(i): mlc.tensor(arrays[i]) for i in floats})
    wanted = [*theirs.parameters(), *(inputs[i] for i in floats)]
    expected = torch.autograd.grad((out * torch.from_numpy(weight)).sum(), wanted) if wanted else []
    named = dict(of_layer.named_parameters())
    found = [*(named[n] for n, _ in theirs.named_parameters()), *of_inputs.values()]
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        close(a, b)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("case", [
    C("BatchNorm1d", 4, on=(LINE,)), C("BatchNorm2d", 4, momentum=None, on=(IMAGE,)), C("BatchNorm1d", 4, momentum=0.3),
    C("InstanceNorm2d", 4, track_running_stats=True, on=(IMAGE,))], ids=str)
def test_running_statistics(case: Case) -> None:
    """Three batches in training, in a compiled gradient, then what is made of another one in use."""
    ours, theirs = pair(case)
    step = mlc.compile(mlc.grad(lambda m, x: (m(x) ** 2).sum()))
    for i in range(3):
        x = (i + 1) * case.arrays()[0] + i
        step(ours, x)
        theirs(torch.from_numpy(x))
    for name, wanted in theirs.state_dict().items():
        close(ours.state_dict()[name], wanted)
    x = case.arrays()[0]
    close(mlc.compile(ours.eval())(x), theirs.eval()(torch.from_numpy(x)))


def test_batch_norm_needs_a_batch() -> None:
    with pytest.raises(mlc.UserError, match="MLC0363"):
        nn.BatchNorm1d(3)(mlc.ones(1, 3))
    with pytest.raises(mlc.UserError, match="MLC0364"):
        nn.BatchNorm2d(3)(mlc.ones(2, 3))


@pytest.mark.parametrize(("layer", "shape"), [
    (nn.BatchNorm1d(3), (4, 2)), (nn.BatchNorm2d(3).eval(), (4, 2, 5, 5)),
    (nn.InstanceNorm1d(3, affine=True), (2, 5)), (nn.InstanceNorm1d(3, track_running_stats=True), (4, 2, 5))])
def test_channels_that_a_normalization_does_not_have(layer: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(mlc.UserError, match=rf"MLC0367.*{type(layer).__name__} has 3 channels, the input 2"):
        layer(mlc.ones(*shape))
    with pytest.raises((RuntimeError, ValueError)):
        getattr(torch.nn, type(layer).__name__)(3, affine=True)(torch.ones(*shape))


def test_channels_alone_are_a_number_for_batches_of_any_size() -> None:
    f = mlc.compile(nn.BatchNorm1d(3), dynamic=True)
    f(mlc.ones(4, 3))
    assert "tensor<input_0x3xf32>" in f.signatures[0]


@pytest.mark.parametrize("make", [
    lambda: nn.Linear(2, 3, dtype="int32"), lambda: nn.BatchNorm1d(3, dtype="bool"), lambda: nn.PReLU(dtype="int8"),
    lambda: setattr(nn.Linear(2, 3), "bias", mlc.arange(3)),
    lambda: setattr(nn.Module(), "x", nn.Parameter(mlc.arange(3)))])
def test_only_floats_are_trained(make: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"MLC0359.* is a parameter of"):
        make()


def test_constants_may_be_integers() -> None:
    layer = nn.Module()
    layer.x = nn.Parameter(mlc.arange(3), requires_grad=False)
    assert layer.x.tolist() == [0, 1, 2]


def test_every_layer_has_a_case() -> None:
    covered = {case.name for case in CASES}
    elsewhere = {"Module", "ModuleDict", "ModuleList", "Parameter", "ParameterDict", "ParameterList", "Sequential",
                 "AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout",
                 "MultiheadAttention", "LPPool1d", "LPPool3d"}
    others = re.compile(r"Transformer|^Lazy|RNN|LSTM|GRU|MaxUnpool|FractionalMaxPool|CTCLoss|RReLU|Adaptive.*Loss")
    assert not {n for n in nn.__all__ if n[0].isupper() and not others.search(n)} - covered - elsewhere


@pytest.mark.usefixtures("interpreted")
def test_layers_with_other_inputs_and_results() -> None:
    same("""
x = T(2, 3, 4, 6)
pool, unpool = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)
out += [unpool(*pool(x)), unpool, nn.RReLU().eval()(x), nn.RReLU(0.1, 0.2), nn.FeatureAlphaDropout(0.5).eval()(x)]
layer, x, target = filled(nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 5], 2.0)), T(4, 8), torch.tensor([0, 3, 9, 1])
found = layer(x, target)
found.loss.backward()
out += [found.output, found.loss, layer.log_prob(x), layer.predict(x), layer(x[0], target[1]).output]
out += [list(layer.state_dict()), layer.head.weight.grad, layer.tail[1][0].weight.grad]
x = T(5, 2, 4).log_softmax(2).requires_grad_()
loss = nn.CTCLoss(reduction="none")(x, torch.tensor([[1, 2], [3, 3]]), torch.tensor([5, 4]), torch.tensor([2, 1]))
loss.sum().backward()
out += [loss, x.grad]
d = nn.ParameterDict({"a": T(2), "b": T(3)})
out += [list(d), [n for n, _ in d.named_parameters()], list(d.state_dict()), d.pop("a"), len(d)]
sync = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm2d(3)))
out += [sync, list(sync.state_dict())]
""")


@pytest.mark.parametrize("weight", ["weight", "pos_weight"])
def test_losses_with_weights(weight: str) -> None:
    """Weights of classes are buffers: part of the state, and without gradient."""
    w = np.array([0.5, 1.0, 2.0, 3.0], np.float32)
    name = "CrossEntropyLoss" if weight == "weight" else "BCEWithLogitsLoss"
    target = LABELS if weight == "weight" else ZERO_ONE
    ours = getattr(nn, name)(**{weight: mlc.tensor(w)})
    theirs = getattr(torch.nn, name)(**{weight: torch.from_numpy(w)})
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    close(mlc.compile(ours)(x, target), theirs(torch.from_numpy(x), torch.from_numpy(target)))
    assert list(ours.state_dict()) == list(theirs.state_dict()) == [weight] and not list(ours.parameters())


@pytest.mark.parametrize("make", [
    lambda: nn.Conv2d(4, 6, 3, groups=4), lambda: nn.Conv1d(4, 6, 3, padding_mode="mirror"),
    lambda: nn.EmbeddingBag(3, 2, mode="median"), lambda: nn.Embedding(3, 2, padding_idx=3),
    lambda: nn.MultiheadAttention(10, 3), lambda: nn.TransformerEncoderLayer(8, 2, activation="tanh"),
    lambda: nn.Dropout(1.5)])
def test_settings_are_checked(make: Callable[[], Any]) -> None:
    with pytest.raises(mlc.UserError, match="MLC03"):
        make()


def test_a_layer_of_another_element_type() -> None:
    layer = nn.Sequential(nn.Linear(4, 4, dtype="float64"), nn.LayerNorm(4, dtype="float64"))
    assert {str(x.dtype) for x in tree.leaves(layer)} == {"mlc.float64"}
    assert layer(mlc.ones(2, 4, dtype="float64")).dtype is mlc.float64


def test_a_property_that_fails_says_why() -> None:
    class Broken(nn.Module):
        def __init__(self) -> None:
            self.inner = nn.Linear(2, 2)

        @property
        def size(self) -> Any:
            return self.inner.nothing

    with pytest.raises(AttributeError, match="'Linear' has no attribute 'nothing'"):
        _ = Broken().size
