"""Gathers, scatters and subscripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.fx.refusing import refuse
from mlc.frontend.fx.table import row, same
from mlc.frontend.tensor import OPERATIONS as O

same("gather", "index_add", "index_copy", "index_fill", "index_select", "index_reduce", "masked_scatter", "put",
     "scatter_add", "take", "isin")


@row("embedding")
def embedding(weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False,
              sparse: bool = False) -> Any:
    if sparse:
        refuse("the gradient of the table is sparse")
    return O["embedding"](indices, weight, padding_idx if padding_idx >= 0 else None,
                          scale_grad_by_freq=scale_grad_by_freq)


@row("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce")
def scatter(x: Any, dim: int, index: Any, source: Any, *, reduce: str | None = None) -> Any:
    return O["scatter"](x, dim, index, source, reduce=reduce)


@row("scatter_reduce.two")
def scatter_reduce(x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
    return O["scatter_reduce"](x, dim, index, source, reduce, include_self=include_self)


@row("index.Tensor", "_unsafe_index.Tensor")
def index(x: Any, indices: Sequence[Any]) -> Any:
    return x[tuple(slice(None) if i is None else i for i in indices)]


@row("index_put", "_unsafe_index_put", "_index_put_impl")
def index_put(x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False, unsafe: bool = False) -> Any:
    while indices and indices[-1] is None:
        indices = indices[:-1]
    if not indices:
        indices = (None,)
    if any(i is None for i in indices):
        indices = _whole_axes(x, [*indices, *(None,) * (x.ndim - _covered(indices))])
    return O["index_put"](x, tuple(indices), values, accumulate)


def _covered(indices: Sequence[Any]) -> int:
    """The number of axes that indices are for: a mask is for all of its own."""
    return sum(i.ndim if i is not None and str(i.dtype) == "mlc.bool" else 1 for i in indices)


def _whole_axes(x: Any, indices: list[Any]) -> list[Any]:
    """Indices of integers with the same meaning for axes that have none.

    The axes of the indices broadcast together, and are where the first index is, if the indices are adjacent, or else
    in front; the axes that have none keep their order around these.
    """
    given = [k for k, i in enumerate(indices) if i is not None]
    if any(str(indices[k].dtype) == "mlc.bool" for k in given):
        refuse("a mask among the indices, beside an axis that has none, is written through")
    shared = max((indices[k].ndim for k in given), default=0)
    adjacent = not given or given == list(range(given[0], given[-1] + 1))
    first = given[0] if given and adjacent else 0
    total = shared + len(indices) - len(given)
    out, position = list[Any](), 0 if first else shared
    for k, i in enumerate(indices):
        if i is not None:
            after = total - first - shared
            out.append(O["reshape"](i, (*i.shape, *(1,) * after)))
            continue
        place = position
        position += 1 if position + 1 != first or not shared else 1 + shared
        out.append(O["reshape"](O["arange"](x.shape[k]), (x.shape[k], *(1,) * (total - place - 1))))
    return out
