"""Images in files."""

from __future__ import annotations

from typing import Any

import numpy as np


def save_image(tensor: Any, path: str, nrow: int = 8, normalize: bool = False) -> None:
    """Write images (count, channels, height, width) as an array."""
    if tensor.dim() != 4:
        raise ValueError(f"images have 4 dimensions, found {tensor.dim()}")
    with open(path, "wb") as file:
        np.save(file, tensor.numpy())
