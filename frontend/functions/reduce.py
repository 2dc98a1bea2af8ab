"""Functions that take dimensions away: sums, extrema, moments, norms, truth of all or any."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from mlc.dialects import tensor as T
from mlc.frontend.dtypes import as_ir
from mlc.frontend.functions import elementwise as E
from mlc.frontend.operands import (
    axes,
    axis,
    boolean,
    cast,
    floating,
    is_tensor,
    kind,
    need,
    reshape,
    rounded_once,
    tracer,
)
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Dims, DTypeLike, Operand, Tensor
from mlc.frontend.trace import Tracer, emit
from mlc.ir import sizes
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.types import i64


class ValuesAndIndices(NamedTuple):
    """What `max(x, dim)` and `min(x, dim)` return."""

    values: Tensor
    indices: Tensor


def kept(x: Tensor, like: Tracer, over: tuple[int, ...], keepdim: bool) -> Tensor:
    """A reduced tensor, with 1 in place of the dimensions that are gone if they are to be kept."""
    assert isinstance(x, Tracer)
    return reshape(x, [1 if i in over else d for i, d in enumerate(like.shape)]) if keepdim else x


def _reduce(cls: Any, x: Tracer, dim: Dims, keepdim: bool) -> Tensor:
    over = axes(dim, x.ndim)
    return kept(emit(cls, x, over), x, over, keepdim)


def _not_empty(x: Tracer, over: tuple[int, ...], name: str) -> None:
    for i in over:
        need(x.shape[i] - 1, f"the {name} of no elements is not defined")


@operation()
def sum(input: Operand, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None) -> Tensor:
    """The sum over `dim`; integers are summed as int64."""
    x = tracer(input)
    x = cast(x, as_ir(dtype) if dtype is not None else x.type.dtype if x.type.dtype.is_float else i64)
    return _reduce(T.ReduceSum, x, dim, keepdim)


@operation()
def prod(input: Operand, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None) -> Tensor:
    """The product over `dim`; integers are multiplied as int64."""
    x = tracer(input)
    x = cast(x, as_ir(dtype) if dtype is not None else x.type.dtype if x.type.dtype.is_float else i64)
    return _reduce(T.ReduceProd, x, dim, keepdim)


@operation()
def amax(input: Operand, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The greatest element over `dim`, result[i] = max_j input[i, j]; equal ones share the derivative."""
    x = tracer(input)
    _not_empty(x, axes(dim, x.ndim), "maximum")
    if x.type.dtype.is_bool:
        return _reduce(T.ReduceAny, x, dim, keepdim)
    return _reduce(T.ReduceMax, x, dim, keepdim)


