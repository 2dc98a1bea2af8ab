"""Reductions, scans, sorting and norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.fx.refusing import refuse
from mlc.frontend.fx.table import row, same
from mlc.frontend.tensor import OPERATIONS as O

same("all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "bucketize", "count_nonzero", "cummax", "cummin",
     "cumprod", "cumsum", "kthvalue", "logcumsumexp", "logsumexp", "max", "mean", "median", "min", "mode", "nanmedian",
     "nansum", "prod", "searchsorted", "sum", "topk", "histc", "trace", "histogram", "nonzero_static", "segment_reduce")
LAST = -1


@row("sort.default")
def sort(x: Any, dim: int = LAST, descending: bool = False) -> Any:
    return O["sort"](x, dim, descending)


@row("sort.stable")
def stable_sort(x: Any, *, stable: bool | None = None, dim: int = LAST, descending: bool = False) -> Any:
    return O["sort"](x, dim, descending, stable=bool(stable))


@row("argsort.default", "argsort.stable")
def argsort(x: Any, dim: int = LAST, descending: bool = False, *, stable: bool = False) -> Any:
    return O["argsort"](x, dim, descending, stable)


def _whole(correction: Any) -> int:
    """A correction of the number of elements, which has to be an integer."""
    if correction is None:
        return 1
    if int(correction) != correction:
        refuse(f"a correction of {correction} is no integer")
    return int(correction)


@row("var.correction")
def var(x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    return O["var"](x, dim, correction=_whole(correction), keepdim=keepdim)


@row("std.correction")
def std(x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    return O["std"](x, dim, correction=_whole(correction), keepdim=keepdim)


@row("var_mean.correction")
def var_mean(x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    return O["var_mean"](x, dim, correction=_whole(correction), keepdim=keepdim)


@row("std_mean.correction")
def std_mean(x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    return O["std_mean"](x, dim, correction=_whole(correction), keepdim=keepdim)


@row("norm.ScalarOpt_dim", "norm.Scalar", "norm.ScalarOpt_dim_dtype")
def norm(x: Any, p: Any = 2, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    x = x if dtype is None else O["cast"](x, dtype)
    return O["linalg.vector_norm"](x, 2 if p is None else p, dim or None, keepdim)


@row("linalg_vector_norm")
def vector_norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return O["linalg.vector_norm"](x if dtype is None else O["cast"](x, dtype), ord, dim, keepdim)
