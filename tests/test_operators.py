"""Operators whose results the tables of public cases do not show: views by strides, frames, noise, and every float."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc

torch = pytest.importorskip("torch")
F = mlc.nn.functional


@pytest.mark.usefixtures("interpreted")
def test_a_view_by_strides_shares_the_memory() -> None:
    x = mlc.arange(6.0)
    x.as_strided((2, 2), (1, 2)).mul_(10)
    assert x.tolist() == [0, 10, 20, 30, 4, 5]
    y = mlc.ones(4, requires_grad=True)
    y.as_strided((3, 2), (1, 1)).sum().backward()
    assert y.grad is not None and y.grad.tolist() == [1, 2, 2, 1]


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (8, 3), (3, 3, 3), (1, 4), (4, 1), (0, 2)])
def test_diagonals_of_all_shapes_are_filled(shape: tuple[int, ...], wrap: bool) -> None:
    wanted = torch.zeros(shape).fill_diagonal_(2.0, wrap=wrap)
    assert mlc.zeros(shape).fill_diagonal_(2.0, wrap=wrap).tolist() == wanted.tolist()


@pytest.mark.parametrize("wrong, code", [
    (lambda: mlc.arange(4).as_strided((3,), (2,)), "MLC0770"),
    (lambda: mlc.ones(2, 3).t().as_strided((2,), (1,)), "MLC0771"),
    (lambda: mlc.arange(4).as_strided((2,), (-1,)), "MLC0358"), (lambda: mlc.arange(4).as_strided((2,), ()), "MLC0357"),
    (lambda: mlc.ones(2, 2)[0].resize_(3), "MLC0760"), (lambda: mlc.ones(3).fill_diagonal_(1), "MLC0364"),
    (lambda: mlc.ones(2, 3, 2).fill_diagonal_(1), "MLC0367"), (lambda: mlc.ones(2, 2, 2).H, "MLC0364"),
    (lambda: mlc.repeat_interleave(mlc.arange(2), mlc.tensor([1, -1])), "MLC0360"),
    (lambda: mlc.masked.sum(mlc.ones(2), mask=mlc.ones(3) > 0), "MLC0111"),
    (lambda: mlc.stft(mlc.ones(4), 0), "MLC0360"), (lambda: mlc.svd_lowrank(mlc.ones(2, 2), -1), "MLC0360"),
    (lambda: mlc.ones(2, 2).repeat(3), "MLC0357"),
    *((lambda x=x, w=w, b=b: F.linear(mlc.ones(x), mlc.ones(w), mlc.ones(b)), "MLC0111.*bias of shape")
      for x, w, b in (((3,), (2, 3), (4, 2)), ((1, 3), (2, 3), (5, 2)), ((4, 3), (1, 3), (2,)), ((3,), (3,), (1,)))),
    (lambda: F.interpolate(mlc.ones(1, 1, 4), 2, mode="linear", antialias=True), "MLC0360")])
def test_what_is_refused(wrong: Any, code: str) -> None:
    with pytest.raises(mlc.UserError, match=code):
        wrong()


@pytest.mark.usefixtures("interpreted")
def test_approximations_of_low_rank_are_of_floats() -> None:
    for f in (mlc.svd_lowrank, mlc.pca_lowrank):
        x = mlc.tensor([[3.0, 0.0], [0.0, 1.0], [1.0, 2.0]])
        for dtype in (mlc.float16, mlc.bfloat16):          # which are converted, as those of linalg.svd are
            found = f(x.to(dtype), 2)
            assert {part.dtype for part in found} == {mlc.float32}
            np.testing.assert_allclose(found.S.numpy(), f(x, 2).S.numpy(), rtol=1e-5)
        for dtype, code in ((mlc.int64, "MLC0359"), (mlc.bool, "MLC0359"), (mlc.complex64, "MLC0785")):
            with pytest.raises(mlc.Error, match=f"{code}.*{f.__name__}: A is of"):
                f(x.to(dtype), 2)


def test_a_bias_that_broadcasts_to_the_result() -> None:
    for bias in ((1,), (2,), (1, 2), (4, 1), (4, 2)):
        x, w, b = (np.ones(shape, np.float32) for shape in ((4, 3), (2, 3), bias))
        assert F.linear(x, w, b).tolist() == torch.nn.functional.linear(*map(torch.tensor, (x, w, b))).tolist()


def test_a_resized_tensor_keeps_its_first_elements() -> None:
    x = mlc.arange(4)
    assert x.resize_(3) is x and x.tolist() == [0, 1, 2]
    assert x.resize_as_(mlc.ones(2, 2)).shape == (2, 2) and x[0].tolist() == [0, 1]


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
def test_every_number_of_float16() -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    for other in (np.inf, -np.inf, 0):
        wanted = np.nextafter(x, np.float16(other))
        found = np.array(mlc.nextafter(mlc.tensor(x), mlc.tensor(np.full_like(x, other))))
        np.testing.assert_array_equal(found, wanted)
    mantissa, exponent = mlc.frexp(mlc.tensor(x))
    np.testing.assert_array_equal(np.array(mantissa), np.frexp(x)[0])
    np.testing.assert_array_equal(np.array(exponent)[np.isfinite(x)], np.frexp(x)[1][np.isfinite(x)])


@pytest.mark.parametrize("settings", [
    {"n_fft": 16, "hop_length": 4, "window": torch.hann_window(16)}, {"n_fft": 15, "normalized": True},
    {"n_fft": 16, "hop_length": 3, "win_length": 12, "window": torch.hamming_window(12)},
    {"n_fft": 8, "onesided": False}])
@pytest.mark.usefixtures("interpreted")
def test_frames_and_their_inverse(settings: dict[str, Any]) -> None:
    x = torch.linspace(-1, 1, 40).sin()[None]
    ours: dict[str, Any] = {n: mlc.tensor(v.numpy()) if isinstance(v, torch.Tensor) else v for n, v in settings.items()}
    spectrum = torch.stft(x, return_complex=True, **settings)
    found = mlc.stft(mlc.tensor(x.numpy()), **ours, return_complex=True)
    np.testing.assert_allclose(np.array(found), spectrum.numpy(), atol=1e-5)
    for length in (None, 40, 43):
        back = mlc.istft(found, **ours, length=length)
        np.testing.assert_allclose(np.array(back), torch.istft(spectrum, **settings, length=length).numpy(), atol=1e-5)


@pytest.mark.usefixtures("interpreted")
def test_points_of_two_coordinates_are_counted() -> None:
    x = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    for bins, ours in (([2, 3], [2, 3]), ([torch.linspace(-1, 1, 4)] * 2, [mlc.linspace(-1, 1, 4)] * 2)):
        wanted = torch.histogramdd(torch.from_numpy(x), bins)
        found = mlc.histogramdd(mlc.tensor(x), ours)
        assert found.hist.tolist() == wanted.hist.tolist()
        np.testing.assert_allclose(np.array(found.bin_edges[1]), wanted.bin_edges[1].numpy(), rtol=1e-6)
    edges = [np.array(x, np.float32) for x in ([-2, -1, 2], [-2, 0, 0.5, 2])]
    wanted = torch.histogramdd(torch.from_numpy(x), [torch.from_numpy(e) for e in edges], density=True)
    found = mlc.histogramdd(mlc.tensor(x), [mlc.tensor(e) for e in edges], density=True)
    np.testing.assert_allclose(np.array(found.hist), wanted.hist.numpy(), rtol=1e-6)


def test_a_hard_sample_is_one_hot_and_has_the_gradient_of_the_soft_one() -> None:
    key, x = mlc.random.key(3), mlc.tensor([[0.5, -1.0, 2.0]])
    hard, soft = (F.gumbel_softmax(x, 0.7, hard, key=key) for hard in (True, False))
    assert sorted(hard[0].tolist()) == [0, 0, 1] and int(hard.argmax()) == int(soft.argmax())
    weights = mlc.tensor([[1.0, 2.0, 4.0]])
    grads = [mlc.grad(lambda x, hard=hard: (F.gumbel_softmax(x, 0.7, hard, key=key) * weights).sum())(x)
             for hard in (True, False)]
    np.testing.assert_allclose(np.array(grads[0]), np.array(grads[1]), rtol=1e-5)


@pytest.mark.usefixtures("interpreted")
def test_attention_with_weights_of_their_own_and_given_keys() -> None:
    rng = np.random.default_rng(1)
    shapes = {"q": (3, 2, 4), "k": (5, 2, 6), "q_proj_weight": (4, 4), "k_proj_weight": (4, 6), "v_proj_weight": (4, 6),
              "static_k": (4, 5, 2), "bias": (12,), "out": (4, 4)}
    x = {n: rng.normal(size=s).astype(np.float32) for n, s in shapes.items()}
    named = ("q_proj_weight", "k_proj_weight", "v_proj_weight", "static_k")

    def attended(f: Any, to: Any) -> Any:
        y = {n: to(v) for n, v in x.items()}
        return f(y["q"], y["k"], y["k"], 4, 2, None, y["bias"], None, None, False, 0.0, y["out"], None,
                 use_separate_proj_weight=True, **{n: y[n] for n in named})

    ours, theirs = attended(F.multi_head_attention_forward, mlc.tensor), attended(
        torch.nn.functional.multi_head_attention_forward, torch.from_numpy)
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(np.array(a), b.numpy(), rtol=1e-4, atol=1e-5)


def test_a_masked_mean_of_halves_counts_beyond_their_range() -> None:
    x, mask = mlc.full((70000,), 0.5, dtype=mlc.float16), mlc.ones(70000, dtype=mlc.bool)
    assert mlc.masked.mean(x, 0, mask=mask).item() == 0.5 and mlc.masked.var(x, 0, mask=mask).item() == 0
