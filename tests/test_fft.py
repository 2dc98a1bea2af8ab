"""Fourier transforms and special functions: how exact they are, at which places, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import mlc
from mlc.ir.diag import Error


@pytest.mark.parametrize("n", [66, 256, 509])
def test_as_exact_as_numpy(n: int) -> None:
    """By products with matrices, by factors, and of a prime number of points, each against twice numpy's error."""
    rng = np.random.default_rng(n)
    z = rng.normal(size=n) + 1j * rng.normal(size=n)
    turns = (np.outer(np.arange(n), np.arange(n)) % n).astype(np.longdouble) / n
    exact = np.exp(-2j * np.arccos(np.longdouble(-1)) * turns) @ z
    got = np.array(mlc.fft.fft(mlc.tensor(z)))

    def error(found: np.ndarray) -> float:
        return float(np.sqrt(np.mean(np.abs(found - exact) ** 2)))

    assert error(got) <= 2 * error(np.fft.fft(z))


def test_many_points_whose_roots_are_computed() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=1 << 15) + 1j * rng.normal(size=1 << 15)
    for ours, theirs in ((mlc.fft.fft, np.fft.fft), (mlc.fft.ifft, np.fft.ifft)):
        wanted = theirs(z)
        np.testing.assert_allclose(np.array(ours(mlc.tensor(z))), wanted, rtol=0, atol=1e-13 * np.abs(wanted).max())


def test_frequencies_of_nothing_are_refused() -> None:
    for points, apart in ((0, 1.0), (-1, 1.0), (4, 0.0)):
        for frequencies in (mlc.fft.fftfreq, mlc.fft.rfftfreq):
            with pytest.raises(mlc.UserError, match="points that are"):
                frequencies(points, apart)


def test_windows_of_mlc_itself_are_of_floats() -> None:
    for name in ("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window"):
        window = getattr(mlc, name)
        assert window(4, dtype=None, device="cpu", requires_grad=True).requires_grad and window(0).shape == (0,)
        assert window(4, dtype="float16").dtype is mlc.float16 and window(4, dtype=None).dtype is mlc.float32
        for dtype, code in (("int32", "MLC0359"), ("complex64", "MLC0359"), ("no dtype", "MLC0342")):
            with pytest.raises(Error, match=code):
                window(4, dtype=dtype)


def test_zeta_at_its_limits() -> None:
    inf, nan = math.inf, math.nan
    zeta = mlc.special.zeta
    first: Any = lambda x: mlc.polygamma(1, mlc.tensor(x, dtype=mlc.float64)).item()
    assert all(math.isnan(zeta(mlc.tensor(s), q).item()) for s, q in ((2.0, nan), (nan, 1.0), (nan, nan)))
    found = [zeta(mlc.tensor(s), q).item() for s, q in ((1e20, 1.0), (inf, 1.0), (1e20, 2.0), (inf, 2.0))]
    assert found == [1, 1, 0, 0]
    assert math.isnan(first(nan)) and first(inf) == 0 and first(1e200) == pytest.approx(1e-200)


def test_bessel_functions_have_derivatives_at_0() -> None:
    x = mlc.tensor([0.0, -1.0], dtype=mlc.float64, requires_grad=True)
    mlc.special.bessel_j1(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == pytest.approx([0.5, 0.32514710])
    second = mlc.grad(mlc.grad(mlc.special.bessel_j0))
    assert second(mlc.tensor(0.0, dtype=mlc.float64)).item() == pytest.approx(-0.5)


def test_windows_without_a_dtype() -> None:
    assert mlc.signal.windows.hann(4, dtype=None).dtype is mlc.fft.fftfreq(4, dtype=None).dtype is mlc.float32
    assert mlc.signal.windows.exponential(1, center=2.0, sym=False).item() == pytest.approx(math.exp(-2))


@pytest.mark.parametrize(("dtype", "wanted"), [("float64", "complex128"), ("complex64", "complex64")])
def test_windows_of_other_dtypes(dtype: str, wanted: str) -> None:
    """They are not rounded to the precision of the signal, nor do they lose imaginary parts."""
    rng = np.random.default_rng(0)
    x, window = rng.standard_normal(32).astype(np.float32), rng.random(8).astype(dtype)
    window = window * (1 + 1j) if dtype == "complex64" else window
    window = window.astype(dtype)
    found = mlc.stft(mlc.tensor(x), 8, window=mlc.tensor(window), return_complex=True)
    theirs = torch.stft(torch.from_numpy(x), 8, window=torch.from_numpy(window), return_complex=True)
    assert str(found.dtype) == f"mlc.{wanted}"
    np.testing.assert_allclose(found.numpy(), theirs.numpy(), rtol=1e-5 if wanted == "complex64" else 1e-12, atol=1e-6)
    if dtype == "float64":
        back = mlc.istft(found, 8, window=mlc.tensor(window), length=32)
        assert back.dtype is mlc.float64
