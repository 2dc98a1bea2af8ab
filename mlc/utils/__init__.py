"""PyTorch's `torch.utils`, of which mlc has `mlc.utils.data` and `mlc.utils.checkpoint`."""

from mlc.utils import checkpoint as checkpoint
from mlc.utils import data as data

__all__ = ["checkpoint", "data"]
