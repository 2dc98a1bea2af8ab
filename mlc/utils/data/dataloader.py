"""`DataLoader` under the name of the file that PyTorch has it in."""

from mlc.utils.data.loader import DataLoader

__all__ = ["DataLoader"]
