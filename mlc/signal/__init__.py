"""Signal processing under the names of torch.signal."""

from mlc.signal import windows

__all__ = ["windows"]
