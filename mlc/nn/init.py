"""Random initial values for parameters, and the generator they come from."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

from mlc.frontend.tensor import DTypeLike, Tensor

Generator = np.random.Generator


class _Default(threading.local):
    def __init__(self) -> None:
        self.generator: Generator = np.random.default_rng()


_default = _Default()


def manual_seed(seed: int) -> Generator:
    """Start this thread's generator anew; modules made after it are the same on every run."""
    _default.generator = np.random.default_rng(seed)
    return _default.generator


def uniform(shape: tuple[int, ...], low: float, high: float, dtype: DTypeLike = "float32",
            generator: Generator | None = None) -> Tensor:
    """Numbers between low and high, all equally likely."""
    return _tensor((generator or _default.generator).uniform(low, high, shape), dtype)


def normal(shape: tuple[int, ...], mean: float = 0.0, std: float = 1.0, dtype: DTypeLike = "float32",
           generator: Generator | None = None) -> Tensor:
    """Normally distributed numbers."""
    return _tensor((generator or _default.generator).normal(mean, std, shape), dtype)


def kaiming_uniform(shape: tuple[int, ...], a: float = 0.0, dtype: DTypeLike = "float32",
                    generator: Generator | None = None) -> Tensor:
    """Uniform within sqrt(6 / ((1 + a ** 2) * inputs)): keeps the variance through a leaky ReLU of slope a."""
    bound = math.sqrt(6 / ((1 + a * a) * max(1, _fan_in(shape))))
    return uniform(shape, -bound, bound, dtype, generator)


def xavier_uniform(shape: tuple[int, ...], gain: float = 1.0, dtype: DTypeLike = "float32",
                   generator: Generator | None = None) -> Tensor:
    """Uniform within gain * sqrt(6 / (inputs + outputs))."""
    bound = gain * math.sqrt(6 / (_fan_in(shape) + shape[0] * math.prod(shape[2:])))
    return uniform(shape, -bound, bound, dtype, generator)


def _fan_in(shape: tuple[int, ...]) -> int:
    return math.prod(shape[1:])


def _tensor(array: Any, dtype: DTypeLike) -> Tensor:
    from mlc.frontend.dtypes import as_dtype
    return Tensor(np.asarray(array).astype(as_dtype(dtype).dtype))
