"""Arrays in tests: random ones, and where two of them differ."""
from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
              "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7)}
"""Relative and absolute tolerance by numpy dtype; others agree exactly."""


def random_array(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any], low: int = -4) -> Array:
    """Integers from `low` to 4 (to 2 from 0 or if unsigned, so that they may stand for a size), or normal floats."""
    if dtype == np.bool_:
        return np.asarray(rng.integers(0, 2, shape)).astype(dtype)
    if dtype.kind in "iu":
        low = low if dtype.kind == "i" else 0
        return np.asarray(rng.integers(low, 5 if low else 3, shape)).astype(dtype)
    real = np.asarray(rng.standard_normal(shape))
    if dtype.kind == "c":
        return np.asarray(real + 1j * rng.standard_normal(shape)).astype(dtype)
    return real.astype(dtype)


def difference(got: Array | np.generic, want: Array | np.generic, tolerance: str | float | None) -> str | None:
    """None if two arrays agree, else where they do not. All NaNs are alike; the two zeros differ to the `bits`."""
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)} in place of {want.dtype}{list(want.shape)}"
    if got.dtype.kind in "biu":
        same = got == want
    else:
        wide = np.complex128 if got.dtype.kind == "c" else np.float64
        with np.errstate(invalid="ignore"):                 # signalling NaNs
            a, b = got.astype(wide), want.astype(wide)
        both_nan = np.isnan(a) & np.isnan(b)
        if tolerance == "bits":
            signs = (np.signbit(a.real) == np.signbit(b.real)) & (np.signbit(a.imag) == np.signbit(b.imag))
            same = (a == b) & signs | both_nan
        else:
            rtol, atol = TOLERANCES.get(got.dtype.name, (0.0, 0.0)) if tolerance is None else [float(tolerance)] * 2
            same = np.isclose(a, b, rtol=rtol, atol=atol) | both_nan
    if same.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~same)[0])
    return f"{got[at]} in place of {want[at]} at {list(at)} ({int((~same).sum())} of {same.size} differ)"
