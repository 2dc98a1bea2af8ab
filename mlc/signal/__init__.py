"""Signal processing under the names of torch.signal.

It has one submodule, `windows`: weights that fade a signal in and out before it is transformed, so that what lies
between two frequencies of `mlc.fft` does not spread over all of them.

Example:
    >>> mlc.signal.windows.hann(5)
    tensor([0. , 0.5, 1. , 0.5, 0. ], dtype=mlc.float32)
"""

from mlc.signal import windows

__all__ = ["windows"]
