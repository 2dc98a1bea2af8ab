"""Fourier transforms of complex and real tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.fx.refusing import refuse
from mlc.frontend.fx.table import row
from mlc.frontend.tensor import OPERATIONS as O

NONE, ROOT, ALL = 0, 1, 2
"""ATen's numbers of normalizations: not at all, by the root of the number of elements, by that number."""


def _norm(normalization: int, forward: bool) -> str:
    """The name of a normalization, of which `backward` divides inverse transforms alone."""
    if normalization == ROOT:
        return "ortho"
    return "forward" if (normalization == ALL) is forward else "backward"


@row("_fft_c2c")
def c2c(x: Any, dim: Sequence[int], normalization: int, forward: bool) -> Any:
    f = O["fft.fftn"] if forward else O["fft.ifftn"]
    return f(x, dim=tuple(dim), norm=_norm(normalization, forward)) if dim else x


@row("_fft_r2c")
def r2c(x: Any, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    f = O["fft.rfftn"] if onesided else O["fft.fftn"]
    return f(x, dim=tuple(dim), norm=_norm(normalization, True))


@row("_fft_c2r")
def c2r(x: Any, dim: Sequence[int], normalization: int, last_dim_size: int) -> Any:
    if len(dim) > 1 and any(d == dim[-1] for d in dim[:-1]):
        refuse("a dimension is transformed twice")
    sizes = [*(x.shape[d] for d in dim[:-1]), last_dim_size]
    return O["fft.irfftn"](x, s=sizes, dim=tuple(dim), norm=_norm(normalization, False))
