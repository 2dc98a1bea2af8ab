"""Variants of functions that a formula of their own computes, in every run: against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlc

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(0)
IMAGE, SCORES = (RNG.standard_normal(shape).astype(np.float32) for shape in ((2, 3, 5, 4), (4, 3)))
BYTES = np.array([100, 100, -100, 7], np.int8)
PLACES = np.array([0.0, 1.0, 3.0, 3.5], np.float32)
CLASSES, WEIGHT = np.array([2, 0, 1, 2]), np.array([0.5, 2.0, 3.0], np.float32)
Function = Callable[..., Any]
VARIANTS: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "interpolate enlarges by cubic polynomials": (
        lambda a, x: a.nn.functional.interpolate(x, scale_factor=2, mode="bicubic"), (IMAGE,)),
    "conv2d of filters of even size": (
        lambda a, x, w: a.nn.functional.conv2d(x, w, padding="same"), (IMAGE, IMAGE[:, :, :2, :4])),
    "cumsum of bytes": (lambda a, x: a.cumsum(x, 0), (BYTES,)),
    "cumprod of bytes": (lambda a, x: a.cumprod(x, 0), (BYTES,)),
    "gradient at uneven places": (lambda a, y, x: a.gradient(y, spacing=(x,))[0], (SCORES[:, 0], PLACES)),
    "cross_entropy with weights and smoothed": (
        lambda a, x, t, w: a.nn.functional.cross_entropy(x, t, weight=w, label_smoothing=0.1),
        (SCORES, CLASSES, WEIGHT)),
}


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("name", VARIANTS)
def test_variant(name: str, interpreted: None) -> None:
    f, arrays = VARIANTS[name]
    found, wanted = f(mlc, *map(mlc.tensor, arrays)).numpy(), f(torch, *map(torch.tensor, arrays)).numpy()
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
