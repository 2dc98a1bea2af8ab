"""Discrete Fourier transforms under the names of torch.fft.

Inside, transforms work on floats with a last dimension of size 2, for real and imaginary parts, as
`view_as_real` gives them. The number of points must be known when a function is recorded.
"""

# ruff: noqa: F403

from mlc.frontend.functions.fft.frames import *
from mlc.frontend.functions.fft.hermitian import *
from mlc.frontend.functions.fft.lines import *
from mlc.frontend.functions.fft.spectra import *
from mlc.frontend.functions.fft.volumes import *
from mlc.frontend.functions.fft.windows import *
