"""Special functions under the names of torch.special."""

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
    digamma,
    entr,
    erfcx,
    i0,
    i0e,
    i1,
    i1e,
    log_ndtr,
    ndtr,
    polygamma,
    spherical_bessel_j0,
    xlog1py,
    zeta,
)
from mlc.frontend.functions.special import digamma as psi
from mlc.frontend.functions.special import lgamma as gammaln
from mlc.frontend.functions.special import mvlgamma as multigammaln
from mlc.frontend.functions.trigonometry import sinc

__all__ = ["digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammaln", "i0", "i0e", "i1",
           "i1e", "log1p", "log_ndtr", "log_softmax", "logit", "logsumexp", "multigammaln", "ndtr", "polygamma", "psi",
           "round", "sinc", "softmax", "spherical_bessel_j0", "xlog1py", "xlogy", "zeta"]
