"""Stand-in for torchvision: random images in its formats, and two networks; written for PyTorch, and for mlc by the
substitution that programs get, too."""

from torchvision import datasets, models, transforms, utils

__all__ = ["datasets", "models", "transforms", "utils"]
