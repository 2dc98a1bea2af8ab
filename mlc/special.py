"""Special functions under the names of torch.special.

They are computed element by element; integers become floats. What is shared with `mlc` is the same function. Their
errors, in units in the last place, are in `dialects/tensor/ACCURACY.md`.

Example:
    >>> mlc.special.expit(mlc.tensor([0.0, 2.0]))
    tensor([0.5    , 0.88079], dtype=mlc.float32)
    >>> mlc.special.i0(mlc.tensor(0.0))
    tensor(1., dtype=mlc.float32)
"""

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
from mlc.frontend.functions.elementwise import (
    erf,
    erfc,
    exp2,
    expm1,
    log1p,
    logit,
    round,
    xlogy,
)
from mlc.frontend.functions.elementwise import sigmoid as expit
from mlc.frontend.functions.neural import log_softmax, softmax
from mlc.frontend.functions.random import erfinv
from mlc.frontend.functions.reduce import logsumexp
from mlc.frontend.functions.special import (
    airy_ai,
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    chebyshev_polynomial_t,
    chebyshev_polynomial_u,
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
    digamma,
    entr,
    erfcx,
    hermite_polynomial_h,
    hermite_polynomial_he,
    i0,
    i0e,
    i1,
    i1e,
    laguerre_polynomial_l,
    legendre_polynomial_p,
    log_ndtr,
    modified_bessel_k0,
    modified_bessel_k1,
    ndtr,
    ndtri,
    polygamma,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
    spherical_bessel_j0,
    xlog1py,
    zeta,
)
from mlc.frontend.functions.special import digamma as psi
from mlc.frontend.functions.special import i0 as modified_bessel_i0
from mlc.frontend.functions.special import i1 as modified_bessel_i1
from mlc.frontend.functions.special import igamma as gammainc
from mlc.frontend.functions.special import igammac as gammaincc
from mlc.frontend.functions.special import lgamma as gammaln
from mlc.frontend.functions.special import mvlgamma as multigammaln
from mlc.frontend.functions.trigonometry import sinc

__all__ = [
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t", "chebyshev_polynomial_u",
    "chebyshev_polynomial_v", "chebyshev_polynomial_w", "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2",
    "expit", "expm1", "gammainc", "gammaincc", "gammaln", "hermite_polynomial_h", "hermite_polynomial_he", "i0",
    "i0e", "i1", "i1e", "laguerre_polynomial_l", "legendre_polynomial_p", "log1p", "log_ndtr", "log_softmax", "logit",
    "logsumexp", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1",
    "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "round", "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w", "sinc", "softmax", "spherical_bessel_j0",
    "xlog1py", "xlogy", "zeta",
]
