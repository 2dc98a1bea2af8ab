"""Operations on the elements that a mask selects, under the names of torch.masked.

A mask has the shape of its tensor, or one that broadcasts to it, and is True where an element counts. An element that
does not count is taken for the identity element of the reduction: 0 in a sum, 1 in a product, -inf in a maximum.

Example:
    >>> x, mask = mlc.tensor([1.0, 2.0, 9.0]), mlc.tensor([True, True, False])
    >>> mlc.masked.mean(x, 0, mask=mask), mlc.masked.amax(x, 0, mask=mask)
    (tensor(1.5, dtype=mlc.float32), tensor(2., dtype=mlc.float32))
"""

import mlc.api  # noqa: F401 (it gives the frontend its compiler)
from mlc.frontend.functions.masked import (
    amax,
    amin,
    argmax,
    argmin,
    cumprod,
    cumsum,
    log_softmax,
    logaddexp,
    logsumexp,
    mean,
    median,
    norm,
    normalize,
    prod,
    softmax,
    softmin,
    std,
    sum,
    var,
)

__all__ = ["amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp",
           "logsumexp", "mean", "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var"]