@operation()
def amin(input: Operand, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The smallest element over `dim`, result[i] = min_j input[i, j]; equal ones share the derivative."""
    x = tracer(input)
    _not_empty(x, axes(dim, x.ndim), "minimum")
    if x.type.dtype.is_bool:
        return _reduce(T.ReduceAll, x, dim, keepdim)
    return _reduce(T.ReduceMin, x, dim, keepdim)


def _position(x: Tracer, best: Tensor, at: int) -> Tracer:
    """Where along dimension `at` the first element equal to `best` stands (kept dimensions); a NaN equals a NaN."""
    same = E.eq(x, best)
    if x.type.dtype.is_float:
        same = E.logical_or(same, E.isnan(x))
    place = emit(T.Iota, x.shape, at, i64)
    last = E.count(x.shape[at] - 1, place)
    found: Tracer = emit(T.ReduceMin, E.where(same, place, last), (at,))
    return found


def _best(cls: Any, input: Operand, dim: int, keepdim: bool, name: str) -> ValuesAndIndices:
    x = tracer(input)
    if not x.ndim:
        return ValuesAndIndices(x, E.count(0, emit(T.Full, 0, (), i64)))
    at = axis(dim, x.ndim)
    _not_empty(x, (at,), name)
    y = cast(x, i64) if x.type.dtype.is_bool else x
    best = kept(emit(cls, y, (at,)), x, (at,), True)
    index = kept(_position(y, E.detach(best), at), x, (at,), keepdim)
    # The value is the element at the index, so that equal elements do not share the derivative.
    if x.type.dtype.is_float:
        at_index = index if keepdim else kept(index, x, (at,), True)
        best = emit(T.TakeAlong, x, at_index, at)
    shape = [1 if i == at else d for i, d in enumerate(x.shape) if keepdim or i != at]
    return ValuesAndIndices(cast(reshape(tracer(best), shape), x.type.dtype), index)


def _no_tensor(dim: Any, name: str) -> None:
    if is_tensor(dim):
        raise UserTypeError("dim is a tensor, expected an integer", code="MLC0355",
                            hint=f"mlc.{name}(a, b) compares two tensors element by element")


@operation()
def max(input: Operand, dim: int | None = None, keepdim: bool = False) -> Any:
    """The greatest element; with `dim`, (values, indices) along it."""
    _no_tensor(dim, "maximum")
    return amax(input) if dim is None else _best(T.ReduceMax, input, dim, keepdim, "maximum")


@operation()
def min(input: Operand, dim: int | None = None, keepdim: bool = False) -> Any:
    """The smallest element; with `dim`, (values, indices) along it."""
    _no_tensor(dim, "minimum")
    return amin(input) if dim is None else _best(T.ReduceMin, input, dim, keepdim, "minimum")


def _arg(cls: Any, input: Operand, dim: int | None, keepdim: bool, name: str) -> Tensor:
    x = tracer(input)
    if dim is None:
        flat = reshape(x, [sizes.product(x.shape)])
        index = tracer(_best(cls, flat, 0, False, name).indices)
        return reshape(index, [1] * x.ndim) if keepdim else index
    return _best(cls, x, dim, keepdim, name).indices


@operation()
def argmax(input: Operand, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the greatest element stands first: along `dim`, or in the flattened tensor."""
    return _arg(T.ReduceMax, input, dim, keepdim, "maximum")


@operation()
def argmin(input: Operand, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the smallest element stands first: along `dim`, or in the flattened tensor."""
    return _arg(T.ReduceMin, input, dim, keepdim, "minimum")


@operation()
def aminmax(input: Operand, *, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """(amin, amax)"""
    return amin(input, dim, keepdim), amax(input, dim, keepdim)


def float_only(x: Tracer, name: str) -> Tracer:
    """As PyTorch, which refuses means of integers."""
    if not x.type.dtype.is_float:
        raise UserTypeError(f"{name} needs floats, found {x.dtype}", code="MLC0359", hint="cast it first: x.float()")
    return x


@operation()
def mean(input: Operand, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None) -> Tensor:
    """sum_i input[i] / n over the n elements of `dim`"""
    x = tracer(input)
    x = float_only(cast(x, as_ir(dtype)) if dtype is not None else x, "mean")
    return _reduce(T.Mean, x, dim, keepdim)


@operation()
def nansum(input: Operand, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None) -> Tensor:
    """sum_i input[i] over `dim`, where input[i] is not NaN"""
    return sum(E.where(E.isnan(input), 0, input), dim, keepdim, dtype=dtype)


@operation()
def nanmean(input: Operand, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None) -> Tensor:
    """The sum over `dim` of the elements that are not NaN, divided by their number."""
    x = tracer(input)
    x = float_only(cast(x, as_ir(dtype)) if dtype is not None else x, "nanmean")
    return nansum(x, dim, keepdim) / cast(tracer(sum(E.logical_not(E.isnan(x)), dim, keepdim)), x.type.dtype)


@operation()
def var(input: Operand, dim: Dims = None, *, correction: int = 1, keepdim: bool = False) -> Tensor:
    """sum (x - mean) ** 2 / (n - correction) over `dim`"""
    x = float_only(tracer(input), "var")
    over = axes(dim, x.ndim)
    return kept(emit(T.Var, x, over, float(correction)), x, over, keepdim)


@operation()
def std(input: Operand, dim: Dims = None, *, correction: int = 1, keepdim: bool = False) -> Tensor:
    """sqrt(var)"""
    return rounded_once(lambda x: _root(var(x, dim, correction=correction, keepdim=keepdim)), tracer(input))


def _root(x: Tensor, power: float = 0.5) -> Tensor:
    """x ** power of what is not negative, with derivative 0 at 0, as PyTorch's norms have it, in place of infinity."""
    zero = x == 0
    return E.where(zero, 0.0, E.pow(E.where(zero, 1.0, x), power))


@operation()
def var_mean(input: Operand, dim: Dims = None, *, correction: int = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """(var, mean)"""
    x = tracer(input)
    return var(x, dim, correction=correction, keepdim=keepdim), mean(x, dim, keepdim)


@operation()
def std_mean(input: Operand, dim: Dims = None, *, correction: int = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """(std, mean)"""
    x = tracer(input)
    return std(x, dim, correction=correction, keepdim=keepdim), mean(x, dim, keepdim)


def _no_axis(dim: Dims) -> bool:
    return isinstance(dim, tuple | list) and not dim


@operation()
def any(input: Operand, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether an element over `dim` is not zero: a bool, of the shape without `dim`. () reduces nothing."""
    return boolean(input) if _no_axis(dim) else _reduce(T.ReduceAny, boolean(input), dim, keepdim)


@operation()
def all(input: Operand, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether no element over `dim` is zero: a bool, of the shape without `dim`. () reduces nothing."""
    return boolean(input) if _no_axis(dim) else _reduce(T.ReduceAll, boolean(input), dim, keepdim)


@operation()
def count_nonzero(input: Operand, dim: Dims = None) -> Tensor:
    """How many elements over `dim` are not zero, as int64."""
    return sum(boolean(input), dim)


@operation()
def logsumexp(input: Operand, dim: Dims, keepdim: bool = False) -> Tensor:
    """log(sum(e ** input)) over `dim`, without overflow on the way"""
    x = floating(input)
    over = axes(dim, x.ndim)
    if len(over) == 1:
        return kept(emit(T.LogSumExp, x, over[0]), x, over, keepdim)
    if 0 in [x.shape[a] for a in over]:                    # log(0)
        return E.log(sum(x, over, keepdim))
    most = amax(x, over, keepdim=True)
    most = E.detach(E.where(E.isfinite(most), most, 0.0))
    out = E.log(sum(E.exp(x - most), over, keepdim=True)) + most
    return out if keepdim else reshape(tracer(out), [d for i, d in enumerate(x.shape) if i not in over])


@operation()
def norm(input: Operand, p: Any = 2, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """(sum |input| ** p) ** (1 / p); p = inf and -inf are the greatest and smallest |input|"""
    x = float_only(tracer(input), "norm")
    p = 2 if p == "fro" else p
    if isinstance(p, bool) or not isinstance(p, int | float):
        raise UserError(f"p = {p!r} is no norm", code="MLC0360", hint='use a number or "fro"')
    if p in (math.inf, -math.inf):
        return (amax if p > 0 else amin)(E.abs(x), dim, keepdim)
    if p == 0:
        return cast(tracer(sum(x != 0, dim, keepdim)), x.type.dtype)
    return rounded_once(lambda x: _norm(x, p, dim, keepdim), x)


def _norm(x: Tracer, p: float, dim: Dims, keepdim: bool) -> Tensor:
    """The norm for p that is neither 0 nor infinite."""
    if p == 1:
        return sum(E.abs(x), dim, keepdim)
    if p == 2:
        return _root(sum(x * x, dim, keepdim))
    zero = x == 0
    powers = E.where(zero, 0.0 if p > 0 else math.inf, E.pow(E.abs(E.where(zero, 1.0, x)), p))
    return _root(sum(powers, dim, keepdim), 1 / p)


@operation()
def dist(input: Operand, other: Operand, p: float = 2) -> Tensor:
    """norm(input - other, p)"""
    return norm(E.sub(input, other), p)


def is_float(x: Tracer) -> bool:
    return kind(x.type.dtype) == 2
