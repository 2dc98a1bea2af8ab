"""PyTorch's `torch.utils`, of which mlc has `mlc.utils.data`."""

from mlc.utils import data as data

__all__ = ["data"]
