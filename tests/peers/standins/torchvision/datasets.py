"""Data sets of random images. An image is a numpy array (height, width) or (height, width, channels) of uint8."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

TRAIN, TEST = 96, 48


class MNIST(Dataset):  # type: ignore[misc]
    """Images of 28 x 28: noise, in which each class has a bright row of its own."""

    def __init__(self, root: str, train: bool = True, transform: Callable[[Any], Any] | None = None,
                 download: bool = False) -> None:
        rng, n = np.random.default_rng(int(train)), TRAIN if train else TEST
        labels = np.arange(n) % 10
        images = rng.integers(0, 100, (n, 28, 28), np.uint8)
        images[np.arange(n), 2 * labels + 3] = 250
        self.data, self.targets, self.transform = torch.from_numpy(images), torch.from_numpy(labels), transform

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Any:
        image = self.data[index].numpy()
        return image if self.transform is None else self.transform(image), int(self.targets[index])


class FakeData(Dataset):  # type: ignore[misc]
    """Images of noise."""

    def __init__(self, size: int = 24, image_size: tuple[int, int, int] = (3, 64, 64), num_classes: int = 10,
                 transform: Callable[[Any], Any] | None = None) -> None:
        rng, (channels, height, width) = np.random.default_rng(2), image_size
        self.images = rng.integers(0, 256, (size, height, width, channels), np.uint8)
        self.classes, self.transform = num_classes, transform

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Any:
        image = self.images[index]
        return image if self.transform is None else self.transform(image), index % self.classes
