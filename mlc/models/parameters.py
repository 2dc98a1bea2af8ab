"""Where the parameters of a model come from: arrays of files by name, or random numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from mlc import nn
from mlc.frontend.location import user_loc
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserError
from mlc.models.quantized import QuantizedTensor

Weight = Tensor | QuantizedTensor


class Source(Protocol):
    """Gives each parameter of a model by its name in transformers, such as `model.norm.weight`."""

    def take(self, name: str, shape: tuple[int, ...]) -> Weight:
        """The parameter of this name and shape."""


class Place:
    """A source, and where in the model: `place.at("mlp").take("up.weight", ...)` takes `mlp.up.weight`."""

    def __init__(self, source: Source, path: str = "") -> None:
        self.source, self.path = source, path

    def at(self, name: str) -> Place:
        return Place(self.source, f"{self.path}{name}.")

    def take(self, name: str, *shape: int) -> Weight:
        return self.source.take(self.path + name, shape)


class Given:
    """Parameters from arrays by name, whose memory they share.

    origin  the folder or file, for messages
    """

    def __init__(self, arrays: Mapping[str, Weight], origin: str) -> None:
        self.arrays, self.origin = arrays, origin
        self.taken = set[str]()

    def take(self, name: str, shape: tuple[int, ...]) -> Weight:
        array = self.arrays.get(name)
        if array is None:
            raise UserError(f"{self.origin} has no weight {name}", code="MLC0912", loc=user_loc(),
                            hint="the files are not complete, or their configuration is that of another model")
        if array.shape != shape:
            raise UserError(f"{self.origin}: {name} has the shape {list(array.shape)}, expected {list(shape)}",
                            code="MLC0912", loc=user_loc(), hint="is its configuration that of another model?")
        if isinstance(array, QuantizedTensor):
            if len(shape) < 2:
                raise UserError(f"{self.origin}: {name} is quantised, and no matrix", code="MLC0912", loc=user_loc())
            self.taken.add(name)
            return array
        if not array.dtype.ir.is_float:
            raise UserError(f"{self.origin}: {name} has elements of {array.dtype.name}, which a model does not compute "
                            "with", code="MLC0912", loc=user_loc(), hint="quantised safetensors are not supported")
        self.taken.add(name)
        return nn.Parameter(array, requires_grad=False)

    def check_all_taken(self) -> None:
        """Refuse arrays that the model does not have: it would compute something else than what was trained."""
        left = sorted(self.arrays.keys() - self.taken)
        if left:
            shown = ", ".join(left[:4]) + (f" and {len(left) - 4} more" if len(left) > 4 else "")
            raise UserError(f"{self.origin} has weights that the model does not: {shown}", code="MLC0912",
                            loc=user_loc(), hint="its configuration does not describe them")


class Drawn:
    """Random parameters to be trained: weights of a normal distribution, norms 1, biases 0.

    deviation  of the weights
    trained    whether they get gradients
    """

    def __init__(self, seed: int, deviation: float = 0.02, trained: bool = True) -> None:
        self.numbers = np.random.default_rng(seed)
        self.deviation, self.trained = deviation, trained

    def take(self, name: str, shape: tuple[int, ...]) -> Tensor:
        if name.endswith("bias"):
            values = np.zeros(shape, np.float32)
        elif len(shape) == 1:
            values = np.ones(shape, np.float32)
        else:
            values = self.numbers.normal(0.0, self.deviation, shape).astype(np.float32)
        return nn.Parameter(values, requires_grad=self.trained)
