"""Discrete Fourier transforms under the names of torch.fft.

The transform of n numbers x is X[k] = sum over j of x[j] e^(-2 pi i j k / n); that of several axes is taken along one
after the other. `norm` says who divides by n: the inverse ("backward"), the transform ("forward"), or both by its root
("ortho"). Functions with an r take or give real numbers and half the spectrum, those with an h the mirror image.

Example:
    >>> mlc.fft.rfft(mlc.tensor([1.0, 0.0, -1.0, 0.0])).real
    tensor([0., 2., 0.], dtype=mlc.float32)
    >>> mlc.fft.fftfreq(4, d=0.5)
    tensor([ 0. ,  0.5, -1. , -0.5], dtype=mlc.float32)
"""

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
from mlc.frontend.functions.fft import (
    fft,
    fft2,
    fftfreq,
    fftn,
    fftshift,
    hfft,
    hfft2,
    hfftn,
    ifft,
    ifft2,
    ifftn,
    ifftshift,
    ihfft,
    ihfft2,
    ihfftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftfreq,
    rfftn,
)

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]
