"""Discrete Fourier transforms under the names of torch.fft.

There are no complex element types: a complex tensor is one of floats with a last dimension of size 2, for real and
imaginary parts, as torch.view_as_real shows it. So `fft(x)` takes and gives [..., n, 2], `rfft` gives [..., n // 2 + 1,
2], and `dim` counts the other dimensions. The number of points must be known when a function is recorded.
"""

# ruff: noqa: F403

from mlc.frontend.functions.fft.frames import *
from mlc.frontend.functions.fft.hermitian import *
from mlc.frontend.functions.fft.lines import *
from mlc.frontend.functions.fft.spectra import *
from mlc.frontend.functions.fft.volumes import *
from mlc.frontend.functions.fft.windows import *
