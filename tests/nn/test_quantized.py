"""Post-training quantisation, and layers whose products are of integers of 8 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.frontend.functions.quantized import conv_integer, linear_integer, quantize_per_tensor
from mlc.ir.diag import UserError, UserTypeError


def numbers(*shape: int, low: int = 0, high: int = 256, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(low, high, shape).astype(np.uint8 if high > 128 else np.int8)


@pytest.mark.parametrize(("x", "w", "given"), [
    ((2, 3, 9), (5, 3, 3), {}), ((1, 3, 8, 9), (17, 3, 3, 3), {"padding": 1, "stride": 2}),
    ((2, 64, 14, 14), (64, 64, 3, 3), {"padding": 1}), ((1, 32, 7, 7), (48, 32, 1, 1), {}),
    ((1, 6, 8, 8), (4, 3, 3, 3), {"groups": 2, "dilation": 2}),
    ((1, 8, 9, 9), (8, 1, 3, 3), {"groups": 8, "padding": 2}),
    ((1, 2, 4, 5, 6), (3, 2, 2, 2, 2), {}), ((0, 3, 5, 5), (2, 3, 3, 3), {})])
def test_convolution_of_steps_is_exact(x: Any, w: Any, given: dict[str, Any]) -> None:
    """It is that of floats, which hold these sums; steps outside of the image stand for 0."""
    steps, filters, zero = numbers(*x), numbers(*w, low=-128, high=128), 7
    convolve = {3: nn.functional.conv1d, 4: nn.functional.conv2d, 5: nn.functional.conv3d}[len(x)]
    wide = mlc.tensor(steps.astype(np.float64) - zero), mlc.tensor(filters.astype(np.float64))
    sums = filters.reshape(len(filters), -1).astype(np.float64).sum(1).reshape(-1, *(1,) * (len(x) - 2))
    want = np.asarray(convolve(*wide, **given)) + zero * sums
    args = mlc.tensor(steps), mlc.tensor(filters), mlc.tensor(np.uint8(zero))
    f = mlc.compile(lambda *args: conv_integer(*args, **given))
    np.testing.assert_array_equal(np.asarray(f(*args)), want)


@pytest.mark.parametrize(("rows", "columns", "outputs"), [
    (64, 100, 48), (1, 64, 64), (37, 1, 17), (40, 1030, 33), (0, 3, 2)])
def test_linear_of_steps_is_exact(rows: int, columns: int, outputs: int) -> None:
    x, w = numbers(rows, columns), numbers(outputs, columns, low=-128, high=128)
    want = x.astype(np.int64) @ w.T.astype(np.int64)
    for f in (linear_integer, mlc.compile(linear_integer)):
        np.testing.assert_array_equal(np.asarray(f(mlc.tensor(x), mlc.tensor(w))), want)


def test_steps() -> None:
    """Ties go to even, and what is beyond the steps is clamped."""
    x = mlc.tensor([-9.0, -0.25, 0.25, 0.75, 1.25, 63.0, 1e30])
    assert quantize_per_tensor(x, 0.5, 2).tolist() == [0, 2, 2, 4, 4, 128, 255]


def network() -> Any:
    mlc.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.SiLU(), nn.Conv2d(16, 16, 3, padding=1, groups=16),
        nn.ReLU6(), nn.Conv2d(16, 32, 1, stride=2, bias=False), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10))


def batches(count: int = 4) -> list[mlc.Tensor]:
    generator = mlc.Generator().manual_seed(1)
    return [mlc.randn(4, 3, 8, 8, generator=generator) for _ in range(count)]


@pytest.mark.usefixtures("execution")
def test_model() -> None:
    """The copy is close to the model, eager and compiled; depthwise layers and the model itself stay."""
    model, data = network().eval(), batches()
    small: Any = mlc.quantization.quantize(model, data)
    assert [type(small[i]) for i in (0, 3, 5, 8)] == [
        nn.quantized.Conv2d, nn.Conv2d, nn.quantized.Conv2d, nn.quantized.Linear]
    assert type(model[0]) is nn.Conv2d and repr(small[0]).startswith("QuantizedConv2d(in_channels=3")
    with mlc.no_grad():
        want, got = (np.asarray(m(data[0])) for m in (model, small))
        assert np.abs(got - want).max() < 0.03 * np.abs(want).max()
        for compiled in (mlc.compile(small), mlc.compile(small, freeze=True)):
            np.testing.assert_allclose(np.asarray(compiled(data[0])), got, atol=1e-5)


@pytest.mark.usefixtures("execution")
def test_state_is_loaded_into_another_copy() -> None:
    small: Any = mlc.quantization.quantize(network(), batches())
    data = batches(1)[0]
    other = mlc.quantization.quantize(network(), [data])
    other.load_state_dict(small.state_dict())
    assert small(data).tolist() == other(data).tolist() and not list(small[8].parameters())


def test_a_model_that_is_one_layer() -> None:
    layer = nn.Linear(3, 2)
    assert isinstance(mlc.quantization.quantize(layer, [mlc.ones(2, 3)]), nn.quantized.Linear)


def test_layers_that_are_kept() -> None:
    small: Any = mlc.quantization.quantize(nn.Sequential(nn.Sequential(nn.Linear(2, 2)), nn.Linear(2, 2)),
                                      [mlc.ones(1, 2)], keep=["0"])
    assert type(small[0][0]) is nn.Linear and type(small[1]) is nn.quantized.Linear


@pytest.mark.parametrize(("given", "keep", "message"), [
    ([], (), "there are no batches"), ([mlc.ones(1, 2)], ("head",), "no layer 'head'"),
    ([mlc.full((1, 2), float("nan"))], (), "layer '0' was called with numbers that are not finite"),
    ([mlc.full((1, 2), 3e38), mlc.full((1, 2), -3e38)], (), "are not finite, or as good as")])
def test_what_is_refused(given: list[Any], keep: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        mlc.quantization.quantize(nn.Sequential(nn.Linear(2, 2)), given, keep)


def test_a_layer_in_two_places_with_hooks() -> None:
    """It becomes its quantised one where it is: in both places, with its hooks."""
    layer, x = nn.Linear(4, 4), mlc.tensor([[1.0, 0.5, 0.0, 1.0]])
    layer.register_forward_hook(lambda module, args, out: 2 * out)
    small: Any = mlc.quantization.quantize(nn.Sequential(layer, nn.ReLU(), layer), [x])
    assert small[0] is small[2] and type(small[0]) is nn.quantized.Linear and type(layer) is nn.Linear
    once = mlc.quantization.quantize(nn.Linear(4, 4), [x])
    assert np.allclose(small(x), nn.Sequential(layer, nn.ReLU(), layer)(x), atol=0.1)
    assert not hasattr(once, "weight") and not hasattr(once, "bias")


class Unusual(nn.Module):
    """Layers in a tuple, called by keyword, and of too many terms."""

    def __init__(self) -> None:
        self.layers = nn.Linear(4, 4), nn.Linear(4, 0)
        self.long = nn.Linear(70_000, 1)

    def forward(self, x: Any) -> Any:
        return self.layers[0](input=x), self.layers[1](x), self.long(mlc.ones(1, 70_000, dtype=x.dtype))


@pytest.mark.usefixtures("execution")
def test_a_model_of_unusual_structure() -> None:
    model, x = Unusual().bfloat16(), mlc.ones(3, 4).bfloat16()
    small: Any = mlc.quantization.quantize(model, [x])
    assert [type(m) for m in (*small.layers, small.long)] == [nn.quantized.Linear, nn.quantized.Linear, nn.Linear]
    for got, want in zip(small(x), model(x)):
        assert got.dtype == want.dtype
        assert np.allclose(np.asarray(got.float()), np.asarray(want.float()), atol=0.05)


@pytest.mark.usefixtures("execution")
def test_one_image_and_arrays() -> None:
    """An image may have no batch dimension, and batches may be arrays."""
    layer, x = nn.Conv2d(2, 4, 3), np.ones((2, 5, 5), np.float32)
    small = mlc.quantization.quantize(layer, [x])
    assert np.allclose(np.asarray(small(x)), np.asarray(layer(x)), atol=0.05)


def test_layer_that_is_not_called() -> None:
    class Half(nn.Module):
        def __init__(self) -> None:
            self.used, self.unused = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.used(x)

    with pytest.raises(UserError, match="layer 'unused' was not called"):
        mlc.quantization.quantize(Half(), [mlc.ones(1, 2)])


def test_arguments_that_are_none() -> None:
    model: Any = nn.Linear(2, 2)
    with pytest.raises(UserTypeError, match="expected a module, found function"):
        mlc.quantization.quantize(model.forward.__func__, [mlc.ones(1, 2)])
    with pytest.raises(UserTypeError, match="expected batches, found one tensor"):
        mlc.quantization.quantize(model, mlc.ones(1, 2))
