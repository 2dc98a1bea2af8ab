"""The values that layers begin with, written into parameters that exist."""

from __future__ import annotations

from mlc.frontend.tensor import Tensor
from mlc.nn import init


def uniform(inputs: int, *parameters: Tensor | None) -> None:
    """Numbers within 1 / sqrt(inputs), for those that there are."""
    bound = init.bound(inputs)
    for p in parameters:
        if p is not None:
            init.uniform_(p, -bound, bound)


def identity(weight: Tensor | None, bias: Tensor | None = None) -> None:
    """A weight of ones and a bias of zeros, as norms have, if there are any."""
    if weight is not None:
        init.ones_(weight)
    if bias is not None:
        init.zeros_(bias)
