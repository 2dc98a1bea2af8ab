"""Fourier transforms: how exact they are, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import mlc


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
