"""Sums, products, and truth of all or any."""

from __future__ import annotations

from typing import Any

from mlc.dialects import tensor as T
from mlc.frontend.axes import axes
from mlc.frontend.dtypes import as_ir
from mlc.frontend.functions import elementwise as E
from mlc.frontend.operands import boolean, broadcast_shapes, cast, kind, need, reshape, shape_of, tracer
from mlc.frontend.operation import operation
from mlc.frontend.tensor import Dims, DTypeLike, Operand, Tensor
from mlc.frontend.trace import emit
from mlc.frontend.tracer import Tracer
from mlc.ir import sizes
from mlc.ir.diag import UserError, UserTypeError
from mlc.ir.types import i64, ui8


def kept(x: Tensor, like: Tracer, over: tuple[int, ...], keepdim: bool) -> Tensor:
    """A reduced tensor; with `keepdim`, the reduced dimensions have size 1."""
    assert isinstance(x, Tracer)
    return reshape(x, [1 if i in over else d for i, d in enumerate(like.shape)]) if keepdim else x


def reduce_over(cls: Any, x: Tracer, dim: Dims, keepdim: bool) -> Tensor:
    over = axes(dim, x.ndim)
    return kept(emit(cls, x, over), x, over, keepdim)


def check_not_empty(x: Tracer, over: tuple[int, ...], name: str) -> None:
    for i in over:
        need(x.shape[i] - 1, f"the {name} of no elements is not defined")


@operation(autocast="fp32_on_cuda")
def sum(input: Operand, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None) -> Tensor:
    """The sum of the elements over `dim`; 0 where there are none.

    Args:
        input: Tensor or number.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Dtype in which elements are summed and the result is given; by default that of floats, and int64 for
            others.

    Returns:
        Tensor without the dimensions of `dim`.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357).

    Example:
        >>> mlc.sum(mlc.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
        tensor([3., 7.], dtype=mlc.float32)
    """
    x = tracer(input)
    x = cast(x, as_ir(dtype) if dtype is not None else x.type.dtype if x.type.dtype.is_inexact else i64)
    return reduce_over(T.ReduceSum, x, dim, keepdim)


@operation(autocast="fp32")
def prod(input: Operand, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None) -> Tensor:
    """The product of the elements over `dim`; 1 where there are none.

    Args:
        input: Tensor or number.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Dtype in which elements are multiplied and the result is given; by default that of floats, and int64 for
            others.

    Returns:
        Tensor without the dimensions of `dim`.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357).

    Example:
        >>> mlc.prod(mlc.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
        tensor([ 2., 12.], dtype=mlc.float32)
    """
    x = tracer(input)
    x = cast(x, as_ir(dtype) if dtype is not None else x.type.dtype if x.type.dtype.is_inexact else i64)
    return reduce_over(T.ReduceProd, x, dim, keepdim)


def inexact_only(x: Tracer, name: str) -> Tracer:
    """UserTypeError unless x is of floats or complex numbers."""
    return x if x.type.dtype.is_complex else float_only(x, name)


def float_only(x: Tracer, name: str) -> Tracer:
    """UserTypeError unless x is of floats, as in PyTorch."""
    if not x.type.dtype.is_float:
        raise UserTypeError(f"{name} needs floats, found {x.dtype}", code="MLC0359", hint="cast it first: x.float()")
    return x


@operation()
def nansum(input: Operand, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None) -> Tensor:
    """The sum over `dim` of the elements that are not NaN; 0 where there are none.

    Args:
        input: Tensor or number.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default.
        keepdim: Whether reduced dimensions stay, with size 1.
        dtype: Dtype of the sum; by default that of floats, and int64 for others.

    Returns:
        Tensor without the dimensions of `dim`.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357).

    Example:
        >>> mlc.nansum(mlc.tensor([1.0, float("nan"), 2.0]))
        tensor(3., dtype=mlc.float32)
    """
    return sum(E.where(E.isnan(input), 0, input), dim, keepdim, dtype=dtype)


def _no_axis(dim: Dims) -> bool:
    return isinstance(dim, tuple | list) and not dim


def _of_truths(cls: Any, input: Operand, dim: Dims, keepdim: bool) -> Tensor:
    x = tracer(input)
    truths = boolean(x)
    found = truths if _no_axis(dim) else reduce_over(cls, truths, dim, keepdim)
    return cast(tracer(found), ui8) if x.type.dtype == ui8 else found


@operation()
def any(input: Operand, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether some element over `dim` is not 0; False where there are none.

    Args:
        input: Tensor or number; NaN is not 0.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default, none for ().
        keepdim: Whether reduced dimensions stay, with size 1.

    Returns:
        Tensor without the dimensions of `dim`: of bools, or of uint8 if `input` is.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357).

    Example:
        >>> mlc.any(mlc.tensor([[0, 1], [0, 0]]), dim=1)
        tensor([ True, False], dtype=mlc.bool)
    """
    return _of_truths(T.ReduceAny, input, dim, keepdim)


@operation()
def all(input: Operand, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether every element over `dim` is not 0; True where there are none.

    Args:
        input: Tensor or number; NaN is not 0.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default, none for ().
        keepdim: Whether reduced dimensions stay, with size 1.

    Returns:
        Tensor without the dimensions of `dim`: of bools, or of uint8 if `input` is.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357).

    Example:
        >>> mlc.all(mlc.tensor([[0, 1], [2, 3]]), dim=1)
        tensor([False,  True], dtype=mlc.bool)
    """
    return _of_truths(T.ReduceAll, input, dim, keepdim)


@operation()
def count_nonzero(input: Operand, dim: Dims = None) -> Tensor:
    """The number of elements over `dim` that are not 0.

    Args:
        input: Tensor or number; NaN is not 0.
        dim: Dimension, or several, that are reduced; negative ones count from the last. All by default.

    Returns:
        Tensor of int64 without the dimensions of `dim`.

    Raises:
        UserError: `dim` is out of range (MLC0356) or names a dimension twice (MLC0357).

    Example:
        >>> mlc.count_nonzero(mlc.tensor([[0, 1], [2, 3]]), dim=1)
        tensor([1, 2], dtype=mlc.int64)
    """
    return sum(boolean(input), dim)


def is_float(x: Tracer) -> bool:
    return kind(x.type.dtype) == 2


@operation(name="Tensor.sum_to_size")
def sum_to_size(input: Operand, size: Any) -> Tensor:
    """The sum over the dimensions along which a shape would broadcast to that of the tensor.

    Args:
        input: Tensor or number.
        size: A shape that broadcasts to that of `input`.

    Returns:
        Tensor of this shape.

    Raises:
        UserError: the shape does not broadcast to that of `input` (MLC0111).

    Example:
        >>> mlc.ones(2, 3).sum_to_size(2, 1)
        tensor([[3.],
                [3.]], dtype=mlc.float32)
    """
    x, shape = tracer(input), shape_of(size)
    if broadcast_shapes(x.shape, shape) != x.shape:
        raise UserError(f"shape {list(shape)} does not broadcast to {list(x.shape)}", code="MLC0111",
                        symbols=sizes.differing(shape, x.shape, stretch=True))
    more = x.ndim - len(shape)
    over = tuple(i for i, n in enumerate(x.shape) if i < more or (shape[i - more] == 1 and n != 1))
    return reshape(tracer(sum(x, over)), shape) if over else x
