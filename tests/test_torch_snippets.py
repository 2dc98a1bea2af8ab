"""Short eager programs whose results are PyTorch's to the bit: what shares memory, is rounded, and gets gradients."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("execution")


def plain(x: Any) -> Any:
    """A result in a form that both libraries share."""
    if isinstance(x, mlc.Tensor | torch.Tensor):
        return str(x.dtype).rpartition(".")[2], tuple(x.shape), repr(x.tolist())
    return tuple(map(plain, x)) if isinstance(x, tuple) else x


def gradient(m: Any, f: Callable[[Any], Any], *values: float, dtype: str = "float32") -> Any:
    x = m.tensor(values, dtype=getattr(m, dtype), requires_grad=True)
    y = f(x)
    y.sum().backward()
    return y.detach(), x.grad


def written(m: Any, view: Callable[[Any], Any], shape: tuple[int, ...] = (3,)) -> Any:
    """The tensor after a write to what a function of it gives."""
    x = m.arange(np.prod(shape)).reshape(shape).float()
    out = view(x)
    (out[0] if isinstance(out, tuple | list) else out).fill_(7)
    return x


HALF = [
    lambda m, t: gradient(m, lambda x: x * 65536.0, 0.0, 2**-12, 0.5, dtype=t),
    lambda m, t: gradient(m, lambda x: 65536.0 * x, 0.0, 2**-12, 0.5, dtype=t),
    lambda m, t: gradient(m, lambda x: x / 65536.0, 1.0, 60000.0, dtype=t),
    lambda m, t: gradient(m, lambda x: x * 1.003, 1.0, -3.0, 100.0, dtype=t),
    lambda m, t: gradient(m, lambda x: x / 3.1, 1.0, -3.0, 100.0, dtype=t),
    lambda m, t: gradient(m, lambda x: x * m.tensor(1.003), 1.0, -3.0, 100.0, dtype=t),
    lambda m, t: gradient(m, lambda x: x * m.tensor(100001), 1e-3, 0.25, dtype=t),
    lambda m, t: m.tensor([0.5, 3.0], dtype=getattr(m, t)).mul_(100001),
    lambda m, t: m.tensor([0.5, 3.0], dtype=getattr(m, t)) * m.tensor([100001, 3]),
    lambda m, t: m.tensor([0.5, 3.0], dtype=getattr(m, t)) * 100001,
    lambda m, t: m.tensor([0.5, 3.0], dtype=getattr(m, t)) * float("nan"),
    lambda m, t: m.tensor([0.5, 3.0], dtype=getattr(m, t)) * True,
    lambda m, t: m.tensor([0.5, 3.0], dtype=getattr(m, t)) + 0.1,
    lambda m, t: gradient(m, lambda x: m.nn.functional.leaky_relu(x, 0.0301), 1.0, -3.0, -100.0, dtype=t),
    lambda m, t: m.nn.functional.softplus(m.linspace(-2, 2, 50).to(getattr(m, t)), 3.1),
    lambda m, t: m.nn.functional.softshrink(m.linspace(-2, 2, 50).to(getattr(m, t)), 0.1),
    lambda m, t: m.linspace(-400, 900, 99).to(getattr(m, t)) // 1.003,
    lambda m, t: m.div(m.linspace(-400, 900, 99).to(getattr(m, t)), 1.003, rounding_mode="trunc"),
    lambda m, t: m.lerp(*m.tensor([[0.25, 0.5], [0.5, 0.75]], dtype=getattr(m, t)), 65536.0).isfinite(),
    lambda m, t: m.add(*m.tensor([[3.0, 100.0], [3.0, -99.0]], dtype=getattr(m, t)), alpha=0.5),
]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("f", HALF, ids=range(len(HALF)))
def test_numbers_beside_16_bits_are_not_rounded_first(f: Callable[[Any, str], Any], dtype: str) -> None:
    assert plain(f(mlc, dtype)) == plain(f(torch, dtype))


def test_numbers_beside_16_bits_in_a_compiled_function() -> None:
    x = mlc.tensor([0.0, 2**-12, 0.5], dtype=mlc.float16)
    assert mlc.compile(lambda x: (x * 65536.0, x / 65536.0))(x)[0].tolist() == [0.0, 16.0, 32768.0]
    assert mlc.compile(lambda x, c: x * c)(x, 65536.0).tolist() == [0.0, 16.0, 32768.0]


VIEWS = [
    lambda m: written(m, m.atleast_1d), lambda m: written(m, m.atleast_2d), lambda m: written(m, m.atleast_3d),
    lambda m: written(m, m.atleast_1d, ()), lambda m: written(m, lambda x: m.atleast_2d(x, m.ones(2))),
    lambda m: written(m, lambda x: m.atleast_2d([x, x])[1]),
    lambda m: written(m, lambda x: m.broadcast_tensors(x, m.ones(3))), lambda m: written(m, m.meshgrid),
    lambda m: written(m, lambda x: m.einsum("ii->i", x), (3, 3)),
    lambda m: written(m, lambda x: m.einsum("ijk->kji", x)[0], (2, 3, 2)),
    lambda m: written(m, lambda x: m.einsum("iji->ji", [x])[1], (2, 3, 2)),
    lambda m: written(m, lambda x: x[1:].as_strided((2,), (1,))),
    lambda m: written(m, lambda x: x[1:].as_strided((1,), (1,), 2)),
    lambda m: written(m, lambda x: m.as_strided(x[2:][1:], (2,), (3,), 4), (8,)),
    lambda m: written(m, m.cartesian_prod),
    lambda m: m.arange(6)[2:].storage_offset(), lambda m: m.arange(6).reshape(2, 3)[1, 1:].storage_offset(),
    lambda m: m.arange(6).clone()[3:].clone().storage_offset(), lambda m: m.arange(6).detach()[3:].storage_offset(),
    lambda m: m.arange(4).as_strided_scatter(m.tensor([9, 8]), (2,), (1,), 2),
    lambda m: [x.shape for x in m.broadcast_tensors(m.ones(3, 1), m.ones(4))],
    lambda m: m.atleast_2d(m.ones(2), m.tensor(3.0)), lambda m: m.atleast_3d((m.ones(2), m.ones(2, 2)))[1],
]


@pytest.mark.parametrize("f", VIEWS, ids=range(len(VIEWS)))
def test_views_share_memory(f: Callable[[Any], Any]) -> None:
    assert plain(f(mlc)) == plain(f(torch))


def test_a_view_before_its_tensor_is_refused() -> None:
    x = mlc.arange(6)
    with pytest.raises(mlc.UserError, match=r"MLC0770.*lies before"):
        x[2:].as_strided((2,), (1,), 0)
    with pytest.raises(mlc.UserError, match=r"MLC0771.*where a view begins"):
        mlc.compile(lambda x: x[2:].as_strided((2,), (1,), 1))(x)
    assert mlc.compile(lambda x: x.as_strided((2,), (1,), 1) + x[2:].as_strided((2,), (2,)))(x).tolist() == [3, 6]


GRADIENTS = [
    lambda m: gradient(m, lambda x: x.median(), 2.0, 1.0, 2.0, 3.0, 2.0),
    lambda m: gradient(m, lambda x: x.nanmedian(), 2.0, float("nan"), 2.0, 3.0, 1.0),
    lambda m: gradient(m, lambda x: x.nanmedian(), float("nan"), float("nan")),
    lambda m: gradient(m, lambda x: x.median(), 1.0, float("nan"), 2.0, float("nan")),
    lambda m: gradient(m, lambda x: x.median(), float("inf"), float("inf"), 1.0),
    lambda m: gradient(m, lambda x: x.median(), float("-inf"), float("-inf"), 1.0),
    lambda m: gradient(m, lambda x: x.median(0).values, 2.0, 1.0, 2.0),
    lambda m: m.tensor([3, 1, 3]).median(),
]


@pytest.mark.parametrize("f", GRADIENTS, ids=range(len(GRADIENTS)))
def test_who_gets_the_gradient(f: Callable[[Any], Any]) -> None:
    assert plain(f(mlc)) == plain(f(torch))


def test_a_cotangent_that_is_not_a_number_stays_one() -> None:
    nan = float("nan")
    _, found = gradient(mlc, lambda x: mlc.logcumsumexp(x, 0) * mlc.tensor([1.0, nan, 1.0]), 0.0, 1.0, 2.0)
    assert found.isnan().tolist() == [True, True, False]


def test_gradients_of_slices_without_elements() -> None:
    for key in (slice(4, 4, -3), slice(3, 1, 2), slice(1, 3, -1), slice(9, 2, 1)):
        for size in (0, 1, 5):
            found = mlc.compile(mlc.grad(lambda x, key=key: (x[key] ** 2).sum()), dynamic=True)(np.ones(size))
            assert found.tolist() == [0.0] * size


def test_extremes_have_names() -> None:
    found = mlc.aminmax(mlc.tensor([[3.0, 1.0], [2.0, 5.0]]), dim=1)
    assert (found.min.tolist(), found.max.tolist()) == ([1.0, 2.0], [3.0, 5.0])


def test_tensors_of_buffers() -> None:
    buffer = bytearray(range(12))
    x = mlc.frombuffer(buffer, dtype=mlc.int16, offset=2)
    assert plain(x) == plain(torch.frombuffer(buffer, dtype=torch.int16, offset=2))
    x[0] = 0
    assert buffer[:4] == bytes([0, 1, 0, 0]) and mlc.frombuffer(buffer, dtype=mlc.float32, count=2).shape == (2,)
    for count, offset in ((-1, 11), (7, 0), (0, 0), (-1, -2), (-1, 1)):
        with pytest.raises(mlc.UserError, match="MLC0346"):
            mlc.frombuffer(buffer, dtype=mlc.int16, count=count, offset=offset)
    with pytest.raises(TypeError, match="MLC0345"):
        mlc.frombuffer([1, 2], dtype=mlc.int16)
    with pytest.raises(mlc.UserError, match="MLC0753"):
        mlc.frombuffer(b"abcd", dtype=mlc.uint8).fill_(0)


def test_random_integers_stay_within_bounds_and_dtypes() -> None:
    for bounds in ((0,), (0, 0), (3, 3), (5, 2)):
        with pytest.raises(mlc.UserError, match="MLC0360"):
            mlc.empty(3).random_(*bounds)
    for dtype, low, high in ((mlc.uint8, 0, 257), (mlc.int8, -129, 0), (mlc.bool, 0, 3), (mlc.float16, 0, 70000)):
        with pytest.raises(mlc.UserError, match=r"MLC0360.*has not all"):
            mlc.empty(3, dtype=dtype).random_(low, high)
    assert 200 < mlc.empty(500, dtype=mlc.uint8).random_(0, 256).max().item()
    assert mlc.empty(9, dtype=mlc.int64).random_(-(2**62), 2**62).unique().numel() > 1
    assert mlc.empty(500, dtype=mlc.bool).random_().unique().numel() == 2


def test_keyword_arguments_are_the_same_for_all_examples() -> None:
    def f(m: Any) -> Any:
        x, w = m.arange(6.0).reshape(3, 2), m.tensor([1.0, 10.0])
        return m.func.vmap(lambda x, w: (x * w).sum())(x, w=w)

    assert plain(f(mlc)) == plain(f(torch))


def moved(m: Any, f: Callable[..., Any], training: bool) -> Any:
    """The running statistics after a call of a function of a batch."""
    x, mean, var = m.arange(24.0).reshape(4, 3, 2), m.zeros(3), m.ones(3)
    y = f(m.nn.functional)(x, mean, var, None, None, training, 0.3)
    return y.sum(2).round().abs(), (mean * 1000).round(), (var * 1000).round()


@pytest.mark.parametrize("name", ["batch_norm", "instance_norm"])
@pytest.mark.parametrize("training", [True, False])
def test_running_statistics_are_written_to(name: str, training: bool) -> None:
    assert plain(moved(mlc, lambda F: getattr(F, name), training)) == plain(
        moved(torch, lambda F: getattr(F, name), training))


def test_running_statistics_of_a_compiled_module() -> None:
    class Own(mlc.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", mlc.zeros(3))
            self.register_buffer("var", mlc.ones(3))

        def forward(self, x: Any) -> Any:
            return mlc.nn.functional.batch_norm(x, self.mean, self.var, training=True)

    x, eager, compiled = mlc.arange(24.0).reshape(4, 3, 2), Own(), mlc.compile(Own())
    for _ in range(2):
        assert mlc.allclose(eager(x), compiled(x))
    assert plain(dict(eager.named_buffers())["mean"]) == plain(dict(compiled.named_buffers())["mean"])


OTHERS = [
    lambda m: m.zeros(2, dtype=float), lambda m: m.ones(2).to(complex), lambda m: m.tensor([1.5]).to(int),
    lambda m: m.histc(m.arange(108.0), 107), lambda m: m.histc(m.arange(42.0), 41, 0, 41),
    lambda m: tuple(m.histogram(m.arange(108.0), 107)), lambda m: tuple(m.histogram(m.tensor([0.0, 0.3, 0.7]), 7)),
    lambda m: m.nan_to_num(m.tensor([complex(float("nan"), 1), complex(2, float("-inf"))]), 5.0),
    lambda m: m.nan_to_num(m.tensor([float("nan"), 1.0]), nan=None),
    lambda m: m.any(m.tensor([[0, 3], [0, 0]], dtype=m.uint8), 1), lambda m: m.tensor([3], dtype=m.uint8).all(),
    lambda m: m.all(m.tensor([[2, 3]], dtype=m.uint8), ()), lambda m: m.tensor([0, 3], dtype=m.int8).any(),
    lambda m: m.tensor([1.0, float("nan"), 2.0, float("nan")]).median(0).indices,
    lambda m: gradient(m, lambda x: m.nn.functional.grid_sample(
        m.arange(9.0).reshape(1, 1, 3, 3), x.reshape(1, 1, 4, 2), "bilinear", "border", True),
        -1.0, 1.0, 0.5, 1.0, 1.5, -0.5, 0.25, 0.5)[1].abs(),
    lambda m: gradient(m, lambda x: m.nn.functional.embedding_bag(
        m.tensor([0, 1, 2, 3, 3, 0]), x.reshape(4, 2), m.tensor([0, 3, 3, 5]), mode="max"),
        1.0, 2.0, 1.0, 3.0, 1.0, 3.0, 0.0, -5.0),
    *(lambda m, mode=mode, by=by: m.nn.functional.interpolate(
        m.arange(49.0).reshape(1, -1, *[7] * len(by)) ** 2, scale_factor=by, mode=mode).round()
      for mode in ("nearest", "nearest-exact") for by in ((1.1,), (2.1,), (1.1, 2.1), (1.1, 2.0))),
    lambda m: m.nn.functional.interpolate(m.arange(49.0).reshape(1, 7, 7), scale_factor=1.1, mode="linear"),
    lambda m: m.nn.functional.interpolate(m.arange(49.0).reshape(1, 1, 7, 7), scale_factor=1.1, mode="bilinear"),
]


@pytest.mark.parametrize("f", OTHERS, ids=range(len(OTHERS)))
def test_others(f: Callable[[Any], Any]) -> None:
    assert plain(f(mlc)) == plain(f(torch))


def test_schedules_of_optimizers() -> None:
    def rates(m: Any) -> Any:
        schedulers = m.optim.lr_scheduler
        rate = m.tensor(0.5)
        by_tensor = m.optim.SGD([m.ones(1, requires_grad=True)], lr=rate)
        halved = schedulers.StepLR(by_tensor, 1, 0.5)
        by_tensor.step()
        halved.step()
        grown = m.optim.SGD([m.ones(1, requires_grad=True)], lr=0.5)
        plateau = schedulers.ReduceLROnPlateau(grown, patience=0, factor=0.5)
        grown.add_param_group({"params": [m.ones(1, requires_grad=True)], "lr": 4.0})
        plateau.step(1.0)
        plateau.step(1.0)
        steps = schedulers.MultiStepLR(m.optim.SGD([m.ones(1, requires_grad=True)], lr=1.0), [1, 1, 3], 0.5)
        state = torch.optim.lr_scheduler.MultiStepLR(torch.optim.SGD([torch.ones(1)], lr=1.0), [1, 1, 3]).state_dict()
        steps.load_state_dict(state | {"gamma": 0.5})
        found = [steps.optimizer.step() or steps.step() or steps.get_last_lr()[0] for _ in range(4)]
        return (rate, by_tensor.param_groups[0]["lr"] is rate, *(g["lr"] for g in grown.param_groups), *found)

    assert plain(rates(mlc)) == plain(rates(torch))
    optimizer = mlc.optim.SGD([mlc.ones(1, requires_grad=True)], lr=0.5)
    plateau = mlc.optim.lr_scheduler.ReduceLROnPlateau(optimizer, min_lr=[0.1], patience=0)
    optimizer.add_param_group({"params": [mlc.ones(1, requires_grad=True)]})
    plateau.step(1.0)
    with pytest.raises(mlc.UserError, match="MLC0441"):
        plateau.step(1.0)


REFUSED = [
    lambda m: m.nn.functional.binary_cross_entropy(m.tensor([0.5, 1.5]), m.tensor([0.0, 1.0])),
    lambda m: m.nn.functional.binary_cross_entropy(m.tensor([0.5, float("nan")]), m.tensor([0.0, 1.0])),
    lambda m: m.nn.functional.binary_cross_entropy(m.tensor([0.5]), m.tensor([-0.5])),
    lambda m: m.segment_reduce(m.ones(3), "sum", lengths=m.tensor([1, 1])),
    lambda m: m.segment_reduce(m.ones(3), "sum", lengths=m.tensor([4, -1])),
    lambda m: m.nn.functional.max_unpool1d(m.ones(1, 2), m.tensor([[0, -1]]), 2),
    lambda m: m.nn.functional.max_unpool1d(m.ones(1, 2), m.tensor([[0, 3]]), 2, output_size=(6,)),
    lambda m: m.nn.functional.max_unpool1d(m.ones(1, 2), m.tensor([[0, 3]]), 2, output_size=(5, 5, 5, 5)),
]


@pytest.mark.parametrize("f", REFUSED)
def test_values_that_no_result_is_of(f: Callable[[Any], Any]) -> None:
    for m in (mlc, torch):
        with pytest.raises(Exception, match=r"."):
            f(m)


INF = float("inf")
EDGES = [
    ("lgamma", 0.0), ("lgamma", -0.0), ("lgamma", INF), ("digamma", INF), ("special.entr", 0.0),
    ("special.erfcx", -1e3), ("special.ndtri", 0.0), ("special.ndtri", 1.0), ("special.ndtri", 0.5)]


@pytest.mark.parametrize(("name", "x"), EDGES)
def test_derivatives_at_edges(name: str, x: float) -> None:
    def found(m: Any) -> Any:
        _, slope = gradient(m, lambda x: getattr(m.special, name[8:])(x) if "." in name else getattr(m, name)(x), x)
        return slope.item()

    assert found(mlc) == pytest.approx(found(torch), rel=1e-6)


def test_derivatives_at_edges_of_two() -> None:
    orders = mlc.tensor([0.5, 1.0, 2.0])
    assert gradient(mlc, lambda x: mlc.igamma(orders, x), 0.0, 0.0, 0.0)[1].tolist() == [INF, 1.0, 0.0]
    assert gradient(mlc, lambda x: mlc.xlogy(x, INF), 0.0)[1].item() == INF


def test_special_functions_where_they_are_small() -> None:
    """Values of mpmath, to 40 digits."""
    def near(found: Any, *wanted: float) -> bool:
        return bool(found.tolist() == pytest.approx(list(wanted), rel=1e-13, abs=0.0))

    def double(*xs: float) -> Any:
        return mlc.tensor(xs, dtype=mlc.float64)

    assert near(mlc.lgamma(double(1 + 2**-30, 2 - 2**-36, 1 + 2**-43)),
                -5.3757397843110445e-10, -6.152321804166053e-12, -6.5621823626024634e-14)
    assert near(mlc.igamma(double(10.0, 10.0), double(1e-10, 1e-20)), 2.755731922148069e-107, 2.7557319223985876e-207)
    assert near(mlc.igammac(double(1e-14, 1e-20), double(1e-15, 1e-21)), 3.3961560730003395e-13, 4.7777071287973424e-19)
    assert near(mlc.special.ndtri(double(0.5, 0.5 + 2**-33)), 0.0, 2.9180993729166227e-10)
