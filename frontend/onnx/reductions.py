"""Reductions, positions of extrema, sums along axes, normalising exponentials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlc.frontend.element_types import iinfo
from mlc.frontend.onnx.table import row
from mlc.frontend.onnx.values import axis_of, ints, number
from mlc.frontend.tensor import OPERATIONS as O
from mlc.ir.sizes import product


def _sum_of(f: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda x, dim, keepdim: O["sum"](f(x), dim, keepdim, dtype=x.dtype)


def _extremum(name: str) -> Callable[..., Any]:
    def reduced(x: Any, dim: Any, keepdim: bool) -> Any:
        if x.dtype.name == "bool":
            return O["cast"](reduced(O["cast"](x, "uint8"), dim, keepdim), "bool")
        if any(isinstance(x.shape[d], int) and x.shape[d] == 0 for d in dim):
            return _of_nothing(x, dim, keepdim, name)
        return O[name](x, dim, keepdim)
    return reduced


def _of_nothing(x: Any, dim: Any, keepdim: bool, name: str) -> Any:
    """The extremum over no elements, which is the least or largest number of the type."""
    limits: Any = None if x.dtype.is_floating_point else iinfo(x.dtype)
    least, most = (float("-inf"), float("inf")) if limits is None else (limits.min, limits.max)
    sizes = tuple(1 if k in dim else n for k, n in enumerate(x.shape) if keepdim or k not in dim)
    return O["full"](sizes, least if name == "amax" else most, dtype=x.dtype)


def _over_each(x: Any, dim: Sequence[int], keepdim: bool) -> Any:
    """The product, one axis after the other."""
    for axis in sorted(dim, reverse=True):
        x = O["prod"](x, axis, keepdim, dtype=x.dtype)
    return x


def _norm(x: Any, dim: Any, keepdim: bool) -> Any:
    return O["sqrt"](O["sum"](x * x, dim, keepdim, dtype=x.dtype)) if x.dtype.is_floating_point else O["cast"](
        O["sqrt"](O["sum"](O["cast"](x * x, "float64"), dim, keepdim)), x.dtype)


REDUCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "ReduceSum": (_sum_of(lambda x: x), 13),
    "ReduceSumSquare": (_sum_of(lambda x: x * x), 18),
    "ReduceL1": (_sum_of(lambda x: O["abs"](x)), 18),
    "ReduceL2": (_norm, 18),
    "ReduceMax": (_extremum("amax"), 18),
    "ReduceMin": (_extremum("amin"), 18),
    "ReduceProd": (_over_each, 18),
    "ReduceMean": (lambda x, dim, keepdim: O["cast"](O["mean"](
        x if x.dtype.is_floating_point else O["cast"](x, "float64"), dim, keepdim), x.dtype), 18),
    "ReduceLogSum": (lambda x, dim, keepdim: O["log"](O["sum"](x, dim, keepdim, dtype=x.dtype)), 18),
    "ReduceLogSumExp": (lambda x, dim, keepdim: O["logsumexp"](x, dim, keepdim), 18),
}
"""Per reduction the function of a tensor, axes and whether these stay; and since when axes are an input."""


def _reduced(f: Callable[..., Any], x: Any, axes: Sequence[int] | None, keepdims: int) -> Any:
    over = tuple(range(x.ndim)) if not axes else tuple(axis_of(a, x.ndim) for a in axes)
    if not over:
        return f(O["reshape"](x, (1,)), (0,), False)
    return f(x, over, bool(keepdims))


MAPPED: dict[str, Callable[[Any], Any]] = {
    "ReduceSumSquare": lambda x: x * x, "ReduceL1": lambda x: O["abs"](x), "ReduceL2": lambda x: O["abs"](x),
    "ReduceLogSum": lambda x: O["log"](x)}
"""Reductions over no axes that are not the tensor itself."""


def _rows(name: str, f: Callable[..., Any], since: int) -> None:
    @row(name, since=since, known=("axes",))
    def by_input(x: Any, axes: Any = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
        wanted = None if axes is None else ints(axes)
        if not wanted and noop_with_empty_axes:
            return MAPPED.get(name, lambda x: x)(x)
        return _reduced(f, x, wanted, keepdims)

    @row(name)
    def by_attribute(x: Any, *, axes: Sequence[int] | None = None, keepdims: int = 1) -> Any:
        return _reduced(f, x, axes, keepdims)


for _name, (_f, _since) in REDUCTIONS.items():
    _rows(_name, _f, _since)


def _position(name: str, function: str) -> None:
    @row(name)
    def position(x: Any, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
        if not select_last_index:
            return O[function](x, axis, bool(keepdims))
        return (x.shape[axis] - 1) - O[function](O["flip"](x, (axis,)), axis, bool(keepdims))


for _name, _function in {"ArgMax": "argmax", "ArgMin": "argmin"}.items():
    _position(_name, _function)


@row("CumSum", known=("axis",))
def cumulative_sum(x: Any, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Any:
    return _along(x, axis_of(number(axis), x.ndim), exclusive, reverse, "cumsum", 0)


@row("CumProd", known=("axis",))
def cumulative_product(x: Any, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Any:
    return _along(x, axis_of(number(axis), x.ndim), exclusive, reverse, "cumprod", 1)


def _along(x: Any, axis: int, exclusive: int, reverse: int, name: str, start: int) -> Any:
    x = O["flip"](x, (axis,)) if reverse else x
    out = O[name](x, axis, dtype=x.dtype)
    if exclusive:
        sizes = tuple(1 if k == axis else n for k, n in enumerate(x.shape))
        moved = O["cat"]((O["full"](sizes, start, dtype=x.dtype), out), axis)
        out = moved[(slice(None),) * axis + (slice(0, x.shape[axis]),)]     # not up to the last: there may be none
    return O["flip"](out, (axis,)) if reverse else out


def _in_rows(x: Any, axis: int, f: Callable[[Any, int], Any]) -> Any:
    """Before version 13, all axes from `axis` on are one."""
    axis = axis_of(axis, x.ndim) if x.ndim else 0
    flat = O["reshape"](x, (product(x.shape[:axis]), product(x.shape[axis:])))
    return O["reshape"](f(flat, 1), x.shape)


def _hardmax(x: Any, axis: int) -> Any:
    n = x.shape[axis]
    at = O["reshape"](O["arange"](n), tuple(n if k == axis_of(axis, x.ndim) else 1 for k in range(x.ndim)))
    return O["cast"](O["eq"](at, O["argmax"](x, axis, True)), x.dtype)


def _exponentials(name: str, f: Callable[[Any, int], Any]) -> None:
    @row(name, since=13)
    def along(x: Any, *, axis: int = -1) -> Any:
        return f(x, axis)

    @row(name)
    def before_13(x: Any, *, axis: int = 1) -> Any:
        return _in_rows(x, axis, f)


_exponentials("Softmax", lambda x, axis: O["softmax"](x, axis))
_exponentials("LogSoftmax", lambda x, axis: O["log_softmax"](x, axis))
_exponentials("Hardmax", _hardmax)
