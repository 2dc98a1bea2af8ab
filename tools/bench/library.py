"""PyTorch and mlc behind one name, so that a network is written once and has the same weights and data in both."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np


class Library:
    """PyTorch or mlc, with data and weights that are the same for both.

    lib    the package, `torch` or `mlc`
    nn     its layers, and `nn.functional`
    optim  its optimisers
    """

    def __init__(self, name: str) -> None:
        self.lib: Any = import_module(name)
        self.nn: Any = import_module(f"{name}.nn")
        self.optim: Any = import_module(f"{name}.optim")
        self.random = np.random.default_rng(0)

    def floats(self, *shape: int) -> Any:
        """A tensor of normally distributed numbers."""
        return self.lib.tensor(self.random.standard_normal(shape, np.float32))

    def integers(self, high: int, *shape: int) -> Any:
        """A tensor of integers in [0, high)."""
        return self.lib.tensor(self.random.integers(0, high, shape))

    def same(self, model: Any) -> Any:
        """The model with weights that do not depend on the library: of the variance 1 / (inputs of an element), small
        biases, and what multiplies normalised values as it is."""
        with self.lib.no_grad():
            for name, p in model.named_parameters():
                if p.ndim > 1:
                    p.copy_(self.floats(*p.shape) * (1 / math.sqrt(math.prod(p.shape[1:]))))
                elif "bias" in name:
                    p.copy_(self.floats(*p.shape) * 0.1)
        return model

    def training(self, loss: Callable[..., Any], optimizer: Any) -> Callable[..., Any]:
        """A training step as a function of a batch; the result is the loss."""
        def step(*batch: Any) -> Any:
            optimizer.zero_grad()
            value = loss(*batch)
            value.backward()
            optimizer.step()
            return value
        return step
