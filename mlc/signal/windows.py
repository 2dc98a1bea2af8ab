"""Window functions under the names of torch.signal.windows.

A window of M points is symmetric, w[i] = w[M - 1 - i]; with `sym=False` it is periodic, the first M points of a
symmetric one with M + 1, as transforms of consecutive frames need it.

Example:
    >>> mlc.signal.windows.bartlett(5)
    tensor([0. , 0.5, 1. , 0.5, 0. ], dtype=mlc.float32)
    >>> mlc.signal.windows.hann(4, sym=False)
    tensor([0. , 0.5, 1. , 0.5], dtype=mlc.float32)
"""

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
from mlc.frontend.functions.fft.windows import (
    bartlett,
    blackman,
    cosine,
    exponential,
    gaussian,
    general_cosine,
    general_hamming,
    hamming,
    hann,
    kaiser,
    nuttall,
)

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming",
           "hamming", "hann", "kaiser", "nuttall"]
