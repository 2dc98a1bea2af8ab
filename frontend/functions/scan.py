"""Functions of every prefix of a dimension: running sums, products and extrema; and differences, which undo sums."""

from __future__ import annotations

from mlc.dialects import tensor as T
from mlc.dialects.tensor.cumulative import latest
from mlc.frontend.dtypes import as_ir
from mlc.frontend.functions import elementwise as E
from mlc.frontend.functions.reduce import ValuesAndIndices
from mlc.frontend.functions.shape import cat, sliced
from mlc.frontend.operands import axis, cast, floating, number, plain_int, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import DTypeLike, Operand, Tensor
from mlc.frontend.trace import Tracer, emit
from mlc.ir.core import Value
from mlc.ir.diag import UserError
from mlc.ir.types import i64


def _running(kind: str, input: Operand, dim: int, dtype: DTypeLike) -> Tensor:
    x = tracer(input)
    at = axis(dim, x.ndim)
    x = cast(x, as_ir(dtype) if dtype is not None else x.type.dtype if x.type.dtype.is_float else i64)
    return emit(T.Cumulative, x, kind, at) if x.ndim else x


@operation()
def cumsum(input: Operand, dim: int, *, dtype: DTypeLike = None) -> Tensor:
    """result[i] = the sum of input[0] to input[i] along `dim`; integers are summed as int64"""
    return _running("add", input, dim, dtype)


@operation()
def cumprod(input: Operand, dim: int, *, dtype: DTypeLike = None) -> Tensor:
    """result[i] = the product of input[0] to input[i] along `dim`; integers are multiplied as int64"""
    return _running("mul", input, dim, dtype)


def _extremes(kind: str, input: Operand, dim: int) -> ValuesAndIndices:
    x = tracer(input)
    at = axis(dim, x.ndim)
    if not x.ndim:
        return ValuesAndIndices(x, number(0, i64))
    y = cast(x, i64) if x.type.dtype.is_bool else x
    values: Tracer = emit(T.Cumulative, y, kind, at)

    def places(x: Value, result: Value) -> Value:
        return latest(x, result, kind, at)

    return ValuesAndIndices(cast(values, x.type.dtype), emit(places, y, values))


@operation()
def cummax(input: Operand, dim: int) -> ValuesAndIndices:
    """The greatest of input[0] to input[i] along `dim`, and where it stands last."""
    return _extremes("max", input, dim)


@operation()
def cummin(input: Operand, dim: int) -> ValuesAndIndices:
    """The smallest of input[0] to input[i] along `dim`, and where it stands last."""
    return _extremes("min", input, dim)


@operation()
def logcumsumexp(input: Operand, dim: int) -> Tensor:
    """log(e ** input[0] + ... + e ** input[i]) along `dim`, without overflow on the way"""
    x = floating(input)
    at = axis(dim, x.ndim)
    return emit(T.LogCumSumExp, x, at) if x.ndim else x


@operation()
def diff(input: Operand, n: int = 1, dim: int = -1, prepend: Operand = None, append: Operand = None) -> Tensor:
    """input[i + 1] - input[i] along `dim`, n times; prepend and append are joined to the input first

    With n = 0 it is the input, without them.
    """
    x = tracer(input)
    if not x.ndim:
        raise UserError("diff needs at least one dimension", code="MLC0364")
    if plain_int(n, "n") < 0:
        raise UserError(f"n = {n}, expected at least 0", code="MLC0360")
    at = axis(dim, x.ndim)
    if n == 0:
        return x
    parts = [p for p in (prepend, x, append) if p is not None]
    x = tracer(cat(parts, at)) if len(parts) > 1 else x
    if n > 1:                                              # past the size there is nothing to subtract
        n = min(n, plain_int(x.shape[at], "the size"))
    for _ in range(n):
        size = x.shape[at]
        if size == 0:
            break
        later, earlier = sliced(x, at, 1, size), sliced(x, at, 0, size - 1)
        x = tracer(E.logical_xor(later, earlier) if x.type.dtype.is_bool else later - earlier)
    return x
