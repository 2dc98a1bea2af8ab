"""Gathers, scatters, selections, and the largest elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.frontend.onnx.table import row
from mlc.frontend.onnx.values import axis_of, number, refuse
from mlc.frontend.operands import need
from mlc.frontend.tensor import OPERATIONS as O
from mlc.ir.sizes import product


def counted(indices: Any, n: Any) -> Any:
    """Indices, of which negative ones count from the end, as positions."""
    indices = O["cast"](indices, "int64")
    return O["where"](O["lt"](indices, 0), indices + n, indices)


@row("Gather")
def gather(x: Any, indices: Any, *, axis: int = 0) -> Any:
    axis = axis_of(axis, x.ndim)
    at = O["reshape"](counted(indices, x.shape[axis]), (-1,))
    found = O["index_select"](x, axis, at)
    return O["reshape"](found, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1:]))


@row("GatherElements")
def gather_elements(x: Any, indices: Any, *, axis: int = 0) -> Any:
    return O["gather"](x, axis, counted(indices, x.shape[axis]))


def _linear(indices: Any, sizes: tuple[Any, ...]) -> Any:
    """Positions in a tensor of these sizes laid out in a row; the last axis of `indices` goes over the axes."""
    out: Any = None
    for k, n in enumerate(sizes):
        at = counted(indices[..., k], n)
        out = at if out is None else out * n + at
    return O["zeros"](indices.shape[:-1], dtype="int64") if out is None else out


@row("GatherND")
def gather_nd(x: Any, indices: Any, *, batch_dims: int = 0) -> Any:
    if not 0 <= batch_dims < min(x.ndim, indices.ndim):
        refuse(f"{batch_dims} axes of examples, of {x.ndim} and {indices.ndim} axes")
    over, batch = indices.shape[-1], tuple(x.shape[:batch_dims])
    sizes, rest = tuple(x.shape[batch_dims:batch_dims + over]), tuple(x.shape[batch_dims + over:])
    at = _linear(indices, sizes)
    if batch:
        examples = O["reshape"](O["arange"](product(batch)), (*batch, *(1,) * (at.ndim - batch_dims)))
        at = at + examples * product(sizes)
    rows = O["reshape"](x, (product(batch) * product(sizes), *rest))
    found = O["index_select"](rows, 0, O["reshape"](at, (-1,)))
    return O["reshape"](found, (*indices.shape[:-1], *rest))


REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@row("Scatter", "ScatterElements")
def scatter_elements(x: Any, indices: Any, updates: Any, *, axis: int = 0, reduction: str = "none") -> Any:
    at = counted(indices, x.shape[axis])
    if reduction == "none":
        return O["scatter"](x, axis, at, updates)
    if reduction not in REDUCTIONS:
        refuse(f"the reduction {reduction!r}")
    return O["scatter_reduce"](x, axis, at, updates, REDUCTIONS[reduction])


@row("ScatterND")
def scatter_nd(x: Any, indices: Any, updates: Any, *, reduction: str = "none") -> Any:
    over = indices.shape[-1]
    sizes, rest = tuple(x.shape[:over]), tuple(x.shape[over:])
    at = O["reshape"](_linear(indices, sizes), (-1,))
    rows = O["reshape"](x, (product(sizes), product(rest)))
    news = O["reshape"](updates, (-1, product(rest)))
    at = O["broadcast_to"](O["reshape"](at, (-1, 1)), news.shape)
    if reduction == "none":
        out = O["scatter"](rows, 0, at, news)
    elif reduction in REDUCTIONS:
        out = O["scatter_reduce"](rows, 0, at, news, REDUCTIONS[reduction])
    else:
        refuse(f"the reduction {reduction!r}")
    return O["reshape"](out, x.shape)


@row("OneHot", known=("depth",))
def one_hot(indices: Any, depth: Any, values: Any, *, axis: int = -1) -> Any:
    """`values` are the one for elsewhere and the one at the index."""
    n = int(number(depth))
    rank = indices.ndim + 1
    axis = axis_of(axis, rank)
    at = counted(indices, n)
    at = O["reshape"](at, (*at.shape[:axis], 1, *at.shape[axis:]))
    places = O["reshape"](O["arange"](n), tuple(n if k == axis else 1 for k in range(rank)))
    return O["where"](O["eq"](at, places), values[1], values[0])


@row("TopK", since=10, known=("k",))
def top_k(x: Any, k: Any, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> Any:
    """Of equal elements, the first."""
    axis, n = axis_of(axis, x.ndim), number(k)
    need(n, f"TopK of {n} elements")
    need(x.shape[axis] - n, f"TopK of {n} elements of an axis of {x.shape[axis]}")
    values, at = O["sort"](x, axis, bool(largest), True)
    count = (slice(None),) * axis + (slice(0, n),)
    return values[count], at[count]


@row("TopK")
def top_k_by_attribute(x: Any, *, k: int, axis: int = -1) -> Any:
    return top_k(x, np.array(k), axis=axis)


@row("NonZero")
def nonzero(x: Any) -> Any:
    found = O["nonzero"](x)
    return O["transpose"](found, 0, 1)


@row("Compress", known=("condition",))
def compress(x: Any, condition: Any, *, axis: int | None = None) -> Any:
    if axis is None:
        x, axis = O["reshape"](x, (-1,)), 0
    return O["index_select"](x, axis, np.flatnonzero(condition))


@row("ReverseSequence")
def reverse_sequence(x: Any, lengths: Any, *, batch_axis: int = 1, time_axis: int = 0) -> Any:
    n = x.shape[time_axis]
    along = O["reshape"](O["arange"](n), tuple(n if k == time_axis else 1 for k in range(x.ndim)))
    of = O["reshape"](O["cast"](lengths, "int64"), tuple(x.shape[batch_axis] if k == batch_axis else 1
                                                        for k in range(x.ndim)))
    at = O["where"](O["lt"](along, of), of - 1 - along, along)
    return O["gather"](x, time_axis, O["broadcast_to"](at, x.shape))


@row("TensorScatter")
def tensor_scatter(past: Any, update: Any, write: Any = None, *, axis: int = -2, mode: str = "linear") -> Any:
    """The cache of a sequence with new entries, from a position of each example on."""
    axis = axis_of(axis, past.ndim)
    n, m = past.shape[axis], update.shape[axis]
    start = O["zeros"]((past.shape[0],), dtype="int64") if write is None else O["cast"](write, "int64")
    at = O["reshape"](start, (-1, *(1,) * (past.ndim - 1))) + O["reshape"](
        O["arange"](m), tuple(m if k == axis else 1 for k in range(past.ndim)))
    at = O["remainder"](at, n) if mode == "circular" else at
    return O["scatter"](past, axis, O["broadcast_to"](at, update.shape), update)


@row("Unique")
def unique(x: Any, *, axis: int | None = None, sorted: int = 1, outputs: int) -> Any:
    """The elements, where each is first, which of them each element is, and how often each occurs."""
    x = O["reshape"](x, (-1,)) if axis is None else x
    dim = 0 if axis is None else axis_of(axis, x.ndim)
    values, inverse, counts = O["unique"](x, True, True, True, None if axis is None else dim)
    if outputs == 1 and sorted:
        return (values,)
    n, count = x.shape[dim], values.shape[dim]
    first = O["scatter_reduce"](O["full"]((count,), n, dtype="int64"), 0, inverse, O["arange"](n), "amin")
    if not sorted:
        order = O["argsort"](first)
        first, counts, values = first[order], counts[order], O["index_select"](values, dim, order)
        inverse = O["argsort"](order)[inverse]
    return values, first, inverse, counts


