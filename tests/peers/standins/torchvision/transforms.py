"""Transforms of images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch


class Compose:
    """Several transforms, one after the other."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x


class ToTensor:
    """An image as a float tensor (channels, height, width) from 0 to 1."""

    def __call__(self, image: Any) -> Any:
        array = np.asarray(image)
        array = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
        return torch.from_numpy(array.copy()).float().div(255)


class Normalize:
    """A tensor less the means of its channels, divided by their deviations."""

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        self.mean, self.std = (torch.tensor(v).view(-1, 1, 1) for v in (mean, std))

    def __call__(self, x: Any) -> Any:
        return x.sub(self.mean).div(self.std)


class Lambda:
    """Any function."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, x: Any) -> Any:
        return self.function(x)
